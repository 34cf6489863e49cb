"""Repeats of a flow of which some are too big to be held: their sketches, merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import sqrt

import numpy as np
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.percentiles import Percentile, unsupported
from wiregauge.measures.metrics.sampling import Sampled
from wiregauge.measures.metrics.summary import Repeats, Summary, Uncertainty
from wiregauge.measures.sketched.quantiles import percentile, repeated
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = ["percentile_of", "pool_sampled", "pool_sketches", "summarise_repeats", "with_loss_repeats"]


def pool_sampled(flows: Sequence[FlowResult]) -> Sampled | None:
    """The sampling of pooled repeats: the sparsest; None where all were held completely."""
    sparse = [flow.sampled for flow in flows if flow.sampled is not None]
    if not sparse:
        return None
    whole = sum(flow.counts["sent"] for flow in flows if flow.sampled is None)
    return Sampled(
        max(one.one_in for one in sparse),
        sum(one.rows for one in sparse) + whole,
        sum(one.of for one in sparse) + whole,
    )


def _parts(flows: Sequence[FlowResult], name: str) -> list[tuple[FlowResult, Sketch]]:
    """A sketch per repeat that has values: its own, or of one that was held whole its values."""
    found = []
    for flow in flows:
        if name in flow.sketches:
            found.append((flow, flow.sketches[name]))
        elif name in flow.series and len(flow.series[name].value):
            found.append((flow, sketches.sketch_of(flow.series[name].value)))
    return found


def pool_sketches(flows: Sequence[FlowResult], names: Iterable[str]) -> dict[str, Sketch]:
    """The distributions of all messages of repeats of which some are sampled; those of measures that every one has."""
    if all(flow.sampled is None for flow in flows):
        return {}
    found = {}
    for name in names:
        having = [flow for flow in flows if flow.summaries[name].n]
        if having and all(flow.sampled is None or name in flow.sketches for flow in having):
            found[name] = sketches.merged([sketch for _, sketch in _parts(having, name)])
    return found


def summarise_repeats(
    name: str,
    flows: Sequence[FlowResult],
    excluded: Mapping[str, int],
    *,
    clock_ns: float,
    timestamp_ns: float,
) -> Summary:
    """The summary of a measure of repeats of which some are sampled: their sketches, merged."""
    excluded = {reason: count for reason, count in excluded.items() if count}
    quantiles = flows[0].plan.quantiles
    parts = _parts(flows, name)
    if len(parts) == 1:
        return replace(parts[0][0].summaries[name], excluded=excluded)
    if not parts:
        return Summary(name, 0, excluded, 0, runs=len(flows))
    each = [one for _, one in parts]
    pooled = sketches.merged(each)
    means = np.array([one.mean for one in each])
    weights = np.array([one.n / pooled.n for one in each])
    sampling = stats.repeated_mean_half_width(means, weights)
    worths = [flow.summaries[name].n_effective or 1.0 for flow, _ in parts]
    own = [d**2 / w for one, w in zip(each, worths, strict=True) if (d := one.deviation()) is not None]
    within = float(np.mean(own)) if len(own) == len(each) else None
    total = float(np.var(means, ddof=1))
    return Summary(
        measure=name,
        n=pooled.n,
        excluded=excluded,
        negative=pooled.below_zero(),
        minimum=pooled.minimum,
        mean=pooled.mean,
        sd=pooled.deviation(),
        mad=stats.mad(np.concatenate([flow.series[name].value for flow, _ in parts])),
        maximum=pooled.maximum,
        percentiles={quantile: repeated(each, pooled, q, 0) for quantile, q in quantiles.items()},
        n_effective=sum(worths),
        uncertainty=Uncertainty(sampling, clock_ns, timestamp_ns) if sampling is not None else None,
        clock=clock_ns,
        timestamp=timestamp_ns,
        runs=len(each),
        sd_interval=sketches.repeated_deviation(each),
        repeats=Repeats(
            len(each), sqrt(max(total - (within or 0.0), 0.0)), sqrt(within) if within is not None else None
        ),
    )


def with_loss_repeats(flows: Sequence[FlowResult], main: str) -> dict[str, Percentile]:
    """Percentiles over all messages sent in repeats of which some are sampled; the lost are infinitely late."""
    parts = _parts(flows, main)
    if not parts:
        return unsupported(flows[0].plan.quantiles)
    each = [one for _, one in parts]
    lost = sum(flow.counts["lost"] for flow in flows)
    if len(parts) == 1 and not lost:
        return dict(parts[0][0].summaries[main].percentiles)
    sizes = [flow.counts["lost"] for flow, _ in parts]
    pooled, quantiles = sketches.merged(each), flows[0].plan.quantiles
    return {name: repeated(each, pooled, q, lost, sizes) for name, q in quantiles.items()}


def percentile_of(name: str, flows: Sequence[FlowResult], q: float | Fraction) -> Percentile:
    """Any percentile of a measure of a flow, of one run or of repeats, of which some are sampled."""
    parts = _parts(flows, name)
    each = [one for _, one in parts]
    if len(each) == 1:
        flow, sketch = parts[0]
        return percentile(sketch, q, flow.summaries[name].n_effective or 1.0)
    return repeated(each, sketches.merged(each), q, 0)
