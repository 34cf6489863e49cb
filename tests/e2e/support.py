"""Shared by the end-to-end tests: the installed command, a scenario to run, and checks for leftovers of a run."""

from __future__ import annotations

import json
import os
import re
import secrets
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

COMMAND = Path(sys.executable).parent / "wiregauge"
SECONDS = 120


class Done(Struct):
    """The result of a finished command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Runner = Callable[..., Done]


def assert_measured(done: Done, place: Path) -> None:
    """Asserts that a run of real frames was completed and judged.

    A noisy host may make it INVALID (exit code 4): its figures then say nothing about the network, but its records are
    still checked. A failed limit, or any other error, is not excused.
    """
    assert done.code in (0, 4), done.err
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete", manifest["reason"]
    judged = json.loads((place / "measures.json").read_text(encoding="utf-8"))
    assert judged["complete"], judged["reasons"]
    assert (done.code == 4) == (judged["validity"] == "INVALID"), judged["reasons"]


def scenario(
    tasks: str, *, flows: str = "", extra: str = "", systems: tuple[str, ...] = ("mac", "sensor")
) -> str:
    """A test on one switch; the flows default to UDP flow 10 from mac to sensor."""
    nodes = "".join(f'<end-system name="{name}"/>' for name in systems)
    links = "".join(f'<link between="{name} sw1" rate="1Gbit/s"/>' for name in systems)
    flows = flows or '<flow id="10" protocol="udp" from="mac" to="sensor"/>'
    return (
        '<test xmlns="urn:wiregauge:test:2" name="e2e" seed="1" bench="netns">\n'
        f'<network>{nodes}<switch name="sw1"/>{links}</network>\n'
        f"<flows>{flows}</flows>\n{tasks}\n{extra}\n</test>\n"
    )


def _options(data: bytes) -> dict[int, bytes]:
    """The options of a block, by code."""
    found, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, at)
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + -(-length // 4) * 4
    return found


def frame_times(capture: Path, epoch_ns: int) -> list[float]:
    """Times of a capture's frames, s of the run's time, from enhanced packet blocks.

    The kernel's times are nanoseconds, those of the model picoseconds after a second that its interfaces state.
    """
    data, at, found = capture.read_bytes(), 0, []
    unit, offset = 1.0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 1:
            options = _options(data[at + 16 : at + length - 4])
            unit = 10.0 ** (9 - options[9][0])
            (offset,) = struct.unpack("<q", options.get(14, bytes(8)))
        if kind == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            found.append(((high << 32 | low) * unit + offset * 1_000_000_000 - epoch_ns) / 1e9)
        at += length
    return found


_MARK = "WIREGAUGE_TESTED_BY"
# Inherited by all processes that a test starts, and their children: agents, clock programs, shells.
os.environ[_MARK] = f"{os.getpid()}-{secrets.token_hex(4)}"
_OF_A_BENCH = re.compile(r"(?:eth|br|p)\d+|(?:es|sw)-.*")
"""Names of a bench's interfaces and namespaces; others that come or go meanwhile are not ours."""


def interfaces_and_spaces(*interfaces: str) -> tuple[set[str], set[str], set[int]]:
    """Possible leftovers of a run: interfaces and namespaces with a bench's names, and processes.

    The processes are those started by this test process, directly or not. `interfaces` are included, too.
    """
    links = {path.name for path in _entries(Path("/sys/class/net"))}
    named = {path.name for place in ("/run/netns", "/var/run/netns") for path in _entries(Path(place))}
    return (
        {name for name in links if name in interfaces or _OF_A_BENCH.fullmatch(name)},
        {name for name in named if _OF_A_BENCH.fullmatch(name)},
        processes(),
    )


def processes() -> set[int]:
    """The living processes started by this test process, directly or not."""
    mark, found = f"{_MARK}={os.environ[_MARK]}".encode(), set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:  # it has ended, or belongs to another user
                continue
            if mark in environment.split(b"\0"):
                found.add(int(entry.name))
    return found


def until(happened: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Polls for an event; fails with its name when it does not occur."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)


def _entries(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []
