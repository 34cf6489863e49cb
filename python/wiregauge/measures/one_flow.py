"""Judges one flow of one run: its counts, figures and service, from its rows of the message table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import DEFINITIONS, MAIN, OUTCOMES
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.hops import Passages, hops_of
from wiregauge.measures.metrics.pairs import Correction, pair_latencies
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.reported import number
from wiregauge.measures.metrics.results import FlowResult
from wiregauge.measures.metrics.series import IS_GONE, UNPAIRED, WARM_UP, Extracted, Offsets, extract
from wiregauge.measures.metrics.service import Conformity, serve
from wiregauge.measures.metrics.silences import tells_unsent
from wiregauge.measures.metrics.summarise import loss, shifted, summary_of, with_loss
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN, happened
from wiregauge.measures.metrics.together import Asked, Asking, asked_for
from wiregauge.measures.sketched import Whole, exact
from wiregauge.measures.validity.settling import character

_UNKNOWN = pl.col("outcome") == UNKNOWN


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the run around a flow."""

    names: Sequence[str]
    """Of nodes, by index."""
    timestamp_ns: float
    wire: Mapping[str, float]
    """By node the error of the interface's timestamps, ns."""
    unseen: Collection[str]
    among: int
    """Flows of the run, which share the rate of false alarms of the rules."""
    unpaired: Mapping[int, int]
    """By flow: frames that left a switch although it is not remembered that they came."""
    repeated: bool
    """Results are pooled with those of other runs, and keep what that needs."""
    main: Sequence[str] = field(default_factory=lambda: tuple(MAIN))
    """Measures of which is told how they change over the run."""
    paired: Collection[int] | None = None
    """Flows of which also what lies between every two points is told, and not only what has a name; None: all."""


def judge_flow(
    flow: FlowPlan,
    rows: tuple[Part, Part],
    tracked: Mapping[str, object],
    between: Offsets,
    known: Known,
    through: Passages | None,
    whole: Whole | None,
    frames: Conformity | None = None,
) -> Asking[FlowResult]:
    """From its `rows` of warm-up and of the measured part; `whole`: what those are a sample of; `frames`: what frames
    on the wire say of its virtual link.
    """
    early, part = rows
    at_wire = {
        "tx_wire": known.wire.get(flow.source, 0.0),
        "rx_wire": known.wire.get(flow.destination, 0.0),
    }
    correction = Correction(between.outward_ns, between.uncertainty_ns, known.timestamp_ns, at_wire)
    blind = tuple(sorted({flow.source, flow.destination} & set(known.unseen)))
    extracted = extract(part, flow, between, {WARM_UP: early.height}, blind=bool(blind))
    if through is not None:
        unpaired = {UNPAIRED: known.unpaired.get(flow.id, 0)}
        extracted["residence"] = Extracted(through.series(), unpaired, through.stretches() if whole else None)
    gone = part.flags("is gone", IS_GONE)
    unknown = part.flags("is unknown", _UNKNOWN)
    lost = int(np.count_nonzero(gone))
    counts = _counts(part, lost, int(np.count_nonzero(unknown)))
    drops = tracked.get("drop_reasons")
    series = {name: found.series for name, found in extracted.items()}
    main = flow.main
    summaries = yield from _summaries(extracted, flow, between, known.timestamp_ns)
    for name in known.main:
        if name in summaries:
            steady, begins = character(series[name].value, known.among)
            if steady is not None or begins is not None:
                summaries[name] = replace(summaries[name], stationarity=steady, settling=begins)
    begins = summaries[main].settling
    service = None if blind else (yield from serve(part, flow, gone, unknown, frames))
    judged = FlowResult(
        plan=flow,
        counts=counts,
        outcomes=_outcomes(part),
        planned=number(tracked, "planned") or flow.count,
        warm_up=early.height,
        last_seen=_last_seen(part, known.names) if lost else {},
        drop_reasons=_counts_of(drops) if isinstance(drops, dict) else {},
        missing_send_records=number(tracked, "missing_send_records"),
        loss=loss(
            lost,
            part.height,
            stats.flags_worth(gone),
            counts["unknown"],
            stats.flags_worth(gone | unknown),
        )
        if not blind
        else loss(0, 0),
        unseen=blind,
        summaries=summaries,
        series=series,
        with_loss=_with_loss(part, flow, between, gone)
        if lost
        else summaries[main].percentiles or with_loss([], [], flow.quantiles),
        goodput=service.goodput.value if service is not None and service.goodput is not None else None,
        effective_bandwidth=effective_bandwidth(summaries["latency"].mean, flow.payload),
        reorder_extent=int(part.column("reorder_extent").values.max(initial=0)),
        hops=(yield from hops_of(through, known.names, known.timestamp_ns)),
        redundant_discarded=number(tracked, "redundant_discarded"),
        lost_copies=part.counted(_LOST_COPIES) if flow.both_networks else {},
        late_sends=int(np.count_nonzero(series["send_error"].value > flow.late_after_ns))
        if flow.late_after_ns
        else 0,
        settling=begins.n if begins is not None else 0,
        service=service,
        unsent_in_silences=tells_unsent(part, flow),
        clock_varies=between.varies_ns,
        clock_wanders=between.wanders_ns,
        pairs=(yield from pair_latencies(part, flow, correction, summaries, keep=known.repeated))
        if known.paired is None or flow.id in known.paired
        else (),
    )
    if whole is None:
        return judged
    return exact(judged, extracted, whole, known.names, correction)


def _summaries(
    extracted: Mapping[str, Extracted], flow: FlowPlan, between: Offsets, timestamp_ns: float
) -> Asking[dict[str, Summary]]:
    """One summary per series. What is another measure less a constant is that one's summary, moved."""
    moved = {"delay_variation": "latency", "lateness": flow.main}
    quantiles = flow.quantiles
    filled = [name for name, found in extracted.items() if name not in moved and len(found.series.value)]
    figures = yield from asked_for(
        [partial(Asked, extracted[name].series.value, quantiles, spread=True) for name in filled],
        len(extracted["latency"].series.value),
    )
    known = dict(zip(filled, figures, strict=True))
    summaries = {
        name: summary_of(
            name,
            known.get(name),
            found.excluded,
            clock_ns=_clock_error(name, flow, between),
            timestamp_ns=timestamp_ns,
        )
        for name, found in extracted.items()
        if name not in moved
    }
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
    part: Part, flow: FlowPlan, between: Offsets, gone: NDArray[np.bool_]
) -> dict[str, Percentile]:
    """What arrived without a timestamp has no time and is left out; what was lost stays."""
    end, shift = ("back_rx_app", 0.0) if flow.relayed else ("rx_app", between.outward_ns)
    column = part.column(f"tx_app to {end}", pl.col(end) - pl.col("tx_app"))
    took = column.values / 1000 - shift
    known = gone | column.known if column.known is not None else np.ones_like(gone)
    return with_loss([np.where(gone, 0.0, took)[known]], [gone[known]], flow.quantiles)


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


def _counts_of(told: Mapping[str, object]) -> Mapping[str, int]:
    """Counts by reason; of a run of many flows, nearly all with the same, as one object."""
    return _alike(tuple((name, n if type(n) is int else number(told, name)) for name, n in told.items()))


@lru_cache(maxsize=256)
def _alike(counts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
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


def effective_bandwidth(mean_ns: float | None, payload: int | None) -> float | None:
    return (
        8 * payload / (mean_ns / 1e9) if payload is not None and mean_ns is not None and mean_ns > 0 else None
    )
