"""Faults of a lab at seeded instants: no test hangs, records are kept, nothing is left, and grades are right.

`python -m campaigns.lab_faults` (from `tests`) builds labs of namespaces and runs a short test on them 200 times, in
`--jobs` labs side by side, each with namespaces, keys and spools of its own. Each test is struck once: an agent or the
testmaster is killed, asked to stop or stopped, a host vanishes or is booted anew, the control network or the network
under test is cut or flaps, a clock is set, a disk is full. Required of each: the command ends with a documented code
and without a traceback; after `lab fetch` the messages due a second before the strike are there; sent = delivered +
lost + unknown; a run that is incomplete, or whose clock was set, is not VALID; a cut network shows as lost or unknown
messages; hosts keep nothing and are free.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from campaigns.kills import SPOKEN, UNCLEAN

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from lab_support import World

COUNT = 3000
PERIOD_NS = 1_000_000
TEST = f"""<test xmlns="urn:wiregauge:test:2" name="faults" seed="1" bench="lab">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="0s" drain="200ms">
    <send flow="1" period="{PERIOD_NS // 1000}us" payload="64B" count="{COUNT}"/><receive flow="1"/>
  </tasks>
</test>
"""
END_S = 150.0
LAST_NS = 1_500_000_000
"""Time before a strike whose messages may be missing, with the lateness of a busy host, ns."""
CUT_NS = 100_000_000
"""Time before the last due message after which a cut must have lost some messages, ns."""
HOSTS = {"alpha": "", "beta": "3000000000,20000"}
WAYS = (
    "agent killed and back",
    "agent killed",
    "agent stopped for a while",
    "agent stopped",
    "testmaster killed",
    "testmaster asked to stop",
    "testmaster stopped for a while",
    "host vanished and back",
    "host vanished",
    "host booted anew",
    "control network cut for a while",
    "control network gone",
    "control network flaps",
    "network under test cut for a while",
    "network under test flaps",
    "clock set",
    "disk of a host full",
    "disk of the testmaster full",
)
FLAPS = 4
USUAL_JOBS = max(2, os.cpu_count() or 1)
"""Labs in parallel: a fault mostly waits for silence, leases and connections."""
USUAL_START_S = 3.0
"""Seconds from the command to the first message, before they are measured."""


class Fault(Struct):
    """A fault: its kind, its host, and its share of the run's time."""

    number: int
    way: str
    host: str
    at: float
    size: float
    struck: bool = False
    cut_ns: int = 0
    """Wall-clock time at which the network under test was cut, ns, even if a busy host was late."""
    ended: str = ""
    problems: list[str] = field(default_factory=list)


def faults(count: int, seed: int) -> list[Fault]:
    """Faults by seed, the same for any count; every kind occurs before one is repeated."""
    # Separate generators for kinds and the rest, so that faults do not depend on their count.
    order, draw = random.Random(f"ways of {seed}"), random.Random(seed)
    ways: list[str] = []
    while len(ways) < count:
        ways += order.sample(WAYS, len(WAYS))
    return [
        Fault(number, way, draw.choice(list(HOSTS)), draw.random(), draw.random())
        for number, way in enumerate(ways[:count])
    ]


class Lab(World):
    """A lab with the measured time from a command to the first message."""

    start_s = USUAL_START_S


def befall(one: Fault, world: Lab) -> None:
    """Runs the test with the fault, repairs the lab, and checks what is left."""
    name = f"r{one.number}"
    small = world.folder / f"small{one.number}"
    place = world.folder / name
    prepared(one, world)
    words = ["run", "t.xml", "--out", name]
    if one.way == "disk of the testmaster full":
        small.mkdir()
        kilobytes = 600 + int(400 * one.size)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(small)], check=True)
        place = small / "r"
        words[-1] = str(place)
    begin = time.monotonic()
    running = world.begin(*words)
    struck_ns = 0
    if wait_for_start(running, place):
        world.start_s = time.monotonic() - begin
        time.sleep(one.at * COUNT * PERIOD_NS / 1e9)
        one.struck, struck_ns = running.poll() is None, time.time_ns()
        strike(one, world, running)
    try:
        _, err = running.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        one.problems.append(f"did not end within {END_S:.0f} s")
        os.killpg(running.pid, signal.SIGKILL)
        _, err = running.communicate()
    mend(one, world)
    judge(one, world, place, running.returncode, err, struck_ns)
    if small.exists():
        subprocess.run(["umount", str(small)], check=True)


