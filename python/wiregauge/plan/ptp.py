"""Domains of clocks that synchronise by PTP, as `wg_plan::PtpDomain` writes them."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan
from wiregauge.plan.network import Attachment

__all__ = ["PtpClock", "PtpDomain"]


class PtpClock(Plan, frozen=True, kw_only=True):
    """An ordinary or boundary clock."""

    node: NodeIndex
    """An end system, or a switch that is a boundary clock."""
    priority1: int
    """priority1 (7.6.2.3)."""
    priority2: int
    """priority2 (7.6.2.4)."""
    role: Literal["any", "slave-only", "grandmaster-only"]
    """What it may become."""


class PtpDomain(Plan, frozen=True, kw_only=True):
    """A domain: its clocks, and the ports its messages are sent by."""

    number: int
    """domainNumber (7.1)."""
    profile: Literal["default", "gptp"]
    """Addresses and identifiers of its messages."""
    delay: Literal["e2e", "p2p"]
    """How delays are measured."""
    log_announce_interval: int
    """logAnnounceInterval: two to this many seconds."""
    log_sync_interval: int
    """logSyncInterval: two to this many seconds."""
    log_delay_interval: int
    """logMinDelayReqInterval or logMinPdelayReqInterval: two to this many seconds."""
    announce_timeout: int
    """announceReceiptTimeout, in announce intervals."""
    servo: Literal["kalman", "basic", "pi"]
    """What steers a clock."""
    priority: int
    """Priority of its frames in queues."""
    max_offset: Picoseconds
    """The greatest offset from the grandmaster of a clock that counts as synchronised."""
    clocks: tuple[PtpClock, ...]
    """Ordinary and boundary clocks."""
    transparent: tuple[NodeIndex, ...]
    """Transparent clocks, switches."""
    ports: tuple[Attachment, ...]
    """Ports that its messages are sent by: those of its clocks, and of switches those of a spanning tree."""
