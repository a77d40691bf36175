"""Encoder-decoder models in components: the recorded steps of the fixtures, and whole loops that give the
tokens of eager's generate, in every runtime."""

from functools import cache

import dynamo
import executorch_runtime
import numpy as np
import onnxruntime
import openvino
import pytest
import torch
import transformers
from safetensors.torch import load_file
from support import compare, ferry

CLASSES = {
    "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration",
}
COMPONENTS = ("encoder", "prefill", "decode")
TOKENS, SLOTS = 32, 48


# ---- runtimes: a component as a function from tensors by name to tensors by name ----


class Onnx:
    target, options = "onnx", ()

    def __init__(self, directory, component):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        path = directory / f"{component}.onnx"
        self.session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def __call__(self, inputs):
        feeds = {port.name: inputs[port.name.removeprefix("input.")] for port in self.session.get_inputs()}
        names = [port.name.removeprefix("output.") for port in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, feeds)))


class OpenVino:
    target, options = "openvino", ("--no-stateful",)

    def __init__(self, directory, component):
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        self.request = openvino.Core().compile_model(directory / f"openvino_{component}.xml", "CPU", settings)
        self.request = self.request.create_infer_request()

    def __call__(self, inputs):
        ports = {port.any_name: port for port in self.request.model_inputs}
        feeds = {ports[name]: inputs[name.removeprefix("input.")] for name in ports if name != "beam_idx"}
        if "beam_idx" in ports:
            feeds[ports["beam_idx"]] = np.arange(2, dtype=np.int32)
        results = self.request.infer(feeds)
        return {port.any_name.removeprefix("output."): value.copy() for port, value in results.items()}


class StatefulOpenVino(OpenVino):
    options = ()


class Torch:
    target, options = "dynamo", ()

    def __init__(self, directory, component):
        self.directory, self.component = directory, component
        self.program = dynamo.load(directory / f"{component}.pt2")
        self.module = self.program.module()

    def __call__(self, inputs):
        tensors = {name: torch.from_numpy(value) for name, value in inputs.items()}
        return dynamo.run(self.program, self.directory, tensors, self.component, self.module)


class ExecuTorch:
    target, options = "executorch", ()

    def __init__(self, directory, component):
        self.ports = executorch_runtime.signature(directory, component)
        self.method = executorch_runtime.load(directory, component)

    def __call__(self, inputs):
        outputs = self.method.execute(executorch_runtime.leaves(self.ports, inputs))
        return {port["name"]: value.numpy().copy() for port, value in zip(self.ports["outputs"], outputs)}


RUNTIMES = {"onnx": Onnx, "openvino": OpenVino, "stateful": StatefulOpenVino, "torch": Torch, "executorch": ExecuTorch}
CACHES = {
    "dynamic": (),
    "static": ("--static-cache", str(SLOTS)),
    "multi": ("--static-cache", str(SLOTS), "--multi-token-decode"),
}


def split(source, directory, runtime, kind):
    runtime = RUNTIMES[runtime]
    options = (*CACHES[kind], *runtime.options)
    ferry("export", source, "--to", runtime.target, "-o", directory, "-q", "--generation", *options)
    return runtime


# ---- recorded steps ----


@pytest.mark.parametrize("model_type", CLASSES)
@pytest.mark.parametrize("runtime", [name for name in RUNTIMES if name != "stateful"])
def test_recorded_steps(fixture, tmp_path, runtime, model_type):
    source = fixture(model_type)
    for name, kind in (("decode", "multi"), ("dyn_decode", "dynamic")):
        samples = source / f"{name}_inputs.safetensors"
        if not samples.exists():
            continue
        step = split(source, tmp_path / kind, runtime, kind)(tmp_path / kind, "decode")
        inputs = {name: value.numpy() for name, value in load_file(samples).items()}
        expected = load_file(source / f"{name}_expected.safetensors")
        compare(step(inputs), {name: value.numpy() for name, value in expected.items()})


# ---- loops ----


