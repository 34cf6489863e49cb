"""Kills campaigns in every known way, at seeded instants: each must end, report it, keep its records, leave nothing.

`python -m campaigns.kills` (from `tests`) runs a short test on real frames 100 times and strikes each once: the
command, the testmaster or an agent is killed, asked to stop or stopped for a while, a link is cut, or the disk is full.
Required of each: the command ends with a documented code and without a traceback; the results are readable, never
VALID unless complete, with sent = delivered + lost + unknown; every message due a second before the strike is there;
and no process, namespace, interface, queue or spool is left. The clock of the machine is never stepped, since all
other programs read it too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

COMMAND = Path(sys.executable).parent / "wiregauge"
COUNT = 3000
PERIOD_NS = 1_000_000
TEST = f"""<test xmlns="urn:wiregauge:test:2" name="kills" seed="1" bench="netns">
  <network><end-system name="mac"/><end-system name="sensor"/><switch name="sw1"/>
    <link between="mac sw1" rate="1Gbit/s"/><link between="sensor sw1" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="mac" to="sensor"/></flows>
  <tasks warm-up="0s"><send flow="10" period="{PERIOD_NS // 1000}us" payload="64B" count="{COUNT}"/><receive flow="10"/>
    <capture on="sw1"/></tasks>
</test>
"""
UNCLEAN = re.compile(r"Traceback|internal error|panicked|RUST_BACKTRACE|please report|Exception ignored")
SPOKEN = {0, 3, 4}
END_S = 120.0
PAUSE_S = 3.0
LAST_NS = 1_000_000_000
"""Time before a strike whose messages may be missing, ns."""
LATE_NS = 500_000_000
"""Lateness of a busy host in sending and writing, ns."""
_MARK = "WIREGAUGE_KILLS"
_EARLY = 0.2
"""Share of the strikes before the first record."""
_RECORDS = 4096
"""Size of a partition, B, above which it has records besides its schema."""


class Strike(Struct):
    """A strike: its target, its kind, and its time.

    `at` is a share of an undisturbed campaign's time: from 0 to 1 of that between its first record and its end, below
    0 of that before its first record, with -1 for the start of the command. A disk is full from the start; `at` is its
    size.
    """

    number: int
    target: str
    how: str
    at: float
    met_nobody: bool = False
    """Whether the target did not exist yet, or no longer."""
    ended: str = ""
    faults: list[str] = field(default_factory=list)


TARGETS = (
    *(("command", name) for name in ("KILL", "TERM", "INT", "STOP")),
    *(("testmaster", name) for name in ("KILL", "TERM", "INT", "STOP")),
    *(("agent", name) for name in ("KILL", "TERM", "STOP", "STAY")),
    ("link", "cut"),
    ("disk", "full"),
)


def strikes(count: int, seed: int, targets: Sequence[tuple[str, str]] = TARGETS) -> list[Strike]:
    """Strikes by seed; every kind occurs before one is repeated."""
    draw = random.Random(seed)
    ways: list[tuple[str, str]] = []
    while len(ways) < count:
        ways += draw.sample(targets, len(targets))
    return [
        Strike(number, *way, draw.random() - (draw.random() < _EARLY and way[0] != "disk"))
        for number, way in enumerate(ways[:count])
    ]


def left_behind(mark: str) -> tuple[object, ...]:
    """Interfaces, named namespaces and queues of this machine, and the processes of the campaign with this mark."""
    links = frozenset(path.name for path in Path("/sys/class/net").iterdir())
    places = [Path(place) for place in ("/run/netns", "/var/run/netns")]
    named = frozenset(path.name for place in places if place.is_dir() for path in place.iterdir())
    queues = subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True, check=False).stdout
    return links, named, queues, frozenset(_marked(mark))


def _marked(mark: str) -> Iterator[int]:
    """Processes with the mark of a campaign in their environment, even without their parents."""
    wanted = f"{_MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _processes(fits: Callable[[list[str]], bool]) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if fits(line):
                found.append(int(entry.name))
    return sorted(found)


def mine(folder: Path, *words: str) -> list[int]:
    """Processes of this folder's campaign whose command line has all these words."""
    own = {str(folder / "r"), str(folder / "small" / "r"), str(folder)}
    return _processes(
        lambda line: (
            all(any(word in part for part in line) for word in words)
            and any(part.startswith(tuple(own)) for part in line)
        )
    )


