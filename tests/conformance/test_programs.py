"""Every torch.export program of the fixtures runs as it is, and as an ONNX export, with eager's numbers."""

import shutil

import programs
import pytest
from support import ferry


def cases():
    for name in programs.names():
        hole = programs.HOLES.get(name)
        yield pytest.param(name, marks=[pytest.mark.xfail(reason=hole, strict=True)] if hole else [])


@pytest.mark.parametrize("name", list(cases()))
def test_reference(fixture, name, tmp_path):
    assert programs.check_reference(name, tmp_path) > 0


@pytest.mark.parametrize("name", list(cases()))
def test_onnxruntime(fixture, name, tmp_path):
    assert programs.check_onnx(name, tmp_path) > 0
    shutil.rmtree(tmp_path / "onnx")


def test_show_names_the_sizes_that_tracing_fixed(fixture):
    text = ferry("show", fixture("mamba") / "model.pt2").stdout
    assert "input_ids[1] = 7" in text and "input_ids[0]" not in text


def test_expect_dynamic_names_the_sizes_that_tracing_fixed(fixture, tmp_path):
    done = ferry("export", fixture("mamba") / "model.pt2", "-o", tmp_path / "out", "--expect-dynamic", status=6)
    assert "input_ids[1] = 7" in done.stderr
    assert not (tmp_path / "out").exists()
    ferry("export", fixture("llama") / "model.pt2", "-o", tmp_path / "out", "--expect-dynamic")
