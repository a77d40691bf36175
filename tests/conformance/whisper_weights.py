#!/usr/bin/env python3
"""Make a checkpoint of a real Whisper: whisper_weights.py SOURCE DIRECTORY

SOURCE is a folder with model.bin and config.json as CTranslate2 writes them, and perhaps tokenizer.json; such
are in the Python packages that shared/fixtures/README.md names. The weights stay what they are, but for
queries, keys and values, which are apart again, and the biases of keys, which are zero. DIRECTORY gets what
save_pretrained writes: config.json, model.safetensors, generation_config.json, preprocessor_config.json.
Needs numpy, safetensors and transformers.
"""

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import transformers
from safetensors.numpy import save_file

DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
NAMES = {
    "layer_norm": "self_attn_layer_norm",
    "linear_0": "q_proj k_proj v_proj",
    "linear_1": "out_proj",
}
CROSS = {
    "layer_norm": "encoder_attn_layer_norm",
    "linear_0": "q_proj",
    "linear_1": "k_proj v_proj",
    "linear_2": "out_proj",
}
FORWARD = {"layer_norm": "final_layer_norm", "linear_0": "fc1", "linear_1": "fc2"}
PARTS = {"self_attention": ("self_attn", NAMES), "attention": ("encoder_attn", CROSS), "ffn": ("", FORWARD)}
ENDINGS = {"gamma": "weight", "beta": "bias"}


def read_variables(data: bytes) -> dict:
    """The variables of model.bin by name; the format's version 6."""
    place = 0

    def number(code):
        nonlocal place
        (value,) = struct.unpack_from(f"<{code}", data, place)
        place += struct.calcsize(f"<{code}")
        return value

    def text():
        nonlocal place
        length = number("H")
        place += length
        return data[place - length : place - 1].decode()

    version, kind, _ = number("I"), text(), number("I")
    assert (version, kind) == (6, "WhisperSpec"), f"expected a WhisperSpec of version 6, found {kind} of {version}"
    variables = {}
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        dtype, size = DTYPES[number("B")], number("I")
        variables[name] = np.frombuffer(data, dtype, size // np.dtype(dtype).itemsize, place).reshape(shape)
        place += size
    return variables


def name_layer(stack, layer, rest, value):
    """The tensors of one variable of a layer, apart."""
    part, name, ending = rest.split("/")
    module, names = PARTS[part]
    pieces = names[name].split()
    for piece, tensor in zip(pieces, np.split(value, len(pieces))):
        if piece == "k_proj" and ending == "bias":
            assert not tensor.any(), f"{stack}, layer {layer}: keys have a bias"
            continue
        within = "" if "norm" in piece else f"{module}." if module else ""
        yield f"model.{stack}.layers.{layer}.{within}{piece}.{ENDINGS.get(ending, ending)}", tensor


def name_tensors(variables):
    for name, value in variables.items():
        stack, _, rest = name.partition("/")
        if rest.startswith("layer_") and not rest.startswith("layer_norm"):
            layer, _, rest = rest.partition("/")
            yield from name_layer(stack, int(layer.removeprefix("layer_")), rest, value)
        elif rest == "embeddings/weight":
            yield f"model.{stack}.embed_tokens.weight", value
        elif rest == "position_encodings/encodings":
            yield f"model.{stack}.embed_positions.weight", value
        elif value.ndim:
            module, ending = rest.split("/")
            yield f"model.{stack}.{module}.{ENDINGS.get(ending, ending)}", value


def configuration(variables, multilingual):
    def layers(stack):
        numbers = {name.split("/")[1] for name in variables if name.startswith(f"{stack}/layer_")}
        return sum(number != "layer_norm" for number in numbers)

    vocabulary, width = variables["decoder/embeddings/weight"].shape
    return transformers.WhisperConfig(
        architectures=["WhisperForConditionalGeneration"],
        vocab_size=vocabulary,
        d_model=width,
        num_mel_bins=variables["encoder/conv1/weight"].shape[1],
        encoder_layers=layers("encoder"),
        decoder_layers=layers("decoder"),
        encoder_attention_heads=int(variables["encoder/num_heads"]),
        decoder_attention_heads=int(variables["decoder/num_heads"]),
        encoder_ffn_dim=len(variables["encoder/layer_0/ffn/linear_0/bias"]),
        decoder_ffn_dim=len(variables["decoder/layer_0/ffn/linear_0/bias"]),
        max_source_positions=len(variables["encoder/position_encodings/encodings"]),
        max_target_positions=len(variables["decoder/position_encodings/encodings"]),
        decoder_start_token_id=50258 if multilingual else 50257,
        pad_token_id=50257 if multilingual else 50256,
        bos_token_id=50257 if multilingual else 50256,
        eos_token_id=50257 if multilingual else 50256,
        dtype=str(variables["decoder/embeddings/weight"].dtype),
    )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    source, directory = map(Path, sys.argv[1:])
    directory.mkdir(parents=True, exist_ok=True)
    variables = read_variables((source / "model.bin").read_bytes())
    facts = json.loads((source / "config.json").read_text())
    multilingual = len(variables["decoder/embeddings/weight"]) >= 51865
    config = configuration(variables, multilingual)
    config.save_pretrained(directory)
    tensors = {name: np.ascontiguousarray(value) for name, value in name_tensors(variables)}
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    transformers.GenerationConfig.from_model_config(config).save_pretrained(directory)
    path = directory / "generation_config.json"
    generation = json.loads(path.read_text()) | {
        "max_length": config.max_target_positions,
        "suppress_tokens": facts["suppress_ids"],
        "begin_suppress_tokens": facts["suppress_ids_begin"],
        "alignment_heads": facts["alignment_heads"],
        "is_multilingual": multilingual,
        "no_timestamps_token_id": 50363 if multilingual else 50362,
    }
    path.write_text(json.dumps(generation, indent=2) + "\n")
    transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins).save_pretrained(directory)
    if (source / "tokenizer.json").exists():
        shutil.copyfile(source / "tokenizer.json", directory / "tokenizer.json")


if __name__ == "__main__":
    main()
