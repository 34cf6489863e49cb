"""The premises of a certificate: servers, flows and the ways of these."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .reading import (
    ZERO,
    Curve,
    Node,
    Service,
    buckets_of,
    index,
    maybe,
    number,
    parts,
    pieces_of,
    text,
    unreadable,
)

__all__ = ["Flow", "Hop", "Network", "Server", "Target"]


@dataclass(frozen=True)
class Hop:
    """A flow at a server; `before`: its previous hop."""

    flow: int
    node: Node
    before: int | None
    wait: Fraction
    variation: Fraction


@dataclass
class Server:
    """An output port, or a processor."""

    service: Service
    capacity: Fraction | None
    windows: list[tuple[Fraction, Fraction]]
    guarded: bool
    preemptable: set[int]
    uncut: Fraction
    ruled: set[int]
    """Classes with a rule beside strict priority."""
    shaped: dict[int, tuple[Fraction, Fraction]]
    """Of credit-based shapers without a gate: least and greatest idle slope."""
    buffers: dict[int, Fraction]

    def closed(self, longest: Fraction) -> Curve:
        """Line time that its windows take, in any time."""
        line = max(rate for rate, _ in self.service)
        burst, rate = ZERO, ZERO
        for bits, period in self.windows:
            lost = bits + longest if self.guarded else bits
            each = lost / period
            burst, rate = burst + lost * max(1 - each / line, ZERO), rate + each
        return [(burst, rate)]


@dataclass
class Target:
    """An end of a flow: its hops in order, and the wait behind them."""

    name: str
    hops: list[int]
    wait: Fraction


@dataclass
class Flow:
    """A flow."""

    name: str
    curve: Curve
    frame: Fraction
    regulated: bool
    first: int
    theorem: str | None
    """What its premises rest on, where that is no number of the network."""
    targets: list[Target] = field(default_factory=list)


class Network:
    """The premises of a certificate."""

    def __init__(self, premises: Any, *, packetizer: Any) -> None:
        if not isinstance(packetizer, bool):
            unreadable("packetizer is neither true nor false")
        self.packetizer = packetizer
        self.servers: dict[str, Server] = {}
        self.flows: list[Flow] = []
        self.hops: list[Hop] = []
        self.after: defaultdict[int, list[int]] = defaultdict(list)
        self.at: defaultdict[Node, list[int]] = defaultdict(list)
        for one in parts(premises["servers"], "servers"):
            self._server(one)
        described = parts(premises["flows"], "flows")
        for one in described:
            self._flow(one)
        behind = self._alone_behind_regulators(described)
        self.passed_on = {
            tuple(one["regulator"]["from"]) for one in described if one.get("regulator") is not None
        }
        """Flows and targets that are no ends: the flow goes on behind a regulator."""
        self.groups = {node: self._groups(hops, behind) for node, hops in self.at.items()}
        self.frames = {
            node: max(self.flows[self.hops[hop].flow].frame for hop in hops) for node, hops in self.at.items()
        }
        self.classes: defaultdict[str, list[int]] = defaultdict(list)
        for server, rank in sorted(self.at):
            self.classes[server].append(rank)

    def _server(self, one: Any) -> None:
        name = text(one["server"], "name of a server")
        if name in self.servers:
            unreadable(f"server {name!r} is given twice")
        windows = [
            (number(bits, "window"), number(period, "period of a window"))
            for bits, period in one.get("windows", ())
        ]
        if any(period == 0 for _, period in windows):
            unreadable(f"server {name!r} has a window without a period")
        preemptable, ruled = set(one.get("preemptable", ())), set(one.get("ruled", ()))
        self.servers[name] = Server(
            pieces_of(one["service"], f"service of {name!r}"),
            maybe(one.get("capacity"), f"capacity of {name!r}"),
            windows,
            bool(one.get("guarded", False)),
            preemptable,
            number(one["uncut"], "uncut part") if preemptable else ZERO,
            ruled,
            {
                rank: (number(slope, "slope"), number(most, "greatest slope"))
                for rank, slope, most in one.get("shaped", ())
            },
            {rank: number(bits, "buffer") for rank, bits in one.get("buffers", ())},
        )

    def _flow(self, one: Any) -> None:
        name = text(one["flow"], "name of a flow")
        first, steps = len(self.hops), parts(one["steps"], f"steps of flow {name}")
        frame = number(one["longest_frame"], f"longest frame of flow {name}")
        curve = buckets_of(one["arrival"], f"arrival of flow {name}")
        theorem = text(one["theorem"], "theorem of a flow") if "theorem" in one else None
        flow = Flow(name, curve, frame, one.get("regulator") is not None, first, theorem)
        for place, step in enumerate(steps):
            if step["server"] not in self.servers:
                unreadable(f"flow {name} passes a server that is not there: {str(step['server'])[:40]!r}")
            before = step["before"]
            before = None if before is None else first + index(before, place, f"step before of flow {name}")
            node = (step["server"], index(step["class"], 256, "class"))
            waits = (number(step[key], f"{key} of flow {name}") for key in ("wait", "variation"))
            if before is not None:
                self.after[before].append(len(self.hops))
            self.at[node].append(len(self.hops))
            self.hops.append(Hop(len(self.flows), node, before, *waits))
        for target in parts(one["targets"], f"targets of flow {name}"):
            at: int | None = first + index(target["last"], len(steps), f"last step of flow {name}")
            hops: list[int] = []
            while at is not None:
                hops.insert(0, at)
                at = self.hops[at].before
            wait = number(target["wait"], f"wait of flow {name}")
            flow.targets.append(Target(text(target["target"], "name of a target"), hops, wait))
        self.flows.append(flow)

    def _alone_behind_regulators(self, described: list[Any]) -> dict[int, str]:
        """First hops of flows whose regulator releases them no faster than the link before: the server before that.

        A flow that shares no queue of the regulator finds it empty where it waits for its bucket.
        """
        queues: defaultdict[tuple[Node, str], list[tuple[int, Fraction]]] = defaultdict(list)
        for flow, one in zip(self.flows, described, strict=True):
            if flow.regulated:
                came, target = one["regulator"]["from"]
                before = self.flows[index(came, len(self.flows), "flow before a regulator")]
                ends = before.targets[index(target, len(before.targets), "target before a regulator")]
                over = self.hops[ends.hops[-1]].node[0]
                rate = number(one["regulator"]["rate"], "rate of a regulator")
                queues[self.hops[flow.first].node, over].append((flow.first, rate))
        alone = {}
        for (_, over), entering in queues.items():
            (hop, rate), *others = entering
            capacity = self.servers[over].capacity
            if not others and capacity is not None and rate <= capacity:
                alone[hop] = over
        return alone

    def _groups(self, hops: list[int], behind: dict[int, str]) -> list[tuple[str | None, list[int]]]:
        """Hops by the server over whose link they come; those that begin here by themselves."""
        links: defaultdict[str, list[int]] = defaultdict(list)
        for hop in hops:
            if (before := self.hops[hop].before) is not None:
                links[self.hops[before].node[0]].append(hop)
        begun = [hop for hop in hops if self.hops[hop].before is None]
        return [*links.items(), *((behind.get(hop), [hop]) for hop in begun)]

    def ends(self, name: str) -> set[str]:
        """The targets of all flows of a name."""
        return {
            target.name
            for place, flow in enumerate(self.flows)
            for number, target in enumerate(flow.targets)
            if flow.name == name and (place, number) not in self.passed_on
        }

    def hop(self, at: Any) -> int:
        """The hop of a flow and a step, by their indices."""
        flow, step = at
        own = self.flows[index(flow, len(self.flows), "flow of a step")]
        hop = own.first + index(step, len(self.hops) - own.first, "step of a flow")
        return hop if self.hops[hop].flow == flow else unreadable("a step is not there")

    def above(self, node: Node) -> list[Node]:
        """The classes that are served first."""
        return [(node[0], rank) for rank in self.classes[node[0]] if rank < node[1]]

    def blocking(self, node: Node) -> Fraction:
        """The longest frame below, or its part that cannot be cut."""
        server = self.servers[node[0]]
        below = [(rank, self.frames[node[0], rank]) for rank in self.classes[node[0]] if rank > node[1]]
        return max(
            (min(f, server.uncut) if self.cuts(node[1], r, server) else f for r, f in below), default=ZERO
        )

    @staticmethod
    def cuts(above: int, below: int, server: Server) -> bool:
        """Whether frames of one class cut those of another."""
        return below in server.preemptable and above not in server.preemptable
