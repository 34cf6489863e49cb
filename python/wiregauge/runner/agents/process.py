"""An agent of this machine, as a process that ends with this one."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from pathlib import Path
from typing import Final

from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.bench import BenchError

__all__ = ["AgentProcess"]

_START_S: Final = 10.0
_LEAVE_S: Final = 2.0
_LINES: Final = 50
"""Number of lines of its errors that are remembered."""


class AgentProcess:
    """An agent that was started; `called` is its name in a sentence.

    It serves `socket` and writes below `spool`. `space`: its interfaces are those of this network namespace.
    """

    def __init__(self, called: str, socket: Path, spool: Path, space: str | None = None) -> None:
        self._called = called
        self.address = f"unix:{socket}"
        within = [] if space is None else ["--netns", f"/run/netns/{space}"]
        command = [str(agent_program()), "serve", "--listen", self.address, "--spool", str(spool), *within]
        self._process = subprocess.Popen(
            [*command, "--die-with-parent", "--announce"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # the terminal's Ctrl-C is the testmaster's to handle
        )
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._drain, daemon=True)

    def await_listening(self) -> str:
        """Waits until the agent listens; its address. Raises BenchError where it does not start."""
        assert self._process.stdout is not None
        stdout, line = self._process.stdout, [""]
        waiter = threading.Thread(target=lambda: line.append(stdout.readline()), daemon=True)
        waiter.start()
        waiter.join(_START_S)
        if line[-1].startswith("listening "):
            self._reader.start()
            return self.address
        self._process.kill()
        waiter.join()
        _, said = self._process.communicate()
        lines = said.strip().splitlines()
        raise BenchError(f"{self._called} did not start: {lines[-1] if lines else 'it said nothing'}")

    def _drain(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.rstrip())
            del self._errors[:-_LINES]

    def failure(self) -> str | None:
        """The reason why it is gone, or None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how}: {self._errors[-1]}" if self._errors else how

    def give_up(self) -> str | None:
        """Kills it; returns why it was silent, where its process shows it."""
        if self._process.poll() is not None:
            return None
        stopped = _state(self._process.pid) in ("T", "t")
        self._process.kill()
        return "its process was stopped (SIGSTOP)" if stopped else None

    def terminate(self) -> float:
        """Asks it to end; returns the time by which it should have, s of the monotonic clock."""
        with contextlib.suppress(OSError):
            self._process.terminate()
        return time.monotonic() + _LEAVE_S

    def close(self, end: float | None = None) -> None:
        """Ends it, by force if it is still there at `end`, s of the monotonic clock."""
        end = self.terminate() if end is None else end
        try:
            self._process.wait(timeout=max(end - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _state(process: int) -> str:
    """The state letter of a process, proc(5); empty where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
