"""Every operator that the ONNX reader takes computes what ONNX Runtime computes: the graphs of
onnx_operators.txt in the built-in runtime and in ONNX Runtime."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from safetensors.numpy import load_file, save_file
from support import compare, ferry

SIZES = {"N": 3, "S": 5, "M": 2}
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}
OPSET = 22
OPSETS = {"RMSNormalization": 23, "RotaryEmbedding": 23}
CASES = re.findall(
    r"^(\w[^:\n]*): (.*) -> (.*)\n((?: +.*\n)+)",
    (Path(__file__).parent / "onnx_operators.txt").read_text(),
    re.MULTILINE,
)


def name_constants(body):
    """Arguments that are numbers or lists of numbers become Constant nodes."""
    constants = []

    def name(match):
        literal, kind = match[0], "float" if "." in match[0] else "int"
        plural = "s" if literal.startswith("[") else ""
        constants.append(f"c{len(constants)} = Constant<value_{kind}{plural}={literal}>()")
        return f"c{len(constants) - 1}"

    def arguments(match):
        return re.sub(r"\[[^\]]*\]|(?<![\w.])-?\d+(\.\d+)?", name, match[0])

    body = re.sub(r"\([^()]*\)", arguments, body)
    return " ".join([*constants, body])


def make_model(inputs, outputs, body, opset=OPSET):
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs})'
    model = onnx.parser.parse_model(f"{text} {{ {name_constants(body)} }}")
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def make_inputs(model):
    random = np.random.default_rng(0)
    inputs = {}
    for port in model.graph.input:
        tensor = port.type.tensor_type
        shape = [SIZES.get(d.dim_param, d.dim_value) for d in tensor.shape.dim]
        dtype = DTYPES[tensor.elem_type]
        floats = np.issubdtype(dtype, np.floating)
        values = random.standard_normal(shape) if floats else random.integers(0, 2, shape)
        inputs[port.name] = np.asarray(values).astype(dtype)
    return inputs


def save_export(directory, model):
    onnx.save(model, directory / "model.onnx")
    component = {"file": "model.onnx", "metadata": {"architecture": "Case"}}
    manifest = {"schema_version": 1, "export_format": "onnx", "components": {"model": component}}
    (directory / "export.json").write_text(json.dumps(manifest))


def run_unoptimized(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip([port.name for port in session.get_outputs()], session.run(None, feeds)))


@pytest.mark.parametrize("name, inputs, outputs, body", CASES, ids=[case[0] for case in CASES])
def test_operator(tmp_path, name, inputs, outputs, body):
    model = make_model(inputs, outputs, body, OPSETS.get(name.split()[0], OPSET))
    feeds = make_inputs(model)
    expected = run_unoptimized(model, feeds)
    given, made = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_export(tmp_path, model)
    save_file(feeds, given)
    ferry("run", tmp_path, "--inputs", given, "--output", made, "--runtime", "reference")
    actual = load_file(made)
    assert {n: v.dtype for n, v in actual.items()} == {n: v.dtype for n, v in expected.items()}
    compare(actual, expected, 1e-3 if "half" in name else 1e-5)
