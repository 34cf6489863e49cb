"""A long run at a high rate in a lab: neither agents nor the testmaster may take more memory or handles as it goes on.

`python -m campaigns.steady` (from `tests`) builds a lab of two hosts and sends 20 000 messages a second from one to the
other for ten minutes (`--minutes 60` for the hour). Every five seconds it reads of each agent and of the testmaster the
private memory (RssAnon, all of VmRSS beside it), the open files and the threads, as the kernel counts them. The first
tenth is for settling. Afterwards memory may grow by at most GROWTH_KIB, by the median of all slopes (Theil and Sen),
which no single reading decides; the least number of open files and threads in the last third must not exceed the
greatest in the first. The run itself must be complete. A record takes 16 bytes until the run ends: ten minutes need
2 GB of disk.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from lab_support import World

RATE = 20_000
MINUTES = 10.0
EVERY_S = 5.0
SETTLING = 0.1
"""Share of the run that is ignored."""
AROUND_S = 2.0
"""Seconds of warm-up and drain: with them an hour is within the default limit of hosts."""
GROWTH_KIB = 4_096
"""Allowed growth of memory by the slope, KiB: the variation of a run without a leak."""
LEAST_READINGS = 9
TEST = """<test xmlns="urn:wiregauge:test:2" name="steady" seed="1" bench="lab">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="1s" duration="{seconds}s" drain="200ms">
    <send flow="1" period="{period}ns" payload="64B"/><receive flow="1"/>
  </tasks>
</test>
"""


class Reading(Struct, frozen=True):
    """A reading of a process."""

    at_s: float
    private_kib: int
    resident_kib: int
    files: int
    threads: int


class Course(Struct, frozen=True):
    """The readings of a process, and its faults."""

    name: str
    readings: int
    private_kib: tuple[int, int]
    slope_kib_per_hour: float
    files: tuple[int, int]
    threads: tuple[int, int]
    problems: tuple[str, ...]

    def line(self) -> str:
        """A summary line."""
        (first, last), (files, files_last) = self.private_kib, self.files
        said = "; ".join(self.problems) or "flat"
        return (
            f"{self.name}: {first} to {last} KiB private, {self.slope_kib_per_hour:+.0f} KiB an hour "
            f"({self.readings} readings), {files} to {files_last} open files, "
            f"{self.threads[0]} to {self.threads[1]} threads: {said}"
        )


def read(pid: int, begin: float) -> Reading | None:
    """Reads a process; None where it is gone."""
    try:
        status = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
            if ":" in line
        )
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        private, resident = (int(status[key].split()[0]) for key in ("RssAnon", "VmRSS"))
        return Reading(time.monotonic() - begin, private, resident, files, int(status["Threads"]))
    except (OSError, KeyError):
        return None


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median slope of all pairs (Theil and Sen), of at most a thousand readings."""
    step = len(times) // 1_000 + 1
    points = list(zip(times, values, strict=True))[::step]
    pairs = ((a, b) for place, a in enumerate(points) for b in points[place + 1 :])
    return statistics.median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs)


def course(name: str, readings: Sequence[Reading], planned_s: float) -> Course:
    """Judges the readings of a process."""
    settled = [one for one in readings if one.at_s >= SETTLING * planned_s]
    if len(settled) < LEAST_READINGS:
        why = f"{len(settled)} readings, which say nothing; at least {LEAST_READINGS}"
        return Course(name, len(settled), (0, 0), 0.0, (0, 0), (0, 0), (why,))
    private = [one.private_kib for one in settled]
    per_s = slope([one.at_s for one in settled], private)
    grown = per_s * (settled[-1].at_s - settled[0].at_s)
    problems = []
    if grown > GROWTH_KIB:
        problems.append(f"its memory grows: {grown:.0f} KiB more; at most {GROWTH_KIB}")
    third = len(settled) // 3
    counted = {"open files": [one.files for one in settled], "threads": [one.threads for one in settled]}
    for what, counts in counted.items():
        before, after = max(counts[:third]), min(counts[-third:])
        if after > before:
            problems.append(
                f"its {what} grow: {before} at most in the first third, {after} at least in the last"
            )
    files, threads = counted.values()
    return Course(
        name,
        len(settled),
        (private[0], private[-1]),
        per_s * 3_600,
        (files[0], files[-1]),
        (threads[0], threads[-1]),
        tuple(problems),
    )


