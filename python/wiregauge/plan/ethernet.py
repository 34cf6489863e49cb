"""Octets of Ethernet frames and of their surroundings (IEEE Std 802.3, 3.1.1 and 4.4.2; 802.1Q, 9.6)."""

from __future__ import annotations

from typing import Final

__all__ = ["GAP", "HEADERS", "IPV4_UDP", "LEAST_ON_WIRE", "PREAMBLE", "SHORTEST", "TAG"]

PREAMBLE: Final = 8
"""Octets of preamble and start-of-frame delimiter."""
GAP: Final = 12
"""Octets of the least gap between two frames."""
SHORTEST: Final = 64
"""Octets of the shortest frame, destination address to frame check sequence."""
HEADERS: Final = 18
"""Octets of addresses, type and frame check sequence."""
TAG: Final = 4
"""Octets of a VLAN tag."""
IPV4_UDP: Final = 28
"""Octets of the IPv4 and UDP headers of a datagram."""
LEAST_ON_WIRE: Final = PREAMBLE + SHORTEST + GAP
