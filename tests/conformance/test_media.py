"""Images and sounds become what the processors of Transformers make of them, and so do prompts."""

import fcntl
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file
from support import ROOT, ferry

PACKAGES = ROOT / "build/media"  # tests/media.txt
CASES = [
    *(f"image_{name}" for name in (
        "clip", "clip_pads", "clip_numbers", "clip_only_rescales", "clip_only_normalizes", "clip_as_it_is", "formats",
        "siglip", "vit", "vit_lanczos", "vit_both_edges", "vit_largest", "dinov2", "llava_pads", "gemma3", "qwen2_vl",
        "qwen2_vl_large", "qwen3_vl", "idefics3", "idefics3_whole", "smolvlm")),
    *(f"prompt_{name}" for name in (
        "llava", "llava_full", "paligemma", "paligemma_bare", "gemma3", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "idefics3",
        "smolvlm", "qwen2_audio")),
    "audio_whisper", "audio_large",
]  # fmt: skip
# What the Python processors tell their callers, and models do not take but for training.
NOT_INPUTS = {"num_crops", "labels"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A directory with files, processors, and what Transformers makes of the files; made once for all workers."""
    if not PACKAGES.exists() and os.environ.get("CI") != "true":
        pytest.skip("tools/setup test installs what images are compared with")
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    directory = root / "media"
    with open(root / "media.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "cases.json").exists():
            directory.mkdir(exist_ok=True)
            environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
            command = [sys.executable, "-W", "ignore", ROOT / "tests/conformance/media_child.py", directory]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return directory


def preprocess(reference, case, output, *options):
    cases = json.loads((reference / "cases.json").read_text())
    assert sorted(cases) == sorted(CASES)
    files = [reference / file for file in cases[case]["files"]]
    if cases[case]["prompt"] is not None:
        options = ["--prompt", cases[case]["prompt"], *options]
    ferry("preprocess", reference / case, *files, "-o", output, *options)
    return load_file(output), load_file(reference / case / "expected.safetensors")


@pytest.mark.parametrize("case", CASES)
def test_makes_what_transformers_makes(reference, case, tmp_path):
    found, expected = preprocess(reference, case, tmp_path / "inputs.safetensors")
    assert set(found) == set(expected) - NOT_INPUTS
    for name, values in found.items():
        wanted = expected[name]
        assert (values.shape, values.dtype) == (wanted.shape, wanted.dtype), name
        if name == "input_features":
            assert np.abs(values - wanted).max() < 1e-4  # Transformers transforms in float32
        elif case == "image_formats":
            # The JPEG decoders may be of different versions.
            assert np.abs(values - wanted).max() <= 1.001 / 255
        else:
            np.testing.assert_array_equal(values, wanted, name)
