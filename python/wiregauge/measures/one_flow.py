"""Judges one flow of one run: its counts, figures and service, from its rows of the message table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import DEFINITIONS, MAIN, OUTCOMES
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.hops import Passages, hops_of
from wiregauge.measures.metrics.pairs import Correction, pair_latencies, side_by_side
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.reported import number
from wiregauge.measures.metrics.results import FlowResult, Summary
from wiregauge.measures.metrics.series import WARM_UP, Extracted, Offsets, extract
from wiregauge.measures.metrics.service import serve
from wiregauge.measures.metrics.summarise import loss, shifted, summarise, with_loss
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN, happened
from wiregauge.measures.sketched import Whole, exact
from wiregauge.measures.validity.settling import character


def judge_flow(  # noqa: PLR0913 - all that is known of a flow and of its run meets here
    flow: FlowPlan,
    rows: pl.DataFrame,
    tracked: Mapping[str, object],
    between: Offsets,
    timestamp_ns: float,
    wire: Mapping[str, float],
    unseen: Collection[str],
    names: Sequence[str],
    through: Passages | None,
    among: int,
    whole: Whole | None,
    *,
    repeated: bool,
) -> FlowResult:
    """`among` flows of the run share the rate of false alarms of the rules; `whole`: what `rows` are a sample of;
    `wire`: by node the error of the interface's timestamps.

    `repeated` results are pooled with those of other runs, and keep what that needs.
    """
    at_wire = {"tx_wire": wire.get(flow.source, 0.0), "rx_wire": wire.get(flow.destination, 0.0)}
    correction = Correction(between.outward_ns, between.uncertainty_ns, timestamp_ns, at_wire)
    measured = rows.filter(~pl.col("warm_up"))
    extracted = extract(measured, flow, between, {WARM_UP: rows.height - measured.height})
    if through is not None:
        extracted["residence"] = Extracted(through.series(), {}, through.stretches() if whole else None)
    tally = dict(measured["outcome"].value_counts().iter_rows())
    outcomes = {name: int(tally.get(name, 0)) for name in OUTCOMES}
    gone = measured["outcome"].is_in(LOST_OUTCOMES).to_numpy()
    unknown = (measured["outcome"] == UNKNOWN).to_numpy()
    lost = int(np.count_nonzero(gone))
    counts = _counts(measured, lost, int(np.count_nonzero(unknown)))
    last = measured.filter(pl.col("outcome").is_in(LOST_OUTCOMES)).select("last_node", "last_point")
    places = {
        f"{point or 'never seen'}"
        + (f" at {names[node]}" if isinstance(node, int) and 0 <= node < len(names) else ""): int(count)
        for node, point, count in last.group_by("last_node", "last_point", maintain_order=True)
        .len()
        .iter_rows()
    }
    drops = tracked.get("drop_reasons")
    series = {name: found.series for name, found in extracted.items()}
    main = flow.main
    summaries = _summaries(extracted, flow, between, timestamp_ns)
    for name in MAIN:
        if name in summaries:
            steady, early = character(series[name].value, among)
            summaries[name] = replace(summaries[name], stationarity=steady, settling=early)
    begins = summaries[main].settling
    blind = tuple(sorted({flow.source, flow.destination} & set(unseen)))
    service = serve(measured, flow, gone, unknown) if not blind else None
    judged = FlowResult(
        plan=flow,
        counts=counts,
        outcomes=outcomes,
        planned=number(tracked, "planned") or flow.count,
        warm_up=rows.height - measured.height,
        last_seen=places,
        drop_reasons={str(k): number(drops, str(k)) for k in drops} if isinstance(drops, dict) else {},
        missing_send_records=number(tracked, "missing_send_records"),
        loss=loss(
            lost,
            measured.height,
            stats.flags_worth(gone),
            counts["unknown"],
            stats.flags_worth(gone | unknown),
        )
        if not blind
        else loss(0, 0),
        unseen=blind,
        summaries=summaries,
        series=series,
        with_loss=_with_loss(measured, flow, between, gone)
        if lost
        else summaries[main].percentiles or with_loss([], [], flow.quantiles),
        goodput=service.goodput.value if service is not None and service.goodput is not None else None,
        effective_bandwidth=effective_bandwidth(summaries["latency"].mean, flow.payload),
        reorder_extent=_largest(measured["reorder_extent"]),
        hops=hops_of(through, names, timestamp_ns),
        redundant_discarded=number(tracked, "redundant_discarded"),
        lost_copies=_lost_copies(measured) if flow.both_networks else {},
        late_sends=int(np.count_nonzero(series["send_error"].value > flow.late_after_ns))
        if flow.late_after_ns
        else 0,
        settling=begins.n if begins is not None else 0,
        service=service,
        pairs=pair_latencies(
            measured,
            flow,
            correction,
            summaries,
            keep=repeated,
        ),
    )
    if whole is None:
        return judged
    return exact(judged, extracted, whole, names, correction)


def _summaries(
    extracted: Mapping[str, Extracted], flow: FlowPlan, between: Offsets, timestamp_ns: float
) -> dict[str, Summary]:
    """One summary per series. What is another measure less a constant is that one's summary, moved."""
    moved = {"delay_variation": "latency", "lateness": flow.main}

    def own(name: str) -> Summary:
        found = extracted[name]
        clock_ns = _clock_error(name, flow, between)
        return summarise(
            name,
            [found.series.value],
            found.excluded,
            clock_ns=clock_ns,
            timestamp_ns=timestamp_ns,
            quantiles=flow.quantiles,
        )

    names = [name for name in extracted if name not in moved]
    summaries = dict(
        zip(names, side_by_side(own, names, len(extracted["latency"].series.value)), strict=True)
    )
    for name, base in moved.items():
        if name in extracted:
            values = extracted[name].series.value
            by = float(extracted[base].series.value[0] - values[0]) if len(values) else 0.0
            summaries[name] = shifted(
                summaries[base],
                name,
                by,
                negative=int(np.count_nonzero(values < 0)),
                clock_ns=_clock_error(name, flow, between),
            )
    return {name: summaries[name] for name in extracted}


