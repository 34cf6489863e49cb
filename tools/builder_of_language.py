"""The builder for Python, from the declaration of the test language.

There is a part for each element that belongs to another, and a method for each that a test is made of. Which elements
are parts, and what they are called in Python, is said here; which attributes they have is not.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wiregauge._native import language

WIDTH = 110
_MADE = "Made by tools/language.py from `crates/plan/src/language`; run `make language` after a change there."

_TYPES = {
    "flow-id-or-group": "int | str",
    "vl-id-or-group": "int | str",
    "flow-ids": "int | str | Iterable[int | str]",
    "sequences": "str | Iterable[int]",
    "names": "str | Iterable[str]",
    "ports": "str | Iterable[int]",
    "class-numbers": "str | Iterable[int]",
    "priority-list": "str | Iterable[int]",
    "values": "str | Iterable[str | int]",
    "path": "Path | str",
    "bound": "str | int",
}
"""What Python gives where it is neither text nor a whole number."""


class Child(Struct, frozen=True):
    """An element in another, as a field or an argument."""

    field: str
    kind: str
    default: str


def _one(field: str, kind: str) -> Child:
    return Child(field, f"{kind} | None", "None")


def _many(field: str, kind: str) -> Child:
    return Child(field, f"Sequence[{kind}]", "()")


def _keyed(field: str, kind: str) -> Child:
    return Child(field, f"Mapping[str, {kind}]", "field(default_factory=dict)")


_ENTRIES = "entries"
_CHILDREN: dict[str, dict[str, Child]] = {
    "end-system": {
        "clock": _one("clock", "Clock"),
        "timestamps": _one("timestamps", "Timestamps"),
        "event": _many("events", "Event"),
        "host": Child("host", "str | Host | None", "None"),
        "host-tsn": _one("tsn", "HostTsn"),
    },
    "host-tsn": {
        "traffic-class": _many("classes", "TrafficClass"),
        "gate-schedule": _one("schedule", "GateSchedule"),
        "classify": _many("classify", "Classify"),
        "ingress": _many("ingress", "Ingress"),
    },
    "traffic-class": {
        "cbs": _one("shaper", "Cbs | Etf | Ats"),
        "etf": _one("shaper", "Cbs | Etf | Ats"),
        "ats": _one("shaper", "Cbs | Etf | Ats"),
    },
    "gate-schedule": {"gate-entry": _many(_ENTRIES, "GateEntry")},
    "ingress": {"stream-gate": _one("gate", "StreamGate"), "police": _one("police", "Police")},
    "stream-gate": {"stream-gate-entry": _many(_ENTRIES, "StreamGateEntry")},
    "clock": {"temperature": Child("temperature", "Sequence[tuple[str, str]]", "()")},
    "host": {
        "receive-buffer": _keyed("receive_buffers", "ReceiveBuffer"),
        "stack": _keyed("stacks", "Stack"),
    },
    "switch": {
        "clock": _one("clock", "Clock"),
        "timestamps": _one("timestamps", "Timestamps"),
        "own-frames": _many("own_frames", "OwnFrames"),
        "vlan": Child("vlans", "Mapping[int, str | Iterable[int]] | None", "None"),
        "switch-tsn": _many("tsn", "SwitchTsn"),
    },
    "switch-tsn": {
        "traffic-class": _many("classes", "TrafficClass"),
        "gate-schedule": _many("schedules", "GateSchedule"),
        "cyclic-queuing": _one("cyclic", "CyclicQueuing"),
        "ingress": _many("ingress", "Ingress"),
    },
    "ats": {"scheduler": _many("schedulers", "Scheduler")},
    "synchronise": {
        "exchange": _one("exchange", "Exchange"),
        "ptp": _one("ptp", "Ptp"),
        "chrony": Child("chrony", "bool", "False"),
        "as6802": _many("clusters", "Cluster"),
        "ptp-domain": _many("ptp_domains", "PtpDomain"),
    },
    "as6802": {"faulty-master": _many("faulty", "FaultyMaster")},
    "ptp-domain": {"ptp-clock": _many("clocks", "PtpClock")},
    "flow": {
        "window": _many("windows", "Window"),
        "path": _many("paths", "FlowPath"),
        "frer": _one("frer", "Frer"),
        "stream-reservation": _one("reservation", "StreamReservation"),
    },
    "relay": {"fault": _many("faults", "Fault")},
}
"""Elements below an element: by what field they are given."""
_PAIRS = ("temperature", "vlan")
"""Elements with two attributes, which stand in place of a part."""
_KEYS = {"receive-buffer": "class", "stack": "protocol"}
"""The attribute of a part that is the key of a mapping."""
_CLASSES = {"as6802": "Cluster", "path": "FlowPath"}
"""Parts that are not called as their element is."""


class Method(Struct, frozen=True):
    """A method of the builder: the elements it can add, and what is given by place."""

    name: str
    tags: tuple[str, ...]
    section: str = ""
    """Where the element goes; nothing where the section itself is meant."""
    by_place: tuple[str, ...] = ()
    note: str = ""
    """What Python adds."""


_HERE = "A `file` that is not absolute begins at the working directory."
_METHODS = (
    Method(
        "end_system",
        ("end-system",),
        "network",
        ("name", "host"),
        "`host` names its model, or replaces values.",
    ),
    Method("host_model", ("host-model",), "network", ("name", "host"), _HERE),
    Method(
        "switch", ("switch",), "network", ("name",), f"`vlans` has the ports that carry each VLAN. {_HERE}"
    ),
    Method("hub", ("hub",), "network", ("name",)),
    Method("link", ("link",), "network", ("between",), 'An end may name a port of a switch: `"sw1:3"`.'),
    Method("flow", ("flow",), "flows", ("id",), 'A range, `"101-140"`, makes a group.'),
    Method("reservable", ("flows",), "", ("reservable",), "Sets the share that reserved streams may have."),
    Method("synchronise", ("synchronise",)),
    Method("timing", ("tasks",), note="Sets the times of every run."),
    Method("send", ("send",), "tasks", ("flow",)),
    Method("replay", ("replay",), "tasks", ("flow",), _HERE),
    Method("receive", ("receive",), "tasks", ("flow",)),
    Method("relay", ("relay",), "tasks", ("flow",)),
    Method("inject", ("inject",), "tasks"),
    Method("remote_log", ("remote-log",), "tasks"),
    Method("capture", ("capture",), "tasks", ("on",)),
    Method("bit_errors", ("bit-errors",), "faults", ("link",)),
    Method("frame_fault", ("loss", "duplicate", "delay", "corrupt"), "faults", ("kind", "link")),
    Method("wrong_length", ("wrong-length",), "faults", ("link",)),
    Method("cut", ("cut",), "faults", ("link",)),
    Method("babble", ("babble",), "faults", ("flow",)),
    Method("restart", ("restart",), "faults", ("switch",)),
    Method("step_clock", ("step-clock",), "faults", ("on",)),
    Method("axis", ("axis",), "sweep", ("of", "values"), "The last axis added varies fastest."),
    Method("repeat", ("repeat",), "sweep", ("times",), "Add it after the axes."),
    Method("limit", ("limit",), "limits", ("measure",)),
)


class Argument(Struct, frozen=True):
    """An argument of a method or a field of a part."""

    name: str
    kind: str
    default: str
    doc: str

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}{f' = {self.default}' if self.default else ''}"


@cache
def _declared() -> dict[str, dict[str, Any]]:
    return {element["name"]: element for element in json.loads(language())["elements"]}


@cache
def _whole() -> frozenset[str]:
    return frozenset(kind["name"] for kind in json.loads(language())["types"] if "whole" in kind["form"])


def _name(attribute: str) -> str:
    """The name in Python; `_` at the end keeps a word of the language from being one of Python."""
    name = attribute.replace("-", "_")
    return f"{name}_" if name in ("from", "for", "class") else name


def _argument(attribute: dict[str, Any], *, needed: bool | None = None) -> Argument:
    required = attribute["required"] if needed is None else needed
    form = attribute["type"]
    kind = _TYPES.get(form, "int" if form in _whole() else "str")
    doc = attribute["documentation"]
    if attribute["default"] is not None:
        doc += f" Default: {attribute['default']}."
    return Argument(
        _name(attribute["name"]), kind if required else f"{kind} | None", "" if required else "None", doc
    )


def _children(tag: str) -> list[Argument]:
    """What an element holds, each field once."""
    found: dict[str, Argument] = {}
    for child, as_field in _CHILDREN.get(tag, {}).items():
        doc = _declared()[child]["documentation"]
        if as_field.field in found:
            continue
        found[as_field.field] = Argument(as_field.field, as_field.kind, as_field.default, doc)
    return list(found.values())


def _checked() -> None:
    """Every element of the language is a part, a method, or a section that methods write."""
    sections = {method.section for method in _METHODS}
    made = {tag for held in _CHILDREN.values() for tag in held}
    made |= {tag for method in _METHODS for tag in method.tags} | sections | {"test"}
    if missing := set(_declared()) - made:
        raise ValueError(f"the builder has nothing for {', '.join(sorted(missing))}")
    for tag, element in _declared().items():
        parts = {part["name"] for part in element["parts"]}
        if tag not in (*sections, "test", "host-model") and parts != set(_CHILDREN.get(tag, {})):
            raise ValueError(f"the builder does not give every part of <{tag}>")


def _pairs(tag: str) -> Iterator[str]:
    for child in _PAIRS:
        if child in _CHILDREN.get(tag, {}):
            first, second = (attribute["name"] for attribute in _declared()[child]["attributes"])
            field = _CHILDREN[tag][child].field
            yield f'    PAIRS = (("{field}", "{child}", "{first}", "{second}"),)'


def _parts() -> list[str]:
    """Elements that have a class: those in others, but for pairs and for what is there or not."""
    held = {tag for held in _CHILDREN.values() for tag, child in held.items() if child.kind != "bool"}
    return [tag for tag in _declared() if tag in held and tag not in _PAIRS]


def parts() -> str:
    """The module of parts."""
    _checked()
    head = f'''"""Parts of a test for the builder: elements that belong to others, with their attributes as fields.

