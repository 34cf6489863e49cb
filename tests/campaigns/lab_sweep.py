"""One test file on namespaces of one testmaster and on a lab of eight hosts: compares losses and measures.

`python -m campaigns.lab_sweep` (from `tests`) runs the UDP and raw rows of the sweep of the MAPS study (2015, Table 3:
six payloads, here without background load) as round trips between four pairs of end systems, in turns on both benches,
in rounds; the clocks of the lab's hosts have offsets, drifts and a step. Required: both refuse
the same with the same sentences, neither loses messages, and the ranges of both benches' median round trips overlap.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from lab_support import World

HOSTS = {
    "h1": "",
    "h2": "1500000,0",
    "h3": "-250000000,10000",
    "h4": "3000000000,-20000",
    "h5": "0,50000",
    "h6": "",
    "h7": "7000,-3000",
    "h8": "0,0,4000000@20",
}
PAIRS = [("h1", "h5"), ("h2", "h6"), ("h3", "h7"), ("h4", "h8")]
PAYLOADS = ("64B", "128B", "256B", "512B", "1024B", "1472B")


def sweep(count: int) -> str:
    """The test; links are faster than any limit, because those of the lab are unlimited."""
    names = [name for pair in PAIRS for name in pair]
    flows = [
        (10 * number + kind, protocol, *pair)
        for number, pair in enumerate(PAIRS, 1)
        for kind, protocol in enumerate(("udp", "raw"))
    ]
    lines = [
        '<test xmlns="urn:wiregauge:test:2" name="sweep" seed="1"><network>',
        *(f'<end-system name="{name}"/>' for name in names),
        '<switch name="sw"/>',
        *(f'<link between="{name} sw" rate="40Gbit/s"/>' for name in names),
        "</network><flows>",
        *(f'<flow id="{flow}" protocol="{protocol}" from="{a}" to="{b}"/>' for flow, protocol, a, b in flows),
        '</flows><tasks warm-up="200ms" drain="200ms">',
        *(
            f'<send flow="{flow}" period="10ms" offset="{number}ms" payload="64B" count="{count}"/>'
            f'<relay flow="{flow}"/>'
            for number, (flow, *_) in enumerate(flows)
        ),
        f'</tasks><sweep><axis of="payload" values="{" ".join(PAYLOADS)}"/></sweep></test>',
    ]
    return "\n".join(lines)


def flows_of(place: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The measured flows, by payload and flow."""
    shown = json.loads((place / "measures.json").read_text())
    return {(run["point"]["payload"], flow["flow"]): flow for run in shown["runs"] for flow in run["flows"]}


def refused_alike(world: World) -> bool:
    """Whether features beyond live benches are refused with one sentence; namespaces with a kernel switch say more."""
    beyond = (
        sweep(10)
        .replace('<switch name="sw"/>', '<switch name="sw" kind="mixed-criticality"/>')
        .replace('protocol="raw" from="h1" to="h5"', 'protocol="be" from="h1" to="h5"')
    )
    (world.folder / "beyond.xml").write_text(beyond)
    said = []
    for bench in ("netns", "lab"):
        done = world.run("run", "beyond.xml", "--bench", bench, "--out", f"beyond-{bench}")
        said.append([line for line in done.err.splitlines() if "this test cannot run on bench" not in line])
        sys.stdout.write(f"{bench} refuses with {done.code}: {said[-1][:1]}\n")
    return bool(said[1]) and set(said[1]) <= set(said[0])


def main() -> int:
    """Runs both benches in turns and prints a table; 1 where they disagree."""
    parser = argparse.ArgumentParser(description="one test file on two benches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lab-sweep-") as folder:
        world = World(Path(folder), HOSTS)
        try:
            world.enrol_all()
            good = refused_alike(world)
            (world.folder / "sweep.xml").write_text(sweep(options.count))
            found: dict[str, list[dict[tuple[str, int], dict[str, Any]]]] = {"netns": [], "lab": []}
            for turn in range(options.rounds):
                for bench, rounds in found.items():
                    place = f"{bench}-{turn}"
                    done = world.run(
                        "run", "sweep.xml", "--bench", bench, "--out", place, timeout=60.0 * len(PAYLOADS)
                    )
                    if done.code not in (0, 4):
                        sys.stdout.write(f"{bench}: ended with {done.code}: {done.err[-500:]}\n")
                        return 1
                    rounds.append(flows_of(world.folder / place))
        finally:
            world.close()
    return 0 if compared(found) and good else 1


def compared(found: dict[str, list[dict[tuple[str, int], dict[str, Any]]]]) -> bool:
    """Whether losses are equal and medians agree; prints a line for each payload and protocol."""
    good = True
    for payload in PAYLOADS:
        for kind, protocol in enumerate(("udp", "raw")):
            spans, lost = {}, {}
            for bench, rounds in found.items():
                flows = [
                    flow
                    for one in rounds
                    for (at, number), flow in one.items()
                    if at == payload and number % 10 == kind
                ]
                medians = [flow["rtt_ns"]["p50"] / 1000 for flow in flows]
                spans[bench] = (min(medians), max(medians))
                lost[bench] = sum(flow["lost"] for flow in flows)
            meet = max(low for low, _ in spans.values()) <= min(high for _, high in spans.values())
            good = good and meet and not any(lost.values())
            told = "; ".join(
                f"{bench} {low:.1f} to {high:.1f} us, {lost[bench]} lost"
                for bench, (low, high) in spans.items()
            )
            sys.stdout.write(
                f"{protocol} {payload:>6}: median round trip {told}: {'agree' if meet else 'DIFFER'}\n"
            )
    return good


if __name__ == "__main__":
    sys.exit(main())
