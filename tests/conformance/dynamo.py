"""What the tests of .pt2 files share: loading one as torch does, running it, checking its metadata."""

import json
import struct
import zipfile
from pathlib import Path

import programs
import torch
from safetensors.torch import load_file
from support import compare, ferry
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils._pytree import tree_unflatten
from transformers.exporters.metadata import register_treespec_types

SIGNATURE = ("graph_module", "module_call_graph", 0, "signature")


def check_archive(path: Path) -> dict:
    """Checksums and alignment of the records; the program's document."""
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        assert archive.testzip() is None
        for entry in archive.infolist():
            file.seek(entry.header_offset + 26)
            start = entry.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
            if "/weight_" in entry.filename or "/tensor_" in entry.filename:
                assert start % 64 == 0, entry.filename
        return json.loads(archive.read("model/models/model.json"))


def load(path: Path) -> torch.export.ExportedProgram:
    document = check_archive(path)
    for key in SIGNATURE:
        document = document[key]
    for spec in ("in_spec", "out_spec"):
        register_treespec_types(document[spec])
    return torch.export.load(path)


def user_leaves(program, inputs: dict, names: list[str]) -> list:
    """The arguments in the order of the signature: tensors by name, constants from the signature."""
    names, leaves = iter(names), []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            constant = isinstance(spec.arg, ConstantArgument)
            leaves.append(spec.arg.value if constant else inputs[next(names)].clone())
    return leaves


def port_names(directory: Path, side: str, component: str = "model") -> list[str]:
    manifest = json.loads((directory / "export.json").read_text())
    return [port["name"] for port in manifest["components"][component]["metadata"]["ferry"][side]]


def find(outputs, path: str):
    """A result by its path: keys, indices and attributes."""
    if path == "output" and not isinstance(outputs, dict):
        return outputs
    for step in path.split("."):
        if isinstance(outputs, (list, tuple)):
            outputs = outputs[int(step)]
        elif isinstance(outputs, dict):
            outputs = outputs[step if step in outputs else int(step)]
        else:
            outputs = getattr(outputs, step)
    return outputs


def run(program, directory: Path, inputs: dict, component: str = "model", module=None) -> dict:
    """Outputs by the names in export.json, from a call with the program's own structure. What torch returns by
    writing into arguments and buffers is not among them."""
    leaves = user_leaves(program, inputs, port_names(directory, "inputs", component))
    args, kwargs = tree_unflatten(leaves, program.call_spec.in_spec)
    with torch.no_grad():
        outputs = (module or program.module())(*args, **kwargs)
    names = [name for name in port_names(directory, "outputs", component) if not name.startswith("mutated.")]
    found = {name: find(outputs, name) for name in names}
    return {name: torch.as_tensor(result).detach().numpy() for name, result in found.items()}


class MetadataCheck(torch.fx.Interpreter):
    """Runs a program and compares every tensor with what the file says of it: dtype, sizes, strides."""

    def __init__(self, program):
        super().__init__(program.graph_module)
        self.symbols, self.problems, self.checked = {}, [], 0

    def learn(self, declared, actual):
        for size, number in zip(declared, actual):
            if not isinstance(size, int) and size.node.expr.is_Symbol:
                self.symbols.setdefault(str(size.node.expr), int(number))

    def number(self, size):
        if isinstance(size, int):
            return size
        known = {s: self.symbols[str(s)] for s in size.node.expr.free_symbols if str(s) in self.symbols}
        return int(size.node.expr.subs(known)) if len(known) == len(size.node.expr.free_symbols) else None

    def run_node(self, node):
        result = super().run_node(node)
        declared = node.meta.get("val")
        if isinstance(declared, torch.SymInt) and isinstance(result, int):
            self.learn([declared], [result])
        if isinstance(result, torch.Tensor) and isinstance(declared, torch.Tensor):
            self.learn(declared.shape, result.shape)
            self.check(node, declared, result)
        return result

    def check(self, node, declared, result):
        self.checked += 1
        sizes = [self.number(size) for size in declared.shape]
        strides = [self.number(stride) for stride in declared.stride()]
        if declared.dtype != result.dtype:
            self.problems.append((node.name, declared.dtype, result.dtype))
        if any(a not in (None, b) for a, b in zip(sizes, result.shape)):
            self.problems.append((node.name, sizes, tuple(result.shape)))
        # The stride of a dimension of one element, or of a tensor of none, means nothing.
        pairs = zip(strides, result.stride(), result.shape)
        if result.numel() and any(a not in (None, b) and n > 1 for a, b, n in pairs):
            self.problems.append((node.name, tuple(result.shape), strides, result.stride()))


def check_metadata(program, leaves: list) -> None:
    check, leaves, values = MetadataCheck(program), iter(leaves), []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            values.append(next(leaves))
        else:
            values.append({**program.state_dict, **program.constants}[spec.target])
    with torch.no_grad():
        check.run(*values)
    assert check.checked and not check.problems, check.problems[:5]


def check_program(name: str, work: Path) -> int:
    """Export a program to a .pt2 and run it in torch; the number of samples that agreed."""
    ferry("export", programs.path_of(name), "--to", "dynamo", "-o", work, "-q")
    program, cases = load(work / "model.pt2"), programs.samples(name)
    for case in cases:
        compare(run(program, work, load_file(case.inputs)), case.expected)
    check_metadata(program, user_leaves(program, load_file(cases[0].inputs), port_names(work, "inputs")))
    return len(cases)
