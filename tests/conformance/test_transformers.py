"""Both ways: Transformers loads and runs what ferry exports, and ferry what Transformers exports."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import compare, ferry_json, run_ferry
from transformers import AutoConfig
from transformers.exporters import ExportedModel, OnnxConfig, OnnxExporter
from transformers.exporters.utils import get_leaf_tensors

MODELS = {
    "llama": ("LlamaForCausalLM", "CausalLMOutputWithPast"),
    "mistral": ("MistralForCausalLM", "CausalLMOutputWithPast"),
    "bert": ("BertForMaskedLM", "MaskedLMOutput"),
}
each_model = pytest.mark.parametrize("model_type", MODELS)


def flatten(outputs) -> dict:
    """The tensors of a ModelOutput, caches included, by the names that exports give them."""
    return {name: tensor.detach().numpy() for name, tensor in get_leaf_tensors(outputs).items()}


def load_eager(source, model_type):
    model_class = getattr(transformers, MODELS[model_type][0])
    return model_class.from_pretrained(source, attn_implementation="eager").eval()


@each_model
@pytest.mark.parametrize("sample", ["", "second_"], ids=["first", "second"])
def test_transformers_runs_our_export(fixture, export, model_type, sample):
    source = fixture(model_type)
    inputs = load_file(source / f"{sample}inputs.safetensors")
    exported = ExportedModel.from_pretrained(export(model_type))
    outputs = exported(**inputs)
    assert type(outputs).__name__ == MODELS[model_type][1]
    assert type(outputs) is type(load_eager(source, model_type)(**inputs))
    expected = load_file(source / f"{sample}expected.safetensors")
    compare(flatten(outputs), {name: tensor.numpy() for name, tensor in expected.items()})
    if "cache" in outputs:
        assert type(outputs.cache) is transformers.DynamicCache
        # A layer with a window counts in a Python attribute, which no graph can update: it stays 0,
        # as in the exports of Transformers itself.
        length = 0 if model_type == "mistral" else inputs["input_ids"].shape[1]
        assert outputs.cache.get_seq_length() == length


@each_model
def test_export_describes_the_model(fixture, export, model_type):
    source, directory = fixture(model_type), export(model_type)
    exported = ExportedModel.from_pretrained(directory)
    assert exported.dtype == torch.float32
    assert exported.config.to_diff_dict() == AutoConfig.from_pretrained(source).to_diff_dict()
    manifest = json.loads((directory / "export.json").read_text())
    assert manifest["schema_version"] == 1
    assert manifest["export_format"] == "onnx"
    component = manifest["components"]["model"]
    assert component["file"] == "model.onnx"
    assert component["metadata"]["architecture"] == MODELS[model_type][0]


@pytest.mark.parametrize("model_type", ["llama", "bert"])
def test_ferry_runs_their_export(fixture, tmp_path, model_type):
    source = fixture(model_type)
    model = load_eager(source, model_type)
    inputs = load_file(source / "inputs.safetensors")
    directory = tmp_path / "theirs"
    exported = OnnxExporter().export(model, dict(inputs), OnnxConfig(dynamic=True))
    exported.save_pretrained(directory)

    shown = ferry_json("show", directory)
    assert shown["kind"] == "export" and shown["format"] == "onnx"
    assert shown["architecture"] == MODELS[model_type][0]

    second = load_file(source / "second_inputs.safetensors")
    second["unknown"] = torch.zeros(1)
    save_file(second, tmp_path / "in.safetensors")
    expected = load_file(source / "second_expected.safetensors")
    outputs = run_ferry(
        directory, tmp_path / "in.safetensors", tmp_path / "out.safetensors", "onnxruntime"
    )
    compare(outputs, {name: tensor.numpy() for name, tensor in expected.items()})
