"""Frames of a run that belong to no sent message."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions import Definition
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.run_measures.base import OfRun, RunMeasure

__all__ = ["UNPLANNED"]


class _Unplanned(RunMeasure):
    """Unplanned frames, except foreign ones."""

    def quantity(self, statistic: str, run: OfRun, flows: Sequence[FlowResult]) -> Quantity:
        stray = sum(count for kind, count in run.unplanned.items() if kind != "foreign")
        came = sum(run.unplanned.values()) + sum(flow.counts["delivered"] for flow in flows)
        return Quantity(self.definition.name, "", float(stray), self.definition.unit, came)


UNPLANNED = _Unplanned(
    Definition(
        "unplanned",
        "Unplanned",
        "frames that belong to no sent message, except foreign ones",
        "messages",
        "Run directory, Outcomes",
        "Counted per run: of no known flow, of a sequence never sent, or damaged beyond recognition.",
        better="lower",
        needs="run",
        of="frames that arrived at any end system",
        after="corrupted",
    )
)
