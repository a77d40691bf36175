#!/usr/bin/env python3
"""Write the seeds of the fuzzers, corpus/<fuzzer>/<name>: small inputs that reach most of each reader.

The same bytes come out every time. Only the standard library is used, but for the programs that write, which torch
traces.
"""
import base64
import io
import json
import pathlib
import re
import runpy
import struct
import tarfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).parent / "corpus"
FIXTURES = pathlib.Path(__file__).parents[3] / "shared/fixtures"


def write(fuzzer, name, content):
    directory = ROOT / fuzzer
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def make_safetensors():
    dtypes = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F16": 2, "BF16": 2, "F32": 4,
              "F64": 8, "F8_E4M3": 1, "F8_E5M2": 1}
    header, position = {"__metadata__": {"format": "pt"}}, 0
    for dtype, size in dtypes.items():
        header[f"w.{dtype}"] = entry(dtype, [2, 3], position, position + 6 * size)
        position += 6 * size
    write("safetensors", "all_dtypes", safetensors(header, bytes(position)))
    write("safetensors", "empty", safetensors({}))
    write("safetensors", "metadata", safetensors({"__metadata__": {"a": "b"}}))
    write("safetensors", "scalar", safetensors({"s": entry("F32", [], 0, 4)}, bytes(4)))
    write("safetensors", "no_elements", safetensors({"s": entry("F32", [0, 5], 0, 0)}))
    write("safetensors", "two", safetensors({"b": entry("U8", [4], 4, 8), "a": entry("U8", [4], 0, 4)}, bytes(8)))
    write("safetensors", "overlap", safetensors({"b": entry("U8", [4], 2, 6), "a": entry("U8", [4], 0, 4)}, bytes(6)))
    write("safetensors", "huge", safetensors({"a": entry("F64", [2**62, 2**62], 0, 2**63 - 1)}))
    write("safetensors", "deep", safetensors(b'{"a":' + b"[" * 200))
    write("safetensors", "truncated", struct.pack("<Q", 2**63) + b"{}")


def npy(descr, shape, data, fortran=False, version=1):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def make_npy():
    for name, content in {
        "f4": npy("<f4", (2, 3), bytes(24)),
        "fortran": npy("<i2", (2, 3, 2), bytes(range(24)), fortran=True),
        "scalar": npy("|b1", (), b"\1", version=2),
        "vector": npy("<i8", (3,), bytes(24), version=3),
        "no_elements": npy("<f8", (2, 0), b"", fortran=True),
        "objects": npy("|O", (1,), bytes(8)),
        "structured": npy([("a", "<f4")], (1,), bytes(4)),
        "huge": npy("<f8", (2**62, 2**62), b""),
        "python2": npy("<u4", (1,), bytes(4)).replace(b"(1,)", b"(1L)"),
    }.items():
        write("npy", name, content)


