"""Reads what agents and tracking report: JSON of any form, in which nothing may be missed for being absent."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["number", "parts"]


def number(obj: Mapping[str, object], key: str) -> int:
    """A counter of a report; absent counts as zero, as protobuf leaves zeros out."""
    value = obj.get(key, 0)
    return int(value) if isinstance(value, int | float) else 0


def parts(obj: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """The objects of a list in a report; anything else is left out."""
    value = obj.get(key)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
