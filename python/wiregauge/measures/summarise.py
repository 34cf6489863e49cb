"""One series to one summary: figures, percentiles where n supports them, uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.results import Loss, Percentile, Summary, Uncertainty

Floats = NDArray[np.float64]


def summarise(
    measure: str,
    runs: Sequence[Floats],
    excluded: Mapping[str, int],
    *,
    clock_ns: float,
    stamp_ns: float,
) -> Summary:
    """The summary of one measure; `runs` holds one series per repeat, each in measured order.

    Repeats are pooled for range and percentiles. The mean's sampling half-width combines the runs' own (they are
    independent of each other), and is replaced by the spread between the runs' means where that is larger.
    """
    filled = [values for values in runs if len(values)]
    excluded = {reason: count for reason, count in excluded.items() if count}
    if not filled:
        return Summary(measure, 0, excluded, 0, runs=len(runs))
    pooled = np.concatenate(filled) if len(filled) > 1 else filled[0]
    ascending = np.sort(pooled)
    n = len(ascending)
    estimates = [estimate for values in filled if (estimate := stats.mean_estimate(values)) is not None]
    within = _within(filled, estimates)
    between = stats.between_run_half_width(np.array([estimate.mean for estimate in estimates]))
    sampling = max((half for half in (within, between) if half is not None), default=None)
    return Summary(
        measure=measure,
        n=n,
        excluded=excluded,
        negative=int(np.searchsorted(ascending, 0.0)),
        minimum=float(ascending[0]),
        mean=float(pooled.mean()),
        sd=stats.standard_deviation(pooled),
        mad=stats.mad(pooled),
        maximum=float(ascending[-1]),
        percentiles={name: percentile(ascending, q) for name, q in QUANTILES.items()},
        n_effective=sum(estimate.n_effective for estimate in estimates),
        uncertainty=Uncertainty(sampling, clock_ns, stamp_ns) if sampling is not None else None,
        runs=len(filled),
    )


def _within(runs: Sequence[Floats], estimates: Sequence[stats.MeanEstimate]) -> float | None:
    n = sum(len(values) for values in runs)
    parts = [
        (len(values) / n * estimate.half_width) ** 2
        for values, estimate in zip(runs, estimates, strict=True)
        if estimate.half_width is not None
    ]
    return float(np.sqrt(sum(parts))) if parts else None


def percentile(ascending: Floats, q: float) -> Percentile:
    """Percentile `q` of ascending values with its interval, or None inside where n does not support it."""
    n = len(ascending)
    needed = stats.samples_needed(q)
    if n < needed:
        return Percentile(q, None, None, None, needed)
    ranks = stats.quantile_ranks(n, q)
    return Percentile(
        q,
        stats.quantile(ascending, q),
        float(ascending[ranks.low - 1]) if ranks.low is not None else None,
        float(ascending[ranks.high - 1]) if ranks.high is not None else None,
        needed,
    )


def with_loss(values: Floats, lost: int) -> dict[str, float | None]:
    """Percentiles over all sent messages, a lost one counting as infinitely late (RFC 7679, 3.6: undefined delay).

    None where n does not support the percentile, infinity where it falls among the lost.
    """
    ascending = np.concatenate([np.sort(values), np.full(lost, np.inf)])
    n = len(ascending)
    return {
        name: stats.quantile(ascending, q) if n and stats.supported(n, q) else None
        for name, q in QUANTILES.items()
    }


def loss(lost: int, sent: int) -> Loss:
    """Loss ratio with exact bounds; nothing sent says nothing."""
    bound = stats.share_bound(lost, sent)
    return Loss(lost / sent if sent else None, bound.low, bound.high, bound.one_sided)
