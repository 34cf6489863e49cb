"""Suggests the name that was meant for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(written: str, known: Iterable[str]) -> str:
    """` (did you mean "latency"?)` for a name close to a known one; empty where none is close."""
    from difflib import get_close_matches  # only needed for errors

    found = get_close_matches(written, list(known), n=1, cutoff=0.7)
    return f' (did you mean "{found[0]}"?)' if found else ""
