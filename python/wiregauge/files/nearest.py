"""Which name was meant, where one was written that there is not."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(written: str, known: Iterable[str]) -> str:
    """` (did you mean "latency"?)` for a name that is nearly one of those; empty where none is near."""
    from difflib import get_close_matches  # only where something is wrong

    found = get_close_matches(written, list(known), n=1, cutoff=0.7)
    return f' (did you mean "{found[0]}"?)' if found else ""