class Course(Struct, frozen=True):
    """The timing of an undisturbed campaign: seconds to its first record, and from there to its end."""

    before_s: float
    after_s: float


def _await_record(process: subprocess.Popen[str], place: Path) -> None:
    """Waits until an agent has written a record, or none will come."""
    end = time.monotonic() + END_S
    while process.poll() is None and time.monotonic() < end:
        for partition in place.glob("spool/run-0000/*/*.arrows"):
            with contextlib.suppress(FileNotFoundError):
                if partition.stat().st_size > _RECORDS:
                    return
        time.sleep(0.02)


Hit = Callable[[Strike, subprocess.Popen[str], Path], None]
"""Strikes the campaign of a folder, whose command is the process."""


def strike_once(one: Strike, course: Course, test: str = TEST, hit: Hit | None = None) -> None:
    """Runs a campaign, strikes it, and checks what is left. `hit` replaces the usual strike."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder, mark = Path(name), Path(name).name
        before = left_behind(mark)
        (folder / "t.xml").write_text(test)
        out = folder / ("small/r" if one.target == "disk" else "r")
        words = [str(COMMAND), "run", str(folder / "t.xml"), "--out", str(out)]
        if one.target == "disk":
            (folder / "small").mkdir()
            size = 600 + int(600 * one.at)
            script = (
                f'mount -t tmpfs -o size={size}k none "$0/small" && "$@"; code=$?; '
                'cp -a "$0/small/r" "$0/r"; exit $code'
            )
            words = ["unshare", "--mount", "sh", "-c", script, str(folder), *words]
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        struck_ns = 0
        if one.target != "disk":
            if one.at < 0:
                time.sleep((1 + one.at) * course.before_s)
            else:
                _await_record(process, out)
                time.sleep(one.at * course.after_s)
            struck_ns = time.time_ns()
            (hit or strike)(one, process, folder)
        try:
            _, err = process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            one.faults.append(f"did not end within {END_S:.0f} s")
            os.killpg(process.pid, signal.SIGKILL)
            _, err = process.communicate()
        _judge(one, process.returncode, err, folder, struck_ns)
    end = time.monotonic() + 20
    while left_behind(mark) != before and time.monotonic() < end:
        time.sleep(0.1)
    now = left_behind(mark)
    one.faults += [f"left behind: {a} became {b}" for a, b in zip(before, now, strict=True) if a != b]


def strike(one: Strike, process: subprocess.Popen[str], folder: Path) -> None:
    """Kills, stops or cuts the target of a strike."""
    if one.target == "link":
        for agent in mine(folder, "wiregauge-agent", "serve")[:1]:
            subprocess.run(
                ["nsenter", f"--net=/proc/{agent}/ns/net", "ip", "link", "set", "eth0", "down"],
                capture_output=True,
                check=False,
            )
        return
    struck = {
        "command": [process.pid],
        "testmaster": mine(folder, "-m", "wiregauge", "run")[-1:],
        "agent": mine(folder, "wiregauge-agent", "serve")[-1:],
    }[one.target]
    number = signal.Signals[f"SIG{'STOP' if one.how == 'STAY' else one.how}"]
    one.met_nobody = not struck
    for pid in struck:
        try:
            os.kill(pid, number)
            if one.how == "STOP":
                time.sleep(PAUSE_S)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def _judge(one: Strike, code: int, err: str, folder: Path, struck_ns: int) -> None:
    if UNCLEAN.search(err):
        one.faults.append(f"unclean: {err.strip()[-300:]}")
    place = folder / "r"
    killed = one.how == "KILL" and one.target in ("command", "testmaster")
    # Struck at its end, with everything written: the code is the system's own.
    ending = one.how in ("TERM", "INT") and (place / "report.html").exists()
    if code not in SPOKEN and not killed and not (ending and _signalled(code)):
        one.faults.append(f"ended with {code}: {err.strip()[-300:]}")
    if not (place / "manifest.json").exists():
        one.ended = f"code {code}, nothing made"
        if code == 0:
            one.faults.append("ended with 0 and made nothing")
        return
    shown = subprocess.run(
        [str(COMMAND), "show", str(place), "--json"],
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    if UNCLEAN.search(shown.stderr) or shown.returncode not in (0, 1, 4):
        one.faults.append(f"show ended with {shown.returncode}: {shown.stderr.strip()[-300:]}")
        return
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    told: dict[str, Any] = json.loads(shown.stdout) if shown.stdout.strip() else {}
    whole = manifest["state"] == "complete"
    one.ended = f"code {code}, {manifest['state']}"
    if whole != (code == 0) and not (whole and (code == 4 or killed or ending)):
        one.faults.append(f"ended with {code} and is {manifest['state']}")
    _balanced(one, manifest, told)
    if one.target not in ("disk",):
        _nothing_missing(one, manifest, told, struck_ns)
    if (place / "spool").exists():
        one.faults.append("a spool is left")


def _balanced(one: Strike, manifest: dict[str, Any], told: dict[str, Any]) -> None:
    """Checks that incomplete results are reported so, and that every sent message has one outcome."""
    if manifest["state"] != "complete":
        if told.get("validity") == "VALID":
            one.faults.append("is not whole and VALID")
        if not manifest["reason"]:
            one.faults.append("does not say why it is not whole")
    for run in told.get("runs", []):
        for flow in run["flows"]:
            fates = {fate: flow[fate] for fate in ("delivered", "lost", "unknown")}
            if flow["sent"] != sum(fates.values()):
                one.faults.append(f"sent {flow['sent']}, of which {fates}")


def _signalled(code: int) -> bool:
    """Whether TERM or INT ended a process, or a child whose code it passes on."""
    return code in {end for n in (signal.SIGTERM, signal.SIGINT) for end in (-n, 128 + n)}


def _nothing_missing(one: Strike, manifest: dict[str, Any], told: dict[str, Any], struck_ns: int) -> None:
    """Checks that all messages due a second before the strike were sent and recorded."""
    entries, runs = manifest["runs"], told.get("runs", [])
    epoch = entries[0]["epoch_realtime_ns"] if entries else 0
    due = min((struck_ns - epoch - LAST_NS - LATE_NS) // PERIOD_NS, COUNT) if epoch else 0
    sent = runs[0]["flows"][0]["sent"] if runs and runs[0]["flows"] else 0
    if sent < due:
        one.faults.append(f"{due} messages were due a second before the strike, {sent} are there")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def undisturbed(test: str = TEST, within_s: float = END_S) -> Course:
    """The timing of an undisturbed campaign; strikes come at most `within_s` after its first record.

    Raises RuntimeError where it cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        place = Path(name) / "r"
        (Path(name) / "t.xml").write_text(test)
        begin = time.monotonic()
        process = subprocess.Popen(
            [str(COMMAND), "run", "t.xml", "--out", "r"],
            cwd=name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        _await_record(process, place)
        recorded = time.monotonic()
        _, err = process.communicate()
        if not (place / "report.html").exists():
            raise RuntimeError(err.strip())
        return Course(recorded - begin, min(time.monotonic() - recorded, within_s))


def main(
    count: int = 100,
    targets: Sequence[tuple[str, str]] = TARGETS,
    test: str = TEST,
    hit: Hit | None = None,
    within_s: float = END_S,
) -> int:
    """Strikes campaigns, reports each, and summarises; 1 where something was silent, lost or left."""
    parser = argparse.ArgumentParser(description="kill campaigns at seeded instants")
    parser.add_argument("--kills", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    options = parser.parse_args()
    if shutil.which("tc") is None:
        _tell("kills: needs tc (Debian: apt-get install iproute2)")
        return 1
    # Started in the background of a shell, campaigns would ignore INT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    course = undisturbed(test, within_s)
    struck = strikes(options.kills, options.seed, targets)[options.first :]
    _tell(
        f"kills: {len(struck)} of seed {options.seed}; undisturbed, a campaign has its first record after "
        f"{course.before_s:.1f} s and ends {course.after_s:.1f} s later"
    )
    begin = time.monotonic()
    for one in struck:
        strike_once(one, course, test, hit)
        mark = ("; ".join(one.faults) or "clean") + (", and met nobody" if one.met_nobody else "")
        _tell(f"{one.number:4d}  {one.target:10s} {one.how:7s} at {one.at:4.0%}  {one.ended}: {mark}")
    bad = [one for one in struck if one.faults]
    _tell(f"kills: {dict(Counter(f'{one.target} {one.how}' for one in struck))}")
    _tell(f"kills: {len(struck) - len(bad)} clean, {len(bad)} not, in {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
