"""Decoders with experts beyond ONNX Runtime: routing, layouts and odd sizes in OpenVINO, ExecuTorch and torch, and
steps on a cache. The cases are those of make_experts.py."""

import dynamo
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors
from support import compare, ferry, run_ferry
from test_variants import CHECKPOINTS, open_session

# A second sample that uses other experts, experts that nobody uses, one matrix for all of them, sizes that are
# not multiples of anything, sinks and windows, groups of experts and compressed keys.
CASES = ("qwen3_moe-published-key", "mixtral-two", "mixtral-together", "qwen2_moe-odd", "gpt_oss-windows-left", "deepseek_v3-odd", "deepseek_v3-language")
STEPS = ("mixtral-window", "qwen2_moe-windows", "qwen3_moe-language", "gpt_oss-language", "deepseek_v3-language")
TARGETS = {"openvino": (), "executorch": (), "portable": ("--backend", "portable")}
case = pytest.mark.parametrize("name", CASES)


def export(name, target, *options):
    source = CHECKPOINTS / name
    ferry("export", source, "-o", target, "--inputs", source / "inputs.safetensors", "--dynamic", *options)
    return source


@case
@pytest.mark.parametrize("target", TARGETS)
def test_outputs(tmp_path, name, target):
    runtime = "openvino" if target == "openvino" else "executorch"
    source = export(name, tmp_path / "export", "--to", runtime, *TARGETS[target])
    for prefix in ("", "second_"):
        inputs = source / f"{prefix}inputs.safetensors"
        found = run_ferry(tmp_path / "export", inputs, tmp_path / "out.safetensors", runtime)
        compare(found, load_file(source / f"{prefix}expected.safetensors"))


@case
def test_torch(tmp_path, name):
    source = export(name, tmp_path, "--to", "dynamo")
    program = dynamo.load(tmp_path / "model.pt2")
    for prefix in ("", "second_"):
        inputs = load_tensors(source / f"{prefix}inputs.safetensors")
        found = dynamo.run(program, tmp_path, inputs)
        compare(found, load_file(source / f"{prefix}expected.safetensors"))


def call(session, values):
    results = session.run(None, {port.name: values[port.name] for port in session.get_inputs()})
    return dict(zip((port.name.removeprefix("output.") for port in session.get_outputs()), results))


@pytest.mark.parametrize("name", STEPS)
def test_step(tmp_path, name):
    """All tokens but the last, then the last on their cache: what the whole run says of it."""
    source = CHECKPOINTS / name
    ferry("export", source, "-o", tmp_path, "--generation")
    inputs = load_file(source / "second_inputs.safetensors")
    expected = load_file(source / "second_expected.safetensors")["logits"][:, -1:]
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    before = {"input_ids": ids[:, :-1], "attention_mask": mask[:, :-1], "position_ids": places[:, :-1]}
    step = {"input_ids": ids[:, -1:], "attention_mask": mask, "position_ids": places[:, -1:]}
    cache = call(open_session(tmp_path / "prefill.onnx"), before)
    step |= {f"input.{key}": value for key, value in cache.items()}
    compare({"logits": call(open_session(tmp_path / "decode.onnx"), step)["logits"]}, {"logits": expected})
