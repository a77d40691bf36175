"""Write tiny GPT-like checkpoints with the outputs of the eager model.

    python make_gpt.py OUTDIR [NAME...]

Every case is a directory OUTDIR/NAME with config.json, model.safetensors, and two runs of different
shape: inputs.safetensors and expected.safetensors (padded on the left), second_inputs.safetensors and
second_expected.safetensors (padded on the right). Weights come from a fixed seed; biases and norms are
not at their initial zeros and ones, so that leaving one out shows. The cases are what the shared
fixtures lack: other configurations, other heads, other inputs, older config keys.
"""

import json
import sys
import zlib
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

SMALL = dict(vocab_size=96, bos_token_id=1, eos_token_id=2, pad_token_id=0)
HUB_NAMES = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=2)
GPT_NAMES = dict(n_embd=32, n_head=4, n_layer=2, n_positions=64)

# Model type: (prefix of its classes, configuration, heads besides the base model and the language model)
TYPES = {
    "gpt2": ("GPT2", GPT_NAMES, "STQ"),
    "gpt_bigcode": ("GPTBigCode", GPT_NAMES, "ST"),
    "gpt_neo": (
        "GPTNeo",
        dict(
            hidden_size=32,
            num_heads=4,
            num_layers=3,
            max_position_embeddings=64,
            attention_types=[[["global", "local", "local"], 1]],
            window_size=3,
        ),
        "STQ",
    ),
    "gptj": ("GPTJ", GPT_NAMES | dict(rotary_dim=4), "SQ"),
    "codegen": ("CodeGen", GPT_NAMES | dict(rotary_dim=4), ""),
    "gpt_neox": ("GPTNeoX", HUB_NAMES | dict(intermediate_size=48, max_position_embeddings=64), "STQ"),
    "bloom": ("Bloom", dict(hidden_size=32, n_head=4, n_layer=2), "STQ"),
    "falcon": ("Falcon", HUB_NAMES | dict(max_position_embeddings=64), "STQ"),
    "opt": ("OPT", HUB_NAMES | dict(ffn_dim=48, max_position_embeddings=64), "SQ"),
}
HEADS = {
    "S": "ForSequenceClassification",
    "T": "ForTokenClassification",
    "Q": "ForQuestionAnswering",
}

