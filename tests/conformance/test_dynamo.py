"""--to dynamo: torch loads what ferry writes, from checkpoints and from .pt2, and gives the eager outputs."""

import copy
import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import dynamo
import programs
import pytest
import support
import torch
from check_op_schemas import test_every_operation_is_torchs  # noqa: F401
from dynamo import check_metadata, load, port_names, run, user_leaves
from programs import show
from safetensors.torch import load_file, save_file
from support import compare, ferry
from torch import nn
from transformers.exporters import ExportedModel

native = pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
UNREADABLE = ("gemma3/model", "vits/model")  # see programs.HOLES


def export(source, target, *options):
    ferry("export", source, "--to", "dynamo", "-o", target, *options)
    return load(target / "model.pt2")


def numpy(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


# ---- native families ----


@native
def test_native(fixture, tmp_path, model_type):
    """Both shapes, the metadata of every tensor, and the types that the model returns; and ferry reads it."""
    source = fixture(model_type)
    samples = source / "inputs.safetensors"
    program = export(source, tmp_path, "--inputs", samples, "--dynamic")
    for sample in ("second_", ""):
        inputs = load_file(source / f"{sample}inputs.safetensors")
        expected = load_file(source / f"{sample}expected.safetensors")
        compare(run(program, tmp_path, inputs), numpy(expected))
        check_metadata(program, user_leaves(program, inputs, port_names(tmp_path, "inputs")))
    ferry("export", tmp_path / "model.pt2", "--to", "dynamo", "-o", tmp_path / "again")
    assert show(tmp_path / "again/model.pt2") == show(tmp_path / "model.pt2")
    outputs = program.module()(**inputs)
    assert type(outputs).__module__.startswith(("transformers.modeling_outputs", "transformers.models."))
    cache = getattr(outputs, "cache", None)
    if type(cache).__name__ == "EncoderDecoderCache":
        assert cache.get_seq_length() == inputs["decoder_input_ids"].shape[1]
    elif cache is not None:
        assert type(cache).__name__ == "DynamicCache"
        grows = [layer for layer in cache.layers if hasattr(layer, "keys") and not layer.is_sliding]
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


@pytest.mark.parametrize("name", programs.cover())
def test_program(fixture, tmp_path, name):
    """Programs with all operations of the fixtures: torch gives the recorded outputs. For all programs,
    see docs/coverage.md, which make_coverage.py makes."""
    assert dynamo.check_program(name, tmp_path) > 0


def test_again(fixture, tmp_path):
    """Every program: what ferry wrote, read and written again, is the same."""
    readable = [name for name in programs.names() if name not in UNREADABLE]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: programs.check_again(name, tmp_path / name), readable))


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
    assert show(tmp_path / "export/model.pt2") == show(tmp_path / "again/model.pt2")


class Stateful(nn.Module):
    """Writes into its buffers and arguments, through views too, and returns what it wrote and copies of it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("cache", torch.zeros(4, 3), persistent=False)

    def forward(self, x, y, place):
        before, fresh, first = x.clone(), x + 1, y.view(3, 2)[0].clone()
        self.count.add_(1)
        self.cache.index_copy_(0, place, x[:1])
        x.copy_(fresh)
        y[0:1].mul_(2)
        return {"x": x, "before": before, "fresh": fresh, "y": y, "rows": y.view(-1) + 0, "first": first,
                "sum": self.cache.sum(), "z": self.norm(x * (self.scale + 1) * self.weight),
                "length": x.shape[0], "count": self.count.clone()}  # fmt: skip


def stateful_arguments():
    numbers = torch.arange(6.0).view(2, 3)
    return numbers + 1, 10 * numbers, torch.tensor([2])


@pytest.fixture(scope="module", params=["as traced", "functional"])
def stateful(request, tmp_path_factory):
    """The module, torch's program of it, and the file that ferry made of that."""
    model, work = Stateful().eval(), tmp_path_factory.mktemp("stateful")
    shapes = ({0: torch.export.Dim("batch")}, None, None)
    traced = torch.export.export(copy.deepcopy(model), stateful_arguments(), dynamic_shapes=shapes)
    if request.param == "functional":
        traced = traced.run_decompositions()
    torch.export.save(traced, work / "source.pt2")
    export(work / "source.pt2", work / "export")
    return model, traced, work / "export/model.pt2"


def aliases(results, arguments):
    """Which results are arguments themselves."""
    return {name: [result.data_ptr() == a.data_ptr() for a in arguments]
            for name, result in results.items() if isinstance(result, torch.Tensor)}  # fmt: skip


