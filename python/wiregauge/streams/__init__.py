"""Streams of a place in a network, found in captures of any traffic: accounts, not records of each frame."""

from wiregauge.streams.observed import (
    ContractSource,
    Copies,
    Distribution,
    Observed,
    PromiseResult,
    Sequence,
    Stream,
)
from wiregauge.streams.observing import (
    PS_PER_NS,
    StreamsError,
    is_of_streams,
    json_text,
    networks_seen,
    observe,
    opened,
    written,
)
from wiregauge.streams.text import lines, stream_name, tables, verdict_lines

__all__ = [
    "PS_PER_NS",
    "ContractSource",
    "Copies",
    "Distribution",
    "Observed",
    "PromiseResult",
    "Sequence",
    "Stream",
    "StreamsError",
    "is_of_streams",
    "json_text",
    "lines",
    "networks_seen",
    "observe",
    "opened",
    "stream_name",
    "tables",
    "verdict_lines",
    "written",
]
