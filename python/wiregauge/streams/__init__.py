"""Streams of a place in a network, found in captures of any traffic: accounts, not records of each frame."""

from wiregauge.streams.observing import (
    FILE,
    StreamsError,
    networks_seen,
    observe,
    opened,
    written,
)
from wiregauge.streams.text import lines, tables

__all__ = [
    "FILE",
    "StreamsError",
    "lines",
    "networks_seen",
    "observe",
    "opened",
    "tables",
    "written",
]
