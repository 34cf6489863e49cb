"""The distribution of a measure of a flow, of all its messages: single values, or buckets where those are too many."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.stats import BoxShape, DensityShape, EcdfShape, HistogramShape, TailShape

__all__ = ["Distribution", "distribution"]

Floats = NDArray[np.float64]


class Distribution(Struct, frozen=True):
    """Values, ns, and the count of each (None: one); minimum and maximum are exact.

    `sample` is the number of sampled messages, where not all were measured; else None.
    """

    values: Floats
    counts: NDArray[np.int64] | None = None
    sample: int | None = None

    @property
    def n(self) -> int:
        """Number of values."""
        return len(self.values) if self.counts is None else int(self.counts.sum())

    def density(self, *, log: bool = False, span: tuple[float, float] | None = None) -> DensityShape:
        """The density; see `stats.density`."""
        return stats.density(self.values, log=log, span=span, counts=self.counts)

    def box(self) -> BoxShape | None:
        """Box plot data; see `stats.box`."""
        return stats.box(self.values, counts=self.counts)

    def tail(self) -> TailShape:
        """The tail; see `stats.tail`."""
        return stats.tail(self.values, counts=self.counts)

    def ecdf(self) -> EcdfShape:
        """The empirical distribution function; see `stats.ecdf`."""
        return stats.ecdf(self.values, counts=self.counts)

    def histogram(self, edges: Floats) -> HistogramShape:
        """The histogram with these bin edges; see `stats.histogram`."""
        return stats.histogram(self.values, edges, self.counts)

    def quantiles(self, *which: float) -> list[float]:
        """Nearest-rank quantiles, to within a bucket."""
        if self.counts is None:
            ascending = np.sort(self.values)
            return [stats.quantile(ascending, q) for q in which]
        reached = np.cumsum(self.counts)
        places = np.searchsorted(reached, [stats.rank(self.n, q) for q in which])
        return [float(value) for value in self.values[places]]


def distribution(flow: FlowResult, name: str) -> Distribution | None:
    """The distribution of a measure; None where the flow has no values."""
    if flow.sampled is None:
        series = flow.series.get(name)
        return Distribution(series.value) if series is not None and len(series.value) else None
    sketch = flow.sketches.get(name)
    if sketch is not None:
        return Distribution(*sketch.weighted())
    series = flow.series.get(name)
    if series is None or not len(series.value):
        return None
    return Distribution(series.value, sample=flow.sampled.rows)
