"""Time two OpenVINO models beside each other: openvino_speed.py decode|prefill OURS.xml PEER.xml

decode: one token, with a cache of 1024. prefill: 128 tokens, without a cache. Both models compute in
float32 and take turns; prints the median milliseconds of five as JSON, {"ours": .., "peer": ..}.
"""

import json
import statistics
import sys
import time

import numpy
import openvino

CONTEXT, PROMPT, ROUNDS = 1024, 128, 5


class Runner:
    def __init__(self, path):
        core = openvino.Core()
        precision = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "PERFORMANCE_HINT": "LATENCY"}
        self.model = core.compile_model(core.read_model(path), "CPU", precision)
        self.request = self.model.create_infer_request()

    def run(self, length, past):
        """`length` tokens after `past`; returns seconds."""
        feeds = {
            "input_ids": numpy.full((1, length), 7, numpy.int64),
            "attention_mask": numpy.ones((1, past + length), numpy.int64),
            "position_ids": numpy.arange(past, past + length, dtype=numpy.int64)[None],
            "beam_idx": numpy.zeros(1, numpy.int32),
        }
        names = [port.any_name for port in self.model.inputs]
        start = time.perf_counter()
        self.request.infer({name: feeds[name] for name in names})
        return time.perf_counter() - start

    def fill(self, context):
        """A cache as if `context` tokens had been read: [batch, heads, context, size]."""
        self.run(1, 0)
        generator = numpy.random.default_rng(0)
        for state in self.request.query_state():
            shape = list(state.state.shape)
            shape[2] = context
            state.state = openvino.Tensor(generator.standard_normal(shape, dtype=numpy.float32))


kind, *paths = sys.argv[1:]
runners = [Runner(path) for path in paths]
if kind == "decode":
    for runner in runners:
        runner.fill(CONTEXT)
    runs = [[runner.run(1, CONTEXT + i) for runner in runners] for i in range(ROUNDS + 1)]
else:
    runs = [[runner.run(PROMPT, 0) for runner in runners] for _ in range(ROUNDS + 1)]
ours, peer = (statistics.median(column) * 1000 for column in zip(*runs[1:]))
print(json.dumps({"ours": ours, "peer": peer}))
