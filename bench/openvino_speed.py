"""Time OpenVINO models beside each other: openvino_speed.py decode|prefill LENGTH NAME=FILE.xml ...

decode: one token, with a cache of LENGTH entries. prefill: LENGTH tokens, without a cache. All models compute in
float32 with a cache in float32 on two threads and take turns; prints the milliseconds of every run as JSON,
{NAME: [..], ..}.
"""

import json
import sys
import time

import numpy
import openvino

THREADS, ROUNDS = 2, 7


class Runner:
    def __init__(self, path):
        core = openvino.Core()
        properties = {
            "INFERENCE_PRECISION_HINT": "f32",
            "KV_CACHE_PRECISION": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": THREADS,
        }
        self.model = core.compile_model(core.read_model(path), "CPU", properties)
        self.request = self.model.create_infer_request()

    def run(self, length, past):
        """`length` tokens after `past`; returns milliseconds."""
        feeds = {
            "input_ids": numpy.full((1, length), 7, numpy.int64),
            "attention_mask": numpy.ones((1, past + length), numpy.int64),
            "position_ids": numpy.arange(past, past + length, dtype=numpy.int64)[None],
            "beam_idx": numpy.zeros(1, numpy.int32),
        }
        names = [port.any_name for port in self.model.inputs]
        start = time.perf_counter()
        self.request.infer({name: feeds[name] for name in names})
        return (time.perf_counter() - start) * 1000

    def fill(self, context):
        """A cache as if `context` tokens had been read: [batch, heads, context, size]."""
        self.run(1, 0)
        generator = numpy.random.default_rng(0)
        for state in self.request.query_state():
            shape = list(state.state.shape)
            shape[2] = context
            state.state = openvino.Tensor(generator.standard_normal(shape, dtype=numpy.float32))


kind, length, *models = sys.argv[1:]
length = int(length)
runners = {}
for model in models:
    name, path = model.split("=", 1)
    runners[name] = Runner(path)
if kind == "decode":
    for runner in runners.values():
        runner.fill(length)
    runs = [[runner.run(1, length + i) for runner in runners.values()] for i in range(ROUNDS + 1)]
else:
    # Whatever else a model keeps, every run starts anew.
    runs = []
    for _ in range(ROUNDS + 1):
        runs.append([runner.run(length, 0) for runner in runners.values()])
        for runner in runners.values():
            runner.request.reset_state()
print(json.dumps(dict(zip(runners, zip(*runs[1:])))))
