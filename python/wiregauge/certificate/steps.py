"""The steps of one analysis: stated values that hold together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from .curves import backlog, busy, hull, is_nothing, later, left_over, longest_delay, total
from .network import Network
from .reading import (
    ZERO,
    Curve,
    Node,
    RefutedError,
    Service,
    brief,
    buckets_of,
    index,
    maybe,
    parts,
    pieces_of,
    refuted,
    said,
    text,
    unreadable,
    written,
)

__all__ = ["Analysis", "least"]

_CUT: Final = Fraction(84 + 24, 84)
"""Line time of an express frame that cuts another one: 24 bytes more than its own, which is 84 bytes or more."""


def least(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """The lesser of two bounds, as far as there are any."""
    return min((value for value in (one, other) if value is not None), default=None)


class Analysis:
    """Stated values that hold together."""

    def __init__(self, network: Network, stated: Any) -> None:
        self.network = network
        self.fifo = stated["multiplexing"] == "fifo"
        self.by_delay = stated["shift"] == "delay"
        if not self.fifo and any(server.shaped for server in network.servers.values()):
            unreadable(
                "a shaper holds frames back, and an analysis in arbitrary order rests on servers that do not"
            )
        if stated["multiplexing"] not in ("fifo", "arbitrary") or stated["shift"] not in (
            "delay",
            "left-over",
        ):
            unreadable("an analysis has an unknown order of service or shift")
        self.grouping = stated["grouping"] is True
        self.curves = [flow.curve for flow in network.flows]
        for flow, kept in stated.get("buckets", ()):
            curve = network.flows[index(flow, len(self.curves), "flow with buckets left out")].curve
            some = [curve[index(one, len(curve), "bucket")] for one in parts(kept, "kept buckets")]
            self.curves[flow] = some or unreadable("no bucket is kept")
        shifts = [maybe(shift, "shift") for one in parts(stated["shifts"], "shifts") for shift in one]
        if len(shifts) != len(network.hops):
            unreadable(f"there are {len(shifts)} shifts and {len(network.hops)} steps of flows")
        self.shifts = shifts
        self.nodes = {(one["server"], one["class"]): one for one in parts(stated["nodes"], "nodes")}
        if missing := [node for node in network.at if node not in self.nodes]:
            unreadable(f"an analysis has no step for {said(missing[0])}")
        self.arrivals: dict[Node, Curve | None] = {}
        self.services: dict[Node, Service | None] = {}
        self.delays: dict[Node, Fraction | None] = {}
        self.backlogs: dict[Node, Fraction | None] = {}
        self.full: set[Node] = set()
        self.assumed: set[str] = set()

    def check(self) -> None:
        """Checks every step. Raises `RefutedError`."""
        for node in sorted(self.network.at):
            self._arrival(node)
        for node in sorted(self.network.at):
            self._service(node)
            self._bounds(node)
        needed = self._needed(self.shifts, self.services, self.delays)
        for hop, value in enumerate(needed):
            own = self.shifts[hop]
            if own is not None and (value is None or own < value):
                flow = self.network.flows[self.network.hops[hop].flow].name
                at = said(self.network.hops[hop].node)
                refuted(f"arrival of flow {flow} at {at}: shift", own, value)
        self._cycles(needed)

    def _groups(self, node: Node, shifts: Sequence[Fraction | None]) -> Iterator[Curve | None]:
        network = self.network
        for over, hops in network.groups[node]:
            came: Curve | None = None
            known = [(hop, shift) for hop in hops if (shift := shifts[hop]) is not None]
            if len(known) == len(hops):
                came = total([later(self.curves[network.hops[hop].flow], shift) for hop, shift in known])
            link = network.servers[over] if over is not None and self.grouping else None
            if link is not None and link.capacity is not None:
                frame = max(network.flows[network.hops[hop].flow].frame for hop in hops)
                # The end of a frame that was cut may follow the one that cut it.
                frame = (2 if link.preemptable else 1) * frame if network.packetizer else ZERO
                came = [*(came or ()), (frame, link.capacity)]
            yield came

    def arrival(self, node: Node, shifts: Sequence[Fraction | None]) -> Curve | None:
        """All arrivals at a node; None: unbounded."""
        groups = list(self._groups(node, shifts))
        return None if None in groups else total([curve for curve in groups if curve is not None])

    def _arrival(self, node: Node) -> None:
        own, found = self.nodes[node]["arrival"], self.arrival(node, self.shifts)
        stated = None if own is None else buckets_of(own, f"arrival at {said(node)}")
        self._above(stated or [], found, f"arrivals at {said(node)}")
        self.arrivals[node] = stated

    @staticmethod
    def _above(stated: Curve, found: Curve | None, what: str) -> None:
        """Whether each stated bucket is above one that follows."""
        for burst, rate in stated:
            if not any(burst >= lowest and rate >= slowest for lowest, slowest in found or ()):
                bucket = f"bucket of {brief(burst)} bit and rate {brief(rate)}"
                raise RefutedError(f"{what}: {bucket} is not above {written(found)}")

    def service(self, node: Node, arrivals: dict[Node, Curve | None]) -> Service | None:
        """Service left to a node; None: nothing."""
        network, server, above = self.network, self.network.servers[node[0]], self.network.above(node)
        if node[1] in server.shaped:
            wait = self._credit(node, arrivals)
            return None if wait is None else [(server.shaped[node[1]][0], wait + server.service[0][1])]
        taken: list[Curve] = [[(network.blocking(node), ZERO)]]
        for higher in above:
            sent = self._sent(higher, arrivals)
            if sent is None:
                return None
            factor = _CUT if network.cuts(higher[1], node[1], server) else Fraction(1)
            taken.append([(burst * factor, rate * factor) for burst, rate in sent])
        if server.windows:
            taken.append(server.closed(max(network.frames[one] for one in (*above, node))))
        cross = total(taken)
        return server.service if is_nothing(cross) else left_over(server.service, cross, fifo=False) or None

    def _sent(self, higher: Node, arrivals: dict[Node, Curve | None]) -> Curve | None:
        """What a class above takes of the line: what came, or of a class with a rule what it sends."""
        server = self.network.servers[higher[0]]
        if higher[1] not in server.ruled:
            return arrivals[higher]
        if higher[1] in server.shaped:
            return self._shaped(higher, arrivals)
        departure = self.nodes[higher].get("departure")
        return None if departure is None else buckets_of(departure, f"departures of {said(higher)}")

    def _shaped(self, node: Node, arrivals: dict[Node, Curve | None]) -> Curve | None:
        """What a class with a credit-based shaper sends: no more than came, and than its credit and debt allow."""
        arrival, service = arrivals[node], self.service(node, arrivals)
        late = None if arrival is None or service is None else self.stay(node, arrival, service, alone=False)
        came = [] if arrival is None or late is None else later(arrival, late)
        wait, most = self._credit(node, arrivals), self.network.servers[node[0]].shaped[node[1]][1]
        return None if wait is None else hull([*came, (most * wait + self._debt(node), most)])

    def _debt(self, node: Node) -> Fraction:
        """The greatest debt of a shaped class: its longest frame, begun without credit."""
        server = self.network.servers[node[0]]
        line = server.service[0][0]
        return ((server.capacity or line) - server.shaped[node[1]][0]) * self.network.frames[node] / line

    def _credit(self, node: Node, arrivals: dict[Node, Curve | None]) -> Fraction | None:
        """The longest time for which the credit of a shaped class may grow while others are sent; None: without end."""
        network, server = self.network, self.network.servers[node[0]]
        others: list[Curve | None] = [[(network.blocking(node), ZERO)]]
        if server.windows:
            others.append(server.closed(max(network.frames[one] for one in (*network.above(node), node))))
        for higher in network.above(node):
            if higher[1] in server.shaped:
                # Their credits and this one rise and fall together.
                others.append([(self._debt(higher), server.shaped[higher[1]][1])])
            else:
                others.append(arrivals[higher])
        if None in others:
            return None
        sustained = [min(curve, key=lambda bucket: (bucket[1], bucket[0])) for curve in others if curve]
        room = server.service[0][0] - sum((rate for _, rate in sustained), ZERO)
        fits = room > 0 and server.shaped[node[1]][1] <= room
        return sum((burst for burst, _ in sustained), ZERO) / room if fits else None

    def _is_assumed(self, node: Node) -> bool:
        """Whether the service of a node rests on a theorem that is not checked."""
        server = self.network.servers[node[0]]
        return node[1] in server.ruled and node[1] not in server.shaped

    def _service(self, node: Node) -> None:
        one = self.nodes[node]
        stated = None if one["service"] is None else pieces_of(one["service"], f"service of {said(node)}")
        self.services[node] = stated
        if self._is_assumed(node):
            self.assumed.add(f"service of {said(node)}: {text(one.get('theorem', 'no theorem'), 'theorem')}")
            return
        if one.get("assumed"):
            raise RefutedError(
                f"{said(node)}: values are assumed, and the premises name no rule of the class"
            )
        found = self.service(node, self.arrivals)
        for rate, latency in stated or ():
            if not any(rate <= fastest and latency >= least for fastest, least in found or ()):
                what = f"service left to {said(node)}: rate {brief(rate)} after {brief(latency)}"
                raise RefutedError(f"{what} is not below {written(found)}")
        if one.get("departure") is not None:
            sent, what = buckets_of(one["departure"], "departures"), f"departures of {said(node)}"
            self._above(sent, self._sent(node, self.arrivals), what)

    def stay(
        self, node: Node, arrival: Curve | None, service: Service | None, *, alone: bool | None = None
    ) -> Fraction | None:
        """The longest delay at a node; None: unbounded."""
        if arrival is None or service is None:
            return None
        if alone is None:
            alone = len(self.network.at[node]) == 1
        found = longest_delay(arrival, service)
        return (
            found if self.fifo or (alone and busy(arrival, service) is not None) else busy(arrival, service)
        )

    def _bounds(self, node: Node) -> None:
        one, arrival, service = self.nodes[node], self.arrivals[node], self.services[node]
        delay, held = maybe(one["delay"], "delay"), maybe(one["backlog"], "backlog")
        ruled = self._is_assumed(node)
        self.delays[node], self.backlogs[node] = delay, held
        waits, most = self.stay(node, arrival, service), None
        if arrival is not None and service is not None:
            most = backlog(arrival, service)
        finds_room = self._room(node, self.arrivals, self.delays)
        if delay is not None and finds_room and (waits is None or delay < waits):
            self.full.add(node)
        if finds_room:
            waits, most = least(waits, finds_room[0]), least(most, finds_room[1])
        if ruled and "delay" in one.get("assumed", ()) and delay is not None:
            self.assumed.add(f"delay at {said(node)}: {text(one.get('theorem', 'no theorem'), 'theorem')}")
        elif delay is not None and (waits is None or delay < waits):
            refuted(f"delay at {said(node)}", delay, waits)
        if held is not None and (most is None or held < most):
            refuted(f"backlog at {said(node)}", held, most)

    def _room(
        self, node: Node, arrivals: dict[Node, Curve | None], delays: dict[Node, Fraction | None]
    ) -> tuple[Fraction, Fraction] | None:
        """Delay and backlog of what finds room in a buffer: it, a frame on the line, the classes above."""
        server, above = self.network.servers[node[0]], self.network.above(node)
        alike = not server.windows and not any(one[1] in server.ruled for one in (*above, node))
        if node[1] not in server.buffers or not alike or not self.fifo:
            return None
        taken = []
        for one in above:
            came, late = arrivals[one], delays[one]
            if came is None or late is None:
                return None
            taken.append(later(came, late))
        left = left_over(server.service, total(taken) if taken else [(ZERO, ZERO)], fifo=False)
        room, own = server.buffers[node[1]], self.network.frames[node]
        before = room + max(self.network.blocking(node), own)
        wait = longest_delay([(before, ZERO)], left) if left else None
        return None if wait is None else (wait, room + own)

    def _needed(
        self,
        shifts: Sequence[Fraction | None],
        services: dict[Node, Service | None],
        delays: dict[Node, Fraction | None],
    ) -> list[Fraction | None]:
        """The shift of each hop, as it follows from the ones before; None: unbounded."""
        network = self.network
        needed: list[Fraction | None] = [hop.variation for hop in network.hops]
        for node, hops in network.at.items():
            here = self._here(node, shifts, services[node], delays[node])
            for hop in hops:
                before, own = shifts[hop], here(hop)
                for after in network.after[hop]:
                    varied = network.hops[after].variation
                    needed[after] = None if before is None or own is None else before + own + varied
        return needed

    def _here(
        self,
        node: Node,
        shifts: Sequence[Fraction | None],
        service: Service | None,
        delay: Fraction | None,
    ) -> Callable[[int], Fraction | None]:
        """By how much a node shifts each of its flows."""
        known = [
            (self._sustained(hop), shift)
            for hop in self.network.at[node]
            if (shift := shifts[hop]) is not None
        ]
        if self.by_delay or service is None or len(known) < len(self.network.at[node]):
            return lambda _: delay
        burst = sum((bucket[0] + bucket[1] * shift for bucket, shift in known), ZERO)
        rate = sum((bucket[1] for bucket, _ in known), ZERO)

        def here(hop: int) -> Fraction | None:
            flow, shift = self.network.hops[hop].flow, shifts[hop] or ZERO
            if len(self.curves[flow]) > 1:
                return delay
            own_burst, own_rate = self.curves[flow][0]
            cross = [(burst - own_burst - own_rate * shift, rate - own_rate)]
            left = left_over(service, cross, fifo=self.fifo)
            found = min((latency for fastest, latency in left if fastest >= own_rate), default=None)
            if found is None or (self.network.packetizer and own_rate == 0):
                return delay
            frame = self.network.flows[flow].frame / own_rate if self.network.packetizer else ZERO
            return least(found + frame, delay)

        return here

    def _sustained(self, hop: int) -> tuple[Fraction, Fraction]:
        """The bucket with the least rate of the flow of a hop."""
        return min(self.curves[self.network.hops[hop].flow], key=lambda bucket: (bucket[1], bucket[0]))

    def _cycles(self, needed: list[Fraction | None]) -> None:
        """Checks that the shifts in cycles are the greatest that hold together."""
        cycle = self.in_cycles()
        if not cycle:
            return
        hops = self.network.hops
        within = {
            index
            for index, hop in enumerate(hops)
            if hop.node in cycle and hop.before is not None and hops[hop.before].node in cycle
        }
        nothing = [
            ZERO if hop in within and shift is not None else shift for hop, shift in enumerate(self.shifts)
        ]
        arrivals, services, delays = dict(self.arrivals), dict(self.services), dict(self.delays)
        for node in sorted(cycle):
            arrivals[node] = self.arrival(node, nothing)
            if not self._is_assumed(node):
                services[node] = self.service(node, arrivals)
            finds_room = self._room(node, arrivals, delays)
            delays[node] = self.stay(node, arrivals[node], services[node])
            delays[node] = least(delays[node], finds_room[0] if finds_room else None)
        begun = self._needed(nothing, services, delays)
        for hop in sorted(within):
            own, value, first = self.shifts[hop], needed[hop], begun[hop]
            if own is None or value is None or own > value:
                continue
            if own == 0 or first == 0:
                flow = self.network.flows[hops[hop].flow].name
                raise RefutedError(
                    f"cycle: flow {flow} at {said(hops[hop].node)} may hold with greater shifts as well"
                )

    def in_cycles(self) -> set[Node]:
        """Nodes in cycles of dependencies, and those between cycles."""
        network = self.network
        needs = {
            node: {
                *network.above(node),
                *(
                    network.hops[before].node
                    for hop in hops
                    if (before := network.hops[hop].before) is not None
                ),
            }
            for node, hops in network.at.items()
        }
        return _core(_core(needs), turned=True).keys() & needs.keys()


def _core(needs: dict[Node, set[Node]], *, turned: bool = False) -> dict[Node, set[Node]]:
    """The graph without nodes that need none; `turned`: without nodes that none needs."""
    if turned:
        back: dict[Node, set[Node]] = {node: set() for node in needs}
        for node, others in needs.items():
            for other in others & needs.keys():
                back[other].add(node)
        needs = back
    users: dict[Node, list[Node]] = {node: [] for node in needs}
    count = {node: len(others & needs.keys()) for node, others in needs.items()}
    for node, others in needs.items():
        for other in others & needs.keys():
            users[other].append(node)
    free = [node for node, many in count.items() if many == 0]
    while free:
        gone = free.pop()
        del count[gone]
        for user in users[gone]:
            count[user] -= 1
            if count[user] == 0:
                free.append(user)
    return {node: needs[node] & count.keys() for node in count}
