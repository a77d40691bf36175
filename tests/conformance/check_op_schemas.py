"""Compare every aten:: line of ops.def with torch's own schema, and the writer's exceptions with both.

Run by itself (`python check_op_schemas.py`) or as a test. What holds: the overload exists; arguments before
"*" are torch's first ones in torch's order; the ones after exist under their names; kinds agree; what may be
left out means None in torch too; what torch requires is there; torch returns a list, a tuple or one tensor as
the writer thinks. torch_ops.def says where the writer differs from ops.def.
"""

import re
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
OPS = ROOT / "src/graph/ops.def"
EXCEPTIONS = ROOT / "src/target/dynamo/torch_ops.def"

# Types of ops.def -> types that torch may have there. A program's values are never absent where its schema
# says so, and its sizes may be any number.
KINDS = {
    "Tensor": {"Tensor", "Optional[Tensor]"},
    "Tensor?": {"Optional[Tensor]"},
    "Tensor[]": {"List[Tensor]"},
    "Tensor?[]": {"List[Optional[Tensor]]"},
    "int": {"int", "Optional[int]", "number", "Optional[number]"},
    "int?": {"Optional[int]"},
    "int[]": {"List[int]", "Optional[List[int]]"},
    "int[]?": {"Optional[List[int]]"},
    "float": {"float", "Optional[float]", "number"},
    "float?": {"Optional[float]"},
    "bool": {"bool", "Optional[bool]"},
    "Scalar": {"number", "Optional[number]"},
    "Scalar?": {"Optional[number]"},
    "str": {"str", "Optional[str]"},
    "str?": {"Optional[str]"},
    "ScalarType": {"int", "Optional[int]"},
}


def read_ops() -> dict:
    """Enum name -> (overload, schema)."""
    found = re.findall(r'^OP\((\w+),\s*"([^"]+)",\s*"([^"]*)"\)', OPS.read_text(), re.M)
    return {name: (overload, schema) for name, overload, schema in found}


def read_exceptions() -> tuple[dict, set]:
    text = EXCEPTIONS.read_text()
    rows = re.findall(r'^TORCH_OP\((\w+), "([^"]*)", "([^"]*)", "([^"]*)"\)', text, re.M)
    return {row[0]: row[1:] for row in rows}, set(re.findall(r"^TORCH_LIST\((\w+)\)", text, re.M))


def parse_arguments(schema: str):
    """(type, name, default or None, given by name) of each argument."""
    keyword = False
    inside = schema[1 : schema.index(") -> ")]
    for argument in filter(None, inside.split(", ")):
        if argument == "*":
            keyword = True
            continue
        kind, name = argument.split(" ", 1)
        name, equals, default = name.partition("=")
        yield kind, name, default.strip("'") if equals else None, keyword


def check_argument(position: int, argument, torch_arguments: list) -> str | None:
    kind, name, default, keyword = argument
    index = next((i for i, a in enumerate(torch_arguments) if a.name == name), None)
    if index is None:
        return f'torch has no argument "{name}"'
    other = torch_arguments[index]
    if not keyword and (index != position or other.kwarg_only):
        return f'"{name}" is argument {position} here and {index} in torch: put "*" before it'
    if str(other.type) not in KINDS[kind]:
        return f'"{name}" is {kind} here and {other.type} in torch'
    absent = kind.endswith("?") and default == "None"
    if absent and not (other.has_default_value() and other.default_value is None):
        return f'"{name}" may be left out here, and means {other.default_value} in torch then'
    return None


def check_op(name: str, overload: str, schema: str, exceptions: dict, lists: set) -> list[str]:
    target, renamed, torch_name = exceptions.get(name, (overload.split("::")[1], "", ""))
    base, _, suffix = target.partition(".")
    found = torch._C._get_schema(f"aten::{base}", suffix)
    problems, given = [], set()
    for position, (kind, argument, default, keyword) in enumerate(parse_arguments(schema)):
        argument = torch_name if argument == renamed else argument
        if not argument:
            continue
        given.add(argument)
        row = (kind, argument, default, keyword)
        problems.append(check_argument(position, row, found.arguments))
    for other in found.arguments:
        if not other.has_default_value() and other.name not in given:
            problems.append(f'torch requires "{other.name}"')
    results = [str(r.type) for r in found.returns]
    returns = schema.rsplit(" -> ", 1)[1]
    if (results == ["List[Tensor]"]) != (name in lists):
        problems.append(f"torch returns {results}: TORCH_LIST in torch_ops.def says otherwise")
    if returns == "Tensor" and results != ["Tensor"]:
        problems.append(f"torch returns {results}, ops.def says {returns}")
    return [f"{overload}: {problem}" for problem in problems if problem]


def check_all() -> list[str]:
    ops, (exceptions, lists) = read_ops(), read_exceptions()
    problems = [f"torch_ops.def: {n} is not in ops.def" for n in {*exceptions, *lists} - set(ops)]
    for name, (overload, schema) in ops.items():
        if not overload.startswith("aten::"):
            continue
        try:
            problems += check_op(name, overload, schema, exceptions, lists)
        except RuntimeError as error:
            problems.append(f"{overload}: torch has no such overload ({str(error).splitlines()[0]})")
    return problems


def test_every_operation_is_torchs():
    problems = check_all()
    assert not problems, "\n".join(problems)


if __name__ == "__main__":
    found = check_all()
    print("\n".join(found) or f"{len(read_ops())} operations agree with torch {torch.__version__}")
    sys.exit(bool(found))
