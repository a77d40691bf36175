"""ExecuTorch exports through ferry's own adapter, and read back without ExecuTorch: eager's numbers, checks,
decoding with caches in place, and clear errors."""

import os
import shutil
import struct
import subprocess

import numpy as np
import pytest
import support
import torch
from safetensors.numpy import load_file, save_file
from support import ROOT, compare, ferry, ferry_json, run_ferry
from transformers import AutoModelForCausalLM

PACKAGE = support.EXECUTORCH.parent
PROMPT, STEPS, LENGTH = [5, 17, 99, 3, 42, 8, 61], 16, 32
UNPLANNED = ["--no-alloc-graph-input", "--no-alloc-graph-output"]

# Programs that together use most kernels and nodes of XNNPACK, groups of rows and counts that depend on data.
PROGRAMS = ["clip", "d_fine", "gpt_oss", "levit", "llava", "mamba2", "mobilenet_v2", "owlvit", "t5", "wav2vec2"]


@pytest.fixture(scope="module")
def executorch_export(fixture, tmp_path_factory):
    """The folder of an ExecuTorch export of a model type's fixture, made once."""
    made = {}

    def find(model_type, *options, program=None):
        key = (model_type, program, *options)
        if key not in made:
            source = fixture(model_type)
            shapes = [] if program else ["--inputs", source / "inputs.safetensors", "--dynamic"]
            made[key] = tmp_path_factory.mktemp("executorch") / model_type
            ferry("export", source / (program or ""), "-o", made[key], "--to", "executorch", "-q", *shapes, *options)
        return made[key]

    return find


@pytest.mark.parametrize("model_type", ["llama", "bert"])
@pytest.mark.parametrize("options", [("--backend", "xnnpack"), ("--backend", "portable", *UNPLANNED)], ids=" ".join)
def test_eager_numbers(fixture, executorch_export, tmp_path, model_type, options):
    export = executorch_export(model_type, *options)
    for sample in ("", "second_"):
        inputs = fixture(model_type) / f"{sample}inputs.safetensors"
        expected = load_file(fixture(model_type) / f"{sample}expected.safetensors")
        for runtime in ("executorch", "reference"):
            compare(run_ferry(export, inputs, tmp_path / "out.safetensors", runtime), expected)


@pytest.mark.parametrize("backend", ["xnnpack", "portable"])
@pytest.mark.parametrize("model_type", PROGRAMS)
def test_programs_are_read_back(fixture, executorch_export, tmp_path, model_type, backend):
    export = executorch_export(model_type, "--backend", backend, program="model.pt2")
    inputs = fixture(model_type) / "inputs.safetensors"
    outputs = run_ferry(export, inputs, tmp_path / "out.safetensors", "reference")
    compare(outputs, load_file(fixture(model_type) / "expected.safetensors"))


class Scaled(torch.nn.Module):
    def forward(self, x, scale=1.0, flag=False, name="", count=0):
        return x * scale + count if flag else x


def test_constants_of_a_traced_program_are_given_for_it(tmp_path):
    """They are inputs of a .pte, which export.json does not count as such."""
    x = torch.randn(2, 3)
    program = torch.export.export(Scaled(), (x,), {"scale": 2.5, "flag": True, "name": "a", "count": 3})
    torch.export.save(program, tmp_path / "scaled.pt2")
    save_file({"x": x.numpy()}, tmp_path / "in.safetensors")
    ferry("export", tmp_path / "scaled.pt2", "-o", tmp_path / "out", "--to", "executorch", "-q")
    for runtime in ("executorch", "reference"):
        found = run_ferry(tmp_path / "out", tmp_path / "in.safetensors", tmp_path / "o.safetensors", runtime)
        compare(dict(y=next(iter(found.values()))), dict(y=(x * 2.5 + 3).numpy()), 1e-6)


def test_check_runs_what_fits_the_format(executorch_export):
    comparisons = ferry_json("check", executorch_export("bert"))
    assert {c["runtime"].split()[0] for c in comparisons} == {"executorch"}
    assert len({c["inputs"] for c in comparisons}) == 2 and all(c["passed"] for c in comparisons)


def test_show(executorch_export):
    text = ferry("show", executorch_export("llama"), "--program").stdout
    assert "input_ids: %input_ids : int64[batch, sequence]" in text
    assert "%model.layers.0.self_attn.q_proj.weight : float32[32, 32]" in text
    assert "aten::linear" in text


def test_doctor():
    runtimes = {runtime["name"]: runtime for runtime in ferry_json("doctor")}
    executorch = runtimes["executorch"]
    assert executorch["found"] and executorch["version"] == executorch["tested"]
    assert "XnnpackBackend" in executorch["devices"].split(", ")
    assert executorch["path"] == str(support.EXECUTORCH.resolve() / "libexecutorch.so")


# ---- decoding ----


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """The example, built as its first lines say."""
    folder = tmp_path_factory.mktemp("example")
    for name in ("executorch_decode.cpp", "Makefile"):
        shutil.copy(ROOT / "examples" / name, folder)
    flags = f"-I{ROOT / 'include'} -L{support.FERRY.parent} -Wl,-rpath,{support.FERRY.parent} -lferry"
    (folder / "pkg-config").write_text(f"#!/bin/sh\necho {flags}\n")
    (folder / "pkg-config").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    command = ["make", "-C", folder, "executorch_decode", f"EXECUTORCH={PACKAGE}", "CXXFLAGS=-Wall -Wextra -Werror"]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "executorch_decode"


