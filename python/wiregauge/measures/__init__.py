"""From a run directory to a judgement: measures with their uncertainty, validity, and the verdict on the limits.

`judge` does it all; `show_json` and `show_text` present the result to programs and to people; `shapes` gives the
figures what they draw. The definition of every measure is in `DEFINITIONS`.
"""

from wiregauge.measures.definitions import DEFINITIONS, SERIES, Definition
from wiregauge.measures.judge import judge
from wiregauge.measures.large import only
from wiregauge.measures.metrics.results import (
    Check,
    FlowResult,
    Grade,
    Judgement,
    LimitResult,
    PointResult,
    RunResult,
)
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.shapes import Shapes, shapes
from wiregauge.measures.show import json_chunks, json_text, schema_path, show_chunks, show_json
from wiregauge.measures.text import headline, limit_text, show_text
from wiregauge.measures.views import Views, views
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
    "Shapes",
    "Summary",
    "Views",
    "headline",
    "json_chunks",
    "json_text",
    "judge",
    "limit_text",
    "only",
    "schema_path",
    "shapes",
    "show_chunks",
    "show_json",
    "show_text",
    "views",
]
