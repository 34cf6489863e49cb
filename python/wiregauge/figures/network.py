"""A drawing of the network under test: switches in a row, end systems around them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from wiregauge.figures.model import Axis, Figure, Line, Panel, Scatter, Style, Trace
from wiregauge.figures.palette import BLUE, GREY, INK
from wiregauge.measures.plan import CampaignPlan

_MOST_NAMED = 60


def network_figure(plan: CampaignPlan) -> Figure | None:
    """Nodes and links of the plan; None for an empty network."""
    if not plan.nodes:
        return None
    places = _places(plan)
    traces: list[Trace] = [
        Line(
            f"link {plan.nodes[a].name} to {plan.nodes[b].name}",
            np.array([places[a][0], places[b][0]]),
            np.array([places[a][1], places[b][1]]),
            Style(GREY, width=1.6),
            legend=False,
        )
        for a, b in (link.ends for link in plan.links)
    ]
    for switch in (False, True):
        for below in (False, True):
            chosen = [
                k
                for k, node in enumerate(plan.nodes)
                if (node.kind != "end-system") == switch and (places[k][1] < 0) == below
            ]
            if not chosen:
                continue
            traces.append(
                Scatter(
                    "switch" if switch else "end system",
                    np.array([places[k][0] for k in chosen]),
                    np.array([places[k][1] for k in chosen]),
                    Style(INK if switch else BLUE, marker="square" if switch else "circle"),
                    size=17,
                    legend=False,
                    texts=[plan.nodes[k].name for k in chosen] if len(plan.nodes) <= _MOST_NAMED else (),
                    texts_below=below,
                )
            )
    rates = sorted({link.rate_bps for link in plan.links})
    speed = ", ".join(
        f"{rate / 1e9:g} Gbit/s" if rate >= 10**9 else f"{rate / 1e6:g} Mbit/s" for rate in rates
    )
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    x = Axis("", shown=False, span=(min(xs) - 0.7, max(xs) + 0.7))
    y = Axis("", shown=False, span=(min(ys) - 0.5, max(ys) + 0.5))
    return Figure(
        "network",
        "The network under test",
        f"{len(plan.links)} links"
        + (f", {speed}" if speed else "")
        + ". Circles are end systems, squares are switches.",
        [Panel("", x, y, traces)],
        zoomable=False,
        panel_height=170,
    )


def _places(plan: CampaignPlan) -> list[tuple[float, float]]:
    """Switches from left to right in the order a walk along the tree meets them, their end systems above and below."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for a, b in (link.ends for link in plan.links):
        neighbours[a].append(b)
        neighbours[b].append(a)
    switches = [k for k, node in enumerate(plan.nodes) if node.kind != "end-system"]
    order: list[int] = []

    def degree(k: int) -> int:
        return sum(n in switches for n in neighbours[k])

    waiting = sorted(switches, key=lambda k: (degree(k), k), reverse=True)
    while waiting:
        stack = [waiting.pop()]
        while stack:
            at = stack.pop()
            if at in order:
                continue
            order.append(at)
            stack += sorted((n for n in neighbours[at] if n in switches and n not in order), reverse=True)
        waiting = [k for k in waiting if k not in order]
    places: dict[int, tuple[float, float]] = {}
    left = 0.0
    for switch in order:
        ends = [n for n in neighbours[switch] if n not in switches and n not in places]
        above, below = ends[0::2], ends[1::2]
        width = max(len(above), len(below), 1)
        places[switch] = (left + (width - 1) / 2, 0.0)
        for row, height in ((above, 1.0), (below, -1.0)):
            for k, end in enumerate(row):
                places[end] = (left + (width - len(row)) / 2 + k, height)
        left += width
    for k in range(len(plan.nodes)):
        if k not in places:
            places[k] = (left, 0.0)
            left += 1
    return [places[k] for k in range(len(plan.nodes))]
