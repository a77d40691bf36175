"""Configurations that the fixtures do not have: what make_*.py write, exported and run in ONNX
Runtime and in the built-in runtime."""

import json

import onnxruntime
import pytest
from safetensors.numpy import load_file
from support import compare, ferry, run_ferry
from variants import CHECKPOINTS

TASKS = {
    "TextModelWithProjection": "text-embedding",
    "VisionModelWithProjection": "image-embedding",
    "Gemma3TextModel": "feature-extraction",
    "TextModel": "text-feature-extraction",
    "VisionModel": "image-feature-extraction",
    "ForImageClassification": "image-classification",
    "EncoderModel": "text-encoding",
    "ForConditionalGeneration": "text2text-generation",
    "MTModel": "text2text-generation",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "Model": "feature-extraction",
    "ForMaskedLM": "fill-mask",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
}


FACTS = {
    path.parent.name: json.loads(path.read_text())
    for path in sorted(CHECKPOINTS.glob("*/case.json"))
}
REFUSED = [name for name, facts in FACTS.items() if "error" in facts]
ACCEPTED = [name for name in FACTS if name not in REFUSED]
SPELLED = sorted(path.parents[1].name for path in CHECKPOINTS.glob("*/spelling-1/config.json"))


def task(source, class_name):
    """--task, when config.json names another class than the one that ran."""
    config = json.loads((source / "config.json").read_text())
    if config["architectures"] == [class_name]:
        return ()
    return ("--task", next(task for end, task in TASKS.items() if class_name.endswith(end)))


def open_session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", ACCEPTED)
def test_outputs(tmp_path, name):
    source, target, facts = CHECKPOINTS / name, tmp_path / "export", FACTS[name]
    options, component = facts.get("options", ()), facts.get("component", "model")
    if component == "model":
        inputs = source / "inputs.safetensors"
        options = (*options, *task(source, facts["class"]), "--inputs", inputs, "--dynamic")
    ferry("export", source, "-o", target, *options)

    manifest = (target / "export.json").read_text()
    metadata = json.loads(manifest)["components"][component]["metadata"]
    assert metadata["architecture"] == facts["class"]
    assert facts["output_class"] in manifest

    session = open_session(target / f"{component}.onnx")
    outputs = [output.name for output in session.get_outputs()]
    for prefix in ("", "second_"):
        inputs = source / f"{prefix}inputs.safetensors"
        expected = load_file(source / f"{prefix}expected.safetensors")
        values = session.run(None, load_file(inputs))
        compare(dict(zip(outputs, values)), expected)
        compare(run_ferry(target, inputs, tmp_path / "out.safetensors", "reference"), expected)


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(tmp_path, name):
    options = FACTS[name].get("options", ())
    done = ferry("export", CHECKPOINTS / name, "-o", tmp_path / "export", *options, status=None)
    assert done.returncode in (5, 6) and FACTS[name]["error"] in done.stderr
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("name", SPELLED)
def test_spellings(name):
    """Other spellings of a configuration give the same program."""
    source = CHECKPOINTS / name
    wanted = ferry("show", source, "--program").stdout
    for spelling in sorted(source.glob("spelling-*")):
        assert ferry("show", spelling, "--program").stdout == wanted, spelling.name
