"""Contradictions between planted faults and the assumptions made about a test, with their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from lxml import etree

from wiregauge._native import read_quantity
from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.structure import line_of, local
from wiregauge.plan.planted import Contradiction

__all__ = ["Lines", "line_named", "lines_of", "placed", "refuse", "told"]

_NODES = ("end-system", "switch", "hub")


def placed(root: etree._Element | None, found: Contradiction) -> int:
    """The line of the contradicting element; 0 without a text."""
    if root is None:
        return 0
    if found.tag in ("clock", "end-system"):
        nodes = [node for node in root.iter("*") if local(node) in _NODES]
        clocks = [child for child in nodes[found.number] if local(child) == "clock"]
        return line_of(clocks[0] if clocks else nodes[found.number])
    own = [node for node in root.iter("*") if local(node) == found.tag and _is_planted(node)]
    own.sort(key=_begins)
    return line_of(own[found.number]) if found.number < len(own) else 0


Lines = Mapping[tuple[str, str | None, str | None], int]
"""Line of the first element with a tag, an attribute and its value, or with a tag alone."""


def lines_of(root: etree._Element | None) -> Lines:
    """The lines of all elements of a test."""
    found: dict[tuple[str, str | None, str | None], int] = {}
    for node in root.iter("*") if root is not None else ():
        tag = local(node)
        found.setdefault((tag, None, None), line_of(node))
        for attribute, value in node.items():
            found.setdefault((tag, str(attribute), str(value)), line_of(node))
    return found


def line_named(lines: Lines, element: str) -> int:
    """The line of an element as messages name it: `<send flow="3">`, `switch "s"`, `flow 3`, `<as6802>`."""
    named = re.match(r'<?([a-z0-9-]+|end system)(?: (?:([a-z]+)=)?"?([^">]*)"?)?>?$', element)
    if named is None:
        return 0
    tag, attribute, value = named.groups()
    tag = tag.replace(" ", "-")
    attribute = attribute or ("id" if tag == "flow" else "name")
    return lines.get((tag, None, None) if value is None else (tag, attribute, value), 0)


def _is_planted(node: etree._Element) -> bool:
    parent = node.getparent()
    return parent is not None and local(parent) in ("faults", "relay")


def _begins(node: etree._Element) -> int:
    """Sort key: network events are planned in order of time (their start), all others in order of the file (0)."""
    if local(node) not in ("cut", "babble", "restart", "step-clock"):
        return 0
    written = node.get("from") or node.get("at")
    return 0 if written is None else read_quantity("time", written)


def refuse(
    found: Sequence[Contradiction], file: str, root: Callable[[], etree._Element | None], whose: str
) -> None:
    """Raises `TestError` for contradictions to assumptions without which there is no answer."""
    refused = [one for one in found if one.refused]
    if not refused:
        return
    text = root()
    raise TestError(
        [
            Diagnostic(
                file,
                placed(text, one),
                f"<{one.tag}>",
                f"{one.sentence}, and {whose} takes for granted that {one.assumption}",
                "",
                one.cure or f"leave it out for {whose} of the network without it",
            )
            for one in refused
        ]
    )


def told(found: Sequence[Contradiction], root: Callable[[], etree._Element | None]) -> list[str]:
    """A sentence for each contradiction that leads to no refusal."""
    kept = [one for one in found if not one.refused]
    text = root() if kept else None
    sentences = []
    for one in kept:
        line = placed(text, one)
        where = f"line {line}, " if line else ""
        sentences.append(
            f"{where}<{one.tag}>: {one.sentence}; what is said here is of frames that arrive without it"
        )
    return sentences