def test_a_program_changes_its_buffers_and_arguments(stateful):
    """Call after call, as the module itself does; and a result is an argument where it is in the module."""
    model, _, file = stateful
    model, module = copy.deepcopy(model), load(file).module()
    for _ in range(3):
        wanted, found = stateful_arguments(), stateful_arguments()
        with torch.no_grad():
            expected, results = model(*wanted), module(*found)
        assert list(results) == list(expected)
        assert {name: type(value) for name, value in results.items()} == {
            name: type(value) for name, value in expected.items()
        }
        compare({k: torch.as_tensor(v).detach().numpy() for k, v in results.items()},
                {k: torch.as_tensor(v).detach().numpy() for k, v in expected.items()})  # fmt: skip
        assert all(torch.equal(a, b) for a, b in zip(found, wanted))
        assert aliases(results, found) == aliases(expected, wanted)
        for name, value in model.named_buffers():
            assert torch.equal(dict(module.named_buffers())[name], value), name


def test_buffers_stay_buffers(stateful):
    _, traced, file = stateful
    program = load(file)
    assert set(program.state_dict) == set(traced.state_dict)
    for name, value in traced.state_dict.items():
        assert torch.equal(program.state_dict[name], value), name
    found, wanted = program.graph_signature, traced.graph_signature
    assert set(found.parameters) == set(wanted.parameters)
    assert set(found.buffers) == set(wanted.buffers)
    assert set(found.non_persistent_buffers) == set(wanted.non_persistent_buffers) == {"cache"}
    assert set(found.buffers_to_mutate.values()) == {"count", "cache"}
    assert set(found.user_inputs_to_mutate.values()) == {"x", "y"}


def test_state_is_read_as_it_was_written(stateful, tmp_path):
    _, _, file = stateful
    ferry("export", file, "--to", "dynamo", "-o", tmp_path)
    assert show(tmp_path / "model.pt2") == show(file)
    assert (tmp_path / "model.pt2").read_bytes() == file.read_bytes()


def with_output_spec(source, target, kind, **body):
    """The file with another first result."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            if entry.endswith("models/model.json"):
                document = json.loads(content)
                document["graph_module"]["signature"]["output_specs"][0] = {kind: body}
                content = json.dumps(document)
            new.writestr(entry, content)


@pytest.mark.parametrize(
    "spec, message",
    [
        (("buffer_mutation", "add", "nobody"), 'the program writes "nobody", which it has not'),
        (("user_input_mutation", "add", "place"), 'what is written to "place" to have its type, found "add"'),
        (("user_input_mutation", "nobody", "x"), '"nobody" is not defined'),
        (("gradient_to_user_input", "add", "x"), 'an output of kind "gradient_to_user_input" is not supported'),
    ],
)
def test_mutations_that_cannot_be(stateful, tmp_path, spec, message):
    _, _, file = stateful
    kind, source, target = spec
    field = kind.removesuffix("_mutation") + "_name"
    with_output_spec(file, tmp_path / "model.pt2", kind, arg={"name": source}, **{field: target})
    assert message in ferry("show", tmp_path / "model.pt2", "--program", status=None).stderr


class Swap(nn.Module):
    """What is left in an argument is another argument, or a view of itself."""

    def forward(self, x, y, z):
        old = x.clone()
        x.copy_(y)
        y.copy_(old)
        z.copy_(z.t().clone())
        return x + y, z.t()


def test_arguments_are_exchanged(tmp_path):
    def arguments():
        return torch.ones(2), torch.zeros(2), torch.arange(4.0).view(2, 2)

    torch.export.save(torch.export.export(Swap(), arguments()), tmp_path / "source.pt2")
    module = export(tmp_path / "source.pt2", tmp_path / "export").module()
    wanted, found = arguments(), arguments()
    expected, results = Swap()(*wanted), module(*found)
    assert all(torch.equal(a, b) for a, b in zip(results, expected))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))


class Learner(nn.Module):
    """Writes into a parameter, and returns a written argument twice."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x):
        self.weight.add_(x)
        x.mul_(2)
        return x, self.weight * 2, x


@pytest.mark.parametrize("kind", ["as traced", "functional"])
def test_what_is_written_stays_what_it_was(tmp_path, kind):
    traced = torch.export.export(Learner(), (torch.ones(2),))
    traced = traced.run_decompositions() if kind == "functional" else traced
    torch.export.save(traced, tmp_path / "source.pt2")
    program = export(tmp_path / "source.pt2", tmp_path / "export")
    assert list(program.graph_signature.parameters) == ["weight"] and set(program.state_dict) == {"weight"}
    model, module = Learner(), program.module()
    for _ in range(3):
        wanted, found = torch.ones(2), torch.ones(2)
        expected, results = model(wanted), module(found)
        assert all(torch.equal(a, b) for a, b in zip(results, expected)) and torch.equal(found, wanted)
        assert results[0].data_ptr() == results[2].data_ptr() == found.data_ptr()


def test_options_of_this_target_only(fixture, tmp_path):
    for option in (["--structure", "dict"], ["--deferred-asserts"]):
        done = ferry("export", fixture("llama"), "-o", tmp_path, *option, status=None)
        assert done.returncode != 0 and "options of dynamo" in done.stderr
