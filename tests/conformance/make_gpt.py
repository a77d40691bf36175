#!/usr/bin/env python3
"""Write tiny GPT-like checkpoints with eager outputs: make_gpt.py DIRECTORY [CASE...]

See checkpoints.py for what is written; the first run is padded on the left, the second on the
right. The cases are what the shared fixtures lack: other configurations, every head, all inputs,
older spellings of the configuration and keys that it leaves out.
"""

from dataclasses import dataclass, field

import checkpoints
import torch
import transformers

COMMON = dict(vocab_size=96, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GPT2 = dict(n_embd=32, n_head=4, n_layer=2, n_positions=64)
GPTJ = dict(GPT2, rotary_dim=4)
SIZES = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=2)
LONGER = dict(SIZES, max_position_embeddings=64)
NEO = dict(
    hidden_size=32,
    num_heads=4,
    num_layers=3,
    max_position_embeddings=64,
    attention_types=[[["global", "local", "local"], 1]],
    window_size=3,
)
SMALL = {
    "gpt2": ("GPT2", GPT2, "LMHeadModel"),
    "gpt_bigcode": ("GPTBigCode", GPT2, "ForCausalLM"),
    "gpt_neo": ("GPTNeo", NEO, "ForCausalLM"),
    "gptj": ("GPTJ", GPTJ, "ForCausalLM"),
    "codegen": ("CodeGen", GPTJ, "ForCausalLM"),
    "gpt_neox": ("GPTNeoX", dict(LONGER, intermediate_size=48), "ForCausalLM"),
    "bloom": ("Bloom", dict(hidden_size=32, n_head=4, n_layer=2), "ForCausalLM"),
    "falcon": ("Falcon", LONGER, "ForCausalLM"),
    "opt": ("OPT", dict(LONGER, ffn_dim=48), "ForCausalLM"),
}
HEADS = {
    "features": "Model",
    "sequence": "ForSequenceClassification",
    "token": "ForTokenClassification",
    "answering": "ForQuestionAnswering",
}
SEGMENTED = {"gpt2", "gpt_bigcode", "gpt_neo", "gptj", "codegen"}
SHORT, LONG = ((2, 9), (3, 13)), ((2, 9), (3, 300))
MASKED = ("input_ids", "attention_mask")
EMBEDDED = ("inputs_embeds", "attention_mask")


@dataclass
class Case:
    model_type: str
    config: dict = field(default_factory=dict)  # on top of the small configuration
    head: str = "language"
    inputs: tuple = MASKED
    shapes: tuple = SHORT
    saved_head: str = ""  # of the class that is saved, when it is not the one that runs
    edit_config: dict = field(default_factory=dict)  # over config.json; ... deletes the key
    omit_defaults: bool = False  # leave keys with the class's defaults out of config.json

    def model_class(self, head):
        prefix, _, language_model = SMALL[self.model_type]
        return getattr(transformers, prefix + HEADS.get(head, language_model))


def common_cases(model_type):
    every_input = MASKED + ("position_ids",) * (model_type != "bloom")
    every_input += ("token_type_ids",) * (model_type in SEGMENTED)
    prefix, three = SMALL[model_type][0], {"num_labels": 3}
    return {
        **{
            head: Case(model_type, three, head)
            for head, suffix in HEADS.items()
            if hasattr(transformers, prefix + suffix)
        },
        "ids-alone": Case(model_type, inputs=("input_ids",)),
        "embeds": Case(model_type, inputs=EMBEDDED),
        "all-inputs": Case(model_type, inputs=every_input),
        "no-cache": Case(model_type, {"use_cache": False}),
        "defaults": Case(model_type, omit_defaults=True),
        "bare-names": Case(model_type, {"tie_word_embeddings": True}, saved_head="features"),
    }


