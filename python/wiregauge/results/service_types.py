"""Types of the service of a flow's receiver in `show --json`."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict, cast

from msgspec import Meta

from wiregauge.measures.flow_measures import SERVICE
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.service import Service
from wiregauge.results.summary_types import ends
from wiregauge.results.typed_json import Count, Figure, From, Interval, Positive, Share, filled


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


class RatesShown(TypedDict):
    intended_per_s: float
    offered_per_s: Annotated[float, From("offered_per_s.value")]
    offered_interval: Annotated[Interval, From(lambda rates: ends(rates.offered_per_s))]
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


def _reordering(service: Service) -> ReorderingShown:
    order = service.reordering
    return filled(ReorderingShown, order, **filled(CountedShown, order.share))


class DeadlineShown(TypedDict):
    deadline_ns: float
    missed: CountedShown
    late: Count
    tardiness_mean_ns: Figure
    tardiness_max_ns: Figure
    tardiness_uncertainty_ns: Annotated[Figure, From("tardiness_half_width_ns")]


def _conformity(service: Service) -> dict[str, ConformityShown]:
    return {one.of: filled(ConformityShown, one) for one in service.conformity}


class ServiceShown(TypedDict):
    """After the intervals of the single figures."""

    load: NotRequired[Annotated[RatesShown | None, From("rates")]]
    losses: NotRequired[Annotated[LossesShown | None, From("losses")]]
    availability: NotRequired[Annotated[AvailabilityShown | None, From("availability")]]
    reordering: NotRequired[Annotated[ReorderingShown | None, From(_reordering)]]
    deadline: NotRequired[Annotated[DeadlineShown | None, From("deadline")]]
    conformity: NotRequired[Annotated[dict[str, ConformityShown] | None, From(_conformity)]]


def service_shown(flow: FlowResult) -> ServiceShown:
    service = flow[SERVICE]
    if service is not None:
        return filled(ServiceShown, service)
    return cast(ServiceShown, dict.fromkeys(ServiceShown.__annotations__))