def npz(members, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return stream.getvalue()


def make_npz():
    simple = npy("<f4", (2, 3), bytes(24))
    write("npz", "stored", npz([("x.npy", simple)]))
    write("npz", "deflated", npz([("x.npy", simple)], zipfile.ZIP_DEFLATED))
    write("npz", "empty", npz([]))
    dtypes = ["|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8"]
    write("npz", "all_dtypes", npz([(f"{d[1:]}.npy", npy(d, (2,), bytes(2 * int(d[2])))) for d in dtypes]))
    write("npz", "fortran", npz([("x.npy", npy("<i2", (2, 3, 2), bytes(range(24)), fortran=True))]))
    write("npz", "version2", npz([("x.npy", npy("<i8", (), bytes(8), version=2))]))
    write("npz", "version3", npz([("x", npy("<i8", (0, 4), b"", version=3))]))
    write("npz", "objects", npz([("x.npy", npy("|O", (1,), bytes(8)))]))
    write("npz", "big_endian", npz([("x.npy", npy(">f4", (1,), bytes(4)))]))
    write("npz", "no_array", npz([("readme.txt", b"hello")]))
    write("npz", "twice", npz([("x.npy", simple), ("x", simple)]))


def make_sym():
    texts = ["0", "s0", "s0 + 1", "2*s0", "-s0**2", "((s0//2))", "Mod(s0, 8)", "Max(1, s0)", "Min(s0, 16, s1)",
             "(s0 + s1)*(s0 - s1)", "2*s0*s1 + 3*s2 - 7", "FloorDiv(s0 + 3, 4)", "PythonMod(s0, s1)",
             "((s0*s1)//(s1 + 1)) + Mod(s0, 3)**2", "-9223372036854775807", "(a*b + b)//(a + 1)",
             "(64*a*b)//(8*b)", "((((s0))))", "--a", "a//-1", "Mod(-7, 2)", "CleanDiv(8*a, 4)"]
    for number, text in enumerate(texts):
        write("sym", f"{number:02}", text.encode())


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(*fields):
    """Protobuf fields as (number, value): an int, a float, text, or bytes (of a message, too)."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(content)) + content
    return out


def onnx_attribute(name, value):
    if isinstance(value, list):
        return message((1, name), *((8, item) for item in value), (20, 7))
    number, kind = {int: (3, 2), float: (2, 1), str: (4, 3), bytes: (5, 4)}[type(value)]
    return message((1, name), (number, value), (20, kind))


def onnx_node(op_type, inputs, outputs, **attributes):
    attributes = [(5, onnx_attribute(name, value)) for name, value in attributes.items()]
    return (1, message(*((1, name) for name in inputs), *((2, name) for name in outputs), (3, outputs[0]),
                       (4, op_type), *attributes))


def onnx_info(number, name, dtype, *shape):
    dims = [(1, message((2 if isinstance(size, str) else 1, size))) for size in shape]
    return (number, message((1, name), (2, message((1, message((1, dtype), (2, message(*dims))))))))


def onnx_ints(name, *values):
    return (5, message((1, len(values)), (2, 7), (8, name), (9, struct.pack(f"<{len(values)}q", *values))))


def onnx_tensor(dtype, shape, data, name=""):
    return message(*((1, size) for size in shape), (2, dtype), (8, name), (9, data))


def onnx_model(*graph, opset=22):
    return message((1, 10), (7, message(*graph)), (8, message((1, ""), (2, opset))),
                   (14, message((1, "model_type"), (2, "seed"))))


def make_onnx():
    x, y = onnx_info(11, "x", 1, "batch", "seq", 8), onnx_info(12, "y", 1, "batch", "seq", 8)
    one, weight = onnx_tensor(1, [], struct.pack("<f", 1)), onnx_tensor(1, [8, 8], bytes(256), "w")
    ids, row = onnx_info(11, "ids", 7, "batch", "seq"), [onnx_ints("zero", 0), onnx_ints("one", 1)]
    unary = ["Abs", "Neg", "Exp", "Sqrt", "Tanh", "Sigmoid", "Erf", "Relu", "Softplus", "Elu", "Gelu"]
    names = ["x", *(f"v{i}" for i in range(len(unary) - 1)), "y"]
    for name, graph in {
        "unary": [x, y] + [onnx_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(unary)],
        "matmul": [x, y, (5, weight), onnx_node("MatMul", ["x", "w"], ["m"]), onnx_ints("eight", 8),
                   onnx_node("ConstantOfShape", ["eight"], ["s"], value=one),
                   onnx_node("LayerNormalization", ["m", "s"], ["y"], axis=-1, epsilon=1e-6)],
        "heads": [x, y, onnx_ints("split", 0, 0, 2, -1), onnx_ints("two", 2), *row,
                  onnx_node("Shape", ["x"], ["shape"]), onnx_node("Gather", ["shape", "one"], ["length"]),
                  onnx_node("Reshape", ["x", "split"], ["h"]),
                  onnx_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
                  onnx_node("Slice", ["t", "zero", "length", "two"], ["s"]),
                  onnx_node("Softmax", ["s"], ["p"]), onnx_node("Transpose", ["p"], ["b"], perm=[0, 2, 1, 3]),
                  onnx_node("Reshape", ["b", "shape"], ["y"], allowzero=1)],
        "gather": [ids, x, y, (5, weight), *row, onnx_node("Gather", ["w", "ids"], ["e"], axis=0),
                   onnx_node("Unsqueeze", ["ids", "last"], ["i"]), onnx_ints("last", -1),
                   onnx_node("GatherND", ["w", "i"], ["g"]), onnx_node("Sum", ["e", "g", "x"], ["y"])],
        "mask": [x, y, onnx_node("Shape", ["x"], ["length"], start=1, end=2), *row, onnx_ints("k", 1),
                 onnx_node("Squeeze", ["length", "zero"], ["n"]), onnx_node("Squeeze", ["zero"], ["n0"]),
                 onnx_node("Squeeze", ["one"], ["n1"]), onnx_node("Range", ["n0", "n", "n1"], ["r"]),
                 onnx_node("Unsqueeze", ["r", "one"], ["q"]), onnx_node("LessOrEqual", ["r", "q"], ["c"]),
                 onnx_node("Trilu", ["c", "k"], ["t"], upper=0), onnx_node("Cast", ["t"], ["f"], to=1),
                 onnx_node("ReduceSum", ["f", "one"], ["s"], keepdims=1), onnx_node("CumSum", ["s", "n0"], ["u"]),
                 onnx_node("Expand", ["u", "length"], ["e"]), onnx_node("MatMul", ["e", "x"], ["y"])],
        "split": [x, y, onnx_node("Split", ["x"], ["a", "b"], axis=2, num_outputs=2),
                  onnx_node("Constant", [], ["lo"], value=one), onnx_node("Constant", [], ["hi"], value_float=2.5),
                  onnx_node("Concat", ["b", "a"], ["c"], axis=-1), onnx_node("Clip", ["c", "lo", "hi"], ["y"])],
        "image": [onnx_info(11, "x", 1, "batch", 3, 9, "w"), (5, onnx_tensor(1, [4, 3, 2, 1], bytes(96), "k")),
                  (5, onnx_tensor(1, [4], bytes(16), "c")), onnx_ints("pads", 0, 0, 1, 0, 0, 0, 0, 2),
                  onnx_ints("sizes", 6, 5), onnx_node("Pad", ["x", "pads"], ["a"], mode="edge"),
                  onnx_node("Conv", ["a", "k", "c"], ["b"], strides=[1, 2], pads=[1, 0, 1, 0], group=1),
                  onnx_node("BatchNormalization", ["b", "c", "c", "c", "c"], ["d"], epsilon=0.5),
                  onnx_node("MaxPool", ["d"], ["e"], kernel_shape=[2, 1], strides=[2, 1], ceil_mode=1),
                  onnx_node("Resize", ["e", "", "", "sizes"], ["f"], mode="linear", axes=[2, 3]),
                  onnx_node("InstanceNormalization", ["f", "c", "c"], ["y"]),
                  onnx_info(12, "y", 1, "batch", 4, 6, 5)],
        "scatter": [ids, x, y, *row, onnx_ints("two", 2), onnx_node("NonZero", ["ids"], ["n"]),
                    onnx_node("Transpose", ["n"], ["t"], perm=[1, 0]), onnx_node("GatherND", ["x", "t"], ["g"]),
                    onnx_node("ScatterND", ["x", "t", "g"], ["s"], reduction="add"),
                    onnx_node("TopK", ["s", "two"], ["v", "i"], axis=1, largest=0),
                    onnx_node("ScatterElements", ["s", "i", "v"], ["y"], axis=1, reduction="max")],
        "external": [x, y, (5, message((1, 8), (2, 1), (8, "w"), (14, 1), (13, message((1, "location"), (2, "w.data"))),
                                       (13, message((1, "offset"), (2, "64"))))), onnx_node("Add", ["x", "w"], ["y"])],
    }.items():
        order = sorted(graph, key=lambda field: field[0] != 5)
        write("onnx", name, onnx_model(*order))


def make_config():
    """Configurations of the fixtures, cut to one layer, with the shapes of its tensors."""
    for model_type in ("llama", "gemma3_text", "phi3", "cohere", "stablelm", "gpt2", "bloom", "falcon", "gpt_neox",
                       "opt", "bert", "albert", "mpnet", "modernbert", "dinov2", "clip", "siglip", "t5", "bart", "m2m_100",
                       "whisper", "llava", "gemma3", "smolvlm", "qwen2_5_vl", "qwen3_vl", "qwen2_moe", "gpt_oss",
                       "deepseek_v3"):
        with tarfile.open(FIXTURES / f"{model_type}.tar.xz") as archive:
            content = {}
            for member in archive.getmembers():
                name = pathlib.Path(member.name).name
                if name in ("config.json", "model.safetensors"):
                    content[name] = archive.extractfile(member).read()
        config, weights = json.loads(content["config.json"]), content["model.safetensors"]
        header = json.loads(weights[8 : 8 + struct.unpack("<Q", weights[:8])[0]])
        for part in (config, config.get("text_config", {}), config.get("vision_config", {})):
            for key in ("num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "encoder_layers",
                        "decoder_layers", "depth"):
                if key in part:
                    part[key] = 1
        for key in ("layer_types", "no_rope_layers"):
            if isinstance(config.get(key), list):
                config[key] = config[key][:1]
        tensors = {name: entry["shape"] for name, entry in sorted(header.items())
                   if name != "__metadata__"
                   and not re.search(r"(?<!\.0\.layer)\.[1-9]\.", name.split(".experts.")[0])}
        text = json.dumps({"config": config, "tensors": tensors}, separators=(",", ":"), sort_keys=True)
        write("config", model_type, text.encode())


def names_in(value):
    """The tensors that an argument of a serialized program names."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("as_tensor", "as_sym_int") and isinstance(item, dict):
                yield item.get("name", item.get("as_name"))
            yield from names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)


