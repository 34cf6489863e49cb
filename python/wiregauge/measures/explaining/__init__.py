"""Explanation of a flow's behaviour: recurring modes, changes, modes of its distribution, and its worst messages."""

from wiregauge.measures.explaining.explain import WORST, explain, explain_series, whole_series
from wiregauge.measures.explaining.explanation import (
    Bounded,
    Clock,
    Event,
    Explanation,
    FlowExplained,
    Neighbour,
    Partner,
    SeriesExplained,
    Step,
    WorstMessage,
)
from wiregauge.measures.explaining.story import Stories, Story
from wiregauge.measures.explaining.worst import Subject

__all__ = [
    "WORST",
    "Bounded",
    "Clock",
    "Event",
    "Explanation",
    "FlowExplained",
    "Neighbour",
    "Partner",
    "SeriesExplained",
    "Step",
    "Stories",
    "Story",
    "Subject",
    "WorstMessage",
    "explain",
    "explain_series",
    "whole_series",
]
