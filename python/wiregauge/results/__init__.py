"""Output of a judgement: stored in the run directory, as JSON, as text, and as the data of pictures.

`judge` judges a run directory and stores the result. `show_json` is for programs, `show_text` for people; `shapes` and
`views` hold the data of figures. `comparing` and `explaining` do the same for comparisons and explanations.
"""

from wiregauge.results.closing_text import closing_text
from wiregauge.results.judging import judge
from wiregauge.results.shapes import Shapes, shapes
from wiregauge.results.show_json import json_chunks, json_text, schema_path, show_chunks, show_json
from wiregauge.results.show_text import headline, limit_text, show_text
from wiregauge.results.views import Views, views

__all__ = [
    "Shapes",
    "Views",
    "closing_text",
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
