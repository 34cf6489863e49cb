"""The service of a flow as JSON objects: the part of `show --json` that tells how fates follow one another."""

from __future__ import annotations

from typing import cast

from wiregauge.measures.metrics.pairs import PairLatency
from wiregauge.measures.metrics.quantities import effective_bandwidth_interval
from wiregauge.measures.metrics.results import FlowResult, Summary
from wiregauge.measures.metrics.service import (
    Availability,
    Conformity,
    Deadline,
    Losses,
    Rate,
    Rates,
    Reordering,
    Service,
    Share,
)
from wiregauge.measures.shown import (
    AvailabilityShown,
    ConformityShown,
    CountedShown,
    DeadlineShown,
    JitterShown,
    LossesShown,
    PairRestShown,
    PairShown,
    RatesShown,
    ReorderingShown,
    ServedShown,
    ServiceShown,
)

__all__ = ["of_flow"]


def of_flow(flow: FlowResult) -> ServedShown:
    """Keys of a flow beside its summaries; see docs/reference/show.md."""
    service = flow.service
    return {
        "period_jitter_ns": _jitter(flow.summaries.get("period")),
        "receive_period_jitter_ns": _jitter(flow.summaries.get("receive_period")),
        "pairs": [_pair(pair) for pair in flow.pairs],
        "goodput_interval": _rate_interval(service.goodput) if service else None,
        "effective_bandwidth_interval": effective_bandwidth_interval(flow),
        **_service(service),
    }


def _service(service: Service | None) -> ServiceShown:
    if service is None:
        return {
            "load": None,
            "losses": None,
            "availability": None,
            "reordering": None,
            "deadline": None,
            "conformity": None,
        }
    return {
        "load": _rates(service.rates) if service.rates is not None else None,
        "losses": _losses(service.losses),
        "availability": _availability(service.availability),
        "reordering": _reordering(service.reordering),
        "deadline": _deadline(service.deadline) if service.deadline is not None else None,
        "conformity": {one.of: _conformity(one) for one in service.conformity},
    }


def _share(share: Share) -> CountedShown:
    return {
        "count": share.count,
        "n": share.n,
        "ratio": share.ratio,
        "low": share.low,
        "high": share.high,
        "n_effective": share.worth,
    }


def _jitter(summary: Summary | None) -> JitterShown | None:
    if summary is None:
        return None
    low, high = summary.sd_interval or (None, None)
    return {"n": summary.n, "sd": summary.sd, "low": low, "high": high}


def _rate_interval(rate: Rate | None) -> list[float | None] | None:
    return [rate.low, rate.high] if rate is not None else None


def _rates(rates: Rates) -> RatesShown:
    offered = rates.offered_per_s
    return {
        "intended_per_s": rates.intended_per_s,
        "offered_per_s": offered.value,
        "offered_interval": [offered.low, offered.high],
        "ratio": rates.ratio,
        "intended_bps": rates.on_wire(rates.intended_per_s),
        "offered_bps": rates.on_wire(offered.value),
        "link_bps": rates.link_bps,
    }


def _losses(losses: Losses) -> LossesShown:
    return {
        "periods": losses.periods,
        "longest": losses.longest,
        "lengths": {str(length): count for length, count in losses.lengths.items()},
        "least_distance": losses.least_distance,
        "shortest_clear": losses.shortest_clear,
    }


def _availability(availability: Availability) -> AvailabilityShown:
    return {
        "ratio": availability.ratio,
        "low": 1 - availability.down.high,
        "high": 1 - availability.down.low,
        "n": availability.down.n,
        "down": availability.down.count,
        "outages": availability.outages,
        "longest": availability.longest,
    }


def _reordering(order: Reordering) -> ReorderingShown:
    return {
        **_share(order.share),
        "extent_max": order.extent_max,
        "extent_mean": order.extent_mean,
        "n_reordered": {str(n): count for n, count in order.n_reordered.items()},
        "n_max": order.n_max,
        "late_time_max_ns": order.late_time_max_ns,
    }


def _deadline(deadline: Deadline) -> DeadlineShown:
    return {
        "deadline_ns": deadline.deadline_ns,
        "missed": _share(deadline.missed),
        "late": deadline.late,
        "tardiness_mean_ns": deadline.tardiness_mean_ns,
        "tardiness_max_ns": deadline.tardiness_max_ns,
        "tardiness_uncertainty_ns": deadline.tardiness_half_width_ns,
    }


def _conformity(one: Conformity) -> ConformityShown:
    return {
        "outside": _share(one.outside),
        "allowed_ns": list(one.allowed_ns),
        "worst_ns": one.worst_ns,
        "missing": one.missing,
    }


def _pair(pair: PairLatency) -> PairShown:
    first: PairShown = {
        "start": pair.start,
        "end": pair.end,
        "n": pair.n,
        "missing": pair.missing,
        "min": pair.minimum,
        "mean": pair.mean,
        "uncertainty": pair.half_width,
    }
    rest: PairRestShown = {
        "max": pair.maximum,
        "intervals": {
            name: [found.low, found.high]
            for name, found in pair.percentiles.items()
            if found.value is not None
        },
    }
    percentiles = {name: found.value for name, found in pair.percentiles.items()}
    return cast(PairShown, {**first, **percentiles, **rest})
