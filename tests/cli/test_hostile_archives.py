"""What damaged and hostile .pt2 archives get: one error that names the file, in bounded memory and time."""

import copy
import io
import json
import resource
import struct
import time
import zipfile
import zlib

import pytest
from support import ROOT, ferry

LIMIT = 1 << 30
SEED = json.loads((ROOT / "tests/fuzz/corpus/pt2/writes").read_text())


def entries(program=None, weights=None, constants=None):
    """The entries of a sound archive; weights and constants are bytes of zeros."""
    return {
        "m/archive_format": b"pt2",
        "m/archive_version": b"0",
        "m/models/model.json": json.dumps(program or SEED["program"]).encode(),
        "m/data/weights/model_weights_config.json": json.dumps(weights or SEED["weights"]).encode(),
        "m/data/constants/model_constants_config.json": json.dumps(constants or SEED["constants"]).encode(),
        "m/data/weights/weight_0": bytes(4096),
        "m/data/constants/weight_0": bytes(4096),
    }


def archive(content, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as target:
        for name, data in content.items():
            target.writestr(name, data)
    return buffer.getvalue()


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


@pytest.fixture
def show(tmp_path):
    """Show the bytes as a program; the error, or None when it loads."""

    def run(content, name="hostile.pt2"):
        path = tmp_path / name
        path.write_bytes(content)
        start = time.monotonic()
        done = ferry("show", path, status=None, preexec_fn=bounded)
        assert time.monotonic() - start < 20
        if done.returncode == 0:
            return None
        lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1 and lines[0].startswith("ferry"), done.stderr
        assert 0 < done.returncode < 10 or "the program says" in lines[0], done.stderr
        assert name in lines[0], lines[0]
        return lines[0]

    return run


def test_the_sound_archive_loads(show):
    assert show(archive(entries())) is None
    assert show(archive(entries(), compression=zipfile.ZIP_DEFLATED)) is None


# ---- the container ----


def test_a_document_that_expands_without_bound(show):
    bomb = entries() | {"m/models/model.json": b"[" + b" " * (1 << 28) + b"]"}
    assert "expands from" in show(archive(bomb, compression=zipfile.ZIP_DEFLATED))


def test_a_document_that_is_small_until_it_is_parsed(show):
    bomb = entries() | {"m/models/model.json": b"[" + b"{}," * (10 << 20) + b"{}]"}
    assert "expands from" in show(archive(bomb, compression=zipfile.ZIP_DEFLATED))


def test_a_weight_that_expands_without_bound(show):
    bomb = entries() | {"m/data/weights/weight_0": bytes(1 << 29)}
    assert "expands from" in show(archive(bomb, compression=zipfile.ZIP_DEFLATED))


def patched(content, signature, offset, form, value, entry=None):
    """The archive with a field of the headers of an entry (all: None) changed."""
    content, at = bytearray(content), 0
    while (at := content.find(signature, at)) >= 0:
        names = at + (46 if signature == b"PK\1\2" else 30)
        if entry is None or content[names:].startswith(entry.encode()):
            struct.pack_into(form, content, at + offset, value)
        at += 4
    return bytes(content)


def sizes(content, value, which=("packed", "size"), entry="m/models/model.json"):
    for field in which:
        central, local = {"packed": (20, 18), "size": (24, 22)}[field]
        content = patched(content, b"PK\1\2", central, "<I", value, entry)
        content = patched(content, b"PK\3\4", local, "<I", value, entry)
    return content


@pytest.mark.parametrize("value", [0, 1, 100, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF])
@pytest.mark.parametrize("which", [("packed",), ("size",), ("packed", "size")])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_sizes_that_lie(show, value, which, compression):
    assert show(sizes(archive(entries(), compression=compression), value, which))


def test_entries_that_overlap(show):
    content = archive(entries())
    data = content.find(b"PK\3\4", 4)
    shared = patched(content, b"PK\1\2", 42, "<I", data, "m/data/weights/weight_0")
    assert show(shared)


@pytest.mark.parametrize("name", ["../../m/archive_format", "/etc/passwd", "m/../../x", "..", "m/a\\..\\..\\b/../../.."])
def test_names_that_leave_the_archive(show, name):
    assert "leaves the archive" in show(archive(entries() | {name: b"x"}))


def test_names_that_occur_twice(show):
    buffer = io.BytesIO(archive(entries()))
    with zipfile.ZipFile(buffer, "a") as target, pytest.warns(UserWarning):
        target.writestr("m/models/model.json", b"{}")
    assert "twice" in show(buffer.getvalue())


def test_an_encrypted_entry(show):
    assert "encrypted" in show(patched(archive(entries()), b"PK\1\2", 8, "<H", 1))


@pytest.mark.parametrize("method", [1, 9, 12, 14, 93, 99, 0xFFFF])
def test_an_unknown_compression(show, method):
    content = patched(archive(entries()), b"PK\1\2", 10, "<H", method)
    assert f"method {method}" in show(content)


def test_every_truncation(show):
    content = archive(entries())
    directory = content.find(b"PK\1\2")
    for length in [0, 1, 3, 4, 30, directory, *range(directory + 1, len(content), 41), len(content) - 1]:
        assert show(content[:length])


@pytest.mark.parametrize("field", [8, 10, 12, 16, 20])
@pytest.mark.parametrize("value", [1, 0xFFFE, 0xFFFF])
def test_an_end_record_that_lies(show, field, value):
    content = bytearray(archive(entries()))
    struct.pack_into("<H", content, len(content) - 22 + field, value)
    show(bytes(content))


def zip64(content, entries_=7, size=None, offset=None, where=None):
    """The archive with the 64-bit records at its end."""
    end = len(content) - 22
    _, _, _, _, _, real_size, real_offset, _ = struct.unpack("<IHHHHIIH", content[end:])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, entries_, entries_,
                         real_size if size is None else size, real_offset if offset is None else offset)  # fmt: skip
    locator = struct.pack("<IIQI", 0x07064B50, 0, end if where is None else where, 1)
    last = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return content[:end] + record + locator + last


