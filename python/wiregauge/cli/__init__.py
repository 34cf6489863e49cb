"""The command line. Every command ends with a documented code (`wiregauge.terminal`), never with a traceback."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from wiregauge.cli.program import app

__all__ = ["app", "main"]

_INCOMPLETE = 4
"""As in `wiregauge.terminal.exits`, which is not imported yet when a signal may come."""
_SAID = {
    signal.SIGINT: "stopped by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped: its terminal went away",
}


def main() -> NoReturn:
    """Entry point of the `wiregauge` command."""
    # Before anything is imported, which takes a moment in which a user may change their mind.
    for number in _SAID:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _stop)
    # Half of what a command allocates as it begins stays: looking through it for garbage after every 700 is in vain.
    gc.set_threshold(20_000, 10, 10)
    # Decoded row groups that wait to be looked at are most of what reading a long run takes in memory.
    os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "1")
    from wiregauge.cli.program import main as begin

    begin()


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """A signal outside of a run, which ends in its own way and keeps what was measured."""
    for each in _SAID:
        signal.signal(each, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(2, f"\nwiregauge: {_SAID[signal.Signals(number)]}\n".encode())
    raise SystemExit(_INCOMPLETE)


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module 'wiregauge.cli' has no attribute {name!r}")
    from wiregauge.cli.program import app

    return app
