"""States of devices in AS6802 clusters over time, and the distance of their clocks."""

from __future__ import annotations

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Rule, Scatter, Spans, Style, Trace, told
from wiregauge.figures.palette import (
    BLACK,
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
)
from wiregauge.records.clockstates import SYNC_STATES
from wiregauge.records.modelled import ClusterReport
from wiregauge.results.sync_view import SyncView

__all__ = ["sync_figure"]

_COLOURS = dict(
    zip(
        SYNC_STATES,
        (GREY, SKY, VERMILION, ORANGE, YELLOW, PURPLE, BLACK, "#7CC9B1", GREEN, BLUE),
        strict=True,
    )
)


def sync_figure(view: SyncView, clusters: tuple[ClusterReport, ...]) -> Figure | None:
    """A lane per device with its states, and below the precision of each cluster; None without clusters."""
    if not view.states:
        return None
    lanes = {name: len(view.nodes) - 1 - at for at, name in enumerate(view.nodes)}
    traces: list[Trace] = []
    for state in SYNC_STATES:
        held = [span for span in view.states if span.state == state]
        if not held:
            continue
        traces.append(
            Spans(
                state,
                np.array([float(lanes[span.node]) for span in held]),
                np.array([span.start for span in held]),
                np.array([span.end - span.start for span in held]),
                0.62,
                Style(_COLOURS[state]),
                texts=[f"{span.node}: {state} for {span.end - span.start:.6g} s" for span in held],
            )
        )
    if view.cliques:
        traces.append(
            Scatter(
                "wrong clique",
                np.array([at for _, at in view.cliques]),
                np.array([float(lanes[node]) for node, _ in view.cliques]),
                Style(INK, marker="cross"),
                size=8,
            )
        )
    time = Axis("true time (s)")
    ticks = [(float(lane), name) for name, lane in lanes.items()]
    panels = [Panel("", time, Axis("", span=(-0.6, len(lanes) - 0.4), ticks=ticks), traces)]
    if view.precision:
        panels.append(Panel("", time, Axis("clocks apart (ns)"), _precision(view, clusters)))
    notes = [f"{view.left_out} further changes of state are not drawn."] if view.left_out else []
    return Figure(
        "sync-states",
        "States of synchronisation",
        told(
            (
                True,
                "What each device was by SAE AS6802, from when it had power; white: it has none. SYNC and STABLE are "
                "synchronised.",
            ),
            (bool(view.cliques), "Crosses: a device found itself in the wrong clique."),
            (
                bool(view.precision),
                "Below: the greatest difference between the clocks of two synchronised devices, once in each "
                "integration cycle.",
            ),
            (bool(view.precision) and bool(clusters), "Dotted: the bound it must keep."),
        ),
        panels,
        1,
        share_y=False,
        notes=notes,
        measures=["sync_startup", "sync_precision", "sync_losses", "sync_cliques"],
        panel_height=max(180, 26 * len(lanes) + 60),
        margin_left=90,
    )


def _precision(view: SyncView, clusters: tuple[ClusterReport, ...]) -> list[Trace]:
    traces: list[Trace] = [
        Line(
            f"precision, cluster of {shape.master}" if len(view.precision) > 1 else "precision",
            shape.t,
            shape.precision,
            ordered(place, len(view.precision)),
        )
        for place, shape in enumerate(view.precision)
    ]
    bounds = sorted({cluster.precision_bound_ns for cluster in clusters})
    return traces + [
        Rule(bound, "bound", Style(VERMILION, "dot", width=1.2), vertical=False) for bound in bounds
    ]
