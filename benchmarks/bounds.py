"""Time to bound an AFDX network of 58 end systems, 8 switches and 265 multicast virtual links, from file to answer.

`python -m benchmarks.bounds [--smoke]`. Measures total flow analysis, rounded and exact (the calculus alone is
measured by `crates/bound/benches/afdx.rs`; here reading and writing count too), and linear programmes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks import table
from wiregauge import bounds

SMOKE = "--smoke" in sys.argv
STATIONS, SWITCHES = (8, 4) if SMOKE else (58, 8)
LINKS = 20 if SMOKE else 265
PAYLOADS, PERIODS = (16, 60, 120, 282, 500, 1000), (2, 4, 8, 16, 32, 128)
ABOVE = (1, 0, 0, 1, 0, 1, 2, 3)
"""The parent of each switch; the first two are the roots of two halves."""


def up(switch: int) -> list[int]:
    """A switch and its ancestors, up to a root."""
    return [switch] if switch < 2 else [switch, *up(ABOVE[switch])]


def between(first: int, last: int) -> list[int]:
    """The switches on the path from one to another."""
    there, back = up(first), up(last)
    while len(there) > 1 and len(back) > 1 and there[-2] == back[-2]:
        there.pop()
        back.pop()
    if there[-1] == back[-1]:
        back.pop()
    return there + back[::-1]


def network() -> str:
    """The network, always the same, in WoPANets' format."""
    lines = [
        '<elements><network name="afdx" technology="AFDX" overhead="67" transmission-capacity="100Mbps"/>'
    ]
    lines += [f'<station name="e{k}"/>' for k in range(STATIONS)]
    lines += [f'<switch name="s{k}" tech-latency="16"/>' for k in range(SWITCHES)]
    lines += [f'<link from="e{k}" fromPort="0" to="s{k % SWITCHES}" toPort="e{k}"/>' for k in range(STATIONS)]
    pairs = {frozenset((k, ABOVE[k])) for k in range(SWITCHES)}
    lines += [
        f'<link from="s{a}" fromPort="s{b}" to="s{b}" toPort="s{a}"/>' for a, b in sorted(map(sorted, pairs))
    ]
    for number in range(LINKS):
        source = number % STATIONS
        payload, period = PAYLOADS[number % 6], PERIODS[number // 6 % 6]
        lines.append(f'<flow name="vl{number}" source="e{source}" max-payload="{payload}" period="{period}">')
        receivers = {(source + 1 + number * 7 + k * 11) % STATIONS for k in range(1 + number % 7)} - {source}
        for receiver in sorted(receivers or {(source + 1) % STATIONS}):
            nodes = [f"s{k}" for k in between(source % SWITCHES, receiver % SWITCHES)] + [f"e{receiver}"]
            steps = "".join(f'<path node="{node}"/>' for node in nodes)
            lines.append(f'<target name="e{receiver}">{steps}</target>')
        lines.append("</flow>")
    return "\n".join([*lines, "</elements>"])


def main() -> int:
    """Bounds the network by each method and prints the times."""
    with tempfile.TemporaryDirectory() as below:
        file = Path(below) / "afdx.xml"
        file.write_text(network(), encoding="utf-8")
        for method, arithmetic, bar in (
            ("tfa", "rounded", 1.0),
            ("tfa", "exact", 1.0),
            ("plp", "exact", 10.0),
        ):
            begun = time.process_time()
            answer = bounds.bound(bounds.read(file), method, grouping=True, arithmetic=arithmetic)
            took = time.process_time() - begun
            targets = sum(len(flow.targets) for flow in answer.flows)
            told = "" if SMOKE else f", bar {bar:g} s: {'reached' if took <= bar else 'missed'}"
            print(
                f"{method} {arithmetic}: {len(answer.flows)} virtual links, {targets} targets in {took:.3f} s{told}"
            )
            if not SMOKE:
                what = f"bounds of {LINKS} virtual links, {method} {arithmetic}, file to answer"
                table.add(what, f"{took:.3f} s", bar=f"<= {bar:g} s", reached=took <= bar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
