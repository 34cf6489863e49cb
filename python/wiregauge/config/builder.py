"""A test written in Python instead of XML.

Each call adds one element of the test language and takes its attributes, with the same names (`from_` for `from`,
`_` for `-`) and the same quantities as text: `"2ms"`, `"64B"`. Nothing is checked on the way; `compile()` checks
all of it with the very checks of a file, and its messages name the element a call has made.

    test = (
        Test("first", seed=1)
        .end_system("mac")
        .end_system("sensor")
        .link("mac", "sensor", rate="1Gbit/s")
        .flow(10, protocol="udp", from_="mac", to="sensor")
        .send(10, period="2ms", payload="64B", count=1000)
        .receive(10)
        .limit("lost", at_most=0)
    )
    campaign = test.compile().campaign
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lxml import etree

from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.config.loading import Loaded, compile_tree
from wiregauge.config.schema import NAMESPACE

Value = str | int | None
"""An attribute; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault of a relay; `sequence` as in the test language (`"5 17 100-110"`) or as numbers."""

    kind: str
    sequence: str | Iterable[int]
    to: str | None = None


class Test:
    """A test under construction; every method adds an element and returns the test itself."""

    __test__ = False  # the name is the field's; pytest must not take it for a test case

    def __init__(self, name: str, seed: int | None = None) -> None:
        self._name = name
        self._file = f'Test("{shown(name)}")'
        default: Any = {None: NAMESPACE}  # the stubs know no default namespace
        self._root = etree.Element(f"{{{NAMESPACE}}}test", nsmap=default)
        self._set(self._root, {"name": name, "seed": seed})
        self._sections: dict[str, etree._Element] = {}
        for required in ("network", "flows", "tasks"):
            self._section(required)

    def end_system(self, name: str) -> Self:
        """A host that sends, receives or relays."""
        return self._add("network", "end-system", {"name": name})

    def switch(self, name: str, *, kind: str | None = None, buffer: str | None = None) -> Self:
        """A switch."""
        return self._add("network", "switch", {"name": name, "kind": kind, "buffer": buffer})

    def link(self, a: str, b: str, *, rate: str, delay: str | None = None) -> Self:
        """A full-duplex link; an end may name a port of a switch: `"sw1:3"`."""
        return self._add("network", "link", {"between": f"{a} {b}", "rate": rate, "delay": delay})

    def flow(
        self,
        id: int,  # noqa: A002 - the attribute's name in the test language
        *,
        protocol: str,
        from_: str,
        to: str,
        deadline: str | None = None,
        vlan: int | None = None,
        priority: int | None = None,
    ) -> Self:
        """A stream of messages from one end system to another."""
        attributes: dict[str, Value] = {"id": id, "protocol": protocol, "from": from_, "to": to}
        attributes |= {"deadline": deadline, "vlan": vlan, "priority": priority}
        return self._add("flows", "flow", attributes)

    def timing(
        self, *, warm_up: str | None = None, duration: str | None = None, drain: str | None = None
    ) -> Self:
        """Times of every run: before the measured part, the measured part, and after it."""
        self._set(self._section("tasks"), {"warm-up": warm_up, "duration": duration, "drain": drain})
        return self

    def send(
        self,
        flow: int,
        *,
        period: str,
        payload: str,
        fill: str | None = None,
        count: int | None = None,
        offset: str | None = None,
    ) -> Self:
        """The sender of a flow."""
        attributes: dict[str, Value] = {"flow": flow, "period": period, "payload": payload}
        return self._add("tasks", "send", attributes | {"fill": fill, "count": count, "offset": offset})

    def receive(self, flow: int, *, on: str | None = None) -> Self:
        """The receiver of a flow."""
        return self._add("tasks", "receive", {"flow": flow, "on": on})

    def relay(
        self, flow: int, *, on: str | None = None, through: str | None = None, faults: Sequence[Fault] = ()
    ) -> Self:
        """Turns the messages of a flow round, with planted faults."""
        relay = etree.SubElement(self._section("tasks"), f"{{{NAMESPACE}}}relay")
        self._set(relay, {"flow": flow, "on": on, "through": through})
        for fault in faults:
            numbers = fault.sequence
            sequence = numbers if isinstance(numbers, str) else " ".join(map(str, numbers))
            node = etree.SubElement(relay, f"{{{NAMESPACE}}}fault")
            self._set(node, {"kind": fault.kind, "sequence": sequence, "to": fault.to})
        return self

    def inject(
        self, *, on: str, to: str, load: str, payload: str | None = None, burst: int | None = None
    ) -> Self:
        """Background load."""
        attributes: dict[str, Value] = {"on": on, "to": to, "load": load, "payload": payload, "burst": burst}
        return self._add("tasks", "inject", attributes)

    def axis(self, of: str, values: Iterable[str | int], *, flow: Sequence[int] | None = None) -> Self:
        """A swept parameter; the last axis added varies fastest."""
        flows = None if flow is None else " ".join(map(str, flow))
        return self._add("sweep", "axis", {"of": of, "values": " ".join(map(str, values)), "flow": flows})

    def repeat(self, times: int) -> Self:
        """Measures every point several times; add it after the axes."""
        return self._add("sweep", "repeat", {"times": times})

    def limit(
        self,
        measure: str,
        *,
        flow: int | None = None,
        at_most: str | int | None = None,
        at_least: str | int | None = None,
    ) -> Self:
        """A bound on a measure, for one flow or for all."""
        attributes: dict[str, Value] = {"flow": flow, "measure": measure}
        return self._add("limits", "limit", attributes | {"at-most": at_most, "at-least": at_least})

    def to_xml(self) -> str:
        """The test as a file of the test language."""
        etree.indent(self._root)
        body = etree.tostring(self._root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'

    def write(self, path: Path | str) -> None:
        """Writes the test as a file, UTF-8."""
        Path(path).write_text(self.to_xml(), encoding="utf-8")

    def compile(self) -> Loaded:
        """The campaign; raises `TestError` with every diagnostic, named by the elements the calls made."""
        xml = self.to_xml().encode()
        campaign = compile_tree(self._root, self._file)
        return Loaded(campaign, xml, hashlib.sha256(xml).hexdigest(), tuple(campaign["warnings"]))

    def _section(self, tag: str) -> etree._Element:
        if tag not in self._sections:
            self._sections[tag] = etree.SubElement(self._root, f"{{{NAMESPACE}}}{tag}")
        return self._sections[tag]

    def _add(self, section: str, tag: str, attributes: dict[str, Value]) -> Self:
        self._set(etree.SubElement(self._section(section), f"{{{NAMESPACE}}}{tag}"), attributes)
        return self

    def _set(self, node: etree._Element, attributes: dict[str, Value]) -> None:
        for name, value in attributes.items():
            if value is None:
                continue
            try:
                node.set(name, str(value))
            except ValueError:
                tag = f"<{etree.QName(node).localname}>"
                message = f'{name} "{shown(str(value))}" holds characters no XML file can'
                raise TestError([Diagnostic(self._file, 0, tag, message, "", "remove them")]) from None
