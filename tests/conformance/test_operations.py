"""Operations one by one: from programs that torch makes, ferry and ONNX Runtime give torch's numbers.

The scripts make_programs_*.py write the programs, each in one process. A script is one test, which
goes through all of its cases and names every one that fails."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file, save_file
from support import compare, ferry, ferry_json, run_ferry, run_onnxruntime

# What ONNX Runtime cannot run, whoever wrote it.
NOT_IN_ONNXRUNTIME = {"conv2d_double": "there is no kernel for Conv of float64"}

made = {}


@pytest.fixture
def make(tmp_path_factory):
    """The folder of a script's programs, made once."""

    def folder(script, *cases):
        if (script, cases) not in made:
            target = made[script, cases] = tmp_path_factory.mktemp(script)
            path = Path(__file__).parent / f"make_programs_{script}.py"
            subprocess.run([sys.executable, "-W", "ignore", path, target, *cases], check=True)
        return made[script, cases]

    return folder


def labels(folder):
    return sorted(path.name.removesuffix(".pt2") for path in folder.glob("*.pt2"))


def samples(folder, label):
    """(inputs, expected) of every run that was recorded."""
    for inputs in sorted(folder.glob(f"{label}.?.inputs.safetensors")):
        yield inputs, load_file(str(inputs).replace(".inputs.", ".expected."))


def writes(path):
    """What the program writes, and the output that has it: {"args_0": "mutated.args_0"}."""
    return {port["writes"]: port["name"] for port in ferry_json("show", path)["outputs"] if "writes" in port}


def check_outputs(found, expected, written):
    """Outputs, and under mutated.NAME what NAME holds after the call, as torch recorded them."""
    mutated = {name.removeprefix("mutated.") for name in expected if name.startswith("mutated.")}
    assert mutated == set(written), f"writes {sorted(written)}, expected {sorted(mutated)}"
    compare(found, {name: value for name, value in expected.items() if not name.startswith("mutated.")})
    compare(found, {written[name]: expected[f"mutated.{name}"] for name in mutated})


def check_reference(folder, label, work):
    program = folder / f"{label}.pt2"
    for inputs, expected in samples(folder, label):
        check_outputs(run_ferry(program, inputs, work / "outputs.safetensors", "reference"), expected, writes(program))


def check_onnxruntime(folder, label, work):
    export = work / label
    ferry("export", folder / f"{label}.pt2", "-o", export, "-q")
    for inputs, expected in samples(folder, label):
        check_outputs(run_onnxruntime(export / "model.onnx", load_file(inputs)), expected, writes(export))


def problems(check, folder, work, holes):
    found = []
    for label in labels(folder):
        try:
            check(folder, label, work)
        except Exception as problem:
            if label not in holes:
                found.append(f"{label}: {problem}")
        else:
            if label in holes:
                found.append(f"{label}: works, but is listed as one that does not: {holes[label]}")
    return found


@pytest.mark.parametrize("script", ["index", "vision", "inplace"])
def test_operations(make, tmp_path, script):
    folder = make(script)
    assert len(labels(folder)) > 100
    found = problems(check_reference, folder, tmp_path, {})
    found += problems(check_onnxruntime, folder, tmp_path, NOT_IN_ONNXRUNTIME)
    assert not found, "\n".join(found)


class Encoder(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.encoder = layer

    def forward(self, x):
        return self.encoder(x)[0]


class Volume(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.grid_sample(x[None, None], x[None, ..., None].expand(-1, -1, -1, -1, 3))


UNSUPPORTED = {
    "aten.lstm.input": Encoder(torch.nn.LSTM(4, 5)),
    "aten.gru.input": Encoder(torch.nn.GRU(4, 5)),
    "aten.grid_sampler.default": Volume(),
}


@pytest.mark.parametrize("target", UNSUPPORTED)
def test_what_is_not_supported_is_named(tmp_path, target):
    """The operation, its node and its module; what torch takes apart works then."""
    module, x = UNSUPPORTED[target].eval(), torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    program = torch.export.export(module, (x,))
    torch.export.save(program, tmp_path / "traced.pt2")
    error = ferry("show", tmp_path / "traced.pt2", status=6).stderr
    assert target in error and "traced.pt2" in error and 'node "' in error
    if isinstance(module, Encoder):
        assert "encoder:" in error and "run_decompositions()" in error
        torch.export.save(program.run_decompositions(), tmp_path / "apart.pt2")
        save_file({"x": x.numpy()}, tmp_path / "inputs.safetensors")
        found = run_ferry(tmp_path / "apart.pt2", tmp_path / "inputs.safetensors", tmp_path / "out.safetensors", "reference")
        compare(found, {"output": module(x).detach().numpy()})


STATES = ["state_counter", "state_cache_at_count", "state_ring", "state_last", "state_returned"]
INPUTS = ["input_static_cache", "input_two", "input_counter", "input_returned", "input_same_value"]


def call_twice(path, run):
    """What two calls in torch give, and what arguments and buffers hold after them."""
    module = torch.export.load(path).module()
    arguments = [torch.from_numpy(run[f"args_{i}"].copy()) for i in range(len(run))]
    leaves = []
    for _ in range(2):
        leaves += [leaf.clone() for leaf in torch.utils._pytree.tree_leaves(module(*arguments))]
    held = {str(i): leaf.detach().numpy() for i, leaf in enumerate(leaves + arguments)}
    return held | {name: value.numpy() for name, value in module.named_buffers()}


@pytest.mark.parametrize("suffix", ["", ".decomposed"])
def test_writes_survive_rewriting(make, tmp_path, suffix):
    """torch.export programs that ferry writes change the caller's tensors and their own as the source does."""
    folder = make("inplace", *STATES, *INPUTS)
    for name in STATES + INPUTS:
        source = folder / f"{name}{suffix}.pt2"
        ferry("export", source, "--to", "dynamo", "-o", tmp_path / name, "-q")
        run = load_file(folder / f"{name}.1.inputs.safetensors")
        compare(call_twice(tmp_path / name / "model.pt2", run), call_twice(source, run))


def test_a_state_can_be_given_to_onnxruntime(make, tmp_path):
    """A written buffer is an input with a default: giving it what the last call returned continues."""
    import onnxruntime

    folder = make("inplace", *STATES, *INPUTS)
    ferry("export", folder / "state_counter.pt2", "-o", tmp_path / "onnx", "-q")
    session = onnxruntime.InferenceSession(tmp_path / "onnx/model.onnx", providers=["CPUExecutionProvider"])
    assert [port.name for port in session.get_overridable_initializers()] == ["count"]
    feeds = load_file(folder / "state_counter.1.inputs.safetensors")
    (count,) = session.run(["mutated.count"], feeds)
    assert count == 6
    assert session.run(["mutated.count"], {**feeds, "count": count})[0] == 7
