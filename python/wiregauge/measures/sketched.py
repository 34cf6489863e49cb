"""Figures of flows too big to be held whole: counts from all messages, distributions from sketches.

Judging such a flow begins like any other, with the sample that is held, and what the sample cannot say of the whole is
then put in its place: every count, and every figure of a measure that tracking keeps a sketch of. What remains of the
sample is what needs single messages: series, runs of losses, latency between points that have no measure of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, sqrt
from pathlib import Path

import numpy as np
import polars as pl

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.fates import Fates, fates
from wiregauge.measures.hops import read_columns
from wiregauge.measures.pairs import NAMES, PairLatency, known_pair
from wiregauge.measures.plan import FlowPlan, RunPlan
from wiregauge.measures.results import FlowResult, Hop, Percentile, Repeats, Series, Summary, Uncertainty
from wiregauge.measures.rundir import RunDirectory
from wiregauge.measures.sampling import Sampled
from wiregauge.measures.series import GAP, LOST, NO_STAMP, NOT_SAMPLED, ONE_COPY, WARM_UP, Extracted
from wiregauge.measures.service import OVERHEAD_BYTES, Rate, Rates, Service
from wiregauge.measures.summarise import loss
from wiregauge.measures.tally import Tally, tally
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = [
    "Whole",
    "exact",
    "percentile_of",
    "pool_sampled",
    "read_wholes",
    "summarise_repeats",
    "with_loss_repeats",
]

_PS = 1000.0


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of all messages of a flow of which only a sample is held."""

    one_in: int
    tally: Tally
    fates: Fates
    sketches: Mapping[str, Sketch]
    """By measure; clocks not corrected."""
    hops: Sequence[tuple[int, int, Sketch]]
    """Residence by node and output port."""


def read_wholes(
    directory: RunDirectory, plan: RunPlan, one_in: Mapping[int, int]
) -> dict[tuple[int, int], Whole]:
    """What is known of the sampled flows of a run, by number and receiver; `one_in` how many stretches is looked at.

    Raises RunDirectoryError for files that cannot be read.
    """
    flows = [flow for flow in plan.flows if flow.id in one_in]
    rows, path = directory.scan(plan.index), directory.sketches(plan.index)
    if not flows or rows is None or path is None:
        return {}
    counted = directory.reading(plan.index, lambda: tally(rows, flows))
    kept = _read_sketches(path, sorted(one_in))
    nodes = {node.name: place for place, node in enumerate(directory.plan.nodes)}
    found = {}
    for flow in flows:
        at = nodes.get(flow.destination)
        own = {key: one for key, one in kept.items() if key[0] == flow.id}
        found[flow.id, flow.receiver] = Whole(
            one_in[flow.id],
            counted[flow.id, flow.receiver],
            directory.reading(plan.index, partial(fates, rows, flow)),
            {key[3]: one for key, one in own.items() if key[3] != "residence" and key[1] == at},
            [(key[1], key[2], one) for key, one in sorted(own.items()) if key[3] == "residence"],
        )
    return found


def _read_sketches(path: Path, flows: Sequence[int]) -> dict[tuple[int, int, int, str], Sketch]:
    """Sketches of `flows` by flow, node, port and series, ns.

    Raises RunDirectoryError for a file that cannot be read.
    """
    columns = ("flow", "node", "port", "series", "n", "min", "max", "mean", "squared_deviations")
    rows = read_columns(path, (*columns, "low", "high", "count"), pl.col("flow").is_in(list(flows)))
    found = {}
    for row in rows.iter_rows(named=True):
        found[int(row["flow"]), int(row["node"]), int(row["port"]), str(row["series"])] = Sketch(
            np.array(row["low"], dtype=np.float64) / _PS,
            np.array(row["high"], dtype=np.float64) / _PS,
            np.array(row["count"], dtype=np.int64),
            int(row["n"]),
            row["min"] / _PS,
            row["max"] / _PS,
            row["mean"] / _PS,
            row["squared_deviations"] / _PS**2,
        )
    return found


