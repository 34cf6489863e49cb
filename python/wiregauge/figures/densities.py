"""Densities of latencies and periods."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Style, Trace
from wiregauge.figures.palette import ordered
from wiregauge.figures.panels import MOST_PANELS, reading_order, small_multiples
from wiregauge.figures.traces import US
from wiregauge.results.shapes import DensityShape, Key, Shapes


def density_lines(data: Mapping[Key, DensityShape]) -> Callable[[Key, DensityShape, Style], list[Trace]]:
    """A drawer of densities on a shared axis: equal values are a line at their value, as high as the highest one."""
    top = max((float(shape.y.max()) for shape in data.values() if shape.constant is None), default=1.0)

    def lines(key: Key, shape: DensityShape, style: Style) -> list[Trace]:
        if shape.constant is not None:
            return [Line(key.label, np.full(2, shape.constant / US), np.array([0.0, top]), style)]
        seen = seen_part(shape, top)
        return [Line(key.label, shape.x[seen] / US, shape.y[seen], style, filled=True)]

    return lines


def seen_part(shape: DensityShape, top: float) -> slice:
    """The part of a density that has messages, with one more point on either side.

    The threshold of 1e-9 of `top` is above rounding errors and below one message.
    """
    high = np.flatnonzero(shape.y > 1e-9 * top)
    return slice(max(int(high[0]) - 1, 0), int(high[-1]) + 2) if len(high) else slice(0, 0)


def density_axis(data: Mapping[Key, DensityShape], title: str) -> Axis:
    """The axis of densities; without numbers where all series are constant."""
    known = any(shape.constant is None for shape in data.values())
    return Axis(title) if known else Axis(title, ticks=[(0.0, "0")])


def constant_note(data: Mapping[Key, DensityShape]) -> list[str]:
    constant = any(shape.constant is not None for shape in data.values())
    return ["A plain vertical line: all values are equal, which is no density."] if constant else []


def drawable(data: Mapping[Key, DensityShape]) -> dict[Key, DensityShape]:
    """Densities with a point: on a logarithmic axis non-positive values have none."""
    return {key: shape for key, shape in data.items() if len(shape.x)}


def hidden_note(data: Mapping[Key, DensityShape], why: str) -> list[str]:
    outside = sum(shape.outside for shape in data.values())
    return [f"{outside} values {why} are not drawn."] if outside else []


def latency_density(shapes: Shapes) -> Figure | None:
    """Densities of the latencies, per payload and load (as MAPS 2015, Figure 5)."""
    return densities(
        shapes.latency,
        "latency-density",
        "one-way latency (µs)",
        "One-way latency: density",
        "Where one-way latencies lie. A narrow peak: it hardly varies. A second peak or a long tail: some messages "
        "took another time.",
        "that are not positive",
        "latency",
    )


def densities(
    data: Mapping[Key, DensityShape],
    name: str,
    axis: str,
    title: str,
    caption: str,
    hidden: str,
    measure: str,
) -> Figure | None:
    """A density per decade over a logarithmic axis; `hidden` names the values that it cannot show."""
    drawn = drawable(data)
    if not drawn:
        return None
    panels, columns, notes = small_multiples(
        drawn,
        density_lines(drawn),
        Axis(axis, log=True),
        density_axis(drawn, "density (1/decade)"),
    )
    notes += [*constant_note(drawn), *hidden_note(data, hidden)]
    return Figure(name, title, caption, panels, columns, notes=notes, measures=[measure])


def period_density(shapes: Shapes) -> Figure | None:
    """Densities of transmit periods (as MAPS 2015, Figure 3): a panel per flow and protocol, a line per payload."""
    data = shapes.period
    if not data:
        return None
    labels = list(dict.fromkeys((k.label, k.rest) for k in sorted(data, key=reading_order)))
    sizes = sorted({key.size for key in data})
    panels = []
    for label, rest in labels[:MOST_PANELS]:
        mine = sorted((k for k in data if (k.label, k.rest) == (label, rest)), key=lambda k: k.size)
        top = max((float(data[k].y.max()) * US for k in mine if data[k].constant is None), default=1.0)
        traces: list[Trace] = []
        for key in mine:
            style, shape = ordered(sizes.index(key.size), len(sizes)), data[key]
            if shape.constant is not None:
                at = np.full(2, shape.constant / US)
                traces.append(Line(key.size.text, at, np.array([0.0, top]), style))
            else:
                seen = seen_part(shape, top / US)
                traces.append(Line(key.size.text, shape.x[seen] / US, shape.y[seen] * US, style))
        panels.append(
            Panel(
                label + (f" · {rest}" if rest else ""),
                Axis("transmit period (µs)"),
                density_axis({key: data[key] for key in mine}, "density (1/µs)"),
                traces,
            )
        )
    return Figure(
        "period-density",
        "Transmit period: density",
        "Regularity of the sender: the jitter that the instrument itself adds."
        + (
            " The central 98 % and what is near them are in view; the box plot below shows the rest."
            if any(shape.outside for shape in data.values())
            else ""
        ),
        panels,
        min(2, len(panels)),
        notes=[*constant_note(data), *hidden_note(data, "outside the view")],
        measures=["period", "period_jitter"],
    )
