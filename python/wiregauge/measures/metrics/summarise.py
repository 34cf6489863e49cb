"""One series to one summary: figures, percentiles where n supports them, uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, sqrt

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.metrics.batching import SeriesStatistics
from wiregauge.measures.metrics.judgement import Loss
from wiregauge.measures.metrics.percentiles import Percentile, percentiles, unsupported
from wiregauge.measures.metrics.summary import Repeats, Summary, Uncertainty

Floats = NDArray[np.float64]


def summarise(
    measure: str,
    runs: Sequence[Floats],
    excluded: Mapping[str, int],
    *,
    clock_ns: float,
    timestamp_ns: float,
    quantiles: Mapping[str, float] = QUANTILES,
) -> Summary:
    """The summary of one measure; `runs` holds one series per repeat, each in measured order.

    Repeats are pooled for range and percentiles. Of one run the intervals rest on its effective n. Of repeats they rest
    on the spread between the runs, which holds the chance within them, too.
    """
    filled = [values for values in runs if len(values)]
    excluded = {reason: count for reason, count in excluded.items() if count}
    if not filled:
        return Summary(measure, 0, excluded, 0, runs=len(runs))
    pooled = np.concatenate(filled) if len(filled) > 1 else filled[0]
    ascending = np.sort(pooled)
    n = len(ascending)
    estimates = [estimate for values in filled if (estimate := stats.mean_estimate(values)) is not None]
    sampling = _sampling(filled, estimates)
    return Summary(
        measure=measure,
        n=n,
        excluded=excluded,
        negative=int(np.searchsorted(ascending, 0.0)),
        minimum=float(ascending[0]),
        mean=float(pooled.mean()),
        sd=stats.standard_deviation(pooled),
        mad=stats.mad_of_ascending(ascending),
        maximum=float(ascending[-1]),
        percentiles=percentiles(filled, ascending, quantiles),
        n_effective=sum(estimate.n_effective for estimate in estimates),
        uncertainty=Uncertainty(sampling, clock_ns, timestamp_ns) if sampling is not None else None,
        runs=len(filled),
        sd_interval=stats.repeated_deviation_interval(filled)
        if len(filled) > 1
        else stats.deviation_interval(pooled),
        repeats=_repeats(filled, estimates),
        interval_needs=estimates[0].needed if sampling is None else None,
        clock=clock_ns,
        timestamp=timestamp_ns,
    )


def summary_of(
    measure: str,
    figures: SeriesStatistics | None,
    excluded: Mapping[str, int],
    *,
    clock_ns: float,
    timestamp_ns: float,
) -> Summary:
    """The summary of a measure in a single run by the figures of its series; None of no values."""
    excluded = {reason: count for reason, count in excluded.items() if count}
    if figures is None:
        return Summary(measure, 0, excluded, 0)
    estimate = figures.estimate
    half = estimate.half_width
    return Summary(
        measure=measure,
        n=figures.n,
        excluded=excluded,
        negative=figures.negative,
        minimum=figures.minimum,
        mean=estimate.mean,
        sd=figures.sd,
        mad=figures.mad,
        maximum=figures.maximum,
        percentiles=figures.percentiles,
        n_effective=estimate.n_effective,
        uncertainty=Uncertainty(half, clock_ns, timestamp_ns) if half is not None else None,
        sd_interval=figures.sd_interval,
        interval_needs=estimate.needed if half is None else None,
        clock=clock_ns,
        timestamp=timestamp_ns,
    )


def shifted(summary: Summary, measure: str, by: float, *, negative: int, clock_ns: float) -> Summary:
    """The summary of the same values minus `by`: location changes, spread does not.

    `negative` of the shifted values are below zero.
    """

    def moved(value: float | None) -> float | None:
        return value - by if value is not None else None

    known = summary.uncertainty
    return replace(
        summary,
        measure=measure,
        negative=negative,
        minimum=moved(summary.minimum),
        mean=moved(summary.mean),
        maximum=moved(summary.maximum),
        # Unsupported percentiles stay as they are, and all flows share them.
        percentiles={
            name: replace(p, value=moved(p.value), low=moved(p.low), high=moved(p.high))
            if p.value is not None
            else p
            for name, p in summary.percentiles.items()
        },
        uncertainty=replace(known, clock=clock_ns) if known is not None else None,
        clock=clock_ns,
    )


def _sampling(runs: Sequence[Floats], estimates: Sequence[stats.MeanEstimate]) -> float | None:
    if len(runs) == 1:
        return estimates[0].half_width
    n = sum(len(values) for values in runs)
    return stats.repeated_mean_half_width(
        np.array([estimate.mean for estimate in estimates]), np.array([len(values) / n for values in runs])
    )


def _repeats(runs: Sequence[Floats], estimates: Sequence[stats.MeanEstimate]) -> Repeats | None:
    """Variance of the runs' means, split into the part explained by their own sampling and the rest."""
    if len(runs) < 2:
        return None
    total = float(np.var([estimate.mean for estimate in estimates], ddof=1))
    own = [
        spread**2 / estimate.n_effective
        for values, estimate in zip(runs, estimates, strict=True)
        if (spread := stats.standard_deviation(values)) is not None
    ]
    within = float(np.mean(own)) if len(own) == len(runs) else None
    return Repeats(
        len(runs), sqrt(max(total - (within or 0.0), 0.0)), sqrt(within) if within is not None else None
    )


def with_loss(
    runs: Sequence[Floats], lost: Sequence[NDArray[np.bool_]], quantiles: Mapping[str, float] = QUANTILES
) -> dict[str, Percentile]:
    """Percentiles over all sent messages, a lost one counting as infinitely late (RFC 7679, 3.6: undefined delay).

    One array per repeat, in measured order; where `lost` is set its value is ignored. A value or an end of an interval
    is infinite where it falls among the lost, and the value None where n does not support it.
    """
    arrived = [values[~gone] for values, gone in zip(runs, lost, strict=True)]
    # Later than all that came, and finite: an infinite value has no mean and no correlation.
    never = 2 * max((float(np.abs(values).max()) for values in arrived if len(values)), default=0.0) + 1
    filled = [np.where(gone, never, values) for values, gone in zip(runs, lost, strict=True) if len(values)]
    if not filled:
        return unsupported(quantiles)

    def late(value: float | None) -> float | None:
        return inf if value == never else value

    found = percentiles(filled, np.sort(np.concatenate(filled)), quantiles)
    return {
        name: replace(p, value=late(p.value), low=late(p.low), high=late(p.high)) for name, p in found.items()
    }


def loss(
    lost: int, sent: int, worth: float | None = None, unknown: int = 0, open_worth: float | None = None
) -> Loss:
    """Loss ratio with exact bounds; None where nothing was sent. `worth`: independent messages where losses cluster.

    The bounds cover both cases for messages of `unknown` outcome: none lost, and all; `open_worth` is the worth for the
    latter.
    """
    bound = stats.share_bound(lost, sent, worth)
    ratio = lost / sent if sent else None
    if not unknown:
        return Loss(ratio, bound.low, bound.high, bound.one_sided)
    return Loss(ratio, bound.low, stats.share_bound(lost + unknown, sent, open_worth).high, one_sided=False)
