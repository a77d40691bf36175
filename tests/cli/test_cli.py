"""The command line: usage, reports, exit statuses, and what goes to which stream."""

import json
import os
import subprocess

import numpy as np
import pytest
import support
from safetensors.numpy import load_file, save_file
from support import ENVIRONMENT, FERRY, ferry, ferry_json

COMMANDS = ["export", "run", "check", "show", "models", "ops", "doctor"]


def test_no_command():
    done = ferry(status=2)
    assert done.stdout == "" and "usage: ferry" in done.stderr


def test_unknown_command():
    assert "exprot" in ferry("exprot", "x", status=2).stderr


def test_help():
    done = ferry("--help")
    assert done.stderr == ""
    assert all(command in done.stdout for command in COMMANDS)


def test_version():
    assert ferry("--version").stdout.startswith("ferry ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_command(command):
    done = ferry(command, "--help")
    assert done.stdout.startswith(f"usage: ferry {command}")
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option(command):
    done = ferry(command, "--no-such-option", status=2)
    assert done.stdout == ""
    assert "--no-such-option" in done.stderr and f"ferry {command} --help" in done.stderr


@pytest.mark.parametrize("command", ["export", "run", "check", "show"])
def test_missing_argument(command):
    assert "expected" in ferry(command, status=2).stderr


def test_models():
    families = ferry_json("models")
    llama = next(family for family in families if family["model_type"] == "llama")
    assert llama["class_prefix"] == "Llama"
    assert "text-generation" in llama["tasks"]
    text = ferry("models").stdout
    assert all(family["model_type"] in text for family in families)


def test_ops():
    ops = ferry_json("ops")
    matmul = next(op for op in ops if op["name"] == "aten::matmul")
    assert matmul["reference"] is True and matmul["onnx"] == "yes"
    assert all(op["onnx"] in ("yes", "decomposed", "no") for op in ops)
    assert all(op["reference"] in (True, False) and op["schema"] for op in ops)
    backends = {op["name"]: (op["executorch"], op["mlx"]) for op in ops}
    assert backends["aten::rms_norm"] == ("decomposed", "yes")
    assert backends["aten::nonzero"] == ("yes", "kernels")


def test_doctor():
    runtimes = {runtime["name"]: runtime for runtime in ferry_json("doctor")}
    assert runtimes["reference"]["found"]
    assert runtimes["onnxruntime"]["found"]
    assert runtimes["onnxruntime"]["version"] == runtimes["onnxruntime"]["tested"]
    assert runtimes["onnxruntime"]["path"] == str(support.LIBRARY.resolve())


def test_doctor_names_a_missing_runtime(tmp_path):
    (runtime,) = [
        runtime
        for runtime in ferry_json("doctor", "--library", tmp_path / "none.so")
        if runtime["name"] == "onnxruntime"
    ]
    assert not runtime["found"] and "none.so" in runtime["problem"]


def test_export_report(fixture, tmp_path):
    report = ferry_json("export", fixture("llama"), "-o", tmp_path / "out")
    assert report["architecture"] == "LlamaForCausalLM"
    assert report["dtype"] == "float32" and report["format"] == "onnx"
    assert report["inputs"][0] == {
        "name": "input_ids",
        "dtype": "int64",
        "shape": ["batch", "sequence"],
    }
    assert [output["name"] for output in report["outputs"]][0] == "logits"
    assert report["graph_bytes"] == (tmp_path / "out/model.onnx").stat().st_size
    assert report["weight_bytes"] == (tmp_path / "out/model.onnx.data").stat().st_size


def test_export_writes_these_files(fixture, tmp_path):
    done = ferry("export", fixture("llama"), "-o", tmp_path / "a/b/out", "-q")
    assert done.stdout == "" and done.stderr == ""
    assert sorted(path.name for path in (tmp_path / "a/b/out").iterdir()) == [
        "config.json",
        "export.json",
        "generation_config.json",
        "model.onnx",
        "model.onnx.data",
    ]


def test_notes_go_to_stderr(fixture, tmp_path):
    done = ferry(
        "export", fixture("llama"), "-o", tmp_path / "out", "--dtype", "bfloat16", "--json"
    )
    json.loads(done.stdout)
    assert "note: " in done.stderr and "bfloat16" in done.stderr


def test_dump_after_prints_the_program_alone(fixture, tmp_path):
    done = ferry("export", fixture("llama"), "-o", tmp_path / "out", "--dump-after", "legalize")
    assert "aten::" in done.stdout and "LlamaForCausalLM" in done.stdout
    assert not (tmp_path / "out").exists()


def test_show_checkpoint(fixture):
    shown = ferry_json("show", fixture("llama"), "--weights")
    assert shown["kind"] == "checkpoint" and shown["model_type"] == "llama"
    assert shown["tensors"] == len(shown["weights"])
    assert sum(4 * count(weight["shape"]) for weight in shown["weights"]) == shown["bytes"]


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def test_show_export(export):
    shown = ferry_json("show", export("llama"))
    assert shown["kind"] == "export"
    assert {port["name"] for port in shown["inputs"]} == {"input_ids", "attention_mask"}


def test_show_program(fixture, export):
    assert "aten::linear" in ferry("show", fixture("llama"), "--program").stdout
    assert "LlamaForCausalLM" in ferry("show", export("llama"), "--program").stdout


def test_run_describes_outputs(fixture, export):
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", export("llama"), "--inputs", inputs)
    assert done.stdout.startswith("logits float32[2, 7, 128]")


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_run_writes_outputs(fixture, export, tmp_path, suffix):
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", export("llama"), "-i", inputs, "-o", tmp_path / f"out.{suffix}")
    assert done.stdout == ""
    load = np.load if suffix == "npz" else load_file
    assert load(tmp_path / f"out.{suffix}")["logits"].shape == (2, 7, 128)


def test_run_drops_unknown_inputs(fixture, export, tmp_path):
    inputs = load_file(fixture("llama") / "inputs.safetensors")
    inputs["unknown"] = inputs["input_ids"]
    save_file(inputs, tmp_path / "in.safetensors")
    done = ferry("run", export("llama"), "-i", tmp_path / "in.safetensors")
    assert '"unknown"' in done.stderr and "dropped" in done.stderr


def test_run_names_a_missing_input(fixture, export, tmp_path):
    inputs = load_file(fixture("llama") / "inputs.safetensors")
    save_file({"input_ids": inputs["input_ids"]}, tmp_path / "in.safetensors")
    for runtime in ("onnxruntime", "reference"):
        done = ferry(
            "run",
            export("llama"),
            "-i",
            tmp_path / "in.safetensors",
            "--runtime",
            runtime,
            status=2,
        )
        assert '"attention_mask" is missing' in done.stderr


def test_check_agrees(fixture, export):
    comparisons = ferry_json("check", export("llama"), "--against", fixture("llama"))
    assert comparisons and all(comparison["passed"] for comparison in comparisons)
    assert any("onnxruntime" in comparison["runtime"] for comparison in comparisons)


def test_check_against_recorded_outputs(fixture, export):
    source = fixture("llama")
    recorded = ["--inputs", source / "inputs.safetensors"]
    recorded += ["--against", source / "expected.safetensors"]
    assert "outputs agree" in ferry("check", export("llama"), *recorded).stdout


def test_check_finds_a_difference(fixture, export):
    source = fixture("llama")
    wrong = ["--inputs", source / "inputs.safetensors"]
    wrong += ["--against", source / "second_expected.safetensors"]
    comparisons = json.loads(ferry("check", export("llama"), *wrong, "--json", status=1).stdout)
    assert not all(comparison["passed"] for comparison in comparisons)


def test_full_stdout():
    with open("/dev/full", "w") as full:
        done = subprocess.run([FERRY, "models"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4 and "standard output" in done.stderr


def test_no_progress_without_a_terminal(fixture, tmp_path):
    done = ferry("export", fixture("llama"), "-o", tmp_path / "out")
    assert "\r" not in done.stderr and "\x1b" not in done.stderr


def test_without_any_runtime(fixture, export, tmp_path):
    """The built-in runtime takes over where ONNX Runtime is not there."""
    inputs = fixture("llama") / "inputs.safetensors"
    command = [FERRY, "run", export("llama"), "--inputs", inputs]
    bare = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    bare |= {key: ENVIRONMENT[key] for key in ("ASAN_OPTIONS",) if key in ENVIRONMENT}
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("logits")
    done = subprocess.run(
        [*command, "--runtime", "onnxruntime"],
        env=bare,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if os.path.exists("/usr/lib/python3/dist-packages/onnxruntime"):
        pytest.skip("this machine has a system-wide ONNX Runtime")
    assert done.returncode == 8 and "onnxruntime" in done.stderr
