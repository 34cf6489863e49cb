"""Judges the records of a run: measures with their uncertainty, validity, and the verdict on the limits.

`evaluate` does it all; the room `results` stores it and gives it to programs, people and pictures. The definition of
every measure is in `DEFINITIONS`.
"""

from wiregauge.measures.definitions import DEFINITIONS, SERIES, Definition
from wiregauge.measures.judge import evaluate
from wiregauge.measures.large import only
from wiregauge.measures.metrics.judgement import (
    Check,
    FlowResult,
    Grade,
    Judgement,
    LimitResult,
    PointResult,
    RunResult,
    verdict_of,
)
from wiregauge.measures.metrics.summary import Summary
from wiregauge.records import RunDirectoryError

__all__ = [
    "DEFINITIONS",
    "SERIES",
    "Check",
    "Definition",
    "FlowResult",
    "Grade",
    "Judgement",
    "LimitResult",
    "PointResult",
    "RunDirectoryError",
    "RunResult",
    "Summary",
    "evaluate",
    "only",
    "verdict_of",
]
