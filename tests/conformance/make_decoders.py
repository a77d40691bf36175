#!/usr/bin/env python3
"""Write tiny decoder checkpoints with eager outputs: make_decoders.py DIRECTORY [CASE...]

The rotary decoders in every configuration that changes their arithmetic: heads, sizes, biases,
norms, rotary types, windows, caps, multipliers, activations, ties, masks, inputs, older spellings,
stored dtypes, shards, and the configurations of released models with the sizes shrunk.
checkpoints.py says what a case leaves behind. A case with spellings has spelling-N/ besides: the
same weights under other config.json files that mean the same. Needs torch, transformers and
safetensors.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import checkpoints
import torch
import transformers
from checkpoints import added, renamed, without

SMALL = dict(
    vocab_size=93,
    hidden_size=32,
    intermediate_size=44,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
GEMMA = dict(SMALL, head_dim=8)
WINDOWED = dict(GEMMA, query_pre_attn_scalar=12, sliding_window=6)
TYPES = {
    "llama": ("Llama", SMALL),
    "mistral": ("Mistral", dict(SMALL, sliding_window=6)),
    "qwen2": ("Qwen2", SMALL),
    "qwen3": ("Qwen3", GEMMA),
    "smollm3": ("SmolLM3", dict(SMALL, num_hidden_layers=5)),
    "gemma": ("Gemma", GEMMA),
    "gemma2": ("Gemma2", WINDOWED),
    "gemma3_text": ("Gemma3Text", dict(WINDOWED, num_hidden_layers=7)),
    "phi3": ("Phi3", dict(SMALL, original_max_position_embeddings=64)),
    "olmo2": ("Olmo2", SMALL),
    "granite": ("Granite", dict(SMALL, attention_multiplier=0.3)),
    "starcoder2": ("Starcoder2", SMALL),
    "stablelm": ("StableLm", SMALL),
    "cohere": ("Cohere", SMALL),
}
LOADED = {}  # options of from_pretrained, by model type
HEADS = {
    "features": "Model",
    "language": "ForCausalLM",
    "sequence": "ForSequenceClassification",
    "token": "ForTokenClassification",
    "answering": "ForQuestionAnswering",
}
FAR = 100_000
MASKED = ("input_ids", "attention_mask")
PLACED = (*MASKED, "position_ids")


@dataclass
class Case:
    model_type: str
    head: str = "language"
    config: dict = field(default_factory=dict)  # on top of the small configuration
    inputs: tuple = MASKED
    shapes: tuple = ((2, 9), (3, 14))
    padding: str = "right"  # or left, or holes
    positions: str = "far"  # from 100000; or padded: counted by the mask; or packed: starting again
    input_dtypes: dict = field(default_factory=dict)
    dtype: torch.dtype = torch.float32  # of the weights in the file
    shard_size: str = ""
    original_format: bool = True  # the weights as version 4 of Transformers has them
    saved_head: str = ""  # the class that is saved, when it is not the one that runs
    edit_config: dict = field(default_factory=dict)  # over config.json; ... deletes the key
    edit_weights: object = None  # from and to a dictionary of tensors
    omit_defaults: bool = False  # leave out of config.json what is the default of the class
    late_config: dict = field(default_factory=dict)  # the same, for what eager cannot load
    late_weights: object = None  # but ferry can
    raw_config: dict = field(default_factory=dict)  # all of config.json
    spellings: tuple = ()  # changes of config.json that mean the same
    options: tuple = ()  # for ferry export
    error: str = ""  # the export fails with this in its message


def class_of(model_type, head):
    if model_type == "gemma3_text" and head == "language":
        return transformers.Gemma3ForCausalLM
    return getattr(transformers, TYPES[model_type][0] + HEADS[head], None)


# ---- what every model type has ----


def head_cases(t):
    return {
        head: Case(t, head, {"num_labels": 3} if head in ("sequence", "token") else {})
        for head in HEADS
        if class_of(t, head)
    }


def input_cases(t):
    narrow = {"input_ids": torch.int32, "attention_mask": torch.bool}
    return {
        "ids-alone": Case(t, inputs=("input_ids",)),
        "left": Case(t, padding="left", inputs=PLACED, positions="padded"),
        "holes": Case(t, padding="holes"),
        "embeds": Case(t, inputs=("inputs_embeds", "attention_mask")),
        "far": Case(t, inputs=("input_ids", "position_ids")),
        "narrow": Case(t, input_dtypes=narrow),
        "one-token": Case(t, shapes=((1, 1), (2, 1))),
    }


def size_cases(t):
    odd = {"vocab_size": 77, "hidden_size": 36, "num_attention_heads": 6, "intermediate_size": 30}
    divisible = t in ("llama", "gemma2", "gemma3_text")  # by the number of heads, which they check
    grouped = {"hidden_size": 40 if divisible else 42, "head_dim": 16}
    if t == "stablelm":
        grouped, odd["hidden_size"] = {"hidden_size": 64}, 48
    if t in ("qwen3", "gemma", "gemma2", "gemma3_text"):
        odd["head_dim"] = 6
    return {
        "odd": Case(t, config={**odd, "num_key_value_heads": 3, "num_hidden_layers": 3}),
        "wide-heads": Case(t, config=grouped),
        "one-kv-head": Case(t, config={**grouped, "num_key_value_heads": 1}),
        "own-kv-heads": Case(t, config={**grouped, "num_key_value_heads": 4}),
    }


def file_cases(t):
    extra = {
        "model.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.1.self_attn.masked_bias": torch.tensor(-1e4),
    }
    f16 = {"dtype": torch.float16, "options": ("--dtype", "float32")}
    return {
        "tied": Case(t, config={"tie_word_embeddings": True}),
        "untied": Case(t, config={"tie_word_embeddings": False}),
        "bare": Case(t, config={"tie_word_embeddings": True}, saved_head="features"),
        "base-of-language": Case(t, "features", saved_head="language"),
        "adapted": Case(t, late_weights=renamed(("model.", "base_model.model.model."))),
        "buffers": Case(t, edit_weights=added(**extra)),
        "bfloat16": Case(t, dtype=torch.bfloat16),
        "float16": Case(t, **f16),
        "shards": Case(t, shard_size="12KB"),
        "defaults": Case(t, config=unspoken(t), omit_defaults=True),
        "no-cache": Case(t, config={"use_cache": False}),
        "no-cache-far": Case(t, config={"use_cache": False}, inputs=("input_ids", "position_ids")),
        "packed": Case(
            t,
            config={"use_cache": False},
            inputs=("input_ids", "position_ids"),
            shapes=((2, 9), (3, 1)),
            positions="packed",
        ),
        "activation": Case(t, config={activation_key(t): "gelu"}),
    }


def unspoken(t):
    """Defaults in the place of small sizes that can be had without them."""
    defaults = class_of(t, "features").config_class()
    keys = ("max_position_embeddings", "sliding_window", "query_pre_attn_scalar")
    keys += ("original_max_position_embeddings", "attention_multiplier")
    return {key: getattr(defaults, key) for key in keys if hasattr(defaults, key)}


def activation_key(t):
    return "hidden_activation" if t in ("gemma2", "gemma3_text") else "hidden_act"


def classifier_cases(t):
    if not class_of(t, "sequence"):
        return {}
    unpadded = {"pad_token_id": None, "num_labels": 4}
    labels = {"num_labels": 3, "id2label": {str(i): f"label {i}" for i in range(5)}}
    embeds = ("inputs_embeds", "attention_mask")
    return {
        "sequence-unpadded": Case(t, "sequence", unpadded, shapes=((1, 9), (1, 14))),
        "sequence-left": Case(t, "sequence", {"num_labels": 1}, padding="left"),
        "sequence-embeds": Case(t, "sequence", inputs=embeds),
        "sequence-labels": Case(t, "sequence", {"num_labels": 3}, edit_config=labels),
    }


# ---- rotary types ----

LONG = [1.5 + 0.5 * i for i in range(8)]
SHORT = [1.0 + 0.1 * i for i in range(8)]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 48}
ROPES = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": YARN,
    "yarn-betas": {**YARN, "attention_factor": 1.3, "beta_fast": 12.0, "beta_slow": 2.0},
    "yarn-mscale": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False},
    "yarn-one-mscale": {**YARN, "mscale": 0.7, "beta_fast": 0, "factor": 1.0},
    "yarn-no-factor": {**YARN, "factor": None},
    "longrope": {
        "rope_type": "longrope",
        "short_factor": SHORT,
        "long_factor": LONG,
        "original_max_position_embeddings": 16,
        "factor": 6.0,
    },
    "longrope-attention": {
        "rope_type": "longrope",
        "short_factor": SHORT,
        "long_factor": LONG,
        "original_max_position_embeddings": 16,
        "attention_factor": 0.8,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 2.0},
}
THETA = 700.0
ROPE_SIZES = {"hidden_size": 64, "head_dim": 16, "max_position_embeddings": 60}
ROPE_SHAPES = ((2, 11), (1, 90))


def respell(parameters, type_key, theta_key="rope_theta"):
    """rope_parameters as older versions wrote them."""
    parameters = dict(parameters)
    changes = {"rope_parameters": ..., theta_key: parameters.pop("rope_theta")}
    if "partial_rotary_factor" in parameters and parameters["rope_type"] != "proportional":
        changes["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    kind = parameters.pop("rope_type")
    changes["rope_scaling"] = {type_key: kind, **parameters} if kind != "default" else None
    return changes


def rope_case(t, rope, **options):
    sizes = dict(ROPE_SIZES)
    if t in ("stablelm", "phi3"):
        del sizes["head_dim"]
    parameters = {"rope_theta": THETA, **rope}
    if t in ("stablelm", "phi3") and "long_factor" not in rope:
        parameters["partial_rotary_factor"] = 0.5
    if t == "stablelm" and "long_factor" in rope:
        parameters["partial_rotary_factor"] = 1.0
    if t == "phi3":
        sizes["original_max_position_embeddings"] = 16
    spellings = tuple(respell(parameters, key) for key in ("type", "rope_type"))
    config = {**sizes, "rope_parameters": parameters}
    return Case(t, config=config, shapes=ROPE_SHAPES, spellings=spellings, **options)


def gemma3_rope_case(rope, **options):
    nested = {
        "full_attention": {"rope_theta": THETA, **rope},
        "sliding_attention": {"rope_type": "default", "rope_theta": 90.0},
    }
    old = {**respell(nested["full_attention"], "rope_type"), "rope_local_base_freq": 90.0}
    config = {**ROPE_SIZES, "rope_parameters": nested, "num_hidden_layers": 3}
    config["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"]
    return Case("gemma3_text", config=config, shapes=ROPE_SHAPES, spellings=(old,), **options)


def rope_cases(t):
    if t == "gemma3_text":
        cases = {f"rope-{name}": gemma3_rope_case(rope) for name, rope in ROPES.items()}
    elif t == "phi3":
        names = ("default", "longrope", "longrope-attention")
        cases = {f"rope-{name}": rope_case(t, ROPES[name]) for name in names}
    else:
        usable = [n for n in ROPES if t != "stablelm" or n != "proportional"]
        cases = {f"rope-{name}": rope_case(t, ROPES[name]) for name in usable}
        if t != "stablelm":
            cases["rope-default-length"] = length_case(t)
    far = {f"{name}-far": with_positions(case) for name, case in cases.items()}
    return {**cases, **(far if t in ("llama", "cohere", "gemma3_text", "phi3") else {})}


def length_case(t):
    """The trained length is the default of the class."""
    scaling = {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    names = ("rope_parameters", "max_position_embeddings", "original_max_position_embeddings")
    return Case(
        t,
        config={**ROPE_SIZES, **unspoken(t)},
        edit_config={**dict.fromkeys(names, ...), **scaling},
        inputs=PLACED,
        shapes=ROPE_SHAPES,
    )


def with_positions(case):
    return Case(**{**vars(case), "inputs": PLACED, "spellings": ()})


# ---- what one model type has ----


def llama_cases():
    t = "llama"
    names = (
        "gelu",
        "gelu_10",
        "gelu_accurate",
        "gelu_fast",
        "gelu_new",
        "gelu_python",
        "gelu_python_tanh",
        "gelu_pytorch_tanh",
        "hardswish",
        "laplace",
        "leaky_relu",
        "linear",
        "mish",
        "quick_gelu",
        "relu",
        "relu2",
        "relu6",
        "sigmoid",
        "sqrtsoftplus",
        "swish",
        "tanh",
    )
    scaling = {"rope_scaling": {"type": "linear", "factor": 2.0}}
    both = {"rope_scaling": {}, "rope_theta": 300.0}
    return {
        **{f"act-{name}": Case(t, config={"hidden_act": name}) for name in names},
        **tie_cases(t),
        "attention-bias": Case(t, config={"attention_bias": True}),
        "mlp-bias": Case(t, config={"mlp_bias": True}),
        "null-kv-heads": Case(
            t, config={"num_key_value_heads": 4}, edit_config={"num_key_value_heads": None}
        ),
        "old": Case(
            t,
            config={
                "num_key_value_heads": 4,
                "rms_norm_eps": 1e-6,
                "max_position_embeddings": 2048,
            },
            edit_config=dict.fromkeys(
                (
                    "attention_bias",
                    "head_dim",
                    "hidden_act",
                    "max_position_embeddings",
                    "mlp_bias",
                    "num_key_value_heads",
                    "rms_norm_eps",
                    "rope_parameters",
                    "use_cache",
                ),
                ...,
            ),
        ),
        "ignored-partial": Case(t, edit_config={"partial_rotary_factor": 0.5}),
        "two-ropes": Case(t, edit_config={**scaling, "rope_theta": 50.0}),
        "empty-scaling": Case(t, edit_config=both),
        "no-ropes": Case(t, edit_config={"rope_parameters": ..., "rope_theta": ...}),
        "head-alone": Case(
            t,
            config={"tie_word_embeddings": True},
            edit_weights=renamed(("model.embed_tokens", "lm_head")),
        ),
        "adapted-head": Case(
            t,
            "token",
            {"num_labels": 3},
            late_weights=lambda weights: {f"base_model.model.{k}": v for k, v in weights.items()},
        ),
        "wrong-shape": Case(t, edit_config={"intermediate_size": 45}, error="expected the shape"),
        "unknown-key": Case(t, edit_config={"moon_phase": 0.5}, error="moon_phase"),
        "unknown-rope": Case(
            t, edit_config={"rope_parameters": {"rope_type": "spiral"}}, error="spiral"
        ),
        "unknown-act": Case(t, edit_config={"hidden_act": "gulp"}, error="gulp"),
    }


def tie_cases(t):
    """tie_word_embeddings true, false, absent; the output embedding absent, the same, different."""

    def same(weights):
        return {**weights, "lm_head.weight": weights["model.embed_tokens.weight"].clone()}

    def different(weights):
        return {**weights, "lm_head.weight": weights["model.embed_tokens.weight"].flip(0)}

    flags = {"true": True, "false": False, "absent": ...}
    files = {"absent": without("lm_head"), "same": same, "different": different}
    cases = {}
    for flag, value in flags.items():
        for file, edit in files.items():
            lost = value is False and file == "absent"
            cases[f"tie-{flag}-{file}"] = Case(
                t,
                config={"tie_word_embeddings": value is True or t != "llama"},
                edit_config={"tie_word_embeddings": value},
                edit_weights=edit,
                error="lm_head.weight" if lost else "",
            )
    if t == "llama":  # eager would make up a weight
        del cases["tie-absent-absent"]
    return cases


def mistral_cases():
    t = "mistral"
    long = {"shapes": ((2, 9), (1, 24))}
    return {
        "window-4": Case(t, config={"sliding_window": 4, "num_hidden_layers": 3}, **long),
        "window-1": Case(t, config={"sliding_window": 1}, **long),
        "no-window": Case(t, config={"sliding_window": None}, **long),
        "default-window": Case(t, edit_config={"sliding_window": ...}, **long),
        "window-left": Case(t, padding="left", **long),
        "window-alone": Case(t, inputs=("input_ids",), **long),
        "default-kv-heads": Case(
            t,
            config={"num_attention_heads": 16, "num_key_value_heads": 8},
            edit_config={"num_key_value_heads": ..., "head_dim": ...},
        ),
        "null-head-dim": Case(t, edit_config={"head_dim": None}),
        "typed": Case(t, edit_config={"layer_types": ["sliding_attention"] * 2}),
        "mixed": Case(
            t,
            edit_config={"layer_types": ["sliding_attention", "full_attention"]},
            error="layer_types",
        ),
    }


def qwen_cases(t):
    long = {"shapes": ((2, 9), (1, 24))}
    switch = {"use_sliding_window": True, "sliding_window": 5, "num_hidden_layers": 3}
    types = ["sliding_attention", "full_attention", "sliding_attention"]
    cases = {
        "windows": Case(t, config={**switch, "max_window_layers": 1}, **long),
        "all-windows": Case(t, config={**switch, "max_window_layers": 0}, **long),
        "typed-windows": Case(t, config={**switch, "layer_types": types}, **long),
        "windows-off": Case(
            t,
            config={"num_hidden_layers": 3},
            edit_config={"sliding_window": 4, "max_window_layers": 1, "layer_types": ...},
            **long,
        ),
        "windows-null": Case(t, config={**switch, "sliding_window": None}, **long),
        "untyped-windows": Case(
            t, config={**switch, "max_window_layers": 2}, edit_config={"layer_types": ...}, **long
        ),
    }
    if t == "qwen3":
        cases["attention-bias"] = Case(t, config={"attention_bias": True})
        cases["default-head-dim"] = Case(
            t, config={"head_dim": 128, "num_hidden_layers": 1}, edit_config={"head_dim": ...}
        )
    return cases


def smollm3_cases():
    t = "smollm3"
    long = {"shapes": ((2, 9), (1, 24))}
    switch = {"use_sliding_window": True, "sliding_window": 5}
    three = {"num_hidden_layers": 3}
    types = ["full_attention", "sliding_attention", "full_attention"]
    return {
        "interval": Case(t, config={"no_rope_layer_interval": 2}, **long),
        "interval-untyped": Case(
            t,
            config={"no_rope_layer_interval": 2},
            edit_config={"no_rope_layers": ..., "layer_types": ...},
        ),
        "unrotated": Case(t, config={**three, "no_rope_layers": [0, 1, 0]}, **long),
        "windows": Case(t, config={**switch, **three, "no_rope_layers": [1, 0, 1]}, **long),
        "typed-windows": Case(t, config={**switch, **three, "layer_types": types}, **long),
        "typed-windows-off": Case(
            t, config={**switch, **three, "layer_types": types, "use_sliding_window": False}, **long
        ),
        "biases": Case(t, config={"attention_bias": True, "mlp_bias": True}),
        "old": Case(t, edit_config={"max_window_layers": 28, "layer_types": ...}),
    }


def gemma_cases():
    t = "gemma"
    return {
        "biases": Case(t, config={"attention_bias": True}),
        "old": Case(
            t,
            config={"num_key_value_heads": 16, "num_attention_heads": 16},
            edit_config={
                "hidden_activation": None,
                "rope_parameters": ...,
                "num_key_value_heads": ...,
                "tie_word_embeddings": ...,
                "pad_token_id": ...,
            },
        ),
        "both-activations": Case(t, edit_config={"hidden_activation": "relu"}),
        "sequence-default-pad": Case(t, "sequence", edit_config={"pad_token_id": ...}),
        **tie_cases(t),
    }


def gemma2_cases():
    t = "gemma2"
    long = {"shapes": ((2, 9), (1, 24))}
    three = ["full_attention", "sliding_attention", "sliding_attention"]
    caps = {"final_logit_softcapping": 5.0, "attn_logit_softcapping": 2.0}
    return {
        "caps": Case(t, config=caps),
        "no-caps": Case(t, config=dict.fromkeys(caps)),
        "default-caps": Case(t, edit_config=dict.fromkeys(caps, ...)),
        "left": Case(t, padding="left", **long),
        "windows": Case(t, config={"num_hidden_layers": 3, "layer_types": three}, **long),
        "untyped-windows": Case(t, edit_config={"layer_types": ...}, **long),
        "ids-alone-windows": Case(t, inputs=("input_ids",), **long),
        "biases": Case(t, config={"attention_bias": True}),
        "both-activations": Case(
            t, edit_config={"hidden_act": "relu", "cache_implementation": "hybrid"}
        ),
        "default-scalar": Case(
            t,
            config={"query_pre_attn_scalar": 256},
            edit_config={"query_pre_attn_scalar": ...},
        ),
    }


def gemma3_cases():
    t = "gemma3_text"
    long = {"shapes": ((2, 9), (1, 24))}
    old = {"layer_types": ..., "rope_parameters": ..., "_sliding_window_pattern": ...}
    both_ways = {"use_bidirectional_attention": True, "sliding_window": 6}
    caps = {"final_logit_softcapping": 5.0, "attn_logit_softcapping": 2.0}
    named = {"rope_theta": 5000.0, "rope_local_base_freq": 70.0}
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    full = {"rope_type": "default", "rope_theta": 400.0}
    return {
        "old": Case(t, edit_config={**old, **named, "sliding_window_pattern": 3}, **long),
        # Eager takes "type" for nothing here, as the entry has a "rope_type" already.
        "old-type": Case(
            t, edit_config={**old, "rope_scaling": {"type": "linear", "factor": 8.0}}, **long
        ),
        "old-linear": Case(t, edit_config={**old, **named, **linear}, **long),
        "old-defaults": Case(t, edit_config=old, **long),
        "scaled-twice": Case(t, edit_config={**linear, "rope_theta": 50.0}, **long),
        "flat-ropes": Case(t, edit_config={"rope_parameters": full}, **long),
        "one-rope": Case(t, edit_config={"rope_parameters": {"full_attention": full}}, **long),
        "all-full": Case(t, config={"layer_types": ["full_attention"] * 7}),
        "all-sliding": Case(t, config={"layer_types": ["sliding_attention"] * 7}, **long),
        "caps": Case(t, config=caps),
        "biases": Case(t, config={"attention_bias": True}),
        "both-ways": Case(t, config=both_ways, **long),
        "both-ways-features": Case(t, "features", both_ways, inputs=("input_ids",), **long),
        "both-ways-left": Case(t, config=both_ways, padding="left", **long),
    }


def phi3_cases():
    t = "phi3"
    long = {"shapes": ((2, 9), (1, 24))}
    odd = {
        "hidden_size": 40,
        "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.6},
    }
    scaling = {"long_factor": LONG, "short_factor": SHORT}
    sizes = {
        "hidden_size": 64,
        "max_position_embeddings": 96,
        "original_max_position_embeddings": 16,
    }
    old = {"rope_parameters": ..., "rope_theta": 800.0}
    su, longrope = ({"rope_scaling": {"type": kind, **scaling}} for kind in ("su", "longrope"))
    outside = {"original_max_position_embeddings": ...}
    return {
        "window": Case(t, config={"sliding_window": 4}, **long),
        "partial": Case(t, config=odd),
        "su": Case(t, config=sizes, edit_config={**old, **longrope}, late_config=su, **long),
        "yarn": Case(
            t,
            config=sizes,
            edit_config={**old, "rope_scaling": {"type": "yarn", **scaling}},
            **long,
        ),
        # 4096 is the default of the class, and wins over what rope_parameters say
        "default-length": Case(
            t,
            config={**sizes, "max_position_embeddings": 9000},
            edit_config={
                **old,
                **outside,
                "rope_scaling": {
                    "type": "longrope",
                    **scaling,
                    "original_max_position_embeddings": 16,
                },
            },
            **long,
        ),
        "switched-off": Case(
            t, edit_config=dict.fromkeys(("attention_bias", "mlp_bias", "lm_head_bias"), False)
        ),
    }


def granite_cases():
    factors = {
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.7,
        "residual_multiplier": 0.4,
        "logits_scaling": 6.0,
    }
    t = "granite"
    return {
        "factors": Case(t, config=factors),
        "factors-embeds": Case(t, config=factors, inputs=("inputs_embeds", "attention_mask")),
        "default-factors": Case(
            t, config=dict.fromkeys(factors, 1.0), edit_config=dict.fromkeys(factors, ...)
        ),
        "biases": Case(t, config={"attention_bias": True, "mlp_bias": True}),
    }


def starcoder2_cases():
    t = "starcoder2"
    return {
        "no-biases": Case(t, config={"use_bias": False}),
        "window": Case(t, config={"sliding_window": 4}, shapes=((2, 9), (1, 24))),
        "eps": Case(t, config={"norm_epsilon": 0.1}),
        "old": Case(
            t, edit_config={"mlp_type": "default", "norm_type": "layer_norm", "use_bias": ...}
        ),
    }


def stablelm_cases():
    t = "stablelm"
    parts = {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.75}}
    normed = {"qk_layernorm": True, "layer_norm_eps": 1e-2}
    return {
        "biases": Case(t, config={"use_qkv_bias": True}),
        "normed": Case(t, config=normed),
        "parallel": Case(t, config={"use_parallel_residual": True}),
        "parallel-normed": Case(t, config={**normed, "use_parallel_residual": True}),
        "partial": Case(t, config=parts),
        "default-partial": Case(t, edit_config={"rope_parameters": ..., "rope_theta": 10000}),
    }


def cohere_cases():
    t = "cohere"
    return {
        "normed": Case(t, config={"use_qk_norm": True, "layer_norm_eps": 1e-2}),
        "scaled": Case(t, config={"logit_scale": 1.7}),
        "default-scale": Case(t, edit_config={"logit_scale": ..., "use_qk_norm": None}),
        "biases": Case(t, config={"attention_bias": True}),
        "old": Case(
            t, edit_config={"rope_parameters": ..., "rope_theta": 8e6, "rope_scaling": None}
        ),
        **tie_cases(t),
    }


def olmo2_cases():
    return {
        "biases": Case("olmo2", config={"attention_bias": True}),
        "eps": Case("olmo2", config={"rms_norm_eps": 0.1}),
    }


def released_cases():
    """Released models with the sizes shrunk; everything else of config.json is as published."""
    released = json.loads(Path(__file__).with_name("released.json").read_text())
    suffixes = {"Model": "features", "ForCausalLM": "language"}
    found = {}
    for name, config in released.items():
        head = next(h for end, h in suffixes.items() if config["architectures"][0].endswith(end))
        case = Case(config["model_type"], head, raw_config=config, shapes=((2, 9), (1, 24)))
        scaling = config.get("rope_scaling") or {}
        if scaling.get("type") == "su":
            case.edit_config = {"rope_scaling": {**scaling, "type": "longrope"}}
            case.late_config = {"rope_scaling": scaling}
        found[f"released-{name}"] = case
    return found


def cases():
    own = {
        "llama": llama_cases(),
        "mistral": mistral_cases(),
        "qwen2": qwen_cases("qwen2"),
        "qwen3": qwen_cases("qwen3"),
        "smollm3": smollm3_cases(),
        "gemma": gemma_cases(),
        "gemma2": gemma2_cases(),
        "gemma3_text": gemma3_cases(),
        "phi3": phi3_cases(),
        "olmo2": olmo2_cases(),
        "granite": granite_cases(),
        "starcoder2": starcoder2_cases(),
        "stablelm": stablelm_cases(),
        "cohere": cohere_cases(),
    }
    common = (head_cases, input_cases, size_cases, file_cases, classifier_cases, rope_cases)
    found = {}
    for t in TYPES:
        for group in (*(make(t) for make in common), own[t]):
            found.update({f"{t}-{name}": case for name, case in group.items()})
    return {**found, **released_cases()}


# ---- writing ----


def make_mask(case, shape):
    mask = torch.ones(shape, dtype=torch.int64)
    batch, length = shape
    for row in range(1, batch):
        if case.padding == "holes":
            mask[row, 1 : length - 1 : 2] = 0
        elif case.padding == "left":
            mask[row, : min(row + 1, length - 1)] = 0
        else:
            mask[row, length - min(row, length - 1) :] = 0
    return mask


def make_positions(case, mask):
    batch, length = mask.shape
    if case.positions == "padded":
        return (mask.cumsum(1) - 1).clamp(0)
    if case.positions == "packed":
        return torch.arange(length).remainder(length // 2 + 1).expand(batch, length).contiguous()
    return FAR + torch.arange(length) + 7 * torch.arange(batch)[:, None]


def make_inputs(case, model, shape):
    config = model.config
    mask = make_mask(case, shape)
    ids = torch.randint(3, config.vocab_size, shape)
    if "attention_mask" in case.inputs and (config.pad_token_id or 0) >= 0:
        ids[mask == 0] = config.pad_token_id or 0
    values = {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": make_positions(case, mask),
        "inputs_embeds": torch.randn(*shape, config.hidden_size),
    }
    return {
        name: values[name].to(case.input_dtypes.get(name, values[name].dtype))
        for name in case.inputs
    }


def save_model(case, directory):
    """Save a random model, and apply the edits of the case to its files."""
    saved = class_of(case.model_type, case.saved_head or case.head)
    if case.raw_config:
        checkpoints.write_config(directory, {**case.raw_config, **case.edit_config})
        config = saved.config_class.from_pretrained(directory)
    else:
        config = saved.config_class(**{**TYPES[case.model_type][1], **case.config})
    model = saved(config)
    # Gemma adds one to the weights of its norms itself.
    checkpoints.randomize(model, norms=0 if case.model_type.startswith("gemma") else 1)
    shards = {"max_shard_size": case.shard_size} if case.shard_size else {}
    model.to(case.dtype).save_pretrained(
        directory, save_original_format=case.original_format, **shards
    )
    if case.raw_config:
        checkpoints.write_config(directory, case.raw_config)
    checkpoints.edit_config(directory, case.edit_config)
    if case.omit_defaults:
        derived = ("layer_types", "no_rope_layers", "rope_parameters")
        checkpoints.omit_defaults(directory, config, *derived)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)


def load(case, directory):
    model_class = class_of(case.model_type, case.head)
    options = LOADED.get(case.model_type, {})
    return model_class.from_pretrained(directory, dtype=torch.float32, **options).eval()


def write_spellings(case, directory):
    """The same weights under other configurations, which eager must take for the same."""
    for number, changes in enumerate(case.spellings, 1):
        other = directory / f"spelling-{number}"
        other.mkdir(exist_ok=True)
        for name in ("config.json", "model.safetensors"):
            (other / name).unlink(missing_ok=True)
        (other / "config.json").write_text((directory / "config.json").read_text())
        os.link(directory / "model.safetensors", other / "model.safetensors")
        checkpoints.edit_config(other, changes)
        inputs = checkpoints.load_file(directory / "second_inputs.safetensors")
        expected = checkpoints.load_file(directory / "second_expected.safetensors")
        outputs = checkpoints.flatten(checkpoints.run(load(case, other), inputs))
        for name, value in outputs.items():
            assert torch.equal(value, expected[name]), (other, name)


def write_case(_, case, directory):
    save_model(case, directory)
    if case.error:
        checkpoints.write_facts(directory, error=case.error)
        return
    # Loaded again, so that what counts is what eager makes of the files.
    model = load(case, directory)
    for prefix, shape in zip(checkpoints.RUNS, case.shapes):
        inputs = make_inputs(case, model, shape)
        outputs = checkpoints.run(model, inputs)
        checkpoints.write_run(directory, prefix, inputs, checkpoints.flatten(outputs))
    write_spellings(case, directory)
    checkpoints.edit_config(directory, case.late_config)
    if case.late_weights:
        checkpoints.edit_weights(directory, case.late_weights)
    facts = {"class": type(model).__name__, "output_class": type(outputs).__name__}
    checkpoints.write_facts(directory, **facts, options=case.options)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
