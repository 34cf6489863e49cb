"""Progress reports of long computations."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Tell", "silent"]

Tell = Callable[[float], None]
"""Called with the share that is done, 0 to 1."""


def silent(share: float) -> None:
    """Reports no progress."""
    del share
