"""How work that takes long says how far it has come."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Tell", "silent"]

Tell = Callable[[float], None]
"""Told the share that is done, 0 to 1."""


def silent(share: float) -> None:
    """Nobody is told."""
    del share