def cut(program, count):
    """The first nodes of a program, without what only the others use."""
    graph = program["graph_module"]["graph"]
    graph["nodes"] = graph["nodes"][:count]
    used = set(names_in([node["inputs"] for node in graph["nodes"]]))
    made = set(names_in([node["outputs"] for node in graph["nodes"]]))
    last = [node["outputs"][0] for node in graph["nodes"] 
            if node["outputs"] and "as_tensor" in node["outputs"][0]][-1]
    signature = program["graph_module"]["signature"]
    kept = []
    for place, spec in zip(graph["inputs"], signature["input_specs"]):
        (kind, argument), = spec.items()
        if kind == "user_input" or set(names_in([place])) & used:
            kept.append((place, spec))
    graph["inputs"] = [place for place, _ in kept]
    signature["input_specs"] = [spec for _, spec in kept]
    graph["outputs"] = [last]
    signature["output_specs"] = [{"user_output": {"arg": last}}]
    known = made | set(names_in(graph["inputs"]))
    for table in ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"):
        graph[table] = {name: value for name, value in graph.get(table, {}).items() if name in known}
    calls = program["graph_module"]["module_call_graph"][:1]
    calls[0]["signature"]["out_spec"] = json.dumps([1, {"type": None, "context": None, "children_spec": []}])
    program["graph_module"]["module_call_graph"] = calls
    for node in graph["nodes"]:
        node["metadata"] = {}
    return program


def make_pt2():
    """The beginnings of the fixtures' programs, whose weights are all one file."""
    for model_type, count in {"llama": 24, "bert": 20, "t5": 24, "vit": 16, "mamba": 24, "whisper": 16,
                              "mixtral": 24, "modernbert": 20}.items():
        with tarfile.open(FIXTURES / f"{model_type}.tar.xz") as archive:
            content = archive.extractfile(f"{model_type}/model.pt2").read()
        archive = zipfile.ZipFile(io.BytesIO(content))
        program = cut(json.loads(archive.read("model/models/model.json")), count)
        weights, constants = (json.loads(archive.read(f"model/data/{kind}/model_{kind}_config.json"))
                              for kind in ("weights", "constants"))
        write_pt2(model_type, program, weights, constants)


def write_pt2(name, program, weights, constants):
    """A program, with the weights that it uses in one file."""
    used = {next(iter(spec.values())).get(key) for spec in program["graph_module"]["signature"]["input_specs"]
            for key in ("parameter_name", "buffer_name", "tensor_constant_name")}
    for payloads in (weights, constants):
        payloads["config"] = {name: entry | {"path_name": "weight_0"}
                              for name, entry in payloads["config"].items() if name in used}
    text = json.dumps({"program": program, "weights": weights, "constants": constants}, separators=(",", ":"))
    write("pt2", name, text.encode())


