"""Writes the test of a large network: end systems on a mesh of switches, each feeding virtual links to others.

    python examples/large_network.py large.xml --end-systems 1000 --switches 50 --flows 4500
    wiregauge run large.xml --out large

The switches form a ring with chords across it, and routing is by the shortest way. Senders, receivers, BAGs and sizes
are spread by strides, without a random source: the same numbers make the same test.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wiregauge.config.builder import Test

LONGEST_BAG = 7
"""As a power of two, in milliseconds."""


def large_network(
    end_systems: int = 1000, switches: int = 50, flows: int = 4500, *, duration: str = "1s", reach: int = 7
) -> Test:
    """The test; receivers lie at most `reach` end systems behind their sender, which is about as many switches."""
    test = Test(f"{end_systems} end systems", seed=1, bench="sim", routing="shortest")
    ends = [f"es{number}" for number in range(end_systems)]
    inner = [f"sw{number}" for number in range(switches)]
    for name in ends:
        test.end_system(name)
    for name in inner:
        test.switch(name, kind="arinc664", priorities="strict", delay="16us", buffer="1MiB")
    for number, name in enumerate(ends):
        test.link(name, inner[number % switches], rate="1Gbit/s", delay="100ns")
    chords = [(number, number + switches // 2) for number in range(switches // 2)] if switches > 3 else []
    ring = [(number, (number + 1) % switches) for number in range(switches if switches > 2 else switches - 1)]
    for a, b in ring + chords:
        test.link(inner[a], inner[b], rate="10Gbit/s", delay="100ns")
    test.timing(duration=duration)
    for number in range(flows):
        sender = number % end_systems
        receiver = (sender + 1 + number * 23 % min(reach, end_systems - 1)) % end_systems
        # The virtual links of a sender have all BAGs in turn: 65 of 1 ms would be more than a host can send.
        bag_ms = 1 << (number + number // end_systems) % (LONGEST_BAG + 1)
        flow = number + 1
        test.flow(flow, protocol="rc", from_=ends[sender], to=ends[receiver], bag=f"{bag_ms}ms")
        offset_us = number * 7_919 % (bag_ms * 1_000)
        test.send(
            flow, period=f"{bag_ms}ms", offset=f"{offset_us}us", payload=f"{18 + number * 389 % 1_454}B"
        )
        test.receive(flow)
    return test


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description="writes the test of a large network")
    parser.add_argument("file", type=Path, help="the test to write")
    parser.add_argument("--end-systems", type=int, default=1000)
    parser.add_argument("--switches", type=int, default=50)
    parser.add_argument("--flows", type=int, default=4500)
    parser.add_argument("--duration", default="1s", help="of the measured part, for example 100ms")
    given = parser.parse_args()
    large_network(given.end_systems, given.switches, given.flows, duration=given.duration).write(given.file)


if __name__ == "__main__":
    main()
