"""Figures of bounds: against observed latencies of flows, hop by hop, and the curves that the bounds rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from wiregauge.figures.model import (
    Axis,
    Figure,
    Floats,
    Line,
    Panel,
    Scatter,
    Spans,
    Style,
    Trace,
    told,
)
from wiregauge.figures.palette import BLUE, GREY, INK, ORANGE, VERMILION
from wiregauge.measures.definitions.units import count_of

__all__ = [
    "Arrived",
    "FlowMark",
    "HopMark",
    "Served",
    "arrivals_figure",
    "hops_figure",
    "marks_figure",
    "ports_figure",
    "service_figure",
]

MOST_FLOWS = 60
"""The most lanes that are drawn."""
MOST_HOPS = 12
MOST_PANELS = 12
LOAD = "The load of an output port is what its flows may bring in the long run, over the rate that it guarantees."
_FARTHEST_LIMIT = 3.0
"""How many times the longest bound the axis of limits may reach."""


class FlowMark(Struct, frozen=True):
    """A flow at a receiver: bound and longest latencies, us; None: unknown. `exceeded`: a latency above the bound."""

    name: str
    bound: float
    measured: float | None
    simulated: float | None
    exceeded: bool = False
    limit: float | None = None
    """The limit that the bound is judged by, us."""


class HopMark(Struct, frozen=True):
    """The delay bound of a flow at each server, and the longest residences there, us; None: unknown."""

    name: str
    servers: Sequence[str]
    bounds: Sequence[float]
    measured: Sequence[float | None] = ()
    simulated: Sequence[float | None] = ()
    waits: Sequence[float] = ()
    """The bound of what lies before each server, us."""


class Arrived(Struct, frozen=True):
    """Arrivals of a flow: the most B in each interval length, us; the least token bucket above, and the test's."""

    name: str
    time: Floats
    octets: Floats
    fitted: tuple[float, float]
    """Burst, B, and rate, B/us."""
    promised: tuple[float, float] | None


class Served(Struct, frozen=True):
    """Service of a port: the least B served by a time, us, after a busy period began; rate in B/us, latency in us."""

    name: str
    time: Floats
    octets: Floats
    rate: float
    latency: float


def marks_figure(marks: Sequence[FlowMark], unit: str = "µs") -> Figure | None:
    """Measured and simulated maxima, bound and limit of each flow on one axis, the nearest to its bound on top.

    Where nothing is measured or simulated, flows stay in the given order.
    """
    if not marks:
        return None
    drawn = sorted(marks, key=_tightness, reverse=True)[:MOST_FLOWS]
    lanes = np.arange(len(drawn), dtype=np.float64)[::-1]
    bounds = np.array([mark.bound for mark in drawn])
    traces: list[Trace] = [
        Spans("bound", lanes, np.zeros(len(drawn)), bounds, 0.6, Style(GREY), hollow=True),
    ]
    kinds = (
        ("measured maximum", BLUE, "circle", [mark.measured for mark in drawn]),
        ("simulated maximum", ORANGE, "diamond", [mark.simulated for mark in drawn]),
    )
    for name, colour, marker, values in kinds:
        here = [k for k, value in enumerate(values) if value is not None]
        if here:
            x = np.array([values[k] for k in here], dtype=np.float64)
            style = Style(colour, marker="circle" if marker == "circle" else "diamond")
            traces.append(Scatter(name, x, lanes[here], style, size=8))
    # A limit far to the right would squeeze everything else into a corner.
    end = _FARTHEST_LIMIT * max(float(bounds.max()), 0.0)
    limits = {k: mark.limit for k, mark in enumerate(drawn) if mark.limit is not None and mark.limit <= end}
    beyond = sum(mark.limit is not None for mark in drawn) - len(limits)
    if limits:
        style = Style(INK, marker="triangle-up")
        traces.append(Scatter("limit", np.array(list(limits.values())), lanes[list(limits)], style, size=8))
    alarms = [k for k, mark in enumerate(drawn) if mark.exceeded]
    if alarms:
        x = np.array([max(drawn[k].measured or 0.0, drawn[k].simulated or 0.0) for k in alarms])
        traces.append(Scatter("above its bound", x, lanes[alarms], Style(VERMILION, marker="x"), size=12))
    notes = []
    if len(marks) > len(drawn):
        seen = any(max(mark.measured or 0.0, mark.simulated or 0.0) for mark in marks)
        which = "flows that stay further from their bounds" if seen else "more flows"
        notes.append(f"{len(marks) - len(drawn)} {which} are not drawn.")
    if beyond:
        notes.append(f"{count_of(beyond, 'limit')} so far to the right that the axis ends before.")
    ticks = [(float(lane), mark.name) for lane, mark in zip(lanes, drawn, strict=True)]
    panel = Panel(
        "",
        Axis(f"latency ({unit})"),
        Axis("", span=(-0.6, len(drawn) - 0.4), ticks=ticks),
        traces,
    )
    return Figure(
        "bounds",
        "Longest latencies and their bounds",
        told(
            (
                True,
                "A bar is the bound of a flow at a receiver, which no message exceeds as long as its assumptions hold.",
            ),
            (any(mark.measured is not None for mark in drawn), "Circles: the longest measured latencies."),
            (any(mark.simulated is not None for mark in drawn), "Diamonds: the longest simulated ones."),
            (bool(limits), "Triangles: limits."),
            (
                bool(alarms),
                f"{count_of(len(alarms), 'flow')} took longer than the bound: there an assumption did not hold.",
            ),
        ),
        [panel],
        notes=notes,
        measures=["latency"],
        panel_height=max(150, 24 * len(drawn) + 90),
        margin_left=110,
    )