def make_pt2_writes():
    """A program that writes in place, through views of every kind."""
    import torch

    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor(5))
            self.register_buffer("table", torch.zeros(4, 6), persistent=False)

        def forward(self, x, mask, index):
            self.count.add_(1)
            self.table.index_copy_(0, index, x[:2])
            y = x.clone()
            y[:, 1::2] = 1
            y.narrow(1, 0, 2).t().mul_(2)
            y.view(-1, 2, 3).movedim(2, 0)[1].fill_(3)
            y.unfold(1, 2, 2).add_(1)
            y.split([2, 4], 1)[1].unbind(1)[0].copy_(y[:, 5])
            y[:4].diagonal(1).zero_()
            y.masked_fill_(mask, 0.5)
            y.index_put_((index,), x[:2], accumulate=True)
            x.unsqueeze(0).squeeze(0)[1:].expand(-1, -1).sub_(y[1:])
            return y, self.table.as_strided((2, 3), (6, 2), 1) * self.count, x.reshape(-1)

    x, length = torch.zeros(5, 6), torch.export.Dim("n", min=5)
    program = torch.export.export(Writes(), (x, x > 0, torch.tensor([1, 0])),
                                  dynamic_shapes=({0: length}, {0: length}, None))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    archive = zipfile.ZipFile(buffer)
    root = archive.namelist()[0].split("/")[0]
    document = json.loads(archive.read(f"{root}/models/model.json"))
    for node in document["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    document["graph_module"]["module_call_graph"] = document["graph_module"]["module_call_graph"][:1]
    write_pt2("writes", document, *(json.loads(archive.read(f"{root}/data/{kind}/model_{kind}_config.json"))
                                    for kind in ("weights", "constants")))


def make_document():
    many = {f"key{i}": [i, {"as_int": i}] for i in range(40)}
    values = {"n": None, "b": [True, False], "i": -9223372036854775808, "r": [0.5, -2.5e300, 1e-320],
              "s": "a\u00e9\n\"\\\U0001f600", "a": [], "o": {}}
    for name, value in {"many": many, "values": values, "deep": [[[[[[{"a": [{"b": {}}]}]]]]]]}.items():
        write("document", name, json.dumps(value).encode())
    write("document", "twice", b'{"a": 1, "a": 2}')
    write("document", "spaces", b' [ 1 ,\r\n\t{ "a" : 2.0 } ] ')


def openvino_net(*layers, constants=()):
    """A model as (type, opset, inputs, attributes) by layer; inputs are numbers of layers. Constants, lists of
    int64, come first; all inputs and the layers that nobody reads are its inputs and outputs."""
    weights = b"".join(struct.pack(f"<{len(values)}q", *values) for values in constants)
    text, edges, offset, read = "", "", 0, set()
    rows = []
    for values in constants:
        rows.append(("Const", 1, [], {"element_type": "i64", "shape": len(values), "offset": offset,
                                      "size": 8 * len(values)}))
        offset += 8 * len(values)
    rows += layers
    read = {source for _, _, inputs, _ in rows for source in inputs}
    rows += [("Result", 1, [number], {}) for number, row in enumerate(rows)
             if number not in read and row[0] not in ("Assign", "Const")]
    for number, (kind, opset, inputs, attributes) in enumerate(rows):
        data = "".join(f' {key}="{value}"' for key, value in attributes.items()).replace("exclude_pad", "exclude-pad")
        name = f' output_names="out{number}"' if kind == "Result" else ""
        ports = "".join(f'<port id="{i}"/>' for i in range(len(inputs)))
        text += f'<layer id="{number}" name="a/l{number}" type="{kind}" version="opset{opset}"{name}><data{data}/>'
        text += f"<input>{ports}</input>"
        count = {"Result": 0, "Assign": 0, "VariadicSplit": 2, "TopK": 2}.get(kind, 1)
        outputs = "".join(f'<port id="{9 + i}" precision="FP32" names="t{number}"/>' for i in range(count))
        text += f"<output>{outputs}</output></layer>"
        for i, source in enumerate(inputs):
            edges += f'<edge from-layer="{source}" from-port="9" to-layer="{number}" to-port="{i}"/>'
    xml = f'<?xml version="1.0"?><net name="n" version="11"><layers>{text}</layers><edges>{edges}</edges></net>'
    return xml.encode() + b"\0" + weights


def make_openvino():
    def given(shape, kind="f32"):
        return ("Parameter", 1, [], {"shape": shape, "element_type": kind})

    def plain(kind, *inputs, opset=1, **attributes):
        return (kind, opset, list(inputs), attributes)

    window = {"strides": "2,1", "dilations": "1,1", "pads_begin": "1,0", "pads_end": "1,1", "auto_pad": "explicit"}
    pool = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "1,1", "rounding_type": "floor"}
    for name, content in {
        "elementwise": openvino_net(
            given("?,4"), plain("Abs", 0), plain("Add", 0, 1, auto_broadcast="numpy"), plain("Gelu", 2, opset=7,
            approximation_mode="TANH"), plain("Swish", 3, opset=4), plain("Clamp", 4, min="-1e3", max=".5"),
            plain("Less", 5, 0), plain("Select", 6, 5, 0), plain("Convert", 7, destination_type="i32"),
            plain("Round", 7, opset=5, mode="half_to_even"), plain("Elu", 9, alpha="0.5")),
        "sizes": openvino_net(
            given("1..8,?,4"), plain("ShapeOf", 4, opset=3, output_type="i64"), plain("Gather", 5, 0, 1, opset=8),
            plain("FloorMod", 6, 2), plain("Subtract", 6, 7), plain("Divide", 8, 2), plain("Concat", 3, 9, axis=0),
            plain("Reshape", 4, 10, special_zero="false"), plain("Unsqueeze", 11, 1),
            plain("Broadcast", 12, 2, opset=3, mode="bidirectional"), constants=([1], [0], [2], [-1])),
        "select": openvino_net(
            given("3,4"), given("3,2", "i64"), plain("GatherElements", 3, 4, opset=6, axis=1),
            plain("GatherND", 3, 4, opset=8), plain("ScatterElementsUpdate", 3, 4, 5, 0, opset=12, reduction="sum"),
            plain("ScatterNDUpdate", 3, 4, 6, opset=15, reduction="none"), plain("TopK", 3, 0, opset=11, axis=-1,
            mode="max", sort="value", index_element_type="i64"), plain("Slice", 3, 1, 0, 0, 0, opset=8),
            plain("VariadicSplit", 3, 0, 2), plain("ReduceSum", 3, 1, keep_dims="true"), plain("CumSum", 3, 0,
            opset=3), plain("NonZero", 3, opset=3, output_type="i32"), plain("SoftMax", 3, opset=8, axis=-1),
            constants=([1], [0], [2, 2])),
        "attention": openvino_net(
            given("?,2,?,4"), given("?,1,?,?"), plain("MatMul", 2, 2, transpose_b="true"),
            plain("ScaledDotProductAttention", 2, 2, 2, 3, opset=13, causal="false"),
            plain("MVN", 5, 0, opset=6, eps="1e-5", normalize_variance="true", eps_mode="INSIDE_SQRT"),
            plain("Transpose", 6, 1), constants=([-1], [0, 2, 1, 3])),
        "image": openvino_net(
            given("?,4,8,6"), given("4,4,2,2"), given("2,2,2,2,2"), plain("Convolution", 3, 4, **window),
            plain("GroupConvolution", 3, 5, **window), plain("ConvolutionBackpropData", 3, 4, strides="2,2",
            output_padding="1,1"),
            plain("MaxPool", 3, opset=14, dilations="1,1", **pool), plain("AvgPool", 3, opset=14, exclude_pad="true", **pool),
            plain("Pad", 3, 0, 0, opset=12, pad_mode="constant"), plain("Interpolate", 3, 1, 2, opset=11,
            mode="linear_onnx", shape_calculation_mode="sizes", coordinate_transformation_mode="half_pixel",
            nearest_mode="floor"), constants=([0, 0, 1, 2], [9, 5], [2, 3])),
        "state": openvino_net(
            given("2,?"), plain("ReadValue", 2, opset=6, variable_id="s", variable_type="f32", variable_shape="2,?"),
            given("?", "i32"), plain("Gather", 3, 4, 0, opset=8), plain("Concat", 5, 2, axis=1),
            plain("Assign", 6, opset=6, variable_id="s"), plain("ReLU", 6),
            constants=([0], [1])),
        "computed": openvino_net(
            given("?,4"), ("Const", 1, [], {"element_type": "f32", "shape": "0, 3, 2", "offset": 0, "size": 0}),
            plain("ShapeOf", 2, opset=3, output_type="i64"), plain("StridedSlice", 3, 0, 0, 0, begin_mask=0, end_mask=1),
            plain("Convert", 4, destination_type="f32"), plain("Power", 5, 5), plain("Multiply", 6, 5),
            plain("Subtract", 4, 4), plain("Reshape", 1, 8, special_zero="true"), plain("Tile", 1, 4), constants=([1],)),
        "entities": b'<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><net name="&b;" version="11"/>',
        "nested": b"<a>" * 80,
    }.items():
        write("openvino", name, content)


def tensor(name):
    return {"as_tensor": {"name": name}}


def call(target, output, **arguments):
    inputs = [{"name": name, "arg": arg, "kind": 1} for name, arg in arguments.items()]
    return {"target": f"torch.ops.aten.{target}", "inputs": inputs, "outputs": [tensor(output)], "metadata": {}}


