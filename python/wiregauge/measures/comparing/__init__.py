"""Any two run directories side by side, and a history of many: what moved, by how much, and whether it matters."""

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
