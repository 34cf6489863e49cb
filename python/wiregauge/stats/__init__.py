"""Statistics of measured series: arrays in, numbers out.

This package knows NumPy and SciPy and nothing of networks, files or figures, so that a notebook can use it
alone. Every rule that a reader of a report must be able to repeat by hand (which order statistic a percentile
is, when it may be printed, how wide an interval is) is stated in the docstring of the one function that applies it.
"""

from wiregauge.stats.counts import ShareBound, share_bound
from wiregauge.stats.moments import (
    MeanEstimate,
    between_run_half_width,
    effective_n,
    mad,
    mean_estimate,
    standard_deviation,
)
from wiregauge.stats.quantiles import (
    Rank,
    RankInterval,
    largest_supported,
    quantile,
    quantile_ranks,
    rank,
    samples_needed,
    supported,
)
from wiregauge.stats.shape import (
    BoxShape,
    DensityShape,
    EnvelopeShape,
    HistogramShape,
    TailShape,
    box,
    density,
    envelope,
    histogram,
    tail,
)
from wiregauge.stats.shift import Estimate, Sample, clustering, difference, share, simultaneous
from wiregauge.stats.trend import change_points, reference

__all__ = [
    "BoxShape",
    "DensityShape",
    "EnvelopeShape",
    "Estimate",
    "HistogramShape",
    "MeanEstimate",
    "Rank",
    "RankInterval",
    "Sample",
    "ShareBound",
    "TailShape",
    "between_run_half_width",
    "box",
    "change_points",
    "clustering",
    "density",
    "difference",
    "effective_n",
    "envelope",
    "histogram",
    "largest_supported",
    "mad",
    "mean_estimate",
    "quantile",
    "quantile_ranks",
    "rank",
    "reference",
    "samples_needed",
    "share",
    "share_bound",
    "simultaneous",
    "standard_deviation",
    "supported",
    "tail",
]