def with_state(nodes, mutations, results):
    """A program with state: arguments x and y, a parameter w, buffers count (kept) and cache."""
    size = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 2}}}
    three = {"as_int": 3}

    def meta(*sizes, strides=(three, {"as_int": 1})):
        return {"dtype": 7, "sizes": list(sizes), "strides": list(strides)[-len(sizes):],
                "storage_offset": {"as_int": 0}}  # fmt: skip

    weights = {"p_w": ("parameter", {"parameter_name": "w"}),
               "b_count": ("buffer", {"buffer_name": "count", "persistent": True}),
               "b_cache": ("buffer", {"buffer_name": "cache", "persistent": False})}  # fmt: skip
    types = {name: meta(three) for name in weights} | {name: meta(size, three) for name in ("x", "y")}
    types |= {node["outputs"][0]["as_tensor"]["name"]: types[node["inputs"][0]["arg"]["as_tensor"]["name"]]
              for node in nodes}  # fmt: skip
    leaf = {"type": None, "context": None, "children_spec": []}
    empty = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    arguments = {"type": "builtins.dict", "context": '["x", "y"]', "children_spec": [leaf, leaf]}
    program = {
        "graph_module": {
            "graph": {"inputs": [tensor(name) for name in (*weights, "x", "y")],
                      "outputs": [*(tensor(source) for _, source, _, _ in mutations), *results],
                      "nodes": nodes, "tensor_values": types, "sym_int_values": {"length": size}},
            "signature": {
                "input_specs": [{kind: {"arg": {"name": name}, **body}} for name, (kind, body) in weights.items()]
                + [{"user_input": {"arg": tensor(name)}} for name in ("x", "y")],
                "output_specs": [{f"{kind}_mutation": {"arg": {"name": source}, field: target}}
                                 for kind, source, field, target in mutations]
                + [{"user_output": {"arg": result}} for result in results]},
            "module_call_graph": [{"fqn": "", "signature": {
                "in_spec": json.dumps([1, empty | {"children_spec": [empty, arguments]}]),
                "out_spec": json.dumps([1, empty | {"children_spec": [leaf] * len(results)}])}}],
        },
        "range_constraints": {"s0": {"min_val": 2, "max_val": 9}},
        "schema_version": {"major": 8, "minor": 20},
    }  # fmt: skip

    def payload(name):
        return {name: {"path_name": "weight_0", "is_param": name == "w", "tensor_meta": meta(three)}}

    return {"program": program, "weights": {"config": payload("w") | payload("count")},
            "constants": {"config": payload("cache")}}  # fmt: skip


def make_state():
    """What ferry writes of a program that changes its arguments and buffers, and a program that torch traced."""
    one, number = {"as_int": 1}, {"as_sym_int": {"as_name": "length"}}
    functional = [call("add.Tensor", "add", self=tensor("b_count"), other=tensor("p_w")),
                  call("add.Scalar", "add_1", self=tensor("x"), other=one),
                  call("slice.Tensor", "slice", self=tensor("y"), dim={"as_int": 0}, start={"as_int": 0}),
                  call("clone.default", "clone", self=tensor("x"))]  # fmt: skip
    mutations = [("buffer", "add", "buffer_name", "count"), ("parameter", "add", "parameter_name", "w"),
                 ("user_input", "add_1", "user_input_name", "x"), ("user_input", "x", "user_input_name", "y"),
                 ("buffer", "p_w", "buffer_name", "cache")]  # fmt: skip
    results = [tensor("add_1"), tensor("clone"), tensor("slice"), tensor("add"), tensor("y"), number]
    in_place = [call("add_.Tensor", "add_", self=tensor("b_count"), other=tensor("p_w")),
                call("select.int", "select", self=tensor("x"), dim={"as_int": 0}, index={"as_int": 0}),
                call("mul_.Scalar", "mul_", self=tensor("y"), other={"as_float": 0.5}),
                call("copy_.default", "copy_", self=tensor("x"), src=tensor("mul_")),
                call("detach_.default", "detach_", self=tensor("b_cache"))]  # fmt: skip
    documents = {
        "functional": with_state(functional, mutations, results),
        "in_place": with_state(in_place, [], [tensor("copy_"), tensor("y"), tensor("add_"), number]),
    }
    types = documents["in_place"]["program"]["graph_module"]["graph"]["tensor_values"]
    types["select"] = types["p_w"]
    for name, document in documents.items():
        write("pt2", name, json.dumps(document, separators=(",", ":")).encode())
class Flat:
    """A FlatBuffer, written parents first. Nodes: {slot: (size, number) or node}, text, (size, numbers), [nodes]."""

    def __init__(self, identifier, gap, root):
        self.bytes = bytearray(8 + gap)
        self.bytes[4:8] = identifier
        self.refer(0, root)

    def pad(self, remainder=0):
        while len(self.bytes) % 8 != remainder:
            self.bytes.append(0)

    def refer(self, place, node):
        struct.pack_into("<I", self.bytes, place, self.add(node) - place)

    def add(self, node):
        if isinstance(node, dict):
            return self.add_table(node)
        self.pad(4)
        place = len(self.bytes)
        if isinstance(node, str):
            self.bytes += struct.pack("<I", len(node)) + node.encode() + b"\0"
        elif isinstance(node, tuple):
            size, numbers = node
            self.bytes += struct.pack("<I", len(numbers))
            for number in numbers:
                self.bytes += number.to_bytes(size, "little", signed=number < 0)
        else:
            self.bytes += struct.pack("<I", len(node)) + bytes(4 * len(node))
            for i, item in enumerate(node):
                self.refer(place + 4 + 4 * i, item)
        return place

    def add_table(self, fields):
        slots = max(fields, default=-1) + 1
        self.pad()
        vtable = len(self.bytes)
        self.bytes += struct.pack("<HH", 4 + 2 * slots, 8 + 8 * slots) + bytes(2 * slots)
        self.pad()
        table = len(self.bytes)
        self.bytes += struct.pack("<i", table - vtable) + bytes(4 + 8 * slots)
        for slot, field in fields.items():
            place = 8 + 8 * slot
            struct.pack_into("<H", self.bytes, vtable + 4 + 2 * slot, place)
            if isinstance(field, tuple) and isinstance(field[1], int):
                self.bytes[table + place : table + place + field[0]] = field[1].to_bytes(field[0], "little")
            else:
                self.refer(table + place, field)
        return table


def make_executorch():
    def value(kind, content):
        return {0: (1, kind), 1: content}

    def tensor(constant):
        return value(5, {0: (1, 6), 2: (4, [2, 3]), 3: (1, [0, 1]), 5: (4, constant), 6: {0: (4, 1)}})

    values = [tensor(0), tensor(1), tensor(0), value(2, {0: (8, 1)}), value(7, {0: (8, [3, 3])}), value(1, {}),
              value(3, {0: (1, 1)}), value(4, {0: (8, 0)}), value(6, {0: "tanh"}), value(10, {0: (4, [0, 1])}),
              value(11, {0: (4, [-1, 2])})]
    calls = [{0: (1, 1), 1: {0: (4, 0), 1: (4, [0, 1, 3, 2, 2])}}, {0: (1, 2), 1: {0: (4, 0), 1: (4, [0, 2])}}]
    plan = {0: "forward", 2: values, 3: (4, [0]), 4: (4, [2]), 5: [{0: (4, []), 1: (4, []), 2: calls}],
            6: [{0: "aten::add", 1: "out"}], 7: [{0: "XnnpackBackend", 1: {0: (1, 1), 1: (4, 1)}}], 8: (8, [0, 64])}
    segments = [{0: (8, 0), 1: (8, 24)}, {0: (8, 32), 1: (8, 16)}, {0: (8, 48), 1: (8, 16)}]
    root = {0: (4, 0), 1: [plan], 4: segments, 5: {0: (4, 0), 1: (8, [0, 0])}, 7: [{0: "w", 1: (4, 2)}]}
    program = Flat(b"ET12", 32, root).bytes
    base = (len(program) + 15) // 16 * 16
    program[8:40] = b"eh00" + struct.pack("<IQQQ", 32, len(program), base, 64)
    write("executorch", "program", bytes(program).ljust(base + 64, b"\0"))


