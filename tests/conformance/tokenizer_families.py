"""Tokenizers as the well-known model families configure them, trained on a few sentences.

FAMILIES maps a name to a function that makes the tokenizer.json, as a dict."""

import base64
import json
import struct
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizer_text import KINDS, SENTENCES

ALPHABET = pre_tokenizers.ByteLevel.alphabet()
CORPUS = SENTENCES * 3

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def token(content, **options):
    return AddedToken(content, special=True, normalized=options.pop("normalized", False), **options)


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())


def bpe(tokenizer, specials, **options):
    options = {"vocab_size": 900, "show_progress": False, "initial_alphabet": ALPHABET, **options}
    return trained(tokenizer, trainers.BpeTrainer(special_tokens=specials, **options))


def byte_level(pattern=None, prefix=False, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    whole = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=pattern is None)
    if pattern:
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, whole])
    else:
        tokenizer.pre_tokenizer = whole
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def template(single, pair, tokens):
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=tokens)


def gpt2():
    tokenizer = byte_level()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return bpe(tokenizer, [token("<|endoftext|>")])


def roberta():
    tokenizer = byte_level(prefix=True)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, True)
    specials = [token("<s>"), token("<pad>"), token("</s>"), token("<unk>"), token("<mask>", lstrip=True)]
    return bpe(tokenizer, specials)


