"""Time decoders in ONNX Runtime beside each other: onnxruntime_speed.py CONTEXT NAME[@SIZE]=FILE.onnx ...

One token after CONTEXT tokens, in float32 on two threads, by the loop that the documentation of the exporters has:
inputs and outputs are bound, and the cache that came out goes in again. With @SIZE, the cache is a buffer of that
many entries, bound as input and as output: of a static export, or of a graph with GroupQueryAttention. The models
take turns; prints the milliseconds of every step as JSON, {NAME: [..], ..}.
"""

import json
import sys
import time

import numpy
import onnxruntime

THREADS, ROUNDS, WARM = 2, 11, 2
HEADS, WIDTH = 3, 64  # of keys and values in the shape of SmolLM2-135M


def is_cache(port):
    return "key" in port.name or "value" in port.name


class Decoder:
    def __init__(self, path, context, size):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.log_severity_level = 3
        # Threads that wait for the next run would take the processors from the model whose turn it is.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs, outputs = self.session.get_inputs(), self.session.get_outputs()
        self.inputs = [port for port in inputs if not is_cache(port)]
        self.outputs = [port.name for port in outputs if not is_cache(port)]
        after = [port.name for port in outputs if is_cache(port)]
        self.caches = dict(zip((port.name for port in inputs if is_cache(port)), after))
        self.past, self.size = context, size
        generator, shape = numpy.random.default_rng(0), (1, HEADS, size or context, WIDTH)
        self.held = {}
        for name in self.caches:
            data = generator.standard_normal(shape, dtype=numpy.float32)
            self.held[name] = onnxruntime.OrtValue.ortvalue_from_numpy(data)

    def given(self, port):
        if "cumulative_length" in port.name:
            return numpy.array(self.past, numpy.int64)
        if port.type == "tensor(bool)":
            return (numpy.arange(self.size) <= self.past)[None, None, None]
        if port.name == "attention_mask":
            return numpy.ones((1, self.past + 1), numpy.int64)
        return numpy.full((1, 1), self.past if port.name == "position_ids" else 7, numpy.int64)

    def step(self):
        """One token; returns milliseconds."""
        start = time.perf_counter()
        binding = self.session.io_binding()
        for port in self.inputs:
            binding.bind_cpu_input(port.name, self.given(port))
        for name in self.outputs:
            binding.bind_output(name, "cpu")
        for before, after in self.caches.items():
            binding.bind_ortvalue_input(before, self.held[before])
            if self.size:
                binding.bind_ortvalue_output(after, self.held[before])
            else:
                binding.bind_output(after, "cpu")
        self.session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
        if not self.size:
            self.held = dict(zip(self.caches, outputs[len(self.outputs) :]))
        outputs[self.outputs.index("logits")].numpy()[0, -1].argmax()
        self.past += 1
        return (time.perf_counter() - start) * 1000


context, *models = sys.argv[1:]
decoders = {}
for model in models:
    name, path = model.split("=", 1)
    name, _, size = name.partition("@")
    decoders[name] = Decoder(path, int(context), int(size or 0))
rounds = [[decoder.step() for decoder in decoders.values()] for _ in range(WARM + ROUNDS)]
print(json.dumps(dict(zip(decoders, zip(*rounds[WARM:])))))