def tokenizer(model, text, **parts):
    added = {"content": "<s>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False, "special": True}
    word = {**added, "content": "No\u00ebl", "single_word": True, "normalized": True, "rstrip": True, "special": False}
    return json.dumps({"added_tokens": [{"id": 0, **added}, {"id": 1, **word}], "model": model, "text": text, **parts}).encode()


def every(kind, *items):
    return {"type": "Sequence", kind: list(items)}


def make_tokenizer():
    vocab = {token: i for i, token in enumerate(["<s>", "<unk>", "a", "b", "ab", "##a", "##b", "##ab", "\u2581", "\u2581a", "\u0120"])}
    vocab.update({f"<0x{i:02X}>": len(vocab) + i for i in range(256)})
    text = "ab <s> abba No\u00ebl,\u00a0e\u0301 \u4eba\u4eba \ufb01 12 \U0001f469\u200d\U0001f467 don't"
    bpe = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"], ["\u2581", "a"]], "unk_token": "<unk>", "byte_fallback": True}
    pieces = [["<unk>", 0], ["a", -1.5], ["ab", -2], ["b", -3], ["\u2581", -2.5], ["\u2581a", -1]]
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": pieces + [[f"<0x{i:02X}>", -9] for i in range(0, 256, 16)], "byte_fallback": True}
    wordpiece = {"type": "WordPiece", "vocab": vocab, "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    forms = [{"type": name} for name in ("NFKD", "StripAccents", "Nmt", "Lowercase", "NFC", "NFKC", "NFD")]
    replace = {"type": "Replace", "pattern": {"Regex": "\\s+|(?i:[^\\W\\d&&[\\p{L}]]){2,}+"}, "content": "\u2581"}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    # a -> "bb": the root's child 'a' has a value
    units = [1 << 10, 0] + [0] * 256
    units[1 ^ 0x61] = 0x61 | 1 << 8 | 0x10 << 10
    units[1 ^ 0x61 ^ 0x10] = 1 << 31
    table = struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + b"bb\0"
    charsmap = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
    split = {"type": "Split", "pattern": {"String": "b"}, "behavior": "MergedWithNext", "invert": False}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}
    roberta = {"type": "RobertaProcessing", "sep": ["<s>", 0], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True}
    limits = {"truncation": {"direction": "Left", "max_length": 5, "strategy": "LongestFirst", "stride": 0},
              "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<s>"}}
    decoders = [{"type": "ByteFallback"}, metaspace, {"type": "Strip", "content": " ", "start": 1, "stop": 1}, {"type": "Fuse"}]
    others = [{"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "b"}, replace,
              {"type": "CTC", "pad_token": "<s>", "word_delimiter_token": "|", "cleanup": True}, {"type": "ByteLevel"}]
    small = [{"type": "Digits", "individual_digits": False}, {"type": "Punctuation", "behavior": "Contiguous"},
             {"type": "FixedLength", "length": 4}, {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "UnicodeScripts"}]
    for name, content in {
        "bpe": tokenizer(bpe, text, pre_tokenizer=byte_level, decoder=byte_level, post_processor=every("processors", byte_level, template)),
        "bpe_affixes": tokenizer({**bpe, "continuing_subword_prefix": "##", "end_of_word_suffix": "b", "fuse_unk": True}, text,
                                 normalizer=every("normalizers", *forms), pre_tokenizer=every("pretokenizers", *small), post_processor=roberta),
        "unigram": tokenizer(unigram, text, normalizer=every("normalizers", charsmap, strip, replace),
                             pre_tokenizer=every("pretokenizers", {"type": "WhitespaceSplit"}, metaspace), decoder=every("decoders", *decoders)),
        "wordpiece": tokenizer(wordpiece, text, normalizer=bert, pre_tokenizer={"type": "BertPreTokenizer"}, decoder=every("decoders", *others),
                               post_processor={"type": "BertProcessing", "sep": ["<s>", 0], "cls": ["<s>", 0]}, **limits),
        "wordlevel": tokenizer({"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}, text,
                               normalizer={"type": "Prepend", "prepend": "a"}, pre_tokenizer=every("pretokenizers", {"type": "Whitespace"}, split)),
        "not_text": tokenizer(bpe, [0x61, 0xff, 0xc3, 0x28]),
        "dropout": tokenizer({**bpe, "dropout": 0.5}, "a"),
    }.items():
        write("tokenizer", name, content)


def make_template():
    conformance = pathlib.Path(__file__).parents[1] / "conformance"
    cases = runpy.run_path(str(conformance / "template_cases.py"))
    for path in (conformance / "chat_templates").glob("*.jinja"):
        write("template", path.stem, path.read_bytes())
    for i, text in enumerate(cases["STATEMENTS"]):
        write("template", f"statement_{i:02}", text.encode())
    for i in range(0, len(cases["EXPRESSIONS"]), 8):
        text = "".join("{{ " + expression + " }}\n" for expression in cases["EXPRESSIONS"][i : i + 8])
        write("template", f"expressions_{i // 8:02}", text.encode())


# 13 x 9 pixels each, written by Pillow.
JPEGS = {
    "baseline": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j"
        "q62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
        "pKSkpKSkpKT/wAARCAAJAA0DASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
        "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
        "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
        "4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC"
        "AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm"
        "Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq"
        "8vP09fb3+Pn6/9oADAMBAAIRAxEAPwBbfTgMZFWCbaI7GdQR14J/lU8v/HtP/uN/Kucufvj/AHf8azhUnWbSdkhxpxUHOR//2Q=="
    ),
    "progressive": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j"
        "q62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk"
        "pKSkpKSkpKT/wgARCAAJAA0DASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAAAwAF/8QAFQEBAQAAAAAAAAAAAAAAAAAAAAL/"
        "2gAMAwEAAhADEAAAAZEzZf/EABkQAAMAAwAAAAAAAAAAAAAAAAABAgMiMv/aAAgBAQABBQKcZqh80f/EABcRAAMBAAAAAAAAAAAA"
        "AAAAAAABEQL/2gAIAQMBAT8BWVKz/8QAFhEBAQEAAAAAAAAAAAAAAAAAAQIA/9oACAECAQE/ASm9/8QAFRABAQAAAAAAAAAAAAAA"
        "AAAAEAH/2gAIAQEABj8CKf/EABkQAAIDAQAAAAAAAAAAAAAAAAABMUGBof/aAAgBAQABPyEKG0cLJYf/2gAMAwEAAgADAAAAENf/"
        "xAAVEQEBAAAAAAAAAAAAAAAAAAABAP/aAAgBAwEBPxADr//EABYRAQEBAAAAAAAAAAAAAAAAAAEAEf/aAAgBAgEBPxBpBwL/xAAc"
        "EAEAAgIDAQAAAAAAAAAAAAABABEx8CFBUbH/2gAIAQEAAT8QEqyK9UmeF+TfeTHruf/Z"
    ),
    "gray": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j"
        "q62rZ4C8ybqmx5moq6T/wAALCAAJAA0BAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
        "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
        "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
        "4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AFt9OAxkVYJtojsZ1BHXgn+VTy/8e0/+438q5y5++P8Ad/xr/9k="
    ),
    "cmyk": (
        "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCeo6ut"
        "q2eAvMm6pseZqKuk/8AAFAgACQANBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIB"
        "AwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZH"
        "SElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV"
        "1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4EQwBNAFkASwAAPwCvbab0+WpLbTeny1bKWlmM3EyRnAO0nLEdOnWumrTi035f"
        "u1K8+n2zmKW4UOOoUFsexwOvtVKbWpMgWdsoQd5eSfwB479zRVi27Vcu/wDkF3f/AFxf/wBBNZl3/wAhS7/67P8A+hGisPxV/wAh"
        "GL/riP8A0Jq5CL7tWovu0V//2Q=="
    ),
    "turned": (
        "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDABsSFBcUERsXFhceHBsg"
        "KEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSk"
        "pKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAJAA0DASIAAhEBAxEB/8QAHwAAAQUBAQEB"
        "AQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAk"
        "M2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKj"
        "pKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAA"
        "AAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl"
        "8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmq"
        "srO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwBbfTgMZFWCbaI7GdQR14J/"
        "lU8v/HtP/uN/Kucufvj/AHf8azhUnWbSdkhxpxUHOR//2Q=="
    ),
}


