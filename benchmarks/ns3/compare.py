"""Frame-hops per second on one core compared with ns-3: one switched UDP network, one run of this program.

A frame-hop is one frame over one link. Ours writes a record of every frame at every point to segment files. ns-3's
equivalent is its trace of every frame at every device, headers only (pcap); also shown are ns-3 without traces, and
ns-3 with routers over point-to-point links, which is not an equal network. All take turns, so that a noisy
machine disturbs them alike; the best round of each counts. Speeds are per second of processor time, system calls
included. Ours includes building the network and closing the files, ns-3's only its event loop.

The libraries of ns-3 are those the distribution built. Debian's are a release build of CMake with assertions and log
statements left in (the latter off); ns-3's own profile "optimized" leaves both out and is faster.

Bar: 40 times ns-3's switches (bridges), with records on both sides.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import cargo, table

SMOKE = "--smoke" in sys.argv
ROUNDS = 1 if SMOKE else 3
SECONDS = 1 if SMOKE else 10
LONG = 2 if SMOKE else 1_000
BAR = 40.0
SOURCE = Path(__file__).with_name("switched_udp.cc")
MODULES = ("applications", "bridge", "csma", "point-to-point", "internet", "network", "core")
OURS = cargo.bench("wg-sim", "switched_udp", smoke=SMOKE)


def build(program: Path) -> str | None:
    """Compiles ns-3's side; returns the reason where that fails."""
    if shutil.which("g++") is None:
        return "install g++"
    libraries = [f"-lns3-{module}" for module in MODULES]
    command = ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(SOURCE), "-o", str(program), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    if "ns3/" in done.stderr and "No such file" in done.stderr:
        return "install libns3-dev"
    sys.exit(f"the ns-3 comparison does not compile:\n{done.stderr}")


def measure(*command: str) -> dict[str, Any]:
    """The report of one simulator's run."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def speed(result: dict[str, Any]) -> float:
    """Frame-hops per second."""
    return float(result["frame_hops"]) / float(result["cpu_s"])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="wiregauge-ns3-") as folder:
        program = Path(folder) / "switched_udp"
        if missing := build(program):
            print(f"ns-3 comparison skipped: {missing}")
            result = measure(*OURS, str(SECONDS))
            table.add(
                "simulated network, records kept",
                f"{speed(result) / 1e6:.2f} M hops/s",
                peer="ns-3",
                theirs="not here",
            )
            return 0
        best: dict[str, dict[str, Any]] = {}
        for _ in range(ROUNDS):
            for command in (
                (*OURS, str(SECONDS)),
                (str(program), "recorded", str(SECONDS), str(Path(folder) / "trace")),
                (str(program), "bridged", str(SECONDS)),
                (str(program), "routed", str(SECONDS)),
            ):
                result = measure(*command)
                name = result["simulator"]
                if name not in best or speed(result) > speed(best[name]):
                    best[name] = result
    ours = best.pop("wiregauge")
    print(f"32 end systems, 4 switches, 128 UDP flows, {SECONDS} s simulated, best of {ROUNDS}")
    print(
        f"  {'wiregauge':>14}: {speed(ours) / 1e6:6.3f} M frame-hops/s  ({ours['frame_hops']} hops), records on"
    )
    for name, theirs in best.items():
        ratio = speed(ours) / speed(theirs)
        verdict = ""
        if "recorded" in name:
            table.add(
                "simulated network, records kept", f"{speed(ours) / 1e6:.2f} M hops/s", peer="ns-3",
                theirs=f"{speed(theirs) / 1e6:.2f} M hops/s", ratio=ratio, bar=f">= {BAR:.0f}", reached=ratio >= BAR,
            )  # fmt: skip
            verdict = "  at or above the bar" if ratio >= BAR else f"  BELOW the bar of {BAR:.0f}"
        print(
            f"  {name:>14}: {speed(theirs) / 1e6:6.3f} M frame-hops/s  ({theirs['frame_hops']} hops)"
            f"  ratio {ratio:.1f}{verdict}"
        )
    long = measure(*OURS, str(LONG))
    print(
        f"  memory: at most {ours['peak_rss_kib']} KiB in {SECONDS} s of simulated time, "
        f"{long['peak_rss_kib']} KiB in {LONG} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
