"""Why a flow behaves as it does: recurring modes, changes, the modes of its distribution, and its worst messages."""

from wiregauge.measures.explaining.explain import WORST, explain, explain_series, whole_series
from wiregauge.measures.explaining.results import (
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
from wiregauge.measures.explaining.shown import explain_json, explain_schema_path
from wiregauge.measures.explaining.text import explain_text

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
    "WorstMessage",
    "explain",
    "explain_json",
    "explain_schema_path",
    "explain_series",
    "explain_text",
    "whole_series",
]
