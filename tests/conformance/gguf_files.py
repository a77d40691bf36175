"""Tiny GGUF files, and the eager models that they hold.

The files are written with the gguf package, in llama.cpp's names and arrangement; the eager model has
the weights that the package makes of the quantized ones."""

from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf import quants

PLAIN = [Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]
BLOCKS = [*PLAIN[3:], Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K]

SMALL = dict(
    vocab_size=96,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
GEMMA = dict(SMALL, num_hidden_layers=7, head_dim=32, query_pre_attn_scalar=32, sliding_window=6)
PHI = dict(SMALL, original_max_position_embeddings=64)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip
LONG = {"rope_type": "longrope", "rope_theta": 10000.0,
        "long_factor": [1.5 + i for i in range(8)], "short_factor": [1 + i / 8 for i in range(8)]}  # fmt: skip

# name: architecture in GGUF, class in Transformers, configuration, metadata that follows from it
CASES = {
    "llama": ("llama", "Llama", SMALL, {}),
    "llama-untied": ("llama", "Llama", dict(SMALL, tie_word_embeddings=False, num_key_value_heads=4), {}),
    "llama-wide": ("llama", "Llama", dict(SMALL, head_dim=32), {}),
    "llama-biased": ("llama", "Llama", dict(SMALL, attention_bias=True, mlp_bias=True), {}),
    "llama3": ("llama", "Llama", dict(SMALL, head_dim=32, max_position_embeddings=131072, rope_parameters=LLAMA3), {}),
    "llama-linear": (
        "llama", "Llama", dict(SMALL, rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}),
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    "llama-yarn": (
        "llama", "Llama",
        dict(SMALL, rope_parameters={"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0,
                                     "original_max_position_embeddings": 32}),
        {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 32}),
    "qwen2": ("qwen2", "Qwen2", SMALL, {}),
    "qwen3": ("qwen3", "Qwen3", dict(SMALL, head_dim=32, tie_word_embeddings=True), {}),
    "gemma3": ("gemma3", "Gemma3", GEMMA, {"attention.sliding_window": 6}),
    "gemma3-linear": (
        "gemma3", "Gemma3",
        dict(GEMMA, rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}),
        {"attention.sliding_window": 6, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
    "phi3": ("phi3", "Phi3", PHI, {}),
    "phi3-window": ("phi3", "Phi3", dict(PHI, sliding_window=6), {"attention.sliding_window": 6}),
    "phi3-long": (
        "phi3", "Phi3", dict(PHI, max_position_embeddings=256, rope_parameters=LONG),
        {"rope.scaling.original_context_length": 64}),
    "phi3-partial": (
        "phi3", "Phi3",
        dict(PHI, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}),
        {"rope.dimension_count": 8}),
}  # fmt: skip


def zipped(rows, heads):
    """As llama.cpp has the rows of query and key: the halves of each head, one row of each in turn."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def add(writer, key, value):
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    kinds.get(type(value), writer.add_array)(key, value)


def metadata(arch, config, more):
    rope = config.rope_parameters
    theta = rope["full_attention"]["rope_theta"] if "full_attention" in rope else rope["rope_theta"]
    values = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(theta),
        "vocab_size": config.vocab_size,
    }
    head_dim = getattr(config, "head_dim", None)
    if head_dim and head_dim != config.hidden_size // config.num_attention_heads:
        values.update({"attention.key_length": head_dim, "attention.value_length": head_dim})
    return {f"{arch}.{key}": value for key, value in {**values, **more}.items()}


def rope_tensors(arch, config):
    """Factors of frequencies, as llama.cpp's converter computes them."""
    rope = config.rope_parameters
    kind = rope.get("rope_type")
    if kind == "longrope":
        return {f"rope_factors_{length}.weight": np.array(rope[f"{length}_factor"], np.float32)
                for length in ("long", "short")}  # fmt: skip
    if kind != "llama3":
        return {}
    old, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for i in range(0, config.head_dim, 2):
        wavelength = 2 * np.pi * rope["rope_theta"] ** (i / config.head_dim)
        smooth = (old / wavelength - low) / (high - low)
        factors.append(1 if wavelength < old / high else rope["factor"] if wavelength > old / low
                       else 1 / ((1 - smooth) / rope["factor"] + smooth))  # fmt: skip
    return {"rope_freqs.weight": np.array(factors, np.float32)}


def stored(weights, kind):
    """What is in the file, and what it stands for."""
    if weights.ndim == 1:
        return weights, weights, Type.F32
    data = quants.quantize(weights, kind)
    return data, quants.dequantize(data, kind), kind


def write_model(path: Path, name: str, extra=()):
    """The file of a case; gives the eager model with the same weights."""
    arch, prefix, options, more = CASES[name]
    torch.manual_seed(len(name))
    config_class = getattr(transformers, prefix + ("TextConfig" if prefix == "Gemma3" else "Config"))
    config = config_class(**options)
    model = getattr(transformers, prefix + "ForCausalLM")(config).eval()
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper()), config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, arch)
    ids = {f"tokenizer.ggml.{key}_token_id": getattr(config, f"{short}_token_id")
           for key, short in (("bos", "bos"), ("eos", "eos"), ("padding", "pad"))}  # fmt: skip
    for key, value in {**metadata(arch, config, more), **ids, **dict(extra)}.items():
        add(writer, key, value)
    state = model.state_dict()
    tied = config.tie_word_embeddings
    for index, (key, value) in enumerate(state.items()):
        value.normal_(0, 0.25)
        if key.endswith("norm.weight"):
            value.add_(arch != "gemma3")
        if tied and key == "lm_head.weight":
            continue
        weights = value.numpy()
        heads = config.num_attention_heads if ".q_proj." in key else config.num_key_value_heads
        if arch == "llama" and (".q_proj." in key or ".k_proj." in key):
            data, meant, kind = stored(zipped(weights, heads), PLAIN[index % len(PLAIN)])
            halves = meant.reshape(heads, -1, 2, *meant.shape[1:]).swapaxes(1, 2).reshape(meant.shape)
            value.copy_(torch.from_numpy(halves.copy()))
        elif arch == "gemma3" and key.endswith("norm.weight"):
            data, _, kind = weights + 1, None, Type.F32
        else:
            data, meant, kind = stored(weights, PLAIN[index % len(PLAIN)])
            value.copy_(torch.from_numpy(meant.copy()))
        writer.add_tensor(names.get_name(key, (".weight", ".bias")), data, raw_dtype=kind)
    for key, value in rope_tensors(arch, config).items():
        writer.add_tensor(key, value)
    finish(writer)
    model.load_state_dict(state)
    model.tie_weights()
    return model


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- random blocks ----

SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82],
          Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}  # fmt: skip


def random_blocks(generator, rows, columns, kind):
    """Blocks with all bits in use, but for the halves that scale them, which are finite."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (rows * columns // elements, size), np.uint8)
    for place in SCALES[kind]:
        scales = generator.normal(0, 0.02, len(blocks)).astype(np.float16)
        blocks[:, place : place + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def write_blocks(path: Path, kind, hidden=256, inner=512, vocabulary=320):
    """A llama of one layer, all of whose matrices are random blocks of one kind; gives what they stand for."""
    generator = np.random.default_rng(int(kind))
    writer = gguf.GGUFWriter(path, "llama")
    values = {"context_length": 64, "embedding_length": hidden, "feed_forward_length": inner, "block_count": 1,
              "attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5}  # fmt: skip
    for key, value in values.items():
        add(writer, f"llama.{key}", value)
    shapes = {"token_embd": (vocabulary, hidden), "output": (vocabulary, hidden), "attn_q": (hidden, hidden),
              "attn_k": (hidden // 2, hidden), "attn_v": (hidden // 2, hidden), "attn_output": (hidden, hidden),
              "ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}  # fmt: skip
    meant = {}
    for name, (rows, columns) in shapes.items():
        data = random_blocks(generator, rows, columns, kind)
        weights = quants.dequantize(data, kind)
        if name in ("attn_q", "attn_k"):
            heads = 4 if name == "attn_q" else 2
            weights = weights.reshape(heads, -1, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        prefix = "" if name in ("token_embd", "output") else "blk.0."
        writer.add_tensor(f"{prefix}{name}.weight", data, raw_dtype=kind)
        meant[name] = weights
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(hidden, np.float32))
    finish(writer)
    return meant


# ---- tokenizers ----


def write_tokenizer(path: Path, arch: str, data: dict, model: str, pre: str | None = None, extra=()):
    """A file with the vocabulary of a tokenizer.json, and its merges or, for SentencePiece, scores."""
    tokens, kinds = {}, {}
    for text, index in data["model"]["vocab"].items():
        tokens[index] = text
        kinds[index] = 6 if model == "llama" and text.startswith("<0x") else 1
    for added in data["added_tokens"]:
        tokens[added["id"]] = added["content"]
        unknown = model == "llama" and added["content"] == "<unk>"
        kinds[added["id"]] = 2 if unknown else 3 if added["special"] else 4
    size = max(tokens) + 1
    writer = gguf.GGUFWriter(path, arch)
    writer.add_string("tokenizer.ggml.model", model)
    texts = [tokens.get(index, f"[PAD{index}]") for index in range(size)]
    writer.add_array("tokenizer.ggml.tokens", texts)
    writer.add_array("tokenizer.ggml.token_type", [kinds.get(index, 5) for index in range(size)])
    if pre:
        writer.add_string("tokenizer.ggml.pre", pre)
    if model == "gpt2":
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]]
        writer.add_array("tokenizer.ggml.merges", merges)
    else:
        writer.add_array("tokenizer.ggml.scores", [-float(index) for index in range(size)])
    for key, value in dict(extra).items():
        add(writer, key, value)
    finish(writer)
