"""UDP round trips through the agent's relay, compared with sockperf's ping-pong over the same veth pair.

Two end systems on one unshaped link. The two instruments take turns repeatedly, so that a noisy machine
disturbs both alike; each sends at the same rate, with the same payload, under the same scheduling class, on the
same cores. Both measure in the application: from just before the send call to just after the receive call.

Bar: median and p99 not above sockperf's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import table
from wiregauge import runner
from wiregauge.results import show_json
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.benches.netns.enclosure import ENCLOSED

SMOKE = "--smoke" in sys.argv
ROUNDS = 1 if SMOKE else 5
SECONDS = 1 if SMOKE else 3
PAYLOAD = 64
FIFO = 50
PORT = 21_111
RATES = (500,) if SMOKE else (500, 5_000)
PEER = shutil.which("sockperf") is not None
CLIENT, SERVER, ADDRESS = "es-mac", "es-sensor", "198.18.0.2"


def scenario(rate: int) -> str:
    """A relayed flow of `rate` messages per second; a link of 40 Gbit/s is left unshaped."""
    return f"""<test xmlns="urn:wiregauge:test:2" name="round-trip" seed="1">
  <network>
    <end-system name="mac"/> <end-system name="sensor"/>
    <link between="mac sensor" rate="40Gbit/s"/>
  </network>
  <flows> <flow id="20" protocol="udp" from="mac" to="sensor"/> </flows>
  <tasks warm-up="200ms">
    <send flow="20" period="{1_000_000 // rate}us" payload="{PAYLOAD}B" count="{rate * SECONDS}"/>
    <relay flow="20"/>
  </tasks>
</test>
"""


def relay(trials: runner.Trials, test: Path, folder: Path) -> dict[str, float]:
    """Round-trip percentiles in microseconds, as `wiregauge show --json` gives them."""
    judgement = trials.run(test, folder)
    if judgement.state != "complete":
        sys.exit(f"the run is incomplete: {judgement.reason}")
    shown: Any = show_json(judgement)
    (flow,) = shown["runs"][0]["flows"]
    if flow["lost"]:
        print(f"  note: {flow['lost']} of {flow['sent']} messages lost")
    return {name: flow["rtt_ns"][name] / 1000 for name in ("p50", "p99")}


def sockperf(rate: int) -> dict[str, float]:
    """Round-trip percentiles in microseconds from sockperf's own report."""
    cores = sorted(os.sched_getaffinity(0))

    def inside(space: str, core: int, *command: str) -> list[str]:
        return [
            "nsenter", f"--net=/run/netns/{space}",
            "taskset", "-c", str(core), "chrt", "--fifo", str(FIFO), *command,
        ]  # fmt: skip

    server = subprocess.Popen(
        inside(SERVER, cores[1 % len(cores)], "sockperf", "server", "-i", ADDRESS, "-p", str(PORT)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        report = subprocess.run(
            inside(
                CLIENT, cores[0], "sockperf", "ping-pong", "-i", ADDRESS, "-p", str(PORT), "-t", str(SECONDS),
                "--mps", str(rate), "-m", str(PAYLOAD), "--full-rtt",
            ),
            capture_output=True, text=True, timeout=SECONDS + 20, check=True,
        ).stdout  # fmt: skip
    finally:
        server.kill()
        server.wait()
    found = dict(re.findall(r"percentile ([\d.]+) *= *([\d.]+)", re.sub(r"\x1b\[[\d;]*m", "", report)))
    return {"p50": float(found["50.000"]), "p99": float(found["99.000"])}


def compare(folder: Path) -> None:
    """Takes turns at each rate and prints medians over the rounds and their ratio."""
    test = folder / "round-trip.xml"
    test.write_text(scenario(RATES[0]))
    with runner.open("netns") as trials:
        for rate in RATES:
            test.write_text(scenario(rate))
            ours: list[dict[str, float]] = []
            theirs: list[dict[str, float]] = []
            for turn in range(ROUNDS):
                # The first trial builds the network that both use.
                ours.append(relay(trials, test, folder / f"r{rate}-{turn}"))
                if PEER:
                    theirs.append(sockperf(rate))
            print(
                f"UDP round trip, {PAYLOAD} B, {rate} messages/s, {ROUNDS} rounds of {SECONDS} s (median of rounds)"
            )
            for name in ("p50", "p99"):
                a = statistics.median(each[name] for each in ours)
                b = statistics.median(each[name] for each in theirs) if theirs else None
                ratio, reached = (a / b, a <= b) if b else (None, None)
                verdict = {None: "", True: "within the bar", False: "ABOVE the bar"}[reached]
                beside = f"   sockperf {b:8.2f} us   ratio {ratio:.2f}" if b else ""
                print(f"  {name}: relay {a:8.2f} us{beside}   {verdict}")
                table.add(
                    f"UDP round trip, {rate}/s, {name}",
                    f"{a:.1f} us",
                    peer="sockperf",
                    theirs=f"{b:.1f} us" if b else "not here",
                    ratio=ratio,
                    bar="<= 1",
                    reached=reached,
                )
            print(f"  rounds: {json.dumps({'relay': ours, 'sockperf': theirs})}")


def main() -> int:
    if not PEER:
        print("round trip: sockperf is not installed (Debian: apt-get install sockperf); no ratio to it")
    if ENCLOSED not in os.environ:
        program = str(agent_program())
        os.environ[ENCLOSED] = "1"
        os.execv(
            program, [program, "enclose", "--", sys.executable, "-m", "benchmarks.round_trip", *sys.argv[1:]]
        )
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        compare(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
