"""ferry tokenize: text to ids and back, on the command line."""

import json

import pytest
from support import ferry, ferry_json, write_tokenizer


@pytest.fixture
def model(tmp_path):
    write_tokenizer(tmp_path)
    return tmp_path


def test_prints_ids(model):
    assert ferry("tokenize", model, "Aé").stdout == "256 32 127 102\n"
    assert ferry("tokenize", model, "Aé", "--no-special").stdout == "32 127 102\n"
    assert ferry("tokenize", model / "tokenizer.json", "").stdout == "256\n"


def test_reads_standard_input_as_it_is(model):
    assert ferry("tokenize", model, "--no-special", input="A\n").stdout == "32 198\n"


def test_json_has_tokens_offsets_and_masks(model):
    found = ferry_json("tokenize", model, "A é", "--pair", 'B"')
    assert found["tokens"] == ["<s>", "A", "Ġ", "Ã", "©", "B", '"']
    assert found["ids"][:2] == [256, 32]
    assert found["offsets"] == [[0, 0], [0, 1], [1, 2], [2, 4], [2, 4], [0, 1], [1, 2]]
    assert found["type_ids"] == [0, 0, 0, 0, 0, 1, 1]
    assert found["special_tokens_mask"] == [1, 0, 0, 0, 0, 0, 0]
    assert found["attention_mask"] == [1] * 7


def test_decodes_what_it_encoded(model):
    text = "Grüße, 世界! <s> don't"
    ids = ferry("tokenize", model, text).stdout
    assert ferry("tokenize", model, "--decode", ids).stdout == f"<s>{text}\n"
    assert ferry("tokenize", model, "--decode", "--skip-special", input=ids).stdout == text.replace("<s>", "") + "\n"
    assert ferry("tokenize", model, "--decode", "[32, 33]").stdout == "AB\n"


def test_says_what_is_wrong(model, tmp_path):
    assert "expected ids, found x" in ferry("tokenize", model, "--decode", "1 x", status=2).stderr
    assert "expected DIR [TEXT]" in ferry("tokenize", status=2).stderr
    assert 'has no "padding"' in ferry("tokenize", model, "a", "--pad", status=2).stderr
    (tmp_path / "empty").mkdir()
    assert "has no tokenizer.json" in ferry("tokenize", tmp_path / "empty", "a", status=3).stderr
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "Other"}}))
    assert 'the type "Other" is not known' in ferry("tokenize", tmp_path, "a", status=6).stderr
    (tmp_path / "tokenizer.json").write_text("{")
    assert "not valid JSON" in ferry("tokenize", tmp_path, "a", status=5).stderr
