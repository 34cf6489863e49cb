"""The table of credits of shaped queues."""

from __future__ import annotations

from wiregauge.measures.definitions.units import duration, in_unit
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.report.tables import Cell, Head, Section, Table, place_cell

__all__ = ["credit_table"]


def credit_table(judgement: Judgement) -> Table:
    """Credits of every shaped queue, by run."""
    heads = [
        Head("point", kind="text"),
        Head("port", kind="text"),
        Head("class"),
        Head("greatest credit", "credit"),
        Head("first at"),
        Head("least credit", "credit"),
        Head("first at"),
    ]
    rows = [
        [
            place_cell(run.plan.point),
            Cell(f"{one.node}:{one.port}", kind="text short"),
            Cell(str(one.traffic_class)),
            Cell(in_unit(one.max_bit, "bit")),
            Cell(duration(one.max_at_ns)),
            Cell(in_unit(one.min_bit, "bit")),
            Cell(duration(one.min_at_ns)),
        ]
        for run in judgement.runs
        for one in run.credits
    ]
    return Table("Credits", heads, [Section("", rows)] if rows else [])
