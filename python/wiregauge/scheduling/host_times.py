"""Times that hosts add to messages, for windows and gates: wake-up, clock reading, events, stacks."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from wiregauge.plan import EndSystem, HostModel, Network
from wiregauge.plan.network import Adaptive, Coalesced, Node, Polled, Spaced

__all__ = ["Times", "receiving", "sending"]

_ADAPTIVE: Final = 250_000_000
"""Longest moderation interval, ps: adaptive drivers choose at least 4000 interrupts a second."""


class Times(Struct, frozen=True):
    """The least and greatest time, ps."""

    least: int
    most: int

    @property
    def varies(self) -> int:
        """The difference between greatest and least, ps."""
        return self.most - self.least


def sending(network: Network, node: int, protocol: str, payload: int) -> Times:
    """Time from the instant at which a message is due until its frame may start, without delay by other messages."""
    own = network.nodes[node]
    host = _host(own)
    read = _read(own)
    held = _held_up(own, "receive")
    if host is None:
        return Times(read.least, read.most + held)
    wake = [time for _, time in host.send_wake_up.quantiles] or [0]
    cost = next((stack.transmit for stack in host.stacks if stack.protocol == protocol), host.transmit)
    fixed = cost.fixed + cost.per_byte * payload + host.interface_delay
    return Times(fixed + min(wake) + read.least, fixed + max(wake) + read.most + held)


def receiving(network: Network, node: int, protocol: str, payload: int) -> int:
    """Greatest time from the last bit of a frame until the application has it, ps."""
    own = network.nodes[node]
    host = _host(own)
    other = _read(own).most + _held_up(own, "send")
    if host is None:
        return other
    wake = max((time for _, time in host.receive_wake_up.quantiles), default=0)
    cost = next((stack.receive for stack in host.stacks if stack.protocol == protocol), host.receive)
    costs = [cost, *([host.card_read] if host.card_read else [])]
    work = sum(one.fixed + one.per_byte * payload for one in costs)
    held = host.interrupt_latency + host.interface_receive_delay + _moderated(host)
    return held + wake + work + other


def _host(node: Node) -> HostModel | None:
    return node.kind.host if isinstance(node.kind, EndSystem) else None


def _moderated(host: HostModel) -> int:
    match host.interrupts:
        case Coalesced(wait=wait):
            return wait
        case Polled(period=period):
            return period
        case Spaced(spacing=spacing):
            return spacing
        case Adaptive():
            return _ADAPTIVE
    return 0


def _read(node: Node) -> Times:
    cost = node.timestamps.read_cost if node.timestamps is not None else None
    times = [time for _, time in cost.quantiles] if cost is not None else []
    return Times(min(times, default=0), max(times, default=0))


def _held_up(node: Node, other: Literal["send", "receive"]) -> int:
    """The greatest delay by events that stop a thread which is not of kind `other`, ps."""
    return sum(
        max(max((time for _, time in event.latency.quantiles), default=0), event.ramp_to or 0)
        for event in node.events
        if event.threads != other
    )
