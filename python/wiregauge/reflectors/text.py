"""A session with a reflector as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.definitions.units import count_of, duration, share
from wiregauge.reflectors.measured import Estimate, LimitHeld, Measured, Series
from wiregauge.terminal import print_table

__all__ = ["limit_text", "lines", "table"]

NAMES: Final = {"stamp": "STAMP", "twamp-light": "TWAMP Light"}
_ROWS: Final = {
    "network": "network",
    "rtt": "round trip",
    "turnaround": "turnaround",
    "latency": "one way there",
    "return_latency": "one way back",
}
_NUMBERING: Final = {
    "own": "the reflector numbers its answers itself",
    "as-sent": "all answers have the packets' own numbers: the reflector copies them, or no packet was lost before it",
    "restarted": "the reflector began its numbers anew meanwhile",
}


def lines(measured: Measured) -> Iterator[str]:
    """The verdict and its limits, what was exchanged, and what limits it."""
    for one in measured.limits:
        yield f"{one.result} {limit_text(one)}"
    order, counts = measured.order, measured.counts
    mode = "authenticated" if order.is_authenticated else "unauthenticated"
    yield (
        f"{count_of(counts.sent, 'packet')} to {order.target} by {NAMES[order.protocol]} ({mode}), one each "
        f"{duration(order.period_ns)}, {order.payload} B: {counts.answered} answered  verdict {measured.verdict}  "
        f"validity {measured.validity}"
    )
    for reason in measured.reasons:
        yield f"  - {reason}"
    if not counts.answered:
        return
    bound = stats.share_bound(counts.lost, counts.sent)
    yield (
        f"lost {counts.lost} of {counts.sent} ({share(bound.low)} to {share(bound.high)}): "
        f"{_ways(counts.lost_forward, counts.lost_backward)}"
    )
    yield (
        f"duplicated {counts.duplicated}: {_ways(counts.duplicated_forward, counts.duplicated_backward)}; "
        f"reordered {counts.reordered}: {_ways(counts.reordered_forward, counts.reordered_backward)}"
    )
    if measured.numbering is not None:
        yield _NUMBERING[measured.numbering]
    hops = " to ".join(str(one) for one in measured.hops)
    where = f"{hops} hops away; " if hops else ""
    yield f"reflector: {where}its clock: {measured.reflector_clock}"


def limit_text(one: LimitHeld) -> str:
    """A limit, and what was observed."""
    sign = "<=" if one.bound == "at-most" else ">="
    observed = "no figure" if one.observed is None else _in(one.observed, one.unit)
    reason = f": {one.reason}" if one.reason else ""
    return f"{one.measure} {sign} {one.written}: {observed} (n = {one.n}){reason}"


def table(measured: Measured, console: Console) -> None:
    """Prints the times, each percentile and mean with its 95 % interval; "network" is the round trip without the
    turnaround in the reflector."""
    if not measured.counts.answered:
        return
    quantiles = [name for name in QUANTILES if any(name in one.quantiles for one in measured.series.values())]
    heads = ("time", "n", "min", *quantiles, "max", "mean", "sd", "clocks")
    rows = [
        (_ROWS[name], *_row(series, quantiles))
        for name, series in measured.series.items()
        if not series.reason
    ]
    print_table(heads, rows, console)
    for name, series in measured.series.items():
        if series.reason:
            console.print(f"{_ROWS[name]}: {series.reason}", highlight=False)


def _row(series: Series, quantiles: Sequence[str]) -> tuple[str, ...]:
    return (
        str(series.n),
        duration(series.min),
        *(_estimate(series.quantiles.get(name)) for name in quantiles),
        duration(series.max),
        _estimate(series.mean),
        duration(series.sd),
        "one" if series.uncertainty_ns is None else f"± {duration(series.uncertainty_ns, 3)}",
    )


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.low is None and estimate.high is None:
        return duration(estimate.value)
    low, high = (duration(one, 3) if one is not None else "…" for one in (estimate.low, estimate.high))
    return f"{duration(estimate.value)} ({low} to {high})"


def _ways(there: int | None, back: int | None) -> str:
    return "direction unknown" if there is None or back is None else f"{there} there, {back} back"


def _in(value: float, unit: str) -> str:
    return duration(value) if unit == "ns" else f"{value:.0f}"