def prepared(one: Fault, world: Lab) -> None:
    """Prepares the lab for a fault before the run begins."""
    if one.way == "clock set":
        step = (1 if one.size < 0.5 else -1) * int(5_000_000 + 2e9 * one.size)
        world.order(f"kill {one.host}")
        after_s = round(world.start_s + one.at * COUNT * PERIOD_NS / 1e9)
        world.order(f"start {one.host} 0,0,{step}@{max(after_s, 1)}")
    if one.way == "disk of a host full":
        world.order(f"kill {one.host}")
        world.order(f"small {one.host} {40 + int(80 * one.size)}")
        world.order(f"start {one.host}")


def wait_for_start(running: subprocess.Popen[str], place: Path) -> bool:
    """Waits until the run has its epoch; False where there will be none."""
    end = time.monotonic() + END_S
    while running.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            runs = json.loads((place / "manifest.json").read_text())["runs"]
            if runs and runs[-1]["epoch_realtime_ns"]:
                time.sleep(max(0.0, runs[-1]["epoch_realtime_ns"] / 1e9 - time.time()))
                return True
        time.sleep(0.02)
    return False


def strike(one: Fault, world: World, running: subprocess.Popen[str]) -> None:
    """Causes the fault; a temporary one is over when this returns."""
    strike_host(one, world)
    match one.way:
        case "testmaster killed":
            os.killpg(running.pid, signal.SIGKILL)
        case "testmaster asked to stop":
            os.killpg(running.pid, signal.SIGINT if one.size < 0.5 else signal.SIGTERM)
        case "testmaster stopped for a while":
            os.killpg(running.pid, signal.SIGSTOP)
            time.sleep(5 * one.size)
            os.killpg(running.pid, signal.SIGCONT)
        case _:
            pass


def strike_host(one: Fault, world: World) -> None:
    """Executes orders before a pause, the pause, s, and orders after it."""
    host = one.host
    links = [f"{host} {port}" for port in (0, 1)]
    before, pause_s, after = {
        "agent killed and back": ([f"kill {host}"], 3 * one.size, [f"start {host}"]),
        "agent killed": ([f"kill {host}"], 0.0, []),
        "agent stopped for a while": ([f"stop {host}"], 5 * one.size, [f"continue {host}"]),
        "agent stopped": ([f"stop {host}"], 0.0, []),
        "host vanished and back": (
            [*(f"down {link}" for link in links), f"kill {host}"],
            4 * one.size,
            [*(f"up {link}" for link in links), f"start {host}"],
        ),
        "host vanished": ([*(f"down {link}" for link in links), f"kill {host}"], 0.0, []),
        "host booted anew": ([f"unplug {host}"], 4 * one.size, [f"boot {host}"]),
        "control network cut for a while": ([f"down {links[0]}"], 12 * one.size, [f"up {links[0]}"]),
        "control network gone": ([f"down {links[0]}"], 0.0, []),
        "network under test cut for a while": ([f"down {links[1]}"], 0.2 + one.size, [f"up {links[1]}"]),
    }.get(one.way, ([], 0.0, []))
    under_test = one.way.startswith("network under test")
    if one.way.endswith("network flaps") or one.way.endswith("test flaps"):
        cut_ns = flap(world, links[under_test], one.size)
    else:
        for order in before:
            world.order(order)
        cut_ns = time.time_ns()
    if under_test:
        one.cut_ns = cut_ns
    time.sleep(pause_s)
    for order in after:
        world.order(order)


def flap(world: World, link: str, size: float) -> int:
    """Takes a link down and up repeatedly, for varying times; returns when it first went down, ns."""
    first_ns = 0
    for turn in range(1, FLAPS + 1):
        world.order(f"down {link}")
        first_ns = first_ns or time.time_ns()
        time.sleep(0.1 + 0.2 * turn * size)
        world.order(f"up {link}")
        time.sleep(0.1 + 0.3 * (FLAPS - turn) * size)
    return first_ns


