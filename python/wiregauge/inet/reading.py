"""A simulation of INET as a test: its network, its sources of UDP packets, gates and shapers of its switches.

What would change frames or their instants and is not carried is refused by name. Other settings that are not carried
are named: whoever asks for a test decides whether they matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from lxml import etree
from msgspec import Struct

from wiregauge.config.schema import NAMESPACE
from wiregauge.inet.ned import Library, Link, Ned, Node, without
from wiregauge.inet.settings import Settings, configurations, fits, read_settings
from wiregauge.inet.values import Call, InetError, Quantity, UnreadableError, Value, evaluated, picos
from wiregauge.plan.quantity import rate_text, time_text

__all__ = ["Read", "read_inet"]

_HOSTS: Final = frozenset({"TsnDevice", "StandardHost", "TsnClock"})
_SWITCHES: Final = frozenset({"TsnSwitch", "EthernetSwitch"})
_SINKS: Final = frozenset({"UdpSinkApp", "UdpSink"})
_SOURCE: Final = "UdpSourceApp"
_CREDIT_BASED: Final = "Ieee8021qCreditBasedShaper"
_CABLE_M: Final = 10
"""Length of a cable for which no file has one, as in INET's `EthernetLink`."""
_SPEED_M_S: Final = 2 * 10**8
"""Speed of propagation there."""
_CLASSES: Final = (
    (0, 0, 0, 0, 0, 1, 1, 1),
    (0, 0, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 1, 1, 2, 2, 2),
    (0, 0, 0, 1, 1, 2, 3, 3),
    (0, 1, 1, 2, 2, 3, 4, 4),
    (0, 1, 1, 2, 2, 3, 4, 5),
    (0, 1, 2, 3, 3, 4, 5, 6),
    (0, 1, 2, 3, 4, 5, 6, 7),
)
"""The class of a priority (row) where a port has as many (column) classes (IEEE Std 802.1Q-2022, Table 8-5)."""
_MOST_ENTRIES: Final = 1024
_UNTIL: Final = re.compile(r"simTime\(\)\s*<\s*(\S+)\s*\?\s*(\S+)\s*:\s*(\S+)")
"""An interval that holds until a time, and another from then on."""
_NO_FRAME: Final = re.compile(
    r"isualiz|isplay|[Rr]ecord|tatistic|[Ff]ormat|annotation|arp\.typename$|\.localPort$|numApps$|TableConfigurator"
    r"|\.configurator\b|ipv4\."
)
"""Parameters that no frame follows from."""
_CHANGING: Final = re.compile(
    r"oscillator|\.clock\b|clockModule|scenarioManager|Configurator|\.channel\.|[Cc]apacity|macLayer|\.source\."
)
"""Parameters that change frames or their instants."""
_CHANGES: Final = (
    ("hasTimeSynchronization", "time synchronisation"),
    ("hasStreamRedundancy", "stream redundancy"),
    ("hasIngressTrafficFiltering", "filtering of incoming traffic"),
    ("hasCutthroughSwitching", "cut-through switching"),
    ("hasFramePreemption", "frame preemption"),
)
"""Features of a node that change frames or their instants."""


class Read(Struct, frozen=True):
    """The test's XML, and the settings that it does not carry."""

    xml: bytes
    left: Sequence[str]


class _Flow(Struct, frozen=True):
    source: str
    destination: str
    payload: int
    period: int
    offset: int
    is_exponential: bool
    count: int | None
    priority: int | None
    name: str


def read_inet(ini: Path, configuration: str | None, paths: Sequence[Path]) -> Read:
    """The test of one configuration. NED files are looked for beside `ini` and below `paths`.

    Raises InetError, OSError, UnicodeDecodeError.
    """
    settings = read_settings(ini, configuration)
    name = settings.option("network")
    if name is None:
        there = ", ".join(configurations(ini))
        raise InetError(
            [f"{ini}: names no network; name a configuration with --config: {there or 'it has none'}"]
        )
    library = Library([ini.resolve().parent, *paths])
    return _Reading(settings, library, library.network(name)).read(configuration or name.rpartition(".")[2])


