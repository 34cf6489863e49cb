"""Buffer occupancy in a network: the rules of its ports, implemented a second time for an independent check.

A frame needs room in the queue of its class, in the buffer of its port and in the buffer that the ports of a switch
share; at a host, in its egress queue. The frame in transmission occupies none, nor does one that starts at once.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, inf

from msgspec import Struct, field

from wiregauge.plan import Attachment, EndSystem, Network, Switch
from wiregauge.plan.ethernet import LEAST_ON_WIRE
from wiregauge.plan.network import Capacity

__all__ = ["Room", "Rooms"]


class Room(Struct):
    """A buffer and its content."""

    name: str
    holds: Capacity
    bytes: int = 0
    frames: int = 0

    def takes(self, length: int) -> bool:
        """Whether there is room for one more frame."""
        most = self.holds.frames
        return self.bytes + length <= self.holds.bytes and (most is None or self.frames < most)

    def put(self, length: int) -> None:
        """Adds a frame, even beyond the capacity."""
        self.bytes += length
        self.frames += 1

    def take(self, length: int) -> None:
        """Removes a frame."""
        self.bytes -= length
        self.frames -= 1

    def lend(self, bits: float) -> None:
        """Reserves room for unscheduled traffic, in the shortest frames or in the longest."""
        self.bytes += ceil(bits / 8)
        self.frames += ceil(bits / (8 * LEAST_ON_WIRE))

    @property
    def text(self) -> str:
        """The buffer's capacity as text."""
        frames = self.holds.frames
        return f"{self.holds.bytes} B" if frames is None else f"{frames} frame{'s' if frames != 1 else ''}"


class Rooms(Struct):
    """The buffers of a network."""

    network: Network
    _queues: dict[tuple[Attachment, int], list[Room]] = field(default_factory=dict)
    _shared: dict[object, Room] = field(default_factory=dict)

    def of(self, port: Attachment, name: str, number: int) -> list[Room]:
        """All buffers that a frame of a class needs at a port."""
        if (port, number) not in self._queues:
            self._queues[port, number] = list(self._made(port, name, number))
        return self._queues[port, number]

    def lend(self, port: Attachment, name: str, others: Collection[int], bits: float | None) -> bool:
        """Reserves room for other traffic: `bits`, or what queues of their own hold; False if the need is unknown."""
        kind = self.network.nodes[port.node].kind
        own = kind.queue_buffer if isinstance(kind, Switch) else None
        most = min(inf if bits is None else bits, inf if own is None else 8.0 * own.bytes * len(others))
        if most == inf:
            return False
        for room in self.of(port, name, -1):
            room.lend(most)
        return True

    def _made(self, port: Attachment, name: str, number: int) -> list[Room]:
        kind = self.network.nodes[port.node].kind
        if isinstance(kind, EndSystem):
            if kind.host is None:
                return []
            queue = Room(f"the egress queue of {name}", Capacity(kind.host.egress_bytes))
            return [self._shared.setdefault(port, queue)]
        if not isinstance(kind, Switch):
            return []
        rooms = [self._shared.setdefault(port, Room(f"the buffer of {name}", kind.port_buffer))]
        if kind.queue_buffer is not None:
            rooms.insert(0, Room(f"the queue of class {number} at {name}", kind.queue_buffer))
        if kind.shared_buffer is not None:
            whole = Room(f'the shared buffer of "{self.network.names[port.node]}"', kind.shared_buffer)
            rooms.append(self._shared.setdefault(port.node, whole))
        return rooms
