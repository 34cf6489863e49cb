"""One program that runs beside the test: started, listened to, seen to end, stopped."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence

__all__ = ["Daemon"]

_KEPT = 20
_PATIENCE_S = 2.0


class Daemon:
    """Its output goes line by line to `listen`, on a thread of its own."""

    def __init__(self, name: str, command: Sequence[str], listen: Callable[[str], None]) -> None:
        """Starts it. Raises OSError where the program cannot be started."""
        self.name = name
        self._said: deque[str] = deque(maxlen=_KEPT)
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # the terminal's Ctrl-C is the testmaster's to handle
        )
        self._reader = threading.Thread(target=self._read, args=(listen,), daemon=True, name=name)
        self._reader.start()

    def _read(self, listen: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line.rstrip())
            listen(line)

    def ended(self) -> str | None:
        """Why it is gone, in its own last words; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        self._reader.join(_PATIENCE_S)
        last = next((line for line in reversed(self._said) if line), "it said nothing")
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{self.name} {how}: {last}"

    def stop(self) -> None:
        """Ends it in good order, or at once where it will not."""
        with contextlib.suppress(OSError):
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE_S)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
