"""Which flow at which point of the sweep is meant. Exactly one must be; else a sentence says what there is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from wiregauge.measures import FlowResult, Judgement, PointResult, RunResult
from wiregauge.notebook.errors import WiregaugeError

__all__ = ["Chosen", "choose"]


class Chosen(Struct, frozen=True):
    """One flow at one receiver and point: `flow` holds its figures, `members` the runs they come from."""

    flow: FlowResult
    point: Mapping[str, str]
    members: tuple[tuple[RunResult, FlowResult], ...]
    repeat: int | None

    @property
    def label(self) -> str:
        """As a reader would say it: `udp · flow 10, load 50%`."""
        place = "".join(f", {axis} {value}" for axis, value in self.point.items() if axis != "protocol")
        repeats = len(self.members)
        which = f", repeat {self.repeat}" if self.repeat is not None else ""
        together = f", {repeats} repeats" if repeats > 1 else ""
        return f"{self.flow.plan.protocol} · flow {self.flow.plan.name}{place}{which}{together}"


def choose(
    judgement: Judgement,
    flow: int | str | None,
    to: str | None,
    repeat: int | None,
    point: Mapping[str, str | int],
) -> Chosen:
    """The one flow that fits; all repeats of its point together unless `repeat` (from 0) names one."""
    points = _points(judgement, point)
    found = [
        (place, member)
        for place in points
        for member in place.flows
        if (flow is None or member.plan.is_called(str(flow)))
        and (to is None or member.plan.destination == to)
    ]
    if not found:
        raise WiregaugeError(_none(points, flow, to))
    flows = {member.plan.name: member for _, member in found}
    if len(flows) > 1:
        names = ", ".join(flows)
        multicast = len({member.plan.id for member in flows.values()}) == 1
        how = f'to="{found[0][1].plan.destination}"' if multicast else f"flow={found[0][1].plan.id}"
        raise WiregaugeError(f"there are several flows ({names}); choose one, as in {how}")
    if len(found) > 1:
        raise WiregaugeError(
            f"there are {len(found)} points of the sweep; choose one, as in {_hint([p for p, _ in found])}"
        )
    place, chosen = found[0]
    runs = {run.plan.index: run for run in judgement.runs}
    members = tuple(
        (runs[index], member)
        for index in place.runs
        for member in runs[index].flows
        if (member.plan.id, member.plan.destination) == (chosen.plan.id, chosen.plan.destination)
    )
    if repeat is None:
        return Chosen(chosen, place.point, members, None)
    for run, member in members:
        if run.plan.repeat == repeat:
            return Chosen(member, place.point, ((run, member),), repeat)
    there = _listed(run.plan.repeat for run, _ in members)
    raise WiregaugeError(f"there is no repeat {repeat}; there are {there} (counted from 0)")


def _points(judgement: Judgement, point: Mapping[str, str | int]) -> list[PointResult]:
    axes = {_keyword(axis): axis for axis in judgement.plan.axes}
    points = list(judgement.points)
    for keyword, wanted in point.items():
        axis = axes.get(keyword)
        if axis is None:
            there = f"the axes of the sweep are {_listed(axes)}" if axes else "the test sweeps nothing"
            raise WiregaugeError(f"{keyword} is no axis; {there}")
        values = list(judgement.plan.axes[axis])
        if str(wanted) not in values:
            raise WiregaugeError(f'{keyword} "{wanted}" is not in the sweep, which has {_listed(values)}')
        points = [place for place in points if place.point.get(axis) == str(wanted)]
    if not points:
        raise WiregaugeError("no run of this point was done; `run.points` shows what there is")
    return points


def _none(points: Sequence[PointResult], flow: int | str | None, to: str | None) -> str:
    wanted = "".join((f" {flow}" if flow is not None else "", f" to {to}" if to is not None else ""))
    names = dict.fromkeys(
        f"{member.plan.id} to {member.plan.destination}" for place in points for member in place.flows
    )
    return f"there is no flow{wanted}; there are {_listed(names)}" if names else "the run has no tracked flow"


def _hint(points: Sequence[PointResult]) -> str:
    """Keywords that tell the points apart, with the values of the first."""
    first = points[0].point
    differ = [axis for axis in first if len({place.point.get(axis) for place in points}) > 1]
    return ", ".join(f'{_keyword(axis)}="{first[axis]}"' for axis in differ)


def _keyword(axis: str) -> str:
    """An axis as a Python keyword."""
    return re.sub(r"\W", "_", axis)


def _listed(items: Iterable[object], most: int = 12) -> str:
    texts = [str(item) for item in items]
    shown = ", ".join(texts[:most])
    return f"{shown}, … ({len(texts)} in all)" if len(texts) > most else shown or "none"
