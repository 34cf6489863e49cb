"""Test files of the language's version 1, rewritten in version 2: names change, nothing else does.

The text is edited where a name stands, so that comments, order and layout of the file stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from xml.parsers import expat

from wiregauge.config.schema import NAMESPACE, OLD_NAMESPACE

_ELEMENTS: Final[Mapping[str, str]] = {"lose": "loss", "reorder": "delay"}
_FAULT_OF_A_LINK: Final = {"from": "sent-by", "begin": "from", "end": "until"}
_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "switch": {"mode": "forwarding-mode"},
    "send": {"mode": "pacing"},
    "replay": {"mode": "pacing"},
    "inject": {"mode": "pacing"},
    "window": {"at": "port"},
    "synchronise": {"within": "max-offset", "otherwise": "on-failure"},
    "ptp": {"stamps": "timestamps"},
    "bit-errors": _FAULT_OF_A_LINK,
    "lose": _FAULT_OF_A_LINK,
    "duplicate": _FAULT_OF_A_LINK,
    "reorder": _FAULT_OF_A_LINK,
    "corrupt": _FAULT_OF_A_LINK,
    "cut": {"at": "from", "restore": "until"},
    "babble": {"at": "from"},
    "restart": {"at": "from", "back": "until"},
}
_VALUES: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("fault", "kind"): {"drop": "loss", "swap": "reorder"},
    ("axis", "of"): {"mode": "forwarding-mode"},
    ("limit", "measure"): {
        "throughput": "goodput",
        "bag_conformity": "bag_violations",
        "skew_conformity": "skew_violations",
        "window_conformity": "window_violations",
    },
}

_ATTRIBUTE = re.compile(rb"""(\s+)([^\s=<>/"']+)(\s*=\s*)("[^"]*"|'[^']*')""")
_TAG = re.compile(rb"""<(/?)((?:[^\s:<>/="']+:)?)([^\s:<>/="']+)((?:"[^"]*"|'[^']*'|[^"'>])*)>""")


def upgraded(xml: bytes) -> bytes:
    """A well-formed file of version 1 (UTF-8) in version 2. Elements and attributes that are in neither stay."""
    edits: dict[int, tuple[int, bytes]] = {}
    parser = expat.ParserCreate()

    def edit(rewritten: Callable[[re.Match[bytes]], bytes]) -> None:
        start = parser.CurrentByteIndex
        if (tag := _TAG.match(xml, start)) is not None:
            edits[start] = tag.end(), rewritten(tag)

    def begun(_name: str, _attributes: dict[str, str]) -> None:
        edit(_start_tag)

    def ended(_name: str) -> None:
        # Of an empty-element tag this is the place behind it, where the end tag of its parent may stand.
        if xml.startswith(b"</", parser.CurrentByteIndex):
            edit(_end_tag)

    parser.StartElementHandler = begun
    parser.EndElementHandler = ended
    parser.Parse(xml, True)
    parts, at = [], 0
    for start, (end, text) in sorted(edits.items()):
        parts += [xml[at:start], text]
        at = end
    return b"".join([*parts, xml[at:]])


def _start_tag(tag: re.Match[bytes]) -> bytes:
    _, prefix, name, rest = tag.groups()
    element = name.decode()
    attributes = _ATTRIBUTE.sub(lambda attribute: _attribute(element, attribute), rest)
    names = [found[1] for found in _ATTRIBUTE.findall(attributes)]
    if len(set(names)) < len(names):
        # It had an attribute that version 1 does not know, which has to be reported under its own name.
        attributes = rest
    return b"<" + prefix + _renamed(element) + attributes + b">"


def _end_tag(tag: re.Match[bytes]) -> bytes:
    _, prefix, name, rest = tag.groups()
    return b"</" + prefix + _renamed(name.decode()) + rest + b">"


def _renamed(element: str) -> bytes:
    return _ELEMENTS.get(element, element).encode()


def _attribute(element: str, found: re.Match[bytes]) -> bytes:
    space, raw_name, equals, quoted = found.groups()
    name, quote, value = raw_name.decode(), quoted[:1], quoted[1:-1].decode()
    if name.partition(":")[0] == "xmlns" and value == OLD_NAMESPACE:
        value = NAMESPACE
    elif name.endswith("schemaLocation"):
        value = value.replace(OLD_NAMESPACE, NAMESPACE).replace(
            "wiregauge-test-1.xsd", "wiregauge-test-2.xsd"
        )
    values = _VALUES.get((element, name), {})
    value = values.get(value.strip(), value)
    new = _ATTRIBUTES.get(element, {}).get(name, name)
    return space + new.encode() + equals + quote + value.encode() + quote
