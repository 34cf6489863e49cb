"""A run directory, opened: what was tested, whether it can be trusted, and the way to every figure and message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from wiregauge import results
from wiregauge.export import Choice, tables, write
from wiregauge.export.paper import paper_table
from wiregauge.measures import DEFINITIONS, SERIES, Judgement
from wiregauge.measures.metrics.flow_plan import CampaignPlan
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.quantities import quantity
from wiregauge.notebook.choosing import choose
from wiregauge.notebook.errors import WiregaugeError, in_one_class
from wiregauge.notebook.measure import Measure

__all__ = ["Run"]


class Run:
    """The result of `wiregauge run`, in a notebook.

    Methods that choose a flow take `flow` (its number, or `"10 to sensor"`), `to` (a receiver of a multicast flow),
    `repeat` (from 0; all repeats together without it) and the axes of the sweep by name: `load="50%"`,
    `payload="64B"`. What is the only one need not be named.

    >>> run
    <Run first-run: first, VALID, PASS, 1 run>
    >>> run.latency().max().value == run.latency(flow=10).max().value
    True
    """

    def __init__(self, path: Path, judgement: Judgement | None = None) -> None:
        self._path = path
        self._judgement = judgement

    # -- what it is -----------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._path

    @cached_property
    def judgement(self) -> Judgement:
        """Everything `wiregauge show` knows; computed when it is first needed."""
        with in_one_class():
            return self._judgement or results.judge(self._path)

    @cached_property
    def _directory(self) -> Recorded:
        with in_one_class():
            return open_recorded(self._path)

    @property
    def manifest(self) -> Mapping[str, object]:
        """`manifest.json`: test, seed, bench, host, state."""
        return self._directory.manifest

    @property
    def plan(self) -> CampaignPlan:
        """The test as it was planned: nodes, links, axes, runs, limits; times in ns."""
        return self._directory.plan

    @property
    def validity(self) -> str:
        """`VALID`, `DEGRADED` or `INVALID`; `reasons` says why."""
        return self.judgement.validity.word

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not simply valid, gravest first, one sentence each."""
        return self.judgement.reasons

    @property
    def verdict(self) -> str:
        """`PASS`, `FAIL`, `UNDECIDED` or `NONE` (the test has no limits)."""
        return self.judgement.verdict

    @cached_property
    def points(self) -> pl.DataFrame:
        """A row per point of the sweep: its axes, `runs` (indices of its repeats), `validity`."""
        axes = self.plan.axes
        return pl.DataFrame(
            [
                {
                    **{axis: point.point.get(axis) for axis in axes},
                    "runs": list(point.runs),
                    "validity": point.validity.word,
                }
                for point in self.judgement.points
            ],
            schema={
                **dict.fromkeys(axes, pl.String()),
                "runs": pl.List(pl.UInt32()),
                "validity": pl.String(),
            },
        )

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow and receiver, as the first run plans it; payload and period may be swept."""
        first = self.plan.runs[0].flows if self.plan.runs else ()
        schema = {
            "flow": pl.UInt16(),
            "protocol": pl.String(),
            "from": pl.String(),
            "to": pl.String(),
            "relayed": pl.Boolean(),
            "payload_B": pl.UInt32(),
            "period_ns": pl.Float64(),
            "deadline_ns": pl.Float64(),
        }
        rows = [
            (f.id, f.protocol, f.source, f.destination, f.relayed, f.payload, f.period_ns, f.deadline_ns)
            for f in first
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def limits(self) -> pl.DataFrame:
        """A row per limit, run and flow. `observed` and `value` are in the measure's unit; null: not determined."""
        schema = {
            "run": pl.UInt32(),
            "flow": pl.UInt16(),
            "to": pl.String(),
            "measure": pl.String(),
            "bound": pl.String(),
            "written": pl.String(),
            "value": pl.Float64(),
            "observed": pl.Float64(),
            "unit": pl.String(),
            "margin": pl.Float64(),
            "result": pl.String(),
            "holds": pl.Boolean(),
            "reason": pl.String(),
        }
        rows = [
            (
                run.plan.index,
                limit.flow,
                limit.to,
                limit.measure,
                limit.bound,
                limit.written,
                limit.value,
                limit.observed,
                limit.unit,
                limit.margin,
                limit.result,
                limit.holds,
                limit.reason or None,
            )
            for run in self.judgement.runs
            for limit in run.limits
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def checks(self) -> pl.DataFrame:
        """A row per check of validity and run (null: the campaign as a whole)."""
        schema = dict.fromkeys(("check", "limit", "observed", "grade", "reason"), pl.String())
        found = [(None, check) for check in self.judgement.checks]
        found += [(run.plan.index, check) for run in self.judgement.runs for check in run.checks]  # type: ignore[misc]
        rows = [(i, c.title, c.limit, c.observed, c.grade.label, c.reason or None) for i, c in found]
        return pl.DataFrame(rows, schema={"run": pl.UInt32(), **schema}, orient="row")

    # -- figures --------------------------------------------------------------------------------------------

    def measure(
        self,
        name: str,
        flow: int | str | None = None,
        *,
        to: str | None = None,
        repeat: int | None = None,
        **point: str | int,
    ) -> Measure | Quantity:
        """Any measure of the reference: one with a distribution as a `Measure`, one that is a figure as a `Quantity`.

        A statistic may be named as in a limit.

        >>> run.measure("ipdv", flow=10).n
        499
        >>> run.measure("latency.p99", flow=10) == run.latency(flow=10).percentile(99)
        True
        >>> run.measure("lost", flow=10)
        <lost = 0 (n = 500)>
        """
        measure, _, statistic = name.partition(".")
        if measure not in DEFINITIONS:
            raise WiregaugeError(f'"{measure}" is no measure; there are {", ".join(DEFINITIONS)}')
        if measure == "unplanned":
            raise WiregaugeError(
                "unplanned frames belong to no flow; run.judgement.runs[0].unplanned counts them"
            )
        chosen = choose(self.judgement, flow, to, repeat, point)
        if measure in SERIES and not statistic:
            return Measure(measure, chosen, self.judgement)
        try:
            return quantity(chosen.flow, name)
        except KeyError:
            raise WiregaugeError(f"{measure} has no statistic {statistic}") from None

    def latency(self, flow: int | str | None = None, **which: Any) -> Measure:
        """One-way latency at the application."""
        return self._distribution("latency", flow, which)

    def rtt(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Round trip of a relayed flow."""
        return self._distribution("rtt", flow, which)

    def ipdv(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Delay variation between consecutive messages (RFC 3393)."""
        return self._distribution("ipdv", flow, which)

    def delay_variation(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Delay above the minimum (RFC 5481, PDV)."""
        return self._distribution("delay_variation", flow, which)

    def residence(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Residence time in a switch, one value per passage."""
        return self._distribution("residence", flow, which)

    def period(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Transmit period."""
        return self._distribution("period", flow, which)

    def receive_period(self, flow: int | str | None = None, **which: Any) -> Measure:
        """Time between arrivals."""
        return self._distribution("receive_period", flow, which)

    def send_error(self, flow: int | str | None = None, **which: Any) -> Measure:
        """How far the sender missed its schedule."""
        return self._distribution("send_error", flow, which)

    def sent(self, flow: int | str | None = None, **which: Any) -> Quantity:
        """Messages sent in the measured part."""
        return self._figure("sent", flow, which)

    def lost(self, flow: int | str | None = None, **which: Any) -> Quantity:
        """Messages lost."""
        return self._figure("lost", flow, which)

    def loss(self, flow: int | str | None = None, **which: Any) -> Quantity:
        """Loss ratio with its 95 % bounds.

        >>> run.loss(flow=10)
        <loss = 0 % (95 %: 0 % to 0.597 %, n = 500)>
        """
        return self._figure("loss", flow, which)

    def goodput(self, flow: int | str | None = None, **which: Any) -> Quantity:
        """Goodput."""
        return self._figure("goodput", flow, which)

    def _distribution(self, name: str, flow: int | str | None, which: Mapping[str, Any]) -> Measure:
        found = self.measure(name, flow, **which)
        assert isinstance(found, Measure)
        return found

    def _figure(self, name: str, flow: int | str | None, which: Mapping[str, Any]) -> Quantity:
        found = self.measure(name, flow, **which)
        assert isinstance(found, Quantity)
        return found

    # -- tables ---------------------------------------------------------------------------------------------

    def messages(self, run: int | None = None, flow: int | str | None = None) -> pl.LazyFrame:
        """Every message with its outcome; times are int64 ps since the run's epoch (docs/reference/export.md).

        >>> import polars as pl
        >>> run.messages(flow=10).filter(~pl.col("warm_up")).select(pl.len()).collect().item()
        500
        """
        with in_one_class():
            return tables.messages(self._directory, self._choice(run, flow))

    def records(self, run: int | None = None, flow: int | str | None = None) -> pl.LazyFrame:
        """Every record: one frame at one observation point; `time_ps` as in docs/reference/export.md."""
        with in_one_class():
            return tables.records(self._directory, self._choice(run, flow))

    def passages(self, run: int | None = None, flow: int | str | None = None) -> pl.LazyFrame:
        """Every passage of a frame through a switch: `came_ps` and `left_ps` since the run's epoch."""
        with in_one_class():
            return tables.passages(self._directory, self._choice(run, flow))

    def sketches(self, run: int | None = None, flow: int | str | None = None) -> pl.LazyFrame:
        """Histograms as tracking left them, a row per bucket; there whatever the size of the run."""
        with in_one_class():
            return tables.sketches(self._directory, self._choice(run, flow))

    def table(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """Every figure of every run, flow and measure, a row each (docs/reference/export.md, measures).

        With columns, such as `["flow", "sent", "latency.p99"]`, a row for each flow and point, repeats pooled: the
        table that `wiregauge table --columns` prints, unrounded, in the units of the export.
        """
        with in_one_class():
            if not columns:
                return tables.measures(self.judgement, Choice()).collect()
            made = paper_table([(str(self._path), self.judgement)], columns)
        rows = [[one.value if isinstance(one, Quantity) else one for one in row] for row in made.raw]
        return pl.DataFrame(rows, schema=list(made.columns), orient="row", infer_schema_length=None)

    @property
    def notes(self) -> pl.DataFrame:
        """The notes that people put on the run directory, a row each (docs/reference/export.md, notes)."""
        with in_one_class():
            return tables.notes(self._directory, Choice()).collect()

    def export(
        self,
        to: str,
        out: str | PathLike[str],
        what: str | None = None,
        *,
        run: int | None = None,
        flow: int | str | None = None,
        measure: str | None = None,
    ) -> Path:
        """Writes a file in another tool's format, as `wiregauge export` does."""
        choice = Choice(run, None if flow is None else str(flow), measure)
        with in_one_class():
            write(self._path, to, Path(out), what, choice)
        return Path(out)

    def _choice(self, run: int | None, flow: int | str | None) -> Choice:
        choice = Choice(run, None if flow is None else str(flow))
        choice.check(self._directory.plan, frozenset(self._directory.runs))
        return choice

    # -- for the eye ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        runs = len(self.judgement.runs)
        many = f"{runs} run{'s' if runs != 1 else ''}"
        return f"<Run {self._path}: {self.plan.name}, {self.validity}, {self.verdict}, {many}>"

    def _repr_html_(self) -> str:
        colour = {"VALID": "#1a7f37", "DEGRADED": "#9a6700", "INVALID": "#cf222e"}[self.validity]
        sweep = "; ".join(f"{axis}: {', '.join(values)}" for axis, values in self.plan.axes.items()) or "none"
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        facts = {
            "bench": str(self.manifest.get("bench")),
            "seed": str(self.manifest.get("seed")),
            "runs": f"{len(self.judgement.runs)} of {len(self.plan.runs)}",
            "sweep": sweep,
            "repeats": str(self.plan.repeats),
        }
        caveat = f" ({self.judgement.caveat})" if self.judgement.caveat else ""
        rows = "".join(f"<tr><td>{key}</td><td>{escape(value)}</td></tr>" for key, value in facts.items())
        return (
            f'<b>{escape(self.plan.name)}</b>: <b style="color:{colour}">{self.validity}</b>, '
            f"verdict <b>{self.verdict}</b>{escape(caveat)}<br>{escape(results.headline(self.judgement))}"
            f"<table><tbody>{rows}</tbody></table><ul>{reasons}</ul>"
        )
