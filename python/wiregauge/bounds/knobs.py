"""The single changes of a network: frame sizes, times, priorities and paths of flows, and rates of links.

A knob lists its legal values, the smallest change first; each value makes another source. Whether it helps is found by
bounding that source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from lxml import etree
from msgspec import Struct

from wiregauge._native import read_quantity
from wiregauge.bounds.networks import Source, read_bytes
from wiregauge.config import reading
from wiregauge.config.groups import expanded
from wiregauge.config.host_files import take_over
from wiregauge.config.structure import local
from wiregauge.plan import Network
from wiregauge.plan.quantity import rate_text, time_text

__all__ = ["Knob", "Knobs", "Value", "bits_per_second", "knobs_of"]

RATES: Final = (10_000_000, 100_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 25_000_000_000,
                40_000_000_000, 100_000_000_000)  # fmt: skip
"""Link rates of IEEE Std 802.3, bit/s."""
BAGS_MS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""The bandwidth allocation gaps of ARINC 664 part 7, ms."""
_MOST_PERIODS: Final = 10
"""The number of times that a period is doubled."""
_MOST_WAYS: Final = 12
_LEAST_PAYLOAD: Final = 12


class Value(Struct, frozen=True):
    """A value of a knob; `factor` is its ratio to the present value, 1 for a path or a priority."""

    text: str
    factor: float
    source: Callable[[], Source]
    """Makes the network with this value; raises `TestError` where it is not allowed."""


class Knob(Struct, frozen=True):
    """A property of a network that can be changed."""

    kind: str
    """`bag`, `frame`, `burst`, `period`, `priority`, `route` or `link-rate`."""
    element: str
    before: str
    count: int
    """The number of values."""
    at: Callable[[int], Value]
    """The value at an index, the smallest change first."""
    ascending: bool = True
    """Whether each value gives bounds no longer than the one before, so that the least change is found by halving."""


class Knobs(Protocol):
    """The knobs of a network."""

    def knobs(self, flows: Sequence[str], way: Sequence[str]) -> Iterator[Knob]:
        """The knobs of flows and of a path's links (names of servers), in the order in which to try them."""


def knobs_of(path: Path, source: Source, run: int) -> Knobs | None:
    """The knobs of a network; None for a format without changeable properties."""
    if source.format == "plan":
        return _Test(path, source, run)
    return _Physical(source) if source.format == "physical" else None


