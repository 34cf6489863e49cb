"""Run directories of earlier versions, read as this one writes them. Nothing in them is changed."""

from __future__ import annotations

from typing import Any

__all__ = ["RENAMED", "upgraded_manifest", "upgraded_tracking"]

RENAMED = 2
"""Since this schema manifest and tracking.json say `timestamps` and `redundant_discarded`."""


def upgraded_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest in the newest schema; one that cannot be upgraded, being damaged or of the future, as it is.

    Its plan has a schema of its own, and is upgraded where it is decoded.
    """
    if manifest.get("schema") != RENAMED - 1:
        return manifest
    new = {**manifest, "schema": RENAMED}
    if isinstance(runs := manifest.get("runs"), list):
        new["runs"] = [_entry(entry) for entry in runs]
    return new


def _entry(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    new = _renamed(entry, "stamps", "timestamps")
    if isinstance(taps := entry.get("taps"), list):
        new["taps"] = [
            _renamed(tap, "stamps", "timestamps") if isinstance(tap, dict) else tap for tap in taps
        ]
    return new


def upgraded_tracking(tracking: dict[str, Any]) -> dict[str, Any]:
    """tracking.json in the newest schema, as a manifest is."""
    if tracking.get("schema") != RENAMED - 1 or not isinstance(tracking.get("runs"), list):
        return tracking
    runs = [_tracked(run) for run in tracking["runs"]]
    return {**tracking, "schema": RENAMED, "runs": runs}


def _tracked(run: object) -> object:
    if not isinstance(run, dict) or not isinstance(run.get("flows"), list):
        return run
    flows = [
        _renamed(flow, "second_copies", "redundant_discarded") if isinstance(flow, dict) else flow
        for flow in run["flows"]
    ]
    return {**run, "flows": flows}


def _renamed(part: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """With another name for a key, in its place."""
    return {new if key == old else key: value for key, value in part.items()}
