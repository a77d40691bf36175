"""Generation with images and audio: what the components of multimodal models generate together in every
runtime is what the eager models generate."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import support
import transformers
from make_merged import BEAMS, CASES, FIXTURES as TYPES, NEW_TOKENS, SEARCHED
from safetensors.numpy import load_file, save_file
from support import FIXTURES, ferry, write_png, write_vision_model

HERE = Path(__file__).parent
SCRIPTS = [HERE / f"{name}.py" for name in ("make_merged", "make_multimodal", "checkpoints")]
RUNTIMES = {"onnx": "onnxruntime", "openvino": "openvino", "executorch": "executorch", "dynamo": "reference"}
CACHES = {
    "growing": [],
    "static-multi-token": ["--static-cache", "64", "--multi-token-decode"],
    "growing-multi-token": ["--multi-token-decode"],
    "static": ["--static-cache", "64"],
}
# ExecuTorch plans memory for bounds; without these, its share of 512 MiB would be patches of one image.
BOUNDS = {
    "qwen2_vl": "hidden_states=patches:4..128,96",
    "qwen2_5_vl": "hidden_states=patches:4..128,96",
    "qwen3_vl": "hidden_states=patches:4..128,96;deepstack_visual_embeds.0=visual:..64,{0}",
}


def turns(names, targets):
    """Every name with every target, with another kind of cache each time."""
    return [
        (name, target, list(CACHES)[(i + j) % len(CACHES)])
        for i, name in enumerate(names)
        for j, target in enumerate(targets)
    ]


FIXTURE_CASES = turns(TYPES, RUNTIMES)
# Audio in every runtime, the others in ONNX Runtime and another one.
MADE_CASES = turns(CASES, ["onnx"])
MADE_CASES += [(name, list(RUNTIMES)[1 + i % 3], cache) for i, (name, _, cache) in enumerate(MADE_CASES)]
MADE_CASES += [(name, target, "growing") for name in CASES if "audio" in name for target in RUNTIMES]


def make_all(directory: Path) -> None:
    subprocess.run([sys.executable, SCRIPTS[0], FIXTURES, directory], check=True)


@pytest.fixture(scope="session")
def eager() -> Path:
    return support.make_once("merged", SCRIPTS, make_all, transformers.__version__.encode())


def export(source: Path, directory: Path, target: str, cache: str) -> Path:
    config = json.loads((source / "config.json").read_text())
    bounds = BOUNDS.get(config["model_type"]) if target == "executorch" else None
    size = config.get("text_config", config)["hidden_size"]
    options = ["--dynamic-shapes", bounds.format(size)] if bounds else []
    ferry("export", source, "--generation", "--to", target, *CACHES[cache], *options, "-o", directory, "-q")
    path = directory / "generation_config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**config, "do_sample": False, "pad_token_id": 0, "min_new_tokens": NEW_TOKENS}))
    return directory


def generate(directory: Path, inputs: Path, runtime: str, *options) -> np.ndarray:
    result = directory / "sequences.safetensors"
    ferry("generate", directory, "--inputs", inputs, "-o", result, "--runtime", runtime,
          "--max-new-tokens", str(NEW_TOKENS), *options)  # fmt: skip
    return load_file(result)["sequences"]


@pytest.mark.parametrize("model_type, target, cache", FIXTURE_CASES)
def test_a_fixture_generates_what_the_eager_model_generates(model_type, target, cache, eager, tmp_path):
    directory = export(FIXTURES / model_type, tmp_path, target, cache)
    for name in ("inputs", "second_inputs", "padded", "text") if target == "onnx" else ("padded", "text"):
        case = eager / f"{model_type}-{name}"
        found = generate(directory, case / "inputs.safetensors", RUNTIMES[target])
        np.testing.assert_array_equal(found, load_file(case / "expected.safetensors")["greedy"], err_msg=name)


@pytest.mark.parametrize("name, target, cache", MADE_CASES)
def test_other_models_generate_what_the_eager_ones_do(name, target, cache, eager, tmp_path):
    case = eager / name
    directory = export(case / "model", tmp_path, target, cache)
    expected = load_file(case / "expected.safetensors")
    found = generate(directory, case / "inputs.safetensors", RUNTIMES[target])
    np.testing.assert_array_equal(found, expected["greedy"])
    if name in SEARCHED:
        found = generate(directory, case / "inputs.safetensors", RUNTIMES[target], "--beams", str(BEAMS))
        np.testing.assert_array_equal(found, expected["beams"])


@pytest.mark.parametrize("model_type, target", [("qwen3_vl", "onnx"), ("qwen2_vl", "openvino"), ("gemma3", "openvino")])
def test_every_component_agrees_with_the_reference_runtime(model_type, target, tmp_path):
    export(FIXTURES / model_type, tmp_path, target, "growing")
    ferry("check", tmp_path)


def test_a_picture_on_the_command_line_is_what_its_tensors_are(fixture, tmp_path):
    model, picture, inputs = tmp_path / "model", tmp_path / "cat.png", tmp_path / "inputs.safetensors"
    write_vision_model(fixture("llava"), model)
    write_png(picture, 64, 48)
    export(model, tmp_path / "export", "onnx", "growing")
    options = ("--ids", "--max-new-tokens", str(NEW_TOKENS))
    prompt = "<image> What is this?"
    shown = ferry("generate", tmp_path / "export", prompt, "--image", picture, *options).stdout
    ferry("preprocess", model, picture, "--prompt", prompt, "-o", inputs)
    assert ferry("generate", tmp_path / "export", "--inputs", inputs, *options).stdout == shown
    assert len(shown.split()) == NEW_TOKENS
    alone = ferry("generate", tmp_path / "export", "What is this?", *options).stdout
    assert len(alone.split()) == NEW_TOKENS and alone != shown


def changed(**tensors):
    return lambda inputs: {name: value for name, value in {**inputs, **tensors}.items() if value is not None}


@pytest.mark.parametrize(
    "model_type, change, message",
    [
        ("llava", changed(input_ids=np.full((2, 23), 21)), "0 tokens stand for images (token 10), and there are 32"),
        ("llava", changed(input_features=np.zeros((1, 4, 4), np.float32)), "does not take this input"),
        ("qwen2_vl", changed(image_grid_thw=None), "image_grid_thw: expected int64"),
        ("qwen2_vl", changed(image_grid_thw=np.array([[1, 4, 4], [1, 4, 2]])), "the images have 24 patches, and pixel_values has 32"),
        ("gemma3", changed(token_type_ids=np.zeros((2, 3), np.int64)), "integers of the shape of input_ids"),
        ("idefics3", changed(pixel_values=np.zeros((2, 1, 3, 32, 32), np.float32)), "not empty"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(model_type, change, message, eager, tmp_path):
    directory = export(FIXTURES / model_type, tmp_path / "export", "onnx", "growing")
    inputs = load_file(eager / f"{model_type}-inputs/inputs.safetensors")
    save_file(change(inputs), tmp_path / "inputs.safetensors")
    done = ferry("generate", directory, "--inputs", tmp_path / "inputs.safetensors", status=None)
    assert done.returncode not in (0, None) and message in done.stderr


def test_the_text_model_must_be_a_decoder_that_is_known(tmp_path):
    source = tmp_path / "model"
    source.mkdir()
    for path in (FIXTURES / "llava").iterdir():
        (source / path.name).symlink_to(path)
    config = json.loads((source / "config.json").read_text())
    config["text_config"]["model_type"] = "gpt2"
    (source / "config.json").unlink()
    (source / "config.json").write_text(json.dumps(config))
    done = ferry("export", source, "--generation", "-o", tmp_path / "export", status=None)
    assert done.returncode == 6 and "gpt2" in done.stderr and "text_config" in done.stderr
