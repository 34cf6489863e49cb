"""Octets of Ethernet frames and of what is around them (IEEE Std 802.3, 3.1.1 and 4.4.2; 802.1Q, 9.6)."""

from __future__ import annotations

from typing import Final

__all__ = ["GAP", "HEADERS", "IPV4_UDP", "LEAST_ON_WIRE", "PREAMBLE", "SHORTEST", "TAG"]

PREAMBLE: Final = 8
"""With the start-of-frame delimiter."""
GAP: Final = 12
"""Between two frames, at least."""
SHORTEST: Final = 64
"""Destination address to frame check sequence."""
HEADERS: Final = 18
"""Addresses, type and frame check sequence."""
TAG: Final = 4
"""Of a VLAN."""
IPV4_UDP: Final = 28
"""Headers of a datagram."""
LEAST_ON_WIRE: Final = PREAMBLE + SHORTEST + GAP
