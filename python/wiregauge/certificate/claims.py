"""What a certificate claims: bounds of flows, limits that are kept, places that lose nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from .curves import later, left_over, longest_delay, one_after_another, total
from .network import Network
from .reading import (
    ZERO,
    Curve,
    Node,
    RefutedError,
    Service,
    brief,
    index,
    maybe,
    number,
    parts,
    pieces_of,
    refuted,
    said,
    text,
    timed,
    unreadable,
)
from .sets import Sets
from .steps import Analysis, least

__all__ = ["Claims"]


class _Arrivals(Protocol):
    """Arrivals of flows at their hops."""

    fifo: bool

    def own(self, hop: int) -> Curve | None:
        """Those of the flow of a hop."""

    def others(self, hop: int) -> Curve | None:
        """Those of all other flows there."""

    def of_flow(self, flow: int) -> Curve:
        """Those of a flow where it enters the network."""


class _OneByOne:
    """By the shifts of an analysis."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.fifo = analysis.fifo

    def own(self, hop: int) -> Curve | None:
        shift = self.analysis.shifts[hop]
        return None if shift is None else later(self.of_flow(self.analysis.network.hops[hop].flow), shift)

    def others(self, hop: int) -> Curve | None:
        network = self.analysis.network
        curves = [self.own(other) for other in network.at[network.hops[hop].node] if other != hop]
        known = [curve for curve in curves if curve is not None]
        return None if len(known) < len(curves) else total(known) if known else [(ZERO, ZERO)]

    def of_flow(self, flow: int) -> Curve:
        return self.analysis.curves[flow]