# Name: (model type, options). "omit" removes keys from the saved config.json ("defaults": all that have
# the class's default value) and "write" adds some, for older spellings; "kind" chooses the inputs;
# "suffix" the class; "bare" saves the base model alone.
CASES = {
    "gpt2-inverse-layer": ("gpt2", dict(scale_attn_by_inverse_layer_idx=True)),
    "gpt2-unscaled": ("gpt2", dict(scale_attn_weights=False, reorder_and_upcast_attn=True)),
    "gpt2-inner": ("gpt2", dict(n_inner=40, activation_function="relu")),
    "gpt2-untied": ("gpt2", dict(tie_word_embeddings=False)),
    "gpt2-bare": ("gpt2", dict(bare=True, write=dict(n_ctx=64, output_past=True))),
    "gpt2-aliases": (
        "gpt2",
        dict(
            omit=["n_embd", "n_head", "n_layer", "n_positions"],
            write=HUB_NAMES | dict(max_position_embeddings=64),
        ),
    ),
    "gpt_bigcode-multi-head": ("gpt_bigcode", dict(multi_query=False)),
    "gpt_bigcode-unscaled": ("gpt_bigcode", dict(scale_attn_weights=False)),
    "gpt_neo-global": ("gpt_neo", dict(attention_types=[[["global"], 3]], intermediate_size=40)),
    "gpt_neo-window-1": ("gpt_neo", dict(window_size=1)),
    "gptj-whole-head": ("gptj", dict(rotary_dim=8, n_inner=40)),
    "gptj-tied": ("gptj", dict(tie_word_embeddings=True, write=dict(rotary=True))),
    "codegen-wide-heads": ("codegen", dict(n_head=2, rotary_dim=8)),
    "codegen-narrow-heads": ("codegen", dict(n_head=8)),
    "gpt_neox-sequential": ("gpt_neox", dict(use_parallel_residual=False)),
    "gpt_neox-no-bias": ("gpt_neox", dict(attention_bias=False, hidden_act="gelu_new")),
    "gpt_neox-old-keys": (
        "gpt_neox",
        dict(
            omit=["rope_parameters", "attention_bias"],
            write=dict(rotary_pct=0.5, rotary_emb_base=500),
        ),
    ),
    "gpt_neox-tied": ("gpt_neox", dict(tie_word_embeddings=True)),
    "gpt_neox-linear": (
        "gpt_neox",
        dict(rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=10000.0, partial_rotary_factor=1.0)),
    ),
    "gpt_neox-dynamic": (
        "gpt_neox",
        dict(
            kind="long",
            rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=10000.0, partial_rotary_factor=0.5),
        ),
    ),
    "gpt_neox-odd-width": ("gpt_neox", dict(hidden_size=48)),
    "bloom-six-heads": ("bloom", dict(hidden_size=48, n_head=6)),
    "bloom-sixteen-heads": ("bloom", dict(hidden_size=64, n_head=16)),
    "bloom-post-residual": ("bloom", dict(apply_residual_connection_post_layernorm=True)),
    "bloom-slices": ("bloom", dict(pretraining_tp=2, slow_but_exact=True)),
    "bloom-old-keys": (
        "bloom",
        dict(
            omit=["hidden_size", "n_head"],
            write=dict(n_embed=32, num_attention_heads=4, offset_alibi=100, skip_bias_add=True),
        ),
    ),
    "falcon-7b": ("falcon", dict(write=dict(apply_residual_connection_post_layernorm=False))),
    "falcon-40b": ("falcon", dict(new_decoder_architecture=True, num_kv_heads=2)),
    "falcon-40b-multi-head": ("falcon", dict(new_decoder_architecture=True, bias=True)),
    "falcon-11b": (
        "falcon",
        dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, ffn_hidden_size=40),
    ),
    "falcon-sequential": ("falcon", dict(parallel_attn=False, multi_query=False, bias=True)),
    "falcon-sequential-multi-query": ("falcon", dict(parallel_attn=False, activation="relu")),
    "falcon-parallel-multi-head": ("falcon", dict(multi_query=False)),
    "falcon-alibi": ("falcon", dict(alibi=True, multi_query=False, parallel_attn=False, bias=True)),
    "falcon-alibi-40b": (
        "falcon",
        dict(alibi=True, new_decoder_architecture=True, hidden_size=48, num_attention_heads=6, num_kv_heads=3),
    ),
    "falcon-alibi-long": (
        "falcon",
        dict(alibi=True, kind="long", hidden_size=64, num_attention_heads=16),
    ),
    "falcon-old-keys": ("falcon", dict(omit=["rope_parameters"], write=dict(rope_theta=500.0))),
    "opt-350m": ("opt", dict(do_layer_norm_before=False, word_embed_proj_dim=16)),
    "opt-350m-embeds": ("opt", dict(do_layer_norm_before=False, word_embed_proj_dim=16, kind="embeds")),
    "opt-350m-classifier": (
        "opt",
        dict(
            do_layer_norm_before=False,
            word_embed_proj_dim=16,
            suffix=HEADS["S"],
            pad_token_id=1,
            omit=["pad_token_id", "num_labels"],
        ),
    ),
    "opt-no-bias": ("opt", dict(enable_bias=False, activation_function="gelu")),
    "opt-no-affine": ("opt", dict(layer_norm_elementwise_affine=False)),
    "opt-no-final-norm": ("opt", dict(_remove_final_layer_norm=True)),
}
for _type, (_, _, _heads) in TYPES.items():
    CASES |= {f"{_type}{kind}": (_type, dict(kind=kind[1:])) for kind in ("-plain", "-embeds")}
    CASES[f"{_type}-model"] = (_type, dict(suffix="Model"))
    CASES[f"{_type}-defaults"] = (_type, dict(omit="defaults"))
    CASES[f"{_type}-no-cache"] = (_type, dict(use_cache=False))
    if _type != "bloom":
        CASES[f"{_type}-positions"] = (_type, dict(kind="positions"))
    if _type in ("gpt2", "gpt_bigcode", "gpt_neo", "gptj", "codegen"):
        CASES[f"{_type}-types"] = (_type, dict(kind="types"))
    for _head in _heads:
        CASES[f"{_type}{HEADS[_head]}"] = (_type, dict(suffix=HEADS[_head], num_labels=3))


def make_model(name, model_type, options):
    """A model with random weights whose vectors differ from their initial values."""
    prefix, config, _ = TYPES[model_type]
    suffix = options.pop("suffix", "LMHeadModel" if model_type == "gpt2" else "ForCausalLM")
    torch.manual_seed(zlib.crc32(name.encode()))
    config = getattr(transformers, f"{prefix}Config")(**(SMALL | config | options))
    model = getattr(transformers, f"{prefix}{suffix}")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.2 if parameter.ndim == 1 else 0.1))
    return model


def save(model, directory, bare, omit, write):
    """Save the checkpoint, and read it back as anybody would."""
    (model.base_model if bare else model).save_pretrained(directory)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    if omit == "defaults":
        defaults = type(model.config)().to_dict()
        omit = [key for key in config if key in defaults and defaults[key] == config[key] and key != "model_type"]
    config = {key: value for key, value in config.items() if key not in omit} | write
    config["architectures"] = [type(model).__name__]
    path.write_text(json.dumps(config, indent=2) + "\n")
    return type(model).from_pretrained(directory).eval()


def make_inputs(model, kind, batch, length, left):
    """Random tokens; the mask hides some of all rows but the first."""
    pad = model.config.get_text_config().pad_token_id if hasattr(model.config, "pad_token_id") else 0
    ids = torch.randint(3, model.config.vocab_size, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.int64)
    for row in range(1, batch):
        hidden = slice(0, row + 1) if left else slice(length - row - 1, length)
        mask[row, hidden] = 0
        ids[row, hidden] = pad
    if kind == "plain":
        return {"input_ids": ids}
    inputs = {"input_ids": ids, "attention_mask": mask}
    if kind == "embeds":
        width = model.get_input_embeddings().weight.shape[1]
        inputs = {"inputs_embeds": torch.randn(batch, length, width), "attention_mask": mask}
    if kind == "positions":
        inputs["position_ids"] = (torch.arange(length) * 2 + torch.arange(batch)[:, None]) % 60
    if kind == "types":
        inputs["token_type_ids"] = torch.randint(0, 5, (batch, length))
    return inputs


def flatten(output):
    """The tensors of a ModelOutput by name."""
    tensors = {}
    for key, value in output.items():
        if key != "cache":
            tensors[key] = value
            continue
        for index, layer in enumerate(value.layers):
            tensors[f"cache.layers.{index}.keys"] = layer.keys
            tensors[f"cache.layers.{index}.values"] = layer.values
    return {key: value.contiguous() for key, value in tensors.items()}


def make_case(name, directory):
    model_type, options = CASES[name]
    options = dict(options)
    kind = options.pop("kind", "masked")
    saving = {"bare": options.pop("bare", False), "omit": options.pop("omit", []), "write": options.pop("write", {})}
    model = save(make_model(name, model_type, options), directory, **saving)
    for prefix, batch, length, left in (("", 2, 9, True), ("second_", 3, 300 if kind == "long" else 13, False)):
        inputs = make_inputs(model, kind, batch, length, left)
        with torch.no_grad():
            expected = flatten(model(**inputs))
        save_file(inputs, directory / f"{prefix}inputs.safetensors")
        save_file(expected, directory / f"{prefix}expected.safetensors")


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    transformers.logging.set_verbosity_error()
    for name in arguments[1:] or CASES:
        make_case(name, Path(arguments[0]) / name)


if __name__ == "__main__":
    main(sys.argv[1:])
