"""The page of a trend: the newest run against those before it, each figure over all runs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from wiregauge.figures.trend import trend_figures
from wiregauge.measures import DEFINITIONS
from wiregauge.measures.comparing import Trend, TrendPoint, TrendSeries
from wiregauge.measures.comparing.thresholds import TAIL
from wiregauge.measures.definitions.units import share
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, text_heads
from wiregauge.report.write import render, store
from wiregauge.results.comparing import trend_headline
from wiregauge.results.comparing.text import BASES
from wiregauge.results.comparing.trend_text import (
    shift_of,
    started,
    trend_error_rate,
    value_text,
    version,
)


def write_trend(trend: Trend, path: Path) -> Path:
    """Writes the page of a trend as one file; returns its path. Raises RunDirectoryError when it cannot."""
    store(path, rendered_trend(trend, path))
    return path


def rendered_trend(trend: Trend, path: Path | None = None) -> str:
    """The text of that page, with links to the reports of its runs if it is to be at `path`."""
    used = {series.measure for series in trend.series}
    return render(
        "trend.html.j2",
        trend_figures(trend),
        trend=trend,
        headline=trend_headline(trend),
        runs=run_table(trend),
        reports=_reports(trend, path) if path is not None else [],
        figures_table=figure_table(trend),
        error_rate=trend_error_rate(trend),
        thresholds="; ".join(
            (f"flow {t.flow} " if t.flow is not None else "")
            + f"{t.measure}{'.' + t.statistic if t.statistic else ''} within {t.written}"
            for t in trend.thresholds
        ),
        definitions=[d for d in DEFINITIONS.values() if d.name in used or d.name == "loss"],
    )


def _reports(trend: Trend, path: Path) -> list[tuple[str, str]]:
    own = [(name, run.directory / "report.html") for name, run in zip(trend.names, trend.runs, strict=True)]
    return [(name, quote(os.path.relpath(page, path.parent))) for name, page in own if page.exists()]


def run_table(trend: Trend) -> Table:
    """The runs of a trend, newest first."""
    rows = [
        [
            Cell(trend.names[k], str(judgement.directory), "text short"),
            Cell(started(judgement), kind="text short"),
            Cell(version(judgement), kind="text short"),
            Cell(f"{judgement.plan.name} ({judgement.manifest.get('bench', '?')})", kind="text short"),
            Cell(judgement.validity.word, trend.unfit.get(k, ""), "text short"),
            _verdict(trend.verdict_of(k) if k else None, trend.unfit.get(k, "")),
            Cell(str(sum(k in series.steps for series in trend.series) or ""), "figures that stepped here"),
        ]
        for k, judgement in reversed(list(enumerate(trend.runs)))
    ]
    heads = text_heads("run", "started", "version", "test", "validity", "verdict")
    return Table("Runs", [*heads, Head("steps")], [Section("", rows)])


def figure_table(trend: Trend) -> Table:
    """Every figure: the newest run against its reference, and the steps of its level."""
    rows = []
    for series in trend.series:
        point = series.at(trend.newest)
        if point is None:
            continue
        rows.append(
            [
                Cell(series.figure, kind="text short"),
                Cell(series.title, kind="text short"),
                Cell(str(len(series.points))),
                Cell(value_text(series, point.reference) if point.reference is not None else NONE),
                Cell(value_text(series, point.value.value), f"n = {point.n}"),
                Cell(shift_of(series, point) or NONE),
                _verdict(point.verdict, BASES.get(point.basis or "", ""), _detectable(series, point)),
                Cell(", ".join(trend.names[run] for run in series.steps), kind="text"),
                _limits(series, point.value.value),
            ]
        )
    heads = [
        *text_heads("figure", "flow"),
        Head("runs"),
        Head("reference"),
        Head("newest"),
        Head("newest - reference [interval]"),
        *text_heads("verdict", "steps at", "limits"),
    ]
    return Table("The newest run", heads, [Section("", rows)], lead=2)


def _limits(series: TrendSeries, value: float) -> Cell:
    if not series.limits:
        return Cell("", kind="text")
    broken = [x for x in series.limits if (value > x.value if x.bound == "at-most" else value < x.value)]
    return Cell("; ".join(x.written for x in series.limits), kind="text bad" if broken else "text")


def _detectable(series: TrendSeries, point: TrendPoint) -> str:
    """The resolution of "same": the shift that would be detected."""
    reach = point.detectable
    if reach is None:
        return ""
    if series.statistic == TAIL:
        return f"detectable from {share(reach, 2)} of the messages on"
    return f"detectable from {value_text(series, reach)} on"


def _verdict(verdict: str | None, hint: str, below: str = "") -> Cell:
    return Cell(verdict or NONE, hint, f"verdict {verdict or 'faint'} text short", below)
