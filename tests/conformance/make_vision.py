#!/usr/bin/env python3
"""Write tiny checkpoints of image encoders with eager outputs: make_vision.py DIRECTORY [CASE...]

The cases cover what the shared fixtures do not: every class, other image sizes, older spellings,
incomplete configurations. checkpoints.py says what a case leaves behind. Needs torch, transformers
and safetensors.
"""

from dataclasses import dataclass, field

import checkpoints
import torch
import transformers
from checkpoints import renamed, without

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
VISION = dict(SMALL, intermediate_size=40)
TEXT = dict(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=40,
    vocab_size=60,
    max_position_embeddings=20,
    bos_token_id=57,
    eos_token_id=58,
    pad_token_id=59,
)
PROJECTED = dict(projection_dim=12)
DEFAULTS = {
    "ViT": VISION,
    "Dinov2": SMALL,
    "CLIPText": dict(TEXT, **PROJECTED),
    "CLIPVision": dict(VISION, **PROJECTED),
    "SiglipText": TEXT,
    "SiglipVision": VISION,
    "CLIP": dict(text_config=TEXT, vision_config=VISION, projection_dim=20),
    "Siglip": dict(text_config=dict(TEXT, projection_size=32), vision_config=VISION),
}
FREE_SIZE = ("--dynamic-shapes", "pixel_values=images,3,height,width")
WIDE = {"hidden_size": 40, "intermediate_size": 30, "num_hidden_layers": 3, "layer_norm_eps": 1e-3}


@dataclass
class Case:
    model_class: str
    config: dict = field(default_factory=dict)  # on top of the small configuration
    images: tuple = ((2, 3, 32, 32), (3, 3, 32, 32))  # shapes of both runs
    texts: tuple = ((2, 9), (3, 14))
    inputs: tuple = ()  # those of the class
    arguments: dict = field(default_factory=dict)  # of forward, besides tensors
    options: tuple = ()  # of ferry export
    saved_class: str = ""  # the class that is saved, when it is not the one that runs
    edit_config: object = None  # from and to a dictionary
    edit_weights: object = None  # from and to a dictionary of tensors
    error: str = ""  # a part of the message that refuses it


def bigger(model_class, **more):
    """Other sizes than the configured one, with interpolated positions."""
    sizes = ((1, 3, 40, 40), (2, 3, 24, 48))
    arguments = {"interpolate_pos_encoding": True}
    return Case(model_class, images=sizes, arguments=arguments, options=FREE_SIZE, **more)


def in_towers(change):
    """The change to both configurations in a configuration of two."""

    def edit(config):
        return {
            key: change(value) if key in ("text_config", "vision_config") else value
            for key, value in config.items()
        }

    return edit


def kept(*keys):
    return lambda config: {key: value for key, value in config.items() if key in keys}


def vit_cases():
    three = {"num_labels": 3}
    oblong = {"image_size": [32, 48], "patch_size": [8, 16]}
    return {
        "features": Case("ViTModel"),
        "classes": Case("ViTForImageClassification", three),
        "sizes": Case("ViTModel", WIDE),
        "pooler": Case("ViTModel", {"pooler_output_size": 20, "pooler_act": "silu"}),
        "no-pooler": Case("ViTModel", saved_class="ViTForImageClassification"),
        "base-of-classes": Case("ViTForImageClassification", three, edit_weights=renamed(("vit.", ""))),
        "no-bias": Case("ViTModel", {"qkv_bias": False, "hidden_act": "gelu_new"}),
        "oblong": Case("ViTModel", oblong, images=((1, 3, 32, 48), (2, 3, 32, 48))),
        "ragged": Case("ViTModel", {"image_size": 30}, images=((1, 3, 30, 30), (2, 3, 30, 30))),
        "gray": Case("ViTModel", {"num_channels": 1}, images=((1, 1, 32, 32), (2, 1, 32, 32))),
        "interpolated": bigger("ViTForImageClassification"),
        "oblong-interpolated": Case("ViTModel", oblong, options=FREE_SIZE, error="must have the configured size"),
    }


def dinov2_cases():
    sizes = ((1, 3, 32, 32), (2, 3, 43, 25))
    return {
        "features": Case("Dinov2Model", images=sizes),
        "classes": Case("Dinov2ForImageClassification", {"num_labels": 3}, images=sizes),
        "swiglu": Case("Dinov2Model", {"use_swiglu_ffn": True, "mlp_ratio": 3}, images=sizes),
        "own-size": Case("Dinov2Model", options=("--dynamic-shapes", "pixel_values=images,3,32,32")),
        "no-mask-token": Case("Dinov2Model", {"use_mask_token": False, "layer_norm_eps": 1e-3}),
    }


