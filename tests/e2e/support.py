"""What the end-to-end tests share: the installed command, a scenario to run, and what a run must not leave behind."""

from __future__ import annotations

import json
import os
import re
import secrets
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "wiregauge"
SECONDS = 120


@dataclass
class Done:
    """What a finished command left."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Runner = Callable[..., Done]


def assert_measured(done: Done, place: Path) -> None:
    """A run of real frames was carried to its end and judged.

    What a noisy host does to it may make it INVALID (exit code 4): then its figures prove nothing of the network, and
    that it ran, and what it recorded, still stands. A limit that failed, or anything else, is no such excuse.
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
    """Options of a block by their codes."""
    found, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, at)
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + -(-length // 4) * 4
    return found


def frame_times(capture: Path, epoch_ns: int) -> list[float]:
    """When the frames of a capture were seen, s of the run's time: enhanced packet blocks.

    Times of the kernel are nanoseconds, those of the model picoseconds from a second that its interfaces state.
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
# Whatever a test starts inherits it, and so does what that starts: agents, programs that keep clocks, shells.
os.environ[_MARK] = f"{os.getpid()}-{secrets.token_hex(4)}"
_OF_A_BENCH = re.compile(r"(?:eth|br|p)\d+|(?:es|sw)-.*")
"""How a bench calls interfaces and namespaces: another name that comes or goes meanwhile is somebody else's."""


def interfaces_and_spaces(*interfaces: str) -> tuple[set[str], set[str], set[int]]:
    """What a run must not leave behind: interfaces and named namespaces as a bench names them, and processes.

    The processes are those that this process of tests started, directly or not. `interfaces` are looked at, too.
    """
    links = {path.name for path in _entries(Path("/sys/class/net"))}
    named = {path.name for place in ("/run/netns", "/var/run/netns") for path in _entries(Path(place))}
    return (
        {name for name in links if name in interfaces or _OF_A_BENCH.fullmatch(name)},
        {name for name in named if _OF_A_BENCH.fullmatch(name)},
        processes(),
    )


def processes() -> set[int]:
    """The living processes that this process of tests started, directly or not."""
    mark, found = f"{_MARK}={os.environ[_MARK]}".encode(), set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:  # it has ended, or is another user's
                continue
            if mark in environment.split(b"\0"):
                found.add(int(entry.name))
    return found


def until(happened: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Waits for an event that can only be looked at; fails, and says which, when it does not come."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)


def _entries(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []
