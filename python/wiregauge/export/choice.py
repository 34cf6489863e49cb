"""The selection to export: part of the run directory, run, flow and measure. Raises a sentence if absent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct

from wiregauge.files import nearest
from wiregauge.measures import SERIES, FlowResult, Judgement, RunResult
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan, RunPlan

What = Literal["records", "messages", "passages", "sketches", "measures", "series", "notes"]
WHATS: tuple[str, ...] = get_args(What)


class ExportError(Exception):
    """The export cannot be made as requested; the text says why and what to do."""


class UnwrittenError(ExportError):
    """The disk, or the reader of standard output, does not accept the export."""


class Choice(Struct, frozen=True):
    """A selection; None means all. `flow` is a number or, for one receiver of a multicast flow, `"10 to sensor"`."""

    run: int | None = None
    flow: str | None = None
    measure: str | None = None
    no_formulas: bool = False
    """For csv: mark texts that a spreadsheet would compute as texts."""

    def check(self, plan: CampaignPlan, done: frozenset[int]) -> None:
        """Raises ExportError for a run, flow or measure that the campaign does not have."""
        if self.run is not None and self.run not in done:
            there = _listed([str(run) for run in sorted(done)])
            what = "was not run" if any(run.index == self.run for run in plan.runs) else "is not in the plan"
            raise ExportError(f"run {self.run} {what}; there {'is' if len(done) == 1 else 'are'} {there}")
        if self.flow is not None:
            flows = [flow for run in plan.runs if self.has_run(run) for flow in run.flows]
            if not any(flow.is_called(self.flow) for flow in flows):
                there = _listed(list(dict.fromkeys(flow.name for flow in flows)))
                raise ExportError(f"there is no flow {self.flow}; the test has {there}")
        if self.measure is not None and self.measure not in SERIES:
            raise ExportError(
                f'"{self.measure}" is no measure with a distribution{nearest(self.measure, SERIES)}; there are '
                f"{_listed(list(SERIES))}"
            )

    def has_run(self, run: RunPlan) -> bool:
        """Whether a run is selected."""
        return self.run is None or run.index == self.run

    def has_flow(self, flow: FlowPlan) -> bool:
        """Whether a flow is selected."""
        return self.flow is None or flow.is_called(self.flow)

    def runs(self, judgement: Judgement) -> Iterator[RunResult]:
        """The selected runs."""
        return (run for run in judgement.runs if self.has_run(run.plan))

    def flows(self, run: RunResult) -> Iterator[FlowResult]:
        """The selected flows of a run."""
        return (flow for flow in run.flows if self.has_flow(flow.plan))

    def series(self, flow: FlowResult) -> Iterator[str]:
        """The selected measures of a flow that have values."""
        return (
            name
            for name in SERIES
            if (self.measure is None or name == self.measure)
            and name in flow.series
            and len(flow.series[name].value)
        )


def _listed(items: list[str], most: int = 12) -> str:
    shown = ", ".join(items[:most])
    return f"{shown}, … ({len(items)} in all)" if len(items) > most else shown or "none"
