"""What the options of an export change, seen from ONNX Runtime and the eager model."""

import numpy as np
import onnx
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file
from support import compare, ferry, ferry_json, run_onnxruntime


def eager(model_class, source, inputs, dtype=torch.float32):
    model = getattr(transformers, model_class).from_pretrained(
        source, attn_implementation="eager", dtype=dtype
    )
    with torch.no_grad():
        outputs = model.eval()(**{name: torch.from_numpy(array) for name, array in inputs.items()})
    return {
        name: value.float().numpy()
        for name, value in outputs.items()
        if isinstance(value, torch.Tensor)
    }


def shapes(ports):
    return {
        port.name: [size.dim_param or size.dim_value for size in port.type.tensor_type.shape.dim]
        for port in ports
    }


@pytest.mark.parametrize("opset", range(18, 25))
@pytest.mark.parametrize("model_type", ["gemma3_text", "modernbert", "gpt_neox"])
def test_opset(fixture, tmp_path, model_type, opset):
    source = fixture(model_type)
    ferry("export", source, "-o", tmp_path, "--opset", str(opset), "-q")
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    assert {entry.domain: entry.version for entry in model.opset_import} == {"": opset}
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    outputs = run_onnxruntime(tmp_path / "model.onnx", load_file(source / "inputs.safetensors"))
    compare(outputs, load_file(source / "expected.safetensors"))


@pytest.mark.parametrize(
    "model_type,dtype,tolerance",
    [
        ("llama", "float64", 1e-4),
        ("gemma2", "float64", 1e-4),
        ("llama", "float16", 2e-2),
        ("gemma2", "float16", 2e-2),
        ("bert", "float16", 2e-2),
    ],
)
def test_dtype(fixture, tmp_path, model_type, dtype, tolerance):
    source = fixture(model_type)
    # bert in float64 is not here: ONNX Runtime has no kernel for its Erf.
    report = ferry_json("export", source, "-o", tmp_path, "--dtype", dtype)
    assert report["dtype"] == dtype and report["outputs"][0]["dtype"] == dtype
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    outputs = run_onnxruntime(tmp_path / "model.onnx", load_file(source / "inputs.safetensors"))
    compare(outputs, load_file(source / "expected.safetensors"), tolerance)


def test_bfloat16_is_valid_onnx(fixture, tmp_path):
    """ONNX Runtime's CPU provider has no kernels for it, so nothing runs here."""
    done = ferry("export", fixture("llama"), "-o", tmp_path, "--dtype", "bfloat16")
    assert "note: " in done.stderr
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    (embedding,) = [w for w in model.graph.initializer if w.name == "model.embed_tokens.weight"]
    assert embedding.data_type == onnx.TensorProto.BFLOAT16


def test_without_options_sizes_are_dynamic(fixture, tmp_path):
    ferry("export", fixture("bert"), "-o", tmp_path)
    graph = onnx.load(tmp_path / "model.onnx", load_external_data=False).graph
    assert shapes(graph.input) == {
        "input_ids": ["batch", "sequence"],
        "attention_mask": ["batch", "sequence"],
    }
    assert shapes(graph.output) == {"logits": ["batch", "sequence", 128]}


def test_sample_inputs_fix_the_sizes(fixture, tmp_path):
    source = fixture("bert")
    ferry("export", source, "-o", tmp_path, "--inputs", source / "inputs.safetensors")
    graph = onnx.load(tmp_path / "model.onnx", load_external_data=False).graph
    assert shapes(graph.input)["input_ids"] == [2, 7]
    assert shapes(graph.output) == {"logits": [2, 7, 128]}
    outputs = run_onnxruntime(tmp_path / "model.onnx", load_file(source / "inputs.safetensors"))
    compare(outputs, load_file(source / "expected.safetensors"))


def test_dynamic_shapes(fixture, tmp_path):
    source = fixture("llama")
    spec = "input_ids=rows:1..4,2;attention_mask=rows,2;position_ids=rows,2"
    ferry("export", source, "-o", tmp_path, "--dynamic-shapes", spec, "--no-cache")
    graph = onnx.load(tmp_path / "model.onnx", load_external_data=False).graph
    assert shapes(graph.input) == {
        name: ["rows", 2] for name in ("input_ids", "attention_mask", "position_ids")
    }
    assert shapes(graph.output) == {"logits": ["rows", 2, 128]}
    inputs = {
        "input_ids": np.array([[5, 6], [7, 8], [9, 10]]),
        "attention_mask": np.ones((3, 2), np.int64),
        "position_ids": np.array([[0, 1], [3, 4], [10, 11]]),
    }
    outputs = run_onnxruntime(tmp_path / "model.onnx", inputs)
    compare(outputs, eager("LlamaForCausalLM", source, inputs))


def test_no_cache(fixture, tmp_path):
    report = ferry_json("export", fixture("llama"), "-o", tmp_path, "--no-cache")
    assert [port["name"] for port in report["outputs"]] == ["logits"]


