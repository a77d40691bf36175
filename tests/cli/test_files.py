"""What exports leave on the disk: the same bytes every time, nothing twice, and all or nothing."""

import os
import shutil
import signal
import subprocess
import time
from hashlib import sha256

import onnx
import pytest
from safetensors.numpy import load_file
from support import ENVIRONMENT, FERRY, compare, ferry, ferry_json, run_onnxruntime
from synthetic import make_llama, read_header, write_header

MEBIBYTE = 1 << 20


def contents(directory):
    return {
        str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A llama of 18 MiB, in bfloat16: large enough for several threads to share the work."""
    directory = tmp_path_factory.mktemp("synthetic") / "llama"
    make_llama(directory, hidden=512, layers=2, vocabulary=2048, dtype="BF16")
    return directory


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few mebibytes, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield disk
    subprocess.run(["umount", disk], check=True)


# ---- the same bytes ----


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_same_size_of_weightsevery_time(checkpoint, tmp_path, dtype):
    exports = []
    for threads in ("1", "2", "2", "5"):
        directory = tmp_path / str(len(exports))
        ferry("export", checkpoint, "-o", directory, "--dtype", dtype, "--threads", threads, "-q")
        exports.append(contents(directory))
    assert all(export == exports[0] for export in exports)


def test_same_size_of_weightsover_an_old_export(fixture, checkpoint, tmp_path):
    ferry("export", checkpoint, "-o", tmp_path / "new", "-q")
    ferry("export", fixture("bert"), "-o", tmp_path / "reused", "-q")
    ferry("export", checkpoint, "-o", tmp_path / "reused", "-q")
    assert contents(tmp_path / "reused") == contents(tmp_path / "new")


def test_no_place_leaks_into_the_export(checkpoint, tmp_path):
    ferry("export", checkpoint, "-o", tmp_path / "out", "-q")
    for name in ("model.onnx", "export.json", "config.json"):
        content = (tmp_path / "out" / name).read_bytes()
        assert str(tmp_path).encode() not in content and str(checkpoint).encode() not in content


# ---- nothing twice ----


def test_tied_weights_are_stored_once(tmp_path):
    size_of_weights = make_llama(
        tmp_path / "tied", hidden=256, layers=1, vocabulary=8192, tied=True
    )
    report = ferry_json("export", tmp_path / "tied", "-o", tmp_path / "out")
    assert size_of_weights <= report["weight_bytes"] <= 1.02 * size_of_weights


def test_equal_size_of_weightsunder_two_names_are_stored_once(tmp_path):
    """A tie that the configuration does not mention: lm_head holds the bytes of the embedding."""
    size_of_weights = make_llama(
        tmp_path / "model", hidden=256, layers=1, vocabulary=8192, tied=True
    )
    path = tmp_path / "model/model.safetensors"
    header, data = read_header(path)
    embedding = header["model.embed_tokens.weight"]
    start, end = embedding["data_offsets"]
    header["lm_head.weight"] = embedding | {"data_offsets": [len(data), len(data) + end - start]}
    write_header(path, header, data + data[start:end])
    config = tmp_path / "model/config.json"
    for tied in ("true", "false"):
        text = config.read_text()
        for old in ("true", "false"):
            text = text.replace(f'"tie_word_embeddings": {old}', f'"tie_word_embeddings": {tied}')
        config.write_text(text)
        report = ferry_json("export", tmp_path / "model", "-o", tmp_path / tied)
        assert report["weight_bytes"] <= (1.02 if tied == "true" else 1.9) * size_of_weights


# ---- linked weights ----


def test_linked_weights(fixture, tmp_path):
    shutil.copytree(fixture("llama"), tmp_path / "model")
    before = contents(tmp_path / "model")
    report = ferry_json("export", tmp_path / "model", "-o", tmp_path / "model", "--weights", "link")
    assert report["weight_bytes"] == 0
    after = contents(tmp_path / "model")
    assert set(after) - set(before) == {"model.onnx", "export.json"}
    assert all(after[name] == digest for name, digest in before.items())
    onnx.checker.check_model(tmp_path / "model/model.onnx", full_check=True)
    outputs = run_onnxruntime(
        tmp_path / "model/model.onnx", load_file(tmp_path / "model/inputs.safetensors")
    )
    compare(outputs, load_file(tmp_path / "model/expected.safetensors"))


def test_linked_weights_below_the_export(fixture, tmp_path):
    shutil.copytree(fixture("bert"), tmp_path / "out/checkpoint")
    ferry("export", tmp_path / "out/checkpoint", "-o", tmp_path / "out", "--weights", "link")
    assert not (tmp_path / "out/model.onnx.data").exists()
    source = tmp_path / "out/checkpoint"
    outputs = run_onnxruntime(tmp_path / "out/model.onnx", load_file(source / "inputs.safetensors"))
    compare(outputs, load_file(source / "expected.safetensors"))


def test_linked_weights_outside_the_export(fixture, tmp_path):
    done = ferry(
        "export", fixture("llama"), "-o", tmp_path / "out", "--weights", "link", status=None
    )
    assert done.returncode in (2, 6)
    assert "model.safetensors" in done.stderr and "--weights copy" in done.stderr
    assert not (tmp_path / "out").exists()


def test_linked_weights_behind_a_symbolic_link(fixture, tmp_path):
    """ONNX Runtime refuses these, so ferry does first."""
    shutil.copytree(fixture("llama"), tmp_path / "model")
    (tmp_path / "model/model.safetensors").rename(tmp_path / "blob")
    (tmp_path / "model/model.safetensors").symlink_to(tmp_path / "blob")
    before = contents(tmp_path / "model")
    done = ferry(
        "export", tmp_path / "model", "-o", tmp_path / "model", "--weights", "link", status=None
    )
    assert done.returncode in (2, 6), done.stderr
    assert contents(tmp_path / "model") == before


def test_linked_weights_in_another_dtype(fixture, tmp_path):
    """What has to be converted cannot be linked; the numbers are right or it is an error."""
    shutil.copytree(fixture("llama"), tmp_path / "model")
    done = ferry(
        "export",
        tmp_path / "model",
        "-o",
        tmp_path / "model",
        *("--weights", "link", "--dtype", "float16"),
        status=None,
    )
    if done.returncode == 0:
        inputs = load_file(tmp_path / "model/inputs.safetensors")
        outputs = run_onnxruntime(tmp_path / "model/model.onnx", inputs)
        compare(outputs, load_file(tmp_path / "model/expected.safetensors"), tolerance=2e-2)
    else:
        assert done.returncode in (2, 6) and not (tmp_path / "model/model.onnx").exists()


# ---- all or nothing ----


def test_full_disk(checkpoint, small_disk):
    done = ferry("export", checkpoint, "-o", small_disk / "out", status=4)
    assert "space" in done.stderr
    assert list(small_disk.iterdir()) == []


def test_full_disk_keeps_the_old_export(fixture, checkpoint, small_disk):
    ferry("export", fixture("llama"), "-o", small_disk / "out", "-q")
    before = contents(small_disk / "out")
    ferry("export", checkpoint, "-o", small_disk / "out", status=4)
    assert contents(small_disk / "out") == before


def test_failed_export_keeps_the_old_one(fixture, tmp_path):
    source = tmp_path / "model"
    shutil.copytree(fixture("llama"), source)
    ferry("export", source, "-o", tmp_path / "out", "-q")
    before = contents(tmp_path / "out")
    os.truncate(source / "model.safetensors", 5000)
    ferry("export", source, "-o", tmp_path / "out", status=5)
    assert contents(tmp_path / "out") == before


def written(process) -> int:
    with open(f"/proc/{process.pid}/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("wchar"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_interrupted_export(fixture, tmp_path, number, old):
    source, target = tmp_path / "model", tmp_path / "out"
    make_llama(source, hidden=2048, layers=6, vocabulary=32000, holes=True)
    if old:
        ferry("export", fixture("llama"), "-o", target, "-q")
    before = contents(target)
    process = subprocess.Popen([FERRY, "export", source, "-o", target], env=ENVIRONMENT)
    try:
        deadline = time.monotonic() + 60
        while written(process) < 32 * MEBIBYTE and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(number)
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert contents(target) == before
    assert target.exists() == old


def test_what_goes_with_a_model_goes_with_its_export(fixture, tmp_path):
    source, target = tmp_path / "model", tmp_path / "out"
    source.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(fixture("llama") / name, source / name)
    files = {"tokenizer.json": "{}", "tokenizer_config.json": "{ }", "chat_template.jinja": "{{ x }}", "added_tokens.json": ""}
    for name, content in {**files, "vocab.json": "{}", "merges.txt": "", "README.md": ""}.items():
        (source / name).write_text(content)
    ferry("export", source, "-o", target)
    known = {"model.onnx", "model.onnx.data", "export.json", "config.json"}
    assert {path.name for path in target.iterdir()} == {*files, *known}
    for name, content in files.items():
        assert (target / name).read_text() == content
    ferry("export", source, "-o", source)  # in its own place
    assert (source / "chat_template.jinja").read_text() == files["chat_template.jinja"]
