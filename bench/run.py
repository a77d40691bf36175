"""Measure ferry beside something else, in one run, and compare the ratio with a target.

    run.py [NAME...] [--ferry PROGRAM] [--work DIRECTORY] [--json]

Without names, everything is measured. Exits with 1 when a target is missed. README.md says what each
measurement means.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20


@dataclass
class Result:
    name: str
    measured: str  # in words
    value: float  # compared with the target
    target: float
    relation: str = "<="
    unit: str = ""

    @property
    def ok(self):
        return self.value <= self.target if self.relation == "<=" else self.value >= self.target


@dataclass
class Usage:
    wall: float  # seconds
    cpu: float  # seconds, user and system
    peak: int  # bytes of resident memory


def run(*command):
    """Run a program to its end. This process stays small, since a child starts with its parent's peak."""
    start = time.perf_counter()
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command[0]} failed with {child.returncode}:\n{errors.decode(errors='replace')}")
    return Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def interleaved(count, *actions):
    """Each action `count` times, in turns, so that a busy moment meets all of them."""
    rounds = [[action() for action in actions] for _ in range(count)]
    return [list(column) for column in zip(*rounds)]


def tensors_of(checkpoint):
    """Offset and size of every tensor of a checkpoint."""
    with open(checkpoint / "model.safetensors", "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    offsets = [entry["data_offsets"] for entry in header.values()]
    return [(8 + length + start, end - start) for start, end in offsets]


# The file of a target that holds the weights.
WEIGHTS = {"onnx": "model.onnx.data", "openvino": "openvino_model.bin", "executorch": "model.pte"}


class Bench:
    def __init__(self, ferry, work):
        self.ferry = ferry
        self.work = work
        self.out = work / "out"

    def checkpoint(self, name):
        """A checkpoint of make_checkpoint.py, made again when that file is newer."""
        directory, maker = self.work / "checkpoints" / name, HERE / "make_checkpoint.py"
        made = directory / "model.safetensors"
        if not made.exists() or made.stat().st_mtime < maker.stat().st_mtime:
            run(sys.executable, maker, name, directory)
        return directory

    def export(self, checkpoint, *options, to=None):
        to = to or self.out
        shutil.rmtree(to, ignore_errors=True)
        return run(self.ferry, "export", "-q", checkpoint, "-o", to, *options)

    def peer(self, checkpoint, *options):
        """An export by Transformers, made once: it takes minutes."""
        directory = self.work / "peers" / "-".join([checkpoint.name, *(option.strip("-") for option in options)])
        if not (directory / "export.json").exists():
            run(sys.executable, HERE / "transformers_export.py", checkpoint, directory, *options)
        return directory

    def link(self, checkpoint):
        return run(self.ferry, "export", "-q", checkpoint, "-o", checkpoint, "--weights", "link")


def measure_copy(bench, target="onnx"):
    checkpoint = bench.checkpoint("llama-135m")
    source, copy = bench.work / "source", bench.work / "copy"
    bench.export(checkpoint, "--to", target)
    (bench.out / WEIGHTS[target]).rename(source)

    def plain_copy():
        copy.unlink(missing_ok=True)
        return run("dd", f"if={source}", f"of={copy}", "bs=1M")

    plain_copy()
    exports, copies = interleaved(5, lambda: bench.export(checkpoint, "--to", target), plain_copy)
    ratio = statistics.median(e.wall / c.wall for e, c in zip(exports, copies))
    size = source.stat().st_size // MIB
    for path in (source, copy):
        path.unlink()
    export, plain = (statistics.median(u.wall for u in usages) for usages in (exports, copies))
    words = f"export to {target} {export:.2f} s, copy of its {size} MiB {plain:.2f} s"
    return Result("copy", words, ratio, 2.0)


def measure_memory(bench, target="onnx"):
    checkpoint = bench.checkpoint("llama-135m")
    # bfloat16 in the checkpoint and in OpenVINO, float32 in ONNX and ExecuTorch
    largest = max(size for _, size in tensors_of(checkpoint)) * (1 if target == "openvino" else 2)
    peak = max(bench.export(checkpoint, "--to", target).peak for _ in range(3))
    words = f"{target}: peak {peak / MIB:.0f} MiB, largest weight {largest / MIB:.0f} MiB"
    return Result("memory", words, (peak - largest) / MIB, 64, unit=" MiB more")


def measure_link(bench):
    checkpoint = bench.checkpoint("llama-135m")
    usages = [bench.link(checkpoint) for _ in range(6)][1:]
    wall, cpu = statistics.median(u.wall for u in usages), statistics.median(u.cpu for u in usages)
    return Result("link", f"export with linked weights, {cpu * 1000:.0f} ms of CPU", wall * 1000, 50, unit=" ms")


def measure_python(bench, target="onnx"):
    checkpoint = bench.checkpoint("llama-135m")
    peer = run(sys.executable, HERE / "transformers_export.py", checkpoint, bench.work / "peer", "--to", target)
    shutil.rmtree(bench.work / "peer")
    own = statistics.median(bench.export(checkpoint, "--to", target).cpu for _ in range(5))
    words = f"CPU to {target}: Transformers {peer.cpu:.1f} s, ferry {own:.2f} s"
    return Result("python", words, peer.cpu / own, 200, ">=")


def measure_speed(bench, runtime, stage, target):
    """How fast a runtime executes what ferry makes of the program that Transformers traces, and what
    Transformers makes of it itself."""
    checkpoint = bench.checkpoint("llama-135m")
    traced = bench.peer(checkpoint, "--to", "dynamo", "--generation")
    peer = bench.peer(checkpoint, "--to", runtime, "--generation")
    bench.export(traced / f"{stage}.pt2", "--to", runtime)
    command = [sys.executable, HERE / f"{runtime}_speed.py", stage]
    if runtime == "openvino":
        command += [bench.out / "openvino_model.xml", peer / f"openvino_{stage}.xml"]
    else:
        command += [bench.out, peer / f"{stage}.pte"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    times = json.loads(done.stdout)
    tokens = f", {times['tokens']} tokens" if "tokens" in times else ""
    words = f"{stage} in {runtime}{tokens}: export of Transformers {times['peer']:.0f} ms, ferry's {times['ours']:.0f} ms"
    return Result(stage, words, times["peer"] / times["ours"], target, ">=")


def measure_tokenize(bench):
    """Encoding, beside the tokenizers package."""
    done = subprocess.run([sys.executable, HERE / "tokenize_speed.py", bench.ferry], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    ratios = {name: times["package"] / times["ours"] for name, times in json.loads(done.stdout).items()}
    words = "tokenizers / ferry: " + ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    return Result("tokenize", words, min(ratios.values()), 1.0, ">=")


def digests(directory):
    result = {}
    for path in sorted(directory.iterdir()):
        with open(path, "rb") as file:
            result[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return result


def measure_identical(bench):
    checkpoint = bench.checkpoint("llama-135m")
    found = []
    for options in ((), (), ("--threads", "1"), ("--threads", "2")):
        bench.export(checkpoint, *options)
        found.append(digests(bench.out))
    differing = sum(other != found[0] for other in found[1:])
    return Result("identical", f"{len(found)} exports of {len(found[0])} files", differing, 0, unit=" differ")


def measure_linear(bench):
    layers = (24, 48, 96)
    checkpoints = [bench.checkpoint(f"llama-layers-{n}") for n in layers]
    actions = [lambda c=c: bench.link(c) for c in checkpoints]
    columns = interleaved(25, lambda: run(bench.ferry, "--version"), *actions)
    # What other processes take away only ever adds: the least is the nearest.
    start, *cpu = (min(u.cpu for u in usages) for usages in columns)
    times = [seconds - start for seconds in cpu]
    words = ", ".join(f"{n} layers {t * 1000:.1f} ms" for n, t in zip(layers, times))
    return Result("linear", f"CPU: {words}", times[-1] / times[0] / (layers[-1] / layers[0]), 1.3)


def distinct_bytes(checkpoint):
    """Bytes of the tensors that differ in content."""
    found = {}
    with open(checkpoint / "model.safetensors", "rb") as file:
        for offset, size in tensors_of(checkpoint):
            digest = hashlib.sha256()
            file.seek(offset)
            for start in range(0, size, MIB):
                digest.update(file.read(min(MIB, size - start)))
            found[digest.digest()] = size
    return sum(found.values())


def measure_tied(bench):
    ratios = {}
    for name in ("gpt2", "bert-mlm", "albert-mlm"):
        checkpoint = bench.checkpoint(name)
        bench.export(checkpoint)
        ratios[name] = (bench.out / "model.onnx.data").stat().st_size / distinct_bytes(checkpoint)
    words = "bytes written / distinct: " + ", ".join(f"{name} {ratio:.4f}" for name, ratio in ratios.items())
    return Result("tied", words, max(ratios.values()), 1.02)


def measure_size(bench):
    checkpoint = bench.checkpoint("llama-135m")
    bench.export(checkpoint, "--to", "executorch")
    size, distinct = (bench.out / "model.pte").stat().st_size, 2 * distinct_bytes(checkpoint)
    words = f"bytes of the .pte / distinct weights in float32: {size} / {distinct}"
    return Result("size", words, size / distinct, 1.02)


def program(bench, nodes):
    """A torch.export program of make_program.py."""
    path = bench.work / "programs" / f"{nodes}.pt2"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        run(sys.executable, HERE / "make_program.py", nodes, path)
    return path


def measure_program(bench):
    usages = [bench.export(program(bench, 2000)) for _ in range(7)]
    wall = statistics.median(u.wall for u in usages)
    return Result("program", ".pt2 of 2,000 nodes to ONNX", wall * 1000, 150, unit=" ms")


def measure_nodes(bench):
    usage = min((bench.export(program(bench, 100_000)) for _ in range(3)), key=lambda u: u.wall)
    return Result("nodes", f".pt2 of 100,000 nodes to ONNX, {usage.cpu:.1f} s of CPU", usage.wall, 3, unit=" s")


def measure_growth(bench):
    counts = (1000, 10_000, 100_000)
    cpu = [min(bench.export(program(bench, n)).cpu for _ in range(5)) for n in counts]
    words = ", ".join(f"{n} nodes {t * 1000:.0f} ms" for n, t in zip(counts, cpu))
    return Result("growth", f"CPU: {words}", cpu[2] / cpu[1] / (counts[2] / counts[1]), 1.3)


MEASURES = {
    "copy": measure_copy,
    "memory": measure_memory,
    "link": measure_link,
    "python": measure_python,
    "identical": measure_identical,
    "linear": measure_linear,
    "tied": measure_tied,
    "program": measure_program,
    "nodes": measure_nodes,
    "growth": measure_growth,
    "openvino-copy": lambda bench: measure_copy(bench, "openvino"),
    "openvino-memory": lambda bench: measure_memory(bench, "openvino"),
    "openvino-python": lambda bench: measure_python(bench, "openvino"),
    "openvino-decode": lambda bench: measure_speed(bench, "openvino", "decode", 2.0),
    "openvino-prefill": lambda bench: measure_speed(bench, "openvino", "prefill", 1.0),
    "executorch-copy": lambda bench: measure_copy(bench, "executorch"),
    "executorch-memory": lambda bench: measure_memory(bench, "executorch"),
    "executorch-python": lambda bench: measure_python(bench, "executorch"),
    "executorch-size": measure_size,
    "executorch-decode": lambda bench: measure_speed(bench, "executorch", "decode", 1.0),
    "executorch-prefill": lambda bench: measure_speed(bench, "executorch", "prefill", 1.0),
    "tokenize": measure_tokenize,
}


def line(result):
    value = f"{result.value:.2f}" if abs(result.value) < 10 and result.value % 1 else f"{result.value:.0f}"
    target = f"{result.relation} {result.target:g}"
    verdict = "ok" if result.ok else "MISSED"
    return f"{result.name:<10} {result.measured:<72} {value + result.unit:>14}  {target:>7}  {verdict}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--ferry", type=Path, default=HERE.parent / "build/release/ferry")
    parser.add_argument("--work", type=Path, default=HERE.parent / "build/measure", help="checkpoints and exports")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in MEASURES]
    if unknown:
        parser.error(f"no measurement {unknown[0]}: choose from {', '.join(MEASURES)}")
    if not args.ferry.exists():
        parser.error(f"no program {args.ferry}: run make, or name one with --ferry")
    load, processors = os.getloadavg()[0], os.cpu_count()
    if load > processors:
        print(f"note: the load is {load:.0f} on {processors} processors: wall times are too long", file=sys.stderr)
    bench = Bench(args.ferry.resolve(), args.work.resolve())
    bench.work.mkdir(parents=True, exist_ok=True)
    results = []
    for name in args.names or MEASURES:
        results.append(MEASURES[name](bench))
        if not args.json:
            print(line(results[-1]), flush=True)
    shutil.rmtree(bench.out, ignore_errors=True)
    if args.json:
        print(json.dumps([asdict(result) | {"ok": result.ok} for result in results], indent=2))
    sys.exit(0 if all(result.ok for result in results) else 1)


if __name__ == "__main__":
    main()
