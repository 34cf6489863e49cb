"""Every element and attribute of the test language that a message or a page names is in the schema, with a value of it.

Messages are the strings of the Python package and of the crates. A cure that names what does not exist sends its
reader to an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from shown_commands import ROOT

from test_named_commands import OF_OTHERS, PACKAGE, PLACE, agent_commands, agent_options, every_option, pages
from wiregauge.config.schema import declarations, value_types

OTHER_ELEMENTS = {"elements": "physical networks", "station": "physical networks", "usize": "Rust"}
OTHER_ATTRIBUTES = {"xmlns", "version", "encoding"}
IN_PAGES = {
    "minimum-packet-size=": "physical networks",
    "quantile=": "Prometheus",
    "<meta>": "HTML",
    "<lost>": "Python",
}
"""Placeholders in pages from other languages."""
OTHER_OPTIONS = {"--json": "ip, tc and ethtool", "--planted-hardware": "the agent, for its own tests"}
TAG = re.compile(r"<([a-z][a-z0-9-]*)((?: [a-z][a-z0-9-]*=\"[^\"]*\")*)(?= |>|/>)")
SET = re.compile(r"(?<![\w-])([a-z][a-z0-9-]*)=\"([^\"]*)\"")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
LITERAL = re.compile(r'(?<![\w\'])"((?:[^"\\]|\\.)*)"', re.DOTALL)


def rust_strings(text: str) -> Iterator[str]:
    """String literals outside of comments and of tests."""
    code = text.split("#[cfg(test)]\nmod", 1)[0]
    code = "\n".join("" if line.lstrip().startswith("//") else line for line in code.splitlines())
    code = code.replace("'\"'", "''")
    for found in LITERAL.finditer(code):
        yield re.sub(r"\\\n\s*", "", found.group(1)).replace('\\"', '"')


def python_strings(path: Path) -> Iterator[str]:
    """String literals but docstrings, with `X` for what is put in at run time."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else PLACE for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.value


@cache
def messages() -> tuple[tuple[str, str], ...]:
    """Where, and the text; of markup and regular expressions too, which are no messages."""
    return tuple(_messages())


def _messages() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for text in python_strings(path):
            yield path.relative_to(ROOT).as_posix(), text
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if "tests" not in path.parts and path.stem != "tests":
            for text in rust_strings(path.read_text()):
                yield path.relative_to(ROOT).as_posix(), text


def is_message(text: str) -> bool:
    return " " in text and "</" not in text and "(?P<" not in text and not re.match(r"[X\s]*<", text)


def is_open(value: str) -> bool:
    """Whether a value is put in later, or stands for any."""
    return any(mark in value for mark in ("{", "…", "X")) or value.isupper()


@cache
def types_of_attributes() -> dict[str, set[str]]:
    """The types of every attribute name, over all elements."""
    found: dict[str, set[str]] = {}
    for element in declarations().values():
        for attribute in element.attributes.values():
            found.setdefault(attribute.name, set()).add(attribute.type)
    return found


def is_wrong(kinds: set[str], value: str) -> bool:
    """Whether none of some types takes a value; types without choices take any."""
    types = value_types()
    choices = [types[kind].choices if kind in types else {} for kind in kinds]
    return all(choices) and not is_open(value) and not any(value in own for own in choices)


def wrong_elements(text: str) -> Iterator[str]:
    known = declarations()
    for tag, attributes in TAG.findall(text):
        if tag not in known:
            if tag not in OTHER_ELEMENTS:
                yield f"<{tag}>"
            continue
        for name, value in SET.findall(attributes):
            own = known[tag].attributes.get(name)
            if own is None and name not in OTHER_ATTRIBUTES:
                yield f"{name} of <{tag}>"
            elif own is not None and is_wrong({own.type}, value):
                yield f'{name}="{value}" of <{tag}>'


def wrong_names(text: str) -> Iterator[str]:
    """What a message names that the language does not have."""
    yield from wrong_elements(text)
    of_any = types_of_attributes()
    for name, value in SET.findall(text):
        if name not in of_any:
            if name not in OTHER_ATTRIBUTES:
                yield f"{name}="
        elif is_wrong(of_any[name], value):
            yield f'{name}="{value}"'


