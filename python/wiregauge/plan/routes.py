"""Routes: the directed links that frames take, resolved once, by the compiler."""

from __future__ import annotations

from wiregauge.plan.base import NodeIndex, Plan
from wiregauge.plan.network import NetworkId

__all__ = ["Hop", "Route"]


class Hop(Plan, frozen=True, array_like=True):
    """One direction of a link: the node and port a frame leaves, those it enters."""

    link: int
    from_: NodeIndex
    from_port: int
    to: NodeIndex
    to_port: int


class Route(Plan, frozen=True, kw_only=True):
    """A route from one end system to another through one network."""

    network: NetworkId = "A"
    """The network that it leads through."""
    hops: tuple[Hop, ...]
    """Directed links, the sender's own first; at least one."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Numbers of the nodes on the route, the sender first and the receiver last."""
        return (self.hops[0].from_, *(hop.to for hop in self.hops)) if self.hops else ()