class _Test:
    """Knobs of a test: attributes of its elements, with groups expanded."""

    def __init__(self, path: Path, source: Source, run: int) -> None:
        self._path, self._run = path, run
        root = reading.parse(reading.read(path), str(path))
        take_over(root, str(path), path.parent)
        self._root = expanded(root, str(path)).root
        self._nodes = list(self._root.iter("*"))
        self._place = {node: place for place, node in enumerate(self._nodes)}
        self._of_flows: dict[etree._Element, list[Knob]] = {}
        self._of_servers: dict[str, list[Knob]] = {}
        assert source.planned is not None, "the source of a test has its plan"
        self._network, self._planned = source.planned

    def knobs(self, flows: Sequence[str], way: Sequence[str]) -> Iterator[Knob]:
        own = [node for node in self._all("flow") if node.get("id") in flows]
        own.sort(key=lambda node: flows.index(str(node.get("id"))))
        for server in way:
            if server not in self._of_servers:
                self._of_servers[server] = list(self._links([server]))
            yield from self._of_servers[server]
        for node in own:
            if node not in self._of_flows:
                self._of_flows[node] = list(self._of_flow(node))
            yield from self._of_flows[node]

    def _all(self, tag: str) -> list[etree._Element]:
        return [node for node in self._nodes if local(node) == tag]

    def _value(self, text: str, factor: float, *changes: tuple[etree._Element, str, str]) -> Value:
        """A value that sets attributes of elements."""
        places = [(self._place[node], name, value) for node, name, value in changes]

        def source() -> Source:
            root = deepcopy(self._root)
            nodes = list(root.iter("*"))
            for place, name, value in places:
                nodes[place].set(name, value)
            return read_bytes(etree.tostring(root), self._path, self._run)

        return Value(text, factor, source)

    def _of_flow(self, flow: etree._Element) -> Iterator[Knob]:
        number = str(flow.get("id"))
        element = f"flow {number}"
        sends = [node for node in self._all("send") if node.get("flow") == number]
        if flow.get("bag") is not None:
            yield self._bag(flow, sends, element)
        else:
            yield from self._period(sends, element)
        yield from self._frame(flow, sends, element)
        for node in sends:
            if (burst := int(node.get("burst") or 1)) > 1 and node.get("period") is not None:
                values = [
                    self._value(str(k), burst / k, (node, "burst", str(k))) for k in range(burst - 1, 0, -1)
                ]
                yield Knob("burst", element, str(burst), len(values), values.__getitem__)
        yield from self._priority(flow, element)
        yield from self._route(flow, element)

    def _bag(self, flow: etree._Element, sends: list[etree._Element], element: str) -> Knob:
        bag = read_quantity("time", str(flow.get("bag")))
        values = []
        for longer in BAGS_MS:
            ps = longer * 10**9
            if ps <= bag:
                continue
            # A sender faster than its BAG would queue without end, so its period grows with the BAG.
            slow = [node for node in sends if node.get("period") is not None]
            periods = [
                (node, "period", time_text(least))
                for node in slow
                if read_quantity("time", str(node.get("period")))
                < (least := ps * int(node.get("burst") or 1))
            ]
            also = ", its sender's period with it" if periods else ""
            values.append(self._value(f"{longer}ms{also}", ps / bag, (flow, "bag", f"{longer}ms"), *periods))
        return Knob("bag", element, str(flow.get("bag")), len(values), values.__getitem__)

    def _period(self, sends: list[etree._Element], element: str) -> Iterator[Knob]:
        for node in sends:
            if node.get("period") is None:
                continue
            period = read_quantity("time", str(node.get("period")))
            values = [
                self._value(time_text(period << k), float(1 << k), (node, "period", time_text(period << k)))
                for k in range(1, _MOST_PERIODS + 1)
            ]
            yield Knob("period", element, str(node.get("period")), len(values), values.__getitem__)

    def _frame(self, flow: etree._Element, sends: list[etree._Element], element: str) -> Iterator[Knob]:
        """Shorter frames, with the Lmax of the contract reduced as well."""
        for node in sends:
            name = "frame" if node.get("frame") is not None else "payload"
            if node.get(name) is None:
                continue
            size = read_quantity("size", str(node.get(name)))
            least = 64 if name == "frame" else _LEAST_PAYLOAD
            lmax = flow.get("lmax")

            def value(
                index: int,
                node: etree._Element = node,
                name: str = name,
                size: int = size,
                lmax: str | None = lmax,
            ) -> Value:
                shorter = size - 1 - index
                changes = [(node, name, f"{shorter}B")]
                text = f"{shorter}B"
                if lmax is not None:
                    own = max(64, read_quantity("size", lmax) - (size - shorter))
                    changes.append((flow, "lmax", f"{own}B"))
                    text += f", Lmax {own}B"
                return self._value(text, size / shorter, *changes)

            before = f"{name} {size}B" + (f", Lmax {lmax}" if lmax is not None else "")
            yield Knob("frame", element, before, max(0, size - least), value)

    def _priority(self, flow: etree._Element, element: str) -> Iterator[Knob]:
        protocol = flow.get("protocol")
        if protocol not in ("raw", "be", "rc", "udp") or (protocol == "udp" and flow.get("priority") is None):
            return
        before = int(flow.get("priority") or (4 if protocol == "rc" else 0))
        others = (7, 0) if protocol == "rc" else range(7, -1, -1)
        ranked = sorted((p for p in others if p != before), key=lambda p: (abs(p - before), -p))
        values = [self._value(str(p), 1.0, (flow, "priority", str(p))) for p in ranked]
        yield Knob("priority", element, str(before), len(values), values.__getitem__, ascending=False)

    def _route(self, flow: etree._Element, element: str) -> Iterator[Knob]:
        """Alternative paths of a flow that has one receiver on one network."""
        planned = next((one for one in self._planned.flows if str(one.id) == flow.get("id")), None)
        if planned is None or len(planned.routes) != 1 or any(local(node) == "frer" for node in flow):
            return
        route = planned.routes[0]
        start, *used, end = (self._network.names[node] for node in route.nodes)
        if start == end:
            return
        values = []
        place = self._place[flow]
        for nodes in islice(_ways(self._network, start, end), _MOST_WAYS):
            if nodes == used:
                continue

            def source(nodes: list[str] = nodes) -> Source:
                root = deepcopy(self._root)
                own = list(root.iter("*"))[place]
                for old in [node for node in own if local(node) == "path"]:
                    own.remove(old)
                path = etree.Element(etree.QName(etree.QName(own).namespace, "path"))
                path.set("via", " ".join(nodes))
                if route.network == "B":
                    path.set("network", "B")
                own.append(path)
                return read_bytes(etree.tostring(root), self._path, self._run)

            values.append(Value(" ".join(nodes), 1.0, source))
        yield Knob("route", element, " ".join(used), len(values), values.__getitem__, ascending=False)

    def _links(self, way: Sequence[str]) -> Iterator[Knob]:
        links = self._all("link")
        for server in way:
            node, colon, port = server.rpartition(":")
            for link, element in zip(self._network.links, links, strict=False):
                ends = {(self._network.names[end.node], str(end.port)) for end in link.ends}
                if not colon or (node, port) not in ends:
                    continue
                rate = link.rate_bps
                values = [
                    self._value(rate_text(faster), faster / rate, (element, "rate", rate_text(faster)))
                    for faster in RATES
                    if faster > rate
                ]
                yield Knob(
                    "link-rate",
                    f"link {element.get('between')}",
                    rate_text(rate),
                    len(values),
                    values.__getitem__,
                )


