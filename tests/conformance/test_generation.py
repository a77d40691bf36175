"""Generation: what exports generate in every runtime is what the eager models generate."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import support
import transformers
from safetensors.numpy import load_file, save_file
from support import FIXTURES, ferry, ferry_json

HERE = Path(__file__).parent
GENERATIVE = {
    family["model_type"] for family in ferry_json("models") if "text-generation" in family["tasks"]
}
MODEL_TYPES = [name for name in support.native_fixtures() if name in GENERATIVE]
RUNTIMES = {"onnx": "onnxruntime", "openvino": "openvino", "executorch": "executorch", "dynamo": "reference"}
CACHES = {
    "growing": [],
    "growing-multi-token": ["--multi-token-decode"],
    "static": ["--static-cache", "48"],
    "static-multi-token": ["--static-cache", "48", "--multi-token-decode"],
}
NEW_TOKENS = 32

# Every target and every kind of cache for a few; for the others each target once, and the kinds in turn.
WHOLE = ("llama", "gpt2", "gemma3_text")
CASES = [(name, target, cache) for name in WHOLE for target in RUNTIMES for cache in CACHES] + [
    (name, target, list(CACHES)[(i + j) % len(CACHES)])
    for i, name in enumerate(MODEL_TYPES)
    if name not in WHOLE
    for j, target in enumerate(RUNTIMES)
]


def generate_all(directory: Path) -> None:
    script = HERE / "make_generation.py"
    halves = [MODEL_TYPES[0::2], MODEL_TYPES[1::2]]
    running = [subprocess.Popen([sys.executable, script, FIXTURES, directory, *half]) for half in halves]
    assert not any([process.wait() for process in running])


@pytest.fixture(scope="session")
def eager() -> Path:
    """What the eager models generate."""
    known = " ".join([transformers.__version__, *MODEL_TYPES]).encode()
    return support.make_once("generation", [HERE / "make_generation.py"], generate_all, known)


def export(model_type: str, directory: Path, *options) -> Path:
    ferry("export", FIXTURES / model_type, "--generation", *options, "-o", directory, "-q")
    path = directory / "generation_config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    config |= {"min_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 0}
    path.write_text(json.dumps(config))
    return directory


def generate(directory: Path, inputs: dict, runtime: str, *options) -> np.ndarray:
    save_file(inputs, directory / "prompts.safetensors")
    result = directory / "sequences.safetensors"
    ferry("generate", directory, "--inputs", directory / "prompts.safetensors", "-o", result,
          "--runtime", runtime, "--max-new-tokens", str(NEW_TOKENS), *options)  # fmt: skip
    return load_file(result)["sequences"]


@pytest.mark.parametrize("model_type, target, cache", CASES)
def test_an_export_generates_what_the_eager_model_generates(model_type, target, cache, eager, tmp_path):
    expected = load_file(eager / f"{model_type}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(model_type, tmp_path, "--to", target, *CACHES[cache])
    chunks = ("0", "3", "1") if cache.endswith("multi-token") else ("0",)
    for chunk in chunks:
        found = generate(directory, inputs, RUNTIMES[target], "--chunk", chunk)
        np.testing.assert_array_equal(found, expected["greedy"], err_msg=f"in chunks of {chunk}")
