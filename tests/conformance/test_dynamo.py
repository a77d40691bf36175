"""--to dynamo: torch loads what ferry writes, from checkpoints and from .pt2, and gives the eager outputs."""

import subprocess
import sys

import pytest
import support
import torch
from check_op_schemas import test_every_operation_is_torchs  # noqa: F401
from dynamo import check_metadata, load, port_names, run, user_leaves
from safetensors.torch import load_file, save_file
from support import compare, ferry
from torch import nn
from transformers.exporters import ExportedModel

native = pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
programs = pytest.mark.parametrize("stem", ["model", "decode", "dyn_decode"])


def export(source, target, *options):
    ferry("export", source, "--to", "dynamo", "-o", target, *options)
    return load(target / "model.pt2")


def numpy(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def text(path):
    return ferry("show", path, "--program").stdout


# ---- native families ----


@native
def test_native(fixture, tmp_path, model_type):
    """Both shapes, the metadata of every tensor, and the types that the model returns."""
    source = fixture(model_type)
    samples = source / "inputs.safetensors"
    program = export(source, tmp_path, "--inputs", samples, "--dynamic")
    for sample in ("second_", ""):
        inputs = load_file(source / f"{sample}inputs.safetensors")
        expected = load_file(source / f"{sample}expected.safetensors")
        compare(run(program, tmp_path, inputs), numpy(expected))
        check_metadata(program, user_leaves(program, inputs, port_names(tmp_path, "inputs")))
    outputs = program.module()(**inputs)
    assert type(outputs).__module__ == "transformers.modeling_outputs"
    cache = getattr(outputs, "cache", None)
    if cache is not None:
        assert type(cache).__name__ == "DynamicCache"
        grows = [layer for layer in cache.layers if not layer.is_sliding]
        assert all(layer.get_seq_length() == inputs["input_ids"].shape[1] for layer in grows)


@pytest.mark.parametrize("model_type", ["llama", "bert"])
def test_decompositions_and_saving(fixture, tmp_path, model_type):
    source = fixture(model_type)
    inputs = load_file(source / "inputs.safetensors")
    program = export(source, tmp_path / "export").run_decompositions()
    torch.export.save(program, tmp_path / "again.pt2")
    expected = load_file(source / "expected.safetensors")["logits"]
    for again in (program, torch.export.load(tmp_path / "again.pt2")):
        found = again.module()(**inputs).logits
        compare({"logits": found.detach().numpy()}, {"logits": expected.numpy()})


@pytest.mark.parametrize("model_type", ["llama", "bert"])
def test_transformers_loads_the_directory(fixture, tmp_path, model_type):
    source = fixture(model_type)
    export(source, tmp_path)
    exported = ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    outputs = exported(**load_file(source / "inputs.safetensors"))
    expected = load_file(source / "expected.safetensors")["logits"]
    compare({"logits": outputs.logits.detach().numpy()}, {"logits": expected.numpy()})


def test_fixed_sizes(fixture, tmp_path):
    source = fixture("llama")
    program = export(source, tmp_path, "--inputs", source / "inputs.safetensors")
    assert not program.range_constraints
    compare(
        run(program, tmp_path, load_file(source / "inputs.safetensors")),
        numpy(load_file(source / "expected.safetensors")),
    )
    with pytest.raises(RuntimeError, match="to be equal to"):
        run(program, tmp_path, load_file(source / "second_inputs.safetensors"))


BOUNDS = "input_ids=batch:1..4,height:2..32;attention_mask=batch,height"


def call(program, batch, length):
    ones = torch.ones((batch, length), dtype=torch.long)
    return program.module()(input_ids=ones, attention_mask=ones)


def test_bounds(fixture, tmp_path):
    """Bounds are enforced; a name keeps its spelling unless it means another kind of symbol to torch."""
    program = export(fixture("llama"), tmp_path, "--dynamic-shapes", BOUNDS)
    ranges = {str(name): (r.lower, r.upper) for name, r in program.range_constraints.items()}
    assert ranges == {"batch": (1, 4), "s_height": (2, 32)}
    call(program, 4, 32)
    with pytest.raises(RuntimeError, match="<= 4, but got 5"):
        call(program, 5, 7)
    with pytest.raises(RuntimeError, match="<= 32, but got 33"):
        call(program, 1, 33)


def test_deferred_asserts(fixture, tmp_path):
    """Bounds in the graph: also the lower one, which torch does not check when it is 2."""
    source = fixture("llama")
    program = export(source, tmp_path, "--dynamic-shapes", BOUNDS, "--deferred-asserts")
    asserts = [n for n in program.graph.nodes if n.target == torch.ops.aten._assert_scalar.default]
    assert len(asserts) == 3
    call(program, 2, 2)
    with pytest.raises(RuntimeError, match="s_height >= 2"):
        call(program, 2, 1)


PLAIN = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
ids = torch.ones((2, 5), dtype=torch.long)
outputs = program(input_ids=ids, attention_mask=ids)
assert "transformers" not in sys.modules
assert type(outputs) is dict and list(outputs) == ["logits", "cache"], outputs
assert outputs["cache"]["layers"][1]["keys"].shape[2] == 5
"""


def test_dict_structure(fixture, tmp_path):
    """Without Transformers in the process."""
    ferry("export", fixture("llama"), "--to", "dynamo", "-o", tmp_path, "--structure", "dict")
    subprocess.run([sys.executable, "-c", PLAIN, tmp_path / "model.pt2"], check=True)


def test_dict_structure_of_a_cache_argument(fixture, tmp_path):
    source = fixture("llama")
    program = export(source / "dyn_decode.pt2", tmp_path, "--structure", "dict")
    compare(
        run(program, tmp_path, load_file(source / "dyn_decode_inputs.safetensors")),
        numpy(load_file(source / "dyn_decode_expected.safetensors")),
    )
    _, kwargs = torch.utils._pytree.tree_unflatten(
        range(program.call_spec.in_spec.num_leaves), program.call_spec.in_spec
    )
    cache = kwargs.get("cache", kwargs.get("past_key_values"))
    assert list(cache) == ["layers"] and set(cache["layers"][0]) == {"keys", "values"}


def test_bfloat16_stays(fixture, tmp_path):
    source, copy = fixture("llama"), tmp_path / "checkpoint"
    copy.mkdir()
    (copy / "config.json").write_bytes((source / "config.json").read_bytes())
    weights = load_file(source / "model.safetensors")
    save_file({n: w.to(torch.bfloat16) for n, w in weights.items()}, copy / "model.safetensors")
    program = export(copy, tmp_path / "export")
    assert {w.dtype for w in program.state_dict.values()} == {torch.bfloat16}
    assert call(program, 2, 5).logits.dtype == torch.bfloat16


# ---- programs from torch ----


@native
@programs
def test_program(fixture, tmp_path, model_type, stem):
    """A .pt2 through ferry gives the recorded outputs, and once more through ferry the same program."""
    source = fixture(model_type)
    if not (source / f"{stem}.pt2").exists():
        pytest.skip("no such program")
    prefix = "" if stem == "model" else f"{stem}_"
    inputs = load_file(source / f"{prefix}inputs.safetensors")
    program = export(source / f"{stem}.pt2", tmp_path / "first")
    expected = load_file(source / f"{prefix}expected.safetensors")
    found = run(program, tmp_path / "first", inputs)
    compare(found, {name: e for name, e in numpy(expected).items() if name in found})
    names = port_names(tmp_path / "first", "inputs")
    check_metadata(program, user_leaves(program, inputs, names))
    ferry("export", tmp_path / "first/model.pt2", "--to", "dynamo", "-o", tmp_path / "second")
    assert text(tmp_path / "first/model.pt2") == text(tmp_path / "second/model.pt2")


def test_deterministic(fixture, tmp_path):
    for name in ("a", "b"):
        ferry("export", fixture("llama"), "--to", "dynamo", "-o", tmp_path / name)
    assert (tmp_path / "a/model.pt2").read_bytes() == (tmp_path / "b/model.pt2").read_bytes()


class Corners(nn.Module):
    """Absent optional arguments before given ones, tuples, lists, data-dependent sizes, constants, ties."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.table.weight
        self.norm = nn.LayerNorm(8, bias=False)
        self.register_buffer("scale", torch.arange(8.0))
        self.register_buffer("offset", torch.ones(8), persistent=False)

    def forward(self, ids, flags, gain: float, *, switch: bool = False):
        x = self.norm(self.table(ids)) * self.scale + self.offset
        q = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        bare = nn.functional.layer_norm(y, (4,), bias=torch.ones(4))
        values, order = torch.topk(x, 3, dim=-1)
        first, second = torch.split(x, [2, 6], dim=-1)
        chosen = flags.nonzero()
        lookup = torch.tensor([3, 1, 2])[order.clamp(max=2)]
        logits = self.head(x) * gain
        return {"bare": bare, "values": values, "first": first + 1, "last": second * 2,
                "chosen": chosen, "lookup": lookup, "logits": logits, "none": None}  # fmt: skip


def test_corners(tmp_path):
    torch.manual_seed(0)
    model = Corners().eval()
    inputs = (torch.randint(0, 16, (2, 5)), torch.tensor([[True, False, True]]), 0.5)
    batch = torch.export.Dim("batch", min=1, max=8)
    shapes = {"ids": {0: batch}, "flags": None, "gain": None, "switch": None}
    traced = torch.export.export(model, inputs, {"switch": True}, dynamic_shapes=shapes)
    torch.export.save(traced, tmp_path / "source.pt2")
    program = export(tmp_path / "source.pt2", tmp_path / "export")
    assert {"table.weight", "head.weight"} & set(program.state_dict)
    for ids in (inputs[0], torch.randint(0, 16, (4, 5))):
        flags = torch.tensor([[True, True, True]])
        expected = model(ids, flags, 0.5, switch=True)
        found = program.module()(ids, flags, 0.5, switch=True)
        assert list(found) == list(expected) and found.pop("none") is None
        expected.pop("none")
        compare({k: v.detach().numpy() for k, v in found.items()},
                {k: v.detach().numpy() for k, v in expected.items()})  # fmt: skip
    check_metadata(program, [*inputs, True])
    ferry("export", tmp_path / "export/model.pt2", "--to", "dynamo", "-o", tmp_path / "again")
    assert text(tmp_path / "export/model.pt2") == text(tmp_path / "again/model.pt2")


def test_options_of_this_target_only(fixture, tmp_path):
    for option in (["--structure", "dict"], ["--deferred-asserts"]):
        done = ferry("export", fixture("llama"), "-o", tmp_path, *option, status=None)
        assert done.returncode != 0 and "options of dynamo" in done.stderr
