"""What jinja2 makes of chat templates, as Transformers runs it, ferry makes of them too."""

import random
import re

import pytest
import transformers
from support import ROOT, write_tokenizer
from template_cases import EXPRESSIONS, REFUSED, STATEMENTS, VARIABLES
from text_api import Chat, FerryError
from transformers.utils.chat_template_utils import render_jinja_template

MESSAGES = [{"role": "user", "content": "Hi"}]


# Objects that Python prints with their address, or as no template would: ferry refuses.
UNPRINTED = re.compile(r"<[^<>]+ at 0x|\bdict_(items|keys|values)\(|\brange\(|<Namespace|<(Macro|LoopContext)")


class Both:
    """A template, in both."""

    def __init__(self, directory):
        self.path = directory / "chat_template.jinja"

    def expected(self, template: str, **variables):
        """The text, or None where it fails."""
        try:
            texts, _ = render_jinja_template([MESSAGES], chat_template=template, **variables)
        except Exception:
            return None
        return None if UNPRINTED.search(texts[0]) else texts[0]

    def found(self, template: str, **variables):
        with open(self.path, "w", newline="") as file:
            file.write(template)
        try:
            return Chat(self.path.parent).render(MESSAGES, add_generation_prompt=False, **variables)
        except FerryError as error:
            self.error = str(error)
            return None

    def difference(self, template: str, **variables) -> str | None:
        expected, found = self.expected(template, **variables), self.found(template, **variables)
        if found != expected:
            why = f" ({self.error})" if found is None else ""
            return f"{template!r}: {found!r}{why}, expected {expected!r}"


