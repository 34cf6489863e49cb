"""Worst-case delays and backlogs of a network, by network calculus: what a measured value may never exceed."""

from wiregauge.bounds.analysing import (
    Answer,
    FlowBound,
    Judged,
    NoAnswerError,
    ServerBound,
    TargetBound,
    bound,
    convert,
)
from wiregauge.bounds.networks import Source, read
from wiregauge.bounds.printing import show_text

__all__ = [
    "Answer",
    "FlowBound",
    "Judged",
    "NoAnswerError",
    "ServerBound",
    "Source",
    "TargetBound",
    "bound",
    "convert",
    "read",
    "show_text",
]
