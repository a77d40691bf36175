"""Checkpoints made for a test: small ones with random weights, large ones with holes for weights."""

import json
import struct
from pathlib import Path

import numpy as np

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8}


def write_header(path: Path, header: dict, data: bytes = b"", size: int | None = None) -> None:
    """A safetensors file with this header; `size` bytes of data follow, holes where none is given."""
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
        if size is not None:
            file.truncate(8 + len(text) + size)


def read_header(path: Path) -> tuple[dict, bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def llama_config(hidden: int, layers: int, vocabulary: int, tied: bool) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 64,
        "num_key_value_heads": hidden // 64,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": tied,
        "vocab_size": vocabulary,
    }


def llama_shapes(config: dict) -> dict[str, list[int]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], hidden]}
    for i in range(config["num_hidden_layers"]):
        for part in "qkvo":
            shapes[f"model.layers.{i}.self_attn.{part}_proj.weight"] = [hidden, hidden]
        shapes[f"model.layers.{i}.mlp.gate_proj.weight"] = [inner, hidden]
        shapes[f"model.layers.{i}.mlp.up_proj.weight"] = [inner, hidden]
        shapes[f"model.layers.{i}.mlp.down_proj.weight"] = [hidden, inner]
        shapes[f"model.layers.{i}.input_layernorm.weight"] = [hidden]
        shapes[f"model.layers.{i}.post_attention_layernorm.weight"] = [hidden]
    shapes["model.norm.weight"] = [hidden]
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = [config["vocab_size"], hidden]
    return shapes


def make_llama(
    directory: Path,
    hidden: int = 256,
    layers: int = 2,
    vocabulary: int = 1000,
    tied: bool = False,
    dtype: str = "F32",
    holes: bool = False,
) -> int:
    """Write a llama checkpoint and return the bytes of its weights. With holes, every weight is zero
    and takes no room on the disk."""
    directory.mkdir(parents=True)
    config = llama_config(hidden, layers, vocabulary, tied)
    (directory / "config.json").write_text(json.dumps(config))
    header, size = {}, 0
    for name, shape in llama_shapes(config).items():
        end = size + int(np.prod(shape)) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [size, end]}
        size = end
    path = directory / "model.safetensors"
    if holes:
        write_header(path, header, size=size)
    else:
        # Any bits are a weight, but exponents near 127 keep the numbers small.
        bits = np.random.default_rng(7).integers(0, 1 << 16, size // 2, dtype=np.uint16)
        high = bits if dtype == "BF16" else bits[1::2]
        high &= 0xBDFF
        write_header(path, header, bits.tobytes())
    return size