def test_every_element_and_attribute_that_a_message_names_is_in_the_schema() -> None:
    wrong = [
        f"{where}: {name} in {text[:100]!r}"
        for where, text in messages()
        if is_message(text)
        for name in wrong_names(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_option_that_a_message_of_the_crates_names_is_there() -> None:
    known = every_option() | set(OF_OTHERS) | set(OTHER_OPTIONS)
    known |= {option for command in ("", *agent_commands()) for option in agent_options(command)}
    wrong = [
        f"{where}: {option} in {text[:100]!r}"
        for where, text in messages()
        if where.endswith(".rs") and is_message(text)
        for option in OPTION.findall(text)
        if option not in known
    ]
    assert not wrong, "\n".join(wrong)


def markup_of(text: str) -> Iterator[str]:
    """Inline code of a page, and its blocks of the test language."""
    yield from re.findall(r"`([^`]+)`", prose(text))
    for block in re.findall(r"^ *```xml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        root = TAG.search(block)
        if root is None or root[1] in declarations():
            yield block


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


OF = re.compile(
    r"((?:`[a-z][a-z0-9-]*`(?:,? and |,? or |, )?)+)\s(?:of|in)\s(?:a |an |the |each |every |its )?`<([a-z][\w-]*)/?>`"
)
"""Attributes of an element, as pages write them."""


CURE = re.compile(
    r"(?:attributes?|[Rr]aise|[Ll]ower|[Rr]educe|[Ww]iden|elements?|[Ss]et|[Ww]rite)\s`([a-z][a-z-]+)`"
)
"""What to change in a test."""


def wrong_attributes(text: str) -> Iterator[str]:
    known = declarations()
    of_any = types_of_attributes()
    yield from (f"`{one}`" for one in CURE.findall(prose(text)) if one not in known and one not in of_any)
    for names, element in OF.findall(prose(text)):
        own = known[element].attributes if element in known else {}
        yield from (f"{one} of <{element}>" for one in re.findall(r"`([^`]+)`", names) if one not in own)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_element_and_attribute_that_a_page_names_is_in_the_schema(page: Path) -> None:
    shown = page.read_text(encoding="utf-8")
    wrong = [
        f"{name} in {text[:100]!r}"
        for text in markup_of(shown)
        for name in wrong_names(text)
        if name not in IN_PAGES
    ]
    wrong += wrong_attributes(shown)
    assert not wrong, "\n".join(wrong)


def test_pages_that_name_what_is_not_there_are_found() -> None:
    page = (
        'Raise `within="1us"`, lower `depth`, or `<switch learnin="off">`; `rate` and `speed` of a `<link>`.\n\n'
        '```xml\n<flow id="1" depth="2"/>\n```\n'
    )
    found = [name for text in markup_of(page) for name in wrong_names(text)]
    assert {"within=", "learnin of <switch>", "depth of <flow>"} <= set(found)
    assert list(wrong_attributes(page)) == ["`depth`", "speed of <link>"]
    assert sum(len(OF.findall(prose(page.read_text(encoding="utf-8")))) for page in pages()) > 5


@pytest.mark.parametrize(
    "text",
    [
        'write learning="false", so that ways are entered before the run',
        'write forwarding="off" there',
        "leave <learning> out",
        'write <switch learning="off"> there',
        'write <switch forwarding="statically"> there',
    ],
)
def test_names_that_are_wrong_are_found(text: str) -> None:
    assert is_message(text)
    assert list(wrong_names(text))


@pytest.mark.parametrize(
    "text",
    ['write forwarding="static" there', "leave <frer> out", 'name <flow id="{}"> once', 'write period="2ms"'],
)
def test_names_that_are_right_are_not(text: str) -> None:
    assert not list(wrong_names(text))


def test_messages_of_both_languages_are_looked_at() -> None:
    looked = [
        where for where, text in messages() if is_message(text) and (TAG.search(text) or SET.search(text))
    ]
    assert any(Path(where).suffix == ".py" for where in looked)
    assert sum(Path(where).suffix == ".rs" for where in looked) > 50
