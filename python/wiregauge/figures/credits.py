"""The credits of shaped queues over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Rule, Scatter, Style, Trace
from wiregauge.figures.palette import BLUE, GREY, VERMILION
from wiregauge.measures.definitions.units import in_unit
from wiregauge.results.credit_view import CreditShape

__all__ = ["credit_figure"]

US = 1e3


def credit_figure(shapes: Sequence[CreditShape], queues: int) -> Figure | None:
    """Two panels per queue: the whole run, and every corner around the greatest credit; `queues`: the number shaped."""
    if not shapes:
        return None
    notes = (
        [f"Drawn are {len(shapes)} of {queues} shaped queues, those with the greatest credits."]
        if len(shapes) < queues
        else []
    )
    return Figure(
        "credits",
        "Credits of shaped queues",
        "The credit of each credit-based shaper: it falls while a frame of the queue is on the wire, rises while "
        "frames wait, and a frame begins unless it is below zero. Left the whole run: of each stretch of time the "
        "first, the greatest, the least and the last corner, joined, whatever is between them. Right every corner "
        "around the greatest credit: there it is linear from one to the next.",
        [panel for shape in shapes for panel in _panels(shape)],
        2,
        share_x=False,
        share_y=False,
        notes=notes,
        measures=["credit"],
        panel_height=170,
    )


def _panels(shape: CreditShape) -> tuple[Panel, Panel]:
    one = shape.credit
    where = f"{one.node}:{one.port}, class {one.traffic_class}"
    zero = Rule(0.0, "", Style(GREY, "dot", width=1.0), vertical=False)

    def traces(t: np.ndarray, bits: np.ndarray, at: float) -> list[Trace]:
        greatest = Scatter(
            "greatest", np.array([at]), np.array([one.max_bit]), Style(VERMILION, marker="diamond"), size=8
        )
        return [Line("credit", t, bits, Style(BLUE, width=1.2), legend=False), greatest, zero]

    bits = Axis("credit (bit)")
    title = f"{where}, {in_unit(one.min_bit, 'bit')} to {in_unit(one.max_bit, 'bit')}"
    return (
        Panel(title, Axis("time in the run (s)"), bits, traces(shape.t, shape.bits, one.max_at_ns / 1e9)),
        Panel(
            f"{where}, around the greatest",
            Axis("time (µs)"),
            bits,
            traces(shape.near_t / US, shape.near_bits, 0.0),
        ),
    )