def exact(
    sample: FlowResult,
    extracted: Mapping[str, Extracted],
    whole: Whole,
    names: Sequence[str],
    shift_ns: float,
    *,
    settling: int,
) -> FlowResult:
    """The result of a flow from that of its sample.

    `shift_ns` is the clock of the destination less that of the source, `settling` what the rule finds at the beginning
    of the sample.
    """
    flow, counted = sample.plan, whole.tally
    counts = counted.counts()
    held = _corrected(flow, whole, shift_ns)
    main = "rtt" if flow.relayed else "latency"
    gains = {name: _gain(extracted[name], held[name].n) for name in sample.summaries if name in held}
    summaries = {
        name: _summary(summary, held[name], extracted[name], gains[name], _excluded(name, whole, held, flow))
        if name in held
        else _of_sample(summary, counts["sent"] - sample.counts["sent"])
        for name, summary in sample.summaries.items()
    }
    series = dict(sample.series)
    least = summaries["latency"].minimum
    if least is not None:
        took = series["latency"]
        series["delay_variation"] = Series(took.t, took.value - least)
    service = _service(sample.service, flow, whole) if sample.service is not None else None
    mean = summaries["latency"].mean
    return replace(
        sample,
        counts=counts,
        outcomes=counted.outcomes(),
        warm_up=counted.warm_up,
        last_seen={_place(key, names): count for key, count in counted.last.items()},
        loss=loss(counts["lost"], counts["sent"], whole.fates.lost_worth),
        summaries=summaries,
        series=series,
        with_loss=_with_loss(held[main], counts["lost"], sample.with_loss, summaries[main], gains[main])
        if main in held and counts["lost"]
        else summaries[main].percentiles or sample.with_loss,
        lost_settled=counts["lost"],
        goodput=service.goodput.value if service is not None and service.goodput is not None else None,
        effective_bandwidth=8 * flow.payload / (mean / 1e9)
        if flow.payload is not None and mean is not None and mean > 0
        else None,
        reorder_extent=counted.count("reorder_extent"),
        hops=tuple(_hop(node, port, one, names, sample.hops) for node, port, one in whole.hops)
        or sample.hops,
        lost_copies={network: counted.count(f"lost {network}") for network in sample.lost_copies},
        late_sends=counted.count("late_sends"),
        service=service,
        pairs=tuple(_pair(pair, summaries, counts["sent"]) for pair in sample.pairs),
        sampled=Sampled(whole.one_in, sample.counts["sent"], counts["sent"], settling),
        sketches=held,
    )


def _place(key: tuple[int | None, str | None], names: Sequence[str]) -> str:
    node, point = key
    at = f" at {names[node]}" if node is not None and 0 <= node < len(names) else ""
    return f"{point or 'never seen'}{at}"


def _corrected(flow: FlowPlan, whole: Whole, shift_ns: float) -> dict[str, Sketch]:
    """The sketch of every measure, with the correction of clocks that single values have (`differences`)."""
    by = {
        **dict.fromkeys(("latency", "driver_latency", "service_latency"), shift_ns),
        "return_latency": -shift_ns,
        "network": 0.0 if flow.relayed else shift_ns,
    }
    held = {name: one.moved(by[name]) if by.get(name) else one for name, one in whole.sketches.items()}
    if "latency" in held:
        held["delay_variation"] = held["latency"].moved(held["latency"].minimum)
    main = "rtt" if flow.relayed else "latency"
    if flow.deadline_ns is not None and main in whole.sketches:
        held["lateness"] = whole.sketches[main].moved(flow.deadline_ns)
    if whole.hops:
        held["residence"] = sketches.merged([one for _, _, one in whole.hops])
    return held


def _excluded(name: str, whole: Whole, held: Mapping[str, Sketch], flow: FlowPlan) -> dict[str, int]:
    """Why messages have no value of a measure; exact."""
    counted, n, sent = whole.tally, held[name].n, whole.tally.count("sent")
    if name == "residence":
        return {}
    of = {"delay_variation": "latency", "lateness": "rtt" if flow.relayed else "latency"}.get(name, name)
    reasons = counted.excluded(of) or {
        "period": {GAP: sent - 1 - n},
        "ipdv": {GAP: sent - 1 - n},
        "receive_period": {LOST: counted.count("no rx_app")},
        "bag_spacing": {NO_STAMP: counted.count("no tx_wire")},
        "bag_jitter": {NO_STAMP: counted.count("no tx_wire")},
        "skew": {ONE_COPY: sent - n},
        "window_error": {LOST: sent - n},
    }.get(name, {})
    return {WARM_UP: counted.warm_up, **reasons}


def _gain(extracted: Extracted, n: int) -> float:
    """How many times more independent values `n` are worth than the sample: at least as many.

    Where values resemble each other beyond a stretch the sample cannot tell how those between resemble them. Then the
    whole is taken to be worth what the sample is: it is not less.
    """
    values, stretch = extracted.series.value, extracted.stretch
    if stretch is None or not len(values) or sketches.outlasts(values, stretch):
        return 1.0
    return max(n / len(values), 1.0)


def _of_sample(summary: Summary, beyond: int) -> Summary:
    return replace(summary, excluded={**summary.excluded, NOT_SAMPLED: beyond}) if summary.n else summary


