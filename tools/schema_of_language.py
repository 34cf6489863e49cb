"""The XML Schema of the test language, from its declaration and from the names of measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import limit_names

from wiregauge._native import language

_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!--
  The Wiregauge test language, version 2. Made by tools/language.py from crates/plan/src/language, where it is declared;
  run `make language` after a change there.

  What a test means (references, routes, capacities) is checked after this, by the plan. Editors complete and
  explain a test from this file: every attribute has its unit, range and default in its documentation.

  Parts are given in any order; a section may stand once.
-->
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:wiregauge:test:2"
           targetNamespace="urn:wiregauge:test:2" elementFormDefault="qualified" version="2">
"""
_GROUPS = {"any": "choice", "all": "all", "list": "sequence"}


def schema() -> str:
    """The whole schema."""
    declared = json.loads(language())
    lines = [line for kind in declared["types"] for line in _type(kind)]
    lines += [line for element in declared["elements"] for line in ("", *_element(element))]
    return f"{_HEAD}\n" + "".join(f"  {line}\n" if line else "\n" for line in lines) + "</xs:schema>\n"


def _documented(text: str) -> str:
    return f"<xs:annotation><xs:documentation>{escape(text)}</xs:documentation></xs:annotation>"


def _type(kind: dict[str, Any]) -> Iterator[str]:
    yield f"<xs:simpleType name={quoteattr(kind['name'])}>"
    yield f"  {_documented(kind['documentation'])}"
    ((form, of),) = kind["form"].items() if isinstance(kind["form"], dict) else [(kind["form"], None)]
    yield from (f"  {line}" for line in _FORMS[form](of))
    yield "</xs:simpleType>"


def _whole(bounds: list[int]) -> Iterator[str]:
    low, high = bounds
    base = "nonNegativeInteger" if low == 0 else "positiveInteger"
    least = f'<xs:minInclusive value="{low}"/>' if low > 1 else ""
    yield f'<xs:restriction base="xs:{base}">{least}<xs:maxInclusive value="{high}"/></xs:restriction>'


def _choices(words: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield '<xs:restriction base="xs:token">'
    for word, meaning in words:
        yield f"  <xs:enumeration value={quoteattr(word)}>{_documented(meaning)}</xs:enumeration>"
    yield "</xs:restriction>"


def _token(facet: str) -> Iterator[str]:
    yield (
        f'<xs:restriction base="xs:token">{facet}</xs:restriction>'
        if facet
        else '<xs:restriction base="xs:token"/>'
    )


def _list(of: dict[str, Any]) -> Iterator[str]:
    item = "xs:token" if of["of"] == "token" else of["of"]
    listed = f'<xs:list itemType="{item}"/>'
    if of["empty"]:
        yield listed
    else:
        inner = f"<xs:simpleType>{listed}</xs:simpleType>"
        yield f'<xs:restriction>{inner}<xs:minLength value="1"/></xs:restriction>'


_FORMS: dict[str, Callable[[Any], Iterable[str]]] = {
    "whole": _whole,
    "choices": _choices,
    "measures": lambda _: _choices((str(name), name.meaning) for name in limit_names.names()),
    "percentiles": lambda _: _token(f"<xs:pattern value={quoteattr(limit_names.pattern())}/>"),
    "pattern": lambda of: _token(f"<xs:pattern value={quoteattr(of)}/>"),
    "text": lambda of: _token("" if of["empty"] else '<xs:minLength value="1"/>'),
    "either": lambda of: iter([f'<xs:union memberTypes="{" ".join(of)}"/>']),
    "list": _list,
}


def _element(element: dict[str, Any]) -> Iterator[str]:
    yield f"<xs:element name={quoteattr(element['name'])}>"
    yield f"  {_documented(element['documentation'])}"
    inner = [*_content(element), *(line for one in element["attributes"] for line in _attribute(one))]
    if inner:
        yield "  <xs:complexType>"
        yield from (f"    {line}" for line in inner)
        yield "  </xs:complexType>"
    else:
        yield "  <xs:complexType/>"
    yield "</xs:element>"


def _content(element: dict[str, Any]) -> Iterator[str]:
    if not element["parts"]:
        return
    group = _GROUPS[element["content"]]
    is_any = element["content"] == "any"
    least = ' minOccurs="0"' if element["least"] == 0 else ""
    yield f'<xs:{group}{least} maxOccurs="unbounded">' if is_any else f"<xs:{group}>"
    for part in element["parts"]:
        times = "" if is_any or part["least"] else ' minOccurs="0"'
        times += ' maxOccurs="unbounded"' if not is_any and part["most"] is None else ""
        yield f'  <xs:element ref="{part["name"]}"{times}/>'
    yield f"</xs:{group}>"


def _attribute(attribute: dict[str, Any]) -> Iterator[str]:
    use = ' use="required"' if attribute["required"] else ""
    default = "" if attribute["default"] is None else f" default={quoteattr(attribute['default'])}"
    yield f'<xs:attribute name="{attribute["name"]}" type="{attribute["type"]}"{use}{default}>'
    yield f"  {_documented(attribute['documentation'])}"
    yield "</xs:attribute>"
