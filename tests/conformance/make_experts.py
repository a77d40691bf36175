#!/usr/bin/env python3
"""Write tiny checkpoints of decoders with experts, and eager outputs: make_experts.py DIRECTORY [CASE...]

What changes the routing and what the experts compute: how many are chosen, among which groups, with
which weights; experts that the first sample does not use, or nobody; both layouts of the weights;
layers without experts, shared experts; sinks, windows, and compressed keys and values. The rest is that
of the other decoders: make_decoders.py, whose cases these are.
"""

import checkpoints
import make_decoders as decoders
import torch
from checkpoints import added, renamed, without
from make_decoders import PLACED, SMALL, Case

MOE = dict(SMALL, num_experts_per_tok=2)
NARROW = dict(MOE, moe_intermediate_size=20)
TYPES = {
    "mixtral": ("Mixtral", dict(MOE, num_local_experts=6)),
    "qwen2_moe": ("Qwen2Moe", dict(NARROW, num_experts=6, shared_expert_intermediate_size=28)),
    "qwen3_moe": ("Qwen3Moe", dict(NARROW, num_local_experts=6, head_dim=8)),
    "gpt_oss": ("GptOss", dict(MOE, num_local_experts=6, head_dim=8, sliding_window=6)),
    "deepseek_v3": (
        "DeepseekV3",
        dict(
            NARROW,
            n_routed_experts=8,
            n_group=4,
            topk_group=2,
            num_key_value_heads=4,
            first_k_dense_replace=1,
            num_hidden_layers=3,
            q_lora_rank=12,
            kv_lora_rank=10,
            qk_rope_head_dim=6,
            qk_nope_head_dim=8,
            v_head_dim=5,
        ),
    ),
    "glm4_moe": ("Glm4Moe", dict(NARROW, n_routed_experts=6, head_dim=8)),
}
decoders.TYPES.update(TYPES)
# The loop over the experts; torch's grouped products want sizes that are multiples of 16 bytes.
decoders.LOADED.update(dict.fromkeys(TYPES, {"experts_implementation": "eager"}))
LONG = {"shapes": ((2, 9), (1, 24))}
COMMON = {
    decoders.head_cases: ("features", "language", "sequence"),
    decoders.input_cases: ("left", "embeds"),
    decoders.file_cases: ("bfloat16", "defaults", "bare"),
}


def count_key(t):
    return next(key for key in TYPES[t][1] if key.endswith("_experts"))


def two_experts(weights):
    """Every token goes to the first or the second expert: its score times 1 and -1, against 0."""
    edited = {}
    for name, value in weights.items():
        if name.endswith(("gate.weight", "router.weight")) and "shared" not in name:
            value[1:] = 0
            value[1] = -value[0]
        edited[name] = value * 0 if name.endswith(("router.bias", "correction_bias")) else value
    return edited


def routing_cases(t):
    count = count_key(t)
    one_group = {"n_group": 1, "topk_group": 1} if t in ("deepseek_v3", "glm4_moe") else {}
    odd = {"vocab_size": 77, "hidden_size": 36, "intermediate_size": 30}
    odd |= {"moe_intermediate_size": 21} if "moe_intermediate_size" in TYPES[t][1] else {}
    odd |= {"num_attention_heads": 6, "num_key_value_heads": 6, count: 5, **one_group}
    cases = {
        # The second sample uses experts that the first one does not.
        "unused": Case(t, shapes=((1, 1), (3, 14))),
        "two": Case(t, config={"num_experts_per_tok": 1, **one_group}, edit_weights=two_experts),
        "all": Case(t, config={"num_experts_per_tok": 6, count: 6, **one_group}),
        "odd": Case(t, config=odd),
        "too-many": Case(
            t,
            edit_config={"num_experts_per_tok": 9},
            error="num_experts_per_tok",
        ),
        "thousands": Case(t, edit_config={count: 5000}, error="at most 1024 experts"),
        "logits": Case(t, edit_config={"output_router_logits": True}, error="output_router_logits"),
    }
    if not one_group:  # which looks at the two best of a group
        cases["one-expert"] = Case(t, config={"num_experts_per_tok": 1, count: 1})
    return cases


def layout_cases(t):
    """Version 5 keeps the matrices of all experts in one tensor."""
    if t == "gpt_oss":
        return {}
    absent = "experts.1.w2" if t == "mixtral" else "experts.1.down_proj"
    return {
        "together": Case(t, original_format=False),
        "together-half": Case(t, original_format=False, dtype=torch.bfloat16),
        "incomplete": Case(t, edit_weights=without(absent), error=absent),
        "wrong-size": Case(
            t,
            edit_config={
                "moe_intermediate_size" if t != "mixtral" else "intermediate_size": 45
            },
            error="expected the shape",
        ),
    }


def mixtral_cases():
    t = "mixtral"
    return {
        "window": Case(t, config={"sliding_window": 4}, **LONG),
        "activation": Case(t, config={"hidden_act": "gelu"}),
        "default-count": Case(t, config={"num_local_experts": 8}, edit_config={"num_local_experts": ...}),
        "jitter": Case(t, edit_config={"router_jitter_noise": 0.3}),
    }


