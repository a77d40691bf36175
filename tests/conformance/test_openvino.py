"""OpenVINO runs what ferry exports, with eager's numbers, in the operations that its CPU plugin is fast at."""

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import programs
import pytest
import support
import torch
import transformers
from ov_child import Child
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_torch
from safetensors.torch import save_file as save_torch
from support import compare, ferry, ferry_json
from transformers.exporters import ExportedModel

HERE = Path(__file__).parent
samples = pytest.mark.parametrize("sample", ["", "second_"], ids=["first", "second"])

# What went wrong before it went right, whatever else is chosen.
TAUGHT = ("align/model", "gemma4_text/model", "modernbert/model", "qwen3_next/model", "qwen3_vl/static_language_model")


@pytest.fixture(scope="module")
def openvino():
    child = Child()
    yield child
    child.close()


def to_openvino(source, target, *options):
    ferry("export", source, "--to", "openvino", "-o", target, "-q", *options)
    return target


# ---- numbers ----


@samples
@pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
def test_checkpoints(fixture, openvino, tmp_path, model_type, sample):
    source = fixture(model_type)
    model = to_openvino(source, tmp_path / "out", "--inputs", source / "inputs.safetensors", "--dynamic")
    outputs = openvino.run(model, source / f"{sample}inputs.safetensors")
    compare(outputs, load_file(source / f"{sample}expected.safetensors"))


@pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
def test_checkpoints_at_fixed_sizes(fixture, openvino, tmp_path, model_type):
    source = fixture(model_type)
    model = to_openvino(source, tmp_path / "out", "--inputs", source / "inputs.safetensors")
    outputs = openvino.run(model, source / "inputs.safetensors")
    compare(outputs, load_file(source / "expected.safetensors"))


def some_programs(parts):
    """One in so many, always the same ones; make_coverage.py runs all."""
    for name in programs.names():
        if name in programs.HOLES:
            continue
        if name in TAUGHT or zlib.crc32(name.encode()) % parts == 0:
            yield name


@pytest.mark.parametrize("name", list(some_programs(6)) or ["none"])
def test_programs(fixture, openvino, tmp_path, name):
    assert programs.check_openvino(openvino, name, tmp_path) > 0


def test_operations(openvino, tmp_path):
    """Corners of operations: windows beyond the input, scalars, indices from the end."""
    cases = {
        "make_programs_index.py": ("einsum_summed", "index_first", "index_scalar", "unfold"),
        "make_programs_vision.py": (
            *("avg_pool2d_ceil_padded", "avg_pool2d_ceil_exclude", "max_pool2d_ceil_padded"),
            *("max_pool2d_dilated", "adaptive_avg_pool2d_1"),
        ),
    }
    for script, names in cases.items():
        subprocess.run([sys.executable, HERE / script, tmp_path, *names], check=True, capture_output=True)
        for name in names:
            model = to_openvino(tmp_path / f"{name}.pt2", tmp_path / name)
            for inputs in sorted(tmp_path.glob(f"{name}.*.inputs.safetensors")):
                expected = load_file(str(inputs).replace(".inputs.", ".expected."))
                compare(openvino.run(model, inputs), expected)


