"""Figures of a run that are of no single measure: latency against payload, parts, hops, outcomes.

A figure whose data do not exist (no relay, nothing arrived) is None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wiregauge.figures.model import Axis, Band, Bars, Figure, Line, Panel, Scatter, Style, Trace, told
from wiregauge.figures.palette import BLUE, PALE_BLUE, PARTS, PATTERNS, VERMILION, variety
from wiregauge.figures.panels import MOST_PANELS, reading_order, sweeps_size
from wiregauge.figures.traces import US
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.metrics.hops import Hop
from wiregauge.results.shapes import Key, Shapes

__all__ = ["hops", "latency_by_payload", "outcomes", "split"]

FAR_APART = 50
"""Ratio of the ends of an axis from which it is logarithmic."""

PART_TITLES = {
    "stack_down": "stack down",
    "network": "network",
    "stack_up": "stack up",
    "turnaround": "relay turnaround",
}


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
    main_box = shapes.boxes(None)
    boxes = [main_box[key] for key in keys]
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
            low = np.array([main_box[k].low_whisker for k in banded]) / US
            high = np.array([main_box[k].high_whisker for k in banded]) / US
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
            else Axis("flow (number)", ticks=[(float(names.index(k.label)), k.name) for k in chosen])
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


def hops(shapes: Shapes) -> Figure | None:
    """Residence at each output port on the way: a panel for each flow and point, the ports in the order of the way."""
    found = {key: flow[HOPS] for key, flow in shapes.chosen.items() if flow[HOPS]}
    if not found:
        return None
    panels = []
    keys = sorted(found, key=reading_order)
    swept = sweeps_size(keys)
    for number, key in enumerate(keys[:MOST_PANELS]):
        way = shapes.chosen[key].plan.path
        held = sorted(found[key], key=lambda hop: (_place(hop, way), hop.switch, hop.port))
        x = np.arange(len(held), dtype=np.float64)
        least, mean, most = (
            np.array([getattr(hop, name) for hop in held]) / US for name in ("minimum", "mean", "maximum")
        )
        tail = [(k, hop.p99 / US) for k, hop in enumerate(held) if hop.p99 is not None]
        traces: list[Trace] = [
            Bars("least to greatest", x, most - least, least, 0.5, Style(PALE_BLUE), legend=number == 0),
            Scatter("mean", x, mean, Style(BLUE), size=7, legend=number == 0),
        ]
        if tail:
            at, value = (np.array(column, dtype=np.float64) for column in zip(*tail, strict=True))
            traces.append(
                Scatter("p99", at, value, Style(VERMILION, marker="diamond"), size=7, legend=number == 0)
            )
        ticks = [(float(k), f"{hop.switch}:{hop.port}") for k, hop in enumerate(held)]
        title = " · ".join(filter(None, (key.label, key.size.text if swept else "", key.rest)))
        panels.append(
            Panel(
                title,
                Axis("switch and output port", ticks=ticks, span=(-0.6, len(held) - 0.4)),
                Axis("residence (µs)"),
                traces,
            )
        )
    counts = [hop.n for held in found.values() for hop in held]
    left = len(keys) - len(panels)
    return Figure(
        "hops",
        "Residence in switches",
        told(
            (
                True,
                "How long frames were in each switch, from arrival to first bit out, along the way of each flow.",
            ),
            (True, "A bar reaches from the least to the greatest of all passages."),
        ),
        panels,
        min(2, len(panels)),
        share_x=False,
        notes=[
            f"n = {min(counts)}."
            if min(counts) == max(counts)
            else f"n = {min(counts)} to {max(counts)} each.",
            *([f"{left} more flows and points are not drawn."] if left else []),
        ],
        measures=["residence"],
    )


def _place(hop: Hop, way: Sequence[str]) -> int:
    """The place of a switch on the way of a flow; those of another way come last."""
    return way.index(hop.switch) if hop.switch in way else len(way)
