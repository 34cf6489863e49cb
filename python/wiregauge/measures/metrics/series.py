"""Extraction of one series per measure from the message table, with the reasons for messages without a value.

Differences are taken on integer picoseconds and only then become floating-point nanoseconds, so a run of many hours
keeps its resolution.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.arrays import Column, Part, seams_of
from wiregauge.measures.metrics.columns import ascending
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import Series
from wiregauge.measures.metrics.silences import open_silences

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WARM_UP = "warm-up"
LOST = "lost"
NOT_RETURNED = "lost on the way back"
NO_TIMESTAMP = "no timestamp"
UNSEEN = "unknown"
"""Reason that the arrival is unknown: the instrument may have lost its records."""
GAP = "neighbour missing"
UNPAIRED = "coming not remembered"
"""Reason that a residence time is unknown: the frame left a switch after its arrival record was dropped."""
ONE_COPY = "only one copy came"
NOT_SAMPLED = "not in the sample"
"""Reason in a flow too large to be held in memory: the message or its neighbour lies outside the sampled stretches."""


class Offsets(Struct, frozen=True):
    """Correction of times between the clocks of the two ends, ns: subtracted from outward latency, added to return."""

    outward_ns: float
    uncertainty_ns: float
    varies_ns: float = 0.0
    """The most that the error may differ between messages, ns, within `uncertainty_ns`."""
    wanders_ns: float = 0.0
    """The most that it may have drifted within the run, ns; infinite where nothing bounds drift or steps of the
    clocks."""


class Extracted(Struct, frozen=True):
    """A series with the reasons why the other messages of the flow are not in it."""

    series: Series
    excluded: Mapping[str, int]
    stretch: Integers | None = None
    """The stretch of each value, where the flow is sampled."""


LOST_OUTCOMES = ("lost", "misdirected", "corrupted")
IS_GONE = pl.col("outcome").is_in(LOST_OUTCOMES)
_IS_UNSEEN = pl.col("outcome") == UNSEEN
_OUT = ("tx_app", "tx_drv", "rx_drv", "rx_app")
_BACK = ("back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app")


class Difference(Struct, frozen=True):
    """A measure that is a difference of the times of one message, ps, for a one-way flow and for a relayed one.

    None where such a flow lacks it. `end` is the column whose absence means "lost", where it is not the last arrival;
    with `complete` only messages with every timestamp count: parts of a split would not add up otherwise.
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
    """The correction of a measure for the offset of the receiver's clock, in the unit of `shift`."""
    return DEFINITIONS[measure].between_clocks(relayed=flow.relayed) * shift


def differences(flow: FlowPlan, shift: float) -> dict[str, tuple[pl.Expr, str, float]]:
    """The differences that a flow has.

    By name: the expression in ps, the column whose absence means "lost", the clock correction in ns.
    """
    last = "back_rx_app" if flow.relayed else "rx_app"
    found: dict[str, tuple[pl.Expr, str, float]] = {}
    for name, one in DIFFERENCES.items():
        value = _value(name, one, relayed=flow.relayed)
        if value is not None:
            found[name] = (value, one.end or last, clock_shift(name, flow, shift))
    return found


_VALUES: dict[tuple[str, bool], tuple[Difference, pl.Expr | None]] = {}


def _value(name: str, one: Difference, *, relayed: bool) -> pl.Expr | None:
    """The expression of a difference, cached: a run needs it once per flow."""
    known = _VALUES.get((name, relayed))
    if known is None or known[0] is not one:
        expression = one.relayed if relayed else one.one_way
        if expression is not None and one.complete:
            whole = _OUT + _BACK if relayed else _OUT
            complete = pl.all_horizontal(pl.col(column).is_not_null() for column in whole)
            expression = pl.when(complete).then(expression)
        known = _VALUES[name, relayed] = one, expression
    return known[1]