def _summary(
    sample: Summary, sketch: Sketch, extracted: Extracted, gain: float, excluded: Mapping[str, int]
) -> Summary:
    """The summary of all values, from their sketch and what the sample says of their dependence."""
    deviation, n = sketch.deviation(), sketch.n
    worth = min((sample.n_effective or 1.0) * gain, float(n))
    known = sample.uncertainty
    if known is not None and deviation is not None:
        known = Uncertainty(sketches.mean_half_width(deviation, worth), known.clock, known.stamp)
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
            name: _percentile(sketch, q, _worth(sample, name, extracted, sketch, gain))
            for name, q in QUANTILES.items()
        },
        n_effective=worth,
        uncertainty=known,
        sd_interval=sketches.narrowed(sample.sd_interval, sample.sd or 0.0, deviation, gain)
        if sample.sd_interval is not None and deviation is not None
        else None,
        settling=None,
    )


def _worth(sample: Summary, name: str, extracted: Extracted, sketch: Sketch, gain: float) -> float:
    """Independent values that all are worth for a percentile."""
    percentile = sample.percentiles.get(name)
    own = percentile.worth if percentile is not None else None
    worth = own if own is not None else (sample.n_effective or 1.0)
    if gain > 1 and extracted.stretch is not None:
        beyond = (extracted.series.value > sketch.quantile(QUANTILES[name])).astype(np.float64)
        gain = 1.0 if sketches.outlasts(beyond, extracted.stretch) else gain
    return min(worth * gain, float(sketch.n))


def _percentile(sketch: Sketch, q: float | Fraction, worth: float) -> Percentile:
    needed = stats.samples_needed(q)
    if sketch.n < needed:
        return Percentile(float(q), None, None, None, needed)
    low, high = sketches.scaled_interval(sketch, q, worth)
    return Percentile(float(q), sketch.quantile(q), low, high, needed, worth)


def _with_loss(
    sketch: Sketch, lost: int, sample: Mapping[str, Percentile], main: Summary, gain: float
) -> dict[str, Percentile]:
    """Percentiles over all sent messages, a lost one counting as infinitely late."""
    n = sketch.n + lost
    found = {}
    for name, q in QUANTILES.items():
        needed = stats.samples_needed(q)
        if n < needed:
            found[name] = Percentile(q, None, None, None, needed)
            continue
        own = sample[name].worth if name in sample else None
        worth = min((own if own is not None else main.n_effective or 1.0) * (gain if own else 1.0), float(n))
        low, high = stats.scaled_ranks(n, q, worth)
        found[name] = Percentile(
            q,
            _ranked(sketch, stats.rank(n, q)),
            *_ends(sketch, low, high),
            needed,
            worth,
        )
    return found


def _ranked(sketch: Sketch, place: int) -> float:
    return sketch.ranked(place) if place <= sketch.n else inf


def _ends(sketch: Sketch, low: int | None, high: int | None) -> tuple[float | None, float | None]:
    """Values of two ranks among those that came and, after them, the lost."""
    inside = (rank if rank is not None and rank <= sketch.n else None for rank in (low, high))
    bottom, top = sketch.around(*inside)
    return (
        inf if low is not None and low > sketch.n else bottom,
        inf if high is not None and high > sketch.n else top,
    )


def _hop(node: int, port: int, one: Sketch, names: Sequence[str], sample: Sequence[Hop]) -> Hop:
    """The mean is known at least as well as that of the sample."""
    switch = names[node] if 0 <= node < len(names) else f"node {node}"
    same = next((hop for hop in sample if (hop.switch, hop.port) == (switch, port)), None)
    return Hop(
        switch,
        port,
        one.n,
        one.minimum,
        one.mean,
        one.quantile(0.99) if stats.supported(one.n, 0.99) else None,
        one.maximum,
        same.half_width if same is not None else None,
        same.bound if same is not None else 0.0,
    )


def _pair(pair: PairLatency, summaries: Mapping[str, Summary], sent: int) -> PairLatency:
    """A pair that is a measure of its own is told like it; the others are of the sample."""
    known = summaries.get(NAMES.get((pair.start, pair.end), ""))
    if known is None or not known.n:
        return pair
    return known_pair(pair.start, pair.end, sent - known.n, known, pair.bound) or pair


# -- counts and rates of the service --------------------------------------------------------------------------