def mend(one: Fault, world: World) -> None:
    """Repairs the lab."""
    host = one.host
    match one.way:
        case "agent killed":
            world.order(f"start {host}")
        case "agent stopped":
            world.order(f"continue {host}")
        case "host vanished":
            for port in (0, 1):
                world.order(f"up {host} {port}")
            world.order(f"start {host}")
        case "host booted anew" | "clock set":
            # Restores the kernel's own boot time and clock.
            world.order(f"kill {host}")
            world.order(f"start {host}")
        case "control network gone":
            world.order(f"up {host} 0")
        case _:
            pass


def judge(one: Fault, world: World, place: Path, code: int, err: str, struck_ns: int) -> None:
    """Adds the violations in its results to a fault."""
    if UNCLEAN.search(err):
        one.problems.append(f"unclean: {err.strip()[-300:]}")
    killed = one.way == "testmaster killed"
    if code not in SPOKEN and not killed and not (one.way == "testmaster asked to stop" and code < 0):
        one.problems.append(f"ended with {code}: {err.strip()[-300:]}")
    freed(one, world)
    if not (place / "manifest.json").exists():
        one.ended = f"code {code}, nothing made: {err.strip()[-100:]}"
        if code == 0:
            one.problems.append("ended with 0 and made nothing")
        empty(one, world)
        return
    if json.loads((place / "manifest.json").read_text())["state"] != "complete":
        fetched = world.run("lab", "fetch", place, timeout=END_S)
        if fetched.code not in (0, 1, 4) and "small" not in str(place):
            one.problems.append(f"fetch ended with {fetched.code}: {fetched.err[-300:]}")
    if one.way == "disk of a host full":
        world.order(f"kill {one.host}")
        world.order(f"large {one.host}")
        world.order(f"start {one.host}")
    shown = world.run("show", place, "--json", timeout=END_S)
    if shown.code not in (0, 1, 4):
        one.problems.append(f"show ended with {shown.code}: {shown.err[-300:]}")
    manifest = json.loads((place / "manifest.json").read_text())
    told: dict[str, Any] = json.loads(shown.out) if shown.out.strip() else {}
    one.ended = f"code {code}, {manifest['state']}, {told.get('validity')}"
    graded(one, manifest, told, code)
    if "disk" not in one.way:
        nothing_missing(one, manifest, told, struck_ns)
        empty(one, world)


def freed(one: Fault, world: World) -> None:
    """Checks that every host is free again, once the lease of a lost testmaster is over."""
    end = time.monotonic() + 90
    while True:
        status = world.run("lab", "status", "--json", timeout=END_S)
        if status.code == 0 and not any(host["in_use"] for host in status.json()["hosts"]):
            return
        if time.monotonic() > end:
            one.problems.append(f"a host is not free: {status.out[-300:]}")
            return
        time.sleep(1.0)


def graded(one: Fault, manifest: dict[str, Any], told: dict[str, Any], code: int) -> None:
    """Checks that incomplete results are reported, every message has one outcome, and the fault is visible."""
    whole = manifest["state"] == "complete"
    if not whole and told.get("validity") == "VALID":
        one.problems.append("is not whole and VALID")
    if not whole and not manifest["reason"]:
        one.problems.append("does not say why it is not whole")
    if not whole and code == 0:
        one.problems.append("ended with 0 and is not whole")
    flows = [flow for run in told.get("runs", []) for flow in run["flows"]]
    for flow in flows:
        outcomes = {name: flow[name] for name in ("delivered", "lost", "unknown")}
        if flow["sent"] != sum(outcomes.values()):
            one.problems.append(f"sent {flow['sent']}, of which {outcomes}")
    agents = [agent for run in manifest["runs"] for agent in run["agents"].values()]
    stepped = sum(agent.get("clock_steps", 0) for agent in agents)
    if stepped and told.get("validity") == "VALID":
        one.problems.append("a clock was set and it is VALID")
    epochs = [run["epoch_realtime_ns"] for run in manifest["runs"]]
    cut = one.cut_ns > 0 and any(one.cut_ns + CUT_NS < epoch + COUNT * PERIOD_NS for epoch in epochs)
    if cut and whole and not any(flow["lost"] + flow["unknown"] for flow in flows):
        one.problems.append("a cut network lost nothing")


