"""What watching a run costs it: a simulation followed for its live figures, and real frames with ten viewers.

`python -m benchmarks.watching [ROUNDS]` (`--smoke`: few). Runs with and without a viewer take turns, and the order
within a pair changes from pair to pair.

- A simulation is made with and without the thread that reads its segments, alone and then with a simulation on every
  processor. Bar: not more than 1 % longer, in time and in processor time of the simulating thread; it is missed where
  the 95 % interval of the median ratio lies above.
- A run between namespaces is made without a viewer, and with `wiregauge serve` and ten viewers that ask once a second.
  Bar: send error and latency, p50 and p99, are not worse: the 95 % interval of the median ratio begins at 1 or below.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import table
from wiregauge import _native
from wiregauge.config import load
from wiregauge.plan import as_json

SMOKE = "--smoke" in sys.argv
VIEWERS = 10
MOST_LONGER = 1.01
SIMULATED = """<test xmlns="urn:wiregauge:test:2" name="watching" seed="1">
<network><end-system name="a"/><end-system name="b"/><switch name="s"/><switch name="t"/>
<link between="a s" rate="1Gbit/s"/><link between="s t" rate="1Gbit/s"/><link between="t b" rate="1Gbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
<tasks><send flow="1" period="20us" payload="64B" count="{count}"/><receive flow="1"/></tasks></test>
"""
REAL = """<test xmlns="urn:wiregauge:test:2" name="viewed" seed="1">
<network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
<tasks warm-up="500ms"><send flow="1" period="1ms" payload="64B" count="{count}"/><receive flow="1"/></tasks></test>
"""


def in_turns(
    rounds: int, plain: Callable[[], Any], watched: Callable[[], Any]
) -> tuple[list[Any], list[Any]]:
    """Both in pairs, each first in every other pair."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for pair in range(rounds):
        for which in (0, 1) if pair % 2 else (1, 0):
            found[which].append((plain, watched)[which]())
    return found


def ratio_of(plain: Sequence[float], watched: Sequence[float]) -> tuple[float, float, float]:
    """The median of the ratios of pairs, and its 95 % interval by resampling pairs."""
    ratios = np.asarray(watched) / np.asarray(plain)
    draws = np.random.default_rng(1).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
    return float(np.median(ratios)), float(low), float(high)


def simulated(folder: Path, rounds: int) -> bool:
    """Prints the cost of live figures to a simulation."""
    file = folder / "simulated.xml"
    file.write_text(SIMULATED.format(count=20_000 if SMOKE else 600_000))
    plan = load(file).campaign
    network, run = as_json(plan.network), as_json(plan.runs[0])

    def once(*, live: bool) -> tuple[float, float]:
        with tempfile.TemporaryDirectory(dir=folder) as spool:
            reader = _native.LiveRun(run, f"{spool}/simulator", spool) if live else None
            begin, spent = time.perf_counter(), time.thread_time()
            _native.simulate_run(network, run, spool, None)
            took = time.perf_counter() - begin, time.thread_time() - spent
            if reader is not None:
                reader.stop()
            return took

    reached = True
    for busy in (False, True):
        over = threading.Event()

        def occupy(over: threading.Event = over) -> None:
            while not over.is_set():
                once(live=False)

        others = [
            threading.Thread(target=occupy) for _ in range(len(os.sched_getaffinity(0)) - 1 if busy else 0)
        ]
        for one in others:
            one.start()
        plain, watched = in_turns(rounds, lambda: once(live=False), lambda: once(live=True))
        over.set()
        for one in others:
            one.join()
        for column, name in enumerate(("time", "processor time of its thread")):
            ours, theirs = [one[column] for one in watched], [one[column] for one in plain]
            ratio, low, high = ratio_of(theirs, ours)
            within = low <= MOST_LONGER
            reached &= within
            what = f"simulation with live figures, {'all processors simulate' if busy else 'one simulates'}: {name}"
            print(f"{what} {statistics.median(ours):.2f} s, {ratio:.4f} of without [{low:.4f}, {high:.4f}]")
            table.add(
                what, f"{statistics.median(ours):.2f} s",
                peer="without", theirs=f"{statistics.median(theirs):.2f} s",
                ratio=ratio, bar="1.01", reached=within,
            )  # fmt: skip
    return reached


