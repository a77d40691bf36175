"""The tokenizers in GGUF files: those that the files were made from, or what Transformers makes of them."""

import json
import random
from functools import cache

import gguf
import pytest
import tokenizers
import transformers
from gguf_files import finish, write_tokenizer
from text_api import FerryError, Tokenizer
from tokenizer_families import FAMILIES, bpe, byte_level, pre_tokenizers, token
from tokenizer_text import strings
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

IDS = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}


def smollm():
    tokenizer = byte_level()
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, tokenizer.pre_tokenizer])
    return bpe(tokenizer, [token("<|endoftext|>"), token("<|im_start|>")])


def tekken():
    data = bpe(byte_level(GGUF_PRE_TOKENIZER_SPLITS["tekken"]), [token("<unk>"), token("<s>"), token("</s>")])
    data["model"]["ignore_merges"] = True
    return data


# The name of the way to cut, the tokenizer, and what the file says besides.
BYTE_LEVEL = {
    "gpt-2": (FAMILIES["gpt2"], {}),
    "smollm": (smollm, {}),
    "llama-bpe": (FAMILIES["llama3"], {"tokenizer.ggml.bos_token_id": 0}),
    "qwen2": (FAMILIES["qwen2"], {}),
    "gpt-4o": (FAMILIES["gpt4o"], {}),
    "tekken": (tekken, {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_bos_token": False}),
}


NFC = ("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "qwen35")
WHOLE_WORDS = {GGUF_PRE_TOKENIZER_SPLITS["llama-bpe"], GGUF_PRE_TOKENIZER_SPLITS["tekken"]}


def compare(data, ours, count, package=None):
    package = package or tokenizers.Tokenizer.from_str(json.dumps(data))
    generator = random.Random(1)
    limit = len(data["model"]["vocab"])
    for text in strings(count):
        ids = package.encode(text).ids
        assert ours.encode(text).ids == ids, (text, package.encode(text).tokens)
        for some in (ids, generator.choices(range(limit), k=8)):
            for skip in (True, False):
                assert ours.decode(some, skip) == package.decode(some, skip_special_tokens=skip), some


@pytest.mark.parametrize("pre", BYTE_LEVEL)
def test_byte_level(pre, tmp_path):
    make, extra = BYTE_LEVEL[pre]
    data = make()
    write_tokenizer(tmp_path / "model.gguf", "llama", data, "gpt2", pre, extra)
    compare(data, Tokenizer(tmp_path / "model.gguf"), 800)


@cache
def trained_with(pattern):
    return bpe(byte_level(pattern), [token("<s>")])


@pytest.mark.parametrize("pre", sorted(set(GGUF_PRE_TOKENIZER_SPLITS) - {"jina-v5-nano", "minimax-m2"}))
def test_patterns_are_those_of_transformers(pre, tmp_path):
    pattern = GGUF_PRE_TOKENIZER_SPLITS[pre]
    data = trained_with(pattern)
    data["normalizer"] = {"type": "NFC"} if pre in NFC else None
    data["model"]["ignore_merges"] = pattern in WHOLE_WORDS and pre not in ("dbrx", "smaug-bpe")
    write_tokenizer(tmp_path / "model.gguf", "llama", data, "gpt2", pre)
    compare(data, Tokenizer(tmp_path / "model.gguf"), 60)


SENTENCEPIECE = {
    "llama": ("llama", "mistral_metaspace", IDS),
    "llama-eos": ("llama", "mistral_metaspace", {**IDS, "tokenizer.ggml.add_eos_token": True}),
    "llama-bare": ("llama", "mistral_metaspace", {**IDS, "tokenizer.ggml.add_bos_token": False}),
    "phi3": ("phi3", "mistral", {**IDS, "tokenizer.ggml.add_bos_token": False}),
    "gemma3": ("gemma3", "gemma", {**IDS, "tokenizer.ggml.add_space_prefix": False}),
}


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece(name, tmp_path):
    arch, family, extra = SENTENCEPIECE[name]
    data = FAMILIES[family]()
    vocabulary = data["model"]["vocab"]
    for text in ("<turn>", "\n\n") if arch == "gemma3" else ("<turn>",):
        data["added_tokens"].append({"id": len(vocabulary), "content": text, "special": False})
        vocabulary[text] = len(vocabulary)
    if arch == "gemma3":  # its files have blanks where the vocabulary has this
        vocabulary = data["model"]["vocab"] = {t.replace("▁", " ") if set(t) == {"▁"} else t: i for t, i in vocabulary.items()}
        assert any(text.isspace() for text in vocabulary)
    write_tokenizer(tmp_path / "model.gguf", arch, data, "llama", "default", extra)
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    compare(data, Tokenizer(tmp_path / "model.gguf"), 800, reference.backend_tokenizer)


def test_blanks_are_not_put_before_a_text_when_the_file_says_so(tmp_path):
    data = FAMILIES["mistral_metaspace"]()
    write_tokenizer(tmp_path / "model.gguf", "llama", data, "llama", None, {**IDS, "tokenizer.ggml.add_space_prefix": False})
    ours = Tokenizer(tmp_path / "model.gguf")
    for text in strings(50):
        assert ours.decode(ours.encode(text, special_tokens=False).ids, False) == text


REFUSALS = {
    "pre": (("gpt2", "klingon", {}), 'the pre-tokenizer "klingon" is not known'),
    "no-pre": (("gpt2", None, {}), 'the pre-tokenizer "" is not known'),
    "model": (("rwkv", None, {}), 'the tokenizer "rwkv" is not supported (expected gpt2 or llama)'),
    "scores": (("llama", None, {"tokenizer.ggml.scores": [0.5]}), '"tokenizer.ggml.scores": expected an array of'),
    "merges": (("gpt2", "gpt-2", {"tokenizer.ggml.merges": ["ab"]}), '"tokenizer.ggml.merges"[0]: expected two tokens'),
    "unknown-merge": (("gpt2", "gpt-2", {"tokenizer.ggml.merges": ["q Q"]}), "the vocabulary lacks the result"),
    "types": (("gpt2", "gpt-2", {"tokenizer.ggml.token_type": [1, 1]}), '"tokenizer.ggml.token_type": expected an array of'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name, tmp_path, monkeypatch):
    (model, pre, extra), message = REFUSALS[name]
    writer = gguf.GGUFWriter
    keep = writer.add_array
    monkeypatch.setattr(writer, "add_array", lambda self, key, value: key in extra or keep(self, key, value))
    monkeypatch.setattr("gguf_files.add", lambda self, key, value: keep(self, key, value))
    write_tokenizer(tmp_path / "model.gguf", "llama", FAMILIES["gpt2"](), model, pre, extra)
    with pytest.raises(FerryError) as caught:
        Tokenizer(tmp_path / "model.gguf")
    assert message in str(caught.value)


def test_a_file_without_a_tokenizer(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    finish(writer)
    with pytest.raises(FerryError, match="the file has no tokenizer"):
        Tokenizer(tmp_path / "model.gguf")