def generate(checkpoint):
    """The likeliest tokens, as eager has them."""
    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    ids = torch.tensor([PROMPT])
    with torch.no_grad():
        for _ in range(STEPS + 1):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
    return ids[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gpt2"])
def test_decoding_with_caches_in_place(fixture, executorch_export, decoder, model_type):
    """Seven tokens at once, then sixteen, one by one: eager's tokens."""
    expected = generate(fixture(model_type))
    for backend in ("xnnpack", "portable"):
        export = executorch_export(model_type, "--backend", backend, *UNPLANNED, program="decode.pt2")
        command = [decoder, export, LENGTH, STEPS, *PROMPT]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert list(map(int, done.stdout.split())) == expected, backend


class Swap(torch.nn.Module):
    """A buffer that is read after it has been written over."""

    def forward(self, x, state):
        old = state.clone()
        state.copy_(x.mT.contiguous())
        return torch.softmax(old @ x, -1) + old


def test_a_state_is_not_overwritten_before_it_is_read(tmp_path):
    """Where the caller may bind the result of a state to the state."""
    torch.manual_seed(0)
    x, state = torch.randn(4, 4), torch.randn(4, 4)
    torch.export.save(torch.export.export(Swap(), (x, state.clone())), tmp_path / "swap.pt2")
    after = state.clone()
    expected = Swap()(x, after)
    save_file({"x": x.numpy(), "state": state.numpy()}, tmp_path / "in.safetensors")
    for backend in ("xnnpack", "portable"):
        options = ["--to", "executorch", "--backend", backend, *UNPLANNED, "-q"]
        ferry("export", tmp_path / "swap.pt2", "-o", tmp_path / "out", *options)
        found = run_ferry(tmp_path / "out", tmp_path / "in.safetensors", tmp_path / "o.safetensors", "executorch")
        values = list(found.values())
        assert any(np.allclose(v, expected.numpy(), atol=1e-5) for v in values)
        assert any(np.array_equal(v, after.numpy()) for v in values)


# ---- errors ----


def refused(export, status, *words, inputs=None, runtime="executorch", **options):
    inputs = inputs or support.FIXTURES / "bert/inputs.safetensors"
    done = ferry("run", export, "-i", inputs, "--runtime", runtime, status=status, **options)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert len(errors) == 1, done.stderr
    for word in words:
        assert word in errors[0], f"expected {word!r} in {errors[0]!r}"


def test_sizes_beyond_the_bounds_are_named(executorch_export, tmp_path):
    shapes = ["--dynamic-shapes", "input_ids=batch:1..2,seq:1..8;attention_mask=batch,seq;token_type_ids=batch,seq"]
    export = executorch_export("bert", *shapes)
    ids = np.ones((2, 9), np.int64)
    save_file({"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}, tmp_path / "long.safetensors")
    refused(export, 2, "attention_mask", "dimension 1 is 9", "at most 8", inputs=tmp_path / "long.safetensors")


@pytest.mark.parametrize("runtime", ["executorch", "reference"])
def test_damaged_programs(executorch_export, tmp_path, runtime):
    target = tmp_path / "damaged"
    shutil.copytree(executorch_export("bert", "--backend", "portable"), target)
    model = target / "model.pte"
    whole = model.read_bytes()
    model.write_bytes(b"text")
    refused(target, 5, "model.pte", runtime=runtime)
    model.write_bytes(whole[:4] + b"ET99" + whole[8:])
    refused(target, 5, "model.pte", runtime=runtime)
    model.write_bytes(whole[: len(whole) // 2])
    refused(target, 5, "model.pte", runtime=runtime)
    model.write_bytes(struct.pack("<I", 0x7FFFFFF0) + whole[4:])
    refused(target, 5, "model.pte", runtime=runtime)
    for place in range(40, 2000, 97):
        model.write_bytes(whole[:place] + b"\x01\x02\x03" + whole[place + 3 :])
        done = ferry("run", target, "-i", support.FIXTURES / "bert/inputs.safetensors", "--runtime", runtime, status=None)
        assert done.returncode >= 0, f"byte {place}: the process died: {done.stderr}"
    unknown = {"executorch": (9, "aten::embeddinG"), "reference": (6, "aten::embeddinG.out: there is no support")}
    model.write_bytes(whole.replace(b"aten::embedding", b"aten::embeddinG"))
    refused(target, *unknown[runtime], runtime=runtime)
    model.unlink()
    refused(target, 3, "model.pte", runtime=runtime)


def test_what_is_missing_is_named(executorch_export, tmp_path, monkeypatch):
    export = executorch_export("bert")
    inputs = support.FIXTURES / "bert/inputs.safetensors"
    monkeypatch.setitem(support.ENVIRONMENT, "FERRY_EXECUTORCH_ADAPTER", str(tmp_path / "none.so"))
    refused(export, 8, "none.so", "make executorch", "FERRY_EXECUTORCH_ADAPTER")
    runtimes = {runtime["name"]: runtime for runtime in ferry_json("doctor")}
    assert "none.so" in runtimes["executorch"]["problem"]
    monkeypatch.setitem(support.ENVIRONMENT, "FERRY_EXECUTORCH", str(tmp_path))
    refused(export, 8, "pip install executorch", "holds no libexecutorch.so")
    done = ferry("run", export, "-i", inputs, "--runtime", "executorch", "--library", tmp_path / "none", status=8)
    assert "the ExecuTorch library does not exist" in done.stderr


def test_an_adapter_for_another_version_is_refused(executorch_export, tmp_path, monkeypatch):
    shutil.copytree(support.EXECUTORCH, tmp_path / "other/lib")
    (tmp_path / "other/version.py").write_text('__version__ = "1.9.0+cpu"\n')
    monkeypatch.setitem(support.ENVIRONMENT, "FERRY_EXECUTORCH", str(tmp_path / "other/lib"))
    refused(executorch_export("bert"), 6, "built for ExecuTorch 1.5.1", "is ExecuTorch 1.9.0")
