"""What `wiregauge show --json` and `measures.json` hold, typed; their schema is made from this.

Times are ns, rates bit/s, shares between 0 and 1. None: not determined or not supported by n. Of a flow and its
summaries the keys that are named after measures and percentiles come from the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from msgspec import Meta

from wiregauge.measures.definitions import (
    COUNTS,
    DEFINITIONS,
    OUTCOMES,
    PAIR_QUANTILES,
    QUANTILES,
    SERIES,
    SINGLES,
)
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.measures.metrics.pairs import PairLatency
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.quantities import percentile_names
from wiregauge.measures.metrics.results import FlowResult, LimitResult
from wiregauge.measures.metrics.summary import Settling, Summary
from wiregauge.measures.schemas import (
    Count,
    Figure,
    From,
    Grade,
    Interval,
    Positive,
    Share,
    Verdict,
    filled,
    json_schema,
)

OrLost = float | Literal["lost"] | None
_CLOCK_POINTS = 40


def _or_lost(value: float | None) -> OrLost:
    return "lost" if value is not None and isinf(value) else value


def _ends(found: Any) -> list[Any]:
    """An interval, or what has the ends of one; open on both sides where there is none."""
    if found is None:
        return [None, None]
    return list(found) if isinstance(found, tuple) else [found.low, found.high]


def _determined(percentiles: Mapping[str, Percentile]) -> dict[str, Percentile]:
    return {name: found for name, found in percentiles.items() if found.value is not None}


def _intervals(found: Summary | PairLatency) -> dict[str, list[float | None]]:
    return {name: _ends(one) for name, one in _determined(found.percentiles).items()}


class CheckShown(TypedDict):
    name: str
    limit: str
    observed: str
    grade: Annotated[
        str,
        Meta(extra_json_schema={"enum": ["ok", "note", "degraded", "invalid"]}),
        From(lambda check: check.grade.name.lower()),
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
    interval: Annotated[Interval | None, From(_limit_interval)]
    missing: Count
    holds: bool
    reason: str


class LoadShown(TypedDict):
    on: str
    to: str
    intended: Positive
    offered: Figure


def _limit_interval(limit: LimitResult) -> list[float | None] | None:
    return [limit.low, limit.high] if (limit.low, limit.high) != (None, None) else None


class OffsetShown(TypedDict):
    at_s: float
    offset_ns: float
    uncertainty_ns: Positive


def _offsets(clock: ClockResult) -> list[OffsetShown]:
    """At most so many points as a picture needs; each is offset and half-width at a time of the node's clock."""
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


class LossShown(TypedDict):
    ratio: Share | None
    low: Share
    high: Share
    one_sided: bool
    assumption: Annotated[str | None, From(lambda loss: loss.assumption or None)]


class PartsShown(TypedDict):
    sampling: Positive
    clock: Positive
    timestamp: Positive


class RepeatsShown(TypedDict):
    runs: Count
    between_sd: Annotated[Positive, From("between")]
    within_sd: Annotated[Figure, From("within")]


class StationarityShown(TypedDict):
    steady: bool | None
    p: Figure
    changes: Annotated[str, Meta(extra_json_schema={"enum": ["level", "tail"]})]
    correlation_time: Annotated[float, Meta(ge=1)]
    median_first_half: Annotated[float, From(lambda found: found.halves[0])]
    median_second_half: Annotated[float, From(lambda found: found.halves[1])]


class WithoutShown(TypedDict):
    p50: Figure
    p99: Figure
    max: float


def _without(settling: Settling) -> WithoutShown:
    rest = settling.without
    return {"p50": rest["p50"], "p99": rest["p99"], "max": settling.maximum_without}


class SettlingShown(TypedDict):
    n: Annotated[int, Meta(ge=1)]
    min: Annotated[float, From("minimum")]
    max: Annotated[float, From("maximum")]
    without: Annotated[WithoutShown, From(_without)]


class SummaryShown(TypedDict):
    """Besides the percentiles, which stand before `max`."""

    n: Count
    min: Annotated[Figure, From("minimum")]
    mean: Figure
    sd: Figure
    mad: Figure


def _interval_needs(summary: Summary) -> dict[str, int]:
    needs = {"mean": summary.interval_needs}
    needs |= {name: found.interval_needs for name, found in summary.percentiles.items()}
    return {name: needed for name, needed in needs.items() if needed is not None}