@cache
def generated(source):
    """A batch of two inputs of different lengths, the start of the decoder, and what eager goes on with."""
    torch.manual_seed(1)
    model_type = source.name
    model = getattr(transformers, CLASSES[model_type]).from_pretrained(source).eval()
    if model_type == "whisper":
        inputs = {"input_features": torch.randn(2, 16, 256)}
    else:
        lengths = torch.tensor([[11], [6]])
        mask = (torch.arange(11) < lengths).long()
        inputs = {"input_ids": torch.randint(3, 128, (2, 11)) * mask, "attention_mask": mask}
    start = torch.randint(3, 128, (2, 3))
    start[:, 0] = 1
    options = {"max_new_tokens": TOKENS, "pad_token_id": 0, "decoder_start_token_id": 1}
    model.generation_config = transformers.GenerationConfig(**options, no_repeat_ngram_size=1, do_sample=False)
    with torch.no_grad():
        tokens = transformers.GenerationMixin.generate(model, **inputs, decoder_input_ids=start)
    assert tokens.shape == (2, 3 + TOKENS)
    return {name: value.numpy() for name, value in inputs.items()}, start.numpy(), tokens.numpy()


def best_unused(logits, tokens):
    """Tiny models repeat themselves: of the tokens that have not occurred, the most probable."""
    scores = logits[:, -1].copy()
    np.put_along_axis(scores, tokens, -np.inf, 1)
    return scores.argmax(1)[:, None]


def caches(outputs, part=""):
    return {name: value for name, value in outputs.items() if name.startswith(f"cache.{part}")}


def follow(runtime, directory, inputs, start, kind):
    """Greedy tokens: the encoder and prefill once, then decode. A runtime that keeps the state to itself gets the
    start once more, token by token."""
    encoder, prefill, decode = (runtime(directory, component) for component in COMPONENTS)
    given = {**inputs, "encoder_outputs.last_hidden_state": encoder(inputs)["last_hidden_state"]}
    outputs = prefill({**given, "decoder_input_ids": start})
    tokens, used = start, 3
    if runtime is StatefulOpenVino:
        given |= caches(outputs, "cross_attention_cache")
        used = 0
    while True:
        if used == tokens.shape[1]:
            tokens = np.concatenate([tokens, best_unused(outputs["logits"], tokens)], 1)
            if tokens.shape[1] == 3 + TOKENS:
                return tokens
        visible = np.broadcast_to(np.arange(SLOTS) <= used, (2, 1, 1, SLOTS))
        mask = {} if kind == "dynamic" else {"decoder_attention_mask": np.ascontiguousarray(visible)}
        token = np.ascontiguousarray(tokens[:, used : used + 1])
        outputs = decode({**given, **caches(outputs), **mask, "decoder_input_ids": token})
        used += 1


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("model_type", CLASSES)
def test_loop_in_onnxruntime(fixture, tmp_path, model_type, kind):
    inputs, start, expected = generated(fixture(model_type))
    runtime = split(fixture(model_type), tmp_path, "onnx", kind)
    assert np.array_equal(follow(runtime, tmp_path, inputs, start, kind), expected)


@pytest.mark.parametrize("kind", ["dynamic", "multi"])
@pytest.mark.parametrize("model_type", ["t5", "m2m_100", "whisper"])
@pytest.mark.parametrize("name", [name for name in RUNTIMES if name != "onnx"])
def test_loop(fixture, tmp_path, name, model_type, kind):
    inputs, start, expected = generated(fixture(model_type))
    runtime = split(fixture(model_type), tmp_path, name, kind)
    assert np.array_equal(follow(runtime, tmp_path, inputs, start, kind), expected)


# ---- what is refused ----


@pytest.mark.parametrize(
    "model_type, options, message",
    [
        ("whisper", ("--dynamic-shapes", "input_features=b,16,200"), "takes input_features of 16 mel bins and 256 frames"),
        ("t5", ("--task", "feature-extraction", "--generation"), "does not generate: ask for the task text2text-generation"),
        ("bart", ("--component", "vision"), 'has no component "vision"'),
        ("pegasus", ("--task", "text-classification"), "has no support for the task text-classification"),
        ("t5", ("--dynamic-shapes", "decoder_input_ids=b,4,2"), '"decoder_input_ids" has 3 dimensions, expected 2'),
    ],
)  # fmt: skip
def test_refusals(fixture, tmp_path, model_type, options, message):
    done = ferry("export", fixture(model_type), "-o", tmp_path / "export", *options, status=None)
    assert done.returncode in (2, 6) and message in done.stderr
    assert not (tmp_path / "export").exists()
