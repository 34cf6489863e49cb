"""A study as one HTML page: each table and figure of the paper compared with ours, by the paper's number."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wiregauge.figures.model import Figure
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, text_heads
from wiregauge.report.write import render, store
from wiregauge.studies.beside import Beside
from wiregauge.studies.carrying import RUNS, Carried
from wiregauge.studies.effects import Effect, effects_of, row_effects, row_sentence
from wiregauge.studies.laying import ItemResult, Laid
from wiregauge.studies.pictures import identifier, picture_of
from wiregauge.studies.sensitivity import Sensitivity
from wiregauge.studies.summing import counts, headline, verdict_of
from wiregauge.studies.text import (
    basis_text,
    dependence_text,
    deviation_text,
    interval_of,
    moved_text,
    needs_text,
    number,
    printed,
)

__all__ = ["PAGE", "write_page"]

PAGE = "report.html"
ARROW = "\N{RIGHTWARDS ARROW}"


def write_page(
    carried: Carried,
    items: Sequence[ItemResult],
    own: Mapping[str, Sequence[Figure]],
    sensitivity: Sensitivity | None = None,
) -> Path:
    """Writes the page into the study directory; returns its path. Raises RunDirectoryError when it cannot."""
    drawn = {
        item.item.number: _figures(item, own.get(item.item.number, ()), carried.beside) for item in items
    }
    text = render(
        "study.html.j2",
        [figure for figures in drawn.values() for figure in figures],
        study=carried.study,
        carried=carried,
        verdict=verdict_of(carried, items),
        headline=headline(carried, items),
        counts=counts(items),
        items=[
            {
                "id": identifier(item.item.number),
                "number": item.item.number,
                "title": item.item.title,
                "note": item.item.note,
                "verdict": item.verdict,
                "needs": needs_text(item),
                "rests": [
                    *map(row_sentence, row_effects(item.cells, sensitivity)),
                    *dependence_text(item),
                ],
                "table": cell_table(item, sensitivity, carried.beside),
                "moves": move_table(item, sensitivity),
                "figures": [figure.id for figure in drawn[item.item.number]],
            }
            for item in items
        ],
        uncompared=uncompared_table(items),
        basis=basis_text(carried, sensitivity),
        parameters=parameter_table(carried, sensitivity),
        parts=part_table(carried),
        reports=_reports(carried),
    )
    path = carried.place / PAGE
    store(path, text)
    return path


def _figures(item: ItemResult, own: Sequence[Figure], beside: Beside | None) -> list[Figure]:
    picture = picture_of(item, beside)
    return [*([picture] if picture is not None else []), *own]


def cell_table(
    item: ItemResult, sensitivity: Sensitivity | None = None, beside: Beside | None = None
) -> Table:
    """The cells of an item that have a figure, the paper's or ours."""
    shown = [cell for cell in item.cells if cell.ours is not None or (cell.published and cell.published.text)]
    sections: dict[str, list[list[Cell]]] = {}
    for cell in shown:
        sections.setdefault(cell.key.series, []).append(_row(cell, sensitivity, beside))
    heads = [
        *text_heads("cell", "statistic"),
        Head("published"),
        Head("ours"),
        Head("95 % interval"),
        Head("n"),
        *([Head(beside.name)] if beside is not None else []),
        Head("difference"),
        *text_heads("role", "criterion", "result", "moved most by"),
    ]
    return Table(item.item.number, heads, [Section(name, rows) for name, rows in sections.items()], lead=2)


def _row(cell: Laid, sensitivity: Sensitivity | None, beside: Beside | None) -> list[Cell]:
    theirs = cell.published
    criterion = theirs.criterion.written if theirs is not None and theirs.criterion is not None else ""
    word = {"holds": "pass", "fails": "fail", "undecided": "undecided"}.get(cell.result, "faint")
    return [
        Cell(cell.key.x, kind="text short"),
        Cell(cell.key.statistic, kind="text short"),
        Cell(printed(cell)),
        Cell(number(cell.ours, cell.unit), cell.source),
        Cell(interval_of(cell)),
        Cell(str(cell.n) if cell.n else ""),
        *([Cell(number(*beside.shown(cell)))] if beside is not None else []),
        Cell(deviation_text(cell)),
        Cell(cell.role, cell.statement, kind="text short"),
        Cell(criterion, kind="text short"),
        Cell(cell.result, cell.reason, f"verdict {word} text short"),
        Cell(moved_text(cell, sensitivity), kind="text"),
    ]