def clip_cases():
    both = {"text_config": {**TEXT, **WIDE}, "vision_config": {**VISION, **WIDE}}
    few = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "projection_dim")
    few = (*few, "num_hidden_layers", "image_size", "patch_size", "max_position_embeddings")
    old_end = {"text_config": {**TEXT, "eos_token_id": 2}}
    relics = {"text_config_dict": None, "vision_config_dict": {**VISION, "hidden_act": "relu"}}
    positions = ("input_ids", "position_ids")
    whole = {"saved_class": "CLIPModel"}
    return {
        "similarity": Case("CLIPModel", texts=((3, 9), (1, 20))),
        "sizes": Case("CLIPModel", both),
        "unmasked": Case("CLIPModel", inputs=("input_ids", "pixel_values")),
        "old-end": Case("CLIPModel", old_end),
        "few-keys": Case("CLIPModel", edit_config=in_towers(kept(*few))),
        "overridden": Case("CLIPModel", edit_config=lambda config: {**config, **relics}),
        "classes": Case("CLIPForImageClassification", {"num_labels": 5}),
        "interpolated": bigger("CLIPModel", texts=((2, 7), (3, 8))),
        "text": Case("CLIPTextModel", inputs=positions),
        "text-of-both": Case("CLIPTextModel", **whole),
        "text-embedding": Case("CLIPTextModelWithProjection"),
        "vision": Case("CLIPVisionModel"),
        "vision-of-both": Case("CLIPVisionModel", **whole),
        "vision-embedding": Case("CLIPVisionModelWithProjection"),
        "unknown-key": Case("CLIPModel", edit_config=in_towers(lambda part: {**part, "new_key": 1}), error='config: the key "new_key" is not understood'),
        "no-object": Case("CLIPModel", edit_config=in_towers(lambda part: "small"), error='expected "text_config" to be an object, found'),
        "old-names": Case("CLIPVisionModel", edit_weights=lambda weights: {f"vision_model.{k}": v for k, v in weights.items()}),
    }  # fmt: skip


def siglip_cases():
    headless = {"vision_config": {**VISION, "vision_use_head": False}}
    whole = {"saved_class": "SiglipModel"}
    return {
        "similarity": Case("SiglipModel", texts=((3, 9), (1, 20))),
        "unmasked": Case("SiglipModel", inputs=("input_ids", "pixel_values")),
        "classes": Case("SiglipForImageClassification", {**headless, "num_labels": 3}),
        "interpolated": bigger("SiglipVisionModel"),
        "text": Case("SiglipTextModel", {"projection_size": 10}),
        "text-of-both": Case("SiglipTextModel", **whole),
        "vision": Case("SiglipVisionModel", WIDE),
        "vision-of-both": Case("SiglipVisionModel", **whole),
        "no-head": Case("SiglipVisionModel", {"vision_use_head": False}, edit_weights=without("head")),
    }


def cases():
    families = {"vit": vit_cases(), "dinov2": dinov2_cases()}
    families |= {"clip": clip_cases(), "siglip": siglip_cases()}
    return {f"{family}-{name}": case for family, own in families.items() for name, case in own.items()}


def make_inputs(case, model, run):
    takes_text = hasattr(model.config, "vocab_size") or hasattr(model.config, "text_config")
    takes_images = hasattr(model.config, "patch_size") or hasattr(model.config, "vision_config")
    takes_text &= "ImageClassification" not in case.model_class
    names = case.inputs or ("input_ids", "pixel_values", "attention_mask")
    batch, length = case.texts[run]
    ids = torch.randint(3, 57, (batch, length))
    mask = torch.ones_like(ids)
    for row in range(batch):
        end = length - row
        ids[row, end - 1 :] = 58  # the end of the text, which also pads
        mask[row, end:] = 0
    texts = {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": torch.arange(length).flip(0).expand(batch, length).contiguous(),
    }
    images = {"pixel_values": torch.randn(case.images[run])}
    values = (texts if takes_text else {}) | (images if takes_images else {})
    return {name: values[name] for name in names if name in values}


def configuration(model_class, changes):
    cls = getattr(transformers, model_class)
    prefix = max((name for name in DEFAULTS if model_class.startswith(name)), key=len)
    if cls.config_class.__name__ == "CLIPConfig":
        prefix = "CLIP"
    return cls, cls.config_class(**{**DEFAULTS[prefix], **changes})


def write_case(_, case, directory):
    cls, config = configuration(case.saved_class or case.model_class, case.config)
    model = cls(config)
    checkpoints.randomize(model, kept="logit")
    model.save_pretrained(directory)
    if case.edit_config:
        checkpoints.edit_config(directory, {}, case.edit_config)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)
    if case.error:
        checkpoints.write_facts(directory, error=case.error, options=case.options)
        return
    # Loaded again, so that what counts is what eager makes of the files.
    cls = getattr(transformers, case.model_class)
    model, found = cls.from_pretrained(directory, output_loading_info=True)
    model.eval()
    for run, prefix in enumerate(checkpoints.RUNS):
        inputs = make_inputs(case, model, run)
        outputs = checkpoints.run(model, {**inputs, **case.arguments})
        expected = checkpoints.flatten(outputs)
        if any("pooler" in key for key in found["missing_keys"]):  # made up
            expected.pop("pooler_output", None)
        checkpoints.write_run(directory, prefix, inputs, expected)
    facts = {"class": case.model_class, "output_class": type(outputs).__name__}
    checkpoints.write_facts(directory, **facts, options=case.options)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
