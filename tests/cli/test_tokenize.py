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


@pytest.fixture
def chat(model):
    (model / "chat_template.jinja").write_text(
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        "{{ tools | tojson if tools }}{% if thinking %}!{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}\n"
    )
    (model / "tokenizer_config.json").write_text('{"bos_token": "<s>", "model_max_length": 1e30}')
    return model


def test_writes_what_a_user_says_as_the_chat_template_does(chat):
    text = "<s>[user]Hi[assistant]"
    assert ferry("tokenize", chat, "Hi", "--chat", "--render").stdout == text
    ids = ferry("tokenize", chat, "Hi", "--chat").stdout
    assert ids == ferry("tokenize", chat, text, "--no-special").stdout
    assert ids.split()[0] == "256"  # the template's <s>, and no other
    assert ferry("tokenize", chat, "--chat", "--render", input="Hi").stdout == text


def test_writes_conversations(chat, tmp_path):
    messages = json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "é"}])
    (tmp_path / "tools.json").write_text('[{"name": "f"}]')
    options = ["--messages", "--render", "--no-generation-prompt"]
    assert ferry("tokenize", chat, messages, *options).stdout == "<s>[user]a[assistant]é"
    options += ["--tools", tmp_path / "tools.json", "--variables", '{"thinking": true}']
    assert ferry("tokenize", chat, *options, input=messages).stdout == '<s>[user]a[assistant]é[{"name": "f"}]!'


def test_says_what_is_wrong_with_a_chat(chat, tmp_path):
    assert "not valid JSON" in ferry("tokenize", chat, "Hi", "--messages", status=2).stderr
    assert 'no chat template "x"' in ferry("tokenize", chat, "Hi", "--chat", "--template", "x", status=3).stderr
    assert "cannot read" in ferry("tokenize", chat, "Hi", "--chat", "--tools", tmp_path / "none", status=4).stderr
    assert "--render" in ferry("tokenize", chat, "Hi", "--render", status=2).stderr
    (chat / "chat_template.jinja").write_text("a\n{% include 'x' %}")
    found = ferry("tokenize", chat, "Hi", "--chat", status=6).stderr
    assert "chat_template.jinja" in found and "line 2: {% include %} is not supported" in found
    (chat / "chat_template.jinja").unlink()
    assert "has no chat template" in ferry("tokenize", chat, "Hi", "--chat", status=3).stderr
