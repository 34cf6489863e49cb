"""Octets of Ethernet frames and of their surroundings (IEEE Std 802.3, 3.1.1 and 4.4.2; 802.1Q, 9.6), as `crates/frame`
has them."""

from __future__ import annotations

from typing import Final

from wiregauge import _native

__all__ = [
    "AROUND_FRAME",
    "GAP",
    "HEADERS",
    "IPV4_UDP",
    "LEAST_ON_WIRE",
    "LONGEST",
    "PREAMBLE",
    "SHORTEST",
    "TAG",
]

PREAMBLE: Final = _native.PREAMBLE_LEN
"""Octets of preamble and start-of-frame delimiter."""
GAP: Final = _native.GAP_LEN
"""Octets of the least gap between two frames."""
AROUND_FRAME: Final = PREAMBLE + GAP
"""Octets of preamble and gap, by which a frame takes longer on the wire than its length."""
SHORTEST: Final = _native.MIN_FRAME_LEN
"""Octets of the shortest frame, destination address to frame check sequence."""
LONGEST: Final = _native.MAX_FRAME_LEN
"""Octets of the longest frame without tags, destination address to frame check sequence."""
HEADERS: Final = _native.FRAME_OVERHEAD
"""Octets of addresses, type and frame check sequence."""
TAG: Final = _native.TAG_LEN
"""Octets of a VLAN tag."""
IPV4_UDP: Final = _native.DATAGRAM_HEADER_LEN
"""Octets of the IPv4 and UDP headers of a datagram."""
LEAST_ON_WIRE: Final = PREAMBLE + SHORTEST + GAP
"""Octets that the shortest frame takes on the wire, preamble and gap included."""
