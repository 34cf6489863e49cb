"""Domains of clocks that synchronise by PTP, as `wg_plan::PtpDomain` writes them."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan
from wiregauge.plan.network import Attachment

__all__ = ["PtpClock", "PtpDomain", "PtpPi"]


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


class PtpPi(Plan, frozen=True, kw_only=True):
    """Settings of the PI servo, by their names in ptp4l(8)."""

    kp_thousandths: int | None
    """pi_proportional_const, in thousandths; `None`: from the sync interval, as for hardware timestamps."""
    ki_thousandths: int | None
    """pi_integral_const, likewise."""
    first_step_threshold: Picoseconds
    """first_step_threshold; zero: never."""
    step_threshold: Picoseconds | None
    """step_threshold; `None`: never."""
    delay_filter: Literal["median", "average"]
    """delay_filter."""
    delay_filter_length: int
    """delay_filter_length."""


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
    pi: PtpPi
    """How, with `PtpServo.Pi`."""
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