@pytest.fixture
def both(tmp_path):
    return Both(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_expressions(both):
    """Each gives the same text, or fails in both."""
    wrong = [w for e in EXPRESSIONS if (w := both.difference("{{ " + e + " }}", **VARIABLES))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("template", STATEMENTS)
def test_statements(both, template):
    assert both.expected(template, **VARIABLES) is not None
    assert not both.difference(template, **VARIABLES)


@pytest.mark.parametrize("template, line, message", REFUSED)
def test_says_what_is_wrong(both, template, line, message):
    """The file, the line, and what it is about."""
    assert both.found(template, **VARIABLES) is None
    assert both.error.startswith(f"{both.path}: line {line}: "), both.error
    assert message in both.error


def test_case_of_every_character(both):
    """Upper and lower case of all of Unicode that Python and utf8proc both know."""
    every = [chr(c) for c in [*range(33, 0xD800), *range(0xE000, 0x20000)] if not chr(c).isspace()]
    template = "{{ text.upper() }}\n{{ text.lower() }}\n{{ text.title() }}"
    text = "\n".join(every)
    expected, found = (f(template, text=text).split("\n") for f in (both.expected, both.found))
    assert len(expected) == 3 * len(every)
    assert [(e, f) for e, f in zip(expected, found, strict=True) if e != f] == []


# ---- templates as models have them, with conversations of all kinds ----

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather at a place.\nWith \"quotes\" & <tags>, é.",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Where"},
            "days": {"type": ["integer", "null"]},
            "hours": {"type": "array", "items": {"type": "number"}, "description": "When\nin hours"},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}}}}}},
    {"type": "function", "function": {"name": "noop", "description": "Nothing", "parameters": {"type": "object", "properties": {}}}},
]  # fmt: skip
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}
CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hello, <b>world</b>! 世界"}],
    "turns": [{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "\n<think>hm</think>\nYes."},
              {"role": "user", "content": "And\n\nnow?"}],
    "system": [{"role": "system", "content": "Be brief. /no_think"}, {"role": "user", "content": "2+2?"},
               {"role": "assistant", "content": "4"}, {"role": "user", "content": "3+3?"}],
    "tools": [{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Weather?"},
              {"role": "assistant", "content": None, "tool_calls": [CALL]},
              {"role": "tool", "tool_call_id": "abcdefghi", "name": "get_weather", "content": "sunny sunny day"},
              {"role": "assistant", "content": "It is sunny.", "reasoning": "The tool said so."},
              {"role": "user", "content": "Thanks"}],
    "two calls": [{"role": "user", "content": "Twice"}, {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]},
                  {"role": "tool", "tool_call_id": "abcdefghi", "content": "1"},
                  {"role": "tool", "tool_call_id": "abcdefghi", "content": "2"}],
    "image": [{"role": "system", "content": [{"type": "text", "text": "Look."}]},
              {"role": "user", "content": [{"type": "image", "url": "a.png"}, {"type": "text", "text": " What is it? "}]},
              {"role": "assistant", "content": [{"type": "text", "text": "A cat"}]},
              {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "image"}, {"type": "video"}]}],
    "wrong order": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "critic", "content": "c"}],
    "no content": [{"role": "user"}],
}  # fmt: skip
OPTIONS = [
    {},
    {"tools": TOOLS},
    {"enable_thinking": False, "add_vision_id": True, "thinking": True,
     "documents": [{"title": "b", "text": "B\nb"}, {"title": "a", "text": "A"}]},
    {"tools": TOOLS, "tools_in_user_message": False, "date_string": "1 Jan 2025"},
]  # fmt: skip
TEMPLATES = sorted((ROOT / "tests/conformance/chat_templates").glob("*.jinja"))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A tokenizer of Transformers, for what it does around the template."""
    directory = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(directory)
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"), **TOKENS)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_templates_as_models_have_them(path, tokenizer, tmp_path):
    """Saved by Transformers, rendered by both; what one refuses, the other refuses."""
    tokenizer.chat_template = path.read_text()
    tokenizer.save_pretrained(tmp_path)
    chat = Chat(tmp_path)
    given = 0
    for name, messages in CONVERSATIONS.items():
        for options in OPTIONS:
            for prompt in (False, True):
                try:
                    expected = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt, **options)
                    given += 1
                except Exception:
                    expected = None
                try:
                    found, why = chat.render(messages, add_generation_prompt=prompt, **options), ""
                except FerryError as error:
                    found, why = None, error
                assert found == expected, (name, options, why)
    assert given >= 24


# ---- random expressions ----

ATOMS = [
    "0", "1", "-1", "2", "3", "7", "0.5", "-2.25", "1e3", "true", "false", "none", "''", "'a'", "'Hello World'", "' x '",
    "'é世🙂'", "[]", "[1, 2, 3]", "['b', 'a', 'B']", "(1, 'x')", "{}", "{'a': 1, 'b': [2]}", "nothing", "names", "table",
    "number", "words", "text", "people",
]  # fmt: skip
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
POSTFIX = [
    "|length", "|upper", "|lower", "|trim", "|string", "|int", "|float", "|list", "|first", "|last", "|join(',')", "|tojson",
    "|default('d')", "|default('d', true)", "|title", "|capitalize", "|reverse|list", "|sort", "|unique|list", "|abs",
    "|map('string')|list", "|select|list", "|reject('none')|list", "|replace('a', 'b')", "|sum", "|min", "|max", "|items|list",
    "|dictsort", "|tojson(indent=2)", "|round", "[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", ".a", "['a']", ".strip()",
    ".split()", ".split('l')", ".upper()", ".items()|list", ".get('a')", ".get('z', 0)", ".keys()|list", ".startswith('H')",
    " is defined", " is none", " is string", " is mapping", " is iterable", " is sequence", " is number", " is boolean",
    " is odd", " is eq(1)", " is in([1, 'a'])", " is upper", " is true", "|indent(2)", "|map(attribute='a')|list",
]  # fmt: skip


# Python has longer integers, and complex numbers; what cannot be sliced is an error in jinja2, too, but for
# constants.
EXCEPTIONS = re.compile("does not fit 64 bits|complex number|cannot be sliced")


def random_expression(generator: random.Random, depth: int) -> str:
    kind = generator.random()
    if depth == 0 or kind < 0.15:
        return generator.choice(ATOMS)
    inner = random_expression(generator, depth - 1)
    if kind < 0.6:
        return f"({inner}){generator.choice(POSTFIX)}"
    other = random_expression(generator, depth - 1)
    if kind < 0.9:
        return f"({inner}) {generator.choice(BINARY)} ({other})"
    if kind < 0.95:
        return f"({inner}) if ({other}) else 'else'"
    return f"not ({inner})"


@pytest.mark.filterwarnings("ignore")
def test_random_expressions(both):
    generator = random.Random(1)
    wrong = []
    for _ in range(500):
        template = "{{ " + random_expression(generator, generator.randint(1, 4)) + " }}"
        difference = both.difference(template, **VARIABLES)
        if difference and not EXCEPTIONS.search(difference):
            wrong.append(difference)
    assert not wrong, "\n".join(wrong)
