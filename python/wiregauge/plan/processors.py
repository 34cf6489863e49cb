"""Hosts that by their models have more to do than there is time for: they fall behind ever more as long as the run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.plan.campaign import Campaign, Flow, Run
from wiregauge.plan.network import EndSystem, HostCost, HostModel, Network
from wiregauge.plan.tasks import Bursts, Ramp, Send

__all__ = ["CURE", "Overload", "overloads", "with_overloads"]

Lane = Literal["sending", "receiving", "reading its card"]
"""A serial activity of a host, parallel to the other two (`crates/core`, end_system.rs)."""
_Shares = Iterator[tuple[int, Lane, Fraction]]
_LOAD: Final = "udp"


class Overload(Struct, frozen=True):
    """A host, and the work for which it has no time."""

    node: int
    lane: Lane
    share: Fraction
    """Demanded processor time as a share of real time; above 1."""

    def sentence(self, network: Network) -> str:
        """The overload, with the name of its end system, as a sentence."""
        percent = f"{100 * float(self.share):.4g}" if self.share >= Fraction(1001, 1000) else "more than 100"
        return f'{self.lane} takes {percent} % of the time of "{network.names[self.node]}" by its host model'


CURE: Final = "send less often, or give the host a model that takes less time"


def with_overloads(campaign: Campaign) -> Campaign:
    """The campaign with a warning for every host of a run that does not keep up."""
    told = [
        f"{one.sentence(campaign.network)}, so it falls behind ever more; {CURE}"
        for run in campaign.runs
        for one in overloads(campaign.network, run)
    ]
    return replace(campaign, warnings=(*campaign.warnings, *dict.fromkeys(told))) if told else campaign


def overloads(network: Network, run: Run) -> Iterator[Overload]:
    """The lanes of hosts that flows and received loads keep busy for more than all the time, on average.

    Senders that pause, replay or are limited in rate are left out, for their mean rate is not known here.
    """
    shares: dict[tuple[int, Lane], Fraction] = {}
    for node, lane, share in itertools.chain(_of_flows(network, run), _of_loads(network, run)):
        shares[node, lane] = shares.get((node, lane), Fraction(0)) + share
    for (node, lane), share in sorted(shares.items()):
        if share > 1:
            yield Overload(node, lane, share)


def _of_flows(network: Network, run: Run) -> _Shares:
    flows = {flow.id: flow for flow in run.flows}
    for send in run.sends:
        flow, rate = flows[send.flow], _rate(send)
        for node in _senders(run, flow):
            if (host := _host(network, node)) is not None:
                yield node, "sending", rate * _sending(host, flow.protocol, send.payload)
        for node in _receivers(run, flow):
            for lane, cost in _receiving(_host(network, node), flow.protocol, send.payload):
                yield node, lane, rate * cost


def _of_loads(network: Network, run: Run) -> _Shares:
    for inject in run.injects:
        host = _host(network, inject.to)
        if host is None or not host.receives_load or inject.activity is not None or inject.interval <= 0:
            continue
        for lane, cost in _receiving(host, _LOAD, inject.payload):
            yield inject.to, lane, Fraction(inject.burst, inject.interval) * cost


def _rate(send: Send) -> Fraction:
    """Messages a picosecond."""
    paused = send.activity is not None or send.replay is not None or send.rate_limit_bps is not None
    if paused or send.period <= 0:
        return Fraction(0)
    slowest = max(send.period, send.pattern.to) if isinstance(send.pattern, Ramp) else send.period
    return Fraction(send.pattern.size if isinstance(send.pattern, Bursts) else 1, slowest)


def _senders(run: Run, flow: Flow) -> list[int]:
    return [flow.from_, *(on for number, on in run.relay_of if number == flow.id)]


def _receivers(run: Run, flow: Flow) -> list[int]:
    back = [flow.from_ for number, _ in run.relay_of if number == flow.id]
    return [*flow.receivers, *back]


def _host(network: Network, node: int) -> HostModel | None:
    kind = network.nodes[node].kind
    return kind.host if isinstance(kind, EndSystem) else None


def _time(cost: HostCost, payload: int) -> Fraction:
    return Fraction(cost.fixed + cost.per_byte * payload)


def _sending(host: HostModel, protocol: str, payload: int) -> Fraction:
    own = (stack.transmit for stack in host.stacks if stack.protocol == protocol)
    return _time(next(own, host.transmit), payload)


def _receiving(host: HostModel | None, protocol: str, payload: int) -> Iterator[tuple[Lane, Fraction]]:
    if host is None:
        return
    own = (stack.receive for stack in host.stacks if stack.protocol == protocol)
    yield "receiving", _time(next(own, host.receive), payload)
    if host.card_read is not None:
        yield "reading its card", _time(host.card_read, payload)
