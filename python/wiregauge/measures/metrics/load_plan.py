"""Background load as it is judged: whether the ports on its way have room for it, and what the test does to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wiregauge.plan import Cut, Network, Restart, Route, Run

__all__ = ["InjectPlan", "load_plans"]

_FRAME_EXTRA: Final = 66
"""Bytes on the wire beside the payload of a message, at least about: headers, FCS, preamble and gap."""
_HARMLESS: Final = ("delay", "duplicate")
"""Faults of links by which no frame is lost."""


@dataclass(frozen=True, slots=True)
class InjectPlan:
    """Background load of one end system."""

    on: str
    to: str
    load_ppm: int
    rate_bps: int
    """Of the link it leaves by."""
    by_threads: bool = False
    """Simulated threads send it, which make up for nothing: less than intended is what was asked for."""
    due: float = 1.0
    """Share of its frames that the ports on its way have room for, by what the plan offers each of them."""
    meets: bool = False
    """Whether frames of it can meet others of the test, or its own burst, at a port, and be dropped by a full queue."""
    planted: tuple[str, ...] = ()
    """What the test does on purpose to links and switches on its way."""


def load_plans(network: Network, run: Run) -> tuple[InjectPlan, ...]:
    """Every background load of a run, in the order of the plan."""
    names = network.names
    loads, flows = _offered(network, run)
    at_port = Counter(port for inject in run.injects for port in _ports(inject.route))
    at_port.update({port for flow in run.flows for route in flow.routes for port in _ports(route)})
    found = []
    for inject in run.injects:
        due = 1.0
        for link, port in zip(_links(inject.route), _ports(inject.route), strict=True):
            room = (run.link_rate_bps or network.links[link].rate_bps) - flows.get(port, 0.0)
            due = min(due, max(room, 0.0) / loads[port]) if loads.get(port) else due
        found.append(
            InjectPlan(
                names[inject.on],
                names[inject.to],
                inject.load_ppm,
                network.first_rate(inject.on) or 0,
                by_threads=inject.threads is not None,
                due=due,
                meets=inject.burst > 1 or any(at_port[port] > 1 for port in _ports(inject.route)),
                planted=_planted(run, inject.route),
            )
        )
    return tuple(found)


_Port = tuple[int, int]


def _ports(route: Route) -> list[_Port]:
    return [(hop.from_, hop.from_port) for hop in route.hops]


def _links(route: Route) -> list[int]:
    return [hop.link for hop in route.hops]


def _offered(network: Network, run: Run) -> tuple[Mapping[_Port, float], Mapping[_Port, float]]:
    """By output port what background loads and what flows offer it by plan, bit/s."""
    loads: dict[_Port, float] = {}
    flows: dict[_Port, float] = {}
    for inject in run.injects:
        bits = inject.load_ppm / 1e6 * (run.link_rate_bps or network.first_rate(inject.on) or 0)
        for port in _ports(inject.route):
            loads[port] = loads.get(port, 0.0) + bits
    for flow in run.flows:
        send = run.send_of.get(flow.id)
        if send is None or not send.period:
            continue
        bits = 8e12 * (send.payload + _FRAME_EXTRA) / send.period
        for port in {port for route in flow.routes for port in _ports(route)}:
            flows[port] = flows.get(port, 0.0) + bits
    return loads, flows


def _planted(run: Run, route: Route) -> tuple[str, ...]:
    """What the test does on purpose that loses frames on a route, by kind."""
    links, nodes = set(_links(route)), set(route.nodes)
    found = [one.kind.type for one in run.link_faults if one.link in links and one.kind.type not in _HARMLESS]
    for incident in run.incidents:
        match incident.kind:
            case Cut(link=link) if link in links:
                found.append("cut")
            case Restart(switch=switch) if switch in nodes:
                found.append("restart")
            case _:
                pass
    return tuple(dict.fromkeys(found))
