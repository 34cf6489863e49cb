"""Summary of one measure of one flow. Every time is in nanoseconds, as in `results`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated

from msgspec import Meta, Struct, field

from wiregauge.files.typed_json import Count, Figure, Key, Positive
from wiregauge.measures.metrics.percentiles import Percentile


class Repeats(Struct, frozen=True):
    """Variation between and within repeats, as standard deviations of the mean of one run, ns.

    `between` is what is left of the spread of the runs' means when chance within them is taken out; 0 where nothing is.
    """

    runs: Count
    between: Annotated[Positive, Key("between_sd")]
    within: Annotated[Figure, Key("within_sd")]


class Stationarity(Struct, frozen=True):
    """Stationarity of a series, by the tests of `wiregauge.stats.steadiness`.

    `steady` is None where the series is too short for its correlation to be tested. The medians are
    in ns; `changes` names what changes most, the level or the upper tail.
    """

    steady: bool | None
    p: Figure
    changes: Annotated[str, Meta(extra_json_schema={"enum": ["level", "tail"]})]
    correlation_time: Annotated[float, Meta(ge=1)]
    median_first_half: float
    median_second_half: float


class Rest(Struct, frozen=True):
    """Percentiles (None where n does not support them) and the maximum of the rest of a series, ns."""

    p50: Figure
    p99: Figure
    max: float


class Settling(Struct, frozen=True):
    """A beginning of a series that differs from the rest by the rule of `wiregauge.stats.steadiness`; all ns.

    The figures include it like every other value. Given are the first `n` values, their minimum and maximum, and
    figures `without` them.
    """

    n: Annotated[int, Meta(ge=1)]
    minimum: Annotated[float, Key("min")]
    maximum: Annotated[float, Key("max")]
    without: Rest


class Uncertainty(Struct, frozen=True):
    """95 % half-width of the mean, ns.

    `total` = sampling + clock + timestamp. Sampling is the Student half-width with the effective n; of repeats, that of
    the spread between them. Clock and timestamp errors are bounds that no averaging reduces, so they are added
    and not combined as squares (RFC 7679, 3.7.3).
    """

    sampling: Positive
    clock: Positive
    timestamp: Positive

    @property
    def total(self) -> float:
        """The half-width printed behind ±, ns."""
        return self.sampling + self.clock + self.timestamp


class Summary(Struct, frozen=True):
    """One measure of one flow: figures over `n` values and why the others are missing."""

    measure: str
    n: int
    excluded: Mapping[str, int]
    negative: int
    minimum: float | None = None
    mean: float | None = None
    sd: float | None = None
    mad: float | None = None
    maximum: float | None = None
    percentiles: Mapping[str, Percentile] = field(default_factory=dict)
    n_effective: float | None = None
    uncertainty: Uncertainty | None = None
    runs: int = 1
    sd_interval: tuple[float, float] | None = None
    """95 % interval of the standard deviation."""
    repeats: Repeats | None = None
    stationarity: Stationarity | None = None
    """The test of stationarity; for latency and round trip of a single run only."""
    settling: Settling | None = None
    """A beginning that differs from the rest, for the same; every figure includes it."""
    interval_needs: int | None = None
    """Number of values that the mean of a single run would need for an interval; None where it has one."""
    of_sample: bool = False
    """Whether the figures are those of the sample of a flow too big to be held, and not of all its messages."""
    clock: float = 0.0
    timestamp: float = 0.0
    """Clock and timestamp error, ns; parts of `uncertainty` that are known also where that is not."""

    def value(self, statistic: str) -> float | None:
        """The figure a limit names: min, mean, sd, max or a percentile; None when not determined."""
        simple = _SIMPLE.get(statistic)
        if simple is not None:
            return simple(self)
        percentile = self.percentiles.get(statistic)
        return percentile.value if percentile else None

    def span(self) -> float | None:
        """Range, max - min."""
        return self.maximum - self.minimum if self.maximum is not None and self.minimum is not None else None

    def pdv(self) -> float | None:
        """p99.9 - min (RFC 8219, 7.3.1); None where n does not support p99.9."""
        top = self.value("p99.9")
        return top - self.minimum if top is not None and self.minimum is not None else None


_SIMPLE: dict[str, Callable[[Summary], float | None]] = {
    "min": attrgetter("minimum"),
    "mean": attrgetter("mean"),
    "sd": attrgetter("sd"),
    "mad": attrgetter("mad"),
    "max": attrgetter("maximum"),
}
