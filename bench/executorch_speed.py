"""Time two ExecuTorch programs beside each other: executorch_speed.py decode|prefill OURS PEER

OURS is a directory of ferry's, PEER the same program as Transformers exports it: a .pte with the same
inputs in the same order. decode: one token, with a cache of 128. prefill: 128 tokens, without a cache; less where the
bounds of PEER are lower. Both take turns in one process; prints the median milliseconds of five as JSON, {"ours": ..,
"peer": .., "tokens": ..}.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from executorch.runtime import Runtime

MOST, ROUNDS = 128, 5


def make_input(port, stage, tokens):
    """Sizes that are symbols: the batch is 1, caches hold that many tokens, prompts are as long."""
    name = port["name"]
    past = tokens if stage == "decode" else 0
    if name.startswith("cache"):
        sizes = [int(size) if size.isdigit() else (1 if i == 0 else tokens) for i, size in enumerate(port["shape"])]
        return torch.randn(sizes)
    length = 1 if stage == "decode" else tokens
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
runtime = Runtime.get()
programs = [runtime.load_program(path) for path in (ours / component["file"], peer)]
methods = [program.load_method("forward") for program in programs]
# A step sees one token more than are in the cache.
bounds = methods[1].metadata.input_tensor_meta(2 if stage == "decode" else 0).sizes()
tokens = min(MOST, bounds[2] - 1 if stage == "decode" else bounds[1])
inputs = [make_input(port, stage, tokens) for port in component["metadata"]["ferry"]["inputs"]]
runs = [[run(method, inputs) for method in methods] for _ in range(ROUNDS + 1)]
ours, peer = (statistics.median(column) * 1000 for column in zip(*runs[1:]))
print(json.dumps({"ours": ours, "peer": peer, "tokens": tokens}))
