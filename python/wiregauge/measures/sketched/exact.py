"""The result of a flow too big to be held, from that of its sample and the full results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult, Series
from wiregauge.measures.metrics.sampling import Sampled
from wiregauge.measures.metrics.series import (
    GAP,
    LOST,
    NO_TIMESTAMP,
    NOT_SAMPLED,
    ONE_COPY,
    WARM_UP,
    Extracted,
    clock_shift,
)
from wiregauge.measures.metrics.summarise import loss
from wiregauge.measures.metrics.summary import Summary, Uncertainty
from wiregauge.measures.sketched.full_flow import PS, Whole
from wiregauge.measures.sketched.quantiles import percentile
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

Floats = NDArray[np.float64]

__all__ = ["exact", "gain_of"]


def exact(
    sample: FlowResult,
    extracted: Mapping[str, Extracted],
    whole: Whole,
    names: Sequence[str],
    shift_ns: float,
) -> FlowResult:
    """The counts and distributions of a flow from those of its sample; the offset of its clocks is `shift_ns`."""
    flow, counted = sample.plan, whole.tally
    counts = counted.counts()
    held = _corrected(flow, whole, shift_ns, blind=bool(sample.unseen))
    gains = {name: gain_of(extracted[name], held[name].n) for name in sample.summaries if name in held}
    summaries = {
        name: replace(
            _summary(
                summary,
                held[name],
                extracted[name],
                gains[name],
                _excluded(name, whole, held, flow, extracted[name].excluded),
                flow.quantiles,
            ),
            negative=whole.census.below.get((name, 0.0), (held[name].below_zero(), 0))[0],
        )
        if name in held
        else _of_sample(summary, counts["sent"] - sample.counts["sent"])
        for name, summary in sample.summaries.items()
    }
    series = dict(sample.series)
    least = summaries["latency"].minimum
    if least is not None:
        took = series["latency"]
        series["delay_variation"] = Series(took.t, took.value - least)
    return replace(
        sample,
        counts=counts,
        outcomes=counted.outcomes(),
        warm_up=counted.warm_up,
        last_seen={_place(key, names): count for key, count in counted.last.items()},
        loss=loss(
            counts["lost"], counts["sent"], whole.fates.lost_worth, counts["unknown"], whole.fates.open_worth
        ),
        summaries=summaries,
        series=series,
        reorder_extent=counted.count("reorder_extent"),
        lost_copies={network: counted.count(f"lost {network}") for network in sample.lost_copies},
        late_sends=counted.count("late_sends"),
        sampled=Sampled(whole.one_in, sample.counts["sent"], counts["sent"]),
        sketches=held,
        marks=whole.census.below,
    )


def _place(key: tuple[int | None, str | None], names: Sequence[str]) -> str:
    node, point = key
    at = f" at {names[node]}" if node is not None and 0 <= node < len(names) else ""
    return f"{point or 'never seen'}{at}"


def _corrected(flow: FlowPlan, whole: Whole, shift_ns: float, *, blind: bool) -> dict[str, Sketch]:
    """The sketch of every measure, with the correction of clocks that single values have (`differences`)."""
    held = {
        name: one.moved(by) if (by := clock_shift(name, flow, shift_ns)) else one
        for name, one in whole.sketches.items()
    }
    if "latency" in held:
        held["delay_variation"] = held["latency"].moved(held["latency"].minimum)
    if flow.deadline_ns is not None and flow.main in whole.sketches:
        held["lateness"] = whole.sketches[flow.main].moved(flow.deadline_ns)
    silent = np.array([time / PS for time in whole.tally.silences("received", flow) if time])
    if len(silent) and not blind:
        known = [held["receive_period"]] if "receive_period" in held else []
        held["receive_period"] = sketches.merged([*known, sketches.sketch_of(silent)])
    if whole.hops:
        held["residence"] = sketches.merged([one for _, _, one in whole.hops])
    return held


def _excluded(
    name: str, whole: Whole, held: Mapping[str, Sketch], flow: FlowPlan, left_out: Mapping[str, int]
) -> Mapping[str, int]:
    """Exact numbers of messages without a value of a measure, by reason. `left_out` are those of passages."""
    counted, n, sent = whole.tally, held[name].n, whole.tally.count("sent")
    if name == "residence":
        return left_out
    of = {"delay_variation": "latency", "lateness": flow.main}.get(name, name)
    reasons = counted.excluded(of) or {
        "period": {GAP: sent - 1 - n},
        "ipdv": {GAP: sent - 1 - n},
        "receive_period": {LOST: counted.count("no rx_app")},
        "bag_spacing": {NO_TIMESTAMP: counted.count("no tx_wire")},
        "bag_jitter": {NO_TIMESTAMP: counted.count("no tx_wire")},
        "skew": {ONE_COPY: sent - n},
        "window_error": {LOST: sent - n},
    }.get(name, {})
    return {WARM_UP: counted.warm_up, **reasons}


def gain_of(extracted: Extracted, n: int) -> float:
    """The ratio of the effective number of `n` values to that of the sample; at least 1.

    Where correlation reaches beyond a stretch the sample cannot show that of the values between. Then all values are
    taken to be worth as much as the sample: no less.
    """
    values, stretch = extracted.series.value, extracted.stretch
    if stretch is None or not len(values) or sketches.outlasts(values, sketches.halves_of(stretch)):
        return 1.0
    return max(n / len(values), 1.0)


def _of_sample(summary: Summary, beyond: int) -> Summary:
    if not summary.n:
        return summary
    return replace(summary, excluded={**summary.excluded, NOT_SAMPLED: beyond}, of_sample=True)


def _summary(
    sample: Summary,
    sketch: Sketch,
    extracted: Extracted,
    gain: float,
    excluded: Mapping[str, int],
    quantiles: Mapping[str, float],
) -> Summary:
    """The summary of all values, from their sketch and the dependence found in the sample."""
    deviation, n = sketch.deviation(), sketch.n
    worth = min((sample.n_effective or 1.0) * gain, float(n))
    halves = sketches.halves_of(extracted.stretch) if gain > 1 and extracted.stretch is not None else None
    known = sample.uncertainty
    if known is not None and deviation is not None:
        known = Uncertainty(sketches.mean_half_width(deviation, worth), known.clock, known.timestamp)
    return replace(
        sample,
        n=n,
        excluded={reason: count for reason, count in excluded.items() if count},
        negative=sketch.below_zero(),
        minimum=sketch.minimum,
        mean=sketch.mean,
        sd=deviation,
        maximum=sketch.maximum,
        percentiles={
            name: percentile(sketch, q, _worth(sample, name, q, extracted.series.value, halves, sketch, gain))
            for name, q in quantiles.items()
        },
        n_effective=worth,
        uncertainty=known,
        sd_interval=sketches.narrowed(sample.sd_interval, sample.sd or 0.0, deviation, gain)
        if sample.sd_interval is not None and deviation is not None
        else None,
    )


def _worth(
    sample: Summary,
    name: str,
    q: float,
    values: Floats,
    halves: sketches.Halves | None,
    sketch: Sketch,
    gain: float,
) -> float:
    """Effective number of all values for a percentile."""
    sampled = sample.percentiles.get(name)
    own = sampled.worth if sampled is not None else None
    worth = own if own is not None else (sample.n_effective or 1.0)
    if halves is not None:
        gain = 1.0 if sketches.outlasts(values > sketch.quantile(q), halves) else gain
    return min(worth * gain, float(sketch.n))
