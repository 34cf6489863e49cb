"""Streams of a place in a network, found in captures of any traffic: accounts, not records of each frame."""

from wiregauge.streams.observed import Observed
from wiregauge.streams.observing import (
    StreamsError,
    is_of_streams,
    json_text,
    networks_seen,
    observe,
    opened,
    written,
)
from wiregauge.streams.text import lines, tables

__all__ = [
    "Observed",
    "StreamsError",
    "is_of_streams",
    "json_text",
    "lines",
    "networks_seen",
    "observe",
    "opened",
    "tables",
    "written",
]
