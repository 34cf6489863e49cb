"""Judges flows of one run from their rows of the message table, several at a time, in three passes.

First, each flow is read and its series are extracted. Second, the statistics of the series of all flows are computed
together, then every other measure for all flows. Third, the result of each flow is put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import polars as pl
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.definitions import DEFINITIONS, OUTCOMES
from wiregauge.measures.flow_measures import FLOW_MEASURES
from wiregauge.measures.flow_measures.base import FlowReading, RunReading, stored
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.batching import Batch, Pending, SeriesRequest, SeriesStatistics
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.hops import Passages
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import Correction
from wiregauge.measures.metrics.series import IS_GONE, UNPAIRED, WARM_UP, Extracted, Offsets, extract
from wiregauge.measures.metrics.service import Conformity
from wiregauge.measures.metrics.silences import tells_unsent
from wiregauge.measures.metrics.summarise import loss, shifted, summary_of
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN, happened
from wiregauge.measures.sketched.exact import exact
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.measures.validity.settling import character
from wiregauge.records.counters import known
from wiregauge.records.reported import TrackedFlow

__all__ = ["judge_flows", "read_flow"]

_UNKNOWN = pl.col("outcome") == UNKNOWN


def read_flow(
    run: RunReading,
    flow: FlowPlan,
    rows: tuple[Part, Part],
    tracked: TrackedFlow | None,
    between: Offsets,
    through: Passages | None = None,
    whole: Whole | None = None,
    frames: Conformity | None = None,
) -> FlowReading:
    """Extracts all figures of a flow from its `rows`: those of the warm-up and those of the measured part.

    `whole` describes the flow of which these are a sample, `frames` the conformity of its frames on the wire.
    """
    early, part = rows
    at_wire = {"tx_wire": run.wire.get(flow.source, 0.0), "rx_wire": run.wire.get(flow.destination, 0.0)}
    blind = tuple(sorted({flow.source, flow.destination} & set(run.unseen)))
    extracted = extract(part, flow, between, {WARM_UP: early.height}, blind=bool(blind))
    if through is not None:
        unpaired = {UNPAIRED: run.unpaired.get(flow.id, 0)}
        extracted["residence"] = Extracted(through.series(), unpaired, through.stretches() if whole else None)
    return FlowReading(
        run=run,
        flow=flow,
        early=early,
        part=part,
        tracked=tracked or TrackedFlow(flow=flow.id),
        between=between,
        correction=Correction(between.outward_ns, between.uncertainty_ns, run.timestamp_ns, at_wire),
        blind=blind,
        extracted=extracted,
        gone=part.flags("is gone", IS_GONE),
        unknown=part.flags("is unknown", _UNKNOWN),
        through=through,
        whole=whole,
        frames=frames,
    )


def judge_flows(readings: Sequence[FlowReading]) -> list[FlowResult]:
    """The results of flows of one run, in their order."""
    batch = Batch()
    made = batch.results([_summaries(one) for one in readings])
    for one, summaries in zip(readings, made, strict=True):
        one.summaries = _with_character(one, summaries)
    found = [[(measure, measure.computed(one)) for measure in FLOW_MEASURES.values()] for one in readings]
    answers = iter(batch.results([value for own in found for _, value in own if isinstance(value, Pending)]))
    return [
        _result(
            one,
            stored((of, next(answers) if isinstance(value, Pending) else value) for of, value in own),
        )
        for one, own in zip(readings, found, strict=True)
    ]


def _summaries(reading: FlowReading) -> Pending[dict[str, Summary]]:
    """One summary per series. What is another measure less a constant is that one's summary, moved."""
    extracted, flow, timestamp_ns = reading.extracted, reading.flow, reading.run.timestamp_ns
    moved = {"delay_variation": "latency", "lateness": flow.main}
    filled = [name for name, found in extracted.items() if name not in moved and len(found.series.value)]

    def told(statistics: Sequence[SeriesStatistics]) -> dict[str, Summary]:
        known = dict(zip(filled, statistics, strict=True))
        summaries = {
            name: summary_of(
                name,
                known.get(name),
                found.excluded,
                clock_ns=_clock_error(name, flow, reading.between),
                timestamp_ns=timestamp_ns,
            )
            for name, found in extracted.items()
            if name not in moved
        }
        for name, base in moved.items():
            if name in extracted:
                values = extracted[name].series.value
                summaries[name] = shifted(
                    summaries[base],
                    name,
                    float(extracted[base].series.value[0] - values[0]) if len(values) else 0.0,
                    negative=int(np.count_nonzero(values < 0)),
                    clock_ns=_clock_error(name, flow, reading.between),
                )
        return {name: summaries[name] for name in extracted}

    wanted = [SeriesRequest(extracted[name].series.value, flow.quantiles, spread=True) for name in filled]
    return Pending(wanted, told)


