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

    def tool(self, name, checkpoint, made, *command):
        """An export by a tool in a virtual environment of its own (README.md); None where it is not installed."""
        program = self.work / name / "bin" / command[0]
        directory = self.work / "peers" / f"{checkpoint.name}-{name}-{made.split('.')[0]}"
        if not (directory / made).exists():
            if not program.exists():
                return None
            arguments = [program, *command[1:]]
            run(*[{"IN": checkpoint, "OUT": directory}.get(part, part) for part in arguments])
        return directory / made

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


def script(name, *arguments, python=sys.executable):
    """What a script beside this one prints, as JSON."""
    done = subprocess.run([python, HERE / name, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure_speed(bench, runtime, stage, target):
    """How fast a runtime executes what ferry makes of the program that Transformers traces, and what
    Transformers makes of it itself."""
    checkpoint = bench.checkpoint("llama-135m")
    traced = bench.peer(checkpoint, "--to", "dynamo", "--generation")
    peer = bench.peer(checkpoint, "--to", runtime, "--generation")
    bench.export(traced / f"{stage}.pt2", "--to", runtime)
    if runtime == "openvino":
        models = {"ours": bench.out / "openvino_model.xml", "peer": peer / f"openvino_{stage}.xml"}
        length = 1024 if stage == "decode" else 128
        runs = script("openvino_speed.py", stage, length, *(f"{name}={path}" for name, path in models.items()))
        times = {name: statistics.median(column) for name, column in runs.items()}
    else:
        times = script(f"{runtime}_speed.py", stage, bench.out, peer / f"{stage}.pte")
    tokens = f", {times['tokens']} tokens" if "tokens" in times else ""
    words = f"{stage} in {runtime}{tokens}: export of Transformers {times['peer']:.0f} ms, ferry's {times['ours']:.0f} ms"
    return Result(stage, words, times["peer"] / times["ours"], target, ">=")


# ---- generation ----

CONTEXTS = (128, 1024)


def optimum(bench, checkpoint, target):
    """What optimum-cli exports."""
    made = {"onnx": "model.onnx", "openvino": "openvino_model.xml"}[target]
    options = ["--task", "text-generation-with-past"]
    options += ["--weight-format", "fp32"] if target == "openvino" else []
    return bench.tool("optimum", checkpoint, made, "optimum-cli", "export", target, "-m", "IN", *options, "OUT")


def genai(bench, checkpoint):
    """What the model builder of onnxruntime-genai makes, which wants a tokenizer."""
    given = bench.work / "with-tokenizer"
    given.mkdir(exist_ok=True)
    for path in checkpoint.iterdir():
        if not (given / path.name).exists():
            (given / path.name).symlink_to(path)
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    (given / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    (given / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "a"}')
    builder = ["python", "-m", "onnxruntime_genai.models.builder", "-p", "fp32", "-e", "cpu", "-c", bench.work / "cache"]
    return bench.tool("genai", checkpoint, "model.onnx", *builder, "-m", "", "-i", given, "-o", "OUT")


def compare_steps(name, speed, models):
    """Each of `models` beside "ours": times of a step after contexts, of which "peer" makes the ratio."""
    ratios, words = [], []
    for context in CONTEXTS:
        times = speed(context, [f"{model}={path}" for model, path in models.items() if path])
        ratio = {
            model: statistics.median(other / own for other, own in zip(column, times["ours"]))
            for model, column in times.items()
            if model != "ours"
        }
        ratios.append(ratio["peer"])
        own = f"{statistics.median(times['ours']):.1f} ms"
        words.append(f"context {context}: {own}; " + ", ".join(f"{model} {r:.2f}x" for model, r in ratio.items()))
    return Result(name, " | ".join(words), min(ratios), 1.0, ">=")


def measure_step_onnx(bench):
    checkpoint = bench.checkpoint("llama-135m")
    peer = bench.peer(checkpoint, "--to", "onnx", "--generation")
    bench.export(checkpoint, "--generation")
    models = {
        "ours": bench.out / "decode.onnx",
        "peer": peer / "decode.onnx",
        "optimum": optimum(bench, checkpoint, "onnx"),
        "genai": genai(bench, checkpoint),
        f"genai, one buffer@{STATIC}": genai(bench, checkpoint),
    }
    return compare_steps("step", lambda c, m: script("onnxruntime_speed.py", c, *m), models)


STATIC = 2048  # entries of a cache of fixed size; transformers_export.py has the same


def measure_step_static(bench):
    checkpoint = bench.checkpoint("llama-135m")
    peer = bench.peer(checkpoint, "--to", "onnx", "--generation", "--static")
    bench.export(checkpoint, "--generation", "--multi-token-decode", "--static-cache", STATIC)
    models = {f"ours@{STATIC}": bench.out / "decode.onnx", f"peer@{STATIC}": peer / "decode.onnx"}
    return compare_steps("static", lambda c, m: script("onnxruntime_speed.py", c, *m), models)


def measure_step_openvino(bench):
    checkpoint = bench.checkpoint("llama-135m")
    peer = bench.peer(checkpoint, "--to", "openvino", "--generation")
    bench.export(checkpoint, "--generation", "--to", "openvino")
    models = {
        "ours": bench.out / "openvino_decode.xml",
        "peer": peer / "openvino_decode.xml",
        "optimum": optimum(bench, checkpoint, "openvino"),
    }
    return compare_steps("step", lambda c, m: script("openvino_speed.py", "decode", c, *m), models)


def own_loop(bench, runtime, prompt, count):
    """`ferry generate`: the tokens/s that it tells, and the seconds of the whole process."""
    import numpy
    from safetensors.numpy import save_file

    inputs, sequences = bench.work / "prompt.safetensors", bench.work / "sequences.safetensors"
    save_file({"input_ids": numpy.load(prompt)[None]}, inputs)
    command = [bench.ferry, "generate", bench.out, "-i", inputs, "-o", sequences, "-n", str(count)]
    command += ["--stats", "--threads", "2", "--runtime", runtime]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, "PATH": path})
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    rates = [line.split()[-2] for line in done.stderr.splitlines() if line.startswith("decode")]
    return float(rates[0]) if rates else 0, wall


def other_loop(kind, directory, prompt, count, python=sys.executable):
    """The same by generation_loop.py."""
    start = time.perf_counter()
    rate = script("generation_loop.py", kind, directory, prompt, count, python=python)
    return rate, time.perf_counter() - start


def measure_generate(bench, runtime, target):
    """From a prompt to tokens, each by a process of its own."""
    import numpy

    checkpoint, prompt, count = bench.checkpoint("llama-135m"), bench.work / "prompt.npy", 64
    numpy.save(prompt, numpy.random.default_rng(0).integers(4, 49152, CONTEXTS[0]))
    peer = bench.peer(checkpoint, "--to", target, "--generation")
    # One graph for the prompt and the tokens behind it.
    bench.export(checkpoint, "--generation", "--multi-token-decode", "--to", target)
    loops = {
        "ferry": lambda n: own_loop(bench, runtime, prompt, n),
        "Python": lambda n: other_loop(runtime, peer, prompt, n),
    }
    built = genai(bench, checkpoint) if target == "onnx" else None
    if built:
        python = bench.work / "genai/bin/python"
        loops["genai"] = lambda n: other_loop("genai", built.parent, prompt, n, python)
    rates = interleaved(3, *(lambda loop=loop: loop(count)[0] for loop in loops.values()))
    walls = interleaved(3, *(lambda loop=loop: loop(1)[1] for loop in loops.values()))
    words = "; ".join(
        f"{name} {statistics.median(rate):.1f} tokens/s, first after {statistics.median(wall):.1f} s"
        for name, rate, wall in zip(loops, rates, walls)
    )
    return Result("generate", words, statistics.median(a / b for a, b in zip(rates[0], rates[1])), 1.0, ">=")


def measure_tokenize(bench):
    """Encoding, beside the tokenizers package."""
    measured = script("tokenize_speed.py", bench.ferry)
    ratios = {name: times["package"] / times["ours"] for name, times in measured.items()}
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
    "onnx-step": measure_step_onnx,
    "onnx-step-static": measure_step_static,
    "onnx-generate": lambda bench: measure_generate(bench, "onnxruntime", "onnx"),
    "openvino-step": measure_step_openvino,
    "openvino-generate": lambda bench: measure_generate(bench, "openvino", "openvino"),
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