def hops_figure(marks: Sequence[HopMark], unit: str = "µs") -> Figure | None:
    """The delay bound of each hop above its longest measured and simulated residences."""
    passing = [mark for mark in marks if mark.servers]
    drawn = passing[:MOST_HOPS]
    if not drawn:
        return None
    lanes: dict[str, list[tuple[float, float, float, str]]] = {"bound": [], "measured": [], "simulated": []}
    ticks = []
    for place, mark in enumerate(drawn):
        top = 2.0 * (len(drawn) - 1 - place)
        ticks.append((top + 0.25, mark.name))
        begin = 0.0
        for k, (server, bound) in enumerate(zip(mark.servers, mark.bounds, strict=True)):
            begin += mark.waits[k] if mark.waits else 0.0
            lanes["bound"].append((top + 0.6, begin, bound, server))
            for name, lane, seen in (("measured", 0.2, mark.measured), ("simulated", -0.2, mark.simulated)):
                if seen and (value := seen[k]) is not None:
                    lanes[name].append((top + lane, begin, value, ""))
            begin += bound
    colours = {"bound": GREY, "measured": BLUE, "simulated": ORANGE}
    traces: list[Trace] = [
        Spans(
            name,
            np.array([part[0] for part in parts]),
            np.array([part[1] for part in parts]),
            np.array([part[2] for part in parts]),
            0.36,
            Style(colours[name]),
            texts=[part[3] for part in parts] if name == "bound" else (),
        )
        for name, parts in lanes.items()
        if parts
    ]
    beyond, hops = len(passing) - len(drawn), len(lanes["bound"])
    seen_at = {(part[0] // 2, part[1]) for name in ("measured", "simulated") for part in lanes[name]}
    return Figure(
        "bound-hops",
        "What each hop contributes to the bound",
        told(
            (True, "Grey: the part of each server in the bound, one after the other along the way."),
            (any(any(mark.waits) for mark in drawn), "Gaps: lines, switches and regulators before a server."),
            (bool(lanes["measured"]), "Blue below it: the longest measured residence at the same server."),
            (bool(lanes["simulated"]), "Orange below it: the longest simulated residence there."),
            (
                0 < len(seen_at) < hops,
                f"Of {hops - len(seen_at)} of {hops} hops no record tells it.",
            ),
        ),
        [Panel("", Axis(unit), Axis("", span=(-0.6, 2.0 * len(drawn) - 0.6), ticks=ticks), traces)],
        notes=[f"Drawn are the first {len(drawn)} flows; {beyond} more are not."] if beyond else [],
        panel_height=max(150, 52 * len(drawn) + 90),
        margin_left=110,
    )


def ports_figure(loads: Mapping[str, float]) -> Figure | None:
    """The load of each port as a bar, the highest on top: where the places of the nodes are not known."""
    if not loads:
        return None
    drawn = sorted(loads.items(), key=lambda one: one[1], reverse=True)[:MOST_FLOWS]
    lanes = np.arange(len(drawn), dtype=np.float64)[::-1]
    lengths = np.array([100 * load for _, load in drawn])
    traces: list[Trace] = []
    for name, colour, chosen in (
        ("load", BLUE, lengths <= 100),
        ("load above 100 %", VERMILION, lengths > 100),
    ):
        if chosen.any():
            start = np.zeros(int(chosen.sum()))
            traces.append(Spans(name, lanes[chosen], start, lengths[chosen], 0.6, Style(colour)))
    left = len(loads) - len(drawn)
    ticks = [(float(lane), port) for lane, (port, _) in zip(lanes, drawn, strict=True)]
    return Figure(
        "loads",
        "The load of each port",
        LOAD,
        [Panel("", Axis("load (%)"), Axis("", span=(-0.6, len(drawn) - 0.4), ticks=ticks), traces)],
        notes=[f"{count_of(left, 'port')} with lower loads not drawn."] if left else [],
        panel_height=max(150, 24 * len(drawn) + 90),
        margin_left=110,
    )


def arrivals_figure(flows: Sequence[Arrived]) -> Figure | None:
    """The least arrival curve of each flow as it was sent, with the fitted token bucket and that of the test."""
    panels = []
    for flow in flows[:MOST_PANELS]:
        ends = np.array([0.0, float(flow.time[-1])])
        traces: list[Trace] = [
            Line("as sent", flow.time, flow.octets, Style(BLUE), steps=True, markers=True),
            _bucket("least bucket", ends, flow.fitted, Style(ORANGE, "dash")),
        ]
        if flow.promised is not None:
            traces.append(_bucket("the test's", ends, flow.promised, Style(INK, "dot")))
        panels.append(Panel(flow.name, Axis("within (µs)"), Axis("at most (B)"), traces))
    return _curves(
        "arrival-curves",
        "Arrival curves of flows as sent",
        told(
            (
                True,
                "The most octets of the line (preamble and gap included) that came within any stretch of time, and, "
                "dashed, the least leaky bucket of the mean rate above it.",
            ),
            (
                any(flow.promised is not None for flow in flows[:MOST_PANELS]),
                "Dotted: the bucket that the bounds rest on; above that one no bound holds.",
            ),
        ),
        panels,
        len(flows),
        "flows",
    )


def service_figure(ports: Sequence[Served]) -> Figure | None:
    """The least service of ports from the begin of busy periods, with the rate-latency curve below it."""
    panels = []
    for port in ports[:MOST_PANELS]:
        end = float(port.time[-1])
        ends = np.array([0.0, min(port.latency, end), end])
        curve = np.maximum(0.0, port.rate * (ends - port.latency))
        traces: list[Trace] = [
            Scatter("served", port.time, port.octets, Style(BLUE), size=5),
            Line("least service curve", ends, curve, Style(ORANGE, "dash")),
        ]
        panels.append(Panel(port.name, Axis("since busy (µs)"), Axis("at least (B)"), traces))
    return _curves(
        "service-curves",
        "Service curves of ports as measured",
        told(
            (
                True,
                "How many octets of the line had left so long after a busy period began: the slowest of each amount. "
                "Dashed: the greatest rate-latency curve of the port's rate below all of them, so that its latency is "
                "the least that explains every departure.",
            )
        ),
        panels,
        len(ports),
        "ports",
    )


def _bucket(name: str, ends: Floats, bucket: tuple[float, float], style: Style) -> Line:
    burst, rate = bucket
    return Line(name, ends, burst + rate * ends, style)


def _curves(name: str, title: str, caption: str, panels: list[Panel], of: int, what: str) -> Figure | None:
    if not panels:
        return None
    notes = [f"{of - len(panels)} more {what} are not drawn."] if of > len(panels) else []
    return Figure(
        name,
        title,
        caption,
        panels,
        columns=min(3, len(panels)),
        share_x=False,
        share_y=False,
        notes=notes,
        panel_height=220,
    )


def _tightness(mark: FlowMark) -> float:
    return max(mark.measured or 0.0, mark.simulated or 0.0) / mark.bound if mark.bound else 0.0
