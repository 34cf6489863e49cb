"""Calibrations of earlier versions, as this one writes them. Their files and numbers stay what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["SCHEMA", "upgraded"]

SCHEMA: Final = 2
"""2: `timestamps`, `timestamp_ns`, `pacing` and keys in `_bps`."""

_OF_A_CASE: Final = {
    "mode": "pacing",
    "intended_bit_per_s": "intended_bps",
    "line_bit_per_s": "line_bps",
    "stamps": "timestamps",
}
_OF_TIMESTAMPS: Final = {"mean_bit_per_s": "mean_bps"}
_OF_A_POINT: Final = {"stamp_ns": "timestamp_ns"}


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """A calibration in the newest schema; one that cannot be upgraded, being damaged or of the future, as it is."""
    if content.get("schema") != SCHEMA - 1:
        return content
    new = {**content, "schema": SCHEMA}
    if isinstance(results := content.get("results"), dict):
        new["results"] = dict(results)
        for key, names in (("cases", _OF_A_CASE), ("points", _OF_A_POINT)):
            if isinstance(parts := results.get(key), list):
                new["results"][key] = [_part(part, names) for part in parts]
    return new


def _part(part: object, names: Mapping[str, str]) -> object:
    if not isinstance(part, dict):
        return part
    new = {names.get(key, key): value for key, value in part.items()}
    if isinstance(points := new.get("timestamps"), dict):
        new["timestamps"] = {name: _part(found, _OF_TIMESTAMPS) for name, found in points.items()}
    return new
