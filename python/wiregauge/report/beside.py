"""Several run directories of one test in one page: what each bench says of the same messages.

It shows figures beside each other and decides nothing: whether two runs differ by more than their uncertainty is the
reader's to see from the intervals.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wiregauge.figures.beside import latency_beside
from wiregauge.measures import Judgement, RunDirectoryError, headline, judge, shapes
from wiregauge.measures.results import FlowResult
from wiregauge.report.tables import Cell, Head, Section, Table, figures_of
from wiregauge.report.write import render, store

_SHOWN = ("n", "lost", "mean ± u", "p50", "p99", "max")
_MEASURES = {"latency": "One-way latency", "rtt": "Round trip"}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the run directories: how it is called on the page and where its own report is."""

    name: str
    place: Path
    judgement: Judgement


def write_beside(places: Sequence[Path], path: Path) -> Path:
    """Judges every directory of `places` and writes the page `path`; returns it.

    Raises RunDirectoryError when a directory cannot be judged, when none of their flows are alike, or when the page
    cannot be written.
    """
    judgements = [judge(place) for place in places]
    sides = [
        Side(name, place, judgement)
        for name, place, judgement in zip(_names(places, judgements), places, judgements, strict=True)
    ]
    tables = [table for measure in _MEASURES for table in _tables(sides, measure)]
    if not tables:
        raise RunDirectoryError(
            f"{', '.join(map(str, places))}: no flow was measured at the same point in all of them; "
            "put runs of one test beside each other"
        )
    figure = latency_beside([(side.name, shapes(side.judgement)) for side in sides])
    text = render(
        "beside.html.j2",
        [figure] if figure is not None else [],
        test=judgements[0].plan.name,
        sides=[
            {
                "name": side.name,
                "verdict": side.judgement.verdict,
                "validity": side.judgement.validity.word,
                "headline": headline(side.judgement),
                "reasons": side.judgement.reasons,
                "report": os.path.relpath(side.place / "report.html", path.parent),
                "facts": _facts(side.judgement),
            }
            for side in sides
        ],
        tables=tables,
    )
    store(path, text)
    return path


def _names(places: Sequence[Path], judgements: Sequence[Judgement]) -> list[str]:
    """The bench where that tells them apart, else bench and directory."""
    benches = [str(judgement.manifest.get("bench", "?")) for judgement in judgements]
    if len(set(benches)) == len(benches):
        return benches
    return [f"{bench} ({place.name})" for bench, place in zip(benches, places, strict=True)]


def _facts(judgement: Judgement) -> list[tuple[str, str]]:
    raw = judgement.manifest.get("bench_facts")
    facts = [fact for fact in raw if isinstance(fact, dict)] if isinstance(raw, list) else []
    return [(str(fact.get("name", "")), str(fact.get("value", ""))) for fact in facts]


Where = tuple[int, str, str, int]
"""Flow, protocol, the rest of the point, payload."""


def _results(judgement: Judgement, measure: str) -> dict[Where, FlowResult]:
    found: dict[Where, FlowResult] = {}
    for point in judgement.points:
        rest = ", ".join(f"{k} {v}" for k, v in point.point.items() if k not in ("payload", "protocol"))
        for flow in point.flows:
            if measure in flow.summaries and (measure == "latency" or flow.plan.relayed):
                to = [f"to {flow.plan.destination}"] if flow.plan.multicast else []
                where = ", ".join([*to, *([rest] if rest else [])])
                found[flow.plan.id, flow.plan.protocol, where, flow.plan.payload or 0] = flow
    return found


def _tables(sides: Sequence[Side], measure: str) -> list[Table]:
    results = [_results(side.judgement, measure) for side in sides]
    common = [where for where in results[0] if all(where in other for other in results[1:])]
    made = []
    for number in sorted({where[0] for where in common}):
        own = [where for where in common if where[0] == number]
        plan = results[0][own[0]].plan
        sections: dict[str, list[list[Cell]]] = {}
        for where in sorted(own, key=lambda where: (where[1], where[2], where[3])):
            _, protocol, rest, payload = where
            line = [Cell(str(payload))]
            for result in results:
                line += figures_of(result[where], measure, _SHOWN)
            sections.setdefault(" · ".join(part for part in (protocol, rest) if part), []).append(line)
        heads = [Head("payload", unit="B")]
        for _ in sides:
            heads += [
                Head(s, "lost" if s == "lost" else measure, unit="" if s in ("n", "lost") else "µs")
                for s in _SHOWN
            ]
        made.append(
            Table(
                f"{_MEASURES[measure]}, flow {number}, {plan.source} to {plan.destination}",
                heads,
                [Section(title, rows) for title, rows in sections.items()],
                [Head(side.name, span=len(_SHOWN)) for side in sides],
            )
        )
    return made
