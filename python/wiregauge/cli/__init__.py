"""The command line. Every command ends with a documented code (`wiregauge.terminal`), never with a traceback."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from wiregauge.cli.program import app

__all__ = ["app", "main"]

_INCOMPLETE = 4


def main() -> NoReturn:
    """Entry point of the `wiregauge` command."""
    # Before anything is imported, which takes a moment in which a user may change their mind.
    signal.signal(signal.SIGINT, _stop)
    # Decoded row groups that wait to be looked at are most of what reading a long run takes in memory.
    os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "1")
    from wiregauge.cli.program import main as begin

    begin()


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ctrl-C outside of a run, which ends in its own way and keeps what was measured."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(2, b"\nwiregauge: stopped by Ctrl-C\n")
    raise SystemExit(_INCOMPLETE)


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module 'wiregauge.cli' has no attribute {name!r}")
    from wiregauge.cli.program import app

    return app