class SummaryRestShown(TypedDict):
    max: Annotated[Figure, From("maximum")]
    uncertainty: Annotated[
        Figure, Meta(description="95 % half-width of the mean, ns"), From("uncertainty.total")
    ]
    uncertainty_parts: Annotated[PartsShown | None, From("uncertainty")]
    n_effective: Figure
    intervals: Annotated[dict[str, Interval], From(_intervals)]
    percentiles_n_effective: NotRequired[
        Annotated[
            dict[str, Figure],
            From(lambda summary: {name: p.worth for name, p in _determined(summary.percentiles).items()}),
        ]
    ]
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
            From(_interval_needs),
        ]
    ]
    sd_interval: NotRequired[Interval | None]
    repeats: NotRequired[RepeatsShown | None]
    stationarity: NotRequired[StationarityShown | None]
    settling: NotRequired[SettlingShown | None]
    excluded: dict[str, Count]
    negative: Count


def summary_shown(summary: Summary, *, sampled: bool) -> SummaryShown:
    """A summary, with its percentiles."""
    names = percentile_names(summary)
    rest = filled(SummaryRestShown, summary, of_sample=_of_sample(summary, names) if sampled else [])
    percentiles = {name: summary.value(name) for name in names}
    return cast(SummaryShown, {**filled(SummaryShown, summary), **percentiles, **rest})


def _of_sample(summary: Summary, percentiles: tuple[str, ...]) -> list[str]:
    """Keys of a summary whose figures rest on the sample of a flow too big to be held."""
    if not summary.n:
        return []
    figures = ("min", "mean", "sd", *percentiles, "max", "negative") if summary.of_sample else ()
    return [*figures, *sampling.OF_SUMMARY]


class JitterShown(TypedDict):
    n: Count
    sd: Figure
    low: Annotated[Figure, From(lambda summary: _ends(summary.sd_interval)[0])]
    high: Annotated[Figure, From(lambda summary: _ends(summary.sd_interval)[1])]


class HopShown(TypedDict):
    switch: str
    port: Count
    n: Count
    min: Annotated[Figure, From("minimum")]
    mean: Figure
    uncertainty: Annotated[Figure, From("half_width")]
    p99: Figure
    max: Annotated[Figure, From("maximum")]


class CorrectedShown(TypedDict):
    measure: Annotated[str, Meta(extra_json_schema={"enum": ["latency", "driver_latency"]})]
    calibration: Annotated[str, From("constant.calibration")]
    overhead_ns: Annotated[float, From("constant.overhead_ns")]
    overhead_uncertainty_ns: Annotated[Positive, From("constant.uncertainty_ns")]
    error_ns: Annotated[Figure, From("constant.error_ns")]
    unresolved: bool
    n: Count
    min: Annotated[Figure, From("minimum")]
    mean: Figure
    p50: Figure
    p99: Figure
    max: Annotated[Figure, From("maximum")]
    uncertainty: Figure


class SampledShown(TypedDict):
    one_in: Annotated[int, Meta(ge=2)]
    stretch: Annotated[int, Meta(ge=1), From(lambda _: sampling.STRETCH)]
    held: Annotated[Count, From("rows")]
    of: Count
    figures: Annotated[list[str], From(lambda _: list(sampling.FIGURES))]
    settling: Count


class CountedShown(TypedDict):
    count: Count
    n: Count
    ratio: Share | None
    low: Share
    high: Share
    n_effective: Annotated[Positive, From("worth")]


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
    min: Annotated[float, From("minimum")]
    mean: float
    uncertainty: Annotated[Figure, From("half_width")]


class PairRestShown(TypedDict):
    max: Annotated[float, From("maximum")]
    intervals: Annotated[dict[str, Interval], From(_intervals)]


def _pair(pair: PairLatency) -> PairShown:
    percentiles = {name: found.value for name, found in pair.percentiles.items()}
    return cast(PairShown, {**filled(PairShown, pair), **percentiles, **filled(PairRestShown, pair)})


class RatesShown(TypedDict):
    intended_per_s: float
    offered_per_s: Annotated[float, From("offered_per_s.value")]
    offered_interval: Annotated[Interval, From(lambda rates: _ends(rates.offered_per_s))]
    ratio: float
    intended_bps: Annotated[Figure, From(lambda rates: rates.on_wire(rates.intended_per_s))]
    offered_bps: Annotated[Figure, From(lambda rates: rates.on_wire(rates.offered_per_s.value))]
    link_bps: Count | None


class LossesShown(TypedDict):
    periods: Count
    longest: Count
    lengths: dict[str, Count]
    least_distance: Count | None
    shortest_clear: Count | None


class AvailabilityShown(TypedDict):
    ratio: Share | None
    low: Annotated[Share, From(lambda up: 1 - up.down.high)]
    high: Annotated[Share, From(lambda up: 1 - up.down.low)]
    n: Annotated[Count, From("down.n")]
    down: Annotated[Count, From("down.count")]
    outages: Count
    longest: Count


