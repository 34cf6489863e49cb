"""Groups: one element of a test that stands for many, so that forty devices are not forty lines.

`<end-system name="device[1-40]"/>` is forty end systems, `<flow id="101-140" from="device[1-40]" to="controller"/>`
forty flows. An element is a group if an attribute that takes one value has a range; its other ranges, and those of its
children, count along. In an attribute that takes several values a range stands for its values.

Groups become ordinary elements here, after the schema has accepted the file and before anything else reads it. The
types in the schema declare which attributes take ranges. Every member keeps the line of its group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import lru_cache

from lxml import etree
from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.config.reading import MOST_ELEMENTS
from wiregauge.config.schema import declarations
from wiregauge.config.structure import described, line_of, local, naming_attribute, recognised
from wiregauge.plan.quantity import QuantityError, time_ps

STEP = "offset-step"
"""The attribute that only groups have."""
_NUMBERS = frozenset({"flow-id-or-group", "vl-id-or-group", "flow-ids"})
_SINGLE = frozenset({"name-or-group", "link-ends-or-group", "flow-id-or-group", "vl-id-or-group"})
_SEVERAL = frozenset({"names", "via", "flow-ids"})
_IN_NAME = re.compile(r"([^\[\]]*)\[([0-9]{1,5})-([0-9]{1,5})\]([^\[\]]*)")
_OF_NUMBERS = re.compile(r"()([0-9]{1,5})-([0-9]{1,5})()")
_NODES = frozenset({"end-system", "switch", "hub"})
_MOST_NODES = 4096
_OCTETS_OF_ELEMENT = 64
"""Octets of attributes that are weighed like one element."""
_MOST_OF_A_KIND = 65_534
"""Limits of the plan, checked here before members are made."""


class _Range(Struct, frozen=True):
    """One word of an attribute that stands for several."""

    before: str
    first: int
    last: int
    width: int
    after: str

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def member(self, index: int) -> str:
        return f"{self.before}{self.first + index:0{self.width}}{self.after}"


_Words = list[str | _Range]


class _Group(Struct):
    node: etree._Element
    line: int
    count: int
    ranged: list[tuple[int, str, _Words]] = field(default_factory=list)
    """Attributes that differ from member to member: which element, in the order of the document, and its words."""
    step_ps: int = 0
    text: str = ""
    """The group as its author would recognise it."""

    def names(self) -> Iterator[str]:
        """The members as diagnostics name them."""
        tag = local(self.node)
        name = naming_attribute(tag)
        words = next((words for at, attribute, words in self.ranged if (at, attribute) == (0, name)), None)
        for index in range(self.count):
            yield self.text if words is None else recognised(tag, _joined(words, index))


class Expanded(Struct, frozen=True):
    """A test without groups."""

    root: etree._Element
    _groups: Sequence[_Group] = ()

    def gathered(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Diagnostics with one for all members of a group of which the same is wrong; it names the first."""
        if not self._groups:
            return list(found)
        groups = {(group.line, name): group for group in self._groups for name in group.names()}
        said: dict[tuple[object, ...], Diagnostic] = {}
        for diagnostic in found:
            group = groups.get((diagnostic.line, diagnostic.element))
            whose: object = (diagnostic.line, diagnostic.element) if group is None else id(group)
            alike = (whose, diagnostic.message, diagnostic.limit, diagnostic.cure)
            known = said.setdefault(alike, diagnostic)
            if group is not None and known.element != diagnostic.element:
                message = f"{diagnostic.message}, as for other members of {group.text}"
                said[alike] = replace(known, message=message)
        return list(said.values())


def has_groups(root: etree._Element) -> bool:
    """Whether a test has a range, or an attribute that only groups have."""
    return any(_is_grouped(node) for node in root.iter("*"))


def _is_grouped(node: etree._Element) -> bool:
    text = " ".join(map(str, node.values()))
    # Most elements of a large file have no range at all, and are not examined further.
    if not ("-" in text or "[" in text or "]" in text or ".." in text or node.get(STEP) is not None):
        return False
    known = _attributes().get(local(node), {})
    values = ((node.get(attribute), kind) for attribute, kind in known.items())
    return any(value is not None and _is_ranged(value, kind) for value, kind in values)


