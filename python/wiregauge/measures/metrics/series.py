"""From the message table to one series per measure, with the reasons for every message that has no value.

Differences are taken on integer picoseconds and only then become floating-point nanoseconds, so a run of many hours
keeps its resolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.columns import ascending, present, present_ps
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.results import Series

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WARM_UP = "warm-up"
LOST = "lost"
NOT_RETURNED = "lost on the way back"
NO_TIMESTAMP = "no timestamp"
UNSEEN = "unknown"
"""Nobody can tell whether the message arrived: the instrument may have lost its records."""
GAP = "neighbour missing"
ONE_COPY = "only one copy came"
NOT_SAMPLED = "not in the sample"
"""Of a flow too large to be held in memory: its neighbour or itself lies outside the stretches that are looked at."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Correction of times between the clocks of the two ends, ns: subtracted from outward latency, added to return."""

    outward_ns: float
    uncertainty_ns: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """A series with why the other messages of the flow are not in it."""

    series: Series
    excluded: Mapping[str, int]
    stretch: Integers | None = None
    """The stretch of each value, where the flow is sampled."""


_OUT = ("tx_app", "tx_drv", "rx_drv", "rx_app")
_BACK = ("back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app")


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure that is a difference of the times of one message, ps, of a one-way flow and of a relayed one.

    None where such a flow has it not. `end` is the column whose absence means "lost", where it is not the last arrival;
    where `complete` only messages count that have every timestamp: parts of a split would not add up else.
    """

    one_way: pl.Expr | None
    relayed: pl.Expr | None
    end: str = ""
    complete: bool = False


def _between(start: str, end: str) -> pl.Expr:
    return pl.col(end) - pl.col(start)


def _alike(expression: pl.Expr, end: str) -> Difference:
    return Difference(expression, expression, end)


def _part(place: int) -> Difference:
    """A part of the way: on every leg the time between two of its timestamps that follow one another."""
    out, back = (_between(leg[place], leg[place + 1]) for leg in (_OUT, _BACK))
    return Difference(out, out + back, complete=True)


DIFFERENCES: dict[str, Difference] = {
    "latency": _alike(_between("tx_app", "rx_app"), "rx_app"),
    "driver_latency": _alike(_between("tx_drv", "rx_drv"), "rx_app"),
    "service_latency": _alike(_between("intended", "rx_app"), "rx_app"),
    "send_error": _alike(_between("intended", "tx_app"), "tx_app"),
    "return_latency": Difference(None, _between("back_tx_app", "back_rx_app")),
    "rtt": Difference(None, _between("tx_app", "back_rx_app")),
    "turnaround": Difference(None, _between("rx_app", "back_tx_app"), complete=True),
    "stack_down": _part(0),
    "network": _part(1),
    "stack_up": _part(2),
}
"""The statistics of the measures that are such differences."""


def clock_shift(measure: str, flow: FlowPlan, shift: float) -> float:
    """What is to be taken out of a measure for the offset of the receiver's clock, in the unit of `shift`."""
    return DEFINITIONS[measure].between_clocks(relayed=flow.relayed) * shift


def differences(flow: FlowPlan, shift: float) -> dict[str, tuple[pl.Expr, str, float]]:
    """The differences that a flow has.

    By name: the expression in ps, the column whose absence means "lost", the clock correction in ns.
    """
    last = "back_rx_app" if flow.relayed else "rx_app"
    whole = _OUT + _BACK if flow.relayed else _OUT
    complete = pl.all_horizontal(pl.col(name).is_not_null() for name in whole)
    found: dict[str, tuple[pl.Expr, str, float]] = {}
    for name, one in DIFFERENCES.items():
        expression = one.relayed if flow.relayed else one.one_way
        if expression is not None:
            value = pl.when(complete).then(expression) if one.complete else expression
            found[name] = (value, one.end or last, clock_shift(name, flow, shift))
    return found


