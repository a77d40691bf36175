"""What ExecuTorch programs keep from run to run, and what moves in a step: buffers that are written persist, and a
decode step copies no cache."""

import json
import math
import re
from pathlib import Path

import executorch_runtime as et
import numpy as np
import pte
import pytest
import support
import torch
from run_api import Exported
from safetensors.torch import save_file
from support import ferry, ferry_json

BACKENDS = ["portable", "xnnpack"]
UNPLANNED = ("--no-alloc-graph-input", "--no-alloc-graph-output")
CALLER = "--no-alloc-mutable-buffers"


class Counter(torch.nn.Module):
    """Written whole: by the kernel itself, and where the result is the caller's too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("total", torch.ones(4))
        self.register_buffer("last", torch.zeros(4, 2))

    def forward(self, x):
        self.count.add_(1)
        self.total.add_(x.sum(0))
        before = self.last.clone()
        self.last.copy_(torch.tanh(x.T))
        return x * self.count, self.total / self.count, before, self.total


class Swap(torch.nn.Module):
    """Each is written with what the other held."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.arange(6.0).reshape(2, 3))
        self.register_buffer("b", -torch.ones(2, 3))

    def forward(self, x):
        a = self.a.clone()
        self.a.copy_(self.b + 0)
        self.b.copy_(a)
        return self.a * x + self.b


class Cache(torch.nn.Module):
    """A cache that the module keeps, of which a step writes rows."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(8, 16, bias=False)
        self.register_buffer("keys", torch.zeros(1, 2, 9, 4))
        self.register_buffer("values", torch.randn(1, 2, 9, 4))
        self.register_buffer("past", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        key, value = self.project(x).view(1, -1, 2, 8).transpose(1, 2).split(4, -1)
        places = self.past + torch.arange(x.shape[1])
        self.keys.index_copy_(2, places, key)
        self.values[:, :, places - 9] = value
        self.past.add_(x.shape[1])
        mask = torch.arange(9)[None, :] <= places[:, None]
        return torch.nn.functional.scaled_dot_product_attention(key, self.keys, self.values, attn_mask=mask)


LENGTH = torch.export.Dim("length", min=1, max=5)
MODULES = {
    Counter: ([(2, 4)] * 4, None),
    Swap: ([(2, 3)] * 4, None),
    Cache: ([(1, 3, 8), (1, 1, 8), (1, 2, 8), (1, 1, 8)], ({1: LENGTH},)),
}


@pytest.fixture(scope="module", params=MODULES, ids=lambda module: module.__name__)
def kept(request, tmp_path_factory):
    """The program of a module with buffers, inputs of runs, and what eager gives for them: outputs, then buffers."""
    torch.manual_seed(0)
    shapes, dims = MODULES[request.param]
    module, inputs = request.param().eval(), [torch.randn(shape) for shape in shapes]
    path = tmp_path_factory.mktemp("kept") / "kept.pt2"
    torch.export.save(torch.export.export(module, (inputs[0],), dynamic_shapes=dims), path)
    expected = []
    with torch.no_grad():
        for x in inputs:
            outputs = module(x)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            held = {f"mutated.{name}": buffer.clone().numpy() for name, buffer in module.named_buffers()}
            expected.append(([output.clone().numpy() for output in outputs], held))
    return path, inputs, expected


def agree(directory: Path, found: list, wanted: tuple[list, dict]):
    """Outputs, then buffers but those that are outputs of their own."""
    outputs, held = wanted
    names = [port["name"] for port in et.signature(directory)["outputs"]]
    assert len(names) == len(found) > len(outputs)
    values = [*outputs, *(held[name] for name in names[len(outputs) :])]
    for name, a, b in zip(names, found, values):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", [(), UNPLANNED], ids=" ".join)
def test_written_buffers_persist(kept, tmp_path, backend, options):
    """In the package's own runtime, which knows nothing of ferry."""
    source, inputs, expected = kept
    method = et.load(et.export(source, tmp_path, "--backend", backend, *options))
    for x, wanted in zip(inputs, expected):
        agree(tmp_path, [output.numpy() for output in method.execute([x])], wanted)