class _Together:
    """By sets."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.fifo = sets.analysis.fifo

    def own(self, hop: int) -> Curve | None:
        return self.sets.of([hop])

    def others(self, hop: int) -> Curve | None:
        return self.sets.others(self.sets.network.hops[hop].node, [hop])

    def of_flow(self, flow: int) -> Curve:
        return self.sets.analysis.curves[flow]


class Claims:
    """The bounds of a certificate, as far as they follow from its analyses."""

    def __init__(
        self, network: Network, analyses: Sequence[Analysis], sets: Sequence[Any], time_unit: str
    ) -> None:
        self.network = network
        self.time_unit = time_unit
        self.resting: set[tuple[str, str]] = set()
        """Flow and target of bounds that rest on a theorem."""
        self.sets = sets
        self.known: dict[int, Sets] = {}
        self.analyses = analyses
        self.bounds: dict[tuple[str, str], Fraction] = {}
        self.proved = 0
        self.unchecked: list[str] = []
        self.assumed: set[str] = set()
        self.limits = 0

    def _chosen(self, value: Any) -> Analysis:
        return self.analyses[index(value, len(self.analyses), "analysis of a proof")]

    def proof(self, one: Any) -> Fraction | None:
        """The bound that a proof gives. Raises `RefutedError`."""
        flows = self.network.flows
        at, end = parts(one["of"], "target of a proof")
        flow = flows[index(at, len(flows), "flow of a proof")]
        target = flow.targets[index(end, len(flow.targets), "target of a proof")]
        if (one["flow"], one["target"]) != (flow.name, target.name):
            unreadable(f"a proof names {text(one['flow'], 'flow')} and is of flow {flow.name}")
        stated = maybe(one["delay"], f"bound of flow {flow.name}")
        if stated is None:
            return None
        analyses = [self._chosen(place) for place in parts(one["analyses"], "analyses of a proof")]
        waits = sum((self.network.hops[hop].wait for hop in target.hops), target.wait)
        if flow.theorem is not None:
            self.assumed.add(f"arrivals of flow {flow.name}: {flow.theorem}")
        if flow.regulated:
            waits += number(one["released"], f"release of flow {flow.name}")
            self.assumed.add(
                f"release of flow {flow.name} by its regulator: shaping for free (Specht, Samii, ECRTS 2016; "
                "Le Boudec, IEEE/ACM Trans. Networking 26, 2018)"
            )
        if one["by"] == "sum":
            found = self._sum(target.hops, analyses)
        elif one["by"] == "path":
            found = self._path(target.hops, analyses, one)
        else:
            unreadable(f"a proof by {text(one['by'], 'way')} is not known")
        for analysis in analyses:
            self.assumed |= analysis.assumed
        if found is None or stated < found + waits:
            refuted(
                f"bound of flow {flow.name} to {target.name}",
                stated,
                None if found is None else found + waits,
            )
        return stated

    def _sum(self, hops: Sequence[int], analyses: Sequence[Analysis]) -> Fraction | None:
        """The sum of the delays of servers."""
        found = ZERO
        for hop in hops:
            node, here = self.network.hops[hop].node, None
            for analysis in analyses:
                here = least(here, analysis.delays[node])
            if here is None:
                return None
            found += here
        return found

    def _path(self, hops: Sequence[int], analyses: Sequence[Analysis], one: Any) -> Fraction | None:
        """The delay with the left-over services of a path: as one server, or one by one where waits vary."""
        network = self.network
        lefts = [pieces_of(left, "left-over service") for left in parts(one["left"], "left-over services")]
        arrivals = self._arrivals(one, analyses)
        if len(lefts) != len(hops) or len(analyses) != 1:
            unreadable("a proof does not have one left-over service for each server of its path")
        for hop, left in zip(hops, lefts, strict=True):
            self._left(hop, analyses[0], arrivals, left)
        flow = network.flows[network.hops[hops[0]].flow]
        if any(network.hops[hop].variation for hop in hops[1:]):
            found = ZERO
            for hop, left in zip(hops, lefts, strict=True):
                curve = arrivals.own(hop)
                here = None if curve is None else longest_delay(curve, left)
                if here is None:
                    return None
                found += here
            return found
        whole = lefts[-1]
        for left in reversed(lefts[:-1]):
            # Behind every server but the last, a frame is received completely before it goes on.
            frame = flow.frame if network.packetizer else ZERO
            whole = one_after_another([(rate, latency + frame / rate) for rate, latency in left], whole)
        curve = arrivals.of_flow(network.hops[hops[0]].flow)
        return longest_delay(later(curve, network.hops[hops[0]].variation), whole) if whole else None

    def _arrivals(self, one: Any, analyses: Sequence[Analysis]) -> _Arrivals:
        """The arrivals on which left-over services rest: of flows one by one, or of sets."""
        if "sets" not in one:
            return _OneByOne(self._chosen(one["arrivals"]))
        place = index(one["sets"], len(self.sets), "sets of a proof")
        if len(analyses) != 1:
            unreadable("a proof with sets rests on one analysis")
        if place not in self.known:
            self.known[place] = Sets(self.network, analyses[0], self.sets[place])
            self.known[place].check()
        if self.known[place].analysis is not analyses[0]:
            unreadable("sets rest on two analyses")
        return _Together(self.known[place])

    def _left(self, hop: int, services: Analysis, arrivals: _Arrivals, left: Service) -> None:
        """Checks a left-over service."""
        node = self.network.hops[hop].node
        service, cross = services.services[node], arrivals.others(hop)
        if arrivals.fifo != services.fifo:
            unreadable("a proof has two orders of service")
        found = (
            left_over(service, cross, fifo=arrivals.fifo) if service is not None and cross is not None else []
        )
        if arrivals.fifo and len(left) > 1:
            raise RefutedError(
                f"left-over service at {said(node)}: in order of arrival only one piece holds at a time"
            )
        for rate, latency in left:
            if not any(rate <= fastest and latency >= soonest for fastest, soonest in found):
                raise RefutedError(
                    f"left-over service at {said(node)}: rate {brief(rate)} after {brief(latency)} does not follow"
                )

    def conclude(self, conclusions: Any, proofs: Any) -> None:
        """Checks every conclusion. Raises `RefutedError`."""
        shown = [self.proof(one) for one in parts(proofs, "proofs")]
        if len(self.known) < len(self.sets):
            unreadable("it has sets that no proof uses")
        for one in parts(conclusions, "conclusions"):
            key = text(one["flow"], "flow of a conclusion"), text(one["target"], "target of a conclusion")
            what, claimed = f"bound of flow {key[0]} to {key[1]}", number(one["delay"], "a bound")
            if "slowest_of" in one:
                names = {text(way, "way of a flow") for way in parts(one["slowest_of"], "ways of a flow")}
                if names != self.network.ends(key[0]):
                    raise RefutedError(f"{what}: it is not the slowest of all ways of the flow")
                ways = [self.bounds[key[0], way] for way in names]
                if not ways or claimed < max(ways):
                    refuted(what, claimed, max(ways, default=None))
            elif one.get("proof") is None:
                self.resting.add(key)
                self._unchecked(what, claimed, one, None)
            else:
                place = index(one["proof"], len(shown), "proof of a conclusion")
                if (proofs[place]["flow"], proofs[place]["target"]) != key:
                    unreadable(f"the {what} names the proof of another one")
                found = shown[place]
                if found is None or claimed < found:
                    if "theorem" not in one:
                        refuted(what, claimed, found)
                    self.resting.add(key)
                    self._unchecked(what, claimed, one, found)
                else:
                    self.proved += 1
            self.bounds[key] = max(claimed, self.bounds.get(key, ZERO))

    def _unchecked(self, what: str, claimed: Fraction, one: Any, found: Fraction | None) -> None:
        shown = "" if found is None else f" (proved without it: {timed(found, self.time_unit)})"
        theorem = text(one["theorem"], "theorem of a conclusion")
        self.unchecked.append(f"{what}, {timed(claimed, self.time_unit)}{shown}, rests on {theorem}")

    def keep(self, limits: Any, places: Any) -> None:
        """Checks limits that are called kept, and whether frames of these flows may be lost. Raises `RefutedError`."""
        kept = set()
        for one in parts(limits, "limits"):
            if one["kept"] is not True:
                continue
            key = text(one["flow"], "flow of a limit"), text(one["target"], "target of a limit")
            at_most, bound = number(one["at_most"], "a limit"), self.bounds.get(key)
            if bound is None or bound > at_most:
                stated = "unbounded" if bound is None else timed(bound, self.time_unit)
                above = f"{stated} exceeds {timed(at_most, self.time_unit)}"
                raise RefutedError(f"limit of flow {key[0]} to {key[1]}: {above}")
            kept.add(key[0])
            self.limits += 1
        names = [flow.name for flow in self.network.flows]
        for place in parts(places, "places"):
            flows = {
                names[index(flow, len(names), "flow of a place")] for flow in parts(place["flows"], "flows")
            }
            if (lost := flows & kept) and not self._takes_all(place):
                whose, name = ", ".join(sorted(lost)), text(place["place"], "name of a place")
                self.unchecked.append(f"limits of flow {whose}: {name} accepts all frames")
        for node in {node for analysis in self.analyses for node in analysis.full}:
            flows = {names[self.network.hops[hop].flow] for hop in self.network.at[node]}
            if lost := flows & kept:
                self.unchecked.append(
                    f"limits of flow {', '.join(sorted(lost))}: {said(node)} has room for all frames"
                )

    def _takes_all(self, place: Any) -> bool:
        if place.get("room") is not None:
            return self._has_room(place)
        return place.get("contract") is not None and self._keeps_contract(place)

    def _has_room(self, place: Any) -> bool:
        sum_of_all = ZERO
        for at, most in parts(place["waiting"], "what waits at a place"):
            hops = [self.network.hop(one) for one in parts(at, "steps at a place")]
            held = self._backlog({self.network.hops[hop].node for hop in hops})
            flows = self.network.flows
            if any(
                flows[self.network.hops[hop].flow].regulated and self.network.hops[hop].before is None
                for hop in hops
            ):
                held = None
            held = least(held, maybe(most, "what waits at most"))
            if held is None:
                return False
            sum_of_all += held
        return sum_of_all <= number(place["room"], "room")

    def _backlog(self, nodes: set[Node]) -> Fraction | None:
        found = ZERO
        for node in nodes:
            here = None
            for analysis in self.analyses:
                here = here if node in analysis.full else least(here, analysis.backlogs[node])
            if here is None:
                return None
            found += here
        return found

    def _keeps_contract(self, place: Any) -> bool:
        contract = [number(value, "contract") for value in parts(place["contract"], "contract")]
        allowed, slowest, run = contract
        burst, rate = ZERO, ZERO
        for at, soonest in parts(place["comes"], "what comes to a place"):
            hop, shift = self.network.hop(at), None
            for analysis in self.analyses:
                shift = least(shift, analysis.shifts[hop])
            if shift is None:
                return False
            own_burst, own_rate = self.network.flows[self.network.hops[hop].flow].curve[0]
            burst += own_burst + own_rate * max(shift - number(soonest, "least time", None), ZERO)
            rate += own_rate
        return burst + max(rate - slowest, ZERO) * run <= allowed
