"""Output ports as they are judged: the flows they carry, and the load that the plan offers them.

Only work-conserving first-come, first-served ports are here: their rate can be seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from wiregauge.plan import Flow, Inject, Network, Route, Run, Send, Switch
from wiregauge.plan.ethernet import HEADERS, LEAST_ON_WIRE

__all__ = ["LoadShape", "Port", "PortPlan", "least_ns", "port_plans", "wire_bits"]

Port = tuple[int, int]
"""Node, by index, and number."""
_MOST_EXTRA: Final = 76
"""The most bytes on the wire besides a payload: preamble, Ethernet, two tags, IPv4, UDP, FCS and gap."""


class LoadShape(Struct, frozen=True):
    """Background load at a port."""

    number: int
    """The load's number in the plan."""
    bits: int
    """Bits of a burst on the wire."""
    interval_ns: float
    """Interval between two bursts, ns."""
    random: bool
    """Whether intervals are drawn; the interval is then their mean."""


class PortPlan(Struct, frozen=True):
    """An output port."""

    name: str
    rate_bps: int
    flows: tuple[int, ...]
    loads: tuple[LoadShape, ...]
    loads_wait_ns: float
    """The longest time that a frame of a background load can wait in its own host, ns."""


def wire_bits(payload: int) -> int:
    """The most bits that a message takes on the wire."""
    return 8 * max(payload + _MOST_EXTRA, LEAST_ON_WIRE)


def least_ns(network: Network, run: Run, routes: list[Route], send: Send | None) -> float:
    """The least time that the links of the fastest of these routes take, first bit out to last bit in, ns.

    For a replay that of its shortest frame; 0 where the sender is not known.
    """
    frame = (send.replay.frames[0] if send.replay else send.payload + HEADERS) if send else 0
    if not frame or not routes:
        return 0.0
    bits = 8 * max(frame, 64)

    def takes(route: Route) -> float:
        links = [network.links[hop.link] for hop in route.hops]
        each = [1e9 * bits / (run.link_rate_bps or link.rate_bps) for link in links]
        kinds = [network.nodes[node].kind for node in route.nodes[1:-1]]
        whole = all(
            isinstance(kind, Switch)
            and (run.switches.forwarding_mode or kind.forwarding_mode) == "store-and-forward"
            for kind in kinds
        )
        return (sum(each) if whole else max(each)) + sum(link.delay for link in links) / 1000

    return min(map(takes, routes))


def port_plans(network: Network, run: Run) -> Mapping[Port, PortPlan]:
    """Ports that keep nothing back and send in the order of arrival, by node and number."""
    flows: dict[Port, dict[int, Flow]] = {}
    loads: dict[Port, list[tuple[int, Inject]]] = {}
    rates: dict[Port, int] = {}
    for port, link, flow in _flow_ports(run):
        flows.setdefault(port, {})[flow.id] = flow
        rates[port] = run.link_rate_bps or network.links[link].rate_bps
    for number, inject in enumerate(run.injects):
        for hop in inject.route.hops:
            loads.setdefault((hop.from_, hop.from_port), []).append((number, inject))
    return {
        port: PortPlan(
            f"{network.names[port[0]]}:{port[1]}",
            rate,
            tuple(flows[port]),
            tuple(_shape(number, inject) for number, inject in loads.get(port, [])),
            max((_own_wait(network, run, inject) for _, inject in loads.get(port, [])), default=0.0),
        )
        for port, rate in rates.items()
        if _is_plain(network, port, flows[port].values())
        and all(_is_regular(one) for _, one in loads.get(port, []))
    }


def _flow_ports(run: Run) -> Iterator[tuple[Port, int, Flow]]:
    answered = {relay.flow for relay in run.relays}
    for flow in run.flows:
        for route in flow.routes:
            for hop in route.hops:
                yield (hop.from_, hop.from_port), hop.link, flow
                if flow.id in answered:
                    # Answers take the way back.
                    yield (hop.to, hop.to_port), hop.link, flow


def _is_plain(network: Network, port: Port, flows: Iterable[Flow]) -> bool:
    kind = network.nodes[port[0]].kind
    if not isinstance(kind, Switch):
        return False
    held = kind.tsn or kind.raster or kind.drawn_delay or kind.own_frames or kind.learning
    ordered = kind.strict_priority and any(flow.vlan is not None and flow.vlan.priority for flow in flows)
    # A stream that is reserved or scheduled is shaped where it is sent.
    shaped = any(flow.virtual_link is not None or flow.schedule is not None or flow.frer for flow in flows)
    return kind.kind == "cots" and not (held or ordered or shaped)


def _is_regular(inject: Inject) -> bool:
    return inject.threads is None


def _shape(number: int, inject: Inject) -> LoadShape:
    bits = inject.burst * wire_bits(inject.payload)
    return LoadShape(number, bits, inject.interval / 1000, inject.exponential)


def _own_wait(network: Network, run: Run, inject: Inject) -> float:
    """Wait of a frame in its host behind its burst, ns; for drawn intervals or several loads, far more than is
    usual."""
    rate = run.link_rate_bps or network.first_rate(inject.on) or 1
    burst = 1e9 * inject.burst * wire_bits(inject.payload) / rate
    several = sum(one.on == inject.on for one in run.injects) > 1
    return burst * (100 if inject.exponential or several else 1)
