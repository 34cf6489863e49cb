"""Figures of items: the paper's numbers, ours and those of another study, in panels with common axes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge.figures.model import Axis, Band, Figure, Line, Panel, Scatter, Trace
from wiregauge.figures.palette import side
from wiregauge.studies.beside import Beside
from wiregauge.studies.laying import ItemResult, Laid

__all__ = ["identifier", "picture_of"]


def identifier(number: str, beside: str = "") -> str:
    """The HTML identifier of an item."""
    return "-".join(filter(None, (re.sub(r"\W+", "-", number.lower()).strip("-"), beside)))


def picture_of(result: ItemResult, beside: Beside | None = None) -> Figure | None:
    """The figure of an item; None where it declares none, or has nothing to draw."""
    item, picture = result.item, result.item.picture
    if picture is None:
        return None
    cells = [
        cell
        for cell in result.cells
        if picture.statistic in ("", cell.key.statistic) and _place(cell) is not None
    ]
    series = list(dict.fromkeys(cell.key.series for cell in cells))
    theirs = [_published(name, cells, k, lines=picture.lines) for k, name in enumerate(series)]
    least = _least(cells) if picture.log_y else -np.inf
    ours = [
        trace for k, name in enumerate(series) for trace in _ours(name, cells, k, least, lines=picture.lines)
    ]
    also = [_beside(name, cells, k, beside, lines=picture.lines) for k, name in enumerate(series)]
    panels = [
        ("published", [trace for trace in theirs if trace is not None]),
        ("Wiregauge", ours),
        (f"Wiregauge, {beside.name}" if beside is not None else "", [one for one in also if one is not None]),
    ]
    ticks = sorted({(place, cell.key.x) for cell in cells if (place := _place(cell)) is not None})
    made = [
        Panel(
            title,
            Axis(picture.x, log=picture.log_x, ticks=[(place, text) for place, text in ticks[:12]]),
            Axis(picture.y, log=picture.log_y),
            traces,
        )
        for title, traces in panels
        if traces
    ]
    if not made:
        return None
    notes = (
        [] if panels[0][1] else ["The paper has this as a picture without numbers, so only ours is drawn."]
    )
    figure = Figure(
        identifier(item.number), f"{item.number}: {item.title}", "", made, columns=len(made), notes=notes
    )
    return replace(figure, panel_height=280)


def _place(cell: Laid) -> float | None:
    """The position of a cell: the number at the beginning of its `x`; None without one."""
    found = re.match(r"-?\d+(\.\d+)?", cell.key.x)
    return float(found[0]) if found else None


def _least(cells: Sequence[Laid]) -> float:
    """Lower end, on a logarithmic axis, of intervals that reach zero: half of the least figure drawn."""
    figures = [one for cell in cells for one in (cell.ours, cell.published and cell.published.value) if one]
    return min((one for one in figures if one > 0), default=1.0) / 2


def _column(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([value if value is not None else np.nan for value in values], dtype=np.float64)


def _sorted(name: str, cells: Sequence[Laid]) -> list[Laid]:
    return sorted((cell for cell in cells if cell.key.series == name), key=lambda cell: _place(cell) or 0.0)


def _published(name: str, cells: Sequence[Laid], k: int, *, lines: bool) -> Trace | None:
    found = [
        cell
        for cell in _sorted(name, cells)
        if cell.published is not None and cell.published.value is not None
    ]
    x = _column([_place(cell) for cell in found])
    y = _column([cell.published.value if cell.published is not None else None for cell in found])
    return _drawn(name, x, y, k, lines=lines) if found else None


def _beside(name: str, cells: Sequence[Laid], k: int, beside: Beside | None, *, lines: bool) -> Trace | None:
    found = [(cell, beside.of(cell)) for cell in _sorted(name, cells)] if beside is not None else []
    drawn = [(cell, figure) for cell, figure in found if figure is not None]
    x, y = _column([_place(cell) for cell, _ in drawn]), _column([figure for _, figure in drawn])
    return _drawn(name, x, y, k, lines=lines) if drawn else None


def _ours(name: str, cells: Sequence[Laid], k: int, least: float, *, lines: bool) -> list[Trace]:
    found = [cell for cell in _sorted(name, cells) if cell.ours is not None]
    if not found:
        return []
    x = _column([_place(cell) for cell in found])
    traces: list[Trace] = []
    wide = [cell for cell in found if cell.low is not None and cell.high is not None]
    if lines and len(wide) > 1:
        at, low, high = (
            _column(column)
            for column in zip(*((_place(cell), cell.low, cell.high) for cell in wide), strict=True)
        )
        traces.append(Band(f"{name}, 95 %", at, np.maximum(low, least), high, side(k)))
    return [*traces, _drawn(name, x, _column([cell.ours for cell in found]), k, lines=lines)]


def _drawn(
    name: str,
    x: np.ndarray[tuple[int], np.dtype[np.float64]],
    y: np.ndarray[tuple[int], np.dtype[np.float64]],
    k: int,
    *,
    lines: bool,
) -> Trace:
    if lines:
        return Line(name, x, y, side(k), markers=True)
    return Scatter(name, x, y, side(k), size=7)
