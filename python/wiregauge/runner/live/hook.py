"""A command that is started when an alarm is raised, with the alarms as JSON on its standard input.

One at a time, and one a second at most: alarms raised meanwhile go to the next. No shell is involved: the words of the
command are those of the user, and nothing of the test becomes one of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["Hook"]

_EVERY_S: Final = 1.0
_LONGEST_S: Final = 60.0
"""Time limit of a command, s."""
_AT_THE_END_S: Final = 10.0
"""How long a command is awaited at the end of the campaign, s."""
_MOST: Final = 100
"""Number of alarms for each of which a command is run."""
_CLONE_NEWNET: Final = 0x4000_0000


class Hook:
    """Starts `command`, on the network that the descriptor `network` stands for where one is given."""

    def __init__(self, command: Sequence[str], network: int | None = None) -> None:
        self.command = list(command)
        self.started = 0
        self.failed = 0
        self.reason: str | None = None
        """The reason why the first command failed."""
        self._network = network
        self._waiting: list[dict[str, Any]] = []
        self._more = 0
        self._changed = threading.Condition()
        self._closing = False
        self._running: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._serve, name="alarm command", daemon=True)
        self._thread.start()

    def tell(self, raised: Sequence[dict[str, Any]]) -> None:
        """Queues the command for these alarms."""
        with self._changed:
            room = _MOST - len(self._waiting)
            self._waiting += raised[:room]
            self._more += max(len(raised) - room, 0)
            self._changed.notify()

    def close(self) -> None:
        """Waits briefly for commands in progress, and ends those that take longer."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_AT_THE_END_S)
        running = self._running
        if running is not None and self._thread.is_alive():
            with contextlib.suppress(OSError):
                running.kill()
            self._thread.join(1.0)

    def as_json(self) -> dict[str, Any]:
        """The hook as stored in the run's manifest entry."""
        return {
            "command": self.command,
            "started": self.started,
            "failed": self.failed,
            "reason": self.reason,
        }

    def _serve(self) -> None:
        self._leave_enclosure()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closing)
                if not self._waiting:
                    return
                raised, more = self._waiting, self._more
                self._waiting, self._more = [], 0
            begun = time.monotonic()
            self._run(json.dumps({"schema": 1, "alarms": raised, "more": more}).encode() + b"\n")
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing, timeout=max(begun + _EVERY_S - time.monotonic(), 0.0)
                )

    def _leave_enclosure(self) -> None:
        """Moves this thread to the host's network; without the rights it stays in its own."""
        if self._network is not None:
            ctypes.CDLL(None, use_errno=True).setns(self._network, _CLONE_NEWNET)

    def _run(self, told: bytes) -> None:
        self.started += 1
        try:
            with subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            ) as running:
                self._running = running
                try:
                    running.communicate(told, timeout=_LONGEST_S)
                except subprocess.TimeoutExpired:
                    running.kill()
                    self._fail(f"it took longer than {_LONGEST_S:.0f} s and was ended")
                    return
        except OSError as error:
            self._fail(f"it cannot be started: {error.strerror}")
            return
        finally:
            self._running = None
        if running.returncode:
            self._fail(f"it ended with code {running.returncode}")

    def _fail(self, reason: str) -> None:
        self.failed += 1
        self.reason = self.reason or reason
