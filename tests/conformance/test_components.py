"""The components of multimodal fixtures give the eager outputs, in every runtime; and so do all together."""

import functools
import json
import types

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file
from support import compare, ferry, run_ferry, run_onnxruntime

COMPONENTS = {
    "llava": ("image_encoder", "multi_modal_projector"),
    "gemma3": ("image_encoder", "multi_modal_projector"),
    "paligemma": ("image_encoder", "multi_modal_projector"),
    "idefics3": ("image_encoder", "connector"),
    "smolvlm": ("image_encoder", "connector"),
    "qwen2_vl": ("image_encoder",),
    "qwen3_vl": ("image_encoder",),
}
components = pytest.mark.parametrize(
    "model_type, component", [(name, part) for name, parts in COMPONENTS.items() for part in parts]
)


@components
def test_component(fixture, tmp_path, model_type, component):
    source = fixture(model_type)
    inputs = source / f"static_{component}_inputs.safetensors"
    expected = load_file(source / f"static_{component}_expected.safetensors")
    fixed = ";".join(f"{n}={','.join(map(str, v.shape))}" for n, v in load_file(inputs).items())
    for target, options in {"onnx": (), "openvino": (), "executorch": ("--dynamic-shapes", fixed)}.items():
        export = tmp_path / target
        ferry("export", source, "--component", component, "--to", target, "-o", export, *options)
        runtime = "onnxruntime" if target == "onnx" else target
        compare(run_ferry(export, inputs, tmp_path / "out.safetensors", runtime), expected)
    compare(run_onnxruntime(tmp_path / f"onnx/{component}.onnx", load_file(inputs)), expected)
    compare(run_ferry(tmp_path / "onnx", inputs, tmp_path / "out.safetensors", "reference"), expected)


LANGUAGE = ("llava", "gemma3", "paligemma", "idefics3", "smolvlm", "qwen2_vl", "qwen2_5_vl", "qwen3_vl")
STATES = {"attention_mask", "position_ids", "inputs_embeds", "visual_pos_masks", "deepstack_visual_embeds"}


def prompt_inputs(inputs: dict) -> dict:
    """What the language model takes of a prompt: no cache; masks of the prompt alone, and one where no token
    is hidden."""
    length = inputs["inputs_embeds"].shape[1]
    taken = {name: value for name, value in inputs.items() if name.split(".")[0] in STATES}
    for name in taken:
        if "attention_mask" in name:
            taken[name] = np.ascontiguousarray(taken[name][..., :length])
    if not any("attention_mask" in name for name in taken):
        taken["attention_mask"] = np.ones(inputs["inputs_embeds"].shape[:2], np.int64)
    return taken


@pytest.mark.parametrize("model_type", LANGUAGE)
def test_language_model(fixture, tmp_path, model_type):
    source = fixture(model_type)
    for component in ("language_model", "lm_head", "decode"):
        stem = source / (component if component == "decode" else f"static_{component}")
        inputs, expected = load_file(f"{stem}_inputs.safetensors"), load_file(f"{stem}_expected.safetensors")
        options = ["--component", component]
        if component != "lm_head":
            options += ["--static-cache", str(expected["cache.layers.0.keys"].shape[2])]
        if component == "decode":
            options.append("--multi-token-decode")
        if component == "language_model":
            inputs = prompt_inputs(inputs)
        for target in ("onnx", "openvino", "executorch", "dynamo"):
            export = tmp_path / component / target
            stateless = ["--no-stateful"] if target == "openvino" else []
            ferry("export", source, "--to", target, "-o", export, "-q", *options, *stateless)
            ports = json.loads(ferry("show", export, "--json").stdout)["inputs"]
            names = {port["name"].removeprefix("input.") for port in ports}
            save_file({name: inputs[name] for name in names}, tmp_path / "inputs.safetensors")
            runtime = {"onnx": "onnxruntime", "dynamo": "reference"}.get(target, target)
            compare(run_ferry(export, tmp_path / "inputs.safetensors", tmp_path / "out.safetensors", runtime), expected)


# ---- all together ----