def _service(sample: Service, flow: FlowPlan, whole: Whole) -> Service:
    """Counts, rates and fates of all messages; how arrivals overtook one another and conformity stay of the sample."""
    counted = whole.tally
    order = replace(
        sample.reordering,
        share=whole.fates.reordered,
        extent_max=counted.count("reorder_extent"),
    )
    deadline = sample.deadline
    if deadline is not None:
        mean, most = counted.figures.get("tardy on average"), counted.time("tardiest")
        deadline = replace(
            deadline,
            missed=whole.fates.missed,
            late=counted.count("late arrived"),
            tardiness_mean_ns=mean / _PS - deadline.deadline_ns if mean is not None else None,
            tardiness_max_ns=most / _PS - deadline.deadline_ns if most is not None else None,
        )
    payload = flow.payload
    return replace(
        sample,
        losses=whole.fates.losses,
        availability=whole.fates.availability,
        reordering=order,
        deadline=deadline,
        rates=_rates(sample.rates, counted) if sample.rates is not None else None,
        goodput=_rate(sample.goodput, counted, "arrivals", 8.0 * payload)
        if sample.goodput is not None and payload is not None
        else None,
    )


def _rates(sample: Rates, counted: Tally) -> Rates:
    numbers = counted.count("number last") - counted.count("number first")
    planned = counted.count("intended last") - counted.count("intended first")
    length = counted.figures.get("length")
    return replace(
        sample,
        intended_per_s=numbers / planned * 1e12 if planned > 0 else sample.intended_per_s,
        offered_per_s=_rate(sample.offered_per_s, counted, "offered", 1.0),
        bits_per_frame=8 * (length + OVERHEAD_BYTES) if length is not None else None,
    )


def _rate(sample: Rate, counted: Tally, of: str, each: float) -> Rate:
    """The rate of all events; its interval is as wide, relative to it, as that of the sample: it is not wider."""
    count, first, last = counted.count(of), counted.time(f"{of} first"), counted.time(f"{of} last")
    if count < 2 or first is None or last is None or last <= first:
        return sample
    value = each * 1e12 * (count - 1) / (last - first)
    scale = value / sample.value
    return Rate(
        value,
        sample.low * scale if sample.low is not None else None,
        sample.high * scale if sample.high is not None else None,
    )


# -- repeats --------------------------------------------------------------------------------------------------


def pool_sampled(flows: Sequence[FlowResult]) -> Sampled | None:
    """How repeats were sampled: the sparsest; None where all were held whole."""
    sparse = [flow.sampled for flow in flows if flow.sampled is not None]
    if not sparse:
        return None
    whole = sum(flow.counts["sent"] for flow in flows if flow.sampled is None)
    return Sampled(
        max(one.one_in for one in sparse),
        sum(one.rows for one in sparse) + whole,
        sum(one.of for one in sparse) + whole,
        sum(one.settling for one in sparse),
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


def summarise_repeats(
    name: str, flows: Sequence[FlowResult], excluded: Mapping[str, int], *, clock_ns: float, stamp_ns: float
) -> Summary:
    """The summary of a measure of repeats of which some are sampled: their sketches, merged."""
    excluded = {reason: count for reason, count in excluded.items() if count}
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
        percentiles={quantile: _repeated(each, pooled, q, 0) for quantile, q in QUANTILES.items()},
        n_effective=sum(worths),
        uncertainty=Uncertainty(sampling, clock_ns, stamp_ns) if sampling is not None else None,
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
        return {
            name: Percentile(q, None, None, None, stats.samples_needed(q)) for name, q in QUANTILES.items()
        }
    each = [one for _, one in parts]
    lost = sum(flow.lost_settled for flow in flows)
    if len(parts) == 1 and not lost:
        return dict(parts[0][0].summaries[main].percentiles)
    sizes = [flow.lost_settled for flow, _ in parts]
    return {name: _repeated(each, sketches.merged(each), q, lost, sizes) for name, q in QUANTILES.items()}


def percentile_of(name: str, flows: Sequence[FlowResult], q: float | Fraction) -> Percentile:
    """Any percentile of a measure of a flow, of one run or of repeats, of which some are sampled."""
    parts = _parts(flows, name)
    each = [one for _, one in parts]
    if len(each) == 1:
        flow, sketch = parts[0]
        return _percentile(sketch, q, flow.summaries[name].n_effective or 1.0)
    return _repeated(each, sketches.merged(each), q, 0)


def _repeated(
    each: Sequence[Sketch], pooled: Sketch, q: float | Fraction, lost: int, by_run: Sequence[int] = ()
) -> Percentile:
    """A percentile of repeats with `lost` messages beyond the largest value, of each run as `by_run` says."""
    n, needed = pooled.n + lost, stats.samples_needed(q)
    if n < needed:
        return Percentile(float(q), None, None, None, needed)
    value = _ranked(pooled, stats.rank(n, q))
    if len(each) < 2:
        return Percentile(float(q), value, None, None, needed)
    gone = by_run or [0] * len(each)
    low, high = sketches.repeated_ranks(each, pooled, q, gone, value)
    return Percentile(float(q), value, *_ends(pooled, low, high), needed)