def test_written_buffers_persist_beside_mlx(kept, tmp_path):
    source, inputs, expected = kept
    program = pte.Pte(et.export(source, tmp_path, "--backend", "mlx") / "model.pte")
    for x, wanted in zip(inputs, expected):
        agree(tmp_path, [output.numpy() for output in program.run([x])], wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", [(), (CALLER,), (*UNPLANNED, CALLER)], ids=" ".join)
def test_the_adapter_keeps_and_resets_them(kept, tmp_path, backend, options):
    source, inputs, expected = kept
    et.export(source, tmp_path, "--backend", backend, *options)
    exported = Exported(tmp_path, "executorch", support.EXECUTORCH)
    for _ in range(2):
        for x, wanted in zip(inputs, expected):
            agree(tmp_path, list(exported.run({"x": x.numpy()}).values()), wanted)
        exported.reset()
    exported.close()
    save_file({"x": inputs[0].contiguous()}, tmp_path / "in.safetensors")
    read = support.run_ferry(tmp_path, tmp_path / "in.safetensors", tmp_path / "out.safetensors", "reference")
    agree(tmp_path, [read[port["name"]] for port in et.signature(tmp_path)["outputs"]], expected[0])
    assert all(comparison["passed"] for comparison in ferry_json("check", tmp_path))


def tensors(directory: Path):
    program = pte.load(directory / "model.pte")
    return [v.val for v in program.execution_plan[0].values if v.val.type_name == "Tensor"], program


def test_memory_of_buffers(tmp_path):
    """Planned they have a place and an initial value; otherwise neither, and data of their name."""
    torch.export.save(torch.export.export(Cache(), (torch.randn(1, 3, 8),)), tmp_path / "cache.pt2")
    names = {"keys", "values", "past"}
    et.export(tmp_path / "cache.pt2", tmp_path / "planned")
    found, program = tensors(tmp_path / "planned")
    named = {t.extra_tensor_info.fully_qualified_name: t for t in found if t.extra_tensor_info}
    assert set(named) == names
    (initial,) = program.mutable_data_segments
    assert all(t.allocation_info and 0 < t.data_buffer_idx < len(initial.offsets) for t in named.values())
    et.export(tmp_path / "cache.pt2", tmp_path / "given", CALLER)
    found, program = tensors(tmp_path / "given")
    named = {t.extra_tensor_info.fully_qualified_name: t for t in found if t.extra_tensor_info}
    assert set(named) == names and not program.mutable_data_segments
    assert not any(t.allocation_info or t.data_buffer_idx for t in named.values())
    assert names < {data.key for data in program.named_data}
    text = ferry("show", tmp_path / "planned").stdout
    assert "mutated.keys" in text and "what keys holds after the call" in text
    config = json.loads((tmp_path / "given/export.json").read_text())["components"]["model"]["metadata"]["export_config"]
    assert config["alloc_mutable_buffers"] is False


# ---- what moves in a step ----

# Caches as inputs: shared heads, products without an attention, cross-attention, scores that are softened, sinks.
DECODERS = [
    *("cohere", "falcon", "gemma2", "gpt2", "gpt_neo", "gpt_oss", "gptj", "llama", "mllama", "moonshine"),
    *("phi3", "qwen2_vl", "qwen3", "t5", "trocr", "whisper"),
]
LONGEST = 37


def narrow(source: Path) -> str:
    """Bounds that tell sizes apart: at most 2 sequences, 1 new token, caches of 37."""
    seen, given = set(), []
    ports = sorted(ferry_json("show", source)["inputs"], key=lambda port: "cache" not in port["name"])
    for port in ports:
        shape = list(port["shape"])
        for d, size in enumerate(shape):
            if size in seen or not re.fullmatch(r"[a-z]\w*", size):
                continue
            seen.add(size)
            most = LONGEST if "cache" in port["name"] and d == 2 else 2
            shape[d] = f"{size}:..{most}"
        if shape != port["shape"]:
            given.append(f"{port['name']}={','.join(shape)}")
    return ";".join(given)


def cache_traffic(directory: Path):
    """Kernels that write a tensor as large as a cache, other than in place, and how often one goes to a delegate."""
    program = pte.load(directory / "model.pte")
    (plan,), ports = program.execution_plan, et.signature(directory)
    values = [value.val for value in plan.values]

    def is_cache(number):
        value = values[number]
        if value.type_name != "Tensor" or LONGEST not in value.sizes:
            return False
        return math.prod(value.sizes) * pte.DTYPES[value.scalar_type].itemsize >= least

    given = [number for number in plan.inputs if values[number].type_name == "Tensor"]
    least = 0
    caches = [n for n, port in zip(given, ports["inputs"]) if "cache" in port["name"] and is_cache(n)]
    least = min(math.prod(values[n].sizes) * pte.DTYPES[values[n].scalar_type].itemsize for n in caches)
    written, crossing = [], 0
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if call.type_name == "DelegateCall":
            crossing += sum(map(is_cache, call.args))
            continue
        name = plan.operators[call.op_index].name
        if is_cache(call.args[-1]) and not name.endswith("_") and not name.startswith("executorch_prim"):
            written.append(name)
    return written, crossing, len(caches)


@pytest.mark.parametrize("model_type", DECODERS)
def test_a_step_copies_no_cache(fixture, tmp_path, model_type):
    source = fixture(model_type) / "decode.pt2"
    shapes = ("--dynamic-shapes", narrow(source))
    for backend in BACKENDS:
        for options in ((), UNPLANNED):
            directory = et.export(source, tmp_path / backend / str(len(options)), "--backend", backend, *shapes, *options)
            written, crossing, caches = cache_traffic(directory)
            assert caches >= 2 and not written, (backend, written)
            assert crossing == (caches if backend == "xnnpack" else 0)
