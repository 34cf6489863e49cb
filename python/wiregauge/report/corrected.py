"""The tables of latency corrected by the instrument's own, next to raw figures, and of cited calibrations."""

from __future__ import annotations

from wiregauge.measures import Judgement
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.validity.calibration import citations, corrections, run_load
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, flow_text, place_cell, text_heads

US = 1e3


def correction_table(judgement: Judgement) -> Table:
    """Raw and corrected mean and percentiles: a row per point, flow and measure with a known constant."""
    cited = citations(judgement.manifest) or ()
    loads = {run.plan.index: run_load(run.plan) for run in judgement.runs}
    rows = []
    for point in judgement.points:
        load = max((loads[index] for index in point.runs), default=0)
        for flow in point.flows:
            for one in corrections(flow, load, cited):
                raw = flow.summaries[one.measure].mean
                constant = one.constant
                rows.append(
                    [
                        place_cell(point.point),
                        Cell(flow_text(flow), kind="text short"),
                        Cell(DEFINITIONS[one.measure].title, kind="text short"),
                        Cell(_us(raw), f"n = {one.n}"),
                        Cell(
                            f"{_us(constant.overhead_ns)} ± {_us(constant.uncertainty_ns)}",
                            f"{constant.calibration}, at {constant.load_percent} % load",
                        ),
                        Cell(f"{_us(one.mean)} ± {_us(one.uncertainty)}", f"n = {one.n}"),
                        *(Cell(_us(value)) for value in (one.minimum, one.p50, one.p99, one.maximum)),
                        Cell(
                            f"± {_us(constant.error_ns)}" if constant.error_ns is not None else NONE,
                            "95 % of single values, by the calibration",
                        ),
                        Cell("no" if one.unresolved else "yes", kind="text short"),
                    ]
                )
    heads = [
        *text_heads("point", "flow", "measure"),
        Head("raw mean", unit="µs"),
        Head("instrument", unit="µs"),
        Head("corrected mean", unit="µs"),
        *(Head(f"corrected {name}", unit="µs") for name in ("min", "p50", "p99", "max")),
        Head("single value", unit="µs"),
        Head("resolved", kind="text"),
    ]
    notes = [
        "corrected = raw - systematic error of the instrument (median, back to back: RFC 7679, 3.7.3); ±: 95 % of the "
        "raw mean plus the uncertainty of the constant. The raw figures above do not change, and limits are judged on "
        "them. Not resolved: the median is below three times the error of a single value."
    ]
    return Table(
        "Less the instrument itself", heads, [Section("", rows)], lead=3, notes=notes if rows else ()
    )


def _us(ns: float | None) -> str:
    return NONE if ns is None else f"{ns / US:.2f}"


def citation_table(judgement: Judgement) -> Table:
    """The calibrations available when the runs began, and whether each was used or why not."""
    rows = [
        [
            Cell(citation.number, kind="text short"),
            Cell(citation.made[:16].replace("T", " "), kind="text short"),
            Cell("used" if citation.used else "not used", kind="text short"),
            Cell(citation.headline, kind="text"),
            Cell(citation.reason, kind="text"),
        ]
        for citation in citations(judgement.manifest) or ()
    ]
    heads = text_heads("calibration", "made", "", "finding", "why not")
    return Table("Calibrations of the instrument", heads, [Section("", rows)])