{_MADE}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import field

from wiregauge.config.building import Part

__all__ = [
{"".join(f'    "{name}",{chr(10)}' for name in sorted(map(_class, _parts())))}]
'''
    return head + "".join(f"\n\n{_part(tag)}" for tag in _parts())


def _class(tag: str) -> str:
    return _CLASSES.get(tag, "".join(word.capitalize() for word in tag.split("-")))


def _part(tag: str) -> str:
    element = _declared()[tag]
    attributes = [one for one in element["attributes"] if one["name"] != _KEYS.get(tag)]
    first = [_argument(one) for one in attributes if one["required"]]
    last = [_argument(one) for one in attributes if not one["required"]]
    lines = [f"class {_class(tag)}(Part, frozen=True):"]
    lines += docstring(element["documentation"], 4)
    lines += ["", f'    TAG = "{tag}"']
    if tag in _KEYS:
        lines.append(f'    KEY = "{_KEYS[tag]}"')
    lines += [*_pairs(tag), ""]
    for one in [*first, *_children(tag), *last]:
        lines.append(f"    {one}")
        lines += docstring(one.doc, 4)
    return "\n".join(lines) + "\n"


def docstring(text: str, indent: int, more: Iterable[str] = ()) -> list[str]:
    """A text as documentation, on one line where it fits."""
    space, rest = " " * indent, list(more)
    text = text.replace("\\", "\\\\")
    if not rest and len(text) + indent + 6 <= WIDTH and not text.endswith('"'):
        return [f'{space}"""{text}"""']
    lines = _wrapped(text, indent, 3)
    return [f'{space}"""{lines[0]}', *(f"{space}{line}" for line in lines[1:]), *rest, f'{space}"""']


def _wrapped(text: str, indent: int, first: int = 0) -> list[str]:
    """Lines of a text; `first`: what stands before it on the first line."""
    lines = textwrap.wrap("x" * first + text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    return [lines[0][first:], *lines[1:]]


def elements() -> str:
    """The module of methods."""
    _checked()
    imports = sorted({_class(tag) for tag in _parts() if _used(_class(tag))})
    taken = "\n".join(f"    {name}," for name in imports)
    head = f'''"""What a test is made of, for the builder: a method for each element, with its attributes as arguments.

{_MADE}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from wiregauge.config.building import Building, given, values_of
from wiregauge.config.parts import (
{taken}
)

__all__ = ["Elements"]


class Elements(Building):
    """Every method adds an element and returns the test itself."""

{chr(10).join(line for method in _METHODS for line in _pairs(method.tags[0]))}
'''
    return head + f"\n{_begin()}" + "".join(f"\n{_method(method)}" for method in _METHODS)


def _used(name: str) -> bool:
    """Whether a method takes parts of this kind."""
    tags = [tag for method in _METHODS for tag in method.tags]
    kinds = [child.kind for tag in tags for child in _CHILDREN.get(tag, {}).values()]
    return name == "Host" or any(name in kind.replace("[", " ").replace("]", " ").split() for kind in kinds)


def _begin() -> str:
    """The test itself, and the attributes of its network."""
    test, network = (_declared()[tag]["attributes"] for tag in ("test", "network"))
    first = [_argument(one) for one in test if one["name"] in ("name", "seed")]
    last = [_argument(one) for one in (*test, *network) if one["name"] not in ("name", "seed")]
    lines = _signature("__init__", first, last, "None")
    lines += _told(_declared()["test"]["documentation"], [*first, *last])
    lines.append("        super().__init__(name)")
    for tag, attributes in (("test", test), ("network", network)):
        values = ", ".join(f'"{one["name"]}": {_name(one["name"])}' for one in attributes)
        if tag == "test":
            lines.append(f"        self._fill(self._root, {{{values}}})")
            lines += [
                '        for section in ("network", "flows", "tasks"):',
                "            self._section(section)",
            ]
        else:
            lines.append(f'        self._say("{tag}", {{{values}}})')
    return "\n".join(lines) + "\n"


def _method(method: Method) -> str:
    first, last, doc = _arguments(method)
    lines = _signature(method.name, first, last, "Self")
    lines += _told(f"{doc} {method.note}".strip(), [*first, *last])
    tag = "kind" if len(method.tags) > 1 else f'"{method.tags[0]}"'
    if {"between", "link"} & set(method.by_place):
        ends = next(name for name in method.by_place if name in ("between", "link"))
        others = '"a", "b", "kind"' if len(method.tags) > 1 else '"a", "b"'
        values = f'{{"{ends}": f"{{a}} {{b}}", **given(locals(), {others})}}'
    elif method.name == "host_model":
        lines.append("        own = {} if host is None else values_of(host)")
        values = '{**given(locals(), "host", "own"), **own}'
    else:
        values = "given(locals())"
    if method.section:
        lines.append(f'        return self._add("{method.section}", {tag}, {values})')
    else:
        lines.append(f"        return self._say({tag}, {values})")
    return "\n".join(lines) + "\n"


def _arguments(method: Method) -> tuple[list[Argument], list[Argument], str]:
    """By place, by name, and what the method does."""
    declared = [_declared()[tag] for tag in method.tags]
    doc = declared[0]["documentation"]
    attributes: dict[str, dict[str, Any]] = {}
    for element in declared:
        for attribute in element["attributes"]:
            attributes.setdefault(attribute["name"], attribute)
    if len(declared) > 1:
        doc = " ".join(f"`{element['name']}`: {element['documentation']}" for element in declared)
    held = _children(method.tags[0])
    if method.name == "host_model":
        # Its values are those of a host.
        of_host = {attribute["name"] for attribute in _declared()["host"]["attributes"]}
        attributes = {name: one for name, one in attributes.items() if name not in of_host}
        held = [Argument("host", "Host | None", "None", "The values that it has.")]
    # What names one and may be one is both.
    held = [
        replace(child, doc=f"{attributes[child.name]['documentation']} Or: {child.doc}")
        if child.name in attributes
        else child
        for child in held
    ]
    taken = {child.name for child in held}
    everywhere = {
        name for name in attributes if all(name in {a["name"] for a in one["attributes"]} for one in declared)
    }
    by_name = {
        _name(name): _argument(one, needed=one["required"] and name in everywhere)
        for name, one in attributes.items()
        if _name(name) not in taken
    }
    by_name |= {child.name: child for child in held}
    first: list[Argument] = []
    for name in method.by_place:
        if name == "kind":
            first.append(Argument("kind", "str", "", f"One of {', '.join(method.tags)}."))
        elif name in ("between", "link"):
            given = by_name.pop(name)
            first += [Argument("a", "str", "", given.doc), Argument("b", "str", "", "The other end.")]
        else:
            first.append(by_name.pop(_name(name)))
    return first, list(by_name.values()), doc


def _signature(name: str, first: list[Argument], last: list[Argument], gives: str) -> list[str]:
    words = ["self", *map(str, first), *(["*", *map(str, last)] if last else [])]
    line = f"    def {name}({', '.join(words)}) -> {gives}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"    def {name}(", *(f"        {word}," for word in words), f"    ) -> {gives}:"]


def _told(doc: str, arguments: list[Argument]) -> list[str]:
    told = ["", "        Args:"]
    for one in arguments:
        told += [
            f"            {line}" if number == 0 else f"                {line}"
            for number, line in enumerate(_wrapped(f"{one.name}: {one.doc}", 16))
        ]
    return docstring(doc, 8, told)
