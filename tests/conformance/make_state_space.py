#!/usr/bin/env python3
"""Write tiny checkpoints of state space models, and eager outputs: make_state_space.py DIRECTORY [CASE...]

What changes their arithmetic: sizes, biases, kernels of the convolution, norms, groups of heads, limits of
the steps, padding, prompts longer than a chunk, layers of attention and of experts among the others. The
cases are those of make_decoders.py.
"""

import checkpoints
import make_decoders as decoders
import torch
from checkpoints import renamed, without
from make_decoders import MASKED, Case

SMALL = dict(vocab_size=93, hidden_size=24, num_hidden_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MAMBA = dict(SMALL, state_size=5, time_step_rank=3)
TYPES = {
    "mamba": ("Mamba", MAMBA),
    "falcon_mamba": ("FalconMamba", MAMBA),
    "mamba2": ("Mamba2", dict(SMALL, state_size=5, num_heads=6, head_dim=8, n_groups=2, chunk_size=8)),
    "jamba": (
        "Jamba",
        dict(SMALL, num_hidden_layers=4, intermediate_size=36, num_attention_heads=4, num_key_value_heads=2,
             mamba_d_state=5, mamba_dt_rank=3, attn_layer_period=3, attn_layer_offset=1, num_experts=4,
             use_mamba_kernels=False),
    ),
}  # fmt: skip
decoders.TYPES.update(TYPES)
# The loop over the experts; torch's grouped products want sizes that are multiples of 16 bytes.
decoders.LOADED["jamba"] = {"experts_implementation": "eager"}
LONG = {"shapes": ((2, 9), (1, 150))}
COMMON = {
    decoders.head_cases: ("features", "language", "sequence"),
    decoders.file_cases: ("bfloat16", "shards", "no-cache"),
}


def common_cases(t):
    found = {name: case for make, names in COMMON.items() for name, case in make(t).items() if name in names}
    return found | {
        "long": Case(t, **LONG),
        "left": Case(t, padding="left", **LONG),
        "holes": Case(t, padding="holes"),
        "ids-alone": Case(t, inputs=("input_ids",)),
        "embeds": Case(t, inputs=("inputs_embeds", "attention_mask")),
        "one-token": Case(t, shapes=((1, 1), (2, 1))),
        "tied": Case(t, config={"tie_word_embeddings": True}),
        "untied": Case(t, config={"tie_word_embeddings": False}),
    }


def mixer_cases(t):
    """Of the mixers outside hybrids."""
    embedding = renamed(("embeddings.", "embedding."))
    training = {"time_step_min": 0.01, "time_step_max": 0.3}
    cases = {
        "biases": Case(t, config={"use_bias": True}, padding="left"),
        "no-convolution-bias": Case(t, config={"use_conv_bias": False}),
        "wide-kernel": Case(t, config={"conv_kernel": 6}, shapes=((2, 3), (1, 20))),
        "kernel-of-one": Case(t, config={"conv_kernel": 1}),
        "activation": Case(t, config={"hidden_act": "gelu"}),
        "eps": Case(t, config={"layer_norm_epsilon": 0.1}),
        "residual": Case(t, config={"residual_in_fp32": False}),
        "training": Case(t, config=training),
        "old-name": Case(t, late_weights=embedding),
        "incomplete": Case(t, edit_weights=without("layers.1.mixer.D"), error="layers.1.mixer.D"),
        "unknown-key": Case(t, edit_config={"moon_phase": 0.5}, error="moon_phase"),
    }
    if t != "mamba2":
        auto = {"hidden_size": 36, "time_step_rank": "auto"}
        cases["auto-rank"] = Case(t, config=auto, spellings=({"time_step_rank": ...},))
        cases["expand"] = Case(t, config={"expand": 3, "state_size": 2})
        cases["own-size"] = Case(t, config={"intermediate_size": 40})
    if t == "falcon_mamba":
        cases["norms"] = Case(t, config={"mixer_rms_eps": 0.1})
    return cases


def mamba2_cases():
    t = "mamba2"
    limit = [0.3, 0.9]
    infinite = {"time_step_limit": [0.5, float("inf")]}
    return {
        "limits": Case(t, config={"time_step_limit": limit}, **LONG),
        "lower-limit": Case(t, config=infinite, spellings=(infinite,)),
        "one-group": Case(t, config={"n_groups": 1}, **LONG),
        "group-of-one": Case(t, config={"n_groups": 6}),
        "one-chunk": Case(t, config={"chunk_size": 256}, **LONG),
        "heads": Case(t, edit_config={"num_heads": 5}, error="num_heads"),
        "no-limits": Case(t, edit_config={"time_step_limit": "none"}, error="time_step_limit"),
    }


def jamba_cases():
    t = "jamba"
    heads = {"num_key_value_heads": 4}
    published = {"calc_logits_for_entire_prompt": False, "mamba_inner_layernorms": True, "n_ctx": 262144,
                 "sliding_window": None}  # fmt: skip
    return {
        "dense": Case(t, config={"num_experts": 1}),
        "all-experts": Case(t, config={"expert_layer_period": 1, "expert_layer_offset": 0}),
        "late-experts": Case(t, config={"expert_layer_period": 3, "expert_layer_offset": 2}),
        "together": Case(t, original_format=False),
        "attention-first": Case(t, config={"attn_layer_period": 2, "attn_layer_offset": 0}, **LONG),
        "attention-alone": Case(t, config={"attn_layer_period": 1, "attn_layer_offset": 0}, padding="left"),
        "no-attention": Case(
            t, config={"attn_layer_period": 8, "attn_layer_offset": 4, "use_cache": False}, padding="left"
        ),
        "biases": Case(t, config={"mamba_proj_bias": True}, padding="left"),
        "no-convolution-bias": Case(t, config={"mamba_conv_bias": False}),
        "wide": Case(t, config={"mamba_expand": 3, "mamba_d_state": 2, "mamba_d_conv": 6}),
        "auto-rank": Case(t, config={"mamba_dt_rank": "auto"}, spellings=({"mamba_dt_rank": ...},)),
        "every-head": Case(t, config=heads, late_config={"num_key_value_heads": None}),
        "positions": Case(t, inputs=(*MASKED, "position_ids")),
        "published": Case(t, edit_config=published),
        "sequence-left": Case(t, "sequence", {"num_labels": 3}, padding="left"),
        "router-logits": Case(t, edit_config={"output_router_logits": True}, error="output_router_logits"),
        "sizes": Case(t, edit_config={"num_key_value_heads": 3}, error="num_key_value_heads"),
    }


def cases():
    own = {"mamba2": mamba2_cases(), "jamba": jamba_cases()}
    found = {}
    for t in TYPES:
        groups = [common_cases(t), mixer_cases(t) if t != "jamba" else {}, own.get(t, {})]
        for group in groups:
            found.update({f"{t}-{name}": case for name, case in group.items()})
    return found


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), decoders.write_case)
