"""A reference interpreter of MLX delegates, on torch: the graph read by the schema of the executorch package,
and the numbers of MLX's operations as its sources define them, result types included."""

import struct
from pathlib import Path

import executorch
import torch
from flat import Reader, Schema

SCHEMA = Schema(Path(executorch.__path__[0]) / "backends/mlx/serialization/schema.fbs")
F = torch.nn.functional

DTYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16,
    6: torch.float32, 11: torch.bool, 15: torch.bfloat16, 28: torch.uint32,
}  # fmt: skip


def read_blob(blob: bytes):
    """The graph of a blob, whose tensors and values are checked to exist."""
    zero, magic, offset, size = struct.unpack_from("<I4sQQ", blob)
    assert (zero, magic, size) == (0, b"MLX0", 0) and offset == len(blob) and offset % 16 == 0
    graph = Reader(SCHEMA, blob[24:offset]).root("MLXGraph")
    assert graph.version == "1" and graph.init_chain_idx == -1
    assert len(graph.input_map) == graph.num_input_tensors and len(graph.output_map) == graph.num_output_tensors
    constants = sorted(named.slot.idx for named in graph.named_slots)
    assert constants == list(range(graph.num_constant_tensors))
    assert all(dim.value >= 0 for meta in graph.tensor_meta[: len(constants)] for dim in meta.shape)
    return graph


def fits(meta, tensor) -> bool:
    """Whether a tensor from outside is one that the graph was made for."""
    return (
        DTYPES[meta.scalar_type] == tensor.dtype
        and len(meta.shape) == tensor.dim()
        and all(
            dim.value == size if dim.value >= 0 else dim.min_value <= size <= (dim.max_value % 2**32)
            for dim, size in zip(meta.shape, tensor.shape)
        )
    )


class Interpreter:
    def __init__(self, graph, named_data: dict):
        self.graph, self.constants = graph, {}
        for named in graph.named_slots:
            meta = graph.tensor_meta[named.slot.idx]
            shape = [dim.value for dim in meta.shape]
            data = bytearray(named_data[named.name])
            dtype = DTYPES[meta.scalar_type]
            self.constants[named.slot.idx] = torch.frombuffer(data, dtype=dtype).reshape(shape)

    def run(self, inputs: list) -> list:
        graph = self.graph
        self.tensors, self.values = dict(self.constants), {}
        for slot, tensor in zip(graph.input_map, inputs, strict=True):
            assert fits(graph.tensor_meta[slot.idx], tensor), f"input {slot.idx} is no {tuple(tensor.shape)} {tensor.dtype}"
            self.tensors[slot.idx] = tensor
        for instruction in graph.instruction_chains[graph.main_chain_idx].instructions:
            node = instruction.op
            try:
                OPERATIONS[node.type_name.removesuffix("Node")](self, node)
            except Exception as error:
                error.add_note(f"in {node}")
                raise
        outputs = []
        for slot in graph.output_map:
            meta, tensor = graph.tensor_meta[slot.idx], self.tensors[slot.idx]
            tensor = tensor.contiguous().to(DTYPES[meta.scalar_type])
            assert fits(meta, tensor), f"output {slot.idx} is {tuple(tensor.shape)} {tensor.dtype}"
            outputs.append(tensor)
        return outputs

    def set(self, number: int, tensor):
        graph = self.graph
        first = graph.num_constant_tensors + graph.num_input_tensors
        count = graph.num_output_tensors + graph.num_mutable_buffer_tensors + graph.num_temp_tensors
        assert first <= number < first + count, f"writes tensor {number}"
        self.tensors[number] = tensor

    def set_value(self, number: int, value: int):
        assert number < self.graph.num_values and -(2**31) <= value < 2**31
        self.values[number] = value

    def int(self, field) -> int:
        return self.values[field.vid] if field.is_vid else max(min(field.literal, 2**31 - 1), -(2**31))

    def ints(self, fields) -> list:
        return [self.int(field) for field in fields]


# ---- operations ----


def widened(x):
    """Sums and products of small integers are counted in 32 bits."""
    return x.int() if x.dtype in (torch.bool, torch.int8, torch.int16) else x


