"""Types of what synchronises and shapes a run in `show --json`: reports in picoseconds are given in ns there."""

from __future__ import annotations

from typing import TypedDict

from wiregauge.files.typed_json import Count, Figure, Positive


class SynchroniserShown(TypedDict):
    node: str
    part: str
    faulty: bool
    state: str
    synchronised: bool
    synchronised_at_ns: Figure
    losses: Count
    cliques: list[Count]
    membership: Count


class ClusterShown(TypedDict):
    domain: Count
    priority: Count
    precision_ns: Figure
    precision_bound_ns: Positive
    startup_ns: Figure
    startup_bound_ns: Positive
    devices: list[SynchroniserShown]


class PtpClockShown(TypedDict):
    node: str
    part: str
    states: list[str]
    grandmaster: str | None
    synchronised: bool
    synchronised_at_ns: Figure
    losses: Count
    offset_ns: Figure
    error_ns: Positive
    apart_ns: Positive
    refused: Count


class PtpDomainShown(TypedDict):
    number: Count
    max_offset_ns: Positive
    grandmaster: str | None
    grandmaster_changes: Count
    synchronised_at_ns: Figure
    precision_ns: Figure
    clocks: list[PtpClockShown]


class CreditShown(TypedDict):
    node: str
    port: Count
    traffic_class: Count
    max_bit: float
    max_at_ns: Positive
    min_bit: float
    min_at_ns: Positive
