"""Exports in OpenVINO, through ferry's own adapter: eager's numbers, checks, and clear errors."""

import shutil

import numpy as np
import pytest
import support
from safetensors.numpy import load_file, save_file
from support import compare, ferry, ferry_json, run_ferry

MODEL_TYPES = ["llama", "bert", "modernbert"]


@pytest.fixture(scope="module")
def openvino_export(fixture, tmp_path_factory):
    """The folder of an OpenVINO export of a model type's fixture, made once."""
    made = {}

    def find(model_type, *options):
        key = (model_type, *options)
        if key not in made:
            source = fixture(model_type)
            shapes = ["--inputs", source / "inputs.safetensors", "--dynamic"]
            made[key] = tmp_path_factory.mktemp("openvino") / model_type
            ferry("export", source, "-o", made[key], "--to", "openvino", *shapes, *options)
        return made[key]

    return find


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("sample", ["", "second_"], ids=["first", "second"])
def test_eager_numbers(fixture, openvino_export, tmp_path, model_type, sample):
    inputs = fixture(model_type) / f"{sample}inputs.safetensors"
    expected = load_file(fixture(model_type) / f"{sample}expected.safetensors")
    for runtime in ("openvino", "reference"):
        outputs = run_ferry(openvino_export(model_type), inputs, tmp_path / "out.safetensors", runtime)
        compare(outputs, expected)


def test_float32_is_float32(fixture, openvino_export, tmp_path):
    """The CPU plugin would compute in bfloat16 where the processor can: the adapter asks for more."""
    inputs = fixture("llama") / "inputs.safetensors"
    expected = load_file(fixture("llama") / "expected.safetensors")
    for device in ("cpu", "AUTO"):
        out = tmp_path / "out.safetensors"
        ferry("run", openvino_export("llama"), "-i", inputs, "-o", out, "--device", device)
        compare(load_file(out), expected, 1e-5)


def test_check_runs_what_fits_the_format(openvino_export):
    comparisons = ferry_json("check", openvino_export("bert"))
    assert {c["runtime"].split()[0] for c in comparisons} == {"openvino"}
    assert len({c["inputs"] for c in comparisons}) == 2 and all(c["passed"] for c in comparisons)


def test_linked_weights_are_read_back(fixture, openvino_export, tmp_path):
    """Every number of the graph is made of shapes there."""
    linked = openvino_export("llama", "--weights", "link")
    assert (linked / "openvino_model.bin").is_symlink()
    ferry("check", linked, "-i", fixture("llama") / "inputs.safetensors")


def test_show(openvino_export):
    text = ferry("show", openvino_export("llama"), "--program").stdout
    assert "input_ids: %input_ids : int64[batch, sequence]" in text
    assert "%model.layers.0.self_attn.q_proj.weight : float32[32, 32]" in text
    assert "aten::linear" in text and "# model.layers.0.self_attn" in text


def test_a_stateful_model_starts_over_at_every_run(fixture, openvino_export, tmp_path):
    """beam_idx is made up; the reference runtime knows what OpenVINO's state is at first."""
    target = tmp_path / "decode"
    ferry("export", fixture("llama") / "decode.pt2", "-o", target, "--to", "openvino")
    names = [port["name"] for port in ferry_json("show", target)["inputs"]]
    assert "beam_idx" in names and not any(name.startswith("cache.") for name in names)
    given = fixture("llama") / "decode_inputs.safetensors"
    found = [run_ferry(target, given, tmp_path / "out.safetensors", r) for r in ("openvino", "openvino", "reference")]
    compare(found[1], found[0], 0)
    compare(found[2], found[0])
    beams = {**load_file(given), "beam_idx": np.arange(load_file(given)["input_ids"].shape[0], dtype=np.int32)}
    save_file(beams, tmp_path / "beams.safetensors")
    compare(run_ferry(target, tmp_path / "beams.safetensors", tmp_path / "out.safetensors", "openvino"), found[0], 0)


def test_doctor():
    runtimes = {runtime["name"]: runtime for runtime in ferry_json("doctor")}
    openvino = runtimes["openvino"]
    assert openvino["found"] and openvino["version"] == openvino["tested"]
    assert "CPU" in openvino["devices"].split(", ")
    assert openvino["path"].startswith(str(support.OPENVINO.resolve()))


def test_a_named_library_is_that_of_its_runtime(openvino_export):
    found = ferry_json("doctor", "--library", support.OPENVINO)
    assert all(runtime["found"] for runtime in found)
    done = ferry("run", openvino_export("bert"), "-i", "none.safetensors", "--library", support.LIBRARY, status=3)
    assert "none.safetensors" in done.stderr


# ---- errors ----


@pytest.fixture
def damaged(openvino_export, tmp_path):
    """A copy of an export, to be damaged; the runs of it."""
    target = tmp_path / "damaged"
    shutil.copytree(openvino_export("bert"), target)
    model = target / "openvino_model.xml"

    def check(old, new, status, *words, runtime="openvino", options=()):
        text = model.read_text()
        assert old in text
        model.write_text(text.replace(old, new, 1))
        inputs = support.FIXTURES / "bert/inputs.safetensors"
        done = ferry("run", target, "-i", inputs, "--runtime", runtime, *options, status=status)
        errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(errors) == 1, done.stderr
        for word in words:
            assert word in errors[0], f"expected {word!r} in {errors[0]!r}"
        model.write_text(text)

    check.folder = target
    return check


def test_damaged_models(damaged):
    """What would end the process in OpenVINO, or be taken for something else, is refused before."""
    for runtime in ("openvino", "reference"):
        damaged('type="Const"', 'type="Constant"', 5, "openvino_model.xml", 'expected "Const"', runtime=runtime)
        damaged(' offset="', ' offset="99999999', 5, "are not in the weights", runtime=runtime)
        damaged("</layers>", "", 5, "not valid XML", runtime=runtime)
        damaged('from-layer="', 'from-layer="77', 5, "which is not there", runtime=runtime)
    damaged('type="MatMul"', 'type="MatMal"', 9, "OpenVINO cannot read the model", "MatMal")
    damaged('type="MatMul"', 'type="MatMal"', 6, "no support for the layer MatMal of opset1", runtime="reference")
    damaged("<net", "<net", 2, "there is no such device", "CPU", options=["--device", "gpu.9"])
    damaged("<net", "<net", 2, "is not a runtime", runtime="tensorrt")
    damaged("<net", "<net", 6, "onnxruntime does not run an export of the format", runtime="onnxruntime")
    (damaged.folder / "openvino_model.bin").unlink()
    damaged("<net", "<net", 3, "the file with the ending .bin beside the model")


def test_a_missing_library(openvino_export, tmp_path):
    inputs = support.FIXTURES / "bert/inputs.safetensors"
    done = ferry("run", openvino_export("bert"), "-i", inputs, "--runtime", "openvino", "--library",
                 tmp_path / "none.so", status=8)
    assert "none.so" in done.stderr and "pip install openvino" in done.stderr