def png(width, height, depth, color, rows, *chunks, interlaced=0):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def make_image():
    for name, text in JPEGS.items():
        write("image", f"{name}.jpg", base64.b64decode(text))
    row = bytes(range(64))
    turned = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, 6, 0, 0)
    for name, content in {
        "gray": png(5, 2, 8, 0, b"\0" + row[:5] + b"\1" + row[:5]),
        "rgb": png(3, 2, 8, 2, b"\2" + row[:9] + b"\3" + row[9:18], (b"eXIf", turned)),
        "rgb16": png(2, 1, 16, 2, b"\4" + row[:12]),
        "palette": png(8, 2, 2, 3, b"\0\x1b\xe4\0\x00\xff", (b"PLTE", row[:12]), (b"tRNS", row[:3])),
        "bits": png(9, 2, 1, 0, b"\0\xaa\x80\0\x55\0"),
        "gray_alpha": png(2, 2, 8, 4, b"\0" + row[:4] + b"\0" + row[4:8]),
        "rgba16": png(1, 2, 16, 6, b"\0" + row[:8] + b"\0" + row[8:16]),
        "interlaced": png(3, 3, 8, 0, b"\0\1\0\2\0\3\4\0\5\6\0\7\0\10\0\11\12\13", interlaced=1),
        "huge": png(2**31 - 1, 2**31 - 1, 8, 2, b""),
        "short": png(5, 5, 8, 0, b"\0\1\2"),
    }.items():
        write("image", f"{name}.png", content)