def take(interpreter, node):
    x, index, axis = interpreter.tensors[node.x], node.index, node.axis
    if index.kind == 2:
        at = interpreter.tensors[index.tid].long()
        at = torch.where(at < 0, at + x.shape[axis], at)
        return x.index_select(axis, at.flatten()).reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])
    return x.select(axis, index.literal if index.kind == 0 else interpreter.values[index.vid])


def take_along_axis(x, at, axis):
    shape = [max(a, b) for a, b in zip(x.shape, at.shape)]
    broadcast = [size if d != axis else -1 for d, size in enumerate(shape)]
    return x.expand(broadcast).gather(axis, at.long().expand(broadcast))


def attention(interpreter, node):
    q, k, v = (interpreter.tensors[name] for name in (node.q, node.k, node.v))
    assert q.dim() == k.dim() == v.dim() == 4 and q.dtype == k.dtype == v.dtype
    repeats = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
    scores = (q * node.scale) @ k.transpose(-1, -2)
    lowest = torch.finfo(scores.dtype).min
    if node.causal:
        shown = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
        scores = scores.masked_fill(~shown, lowest)
    if node.mask is not None:
        assert not node.causal
        mask = interpreter.tensors[node.mask].expand(scores.shape)
        scores = scores.masked_fill(~mask, lowest) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores.float(), -1).to(q.dtype) @ v


def arange(interpreter, node):
    start, stop, step = (interpreter.int(field) for field in (node.start, node.stop, node.step))
    assert (stop - start) * step > 0, "MLX's runtime refuses an empty range"
    return torch.arange(start, stop, step, dtype=DTYPES[3 if node.scalar_type is None else node.scalar_type])


def full(interpreter, node):
    shape = interpreter.ints(node.shape)
    assert all(size > 0 for size in shape), "MLX's runtime refuses to fill a tensor of nothing"
    value = interpreter.values[node.v.vid] if node.v.is_vid else node.v.literal
    return torch.full(shape, float(torch.tensor(value, dtype=torch.float32)), dtype=DTYPES[node.scalar_type])


def floor_divide(a, b):
    """The runtime divides integers as floats, and corrects where signs differ."""
    if a.is_floating_point():
        return torch.floor(a / b)
    quotient = a.float() / b.float()
    return quotient - ((torch.remainder(a, b) != 0) & ((a < 0) != (b < 0))).to(a.dtype)


def slice_(interpreter, node):
    x, axis = interpreter.tensors[node.x], interpreter.int(node.axis)
    at = slice(interpreter.int(node.start), interpreter.int(node.stop), node.step)
    return x[(slice(None),) * (axis % x.dim()) + (at,)]


def split(interpreter, node):
    x, sizes = interpreter.tensors[node.x], interpreter.ints(node.sizes)
    assert len(sizes) > 1 and sum(sizes) == x.shape[node.axis]
    for number, part in zip(node.outs, x.split(sizes, node.axis), strict=True):
        interpreter.set(number, part)


def pad(interpreter, node):
    x, widths = interpreter.tensors[node.x], interpreter.ints(node.pad_width)
    assert min(widths) >= 0 and node.mode == "constant" and len(widths) == 2 * x.dim()
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)]
    return F.pad(x, [width for pair in reversed(pairs) for width in pair], value=node.constant_value)


def as_strided(interpreter, node):
    shape, strides = interpreter.ints(node.shape), interpreter.ints(node.strides)
    last = node.offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
    x = interpreter.tensors[node.x].contiguous()
    assert last < x.numel(), "a view beyond its tensor"
    return x.as_strided(shape, strides, node.offset)


def index_copy(interpreter, node):
    at, x = interpreter.tensors[node.indices], interpreter.tensors[node.dst]
    assert at.dtype == torch.int64 and at.dim() == 1
    assert node.dst >= interpreter.graph.num_constant_tensors, "the runtime does not lend a constant"
    at = torch.where(at < 0, at + x.shape[node.axis], at)
    return x.index_copy(node.axis, at, interpreter.tensors[node.update])