def nothing_missing(one: Fault, manifest: dict[str, Any], told: dict[str, Any], struck_ns: int) -> None:
    """Checks that all messages due a second before the strike were sent and recorded."""
    runs = manifest["runs"]
    epoch = runs[0]["epoch_realtime_ns"] if runs else 0
    due = min((struck_ns - epoch - LAST_NS) // PERIOD_NS, COUNT) if epoch and struck_ns else 0
    shown = [flow for run in told.get("runs", []) for flow in run["flows"]]
    sent = shown[0]["sent"] if shown else 0
    if sent < due:
        one.problems.append(f"{due} messages were due a second before the strike, {sent} are there")


def empty(one: Fault, world: World) -> None:
    """Checks that hosts keep nothing."""
    cleaned = world.run("lab", "clean", timeout=END_S)
    kept = [line for line in cleaned.out.splitlines() if not line.endswith(": nothing is kept")]
    if kept and one.ended.startswith(f"code {-signal.SIGKILL}"):
        return
    if kept or cleaned.code:
        one.problems.append(f"kept: {cleaned.out + cleaned.err}")
        world.run("lab", "clean", "--remove", timeout=END_S)


class Campaign:
    """The queue of faults and the results; labs take faults one by one, in parallel."""

    def __init__(self, chosen: list[Fault]) -> None:
        self.done: list[Fault] = []
        self._waiting = deque(chosen)
        self._turn = threading.Lock()

    def run(self, jobs: int) -> None:
        """Runs all faults, in `jobs` labs."""
        labs = [threading.Thread(target=self._in_labs, name=f"lab {number}") for number in range(jobs)]
        for lab in labs:
            lab.start()
        for lab in labs:
            lab.join()

    def _next(self) -> Fault | None:
        with self._turn:
            return self._waiting.popleft() if self._waiting else None

    def _in_labs(self) -> None:
        """Runs faults in one lab, and in a new one after an error of this program itself."""
        one = self._next()
        while one is not None:
            with tempfile.TemporaryDirectory(prefix="lab-faults-") as folder:
                one = self._in_lab(Path(folder), one)

    def _in_lab(self, folder: Path, one: Fault | None) -> Fault | None:
        world: Lab | None = None
        try:
            world = Lab(folder, HOSTS)
            world.enrol_all()
            (world.folder / "t.xml").write_text(TEST)
            while one is not None:
                befall(one, world)
                self._tell(one)
                one = self._next()
        except Exception:  # noqa: BLE001 - whatever broke is this fault's outcome, and the others still run
            assert one is not None
            one.problems.append(f"broke the campaign: {traceback.format_exc()[-600:]}")
            self._tell(one)
            return self._next()
        finally:
            if world is not None:
                world.close()
        return None

    def _tell(self, one: Fault) -> None:
        mark = "; ".join(one.problems) or "clean"
        place = f"{one.way} ({one.host}) at {one.at:4.0%}{'' if one.struck else ', too late'}"
        with self._turn:
            self.done.append(one)
            sys.stdout.write(f"{one.number:4d}  {place}  {one.ended}: {mark}\n")
            sys.stdout.flush()


def main() -> int:
    """Causes the faults, reports each, and summarises; 1 where something hung, was lost or was left."""
    parser = argparse.ArgumentParser(description="faults of a lab at seeded instants")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--jobs", type=int, default=USUAL_JOBS, help="labs side by side")
    options = parser.parse_args()
    chosen = faults(options.faults, options.seed)[options.first :]
    campaign, begin = Campaign(chosen), time.monotonic()
    campaign.run(max(min(options.jobs, len(chosen)), 1))
    bad = [one for one in campaign.done if one.problems]
    ways, struck = Counter(one.way for one in chosen), Counter(one.way for one in chosen if one.struck)
    for way in WAYS:
        sys.stdout.write(f"  {way}: {ways[way]}, {struck[way]} of them while the test went on\n")
    spent = time.monotonic() - begin
    sys.stdout.write(f"{len(campaign.done) - len(bad)} clean, {len(bad)} not, in {spent:.0f} s\n")
    return 1 if bad or len(campaign.done) < len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
