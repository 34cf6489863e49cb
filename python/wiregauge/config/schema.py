"""The schema of the test language as a validator, and the declaration of the language in `crates/plan` it is made from.

Messages, the reference page and tests read `declarations()`, so none of them can know an attribute that the language
does not have.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from lxml import etree
from msgspec import Struct

from wiregauge._native import language

NAMESPACE = "urn:wiregauge:test:2"
_XS = "{http://www.w3.org/2001/XMLSchema}"


class Attribute(Struct, frozen=True):
    """An attribute as the language declares it."""

    name: str
    type: str
    required: bool
    default: str | None
    documentation: str


class Declaration(Struct, frozen=True):
    """An element as the language declares it."""

    name: str
    named_by: str | None
    """The attribute by which a message tells it from others of its kind."""
    documentation: str
    attributes: dict[str, Attribute]
    children: dict[str, tuple[int, int | None]]
    """Child element to least and largest number; None: any number."""
    any_of_children: bool
    """Whether at least one child is needed, of any kind."""


class ValueType(Struct, frozen=True):
    """A simple type: its description, and its choices if it is an enumeration."""

    name: str
    documentation: str
    choices: dict[str, str]


def schema_path() -> Path:
    """The XSD, for editors that complete and explain while one writes."""
    return Path(__file__).with_name("wiregauge-test-2.xsd")


@lru_cache(maxsize=1)
def _document() -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    return etree.fromstring(schema_path().read_bytes(), parser)


_own: Final = threading.local()


def _validator() -> etree.XMLSchema:
    """The validator of this thread, for its error log is state; compiling the schema takes longer than most tests."""
    if not hasattr(_own, "validator"):
        _own.validator = etree.XMLSchema(_document())
    return cast("etree.XMLSchema", _own.validator)


class Refusal(Struct, frozen=True):
    """A validation error: the element, and the validator's own message."""

    node: etree._Element
    message: str


ATTRIBUTE: Final = re.compile(r"attribute '(?P<attribute>[^']+)'")
"""Pattern of an attribute's name in libxml2's messages."""
_AT_ONCE: Final = 5_000
"""Number of elements up to which a tree is validated as a whole: for each error libxml2 counts all elements before
it."""


def refusals(root: etree._Element) -> list[Refusal]:
    """All that the schema refuses, once for each attribute; empty where it accepts the tree."""
    if sum(1 for _ in zip(root.iter(), range(_AT_ONCE + 1), strict=False)) <= _AT_ONCE:
        schema = _validator()
        schema.validate(root)
        return [Refusal(_at(root, error.path), error.message or "") for error in _listed(schema.error_log)]
    # A parser that validates takes as long for a tree that is all wrong as for one that is right; it knows no elements.
    try:
        etree.fromstring(
            etree.tostring(root),
            etree.XMLParser(schema=_validator(), resolve_entities=False, no_network=True, huge_tree=True),
        )
    except etree.XMLSyntaxError as error:
        return list(_of_values(root)) or [Refusal(root, error.msg or "")]
    return []


def _of_values(root: etree._Element) -> Iterator[Refusal]:
    """Validation errors of attribute values, element by element."""
    schema = _validator()
    for node in root.iter("*"):
        alone = etree.Element(node.tag, {str(name): str(value) for name, value in node.attrib.items()})
        if schema.validate(alone):
            continue
        told: dict[str, str] = {}
        for error in _listed(schema.error_log):
            if found := ATTRIBUTE.search(error.message or ""):
                told.setdefault(found["attribute"], error.message or "")
        yield from (Refusal(node, message) for message in told.values())


def _listed(log: object) -> list[etree._LogEntry]:
    return list(cast("Iterable[etree._LogEntry]", log))


def _at(root: etree._Element, path: str | None) -> etree._Element:
    nodes = root.xpath(path) if path else []
    node = nodes[0] if isinstance(nodes, list) and nodes else root
    return node if isinstance(node, etree._Element) else root


def _text(node: etree._Element, attribute: str) -> str:
    return node.get(attribute) or ""


def _documentation(node: etree._Element) -> str:
    text = node.findtext(f"{_XS}annotation/{_XS}documentation") or ""
    return " ".join(text.split())


@lru_cache(maxsize=1)
def declarations() -> dict[str, Declaration]:
    """Every element of the language by name, in the order of the schema."""
    return {element["name"]: _declaration(element) for element in json.loads(language())["elements"]}


def _declaration(element: dict[str, Any]) -> Declaration:
    return Declaration(
        name=element["name"],
        named_by=element["named_by"],
        documentation=element["documentation"],
        attributes={one["name"]: Attribute(**one) for one in element["attributes"]},
        children={part["name"]: (part["least"], part["most"]) for part in element["parts"]},
        any_of_children=element["least"] > 0,
    )


@lru_cache(maxsize=1)
def value_types() -> dict[str, ValueType]:
    """Every type of value by name."""
    return {
        _text(node, "name"): ValueType(
            name=_text(node, "name"),
            documentation=_documentation(node),
            choices={
                _text(choice, "value"): _documentation(choice)
                for choice in node.iterfind(f"{_XS}restriction/{_XS}enumeration")
            },
        )
        for node in _document().findall(f"{_XS}simpleType")
    }
