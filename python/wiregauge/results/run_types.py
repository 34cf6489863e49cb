"""Types of a run in `show --json`, beside its flows."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from wiregauge.measures.metrics.judgement import LimitResult
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.results.typed_json import Count, Figure, From, Interval, Positive

_CLOCK_POINTS = 40


class CheckShown(TypedDict):
    name: str
    limit: str
    observed: str
    grade: Annotated[
        str,
        Meta(extra_json_schema={"enum": ["ok", "note", "degraded", "invalid", "not looked at"]}),
        From(lambda check: check.grade.label),
    ]
    reason: str


class CitationShown(TypedDict):
    id: Annotated[str, From("number")]
    calibration: Annotated[str, From("kind")]
    made: str
    used: bool
    reason: Annotated[str | None, From(lambda cited: cited.reason or None)]
    headline: str


class LimitShown(TypedDict):
    flow: int | None
    to: str | None
    measure: str
    bound: Annotated[str, Meta(extra_json_schema={"enum": ["at-most", "at-least"]})]
    written: str
    value: float
    observed: Figure
    unit: Annotated[
        str, Meta(extra_json_schema={"enum": ["ns", "messages", "bit/s", "share", "1/s", "events"]})
    ]
    result: Literal["pass", "fail", "undecided"]
    margin: Figure
    n: Count
    of: Annotated[str | None, From(lambda limit: limit.of or None)]
    among: Count
    interval: Annotated[Interval | None, From(_limit_interval)]
    instrument: Annotated[Interval | None, From(_limit_instrument)]
    missing: Count
    holds: bool
    reason: str


class LoadShown(TypedDict):
    on: str
    to: str
    intended: Positive
    offered: Figure
    arrived: Figure
    sent_frames: Count | None
    arrived_frames: Count | None
    never_came: Annotated[
        Count | None, Meta(description="frames that reached neither their end nor a queue without room")
    ]
    dropped: Annotated[
        dict[str, Count] | None,
        Meta(
            description="frames that did not arrive, and copies that went astray, by how; null: nobody saw it"
        ),
    ]


def _limit_instrument(limit: LimitResult) -> list[float | None] | None:
    """An edge that nothing bounds is null."""
    if limit.instrument is None:
        return None
    return [edge if isfinite(edge) else None for edge in limit.instrument]


def _limit_interval(limit: LimitResult) -> list[float | None] | None:
    return [limit.low, limit.high] if (limit.low, limit.high) != (None, None) else None


class OffsetShown(TypedDict):
    at_s: float
    offset_ns: float
    uncertainty_ns: Positive


def _offsets(clock: ClockResult) -> list[OffsetShown]:
    """Points of a clock's offset, as many as a figure needs: offset and half-width at times of the node's clock."""
    step = max(len(clock.t) // _CLOCK_POINTS, 1)
    each = (column[::step].tolist() for column in (clock.t, clock.offset, clock.half_width))
    return [
        {"at_s": at, "offset_ns": offset, "uncertainty_ns": width}
        for at, offset, width in zip(*each, strict=True)
    ]


class ClockShown(TypedDict):
    node: str
    reference: str
    method: str
    timestamps: str
    n: Count
    missing: Annotated[Count, From("lost")]
    delay_ns: float
    asymmetry_ns: Positive
    asymmetry_stated: Annotated[bool, From("stated")]
    drift_ppm: Figure
    drift_uncertainty_ppm: Figure
    uncertainty_ns: Positive
    offsets: Annotated[list[OffsetShown], From(_offsets)]


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


class ReleaseShown(TypedDict):
    end_system: str
    frames: Count
    p50_ns: Figure
    p99_ns: Figure
    p999_ns: Figure
    max_ns: Figure
    intervals_ns: Annotated[
        dict[str, Interval],
        Meta(description="95 % intervals of the percentiles by name; without single frames there are none"),
    ]
    undelivered: Annotated[Count, Meta(description="frames that the kernel did not take")]


class ForeignShown(TypedDict):
    end_system: Annotated[str, Meta(description="they came from; empty: of all that are not listed")]
    ether_type: Annotated[Count, Meta(description="0: a frame that has a length there")]
    frames: Count
    bytes: Annotated[Count, Meta(description="destination address to FCS")]
    delivered: Annotated[Count, Meta(description="copies handed to end systems")]
    line_ns: Annotated[Positive, Meta(description="for which they had lines and media of hubs, all together")]
    dropped: dict[str, Count]


class OverlongShown(TypedDict):
    end_system: str
    interface: str
    frames: Count
    longest: Annotated[Count, Meta(description="bytes")]


class NetworkCostShown(TypedDict):
    taking_ns: Annotated[Positive, Meta(description="to take a frame out of the ports")]
    model_ns: Annotated[Positive, Meta(description="for the model, with its records")]
    handing_ns: Annotated[Positive, Meta(description="to hand frames to the kernel")]


class NetworkShown(TypedDict):
    frames: Annotated[Count, Meta(description="taken from end systems")]
    moved: Annotated[Count, Meta(description="of these, whose instant the model had passed")]
    most_moved_ns: Positive
    lost: Annotated[Count, Meta(description="that found no room")]
    releases: list[ReleaseShown]
    foreign: Annotated[
        list[ForeignShown] | None,
        Meta(
            description="frames that are not of the test, by where they came from; null: nobody counted them"
        ),
    ]
    overlong: Annotated[list[OverlongShown], Meta(description="frames longer than any of Ethernet")]
    cost: Annotated[
        NetworkCostShown | None,
        Meta(description="of a core, for each frame that was taken; waiting is not in it"),
    ]


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
