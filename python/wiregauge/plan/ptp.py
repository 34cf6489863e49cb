"""Domains of clocks that synchronise by PTP, as `wg_plan::PtpDomain` writes them."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan
from wiregauge.plan.network import Attachment

__all__ = ["PtpClock", "PtpDomain"]


class PtpClock(Plan, frozen=True, kw_only=True):
    """An ordinary or boundary clock."""

    node: NodeIndex
    priority1: int
    priority2: int
    role: Literal["any", "slave-only", "grandmaster-only"]


class PtpDomain(Plan, frozen=True, kw_only=True):
    """A domain: its clocks, and the ports its messages are sent by."""

    number: int
    profile: Literal["default", "gptp"]
    delay: Literal["e2e", "p2p"]
    log_announce_interval: int
    log_sync_interval: int
    log_delay_interval: int
    announce_timeout: int
    servo: Literal["kalman", "basic"]
    priority: int
    max_offset: Picoseconds
    clocks: tuple[PtpClock, ...]
    transparent: tuple[NodeIndex, ...]
    ports: tuple[Attachment, ...]
