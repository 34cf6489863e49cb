"""Order in which the messages of a flow arrived (RFC 4737)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import ARRIVED
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.metrics.arrivals import Arrivals
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Reordering, Share, share_of
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["REORDERING"]

_order_of = partial(Definition, better="lower", rests_on="latency", of=ARRIVED, least=2, links="more")
_DEFINITIONS = (
    _order_of(
        "reorder_extent",
        "Reordering extent",
        "i - (least j < i with sequence[j] > sequence[i]), i and j counting arrivals",
        unit="messages",
        source="RFC 4737, 4.2.1",
        note="Buffer size, in messages, that restores the order. Reordered messages only.",
        statistics=("max", "mean"),
        after="reordered",
    ),
    _order_of(
        "reorder_late_time",
        "Reordering late time",
        "arrival[i] - arrival[i - reorder_extent]",
        unit="ns",
        source="RFC 4737, 4.3",
        note="Time for which that buffer must wait.",
        statistics=("max",),
    ),
    _order_of(
        "n_reordering",
        "n-reordering",
        "messages directly preceded by at least n arrivals with higher sequence numbers",
        unit="messages",
        source="RFC 4737, 5",
        note="With n = 3 a TCP sender assumes that the message is lost. Arrivals with equal timestamps count as "
        "in order.",
        statistics=("1", "2", "3"),
    ),
)


class _Reordering(Served[Reordering]):
    """Extent of reordering, the time that a buffer against it waits, and n-reordering."""

    name = "reordering"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Reordering:
        part, gone = reading.part, reading.gone | reading.unknown
        flags = part.flags("reordered")
        share = share_of(flags[~gone])
        if not share.count:
            return Reordering(share, 0, None, {1: 0, 2: 0, 3: 0}, 0, None)
        recorded = part.column("reorder_extent").values[flags]
        came = Arrivals()
        came.take_rows(part.frame.filter(pl.Series(~gone)), reading.final)
        came.finish()
        return _order(share, int(recorded.max()), float(recorded.mean()), came)

    def of_all(self, sample: Reordering, reading: FlowReading, whole: Whole) -> Reordering:
        counted = whole.tally
        extent = counted.count("reorder_extent"), counted.figures.get("mean extent")
        return _order(whole.fates.reordered, *extent, whole.census.arrivals)

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        order, none = flow[self], "no message was reordered"
        if order is None:
            return
        came = order.share.n
        yield single("reorder_extent", "max", order.extent_max, came)
        mean = single("reorder_extent", "mean", order.extent_mean, order.share.count, None, none, 0.0)
        yield replace(mean, among=came)
        yield single("reorder_late_time", "max", order.late_time_max_ns, came, None, none, 0.0)
        for n, count in order.n_reordered.items():
            yield single("n_reordering", str(n), count, came)


REORDERING = _Reordering()


def _order(share: Share, extent_max: int, extent_mean: float | None, came: Arrivals) -> Reordering:
    """The order of arrivals from the messages that tracking marks as reordered, and the extent of overtaking."""
    late = came.late_time_max
    longest = late / 1000 if late is not None else None
    return Reordering(share, extent_max, extent_mean, dict(came.n_reordered), came.n_max, longest)
