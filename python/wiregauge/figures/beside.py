"""The same flows of several run directories in one set of axes: a colour per directory, a dash per flow."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.figures.build import MOST_PANELS
from wiregauge.figures.model import Axis, Figure, Line, Panel
from wiregauge.figures.palette import protocol_order, side
from wiregauge.measures.shapes import Key, Shapes

US = 1e3


def latency_beside(sides: Sequence[tuple[str, Shapes]]) -> Figure | None:
    """Densities of one-way latency, a panel per protocol, payload and point that every directory has."""
    groups = [{_group(key) for key, shape in shapes.latency.items() if len(shape.x)} for _, shapes in sides]
    common = set.intersection(*groups) if groups else set()
    if not common:
        return None
    ordered = sorted(common, key=lambda group: (protocol_order(group[0]), group[2], group[1]))
    flows = sorted({key.flow for _, shapes in sides for key in shapes.latency})
    panels = []
    for group in ordered[:MOST_PANELS]:
        protocol, payload, rest = group
        lines = [
            Line(f"{name} · flow {key.flow}", shape.x / US, shape.y, side(at, flows.index(key.flow)))
            for at, (name, shapes) in enumerate(sides)
            for key, shape in sorted(shapes.latency.items(), key=lambda item: item[0].flow)
            if _group(key) == group
        ]
        title = f"{protocol} · {payload} B" + (f" · {rest}" if rest else "")
        panels.append(Panel(title, Axis("one-way latency (µs)", log=True), Axis("density (1/decade)"), lines))
    left_out = len(ordered) - len(panels)
    return Figure(
        "latency-beside",
        "One-way latency on each bench",
        "Each area is one flow on one bench. Where they lie apart, the benches see different networks: "
        "compare what each of them is before you compare the figures.",
        panels,
        min(3, len(panels)),
        notes=[f"{left_out} further points are in the tables."] if left_out else [],
        measures=["latency"],
    )


def _group(key: Key) -> tuple[str, int, str]:
    return key.protocol, key.payload, key.rest
