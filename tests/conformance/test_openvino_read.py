"""Every layer that the OpenVINO reader takes computes what OpenVINO computes: small models, made and run
by OpenVINO's own Python API, in the built-in runtime."""

import json
import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op
from openvino import opset15, opset16
from safetensors.numpy import save_file
from support import ROOT, compare, ferry, run_ferry

LAYERS = (ROOT / "src/source/openvino/layers.c").read_text()
CORE = ov.Core()
DTYPES = {ov.Type.f32: np.float32, ov.Type.i64: np.int64, ov.Type.i32: np.int32, ov.Type.boolean: np.bool_}


def i64(*values):
    return op.constant(np.array(values[0] if len(values) == 1 else values, np.int64))


def f32(value):
    return op.constant(np.asarray(value, np.float32))


def weight(*shape):
    return f32(np.random.default_rng(len(shape)).standard_normal(shape))


def x(shape=(-1, -1, 4), dtype=ov.Type.f32, name="x"):
    node = op.parameter(list(shape), dtype, name=name)
    node.output(0).tensor.names = {name}
    return node


def ids(shape=(-1, -1), dtype=ov.Type.i64):
    return x(shape, dtype, "ids")


def image(*shape):
    return x(shape or (-1, 4, 7, 6), name="image")


def b(name="b"):
    return x((-1, -1, 4), ov.Type.boolean, name)


def unary(name):
    return lambda: getattr(op, name)(x())


def positive(function):
    return lambda: function(op.add(op.abs(x()), f32(0.5)))


def binary(name):
    return lambda: getattr(op, name)(x(), x((-1, 1, 4), name="y"))


def reduced(name, keep):
    return lambda: getattr(op, name)(x(), i64(np.array([-1, 0])), keep)


def window(spatial, value):
    return [value] * spatial


def convolution(x_shape, w_shape, spatial, stride=1, before=1, behind=1, dilation=1):
    return lambda: op.convolution(
        image(*x_shape), weight(*w_shape), window(spatial, stride), window(spatial, before),
        window(spatial, behind), window(spatial, dilation)
    )


def interpolate(mode, coordinates, nearest="floor", sizes=(9, 5), scales=None, coefficient=-0.75):
    target = f32(scales) if scales else i64(np.array(sizes))
    return lambda: opset15.interpolate(
        image(), target, mode, "scales" if scales else "sizes", axes=i64(np.array([2, 3])),
        coordinate_transformation_mode=coordinates, nearest_mode=nearest, cube_coeff=coefficient,
        pads_begin=[0, 0, 0, 0], pads_end=[0, 0, 0, 0]
    )


def rms():
    v = x()
    root = op.sqrt(op.add(op.reduce_mean(op.power(v, f32(2)), i64(np.array([-1])), True), f32(1e-6)))
    return op.multiply(op.divide(v, root), weight(4))


def is_nan():
    v = op.relu(x())
    return op.is_nan(op.divide(v, v))


def sizes():
    """Arithmetic on the sizes of an input, as the target of a reshape."""
    v = x()
    shape = op.shape_of(v)
    rows, columns = (op.gather(shape, i64(np.array([d])), i64(0)) for d in (0, 1))
    double = op.multiply(columns, i64(np.array([4])))
    half = op.divide(op.subtract(double, op.floor_mod(double, i64(np.array([2])))), i64(np.array([2])))
    return op.reshape(v, op.concat([half, rows, i64(np.array([2]))], 0), False)


def computed_constants():
    """Numbers made of the shapes of empty constants: 2 * 2^-3 over a reshape to [-1, 2]."""
    def vector(*values):
        empty = op.constant(np.zeros((0, *values), np.float32))
        step = op.shape_of(op.shape_of(op.constant(np.zeros(0, np.float32))))
        return op.strided_slice(op.shape_of(empty), step, step, step, [0], [1])

    two = op.convert(vector(2), "f32")
    minus_three = op.subtract(op.shape_of(op.constant(np.zeros(0, np.float32))), vector(3))
    number = op.multiply(two, op.power(two, op.convert(minus_three, "f32")))
    target = op.subtract(op.shape_of(op.constant(np.zeros((0, 2), np.float32))), i64([1, 0]))
    return op.multiply(op.reshape(x(), target, False), opset15.squeeze(number))


def state():
    """A state is what its layer's input says at the first run."""
    v = x((-1, 4))
    before = op.read_value(op.multiply(v, f32(3)), "s", ov.Type.f32, ov.PartialShape([-1, 4]))
    total = op.add(before, v)
    return total, op.assign(total, "s")


