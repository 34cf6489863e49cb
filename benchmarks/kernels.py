"""Runs the benchmarks of the crates one after another, with table rows for those that have a bar.

`python -m benchmarks.kernels [--smoke]`. Each prints its own figures, which its head explains.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from benchmarks import cargo, table

SMOKE = "--smoke" in sys.argv
BENCHES = (
    ("wg-core", "cores"),
    ("wg-track", "tracking"),
    ("wg-agent", "servicing"),
    ("wg-bound", "afdx"),
    ("wg-sim", "hops"),
)

_SHARED = (("58 end systems", 0.9), ("58 by UDP", 0.9), ("1000 end systems", 0.85))
"""The networks that are shared out, in the order in which they are told, with the least shares."""


def run(crate: str, name: str) -> str:
    """The output of a benchmark. One that misses its bar exits with 1, which is no failure of this program."""
    command = cargo.bench(crate, name, smoke=SMOKE)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"kernels: {crate} {name} printed nothing: {done.stderr.strip()[-500:]}")
    return done.stdout


def hops(said: str) -> None:
    """Adds the simulator's row, with its bar: virtual links with records in files."""
    found = re.search(r"records in segment files: *([\d.]+) M frame-hops/s", said)
    if found is None:
        sys.exit("kernels: the simulator's benchmark gave no speed of records in segment files")
    speed = float(found[1])
    table.add("simulator, virtual links", f"{speed:.2f} M hops/s", bar=">= 5 M/s", reached=speed >= 5)
    found = re.search(r"takes ([\d.]+) times as long", said)
    if found is None:
        sys.exit("kernels: the simulator's benchmark did not compare the large network with the small one")
    ratio = float(found[1])
    table.add("hop of 1000 end systems against 58", f"{ratio:.2f}", bar="<= 1.5", reached=ratio <= 1.5)
    shares = re.findall(r"two runs at once gain [\d.]+: ([\d.]+) of that", said)
    if len(shares) != len(_SHARED):
        sys.exit("kernels: the simulator's benchmark did not share out each network among two threads")
    for (network, least), share in zip(_SHARED, map(float, shares), strict=True):
        table.add(
            f"two threads, {network}, of what two runs gain",
            f"{share:.2f}",
            bar=f">= {least}",
            reached=share >= least,
        )


def servicing(said: str) -> None:
    """Adds a row for each figure of the agent and of the calculus; a bar is the allowed maximum."""
    for row in (json.loads(line) for line in said.splitlines() if line.startswith("{")):
        figure, bar = row["value"], row["bar"]
        table.add(row["figure"].replace("_", " "), f"{figure:g}", bar=f"<= {bar:g}", reached=figure <= bar)


def main() -> int:
    """Runs all of them."""
    for crate, name in BENCHES:
        said = run(crate, name)
        print(f"{crate} {name}\n{said}")
        if name == "hops":
            hops(said)
        if name in ("servicing", "afdx"):
            servicing(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
