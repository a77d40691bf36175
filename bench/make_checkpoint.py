"""Write checkpoints of real sizes with random weights, without torch.

    python make_checkpoint.py NAME DIRECTORY

Names: llama-135m (the shape of SmolLM2-135M: bfloat16, tied), llama-layers-N (N narrow layers),
gpt2, bert-mlm, albert-mlm (float32, tied as the Hub's checkpoints are). The seed is fixed, so the bytes
are the same on every machine.
"""

import json
import math
import sys
from pathlib import Path

import numpy

SEED = 20
BLOCK = 1 << 20  # elements made at a time


def llama_tensors(config):
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = hidden // config["num_attention_heads"]
    key_width = head * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "self_attn.q_proj.weight", (hidden, hidden)
        yield layer + "self_attn.k_proj.weight", (key_width, hidden)
        yield layer + "self_attn.v_proj.weight", (key_width, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, hidden)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "mlp.gate_proj.weight", (inner, hidden)
        yield layer + "mlp.up_proj.weight", (inner, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, inner)
    yield "model.norm.weight", (hidden,)


def llama(layers, hidden, inner, heads, key_heads, vocabulary):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "tie_word_embeddings": True,
        "max_position_embeddings": 8192,
        "rope_theta": 100000.0,
        "rms_norm_eps": 1e-05,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return config, list(llama_tensors(config))


def linear(name, outputs, inputs):
    return [(name + ".weight", (outputs, inputs)), (name + ".bias", (outputs,))]


def norm(name, width):
    return [(name + ".weight", (width,)), (name + ".bias", (width,))]


def gpt2():
    """GPT-2's Conv1D stores weights as (inputs, outputs)."""
    width, layers, vocabulary, positions = 384, 6, 50257, 1024
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": width,
        "n_head": 6,
        "n_layer": layers,
        "n_positions": positions,
        "vocab_size": vocabulary,
    }
    tensors = [("transformer.wte.weight", (vocabulary, width)), ("transformer.wpe.weight", (positions, width))]
    for i in range(layers):
        layer = f"transformer.h.{i}."
        tensors += norm(layer + "ln_1", width)
        tensors += [(layer + "attn.c_attn.weight", (width, 3 * width)), (layer + "attn.c_attn.bias", (3 * width,))]
        tensors += [(layer + "attn.c_proj.weight", (width, width)), (layer + "attn.c_proj.bias", (width,))]
        tensors += norm(layer + "ln_2", width)
        tensors += [(layer + "mlp.c_fc.weight", (width, 4 * width)), (layer + "mlp.c_fc.bias", (4 * width,))]
        tensors += [(layer + "mlp.c_proj.weight", (4 * width, width)), (layer + "mlp.c_proj.bias", (width,))]
    return config, tensors + norm("transformer.ln_f", width)


def bert_like(model_type, architecture, **extra):
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": 30522,
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_attention_heads": 6,
        "num_hidden_layers": 6,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    } | extra


def bert_embeddings(name, config, width):
    return [
        (name + "word_embeddings.weight", (config["vocab_size"], width)),
        (name + "position_embeddings.weight", (config["max_position_embeddings"], width)),
        (name + "token_type_embeddings.weight", (config["type_vocab_size"], width)),
    ] + norm(name + "LayerNorm", width)


def bert():
    """Its decoder is stored beside the word embeddings, the same bytes again, as converted checkpoints do."""
    config = bert_like("bert", "BertForMaskedLM")
    width, inner = config["hidden_size"], config["intermediate_size"]
    tensors = bert_embeddings("bert.embeddings.", config, width)
    for i in range(config["num_hidden_layers"]):
        layer = f"bert.encoder.layer.{i}."
        for part in ("query", "key", "value"):
            tensors += linear(layer + "attention.self." + part, width, width)
        tensors += linear(layer + "attention.output.dense", width, width)
        tensors += norm(layer + "attention.output.LayerNorm", width)
        tensors += linear(layer + "intermediate.dense", inner, width)
        tensors += linear(layer + "output.dense", width, inner)
        tensors += norm(layer + "output.LayerNorm", width)
    tensors += linear("cls.predictions.transform.dense", width, width)
    tensors += norm("cls.predictions.transform.LayerNorm", width)
    tensors += [("cls.predictions.bias", (config["vocab_size"],))]
    tensors += linear("cls.predictions.decoder", config["vocab_size"], width)
    return config, tensors


def albert():
    """One group of weights serves all layers."""
    config = bert_like("albert", "AlbertForMaskedLM", embedding_size=128, num_hidden_groups=1, inner_group_num=1)
    width, inner, embedding = config["hidden_size"], config["intermediate_size"], config["embedding_size"]
    tensors = bert_embeddings("albert.embeddings.", config, embedding)
    tensors += linear("albert.encoder.embedding_hidden_mapping_in", width, embedding)
    layer = "albert.encoder.albert_layer_groups.0.albert_layers.0."
    for part in ("query", "key", "value", "dense"):
        tensors += linear(layer + "attention." + part, width, width)
    tensors += norm(layer + "attention.LayerNorm", width)
    tensors += linear(layer + "ffn", inner, width) + linear(layer + "ffn_output", width, inner)
    tensors += norm(layer + "full_layer_layer_norm", width)
    tensors += linear("predictions.dense", embedding, width) + norm("predictions.LayerNorm", embedding)
    return config, tensors + [("predictions.bias", (config["vocab_size"],))]


# What is stored a second time under another name.
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def describe(name):
    """The configuration and the tensors of a checkpoint, in the order of the file."""
    if name == "llama-135m":
        return llama(30, 576, 1536, 9, 3, 49152)
    if name.startswith("llama-layers-"):
        return llama(int(name.rpartition("-")[2]), 64, 192, 4, 2, 1024)
    return {"gpt2": gpt2, "bert-mlm": bert, "albert-mlm": albert}[name]()


def random_bytes(generator, count, dtype):
    """Numbers of a trained model's magnitude, as the bytes of float32 or (truncated) bfloat16."""
    for first in range(0, count, BLOCK):
        values = generator.standard_normal(min(BLOCK, count - first), dtype=numpy.float32) * numpy.float32(0.02)
        yield values.tobytes() if dtype == "F32" else (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()


def generator_of(name):
    """A generator for each tensor, so that a copy can be made again."""
    return numpy.random.Generator(numpy.random.PCG64([SEED, *COPIES.get(name, name).encode()]))


def write(name, directory):
    config, tensors = describe(name)
    dtype = "BF16" if config.get("torch_dtype") == "bfloat16" else "F32"
    size = {"BF16": 2, "F32": 4}[dtype]
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape in tensors:
        start, end = end, end + math.prod(shape) * size
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / "model.safetensors.tmp"
    with open(partial, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor, shape in tensors:
            for block in random_bytes(generator_of(tensor), math.prod(shape), dtype):
                out.write(block)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    partial.rename(directory / "model.safetensors")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2])
