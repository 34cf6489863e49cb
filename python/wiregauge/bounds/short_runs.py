"""Short runs of one test with different offsets of its senders, and that test with such offsets written into it.

The short form of a test has no warm-up, no faults and few messages: every sender starts greedily, after its own offset.
Messages of a time-triggered flow keep their place in its cycle, since the bound assumes it.
Hosts always take the longest time that their model draws: that may happen, and the bound includes it. Where a message
uses two networks one of them may fail, and its path is then that over the other.
Running the written test repeats the short run: both are compiled from the same file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Final, NoReturn

from lxml import etree
from msgspec import Struct

from wiregauge._native import simulate_offsets
from wiregauge.config import Diagnostic, TestError, load_bytes, reading
from wiregauge.config.groups import expanded
from wiregauge.config.host_files import take_over
from wiregauge.config.structure import local
from wiregauge.plan import Flow, Network, Run, Send, as_json
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.plan.network import EndSystem
from wiregauge.plan.tasks import Bursts

__all__ = ["Journey", "Sender", "ShortRuns", "short_runs"]

_MOST_MESSAGES: Final = 20_000
"""The most messages of a short run; a test with faster senders is simulated for a shorter time."""
_REST: Final = 1_000_000
"""The least offset, ps: room to start earlier than the first sender."""

Way = tuple[tuple[int, int], ...]
"""Output ports (node, port) on the way to a receiver."""


class Sender(Struct, frozen=True):
    """A sender task; the period in ps."""

    flow: int
    period: int
    burst: int


class Journey(Struct, frozen=True):
    """A short run: the longest latency, ps, and its message by flow and receiver, and when messages reached nodes.

    `passages` has flow, message, node, ingress port, time in ps and length in bytes; empty unless requested.
    """

    longest: dict[tuple[int, int], tuple[int, int]]
    passages: tuple[tuple[int, int, int, int, int, int], ...]


class ShortRuns:
    """The short runs of a test."""

    def __init__(
        self, root: etree._Element, file: str, critical_ps: int, places: Sequence[tuple[int, int]]
    ) -> None:
        campaign = load_bytes(etree.tostring(root), Path(file)).campaign
        self._root, self._file = root, file
        self.critical = critical_ps
        """The instant of the greatest interference, ps: earlier frames have passed by then."""
        self.network, self.run = campaign.network, campaign.runs[0]
        self.names = self.network.names
        self.senders = tuple(_sender(send) for send in self.run.sends)
        self.ways = {flow.id: _ways(flow) for flow in self.run.flows}
        self._places = places
        self._texts = as_json(self.network), as_json(self.run)

    @property
    def has_phases_of_its_own(self) -> bool:
        """Whether the test has periodic elements that offsets do not move: background load, gates, or windows."""
        scheduled = any(flow.schedule is not None for flow in self.run.flows)
        return bool(self.run.injects) or '"gate' in self._texts[0] or scheduled

    def kept(self, offsets: Sequence[int]) -> tuple[int, ...]:
        """The offsets, with those of time-triggered flows moved on to their messages' place in the cycle."""
        return tuple(
            offset + (place - offset) % step
            for offset, (place, step) in zip(offsets, self._places, strict=True)
        )

    def simulate(self, offsets: Sequence[Sequence[int]], *, passages: bool = False) -> list[Journey]:
        """Simulates a run for each list of offsets, ps, in the order of the senders."""
        return self._journeys(self._texts, offsets, passages=passages)

    def _journeys(
        self, texts: tuple[str, str], offsets: Sequence[Sequence[int]], *, passages: bool
    ) -> list[Journey]:
        told = json.loads(simulate_offsets(*texts, [list(own) for own in offsets], passages))
        return [
            Journey(
                {(one["flow"], one["receiver"]): (one["latency"], one["sequence"]) for one in run["longest"]},
                tuple(
                    (one["flow"], one["sequence"], one["node"], one["port"], one["time"], one["length"])
                    for one in run["passages"]
                ),
            )
            for run in told
        ]

    def again(self, offsets: Sequence[int]) -> Journey:
        """Simulates the written test with these offsets.

        The result is that of `simulate`, except for background load, which ends with the last message.
        """
        campaign = load_bytes(self.written(offsets), Path(self._file)).campaign
        texts = as_json(campaign.network), as_json(campaign.runs[0])
        return self._journeys(texts, [offsets], passages=False)[0]

    def wire_time(self, node: int, port: int, length: int) -> int:
        """Time of a frame on the link at a port, preamble and gap included, ps."""
        for link in self.network.links:
            if any((end.node, end.port) == (node, port) for end in link.ends):
                return -(-(length + AROUND_FRAME) * 8 * 10**12 // link.rate_bps)
        return 0

    def written(self, offsets: Sequence[int]) -> bytes:
        """The short test with these offsets, as a file."""
        root = deepcopy(self._root)
        sends = [node for node in root.iter("*") if local(node) == "send"]
        for node, offset in zip(sends, offsets, strict=True):
            node.set("offset", _nanos(offset))
        text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        return text + b"\n"


def short_runs(path: Path, longest_s: float, network: str | None = None) -> ShortRuns:
    """The short runs of a test whose messages take at most `longest_s`; raises `TestError`.

    `network`, A or B: the one that flows on both networks use.
    """
    file = str(path)
    root = reading.parse(reading.read(path), file)
    if local(root) != "test":
        _refuse(
            file,
            "network",
            "only a test can be simulated, and this is a network of another tool",
            "name a test",
        )
    take_over(root, file, path.parent)
    root = deepcopy(expanded(root, file).root)
    for node in root.iter("*"):
        # The attributes now hold everything the file says.
        if local(node) in ("host-model", "switch"):
            node.attrib.pop("file", "")
    for sweep in [node for node in root if local(node) == "sweep"]:
        if any(local(node) == "axis" for node in sweep):
            _refuse(
                file,
                "<sweep>",
                "a test that is swept is many networks",
                "leave the sweep out, and search each point by itself",
            )
        root.remove(sweep)
    for node in list(root):
        if local(node) == "faults":
            root.remove(node)
        elif local(node) == "limits":
            for limit in list(node):
                if limit.get("measure") != "latency.max":
                    node.remove(limit)
            if len(node) == 0:
                root.remove(node)
    return _shortened(root, file, int(longest_s * 1e12), network)


def _shortened(root: etree._Element, file: str, longest: int, network: str | None) -> ShortRuns:
    tasks = next(node for node in root if local(node) == "tasks")
    sends = [node for node in root.iter("*") if local(node) == "send"]
    campaign = load_bytes(etree.tostring(root), Path(file)).campaign
    plan = campaign.runs[0]
    _slow(root, campaign.network)
    if network is not None:
        _left(root, plan.flows, network)
    senders = [_sender(send) for send in plan.sends]
    if [int(node.get("flow", "0")) for node in sends] != [sender.flow for sender in senders]:
        _refuse(file, "<tasks>", "its senders have no order of their own", "give each flow one <send>")
    near = [sender.period for sender in senders if sender.period <= 4 * longest]
    critical = _REST + longest + max(near, default=0)
    window = 2 * longest
    counts = [sender.burst * (window // sender.period + 2) for sender in senders]
    while sum(counts) > _MOST_MESSAGES and window > 1:
        window //= 2
        counts = [sender.burst * (window // sender.period + 2) for sender in senders]
    end = critical + 2 * max((sender.period for sender in senders), default=0) + window
    for node, count, sender in zip(sends, counts, senders, strict=True):
        node.attrib.pop("offset-step", "")
        node.attrib.pop("cycle-offset", "")
        node.set("count", str(count))
        node.set("offset", _nanos(critical))
        end = max(end, critical + longest + (count // sender.burst + 1) * sender.period)
    tasks.set("warm-up", "0s")
    injects = any(local(node) == "inject" for node in tasks)
    tasks.attrib.pop("duration", "")
    if injects:
        # Background load takes time to simulate; but every sender sends once, and may begin by its period later.
        latest = max((sender.period for sender in senders), default=0)
        end = critical + max(window, latest + _REST)
    tasks.set("duration", _nanos(end))
    return ShortRuns(root, file, critical, [_place(plan, send) for send in plan.sends])


def _slow(root: etree._Element, network: Network) -> None:
    """Sets the times that hosts draw to the longest."""
    models = {node.name: node.kind.host for node in network.nodes if isinstance(node.kind, EndSystem)}
    for element in [node for node in root.iter("*") if local(node) == "end-system"]:
        model = models.get(element.get("name", ""))
        if model is None:
            continue
        drawn = {
            "send-wake-up": model.send_wake_up,
            "receive-wake-up": model.receive_wake_up,
            "relay-wake-up": model.relay_wake_up,
        }
        longest = {name: one.quantiles[-1][1] for name, one in drawn.items() if len(one.quantiles) > 1}
        if not longest:
            continue
        host = next((node for node in element if local(node) == "host"), None)
        if host is None:
            host = etree.SubElement(element, etree.QName(etree.QName(element).namespace, "host"))
        for name, time in longest.items():
            host.set(name, _nanos(time))


def _left(root: etree._Element, flows: Sequence[Flow], network: str) -> None:
    """Restricts flows on both networks to one of them."""
    both = {str(flow.id) for flow in flows if len({route.network for route in flow.routes}) > 1}
    for node in [node for node in root.iter("*") if local(node) == "flow" and node.get("id") in both]:
        node.set("networks", network)


def _place(run: Run, send: Send) -> tuple[int, int]:
    """The place of a sender's messages in the repeating schedule and its length, ps; length 1 without a schedule."""
    cycles = [
        flow.schedule.period for flow in run.flows if flow.id == send.flow and flow.schedule is not None
    ]
    step = math.gcd(send.period, *cycles) if cycles else 1
    return (run.warm_up + send.offset) % step, step


def _sender(send: Send) -> Sender:
    size = send.pattern.size if isinstance(send.pattern, Bursts) else 1
    return Sender(send.flow, send.period, size)


def _ways(flow: Flow) -> dict[int, list[Way]]:
    """Paths to each receiver, by its number: one on each network."""
    ways: dict[int, list[Way]] = {}
    for route in flow.routes:
        if route.hops:
            way = tuple((hop.from_, hop.from_port) for hop in route.hops)
            ways.setdefault(route.hops[-1].to, []).append(way)
    return ways


def _nanos(time_ps: int) -> str:
    whole, rest = divmod(time_ps, 1000)
    return f"{whole}ns" if not rest else f"{whole}.{rest:03d}".rstrip("0") + "ns"


def _refuse(file: str, element: str, message: str, cure: str) -> NoReturn:
    raise TestError([Diagnostic(file, 0, element, message, "", cure)])
