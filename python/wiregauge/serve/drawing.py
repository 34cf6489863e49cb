"""A network as a drawing for a page: places of nodes and links in the units of an SVG image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from wiregauge.figures.network import kind_of, places_of, rate_text
from wiregauge.plan import Campaign, Network, Run
from wiregauge.plan.ethernet import AROUND_FRAME

__all__ = ["Drawing", "drawing_of", "traffic_of"]

_X, _Y, _MARGIN = 130, 84, 52
MOST_NAMED: Final = 60
"""Nodes and links that are written at; of more a pointer tells the name."""


class NodeShape(Struct, frozen=True):
    """A node at its place."""

    name: str
    kind: str
    x: float
    y: float
    is_end_system: bool


class LinkShape(Struct, frozen=True):
    """A link from node to node."""

    ends: tuple[str, str]
    x1: float
    y1: float
    x2: float
    y2: float
    rate: str
    network: str
    hosts: tuple[bool, bool]
    """Which of its ends are end systems."""

    @property
    def word(self) -> tuple[float, float]:
        """Where its traffic is written: nearer to the end system, where links lie apart."""
        near = 0.5 - 0.22 * (self.hosts[0] - self.hosts[1])
        return self.x1 + near * (self.x2 - self.x1), self.y1 + near * (self.y2 - self.y1)


class Drawing(Struct, frozen=True):
    """A network in an image of `width` by `height`."""

    width: float
    height: float
    nodes: Sequence[NodeShape]
    links: Sequence[LinkShape]

    @property
    def is_named(self) -> bool:
        """Whether there is room for words."""
        return len(self.nodes) <= MOST_NAMED


def drawing_of(network: Network) -> Drawing:
    """The drawing of a network; the same places as in its report."""
    places = places_of(network) if network.nodes else []
    left, top = min((x for x, _ in places), default=0.0), max((y for _, y in places), default=0.0)
    at = [(_MARGIN + _X * (x - left), _MARGIN + _Y * (top - y)) for x, y in places]
    nodes = [
        NodeShape(node.name, kind_of(node).replace("-", " "), *at[k], node.is_end_system)
        for k, node in enumerate(network.nodes)
    ]
    links = [
        LinkShape(
            (network.names[link.nodes[0]], network.names[link.nodes[1]]),
            *at[link.nodes[0]],
            *at[link.nodes[1]],
            rate_text(link.rate_bps),
            link.network,
            (nodes[link.nodes[0]].is_end_system, nodes[link.nodes[1]].is_end_system),
        )
        for link in network.links
    ]
    width, height = (max((place[k] for place in at), default=0.0) + _MARGIN for k in (0, 1))
    return Drawing(width, height, nodes, links)


def traffic_of(campaign: Campaign, run: Run) -> Mapping[str, Any]:
    """What turns rates of flows into traffic on links: rates of links, bit/s, and the ports at their ends, as node and
    number; bits of a message and links of each flow.

    A link is its number, the direction `0` from its first node, `1` to it. The way back of a round trip is not in it.
    """
    network = campaign.network
    flows = {}
    for flow in run.flows:
        send = run.send_of.get(flow.id)
        if flow.exchange or send is None:
            continue
        hops = dict.fromkeys(
            (hop.link, int(hop.from_ != network.links[hop.link].nodes[0]))
            for route in flow.routes
            for hop in route.hops
        )
        bits = 8 * (flow.frame_length(send.payload) + AROUND_FRAME)
        flows[flow.id] = {"bits": bits, "links": list(hops)}
    return {
        "rates": [run.link_rate_bps or link.rate_bps for link in network.links],
        "ports": [[[network.names[end.node], end.port] for end in link.ends] for link in network.links],
        "flows": flows,
    }
