"""Summary of a sample as JSON, with n, and percentiles only where n supports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wiregauge import stats

Floats = NDArray[np.float64]
BINS: Final = 40


def describe(values: Floats) -> dict[str, Any]:
    """n, minimum, mean with the half-width of its 95 % interval, deviation, percentiles, maximum; all in ns."""
    if len(values) == 0:
        return {"n": 0}
    ascending = np.sort(values)
    mean = stats.mean_estimate(values)
    assert mean is not None
    found: dict[str, Any] = {
        "n": len(values),
        "min_ns": float(ascending[0]),
        "mean_ns": mean.mean,
        "mean_half_width_ns": mean.half_width,
        "sd_ns": stats.standard_deviation(values),
        "max_ns": float(ascending[-1]),
    }
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)):
        found[f"{name}_ns"] = stats.quantile(ascending, q) if stats.supported(len(values), q) else None
    return found


def error_of(repeats: Sequence[Floats], timestamp_ns: float) -> dict[str, Any]:
    """Systematic and random error of a path whose true time is a constant (RFC 7679, 3.7.3).

    Systematic: the median m of all values. Random: the 2.5 % and 97.5 % quantiles of x - m; its size is
    the greater of the two, and with the error of the timestamps it is the calibration error. Maximum deviation: the
    greatest |x - m|; half range: (max - min) / 2, the "±" of the high-precision test bed. The systematic error is
    uncertain by its interval or the distance of a repeat's own median, whichever is greater, and by the timestamps.
    """
    values = np.concatenate(repeats)
    ascending = np.sort(values)
    median = stats.quantile(ascending, 0.5)
    low, high = (stats.quantile(ascending, q) - median for q in (0.025, 0.975))
    if len(repeats) > 1:
        interval = stats.repeated_quantile_interval([np.sort(run) for run in repeats], ascending, 0.5)
    else:
        interval = stats.quantile_interval(values, ascending, 0.5)
    sides = [abs(end - median) for end in (interval.low, interval.high) if end is not None]
    apart = max(abs(float(np.median(run)) - median) for run in repeats)
    random = max(abs(low), abs(high))
    return {
        "n": len(values),
        "systematic_ns": median,
        "systematic_uncertainty_ns": max([apart, *sides]) + timestamp_ns,
        "random_low_ns": low,
        "random_high_ns": high,
        "random_ns": random,
        "timestamp_ns": timestamp_ns,
        "calibration_error_ns": random + timestamp_ns,
        "max_deviation_ns": float(np.abs(values - median).max()),
        "half_range_ns": float(ascending[-1] - ascending[0]) / 2,
        "repeats": [{**describe(run), "histogram": histogram(run, ascending)} for run in repeats],
    }


def histogram(values: Floats, ascending: Floats | None = None) -> dict[str, Any]:
    """Counts over evenly spaced edges from the minimum to p99.5 of `ascending` (by default the values); the rest
    is `above`.

    Without a limit one late frame would push all others into a single bar.
    """
    span = np.sort(values) if ascending is None else ascending
    low, high = float(span[0]), stats.quantile(span, 0.995)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    shape = stats.histogram(values, np.linspace(low, high, BINS + 1))
    return {
        "low_ns": low,
        "width_ns": (high - low) / BINS,
        "counts": shape.counts.tolist(),
        "below": shape.below,
        "above": shape.above,
    }


def time_series(t_ns: Floats, values: Floats, most: int = 1200) -> dict[str, Any]:
    """A series thinned to its extremes, for drawing."""
    shape = stats.envelope(t_ns / 1e9, values, most)
    return {"t_s": shape.t.tolist(), "value_ns": shape.value.tolist(), "per_mark": shape.per_mark}
