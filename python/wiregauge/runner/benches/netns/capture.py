"""The capture of a switch of the netns bench, by a program of its own, since a switch has no agent."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wiregauge.plan import Node
from wiregauge.plan.base import convert
from wiregauge.records.reported import TaskReport
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.bench import BenchError
from wiregauge.runner.benches.netns.order import space_name

__all__ = ["SwitchCapture"]

_END_SECONDS: Final = 10.0


class SwitchCapture:
    """Captures all ports of a switch into one file, from its construction until `end`.

    `ports` maps a port's number to its rate in bit/s. With `hold_s` frames are held for so many seconds, and only
    those that `keep` names by then are written. Raises BenchError where the machine refuses.
    """

    def __init__(
        self, node: Node, ports: Mapping[int, int], file: Path, snap: int, hold_s: float | None = None
    ) -> None:
        self._name = node.name
        # All links of a switch have one rate, or no rate is written.
        rates = set(ports.values())
        rate = ["--rate", str(rates.pop())] if len(rates) == 1 else []
        taps = [part for port in sorted(ports) for part in ("--interface", f"p{port}={self._name}:{port}")]
        self._process = subprocess.Popen(
            [
                str(agent_program()),
                "capture",
                *taps,
                *rate,
                *("--out", str(file)),
                *("--snap", str(min(max(snap, 14), 65_535))),
                *("--netns", f"/run/netns/{space_name(node)}"),
                "--die-with-parent",
                *(() if hold_s is None else ("--hold", str(round(1000 * hold_s)))),
            ],
            stdin=subprocess.DEVNULL if hold_s is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # the terminal's Ctrl-C is the testmaster's to handle
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "capturing":
            _, said = self._process.communicate()
            raise BenchError(f"the capture on {self._name} did not start: {_last(said)}")

    def keep(self, from_ns: int, to_ns: int) -> None:
        """Has frames of an interval of CLOCK_REALTIME written; ignored by a capture that has ended."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"keep {from_ns} {to_ns}\n")
                self._process.stdin.flush()

    def end(self) -> TaskReport:
        """Ends the capture; returns the report of its task."""
        self._process.terminate()
        try:
            told, said = self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            told, said = self._process.communicate()
        try:
            return convert(json.loads(told), TaskReport)
        except json.JSONDecodeError:
            failure = f"the capture on {self._name} ended early: {_last(said)}"
            return TaskReport("capture", failure=failure)


def _last(said: str) -> str:
    lines = said.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
