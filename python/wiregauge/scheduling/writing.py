"""Writes a schedule into the author's test file: offsets and windows are added, and nothing else is changed.

Only the text of each flow is edited, so that comments, order and layout stay. A group of flows whose members are
scheduled is replaced by its members, with the original in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.parsers import expat

from lxml import etree
from msgspec import Struct, field

from wiregauge.config import TestError, checked_tree, load_bytes
from wiregauge.config.groups import expanded
from wiregauge.config.reading import parse
from wiregauge.plan import Campaign
from wiregauge.plan.quantity import time_text
from wiregauge.scheduling.problem import DEFAULT_EARLY_PS, Problem, port_name
from wiregauge.scheduling.searching import Opens

__all__ = ["Author", "NotKeptError", "author_of", "scheduled", "unscheduled"]

_ATTRIBUTE = re.compile(rb"""(\s+)([^\s=<>/"']+)(\s*=\s*)("[^"]*"|'[^']*')""")
_TAG = re.compile(rb"""<((?:[^\s:<>/="']+:)?)([^\s:<>/="']+)((?:"[^"]*"|'[^']*'|[^"'>])*?)(\s*/?)>""")


class NotKeptError(Exception):
    """The plan refuses the schedule that was found."""


class Author(Struct, frozen=True):
    """The author's settings of time-triggered flows, as sets of flow numbers."""

    scheduled: frozenset[int]
    """Flows with an offset or a window."""
    lengths: frozenset[int]
    """Flows with one length for all of their windows."""
    by_hand: frozenset[int]
    """Flows with a length for a single window."""
    early: frozenset[int]


class _Rewritten(Struct, frozen=True):
    """The attributes and windows to write for a flow."""

    attributes: Mapping[str, str]
    windows: Sequence[Mapping[str, str]] = ()


def author_of(data: bytes, file: str) -> Author:
    """Reads the author's settings of time-triggered flows from a test. Raises TestError."""
    scheduled, lengths, by_hand, early = set(), set(), set(), set()
    for node in _flows(expanded(checked_tree(data, file), file).root):
        number = int(node.get("id", "0"))
        windows = [child for child in node if etree.QName(child).localname == "window"]
        if node.get("offset") is not None or windows:
            scheduled.add(number)
        if node.get("window") is not None:
            lengths.add(number)
        if any(window.get("length") for window in windows):
            by_hand.add(number)
        if node.get("early") is not None:
            early.add(number)
    return Author(frozenset(scheduled), frozenset(lengths), frozenset(by_hand), frozenset(early))


def _flows(root: etree._Element) -> list[etree._Element]:
    named = "{*}flow"
    return [
        node
        for node in root.iter(named)
        if node.get("protocol") == "tt" and node.get("id", "").strip().isdecimal()
    ]


def unscheduled(data: bytes, file: str) -> bytes:
    """The test without the offsets and windows of its time-triggered flows, to schedule it from scratch."""
    numbers = {int(node.get("id", "0")) for node in _flows(expanded(checked_tree(data, file), file).root)}
    return _Editor(data, file, {number: _Rewritten({}) for number in numbers}, again=True).text()


def scheduled(
    data: bytes,
    path: Path,
    campaign: Campaign,
    problem: Problem,
    opens: Opens,
    author: Author,
    settings: Sequence[str] = (),
    *,
    again: bool = False,
) -> bytes:
    """The test with a schedule of the flows that are free in `problem`.

    Only what the plan needs to derive the same windows is written: the offset, and windows where they differ from
    those it derives. The plan then checks the whole test. Raises NotKeptError where it refuses it.
    """
    changes = {
        demand.flow: _Rewritten(
            _attributes(problem, opens, demand.flow, campaign, frozenset() if again else author.early)
        )
        for demand in problem.free
    }
    first = _Editor(data, str(path), changes, again=again).text()
    try:
        derived = load_bytes(first, path, settings, "unjudged").campaign
    except TestError:
        derived = None
    for demand in problem.free:
        if derived is None or not _derives(derived, problem, opens, demand.flow):
            windows = _windows(campaign, problem, opens, demand.flow)
            changes[demand.flow] = _Rewritten(changes[demand.flow].attributes, windows)
    text = _Editor(data, str(path), changes, again=again).text()
    try:
        load_bytes(text, path, settings)
    except TestError as error:
        raise NotKeptError(str(error)) from None
    return text


def _attributes(
    problem: Problem, opens: Opens, flow: int, campaign: Campaign, of_author: frozenset[int]
) -> dict[str, str]:
    written = {"offset": time_text(opens[flow][0] * problem.grid_ps)}
    precision_ps = problem.precision * problem.grid_ps
    if precision_ps > DEFAULT_EARLY_PS and flow not in of_author:
        # Use the run whose frames arrive earliest.
        early = max(
            one.schedule.early
            for run in campaign.runs
            for one in run.flows
            if one.id == flow and one.schedule
        )
        written["early"] = time_text(early - DEFAULT_EARLY_PS + precision_ps)
    return written


def _derives(derived: Campaign, problem: Problem, opens: Opens, flow: int) -> bool:
    demand = problem.of(flow)
    wanted = {
        window.port: (opens[flow][at] % demand.period * problem.grid_ps, window.length * problem.grid_ps)
        for at, window in enumerate(demand.windows)
    }
    for run in derived.runs:
        schedule = next(one.schedule for one in run.flows if one.id == flow)
        assert schedule is not None
        for window in schedule.windows:
            offset, length = wanted[window.at]
            if window.offset != offset or not length - problem.grid_ps < window.length <= length:
                return False
    return True


def _windows(campaign: Campaign, problem: Problem, opens: Opens, flow: int) -> list[dict[str, str]]:
    demand = problem.of(flow)
    return [
        {
            "port": port_name(campaign, window.port),
            "offset": time_text(opens[flow][at] % demand.period * problem.grid_ps),
            "length": time_text(window.length * problem.grid_ps),
        }
        for at, window in enumerate(demand.windows)
    ]


class _Found(Struct):
    """The position of a flow in the text."""

    start: int
    tag_end: int
    end: int
    windows: list[tuple[int, int]] = field(default_factory=list)


class _Editor:
    def __init__(self, data: bytes, file: str, changes: Mapping[int, _Rewritten], *, again: bool) -> None:
        self._data = data
        self._file = file
        self._changes = changes
        self._again = again

    def text(self) -> bytes:
        """The edited file."""
        found = self._places()
        tree = list(parse(self._data, self._file).iter("{*}flow"))
        parts, at = [], 0
        for place, node in zip(found, tree, strict=True):
            new = self._flow(place, node)
            if new is not None:
                parts += [self._data[at : place.start], new]
                at = place.end
        return b"".join([*parts, self._data[at:]])

    def _places(self) -> list[_Found]:
        """The position of every <flow>, in the order of the file."""
        found: list[_Found] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        window_start = [0]

        def local(name: str) -> str:
            return name.rpartition(" ")[2]

        def begun(name: str, _attributes: object) -> None:
            start = parser.CurrentByteIndex
            if local(name) == "flow":
                tag = _TAG.match(self._data, start)
                assert tag is not None
                found.append(_Found(start, tag.end(), tag.end()))
            elif local(name) == "window":
                window_start[0] = start

        def ended(name: str) -> None:
            if local(name) not in ("flow", "window") or not found:
                return
            start = window_start[0] if local(name) == "window" else found[-1].start
            tag = _TAG.match(self._data, start)
            assert tag is not None
            # For an empty element the parser's end position may be that of its parent's end tag.
            end = tag.end() if tag[4].strip() else self._data.index(b">", parser.CurrentByteIndex) + 1
            if local(name) == "flow":
                found[-1].end = end
            else:
                found[-1].windows.append((start, end))

        parser.StartElementHandler = begun
        parser.EndElementHandler = ended
        parser.Parse(self._data, True)
        return found

    def _flow(self, place: _Found, node: etree._Element) -> bytes | None:
        if node.get("protocol") != "tt":
            return None
        number = node.get("id", "").strip()
        if number.isdecimal():
            change = self._changes.get(int(number))
            return None if change is None else self._edited(place, change)
        return self._members(place, node)

    def _indent(self, at: int) -> bytes:
        line = self._data.rfind(b"\n", 0, at) + 1
        before = self._data[line:at]
        return before if not before.strip() else b""

    def _edited(self, place: _Found, change: _Rewritten) -> bytes:
        tag = _TAG.match(self._data, place.start)
        assert tag is not None
        prefix, name, attributes, closing = tag.groups()
        if self._again:
            gone = {b"offset", b"offset-step"}
            attributes = _ATTRIBUTE.sub(lambda a: b"" if a[2] in gone else a[0], attributes)
        for key, value in change.attributes.items():
            attributes = _set(attributes, key.encode(), value.encode())
        inner_start, inner = place.tag_end, self._data[place.tag_end : place.end]
        if self._again:
            for begin_tag, end in reversed(place.windows):
                line = self._data.rfind(b"\n", 0, begin_tag)
                alone = line >= place.tag_end and not self._data[line:begin_tag].strip()
                begin = line if alone else begin_tag
                inner = inner[: begin - inner_start] + inner[end - inner_start :]
        indent = self._indent(place.start)
        lines = b"".join(
            b"\n" + indent + b"  <" + prefix + b"window" + _attributes_text(window) + b"/>"
            for window in change.windows
        )
        start = b"<" + prefix + name + attributes
        if not closing.strip():
            return start + closing + b">" + lines + inner
        if not lines:
            return start + closing + b">"
        return start + b">" + lines + b"\n" + indent + b"</" + prefix + name + b">"

    def _members(self, place: _Found, node: etree._Element) -> bytes | None:
        """A group expanded to its members, if one of them changes; else None."""
        root = parse(self._data, self._file)
        every = list(root.iter("{*}flow"))
        at = next(
            k
            for k, one in enumerate(every)
            if one.sourceline == node.sourceline and one.attrib == node.attrib
        )
        mark = "wiregauge-member"
        every[at].set(mark, "1")
        members = [one for one in expanded(root, self._file).root.iter("{*}flow") if one.get(mark)]
        if not any(int(one.get("id", "0")) in self._changes for one in members):
            return None
        tag = _TAG.match(self._data, place.start)
        assert tag is not None
        indent, prefix = self._indent(place.start), tag[1]
        was = self._data[place.start : place.tag_end].decode()
        parts = [f"<!-- written out member by member; it was {was} -->".encode()] if "--" not in was else []
        for one in members:
            del one.attrib[mark]
            change = self._changes.get(int(one.get("id", "0")), _Rewritten({}))
            attributes = {str(key): str(value) for key, value in one.attrib.items()}
            if self._again:
                attributes.pop("offset", None)
            attributes |= change.attributes
            children = [(etree.QName(child).localname, dict(child.attrib)) for child in one]
            kept = [(tag, given) for tag, given in children if not (self._again and tag == "window")]
            inner = [("window", dict(window)) for window in change.windows] + kept
            text = b"<" + prefix + b"flow" + _attributes_text(attributes)
            if inner:
                lines = b"".join(
                    b"\n" + indent + b"  <" + prefix + tag.encode() + _attributes_text(given) + b"/>"
                    for tag, given in inner
                )
                parts.append(text + b">" + lines + b"\n" + indent + b"</" + prefix + b"flow>")
            else:
                parts.append(text + b"/>")
        return (b"\n" + indent).join(parts)


def _attributes_text(attributes: Mapping[str, str]) -> bytes:
    return b"".join(f' {key}="{_escaped(value)}"'.encode() for key, value in attributes.items())


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _set(attributes: bytes, key: bytes, value: bytes) -> bytes:
    """The attributes with one set: replaced in place, or appended."""
    done = False

    def replaced(found: re.Match[bytes]) -> bytes:
        nonlocal done
        if found[2] != key:
            return found[0]
        done = True
        return found[1] + key + found[3] + b'"' + value + b'"'

    edited = _ATTRIBUTE.sub(replaced, attributes)
    return edited if done else attributes + b" " + key + b'="' + value + b'"'