def encode(run, config: dict, inputs: dict) -> tuple:
    """Features of the images, and what layers of the language model take besides."""
    pixels = inputs["pixel_values"]
    if "image_grid_thw" in inputs:
        made = run("image_encoder", {"hidden_states": pixels, "grid_thw": inputs["image_grid_thw"]})
        deep = {name: value for name, value in made.items() if name.startswith("deepstack_features")}
        return made["pooler_output"], {name.replace("features", "visual_embeds"): deep[name] for name in deep}
    if pixels.ndim == 5:
        pixels = pixels.reshape(-1, *pixels.shape[2:])
        patches = np.ones((len(pixels), pixels.shape[2] // 8, pixels.shape[3] // 8), bool)
        made = run("image_encoder", {"pixel_values": pixels, "patch_attention_mask": patches})
        return run("connector", {"image_hidden_states": made["last_hidden_state"]})["output"], {}
    made = run("image_encoder", {"pixel_values": pixels})
    if "vision_feature_layer" in config:
        hidden = next(value for name, value in made.items() if name.startswith("hidden_states."))[:, 1:]
    else:
        hidden = made["last_hidden_state"]
    name = "vision_outputs" if config["model_type"] == "gemma3" else "image_features"
    return run("multi_modal_projector", {name: hidden})["output"], {}


def positions(config: dict, inputs: dict) -> np.ndarray:
    batch, length = inputs["input_ids"].shape
    text = np.broadcast_to(np.arange(length), (batch, length)) + (config["model_type"] == "paligemma")
    if "image_grid_thw" not in inputs:
        return np.ascontiguousarray(text)
    prefix = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL"}[config["model_type"]]
    cls = getattr(transformers, f"{prefix}Model")
    own = types.SimpleNamespace(config=transformers.AutoConfig.for_model(**config))
    own.get_vision_position_ids = functools.partial(cls.get_vision_position_ids, own)
    names = ("input_ids", "mm_token_type_ids", "image_grid_thw", "attention_mask")
    places, _ = cls.get_rope_index(own, **{name: torch.from_numpy(inputs[name]) for name in names})
    return np.concatenate([text[None], places.numpy()])


def masks(config: dict, inputs: dict) -> dict:
    types_of_tokens = inputs.get("token_type_ids")
    if types_of_tokens is None:
        return {"attention_mask": inputs["attention_mask"]}
    length = types_of_tokens.shape[1]
    query, key = np.arange(length)[:, None], np.arange(length)
    blocks = np.cumsum(np.diff(types_of_tokens, axis=1, prepend=0) == 1, axis=1) * types_of_tokens
    if config["model_type"] == "paligemma":
        blocks = types_of_tokens == 0
    same = (blocks[:, None, :] == blocks[:, :, None]) & (blocks[:, :, None] > 0)
    seen = ((key <= query) | same)[:, None]
    window = config["text_config"].get("sliding_window")
    near = seen & (query - key < window) if window else seen
    return {"attention_mask": seen, "attention_mask.full_attention": seen, "attention_mask.sliding_attention": near}


@pytest.mark.parametrize("model_type", LANGUAGE)
def test_the_components_together_are_the_model(fixture, tmp_path, model_type):
    source = fixture(model_type)
    config = json.loads((source / "config.json").read_text())
    ferry("export", source, "--generation", "-o", tmp_path, "-q")

    def run(component, inputs):
        return run_onnxruntime(tmp_path / f"{component}.onnx", inputs)

    for prefix in ("", "second_"):
        inputs = load_file(source / f"{prefix}inputs.safetensors")
        expected = load_file(source / f"{prefix}expected.safetensors")["logits"]
        features, deep = encode(run, config, inputs)
        embeds = run("embed_tokens", {"input_ids": inputs["input_ids"]})["inputs_embeds"]
        places = inputs["input_ids"] == config.get("image_token_id", config.get("image_token_index"))
        embeds[places] = features.reshape(-1, features.shape[-1])
        taken = {"inputs_embeds": embeds, "position_ids": positions(config, inputs), **masks(config, inputs)}
        hidden = run("language_model", {**taken, "visual_pos_masks": places, **deep})["last_hidden_state"]
        compare(run("lm_head", {"input": hidden}), {"output": expected})


def test_a_multimodal_model_is_exported_in_components(fixture, tmp_path):
    done = ferry("export", fixture("llava"), "-o", tmp_path / "export", status=None)
    assert done.returncode == 6 and "--component" in done.stderr
