"""ExecuTorch programs load with full verification and give eager's numbers, with kernels alone and with
XNNPACK; what cannot be exported says why."""

import json
import re

import executorch_runtime as et
import pytest
import support
import torch
import torch.utils._pytree as pytree
from executorch.runtime import Runtime
from safetensors.numpy import load_file
from support import ROOT, compare, ferry, ferry_json

BACKENDS = ["portable", "xnnpack"]

# Programs that together use every lowering; docs/coverage.md has them all.
PROGRAMS = [
    "clap/model", "clip/model", "d_fine/model", "gemma3n_text/decode", "gpt_oss/model",
    "idefics3/model", "levit/model", "mamba2/model", "mllama/decode", "mobilevitv2/model", "qwen3_next/model",
    "recurrent_gemma/model", "resnet/model", "sam/model", "superpoint/model", "t5/decode", "wav2vec2/model",
]


@pytest.fixture(scope="module")
def bounded(fixture, tmp_path_factory):
    """llama with bounds on its sizes, for both backends."""
    made = {}
    for backend in BACKENDS:
        directory = tmp_path_factory.mktemp(backend)
        shapes = "input_ids=batch:1..4,seq:1..32;attention_mask=batch,seq"
        made[backend] = et.export(fixture("llama"), directory, "--backend", backend, "--dynamic-shapes", shapes)
    return made


def test_the_kernels_are_those_of_the_runtime():
    listed = re.findall(r'KERNEL\("(.*)"\)', (ROOT / "src/target/executorch/kernels.def").read_text())
    assert listed == sorted(Runtime.get().operator_registry.operator_names)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
def test_native(fixture, model_type, backend, tmp_path):
    et.check_native(fixture(model_type), tmp_path, "--backend", backend)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(fixture, name, tmp_path):
    assert et.check_program(name, tmp_path) > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_bounds_are_the_users_own(bounded, fixture, backend):
    method = et.load(bounded[backend])
    assert method.metadata.input_tensor_meta(0).sizes() == (4, 32)
    ids = torch.zeros(4, 32, dtype=torch.int64)
    assert method.execute([ids, torch.ones_like(ids)])[0].shape == (4, 32, 128)
    with pytest.raises(RuntimeError):
        method.execute([torch.zeros(5, 32, dtype=torch.int64), torch.ones(5, 32, dtype=torch.int64)])


def test_both_backends_agree(bounded, fixture):
    inputs = load_file(fixture("llama") / "inputs.safetensors")
    portable, xnnpack = (et.run(bounded[backend], [inputs])[0] for backend in BACKENDS)
    compare(xnnpack, portable)


def test_a_size_without_bound_is_capped_with_a_note(fixture, tmp_path):
    done = ferry("export", fixture("llama"), "--to", "executorch", "-o", tmp_path)
    assert re.search(r"batch <= \d+, sequence <= \d+", done.stderr)
    ranges = et.signature(tmp_path)["ranges"]
    assert et.load(tmp_path).metadata.input_tensor_meta(0).sizes() == (ranges["batch"][1], ranges["sequence"][1])


def test_a_decoder_of_fixed_batch_is_one_delegate(fixture, tmp_path):
    shapes = "input_ids=1,seq:1..32;attention_mask=1,seq"
    et.export(fixture("llama"), tmp_path, "--dynamic-shapes", shapes)
    assert ferry_json("show", tmp_path)["delegates"] == 1
    assert "delegates 1\n" in ferry("show", tmp_path).stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tied_weight_is_stored_once(fixture, tmp_path, backend):
    source = fixture("gemma")
    et.export(source, tmp_path, "--backend", backend)
    weights = sum(tensor.nbytes for tensor in load_file(source / "model.safetensors").values())
    assert (tmp_path / "model.pte").stat().st_size < weights + 40_000


def test_the_same_export_twice_gives_the_same_bytes(fixture, tmp_path):
    for name in ("a", "b"):
        et.export(fixture("bert"), tmp_path / name)
    assert (tmp_path / "a/model.pte").read_bytes() == (tmp_path / "b/model.pte").read_bytes()