class _Physical:
    """Knobs of a physical network: attributes of its elements."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts: dict[str, Any] = json.loads(source.as_json)

    def knobs(self, flows: Sequence[str], way: Sequence[str]) -> Iterator[Knob]:
        children = self._parts["tree"]["children"]
        network: dict[str, str] = next((one["attributes"] for one in children if one["tag"] == "network"), {})
        afdx = network.get("technology", "").upper() == "AFDX"
        for index, one in enumerate(children):
            own = one["attributes"]
            if one["tag"] == "link":
                ends = (
                    f"{own.get('from')}-{own.get('fromPort', 'o0')}",
                    f"{own.get('to')}-{own.get('toPort', 'i0')}",
                )
                if any(end in way for end in ends):
                    yield from self._link(index, own, network)
            elif one["tag"] == "flow" and own.get("name") in flows:
                yield from self._flow(index, own, afdx=afdx)

    def _value(self, index: int, name: str, text: str, factor: float) -> Value:
        def source() -> Source:
            parts = deepcopy(self._parts)
            parts["tree"]["children"][index]["attributes"][name] = text
            return Source(self._source.file, self._source.format, json.dumps(parts))

        return Value(text, factor, source)

    def _flow(self, index: int, own: dict[str, str], *, afdx: bool) -> Iterator[Knob]:
        element = f"flow {own.get('name')}"
        # A number with its own unit is not changed.
        period, payload = _number(own.get("period")), _number(own.get("max-payload"))
        if period:
            longer = (
                [float(bag) for bag in BAGS_MS if bag > period]
                if afdx
                else [period * (1 << k) for k in range(1, _MOST_PERIODS + 1)]
            )
            values = [self._value(index, "period", f"{one:g}", one / period) for one in longer]
            yield Knob(
                "bag" if afdx else "period", element, f"{period:g} ms", len(values), values.__getitem__
            )
        if payload:
            whole = math.ceil(payload)

            def value(place: int, payload: float = payload, whole: int = whole) -> Value:
                shorter = whole - 1 - place
                return self._value(index, "max-payload", str(shorter), payload / shorter)

            yield Knob("frame", element, f"max-payload {payload:g} B", whole - 1, value)

    def _link(self, index: int, own: dict[str, str], network: dict[str, str]) -> Iterator[Knob]:
        text = own.get("transmission-capacity") or network.get("transmission-capacity")
        rate = bits_per_second(text)
        if rate:
            values = [
                self._value(index, "transmission-capacity", str(faster), faster / rate)
                for faster in RATES
                if faster > rate
            ]
            element = f"link {own.get('from')} to {own.get('to')}"
            yield Knob("link-rate", element, str(text), len(values), values.__getitem__)


def _ways(network: Network, start: str, end: str) -> Iterator[list[str]]:
    """The switches on simple paths from one end system to another, the shortest path first."""
    kinds = {node.name: not node.is_end_system for node in network.nodes}
    near: dict[str, list[str]] = {name: [] for name in network.names}
    for link in network.links:
        a, b = (network.names[node] for node in link.nodes)
        near[a].append(b)
        near[b].append(a)
    waiting: list[list[str]] = [[start]]
    while waiting:
        path = waiting.pop(0)
        for after in near[path[-1]]:
            if after == end and len(path) > 1:
                yield path[1:]
            elif kinds[after] and after not in path and len(waiting) < 10_000:
                waiting.append([*path, after])


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def bits_per_second(text: str | None) -> float | None:
    """A capacity of a physical network; None where it is no number of a known unit."""
    if text is None:
        return None
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)):
        if text.endswith(unit):
            value = _number(text[: -len(unit)])
            return None if value is None else value * size
    return _number(text)
