"""Worst-case delays and backlogs of a network by network calculus, which no measured value may exceed."""

from wiregauge.bounds.advising import advise, with_deadlines
from wiregauge.bounds.analysing import (
    Answer,
    FlowBound,
    Judged,
    NoAnswerError,
    ServerBound,
    TargetBound,
    convert,
)
from wiregauge.bounds.best import bound
from wiregauge.bounds.every_run import Bounded, bound_every, runs_json, show_runs, worst_run
from wiregauge.bounds.networks import Source, read, read_every
from wiregauge.bounds.printing import show_text, verdict
from wiregauge.bounds.results_file import write_results

__all__ = [
    "Answer",
    "Bounded",
    "FlowBound",
    "Judged",
    "NoAnswerError",
    "ServerBound",
    "Source",
    "TargetBound",
    "advise",
    "bound",
    "bound_every",
    "convert",
    "read",
    "read_every",
    "runs_json",
    "show_runs",
    "show_text",
    "verdict",
    "with_deadlines",
    "worst_run",
    "write_results",
]
