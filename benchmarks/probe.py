"""`wiregauge probe` between two hosts of a lab, compared with sockperf and irtt between the same hosts, in turns.

The hosts are namespaces, each with its own agent. Compared are: the time from the command to a first figure, with
irtt's first line; median and p99 of round trips at equal rate, with sockperf's ping-pong, both real-time and each on
its core; and the share of 1 k, 10 k and 50 k messages per second that is sent, with sockperf's throughput.

Bars: a first figure within 1.5 s of irtt's; p50 and p99 not above sockperf's (median of the rounds); shares not below
its.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))

from lab_support import World

SMOKE = "--smoke" in sys.argv
ROUNDS = 1 if SMOKE else 5
SECONDS = 1 if SMOKE else 3
RATES = (1_000,) if SMOKE else (1_000, 10_000, 50_000)
ROUND_TRIP_RATE = 1_000
PAYLOAD = 64
FIFO = 50
PORT = 21_111
ADDRESS = "10.88.0.2"
SOCKPERF, IRTT = (shutil.which(name) is not None for name in ("sockperf", "irtt"))
LIVE = re.compile(r"^first figures")
"""A line with a figure that is printed while a probe runs."""


def flow_of(place: Path) -> dict[str, Any]:
    """The measured flow of a probe."""
    shown = json.loads((place / "measures.json").read_text())
    found: dict[str, Any] = shown["runs"][0]["flows"][0]
    return found


def probe(world: World, name: str, rate: int, *extra: str) -> Path:
    """Runs a probe at a rate; returns its run directory."""
    count = rate * SECONDS
    period = f"{1_000_000_000 // rate}ns"
    done = world.run(
        "probe", "alpha", "--period", period, "--count", count, "--payload", f"{PAYLOAD}B", "--out", name, *extra,
        timeout=120.0,
    )  # fmt: skip
    if not (world.folder / name / "measures.json").exists():
        sys.exit(f"the probe ended with {done.code}: {done.err}")
    return world.folder / name


def achieved(place: Path, rate: int) -> float:
    """The share of a rate at which messages were sent."""
    import polars as pl

    messages = pl.read_parquet(place / "messages" / "run-0000.parquet").filter(~pl.col("warm_up"))
    times = messages.select(first=pl.col("tx_app").min(), last=pl.col("tx_app").max(), n=pl.len()).row(0)
    return float((times[2] - 1) / ((times[1] - times[0]) / 1e12) / rate)


class Sockperf:
    """sockperf between the hosts, real-time, client and server on different cores."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cores = sorted(os.sched_getaffinity(0))

    def _on(self, core: int, host: str | None, *command: str) -> list[str]:
        enter = ["nsenter", "-t", str(self._world.pid), "--net", "--mount", "--"]
        inside = ["ip", "netns", "exec", host] if host is not None else []
        return [*enter, *inside, "taskset", "-c", str(core), "chrt", "--fifo", str(FIFO), *command]

    def run(self, mode: str, rate: int, *extra: str) -> str:
        """The report of a client."""
        first, second = self._cores[0], self._cores[1 % len(self._cores)]
        words = ["-i", ADDRESS, "-p", str(PORT)]
        server = subprocess.Popen(
            self._on(second, "alpha", "sockperf", "server", *words),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(0.3)
            said = subprocess.run(
                self._on(
                    first, None, "sockperf", mode, *words, "-t", str(SECONDS), "--mps", str(rate),
                    "-m", str(PAYLOAD), *extra,
                ),
                capture_output=True, text=True, timeout=SECONDS + 20, check=True,
            ).stdout  # fmt: skip
        finally:
            server.kill()
            server.wait()
        return re.sub(r"\x1b\[[\d;]*m", "", said)

    def round_trip(self) -> dict[str, float]:
        """Percentiles of the round-trip time, us."""
        said = self.run("ping-pong", ROUND_TRIP_RATE, "--full-rtt")
        found = dict(re.findall(r"percentile ([\d.]+) *= *([\d.]+)", said))
        return {"p50": float(found["50.000"]), "p99": float(found["99.000"])}

    def share(self, rate: int) -> float:
        """The share of a rate at which it sent."""
        found = re.search(r"Message Rate is (\d+) \[msg/sec\]", self.run("throughput", rate))
        assert found is not None
        return float(found[1]) / rate


def first_figures(world: World) -> tuple[float, float | None]:
    """Seconds from the command to the first line with a figure, of a probe and of irtt."""
    enter = ["nsenter", "-t", str(world.pid), "--net", "--mount", "--"]
    begin = time.monotonic()
    running = world.begin("probe", "alpha", "--round-trip", "--duration", "3s", "--out", f"first-{begin:.0f}")
    assert running.stderr is not None
    ours = next((time.monotonic() - begin for line in running.stderr if LIVE.search(line)), float("nan"))
    running.communicate()
    if not IRTT:
        return ours, None
    server = subprocess.Popen(
        [*enter, "ip", "netns", "exec", "alpha", "irtt", "server", "-b", ADDRESS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.3)
        begin = time.monotonic()
        client = subprocess.Popen(
            [*enter, "irtt", "client", "-i", "10ms", "-d", "1s", ADDRESS], stdout=subprocess.PIPE, text=True
        )
        assert client.stdout is not None
        theirs = next((time.monotonic() - begin for line in client.stdout if "rtt=" in line), float("nan"))
        client.communicate()
    finally:
        server.kill()
        server.wait()
    return ours, theirs


def tell(name: str, ours: float, theirs: float | None, unit: str, bar: str, *, reached: bool | None) -> None:
    """Prints a row: ours, the peer's, and whether the bar is reached."""
    ratio = ours / theirs if theirs else None
    beside = f"{theirs:.2f} {unit}" if theirs is not None else "not here"
    print(
        f"  {name}: {ours:.2f} {unit} beside {beside}; bar {bar}: {'reached' if reached else 'NOT reached'}"
    )
    peer = "irtt" if "first" in name else "sockperf"
    table.add(
        f"probe: {name}",
        f"{ours:.2f} {unit}",
        peer=peer,
        theirs=beside,
        ratio=ratio,
        bar=bar,
        reached=reached,
    )


def compare(world: World) -> None:
    """Runs all three comparisons, in turns."""
    peer = Sockperf(world)
    firsts = [first_figures(world) for _ in range(ROUNDS)]
    ours, theirs = statistics.median(a for a, _ in firsts), [b for _, b in firsts if b is not None]
    beside = statistics.median(theirs) if theirs else None
    tell(
        "first figure", ours, beside, "s", "1.5 s later", reached=beside is not None and ours <= beside + 1.5
    )
    trips: dict[str, list[dict[str, float]]] = {"probe": [], "sockperf": []}
    for turn in range(ROUNDS):
        flow = flow_of(probe(world, f"trip-{turn}", ROUND_TRIP_RATE, "--round-trip"))
        trips["probe"].append({name: flow["rtt_ns"][name] / 1000 for name in ("p50", "p99")})
        if SOCKPERF:
            trips["sockperf"].append(peer.round_trip())
    for name in ("p50", "p99"):
        a = statistics.median(one[name] for one in trips["probe"])
        b = statistics.median(one[name] for one in trips["sockperf"]) if SOCKPERF else None
        tell(f"round trip {name}", a, b, "us", "<= 1", reached=b is not None and a <= b)
    for rate in RATES:
        shares = [(achieved(probe(world, f"share-{rate}-{turn}", rate), rate)) for turn in range(ROUNDS)]
        others = [peer.share(rate) for _ in range(ROUNDS)] if SOCKPERF else []
        b = statistics.median(others) if others else None
        a = statistics.median(shares)
        tell(f"share of {rate}/s", a, b, "", ">= 1", reached=b is not None and a >= min(b, 0.999))
    print(f"  rounds: {json.dumps(trips)}")


def main() -> int:
    for name, there in (("sockperf", SOCKPERF), ("irtt", IRTT)):
        if not there:
            print(f"probe: {name} is not installed (Debian: apt-get install {name}); no ratio to it")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), {"alpha": ""})
        try:
            world.enrol_all()
            compare(world)
        finally:
            world.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