def test_task_of_the_base_model(fixture, tmp_path):
    source = fixture("llama")
    inputs = load_file(source / "inputs.safetensors")
    ferry("export", source, "-o", tmp_path, "--task", "feature-extraction", "--no-cache")
    outputs = run_onnxruntime(tmp_path / "model.onnx", inputs)
    compare(outputs, eager("LlamaModel", source, inputs))


# ---- faults that exporters are known for ----


def test_samples_of_size_one_stay_dynamic(fixture, tmp_path):
    source = fixture("llama")
    samples = {name: np.ones((1, 1), np.int64) for name in ("input_ids", "attention_mask")}
    save_file(samples, tmp_path / "samples.safetensors")
    ferry(
        "export", source, "-o", tmp_path, "--inputs", tmp_path / "samples.safetensors", "--dynamic"
    )
    graph = onnx.load(tmp_path / "model.onnx", load_external_data=False).graph
    assert shapes(graph.input)["input_ids"] == ["batch", "sequence"]
    for sample in ("", "second_"):
        inputs = load_file(source / f"{sample}inputs.safetensors")
        outputs = run_onnxruntime(tmp_path / "model.onnx", inputs)
        compare(outputs, load_file(source / f"{sample}expected.safetensors"))


@pytest.mark.parametrize("model_type", ["llama", "mistral", "gemma2", "gpt2", "bert", "modernbert"])
def test_samples_without_padding_keep_the_mask(fixture, tmp_path, model_type):
    """The mask is an input that works, though every token of the samples was attended to."""
    source = fixture(model_type)
    samples = load_file(source / "inputs.safetensors")
    samples["attention_mask"] = np.ones_like(samples["attention_mask"])
    save_file(samples, tmp_path / "samples.safetensors")
    ferry(
        "export", source, "-o", tmp_path, "--inputs", tmp_path / "samples.safetensors", "--dynamic"
    )
    inputs = dict(samples, attention_mask=samples["attention_mask"].copy())
    inputs["attention_mask"][0, -3:] = 0
    outputs = run_onnxruntime(tmp_path / "model.onnx", inputs)
    model_class = ferry_json("show", tmp_path)["architecture"]
    expected = eager(model_class, source, inputs)
    attended = inputs["attention_mask"].astype(bool)
    compare({"x": outputs["logits"][attended]}, {"x": expected["logits"][attended]})


@pytest.mark.parametrize(
    "model_type", ["llama", "mistral", "gemma3_text", "bloom", "bert", "mpnet"]
)
def test_rows_without_any_token_are_finite(fixture, export, model_type):
    inputs = load_file(fixture(model_type) / "inputs.safetensors")
    inputs["attention_mask"] = inputs["attention_mask"].copy()
    inputs["attention_mask"][0] = 0
    outputs = run_onnxruntime(export(model_type) / "model.onnx", inputs)
    assert all(np.isfinite(output).all() for output in outputs.values())
    model_class = ferry_json("show", export(model_type))["architecture"]
    expected = eager(model_class, fixture(model_type), inputs)["logits"]
    compare({"x": outputs["logits"][1:]}, {"x": expected[1:]})


def test_bfloat16_checkpoint_runs_on_the_cpu(fixture, tmp_path):
    source = tmp_path / "model"
    model = transformers.LlamaForCausalLM.from_pretrained(fixture("llama"), dtype=torch.bfloat16)
    model.save_pretrained(source)
    done = ferry("export", source, "-o", tmp_path / "out")
    assert "note: " in done.stderr and "float32" in done.stderr
    inputs = load_file(fixture("llama") / "inputs.safetensors")
    outputs = run_onnxruntime(tmp_path / "out/model.onnx", inputs)
    compare(outputs, eager("LlamaForCausalLM", source, inputs))


@pytest.mark.parametrize("model_type", ["llama", "bert"])
def test_no_debug_data_in_the_model(export, model_type):
    model = onnx.load(export(model_type) / "model.onnx", load_external_data=False)
    assert not model.doc_string and not model.graph.doc_string
    for node in model.graph.node:
        assert not node.doc_string and not node.metadata_props
    size = (export(model_type) / "model.onnx").stat().st_size
    assert size < 400 * len(model.graph.node)


@pytest.mark.parametrize("model_type", ["llama", "bert", "falcon"])
def test_sizes_are_numbers_or_names(export, model_type):
    graph = onnx.load(export(model_type) / "model.onnx", load_external_data=False).graph
    for ports in (graph.input, graph.output):
        for name, sizes in shapes(ports).items():
            assert all(
                size and not str(size).isdigit() or size == int(size) for size in sizes
            ), name


@pytest.mark.parametrize("model_type", ["llama", "bert"])
def test_every_value_has_a_type(export, model_type):
    graph = onnx.load(export(model_type) / "model.onnx", load_external_data=False).graph
    known = {value.name for value in (*graph.value_info, *graph.input, *graph.output)}
    missing = [name for node in graph.node for name in node.output if name and name not in known]
    assert missing == []


def test_weights_keep_their_names(fixture, export):
    graph = onnx.load(export("llama") / "model.onnx", load_external_data=False).graph
    names = {weight.name for weight in graph.initializer}
    missing = set(load_file(fixture("llama") / "model.safetensors")) - names
    assert missing == set()
