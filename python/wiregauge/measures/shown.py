"""What `wiregauge show --json` and `measures.json` hold, typed; their schema is made from this.

Times are ns, rates bit/s, shares between 0 and 1. None: not determined or not supported by n. Of a flow and its
summaries the keys that are named after measures and percentiles come from the definitions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from wiregauge.measures.definitions import COUNTS, DEFINITIONS, OUTCOMES, PAIR_QUANTILES, QUANTILES, SERIES
from wiregauge.measures.schemas import Count, Figure, Grade, Interval, Positive, Share, Verdict, json_schema

__all__ = ["show_schema"]

OrLost = float | Literal["lost"] | None


class CheckShown(TypedDict):
    name: str
    limit: str
    observed: str
    grade: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "note", "degraded", "invalid"]})]
    reason: str


class CitationShown(TypedDict):
    id: str
    calibration: str
    made: str
    used: bool
    reason: str | None
    headline: str


class LimitShown(TypedDict):
    flow: int | None
    to: str | None
    measure: str
    bound: Annotated[str, Meta(extra_json_schema={"enum": ["at-most", "at-least"]})]
    written: str
    value: float
    observed: Figure
    unit: Annotated[str, Meta(extra_json_schema={"enum": ["ns", "messages", "bit/s", "share", "1/s"]})]
    result: Literal["pass", "fail", "undecided"]
    margin: Figure
    n: Count
    interval: Interval | None
    missing: Count
    holds: bool
    reason: str


class LoadShown(TypedDict):
    on: str
    to: str
    intended: Positive
    offered: Figure


class OffsetShown(TypedDict):
    at_s: float
    offset_ns: float
    uncertainty_ns: Positive


class ClockShown(TypedDict):
    node: str
    reference: str
    method: str
    timestamps: str
    n: Count
    missing: Count
    delay_ns: float
    asymmetry_ns: Positive
    asymmetry_stated: bool
    drift_ppm: Figure
    drift_uncertainty_ppm: Figure
    uncertainty_ns: Positive
    offsets: list[OffsetShown]


class LossShown(TypedDict):
    ratio: Share | None
    low: Share
    high: Share
    one_sided: bool
    assumption: str | None


class PartsShown(TypedDict):
    sampling: Positive
    clock: Positive
    timestamp: Positive


class RepeatsShown(TypedDict):
    runs: Count
    between_sd: Positive
    within_sd: Figure


class StationarityShown(TypedDict):
    steady: bool | None
    p: Figure
    changes: Annotated[str, Meta(extra_json_schema={"enum": ["level", "tail"]})]
    correlation_time: Annotated[float, Meta(ge=1)]
    median_first_half: float
    median_second_half: float


class WithoutShown(TypedDict):
    p50: Figure
    p99: Figure
    max: float


class SettlingShown(TypedDict):
    n: Annotated[int, Meta(ge=1)]
    min: float
    max: float
    without: WithoutShown


class SummaryShown(TypedDict):
    """Besides the percentiles, which stand before `max`."""

    n: Count
    min: Figure
    mean: Figure
    sd: Figure
    mad: Figure


class SummaryRestShown(TypedDict):
    max: Figure
    uncertainty: Annotated[Figure, Meta(description="95 % half-width of the mean, ns")]
    uncertainty_parts: PartsShown | None
    n_effective: Figure
    intervals: dict[str, Interval]
    percentiles_n_effective: NotRequired[dict[str, Figure]]
    of_sample: NotRequired[
        Annotated[
            list[str],
            Meta(description="of a flow too big to be held: keys of this object that rest on its sample"),
        ]
    ]
    interval_needs: NotRequired[
        Annotated[
            dict[str, Annotated[int, Meta(ge=2)]],
            Meta(description="values that the mean or a percentile without any interval would need"),
        ]
    ]
    sd_interval: NotRequired[Interval | None]
    repeats: NotRequired[RepeatsShown | None]
    stationarity: NotRequired[StationarityShown | None]
    settling: NotRequired[SettlingShown | None]
    excluded: dict[str, Count]
    negative: Count


class JitterShown(TypedDict):
    n: Count
    sd: Figure
    low: Figure
    high: Figure


class HopShown(TypedDict):
    switch: str
    port: Count
    n: Count
    min: Figure
    mean: Figure
    uncertainty: Figure
    p99: Figure
    max: Figure


class CorrectedShown(TypedDict):
    measure: Annotated[str, Meta(extra_json_schema={"enum": ["latency", "driver_latency"]})]
    calibration: str
    overhead_ns: float
    overhead_uncertainty_ns: Positive
    error_ns: Figure
    unresolved: bool
    n: Count
    min: Figure
    mean: Figure
    p50: Figure
    p99: Figure
    max: Figure
    uncertainty: Figure


class SampledShown(TypedDict):
    one_in: Annotated[int, Meta(ge=2)]
    stretch: Annotated[int, Meta(ge=1)]
    held: Count
    of: Count
    figures: list[str]
    settling: Count


class CountedShown(TypedDict):
    count: Count
    n: Count
    ratio: Share | None
    low: Share
    high: Share
    n_effective: Positive


class ConformityShown(TypedDict):
    outside: CountedShown
    allowed_ns: Annotated[list[float], Meta(min_length=2, max_length=2)]
    worst_ns: Figure
    missing: Count


class PairShown(TypedDict):
    """Besides the percentiles, which stand before `max`."""

    start: str
    end: str
    n: Count
    missing: Count
    min: float
    mean: float
    uncertainty: Figure


class PairRestShown(TypedDict):
    max: float
    intervals: dict[str, Interval]


class RatesShown(TypedDict):
    intended_per_s: float
    offered_per_s: float
    offered_interval: Interval
    ratio: float
    intended_bps: Figure
    offered_bps: Figure
    link_bps: Count | None


class LossesShown(TypedDict):
    periods: Count
    longest: Count
    lengths: dict[str, Count]
    least_distance: Count | None
    shortest_clear: Count | None


class AvailabilityShown(TypedDict):
    ratio: Share | None
    low: Share
    high: Share
    n: Count
    down: Count
    outages: Count
    longest: Count


class ReorderingShown(CountedShown):
    extent_max: Count
    extent_mean: Figure
    n_reordered: dict[str, Count]
    n_max: Count
    late_time_max_ns: Figure


class DeadlineShown(TypedDict):
    deadline_ns: float
    missed: CountedShown
    late: Count
    tardiness_mean_ns: Figure
    tardiness_max_ns: Figure
    tardiness_uncertainty_ns: Figure


FlowShown = TypedDict(
    "FlowShown",
    {
        "flow": Annotated[int, Meta(ge=1, le=65_534)],
        "protocol": str,
        "from": str,
        "to": str,
        "relayed": bool,
        "payload": Annotated[int | None, Meta(description="bytes")],
        "planned": Count,
        "warm_up": Count,
    },
)
"""Besides the counters, which follow."""


class FlowMetShown(TypedDict):
    """What its messages met; the measures with a distribution follow."""

    unseen: NotRequired[
        Annotated[
            list[str],
            Meta(
                description="ends of the flow where a run made from captures has no tap; sent counts what any tap "
                "saw, and what was delivered or lost is not known"
            ),
        ]
    ]
    outcomes: dict[str, Count]
    loss: LossShown
    last_seen: dict[str, Count]
    drop_reasons: dict[str, Count]
    reorder_extent: Count
    late_sends: Count
    settling: NotRequired[Count]


class ServiceShown(TypedDict):
    load: NotRequired[RatesShown | None]
    losses: NotRequired[LossesShown | None]
    availability: NotRequired[AvailabilityShown | None]
    reordering: NotRequired[ReorderingShown | None]
    deadline: NotRequired[DeadlineShown | None]
    conformity: NotRequired[dict[str, ConformityShown] | None]


class ServedShown(ServiceShown):
    period_jitter_ns: NotRequired[JitterShown | None]
    receive_period_jitter_ns: NotRequired[JitterShown | None]
    pairs: NotRequired[list[PairShown]]
    goodput_interval: NotRequired[Interval | None]
    effective_bandwidth_interval: NotRequired[Interval | None]


class FlowRestShown(TypedDict):
    pdv_ns: Figure
    range_ns: Figure
    percentiles_with_loss_ns: dict[str, OrLost]
    percentiles_with_loss_intervals: NotRequired[
        dict[str, Annotated[list[OrLost], Meta(min_length=2, max_length=2)]]
    ]
    hops: NotRequired[list[HopShown]]
    corrected: NotRequired[list[CorrectedShown]]
    redundant_discarded: NotRequired[Count]
    lost_copies: NotRequired[dict[str, Count]]
    sampled: NotRequired[SampledShown | None]
    goodput_bps: Figure
    effective_bandwidth_bps: Figure


class RunShown(TypedDict):
    index: Count
    point: dict[str, str]
    repeat: Count
    state: str
    validity: Grade
    verdict: Verdict
    reasons: list[str]
    checks: list[CheckShown]
    limits: list[LimitShown]
    unplanned: dict[str, Count]
    loads: NotRequired[list[LoadShown]]
    clocks: NotRequired[list[ClockShown]]
    flows: list[FlowShown]


class PooledShown(TypedDict):
    point: dict[str, str]
    runs: Annotated[list[Count], Meta(min_length=1)]
    validity: Grade
    flows: list[FlowShown]


class Shown(TypedDict):
    schema: Literal[2]
    test: str
    validity: Grade
    verdict: Verdict
    complete: Annotated[bool, Meta(description="every planned run was run to its end")]
    state: Annotated[str, Meta(description="state of the campaign in manifest.json")]
    reasons: list[str]
    checks: Annotated[list[CheckShown], Meta(description="checks of the campaign as a whole")]
    calibrations: NotRequired[list[CitationShown]]
    runs: list[RunShown]
    points: Annotated[list[PooledShown], Meta(description="repeats of a point taken together")]


class Whole(Shown):
    """What others add to it."""

    digest: NotRequired[
        Annotated[
            str,
            Meta(
                pattern="^[0-9a-f]{64}$",
                description="measures.json only: SHA-256 of the file with this value empty",
            ),
        ]
    ]
    sources: NotRequired[
        Annotated[dict[str, str], Meta(description="measures.json only: digests of what it was made from")]
    ]
    explained: NotRequired[
        Annotated[
            dict[str, Any],
            Meta(
                description="with --explain; by the schema of wiregauge.measures.explaining.explain_schema_path()",
                extra_json_schema={"required": ["schema", "worst", "left_out", "flows"]},
            ),
        ]
    ]


class _Parts(Whole):
    """Pulls in what stands beside a part under one and the same key."""

    flow_met: FlowMetShown
    flow_rest: FlowRestShown
    served: ServedShown
    summary: SummaryShown
    summary_rest: SummaryRestShown
    pair_rest: PairRestShown


def show_schema() -> dict[str, Any]:
    """The schema, with the measures that are defined now."""
    schema = json_schema(
        _Parts, "`wiregauge show --json`, measures.json", closed=True,
        **{"$id": "urn:wiregauge:show:1", "description": "null: not determined or not supported by n."},
    )  # fmt: skip
    parts = schema["$defs"]
    for name in ("flow_met", "flow_rest", "served", "summary", "summary_rest", "pair_rest"):
        del schema["properties"][name]
        schema["required"].remove(name)
    figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    any_percentile = {"^p[0-9.]+$": figure}
    summary = _joined(parts, "SummaryShown", "SummaryRestShown")
    _add(summary, dict.fromkeys(QUANTILES, figure), patternProperties=any_percentile)
    pair = _joined(parts, "PairShown", "PairRestShown")
    _add(pair, dict.fromkeys(PAIR_QUANTILES, figure), patternProperties=any_percentile)
    flow = _joined(parts, "FlowShown", "FlowMetShown", "FlowRestShown", "ServedShown")
    flow["properties"]["outcomes"]["required"] = list(OUTCOMES)
    _add(flow, {name: {"type": "integer", "minimum": 0} for name in COUNTS})
    told = {"$ref": "#/$defs/SummaryShown"}
    for name in SERIES:
        needs = DEFINITIONS[name].needs
        _add(flow, {f"{name}_ns": {"anyOf": [told, {"type": "null"}]} if needs else told})
        if needs not in ("", "relay"):  # of critical traffic, and younger than the schema
            flow["required"].remove(f"{name}_ns")
    return schema


def _joined(parts: dict[str, Any], name: str, *others: str) -> dict[str, Any]:
    """Parts of one object, told by several types, as one."""
    whole: dict[str, Any] = parts[name]
    for other in map(parts.pop, others):
        whole["properties"] |= other["properties"]
        whole["required"] = [*whole.get("required", []), *other.get("required", [])]
    return whole


def _add(whole: dict[str, Any], properties: dict[str, Any], **rest: object) -> None:
    whole["properties"] |= properties
    whole["required"] += [name for name in properties if name not in whole["required"]]
    whole |= rest
