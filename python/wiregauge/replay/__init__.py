"""Replays the played network of a run, and compares it with a simulation."""

from __future__ import annotations

from wiregauge.replay.playing import (
    CannotReplayError,
    Compared,
    Handed,
    Otherwise,
    Released,
    Replay,
    Unentered,
    replay_run,
)
from wiregauge.replay.text import replay_json, replay_text

__all__ = [
    "CannotReplayError",
    "Compared",
    "Handed",
    "Otherwise",
    "Released",
    "Replay",
    "Unentered",
    "replay_json",
    "replay_run",
    "replay_text",
]
