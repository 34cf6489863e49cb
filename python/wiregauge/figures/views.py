"""Views of a simulated run: waiting of frames at ports, queue lengths, and clock offsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge.figures.credits import credit_figure
from wiregauge.figures.model import Axis, Figure, Line, Panel, Rule, Scatter, Spans, Style, Trace
from wiregauge.figures.noise import noise_figure
from wiregauge.figures.palette import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    ordered,
    shade,
)
from wiregauge.figures.synchronisation import sync_figure
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.results.gate_view import MOST_OPENINGS, Opening
from wiregauge.results.ptp_views import PtpShape
from wiregauge.results.queue_view import QueueShape
from wiregauge.results.views import ClockShape, FrameWindow, Views

US = 1e3
_BAR, _WAIT, _BELOW = 0.56, 0.14, 0.39
"""Heights of a frame and of its wait, and the distance of the wait below the frame, in lanes."""
_GATE, _ABOVE = 0.1, 0.38
"""Height of the stripe of gates and windows, and its distance above the frame, in lanes."""
MOST_STEPS = 20
"""The most settings of a clock that are marked."""
MOST_CHANGES = 40
"""The most changes of grandmaster that are marked."""
MOST_CLOCKS = 10
"""The most PTP clocks that are drawn."""
_GATE_COLOURS = (GREEN, ORANGE, PURPLE, SKY, YELLOW)


def view_figures(judgement: Judgement, views: Views) -> list[Figure]:
    """The views that the records allow, in the order of the report."""
    made = [
        _timeline(judgement, views),
        _queues(views),
        credit_figure(views.credits, views.shaped),
        _clocks(views.clocks),
        sync_figure(views.synchronisation, views.clusters),
        _ptp(views.ptp),
        noise_figure(views.noise),
    ]
    found = [figure for figure in made if figure is not None]
    if len(judgement.runs) < 2 or views.run is None:
        return found
    point = ", ".join(f"{name} {value}" for name, value in views.run.point.items())
    note = f"Drawn from run {views.run.index}{f' ({point})' if point else ''}, which has the longest latency."
    return [replace(figure, notes=[note, *figure.notes]) for figure in found]


def _timeline(judgement: Judgement, views: Views) -> Figure | None:
    """One panel per worst message: a lane per port, bars are frames, thin bars their waiting."""
    if not views.windows or views.run is None:
        return None
    protocols = {flow.id: flow.protocol for flow in (*views.run.flows, *views.run.exchanges)}
    # Neighbours in one lane must differ, so the shade is chosen by the index among the protocol's flows.
    places: dict[str, int] = {}
    styles = {}
    for number, name in protocols.items():
        styles[number] = shade(name, places.setdefault(name, 0))
        places[name] += 1
    panels = [_window(window, styles, protocols) for window in views.windows]
    lanes = max(len(window.lanes) for window in views.windows)
    left_out = sum(window.left_out for window in views.windows)
    notes = (
        ["Background load leaves no records: a wait without a frame before it is its doing."]
        if (views.background)
        else []
    )
    if views.flows_left_out:
        notes.append(
            f"Drawn are the worst messages of {len(views.windows)} flows; those of {views.flows_left_out} more are not."
        )
    if left_out:
        notes.append(f"{left_out} frames farther from the middle of their windows are not drawn.")
    crowded = sorted({port for window in views.windows for port in window.crowded})
    if crowded:
        notes.append(
            f"Gates and windows of {', '.join(crowded)} are not drawn: more than {MOST_OPENINGS} changes in a window."
        )
    if any(node.clock for node in judgement.plan.network.nodes):
        notes.append(
            "Records of a node bear the time of its own clock: lanes of different nodes may be shifted."
        )
    return Figure(
        "frames",
        "Frames at the ports around the worst latencies",
        "Which frames a message waited for. A lane is an output port on the way of the message that took "
        "longest, from the sender "
        "down (at a hub, of every station); a bar is a frame on the wire, the thin bar below and before it the time "
        "since it came to the device. "
        "The message itself is outlined in black. "
        + (
            "The stripe above a lane says, by the clock of its node, which classes' gates are open; outlined are "
            "the windows of time-triggered flows. "
            if any(window.openings for window in views.windows)
            else ""
        ),
        panels,
        1,
        hint="Drag to zoom.",
        share_x=False,
        share_y=False,
        notes=notes,
        measures=["latency", "residence"],
        panel_height=34 * lanes + 50,
    )


def _window(window: FrameWindow, styles: dict[int, Style], protocols: dict[int, str]) -> Panel:
    top = len(window.lanes) - 1
    origin = window.begin_ns
    traces: list[Trace] = _openings(window, top)
    for number in dict.fromkeys(bar.flow for bar in window.frames):
        bars = [bar for bar in window.frames if bar.flow == number]
        style, name = styles[number], f"{protocols[number]} · flow {number}"
        lane = np.array([float(top - bar.lane) for bar in bars])
        since = np.array([(max(bar.since, origin) - origin) / US for bar in bars])
        start = np.array([(max(bar.start, origin) - origin) / US for bar in bars])
        end = np.array([(bar.end - origin) / US for bar in bars])
        texts = [
            f"flow {bar.flow}, message {bar.sequence}: waited {(bar.start - bar.since) / US:.3f} µs, "
            f"on the wire {(bar.end - bar.start) / US:.3f} µs"
            for bar in bars
        ]
        traces.append(
            Spans(name, lane - _BELOW, since, start - since, _WAIT, style, texts=texts, legend=False)
        )
        traces.append(Spans(name, lane, start, end - start, _BAR, style, texts=texts))
        own = np.array([bar.chosen for bar in bars])
        if own.any():
            outline = replace(style, colour=INK)
            edge = Spans(
                "", lane[own], start[own], (end - start)[own], _BAR, outline, hollow=True, legend=False
            )
            traces.append(edge)
    return Panel(
        f"{protocols[window.flow]} · flow {window.flow} to {window.destination}, message {window.sequence}: "
        f"{duration(window.latency_ns)}",
        Axis(
            f"time (µs) from {round(origin / 1e9, 6) + 0.0:.6f} s", span=(0.0, (window.end_ns - origin) / US)
        ),
        Axis(
            "",
            span=(-0.6, top + 0.6),
            ticks=[(float(top - k), lane) for k, lane in enumerate(window.lanes)],
        ),
        traces,
    )


def _openings(window: FrameWindow, top: int) -> list[Trace]:
    """Traces above the frames of a lane: the open gates, and the windows of time-triggered flows."""
    begin, end = window.begin_ns, window.end_ns
    traces: list[Trace] = []
    for classes in sorted({one.classes for one in window.openings if one.flow is None}):
        held = [one for one in window.openings if one.flow is None and one.classes == classes]
        name = f"gates open: {', '.join(str(number) for number in classes) or 'none'}"
        traces.append(_stripe(name, held, Style(_gate_colour(classes)), top, (begin, end)))
    for flow in sorted({one.flow for one in window.openings if one.flow is not None}):
        held = [one for one in window.openings if one.flow == flow]
        traces.append(_stripe(f"window of flow {flow}", held, Style(INK), top, (begin, end), hollow=True))
    return traces


def _stripe(
    name: str,
    held: Sequence[Opening],
    style: Style,
    top: int,
    span: tuple[float, float],
    *,
    hollow: bool = False,
) -> Spans:
    starts = np.array([max(one.start, span[0]) for one in held])
    ends = np.array([min(one.end, span[1]) for one in held])
    return Spans(
        name,
        np.array([top - one.lane + _ABOVE for one in held]),
        (starts - span[0]) / US,
        (ends - starts) / US,
        _GATE,
        style,
        texts=[f"{name}, {(one.end - one.start) / US:.3f} µs" for one in held],
        hollow=hollow,
    )


def _gate_colour(classes: Sequence[int]) -> str:
    """The colour of a set of classes, the same in every panel."""
    return GREY if not classes else _GATE_COLOURS[sum(1 << number for number in classes) % len(_GATE_COLOURS)]


def _queues(views: Views) -> Figure | None:
    """Bytes and frames per switch port against time, with the maximum and the events around it."""
    if not views.queues:
        return None
    panels = [panel for shape in views.queues for panel in _queue(shape)]
    notes = ["Background load leaves no records and is not in the lines."] if views.background else []
    changed = sum(shape.changes for shape in views.queues)
    drawn = sum(len(shape.t) for shape in views.queues)
    notes.append(
        f"All {changed} changes of length are in the lines"
        + (
            "."
            if drawn == changed
            else f", of which {drawn} are drawn: first and last, greatest and least of each stretch of time."
        )
    )
    if views.unpaired:
        notes.append(
            f"Not in the lines: {count_of(views.unpaired, 'frame')} that left a switch and of which no record tells "
            "when they came."
        )
    if views.queues_left_out:
        notes.append(
            f"Drawn are the {len(views.queues)} ports that dropped most or were fullest; "
            f"{views.queues_left_out} more had queues."
        )
    crosses = sum(len(shape.drops_at) for shape in views.queues)
    dropped = sum(shape.dropped for shape in views.queues)
    if crosses < dropped:
        notes.append(
            f"{crosses} crosses stand for {dropped} dropped frames, one for each stretch of time with any."
        )
    return Figure(
        "queues",
        "Queues at the switch ports",
        "Queue length: frames in a switch bound for the port, from arrival to first bit out, processing "
        "time included. The maximum is marked, with its surroundings on the right"
        + ("; crosses are frames dropped because a buffer was full." if dropped else "."),
        panels,
        3,
        share_x=False,
        share_y=False,
        notes=notes,
        measures=["residence"],
        panel_height=150,
    )


def _queue(shape: QueueShape) -> list[Panel]:
    where = f"{shape.switch}:{shape.port}"
    lost = {"bytes": "", "frames": f", {shape.dropped} dropped" if shape.dropped else ""}
    x = Axis("time in the run (s)")
    made = []
    for what, y, most, at in (
        ("bytes", shape.bytes, shape.most_bytes, shape.most_bytes_at),
        ("frames", shape.frames, float(shape.most_frames), shape.most_frames_at),
    ):
        traces: list[Trace] = [
            Line(what, shape.t, y, Style(BLUE, width=0.9), steps=True, legend=False),
            Scatter(
                "greatest",
                np.array([at]),
                np.array([most]),
                Style(VERMILION, marker="diamond"),
                size=8,
            ),
        ]
        if len(shape.drops_at):
            crosses = np.full(len(shape.drops_at), most)
            traces.append(Scatter("dropped", shape.drops_at, crosses, Style(INK, marker="cross"), size=7))
        made.append(Panel(f"{where}, at most {most:.0f} {what}{lost[what]}", x, Axis(what), traces))
    near: list[Trace] = [
        Line("bytes", shape.near_t / US, shape.near_bytes, Style(BLUE, width=1.4), steps=True, legend=False),
        Scatter(
            "greatest", np.zeros(1), np.array([shape.most_bytes]), Style(VERMILION, marker="diamond"), size=8
        ),
    ]
    return [*made, Panel(f"{where}, around the greatest", Axis("time (µs)"), Axis("bytes"), near)]


def _clocks(clocks: Sequence[ClockShape]) -> Figure | None:
    """The offset of each clock from true time, against true time."""
    if not clocks:
        return None
    traces: list[Trace] = [
        Line(f"clock of {shape.node}", shape.t, shape.offset / US, ordered(place, len(clocks)))
        for place, shape in enumerate(clocks)
    ]
    steps = sorted({(float(at), shape.node) for shape in clocks for at in shape.steps_at})
    traces += [Rule(at, "a clock is set", Style(GREY, "dot", width=1.2)) for at, _ in steps[:MOST_STEPS]]
    more = f" and {len(steps) - MOST_STEPS} times more, not marked" if len(steps) > MOST_STEPS else ""
    set_at = ", ".join(f"{node} at {at:.4g} s" for at, node in steps[:MOST_STEPS])
    notes = [f"Set: {set_at}{more}."] if steps else []
    return Figure(
        "clock-offsets",
        "Clock offsets",
        "Offset of each clock from true time. Only the simulator knows this; clocks that are not drawn are perfect.",
        [Panel("", Axis("true time (s)"), Axis("clock - true time (µs)"), traces)],
        notes=notes,
        measures=["latency"],
        panel_height=300,
    )


def _ptp(clocks: Sequence[PtpShape]) -> Figure | None:
    """The distance of each PTP clock from its grandmaster, against true time."""
    found = [shape for shape in clocks if len(shape.t)]
    if not found:
        return None
    # The greatest distances in the second half of the run, in the order of the plan.
    far = sorted(found, key=lambda shape: -float(np.max(shape.distance[len(shape.distance) // 2 :])))[
        :MOST_CLOCKS
    ]
    drawn = [shape for shape in found if any(shape is one for one in far)]
    # At least a tenth of a nanosecond: a logarithm has no zero.
    traces: list[Trace] = [
        Line(f"clock of {shape.node}", shape.t, np.maximum(shape.distance, 0.1), ordered(place, len(drawn)))
        for place, shape in enumerate(drawn)
    ]
    changes = sorted((at, shape.node, to) for shape in found for at, to in shape.changes)
    traces += [
        Rule(at, "another grandmaster", Style(GREY, "dot", width=1.2)) for at, _, _ in changes[:MOST_CHANGES]
    ]
    notes = (
        [
            f"Clocks took another grandmaster {len(changes)} times in all, the last at {changes[-1][0]:.4g} s"
            + (f"; the first {MOST_CHANGES} are marked." if len(changes) > MOST_CHANGES else ".")
        ]
        if changes
        else []
    )
    if len(found) > len(drawn):
        notes.append(
            f"Drawn are the {len(drawn)} of {len(found)} clocks that were farthest off in the second half of the run."
        )
    return Figure(
        "ptp-offsets",
        "PTP clocks",
        "Distance of each clock from its grandmaster while that is another one: the greatest of each stretch of time.",
        [Panel("", Axis("true time (s)"), Axis("|clock - grandmaster| (ns)", log=True), traces)],
        notes=notes,
        measures=["ptp_offset"],
        panel_height=300,
    )
