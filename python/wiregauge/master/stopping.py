"""Requests to stop: one exception in the main thread, and moments in which they wait."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

__all__ = ["Interrupted", "deaf", "stoppable"]


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The user or the system asked the campaign to stop."""


_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NAMES: Final = {
    signal.SIGINT: "stopped by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "its terminal went away",
}


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turns the first request to stop into `Interrupted` in the main thread."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for each in _STOPS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(_NAMES[signal.Signals(number)])

    before = {number: signal.signal(number, stop) for number in _STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Requests to stop wait until what was measured is safe."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
