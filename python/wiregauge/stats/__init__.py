"""Statistics of measured series: arrays in, numbers out.

This package knows NumPy and SciPy and nothing of networks, files or figures, so that a notebook can use it
alone. Every rule that a reader of a report must be able to repeat by hand (which order statistic a percentile
is, when it may be printed, how wide an interval is) is stated in the docstring of the one function that applies it.
"""

from wiregauge.stats.counts import ShareBound, share_bound
from wiregauge.stats.dependence import correlation_time, effective_n
from wiregauge.stats.discovery import Discovery, discoveries, lone_level
from wiregauge.stats.excursions import Excursion, Excursions, excursions
from wiregauge.stats.intervals import (
    QuantileInterval,
    quantile_interval,
    repeated_deviation_interval,
    repeated_mean_half_width,
    repeated_quantile_interval,
    repeated_share_worth,
    scaled_ranks,
)
from wiregauge.stats.levels import Change, Course, level_changes
from wiregauge.stats.memory import flags_worth
from wiregauge.stats.modality import Peak, Peaks, peaks, worth_of
from wiregauge.stats.modes import Bounded, Mode, Recurrence
from wiregauge.stats.moments import (
    MeanEstimate,
    deviation_interval,
    mad,
    mad_of_ascending,
    mean_estimate,
    standard_deviation,
)
from wiregauge.stats.offsets import Moved, OffsetTrack, offset_track
from wiregauge.stats.quantiles import (
    Rank,
    RankInterval,
    fewest_for_interval,
    largest_supported,
    quantile,
    quantile_ranks,
    rank,
    samples_needed,
    supported,
)
from wiregauge.stats.recurrence import find_modes
from wiregauge.stats.regression import Coefficient, LineFit, line_fit
from wiregauge.stats.shape import (
    BoxShape,
    DensityShape,
    EcdfShape,
    EnvelopeShape,
    HistogramShape,
    TailShape,
    box,
    density,
    ecdf,
    envelope,
    histogram,
    tail,
)
from wiregauge.stats.shift import (
    Estimate,
    Sample,
    clustering,
    difference,
    normal_factor,
    share,
    simultaneous,
)
from wiregauge.stats.steady import (
    FALSE_ALARMS,
    FALSE_WARM_UP,
    FEWEST,
    Steadiness,
    mann_kendall,
    mser5,
    pettitt,
    steadiness,
)
from wiregauge.stats.trend import change_points, reference
from wiregauge.stats.twosample import (
    NOTHING,
    POWER,
    Chance,
    Events,
    MeanTest,
    Pair,
    QuantileTest,
    ShareTest,
    events,
    least_chance,
)

__all__ = [
    "FALSE_ALARMS",
    "FALSE_WARM_UP",
    "FEWEST",
    "NOTHING",
    "POWER",
    "Bounded",
    "BoxShape",
    "Chance",
    "Change",
    "Coefficient",
    "Course",
    "DensityShape",
    "Discovery",
    "EcdfShape",
    "EnvelopeShape",
    "Estimate",
    "Events",
    "Excursion",
    "Excursions",
    "HistogramShape",
    "LineFit",
    "MeanEstimate",
    "MeanTest",
    "Mode",
    "Moved",
    "OffsetTrack",
    "Pair",
    "Peak",
    "Peaks",
    "QuantileInterval",
    "QuantileTest",
    "Rank",
    "RankInterval",
    "Recurrence",
    "Sample",
    "ShareBound",
    "ShareTest",
    "Steadiness",
    "TailShape",
    "box",
    "change_points",
    "clustering",
    "correlation_time",
    "density",
    "deviation_interval",
    "difference",
    "discoveries",
    "ecdf",
    "effective_n",
    "envelope",
    "events",
    "excursions",
    "fewest_for_interval",
    "find_modes",
    "flags_worth",
    "histogram",
    "largest_supported",
    "least_chance",
    "level_changes",
    "line_fit",
    "lone_level",
    "mad",
    "mad_of_ascending",
    "mann_kendall",
    "mean_estimate",
    "mser5",
    "normal_factor",
    "offset_track",
    "peaks",
    "pettitt",
    "quantile",
    "quantile_interval",
    "quantile_ranks",
    "rank",
    "reference",
    "repeated_deviation_interval",
    "repeated_mean_half_width",
    "repeated_quantile_interval",
    "repeated_share_worth",
    "samples_needed",
    "scaled_ranks",
    "share",
    "share_bound",
    "simultaneous",
    "standard_deviation",
    "steadiness",
    "supported",
    "tail",
    "worth_of",
]
