"""Every column of tables of figures: what identifies a row, and the figures of its flow under the names of limits.

Exports, `wiregauge table` and notebooks take their columns from here, so a column has one name everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl
from msgspec import Struct

from wiregauge.export.choice import Choice, ExportError
from wiregauge.files import nearest
from wiregauge.measures import FlowResult, Judgement
from wiregauge.measures.definitions import COUNTS, DEFINITIONS, SERIES
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.quantities import STATISTICS, NoFigureError, quantity

__all__ = ["PLACE_COLUMNS", "Place", "PlaceColumn", "axis_column", "cell", "check_column", "figure_names"]


class Place(Struct, frozen=True):
    """What a row of figures is of: a run, or the pooled repeats of a point. None where it is no single one."""

    run: int | None
    repeat: int | None
    runs: int
    validity: str
    point: Mapping[str, str]
    label: str = ""
    """Name of the run directory, in tables of several."""


class PlaceColumn(Struct, frozen=True):
    """A column that identifies a row."""

    name: str
    shows: str
    kind: pl.DataType
    of: Callable[[Place, FlowResult], object]


_PLACE_COLUMNS = (
    PlaceColumn("run", "index of the run; empty where repeats are pooled", pl.UInt32(), lambda at, _: at.run),
    PlaceColumn("repeat", "number of the repeat, from 0", pl.UInt32(), lambda at, _: at.repeat),
    PlaceColumn("runs", "number of pooled runs", pl.UInt32(), lambda at, _: at.runs),
    PlaceColumn("validity", "VALID, DEGRADED or INVALID", pl.String(), lambda at, _: at.validity),
    PlaceColumn("flow", "number of the flow", pl.UInt16(), lambda _, flow: flow.plan.id),
    PlaceColumn("protocol", "protocol of the flow", pl.String(), lambda _, flow: flow.plan.protocol),
    PlaceColumn("from", "its sender", pl.String(), lambda _, flow: flow.plan.source),
    PlaceColumn("to", "its receiver", pl.String(), lambda _, flow: flow.plan.destination),
    PlaceColumn("relayed", "whether its messages return", pl.Boolean(), lambda _, flow: flow.plan.relayed),
    PlaceColumn("payload_B", "payload of a message, bytes", pl.UInt32(), lambda _, flow: flow.plan.payload),
)
PLACE_COLUMNS: Mapping[str, PlaceColumn] = {one.name: one for one in _PLACE_COLUMNS}
"""Columns that identify a row; each axis of the sweep is one more (`axis_column`), and so is `label`, the name of the
run directory."""


def flow_rows(
    judgement: Judgement, choice: Choice, *, label: str = "", pooled_alone: bool = False
) -> Iterator[tuple[Place, FlowResult]]:
    """The flows of the selected runs, and with repeats those of the points that pool them, or only these."""
    pools = choice.run is None and judgement.plan.repeats > 1
    if not (pools and pooled_alone):
        for run in choice.runs(judgement):
            word = run.validity.word
            at = Place(run.plan.index, run.plan.repeat, 1, word, run.plan.point, label)
            yield from ((at, flow) for flow in choice.flows(run))
    if pools:
        for point in judgement.points:
            at = Place(None, None, len(point.runs), point.validity.word, point.point, label)
            yield from ((at, flow) for flow in point.flows if choice.has_flow(flow.plan))


def axis_column(axis: str) -> str:
    """The column name of an axis of the sweep: `point_payload`, `point_link_rate`."""
    return "point_" + re.sub(r"\W", "_", axis)


def figure_names() -> list[str]:
    """The names of figures as limits have them; any other percentile (`latency.p95`) that a limit names is one too."""
    series = [f"{name}.{statistic}" for name in SERIES for statistic in (*STATISTICS, "n")]
    others = [
        f"{name}.{statistic}" if statistic else name
        for name, one in DEFINITIONS.items()
        if name not in SERIES and one.kind != "pairs" and name != "unplanned"
        for statistic in one.statistics
    ]
    return [*COUNTS, *series, *(name for name in others if name not in COUNTS)]


def check_column(name: str, axes: Sequence[str], flows: Sequence[FlowResult]) -> None:
    """Raises ExportError for a column that is none, with the name that was meant."""
    if name == "label" or name in PLACE_COLUMNS or name in map(axis_column, axes):
        return
    known = figure_names()
    if name in known:
        return
    try:
        if flows:
            quantity(flows[0], name)
            return
    except NoFigureError:
        pass
    there = ["label", *PLACE_COLUMNS, *map(axis_column, axes), *known]
    raise ExportError(
        f'"{name}" is no column{nearest(name, there)}; `wiregauge table` without a run directory lists them'
    )


def cell(name: str, at: Place, flow: FlowResult) -> object | Quantity:
    """The value of a column in a row: that of a place, or a figure with its unit, interval and reason."""
    if name == "label":
        return at.label
    if name in PLACE_COLUMNS:
        return PLACE_COLUMNS[name].of(at, flow)
    for axis, value in at.point.items():
        if axis_column(axis) == name:
            return value
    measure, _, statistic = name.rpartition(".")
    if statistic == "n" and measure in SERIES:
        summary = flow.summaries.get(measure)
        return summary.n if summary is not None else 0
    return quantity(flow, name)
