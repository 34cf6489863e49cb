"""A drawing of the network under test, from the plan: switches and hubs in rows, with their end systems.

A redundant network has its two halves above and below the end systems. Links show network, rate and whether the test
cuts them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.figures.bounds import LOAD
from wiregauge.figures.model import Axis, Dash, Figure, Line, Marker, Panel, Scatter, Style, Trace
from wiregauge.figures.palette import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, VERMILION
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.flow_plan import CampaignPlan
from wiregauge.plan import Link, Network, Node, Switch

_MOST_NAMED = 60
"""The most nodes for which all names are drawn, in full size."""

_KINDS: dict[str, tuple[str, Marker]] = {
    "end-system": (BLUE, "circle"),
    "cots switch": (INK, "square"),
    "arinc664 switch": (GREEN, "square"),
    "mixed-criticality switch": (PURPLE, "square"),
    "hub": (ORANGE, "diamond"),
}
_NETWORKS: dict[str, tuple[str, Dash]] = {"A": (GREY, "solid"), "B": ("#4C78A8", "dash")}


_WIDE = 1.8
"""Ratio of width to height of a circle of switches."""


def network_figure(plan: CampaignPlan) -> Figure | None:
    """Nodes and links of the plan; None for an empty network."""
    network = plan.network
    if not network.nodes:
        return None
    places = places_of(network)
    cut = {number for run in plan.runs for number in run.cut_links}
    two = any(link.network == "B" for link in network.links)
    rates = sorted({link.rate_bps for link in network.links})
    lines = [
        _link(link, places, rates, is_cut=number in cut, two=two) for number, link in enumerate(network.links)
    ]
    is_small = len(network.nodes) <= _MOST_NAMED
    traces: list[Trace] = list(lines if is_small else _fans(network, lines, places))
    kinds = [kind_of(node) for node in network.nodes]
    traces += _nodes(network, places, legend=len(set(kinds)) > 2 or len(rates) > 1 or two or bool(cut))
    speed = ", ".join(rate_text(rate) for rate in rates)
    return Figure(
        "network",
        "The network under test",
        count_of(len(network.links), "link")
        + (f", {speed}" if speed else "")
        + f". {_legend(kinds)}."
        + (" Solid links are network A, dashed ones network B." if two else "")
        + (" Dotted red links are cut in the course of the test." if cut else ""),
        [_panel(places, traces)],
        zoomable=False,
        panel_height=_height(network),
    )


class _Level(Struct, frozen=True):
    """Loads up to a share of a port's rate."""

    most: float
    name: str
    style: Style


_LEVELS = (
    _Level(0.25, "load up to 25 %", Style(BLUE, "dot", width=2.0)),
    _Level(0.5, "up to 50 %", Style(BLUE, width=3.2)),
    _Level(0.75, "up to 75 %", Style(ORANGE, width=4.4)),
    _Level(1.0, "up to 100 %", Style(VERMILION, width=5.6)),
    _Level(math.inf, "above 100 %", Style(VERMILION, "dash", width=7.0)),
)
_UNUSED = _Level(0.0, "no bounded traffic", Style(GREY, width=1.0))


def loads_figure(network: Network, loads: Mapping[str, float]) -> Figure | None:
    """The network with the load of each output port, by `NODE:PORT`: the half of its link next to the node."""
    if not network.links:
        return None
    places = places_of(network)
    found: dict[_Level, list[tuple[float, float]]] = {level: [] for level in (_UNUSED, *_LEVELS)}
    texts: list[tuple[float, float, str]] = []
    for link in network.links:
        (ax, ay), (bx, by) = (places[end] for end in link.nodes)
        middle = (ax + bx) / 2, (ay + by) / 2
        for end, (x, y) in zip(link.ends, ((ax, ay), (bx, by)), strict=True):
            name = f"{network.names[end.node]}:{end.port}"
            load = loads.get(name)
            level = _UNUSED if load is None else next(one for one in _LEVELS if load <= one.most)
            # A missing value between two halves ends the line.
            found[level] += [(x, y), middle, (math.nan, math.nan)]
            said = "no bounded traffic" if load is None else f"load {100 * load:.1f} %"
            texts.append(((3 * x + middle[0]) / 4, (3 * y + middle[1]) / 4, f"{name}: {said}"))
    traces: list[Trace] = []
    for level, points in found.items():
        if points:
            along, up = (np.array(values) for values in zip(*points, strict=True))
            traces.append(Line(level.name, along, up, level.style))
    along, up = (np.array([text[k] for text in texts]) for k in (0, 1))
    hints = [text[2] for text in texts]
    traces.append(Scatter("port", along, up, Style(INK), size=3, hints=hints, legend=False))
    traces += _nodes(network, places, legend=False)
    return Figure(
        "loads",
        "The load of each port",
        f"{LOAD} The half of a link next to a node is the output port of that node.",
        [_panel(places, traces)],
        zoomable=False,
        panel_height=_height(network),
        hint="A dot on each half tells its port and load.",
    )


