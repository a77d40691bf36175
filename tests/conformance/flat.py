"""Reading a FlatBuffer by its schema (.fbs), with the flatbuffers package and nothing of ferry's.

Tables come as namespaces with all fields of the schema, defaults filled in. Reading checks what a verifier
does: everything lies in the buffer, numbers are aligned, required fields are there.
"""

import re
from types import SimpleNamespace

import flatbuffers
from flatbuffers import number_types as numbers
from flatbuffers.table import Table

SCALARS = {
    "bool": numbers.BoolFlags, "byte": numbers.Int8Flags, "int8": numbers.Int8Flags, "ubyte": numbers.Uint8Flags,
    "uint8": numbers.Uint8Flags, "ushort": numbers.Uint16Flags, "short": numbers.Int16Flags,
    "int": numbers.Int32Flags, "int32": numbers.Int32Flags, "uint": numbers.Uint32Flags, "uint32": numbers.Uint32Flags,
    "long": numbers.Int64Flags, "int64": numbers.Int64Flags, "ulong": numbers.Uint64Flags, "uint64": numbers.Uint64Flags,
    "float": numbers.Float32Flags, "double": numbers.Float64Flags,
}  # fmt: skip


class Schema:
    """The declarations of schema files: tables, structs, unions and enumerations."""

    def __init__(self, *paths):
        text = "\n".join(re.sub(r"//.*", "", path.read_text()) for path in paths)
        self.tables = self.fields("table", text)
        self.structs = self.fields("struct", text)
        self.unions = {
            name: ["NONE", *re.findall(r"\w+", body)] for name, body in re.findall(r"union (\w+) {(.*?)}", text, re.S)
        }
        self.enums = {}
        for name, kind, body in re.findall(r"enum (\w+)\s*:\s*(\w+) {(.*?)}", text, re.S):
            values, value = {}, -1
            for item, given in re.findall(r"(\w+)\s*(?:=\s*(-?\d+))?", body):
                value = int(given) if given else value + 1
                values[item] = value
            self.enums[name] = (kind, values)

    @staticmethod
    def fields(keyword, text):
        pattern = r"(\w+)\s*:\s*(\[?\w+\]?)\s*(?:=\s*([\w.+-]+))?\s*(\([^)]*\))?\s*;"
        found = re.findall(keyword + r" (\w+) {(.*?)}", text, re.S)
        return {name: re.findall(pattern, body) for name, body in found}


class Reader:
    def __init__(self, schema: Schema, data: bytes):
        self.schema, self.data = schema, data

    def root(self, name: str):
        return self.table(name, self.scalar("uint", 0))

    def scalar(self, kind: str, place: int):
        flags = SCALARS[kind]
        assert 0 <= place <= len(self.data) - flags.bytewidth, f"{kind} at {place} is outside of the buffer"
        assert place % flags.bytewidth == 0, f"{kind} at {place} is not aligned"
        return flags.py_type(flatbuffers.encode.Get(flags.packer_type, self.data, place))

    def follow(self, place: int) -> int:
        return place + self.scalar("uint", place)

    def struct(self, name: str, place: int):
        (member, kind, *_), = self.schema.structs[name]  # both schemas have structs of one number
        return self.scalar(kind, place)

    def string(self, place: int) -> str:
        length = self.scalar("uint", place)
        assert self.data[place + 4 + length] == 0, "a string does not end with a zero"
        return self.data[place + 4 : place + 4 + length].decode()

    def vector(self, kind: str, place: int) -> list:
        count, start = self.scalar("uint", place), place + 4
        if kind in self.schema.enums:
            kind = self.schema.enums[kind][0]
        if kind in SCALARS:
            return [self.scalar(kind, start + i * SCALARS[kind].bytewidth) for i in range(count)]
        if kind in self.schema.structs:
            return [self.struct(kind, start + 4 * i) for i in range(count)]
        read = self.string if kind == "string" else lambda at: self.table(kind, at)
        return [read(self.follow(start + 4 * i)) for i in range(count)]

    def value(self, kind: str, place: int):
        if kind in SCALARS:
            return self.scalar(kind, place)
        if kind in self.schema.structs:
            return self.struct(kind, place)
        if kind.startswith("["):
            return self.vector(kind[1:-1], self.follow(place))
        return self.string(self.follow(place)) if kind == "string" else self.table(kind, self.follow(place))

    def default(self, kind: str, text: str):
        if text in ("", "null") or kind not in SCALARS:
            return 0 if kind in SCALARS and text != "null" else None
        return text == "true" if kind == "bool" else SCALARS[kind].py_type(float(text))

    def table(self, name: str, place: int):
        assert self.scalar("int", place) is not None
        table, slot = Table(self.data, place), 4
        result = SimpleNamespace(type_name=name)
        for field, kind, text, attributes in self.schema.tables[name]:
            if kind in self.schema.unions:
                members = self.schema.unions[kind]
                kinds, contents = table.Offset(slot), table.Offset(slot + 2)
                member = members[self.scalar("ubyte", place + kinds)] if kinds else "NONE"
                assert (member != "NONE") == bool(contents), f"{name}.{field} has half of its union"
                setattr(result, field, self.table(member, self.follow(place + contents)) if contents else None)
                slot += 4
                continue
            if kind in self.schema.enums:
                kind, values = self.schema.enums[kind]
                text = str(values.get(text, text))
            offset = table.Offset(slot)
            slot += 2
            assert offset or "required" not in attributes, f"{name} lacks its required {field}"
            setattr(result, field, self.value(kind, place + offset) if offset else self.default(kind, text))
        return result
