"""Run directories of earlier versions, read as this one writes them. Nothing in them is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["SCHEMA", "upgraded_manifest", "upgraded_tracking"]

SCHEMA = 3
"""Of manifest and tracking.json. 2: runs, taps and tracking.json say `timestamps` and `redundant_discarded`;
3: agents say `timestamps` and `pacing`."""

_RENAMED_OF_A_RUN = {"stamps": "timestamps"}
_RENAMED_OF_A_FLOW = {"second_copies": "redundant_discarded"}
_RENAMED_OF_AN_AGENT = {"stamps": "timestamps"}
_RENAMED_OF_AN_ACCESS_POINT = {
    "missing_tx_stamps": "missing_tx_timestamps",
    "missing_rx_stamps": "missing_rx_timestamps",
}
_RENAMED_OF_A_TASK = {
    "hardware_stamps": "hardware_timestamps",
    "missing_hardware_stamps": "missing_hardware_timestamps",
}
_RENAMED_OF_A_STREAM = {"mode": "pacing"}
_RENAMED_OF_TIMESTAMPS = {
    "transmit_stamps": "transmit_timestamps",
    "receive_stamps": "receive_timestamps",
}
_WITH_TIMESTAMPED = ("sent", "received", "transmit_timestamps", "receive_timestamps")


def upgraded_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest in the newest schema; one that cannot be upgraded, being damaged or of the future, as it is.

    Its plan has a schema of its own, and is upgraded where it is decoded.
    """
    new = manifest
    for schema, upgrade in ((1, _run_of_schema_1), (2, _run_of_schema_2)):
        if new.get("schema") == schema:
            new = {**new, "schema": schema + 1}
            _replace(new, "runs", upgrade)
    return new


def upgraded_tracking(tracking: dict[str, Any]) -> dict[str, Any]:
    """tracking.json in the newest schema, as a manifest is."""
    if not isinstance(tracking.get("runs"), list):
        return tracking
    new = tracking
    if new.get("schema") == 1:
        new = {**new, "schema": 2}
        _replace(new, "runs", _tracked)
    return {**new, "schema": 3} if new.get("schema") == 2 else new


def _run_of_schema_1(run: Mapping[str, Any]) -> dict[str, Any]:
    new = _renamed(run, _RENAMED_OF_A_RUN)
    _replace(new, "taps", lambda tap: _renamed(tap, _RENAMED_OF_A_RUN))
    return new


def _run_of_schema_2(run: Mapping[str, Any]) -> dict[str, Any]:
    new = dict(run)
    _replace(new, "agents", _agent)
    _replace(new, "captures", lambda task: _renamed(task, _RENAMED_OF_A_TASK))
    return new


def _agent(agent: Mapping[str, Any]) -> dict[str, Any]:
    new = _renamed(agent, _RENAMED_OF_AN_AGENT)
    _replace(new, "access_points", lambda point: _renamed(point, _RENAMED_OF_AN_ACCESS_POINT))
    _replace(new, "tasks", lambda task: _renamed(task, _RENAMED_OF_A_TASK))
    _replace(new, "streams", lambda stream: _renamed(stream, _RENAMED_OF_A_STREAM))
    _replace(new, "timestamps", _timestamps)
    return new


def _timestamps(report: Mapping[str, Any]) -> dict[str, Any]:
    new = dict(report)
    if isinstance(figures := report.get("figures"), dict):
        figures = _renamed(figures, _RENAMED_OF_TIMESTAMPS)
        for key in _WITH_TIMESTAMPED:
            if isinstance(part := figures.get(key), dict):
                figures[key] = _renamed(part, {"stamped": "timestamped"})
        new["figures"] = figures
    return new


def _tracked(run: Mapping[str, Any]) -> dict[str, Any]:
    new = dict(run)
    _replace(new, "flows", lambda flow: _renamed(flow, _RENAMED_OF_A_FLOW))
    return new


def _replace(
    whole: dict[str, Any], key: str, upgrade: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    """Upgrades every object in the list or the object of this key; what is none is left to its reader."""
    parts = whole.get(key)
    if isinstance(parts, list):
        whole[key] = [upgrade(part) if isinstance(part, dict) else part for part in parts]
    elif isinstance(parts, dict):
        whole[key] = {name: upgrade(part) if isinstance(part, dict) else part for name, part in parts.items()}


def _renamed(part: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """With other names for keys, in their places."""
    return {names.get(key, key): value for key, value in part.items()}