def extract(
    part: Part, flow: FlowPlan, offsets: Offsets, left_out: Mapping[str, int], *, blind: bool = False
) -> dict[str, Extracted]:
    """Every series of a flow from the rows of its messages, in the order of sequence.

    `left_out` counts by reason the messages whose rows are not among them; `blind`: an end of the flow has no tap, so
    that arrivals are unknown.
    """
    shift = offsets.outward_ns
    found = {
        name: _difference(part, flow, name, value, needs, by, left_out)
        for name, (value, needs, by) in differences(flow, shift).items()
    }
    found["period"] = _consecutive(part, "tx_app", None, left_out)
    found["ipdv"] = _consecutive(part, "latency", DIFFERENCES["latency"].one_way, left_out)
    found["receive_period"] = _received(part, flow, left_out, silences=not blind)
    latency = found["latency"]
    least = latency.series.value.min(initial=np.inf)
    found["delay_variation"] = Extracted(
        Series(latency.series.t, latency.series.value - least), latency.excluded, latency.stretch
    )
    if flow.deadline_ns is not None:
        # As in the counter of late messages: there and back for a relayed flow, timestamps as they are.
        came, offset = flow.main, clock_shift(flow.main, flow, shift)
        over = found[came].series
        found["lateness"] = Extracted(
            Series(over.t, over.value + offset - flow.deadline_ns), found[came].excluded, found[came].stretch
        )
    return found | _on_the_wire(part, flow, left_out)