def _with_loss(
    rows: pl.DataFrame, flow: FlowPlan, between: Offsets, gone: NDArray[np.bool_]
) -> dict[str, Percentile]:
    """What arrived without a timestamp has no time and is left out; what was lost stays."""
    end, shift = ("back_rx_app", 0.0) if flow.relayed else ("rx_app", between.outward_ns)
    took = (rows[end] - rows["tx_app"]).cast(pl.Float64).to_numpy() / 1000 - shift
    known = gone | ~np.isnan(took)
    return with_loss([np.where(gone, 0.0, took)[known]], [gone[known]], flow.quantiles)


def _lost_copies(measured: pl.DataFrame) -> dict[str, int]:
    """Copies that were sent on a network and did not come off its wire at the receiver."""
    return {
        network: int((measured[f"tx_wire{of}"].is_not_null() & measured[f"rx_wire{of}"].is_null()).sum())
        for network, of in (("A", ""), ("B", "_b"))
    }


def _counts(measured: pl.DataFrame, lost: int, unknown: int) -> dict[str, int]:
    """The counters of a flow from its rows; each counts messages to which that happened, whatever else did."""
    row = measured.select(**{name: flags.sum() for name, flags in happened().items()}).row(0, named=True)
    delivered = measured.height - lost - unknown
    counts = {"sent": measured.height, "delivered": delivered, "lost": lost, "unknown": unknown}
    return counts | {name: int(value or 0) for name, value in row.items()}


def _largest(column: pl.Series) -> int:
    top = column.max()
    return top if isinstance(top, int) else 0


def _clock_error(name: str, flow: FlowPlan, between: Offsets) -> float:
    across = DEFINITIONS[name].between_clocks(relayed=flow.relayed)
    return between.uncertainty_ns if across else 0.0


def effective_bandwidth(mean_ns: float | None, payload: int | None) -> float | None:
    return (
        8 * payload / (mean_ns / 1e9) if payload is not None and mean_ns is not None and mean_ns > 0 else None
    )