def _panel(places: Sequence[tuple[float, float]], traces: Sequence[Trace]) -> Panel:
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    x = Axis("", shown=False, span=(min(xs) - 0.7, max(xs) + 0.7))
    y = Axis("", shown=False, span=(min(ys) - 0.5, max(ys) + 0.5))
    return Panel("", x, y, traces)


def _height(network: Network) -> int:
    high = network.has_loops or any(link.network == "B" for link in network.links)
    return (260 if high else 170) * (1 if len(network.nodes) <= _MOST_NAMED else 2)


def _nodes(network: Network, places: Sequence[tuple[float, float]], *, legend: bool) -> Iterator[Scatter]:
    """The nodes by kind; those of a large network have their names on hover only."""
    is_small = len(network.nodes) <= _MOST_NAMED
    kinds = [kind_of(node) for node in network.nodes]
    for kind in dict.fromkeys(kinds):
        colour, marker = _KINDS.get(kind, (INK, "square"))
        for below in (False, True):
            chosen = [k for k, other in enumerate(kinds) if other == kind and (places[k][1] < 0) == below]
            if chosen:
                yield Scatter(
                    kind.replace("end-system", "end system"),
                    np.array([places[k][0] for k in chosen]),
                    np.array([places[k][1] for k in chosen]),
                    Style(colour, marker=marker),
                    size=17 if is_small else _size(kinds.count(kind)),
                    legend=legend,
                    texts=[network.nodes[k].name for k in chosen] if is_small else (),
                    hints=() if is_small else [network.nodes[k].name for k in chosen],
                    texts_below=below,
                )


def _legend(kinds: Sequence[str]) -> str:
    """A legend of the markers that are used."""
    words = [
        "circles are end systems" if "end-system" in kinds else "",
        "squares are switches" if any(kind.endswith("switch") for kind in kinds) else "",
        "diamonds are hubs" if "hub" in kinds else "",
    ]
    said = ", ".join(filter(None, words))
    return said[:1].upper() + said[1:]


def kind_of(node: Node) -> str:
    """The kind of a node in the words of the legend."""
    return f"{node.kind.kind} switch" if isinstance(node.kind, Switch) else node.kind.type


def rate_text(rate: int) -> str:
    """A bit rate as text with its unit."""
    return f"{rate / 1e9:g} Gbit/s" if rate >= 10**9 else f"{rate / 1e6:g} Mbit/s"


def _link(
    link: Link, places: list[tuple[float, float]], rates: list[int], *, is_cut: bool, two: bool
) -> Line:
    """A link: colour and dash show the network, the width shows the rate."""
    (ax, ay), (bx, by) = (places[end] for end in link.nodes)
    colour, dash = _NETWORKS.get(link.network, _NETWORKS["A"])
    width = (1.6 + 1.4 * rates.index(link.rate_bps)) * (1 if len(places) <= _MOST_NAMED else 0.3)
    style = Style(VERMILION, "dot", width=max(width, 2.2)) if is_cut else Style(colour, dash, width=width)
    parts = [f"network {link.network}"] if two else []
    parts += [rate_text(link.rate_bps)] if len(rates) > 1 else []
    name = "link that is cut" if is_cut else ", ".join(parts)
    return Line(name, np.array([ax, bx]), np.array([ay, by]), style, legend=bool(parts) or is_cut)


def _fans(network: Network, lines: list[Line], places: list[tuple[float, float]]) -> list[Line]:
    """The links of a large network; those from one node to end systems are joined to one line, out and back again,
    since a page with a thousand lines would be slow."""
    found: list[Line] = []
    fans: dict[tuple[int, str, Style], list[tuple[float, float]]] = {}
    styles: dict[tuple[int, str, Style], Line] = {}
    for link, line in zip(network.links, lines, strict=True):
        ends = sorted(link.nodes, key=lambda node: network.nodes[node].is_end_system)
        if not network.nodes[ends[1]].is_end_system:
            found.append(line)
            continue
        key = (ends[0], line.name, line.style)
        styles[key] = line
        fans.setdefault(key, [places[ends[0]]]).extend([places[ends[1]], places[ends[0]]])
    for key, points in fans.items():
        x, y = (np.array(values) for values in zip(*points, strict=True))
        found.append(replace(styles[key], x=x, y=y))
    return found


