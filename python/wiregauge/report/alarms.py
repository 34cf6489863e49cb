"""The table of alarms that were raised during runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from wiregauge.measures import Judgement
from wiregauge.report.tables import Cell, Head, Section, Table

__all__ = ["alarm_table"]

_MOST_SPANS: Final = 20
_HEADS: Final = ("run", "alarm", "flow", "from", "until", "at first", "worst")


def alarm_table(judgement: Judgement) -> Table:
    """A row for each incident, by run."""
    runs = judgement.manifest.get("runs")
    entries = [entry for entry in runs if isinstance(entry, dict)] if isinstance(runs, list) else []
    rows, notes = [], []
    for entry in entries:
        alarms = entry.get("alarms")
        if not isinstance(alarms, dict):
            continue
        found = list(_rows(entry.get("index"), alarms))
        rows += found
        notes.append(_note(entry.get("index"), alarms, len(found)))
    notes.append(
        "Raised by live figures, which are provisional: the tables above count every message, and no verdict rests on "
        "an alarm. Times are of the run, in seconds."
    )
    return Table("Alarms", [Head(text) for text in _HEADS], [Section("", rows)], lead=3, notes=notes)


def _rows(run: object, alarms: Mapping[str, Any]) -> Iterator[list[Cell]]:
    incidents = alarms.get("incidents")
    for one in incidents if isinstance(incidents, list) else []:
        if isinstance(one, dict):
            ends = f"{one.get('flow')}  {one.get('source')} → {one.get('destination')}"
            texts = [
                str(run),
                str(one.get("alarm")),
                ends,
                *(_seconds(one.get(key)) for key in ("begin_s", "end_s")),
            ]
            values = [_value(one.get(key), str(one.get("unit"))) for key in ("first", "worst")]
            yield [Cell(text) for text in (*texts, *values)]


def _note(run: object, alarms: Mapping[str, Any], shown: int) -> str:
    limits = ", ".join(str(limit) for limit in alarms.get("limits") or ())
    raised = alarms.get("raised") or 0
    text = f"Run {run}: {raised} raised by {limits}"
    if isinstance(raised, int) and raised > shown:
        text += f", the first {shown} are shown"
    for command in alarms.get("commands") or ():
        if isinstance(command, dict):
            text += f"; its command was started {command.get('started')} times"
            if command.get("failed"):
                text += f" and failed {command['failed']} times: {command.get('reason')}"
    if alarms.get("around_s") is not None:
        kept = alarms.get("kept") or []
        spans = ", ".join(f"{begin:.0f} to {end:.0f} s" for begin, end in kept[:_MOST_SPANS])
        more = f" and {len(kept) - _MOST_SPANS} more stretches" if len(kept) > _MOST_SPANS else ""
        text += f"; captures kept frames of {spans or 'no stretch'}{more}"
    return f"{text}."


def _seconds(value: object) -> str:
    return f"{value:.0f} s" if isinstance(value, int | float) else "?"


def _value(value: object, unit: str) -> str:
    if not isinstance(value, int | float):
        return "?"
    if unit == "ns":
        return f"{value / 1000:.4g} µs"
    return f"{100 * value:.3g} %" if unit == "share" else f"{value:.0f}"
