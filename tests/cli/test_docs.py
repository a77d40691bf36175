"""The documentation does what it says: its commands run, and its C code compiles."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support import ENVIRONMENT, FERRY, ROOT, build_plugin, ferry, plugin_example, write_png, write_tokenizer, write_vision_model

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str, first: str) -> list:
    """The code blocks in `language` that have a line beginning with `first`."""
    found = []
    for page in PAGES:
        for i, match in enumerate(re.findall(rf"(?ms)^```{language}\n(.*?)^```", page.read_text())):
            if re.search(rf"(?m)^{first}", match):
                found.append(pytest.param(match, id=f"{page.stem}-{i + 1}"))
    return found


def write_chat_model(source: Path, directory: Path) -> None:
    """A checkpoint that has as many tokens as its tokenizer."""
    directory.mkdir()
    write_tokenizer(directory)
    config = json.loads((source / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "vocab_size": 257}))
    weights = load_file(source / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = np.resize(weights[name], (257, weights[name].shape[1]))
    save_file(weights, directory / "model.safetensors")


@pytest.fixture
def workspace(fixture, export, tmp_path):
    """A folder with what the commands in the documentation speak of."""
    models = {"my-model": "llama", "my-bert": "bert", "my-vit": "vit", "my-llava": "llava", "my-mixtral": "mixtral",
              "my-t5": "t5", "my-mamba": "mamba"}  # fmt: skip
    for name, model_type in models.items():
        (tmp_path / name).mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copyfile(fixture(model_type) / file, tmp_path / name / file)
    write_tokenizer(tmp_path / "my-model")
    (tmp_path / "my-model/chat_template.jinja").write_text("{% for m in messages %}<s>{{ m.content }}{% endfor %}")
    write_vision_model(fixture("llava"), tmp_path / "my-vlm")
    write_png(tmp_path / "cat.png", 64, 48)
    write_chat_model(fixture("llama"), tmp_path / "my-chat-model")
    ids, mask = np.array([[0, 0, 9, 8], [7, 6, 5, 4]]), np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    save_file({"input_ids": ids, "attention_mask": mask}, tmp_path / "prompts.safetensors")
    shutil.copyfile(ROOT / "tests/fuzz/corpus/gguf/llama", tmp_path / "my-model.gguf")
    for file in ("inputs.safetensors", "expected.safetensors"):
        shutil.copyfile(fixture("llama") / file, tmp_path / file.replace("expected", "outputs"))
    np.savez(tmp_path / "inputs.npz", **load_file(tmp_path / "inputs.safetensors"))
    shutil.copytree(export("llama"), tmp_path / "out")
    shutil.copytree(export("llama"), tmp_path / "my-model-onnx")
    ferry("export", tmp_path / "my-model", "--to", "dynamo", "-o", tmp_path / "out-dynamo", "-q")
    build_plugin(plugin_example(), tmp_path / "acme.so")
    return tmp_path


@pytest.mark.parametrize("script", blocks("sh", "ferry "))
def test_commands(workspace, script):
    path = os.pathsep.join([str(FERRY.parent), ENVIRONMENT["PATH"]])
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(
        command, env={**ENVIRONMENT, "PATH": path}, cwd=workspace, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("source", blocks("c", "#include <ferry/"))
def test_c_code(source):
    command = ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command += ["-I", ROOT / "include", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_models_page_lists_every_model_type():
    text = (ROOT / "docs/models.md").read_text()
    for line in ferry("models").stdout.splitlines():
        name = line.split()[0]
        assert re.search(rf"\b{name}\b", text), f"docs/models.md lacks {name}"
