"""Suspends the garbage collector's search for cycles while millions of lasting objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspends the search for unreachable cycles within the block; unreferenced objects are still freed at once.

    The search walks over all objects again and again while their number grows: of a run of very many flows it took a
    third of the time of judging, and found nothing.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