def names_a_group(key: str) -> bool:
    """Whether the key of an element is that of a group."""
    return any(_IN_NAME.fullmatch(word) or _OF_NUMBERS.fullmatch(word) for word in key.split())


def expanded(root: etree._Element, file: str) -> Expanded:
    """The test with the members of its groups in their place; the tree itself where it has none.

    Raises `TestError` for groups that cannot be made, and before members are made for more than a test may have.
    """
    if not has_groups(root):
        return Expanded(root)
    root = deepcopy(root)
    survey = _Survey(file)
    survey.visit(root)
    if survey.found:
        raise TestError(survey.found)
    for node, attribute, words in survey.lists:
        node.set(attribute, " ".join(_spelt(words)))
    for group in survey.groups:
        _grow(group)
    return Expanded(root, survey.groups)


@lru_cache(maxsize=1)
def _attributes() -> dict[str, dict[str, str]]:
    """The range-taking attributes of each element, with their types, and `STEP`."""
    return {
        tag: {
            name: attribute.type
            for name, attribute in declaration.attributes.items()
            if attribute.type in _SINGLE | _SEVERAL or name == STEP
        }
        for tag, declaration in declarations().items()
    }


def _is_ranged(value: str, kind: str) -> bool:
    if kind not in _SINGLE | _SEVERAL:
        return True
    return any(mark in value for mark in ("[", "]", "..")) or (kind in _NUMBERS and "-" in value)


def _joined(words: _Words, index: int) -> str:
    return " ".join(word if isinstance(word, str) else word.member(index) for word in words)