def test_64_bit_records_that_lie(show):
    content = archive(entries())
    assert show(zip64(content)) is None
    for lie in (1, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1):
        for field in ("entries_", "size", "offset", "where"):
            if (field, lie) != ("entries_", 1):
                assert show(zip64(content, **{field: lie})), (field, lie)


def test_64_bit_sizes_that_lie(show):
    for lie in (1 << 32, (1 << 63) - 1, (1 << 64) - 1):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as target:
            for name, data in entries().items():
                info = zipfile.ZipInfo(name)
                info.extra = struct.pack("<HHQQ", 1, 16, lie, lie)
                target.writestr(info, data)
        assert show(sizes(content.getvalue(), 0xFFFFFFFF, entry=None))


def test_a_wrong_checksum_of_a_compressed_document(show):
    content = archive(entries(), compression=zipfile.ZIP_DEFLATED)
    assert "checksum" in show(patched(content, b"PK\1\2", 16, "<I", zlib.crc32(b"other"), "m/models/model.json"))


# ---- the documents ----


def test_nesting(show):
    deep = 100_000
    for text in ("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "[" * deep):
        assert show(archive(entries() | {"m/models/model.json": text.encode()}))
    program = copy.deepcopy(SEED["program"])
    spec = '{"type": "builtins.tuple", "context": "null", "children_spec": [' * 5000
    program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = "[1, " + spec + "]}" * 5000 + "]"
    assert show(archive(entries(program)))
    program = copy.deepcopy(SEED["program"])
    expression = "Add(Integer(1), " * 50_000 + "Integer(1)" + ")" * 50_000
    values = program["graph_module"]["graph"]["tensor_values"]
    values["x"]["sizes"][0] = {"as_expr": {"expr_str": expression}}
    assert show(archive(entries(program)))


@pytest.mark.parametrize("major", [-1, 1, 7, 9, 1 << 40, None, "8", 8.5, [8], {}])
def test_an_unknown_schema_version(show, major):
    assert "schema version" in show(archive(entries(SEED["program"] | {"schema_version": {"major": major}})))


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{", b"{}", b"\xff\xfe{}", b'{"a": 1, "a": 2}', b"{}{}"])
def test_what_is_no_document(show, text):
    assert show(archive(entries() | {"m/models/model.json": text}))


def test_what_is_no_program(show):
    assert "archive_format" in show(archive({"m/x": b"x"}))
    assert show(archive({}))
    assert show(archive({name: data for name, data in entries().items() if "models" not in name}))
    several = {name.replace("model.json", "a.json"): data for name, data in entries().items()}
    assert "found 2" in show(archive(several | {"m/models/b.json": b"{}"}))


EVIL = b"cos\nsystem\n(S'touch %s'\ntR."


def test_a_pickle_is_never_loaded(show, tmp_path):
    """Neither sample inputs nor a weight that claims to be a pickle."""
    witness = tmp_path / "witness"
    evil = EVIL % str(witness).encode()
    samples = {"m/data/sample_inputs/model.pt": archive({"archive/data.pkl": evil})}
    assert show(archive(entries() | samples)) is None
    weights = copy.deepcopy(SEED["weights"])
    for entry in weights["config"].values():
        entry["use_pickle"] = True
    content = entries(weights=weights) | samples | {"m/data/weights/weight_0": evil}
    assert "never reads" in show(archive(content))
    assert not witness.exists()


# ---- numbers and names out of range ----

HUGE = [-1, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_windows_outside_their_record(show, number, kind):
    for field in ("sizes", "strides", "storage_offset"):
        document = copy.deepcopy(SEED[kind])
        for entry in document["config"].values():
            meta = entry["tensor_meta"]
            wrong = {"as_int": number}
            meta[field] = wrong if field == "storage_offset" else [wrong for _ in meta[field]] or [wrong]
        assert show(archive(entries(**{kind: document}))), field


def test_records_that_are_not_there(show):
    for name in ("weight_1", "", "../weights/weight_0", "/weight_0", "x" * 5000):
        weights = copy.deepcopy(SEED["weights"])
        for entry in weights["config"].values():
            entry["path_name"] = name
        assert "no record" in show(archive(entries(weights=weights)))


def everywhere(value, path=()):
    """The path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from everywhere(item, (*path, key))


def replaced(document, path, value):
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


def test_names_and_numbers_of_the_graph(show):
    """Every name that the graph reads is unknown in turn; every integer is out of range."""
    graph = SEED["program"]["graph_module"]
    names = numbers = 0
    for path in everywhere(graph):
        if path[-1] in ("name", "as_name") and "inputs" in path and "arg" in path:
            assert show(archive(entries(SEED["program"] | {"graph_module": replaced(graph, path, "nowhere")}))), path
            names += 1
        elif path[-1] == "as_int" and "nodes" in path:
            for number in HUGE[1:3]:
                show(archive(entries(SEED["program"] | {"graph_module": replaced(graph, path, number)})))
                numbers += 1
    assert names > 20 and numbers > 20