def gather_mm(interpreter, node):
    a, b = interpreter.tensors[node.a], interpreter.tensors[node.b]
    rows, groups = node.lhs_indices, interpreter.tensors[node.rhs_indices]
    assert rows is None and groups.dtype == torch.uint32
    return a @ b[groups.long()]


def convolution(interpreter, node, dims, transposed=False):
    letters = {1: [""], 2: ["_h", "_w"], 3: ["_d", "_h", "_w"]}[dims]
    stride, padding, dilation = ([getattr(node, word + end) for end in letters] for word in ("stride", "padding", "dilation"))
    x, w = interpreter.tensors[node.x].movedim(-1, 1), interpreter.tensors[node.w].movedim(-1, 1)
    assert dims < 3 or node.groups == 1
    if not transposed:
        functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
        return functions[dims](x, w, None, stride, padding, dilation, node.groups).movedim(1, -1)
    w = torch.cat([part.transpose(0, 1) for part in w.chunk(node.groups)])  # [in, out of a group, ...]
    extra = [getattr(node, "output_padding" + end) for end in letters]
    functions = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    return functions[dims](x, w, None, stride, padding, extra, node.groups, dilation).movedim(1, -1)


def layer_norm(interpreter, node):
    x = interpreter.tensors[node.x]
    weight, bias = (None if name is None else interpreter.tensors[name] for name in (node.weight, node.bias))
    return F.layer_norm(x, x.shape[-1:], weight, bias, node.eps)


def rms_norm(interpreter, node):
    x = interpreter.tensors[node.x]
    normal = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + node.eps)).to(x.dtype)
    return normal if node.weight is None else normal * interpreter.tensors[node.weight]


def addmm(interpreter, node):
    product = interpreter.tensors[node.mat1] @ interpreter.tensors[node.mat2]
    assert node.alpha == node.beta == 1
    return product if node.bias is None else product + interpreter.tensors[node.bias]


def clip(interpreter, node):
    low, high = (None if name is None else interpreter.tensors[name] for name in (node.a_min, node.a_max))
    x = interpreter.tensors[node.x]
    x = x if low is None else torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def all_of(x, axes):
    return axes if axes else list(range(x.dim()))


def reduction(function):
    return lambda i, n: function(i.tensors[n.x], all_of(i.tensors[n.x], n.axes), n.keepdims)


def product(x, axes, keep):
    for axis in sorted(axes, reverse=True):
        x = widened(x).prod(axis, keepdim=keep)
    return x


def unary(function):
    return lambda i, n: function(i.tensors[n.x])


def binary(function):
    def compute(i, n):
        a, b = i.tensors[n.a], i.tensors[n.b]
        assert a.dtype == b.dtype, f"{a.dtype} and {b.dtype} would be promoted"
        return function(a, b)

    return compute


def integer(function):
    return lambda i, n: i.set_value(n.out, function(i.int(n.a), i.int(n.b)))


def one_item(i, n):
    x = i.tensors[n.x]
    assert x.dtype == torch.int32, "the runtime reads 32 bits"
    i.set_value(n.out, x.item())