def test_memory_of_inputs_and_outputs_may_be_the_callers(fixture, tmp_path):
    shapes = "input_ids=batch:1..4,seq:1..32;attention_mask=batch,seq"
    options = ("--dynamic-shapes", shapes, "--no-alloc-graph-input", "--no-alloc-graph-output")
    source = fixture("bert")
    et.export(source, tmp_path, *options)
    result = et.run(tmp_path, [load_file(source / "inputs.safetensors")])[0]
    compare(result, load_file(source / "expected.safetensors"))
    config = json.loads((tmp_path / "export.json").read_text())["components"]["model"]["metadata"]["export_config"]
    assert config["alloc_graph_input"] is False and config["alloc_graph_output"] is False


def test_half_precision(fixture, tmp_path):
    source = fixture("llama")
    inputs = load_file(source / "inputs.safetensors")
    expected = load_file(source / "expected.safetensors")
    for backend in BACKENDS:
        et.export(source, tmp_path / backend, "--backend", backend, "--dtype", "float16")
        compare(et.run(tmp_path / backend, [inputs])[0], expected, tolerance=5e-3)


@pytest.mark.parametrize(
    "backend, message",
    [
        ("cuda", "CUDA is not available in this environment; cannot export to the ExecuTorch CUDA backend."),
        ("coreml", "expected xnnpack, portable, mlx or cuda"),
    ],
)
def test_other_backends_are_refused(fixture, tmp_path, backend, message):
    done = ferry("export", fixture("bert"), "--to", "executorch", "--backend", backend, "-o", tmp_path / "out", status=None)
    assert done.returncode != 0 and message in done.stderr
    assert not (tmp_path / "out").exists()


class Largest(torch.nn.Module):
    def forward(self, x, index):
        return x.scatter_reduce(0, index, x, "amax")


def test_a_missing_kernel_is_named_and_nothing_is_written(tmp_path):
    args = (torch.randn(4), torch.tensor([0, 0, 1, 3]))
    torch.export.save(torch.export.export(Largest(), args), tmp_path / "largest.pt2")
    done = ferry("export", tmp_path / "largest.pt2", "--to", "executorch", "-o", tmp_path / "out", status=None)
    assert done.returncode != 0
    assert "aten::scatter_reduce.two_out" in done.stderr and "amax" in done.stderr
    assert not (tmp_path / "out").exists()


