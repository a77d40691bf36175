"""Every native model type: the exported model is valid ONNX, and gives the eager outputs at two
shapes in ONNX Runtime and in the built-in runtime."""

import onnx
import pytest
import support
from safetensors.numpy import load_file
from support import compare, run_ferry, run_onnxruntime

pytestmark = pytest.mark.parametrize("model_type", support.native_fixtures() or ["none"])
samples = pytest.mark.parametrize("sample", ["", "second_"], ids=["first", "second"])


def test_valid(export, model_type):
    onnx.checker.check_model(export(model_type) / "model.onnx", full_check=True)


@samples
def test_onnxruntime(fixture, export, model_type, sample):
    source = fixture(model_type)
    inputs = load_file(source / f"{sample}inputs.safetensors")
    outputs = run_onnxruntime(export(model_type) / "model.onnx", inputs)
    compare(outputs, load_file(source / f"{sample}expected.safetensors"))


@samples
def test_reference(fixture, export, tmp_path, model_type, sample):
    source = fixture(model_type)
    inputs = source / f"{sample}inputs.safetensors"
    outputs = run_ferry(export(model_type), inputs, tmp_path / "out.safetensors", "reference")
    compare(outputs, load_file(source / f"{sample}expected.safetensors"))


@samples
def test_adapter(fixture, export, tmp_path, model_type, sample):
    """ONNX Runtime through ferry's own adapter."""
    source = fixture(model_type)
    inputs = source / f"{sample}inputs.safetensors"
    outputs = run_ferry(export(model_type), inputs, tmp_path / "out.safetensors", "onnxruntime")
    compare(outputs, load_file(source / f"{sample}expected.safetensors"))
