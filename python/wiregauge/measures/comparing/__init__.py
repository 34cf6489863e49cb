"""Any two run directories side by side, and a history of many: what moved, by how much, and whether it matters."""

from wiregauge.measures.comparing.compare import compare
from wiregauge.measures.comparing.matching import MatchError
from wiregauge.measures.comparing.results import Comparison, FlowComparison, MeasureShift, ShareShift, Shift
from wiregauge.measures.comparing.shown import (
    compare_chunks,
    compare_json,
    compare_schema_path,
    trend_json,
    trend_schema_path,
)
from wiregauge.measures.comparing.text import compare_headline, compare_text
from wiregauge.measures.comparing.thresholds import Threshold, ThresholdError, read_threshold
from wiregauge.measures.comparing.trend import Trend, TrendSeries, trend
from wiregauge.measures.comparing.trend_judging import TrendPoint
from wiregauge.measures.comparing.trend_show import trend_headline, trend_text

__all__ = [
    "Comparison",
    "FlowComparison",
    "MatchError",
    "MeasureShift",
    "ShareShift",
    "Shift",
    "Threshold",
    "ThresholdError",
    "Trend",
    "TrendPoint",
    "TrendSeries",
    "compare",
    "compare_chunks",
    "compare_headline",
    "compare_json",
    "compare_schema_path",
    "compare_text",
    "read_threshold",
    "trend",
    "trend_headline",
    "trend_json",
    "trend_schema_path",
    "trend_text",
]
