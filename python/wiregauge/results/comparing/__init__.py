"""Comparisons and trends as JSON, as text, and as the data of pictures."""

from wiregauge.results.comparing.printing import compare_text
from wiregauge.results.comparing.text import compare_headline
from wiregauge.results.comparing.trend_text import trend_headline, trend_text
from wiregauge.results.comparing.types import (
    compare_chunks,
    compare_json,
    compare_schema_path,
    trend_json,
    trend_schema_path,
)

__all__ = [
    "compare_chunks",
    "compare_headline",
    "compare_json",
    "compare_schema_path",
    "compare_text",
    "trend_headline",
    "trend_json",
    "trend_schema_path",
    "trend_text",
]
