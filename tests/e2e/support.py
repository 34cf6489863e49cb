"""What the end-to-end tests share: the installed command, a scenario to run, and what a run must not leave behind."""

from __future__ import annotations

import json
import sys
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
        '<test xmlns="urn:wiregauge:test:1" name="e2e" seed="1" bench="netns">\n'
        f'<network>{nodes}<switch name="sw1"/>{links}</network>\n'
        f"<flows>{flows}</flows>\n{tasks}\n{extra}\n</test>\n"
    )


def interfaces_and_spaces() -> tuple[set[str], set[str], set[str]]:
    """Network interfaces, named namespaces and agents of this machine: what a run must not leave behind."""
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    named = {path.name for place in ("/run/netns", "/var/run/netns") for path in _entries(Path(place))}
    agents = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            # The program itself: a compiler or editor beside the tests may name it, too.
            if command.split(b"\0")[0].endswith(b"wiregauge-agent"):
                agents.add(entry.name)
    return links, named, agents


def _entries(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []
