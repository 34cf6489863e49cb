"""Exports a run directory to the formats of other tools: tables, histograms, test results, metrics.

`write` makes one file, atomically. Formats and schemas are documented in `docs/reference/export.md`.
"""

from wiregauge.export.choice import WHATS, Choice, ExportError, UnwrittenError, What
from wiregauge.export.columns import axis_column
from wiregauge.export.tables import SCHEMA, measures, messages, passages, records
from wiregauge.export.write import FORMATS, write

__all__ = [
    "FORMATS",
    "SCHEMA",
    "WHATS",
    "Choice",
    "ExportError",
    "UnwrittenError",
    "What",
    "axis_column",
    "measures",
    "messages",
    "passages",
    "records",
    "write",
]
