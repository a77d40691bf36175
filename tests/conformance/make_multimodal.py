#!/usr/bin/env python3
"""Write tiny multimodal checkpoints with the eager outputs of their encoders and projectors:
make_multimodal.py DIRECTORY [CASE...]

The cases cover what the shared fixtures do not: images of different sizes together, videos, windows
that are cut off, padding, other layers and activations, older spellings. checkpoints.py says what a
case leaves behind. Needs torch, transformers and safetensors.
"""

from dataclasses import dataclass, field

import checkpoints
import torch
import transformers

IMAGES = dict(
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=40,
    image_size=32,
    patch_size=8,
)
TEXT = dict(
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    intermediate_size=20,
    vocab_size=60,
    head_dim=12,
)
PATCHES = dict(depth=3, num_heads=2, patch_size=4, in_channels=3, hidden_act="silu")
QWEN2 = dict(PATCHES, embed_dim=32, hidden_size=24, mlp_ratio=2)
QWEN2_5 = dict(PATCHES, hidden_size=32, intermediate_size=40, out_hidden_size=24, window_size=24)
QWEN2_5 |= dict(fullatt_block_indexes=[1])
QWEN3 = dict(PATCHES, hidden_size=32, intermediate_size=40, out_hidden_size=24)
QWEN3 |= dict(num_position_embeddings=49, deepstack_visual_indexes=[2, 0])
AUDIO = dict(
    d_model=32,
    encoder_layers=2,
    encoder_attention_heads=4,
    encoder_ffn_dim=40,
    num_mel_bins=10,
    max_source_positions=14,
)
MROPE = dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 2, 2])
MODELS = {
    "llava": ("Llava", "clip_vision_model", IMAGES, {}),
    "gemma3": ("Gemma3", "siglip_vision_model", IMAGES, {"mm_tokens_per_image": 4}),
    "paligemma": ("PaliGemma", "siglip_vision_model", IMAGES, {"projection_dim": 24}),
    "smolvlm": ("SmolVLM", "smolvlm_vision", IMAGES, {}),
    "idefics3": ("Idefics3", "idefics3_vision", IMAGES, {"scale_factor": 4}),
    "qwen2_vl": ("Qwen2VL", "qwen2_vl_vision", QWEN2, {}),
    "qwen2_5_vl": ("Qwen2_5_VL", "qwen2_5_vl_vision", QWEN2_5, {}),
    "qwen3_vl": ("Qwen3VL", "qwen3_vl_vision", QWEN3, {}),
    "qwen2_audio": ("Qwen2Audio", "qwen2_audio_encoder", AUDIO, {}),
}
MODULES = {
    "image_encoder": ("vision_tower", "vision_model", "visual"),
    "multi_modal_projector": ("multi_modal_projector",),
    "connector": ("connector",),
    "audio_encoder": ("audio_tower",),
}
# Frames, rows and columns of the images of both runs.
GRIDS = (((1, 4, 4), (1, 8, 6)), ((2, 10, 4), (1, 2, 2), (1, 6, 14)))


@dataclass
class Case:
    model_type: str
    component: str
    tower: dict = field(default_factory=dict)  # on top of the small configurations
    config: dict = field(default_factory=dict)
    grids: tuple = GRIDS
    shapes: tuple = ((1, 3, 32, 32), (3, 3, 32, 32))  # of images, audio or features
    options: tuple = ()  # of ferry export
    edit_config: object = None  # from and to a dictionary
    edit_weights: object = None  # from and to a dictionary of tensors
    error: str = ""  # a part of the message that refuses it


def features(*shape):
    return ((1, *shape), (3, *shape))


def older_names(weights):
    return {name.replace("vision_tower.", "vision_tower.vision_model."): value for name, value in weights.items()}


def in_tower(**changes):
    return lambda config: {**config, "vision_config": {**config["vision_config"], **changes}}


