"""Background load as it is judged: room at the ports on its way, and planted faults that affect it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from wiregauge.plan import Cut, EndSystem, Flow, Inject, Network, Restart, Route, Run, Switch
from wiregauge.plan.tasks import Bursts, Exponential, Periodic

__all__ = ["InjectPlan", "load_plans"]

_FRAME_EXTRA: Final = 66
"""Bytes on the wire besides the payload of a message, at least about: headers, FCS, preamble and gap."""
_DRAWN: Final = 100
"""The most bursts of a load with drawn intervals that may follow one another immediately."""
_FULL: Final = 0.99
"""Share of a link's rate from which on clocks may make a port one that is offered more than it sends."""
_HARMLESS: Final = ("delay", "duplicate")
"""Faults of links by which no frame is lost."""


class InjectPlan(Struct, frozen=True):
    """Background load of one end system."""

    on: str
    to: str
    load_ppm: int
    rate_bps: int
    """Rate of the link it leaves by, bit/s."""
    by_threads: bool = False
    """Whether simulated threads send it; they do not catch up, so that less than planned is intended."""
    due: float = 1.0
    """Share of its frames that the ports on its way have room for, by what the plan offers each of them."""
    least: float = 1.0
    """Least share of its frames that arrive, whichever frames full queues drop: from the rates and bursts that the
    plan offers each port, and what the port can send and hold."""
    planted: tuple[str, ...] = ()
    """Planted faults of links and switches on its way."""


def load_plans(network: Network, run: Run) -> tuple[InjectPlan, ...]:
    """Every background load of a run, in the order of the plan."""
    names = network.names
    loads, flows = _offered(network, run)
    at_port = _streams_at(network, run)
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
                least=_least(network, run, inject, at_port),
                planted=_planted(run, inject.route),
            )
        )
    return tuple(found)


_Port = tuple[int, int]


def _ports(route: Route) -> list[_Port]:
    return [(hop.from_, hop.from_port) for hop in route.hops]


def _links(route: Route) -> list[int]:
    return [hop.link for hop in route.hops]


class _Offer(Struct, frozen=True):
    """Traffic that a stream brings to a port: its rate, and the largest burst."""

    inject: Inject | None
    rate_bps: float
    burst_bits: float


def _streams_at(network: Network, run: Run) -> Mapping[_Port, Sequence[_Offer]]:
    """Background loads and flows, answers included, by the output ports that they pass."""
    found: dict[_Port, list[_Offer]] = {}
    for inject in run.injects:
        bits = 8 * (inject.payload + _FRAME_EXTRA)
        rate = inject.load_ppm / 1e6 * (run.link_rate_bps or network.first_rate(inject.on) or 0)
        drawn = inject.exponential or inject.threads is not None or inject.activity is not None
        offer = _Offer(inject, rate, inject.burst * bits * (_DRAWN if drawn else 1))
        for port in _ports(inject.route):
            found.setdefault(port, []).append(offer)
    answered = {relay.flow for relay in run.relays}
    for flow in run.flows:
        offer = _of_flow(run, flow)
        for port in set(_flow_ports(flow, back=flow.id in answered)):
            found.setdefault(port, []).append(offer)
    return found


def _of_flow(run: Run, flow: Flow) -> _Offer:
    """The offer of a flow; its burst is unbounded where messages do not come at a steady rate."""
    send = run.send_of.get(flow.id)
    if send is None:
        return _Offer(None, 0.0, 0.0)
    bits = 8 * (send.payload + _FRAME_EXTRA)
    match send.pattern:
        case _ if send.replay is not None or not send.period or send.activity is not None:
            return _Offer(None, inf, inf)
        case None | Periodic():
            return _Offer(None, 1e12 * bits / send.period, bits)
        case Bursts(size=size):
            return _Offer(None, size * 1e12 * bits / send.period, size * bits)
        case Exponential():
            return _Offer(None, 1e12 * bits / send.period, _DRAWN * bits)
        case _:
            return _Offer(None, inf, inf)


def _flow_ports(flow: Flow, *, back: bool) -> Iterator[_Port]:
    for route in flow.routes:
        yield from _ports(route)
        if back:
            yield from ((hop.to, hop.to_port) for hop in route.hops)


def _least(network: Network, run: Run, inject: Inject, at_port: Mapping[_Port, Sequence[_Offer]]) -> float:
    """The least share of a load that arrives if each port on its way drops all its excess from this load alone."""
    left = 1.0
    for link, port in zip(_links(inject.route), _ports(inject.route), strict=True):
        offers = at_port[port]
        own = next(one for one in offers if one.inject is inject)
        rate, others = (
            run.link_rate_bps or network.links[link].rate_bps,
            [one for one in offers if one is not own],
        )
        if own.rate_bps and sum(one.rate_bps for one in offers) > _FULL * rate:
            left *= min(max(rate - sum(one.rate_bps for one in others), 0.0) / own.rate_bps, 1.0)
        excess = sum(one.burst_bits for one in offers) - _room_bits(network, port, inject)
        if own.burst_bits and excess > 0:
            left *= max(1 - excess / own.burst_bits, 0.0)
    return left


def _room_bits(network: Network, port: _Port, inject: Inject) -> float:
    """The capacity of an output port, bits; infinite for a host, which waits, and 0 for a hub."""
    kind = network.nodes[port[0]].kind
    if not isinstance(kind, Switch):
        return inf if isinstance(kind, EndSystem) else 0.0
    buffers = [one for one in (kind.port_buffer, kind.queue_buffer, kind.shared_buffer) if one is not None]
    frame = inject.payload + _FRAME_EXTRA
    return 8.0 * min(min(one.bytes, inf if one.frames is None else one.frames * frame) for one in buffers)


def _offered(network: Network, run: Run) -> tuple[Mapping[_Port, float], Mapping[_Port, float]]:
    """Planned rate of background loads and of flows at each output port, bit/s."""
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
        together = send.pattern.size if isinstance(send.pattern, Bursts) else 1
        bits = together * 8e12 * (send.payload + _FRAME_EXTRA) / send.period
        for port in {port for route in flow.routes for port in _ports(route)}:
            flows[port] = flows.get(port, 0.0) + bits
    return loads, flows


def _planted(run: Run, route: Route) -> tuple[str, ...]:
    """Kinds of planted faults that lose frames on a route."""
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
