"""Requests to stop: one exception in the main thread, moments in which they wait, and a second one that does not."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

__all__ = ["Interrupted", "exit_on_second_signal", "signals_deferred", "stoppable"]


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The user or the system has requested the campaign to stop."""


_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NAMES: Final = {
    signal.SIGINT: "stopped by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "its terminal went away",
}
_WAKING: Final = signal.SIGURG
"""A signal without a meaning of its own, used to wake the main thread; ignored where nothing handles it."""
_SAME_S: Final = 0.2
"""Requests at most this far apart, s, count as one that came by two ways: from a terminal and a process manager."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turns the first request to stop into `Interrupted` in the main thread; those that follow do nothing here."""
    asked = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            return
        asked = True
        _first.at = time.monotonic()
        if _deafness.depth:
            _deafness.missed = number
            return
        raise Interrupted(_NAMES[signal.Signals(number)])

    before = {number: signal.signal(number, stop) for number in _STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _First:
    """Time of the first request, s of the monotonic clock; None before."""

    at: float | None = None


_first = _First()


class _Deafness:
    """Whether requests wait at the moment, and the one that does."""

    depth = 0
    missed: int | None = None


_deafness = _Deafness()


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Defers a request to stop until the measurements are safe. For the main thread, within `stoppable`."""
    _deafness.depth += 1
    try:
        yield
    finally:
        _deafness.depth -= 1
    if not _deafness.depth and _deafness.missed is not None:
        number, _deafness.missed = _deafness.missed, None
        raise Interrupted(_NAMES[signal.Signals(number)])


_WAKE_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""After a request, when the main thread is woken in case it sleeps: the times from one to the next."""


def _look(signals: int, code: int) -> None:
    """Reads the numbers of signals as they come; ends the process with `code` at the second request.

    A signal that comes when the interpreter has last looked for signals and the waiting call has not yet begun does not
    interrupt that call. So after a request the main thread is woken a few times, by a signal without a meaning.
    """
    first: float | None = None
    wakes: list[float] = []
    while True:
        ready, _, _ = select.select([signals], [], [], wakes[0] if wakes else None)
        if not ready:
            wakes.pop(0)
            if (main := threading.main_thread().ident) is not None:
                signal.pthread_kill(main, _WAKING)
            continue
        number = os.read(signals, 1)
        if not number:
            break
        now = time.monotonic()
        if number[0] not in (_STOPS if first is None else _STOPS[:2]):
            continue
        wakes = list(_WAKE_S)
        if first is None:
            first = now
        elif now - first > _SAME_S:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("wiregauge: stopped at once, at a second request\n")
                sys.stderr.flush()
            os._exit(code)
    os.close(signals)


@contextlib.contextmanager
def exit_on_second_signal(code: int) -> Iterator[None]:
    """Ends the process at once, with `code`, when it is asked to stop a second time; for commands only.

    A thread does it, for the main thread may be in a long call. Files on disk are then those of a killed campaign:
    records that can be shown. The terminal's hang-up is no request of a person and counts as a first one only. One
    request that comes by two ways does nothing the second time, also where the first has already been obeyed.
    """
    ours, kernels = os.pipe()
    os.set_blocking(kernels, False)
    before = signal.set_wakeup_fd(kernels, warn_on_full_buffer=False)
    threading.Thread(target=_look, args=(ours, code), name="second request", daemon=True).start()
    _first.at = None
    handlers = {number: signal.getsignal(number) for number in (*_STOPS, _WAKING)}
    signal.signal(_WAKING, lambda _number, _frame: None)

    def unless_the_same(number: int, frame: FrameType | None) -> None:
        if _first.at is not None and time.monotonic() - _first.at <= _SAME_S:
            return
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        elif handler == signal.SIG_DFL:
            signal.signal(number, handler)
            signal.raise_signal(number)

    for number in _STOPS:
        signal.signal(number, unless_the_same)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(kernels)  # ends the thread