def attention(masked, scaled):
    shape = (-1, 2, -1, 4)
    q, k, v = (x(shape, name=name) for name in "qkv")
    mask = x((-1, 1, -1, -1), name="mask") if masked else f32(0)
    if scaled:
        return lambda: op.scaled_dot_product_attention(q, k, v, mask, f32(0.3))
    return lambda: op.scaled_dot_product_attention(q, k, v, mask) if masked else op.scaled_dot_product_attention(q, k, v)


CASES = {
    **{name: unary(name) for name in ("abs", "atan", "ceiling", "cos", "erf", "exp", "floor", "hsigmoid", "hswish",
                                      "negative", "relu", "sigmoid", "sign", "sin", "softplus", "tanh", "swish")},
    "log": positive(op.log),
    "sqrt": positive(op.sqrt),
    **{name: binary(name) for name in ("add", "subtract", "multiply", "maximum", "minimum", "less", "less_equal",
                                       "greater", "greater_equal", "divide")},
    "equal": lambda: op.equal(ids(), i64(1)),
    "not_equal": lambda: op.not_equal(ids(), i64(1)),
    "power": lambda: op.power(x(), f32(3)),
    "power of a scalar": lambda: op.power(f32(2), x()),
    "floor_mod": lambda: op.floor_mod(op.subtract(ids(), i64(1)), i64(2)),
    "mod": lambda: op.mod(x(), f32(0.7)),
    "divide whole numbers": lambda: op.divide(op.multiply(ids(), i64(6)), i64(3)),
    "clamp": lambda: op.clamp(x(), -0.5, 0.75),
    "elu": lambda: op.elu(x(), 0.7),
    "gelu": lambda: op.gelu(x(), "erf"),
    "gelu tanh": lambda: op.gelu(x(), "tanh"),
    "prelu": lambda: op.prelu(x(), f32(0.1)),
    "swish beta": lambda: op.swish(x(), f32(1.7)),
    "round": lambda: op.round(op.multiply(x(), f32(2)), "half_to_even"),
    "is_nan": is_nan,
    "logic": lambda: op.logical_or(op.logical_and(b(), b("c")), op.logical_xor(op.logical_not(b("d")), b("e"))),
    "bitwise": lambda: op.bitwise_or(op.bitwise_and(ids(), i64(3)), op.bitwise_not(x((-1, -1), ov.Type.i64, "y"))),
    "select": lambda: op.select(b(), x(), f32(7)),
    "convert": lambda: op.convert(op.multiply(x(), f32(3)), "i32"),
    "convert_like": lambda: op.convert_like(ids(), f32(1)),
    "identity": lambda: opset16.identity(x()),
    "concat": lambda: op.concat([x(), x((-1, -1, 2), name="y")], -1),
    "broadcast": lambda: op.broadcast(x((-1, 1, 4)), i64(np.array([2, 1, 3, 4])), broadcast_spec="bidirectional"),
    "broadcast numpy": lambda: op.broadcast(x((1, 4)), i64(np.array([3, 2, 4])), broadcast_spec="numpy"),
    "tile": lambda: op.tile(x(), i64(np.array([1, 2, 3]))),
    "transpose": lambda: op.transpose(x(), i64(np.array([2, 0, 1]))),
    "reshape": lambda: op.reshape(x(), i64(np.array([0, -1])), True),
    "squeeze": lambda: op.squeeze(x((-1, 1, 4)), i64(np.array([1]))),
    "unsqueeze": lambda: op.unsqueeze(x(), i64(np.array([0, -1]))),
    "shape_of": lambda: op.shape_of(x(), "i32"),
    "sizes": sizes,
    "computed constants": computed_constants,
    "range": lambda: op.range(i64(1), op.gather(op.shape_of(x()), i64(1), i64(0)), i64(2), "f32"),
    "slice": lambda: op.slice(x(), i64(np.array([1, -3])), i64(np.array([2**31, -1])), i64(np.array([1, 2])),
                              i64(np.array([1, 2]))),
    "split": lambda: op.split(x(), i64(2), 2).outputs(),
    "variadic_split": lambda: op.variadic_split(x(), i64(2), i64(np.array([1, 3]))).outputs(),
    "gather": lambda: op.gather(weight(5, 3), ids(), i64(0)),
    "gather along 1": lambda: op.gather(x(), op.constant(np.array([1, 0, -1], np.int32)), i64(1)),
    "gather one": lambda: op.gather(x(), i64(1), i64(2)),
    "gather_elements": lambda: op.gather_elements(x((-1, 4)), ids((-1, 3)), 1),
    "gather_nd": lambda: op.gather_nd(x(), ids((-1, 2)), 0),
    "scatter_elements_update": lambda: op.scatter_elements_update(x((3, 4)), i64([[0, 1], [1, 1], [2, 0]]), x((3, 2), name="u"),
                                                                  i64(1), "sum"),
    "scatter_elements_update none": lambda: op.scatter_elements_update(x((3, 4)), i64([[0, 1], [1, 2], [2, 0]]),
                                                                       x((3, 2), name="u"), i64(1)),
    "scatter_nd_update": lambda: op.scatter_nd_update(x((3, 4)), i64([[0], [2]]), x((2, 4), name="u")),
    "scatter_nd_update sum": lambda: opset15.scatter_nd_update(x((3, 4)), i64([[0], [0]]), x((2, 4), name="u"), "sum"),
    "scatter_update": lambda: op.scatter_update(x((3, 4)), i64(np.array([2, 0])), x((2, 4), name="u"), i64(0)),
    "non_zero": lambda: op.non_zero(ids(), "i64"),
    "topk": lambda: op.topk(x(), i64(2), -1, "max", "value", "i64", True).outputs(),
    "topk smallest": lambda: op.topk(x(), i64(3), 2, "min", "value", "i32", True).outputs(),
    "cum_sum": lambda: op.cum_sum(x(), i64(1)),
    **{f"{name} {keep}": reduced(name, keep) for keep in (True, False)
       for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")},
    "reduce_logical_or": lambda: op.reduce_logical_or(b(), i64(np.array([1, 2])), False),
    "reduce_logical_and": lambda: op.reduce_logical_and(b(), i64(np.array([-1])), True),
    "softmax": lambda: op.softmax(x(), -1),
    "matmul": lambda: op.matmul(x(), weight(4, 3), False, False),
    "matmul transposed": lambda: op.matmul(x(), weight(3, 4), False, True),
    "matmul of stacks": lambda: op.matmul(x(), x((-1, -1, 3), name="y"), True, False),
    "half weight": lambda: op.matmul(x(), op.convert(op.constant(np.ones((3, 4), np.float16) / 3), "f32"), False, True),
    "rms": rms,
    "mvn": lambda: op.mvn(x(), i64(np.array([-1])), True, 1e-5, "INSIDE_SQRT"),
    "mvn over two": lambda: op.mvn(x(), i64(np.array([1, 2])), True, 1e-5, "INSIDE_SQRT"),
    "group_normalization": lambda: op.group_normalization(image(), weight(4), weight(4), 2, 1e-5),
    "batch_norm_inference": lambda: op.batch_norm_inference(image(), weight(4), weight(4), weight(4),
                                                           f32(np.ones(4)), 1e-5),
    "attention": attention(False, False),
    "attention masked": attention(True, False),
    "attention scaled": attention(True, True),
    "attention scaled without mask": attention(False, True),
    "convolution": convolution((-1, 4, 7, 6), (3, 4, 3, 3), 2),
    "convolution 1d": convolution((-1, 4, 9), (3, 4, 3), 1, stride=2, dilation=2),
    "convolution uneven": convolution((-1, 4, 7, 6), (3, 4, 2, 2), 2, before=0, behind=1),
    "group_convolution": lambda: op.group_convolution(image(), weight(2, 3, 2, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1]),
    "convolution_backprop_data": lambda: op.convolution_backprop_data(
        image(), weight(4, 3, 3, 3), [2, 2], None, [1, 1], [1, 1], [1, 1], output_padding=[1, 1]),
    "group_convolution_backprop_data": lambda: op.group_convolution_backprop_data(
        image(), weight(2, 2, 3, 3, 3), [2, 2], None, [1, 1], [1, 1], [1, 1], output_padding=[1, 0]),
    "max_pool": lambda: op.max_pool(image(), [2, 2], [1, 1], [1, 1], [1, 1], [3, 3], "floor").output(0),
    "max_pool to the end": lambda: op.max_pool(image(), [2, 2], [1, 1], [0, 0], [1, 1], [3, 3], "floor").output(0),
    "avg_pool": lambda: op.avg_pool(image(), [2, 2], [1, 1], [1, 1], [3, 3], False, "floor"),
    "avg_pool without pads": lambda: op.avg_pool(image(), [2, 2], [1, 1], [1, 1], [3, 3], True, "floor"),
    "avg_pool to the end": lambda: op.avg_pool(image(), [2, 2], [0, 0], [1, 1], [3, 3], True, "floor"),
    "pad": lambda: op.pad(image(), i64(np.array([0, 0, 1, 2])), i64(np.array([0, 1, 0, 3])), "constant", f32(1.5)),
    "pad reflect": lambda: op.pad(image(), i64(np.array([0, 0, 1, 2])), i64(np.array([0, 0, 0, 3])), "reflect"),
    "pad edge": lambda: op.pad(image(), i64(np.array([0, 0, 1, 2])), i64(np.array([0, 0, 0, 3])), "edge"),
    "interpolate nearest": interpolate("nearest", "asymmetric"),
    "interpolate nearest exact": interpolate("nearest", "half_pixel", "round_prefer_ceil"),
    "interpolate linear": interpolate("linear_onnx", "half_pixel"),
    "interpolate linear corners": interpolate("linear_onnx", "align_corners"),
    "interpolate scales": interpolate("linear_onnx", "half_pixel", scales=[2.0, 1.5]),
    "interpolate cubic": interpolate("cubic", "half_pixel"),
    "interpolate bilinear_pillow": interpolate("bilinear_pillow", "half_pixel", sizes=(3, 4)),
    "interpolate bicubic_pillow": interpolate("bicubic_pillow", "half_pixel", sizes=(3, 4), coefficient=-0.5),
    "grid_sample": lambda: op.grid_sample(image(), x((-1, 3, 5, 2), name="grid"), {"mode": "bilinear"}),
    "state": state,
}
SIZES = {0: 2, 1: 3, 2: 5, 3: 5}


def find_parameters(outputs):
    """The parameters below some outputs, by name."""
    found, seen, stack = {}, set(), [output.get_node() for output in outputs]
    while stack:
        node = stack.pop()
        if node.get_name() in seen:
            continue
        seen.add(node.get_name())
        if node.get_type_name() == "Parameter":
            found[node.get_friendly_name()] = node
        stack += [value.get_node() for value in node.input_values()]
    return [found[name] for name in sorted(found)]


def make_inputs(parameters):
    random = np.random.default_rng(0)
    inputs = {}
    for node in parameters:
        shape = [SIZES[d] if size.is_dynamic else size.get_length() for d, size in enumerate(node.get_partial_shape())]
        dtype = DTYPES[node.get_element_type()]
        floats = np.issubdtype(dtype, np.floating)
        values = random.standard_normal(shape) if floats else random.integers(0, 2, shape)
        inputs[node.get_friendly_name()] = values.astype(dtype)
    return inputs


def save(model, directory):
    directory.mkdir(exist_ok=True)
    ov.save_model(model, directory / "model.xml", compress_to_fp16=False)
    component = {"file": "model.xml", "metadata": {"architecture": "Test", "export_dtype": "float32"}}
    document = {"schema_version": 1, "export_format": "openvino", "components": {"model": component}}
    (directory / "export.json").write_text(json.dumps(document))


def build(case):
    """A model of the case: of one node, a list of outputs, or a node and one that keeps a state."""
    made = CASES[case]()
    made, sinks = (made[0], [made[1]]) if isinstance(made, tuple) else (made, [])
    outputs = made if isinstance(made, list) else [made if isinstance(made, ov.Output) else made.output(0)]
    results = []
    for i, output in enumerate(outputs):
        output.tensor.names = {f"out{i}"}
        results.append(op.result(output))
    return ov.Model(results, sinks, find_parameters(outputs), "test")


@pytest.mark.parametrize("case", CASES)
def test_layer(case, tmp_path):
    model = build(case)
    inputs = make_inputs(model.get_parameters())
    save(model, tmp_path / "model")
    save_file(inputs, tmp_path / "inputs.safetensors")
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = {port.any_name: value.copy() for port, value in compiled(inputs).items()}
    found = run_ferry(tmp_path / "model", tmp_path / "inputs.safetensors", tmp_path / "out.safetensors", "reference")
    compare(found, expected, 1e-5)


def test_every_row_has_a_case():
    """Each layer of the reader's table is in a model above."""
    rows = set(re.findall(r'^    \{\{"(\w+)"', LAYERS, re.MULTILINE))
    used = set()
    for case in CASES:
        used |= {node.get_type_name() for node in build(case).get_ops()}
    spelled = {"Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
    assert rows <= {spelled.get(name, name) for name in used}
