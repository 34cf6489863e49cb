"""The HTML report of a characterisation: a data sheet, then a section with table and chart for every test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Trace
from wiregauge.figures.palette import side
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, text_heads
from wiregauge.report.write import render, store
from wiregauge.switching.results import Column, Result, Value
from wiregauge.switching.shown import SwitchShown

__all__ = ["PAGE", "figure_of", "text_of", "write_page"]

PAGE = "report.html"


def write_page(place: Path, shown: SwitchShown, results: Sequence[Result]) -> Path:
    """Writes the page into a directory; returns its path. Raises RunDirectoryError when it cannot."""
    figures = {one.name: figure_of(one) for one in results}
    text = render(
        "switch.html.j2",
        [figure for figure in figures.values() if figure is not None],
        sheet=shown,
        rate=rate_text(shown["rate_bps"]),
        summary=sheet_table(results),
        tests=[
            {
                "name": one.name,
                "title": one.title,
                "source": one.source,
                "state": one.state,
                "reason": one.reason,
                "conclusion": one.conclusion,
                "notes": one.notes,
                "figure": one.name if figures[one.name] is not None else "",
                "table": table_of(one),
            }
            for one in results
        ],
    )
    path = place / PAGE
    store(path, text)
    return path


def rate_text(bits: float) -> str:
    """A rate as text: `1 Gbit/s`."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits >= factor:
            return f"{bits / factor:g} {unit}"
    return f"{bits:g} bit/s"


def sheet_table(results: Sequence[Result]) -> Table:
    """The data sheet: a row for every conclusion."""
    rows = []
    for one in results:
        for number, line in enumerate(one.conclusion or [one.reason or "no conclusion"]):
            first = number == 0
            rows.append(
                [
                    Cell(one.title if first else "", kind="text short"),
                    Cell(one.state if first else "", kind="text short"),
                    Cell(line, kind="text"),
                ]
            )
    return Table("Data sheet", text_heads("test", "state", "result"), [Section("", rows)], lead=1)


def text_of(value: Value) -> str:
    """A value as text."""
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return str(value)


def table_of(result: Result) -> Table:
    """The rows of a result as a table."""
    rows = [
        [
            Cell(text_of(row.get(column.key)), kind="text short" if _is_text(result, column) else "")
            for column in result.columns
        ]
        for row in result.rows
    ]
    heads = [
        Head(
            column.title,
            unit=column.unit.replace("us", "µs"),
            kind="text" if _is_text(result, column) else "",
        )
        for column in result.columns
    ]
    return Table(result.title, heads, [Section("", rows)], lead=1)


def _is_text(result: Result, column: Column) -> bool:
    return any(isinstance(row.get(column.key), str) for row in result.rows)


def figure_of(result: Result) -> Figure | None:
    """The chart of a result; None where there is nothing to draw."""
    chart = result.chart
    if chart is None or not result.rows:
        return None
    titles = {column.key: column for column in result.columns}
    groups = list(dict.fromkeys(row.get(chart.group) for row in result.rows)) if chart.group else [None]
    traces: list[Trace] = []
    for group in groups:
        rows = [row for row in result.rows if not chart.group or row.get(chart.group) == group]
        for key in chart.y:
            points = [
                (float(x), float(y))
                for row in rows
                if isinstance(x := row.get(chart.x), int | float)
                and isinstance(y := row.get(key), int | float)
            ]
            if not points:
                continue
            x, y = np.array(sorted(points), dtype=np.float64).T
            name = titles[key].title
            if chart.group:
                own = f"{group} {titles[chart.group].unit}".strip()
                name = f"{name}, {own}" if len(chart.y) > 1 else own
            traces.append(Line(name, x, y, side(len(traces)), markers=True))
    if not traces:
        return None
    across, up = titles[chart.x], titles[chart.y[0]]
    title = up.title if len(chart.y) == 1 else result.title
    panel = Panel("", Axis(_named(across.title, across.unit)), Axis(_named(title, up.unit)), traces)
    return Figure(result.name, result.title, "", [panel], panel_height=280)


def _named(title: str, unit: str) -> str:
    return f"{title}, {unit.replace('us', 'µs')}" if unit else title
