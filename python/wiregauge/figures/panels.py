"""Small multiples: which panels a figure has, in which order, and how its series are named and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from wiregauge.figures.model import Axis, Panel, Style, Trace
from wiregauge.figures.palette import dash_of, protocol_order, side, variety
from wiregauge.measures.metrics.flow_plan import Size
from wiregauge.results.shapes import Key

S = TypeVar("S")
MOST_PANELS = 24
"""Panels of one figure."""


def sweeps_size(keys: Iterable[Key]) -> bool:
    """Whether the test sweeps the payload; different payloads of flows alone are no sweep."""
    sizes: dict[tuple[str, str], set[Size]] = {}
    for key in keys:
        sizes.setdefault((key.label, key.rest), set()).add(key.size)
    return any(len(found) > 1 for found in sizes.values())


def reading_order(key: Key) -> tuple[int, int, Size]:
    return key.flow, protocol_order(key.protocol), key.size


def style_of(key: Key, keys: Sequence[Key]) -> Style:
    """The style of a series: hue by protocol or else by flow; of several run directories by directory, dash by flow."""
    names = list(dict.fromkeys(key.name for key in sorted(keys, key=reading_order)))
    sides = list(dict.fromkeys(key.side for key in keys))
    if len(sides) < 2 and len({one.protocol for one in keys}) == 1 and len(names) > 2:
        # Without protocols to tell apart hues are free for flows.
        return side(names.index(key.name))
    if len(sides) < 2:
        return variety(key.protocol, names.index(key.name), len(names))
    if len(names) < 2:
        return side(sides.index(key.side))
    return replace(side(sides.index(key.side)), dash=dash_of(names.index(key.name)))


def panel_title(size: Size | None, rest: str) -> str:
    return " · ".join(part for part in (size.text if size is not None else "", rest) if part)


def panel_groups(keys: Sequence[Key]) -> tuple[list[tuple[Size | None, str]], int]:
    """The (size, rest) pairs in reading order and the columns: loads side by side, payloads below each other.

    Without a sweep of the payload the size is None: flows share a panel, whatever each one's payload is.
    """
    rests = list(dict.fromkeys(key.rest for key in keys))
    groups: list[tuple[Size | None, str]]
    if sweeps_size(keys):
        present = {(key.size, key.rest) for key in keys}
        sizes = sorted({key.size for key in keys})
        groups = [(size, rest) for size in sizes for rest in rests if (size, rest) in present]
    else:
        groups = [(None, rest) for rest in rests]
    columns = len(rests) if 1 < len(rests) <= 4 else min(3, len(groups))
    return groups, max(columns, 1)


def first_panels(
    groups: Sequence[tuple[Size | None, str]],
) -> tuple[Sequence[tuple[Size | None, str]], list[str]]:
    if len(groups) <= MOST_PANELS:
        return groups, []
    return groups[:MOST_PANELS], [
        f"The first {MOST_PANELS} of {len(groups)} points are drawn; all are in measures.json."
    ]


def small_multiples(
    data: Mapping[Key, S],
    trace: Callable[[Key, S, Style], Sequence[Trace]],
    x: Axis,
    y: Axis,
) -> tuple[list[Panel], int, list[str]]:
    keys = list(data)
    groups, columns = panel_groups(keys)
    shown, notes = first_panels(groups)
    panels = [
        Panel(
            panel_title(size, rest),
            x,
            y,
            [
                part
                for key in sorted(
                    (k for k in keys if size in (None, k.size) and k.rest == rest), key=reading_order
                )
                for part in trace(key, data[key], style_of(key, keys))
            ],
        )
        for size, rest in shown
    ]
    return panels, columns, notes
