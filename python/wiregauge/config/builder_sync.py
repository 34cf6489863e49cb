"""Synchronisation of clocks for the builder: exchanges, linuxptp and AS6802."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cluster", "Exchange", "FaultyMaster", "Ptp"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two-way exchanges with the reference; `to` names end systems with spaces between."""

    period: str | None = None
    to: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Ptp:
    """linuxptp on every end system."""

    timestamps: str | None = None
    steer: str | None = None
    interval: str | None = None
    kp: str | None = None
    ki: str | None = None
    domain: int | None = None
    transport: str | None = None
    delay: str | None = None


@dataclass(frozen=True, slots=True)
class FaultyMaster:
    """A synchronisation master that fails on purpose."""

    name: str
    behaviour: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Devices that synchronise by AS6802; names with spaces between."""

    masters: str
    compression_masters: str
    clients: str | None = None
    integrity: str | None = None
    cycle: str | None = None
    cycles: int | None = None
    precision: str | None = None
    max_drift: str | None = None
    max_delay: str | None = None
    faulty_masters: int | None = None
    domain: int | None = None
    priority: int | None = None
    sync_threshold: int | None = None
    stable_cycles: int | None = None
    unstable_cycles: int | None = None
    powered_within: str | None = None
    faulty: Sequence[FaultyMaster] = ()
