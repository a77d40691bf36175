"""Exporting to ExecuTorch and running the program in its Python runtime, with full verification, and in the C++ runtime
through ferry's adapter; for MLX, which needs Apple's hardware, in an interpreter of ours (pte.py)."""

import json
from pathlib import Path

import programs
import pte
import torch
from executorch.runtime import Runtime, Verification
from safetensors.numpy import load_file
from run_api import Exported
from support import EXECUTORCH, compare, ferry


def signature(directory: Path, component: str = "model") -> dict:
    manifest = json.loads((directory / "export.json").read_text())
    return manifest["components"][component]["metadata"]["ferry"]


def load(directory: Path, component: str = "model"):
    program = Runtime.get().load_program(directory / f"{component}.pte", verification=Verification.InternalConsistency)
    return program.load_method("forward")


def leaves(ports: dict, sample: dict) -> list:
    """The inputs of a program: tensors, and what it was traced with in between."""
    found = [torch.from_numpy(sample[port["name"]]) for port in ports["inputs"]]
    for place, value in ports["constants"]:
        found.insert(place, None if isinstance(value, str) else value)
    return found


def run(directory: Path, samples: list[dict]) -> list[dict]:
    """The outputs by name, for each of the samples."""
    ports, method = signature(directory), load(directory)
    results = []
    for sample in samples:
        outputs = method.execute(leaves(ports, sample))
        results.append({port["name"]: output.numpy() for port, output in zip(ports["outputs"], outputs)})
    return results


def run_adapter(directory: Path, samples: list[dict]) -> list[dict]:
    exported = Exported(directory, "executorch", EXECUTORCH)
    results = [exported.run(sample) for sample in samples]
    exported.close()
    return results


def run_mlx(directory: Path, samples: list[dict]) -> list[dict]:
    ports, program = signature(directory), pte.Pte(directory / "model.pte")
    results = []
    for sample in samples:
        outputs = program.run(leaves(ports, sample))
        results.append({port["name"]: output.numpy() for port, output in zip(ports["outputs"], outputs)})
    return results


def check(directory: Path, samples: list[dict], expected: list[dict]) -> None:
    for runner in (run, run_adapter):
        for result, wanted in zip(runner(directory, samples), expected, strict=True):
            compare(result, wanted)


def export(source: Path, directory: Path, *options) -> Path:
    ferry("export", source, "--to", "executorch", "-o", directory, "-q", *options)
    return directory


def check_native(source: Path, directory: Path, *options) -> None:
    """Both recorded samples, from the checkpoint."""
    export(source, directory, "--inputs", source / "inputs.safetensors", "--dynamic", *options)
    prefixes = ("", "second_")
    samples = [load_file(source / f"{prefix}inputs.safetensors") for prefix in prefixes]
    check(directory, samples, [load_file(source / f"{prefix}expected.safetensors") for prefix in prefixes])


def check_program(name: str, directory: Path, *options) -> int:
    """A torch.export program of the fixtures; the number of samples that agreed."""
    cases = programs.samples(name)
    export(programs.path_of(name), directory, *options)
    check(directory, [load_file(case.inputs) for case in cases], [case.expected for case in cases])
    return len(cases)


def check_mlx_program(name: str, directory: Path) -> int | str:
    """The same for MLX, which refuses static caches."""
    options = ("--to", "executorch", "--backend", "mlx", "-o", directory, "-q")
    done = ferry("export", programs.path_of(name), *options, status=None)
    if "StaticCache" in done.stderr:
        return "refused"
    assert done.returncode == 0, done.stderr
    cases = programs.samples(name)
    for case, result in zip(cases, run_mlx(directory, [load_file(case.inputs) for case in cases]), strict=True):
        compare(result, case.expected)
    return len(cases)
