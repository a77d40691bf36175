#!/usr/bin/env python3
"""Write docs/coverage.md: which programs of the fixtures run, in which runtime, and why one does not.

    build/venv/bin/python tests/conformance/make_coverage.py

Every program is run as the tests run it, with their tolerance; nothing is taken from a list but the
reasons of the holes. The fixtures are those that `make test` has laid out. `make test` runs all programs
but in torch, where it runs some that have all operations together; this takes a few minutes.
"""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dynamo
import executorch_runtime
import programs
import torch
from ov_child import Child
from support import ROOT

HEAD = """# Coverage of torch.export programs

Made by `tests/conformance/make_coverage.py` from the programs of the fixtures: what the exporters of
Transformers 5.24 traced from {types} model types, {count} programs in all. Each is run at the sizes it was
recorded at and, where the program is dynamic, at a second batch and length; a number is the count of
samples whose outputs are eager's, within 1e-4 of the larger of 1 and the largest expected value.

| runtime | programs that agree |
|---|---|
| the built-in reference runtime, on the `.pt2` itself | {reference} of {count} |
| ONNX Runtime, on the ONNX export, which also passes the full check of `onnx` | {onnx} of {count} |
| OpenVINO, on the OpenVINO export without state | {openvino} of {count} |
| torch, on the `.pt2` export, whose types and strides are what torch finds when it runs it | {torch} of {count} |
| ExecuTorch with XNNPACK, on the `.pte`, loaded with full verification, from Python and from C++ | {executorch} of {count} |
| ExecuTorch with MLX, on the `.pte`, in an interpreter of MLX's operations; programs that take a static cache are refused | {mlx} of {mlx_count} |

## Holes

{holes}

## Programs

| model type | program | reference | ONNX Runtime | OpenVINO | torch | ExecuTorch | MLX |
|---|---|---|---|---|---|---|---|
"""


def attempt(check, name: str) -> str:
    with tempfile.TemporaryDirectory() as work:
        try:
            return str(check(name, Path(work)))
        except Exception as failure:
            if name not in programs.HOLES:
                print(f"{name}: {failure}", file=sys.stderr)
            return "-"


CHILDREN = []  # one in each process


def check_openvino(name: str, work: Path) -> int:
    if not CHILDREN:
        CHILDREN.append(Child())
    return programs.check_openvino(CHILDREN[0], name, work)


CHECKS = {
    "reference": programs.check_reference,
    "onnx": programs.check_onnx,
    "openvino": check_openvino,
    "torch": dynamo.check_program,
    "executorch": executorch_runtime.check_program,
    "mlx": executorch_runtime.check_mlx_program,
}


def measure(name: str) -> list[str]:
    torch.set_num_threads(1)
    return [name, *(attempt(check, name) for check in CHECKS.values())]


def main() -> int:
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(measure, programs.names()))
    holes = sorted({name for name, *results in rows if "-" in results})
    reasons = "\n".join(f"* `{name}`: {programs.HOLES.get(name, 'a defect')}" for name in holes)
    text = HEAD.format(
        types=len({name.split("/")[0] for name, *_ in rows}),
        count=len(rows),
        mlx_count=sum(row[-1] != "refused" for row in rows),
        **{key: sum(row[i].isdigit() for row in rows) for i, key in enumerate(CHECKS, 1)},
        holes=reasons or "None.",
    )
    text += "".join(f"| {' | '.join([*name.split('/'), *results])} |\n" for name, *results in rows)
    (ROOT / "docs/coverage.md").write_text(text)
    return 1 if any(name not in programs.HOLES for name in holes) else 0


if __name__ == "__main__":
    sys.exit(main())