class _Reading:
    def __init__(self, settings: Settings, library: Library, ned: Ned) -> None:
        self._settings = settings
        self._library = library
        self._reasons: list[str] = []
        self._kinds = {node.name: kind for node in ned.nodes if (kind := self._kind(node, ned))}
        self._ned = without(ned, frozenset(node.name for node in ned.nodes) - self._kinds.keys())
        used = [end.node for link in self._ned.links for end in link.ends]
        self._ned = without(self._ned, frozenset(self._kinds) - frozenset(used))
        self._names = _names([node.name for node in self._ned.nodes])

    def read(self, title: str) -> Read:
        """Everything, or the reasons why not."""
        limit = self._time("sim-time-limit", self._settings.option("sim-time-limit"))
        root = etree.Element("test", name=re.sub(r"[^A-Za-z0-9 ._-]", "-", title)[:64], seed="1", bench="sim")
        network = etree.SubElement(root, "network", host="ideal")
        self._nodes(network)
        for link in self._ned.links:
            self._link(network, link)
        flows = list(self._flows())
        if not flows and not self._reasons:
            self._reasons.append(f"no node has a {_SOURCE}, so there is nothing to measure")
        if limit is None:
            self._reasons.append("there is no sim-time-limit, so the test has no length")
        left = [
            one for one in self._settings.unused() if not one.is_option and not _NO_FRAME.search(one.pattern)
        ]
        told = {one: f"{one.place}: {one.pattern} = {one.value[:80]}" for one in left}
        self._reasons += [told[one] for one in left if _CHANGING.search(one.pattern)]
        if self._reasons or limit is None:
            raise InetError(list(dict.fromkeys(self._reasons)))
        _write_flows(root, flows, limit, self._names)
        etree.indent(root)
        root.set("xmlns", NAMESPACE)
        return Read(
            b'<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(root) + b"\n", list(told.values())
        )

    # -- nodes and links ------------------------------------------------------------------------------------------

    def _kind(self, node: Node, ned: Ned) -> str:
        """ "host", "switch", or nothing for what carries no traffic."""
        written = self._settings.parameter(f"{node.name}.typename")
        kind = node.kind
        if written is not None:
            value = self._value(f"{node.name}.typename", written)
            kind = value if isinstance(value, str) else ""
        if not kind and node.is_conditional:
            return ""
        for one in self._library.kinds(kind.rpartition(".")[2]):
            if one in _HOSTS:
                return "host"
            if one in _SWITCHES:
                return "switch"
        if any(node.name == end.node for link in ned.links for end in link.ends):
            self._reasons.append(
                f'"{node.name}" is of the type {kind or "that nothing names"}, no host and no switch in the NED files '
                "here; a type of another folder needs --ned-path"
            )
        return ""

    def _nodes(self, network: etree._Element) -> None:
        for node in self._ned.nodes:
            for feature, what in _CHANGES:
                if self._given(f"{node.name}.{feature}") is True:
                    self._reasons.append(f'"{node.name}" has {what}')
            name = self._names[node.name]
            if self._kinds[node.name] == "host":
                if self._given(f"{node.name}.hasEgressTrafficShaping") is True:
                    self._reasons.append(f'"{node.name}" has shapers or gates of its own, as a host')
                etree.SubElement(network, "end-system", name=name)
                continue
            delayer = f"{node.name}.bridging.directionReverser.delayer"
            delay = None
            if (kind := self._given(f"{delayer}.typename")) == "PacketDelayer":
                delay = self._given(f"{delayer}.delay")
            elif kind:
                self._reasons.append(f"{delayer} is of the type {kind}, which is not carried")
            # Queues of INET have no bound; this is the greatest that a test knows.
            switch = etree.SubElement(
                network, "switch", name=name, delay=time_text(self._picos(delay, node.name)), buffer="1024MiB"
            )
            if self._given(f"{node.name}.hasEgressTrafficShaping") is True:
                self._ports(switch, node.name)

    def _link(self, network: etree._Element, link: Link) -> None:
        where = " and ".join(end.node for end in link.ends)
        channel = {**self._library.channel(link.channel), **link.parameters}
        rate, other = (self._rate(end.node, end.interface, channel) for end in link.ends)
        if rate is None or rate != other:
            self._reasons.append(
                f"the link between {where} has no rate, or two: set bitrate of both interfaces"
            )
            return
        written = channel.get("delay", "length")
        delay = None if "length" in written else self._written(written, where)
        if delay is None:
            # As `EthernetLink` of INET computes it.
            length = self._written(channel.get("length"), where)
            metres = (
                length.value
                if isinstance(length, Quantity) and length.dimension == "m"
                else Fraction(_CABLE_M)
            )
            delay = Quantity(metres / _SPEED_M_S, "s")
        between = " ".join(
            self._names[end.node] + (f":{end.interface + 1}" if self._kinds[end.node] == "switch" else "")
            for end in link.ends
        )
        etree.SubElement(
            network, "link", between=between, rate=rate_text(rate), delay=time_text(self._picos(delay, where))
        )

    def _rate(self, node: str, interface: int, channel: Mapping[str, str]) -> int | None:
        value = self._given(f"{node}.eth[{interface}].bitrate")
        if value is None:
            value = self._written(channel.get("datarate"), node)
        if not isinstance(value, Quantity) or value.dimension != "bps" or value.value.denominator != 1:
            return None
        return int(value.value)

    # -- ports ----------------------------------------------------------------------------------------------------

    def _ports(self, switch: etree._Element, node: str) -> None:
        for interface in sorted(
            end.interface for link in self._ned.links for end in link.ends if end.node == node
        ):
            queue = f"{node}.eth[{interface}].macLayer.queue"
            count = self._given(f"{queue}.numTrafficClasses")
            number = int(count.value) if isinstance(count, Quantity) else 8
            if not 1 <= number <= 8:
                self._reasons.append(f"{queue}: {number} traffic classes are not between 1 and 8")
                continue
            port = etree.SubElement(switch, "switch-tsn", ports=str(interface + 1))
            members = self._members(queue, number)
            # A class that no priority has carries nothing.
            used = [own for own in range(number) if members[own]]
            for place, own in enumerate(used):
                made = etree.SubElement(
                    port, "traffic-class", number=str(place), priorities=" ".join(map(str, members[own]))
                )
                states = self._gate(f"{queue}.transmissionGate[{own}]")
                # A slope is for the time that the gate is open there, and over the whole cycle in a test.
                share = Fraction(
                    sum(length for is_open, length in states if is_open), sum(one for _, one in states)
                )
                self._shaper(made, f"{queue}.transmissionSelectionAlgorithm[{own}]", share)
            self._gates(port, queue, used)

    def _members(self, queue: str, count: int) -> list[list[int]]:
        kind = self._given(f"{queue}.classifier.typename")
        if kind not in (None, "PcpTrafficClassClassifier"):
            self._reasons.append(f"{queue}: frames are classified by {kind}")
        mapping = self._given(f"{queue}.classifier.mapping")
        rows: Sequence[Sequence[object]] = _CLASSES
        if mapping is not None:
            rows = [
                [int(one.value) if isinstance(one, Quantity) else 0 for one in row]
                if isinstance(row, list)
                else []
                for row in (mapping if isinstance(mapping, list) else [])
            ]
            if len(rows) != 8 or any(len(row) < count for row in rows):
                self._reasons.append(f"{queue}.classifier.mapping has no class for each priority")
                rows = _CLASSES
        return [
            [priority for priority in range(8) if rows[priority][count - 1] == own] for own in range(count)
        ]

    def _shaper(self, into: etree._Element, algorithm: str, share: Fraction) -> None:
        kind = self._given(f"{algorithm}.typename")
        if kind is None or kind == "":
            return
        slope = self._given(f"{algorithm}.idleSlope")
        if kind != _CREDIT_BASED or not isinstance(slope, Quantity) or slope.dimension != "bps":
            self._reasons.append(f"{algorithm}: {kind} is not carried, or has no idleSlope")
            return
        etree.SubElement(into, "cbs", {"idle-slope": rate_text(round(slope.value * share))})

    def _gates(self, port: etree._Element, queue: str, used: Sequence[int]) -> None:
        lists = {own: self._gate(f"{queue}.transmissionGate[{own}]") for own in used}
        cycles = [sum(length for _, length in one) for one in lists.values() if len(one) > 1]
        if not cycles and all(one[0][0] for one in lists.values()):
            return
        cycle = math.lcm(*cycles) if cycles else 10**9
        begins = sorted({at for one in lists.values() for at in _begins(one, cycle)} | {0})
        if len(begins) > _MOST_ENTRIES:
            self._reasons.append(
                f"{queue}: gates change {len(begins)} times in a cycle, above {_MOST_ENTRIES}"
            )
            return
        schedule = etree.SubElement(port, "gate-schedule", {"cycle-time": time_text(cycle)})
        for begin, end in zip(begins, [*begins[1:], cycle], strict=True):
            is_open = [str(place) for place, own in enumerate(used) if _state(lists[own], begin)]
            entry = etree.SubElement(schedule, "gate-entry", {"for": time_text(end - begin)})
            if is_open:
                entry.set("open", " ".join(is_open))

    def _gate(self, gate: str) -> list[tuple[bool, int]]:
        """States of a gate and how long each lasts, ps, from time zero on."""
        first = self._given(f"{gate}.initiallyOpen")
        is_open = first if isinstance(first, bool) else True
        durations = self._given(f"{gate}.durations")
        lengths = [self._picos(one, gate) for one in durations] if isinstance(durations, list) else []
        if not lengths or not sum(lengths):
            return [(is_open, 1)]
        if len(lengths) % 2:
            self._reasons.append(
                f"{gate}: an odd number of durations, with which a cycle differs from the one before it"
            )
            return [(is_open, 1)]
        states = [(is_open if not place % 2 else not is_open, length) for place, length in enumerate(lengths)]
        left = self._picos(self._given(f"{gate}.offset"), gate) % sum(lengths)
        # The offset is where in the period time zero is.
        while left >= states[0][1]:
            left -= states[0][1]
            states.append(states.pop(0))
        if left:
            states = [(states[0][0], states[0][1] - left), *states[1:], (states[0][0], left)]
        return [one for one in states if one[1]]

    # -- sources --------------------------------------------------------------------------------------------------

    def _flows(self) -> Iterator[_Flow]:
        for node in self._ned.nodes:
            count = self._given(f"{node.name}.numApps")
            for number in range(int(count.value) if isinstance(count, Quantity) else 0):
                app = f"{node.name}.app[{number}]"
                kind = self._given(f"{app}.typename")
                if kind == _SOURCE:
                    found = self._flow(node.name, app)
                    if found is not None:
                        yield found
                elif kind not in _SINKS:
                    self._reasons.append(f"{app} is of the type {kind}, which is not carried")

    def _flow(self, node: str, app: str) -> _Flow | None:
        destination = self._given(f"{app}.io.destAddress")
        if destination not in self._names:
            self._reasons.append(
                f"{app}.io.destAddress is {_shown(destination)}, and no node of that name has a link"
            )
            return None
        size = self._given(f"{app}.source.packetLength")
        # A negative offset, which is INET's default, says that the first packet is made at once.
        offset = max(self._picos(self._given(f"{app}.source.initialProductionOffset"), app), 0)
        interval, end = self._interval(app)
        is_exponential = (
            isinstance(interval, Call) and interval.name == "exponential" and len(interval.arguments) == 1
        )
        period = interval.arguments[0] if isinstance(interval, Call) and is_exponential else interval
        if not isinstance(size, Quantity) or size.dimension != "B" or size.value.denominator != 1:
            self._reasons.append(f"{app}.source.packetLength is {_shown(size)}, no number of bytes")
            return None
        if not isinstance(period, Quantity) or self._picos(period, app) <= 0:
            self._reasons.append(
                f"{app}.source.productionInterval is neither constant nor exponential(constant)"
            )
            return None
        length = self._picos(period, app)
        title = self._given(f"{app}.display-name")
        return _Flow(
            node,
            str(destination),
            int(size.value),
            length,
            offset,
            is_exponential,
            None if end is None else max(-((offset - end) // length) + 1, 1),
            self._priority(node, app),
            title if isinstance(title, str) else "",
        )

    def _interval(self, app: str) -> tuple[Value | None, int | None]:
        """From one packet to the next, and, if there is an end, the time from which on none follows another, ps."""
        path = f"{app}.source.productionInterval"
        found = _UNTIL.fullmatch(self._settings.parameter(path) or "")
        if found is None:
            return self._given(path), None
        end, interval, never = (self._value(path, text) for text in found.groups())
        limit = self._time("sim-time-limit", self._settings.option("sim-time-limit"))
        if self._picos(never, path) < (limit or 0):
            self._reasons.append(f"{path}: intervals change at {_shown(end)}")
        return interval, self._picos(end, path)

    def _priority(self, node: str, app: str) -> int | None:
        """The priority in the tag of an application's frames; None without a tag."""
        port = self._given(f"{app}.io.destPort")
        number = int(port.value) if isinstance(port, Quantity) else None
        if self._given(f"{node}.hasOutgoingStreams") is not True:
            return None
        streams = self._given(f"{node}.bridging.streamIdentifier.identifier.mapping")
        tags = self._given(f"{node}.bridging.streamCoder.encoder.mapping")
        for one in streams if isinstance(streams, list) else []:
            if not isinstance(one, dict) or not self._selects(one.get("packetFilter"), number, app):
                continue
            for tag in tags if isinstance(tags, list) else []:
                if isinstance(tag, dict) and tag.get("stream") == one.get("stream"):
                    priority = tag.get("pcp")
                    return int(priority.value) if isinstance(priority, Quantity) else None
            return None
        return None

    def _selects(self, chosen: Value | None, port: int | None, app: str) -> bool:
        """Whether a filter of packets takes those to a UDP port."""
        if chosen == "*" or chosen is None:
            return True
        if isinstance(chosen, Call) and chosen.name == "expr" and isinstance(chosen.arguments[0], str):
            text = re.sub(r"^\s*has\(udp\)\s*&&\s*", "", chosen.arguments[0])
            found = re.fullmatch(r"\s*udp\.destPort\s*==\s*(\d+)\s*", text)
            if found is not None:
                return int(found[1]) == port
        self._reasons.append(
            f"{app}: streams are told apart by {_shown(chosen)}, not by udp.destPort == NUMBER"
        )
        return False

    # -- values ---------------------------------------------------------------------------------------------------

    def _given(self, path: str) -> Value | None:
        """The value of a parameter, in the settings or in the network's own defaults."""
        written = self._settings.parameter(path)
        if written is None:
            written = next(
                (value for pattern, value in self._ned.assigned if fits(_anchored(pattern), path)), None
            )
        return self._written(written, path)

    def _written(self, text: str | None, where: str) -> Value | None:
        return None if text is None else self._value(where, text)

    def _value(self, where: str, text: str) -> Value:
        try:
            return evaluated(text)
        except UnreadableError as error:
            self._reasons.append(f"{where} = {text[:80]}: {error}")
            return ""

    def _picos(self, value: Value | None, where: str) -> int:
        if value is None:
            return 0
        try:
            return picos(value)
        except UnreadableError as error:
            self._reasons.append(f"{where}: {_shown(value)}: {error}")
            return 0

    def _time(self, where: str, text: str | None) -> int | None:
        return None if text is None else self._picos(self._value(where, text), where)


def _anchored(pattern: str) -> str:
    """A pattern of NED, which begins within the network, as one of settings."""
    return f"network.{pattern.removeprefix('*.') if pattern.startswith('*.*') else pattern}"


def _names(given: Sequence[str]) -> dict[str, str]:
    """Names of nodes as tests have them: 15 characters at most, and no two alike."""
    made: dict[str, str] = {}
    for name in given:
        plain = re.sub(r"[^A-Za-z0-9_-]", "-", name)
        short, number = plain[:15], 1
        while short in made.values():
            number += 1
            short = f"{plain[: 14 - len(str(number))]}-{number}"
        made[name] = short
    return made


def _begins(states: Sequence[tuple[bool, int]], cycle: int) -> Iterator[int]:
    """When a gate may change within a cycle of its port."""
    if len(states) < 2:
        return
    at = 0
    while at < cycle:
        for _, length in states:
            yield at
            at += length


def _state(states: Sequence[tuple[bool, int]], at: int) -> bool:
    left = at % sum(length for _, length in states)
    for is_open, length in states:
        if left < length:
            return is_open
        left -= length
    return states[-1][0]


def _shown(value: object) -> str:
    match value:
        case None:
            return "not set"
        case Call(name=name, arguments=arguments):
            return f"{name}({', '.join(map(_shown, arguments))})"
        case Quantity(value=number, dimension=dimension):
            return f"{float(number):g} {dimension}".rstrip()
    return f'"{value}"'


def _write_flows(root: etree._Element, flows: Sequence[_Flow], limit: int, names: Mapping[str, str]) -> None:
    listed = etree.SubElement(root, "flows")
    # A simulation of INET may ask more of a link than it carries.
    tasks = etree.SubElement(root, "tasks", duration=time_text(limit), overload="on")
    for number, flow in enumerate(flows, 1):
        if flow.name:
            listed.append(etree.Comment(f" {re.sub('-{2,}', '-', flow.name).strip('-')} "))
        ends = {"from": names[flow.source], "to": names[flow.destination]}
        made = etree.SubElement(listed, "flow", {"id": str(number), "protocol": "udp", **ends})
        if flow.priority is not None:
            made.set("priority", str(flow.priority))
        send = {"flow": str(number), "period": time_text(flow.period), "payload": f"{flow.payload}B"}
        if flow.offset:
            send["offset"] = time_text(flow.offset)
        if flow.is_exponential:
            send["distribution"] = "exponential"
        if flow.count is not None:
            send["count"] = str(flow.count)
        etree.SubElement(tasks, "send", send)
        etree.SubElement(tasks, "receive", flow=str(number))