def test_wide_heads_with_padding_on_the_left(openvino, tmp_path):
    """Rows that may attend to nothing, with heads of the size of real models."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=512, intermediate_size=256, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, head_dim=128,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path / "model")
    inputs = {"input_ids": torch.randint(3, 300, (3, 33)), "attention_mask": torch.ones(3, 33, dtype=torch.int64)}
    inputs["attention_mask"][0, :9] = 0
    with torch.no_grad():
        expected = model(**inputs).logits.numpy()
    save_torch(inputs, tmp_path / "inputs.safetensors")
    exported = to_openvino(tmp_path / "model", tmp_path / "out")
    compare(openvino.run(exported, tmp_path / "inputs.safetensors"), {"logits": expected})
    fixed = to_openvino(tmp_path / "model", tmp_path / "fixed", "--inputs", tmp_path / "inputs.safetensors")
    compare(openvino.run(fixed, tmp_path / "inputs.safetensors"), {"logits": expected})


# ---- what the file says ----


def layers(model, kind):
    root = ElementTree.parse(model / "openvino_model.xml").getroot()
    return [layer for layer in root.iter("layer") if layer.get("type") == kind]


def test_names_and_partial_shapes(fixture, tmp_path):
    sizes = "input_ids=batch:1..8,seq:2..;attention_mask=batch,seq;position_ids=1,seq"
    model = to_openvino(fixture("llama"), tmp_path / "out", "--dynamic-shapes", sizes)
    ports = [
        (layer.find("output/port").get("names"), layer.find("data").get("shape"))
        for layer in layers(model, "Parameter")
    ]
    assert ports == [("input_ids", "1..8,2.."), ("attention_mask", "1..8,2.."), ("position_ids", "1,2..")]
    results = [layer.get("output_names") for layer in layers(model, "Result")]
    assert results[:2] == ["logits", "cache.layers.0.keys"] and len(results) == 5


def test_names_on_both_sides(fixture, tmp_path):
    model = to_openvino(fixture("llama") / "dyn_decode.pt2", tmp_path / "out", "--no-stateful")
    inputs = [layer.get("name") for layer in layers(model, "Parameter")]
    outputs = [layer.get("output_names") for layer in layers(model, "Result")]
    assert "input.cache.layers.0.keys" in inputs and "output.cache.layers.0.keys" in outputs
    assert "input_ids" in inputs and "logits" in outputs


def test_same_bytes_every_time(fixture, tmp_path):
    made = [to_openvino(fixture("qwen3"), tmp_path / n, "--threads", n) for n in ("1", "3")]
    for name in ("openvino_model.xml", "openvino_model.bin", "export.json"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()


# ---- speed ----


def test_attention_norms_and_rotations_are_fused(fixture, openvino, tmp_path):
    """Per layer one attention (which the plugin calls Subgraph where there is no state), and two norms."""
    expected = {
        "llama": {"RMS": 5, "RoPE": 4, "Subgraph": 2},
        "qwen3": {"RMS": 9, "RoPE": 4, "Subgraph": 2},
        "bert": {"MVN": 6, "Subgraph": 2},
    }
    for model_type, counts in expected.items():
        found = openvino.kinds(to_openvino(fixture(model_type), tmp_path / model_type))
        assert {kind: found[kind] for kind in counts} == counts, model_type
        assert found["Softmax"] == 0


@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_attention_with_state_is_fused(fixture, openvino, tmp_path, model_type):
    found = openvino.kinds(to_openvino(fixture(model_type) / "dyn_decode.pt2", tmp_path / "out"))
    assert found["ScaledDotProductAttention"] == 2 and found["MemoryInput"] == 4 and found["RoPE"] == 4


# ---- weights ----


@pytest.fixture
def bfloat16(fixture, tmp_path):
    """llama, stored in half the bytes; and its numbers."""
    source = tmp_path / "bfloat16"
    shutil.copytree(fixture("llama"), source, ignore=shutil.ignore_patterns("*.pt2"))
    weights = {name: value.bfloat16() for name, value in load_torch(source / "model.safetensors").items()}
    save_torch(weights, source / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    model = transformers.LlamaForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    with torch.no_grad():
        expected = model(**load_torch(source / "inputs.safetensors")).logits.numpy()
    return source, {"logits": expected}


@pytest.mark.parametrize("weights", ["copy", "link"])
def test_half_precision_stays_in_the_file(openvino, bfloat16, tmp_path, weights):
    source, expected = bfloat16
    report = ferry_json("export", source, "--to", "openvino", "-o", tmp_path / "out", "--weights", weights)
    stored = (source / "model.safetensors").stat().st_size
    assert report["dtype"] == "float32" and report["weight_bytes"] < 1.1 * stored
    matrices = [layer for layer in layers(tmp_path / "out", "Const") if layer.get("name").endswith("proj.weight")]
    assert matrices and all(layer.find("data").get("element_type") == "bf16" for layer in matrices)
    compare(openvino.run(tmp_path / "out", source / "inputs.safetensors"), expected)


def test_link(fixture, openvino, tmp_path):
    """The .bin is the checkpoint, and nothing else is needed."""
    shutil.copytree(fixture("qwen3"), tmp_path / "model", ignore=shutil.ignore_patterns("*.pt2"))
    report = ferry_json(
        "export", tmp_path / "model", "--to", "openvino", "-o", tmp_path / "model", "--weights", "link"
    )
    assert report["weight_bytes"] == 0
    assert os.readlink(tmp_path / "model/openvino_model.bin") == "model.safetensors"
    outputs = openvino.run(tmp_path / "model", tmp_path / "model/inputs.safetensors")
    compare(outputs, load_file(tmp_path / "model/expected.safetensors"))
    found = openvino.kinds(tmp_path / "model")
    assert (found["RMS"], found["RoPE"], found["Subgraph"]) == (9, 4, 2)


def test_link_leaves_the_checkpoint_alone(fixture, tmp_path):
    """Copying over a link replaces the link, not what it leads to."""
    source = tmp_path / "model"
    shutil.copytree(fixture("llama"), source, ignore=shutil.ignore_patterns("*.pt2"))
    before = (source / "model.safetensors").read_bytes()
    to_openvino(source, tmp_path / "out", "--weights", "link")
    to_openvino(source, tmp_path / "out")
    assert (source / "model.safetensors").read_bytes() == before
    assert not (tmp_path / "out/openvino_model.bin").is_symlink()


def test_link_needs_one_file(fixture, tmp_path):
    source = tmp_path / "model"
    source.mkdir()
    shutil.copyfile(fixture("llama") / "config.json", source / "config.json")
    weights, index = load_torch(fixture("llama") / "model.safetensors"), {}
    for number in range(2):
        part = dict(list(weights.items())[number::2])
        save_torch(part, source / f"{number}.safetensors", {"format": "pt"})
        index |= dict.fromkeys(part, f"{number}.safetensors")
    (source / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    done = ferry("export", source, "--to", "openvino", "-o", tmp_path / "out", "--weights", "link", status=6)
    assert "--weights copy" in done.stderr and not (tmp_path / "out").exists()
    to_openvino(source, tmp_path / "out")


def test_compress_to_fp16(fixture, openvino, tmp_path):
    source = fixture("llama")
    model = to_openvino(source, tmp_path / "out", "--compress-to-fp16")
    assert (model / "openvino_model.bin").stat().st_size < 0.6 * (source / "model.safetensors").stat().st_size
    outputs = openvino.run(model, source / "inputs.safetensors")
    expected = load_file(source / "expected.safetensors")
    compare({"logits": outputs["logits"]}, {"logits": expected["logits"]}, tolerance=5e-3)


def test_options_of_openvino_are_refused_elsewhere(fixture, tmp_path):
    for option in ("--compress-to-fp16", "--no-stateful"):
        done = ferry("export", fixture("llama"), "-o", tmp_path / "out", option, status=6)
        assert option.lstrip("-") in done.stderr


# ---- state ----


def steps():
    """Decode programs: with caches that grow, of fixed length, of convolutions and recurrences."""
    names = ("llama/dyn_decode", "llama/decode", "bart/decode", "mamba/decode", "jamba/decode", "whisper/dyn_decode",
             "qwen3_next/decode", "gemma3_text/decode", "falcon/decode", "minimax/decode")  # fmt: skip
    return [name for name in names if programs.path_of(name).exists()]


@pytest.mark.parametrize("name", steps() or ["none"])
def test_a_step_with_state(fixture, openvino, tmp_path, name):
    """One step from the recorded caches leaves the recorded ones."""
    path = programs.path_of(name)
    model = to_openvino(path, tmp_path / "out")
    inputs = path.with_name(f"{path.stem}_inputs.safetensors")
    outputs = openvino.run(model, inputs, states=inputs)
    expected = load_file(path.with_name(f"{path.stem}_expected.safetensors"))
    known = {key: value for key, value in expected.items() if key in outputs}
    assert "logits" in known and all(key in known for key in expected if key.endswith((".keys", ".values"))
                                     and "cross_attention" not in key)  # fmt: skip
    compare(outputs, known)


def greedy(directory, stateful, beams=None):
    """32 tokens; the caches are the model's, or ours."""
    import openvino

    core = openvino.Core()
    model = core.compile_model(f"{directory}/openvino_model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    session, batch, tokens = model.create_infer_request(), 2, []
    prompt = np.random.default_rng(0).integers(1, 100, (batch, 5))
    caches = {}
    for port in model.inputs:
        if "cache" in port.any_name:
            sizes = [size.get_length() if size.is_static else 0 for size in port.get_partial_shape()]
            caches[port.any_name] = np.zeros([batch, *sizes[1:]], np.float32)
    for step in range(5 + 32):
        ids = prompt[:, step : step + 1] if step < 5 else tokens[-1][:, None]
        feeds = {"input_ids": ids, "position_ids": np.full((batch, 1), step), **caches}
        rows = np.arange(batch, dtype=np.int32)
        if beams is not None and step == 10:
            rows = np.array(beams, np.int32)
            caches = {name: value[rows] for name, value in caches.items()}
            feeds.update(caches)
        if stateful:
            feeds["beam_idx"] = rows
        results = session.infer(feeds)
        caches = {name: np.array(results[name.replace("input.", "output.")]) for name in caches}
        tokens.append(results["logits"][:, -1].argmax(-1))
    return np.stack(tokens[4:]).tolist()


@pytest.mark.parametrize("beams", [None, [1, 1]], ids=["plain", "beams"])
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_greedy_tokens_with_and_without_state(fixture, tmp_path, model_type, beams):
    program = fixture(model_type) / "dyn_decode.pt2"
    kept = to_openvino(program, tmp_path / "kept")
    given = to_openvino(program, tmp_path / "given", "--no-stateful")
    tokens = greedy(kept, True, beams)
    assert len(tokens) == 33 and tokens == greedy(given, False, beams)


def test_a_model_without_caches_to_take_has_no_state(fixture, tmp_path):
    model = to_openvino(fixture("llama"), tmp_path / "out")
    assert not layers(model, "ReadValue") and not layers(model, "Assign")
    assert [layer.get("name") for layer in layers(model, "Parameter")] == ["input_ids", "attention_mask"]


# ---- Transformers ----


def test_transformers_runs_our_export(fixture, tmp_path):
    source = fixture("llama")
    model = to_openvino(source, tmp_path / "out", "--inputs", source / "inputs.safetensors", "--dynamic")
    exported = ExportedModel.from_pretrained(model).to("cpu", config={"INFERENCE_PRECISION_HINT": "f32"})
    outputs = exported(**load_torch(source / "inputs.safetensors"))
    assert type(outputs).__name__ == "CausalLMOutputWithPast"
    assert type(outputs.cache) is transformers.DynamicCache
    compare({"logits": outputs.logits.numpy()}, {"logits": load_file(source / "expected.safetensors")["logits"]})


def test_transformers_runs_our_stateful_export(fixture, tmp_path):
    model = to_openvino(fixture("llama") / "dyn_decode.pt2", tmp_path / "out")
    exported = ExportedModel.from_pretrained(model)
    ids = torch.tensor([[3], [5]])
    outputs = exported(input_ids=ids, position_ids=torch.zeros_like(ids))
    assert list(outputs) == ["logits"] and outputs.logits.shape == (2, 1, 128)
