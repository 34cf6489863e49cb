"""Nodes of a simulated test for the builder: clocks, hosts and what they do by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Clock", "Event", "Host", "OwnFrames", "ReceiveBuffer", "Stack", "Timestamps"]


@dataclass(frozen=True, slots=True)
class Clock:
    """A node's oscillator; `temperature` has (at, drift) pairs."""

    offset: str | None = None
    drift: str | None = None
    wander: str | None = None
    granularity: str | None = None
    temperature: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ReceiveBuffer:
    """What holds the received frames of a class (`tt`, `rc`, `be`) until they are read."""

    slots: int | None = None
    fifo: str | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """What a protocol's way through the operating system costs."""

    transmit: str | None = None
    transmit_per_byte: str | None = None
    receive: str | None = None
    receive_per_byte: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """Figures of an end system's host that replace those of its model.

    `receive_buffers` by class, `stacks` by protocol."""

    transmit: str | None = None
    transmit_per_byte: str | None = None
    receive: str | None = None
    receive_per_byte: str | None = None
    interface_delay: str | None = None
    interface_receive_delay: str | None = None
    interrupt_latency: str | None = None
    interrupts: str | None = None
    interrupt_frames: int | None = None
    interrupt_wait: str | None = None
    send_wake_up: str | None = None
    receive_wake_up: str | None = None
    relay_wake_up: str | None = None
    backlog: int | None = None
    ring: int | None = None
    egress: str | None = None
    background: str | None = None
    card_read: str | None = None
    card_read_per_byte: str | None = None
    receive_buffers: Mapping[str, ReceiveBuffer] = field(default_factory=dict)
    stacks: Mapping[str, Stack] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Errors of the timestamps of a simulated node."""

    application_error: str | None = None
    driver_error: str | None = None
    wire_error: str | None = None
    read_cost: str | None = None
    subtract_read_cost: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something a simulated host does now and then by itself."""

    period: str
    duration: str
    latency: str
    offset: str | None = None
    ramp_to: str | None = None
    threads: str | None = None


@dataclass(frozen=True, slots=True)
class OwnFrames:
    """Frames that a simulated switch sends by itself; `ports` with spaces between."""

    period: str
    offset: str | None = None
    frame: str | None = None
    priority: int | None = None
    ports: str | None = None
