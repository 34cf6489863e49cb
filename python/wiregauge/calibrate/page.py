"""A calibration as one HTML file."""

from __future__ import annotations

from pathlib import Path

from wiregauge.calibrate.store import Calibration
from wiregauge.calibrate.text import Grid, grids, headline
from wiregauge.figures import Figure
from wiregauge.report.tables import Cell, Head, Section, Table
from wiregauge.report.write import render, store


def write_page(calibration: Calibration, figures: list[Figure], path: Path) -> Path:
    """Writes the page; returns its path. Raises RunDirectoryError when the disk refuses."""
    tables = [(grid.title, _table(grid), grid.notes) for grid in grids(calibration)]
    text = render(
        "calibration.html.j2",
        figures,
        calibration=calibration.content,
        headline=headline(calibration),
        tables=tables,
    )
    store(path, text)
    return path


def _table(grid: Grid) -> Table:
    heads = [Head(text, kind="text" if k == 0 else "") for k, text in enumerate(grid.heads)]
    rows = [
        [Cell(text, kind="text short" if k == 0 else "") for k, text in enumerate(row)] for row in grid.rows
    ]
    return Table(grid.title, heads, [Section("", rows)])