def gpt2_cases():
    aliases = {**dict.fromkeys(GPT2, ...), **LONGER}
    unused = {"n_ctx": 64, "output_past": True}
    unscaled = {"scale_attn_weights": False, "reorder_and_upcast_attn": True}
    return {
        "inverse-layer": Case("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
        "unscaled": Case("gpt2", unscaled),
        "inner": Case("gpt2", {"n_inner": 40, "activation_function": "relu"}),
        "untied": Case("gpt2", {"tie_word_embeddings": False}, edit_config=unused),
        "aliases": Case("gpt2", edit_config=aliases),
    }


def gpt_bigcode_cases():
    return {
        "multi-head": Case("gpt_bigcode", {"multi_query": False}),
        "unscaled": Case("gpt_bigcode", {"scale_attn_weights": False}),
    }


def gpt_neo_cases():
    everywhere = {"attention_types": [[["global"], 3]], "intermediate_size": 40}
    return {
        "global": Case("gpt_neo", everywhere),
        "window-1": Case("gpt_neo", {"window_size": 1}),
    }


def gptj_cases():
    wide = {"n_embd": 128, "n_head": 2, "rotary_dim": 64}
    return {
        "whole-head": Case("gptj", {"rotary_dim": 8, "n_inner": 40}),
        "default-rotation": Case("gptj", wide, edit_config={"rotary_dim": ...}),
        "tied": Case("gptj", {"tie_word_embeddings": True}, edit_config={"rotary": True}),
    }


def codegen_cases():
    return {
        "wide-heads": Case("codegen", {"n_head": 2, "rotary_dim": 8}),
        "narrow-heads": Case("codegen", {"n_head": 8}),
    }


def gpt_neox_rope(shapes=SHORT, **parameters):
    parameters["rope_theta"] = 10000.0
    return Case("gpt_neox", {"rope_parameters": parameters}, shapes=shapes)


def gpt_neox_cases():
    no_bias = {"attention_bias": False, "hidden_act": "gelu_new"}
    old = {"rope_parameters": ..., "rotary_pct": 0.5, "rotary_emb_base": 500}
    linear = dict(rope_type="linear", factor=2.0, partial_rotary_factor=1.0)
    dynamic = dict(rope_type="dynamic", factor=2.0, partial_rotary_factor=0.5)
    return {
        "sequential": Case("gpt_neox", {"use_parallel_residual": False}),
        "no-bias": Case("gpt_neox", no_bias),
        "old-config": Case("gpt_neox", edit_config=old),
        "linear": gpt_neox_rope(**linear),
        "dynamic": gpt_neox_rope(LONG, **dynamic),
        "odd-width": Case("gpt_neox", {"hidden_size": 48}),
    }


def bloom_cases():
    renamed = {"hidden_size": ..., "n_embed": 32, "n_head": ..., "num_attention_heads": 4}
    return {
        "six-heads": Case("bloom", {"hidden_size": 48, "n_head": 6}),
        "sixteen-heads": Case("bloom", {"hidden_size": 64, "n_head": 16}),
        "post-residual": Case("bloom", {"apply_residual_connection_post_layernorm": True}),
        "slices": Case("bloom", {"pretraining_tp": 2, "slow_but_exact": True}),
        "old-config": Case("bloom", edit_config={**renamed, "offset_alibi": 100}),
    }


def falcon_cases():
    grouped = {"new_decoder_architecture": True, "num_kv_heads": 2}
    one_norm = {**grouped, "num_ln_in_parallel_attn": 1, "ffn_hidden_size": 40}
    multi_head = {"multi_query": False}
    sequential = {"parallel_attn": False, "multi_query": False, "bias": True}
    six_heads = {**grouped, "hidden_size": 48, "num_attention_heads": 6}
    sixteen_heads = {"hidden_size": 64, "num_attention_heads": 16}
    alibi = {"alibi": True}
    return {
        "40b": Case("falcon", grouped, edit_config={"num_ln_in_parallel_attn": ...}),
        "40b-multi-head": Case("falcon", {"new_decoder_architecture": True, "bias": True}),
        "11b": Case("falcon", one_norm),
        "sequential": Case("falcon", sequential),
        "sequential-multi-query": Case("falcon", {"parallel_attn": False, "activation": "relu"}),
        "parallel-multi-head": Case("falcon", multi_head),
        "rw": Case("falcon", {**sequential, **alibi}),
        "alibi-40b": Case("falcon", {**six_heads, **alibi}),
        "alibi-long": Case("falcon", {**sixteen_heads, **alibi}, shapes=LONG),
        "old-config": Case("falcon", edit_config={"rope_parameters": ..., "rope_theta": 500.0}),
    }


def opt_cases():
    narrow = {"do_layer_norm_before": False, "word_embed_proj_dim": 16}
    padded, omitted = {**narrow, "pad_token_id": 1}, {"pad_token_id": ...}
    return {
        "350m": Case("opt", narrow),
        "350m-embeds": Case("opt", narrow, inputs=EMBEDDED),
        "350m-sequence": Case("opt", padded, "sequence", edit_config=omitted),
        "no-bias": Case("opt", {"enable_bias": False, "activation_function": "gelu"}),
        "no-affine": Case("opt", {"layer_norm_elementwise_affine": False}),
        "no-final-norm": Case("opt", {"_remove_final_layer_norm": True}),
    }


def cases():
    own = {
        "gpt2": gpt2_cases(),
        "gpt_bigcode": gpt_bigcode_cases(),
        "gpt_neo": gpt_neo_cases(),
        "gptj": gptj_cases(),
        "codegen": codegen_cases(),
        "gpt_neox": gpt_neox_cases(),
        "bloom": bloom_cases(),
        "falcon": falcon_cases(),
        "opt": opt_cases(),
    }
    return {
        f"{model_type}-{name}": case
        for model_type in SMALL
        for name, case in {**common_cases(model_type), **own[model_type]}.items()
        if not (model_type in ("gptj", "codegen") and name == "bare-names")  # logits have a bias
    }


def make_inputs(case, model, shape, left):
    """Random tokens; a mask hides some of all rows but the first."""
    batch, length = shape
    pad = getattr(model.config, "pad_token_id", 0)
    ids = torch.randint(3, model.config.vocab_size, shape)
    mask = torch.ones(shape, dtype=torch.int64)
    if "attention_mask" in case.inputs:
        for row in range(1, batch):
            hidden = slice(0, row + 1) if left else slice(length - row - 1, length)
            mask[row, hidden] = 0
            ids[row, hidden] = pad
    width = model.get_input_embeddings().weight.shape[1]
    values = {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": (torch.arange(length) * 2 + torch.arange(batch)[:, None]) % 60,
        "token_type_ids": torch.randint(0, 5, shape),
        "inputs_embeds": torch.randn(batch, length, width),
    }
    return {name: values[name] for name in case.inputs}


def write_checkpoint(case, directory):
    saved = case.model_class(case.saved_head or case.head)
    config = saved.config_class(**{**COMMON, **SMALL[case.model_type][1], **case.config})
    model = saved(config)
    checkpoints.randomize(model)
    model.save_pretrained(directory)
    changes = dict(case.edit_config, architectures=[case.model_class(case.head).__name__])
    if case.omit_defaults:
        defaults, values = type(config)().to_dict(), config.to_dict()
        same = [key for key in values if key in defaults and values[key] == defaults[key]]
        changes.update({key: ... for key in same if key != "model_type"})
    checkpoints.edit_config(directory, changes)


def write_case(_, case, directory):
    write_checkpoint(case, directory)
    # Loaded again, so that what counts is what eager makes of the files.
    model = case.model_class(case.head).from_pretrained(directory).eval()
    for prefix, shape in zip(checkpoints.RUNS, case.shapes):
        inputs = make_inputs(case, model, shape, left=not prefix)
        outputs = checkpoints.run(model, inputs)
        checkpoints.write_run(directory, prefix, inputs, checkpoints.flatten(outputs))
    facts = {"class": type(model).__name__, "output_class": type(outputs).__name__}
    checkpoints.write_facts(directory, **facts)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
