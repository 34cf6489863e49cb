"""Worst-case delays and backlogs of a network, by network calculus: what a measured value may never exceed."""

from wiregauge.bounds.advising import advise, with_deadlines
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
from wiregauge.bounds.results_file import write_results

__all__ = [
    "Answer",
    "FlowBound",
    "Judged",
    "NoAnswerError",
    "ServerBound",
    "Source",
    "TargetBound",
    "advise",
    "bound",
    "convert",
    "read",
    "show_text",
    "with_deadlines",
    "write_results",
]
