"""The network in live figures: stays in its switches, and the clocks that the test makes wrong or synchronises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from wiregauge.records.clockstates import NO_POWER, PTP_STATES, SYNC_STATES
from wiregauge.records.live import ClockNow, PortNow

__all__ = ["ClockSums", "NetworkFigures", "NetworkSums", "PortSums"]

_SYNCHRONISED: Final = ("SYNC", "STABLE")
"""States of an AS6802 device in which its clock is."""


class PortSums(Struct, frozen=True):
    """A port by which frames left a switch since the sums before; see `PortNow`."""

    node: int
    port: int
    frames: int
    longest_ns: int
    queued: int


class ClockSums(Struct, frozen=True):
    """The last that is known of a played clock; None where nothing was told."""

    node: int
    at_ns: int
    offset_ns: int | None
    sync_state: int | None
    """Code of its AS6802 device's state."""
    ptp_states: dict[int, int]
    """Numbers of its PTP ports' states, by port."""
    grandmaster: int | None
    """Number of the node that it follows by PTP; -1: none."""


class NetworkSums(Struct, frozen=True):
    """What whoever plays the network says once a second."""

    ports: Sequence[PortSums]
    clocks: Sequence[ClockSums]


class NetworkFigures:
    """Combines these; `nodes` are the names of nodes, by number."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = nodes
        self._ports: dict[tuple[int, int], PortSums] | None = None
        self._clocks: Sequence[ClockSums] = ()

    def take(self, sums: NetworkSums) -> None:
        """Adds a second."""
        ports = self._ports = self._ports or {}
        for one in sums.ports:
            before = ports.get((one.node, one.port), one)
            frames = one.frames + (before.frames if before is not one else 0)
            longest, queued = max(one.longest_ns, before.longest_ns), max(one.queued, before.queued)
            ports[one.node, one.port] = PortSums(one.node, one.port, frames, longest, queued)
        self._clocks = sums.clocks

    def ports(self) -> tuple[PortNow, ...] | None:
        """Those by which frames left since the last call; None where nobody has told of any network."""
        if self._ports is None:
            return None
        ports, self._ports = self._ports, {}
        return tuple(
            PortNow(self._nodes[one.node], one.port, one.frames, one.longest_ns, one.queued)
            for one in ports.values()
        )

    def clocks(self) -> tuple[ClockNow, ...]:
        """Clocks as they were last known."""
        return tuple(self._clock(one) for one in self._clocks)

    def _clock(self, sums: ClockSums) -> ClockNow:
        source, state, synchronised = "model", "", None
        if sums.sync_state is not None:
            source, state = "AS6802", sync_state(sums.sync_state)
            synchronised = state in _SYNCHRONISED
        elif sums.ptp_states or sums.grandmaster is not None:
            parts = [f"port {port} {ptp_state(code)}" for port, code in sorted(sums.ptp_states.items())]
            if sums.grandmaster is not None:
                followed = sums.grandmaster
                parts.append(f"follows {self._nodes[followed]}" if followed >= 0 else "follows none")
            source, state = "PTP", ", ".join(parts)
            states = {ptp_state(code) for code in sums.ptp_states.values()}
            # A boundary clock serves others while it does not follow its own grandmaster yet.
            synchronised = "SLAVE" in states or ("MASTER" in states and sums.grandmaster == sums.node)
        offset = None if sums.offset_ns is None else float(sums.offset_ns)
        return ClockNow(self._nodes[sums.node], source, state, synchronised, offset, sums.at_ns / 1e9)


def sync_state(code: int) -> str:
    """The name of an AS6802 device's state."""
    if code == NO_POWER:
        return "no power"
    return SYNC_STATES[code] if 0 <= code < len(SYNC_STATES) else f"state {code}"


def ptp_state(number: int) -> str:
    """The name of a PTP port's state."""
    return PTP_STATES[number - 1] if 0 < number <= len(PTP_STATES) else f"state {number}"
