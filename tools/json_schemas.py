"""Writes the JSON Schemas of commands' output, from its types. `make json-schemas` runs it.

They are committed, so that they ship with the program; a test makes them again and compares.
"""

from __future__ import annotations

from pathlib import Path

from wiregauge.calibrate.host_shown import host_schema
from wiregauge.calibrate.host_shown import schema_path as host_schema_path
from wiregauge.calibrate.switch_shown import schema_path as identify_schema_path
from wiregauge.calibrate.switch_shown import switch_schema as identify_schema
from wiregauge.reflectors.line import line_schema
from wiregauge.reflectors.line import schema_path as line_schema_path
from wiregauge.reflectors.measured import schema_path as session_schema_path
from wiregauge.reflectors.measured import session_schema
from wiregauge.reflectors.stretches import schema_path as session_summary_schema_path
from wiregauge.reflectors.stretches import session_summary_schema
from wiregauge.results import schema_path
from wiregauge.results.comparing import compare_schema_path, trend_schema_path
from wiregauge.results.comparing.types import compare_schema, trend_schema
from wiregauge.results.explaining import explain_schema_path
from wiregauge.results.explaining.types import explain_schema
from wiregauge.results.show_json import json_text
from wiregauge.results.show_types import show_schema
from wiregauge.scheduling.methods import methods_schema
from wiregauge.scheduling.methods import schema_path as methods_schema_path
from wiregauge.streams.observed import schema_path as streams_schema_path
from wiregauge.streams.observed import streams_schema
from wiregauge.studies.shown import schema_path as study_schema_path
from wiregauge.studies.shown import study_schema
from wiregauge.switching import schema_path as switch_schema_path
from wiregauge.switching import switch_schema
from wiregauge.watching.line import schema_path as watch_schema_path
from wiregauge.watching.line import watch_schema
from wiregauge.watching.summaries import schema_path as summary_schema_path
from wiregauge.watching.summaries import summary_schema


def schemas() -> dict[Path, str]:
    """The text of each schema file."""
    made = {
        schema_path(): show_schema(),
        compare_schema_path(): compare_schema(),
        trend_schema_path(): trend_schema(),
        explain_schema_path(): explain_schema(),
        session_schema_path(): session_schema(),
        line_schema_path(): line_schema(),
        session_summary_schema_path(): session_summary_schema(),
        streams_schema_path(): streams_schema(),
        methods_schema_path(): methods_schema(),
        study_schema_path(): study_schema(),
        host_schema_path(): host_schema(),
        identify_schema_path(): identify_schema(),
        switch_schema_path(): switch_schema(),
        watch_schema_path(): watch_schema(),
        summary_schema_path(): summary_schema(),
    }
    return {path: json_text(schema, depth=3) + "\n" for path, schema in made.items()}


def main() -> None:
    """Writes the files."""
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
