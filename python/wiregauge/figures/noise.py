"""Host noise at the time of the messages that took longest."""

from __future__ import annotations

from wiregauge.figures.model import Axis, Figure, Line, Panel, Scatter, Trace
from wiregauge.figures.palette import ordered
from wiregauge.measures.validity.host_noise import NoiseView

US = 1e3


def noise_figure(view: NoiseView | None) -> Figure | None:
    """The worst messages on top, the hosts' counters below, over one time axis."""
    if view is None or not view.panels:
        return None
    time = Axis("time since the epoch (s)")
    count = len(view.worst)
    top: list[Trace] = [
        Scatter(name, t, took / US, ordered(place, count), size=5)
        for place, (name, t, took) in enumerate(view.worst)
    ]
    panels = [Panel("The messages of each flow that took longest", time, Axis("latency (µs)"), top)]
    nodes = sorted({row.node for _, _, rows in view.panels for row in rows})
    styles = {node: ordered(place, len(nodes)) for place, node in enumerate(nodes)}
    shown: set[str] = set()
    for title, unit, rows in view.panels:
        traces: list[Trace] = []
        for row in rows:
            traces.append(
                Line(row.node, row.t, row.value, styles[row.node], steps=True, legend=row.node not in shown)
            )
            shown.add(row.node)
        panels.append(Panel(title, time, Axis(unit), traces))
    return Figure(
        "host-noise",
        "Host noise beside the worst messages",
        "What the kernel of each end system's host counted while the run went on: the change of its own counters from "
        f"one look to the next, about every {view.interval_s * 1e3:.0f} ms. A late message above a peak may have its "
        "explanation there: `wiregauge show --explain` names what was beyond the usual.",
        panels,
        1,
        hint="Drag to zoom.",
        share_x=True,
        share_y=False,
        measures=["latency"],
        panel_height=150,
    )