class Viewers:
    """A server of a folder, and viewers that ask for the live figures of its newest run once a second."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "wiregauge", "serve", str(folder), "--port", "0", "--no-token"]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        self._base = self._server.stdout.readline().strip().rstrip("/")
        self._over = threading.Event()
        self.answers = 0
        self._threads = [threading.Thread(target=self._view) for _ in range(VIEWERS)]
        for one in self._threads:
            one.start()

    def _view(self) -> None:
        while not self._over.wait(1.0):
            page = urllib.request.urlopen(f"{self._base}/?state=running").read().decode()
            for place in re.findall(r'href="(/run/[^"]*)"', page)[:1]:
                said = json.load(urllib.request.urlopen(f"{self._base}{place}/live"))
                self.answers += bool((said.get("live") or {}).get("now"))

    def close(self) -> None:
        """Ends them and the server."""
        self._over.set()
        for one in self._threads:
            one.join()
        self._server.terminate()
        self._server.wait()


def real(folder: Path, rounds: int) -> bool:
    """Prints what viewers cost a run of real frames."""
    file = folder / "real.xml"
    file.write_text(REAL.format(count=4000 if SMOKE else 8000))
    made = 0

    def once(*, viewed: bool) -> dict[str, float]:
        nonlocal made
        made += 1
        place = folder / "runs" / f"r{made}"
        place.parent.mkdir(exist_ok=True)
        viewers = Viewers(place.parent) if viewed else None
        run = [
            sys.executable,
            "-m",
            "wiregauge",
            "run",
            str(file),
            "--bench",
            "netns",
            "--out",
            str(place),
            "-q",
        ]
        try:
            done = subprocess.run(run, check=False, capture_output=True, text=True)
        finally:
            if viewers is not None:
                viewers.close()
        if not (place / "measures.json").exists():
            sys.exit(f"the run ended with {done.returncode}: {done.stderr}")
        if viewers is not None and not viewers.answers:
            sys.exit("no viewer saw a figure: the comparison would show nothing")
        flow = json.loads((place / "measures.json").read_text())["runs"][0]["flows"][0]
        return {
            f"{name} {p}": flow[f"{name}_ns"][p] for name in ("send_error", "latency") for p in ("p50", "p99")
        }

    plain, watched = in_turns(rounds, lambda: once(viewed=False), lambda: once(viewed=True))
    reached = True
    for name in plain[0]:
        ours, theirs = [one[name] for one in watched], [one[name] for one in plain]
        ratio, low, high = ratio_of(theirs, ours)
        within = low <= 1.0
        reached &= within
        mine, other = (statistics.median(values) / 1e3 for values in (ours, theirs))
        print(f"{name} with {VIEWERS} viewers: {mine:.1f} us, {ratio:.2f} of without [{low:.2f}, {high:.2f}]")
        table.add(
            f"{VIEWERS} viewers: {name}", f"{mine:.1f} us", peer="none", theirs=f"{other:.1f} us",
            ratio=ratio, bar="interval from 1 down", reached=within,
        )  # fmt: skip
    return reached


def main() -> int:
    """Measures both, prints, and fails where a bar is missed."""
    asked = [int(word) for word in sys.argv[1:] if not word.startswith("-")]
    rounds = 2 if SMOKE else asked[0] if asked else 12
    with tempfile.TemporaryDirectory() as scratch:
        reached = [simulated(Path(scratch), rounds), real(Path(scratch), rounds)]
    return 0 if SMOKE or all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
