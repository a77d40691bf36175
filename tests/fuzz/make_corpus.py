#!/usr/bin/env python3
"""Write the seeds of the fuzzers, corpus/<fuzzer>/<name>: small inputs that reach most of each reader.

Only the standard library is used, and the same bytes come out every time.
"""
import io
import json
import pathlib
import struct
import zipfile

ROOT = pathlib.Path(__file__).parent / "corpus"


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


if __name__ == "__main__":
    make_safetensors()
    make_npy()
    make_npz()
    make_sym()