def qwen_cases(t):
    count = count_key(t)
    three = {"num_hidden_layers": 3}
    window = {"use_sliding_window": True, "sliding_window": 5, "num_hidden_layers": 3}
    cases = {
        "normalized": Case(t, config={"norm_topk_prob": True}),
        "some-dense": Case(t, config={**three, "mlp_only_layers": [1]}),
        "every-second": Case(t, config={**three, "decoder_sparse_step": 2}),
        "windows": Case(t, config={**window, "max_window_layers": 2}, **LONG)
        if t == "qwen2_moe"
        else Case(t, config=window, **LONG),
        "windows-off": Case(t, edit_config={"sliding_window": 4, "max_window_layers": 1}, **LONG),
    }
    if t == "qwen2_moe":
        types = ["full_attention", "sliding_attention", "full_attention"]
        cases["biases-off"] = Case(t, config={"qkv_bias": False})
        cases["typed-windows"] = Case(t, config={**window, "layer_types": types}, **LONG)
        cases["untyped-windows"] = Case(
            t, config={**window, "max_window_layers": 1}, edit_config={"layer_types": ...}, **LONG
        )
    else:
        cases["biases"] = Case(t, config={"attention_bias": True})
        cases["published-key"] = Case(t, edit_config={count: ..., "num_experts": 6})
    return cases


def gpt_oss_cases():
    t = "gpt_oss"
    clamps = {"swiglu_limit": 0.4, "swiglu_alpha": 0.9}
    blocks = renamed(("experts.gate_up_proj", "experts.gate_up_proj_blocks"))
    full = ["full_attention"] * 2
    plain = {"rope_type": "default", "rope_theta": 5000.0}
    linear = {"rope_type": "linear", "factor": 3.0, "rope_theta": 5000.0}
    old = {"rope_parameters": ..., "rope_theta": 900.0}
    yarn = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    return {
        "clamps": Case(t, config=clamps),
        "default-clamps": Case(t, edit_config=dict.fromkeys(clamps, ...)),
        "windows-left": Case(t, padding="left", inputs=PLACED, positions="padded", **LONG),
        "windows-alone": Case(t, inputs=("input_ids",), **LONG),
        "untyped": Case(t, config={"num_hidden_layers": 3}, edit_config={"layer_types": ...}, **LONG),
        "full": Case(t, config={"layer_types": full}, inputs=("input_ids",)),
        "biases-off": Case(t, config={"attention_bias": False}),
        "no-ropes": Case(t, edit_config={"rope_parameters": ...}),
        "plain-rope": Case(t, config={"rope_parameters": plain}),
        "linear-rope": Case(t, config={"rope_parameters": linear}),
        "published": Case(
            t,
            edit_config={
                **old,
                "rope_scaling": {**yarn, "original_max_position_embeddings": 16},
                "experts_per_token": 2,
                "initial_context_length": 16,
            },
        ),
        "quantized": Case(t, edit_weights=blocks, error="MXFP4"),
    }


def deepseek_cases():
    t = "deepseek_v3"
    yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}
    yarn |= {"original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1}
    old = {"rope_parameters": ..., "rope_theta": 900.0, "rope_scaling": yarn}
    published = {"topk_method": "noaux_tc", "scoring_func": "sigmoid", "moe_layer_freq": 1, "ep_size": 1}
    return {
        "plain-queries": Case(t, config={"q_lora_rank": None}),
        "halves": Case(t, config={"rope_interleave": False}),
        "one-group": Case(t, config={"n_group": 1, "topk_group": 1}),
        "best-group": Case(t, config={"n_group": 2, "topk_group": 1}),
        "unnormalized": Case(t, config={"norm_topk_prob": False, "routed_scaling_factor": 0.7}),
        "all-sparse": Case(t, config={"first_k_dense_replace": 0}),
        "all-dense": Case(t, config={"first_k_dense_replace": 3}),
        "shared": Case(t, config={"n_shared_experts": 2}),
        "biases": Case(t, config={"attention_bias": True}),
        "wide-values": Case(t, config={"v_head_dim": 16, "qk_rope_head_dim": 4}),
        "published": Case(t, edit_config={**old, **published, "seq_aux": True, "aux_loss_alpha": 0.001}),
        "yarn-halves": Case(t, config={"rope_interleave": False}, edit_config=old, **LONG),
        "extra-layer": Case(t, edit_weights=added(**{"model.layers.3.eh_proj.weight": torch.ones(4, 8)})),
        "other-method": Case(t, edit_config={"topk_method": "greedy"}, error="topk_method"),
        "few-heads": Case(
            t, edit_config={"num_key_value_heads": 2}, error="num_key_value_heads"
        ),
        "groups": Case(t, edit_config={"n_group": 3}, error="n_group"),
    }


def glm4_cases():
    t = "glm4_moe"
    groups = {"n_routed_experts": 8, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7}
    whole = {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}}
    return {
        "normed": Case(t, config={"use_qk_norm": True, "attention_bias": True}),
        "groups": Case(t, config=groups),
        "all-sparse": Case(t, config={"first_k_dense_replace": 0, "norm_topk_prob": False}),
        "whole-rotation": Case(t, config=whole),
        "old": Case(t, edit_config={"rope_parameters": ..., "rope_theta": 900.0, "partial_rotary_factor": 0.5}),
    }


def cases():
    own = {
        "mixtral": mixtral_cases(),
        "qwen2_moe": qwen_cases("qwen2_moe"),
        "qwen3_moe": qwen_cases("qwen3_moe"),
        "gpt_oss": gpt_oss_cases(),
        "deepseek_v3": deepseek_cases(),
        "glm4_moe": glm4_cases(),
    }
    found = {}
    for t in TYPES:
        common = {name: case for make, names in COMMON.items() for name, case in make(t).items() if name in names}
        for group in (common, routing_cases(t), layout_cases(t), own[t]):
            found.update({f"{t}-{name}": case for name, case in group.items()})
    return found


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), decoders.write_case)
