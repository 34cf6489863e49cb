"""Flows that come over one link together: the arrival curve of several hops at one server, from those before."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .curves import backlog, hull, later, left_over, total
from .network import Network
from .reading import ZERO, Curve, Node, RefutedError, brief, buckets_of, parts, said, unreadable
from .steps import Analysis

__all__ = ["Sets"]

Hops = tuple[int, ...]


class Sets:
    """Curves of sets of hops. Each rests on sets at servers before: without cycles there is no circle of reasons."""

    def __init__(self, network: Network, analysis: Analysis, stated: Any) -> None:
        self.network = network
        self.analysis = analysis
        self.curves: dict[Hops, Curve] = {}
        for one in parts(stated, "sets"):
            hops = tuple(sorted(network.hop(at) for at in parts(one["of"], "steps of a set")))
            if len({network.hops[hop].node for hop in hops}) != 1 or len(set(hops)) != len(hops):
                unreadable("a set is not of different flows at one server")
            self.curves[hops] = buckets_of(
                one["arrival"], f"arrival of a set at {said(network.hops[hops[0]].node)}"
            )

    def check(self) -> None:
        """Checks every curve. Raises `RefutedError`."""
        if self.analysis.in_cycles():
            raise RefutedError("sets of flows that come together prove nothing in a cycle of dependencies")
        for hops, curve in self.curves.items():
            found = self._follows(hops)
            for burst, rate in curve:
                if not any(burst >= most and rate >= fastest for most, fastest in found):
                    at = said(self.network.hops[hops[0]].node)
                    what = f"burst {brief(burst)} and rate {brief(rate)}"
                    raise RefutedError(
                        f"arrivals of {len(hops)} flows together at {at}: {what} do not follow"
                    )

    def of(self, hops: list[int]) -> Curve:
        """The curve of some hops of one node. Raises `RefutedError` where none is stated."""
        if not hops:
            return [(ZERO, ZERO)]
        found = self.curves.get(tuple(sorted(hops)))
        if found is None:
            at = said(self.network.hops[hops[0]].node)
            raise RefutedError(f"arrivals of {len(hops)} flows together at {at} are not stated")
        return found

    def others(self, node: Node, own: list[int]) -> Curve:
        """The curve of all other hops of a node."""
        return self.of([hop for hop in self.network.at[node] if hop not in own])

    def _follows(self, hops: Hops) -> Curve:
        network, curves = self.network, []
        before: defaultdict[Node, list[int]] = defaultdict(list)
        for hop in hops:
            one = network.hops[hop]
            if one.before is None:
                curves.append(later(self.analysis.curves[one.flow], one.variation))
            else:
                before[network.hops[one.before].node].append(hop)
        for node, together in before.items():
            curves.append(self._left(node, together))
        return total(curves)

    def _left(self, node: Node, hops: list[int]) -> Curve:
        """What leaves a node, for hops that come from it."""
        network, analysis = self.network, self.analysis
        earlier = [before for hop in hops if (before := network.hops[hop].before) is not None]
        own, service, late = self.of(earlier), analysis.services[node], analysis.delays[node]
        left = (
            left_over(service, self.others(node, earlier), fifo=analysis.fifo) if service is not None else []
        )
        # In order of arrival each piece holds by itself, and what leaves is within what each of them lets leave.
        alone = [[piece] for piece in left] if analysis.fifo else [left]
        found = []
        for pieces in alone:
            for burst, rate in own:
                held = backlog([(burst, rate)], pieces) if pieces else None
                if held is not None:
                    found.append((held, rate))
        if network.packetizer:
            frame = max(network.flows[network.hops[hop].flow].frame for hop in hops)
            found = [(burst + frame, rate) for burst, rate in found]
        if late is not None:
            found += later(own, late)
        if not found:
            raise RefutedError(f"arrivals behind {said(node)} are not bounded")
        return later(hull(found), max(network.hops[hop].variation for hop in hops))
