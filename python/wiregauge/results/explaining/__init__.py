"""Explanations as JSON, as text, and as the data of pictures."""

from wiregauge.results.explaining.text import explain_text
from wiregauge.results.explaining.types import explain_json, explain_schema_path

__all__ = ["explain_json", "explain_schema_path", "explain_text"]
