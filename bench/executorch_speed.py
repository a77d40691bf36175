"""Time two ExecuTorch programs beside each other: executorch_speed.py decode|prefill OURS PEER

OURS is a directory of ferry's, PEER the same program as Transformers exports it: a .pte with the same
inputs in the same order. decode: one token, with a cache of 128. prefill: 128 tokens, without a cache. Both
take turns in one process; prints the median milliseconds of five as JSON, {"ours": .., "peer": ..}.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from executorch.runtime import Runtime

LENGTH, ROUNDS = 128, 5


def make_input(port, stage):
    """Sizes that are symbols: the batch is 1, caches hold LENGTH tokens, prompts are of LENGTH."""
    name = port["name"]
    past = LENGTH if stage == "decode" else 0
    if name.startswith("cache"):
        sizes = [int(size) if size.isdigit() else (1 if i == 0 else LENGTH) for i, size in enumerate(port["shape"])]
        return torch.randn(sizes)
    length = 1 if stage == "decode" else LENGTH
    if name == "position_ids":
        return torch.arange(past, past + length)[None]
    if name == "attention_mask":
        return torch.ones(1, past + length, dtype=torch.int64)
    return torch.full((1, length), 7)


def run(method, inputs):
    start = time.perf_counter()
    method.execute(inputs)
    return time.perf_counter() - start


stage, ours, peer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
manifest = json.loads((ours / "export.json").read_text())
(component,) = manifest["components"].values()
inputs = [make_input(port, stage) for port in component["metadata"]["ferry"]["inputs"]]
runtime = Runtime.get()
programs = [runtime.load_program(path) for path in (ours / component["file"], peer)]
methods = [program.load_method("forward") for program in programs]
runs = [[run(method, inputs) for method in methods] for _ in range(ROUNDS + 1)]
ours, peer = (statistics.median(column) * 1000 for column in zip(*runs[1:]))
print(json.dumps({"ours": ours, "peer": peer}))
