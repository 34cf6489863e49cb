"""Parts of a test that make simulated nodes PTP clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PtpClock", "PtpDomain"]


@dataclass(frozen=True, slots=True)
class PtpClock:
    """A PTP clock of a domain that differs from the others."""

    name: str
    priority1: int | None = None
    priority2: int | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class PtpDomain:
    """Clocks that synchronise by PTP in the simulated network; names with spaces between."""

    ordinary_clocks: str
    boundary_clocks: str | None = None
    transparent_clocks: str | None = None
    domain: int | None = None
    profile: str | None = None
    delay: str | None = None
    announce_interval: str | None = None
    sync_interval: str | None = None
    delay_interval: str | None = None
    announce_timeout: int | None = None
    servo: str | None = None
    priority: int | None = None
    max_offset: str | None = None
    clocks: Sequence[PtpClock] = ()
