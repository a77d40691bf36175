"""The torch.export programs of the fixtures: running one in a runtime, and what cannot agree."""

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import onnx
from safetensors.numpy import load_file
from support import FIXTURES, compare, ferry, ferry_json, run_ferry, run_onnxruntime

# Programs that cannot give the recorded outputs, whoever runs them.
HOLES = {
    "gemma3/model": "the archive has no program: the exporter that wrote it failed",
    "vits/model": "draws random numbers, of which ATen's generator is not specified",
    "recurrent_gemma/decode": "holds the recurrent state of the run that was traced as a constant",
    "qwen2_vl/static_image_encoder": "takes cu_seqlens, which the recorded inputs lack",
    "qwen3_vl/static_image_encoder": "takes cu_seqlens, which the recorded inputs lack",
}


@dataclass
class Sample:
    inputs: Path
    expected: dict


def names() -> list[str]:
    """MODEL_TYPE/PROGRAM of every program of the fixtures that are laid out."""
    return [f"{path.parent.name}/{path.stem}" for path in sorted(FIXTURES.glob("*/*.pt2"))]


def path_of(name: str) -> Path:
    return FIXTURES / f"{name}.pt2"


def features(name: str) -> tuple[frozenset[bytes], int]:
    """What a program is made of: operations, and kinds of inputs and outputs; the number of its nodes."""
    with zipfile.ZipFile(path_of(name)) as archive:
        documents = [archive.read(entry) for entry in archive.namelist() if "/models/" in entry]
    text = b"".join(documents)
    targets = re.findall(rb'"target": ?"([^"]+)"', text)
    kinds = re.findall(rb'"(user_output": ?\{"arg": ?\{"\w+|\w+_mutation|persistent": ?\w+|constant_input)', text)
    return frozenset(targets + kinds), len(targets)


def cover() -> list[str]:
    """A few programs that have together what all have that can be run."""
    known = {name: features(name) for name in names() if name not in HOLES}
    chosen, left = [], frozenset().union(*(kinds for kinds, _ in known.values()))
    while left:
        chosen.append(max(known, key=lambda name: (len(known[name][0] & left) / (known[name][1] + 50), name)))
        left -= known[chosen[-1]][0]
    return chosen


def fits(name: str, inputs: Path) -> bool:
    """Whether the program's fixed sizes are those of these inputs."""
    tensors = load_file(inputs)
    for port in ferry_json("show", path_of(name))["inputs"]:
        shape = tensors[port["name"]].shape
        if any(size.isdigit() and int(size) != found for size, found in zip(port["shape"], shape)):
            return False
    return True


def differs_in_torch(folder: Path) -> set[str]:
    """Outputs of the second sample whose shape differs from eager when torch itself runs the program."""
    record = json.loads((folder / "fixture.json").read_text()).get("dynamo_cmp_second") or {}
    return {re.split(r":\[", text)[0] for text in record.get("bad", [])}


def samples(name: str) -> list[Sample]:
    folder, program = path_of(name).parent, path_of(name).stem
    prefix = "" if program == "model" else f"{program}_"
    found = [Sample(folder / f"{prefix}inputs.safetensors", load_file(folder / f"{prefix}expected.safetensors"))]
    second = folder / "second_inputs.safetensors"
    if program == "model" and second.exists() and fits(name, second):
        expected = load_file(folder / "second_expected.safetensors")
        other = differs_in_torch(folder)
        found.append(Sample(second, {key: value for key, value in expected.items() if key not in other}))
    return found


def check_reference(name: str, work: Path) -> int:
    """Run the program itself in the built-in runtime; the number of samples that agreed."""
    cases = samples(name)
    for case in cases:
        compare(run_ferry(path_of(name), case.inputs, work / "outputs.safetensors", "reference"), case.expected)
    return len(cases)


def show(path: Path) -> str:
    return ferry("show", path, "--program").stdout


def check_again(name: str, work: Path) -> None:
    """To a .pt2 and once more: the same program, and the same file."""
    first, second = work / "first/model.pt2", work / "second/model.pt2"
    ferry("export", path_of(name), "--to", "dynamo", "-o", first.parent, "-q")
    ferry("export", first, "--to", "dynamo", "-o", second.parent, "-q")
    assert show(first) == show(second)
    assert first.read_bytes() == second.read_bytes()


def check_onnx(name: str, work: Path) -> int:
    """Export the program and run it in ONNX Runtime; the number of samples that agreed."""
    ferry("export", path_of(name), "--to", "onnx", "-o", work / "onnx", "-q")
    model = work / "onnx/model.onnx"
    onnx.checker.check_model(model, full_check=True)
    cases = samples(name)
    for case in cases:
        compare(run_onnxruntime(model, load_file(case.inputs)), case.expected)
    return len(cases)


def check_openvino(openvino, name: str, work: Path) -> int:
    """Export the program and run it in OpenVINO; the number of samples that agreed."""
    ferry("export", path_of(name), "--to", "openvino", "-o", work / "openvino", "-q", "--no-stateful")
    cases = samples(name)
    for case in cases:
        compare(openvino.run(work / "openvino", case.inputs), case.expected)
    return len(cases)
