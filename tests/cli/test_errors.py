"""What bad input gets: one clear error, the exit status for its kind, and no export."""

import json
import os
import shutil

import pytest
from synthetic import read_header, write_header
from safetensors.numpy import load_file, save_file
from support import ferry


@pytest.fixture
def checkpoint(fixture, tmp_path):
    """A copy of the llama fixture, to be damaged."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "checkpoint").mkdir(exist_ok=True)
        shutil.copyfile(fixture("llama") / name, tmp_path / "checkpoint" / name)
    return tmp_path / "checkpoint"


@pytest.fixture
def refused(checkpoint, tmp_path):
    """Export the checkpoint and expect a failure that says all of `words`."""

    def check(status, *words, options=(), source=None):
        target = tmp_path / "out"
        done = ferry("export", source or checkpoint, "-o", target, *options, status=status)
        assert done.stdout == ""
        errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(errors) == 1 and errors[0].startswith("ferry"), done.stderr
        for word in words:
            assert word in errors[0], f"expected {word!r} in {errors[0]!r}"
        assert not target.exists()

    return check


def edit_config(checkpoint, **changes):
    path = checkpoint / "config.json"
    config = json.loads(path.read_text())
    config.update(changes)
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def shard(checkpoint, names=("one.safetensors", "two.safetensors")):
    """Split the weights into two files with an index."""
    tensors = load_file(checkpoint / "model.safetensors")
    (checkpoint / "model.safetensors").unlink()
    index = {}
    for i, name in enumerate(names):
        part = {key: tensors[key] for key in list(tensors)[i::2]}
        save_file(part, checkpoint / os.path.basename(name))
        index |= {key: name for key in part}
    path = checkpoint / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": index}))


# ---- the model ----


@pytest.mark.parametrize("model_type,near", [("lama", "llama"), ("phi-3", "phi3"), ("mistrel", "mistral")])
def test_unknown_model_type(checkpoint, refused, model_type, near):
    edit_config(checkpoint, model_type=model_type)
    refused(6, f'"{model_type}"', f'the nearest that is: "{near}"')


def test_results_that_the_configuration_asks_for_besides(checkpoint, tmp_path):
    edit_config(checkpoint, output_hidden_states=True, output_attentions=False)
    done = ferry("export", checkpoint, "-o", tmp_path / "out")
    assert "sets output_hidden_states" in done.stderr and "output_attentions" not in done.stderr


def test_no_model_type(checkpoint, refused):
    edit_config(checkpoint, model_type=...)
    refused(5, "config.json", "model_type")


def test_unknown_class(checkpoint, refused):
    edit_config(checkpoint, architectures=["LlamaForSomethingElse"])
    refused(6, "LlamaForSomethingElse")


def test_unknown_config_key(checkpoint, refused, tmp_path):
    edit_config(checkpoint, logit_twist=2.5)
    refused(6, "logit_twist", "--ignore-config")
    ferry("export", checkpoint, "-o", tmp_path / "ok", "--ignore-config", "logit_twist")


@pytest.mark.parametrize(
    "key,value",
    [
        ("hidden_size", "wide"),
        ("hidden_size", -32),
        ("num_hidden_layers", 10**30),
        ("hidden_act", "unheard_of"),
        ("num_key_value_heads", 3),
        ("rope_parameters", {"rope_type": "spiral", "rope_theta": 1e4}),
        ("rope_parameters", [1]),
        ("architectures", "LlamaForCausalLM"),
    ],
)
def test_bad_config_value(checkpoint, key, value, tmp_path):
    edit_config(checkpoint, **{key: value})
    done = ferry("export", checkpoint, "-o", tmp_path / "out", status=None)
    assert done.returncode in (5, 6), done.stderr
    assert done.stderr.startswith("ferry: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"model_type": "llama"}}', '{"a": ' * 100000, "\xff", '{"a":1,"a":2}'],
    ids=["empty", "open", "list", "null", "trailing", "deep", "encoding", "twice"],
)
def test_broken_config(checkpoint, text, tmp_path):
    (checkpoint / "config.json").write_bytes(text.encode("latin-1"))
    done = ferry("export", checkpoint, "-o", tmp_path / "out", status=5)
    assert "config.json" in done.stderr
    assert not (tmp_path / "out").exists()


# ---- files ----


def test_no_checkpoint(refused, tmp_path):
    refused(3, "nowhere", source=tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_missing_file(checkpoint, refused, name):
    (checkpoint / name).unlink()
    refused(3, name)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_directory_in_place_of_a_file(checkpoint, refused, name):
    (checkpoint / name).unlink()
    (checkpoint / name).mkdir()
    refused(5, name)


def test_shards(checkpoint, tmp_path):
    shard(checkpoint)
    ferry("export", checkpoint, "-o", tmp_path / "ok")


def test_missing_shard(checkpoint, refused):
    shard(checkpoint)
    (checkpoint / "two.safetensors").unlink()
    refused(3, "two.safetensors")


def test_shard_outside_the_checkpoint(checkpoint, tmp_path):
    shard(checkpoint, ("one.safetensors", "../checkpoint/two.safetensors"))
    done = ferry("export", checkpoint, "-o", tmp_path / "out", status=5)
    assert "../checkpoint/two.safetensors" in done.stderr


def test_weight_that_no_shard_has(checkpoint, refused):
    shard(checkpoint)
    header, data = read_header(checkpoint / "one.safetensors")
    name = next(name for name in header if name != "__metadata__")
    header[name + ".old"] = header.pop(name)
    write_header(checkpoint / "one.safetensors", header, data)
    refused(5, name)


# ---- weights ----


@pytest.mark.parametrize("size", [0, 7, 8, 100, -1], ids=str)
def test_truncated(checkpoint, refused, size):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    refused(5, "model.safetensors")


def test_missing_weight(checkpoint, refused):
    header, data = read_header(checkpoint / "model.safetensors")
    header["model.norm.wait"] = header.pop("model.norm.weight")
    write_header(checkpoint / "model.safetensors", header, data)
    refused(5, "model.norm.weight")


def test_wrong_shape(checkpoint, refused):
    header, data = read_header(checkpoint / "model.safetensors")
    header["lm_head.weight"]["shape"].reverse()
    write_header(checkpoint / "model.safetensors", header, data)
    refused(5, "lm_head.weight", "[128, 32]", "[32, 128]")


@pytest.mark.parametrize(
    "entry",
    [
        {"data_offsets": [0, 10**15]},
        {"data_offsets": [2**63, 2**63 + 128]},
        {"data_offsets": [-128, 0]},
        {"data_offsets": [256, 128]},
        {"data_offsets": [0]},
        {"data_offsets": "0"},
        {"shape": [2**63]},
        {"shape": [2**32, 2**32]},
        {"shape": [2**62, 4]},
        {"shape": [-32]},
        {"shape": [31]},
        {"shape": 32},
        {"dtype": 5},
        {"dtype": None},
    ],
    ids=lambda entry: str(entry)[1:40],
)
def test_hostile_entry(checkpoint, refused, entry):
    header, data = read_header(checkpoint / "model.safetensors")
    header["model.norm.weight"].update(entry)
    write_header(checkpoint / "model.safetensors", header, data)
    refused(5, "model.safetensors")


@pytest.mark.parametrize("entry", [{"shape": [1] * 100}, {"dtype": "F33"}], ids=["rank", "dtype"])
def test_unsupported_entry(checkpoint, refused, entry):
    header, data = read_header(checkpoint / "model.safetensors")
    header["model.norm.weight"].update(entry)
    write_header(checkpoint / "model.safetensors", header, data)
    refused(6, "model.norm.weight")


def test_overlapping_weights(checkpoint, refused):
    header, data = read_header(checkpoint / "model.safetensors")
    first, second = "model.layers.0.input_layernorm.weight", "model.layers.1.input_layernorm.weight"
    header[first]["data_offsets"] = header[second]["data_offsets"]
    write_header(checkpoint / "model.safetensors", header, data)
    refused(5, "model.safetensors")


def test_header_longer_than_the_file(checkpoint, refused):
    path = checkpoint / "model.safetensors"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])
    refused(5, "model.safetensors")


# ---- options ----


@pytest.mark.parametrize(
    "options,words",
    [
        (["--opset", "17"], ["opset", "18 to 24"]),
        (["--opset", "new"], ["new"]),
        (["--dtype", "int8"], ["int8"]),
        (["--dtype", "brain"], ["brain", "float16"]),
        (["--task", "telepathy"], ["telepathy", "text-generation"]),
        (["--weights", "move"], ["move", "copy or link"]),
        (["--threads", "-1"], ["-1"]),
        (["--dynamic-shapes", "input_ids"], ["input_ids"]),
        (["--dynamic-shapes", "input_ids=batch:4..2,seq"], ["bound"]),
        (["--dynamic-shapes", "input_ids=batch:1.."], ["input_ids"]),
        (["--dynamic-shapes", "input_ids=batch,seq;"], ["name"]),
        (["--dynamic-shapes", "input_ids=99999999999999999999,seq"], ["64 bits"]),
        (["--dynamic-shapes", "input_ids=b:1..2,b:1..3"], ["other bounds"]),
        (["--dynamic-shapes", "pixel_values=batch,3,224,224"], ["pixel_values"]),
    ],
    ids=lambda value: "-".join(value).replace("--", ""),
)
def test_bad_option(refused, options, words):
    refused(2, *words, options=options)


def test_unknown_target(refused):
    refused(6, "tflite", "onnx", options=["--to", "tflite"])


def test_unknown_pass(refused):
    refused(2, "polish", "legalize", options=["--dump-after", "polish"])


def test_task_that_the_family_lacks(checkpoint, refused):
    refused(6, "fill-mask", options=["--task", "fill-mask"])


def test_no_output(checkpoint):
    assert "-o DIR" in ferry("export", checkpoint, status=2).stderr


def test_missing_inputs(checkpoint, refused, tmp_path):
    refused(3, "none.npz", options=["--inputs", tmp_path / "none.npz"])


def test_unreadable_inputs(checkpoint, refused):
    refused(5, "config.json", options=["--inputs", checkpoint / "config.json"])


def test_output_below_a_file(checkpoint, tmp_path):
    (tmp_path / "file").write_text("kept")
    done = ferry("export", checkpoint, "-o", tmp_path / "file/out", status=4)
    assert "file" in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


def test_output_that_cannot_be_written(checkpoint, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write anywhere")
    done = ferry("export", checkpoint, "-o", tmp_path / "locked/out", status=4)
    assert "locked" in done.stderr


# ---- exports ----


def test_run_without_an_export(checkpoint, tmp_path):
    inputs = checkpoint / "model.safetensors"
    assert "export.json" in ferry("run", tmp_path, "-i", inputs, status=3).stderr


@pytest.mark.parametrize(
    "change,status",
    [
        ({"components": {}}, None),
        ({"components": []}, None),
        ({"export_format": 5}, 5),
        ({"export_format": "tflite"}, 6),
        ({"schema_version": 99}, 6),
    ],
    ids=str,
)
def test_damaged_manifest(fixture, export, tmp_path, change, status):
    shutil.copytree(export("llama"), tmp_path / "copy")
    path = tmp_path / "copy/export.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", tmp_path / "copy", "-i", inputs, status=None)
    assert done.returncode in ((status,) if status else (5, 6)), done.stderr


@pytest.mark.parametrize("name", ["../model.onnx", "/etc/passwd", "", "a/../../model.onnx"])
def test_manifest_that_points_outside(export, tmp_path, name):
    shutil.copytree(export("llama"), tmp_path / "copy")
    path = tmp_path / "copy/export.json"
    manifest = json.loads(path.read_text())
    manifest["components"]["model"]["file"] = name
    path.write_text(json.dumps(manifest))
    done = ferry("show", tmp_path / "copy", status=5)
    assert "export.json" in done.stderr


@pytest.mark.parametrize("runtime,status", [("onnxruntime", 9), ("reference", 5)])
def test_damaged_model(fixture, export, tmp_path, runtime, status):
    shutil.copytree(export("llama"), tmp_path / "copy")
    path = tmp_path / "copy/model.onnx"
    path.write_bytes(path.read_bytes()[:-100])
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", tmp_path / "copy", "-i", inputs, "--runtime", runtime, status=status)
    assert "model.onnx" in done.stderr


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
def test_truncated_data(fixture, export, tmp_path, runtime):
    shutil.copytree(export("llama"), tmp_path / "copy")
    os.truncate(tmp_path / "copy/model.onnx.data", 1000)
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", tmp_path / "copy", "-i", inputs, "--runtime", runtime, status=None)
    assert done.returncode in (5, 9), done.stderr


def test_unknown_runtime(fixture, export):
    inputs = fixture("llama") / "inputs.safetensors"
    done = ferry("run", export("llama"), "-i", inputs, "--runtime", "abacus", status=2)
    assert "abacus" in done.stderr and "reference" in done.stderr
