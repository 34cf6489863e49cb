"""A schedule as a Gantt chart: a lane for every port, a bar for every opening of a window in one common period."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from wiregauge.figures.model import Axis, Figure, Panel, Rule, Spans, Style, Trace
from wiregauge.figures.palette import BLACK, BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW

__all__ = ["GanttBar", "gantt_figure"]

MOST_BARS = 20_000
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, BLACK)


class GanttBar(Struct, frozen=True):
    """One opening of a window, us."""

    port: str
    flow: int
    start: float
    length: float


def gantt_figure(
    name: str,
    ports: Sequence[str],
    bars: Sequence[GanttBar],
    guards: Sequence[GanttBar],
    until_us: float,
    cycle_us: float,
) -> Figure:
    """Windows by port and flow over a common period, or the beginning of one with too many windows, with a note."""
    lanes = {port: len(ports) - 1 - at for at, port in enumerate(ports)}
    traces: list[Trace] = []
    if guards:
        traces.append(_spans("guard band", guards, lanes, Style(GREY), height=0.8, texts=False, hollow=True))
    for at, flow in enumerate(sorted({bar.flow for bar in bars})):
        own = [bar for bar in bars if bar.flow == flow]
        style = Style(_COLOURS[at % len(_COLOURS)])
        traces.append(_spans(f"flow {flow}", own, lanes, style, height=0.62, texts=len(bars) <= 400))
    traces.append(Rule(cycle_us, "", Style(INK, dash="dot", width=1.0)))
    notes = []
    if until_us < cycle_us:
        notes = [f"The common period is {cycle_us:.10g} us; its first {until_us:.6g} us are drawn."]
    return Figure(
        "gantt",
        f"Schedule of {name}",
        "One common period of all flows. A bar is the window of a flow at a port, by the clock of its node"
        + ("; outlined in grey is the guard band before it." if guards else "."),
        [
            Panel(
                "",
                Axis("Time in the common period / us", span=(0.0, max(until_us, 1e-6))),
                Axis(
                    "",
                    span=(-0.6, len(ports) - 0.4),
                    ticks=[(float(lane), port) for port, lane in lanes.items()],
                ),
                traces,
            )
        ],
        notes=notes,
        panel_height=max(160, 26 * len(ports) + 90),
        margin_left=90,
    )


def _spans(
    name: str,
    bars: Sequence[GanttBar],
    lanes: dict[str, int],
    style: Style,
    *,
    height: float,
    texts: bool,
    hollow: bool = False,
) -> Spans:
    return Spans(
        name,
        np.array([lanes[bar.port] for bar in bars], dtype=np.float64),
        np.array([bar.start for bar in bars], dtype=np.float64),
        np.array([bar.length for bar in bars], dtype=np.float64),
        height,
        style,
        texts=[str(bar.flow) for bar in bars] if texts else (),
        hollow=hollow,
    )
