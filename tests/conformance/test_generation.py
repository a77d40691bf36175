"""Generation: what exports generate in every runtime is what the eager models generate."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import run_api
import support
import transformers
from make_generation import BEAMS, NEW_TOKENS, SEARCHED
from safetensors.numpy import load_file, save_file
from support import FIXTURES, ferry, ferry_json
from variants import CHECKPOINTS

HERE = Path(__file__).parent
GENERATIVE = {
    family["model_type"] for family in ferry_json("models") if "text-generation" in family["tasks"]
}
MODEL_TYPES = [name for name in support.native_fixtures() if name in GENERATIVE]
RUNTIMES = {"onnx": "onnxruntime", "openvino": "openvino", "executorch": "executorch", "dynamo": "reference"}
CACHES = {
    "growing": [],
    "growing-multi-token": ["--multi-token-decode"],
    "static": ["--static-cache", "48"],
    "static-multi-token": ["--static-cache", "48", "--multi-token-decode"],
}

# Every target and every kind of cache for a few; for the others each target once, and the kinds in turn.
WHOLE = ("llama", "gpt2", "gemma3_text")
CASES = [(name, target, cache) for name in WHOLE for target in RUNTIMES for cache in CACHES] + [
    (name, target, list(CACHES)[(i + j) % len(CACHES)])
    for i, name in enumerate(MODEL_TYPES)
    if name not in WHOLE
    for j, target in enumerate(RUNTIMES)
]

# Traced decode steps with a static cache, of native types and others; each in one runtime.
TRACED = ("gemma3_text", "gpt2", "llama", "qwen3", "ernie4_5", "gemma3n_text", "gemma4_text", "glm", "glm4_moe",
          "hunyuan_v1_dense", "llama4_text", "ministral", "olmo", "phi", "trocr")  # fmt: skip
TRACED_CASES = [(name, list(RUNTIMES)[i % len(RUNTIMES)]) for i, name in enumerate(TRACED)]
EVERY_TYPE = sorted({*MODEL_TYPES, *TRACED})


# Configurations whose sequences cannot always be computed piece by piece.
AT_ONCE = ("gemma3_text-both-ways-left", "phi3-rope-longrope")
# And those whose caches OpenVINO's plugin does not make one operation with attention.
APART = ("deepseek_v3-all-dense", "gpt_oss-full")


def generate_all(directory: Path) -> None:
    script = HERE / "make_generation.py"
    subprocess.run([sys.executable, script, CHECKPOINTS, directory, *AT_ONCE, *APART], check=True)
    halves = [EVERY_TYPE[0::2], EVERY_TYPE[1::2]]
    running = [subprocess.Popen([sys.executable, script, FIXTURES, directory, *half]) for half in halves]
    assert not any([process.wait() for process in running])


@pytest.fixture(scope="session")
def eager() -> Path:
    """What the eager models generate."""
    known = " ".join([transformers.__version__, *EVERY_TYPE, *AT_ONCE, *APART, CHECKPOINTS.name]).encode()
    return support.make_once("generation", [HERE / "make_generation.py"], generate_all, known)


def configure(directory: Path, **changes) -> None:
    path = directory / "generation_config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**config, "do_sample": False, "pad_token_id": 0, **changes}))


def export(source: Path, directory: Path, *options) -> Path:
    ferry("export", source, *options, "-o", directory, "-q")
    configure(directory, min_new_tokens=NEW_TOKENS)
    return directory


def generate(directory: Path, inputs: dict, runtime: str, *options) -> np.ndarray:
    save_file(inputs, directory / "prompts.safetensors")
    result = directory / "sequences.safetensors"
    ferry("generate", directory, "--inputs", directory / "prompts.safetensors", "-o", result,
          "--runtime", runtime, "--max-new-tokens", str(NEW_TOKENS), *options)  # fmt: skip
    return load_file(result)["sequences"]


@pytest.mark.parametrize("model_type, target, cache", CASES)
def test_an_export_generates_what_the_eager_model_generates(model_type, target, cache, eager, tmp_path):
    expected = load_file(eager / f"{model_type}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(FIXTURES / model_type, tmp_path, "--generation", "--to", target, *CACHES[cache])
    chunks = ("0", "3", "1") if cache.endswith("multi-token") else ("0",)
    for chunk in chunks:
        found = generate(directory, inputs, RUNTIMES[target], "--chunk", chunk)
        np.testing.assert_array_equal(found, expected["greedy"], err_msg=f"in chunks of {chunk}")


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("name", AT_ONCE)
def test_what_cannot_be_computed_in_pieces_is_computed_at_once(name, target, eager, tmp_path):
    expected = load_file(eager / f"{name}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    for cache in ("growing", "growing-multi-token"):
        options = [*CACHES[cache], *(["--no-stateful"] if target == "openvino" and cache == "growing" else [])]
        directory = export(CHECKPOINTS / name, tmp_path / cache, "--generation", "--to", target, *options)
        for chunk in ("0", "3"):
            found = generate(directory, inputs, RUNTIMES[target], "--chunk", chunk)
            np.testing.assert_array_equal(found, expected["greedy"], err_msg=f"{cache}, in chunks of {chunk}")


@pytest.mark.parametrize("cache", ["growing", "growing-multi-token"])
@pytest.mark.parametrize("name", APART)
def test_the_states_of_openvino_begin_empty_whatever_its_plugin_makes_of_them(name, cache, eager, tmp_path):
    expected = load_file(eager / f"{name}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(CHECKPOINTS / name, tmp_path, "--generation", "--to", "openvino", *CACHES[cache])
    np.testing.assert_array_equal(generate(directory, inputs, "openvino"), expected["greedy"])


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_cannot_be_computed_in_pieces_is_refused_by_a_decode_of_one_token_that_keeps_its_cache(name, tmp_path):
    directory = export(CHECKPOINTS / name, tmp_path, "--generation", "--to", "openvino")
    save_file({"input_ids": np.full([1, 20], 7)}, tmp_path / "prompts.safetensors")
    done = ferry("generate", directory, "--inputs", tmp_path / "prompts.safetensors", "-o", tmp_path / "out.safetensors",
                 "--runtime", "openvino", status=6)  # fmt: skip
    assert 'computes the 20 tokens at once, and "decode" takes one at a time' in done.stderr
    assert "--multi-token-decode" in done.stderr


def test_tokens_that_see_each_other_both_ways_have_no_static_cache(tmp_path):
    done = ferry("export", CHECKPOINTS / "gemma3_text-both-ways", "--generation", "--static-cache", "48",
                 "-o", tmp_path / "out", status=6)  # fmt: skip
    assert '"use_bidirectional_attention" is true' in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cache", ["growing", "static"])
def test_an_onnx_export_generates_in_the_built_in_runtime_too(cache, eager, tmp_path):
    expected = load_file(eager / "llama.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(FIXTURES / "llama", tmp_path, "--generation", *CACHES[cache])
    np.testing.assert_array_equal(generate(directory, inputs, "reference"), expected["greedy"])


@pytest.mark.parametrize("model_type, target", TRACED_CASES)
def test_a_traced_decode_step_generates_what_the_eager_model_generates(model_type, target, eager, tmp_path):
    expected = load_file(eager / f"{model_type}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    program = FIXTURES / model_type / "decode.pt2"
    directory = export(program, tmp_path, "--component", "decode", "--to", target)
    found = generate(directory, inputs, RUNTIMES[target])
    np.testing.assert_array_equal(found, expected["greedy"])


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("model_type", SEARCHED)
def test_beam_search_finds_what_it_finds_in_transformers(model_type, target, eager, tmp_path):
    expected = load_file(eager / f"{model_type}.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(FIXTURES / model_type, tmp_path, "--generation", "--multi-token-decode", "--to", target)
    saved = (FIXTURES / model_type / "generation_config.json").read_text()
    for name, options in BEAMS.items():
        (directory / "generation_config.json").write_text(saved)
        configure(directory, **options)
        found = generate(directory, inputs, RUNTIMES[target])
        np.testing.assert_array_equal(found, expected[name], err_msg=name)


def test_the_programs_of_a_split_become_the_components_of_an_export(tmp_path):
    programs, directory = tmp_path / "programs", tmp_path / "export"
    ferry("export", FIXTURES / "llama", "--generation", "--to", "dynamo", "-o", programs, "-q")
    ferry("export", programs, "--generation", "-o", directory, "-q")
    shown = ferry_json("show", directory)
    assert [component["name"] for component in shown["components"]] == ["prefill", "decode"]
    ferry("check", directory)
    error = ferry("export", programs, "-o", directory, status=2).stderr
    assert "2 components" in error and "--generation" in error


@pytest.mark.parametrize("options, length", [({"max_new_tokens": 7}, 16), ({"max_length": 12}, 12)])
def test_generation_config_says_how_long_sequences_become(options, length, eager, tmp_path):
    inputs = load_file(eager / "llama.safetensors")
    directory = export(FIXTURES / "llama", tmp_path, "--generation")
    configure(directory, min_new_tokens=32, **options)
    save_file({"input_ids": inputs["input_ids"][1:]}, directory / "prompts.safetensors")
    command = ["generate", directory, "--inputs", directory / "prompts.safetensors", "-o", directory / "out.npz"]
    ferry(*command)
    assert np.load(directory / "out.npz")["sequences"].shape == (1, length)
    ferry(*command, "--max-new-tokens", "2")
    assert np.load(directory / "out.npz")["sequences"].shape == (1, 11)


@pytest.fixture(scope="session")
def splits() -> Path:
    """Splits that Transformers traced."""

    def make(directory: Path) -> None:
        subprocess.run([sys.executable, "-W", "ignore", HERE / "make_splits.py", directory], check=True)

    sources = [HERE / "make_splits.py", HERE / "checkpoints.py"]
    return support.make_once("splits", sources, make, transformers.__version__.encode())


@pytest.mark.parametrize("target", [name for name in RUNTIMES if name != "dynamo"])
@pytest.mark.parametrize("model_type", ["apertus", "bamba", "openai-gpt"])
def test_a_traced_split_of_another_type_generates_what_the_eager_model_generates(model_type, target, splits, tmp_path):
    expected = load_file(splits / model_type / "eager.safetensors")
    directory = export(splits / model_type / "split", tmp_path, "--generation", "--to", target)
    new = expected["whole"].shape[1] - expected["input_ids"].shape[1]
    configure(directory, min_new_tokens=new, max_new_tokens=new, eos_token_id=2)
    ids, mask = expected["input_ids"], expected["attention_mask"]
    for result, inputs in {
        "whole": {"input_ids": ids},
        "padded": {"input_ids": ids * mask, "attention_mask": mask},
    }.items():
        save_file(inputs, directory / "prompts.safetensors")
        sequences = directory / "sequences.safetensors"
        blind = (model_type, target, result) == ("bamba", "openvino", "padded")
        done = ferry("generate", directory, "--inputs", directory / "prompts.safetensors", "-o", sequences,
                     "--runtime", RUNTIMES[target], status=6 if blind else 0)  # fmt: skip
        if blind:  # its prompt goes through decode, whose states know nothing of padding
            assert "traced without a mask for padding" in done.stderr
        else:
            np.testing.assert_array_equal(load_file(sequences)["sequences"], expected[result], err_msg=result)


def test_padding_that_a_program_cannot_see_is_refused(tmp_path, eager):
    expected = load_file(eager / "llama.safetensors")
    inputs = {name: expected[name] for name in ("input_ids", "attention_mask")}
    directory = export(FIXTURES / "llama/dyn_decode.pt2", tmp_path, "--component", "decode")
    save_file(inputs, directory / "prompts.safetensors")
    done = ferry("generate", directory, "--inputs", directory / "prompts.safetensors", status=None)
    assert done.returncode != 0 and "prompts of the same length" in done.stderr


ENTRIES = 1 << 15
CACHE_BYTES = ENTRIES * 2 * 8 * 4  # of keys or values in a layer: 2 heads of size 8


@pytest.fixture(scope="module")
def counter(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("counter") / "count_bytes.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-fno-builtin", "-o", library, HERE / "count_bytes.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("target", ["onnx", "executorch"])
def test_a_step_on_a_static_cache_neither_copies_nor_allocates_one(target, counter, tmp_path):
    options = ["--dynamic-shapes", f"input_ids=batch:1..1,sequence:1..8;cache=cache_length:1..{ENTRIES}"]
    if target == "executorch":
        options += ["--no-alloc-graph-input", "--no-alloc-graph-output"]
    export(FIXTURES / "llama", tmp_path, "--generation", "--multi-token-decode", "--to", target,
           "--static-cache", str(ENTRIES), *options)  # fmt: skip
    save_file({"input_ids": np.array([[5, 6, 7]])}, tmp_path / "prompt.safetensors")
    counted = []
    for tokens in (2, 10):
        environment = {**support.ENVIRONMENT, "LD_PRELOAD": str(counter), "COUNT_BYTES": str(CACHE_BYTES),
                       "COUNT_FILE": str(tmp_path / "counted")}  # fmt: skip
        command = [support.FERRY, "generate", tmp_path, "--inputs", tmp_path / "prompt.safetensors",
                   "--ids", "-n", str(tokens), "--runtime", RUNTIMES[target]]  # fmt: skip
        subprocess.run(command, env=environment, check=True, capture_output=True)
        counted.append((tmp_path / "counted").read_text().split())
    assert int(counted[0][1]) >= 4 * CACHE_BYTES, "the cache itself was not counted"
    assert counted[0] == counted[1], "bytes copied and allocated with 1 and with 9 steps"


def tampered(directory: Path, change) -> str:
    """What `ferry generate` says of an export after `change(export.json as a dictionary, its directory)`."""
    export(FIXTURES / "llama", directory, "--generation", "--multi-token-decode")
    path = directory / "export.json"
    manifest = json.loads(path.read_text())
    change(manifest, directory)
    path.write_text(json.dumps(manifest))
    save_file({"input_ids": np.array([[5, 6, 7]])}, directory / "prompt.safetensors")
    done = ferry("generate", directory, "--inputs", directory / "prompt.safetensors", status=None)
    assert 0 < done.returncode < 70, done
    return done.stderr


def decode_port(manifest: dict, name: str) -> dict:
    ports = manifest["components"]["decode"]["metadata"]["ferry"]["inputs"]
    return next(port for port in ports if port["name"] == name)


TAMPERED = {
    "no components": (lambda m, d: m.update(components={}), '"components"'),
    "no decode": (lambda m, d: m["components"].pop("decode"), "no component that takes tokens and a cache"),
    "no file": (lambda m, d: (d / "decode.onnx").unlink(), "decode.onnx"),
    "no weights": (lambda m, d: (d / "prefill.onnx.data").unlink(), "prefill.onnx.data"),
    "a file elsewhere": (lambda m, d: m["components"]["decode"].update(file="../decode.onnx"), "inside the directory"),
    "another program": (lambda m, d: m["components"]["decode"].update(file="prefill.onnx"), "input.cache.layers.0.keys"),
    "no inputs": (lambda m, d: m["components"]["decode"]["metadata"]["ferry"].pop("inputs"), "does not describe"),
    "other heads": (lambda m, d: decode_port(m, "input.cache.layers.0.keys")["shape"].__setitem__(1, "3"),
                    "input.cache.layers.0.keys"),
    "no size": (lambda m, d: decode_port(m, "input.cache.layers.0.keys")["shape"].__setitem__(1, "-3"), "expected a dtype and sizes"),
    "another dtype": (lambda m, d: decode_port(m, "input.cache.layers.0.keys").update(dtype="float16"),
                      "is float32, the tensor given is float16"),
    "no dtype": (lambda m, d: decode_port(m, "input_ids").update(dtype="int65"), "input_ids"),
    "a smaller vocabulary": (lambda m, d: (d / "config.json").write_text('{"vocab_size": 4}'),
                             "outside the model's vocabulary of 4"),
    "damaged options": (lambda m, d: (d / "generation_config.json").write_text('{"top_k": "many"}'),
                        '"top_k": expected an integer'),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_export_is_refused_with_a_word_on_what_is_wrong(name, tmp_path):
    change, message = TAMPERED[name]
    assert message in tampered(tmp_path, change)


def test_a_prompt_that_a_static_cache_cannot_hold_is_refused(tmp_path):
    directory = export(FIXTURES / "llama", tmp_path, "--generation", "--static-cache", "8")
    save_file({"input_ids": np.array([[5, 6, 7]])}, directory / "prompt.safetensors")
    ferry("generate", directory, "--inputs", directory / "prompt.safetensors", "-n", "6")
    done = ferry("generate", directory, "--inputs", directory / "prompt.safetensors", "-n", "7", status=2)
    assert "exported for 8 entries" in done.stderr and "--static-cache" in done.stderr
    configure(directory, max_new_tokens=2**63 - 1)
    done = ferry("generate", directory, "--inputs", directory / "prompt.safetensors", status=2)
    assert "exported for 8 entries" in done.stderr


LIBRARIES = {"onnx": support.LIBRARY, "openvino": support.OPENVINO, "executorch": support.EXECUTORCH, "dynamo": ""}


@pytest.mark.parametrize("target", RUNTIMES)
def test_a_runner_keeps_its_cache_from_step_to_step(target, tmp_path):
    options = ["--no-stateful"] if target == "openvino" else []
    export(FIXTURES / "llama", tmp_path, "--generation", "--multi-token-decode", "--to", target, *options)
    runner = run_api.Runner(tmp_path, "decode", RUNTIMES[target], LIBRARIES[target])
    ids, size = np.array([[5, 6, 7, 8, 9]]), ferry_json("show", tmp_path, "--component", "decode")["inputs"]
    empty = {port["name"].removeprefix("input."): np.zeros((1, 2, 0, 8), np.float32) for port in size if "cache" in port["name"]}

    def feed(begin, end, **cache):
        mask = np.ones((1, end), np.int64)
        return {"input_ids": ids[:, begin:end], "attention_mask": mask, "position_ids": np.arange(begin, end)[None], **cache}

    whole = runner.run(feed(0, 5, **empty))["logits"]
    at_once = runner.cache()
    runner.reset()
    runner.run(feed(0, 2, **empty))
    runner.run(feed(2, 4))
    last = runner.run(feed(4, 5))
    assert set(last) == {"logits"}
    np.testing.assert_allclose(last["logits"][:, 0], whole[:, 4], atol=1e-4)
    support.compare(runner.cache(), at_once)
    runner.close()


PROGRAM = """
#include <stdio.h>

