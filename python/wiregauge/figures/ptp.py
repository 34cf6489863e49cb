"""How far PTP clocks were from their grandmasters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Rule, Style, Trace
from wiregauge.figures.palette import GREY, ordered
from wiregauge.measures.ptp_view import PtpShape

__all__ = ["ptp_figure"]


def ptp_figure(clocks: Sequence[PtpShape]) -> Figure | None:
    """How far each PTP clock was from its grandmaster, against true time."""
    drawn = [shape for shape in clocks if len(shape.t)]
    if not drawn:
        return None
    # Nothing less than a tenth of a nanosecond: a logarithm has no zero.
    traces: list[Trace] = [
        Line(f"clock of {shape.node}", shape.t, np.maximum(shape.distance, 0.1), ordered(place, len(drawn)))
        for place, shape in enumerate(drawn)
    ]
    changes = sorted((at, shape.node, to) for shape in drawn for at, to in shape.changes)
    traces += [Rule(at, "another grandmaster", Style(GREY, "dot", width=1.2)) for at, _, _ in changes[:40]]
    notes = (
        [f"{len(changes)} changes of grandmaster, the last one at {changes[-1][0]:.4g} s."] if changes else []
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