def llava_cases():
    encoder, projector = "image_encoder", "multi_modal_projector"
    layers = {"vision_feature_layer": [-1, 1]}
    silent = {"multimodal_projector_bias": False, "projector_hidden_act": "silu"}
    return {
        "encoder": Case("llava", encoder),
        "layers": Case("llava", encoder, config=layers),
        "older-names": Case("llava", encoder, edit_weights=older_names),
        "projector": Case("llava", projector, config=silent, shapes=features(16, 32)),
        "projector-of-layers": Case("llava", projector, config=layers, shapes=features(16, 64)),
        "other-tower": Case("llava", encoder, edit_config=in_tower(model_type="pixtral"), error="expected the \"model_type\""),
        "no-layer": Case("llava", encoder, edit_config=lambda c: {**c, "vision_feature_layer": 9}, error="which has 4"),
    }  # fmt: skip


def siglip_cases():
    headless = {"vision_use_head": False}
    uneven = {"image_size": 40}
    return {
        "gemma3-encoder": Case("gemma3", "image_encoder", headless),
        "gemma3-projector": Case("gemma3", "multi_modal_projector", shapes=features(16, 32)),
        "gemma3-uneven": Case("gemma3", "multi_modal_projector", uneven, shapes=features(25, 32)),
        "paligemma-encoder": Case("paligemma", "image_encoder"),
        "paligemma-projector": Case("paligemma", "multi_modal_projector", shapes=features(16, 32)),
    }


def idefics3_cases():
    seven = {"image_size": 56}  # whose coordinates are no binary fractions
    sizes = ((2, 3, 56, 56), (3, 3, 24, 48))
    return {
        "padded": Case("smolvlm", "image_encoder", seven, shapes=sizes),
        "encoder": Case("idefics3", "image_encoder", shapes=((1, 3, 32, 32), (2, 3, 16, 24))),
        "connector": Case("smolvlm", "connector", shapes=features(16, 32)),
        "connector-of-four": Case("idefics3", "connector", shapes=features(16, 32)),
    }


def with_sections(*sections):
    def edit(config):
        text = config["text_config"]
        rope = {**text["rope_parameters"], "mrope_section": sections}
        return {**config, "text_config": {**text, "rope_parameters": rope}}

    return edit


def qwen_cases():
    three = {"spatial_merge_size": 3, "window_size": 24}
    nine = (((1, 6, 3),), ((1, 3, 9), (2, 6, 6)))
    full = {"fullatt_block_indexes": [0, 1, 2]}
    return {
        "2": Case("qwen2_vl", "image_encoder"),
        "2-still": Case("qwen2_vl", "image_encoder", {"temporal_patch_size": 1, "in_channels": 1}),
        "2-huge-section": Case("qwen2_vl", "language_model", edit_config=with_sections(2, 2**63 - 1, 1), error="share out"),
        "2-small-sections": Case("qwen2_vl", "language_model", edit_config=with_sections(1, 1, 1), error="share out"),
        "2.5": Case("qwen2_5_vl", "image_encoder"),
        "2.5-full": Case("qwen2_5_vl", "image_encoder", full),
        "2.5-merge": Case("qwen2_5_vl", "image_encoder", three, grids=nine),
        "3": Case("qwen3_vl", "image_encoder"),
        "3-no-deepstack": Case("qwen3_vl", "image_encoder", {"deepstack_visual_indexes": []}),
    }


def audio_cases():
    odd = {"max_source_positions": 13, "activation_function": "relu"}
    return {
        "encoder": Case("qwen2_audio", "audio_encoder", shapes=features(10, 28)),
        "odd-encoder": Case("qwen2_audio", "audio_encoder", odd, shapes=features(10, 26)),
        "projector": Case("qwen2_audio", "multi_modal_projector", shapes=features(7, 32)),
    }


def cases():
    families = {"llava": llava_cases(), "tower": siglip_cases(), "idefics3": idefics3_cases()}
    families |= {"qwen": qwen_cases(), "audio": audio_cases()}
    return {f"{family}-{name}": case for family, own in families.items() for name, case in own.items()}