def _seconds(part: Part) -> Floats:
    """Sending time of each message, s; NaN where unknown. All series share it."""

    def made() -> Floats:
        start = part.rows.frame.select(pl.coalesce("tx_app", "intended", "tx_drv", "rx_app").alias("start"))
        seconds = start["start"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e12
        seconds.flags.writeable = False
        return seconds

    return np.asarray(part.rows.made("seconds", made)[part.begin : part.end], dtype=np.float64)


def _nanoseconds(part: Part, name: str, column: Column) -> Floats:
    """A column of ps as ns, made of all rows at once."""
    if not part.rows.keeps:
        return column.present() / 1000
    made = part.rows.made(f"{name} ns", lambda: part.rows.column(name).values.astype(np.float64) / 1000)
    own = np.asarray(made[part.begin : part.end], dtype=np.float64)
    return own if column.known is None else own[column.known]


def _difference(
    part: Part,
    flow: FlowPlan,
    name: str,
    value: pl.Expr,
    needs: str,
    by: float,
    left_out: Mapping[str, int],
) -> Extracted:
    """One of `differences`, with why messages have none."""
    key = f"{name} there and back" if flow.relayed else name
    column = part.column(key, value)
    at, stretch = _seconds(part), part.stretch()
    missing, gone, unknown = column.missing, 0, 0
    if column.known is not None:
        at, stretch = at[column.known], stretch[column.known] if stretch is not None else None
        needed = part.column(needs)
        if needs != "tx_app" and needed.known is not None:
            gone = int(np.count_nonzero(~column.known & ~needed.known))
        if gone and needed.known is not None and part.rows.has("outcome"):
            unknown = int(np.count_nonzero(part.flags("outcome unknown", _IS_UNSEEN) & ~needed.known))
    reason = NOT_RETURNED if needs == "back_rx_app" and flow.relayed else LOST
    excluded = {**left_out, reason: gone - unknown, UNSEEN: unknown, NO_TIMESTAMP: missing - gone}
    return Extracted(Series(at, _nanoseconds(part, key, column) - by), excluded, stretch)


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


def _on_the_wire(part: Part, flow: FlowPlan, left_out: Mapping[str, int]) -> dict[str, Extracted]:
    """The measures of critical traffic, from the timestamps of the wire; each only where the flow can have it."""
    found: dict[str, Extracted] = {}
    own = on_the_wire(flow)
    if "skew" in own:
        found["skew"] = _of_messages(part.frame, own["skew"], "tx_wire", ONE_COPY, left_out)
    if flow.bag_ns is not None:
        spaced = _spaced(part, "tx_wire", NO_TIMESTAMP, left_out)
        found["bag_spacing"] = spaced
        early = np.maximum(flow.bag_ns - spaced.series.value, 0.0)
        found["bag_jitter"] = replace(spaced, series=Series(spaced.series.t, early))
    if "window_error" in own:
        found["window_error"] = _of_messages(part.frame, own["window_error"], "rx_wire", LOST, left_out)
    return found


def _of_messages(
    rows: pl.DataFrame, value: pl.Expr, at: str, missing: str, left_out: Mapping[str, int]
) -> Extracted:
    """One value per message that has it; all others count as `missing`."""
    stretch = "stretch" if sampling.is_sampled(rows) else pl.lit(0).alias("stretch")
    table = rows.select(stretch, value=value, at=pl.col(at)).drop_nulls("value")
    values = table["value"].cast(pl.Float64).to_numpy() / 1000
    seconds = table["at"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e12
    excluded = {**left_out, missing: rows.height - table.height}
    return Extracted(
        Series(seconds, values), excluded, table["stretch"].to_numpy() if sampling.is_sampled(rows) else None
    )


def _consecutive(part: Part, name: str, value: pl.Expr | None, left_out: Mapping[str, int]) -> Extracted:
    """Differences of a column between rows with consecutive sequence numbers, both present."""
    column = part.column(name, value)
    numbers = part.column("sequence").values
    good = numbers[1:] - numbers[:-1] == 1
    if column.known is not None:
        good &= column.known[1:] & column.known[:-1]
    seam = seams_of(part)
    if seam is not None:
        # A life may end where its successor's stretch begins, one number apart.
        good &= ~seam
    seams = int(np.count_nonzero(seam)) if seam is not None else 0
    pairs, kept = max(part.height - 1, 0), int(np.count_nonzero(good))
    excluded = {**left_out, GAP: pairs - seams - kept}
    seconds = _seconds(part)[1:]
    values = (column.values[1:] - column.values[:-1]) / 1000
    if kept == pairs:
        return Extracted(Series(seconds, values), excluded)
    series = Series(seconds[good], values[good])
    stretch = part.stretch()
    if not seams or stretch is None:
        return Extracted(series, excluded)
    return Extracted(series, {**excluded, NOT_SAMPLED: seams}, stretch[1:][good])


def _received(part: Part, flow: FlowPlan, left_out: Mapping[str, int], *, silences: bool) -> Extracted:
    """Times between arrivals in their order, and the open silences of a flow that begins late or dies."""
    spaced = _spaced(part, "rx_app", LOST, left_out)
    came = part.column("rx_app")
    if part.sampled or not silences:
        return spaced
    known = came.known if came.known is not None else np.ones(part.height, dtype=np.bool_)
    begin, end = open_silences(part, known | ~part.flags("is gone", IS_GONE), flow)
    if not begin and not end:
        return spaced
    times = came.present() / 1e12
    first, last = (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)
    before, after = ([silence / 1000] if silence else [] for silence in (begin, end))
    return Extracted(
        Series(
            np.concatenate([[first] * len(before), spaced.series.t, [last + end / 1e12] * len(after)]),
            np.concatenate([before, spaced.series.value, after]),
        ),
        spaced.excluded,
    )


def _spaced(part: Part, name: str, missing: str, left_out: Mapping[str, int]) -> Extracted:
    """Times between consecutive values of a column, in their order."""
    column = part.column(name)
    excluded = {**left_out, missing: column.missing}
    stretch = part.stretch()
    if stretch is None:
        times = ascending(column.present())
        return Extracted(Series(times[1:] / 1e12, (times[1:] - times[:-1]) / 1000), excluded)
    table = part.frame.select(name, "stretch").drop_nulls(name).sort(name)
    ordered, stretch = table[name].to_numpy(), table["stretch"].to_numpy()
    seam = sampling.seams(stretch)
    inside = ~seam
    return Extracted(
        Series(ordered[1:][inside] / 1e12, np.diff(ordered)[inside] / 1000),
        {**excluded, NOT_SAMPLED: int(np.count_nonzero(seam))},
        stretch[1:][inside],
    )
