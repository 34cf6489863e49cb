"""Streams of a place in a network, found in captures of any traffic: accounts, not records of each frame."""

from wiregauge.streams.observed import (
    Bag,
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
    graded,
    is_of_streams,
    json_text,
    networks_seen,
    observe,
    opened,
    written,
)
from wiregauge.streams.text import JITTER_LIMIT_PS, lines, promise_text, stream_name, tables, verdict_lines

__all__ = [
    "JITTER_LIMIT_PS",
    "PS_PER_NS",
    "Bag",
    "ContractSource",
    "Copies",
    "Distribution",
    "Observed",
    "PromiseResult",
    "Sequence",
    "Stream",
    "StreamsError",
    "graded",
    "is_of_streams",
    "json_text",
    "lines",
    "networks_seen",
    "observe",
    "opened",
    "promise_text",
    "stream_name",
    "tables",
    "verdict_lines",
    "written",
]
