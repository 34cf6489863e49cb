"""The table of flows whose frames were matched before and after a device by their content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.report.tables import Cell, Head, Section, Table
from wiregauge.results.passive_text import count, sentences, spread, varies, window

__all__ = ["passive_table"]


def passive_table(judgement: Judgement) -> Table:
    """Every passively matched flow of every run."""
    heads = [
        Head("flow", kind="text"),
        Head("frames", kind="text"),
        Head("from", kind="text"),
        Head("number"),
        Head("matched"),
        Head("ambiguous"),
        Head("at an edge"),
        Head("outside"),
        Head("lost"),
        Head("copies"),
        Head("overtaken"),
        Head("appeared"),
        Head("perhaps changed"),
        Head("median", unit="us"),
        Head("p99", unit="us"),
        Head("greatest", unit="us"),
        Head("varies by", unit="us"),
    ]
    runs: list[Mapping[str, Any]] = [
        entry["passive"] for entry in _entries(judgement) if entry.get("passive")
    ]
    sections = [Section("", [_row(flow) for flow in run["flows"]]) for run in runs]
    notes = [
        "Two values where the content of frames does not tell: the least and the greatest. Residence is from the first "
        "octet before the device to the first octet behind it. Outside: in both captures, but not when looked for.",
        *(f"Frames were looked for {window(run)}." for run in runs if "greatest_ps" in run),
        *(f"{sentence[0].upper()}{sentence[1:]}." for run in runs for sentence in sentences(run)),
    ]
    return Table("Frames before and after the device", heads, sections, notes=notes)


def _entries(judgement: Judgement) -> list[dict[str, Any]]:
    entries = judgement.manifest.get("runs")
    return entries if isinstance(entries, list) else []


def _row(flow: Mapping[str, Any]) -> list[Cell]:
    times = flow["residence"]
    return [
        Cell(str(flow["flow"]), kind="text short"),
        Cell(flow["name"], kind="text short"),
        Cell(flow["from"], kind="text short"),
        *(Cell(str(flow[key])) for key in ("frames", "matched", "ambiguous", "at_edge")),
        Cell(str(flow.get("outside", 0))),
        *(Cell(count(flow[key])) for key in ("lost", "copies")),
        *(Cell(str(flow[key])) for key in ("overtaken", "appeared", "perhaps_changed")),
        *(Cell(spread(times[key]) if times else "-") for key in ("median", "p99", "greatest")),
        Cell(varies(flow)),
    ]