class ReorderingShown(CountedShown):
    extent_max: Count
    extent_mean: Figure
    n_reordered: dict[str, Count]
    n_max: Count
    late_time_max_ns: Figure


def _reordering(flow: FlowResult) -> ReorderingShown | None:
    if flow.service is None:
        return None
    order = flow.service.reordering
    return filled(ReorderingShown, order, **filled(CountedShown, order.share))


def _goodput_interval(flow: FlowResult) -> list[float | None] | None:
    goodput = flow.service.goodput if flow.service is not None else None
    return _ends(goodput) if goodput is not None else None


class DeadlineShown(TypedDict):
    deadline_ns: float
    missed: CountedShown
    late: Count
    tardiness_mean_ns: Figure
    tardiness_max_ns: Figure
    tardiness_uncertainty_ns: Annotated[Figure, From("tardiness_half_width_ns")]


FlowShown = TypedDict(
    "FlowShown",
    {
        "flow": Annotated[int, Meta(ge=1, le=65_534), From("plan.id")],
        "protocol": Annotated[str, From("plan.protocol")],
        "from": Annotated[str, From("plan.source")],
        "to": Annotated[str, From("plan.destination")],
        "relayed": Annotated[bool, From("plan.relayed")],
        "payload": Annotated[int | None, Meta(description="bytes"), From("plan.payload")],
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


def _jitter(of: str) -> From:
    def found(flow: FlowResult) -> JitterShown | None:
        summary = flow.summaries.get(of)
        return filled(JitterShown, summary) if summary is not None else None

    return From(found)


def _conformity(flow: FlowResult) -> dict[str, ConformityShown] | None:
    if flow.service is None:
        return None
    return {one.of: filled(ConformityShown, one) for one in flow.service.conformity}


class ServedShown(TypedDict):
    period_jitter_ns: NotRequired[Annotated[JitterShown | None, _jitter("period")]]
    receive_period_jitter_ns: NotRequired[Annotated[JitterShown | None, _jitter("receive_period")]]
    pairs: NotRequired[Annotated[list[PairShown], From(lambda flow: [_pair(pair) for pair in flow.pairs])]]
    goodput_interval: NotRequired[Annotated[Interval | None, From(_goodput_interval)]]


class ServiceShown(TypedDict):
    """After the intervals of the single figures."""

    load: NotRequired[Annotated[RatesShown | None, From("service.rates")]]
    losses: NotRequired[Annotated[LossesShown | None, From("service.losses")]]
    availability: NotRequired[Annotated[AvailabilityShown | None, From("service.availability")]]
    reordering: NotRequired[Annotated[ReorderingShown | None, From(_reordering)]]
    deadline: NotRequired[Annotated[DeadlineShown | None, From("service.deadline")]]
    conformity: NotRequired[Annotated[dict[str, ConformityShown] | None, From(_conformity)]]


def _sampled(flow: FlowResult) -> SampledShown | None:
    return filled(SampledShown, flow.sampled, settling=flow.settling) if flow.sampled is not None else None


def _with_loss_intervals(flow: FlowResult) -> dict[str, list[OrLost]]:
    return {name: [_or_lost(end) for end in _ends(p)] for name, p in _determined(flow.with_loss).items()}


class FlowRestShown(TypedDict):
    pdv_ns: Annotated[Figure, From(lambda flow: flow.summaries["latency"].pdv())]
    range_ns: Annotated[Figure, From(lambda flow: flow.summaries["latency"].span())]
    percentiles_with_loss_ns: Annotated[
        dict[str, OrLost], From(lambda flow: {name: _or_lost(p.value) for name, p in flow.with_loss.items()})
    ]
    percentiles_with_loss_intervals: NotRequired[
        Annotated[
            dict[str, Annotated[list[OrLost], Meta(min_length=2, max_length=2)]], From(_with_loss_intervals)
        ]
    ]
    hops: NotRequired[list[HopShown]]
    corrected: NotRequired[list[CorrectedShown]]
    redundant_discarded: NotRequired[Count]
    lost_copies: NotRequired[dict[str, Count]]
    sampled: NotRequired[Annotated[SampledShown | None, From(_sampled)]]
    goodput_bps: Figure


class BriefShown(TypedDict):
    """What is told of every flow of a run with very many, besides its counters and a few distributions."""

    unseen: list[str]
    outcomes: dict[str, Count]
    loss: LossShown
    late_sends: Count
    goodput_bps: Figure


BRIEF = ("latency", "rtt", "period")
"""Distributions that are told of every such flow."""


def brief_summary(summary: Summary | None) -> SummaryShown | None:
    """A summary of such a flow: `uncertainty` is of its mean, and intervals stand with its other figures."""
    if summary is None:
        return None
    percentiles = {name: summary.value(name) for name in percentile_names(summary)}
    total = summary.uncertainty.total if summary.uncertainty is not None else None
    made = {**filled(SummaryShown, summary), **percentiles, "max": summary.maximum, "uncertainty": total}
    return cast(SummaryShown, made)


class RunShown(TypedDict):
    index: Annotated[Count, From("plan.index")]
    point: Annotated[dict[str, str], From("plan.point")]
    repeat: Annotated[Count, From("plan.repeat")]
    state: str
    validity: Annotated[Grade, From("validity.word")]
    verdict: Verdict
    reasons: list[str]
    checks: list[CheckShown]
    limits: list[LimitShown]
    unplanned: dict[str, Count]
    loads: NotRequired[list[LoadShown]]
    clocks: NotRequired[list[ClockShown]]
    clusters: NotRequired[list[ClusterShown]]
    ptp_domains: NotRequired[list[PtpDomainShown]]
    credits: NotRequired[list[CreditShown]]
    details: NotRequired[
        Annotated[
            str,
            Meta(
                description="of a run with very many flows: the file with all figures of each, a line for each"
            ),
        ]
    ]
    flows: list[FlowShown]


class PooledShown(TypedDict):
    point: dict[str, str]
    runs: Annotated[list[Count], Meta(min_length=1)]
    validity: Annotated[Grade, From("validity.word")]
    flows_of_run: NotRequired[
        Annotated[
            Count,
            Meta(
                description="of a single run with very many flows: its index, under which the flows stand; `flows` is "
                "empty"
            ),
        ]
    ]
    flows: list[FlowShown]


class Shown(TypedDict):
    schema: Literal[2]
    test: Annotated[str, From("plan.name")]
    validity: Annotated[Grade, From("validity.word")]
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
    service: ServiceShown
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
    for name in ("flow_met", "flow_rest", "served", "service", "summary", "summary_rest", "pair_rest"):
        del schema["properties"][name]
        schema["required"].remove(name)
    figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    any_percentile = {"^p[0-9.]+$": figure}
    summary = _joined(parts, "SummaryShown", "SummaryRestShown")
    _add(summary, dict.fromkeys(QUANTILES, figure), patternProperties=any_percentile)
    pair = _joined(parts, "PairShown", "PairRestShown")
    _add(pair, dict.fromkeys(PAIR_QUANTILES, figure), patternProperties=any_percentile)
    flow = _joined(parts, "FlowShown", "FlowMetShown", "FlowRestShown", "ServedShown", "ServiceShown")
    flow["properties"]["outcomes"]["required"] = list(OUTCOMES)
    _add(flow, {name: {"type": "integer", "minimum": 0} for name in COUNTS})
    told = {"$ref": "#/$defs/SummaryShown"}
    for name in SERIES:
        needs = DEFINITIONS[name].needs
        _add(flow, {f"{name}_ns": {"anyOf": [told, {"type": "null"}]} if needs else told})
        if needs not in ("", "relay"):  # of critical traffic, and younger than the schema
            flow["required"].remove(f"{name}_ns")
    _add(flow, {DEFINITIONS[name].key: figure for name in SINGLES})
    _add_brief(parts, flow)
    interval = flow["properties"]["goodput_interval"]
    flow["properties"] |= {f"{name}_interval": interval for name in SINGLES}
    return schema


def _add_brief(parts: dict[str, Any], flow: dict[str, Any]) -> None:
    """The form that flows of a run with very many have: some of the keys."""
    keys = [*FlowShown.__annotations__, *COUNTS, *BriefShown.__annotations__]
    figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    summary = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}},
        "additionalProperties": figure,
        "required": ["n", "min", "mean", "sd", "mad", *QUANTILES, "max", "uncertainty"],
    }
    told = {f"{name}_ns": {"anyOf": [summary, {"type": "null"}]} for name in BRIEF}
    parts["FlowBriefShown"] = {
        "type": "object",
        "description": "a flow of a run with very many; all its figures are in the file that `details` names",
        "properties": {**{key: flow["properties"][key] for key in keys}, **told},
        "required": [*keys, *told],
        "additionalProperties": False,
    }
    for whole in ("RunShown", "PooledShown"):
        parts[whole]["properties"]["flows"]["items"] = {
            "anyOf": [{"$ref": "#/$defs/FlowShown"}, {"$ref": "#/$defs/FlowBriefShown"}]
        }


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