def extract(
    rows: pl.DataFrame, flow: FlowPlan, offsets: Offsets, left_out: Mapping[str, int]
) -> dict[str, Extracted]:
    """Every series of a flow from the rows of its messages, in the order of sequence.

    `left_out` counts by reason the messages whose rows are not among them.
    """
    shift = offsets.outward_ns
    plans = differences(flow, shift)
    start = pl.coalesce("tx_app", "intended", "tx_drv", "rx_app")
    sampled = sampling.is_sampled(rows)
    table = rows.select(
        start.alias("start"),
        pl.col("sequence"),
        (pl.col("outcome") == UNSEEN).alias("unknown")
        if "outcome" in rows.columns
        else pl.lit(value=False).alias("unknown"),
        *(expression.alias(name) for name, (expression, _, _) in plans.items()),
        *(pl.col(name).is_null().alias(f"no {name}") for name in {needs for _, needs, _ in plans.values()}),
        rx_app=pl.col("rx_app"),
        tx_app=pl.col("tx_app"),
        stretch=pl.col("stretch") if sampled else pl.lit(0),
    )
    stretch = table["stretch"].to_numpy() if sampled else None
    found: dict[str, Extracted] = {}
    seconds = table["start"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e12
    # Series that every message is in share it.
    seconds.flags.writeable = False
    for name, (_, needs, by) in plans.items():
        column = table[name]
        missing = column.null_count()
        at, mine, gone = seconds, stretch, 0
        if missing:
            has = column.is_not_null().to_numpy()
            at, mine = seconds[has], stretch[has] if stretch is not None else None
            gone = int((column.is_null() & table[f"no {needs}"]).sum()) if needs != "tx_app" else 0
        unknown = int((table["unknown"] & table[f"no {needs}"]).sum()) if gone else 0
        reason = NOT_RETURNED if needs == "back_rx_app" and flow.relayed else LOST
        excluded = {**left_out, reason: gone - unknown, UNSEEN: unknown, NO_TIMESTAMP: missing - gone}
        found[name] = Extracted(Series(at, present_ps(column) / 1000 - by), excluded, mine)
    found["period"] = _consecutive(table, "tx_app", seconds, left_out)
    found["ipdv"] = _consecutive(table, "latency", seconds, left_out)
    found["receive_period"] = _spaced(rows, "rx_app", {**left_out, LOST: rows["rx_app"].null_count()})
    latency = found["latency"]
    least = latency.series.value.min(initial=np.inf)
    found["delay_variation"] = Extracted(
        Series(latency.series.t, latency.series.value - least), latency.excluded, latency.stretch
    )
    if flow.deadline_ns is not None:
        # As the counter of late messages: there and back for a relayed flow, timestamps as they are.
        came, offset = flow.main, clock_shift(flow.main, flow, shift)
        over = found[came].series
        found["lateness"] = Extracted(
            Series(over.t, over.value + offset - flow.deadline_ns), found[came].excluded, found[came].stretch
        )
    return found | _on_the_wire(rows, flow, left_out)


def on_the_wire(flow: FlowPlan) -> dict[str, pl.Expr]:
    """Measures of critical traffic that are one message's own, ps; each only where the flow can have it."""
    found: dict[str, pl.Expr] = {}
    if flow.both_networks:
        found["skew"] = (pl.col("rx_wire_b") - pl.col("rx_wire")).abs()
    if flow.schedule is not None:
        period, planned = (round(ns * 1000) for ns in (flow.schedule.period_ns, flow.schedule.reception_ns))
        half = period // 2
        found["window_error"] = (pl.col("rx_wire") - planned + half) % period - half
    return found


def _on_the_wire(rows: pl.DataFrame, flow: FlowPlan, left_out: Mapping[str, int]) -> dict[str, Extracted]:
    """The measures of critical traffic, from the timestamps of the wire; each only where the flow can have it."""
    found: dict[str, Extracted] = {}
    own = on_the_wire(flow)
    if "skew" in own:
        found["skew"] = _of_messages(rows, own["skew"], "tx_wire", ONE_COPY, left_out)
    if flow.bag_ns is not None:
        spaced = _spaced(rows, "tx_wire", {**left_out, NO_TIMESTAMP: rows["tx_wire"].null_count()})
        found["bag_spacing"] = spaced
        early = np.maximum(flow.bag_ns - spaced.series.value, 0.0)
        found["bag_jitter"] = replace(spaced, series=Series(spaced.series.t, early))
    if "window_error" in own:
        found["window_error"] = _of_messages(rows, own["window_error"], "rx_wire", LOST, left_out)
    return found


def _of_messages(
    rows: pl.DataFrame, value: pl.Expr, at: str, missing: str, left_out: Mapping[str, int]
) -> Extracted:
    """One value per message that has it; the others are `missing`."""
    stretch = "stretch" if sampling.is_sampled(rows) else pl.lit(0).alias("stretch")
    table = rows.select(stretch, value=value, at=pl.col(at)).drop_nulls("value")
    values = table["value"].cast(pl.Float64).to_numpy() / 1000
    seconds = table["at"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e12
    excluded = {**left_out, missing: rows.height - table.height}
    return Extracted(
        Series(seconds, values), excluded, table["stretch"].to_numpy() if sampling.is_sampled(rows) else None
    )


def _consecutive(table: pl.DataFrame, column: str, seconds: Floats, left_out: Mapping[str, int]) -> Extracted:
    """Differences of `column` between rows with consecutive sequence numbers, both present."""
    step = np.diff(table["sequence"].cast(pl.Int64).to_numpy())
    good = np.append(False, step == 1)[: table.height]
    ps = table[column]
    if ps.null_count():
        known = ps.is_not_null().to_numpy()
        good[1:] &= known[1:] & known[:-1]
    stretch = table["stretch"].to_numpy()
    seam = sampling.seams(stretch)
    # A life may end where its successor's stretch begins, one number apart.
    good[1:] &= ~seam
    values = np.diff(ps.fill_null(0).to_numpy())[good[1:]] / 1000
    pairs, seams = max(table.height - 1, 0), int(np.count_nonzero(seam))
    excluded = {**left_out, GAP: pairs - seams - int(good.sum())}
    if not seams:
        return Extracted(Series(seconds[good], values), excluded)
    return Extracted(Series(seconds[good], values), {**excluded, NOT_SAMPLED: seams}, stretch[good])


def _spaced(rows: pl.DataFrame, column: str, excluded: Mapping[str, int]) -> Extracted:
    """Times between consecutive values of `column`, in their order."""
    if not sampling.is_sampled(rows):
        times = ascending(present(rows[column]).to_numpy())
        return Extracted(Series(times[1:] / 1e12, np.diff(times) / 1000), excluded)
    table = rows.select(column, "stretch").drop_nulls(column).sort(column)
    ordered, stretch = table[column].to_numpy(), table["stretch"].to_numpy()
    seam = sampling.seams(stretch)
    inside = ~seam
    return Extracted(
        Series(ordered[1:][inside] / 1e12, np.diff(ordered)[inside] / 1000),
        {**excluded, NOT_SAMPLED: int(np.count_nonzero(seam))},
        stretch[1:][inside],
    )
