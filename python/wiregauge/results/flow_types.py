"""Types of a flow in `show --json`, beside its distributions and its service."""

from __future__ import annotations

from math import isinf
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from msgspec import Meta

from wiregauge.files.typed_json import Count, Figure, From, Interval, as_json, filled
from wiregauge.measures.flow_measures import (
    AVAILABILITY,
    CONFORMITY,
    DEADLINE,
    GOODPUT,
    HOPS,
    LOSSES,
    PAIRS,
    RATES,
    REORDERING,
    WITH_LOSS,
)
from wiregauge.measures.flow_measures.base import FlowMeasure
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.hops import Hop
from wiregauge.measures.metrics.judgement import FlowResult, Loss
from wiregauge.measures.metrics.service import Availability, Conformity, Deadline, Losses, Rates, Reordering
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.quantities import percentile_names
from wiregauge.measures.validity.calibration import Corrected
from wiregauge.results.summary_types import (
    JitterShown,
    PairShown,
    SummaryShown,
    determined,
    ends,
    pair_shown,
)

OrLost = float | Literal["lost"] | None


def _or_lost(value: float | None) -> OrLost:
    return "lost" if value is not None and isinf(value) else value


class SampledShown(TypedDict):
    one_in: Annotated[int, Meta(ge=2)]
    stretch: Annotated[int, Meta(ge=1), From(lambda _: sampling.STRETCH)]
    held: Annotated[Count, From("rows")]
    of: Count
    figures: Annotated[list[str], From(lambda _: list(sampling.FIGURES))]
    settling: Count


def _goodput(flow: FlowResult) -> float | None:
    goodput = flow[GOODPUT]
    return goodput.value if goodput is not None else None


def _goodput_interval(flow: FlowResult) -> list[float | None] | None:
    goodput = flow[GOODPUT]
    return ends(goodput) if goodput is not None else None


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


class UncomparedShown(TypedDict):
    """The range of the offset of two clocks that were not compared, if no message came before it was sent."""

    reason: str
    at_least_ns: Figure
    at_most_ns: Figure


def _uncompared(flow: FlowResult) -> UncomparedShown | None:
    if not flow.uncompared:
        return None
    least, most = flow.clock_offset or (None, None)
    return UncomparedShown(reason=flow.uncompared, at_least_ns=least, at_most_ns=most)


class FlowMetShown(TypedDict):
    """Events that its messages met; the measures with a distribution follow."""

    unseen: NotRequired[
        Annotated[
            list[str],
            Meta(
                description="ends of the flow where a run made from captures has no tap; sent counts what any tap "
                "saw, and what was delivered or lost is not known"
            ),
        ]
    ]
    uncompared: NotRequired[Annotated[UncomparedShown | None, From(_uncompared)]]
    outcomes: dict[str, Count]
    loss: Loss
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


class ServedShown(TypedDict):
    period_jitter_ns: NotRequired[Annotated[JitterShown | None, _jitter("period")]]
    receive_period_jitter_ns: NotRequired[Annotated[JitterShown | None, _jitter("receive_period")]]
    pairs: NotRequired[
        Annotated[list[PairShown], From(lambda flow: [pair_shown(pair) for pair in flow[PAIRS]])]
    ]
    goodput_interval: NotRequired[Annotated[Interval | None, From(_goodput_interval)]]


def _sampled(flow: FlowResult) -> SampledShown | None:
    return filled(SampledShown, flow.sampled, settling=flow.settling) if flow.sampled is not None else None


def _with_loss_intervals(flow: FlowResult) -> dict[str, list[OrLost]]:
    return {name: [_or_lost(end) for end in ends(p)] for name, p in determined(flow[WITH_LOSS]).items()}


class FlowRestShown(TypedDict):
    pdv_ns: Annotated[Figure, From(lambda flow: flow.spread.pdv())]
    range_ns: Annotated[Figure, From(lambda flow: flow.spread.span())]
    percentiles_with_loss_ns: Annotated[
        dict[str, OrLost], From(lambda flow: {name: _or_lost(p.value) for name, p in flow[WITH_LOSS].items()})
    ]
    percentiles_with_loss_intervals: NotRequired[
        Annotated[
            dict[str, Annotated[list[OrLost], Meta(min_length=2, max_length=2)]], From(_with_loss_intervals)
        ]
    ]
    hops: NotRequired[Annotated[list[Hop], From(lambda flow: [as_json(hop) for hop in flow[HOPS]])]]
    corrected: NotRequired[list[Corrected]]
    redundant_discarded: NotRequired[Count]
    lost_copies: NotRequired[dict[str, Count]]
    sampled: NotRequired[Annotated[SampledShown | None, From(_sampled)]]
    goodput_bps: Annotated[Figure, From(_goodput)]


def _figures(measure: FlowMeasure[Any]) -> From:
    def found(flow: FlowResult) -> object:
        part = flow[measure]
        return as_json(part) if part is not None else None

    return From(found)


def _conformity(flow: FlowResult) -> dict[str, Any] | None:
    contracts = flow[CONFORMITY]
    return {one.of: as_json(one) for one in contracts} if contracts is not None else None


class ServiceShown(TypedDict):
    """After the intervals of the single figures."""

    load: NotRequired[Annotated[Rates | None, _figures(RATES)]]
    losses: NotRequired[Annotated[Losses | None, _figures(LOSSES)]]
    availability: NotRequired[Annotated[Availability | None, _figures(AVAILABILITY)]]
    reordering: NotRequired[Annotated[Reordering | None, _figures(REORDERING)]]
    deadline: NotRequired[Annotated[Deadline | None, _figures(DEADLINE)]]
    conformity: NotRequired[Annotated[dict[str, Conformity] | None, From(_conformity)]]


class BriefShown(TypedDict):
    """The short form of a flow in a run with very many, besides its counters and a few distributions."""

    unseen: list[str]
    outcomes: dict[str, Count]
    loss: Loss
    late_sends: Count
    goodput_bps: Annotated[Figure, From(_goodput)]


BRIEF = ("latency", "rtt", "period")
"""Distributions that every such flow has."""


def brief_summary(summary: Summary | None) -> SummaryShown | None:
    """A summary of such a flow: `uncertainty` is of its mean, and intervals are given with its other figures."""
    if summary is None:
        return None
    percentiles = {name: summary.value(name) for name in percentile_names(summary)}
    total = summary.uncertainty.total if summary.uncertainty is not None else None
    made = {**filled(SummaryShown, summary), **percentiles, "max": summary.maximum, "uncertainty": total}
    return cast(SummaryShown, made)