TENSOR_OPERATIONS = {
    "IdCopy": unary(lambda x: x), "Addmm": addmm, "Take": take, "RMSNorm": rms_norm, "LayerNorm": layer_norm,
    "TakeAlongAxis": lambda i, n: take_along_axis(i.tensors[n.x], i.tensors[n.indices], n.axis), "Sdpa": attention,
    "Add": binary(torch.add), "Multiply": binary(torch.mul), "Subtract": binary(torch.sub),
    "Divide": binary(torch.true_divide), "Maximum": binary(torch.maximum), "Minimum": binary(torch.minimum),
    "Conv1D": lambda i, n: convolution(i, n, 1), "Conv2D": lambda i, n: convolution(i, n, 2),
    "Conv3D": lambda i, n: convolution(i, n, 3), "ConvTranspose1D": lambda i, n: convolution(i, n, 1, True),
    "ConvTranspose2D": lambda i, n: convolution(i, n, 2, True), "ConvTranspose3D": lambda i, n: convolution(i, n, 3, True),
    "Gelu": lambda i, n: F.gelu(i.tensors[n.x], approximate=n.approximate), "ARange": arange, "Silu": unary(F.silu),
    "Sigmoid": unary(torch.sigmoid), "Tanh": unary(torch.tanh), "Rsqrt": unary(torch.rsqrt), "Log": unary(torch.log),
    "Softmax": lambda i, n: torch.softmax(i.tensors[n.x], n.axis), "BroadcastTo": lambda i, n: i.tensors[n.x].expand(i.ints(n.shape)),
    "Pad": pad, "Where": lambda i, n: torch.where(i.tensors[n.condition].bool(), i.tensors[n.x], i.tensors[n.y]),
    "Reshape": lambda i, n: i.tensors[n.x].reshape(i.ints(n.shape)), "Transpose": lambda i, n: i.tensors[n.x].permute(n.perm),
    "Slice": slice_, "AsStrided": as_strided, "AsType": lambda i, n: i.tensors[n.x].to(DTYPES[n.scalar_type]), "Full": full,
    "Concatenate": lambda i, n: torch.cat([i.tensors[t] for t in n.tensors], n.axis), "IndexCopy": index_copy,
    "Argmax": lambda i, n: i.tensors[n.x].argmax(n.axis, n.keepdims).to(torch.uint32),
    "Less": binary(torch.lt), "LessEqual": binary(torch.le), "Greater": binary(torch.gt),
    "GreaterEqual": binary(torch.ge), "Equal": binary(torch.eq), "NotEqual": binary(torch.ne),
    "LogicalNot": unary(torch.logical_not), "LogicalAnd": binary(torch.logical_and), "LogicalOr": binary(torch.logical_or),
    "Floor": unary(torch.floor), "Ceil": unary(torch.ceil), "Square": unary(torch.square), "Exp": unary(torch.exp),
    "Sin": unary(torch.sin), "Cos": unary(torch.cos), "Arctan": unary(torch.atan), "Erf": unary(torch.erf),
    "Expm1": unary(torch.expm1), "Round": unary(torch.round), "Reciprocal": unary(torch.reciprocal),
    "Sqrt": unary(torch.sqrt), "Abs": unary(torch.abs), "Neg": unary(torch.neg), "LogAddExp": binary(torch.logaddexp),
    "FloorDivide": binary(floor_divide), "Power": binary(torch.pow), "Remainder": binary(torch.remainder),
    "Sum": reduction(lambda x, axes, keep: widened(x).sum(axes, keep, dtype=widened(x).dtype)),
    "Mean": reduction(torch.mean), "Prod": reduction(product), "Max": reduction(torch.amax), "Min": reduction(torch.amin),
    "Any": reduction(lambda x, axes, keep: x.bool().any(axes, keep) if axes else x.bool()), "Clip": clip,
    "Cumsum": lambda i, n: i.tensors[n.x].cumsum(n.axis, dtype=i.tensors[n.x].dtype), "Sign": unary(torch.sign),
    "Argsort": lambda i, n: i.tensors[n.x].argsort(dim=n.axis, stable=True).to(torch.uint32), "GatherMm": gather_mm,
    "ScatterAdd": lambda i, n: i.tensors[n.x].scatter_add(n.axis, i.tensors[n.indices].long(), i.tensors[n.updates]),
    "BitwiseInvert": unary(torch.bitwise_not), "BitwiseAnd": binary(torch.bitwise_and), "BitwiseOr": binary(torch.bitwise_or),
}  # fmt: skip

OPERATIONS = {
    "Split": split,
    "ItemInt": one_item,
    "SymSize": lambda i, n: i.set_value(n.out, i.tensors[n.a].shape[n.dim]),
    "AddInt": integer(lambda a, b: a + b),
    "SubtractInt": integer(lambda a, b: a - b),
    "MultiplyInt": integer(lambda a, b: a * b),
    "FloorDivideInt": integer(lambda a, b: a // b),
    "ModInt": integer(lambda a, b: a % b),
} | {name: (lambda f: lambda i, n: i.set(n.out, f(i, n)))(function) for name, function in TENSOR_OPERATIONS.items()}