def move_table(item: ItemResult, sensitivity: Sensitivity | None) -> Table:
    """The effect of each parameter on each compared cell of an item: a column for every value."""
    sections: dict[str, list[list[Cell]]] = {}
    moves: Sequence[Effect] = ()
    for cell in item.cells:
        if effects := effects_of(cell, sensitivity):
            moves = effects
            row = [Cell(text, kind="text short") for text in (cell.key.x, cell.key.statistic, cell.role)]
            row += [_moved(one) for one in effects]
            sections.setdefault(cell.key.series, []).append(row)
    heads = [*text_heads("cell", "statistic", "role"), *(Head(f"{one.name} {one.to}") for one in moves)]
    return Table(item.item.number, heads, [Section(name, rows) for name, rows in sections.items()], lead=2)


def _moved(one: Effect) -> Cell:
    if one.result == one.before:
        return Cell(one.text)
    return Cell(one.text, f"{one.before} {ARROW} {one.result}", "verdict fail", one.result)


def parameter_table(carried: Carried, sensitivity: Sensitivity | None) -> Table:
    """The parameters of a study and the values they were changed to."""
    changes: dict[str, list[str]] = {}
    for one in sensitivity.moved if sensitivity is not None else ():
        changes.setdefault(one.name, []).append(f"{one.to}: {', '.join(one.changes)}")
    rows = [
        [
            Cell(one.name, kind="text short"),
            Cell(one.basis, kind="text short"),
            Cell("; ".join(changes.get(one.name, one.moved)), kind="text"),
            Cell(one.because, kind="text"),
        ]
        for one in (carried.study.parameters if carried.results.modelled else ())
    ]
    return Table(
        "Parameters", text_heads("parameter", "basis", "moved to", "why so far"), [Section("", rows)]
    )


def uncompared_table(items: Sequence[ItemResult]) -> Table:
    """Every cell that has no result, with the reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for item in items:
        for cell in item.cells:
            if cell.result in ("undecided", "not compared"):
                name = " ".join(filter(None, (cell.key.series, cell.key.x, cell.key.statistic)))
                found.setdefault((cell.key.item, cell.result, cell.reason), []).append(name)
    rows = [
        [
            Cell(number, kind="text short"),
            Cell(result, kind="text short"),
            Cell(reason, kind="text"),
            Cell(str(len(names))),
            Cell("; ".join(names), kind="text"),
        ]
        for (number, result, reason), names in found.items()
    ]
    heads = [*text_heads("item", "result", "reason"), Head("cells"), *text_heads("which")]
    return Table("Not compared", heads, [Section("", rows)])


def part_table(carried: Carried) -> Table:
    """The runs behind the figures."""
    rows = []
    for part in carried.study.parts:
        judgement = carried.judgements.get(part.name)
        why = carried.skipped.get(part.name) or carried.missing.get(part.name) or ""
        rows.append(
            [
                Cell(part.name, kind="text short"),
                Cell(part.test, ", ".join(part.settings_of(carried.bench, carried.size)), "text short"),
                Cell(str(len(judgement.runs)) if judgement is not None else NONE),
                Cell(judgement.state if judgement is not None else "not run", kind="text short"),
                Cell(judgement.validity.word if judgement is not None else NONE, kind="text short"),
                Cell(
                    (judgement.reason or "; ".join(judgement.reasons)) if judgement is not None else why,
                    kind="text",
                ),
            ]
        )
    heads = [*text_heads("part", "test"), Head("runs"), *text_heads("state", "validity", "reason")]
    return Table("Parts", heads, [Section("", rows)], lead=2)


def _reports(carried: Carried) -> list[tuple[str, str]]:
    pages = [(name, carried.place / RUNS / name / PAGE) for name in carried.judgements]
    return [(name, os.path.relpath(page, carried.place)) for name, page in pages if page.exists()]
