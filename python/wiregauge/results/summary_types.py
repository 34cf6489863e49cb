"""Types of distributions in `show --json`: summaries of measures, and latency between two points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict, cast

from msgspec import Meta

from wiregauge.files.typed_json import Count, Figure, From, Interval, filled
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.pairs import PairLatency
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.summary import Repeats, Settling, Stationarity, Summary, Uncertainty


def ends(found: Any) -> list[Any]:
    """An interval, from any object with its ends; open on both sides where there is none."""
    if found is None:
        return [None, None]
    return list(found) if isinstance(found, tuple) else [found.low, found.high]


def determined(percentiles: Mapping[str, Percentile]) -> dict[str, Percentile]:
    return {name: found for name, found in percentiles.items() if found.value is not None}


def _intervals(found: PairLatency) -> dict[str, list[float | None]]:
    return {name: ends(one) for name, one in determined(found.percentiles).items()}


class SummaryShown(TypedDict):
    """Besides the percentiles, which stand before `max`."""

    n: Count
    min: Annotated[Figure, From("minimum")]
    mean: Figure
    sd: Figure
    mad: Figure


class SummaryRestShown(TypedDict):
    max: Annotated[Figure, From("maximum")]
    uncertainty: Annotated[
        Figure, Meta(description="95 % half-width of the mean, ns"), From("uncertainty.total")
    ]
    uncertainty_parts: Annotated[Uncertainty | None, From("uncertainty")]
    n_effective: Figure
    intervals: dict[str, Interval]
    percentiles_n_effective: NotRequired[dict[str, Figure]]
    of_sample: NotRequired[
        Annotated[
            list[str],
            Meta(description="of a flow too big to be held: keys of this object that rest on its sample"),
        ]
    ]
    interval_needs: NotRequired[
        Annotated[
            dict[str, Annotated[int, Meta(ge=2)]],
            Meta(description="values that the mean or a percentile without any interval would need"),
        ]
    ]
    sd_interval: NotRequired[Interval | None]
    repeats: NotRequired[Repeats | None]
    stationarity: NotRequired[Stationarity | None]
    settling: NotRequired[Settling | None]
    excluded: dict[str, Count]
    negative: Count


def summary_shown(summary: Summary, *, sampled: bool) -> SummaryShown:
    """A summary, with its percentiles."""
    told: dict[str, float | None] = {}
    between: dict[str, list[float | None]] = {}
    worth: dict[str, float | None] = {}
    needs = {"mean": summary.interval_needs} if summary.interval_needs is not None else {}
    for name, found in summary.percentiles.items():
        told[name] = found.value
        if found.value is not None:
            between[name], worth[name] = [found.low, found.high], found.worth
        if found.interval_needs is not None:
            needs[name] = found.interval_needs
    told = told or dict.fromkeys(QUANTILES)
    rest = filled(
        SummaryRestShown,
        summary,
        intervals=between,
        percentiles_n_effective=worth,
        of_sample=_of_sample(summary, tuple(told)) if sampled else [],
        interval_needs=needs,
    )
    return cast(SummaryShown, {**filled(SummaryShown, summary), **told, **rest})


def _of_sample(summary: Summary, percentiles: tuple[str, ...]) -> list[str]:
    """Keys of a summary whose figures rest on the sample of a flow too big to be held."""
    if not summary.n:
        return []
    figures = ("min", "mean", "sd", *percentiles, "max", "negative") if summary.of_sample else ()
    return [*figures, *sampling.OF_SUMMARY]


class JitterShown(TypedDict):
    n: Count
    sd: Figure
    low: Annotated[Figure, From(lambda summary: ends(summary.sd_interval)[0])]
    high: Annotated[Figure, From(lambda summary: ends(summary.sd_interval)[1])]


class PairShown(TypedDict):
    """Besides the percentiles, which stand before `max`."""

    start: str
    end: str
    n: Count
    missing: Count
    min: Annotated[float, From("minimum")]
    mean: float
    uncertainty: Annotated[Figure, From("half_width")]


class PairRestShown(TypedDict):
    max: Annotated[float, From("maximum")]
    intervals: Annotated[dict[str, Interval], From(_intervals)]


def pair_shown(pair: PairLatency) -> PairShown:
    percentiles = {name: found.value for name, found in pair.percentiles.items()}
    return cast(PairShown, {**filled(PairShown, pair), **percentiles, **filled(PairRestShown, pair)})