int main(int count, char **arguments) {
    ferry_model *model;
    ferry_error error = {0};
    ferry_status status = ferry_model_open(arguments[1], &model, &error);
    if (status == FERRY_OK) status = export_decode(model, arguments[2], &error);
    if (status != FERRY_OK) printf("%s: %s", error.where, error.message);
    return count == 3 ? (int)status : 100;
}
"""


def test_components_are_changed_and_left_out_from_c(tmp_path):
    """The example of docs/generation.md."""
    page = (support.ROOT / "docs/generation.md").read_text()
    example = next(block for block in re.findall(r"(?ms)^```c\n(.*?)^```", page) if "export_decode" in block)
    build = ["cc", "-std=c17", "-I", support.ROOT / "include", "-x", "c", "-", "-o", tmp_path / "program",
             "-L", support.FERRY.parent, "-lferry", f"-Wl,-rpath,{support.FERRY.parent}"]  # fmt: skip
    subprocess.run(build, input=example + PROGRAM, text=True, check=True)
    subprocess.run([tmp_path / "program", FIXTURES / "llama", tmp_path / "out"], check=True)
    shown = ferry_json("show", tmp_path / "out")
    assert shown["name"] == "decode"
    manifest = json.loads((tmp_path / "out/export.json").read_text())
    assert manifest["components"]["decode"]["metadata"]["ferry"]["ranges"]["sequence"] == [1, 64]
    ferry("check", tmp_path / "out")


def test_a_runtime_that_keeps_no_cache_does_not_generate_with_one_that_must(tmp_path):
    directory = export(FIXTURES / "llama", tmp_path, "--generation", "--to", "openvino")
    save_file({"input_ids": np.array([[5, 6, 7]])}, directory / "prompt.safetensors")
    prompt = ("--inputs", directory / "prompt.safetensors", "--runtime", "reference")
    assert "--no-stateful" in ferry("generate", directory, *prompt, status=6).stderr
