"""Executing a .pte on torch, independent of the ExecuTorch runtime, which knows the MLX delegate on Apple's
hardware only: the program read by the schema of the executorch package, kernels called as torch's operators."""

import struct
from pathlib import Path

import executorch
import mlx
import torch
from flat import Reader, Schema

FOLDER = Path(executorch.__path__[0]) / "exir/_serialize"
SCHEMA = Schema(FOLDER / "program.fbs", FOLDER / "scalar_type.fbs")
DTYPES = {**mlx.DTYPES, 7: torch.float64}

PRIMITIVES = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b, "sym_min": min, "sym_max": max,
}  # fmt: skip


def load(path: Path):
    """The program by its schema."""
    data = path.read_bytes()
    assert data[4:8] == b"ET12" and data[8:12] == b"eh00"
    (size,) = struct.unpack_from("<Q", data, 16)
    return Reader(SCHEMA, data[:size]).root("Program")


class Pte:
    def __init__(self, path: Path):
        data, program = path.read_bytes(), load(path)
        (base,) = struct.unpack_from("<Q", data, 24)
        (self.plan,) = program.execution_plan
        segments = [data[base + s.offset : base + s.offset + s.size] for s in program.segments]
        stored = {False: program.constant_segment, True: next(iter(program.mutable_data_segments or []), None)}
        self.stored = {key: (segments[part.segment_index], part.offsets) for key, part in stored.items() if part}
        self.kept = {}  # what buffers hold after a run
        self.named = {named.key: segments[named.segment_index] for named in program.named_data}
        self.blobs = [segments[delegate.processed.index] for delegate in self.plan.delegates]
        assert {delegate.id for delegate in self.plan.delegates} <= {"MLXBackend"}
        self.graphs = [mlx.read_blob(blob) for blob in self.blobs]
        self.delegates = [mlx.Interpreter(graph, self.named) for graph in self.graphs]

    def initial(self, value):
        """What a value holds before the program runs; lists refer to other values."""
        if value.type_name == "Null":
            return None
        if value.type_name != "Tensor":
            (held,) = (held for name, held in vars(value).items() if name != "type_name")
            return held
        dtype, sizes = DTYPES[value.scalar_type], value.sizes if value.data_buffer_idx else [0]
        if not torch.Size(sizes).numel():
            return torch.empty(sizes, dtype=dtype)
        segment, offsets = self.stored[value.allocation_info is not None]
        data = bytearray(segment[offsets[value.data_buffer_idx] :])
        return torch.frombuffer(data, dtype=dtype, count=torch.Size(sizes).numel()).reshape(sizes)

    def get(self, number: int):
        kind, held = self.plan.values[number].val.type_name, self.held[number]
        if kind in ("IntList", "TensorList"):
            return [self.held[item] for item in held]
        if kind == "OptionalTensorList":
            return [None if item < 0 else self.held[item] for item in held]
        return held

    def kernel(self, operator, args):
        name = operator.name.split("::")[1]
        if operator.name.startswith("executorch_prim"):
            *inputs, result = args
            if name == "et_view":
                self.held[result] = self.get(inputs[0]).reshape(self.get(inputs[1]))
            else:
                self.held[result] = PRIMITIVES[name](*map(self.get, inputs))
            return
        if operator.name in ("aten::sym_size", "aten::_local_scalar_dense"):
            *inputs, result = args
            x = self.get(inputs[0])
            self.held[result] = x.item() if len(inputs) == 1 else x.shape[self.get(inputs[1])]
            return
        function = getattr(getattr(torch.ops.aten, name), operator.overload or "default")
        positional, named = [], {}
        for argument, number in zip(function._schema.arguments, args):
            value = self.get(number)
            if argument.is_out:
                value = self.held[number] = torch.empty(0, dtype=self.held[number].dtype)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                positional.append(value)
        function(*positional, **named)

    def run(self, inputs: list) -> list:
        plan = self.plan
        self.held = [self.initial(value.val) for value in plan.values]
        for number, tensor in self.kept.items():
            self.held[number] = tensor
        for number, tensor in zip(plan.inputs, inputs, strict=True):
            self.held[number] = tensor.clone() if isinstance(tensor, torch.Tensor) else tensor
        for instruction in plan.chains[0].instructions:
            call = instruction.instr_args
            if call.type_name == "KernelCall":
                self.kernel(plan.operators[call.op_index], call.args)
                continue
            delegate = self.delegates[call.delegate_index]
            count = len(delegate.graph.input_map)
            results = delegate.run([self.held[number] for number in call.args[:count]])
            for number, result in zip(call.args[count:], results, strict=True):
                self.held[number] = result
        buffers = [i for i, value in enumerate(plan.values) if getattr(value.val, "extra_tensor_info", None)]
        self.kept = {number: self.held[number] for number in buffers}
        return [self.held[number] for number in plan.outputs]
