"""Every figure of run directories: its name, what it shows, and how it is drawn.

The report, `wiregauge figure`, notebooks and the page of a server draw from here, so a figure has one name everywhere.
A figure of a measure is named with it: `rtt-percentiles` is `percentiles` of the measure `rtt`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.figures import distributions, run_figures
from wiregauge.figures.clocks import clock_figure
from wiregauge.figures.explained import explained_figures
from wiregauge.figures.model import Figure
from wiregauge.figures.network import network_figure
from wiregauge.figures.views import view_figures
from wiregauge.files import nearest
from wiregauge.measures import only
from wiregauge.measures.definitions import SERIES
from wiregauge.measures.explaining import explain
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.results.explaining.shapes import explained_shapes
from wiregauge.results.shapes import MOST_FLOWS, NotHeldError, Selection, Shapes, Side, shapes, shapes_of
from wiregauge.results.views import Views, views

__all__ = ["FIGURES", "FigureKind", "NoFigureError", "build", "draw", "of_measure"]

Takes = Literal["flows", "runs"]


class NoFigureError(ValueError):
    """A figure cannot be drawn; the text says why, in one sentence."""


class Drawing:
    """What figures of some run directories are drawn from, each part computed when it is first needed."""

    def __init__(
        self,
        sides: Sequence[Side],
        of_flows: Shapes,
        *,
        seen: Views | None = None,
        with_views: bool = True,
        selection: Selection | None = None,
    ) -> None:
        self.sides, self.shapes = sides, of_flows
        self.selection = selection or Selection()
        self._seen, self._with_views = seen, with_views

    @property
    def judgement(self) -> Judgement:
        """The judgement of the first run directory; a figure of runs has one alone."""
        return self.sides[0].judgement

    @cached_property
    def views(self) -> Mapping[str, Figure]:
        """The views that the records allow, by name."""
        if not self._with_views:
            return {}
        seen = self._seen or views(self.judgement)
        return {figure.id: figure for figure in view_figures(self.judgement, seen)}

    @cached_property
    def explained(self) -> list[Figure]:
        """The explanations of the chosen flows, the slowest first."""
        flows = {
            flow.plan.id
            for run in self.judgement.runs
            for flow in run.flows
            if self.selection.has_flow(flow.plan)
        }
        chosen = only(self.judgement, flows) if self.selection.flows else self.judgement
        return explained_figures(explained_shapes(chosen, explain(chosen, most=1)))


Draw = Callable[[Drawing, str | None], Figure | None]


class FigureKind(Struct, frozen=True):
    """A figure. One of a measure (`of_measure`) is drawn for any measure with a distribution.

    `flows`: it takes a choice of flows and points. `several`: it takes several run directories. `timed`: it takes a
    part of the time.
    """

    name: str
    shows: str
    needs: str
    """What is missing where it cannot be drawn; goes on with "has" or "have" and the subject "the run"."""
    draw: Draw
    of_measure: bool = False
    flows: bool = False
    several: bool = False

    @property
    def timed(self) -> bool:
        """Whether it takes a part of the time: figures of a measure do."""
        return self.of_measure


def _of_measure(
    name: str,
    shows: str,
    made: Callable[[Shapes, str | None], Figure | None],
) -> FigureKind:
    return FigureKind(
        name,
        shows,
        "no value",
        lambda drawing, measure: made(drawing.shapes, measure),
        of_measure=True,
        flows=True,
        several=True,
    )


def _of_flows(name: str, shows: str, needs: str, made: Callable[[Shapes], Figure | None]) -> FigureKind:
    return FigureKind(
        name,
        shows,
        needs,
        lambda drawing, _: made(drawing.shapes),
        flows=True,
    )


def _view(name: str, shows: str, needs: str) -> FigureKind:
    return FigureKind(name, shows, needs, lambda drawing, _: drawing.views.get(name))


_KINDS = (
    FigureKind(
        "network",
        "end systems, switches and links, with the ways of flows",
        "no network",
        lambda drawing, _: network_figure(drawing.judgement.plan),
    ),
    _of_measure("density", "density of values", distributions.density),
    _of_flows(
        "latency-by-payload",
        "median latency with the band from p1 to p99, against payload",
        "no sweep of payloads with latencies",
        run_figures.latency_by_payload,
    ),
    _of_measure("percentiles", "values against rarity", distributions.percentiles),
    _of_flows(
        "split",
        "mean time in stacks, network and relay",
        "no message with a timestamp at each of these points",
        run_figures.split,
    ),
    _of_measure("time", "values over the time of the run", distributions.against_time),
    _of_measure("cdf", "cumulative distribution", distributions.cumulative),
    _of_measure("box", "quartiles, whiskers and outliers", distributions.boxes),
    _of_measure("histogram", "counts in equal classes", distributions.histograms),
    _of_flows(
        "hops",
        "residence at each output port on the way",
        "no record of a passage through a switch",
        run_figures.hops,
    ),
    _of_flows(
        "outcomes",
        "messages that were not delivered, by outcome",
        "no message with another outcome than delivered",
        run_figures.outcomes,
    ),
    FigureKind(
        "clock-exchanges",
        "offsets of clocks that two-way exchanges compared",
        "no exchange between clocks",
        lambda drawing, _: clock_figure(drawing.judgement),
    ),
    _view("frames", "frames at the ports around the worst latencies", "no passage of a frame through a port"),
    _view("queues", "queue lengths of switch ports", "no record of a queue in a switch"),
    _view("credits", "credits of credit-based shapers", "no credit-based shaper"),
    _view("clock-offsets", "offsets of clocks from true time", "no clock whose true offset is known"),
    _view("sync-states", "states of AS6802 devices and precision of clusters", "no AS6802 cluster"),
    _view("ptp-offsets", "distance of PTP clocks from their grandmaster", "no PTP clock of the simulator"),
    _view("host-noise", "host counters at the time of the worst messages", "no counters of hosts"),
    FigureKind(
        "explain",
        "recurring modes and worst messages of a flow",
        "no flow with a latency to explain",
        lambda drawing, _: next(iter(drawing.explained), None),
        flows=True,
    ),
)
FIGURES: dict[str, FigureKind] = {kind.name: kind for kind in _KINDS}
"""Every figure by its name."""

_REPORT = (
    ("network", None),
    ("density", "latency"),
    ("latency-by-payload", None),
    ("percentiles", "latency"),
    ("percentiles", "rtt"),
    ("split", None),
    ("time", None),
    ("density", "period"),
    ("box", "period"),
    ("density", "send_error"),
    ("outcomes", None),
    ("clock-exchanges", None),
    ("frames", None),
    ("queues", None),
    ("credits", None),
    ("clock-offsets", None),
    ("sync-states", None),
    ("ptp-offsets", None),
    ("host-noise", None),
)
"""The figures of a report in their order, each with its measure; explanations follow them."""


def build(judgement: Judgement, of_flows: Shapes | None = None, seen: Views | None = None) -> list[Figure]:
    """Every figure of the report that the data allow, in its order; the views where they are given."""
    drawing = Drawing(
        [Side(judgement)], of_flows or shapes(judgement), seen=seen, with_views=seen is not None
    )
    made = [_drawn(FIGURES[name], drawing, measure) for name, measure in _REPORT]
    return [figure for figure in made if figure is not None]


def _drawn(kind: FigureKind, drawing: Drawing, measure: str | None) -> Figure | None:
    """A figure, with the remark on flows that are not in it."""
    figure = kind.draw(drawing, measure)
    if figure is None or not figure.panels:
        return None
    left = drawing.shapes.left_out
    if not kind.flows or kind.name in ("outcomes", "explain") or not left:
        return figure
    note = (
        f"Drawn are the {MOST_FLOWS} flows whose slowest message took longest; the tables have {left} more."
    )
    return replace(figure, notes=[note, *figure.notes])


def of_measure(name: str, measure: str | None = None) -> tuple[FigureKind, str | None]:
    """The figure of a name and the measure in it: `rtt-percentiles`, or `percentiles` with a measure beside it.

    Raises NoFigureError for a name that is none.
    """
    kind = FIGURES.get(name)
    if kind is not None:
        if measure is not None and not kind.of_measure:
            raise NoFigureError(f"{name} is of no single measure; leave the measure out")
        return kind, _known(measure)
    within, _, last = name.rpartition("-")
    kind = FIGURES.get(last)
    if kind is not None and kind.of_measure and within:
        if measure not in (None, within):
            raise NoFigureError(f"{name} names the measure {within}, beside {measure}; leave one out")
        return kind, _known(within)
    there = ", ".join(FIGURES)
    raise NoFigureError(f'"{name}" is no figure{nearest(name, FIGURES)}; there are {there}')


def _known(measure: str | None) -> str | None:
    if measure is not None and measure not in SERIES:
        raise NoFigureError(
            f'"{measure}" is no measure with a distribution{nearest(measure, SERIES)}; there are {", ".join(SERIES)}'
        )
    return measure


def draw(
    name: str,
    sides: Sequence[Side],
    measure: str | None = None,
    selection: Selection | None = None,
    *,
    short: bool = True,
) -> Figure:
    """A figure of a part of one or several run directories; labels are `short` unless a page has room for long ones.

    Raises NoFigureError where there is none: for an unknown name, flow or point, and for data that do not exist.
    """
    part = selection or Selection()
    kind, measure = of_measure(name, measure)
    _check(kind, sides, part)
    drawing = Drawing(sides, shapes_of(sides, part, short=short), selection=part)
    try:
        figure = _drawn(kind, drawing, measure)
    except NotHeldError as error:
        raise NoFigureError(str(error)) from None
    if figure is None:
        raise NoFigureError(_why(kind, drawing, measure, part))
    return replace(figure, notes=[*figure.notes, *_trust(sides)])


def _trust(sides: Sequence[Side]) -> list[str]:
    """What stands against the measurements: a figure on paper has no page around it that says so."""
    return [
        (f"{side.name}: the" if side.name else "The")
        + f" measurement is {word}{': do not rely on it' if word == 'INVALID' else ''}."
        for side in sides
        if (word := side.judgement.validity.word) != "VALID"
    ]


def _check(kind: FigureKind, sides: Sequence[Side], part: Selection) -> None:
    """Raises NoFigureError for a choice that the figure does not take, or that no run directory has."""
    if len(sides) > 1 and not kind.several:
        raise NoFigureError(f"{kind.name} is of one run directory; name one, or draw a figure of a measure")
    if (part.begin_s is not None or part.end_s is not None) and not kind.timed:
        raise NoFigureError(f"{kind.name} has no part of time; leave it out")
    if part.begin_s is not None and part.end_s is not None and part.begin_s >= part.end_s:
        raise NoFigureError(
            f"the part of time ends at {part.end_s:g} s, before it begins at {part.begin_s:g} s"
        )
    if (part.flows or part.at) and not kind.flows:
        raise NoFigureError(f"{kind.name} is of the whole run; leave flows and points out")
    for name in part.flows:
        flows = [flow.plan for side in sides for run in side.judgement.runs for flow in run.flows]
        if not any(flow.is_called(name) for flow in flows):
            there = list(dict.fromkeys(flow.name for flow in flows))
            raise NoFigureError(f"there is no flow {name}{nearest(name, there)}; there are {_listed(there)}")
    for axis, value in part.at.items():
        for side in sides:
            _check_point(side, axis, value)


_NO_SWEEP = "the test sweeps nothing: leave --at out"


def _check_point(side: Side, axis: str, value: str) -> None:
    axes = side.judgement.plan.axes
    where = f"{side.name}: " if side.name else ""
    if axis not in axes:
        there = (
            f"the axes of the sweep are {_listed(list(axes))}"
            if axes
            else "the test sweeps nothing: leave --at out"
        )
        raise NoFigureError(f"{where}{axis} is no axis{nearest(axis, axes)}; {there}")
    if value not in axes[axis]:
        raise NoFigureError(
            f"{where}{axis} {value} is not in the sweep{nearest(value, axes[axis])}, which has {_listed(axes[axis])}"
        )


def _why(kind: FigureKind, drawing: Drawing, measure: str | None, part: Selection) -> str:
    """Why there is nothing to draw, in one sentence."""
    what = f"{measure}-{kind.name}" if measure else kind.name
    chosen = "the chosen part of the run" if part != Selection() else "the run"
    if not kind.of_measure:
        return f"{what}: {chosen} has {kind.needs}, so there is nothing to draw"
    flows = list(drawing.shapes.results.values())
    if not flows:
        return f"{what}: {chosen} has no flow"
    uncompared = next((flow.uncompared for flow in flows if flow.uncompared), "")
    excluded: dict[str, int] = {}
    for flow in flows:
        found = flow.summaries.get(measure or flow.plan.main)
        for reason, count in (found.excluded if found is not None else {}).items():
            excluded[reason] = excluded.get(reason, 0) + count
    reasons = ", ".join(f"{count} {reason}" for reason, count in excluded.items() if count)
    because = uncompared or (f"no message has a value ({reasons})" if reasons else "no flow has this measure")
    return f"{what}: there is nothing to draw: {because}"


def _listed(items: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(items[:most])
    return f"{shown}, … ({len(items)} in all)" if len(items) > most else shown or "none"
