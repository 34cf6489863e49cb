"""A judgement on its way out: stored beside its run, as JSON and text, and as what pictures draw of it.

`judge` judges a run directory and stores what comes of it; `show_json` and `show_text` are for programs and for people,
`shapes` and `views` give figures what they draw. Comparisons and explanations have rooms of their own.
"""

from wiregauge.results.judging import judge
from wiregauge.results.shapes import Shapes, shapes
from wiregauge.results.show_json import json_chunks, json_text, schema_path, show_chunks, show_json
from wiregauge.results.show_text import headline, limit_text, show_text
from wiregauge.results.views import Views, views

__all__ = [
    "Shapes",
    "Views",
    "headline",
    "json_chunks",
    "json_text",
    "judge",
    "limit_text",
    "schema_path",
    "shapes",
    "show_chunks",
    "show_json",
    "show_text",
    "views",
]
