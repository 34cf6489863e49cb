"""The figure of an explanation: the series with its bands shaded, folded, and the parts of the worst messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wiregauge.figures.model import Axis, Figure, Panel, Rule, Scatter, Spans, Style, Trace
from wiregauge.figures.palette import BLUE, GREY, INK, ORANGE, SKY, VERMILION
from wiregauge.figures.traces import US, courses_note
from wiregauge.results.explaining.shapes import ExplainedShape, FoldedShape, LadderShape

MOST_RULES = 20
"""The most changes that are marked."""
MEASURES = {"latency": "one-way latency", "rtt": "round trip"}
KINDS = {
    "stack": ("host", ORANGE),
    "port": ("at an output port", VERMILION),
    "link": ("on a link", BLUE),
    "network": ("between drivers", SKY),
    "relay": ("in the relay", GREY),
}
_BANDS = ("#FBE3C4", "#CFE8DD", "#EFD9E6", "#D5E6F3")


def explained_figures(shapes: Sequence[ExplainedShape]) -> list[Figure]:
    """A figure for each explained flow."""
    return [_figure(shape) for shape in shapes]


def figure_id(run: int, flow: int, receiver: int) -> str:
    """The HTML id of the figure of a flow at a receiver in a run."""
    return f"explain-{run}-{flow}-{max(receiver, 0)}"


def _figure(shape: ExplainedShape) -> Figure:
    found = shape.found
    plan, measure = found.flow, found.series[0].measure
    panels = [
        _series(shape, MEASURES[measure]),
        *(_folded(folded, number, MEASURES[measure]) for number, folded in enumerate(shape.folded)),
    ]
    if shape.ladders:
        panels.append(_worst(shape.ladders, longer=_longer(shape)))
    notes = [courses_note([shape.series], "messages")]
    modes = len(shape.bands)
    wide = [folded.points.per_mark for folded in shape.folded if folded.points.per_mark > 1]
    if wide:
        notes.append(
            f"Folded, of up to {max(wide)} neighbours in the cycle the least and the greatest are drawn."
        )
    if modes > len(shape.folded):
        notes.append(f"Folded are the {len(shape.folded)} highest of {modes} modes.")
    ruled = len(found.series[0].course.changes)
    if ruled > MOST_RULES:
        notes.append(f"The first {MOST_RULES} of {ruled} changes are marked.")
    notes += [
        f"The first {len(bands.start)} of {bands.total} bands of mode {number + 1} are shaded."
        for number, bands in enumerate(shape.bands)
        if bands.total > len(bands.start)
    ]
    return Figure(
        figure_id(found.run.index, plan.id, plan.receiver),
        f"Flow {plan.name}: what recurs"
        + (", and where the worst spent their time" if shape.ladders and _longer(shape) else ""),
        _caption(shape),
        panels,
        1,
        share_x=False,
        share_y=False,
        notes=notes,
        measures=[measure],
        panel_height=220,
    )


def _caption(shape: ExplainedShape) -> str:
    bands = "The series with the bands of each recurring mode shaded"
    said = [bands if shape.bands else "The series; no recurring mode was found in it"]
    if shape.folded:
        said.append("below it laid over itself at the period of each mode")
    if shape.ladders:
        usual = ", above what is usual" if shape.ladders[-1].name == "usual" else ""
        which = (
            "the worst messages" if _longer(shape) else "messages, of which none took longer than the median,"
        )
        said.append(f"last {which} from their sending on, step by step{usual}")
    return "; ".join(said) + "."


def _series(shape: ExplainedShape, measure: str) -> Panel:
    low, high = shape.low / US, shape.high / US
    margin = 0.05 * (high - low) or max(abs(high) * 0.01, 0.001)
    span = low - margin, high + margin
    traces: list[Trace] = [
        Spans(
            f"mode {number + 1}",
            np.full(len(bands.start), (span[0] + span[1]) / 2),
            bands.start,
            np.full(len(bands.start), bands.duration),
            span[1] - span[0],
            Style(_BANDS[number % len(_BANDS)]),
        )
        for number, bands in enumerate(shape.bands)
        if len(bands.start)
    ]
    t, value = shape.series.marks()
    traces.append(Scatter("messages", t, value / US, Style(INK), 3, 0.6, legend=False))
    changes = shape.found.series[0].course.changes
    traces += [
        Rule(
            change.at,
            f"{change.kind} changes",
            Style(VERMILION, "dash" if change.kind == "level" else "dot", width=1.4),
        )
        for change in changes[:MOST_RULES]
    ]
    return Panel(f"{measure} against time", Axis("time in the run (s)"), Axis("time (µs)", span=span), traces)


def _folded(folded: FoldedShape, number: int, measure: str) -> Panel:
    points = folded.points
    low, high = float(points.value.min()) / US, float(points.value.max()) / US
    margin = 0.05 * (high - low) or max(abs(high) * 0.01, 0.001)
    span = low - margin, high + margin
    band = Spans(
        f"mode {number + 1}",
        np.array([(low + high) / 2]),
        np.array([folded.begin]),
        np.array([folded.end - folded.begin]),
        span[1] - span[0],
        Style(_BANDS[number % len(_BANDS)]),
        legend=False,
    )
    return Panel(
        f"{measure}, folded at the period of mode {number + 1}: {folded.period:.6g} s",
        Axis("time in the cycle (s)", span=(0.0, folded.period)),
        Axis("time (µs)", span=span),
        [band, Scatter("folded", points.t, points.value / US, Style(INK), 3, 0.6, legend=False)],
    )


def _longer(shape: ExplainedShape) -> bool:
    """Whether any of the messages took longer than usual: with equal ones none is the worst."""
    return any(message.excess > 0 for message in shape.found.worst)


def _worst(ladders: Sequence[LadderShape], *, longer: bool) -> Panel:
    top = len(ladders) - 1
    traces: list[Trace] = []
    for kind, (title, colour) in KINDS.items():
        lanes, starts, lengths, texts = [], [], [], []
        for place, ladder in enumerate(ladders):
            for name, start, took, text in zip(
                ladder.kinds, ladder.start, ladder.took, ladder.texts, strict=True
            ):
                if name == kind and took > 0:
                    lanes.append(float(top - place))
                    starts.append(start / US)
                    lengths.append(took / US)
                    texts.append(f"{ladder.name}: {text}")
        if lanes:
            traces.append(
                Spans(
                    title,
                    np.array(lanes),
                    np.array(starts),
                    np.array(lengths),
                    0.7,
                    Style(colour),
                    texts=texts,
                )
            )
    return Panel(
        "the worst messages, step by step" if longer else "messages step by step",
        Axis("time since sending (µs)"),
        Axis(
            "message",
            span=(-0.6, top + 0.6),
            ticks=[(float(top - place), ladder.name) for place, ladder in enumerate(ladders)],
        ),
        traces,
    )