class Tiny(torch.nn.Module):
    """Operations whose numbers XNNPACK and the kernels could see differently."""

    def forward(self, x):
        masked = torch.softmax(x.masked_fill(x > 0.5, float("-inf")), -1)
        wide = torch.nn.functional.gelu(x, approximate="tanh") + torch.nn.functional.gelu(x)
        return masked, wide, torch.sin(x * 1000), x.unsqueeze(0).expand(2, 2, 3, 4, 5, 6, 7) * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_eagers_whoever_computes(tmp_path, backend):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 5, 6, 7)
    x[0, 0, 0, 0] = x[0, 0, 0, 0].abs() + 1  # rows that are hidden entirely
    torch.export.save(torch.export.export(Tiny(), (x,)), tmp_path / "tiny.pt2")
    et.export(tmp_path / "tiny.pt2", tmp_path / "out", "--backend", backend)
    found = et.load(tmp_path / "out").execute([x])
    for result, wanted in zip(found, Tiny()(x)):
        assert torch.allclose(result, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


class Image(torch.nn.Module):
    """Operations between convolutions that care where the channels are."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.norm = torch.nn.BatchNorm2d(6, affine=True)
        self.norm.running_mean.uniform_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        image = torch.relu(self.norm(self.first(x)))
        rows = torch.softmax(image, -1) + image
        image = self.second(rows * image) - rows
        return image, image.mean(-1), torch.cat([image, rows], 1), image.flatten(2)


class Norms(torch.nn.Module):
    """Numbers whose squares add up to more than float16 holds."""

    def forward(self, x):
        return (torch.nn.functional.layer_norm(x, (384,)), torch.nn.functional.group_norm(x.transpose(1, 2), 2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_norms_of_half_precision_do_not_overflow(tmp_path, backend):
    x = (torch.randn(1, 40, 384, generator=torch.Generator().manual_seed(0)) * 16).half()
    torch.export.save(torch.export.export(Norms(), (x,)), tmp_path / "norms.pt2")
    et.export(tmp_path / "norms.pt2", tmp_path / "out", "--backend", backend)
    for result, wanted in zip(et.load(tmp_path / "out").execute([x]), Norms()(x)):
        assert torch.allclose(result, wanted, atol=5e-3)


def test_channels_are_where_they_belong(tmp_path):
    torch.manual_seed(0)
    model, x = Image().eval(), torch.randn(2, 3, 7, 9)
    dims = {0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=(dims,)), tmp_path / "image.pt2")
    method = et.load(et.export(tmp_path / "image.pt2", tmp_path / "out"))
    for sample in (x, torch.randn(3, 3, 11, 5)):
        for result, wanted in zip(method.execute([sample]), model(sample)):
            assert torch.allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_bounds_of_a_traced_program_can_be_lowered(fixture, tmp_path):
    source = fixture("llama") / "model.pt2"
    shapes = "input_ids=batch:..4,seq:..32;attention_mask=batch:..4,seq:..32"
    et.export(source, tmp_path / "out", "--dynamic-shapes", shapes)
    assert et.load(tmp_path / "out").metadata.input_tensor_meta(0).sizes() == (4, 32)
    done = ferry("export", source, "--to", "executorch", "-o", tmp_path / "no", "--dynamic-shapes", "input_ids=1,seq", status=None)
    assert done.returncode != 0 and "input_ids" in done.stderr


class Keywords(torch.nn.Module):
    def forward(self, x, scale=1.0, flag=False, times=1, mode="none", extra=None):
        return (x * scale + times).neg() if flag else x


def test_constants_are_inputs_as_the_tracer_has_them(tmp_path):
    """Transformers' runner flattens all keywords, constants among them, and gives every leaf."""
    x = torch.randn(2, 3)
    keywords = {"scale": 0.5, "flag": True, "times": 3, "mode": "none", "extra": None}
    torch.export.save(torch.export.export(Keywords(), (x,), keywords), tmp_path / "keywords.pt2")
    directory = et.export(tmp_path / "keywords.pt2", tmp_path / "out")
    metadata = json.loads((directory / "export.json").read_text())["components"]["model"]["metadata"]
    assert metadata["in_constants"] == keywords
    leaves, _ = pytree.tree_flatten(((x,), keywords))
    method = et.load(directory)
    result = method.execute([None if isinstance(leaf, str) else leaf for leaf in leaves])
    assert torch.allclose(result[0], Keywords()(x, **keywords))
    with pytest.raises(RuntimeError):
        method.execute([x, 0.25, True, 3, None, None])
    compare(et.run(directory, [{"x": x.numpy()}])[0], {"output": Keywords()(x, **keywords).numpy()})


class Cached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 4)

    def forward(self, past, x):
        keys = torch.cat([past, self.project(x)], 1)
        return keys, torch.softmax(self.project(x) @ keys.transpose(1, 2), -1) @ keys


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cache_may_be_empty(tmp_path, backend):
    model, x = Cached().eval(), torch.randn(2, 3, 4)
    dims = ({1: torch.export.Dim.AUTO}, {1: torch.export.Dim.AUTO})
    program = torch.export.export(model, (torch.randn(2, 5, 4), x), dynamic_shapes=dims)
    torch.export.save(program, tmp_path / "cached.pt2")
    method = et.load(et.export(tmp_path / "cached.pt2", tmp_path / "out", "--backend", backend))
    for length in (5, 0, 1):
        past = torch.randn(2, length, 4)
        for result, wanted in zip(method.execute([past, x]), model(past, x)):
            assert torch.allclose(result, wanted, rtol=1e-4, atol=1e-5)
