"""How far judging, explaining and drawing are, for whoever wants to show it; without a listener nothing is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["heard", "reached"]

Listener = Callable[[str, float], object]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard(by: Listener) -> Iterator[None]:
    """`by` is told of each piece of work that this thread does meanwhile: what it is, and which share of it is done."""
    token = _LISTENER.set(by)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reached(what: str, share: float) -> None:
    """So much of it is done, 0 to 1."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, share)
