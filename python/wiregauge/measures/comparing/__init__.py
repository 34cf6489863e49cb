"""Comparison of two run directories, and of a history of many: shifts, their size, and whether they matter."""

from wiregauge.measures.comparing.compare import compare
from wiregauge.measures.comparing.comparison import (
    Comparison,
    FlowComparison,
    MeasureShift,
    ShareShift,
    Shift,
)
from wiregauge.measures.comparing.matching import MatchError
from wiregauge.measures.comparing.thresholds import Threshold, ThresholdError, read_threshold
from wiregauge.measures.comparing.trend import Trend, TrendSeries, trend
from wiregauge.measures.comparing.trend_judging import TrendPoint

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
    "read_threshold",
    "trend",
]