def make_inputs(case, tower, run):
    shape = case.shapes[run]
    if case.model_type.endswith("_vl"):
        rows = sum(frames * height * width for frames, height, width in case.grids[run])
        size = tower.in_channels * tower.temporal_patch_size * tower.patch_size**2
        return {"hidden_states": torch.randn(rows, size), "grid_thw": torch.tensor(case.grids[run])}
    if case.component == "audio_encoder":
        places = shape[2] // 2
        mask = torch.ones(shape[0], 1, places, places, dtype=torch.bool)
        for piece in range(shape[0]):  # silence at the end
            mask[piece, ..., places - 2 * piece :] = False
        return {"input_features": torch.randn(shape), "attention_mask": mask}
    if case.component == "image_encoder":
        inputs = {"pixel_values": torch.randn(shape)}
        if case.model_type in ("smolvlm", "idefics3"):
            mask = torch.ones(shape[0], shape[2] // 8, shape[3] // 8, dtype=torch.bool)
            for image in range(1, shape[0]):  # a row and some columns are padding
                mask[image, -1] = False
                mask[image, :, -image:] = False
            inputs["patch_attention_mask"] = mask
        return inputs
    names = {"gemma3": "vision_outputs", "qwen2_audio": "audio_features", "smolvlm": "image_hidden_states"}
    name = names.get(case.model_type, "image_features")
    return {"image_hidden_states" if case.component == "connector" else name: torch.randn(shape)}


def find_module(model, component):
    for owner in (model, model.model):
        for name in MODULES[component]:
            if hasattr(owner, name):
                return getattr(owner, name)
    raise AttributeError(component)


def run_module(case, model, inputs):
    module = find_module(model, case.component)
    layers = getattr(model.config, "vision_feature_layer", None)
    with torch.no_grad():
        if case.component in ("multi_modal_projector", "connector"):
            return module, {"output": module(*inputs.values())}
        wanted = layers is not None and case.component == "image_encoder"
        outputs = module(**inputs, **({"output_hidden_states": True} if wanted else {}))
    expected = {key: value for key, value in outputs.items() if isinstance(value, torch.Tensor)}
    for index, value in enumerate(outputs.get("deepstack_features") or ()):
        expected[f"deepstack_features.{index}"] = value
    for layer in (layers if isinstance(layers, list) else [layers]) if wanted else ():
        index = layer % len(outputs["hidden_states"])
        expected[f"hidden_states.{index}"] = outputs["hidden_states"][index]
    return module, expected


def write_case(_, case, directory):
    prefix, tower_type, tower, more = MODELS[case.model_type]
    cls = getattr(transformers, f"{prefix}ForConditionalGeneration")
    text = dict(TEXT)
    if case.model_type.endswith("_vl"):
        text["rope_parameters"] = MROPE
    part = "audio_config" if case.model_type == "qwen2_audio" else "vision_config"
    own = {"text_config": text, part: {"model_type": tower_type, **tower, **case.tower}}
    if case.model_type in ("llava", "smolvlm", "idefics3"):
        text["model_type"] = "llama"
    if case.model_type == "paligemma":
        text["model_type"] = "gemma"
    if case.model_type == "qwen2_audio":
        text["model_type"] = "qwen2"
    model = cls(cls.config_class(**own, **more, **case.config))
    checkpoints.randomize(model)
    model.save_pretrained(directory)
    if case.edit_config:
        checkpoints.edit_config(directory, {}, case.edit_config)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)
    options = ("--component", case.component, *case.options)
    if case.error:
        checkpoints.write_facts(directory, error=case.error, options=options)
        return
    # Loaded again, so that what counts is what eager makes of the files.
    model = cls.from_pretrained(directory).eval()
    for run, name in enumerate(checkpoints.RUNS):
        inputs = make_inputs(case, getattr(model.config, part), run)
        module, expected = run_module(case, model, inputs)
        checkpoints.write_run(directory, name, inputs, {key: value.clone() for key, value in expected.items()})
    facts = {"class": type(module).__name__, "output_class": "", "component": case.component}
    checkpoints.write_facts(directory, **facts, options=options)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
