"""Frames that came to a network that an agent plays and could not be of the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wiregauge.measures.metrics.reported import number, parts

__all__ = ["ForeignResult", "OverlongResult", "foreign_of", "overlong_of"]

_TYPES: Final = {
    0x0800: "IPv4",
    0x0806: "ARP",
    0x86DD: "IPv6",
    0x8808: "MAC control",
    0x8809: "slow protocols",
    0x888E: "EAPOL",
    0x88B5: "local experimental",
    0x88CC: "LLDP",
    0x88F7: "PTP",
    0x891D: "protocol control frames",
}
"""Ether types (IEEE registration authority) that are met on lines."""


@dataclass(frozen=True, slots=True)
class ForeignResult:
    """Frames of one kind that came from an end system and are neither messages nor load of the test."""

    end_system: str
    """Empty: all that found no line of their own."""
    ether_type: int
    frames: int
    bytes: int
    delivered: int
    """Copies that were handed to end systems."""
    line_ns: int
    """For how long they had lines of the network, all together."""
    on_media: int
    """Copies for media of hubs, whose time is not in that."""
    dropped: Mapping[str, int]

    @property
    def kind(self) -> str:
        """What they are, in words."""
        if not self.end_system:
            return "of further kinds"
        if not self.ether_type:
            return "of IEEE 802.3 with a length"
        known = _TYPES.get(self.ether_type)
        number = f"0x{self.ether_type:04X}"
        return f"{known} ({number})" if known else f"of type {number}"


@dataclass(frozen=True, slots=True)
class OverlongResult:
    """Frames longer than any of Ethernet that came to a port, and the bytes of the longest."""

    end_system: str
    interface: str
    frames: int
    longest: int


def foreign_of(report: Mapping[str, object]) -> tuple[ForeignResult, ...] | None:
    """As an agent that is the network reports them; None where it counted none of them."""
    if not isinstance(report.get("foreign"), list):
        return None
    found = []
    for one in parts(report, "foreign"):
        dropped = one.get("dropped")
        found.append(
            ForeignResult(
                str(one.get("end_system", "")),
                number(one, "ether_type"),
                number(one, "frames"),
                number(one, "bytes"),
                number(one, "delivered"),
                number(one, "line_ns"),
                number(one, "on_media"),
                {str(why): number(dropped, why) for why in dropped} if isinstance(dropped, dict) else {},
            )
        )
    return tuple(found)


def overlong_of(report: Mapping[str, object]) -> tuple[OverlongResult, ...]:
    """Likewise."""
    return tuple(
        OverlongResult(
            str(one.get("end_system", "")),
            str(one.get("interface", "")),
            number(one, "frames"),
            number(one, "longest"),
        )
        for one in parts(report, "overlong")
    )