def llama3():
    tokenizer = byte_level(LLAMA3)
    around = template("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", [("<|begin_of_text|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), around])
    data = bpe(tokenizer, [token("<|begin_of_text|>"), token("<|eot_id|>"), token("<|im_start|>")])
    data["model"]["ignore_merges"] = True
    return data


def qwen2():
    data = bpe(byte_level(QWEN2, normalizer=normalizers.NFC()), [token("<|endoftext|>"), token("<|im_start|>")])
    data["added_tokens"].append(
        {"id": len(data["model"]["vocab"]), "content": "<think>", "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False, "special": False}
    )
    return data


def gpt4o():
    return bpe(byte_level(O200K), [token("<|endoftext|>")])


def kimi():
    return bpe(byte_level(KIMI), [token("<|endoftext|>")])


def deepseek():
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
            pre_tokenizers.Split(
                Regex(
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                "isolated",
            ),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return bpe(tokenizer, [token("<s>"), token("</s>")])


def whisper():
    tokenizer = byte_level()
    tokenizer.post_processor = template("<s> $A </s>", "<s> $A $B:1 </s>:1", [("<s>", 0), ("</s>", 1)])
    return bpe(tokenizer, [token("<s>", normalized=True), token("</s>", normalized=True, rstrip=True)])


def clip():
    tokenizer = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), False, False)
    return bpe(tokenizer, [token("<|startoftext|>"), token("<|endoftext|>")], end_of_word_suffix="</w>")


def sentencepiece_bpe(specials, **options):
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    data = bpe(options.pop("tokenizer"), specials + bytes_, initial_alphabet=[], limit_alphabet=120, vocab_size=900)
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in bytes_]
    data["model"].update(byte_fallback=True, fuse_unk=True, **options)
    return data


def mistral():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return sentencepiece_bpe([token("<unk>"), token("<s>"), token("</s>")], tokenizer=tokenizer)


def mistral_metaspace():
    data = mistral()
    data["normalizer"] = None
    data["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    return data


def phi3():
    data = mistral()
    for entry in data["added_tokens"]:
        entry["rstrip"] = entry["content"] == "</s>"
    data["post_processor"] = None
    return data


def gemma():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    specials = [token("<unk>"), token("<s>"), token("</s>")]
    return sentencepiece_bpe(specials, tokenizer=tokenizer)


def bert(lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = [token(t) for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    data = trained(tokenizer, trainers.WordPieceTrainer(vocab_size=800, special_tokens=specials, show_progress=False))
    data["post_processor"] = json.loads(
        template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]).__getstate__()
    )
    data["truncation"] = {"direction": "Right", "max_length": 12, "strategy": "LongestFirst", "stride": 0}
    data["padding"] = {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                       "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    return data


def bert_cased():
    data = bert(lowercase=False)
    data["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    data["truncation"].update(direction="Left", strategy="OnlyFirst")
    data["padding"].update(strategy="BatchLongest", direction="Left", pad_to_multiple_of=8)
    return data


def unigram(tokenizer, specials, unknown, **options):
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=specials, unk_token=unknown, show_progress=False, **options
    )
    return trained(tokenizer, trainer)


def double_array(entries: dict[bytes, int]) -> list[int]:
    """The units of Darts-clone for values by key."""
    children = {}
    for key in entries:
        for i in range(len(key)):
            children.setdefault(key[:i], set()).add(key[i])
    units, used = {0: 0}, {0}
    bases, hint = set(), 1

    def place(prefix: bytes, at: int):
        nonlocal hint
        labels = sorted(children.get(prefix, set()) | ({0} if prefix in entries else set()))
        base = hint
        while base in bases or any(base ^ label in used for label in labels) or not fits(base ^ at):
            base += 1
        hint = base if len(labels) > 1 else hint
        bases.add(base)
        used.update(base ^ label for label in labels)
        offset = base ^ at
        units[at] |= (offset << 10 if offset < 1 << 21 else offset << 2 | 1 << 9) | (prefix in entries) << 8
        for label in labels:
            units[base ^ label] = entries[prefix] | 1 << 31 if label == 0 else label
        for label in labels:
            if label:
                place(prefix + bytes([label]), base ^ label)

    def fits(offset: int) -> bool:
        return offset < 1 << 21 or (offset < 1 << 29 and offset & 0xFF == 0)

    place(b"", 0)
    return [units.get(i, 0) for i in range(max(units) | 0xFF)]


def charsmap() -> str:
    """A character map such as SentencePiece makes for nmt_nfkc: compatibility forms, and spaces."""
    rules = {"\n": " ", "\t": " ", "\u200b": "", "\u0007": "", "``": '"', "\u00ad": ""}
    for character in (c for kind in KINDS for c in kind[:40]):
        form = unicodedata.normalize("NFKC", character)
        if form != character and "\0" not in form:
            rules[character] = form
    for base in "aeiounAEIOUN":
        for mark in "\u0300\u0301\u0303\u0308":
            rules[base + mark] = unicodedata.normalize("NFKC", base + mark)
    texts, entries = b"", {}
    for source, form in rules.items():
        entries[source.encode()] = len(texts)
        texts += form.encode() + b"\0"
    units = double_array(entries)
    return base64.b64encode(struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + texts).decode()


CHARSMAP = charsmap()


def precompiled(data, before=(), after=()):
    here = {"type": "Precompiled", "precompiled_charsmap": CHARSMAP}
    data["normalizer"] = {"type": "Sequence", "normalizers": [*before, here, *after]}
    return data


def sentencepiece(**options):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", **options)]
    )
    tokenizer.decoder = decoders.Metaspace("▁", **options)
    return tokenizer


def t5():
    tokenizer = sentencepiece(prepend_scheme="always")
    tokenizer.post_processor = template("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    data = unigram(tokenizer, [token("<pad>"), token("</s>"), token("<unk>"), token("<extra_id_0>", rstrip=True)], "<unk>")
    return precompiled(data)


def xlm_roberta():
    tokenizer = sentencepiece(prepend_scheme="always")
    tokenizer.post_processor = template("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    specials = [token("<s>"), token("<pad>"), token("</s>"), token("<unk>"), token("<mask>", lstrip=True)]
    return precompiled(unigram(tokenizer, specials, "<unk>"), after=[{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}])


def deberta_v2():
    tokenizer = sentencepiece(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace("▁", prepend_scheme="always"), pre_tokenizers.Punctuation()]
    )
    tokenizer.post_processor = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)])
    data = unigram(tokenizer, [token(t) for t in ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")], "[UNK]")
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    return precompiled(data, before=[strip], after=[{"type": "Lowercase"}])


def albert():
    data = xlm_roberta()
    replace = [{"type": "Replace", "pattern": {"String": old}, "content": '"'} for old in ("``", "''")]
    return precompiled(data, before=[*replace, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}])


def llama_unigram():
    """Unigram with bytes for what it does not know."""
    tokenizer = sentencepiece(prepend_scheme="first", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    data = unigram(tokenizer, ["<unk>", "<s>", "</s>", *bytes_], "<unk>", initial_alphabet=["e"], max_piece_length=6)
    data["model"]["vocab"] = data["model"]["vocab"][:600]
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in bytes_]
    data["model"]["byte_fallback"] = True
    data["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}]}  # fmt: skip
    return data


def word_level():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    words = [AddedToken("fox", single_word=True), AddedToken("frei", lstrip=True, rstrip=True), AddedToken("été")]
    trainer = trainers.WordLevelTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(words)
    return json.loads(tokenizer.to_str())


def prefixed_bpe():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.StripAccents()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(True)])
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return bpe(tokenizer, ["<unk>"], initial_alphabet=[], limit_alphabet=90, continuing_subword_prefix="##")


def original_bpe():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    return bpe(tokenizer, ["<unk>"], initial_alphabet=[], limit_alphabet=90, end_of_word_suffix="</w>")


def wav2vec2():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.CTC()
    data = trained(tokenizer, trainers.WordLevelTrainer(special_tokens=["<pad>", "<unk>", "|"], show_progress=False))
    return data


FAMILIES = {
    function.__name__: function
    for function in (
        gpt2, roberta, llama3, qwen2, gpt4o, kimi, deepseek, whisper, clip, mistral, mistral_metaspace, phi3, gemma,
        bert, bert_cased, t5, xlm_roberta, deberta_v2, albert, llama_unigram, word_level, prefixed_bpe, original_bpe,
        wav2vec2,
    )
}  # fmt: skip
