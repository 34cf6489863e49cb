"""Times of exchanges: what is the network's, what the reflector's, and whether two clocks may be compared."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.definitions.units import duration
from wiregauge.reflectors.exchange import Collected
from wiregauge.reflectors.measured import Estimate, Series
from wiregauge.stats.growing import Growing
from wiregauge.stats.sketch import mean_half_width, scaled_interval

__all__ = ["Raw", "Times", "raw_times", "series_of_none", "series_of_sketch", "times"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_DRIFT = 1e-3
"""Greatest difference in rate of two clocks that are steered: each by 500 ppm, as kernels limit it."""
_STEP_NS = 2.0
"""Rounding of the timestamps of both formats."""
TIMES = ("network", "rtt", "turnaround", "latency", "return_latency")
_ONE_WAY = ("latency", "return_latency")


class Times(Struct, frozen=True):
    """Series by measure, answers that are unusable for them, and steps of one clock against the other."""

    series: dict[str, Series]
    unusable: int
    steps: int
    step_ns: float
    """Greatest of them."""


class Raw(Struct, frozen=True):
    """The times of exchanges by measure, ns, and what limits them."""

    values: dict[str, Ints]
    reason: str
    """Why there are no one-way times; empty where there are."""
    uncertainty: float | None
    unusable: int
    steps: list[float]
    last: tuple[int, int, int] | None
    """When the last packet with usable times left, and both its one-way times; None: there is none."""


def times(collected: Collected) -> Times:
    """The times of the first answer to each packet."""
    raw = raw_times(collected)
    series = {}
    for name, values in raw.values.items():
        if name in _ONE_WAY:
            series[name] = _series(values, raw.uncertainty) if not raw.reason else series_of_none(raw.reason)
        else:
            series[name] = _series(values)
    return Times(series, raw.unusable, len(raw.steps), float(max(raw.steps, default=0.0)))


def raw_times(collected: Collected, before: tuple[int, int, int] | None = None) -> Raw:
    """The same without statistics; `before` is `last` of the exchanges before them."""
    first = collected.answers.unique("asked", keep="first", maintain_order=True)
    rows = first.join(collected.packets, on="asked", how="inner", maintain_order="left").sort("asked")
    left = rows["left_ns"].fill_null(rows["written_ns"]).to_numpy().astype(np.int64)
    received, sent, arrived = (rows[name].to_numpy() for name in ("received_ns", "sent_ns", "arrived_ns"))
    rtt = arrived - left
    turnaround = sent - received
    is_usable = (turnaround >= 0) & (turnaround <= rtt + _STEP_NS)
    # NTP's seconds are UTC's, as this host's are; PTP's are TAI's.
    ahead = np.where(rows["is_ptp"].to_numpy(), collected.summary.get("tai_ahead_ns", 0), 0)
    there = (received - ahead - left)[is_usable]
    back = (arrived - (sent - ahead))[is_usable]
    known = np.array([] if before is None else [before], dtype=np.int64).reshape(-1, 3)
    seen = np.vstack([known, np.column_stack([left[is_usable], there, back])])
    steps = _steps(seen[:, 0], seen[:, 1], seen[:, 2])
    reason, uncertainty = _comparable(rows.filter(pl.Series(is_usable)), collected, there, back, len(steps))
    values = {
        "network": (rtt - turnaround)[is_usable],
        "rtt": rtt,
        "turnaround": turnaround[is_usable],
        "latency": there,
        "return_latency": back,
    }
    last = tuple(seen[-1].tolist()) if len(seen) else None
    return Raw(values, reason, uncertainty, int((~is_usable).sum()), steps, last)


def _steps(left: Ints, there: Ints, back: Ints) -> list[float]:
    """Changes of the offset between both clocks that no delay explains.

    With delays that are not negative, the offset lies within half of their sum around half of their difference.
    """
    if len(left) < 2:
        return []
    offset, delays = (there - back) / 2, (there + back) / 2
    moved = np.abs(np.diff(offset))
    allowed = delays[1:] + delays[:-1] + _DRIFT * np.abs(np.diff(left)) + _STEP_NS
    return [float(step) for step in moved[moved > allowed]]


def _comparable(
    rows: pl.DataFrame, collected: Collected, there: Ints, back: Ints, steps: int
) -> tuple[str, float | None]:
    """Why one-way times cannot be told, or how far they may be wrong, ns."""
    if rows.is_empty():
        return "no answer with usable times", None
    own, tai_ahead = collected.summary.get("clock_error_ns"), collected.summary.get("tai_ahead_ns")
    is_synchronised = bool(rows["is_synchronised"].all())
    for is_so, reason in (
        (not is_synchronised, "the reflector states that its clock is not synchronised"),
        (rows["error_ns"].null_count(), "the reflector states no error of its clock"),
        (own is None, "this host's clock is not synchronised, as its kernel states"),
        (
            rows["is_ptp"].any() and not tai_ahead,
            "the reflector's times are TAI, and this host's kernel was not told how far that is ahead",
        ),
        (steps, "one of the clocks was set"),
    ):
        if is_so:
            return reason, None
    uncertainty = float(own or 0) + float(np.asarray(rows["error_ns"].max(), dtype=float))
    ahead = -min(float(there.min()), float(back.min()))
    if ahead > uncertainty:
        stated = f"more than the {duration(uncertainty)} that both state"
        return f"the clocks differ by {duration(ahead)} at least, {stated}", None
    return "", uncertainty


def series_of_none(reason: str) -> Series:
    """A series without a value, and why."""
    return Series(0, None, None, None, None, {}, None, reason)


def _series(values: Ints, uncertainty: float | None = None) -> Series:
    if not len(values):
        return series_of_none("no answer with usable times")
    measured: Floats = values.astype(float)
    ascending = np.sort(measured)
    mean = stats.mean_estimate(measured)
    assert mean is not None
    half = mean.half_width
    bounds = (None, None) if half is None else (mean.mean - half, mean.mean + half)
    quantiles = {}
    for name, q in QUANTILES.items():
        if stats.supported(len(measured), q):
            interval = stats.quantile_interval(measured, ascending, q)
            quantiles[name] = Estimate(stats.quantile(ascending, q), interval.low, interval.high)
    return Series(
        n=len(measured),
        min=float(ascending[0]),
        max=float(ascending[-1]),
        sd=stats.standard_deviation(measured),
        mean=Estimate(mean.mean, *bounds),
        quantiles=quantiles,
        uncertainty_ns=uncertainty,
        reason="",
    )


def series_of_sketch(growing: Growing, uncertainty: float | None = None) -> Series:
    """The same of values that were too many to be kept: percentiles are known to within a bucket."""
    sketch, worth = growing.sketch(), growing.worth()
    if sketch is None:
        return series_of_none("no answer with usable times")
    deviation = sketch.deviation()
    bounds: tuple[float | None, float | None] = (None, None)
    if worth is not None and deviation is not None:
        half = mean_half_width(deviation, worth)
        bounds = sketch.mean - half, sketch.mean + half
    quantiles = {}
    for name, q in QUANTILES.items():
        if stats.supported(sketch.n, q):
            interval = (None, None) if worth is None else scaled_interval(sketch, q, worth)
            quantiles[name] = Estimate(sketch.quantile(q), *interval)
    return Series(
        n=sketch.n,
        min=sketch.minimum,
        max=sketch.maximum,
        sd=deviation,
        mean=Estimate(sketch.mean, *bounds),
        quantiles=quantiles,
        uncertainty_ns=uncertainty,
        reason="",
    )