def agents(world: World) -> dict[str, int]:
    """The processes of the agents, by host."""
    found = {}
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            for host in world.hosts:
                if words[1:2] == ["serve"] and str(world.folder / "hosts" / host / "keys") in words:
                    found[f"agent of {host}"] = int(process.name)
    return found


def watched(
    running: subprocess.Popen[str], pids: Mapping[str, int], limit_s: float, every_s: float
) -> dict[str, list[Reading]]:
    """Readings of every process until the run is over; the stopping of threads afterwards is not included."""
    begin = time.monotonic()
    found: dict[str, list[Reading]] = {name: [] for name in pids}
    while running.poll() is None and time.monotonic() - begin < limit_s:
        for name, pid in pids.items():
            reading = read(pid, begin)
            if reading is not None:
                found[name].append(reading)
        time.sleep(every_s)
    return found


def begun(running: subprocess.Popen[str], place: Path) -> bool:
    """Waits until the run has its epoch; False where there is none."""
    while running.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            runs = json.loads((place / "manifest.json").read_text())["runs"]
            if runs and runs[-1]["epoch_realtime_ns"]:
                return True
        time.sleep(0.1)
    return False


def measured(world: World, rate: int, seconds: float, every_s: float) -> tuple[list[Course], str]:
    """Makes the run; returns the course of each process, and the faults of the run itself."""
    duration = max(round(seconds - AROUND_S), 1)
    (world.folder / "t.xml").write_text(TEST.format(seconds=duration, period=1_000_000_000 // rate))
    running = world.begin("run", "t.xml", "--out", "r")
    place = world.folder / "r"
    pids = {"testmaster": running.pid, **agents(world)}
    if not begun(running, place):
        return [], f"the run did not begin: {running.communicate()[1].strip()[-300:]}"
    found = watched(running, pids, seconds, every_s)
    _, err = running.communicate()
    manifest = json.loads((place / "manifest.json").read_text())
    judged = json.loads((place / "measures.json").read_text())
    (run,) = judged["runs"]
    (flow,) = run["flows"]
    sys.stdout.write(
        f"{flow['sent']} sent, {flow['lost']} lost, {flow['unknown']} unknown, {judged['validity']}, "
        f"{sum(file.stat().st_size for file in place.rglob('*') if file.is_file()) / 1e6:.0f} MB kept\n"
    )
    for check in run["checks"]:
        if check["grade"] != "ok":
            sys.stdout.write(f"{check['grade']}: {check['name']}: {check['reason'] or check['observed']}\n")
    trouble = (
        "" if manifest["state"] == "complete" else f"the run is not whole: {manifest['reason']} {err[-200:]}"
    )
    return [course(name, readings, seconds) for name, readings in found.items()], trouble


def main() -> int:
    """Runs the test and reports each process; 1 where one grows or the run is incomplete."""
    parser = argparse.ArgumentParser(description="memory and handles in a long run of a lab")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--rate", type=int, default=RATE, help="messages a second")
    parser.add_argument("--every", type=float, default=EVERY_S, help="seconds between two readings")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steady-") as folder:
        world = World(Path(folder), {"alpha": "", "beta": ""})
        try:
            world.enrol_all()
            courses, trouble = measured(world, options.rate, 60 * options.minutes, options.every)
        finally:
            world.close()
    for one in courses:
        sys.stdout.write(one.line() + "\n")
    if trouble:
        sys.stdout.write(trouble + "\n")
    return 1 if trouble or any(one.problems for one in courses) else 0


if __name__ == "__main__":
    sys.exit(main())
