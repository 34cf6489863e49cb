"""Without the search for garbage that refers to itself, where millions of objects are made that are all kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Within the block nothing is searched for unreachable cycles; what nobody refers to is freed at once, as ever.

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
