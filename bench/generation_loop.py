"""Generate greedily from an export of another tool: generation_loop.py onnxruntime|openvino|genai DIRECTORY PROMPT N

DIRECTORY has the components prefill and decode that the exporters of Transformers write, driven as their
documentation does it, or what the model builder of onnxruntime-genai makes, driven by that package. PROMPT is a
.npy file of token ids. Two threads; prints the tokens/s after the first of N new tokens.
"""

import json
import sys
import time
from pathlib import Path

import numpy

THREADS = 2


def tokens(ids, past):
    """What the stages take, by name: `ids` behind `past` others."""
    length = len(ids)
    return {
        "input_ids": numpy.array([ids], numpy.int64),
        "attention_mask": numpy.ones((1, past + length), numpy.int64),
        "position_ids": numpy.arange(past, past + length, dtype=numpy.int64)[None],
        "beam_idx": numpy.zeros(1, numpy.int32),
    }


def loop_onnxruntime(directory, prompt, count):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    open_session = lambda name: onnxruntime.InferenceSession(directory / name, options, ["CPUExecutionProvider"])
    prefill, decode = open_session("prefill.onnx"), open_session("decode.onnx")
    cache = {}

    def run(session, given):
        binding = session.io_binding()
        for port in session.get_inputs():
            if port.name in cache:
                binding.bind_ortvalue_input(port.name, cache[port.name])
            else:
                binding.bind_cpu_input(port.name, given[port.name])
        for port in session.get_outputs():
            binding.bind_output(port.name, "cpu")
        session.run_with_iobinding(binding)
        outputs = {port.name: value for port, value in zip(session.get_outputs(), binding.get_outputs())}
        token = int(outputs.pop("logits").numpy()[0, -1].argmax())
        cache.clear()
        cache.update({f"input.{name.removeprefix('output.')}": value for name, value in outputs.items()})
        return token

    token = run(prefill, tokens(prompt, 0))
    start = time.perf_counter()
    for past in range(len(prompt), len(prompt) + count - 1):
        token = run(decode, tokens([token], past))
    return time.perf_counter() - start


def loop_openvino(directory, prompt, count):
    import openvino

    core = openvino.Core()
    properties = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": THREADS,
    }

    def open_request(name):
        model = core.compile_model(core.read_model(directory / name), "CPU", properties)
        return model.create_infer_request(), [port.any_name for port in model.inputs]

    prefill, decode = open_request("openvino_prefill.xml"), open_request("openvino_decode.xml")

    def run(request, names, given):
        outputs = request.infer({name: given[name] for name in names})
        return int(outputs["logits"][0, -1].argmax())

    token = run(*prefill, tokens(prompt, 0))
    after = {port.any_name: prefill[0].get_tensor(port) for port in prefill[0].model_outputs}
    for state in decode[0].query_state():
        name = next(name for name in after if name in state.name)
        state.state = openvino.Tensor(after[name].data)
    start = time.perf_counter()
    for past in range(len(prompt), len(prompt) + count - 1):
        token = run(*decode, tokens([token], past))
    return time.perf_counter() - start


def loop_genai(directory, prompt, count):
    import onnxruntime_genai

    config = json.loads((directory / "genai_config.json").read_text())
    options = config["model"]["decoder"]["session_options"]
    options["intra_op_num_threads"] = THREADS
    (directory / "genai_config.json").write_text(json.dumps(config))
    model = onnxruntime_genai.Model(str(directory))
    settings = onnxruntime_genai.GeneratorParams(model)
    settings.set_search_options(max_length=len(prompt) + count, do_sample=False)
    generator = onnxruntime_genai.Generator(model, settings)
    generator.append_tokens(numpy.array([prompt], numpy.int32))
    generator.generate_next_token()
    start = time.perf_counter()
    for _ in range(count - 1):
        generator.generate_next_token()
    return time.perf_counter() - start


runtime, directory, prompt, count = sys.argv[1:]
loop = {"onnxruntime": loop_onnxruntime, "openvino": loop_openvino, "genai": loop_genai}[runtime]
seconds = loop(Path(directory), numpy.load(prompt).tolist(), int(count))
print(json.dumps((int(count) - 1) / seconds if int(count) > 1 else 0))