def _weight(node: etree._Element) -> int:
    """The weight of a member: its elements, or its attributes in units of elements where that is more."""
    inside = list(node.iter("*"))
    written: int = sum(len(str(value)) for one in inside for value in one.attrib.values())
    return max(len(inside), written // _OCTETS_OF_ELEMENT)


def _spelt(words: _Words) -> Iterator[str]:
    for word in words:
        if isinstance(word, str):
            yield word
        else:
            yield from (word.member(index) for index in range(word.count))


def _grow(group: _Group) -> None:
    node = group.node
    parent = node.getparent()
    assert parent is not None  # the root takes no range
    for index in range(group.count):
        member = deepcopy(node)
        inside = list(member.iter("*"))
        for at, attribute, words in group.ranged:
            inside[at].set(attribute, _joined(words, index))
        if member.get(STEP) is not None:
            del member.attrib[STEP]
            _put_off(member, group.step_ps * index)
        node.addprevious(member)
    parent.remove(node)


def _put_off(member: etree._Element, by_ps: int) -> None:
    attribute = "cycle-offset" if member.get("cycle-offset") is not None else "offset"
    try:
        offset = time_ps(" ".join(member.get(attribute, "0s").split())) + by_ps
    except QuantityError:
        return  # the plan says what is wrong with it, and a dispatch is put off with its flow
    member.set(
        attribute, f"{offset // 1000}.{offset % 1000:03}ns" if offset % 1000 else f"{offset // 1000}ns"
    )


class _Survey:
    """The groups of a test, and whether expanding them stays within the limits."""

    def __init__(self, file: str) -> None:
        self.found: list[Diagnostic] = []
        self.groups: list[_Group] = []
        self.lists: list[tuple[etree._Element, str, _Words]] = []
        self._file = file
        self._totals: Counter[str] = Counter()
        self._all = 0
        self._refused: set[str] = set()

    def visit(self, node: etree._Element) -> None:
        """Notes the groups and lists of an element and of all below it."""
        ranged = self._ranged(node)
        kinds = _attributes()[local(node)]
        if any(kinds[attribute] in _SINGLE for attribute, _ in ranged):
            self._group(node, ranged)
            return
        if node.get(STEP) is not None:
            cure = "leave it out, or give a range of flows as in 101-140"
            self._wrong(node, f"{STEP} is of groups only", "", cure)
        words = (word for _, words in ranged for word in words)
        self._count(node, 1, sum(word.count for word in words if isinstance(word, _Range)))
        self.lists += [(node, *entry) for entry in ranged]
        for child in node.iterchildren("*"):
            self.visit(child)

    def _group(self, node: etree._Element, own: list[tuple[str, _Words]]) -> None:
        kinds = _attributes()[local(node)]
        leading, words = next(entry for entry in own if kinds[entry[0]] in _SINGLE)
        count = next(word.count for word in words if isinstance(word, _Range))
        group = _Group(node, line_of(node), count, text=described(node))
        for at, inside in enumerate(node.iter("*")):
            for attribute, words in self._ranged(inside) if at else own:
                group.ranged.append((at, attribute, words))
                for word in words:
                    if isinstance(word, _Range) and word.count != count:
                        message = f"{attribute} counts {word.count} members, but {leading} counts {count}"
                        self._wrong(inside, message, str(count), "write ranges of equal length")
        number = node.get("id", "")
        if leading != "id" and number.strip().isdecimal():
            first = int(number)
            cure = f'write id="{first}-{first + count - 1}", or another range of {count}'
            self._wrong(node, f"there is one id for {count} flows", f"{count} ids", cure)
        group.step_ps = self._step(node)
        self._count(node, count, 0)
        self.groups.append(group)

    def _step(self, node: etree._Element) -> int:
        step = node.get(STEP)
        if step is None:
            return 0
        try:
            return time_ps(" ".join(step.split()))
        except QuantityError:
            message = f'{STEP} "{shown(step)}" is no time'
            self._wrong(
                node, message, "", "write a number and one of ns, us, ms, s, min, h, for example 25us"
            )
            return 0

    def _ranged(self, node: etree._Element) -> list[tuple[str, _Words]]:
        """The attributes of one element that have ranges."""
        ranged = []
        for attribute, kind in _attributes()[local(node)].items():
            value = node.get(attribute)
            if value is not None and attribute != STEP and _is_ranged(value, kind):
                words = [self._word(node, attribute, word, kind) for word in value.split()]
                if any(map(_is_range, words)):
                    ranged.append((attribute, words))
        return ranged

    def _word(self, node: etree._Element, attribute: str, word: str, kind: str) -> str | _Range:
        form = _OF_NUMBERS if kind in _NUMBERS else _IN_NAME
        example = "101-140" if kind in _NUMBERS else "device[1-40]"
        match = form.fullmatch(word)
        if match is None:
            if _is_ranged(word, kind):
                self._wrong(node, f'{attribute} "{shown(word)}" is no range', "", f"write it as in {example}")
            return word
        before, low, high, after = match.groups()
        if int(low) > int(high):
            self._wrong(
                node, f'{attribute} "{shown(word)}" counts down', "", "write the smaller number first"
            )
            return word
        width = len(low) if low.startswith("0") and form is _IN_NAME else 1
        return _Range(before, int(low), int(high), width, after)

    def _count(self, node: etree._Element, count: int, listed: int) -> None:
        """Adds the members of an element; refuses the first group or list with which a kind exceeds its limit."""
        tag = local(node)
        kind, most = ("nodes", _MOST_NODES) if tag in _NODES else (f"<{tag}>", _MOST_OF_A_KIND)
        self._totals[kind] += count
        self._all += listed + count * (1 if count == 1 else _weight(node))
        if count == 1 and not listed:
            return
        if self._totals[kind] > most and kind not in self._refused:
            self._refused.add(kind)
            message = f"with this group the test has {self._totals[kind]} {kind}"
            self._wrong(node, message, str(most), "make the group smaller")
        if self._all > MOST_ELEMENTS and not self._refused:
            self._refused.add("all")
            message = "the groups and ranges up to here stand for too much"
            self._wrong(node, message, f"{MOST_ELEMENTS} elements, names and numbers", "make them smaller")

    def _wrong(self, node: etree._Element, message: str, limit: str, cure: str) -> None:
        wrong = Diagnostic(self._file, line_of(node), described(node), message, limit, cure)
        if wrong not in self.found[-1:]:
            self.found.append(wrong)


def _is_range(word: str | _Range) -> bool:
    return isinstance(word, _Range)