def wav(kind, channels, rate, bits, data, *before, extensible=False):
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else kind, channels, rate, rate * frame, frame, bits)
    if extensible:
        form += struct.pack("<HHIH", 22, bits, 0, kind) + bytes(14)
    chunks = [*before, (b"fmt ", form), (b"data", data)]
    body = b"".join(name + struct.pack("<I", len(d)) + d + b"\0" * (len(d) % 2) for name, d in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def make_audio():
    data = bytes(i * 37 % 256 for i in range(96))
    for name, content in {
        "pcm8": wav(1, 1, 8000, 8, data),
        "pcm16": wav(1, 2, 44100, 16, data, (b"LIST", b"abc")),
        "pcm24": wav(1, 1, 48000, 24, data),
        "pcm32": wav(1, 1, 22050, 32, data, extensible=True),
        "float": wav(3, 2, 16000, 32, struct.pack("<24f", *(i / 30 for i in range(24)))),
        "double": wav(3, 1, 11025, 64, struct.pack("<12d", *(i / 30 for i in range(12))), extensible=True),
        "open": wav(1, 1, 8000, 16, data)[:-90] + struct.pack("<I", 2**32 - 1) + data,
        "adpcm": wav(2, 1, 8000, 4, data),
        "no_format": b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd",
        "fast": wav(1, 1, 2**30, 16, data),
    }.items():
        write("audio", f"{name}.wav", content)


def make_processor():
    small = {"height": 12, "width": 10}
    tokens = {"image_token": "<image>", "boi_token": "<boi>", "eoi_token": "<eoi>", "bos_token": "<s>", "audio_token": "<|AUDIO|>"}
    audio = {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 1, "sampling_rate": 8000, "hop_length": 80,
             "n_fft": 48, "feature_size": 8}
    clip = {"image_processor_type": "CLIPImageProcessorFast", "size": 14, "crop_size": small}
    for name, (image, whole, prompt) in {
        "clip": (clip, {}, ""),
        "old": ({"feature_extractor_type": "ViTFeatureExtractor", "size": 9}, {}, ""),
        "llava": ({"image_processor_type": "LlavaImageProcessor", "do_pad": True, "size": 14, "crop_size": 14},
                  {"processor_class": "LlavaProcessor", "patch_size": 7, "vision_feature_select_strategy": "default",
                   "num_additional_image_tokens": 1}, "a <image> b"),
        "paligemma": ({"image_processor_type": "SiglipImageProcessor", "size": small, "image_seq_length": 4},
                      {"processor_class": "PaliGemmaProcessor"}, "<image>cap"),
        "gemma3": ({"image_processor_type": "Gemma3ImageProcessor", "size": small, "do_pan_and_scan": False},
                   {"processor_class": "Gemma3Processor", "image_seq_length": 3}, "<boi>x"),
        "qwen": ({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "min_pixels": 64, "max_pixels": 640},
                 {"processor_class": "Qwen2_5_VLProcessor"}, "<image>"),
        "tiles": ({"image_processor_type": "Idefics3ImageProcessor", "size": {"longest_edge": 40}, "max_image_size": {"longest_edge": 16}},
                  {"processor_class": "Idefics3Processor", "image_seq_len": 2}, "<image> <image>"),
        "edges": ({"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 8, "longest_edge": 20}, "resample": 1}, {}, ""),
        "unknown": ({"image_processor_type": "OtherImageProcessor"}, {"processor_class": "OtherProcessor"}, "x"),
    }.items():
        write("processor", name, json.dumps({"part": image, "whole": whole, "tokens": tokens, "prompt": prompt}).encode())
        nested = {"image_processor": image, "feature_extractor": audio, **whole}
        write("processor", f"{name}_nested", json.dumps({"whole": nested, "tokens": tokens, "prompt": prompt}).encode())
    whole = {"processor_class": "Qwen2AudioProcessor"}
    write("processor", "audio", json.dumps({"part": audio, "whole": whole, "tokens": tokens, "prompt": "<|AUDIO|>"}).encode())


def gguf_text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    """A value with its type."""
    if isinstance(value, list):
        items = [gguf_value(item) for item in value]
        return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(items)) + b"".join(item[4:] for item in items)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)


def gguf(values, tensors):
    """A file; `tensors` maps a name to the number of its type, its sizes, the slowest first, and its bytes."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    header += b"".join(gguf_text(key) + gguf_value(value) for key, value in values.items())
    data = b""
    for name, (kind, shape, content) in tensors.items():
        header += gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += content + bytes(-len(content) % 32)
    return header + bytes(-len(header) % 32) + data


def gguf_model(arch, names, kind=8, vocabulary=4, **more):
    """One layer of 32 features with one head, of blocks."""
    size = {0: 128, 1: 64, 2: 18, 3: 20, 6: 22, 7: 24, 8: 34}[kind]
    values = {"general.architecture": arch, f"{arch}.context_length": 64, f"{arch}.embedding_length": 32,
              f"{arch}.feed_forward_length": 32, f"{arch}.block_count": 1, f"{arch}.attention.head_count": 1,
              f"{arch}.attention.layer_norm_rms_epsilon": 1e-5, f"{arch}.rope.freq_base": 10000.0,
              **{f"{arch}.{key}": value for key, value in more.get("keys", {}).items()}, **more.get("values", {})}
    tensors = {"token_embd.weight": (kind, [vocabulary, 32], bytes(vocabulary * size))}
    for name, rows in names.items():
        shape, content = ([rows, 32], (kind, bytes(rows * size))) if rows else ([32], (0, bytes(128)))
        tensors[f"blk.0.{name}.weight"] = (content[0], shape, content[1])
    tensors["output_norm.weight"] = (0, [32], bytes(128))
    return gguf(values, {**tensors, **more.get("tensors", {})})


def make_gguf():
    attention = {"attn_q": 32, "attn_k": 32, "attn_v": 32, "attn_output": 32, "attn_norm": 0}
    plain = {**attention, "ffn_gate": 32, "ffn_up": 32, "ffn_down": 32, "ffn_norm": 0}
    factors = struct.pack("<16f", *[1.0 + i for i in range(16)])
    tokens = ["<s>", "a", "b", "ab"]
    common = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0}
    byte_level = {**common, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe",
                  "tokenizer.ggml.token_type": [3, 1, 1, 1], "tokenizer.ggml.merges": ["a b"],
                  "tokenizer.chat_template": "{{ messages }}"}
    sentencepiece = {**common, "tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [0.0, -1.0, -2.0, -3.0],
                     "tokenizer.ggml.add_eos_token": True, "tokenizer.ggml.unknown_token_id": 0}
    for name, arch, values in (("byte_level", "llama", byte_level), ("sentencepiece", "llama", sentencepiece),
                               ("phi3", "phi3", sentencepiece), ("gemma3", "gemma3", sentencepiece),
                               ("unknown", "llama", {**byte_level, "tokenizer.ggml.pre": "x"})):
        write("gguf_tokenizer", name, gguf({"general.architecture": arch, **values}, {}))
    write("gguf", "llama", gguf_model("llama", plain, values=byte_level))
    write("gguf", "llama_freqs", gguf_model("llama", plain, 2, tensors={"rope_freqs.weight": (0, [16], factors)}))
    write("gguf", "llama_yarn", gguf_model("llama", plain, 3, keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0}))
    write("gguf", "qwen2_bare", gguf_model("qwen2", plain, 6))
    write("gguf", "qwen3", gguf_model("qwen3", {**plain, "attn_q_norm": 0, "attn_k_norm": 0}, 7, keys={"attention.key_length": 32}))
    norms = {"post_attention_norm": 0, "post_ffw_norm": 0, "attn_q_norm": 0, "attn_k_norm": 0}
    gemma = {"attention.sliding_window": 8, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    write("gguf", "gemma3", gguf_model("gemma3", {**plain, **norms}, 1, keys=gemma, values=sentencepiece))
    lists = {f"rope_factors_{length}.weight": (0, [16], factors) for length in ("long", "short")}
    phi3 = {"attn_qkv": 96, "attn_output": 32, "attn_norm": 0, "ffn_up": 64, "ffn_down": 32, "ffn_norm": 0}
    long = {"rope.scaling.original_context_length": 32, "rope.dimension_count": 32}
    write("gguf", "phi3", gguf_model("phi3", phi3, 0, keys=long, tensors=lists, values=sentencepiece))
    kinds = {10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 15: 292}
    blocks = {f"blk.0.t{kind}.weight": (kind, [1, 256], bytes(size)) for kind, size in kinds.items()}
    write("gguf", "blocks", gguf({"general.architecture": "llama", "general.alignment": 32}, blocks))
    write("gguf", "strings", gguf({"general.architecture": "falcon", "list": ["a", "", "b"], "flags": [True, False]}, {}))
    write("gguf", "truncated", gguf_model("llama", plain)[:600])
    write("gguf", "version", b"GGUF" + struct.pack("<IQQ", 2, 2**63, 2**63))


if __name__ == "__main__":
    make_safetensors()
    make_npy()
    make_npz()
    make_sym()
    make_onnx()
    make_config()
    make_document()
    make_pt2()
    make_openvino()
    make_pt2_writes()
    make_state()
    make_executorch()
    make_tokenizer()
    make_template()
    make_image()
    make_audio()
    make_processor()
    make_gguf()
