"""The figures of a study's runs, by the names that limits use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from wiregauge.measures import Grade, Judgement, PointResult
from wiregauge.measures.explaining import whole_series
from wiregauge.measures.metrics.judgement import FlowResult, RunResult, Series
from wiregauge.measures.quantities import NoFigureError, quantity
from wiregauge.plan.quantity import canonical
from wiregauge.runner import BENCHES
from wiregauge.studies.measured import Measured, left_out, of_quantity
from wiregauge.studies.size import Size, StudyError

__all__ = ["Course", "Results"]


class Course(Struct, frozen=True):
    """The main measure of a flow for each message; `series` is None where there is none, for the reason in `absent`."""

    source: str
    series: Series | None
    absent: Measured
    """The figure to report where there is no series."""


class Results(Struct, frozen=True):
    """The results of a study's parts; `missing` has the reasons of those that did not run."""

    size: Size
    bench: str
    place: Path
    judgements: Mapping[str, Judgement]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Reasons, by name, of parts that should have run and did not."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Reasons, by name, of parts that this bench or size leaves out."""

    @property
    def modelled(self) -> bool:
        """Whether hosts were simulated from the test's models, rather than this machine."""
        return BENCHES[self.bench].traits.virtual_time

    def cell(self, part: str, measure: str, flow: int, to: str | None = None, /, **point: str) -> Measured:
        """A figure of a part, all repeats of a point taken together: `cell("hub", "rtt.mean", 10, payload="64B")`.

        `measure` is named as in a limit; axes that are not given take their only value. Raises StudyError for a figure
        that the part cannot have, whatever was measured.
        """
        where = _where(part, flow, point)
        source = f"{measure} of {where}"
        absent = self._absent(part, source, point)
        if absent is not None:
            return absent
        found = self._point(part, point)
        if found is None:
            return Measured(None, "", source=source, reason=f"{where} has not run to its end")
        if found.validity is Grade.INVALID:
            return Measured(None, "", source=source, reason=f"{where}: its runs are INVALID")
        return _figure(_flow(found.flows, flow, to, where), measure, source)

    def repeat(
        self, number: int, part: str, measure: str, flow: int, to: str | None = None, /, **point: str
    ) -> Measured:
        """The same figure of one repeat, counted from 1."""
        where = _where(part, flow, point, number)
        source = f"{measure} of {where}"
        found = self._run(number, part, where, source, point)
        if isinstance(found, Measured):
            return found
        return _figure(_flow(found.flows, flow, to, where), measure, source)

    def course(self, part: str, flow: int, to: str | None = None, /, repeat: int = 1, **point: str) -> Course:
        """The main measure (round trip of relayed flows, else latency) of every message of one run, ns.

        Raises RunDirectoryError for a damaged file of the run directory.
        """
        where = _where(part, flow, point, repeat if repeat > 1 else 0)
        found = self._run(repeat, part, where, where, point)
        if isinstance(found, Measured):
            return Course(where, None, found)
        of = _flow(found.flows, flow, to, where)
        source = f"{of.plan.main} of {where}"
        nothing = Measured(None, "", source=source, reason=f"{where}: no message has a value")
        if of.plan.main not in of.series or not len(of.series[of.plan.main].value):
            return Course(source, None, nothing)
        return Course(source, whole_series(self.judgements[part], found, of), nothing)

    def points(self, part: str) -> tuple[PointResult, ...]:
        """The points of a part, for figures that belong to no flow; empty for a part that has not run."""
        found = self.judgements.get(part)
        return found.points if found is not None else ()

    def reason(self, part: str) -> str:
        """Why a part has no figures; empty where it has run."""
        if part in self.judgements:
            return ""
        return self.skipped.get(part) or self.missing.get(part) or f"{part} has not run"

    def _run(
        self, number: int, part: str, where: str, source: str, point: Mapping[str, str]
    ) -> RunResult | Measured:
        absent = self._absent(part, source, point)
        if absent is not None:
            return absent
        judged = self.judgements[part]
        if number > judged.plan.repeats:
            if self.size == "full":
                raise StudyError(f"{part}: it has {judged.plan.repeats} repeats, and no repeat {number}")
            return left_out(f"the {self.size} form of {part} has {judged.plan.repeats} repeats")
        runs = [
            run for run in judged.runs if run.plan.repeat == number - 1 and _matches(run.plan.point, point)
        ]
        if len(runs) > 1:
            raise StudyError(f"{part}: {len(runs)} points are at {dict(point)}; name more axes")
        if not runs:
            return Measured(None, "", source=source, reason=f"{where} has not run to its end")
        if runs[0].validity is Grade.INVALID:
            return Measured(None, "", source=source, reason=f"{where}: it is INVALID")
        return runs[0]

    def _absent(self, part: str, source: str, wanted: Mapping[str, str]) -> Measured | None:
        """Why a part has no such point: it did not run, or the quick form has fewer; else raises StudyError."""
        if part in self.skipped:
            return left_out(self.skipped[part])
        if part not in self.judgements:
            return Measured(None, "", source=source, reason=self.missing.get(part, f"{part} has not run"))
        axes = self.judgements[part].plan.axes
        for axis, value in wanted.items():
            if axis not in axes:
                raise StudyError(f'{part}: the test has no axis "{axis}"; it has {", ".join(axes) or "none"}')
            if canonical(value) not in map(canonical, axes[axis]):
                if self.size != "quick":
                    raise StudyError(f"{part}: its axis {axis} has no value {value}")
                return left_out(f"the quick form of {part} has no {axis} {value}")
        return None

    def _point(self, part: str, wanted: Mapping[str, str]) -> PointResult | None:
        found = [point for point in self.judgements[part].points if _matches(point.point, wanted)]
        if len(found) > 1:
            raise StudyError(f"{part}: {len(found)} points are at {dict(wanted)}; name more axes")
        return found[0] if found else None


def _where(part: str, flow: int, point: Mapping[str, str], repeat: int = 0) -> str:
    axes = [f"{axis} {value}" for axis, value in point.items()]
    return ", ".join((part, f"flow {flow}", *axes, *([f"repeat {repeat}"] if repeat else [])))


def _matches(point: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(canonical(point[axis]) == canonical(value) for axis, value in wanted.items())


def _flow(flows: Sequence[FlowResult], flow: int, to: str | None, where: str) -> FlowResult:
    for one in flows:
        if one.plan.id == flow and to in (None, one.plan.destination):
            return one
    raise StudyError(f"{where}: the test has no such flow")


def _figure(flow: FlowResult, measure: str, source: str) -> Measured:
    try:
        found = quantity(flow, measure)
    except NoFigureError:
        raise StudyError(f"{source}: no measure has this name") from None
    return of_quantity(found, source)
