"""The figures of a report, from the shapes the measures computed: a function per figure, a figure per question.

Small multiples share their axes: panels compare payloads (and loads), colour compares protocols, dashes compare
flows. A figure whose data do not exist (no relay, nothing arrived) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wiregauge.figures.clocks import clock_figure
from wiregauge.figures.densities import densities, latency_density, period_density
from wiregauge.figures.model import (
    Axis,
    Band,
    Bars,
    Figure,
    Line,
    Panel,
    Scatter,
    Style,
    Trace,
    told,
)
from wiregauge.figures.network import network_figure
from wiregauge.figures.palette import PARTS, PATTERNS, variety
from wiregauge.figures.panels import MOST_PANELS, reading_order, small_multiples, style_of, sweeps_size
from wiregauge.figures.traces import US, box_of, courses_note, rarities, tail_lines
from wiregauge.figures.views import view_figures
from wiregauge.measures.metrics.flow_plan import Size
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.results.shapes import (
    MOST_FLOWS,
    MOST_RUNS,
    BoxShape,
    CourseShape,
    Key,
    Shapes,
    TailShape,
)
from wiregauge.results.views import Views

FAR_APART = 50
"""Ratio of the ends of an axis from which it is logarithmic."""

PART_TITLES = {
    "stack_down": "stack down",
    "network": "network",
    "stack_up": "stack up",
    "turnaround": "relay turnaround",
}


def build(judgement: Judgement, shapes: Shapes, views: Views | None = None) -> list[Figure]:
    """Every figure the data allow, in the order of the report; the views where they are given."""
    of_flows = [
        latency_density(shapes),
        latency_by_payload(shapes),
        percentiles(shapes.tail, "latency", "One-way latency"),
        percentiles(shapes.rtt_tail, "rtt", "Round trip"),
        split(shapes),
        against_time(judgement, shapes),
        period_density(shapes),
        period_box(shapes),
        send_error(shapes),
    ]
    made = [
        network_figure(judgement.plan),
        *(_of_some(figure, shapes.left_out) for figure in of_flows if figure is not None),
        outcomes(shapes),
        clock_figure(judgement),
        *(view_figures(judgement, views) if views is not None else ()),
    ]
    return [figure for figure in made if figure is not None]


def _of_some(figure: Figure, left_out: int) -> Figure:
    if not left_out:
        return figure
    note = f"Drawn are the {MOST_FLOWS} flows whose slowest message took longest; the tables have {left_out} more."
    return replace(figure, notes=[note, *figure.notes])


def latency_by_payload(shapes: Shapes) -> Figure | None:
    """Median with the band p1 to p99 against payload: a panel per flow, a line per protocol."""
    main = {
        key: flow.summaries[flow.plan.main]
        for key, flow in shapes.chosen.items()
        # A replay has no single payload to be drawn at.
        if key.size.payload and flow.summaries[flow.plan.main].value("p50") is not None
    }
    keys = sorted(main, key=reading_order)
    payloads = sorted({key.size.payload for key in keys})
    if not sweeps_size(keys):
        return None
    panels = []
    boxes = [shapes.main_box[key] for key in keys]
    known = [main[key].value("p99") is not None for key in keys]
    banded_any, banded_all = any(known), all(known)
    # With long tails the medians would lie on the floor of a linear axis.
    far = FAR_APART * min(box.low_whisker for box in boxes) < max(box.high_whisker for box in boxes)
    y = Axis("time (µs)", log=far and all(box.low_whisker > 0 for box in boxes))
    for flow, rest in list(dict.fromkeys((key.flow, key.rest) for key in keys))[:MOST_PANELS]:
        members = [k for k in keys if (k.flow, k.rest) == (flow, rest)]
        traces: list[Trace] = []
        for protocol in dict.fromkeys(k.protocol for k in members):
            chosen = [k for k in members if k.protocol == protocol]
            style = variety(protocol, 0)
            # Below 299 values neither p1 nor p99 is supported.
            banded = [k for k in chosen if main[k].value("p99") is not None]
            low = np.array([shapes.main_box[k].low_whisker for k in banded]) / US
            high = np.array([shapes.main_box[k].high_whisker for k in banded]) / US
            traces.append(
                Band(
                    f"{protocol}: p1 to p99",
                    np.array([float(k.size.payload) for k in banded]),
                    low,
                    high,
                    style,
                )
            )
            median = np.array([main[k].value("p50") or 0.0 for k in chosen]) / US
            traces.append(
                Line(protocol, np.array([float(k.size.payload) for k in chosen]), median, style, markers=True)
            )
        what = "round trip" if members[0].relayed else "one-way latency"
        title = f"flow {flow}: {what}" + (f" · {rest}" if rest else "")
        ticks = [(float(p), str(p)) for p in payloads if p == payloads[0] or p >= payloads[-1] / 8]
        panels.append(Panel(title, Axis("payload (B)", ticks=ticks), y, traces))
    return Figure(
        "latency-by-payload",
        "Latency against payload",
        told(
            (True, "The cost of a byte. The line is the median."),
            (banded_any, "The band reaches from p1 to p99."),
            (not banded_all, "Where it is missing n is too small for p1 and p99."),
        ),
        panels,
        min(len(panels), 2),
        measures=["latency", "rtt"],
        panel_height=300,
    )


def percentiles(tails: Mapping[Key, TailShape], measure: str, title: str) -> Figure | None:
    """The complementary distribution against rarity on a logarithmic axis, as HdrHistogram draws it."""
    if not tails:
        return None
    most = max(float(shape.one_in[-1]) for shape in tails.values())
    first, *rarer = rarities(most, 6)
    ticks = [first, *([(2.0, "50 %")] if most * 1.5 >= 2 else []), *rarer]

    def lines(key: Key, shape: TailShape, style: Style) -> list[Trace]:
        return tail_lines(shape, key.label, style, legend=False)

    panels, columns, notes = small_multiples(
        tails,
        lines,
        Axis("percentile", log=True, ticks=ticks, span=(1.0, most * 1.1)),
        Axis(f"{title.lower()} (µs)", log=True),
    )
    return Figure(
        f"{measure}-percentiles",
        f"{title}: percentiles",
        told(
            (True, "How long rare messages took: the further right, the rarer."),
            (
                any(float(shape.supported_to) < float(shape.one_in[-1]) for shape in tails.values()),
                "Where the line turns into thin dots, n is too small for the percentile: these values happened, but do "
                "not predict others.",
            ),
        ),
        panels,
        columns,
        notes=notes,
        measures=[measure],
    )


def split(shapes: Shapes) -> Figure | None:
    """The mean parts of the round-trip time (or of the one-way latency), stacked."""
    keys = [key for key, flow in shapes.chosen.items() if flow.summaries["network"].n]
    if not keys:
        return None
    # For a sweep a panel per flow and a bar per payload; else one panel and a bar per flow.
    by_size = sweeps_size(keys)
    sizes = sorted({key.size for key in keys})
    names = list(dict.fromkeys(key.label for key in sorted(keys, key=reading_order)))
    groups = list(
        dict.fromkeys((key.label if by_size else "", key.rest) for key in sorted(keys, key=reading_order))
    )
    panels = []
    for number, (label, rest) in enumerate(groups[:MOST_PANELS]):
        chosen = sorted((k for k in keys if label in ("", k.label) and k.rest == rest), key=reading_order)
        x = np.array([float(sizes.index(k.size) if by_size else names.index(k.label)) for k in chosen])
        base = np.zeros(len(chosen))
        traces: list[Trace] = []
        for part, title in PART_TITLES.items():
            if part == "turnaround" and not any(key.relayed for key in chosen):
                continue
            means = [shapes.chosen[k].summaries.get(part) for k in chosen]
            height = np.array([(mean.mean or 0.0) if mean is not None else 0.0 for mean in means]) / US
            legend = number == 0 or part == "turnaround"
            traces.append(
                Bars(title, x, height, base, 0.62, Style(PARTS[part]), PATTERNS[part], legend=legend)
            )
            base = base + height
        axis = (
            Axis("payload (B)", ticks=[(float(k), size.tick) for k, size in enumerate(sizes)])
            if by_size
            else Axis("flow (number)", ticks=[(float(names.index(k.label)), str(k.flow)) for k in chosen])
        )
        title = " · ".join(part for part in (label, rest) if part)
        panels.append(Panel(title, axis, Axis("mean time (µs)"), traces))
    return Figure(
        "split",
        "Where the time goes",
        told(
            (
                True,
                "Mean time in the sockets and stacks (down and up) and between the drivers"
                + (", and in the relay." if any(key.relayed for key in keys) else "."),
            ),
            (any(not key.relayed for key in keys), "The parts of a one-way flow add up to its latency."),
            (any(key.relayed for key in keys), "Those of a relayed flow add up to its round trip."),
        ),
        panels,
        min(2, len(panels)),
        notes=["Only messages with every timestamp enter; the parts of one bar come from the same messages."],
        measures=[part for part in PART_TITLES if part != "turnaround" or any(key.relayed for key in keys)],
    )


def against_time(judgement: Judgement, shapes: Shapes) -> Figure | None:
    """Latency (round trip for relayed flows) against send time, per run."""
    data = shapes.against_time
    if not data:
        return None
    keys = list(data)
    runs = list(dict.fromkeys(key.run for key in keys))
    point = {run.plan.index: run.plan for run in judgement.runs}
    panels = []
    for run in runs:
        traces: list[Trace] = []
        for key in (k for k in keys if k.run == run):
            shape: CourseShape = data[key]
            t, value = shape.marks()
            style = style_of(key, keys)
            what = "round trip" if key.relayed else "one-way"
            traces.append(Scatter(f"{key.protocol} · flow {key.flow}: {what}", t, value / US, style, 3, 0.7))
        plan = point[run]
        title = ", ".join(plan.point.values()) or f"run {run}"
        if judgement.plan.repeats > 1:
            title += f", repeat {plan.repeat}"
        panels.append(Panel(title, Axis("time in the run (s)"), Axis("time (µs)", log=True), traces))
    notes = [courses_note(list(data.values()), "messages")]
    if len(judgement.runs) > MOST_RUNS:
        notes.append(f"The first {MOST_RUNS} of {len(judgement.runs)} runs are drawn.")
    return Figure(
        "latency-time",
        "Latency against time",
        "Latency over time, by the instant of sending. Drag to zoom, double-click to return.",
        panels,
        min(3, len(panels)),
        notes=notes,
        measures=["rtt" if relayed else "latency" for relayed in sorted({key.relayed for key in keys})],
        range_slider=len(panels) == 1,
        panel_height=360 if len(panels) == 1 else 210,
    )


def period_box(shapes: Shapes) -> Figure | None:
    """Transmit periods as boxes (as MAPS 2015, Figure 4), with all outliers and again enlarged to the whiskers."""
    data = shapes.period_box
    if not data:
        return None
    keys = sorted(data, key=reading_order)
    sizes = sorted({key.size for key in keys})
    ticks = [(float(k), p.tick) for k, p in enumerate(sizes)]
    x = Axis("payload (B)", ticks=ticks)
    panels = []
    for flow, rest in list(dict.fromkeys((key.flow, key.rest) for key in keys))[: MOST_PANELS // 2]:
        chosen = [k for k in keys if (k.flow, k.rest) == (flow, rest)]
        boxes = _boxes(chosen, data, sizes)
        low, high = (
            min(data[k].low_whisker for k in chosen) / US,
            max(data[k].high_whisker for k in chosen) / US,
        )
        margin = 0.06 * (high - low) or 0.001
        label = f"flow {flow}" + (f" · {rest}" if rest else "")
        panels.append(Panel(f"{label}: all", x, Axis("transmit period (µs)"), boxes))
        near = Axis("transmit period (µs)", span=(low - margin, high + margin))
        panels.append(Panel(f"{label}: enlarged to the whiskers", x, near, boxes))
    hidden = sum(shape.outside - len(shape.outliers) for shape in data.values())
    return Figure(
        "period-box",
        "Transmit period: boxes",
        told(
            (
                True,
                "The middle half of the periods and whiskers from p1 to p99; on the right enlarged to the whiskers.",
            ),
            (any(len(shape.outliers) for shape in data.values()), "Marks: periods beyond the whiskers."),
        ),
        panels,
        2,
        share_y=False,
        notes=[f"{hidden} outliers are left out evenly; the extremes are drawn."] if hidden else [],
        measures=["period"],
        panel_height=260,
    )


def _boxes(keys: Sequence[Key], data: Mapping[Key, BoxShape], sizes: Sequence[Size]) -> list[Trace]:
    protocols = list(dict.fromkeys(key.protocol for key in keys))
    width = 0.7 / len(protocols)
    return [
        box_of(
            data[key],
            key.protocol,
            sizes.index(key.size) + (protocols.index(key.protocol) - (len(protocols) - 1) / 2) * width,
            width * 0.8,
            variety(key.protocol, 0),
        )
        for key in keys
    ]


def send_error(shapes: Shapes) -> Figure | None:
    """Deviation of senders from their schedules."""
    return densities(
        shapes.send_error,
        "send-error",
        "actual after intended send (µs)",
        "Send error: intended to actual",
        "Lateness of sends against the schedule. This is the instrument's own error, not the network's.",
        "at or before the intended time",
        "send_error",
    )


OUTCOME_STYLES = {
    "duplicated": (Style("#56B4E9"), "/"),
    "reordered": (Style("#0072B2"), ""),
    "late": (Style("#E69F00"), "\\"),
    "lost": (Style("#D55E00"), ""),
    "misdirected": (Style("#CC79A7"), "x"),
    "corrupted": (Style("#222222"), "/"),
}


def outcomes(shapes: Shapes) -> Figure | None:
    """Messages that were not delivered, by outcome, per flow and payload; None when there are none."""
    results = shapes.results
    if not any(flow.counts["sent"] != flow.outcomes["delivered"] for flow in results.values()):
        return None
    sizes = sorted({key.size for key in results})
    panels = []
    used = [name for name in OUTCOME_STYLES if any(flow.outcomes[name] for flow in results.values())]
    placed: dict[tuple[str, str], list[Key]] = {}
    for key in sorted(results, key=reading_order):
        placed.setdefault((key.label, key.rest), []).append(key)
    labels = list(placed)
    missing = {
        place: sum(results[key].outcomes[name] for key in keys for name in OUTCOME_STYLES)
        for place, keys in placed.items()
    }
    hurt = [place for place in labels if missing[place]]
    notes = (
        [f"{len(labels) - len(hurt)} flows and points without any are not drawn."]
        if len(hurt) < len(labels)
        else []
    )
    if len(hurt) > MOST_PANELS:
        hurt = sorted(hurt, key=lambda place: -missing[place])[:MOST_PANELS]
        notes.append(f"Of the others the {MOST_PANELS} with the most are drawn.")
    for number, (label, rest) in enumerate(hurt):
        chosen = sorted(placed[label, rest], key=lambda key: key.size)
        x = np.array([float(sizes.index(k.size)) for k in chosen])
        base = np.zeros(len(chosen))
        traces: list[Trace] = []
        for name in used:
            height = np.array([float(results[k].outcomes[name]) for k in chosen])
            style, pattern = OUTCOME_STYLES[name]
            traces.append(Bars(name, x, height, base, 0.62, style, pattern, legend=number == 0))
            base = base + height
        ticks = [(float(k), p.tick) for k, p in enumerate(sizes)]
        panels.append(
            Panel(
                label + (f" · {rest}" if rest else ""),
                Axis("payload (B)", ticks=ticks),
                Axis("messages"),
                traces,
            )
        )
    return Figure(
        "outcomes",
        "Messages with another outcome than delivered",
        "Every message has exactly one outcome; those with the outcome delivered are not drawn.",
        panels,
        min(2, len(panels)),
        notes=notes,
        measures=["lost", "duplicated", "reordered", "corrupted", "misdirected", "late"],
        panel_height=200,
    )
