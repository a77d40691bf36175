"""Programs for MLX are what the package's schema says, and give eager's numbers in an interpreter of MLX's
operations; nothing here runs on Apple hardware."""

import re
from pathlib import Path

import executorch_runtime as et
import mlx
import programs
import pte
import pytest
import support
import torch
import transformers
from executorch.runtime import Runtime, Verification
from safetensors.numpy import load_file
from support import ROOT, compare, ferry

# Programs that together use every node that fixtures reach, and kernels between delegates.
PROGRAMS = [
    *("bart/model", "clap/model", "d_fine/model", "deberta-v2/model", "dpt/model", "granitemoehybrid/model"),
    *("mixtral/dyn_decode", "mllama/decode", "owlvit/model", "qwen3_5_text/model", "smolvlm/model", "whisper/dyn_decode"),
]


def export(source, directory, *options) -> Path:
    return et.export(source, directory, "--backend", "mlx", *options)


def nodes(directory: Path) -> list[str]:
    (graph,) = pte.Pte(directory / "model.pte").graphs
    return [instruction.op.type_name for instruction in graph.instruction_chains[0].instructions]


def test_the_numbers_of_nodes_are_the_schemas():
    text = (ROOT / "src/target/executorch/mlx.h").read_text()
    body = re.search(r"enum {\s*(MLX_ID_COPY.*?)};", text, re.S).group(1)
    known = {re.sub("[_.]", "", name.removesuffix("Node")).upper(): i for i, name in enumerate(mlx.SCHEMA.unions["OpNode"])}
    number = 0
    for name, given in re.findall(r"MLX_(\w+)(?: = (\d+))?", body):
        number = int(given) if given else number + 1
        assert known[name.replace("_", "")] == number, name


@pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
def test_native(fixture, model_type, tmp_path):
    source = fixture(model_type)
    export(source, tmp_path, "--inputs", source / "inputs.safetensors", "--dynamic")
    prefixes = ("", "second_")
    results = et.run_mlx(tmp_path, [load_file(source / f"{prefix}inputs.safetensors") for prefix in prefixes])
    for prefix, result in zip(prefixes, results):
        compare(result, load_file(source / f"{prefix}expected.safetensors"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(fixture, name, tmp_path):
    fixture(name.split("/")[0])
    assert et.check_mlx_program(name, tmp_path) > 0


def test_a_decoder_is_one_delegate_whatever_its_sizes(fixture, tmp_path):
    shapes = "input_ids=batch:1..4,seq:2..32;attention_mask=batch,seq"
    export(fixture("llama"), tmp_path, "--dynamic-shapes", shapes)
    program = pte.Pte(tmp_path / "model.pte")
    (graph,) = program.graphs
    assert not program.plan.operators and len(program.plan.chains[0].instructions) == 1
    metas = [graph.tensor_meta[slot.idx] for slot in graph.input_map]
    assert [[(dim.value, dim.min_value, dim.max_value) for dim in meta.shape] for meta in metas] == [
        [(-1, 1, 4), (-1, 2, 32)]
    ] * 2
    assert graph.num_temp_tensors < 20
    names = nodes(tmp_path)
    assert names.count("SdpaNode") == 2 and names.count("RMSNormNode") == 5 and "SiluNode" in names


def test_fixed_sizes_are_numbers(fixture, tmp_path):
    export(fixture("llama"), tmp_path, "--dynamic-shapes", "input_ids=1,8;attention_mask=1,8")
    assert not {"SymSizeNode", "AddIntNode", "MultiplyIntNode"} & set(nodes(tmp_path))


def test_the_package_reads_the_program(fixture, tmp_path):
    """The outer program passes the runtime's verification; the delegate is one that it lacks here."""
    export(fixture("llama"), tmp_path)
    program = Runtime.get().load_program(tmp_path / "model.pte", verification=Verification.InternalConsistency)
    assert program.method_names == {"forward"}
    with pytest.raises(RuntimeError):
        program.load_method("forward")


def test_ferry_says_that_it_does_not_run_it(fixture, tmp_path):
    source = fixture("llama")
    export(source, tmp_path)
    done = ferry("run", tmp_path, "--inputs", source / "inputs.safetensors", "--runtime", "reference", status=None)
    assert done.returncode != 0 and 'the backend "MLXBackend", which is not read back' in done.stderr


def test_a_tied_weight_is_stored_once(fixture, tmp_path):
    source = fixture("gemma")
    export(source, tmp_path)
    weights = sum(tensor.nbytes for tensor in load_file(source / "model.safetensors").values())
    assert (tmp_path / "model.pte").stat().st_size < weights + 40_000


def test_the_same_export_twice_gives_the_same_bytes(fixture, tmp_path):
    for name in ("a", "b"):
        export(fixture("bert"), tmp_path / name)
    assert (tmp_path / "a/model.pte").read_bytes() == (tmp_path / "b/model.pte").read_bytes()


@pytest.mark.parametrize("dtype, tolerance", [("float16", 5e-3), ("bfloat16", 5e-2)])
def test_half_precision(fixture, tmp_path, dtype, tolerance):
    source = fixture("llama")
    export(source, tmp_path, "--dtype", dtype)
    program, ports = pte.Pte(tmp_path / "model.pte"), et.signature(tmp_path)
    outputs = program.run(et.leaves(ports, load_file(source / "inputs.safetensors")))
    assert outputs[0].dtype == getattr(torch, dtype)
    found = {port["name"]: output.float().numpy() for port, output in zip(ports["outputs"], outputs)}
    compare(found, load_file(source / "expected.safetensors"), tolerance)


def test_a_bfloat16_checkpoint_stays_what_it_is(tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).bfloat16().save_pretrained(tmp_path / "model")
    export(tmp_path / "model", tmp_path / "out")
    (graph,) = pte.Pte(tmp_path / "out/model.pte").graphs
    assert {mlx.DTYPES[graph.tensor_meta[slot.idx].scalar_type] for slot in graph.output_map} == {torch.bfloat16}


@pytest.mark.parametrize("name", ["llama/decode", "bart/decode"])
def test_a_static_cache_is_refused_before_anything_is_written(fixture, tmp_path, name):
    fixture(name.split("/")[0])
    done = ferry(
        *("export", programs.path_of(name), "--to", "executorch", "--backend", "mlx", "-o", tmp_path / "out"),
        status=None,
    )
    assert done.returncode != 0 and "StaticCache" in done.stderr and "DynamicCache" in done.stderr
    assert not (tmp_path / "out").exists()


# ---- operations ----


class Integers(torch.nn.Module):
    def forward(self, x, at):
        return (
            *(x // 3, x % 3, x // torch.tensor(-3), x * 100_000_000_000, x + (2**25 + 1), x == 2, ~x, x & 6, x | 9),
            *((x > 0).sum(-1), (x > 0).cumsum(-1), x.sum(0), x.to(torch.int16).prod(0), x.clamp(-1, 2), x.abs(), x.sign()),
            *(torch.arange(2, x.shape[0] + 3, 2), torch.arange(x.shape[0] - 2), x.float().argmax(-1), x[at], x.amax(1)),
            *(torch.full((x.shape[0], 2), x.shape[0]), x.to(torch.float32), x.bool(), (x > 0) & (x < 3), ~(x > 0)),
        )


class Elements(torch.nn.Module):
    def forward(self, x, at):
        nn = torch.nn.functional
        return (
            *(x**2, x**3, x.abs() ** 0.5, (x.abs() + 1) ** -0.5, x.abs() ** 1.7, 2.0**x, x % 0.3, x // 0.3, x.round(), x / 3),
            *(nn.elu(x, 0.7), nn.leaky_relu(x, 0.1), nn.softplus(x * 30), nn.relu(x), nn.silu(x), nn.gelu(x)),
            *(nn.gelu(x, approximate="tanh"), nn.hardtanh(x), torch.maximum(x, -x), x.exp(), x.erf(), x.atan(), x.sin()),
            *(x.masked_fill(x > 0, float("-inf")).softmax(-1), x.std(-1), x.mean((0, 1)), x.sum(), x.clamp(max=0.1)),
        )


class Shapes(torch.nn.Module):
    def forward(self, x, at):
        n = x.shape[0]
        rows = x.new_zeros(n, 5).index_copy(0, at, x[at, :5])
        put, index = x.clone(), torch.stack([at, at]).T
        put[at] = 2.0
        return (
            *(rows, put, x[at, at], x[:, at], x.unsqueeze(1)[at, :, at], x[-1], x[:, -2], x[..., 1:-1:2], x[index]),
            *(torch.nn.functional.pad(x, (1, 2, 0, 1), value=0.5), torch.cat([x, x[:1]]), x.T.reshape(-1), x.flip(0)),
            *(x.split([2, 3, 1], -1)[1], x.split([6], -1)[0], x.gather(1, at[:, None]), x.topk(2).values, x.topk(2).indices),
            *(x.topk(3, 0, largest=False).values, x.scatter_add(1, at[:, None].expand(-1, 6), x), x[None].expand(2, -1, -1)),
            *(x.repeat(2, 1), x.tril(), torch.zeros(n, min(n, 4), max(n, 4)) + n, x.index_select(1, at)),
        )


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.plain, self.grouped = torch.nn.Conv1d(6, 4, 3, 2, 1), torch.nn.Conv2d(4, 8, (3, 1), 1, (1, 0), (2, 1), 2)
        self.back = torch.nn.ConvTranspose1d(6, 4, 3, 2, 1, 1, 2)
        self.wide = torch.nn.ConvTranspose2d(4, 3, 3, 2)
        self.deep, self.norm = torch.nn.Conv3d(2, 3, 2), torch.nn.GroupNorm(2, 6)
        self.batch, self.rows = torch.nn.BatchNorm1d(6).eval(), torch.nn.LayerNorm((6, 4))

    def forward(self, x, at):
        wave = x[:, :, None].expand(-1, -1, 8) * torch.arange(8)
        image = wave.reshape(-1, 4, 3, 4)
        mask = (at[:, None] >= at[None]) & (at[None] > 1)
        pools, large = torch.nn.functional, wave.reshape(-1, 2, 6, 4)
        heads = x.view(1, 1, -1, 6).expand(2, 4, -1, -1)
        attend = torch.nn.functional.scaled_dot_product_attention
        return (
            *(self.plain(wave), self.grouped(image), self.back(wave), self.wide(image), self.deep(wave.reshape(-1, 2, 2, 2, 6))),
            *(self.norm(wave), self.batch(wave), self.rows(wave.reshape(-1, 2, 6, 4)), attend(heads, heads, heads, mask)),
            *(pools.max_pool2d(large, 3, 2, 1), pools.max_pool2d(large, (2, 3), 3, 0, (2, 1), ceil_mode=True)),
            *(pools.avg_pool2d(large, 3, 2, 1), pools.avg_pool2d(large, 3, 2, 1, count_include_pad=False)),
            *(pools.avg_pool1d(wave, 2), pools.adaptive_avg_pool2d(large, 1)),
            *(attend(heads, heads, heads, is_causal=True), attend(heads, heads[:, :2], heads[:, :2], enable_gqa=True)),
            *(attend(heads[:, :, :2], heads, heads, is_causal=True), attend(heads, heads, heads, mask.float(), scale=0.3)),
        )


@pytest.mark.parametrize("module", [Integers, Elements, Shapes, Layers])
def test_operations(module, tmp_path):
    torch.manual_seed(0)
    model = module().eval()

    def arguments(size):
        x = torch.randn(size, 6)
        if module is Integers:
            x = (x * 4).round().long()
        return x, (torch.arange(size) * 5) % size

    size = torch.export.Dim("size", min=4, max=4000)
    program = torch.export.export(model, arguments(6), dynamic_shapes=({0: size}, {0: size}))
    torch.export.save(program, tmp_path / "model.pt2")
    export(tmp_path / "model.pt2", tmp_path / "out")
    made = pte.Pte(tmp_path / "out/model.pte")
    for args in (arguments(6), arguments(4)):
        found, wanted = made.run(list(args)), model(*args)
        for i, (result, expected) in enumerate(zip(found, wanted, strict=True)):
            assert result.dtype == expected.dtype and result.shape == expected.shape, (i, result.shape, expected.shape)
            assert torch.allclose(result, expected, rtol=1e-4, atol=1e-5, equal_nan=True), (i, result, expected)