def _size(nodes: int) -> float:
    """The marker size for this number of nodes."""
    return max(4.0, 17.0 * min(1.0, _MOST_NAMED / nodes))


def _neighbours(network: Network) -> dict[int, list[int]]:
    """The neighbours of each node, in the order of the links."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for a, b in (link.nodes for link in network.links):
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


def places_of(network: Network) -> list[tuple[float, float]]:
    """Where each node is drawn: x to the right, y up, about 1 between neighbours."""
    if any(link.network == "B" for link in network.links):
        return _two_networks(network)
    switches = [k for k, node in enumerate(network.nodes) if not node.is_end_system]
    return _circle(network, switches) if network.has_loops else _one_network(network, switches)


def _circle(network: Network, switches: list[int]) -> list[tuple[float, float]]:
    """Switches on a circle in the order of a walk along the links, their end systems outside."""
    walked = _one_network(network, switches)
    order = sorted(switches, key=lambda k: walked[k])
    places: dict[int, tuple[float, float]] = {}
    neighbours = _neighbours(network)
    for rank, switch in enumerate(order):
        angle = math.pi / 2 - 2 * math.pi * rank / len(order)
        places[switch] = _at(angle, 1.0)
        ends = [end for end in neighbours[switch] if network.nodes[end].is_end_system and end not in places]
        fan = 2 * math.pi / len(order) / max(len(ends), 1)
        for k, end in enumerate(ends):
            places[end] = _at(angle - fan * (k - (len(ends) - 1) / 2), 1.8)
    for k in range(len(network.nodes)):
        places.setdefault(k, (2.5 * _WIDE, 0.5 * k))
    return [places[k] for k in range(len(network.nodes))]


def _at(angle: float, radius: float) -> tuple[float, float]:
    return (_WIDE * radius * math.cos(angle), radius * math.sin(angle))


def _two_networks(network: Network) -> list[tuple[float, float]]:
    """End systems in the middle row in network A's order; A above, B below, each over its end systems."""
    inner = {k for k, node in enumerate(network.nodes) if not node.is_end_system}
    of_b = {end for link in network.links if link.network == "B" for end in link.nodes} & inner
    first = sorted(inner - of_b)
    spread = _one_network(network, first)
    ends = sorted((k for k in range(len(network.nodes)) if k not in inner), key=lambda k: (spread[k][0], k))
    places = {k: (float(rank), 0.0) for rank, k in enumerate(ends)}
    neighbours = _neighbours(network)
    for row, members in ((1.0, first), (-1.0, sorted(of_b))):
        wished = []
        for switch in members:
            near = [places[end][0] for end in neighbours[switch] if end not in inner]
            wished.append((sum(near) / len(near) if near else (len(ends) - 1) / 2, switch))
        wished.sort()
        step = max(len(ends) - 1, len(members) - 1, 1) / max(len(members), 1)
        for rank, (at, switch) in enumerate(wished):
            even = (rank + 0.5) * step
            places[switch] = ((at + even) / 2 if len(members) > 1 else at, row)
    return [places[k] for k in range(len(network.nodes))]


def _one_network(network: Network, switches: list[int]) -> list[tuple[float, float]]:
    """Switches from left to right in the order of a walk along the tree, their end systems above and below."""
    known = set(switches)
    neighbours = _neighbours(network)
    order: dict[int, None] = {}

    def degree(k: int) -> int:
        return sum(n in known for n in neighbours[k])

    waiting = sorted(switches, key=lambda k: (degree(k), k), reverse=True)
    while waiting:
        stack = [waiting.pop()]
        while stack:
            at = stack.pop()
            if at in order:
                continue
            order[at] = None
            stack += sorted((n for n in neighbours[at] if n in known and n not in order), reverse=True)
        waiting = [k for k in waiting if k not in order]
    places: dict[int, tuple[float, float]] = {}
    left = 0.0
    for switch in order:
        ends = [n for n in neighbours[switch] if network.nodes[n].is_end_system and n not in places]
        above, below = ends[0::2], ends[1::2]
        width = max(len(above), len(below), 1)
        places[switch] = (left + (width - 1) / 2, 0.0)
        for row, height in ((above, 1.0), (below, -1.0)):
            for k, end in enumerate(row):
                places[end] = (left + (width - len(row)) / 2 + k, height)
        left += width
    for k in range(len(network.nodes)):
        if k not in places:
            places[k] = (left, 0.0)
            left += 1
    return [places[k] for k in range(len(network.nodes))]
