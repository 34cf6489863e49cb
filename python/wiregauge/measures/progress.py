"""Progress of judging, explaining and drawing, reported to a listener if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["heard", "reached"]

Listener = Callable[[str, float], object]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard(by: Listener) -> Iterator[None]:
    """Reports each piece of work of this thread within the block to `by`: its name, and the share of it that is
    done."""
    token = _LISTENER.set(by)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reached(what: str, share: float) -> None:
    """Reports that a share of the work `what` is done, 0 to 1."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, share)