def _with_character(reading: FlowReading, summaries: dict[str, Summary]) -> dict[str, Summary]:
    """The summaries, of the main measures with how they change over the run."""
    for name in reading.run.main:
        if name in summaries:
            steady, begins = character(reading.extracted[name].series.value, reading.run.among)
            if steady is not None or begins is not None:
                summaries[name] = replace(summaries[name], stationarity=steady, settling=begins)
    return summaries


def _result(reading: FlowReading, figures: dict[str, object]) -> FlowResult:
    flow, part, tracked, between = reading.flow, reading.part, reading.tracked, reading.between
    gone, unknown = reading.gone, reading.unknown
    lost = int(np.count_nonzero(gone))
    counts = _counts(part, lost, int(np.count_nonzero(unknown)))
    series = {name: found.series for name, found in reading.extracted.items()}
    begins = reading.summaries[flow.main].settling
    worths = (stats.flags_worth(gone), counts["unknown"], stats.flags_worth(gone | unknown))
    late_after = flow.late_after_ns
    result = FlowResult(
        plan=flow,
        counts=counts,
        outcomes=_outcomes(part),
        planned=tracked.planned or flow.count,
        warm_up=reading.early.height,
        last_seen=_last_seen(part, reading.run.names) if lost else {},
        drop_reasons=_alike(tuple(tracked.drop_reasons.items())) if tracked.drop_reasons else {},
        missing_send_records=known(tracked.missing_send_records),
        loss=loss(0, 0) if reading.blind else loss(lost, part.height, *worths),
        unseen=reading.blind,
        summaries=reading.summaries,
        series=series,
        figures=figures,
        reorder_extent=int(part.column("reorder_extent").values.max(initial=0)),
        redundant_discarded=known(tracked.redundant_discarded),
        lost_copies=part.counted(_LOST_COPIES) if flow.both_networks else {},
        late_sends=int(np.count_nonzero(series["send_error"].value > late_after)) if late_after else 0,
        settling=begins.n if begins is not None else 0,
        unsent_in_silences=tells_unsent(part, flow),
        clock_varies=between.varies_ns,
        clock_wanders=between.wanders_ns,
    )
    return result if reading.whole is None else _of_all(result, reading, reading.whole)


def _of_all(sample: FlowResult, reading: FlowReading, whole: Whole) -> FlowResult:
    """The result of a flow too large to be held, from that of its sampled rows and the full results."""
    flow = exact(sample, reading.extracted, whole, reading.run.names, reading.correction.shift)
    figures = (
        (one, one.of_all_messages(sample[one], flow, reading, whole)) for one in FLOW_MEASURES.values()
    )
    return replace(flow, figures=stored(figures))


_LOST_COPIES = {
    network: pl.col(f"tx_wire{of}").is_not_null() & pl.col(f"rx_wire{of}").is_null()
    for network, of in (("A", ""), ("B", "_b"))
}
"""Copies that were sent on a network and did not come off its wire at the receiver."""


def _counts(part: Part, lost: int, unknown: int) -> dict[str, int]:
    """The counters of a flow from its rows; each counts messages to which that happened, whatever else did."""
    delivered = part.height - lost - unknown
    counts = {"sent": part.height, "delivered": delivered, "lost": lost, "unknown": unknown}
    return counts | part.counted(happened())


def _outcomes(part: Part) -> dict[str, int]:
    """The one outcome of each message, counted."""
    found = np.bincount(part.column("numbered outcome", _numbered()).values, minlength=len(OUTCOMES))
    return dict(zip(OUTCOMES, found.tolist(), strict=False))


@cache
def _numbered() -> pl.Expr:
    return pl.col("outcome").replace_strict(
        list(OUTCOMES), range(len(OUTCOMES)), default=len(OUTCOMES), return_dtype=pl.Int64
    )


@lru_cache(maxsize=256)
def _alike(counts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """Counts by reason; of a run of many flows, nearly all with the same, as one object."""
    return dict(counts)


def _last_seen(part: Part, names: Sequence[str]) -> dict[str, int]:
    """Lost messages by the last point that saw them."""
    last = part.frame.filter(pl.col("outcome").is_in(LOST_OUTCOMES)).select("last_node", "last_point")
    return {
        f"{point or 'never seen'}"
        + (f" at {names[node]}" if isinstance(node, int) and 0 <= node < len(names) else ""): int(count)
        for node, point, count in last.group_by("last_node", "last_point", maintain_order=True)
        .len()
        .iter_rows()
    }


def _clock_error(name: str, flow: FlowPlan, between: Offsets) -> float:
    across = DEFINITIONS[name].between_clocks(relayed=flow.relayed)
    return between.uncertainty_ns if across else 0.0
