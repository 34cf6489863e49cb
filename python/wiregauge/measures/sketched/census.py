"""Figures of a flow too big to be held that need single messages: one pass over all, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.metrics.arrivals import Arrivals
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.pairs import NAMES, OUTWARD, RETURN, Correction, distribution_of
from wiregauge.measures.metrics.series import differences, on_the_wire
from wiregauge.measures.metrics.tally import LOST_OUTCOMES
from wiregauge.measures.metrics.threads import side_by_side
from wiregauge.measures.sketched.recount import Recount
from wiregauge.stats.buckets import Buckets
from wiregauge.stats.sketch import Sketch

__all__ = ["BATCH", "PS", "Census", "Mark", "census"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Mark = tuple[str, float]
"""A measure, and a value in ns."""

BATCH = 1 << 19
"""Rows of the message table that are held at once."""
PS = 1000.0
"""Picoseconds in a nanosecond."""


class Census(Struct):
    """The census of one flow at one receiver, over all messages of its measured part.

    `shift_ns` is the clock of the destination minus that of the source; `marks` are values for which the messages below
    are counted.
    """

    flow: FlowPlan
    shift_ns: float
    marks: Collection[Mark]
    arrivals: Arrivals = field(default_factory=Arrivals)
    pairs: dict[tuple[str, str], Buckets] = field(default_factory=dict)
    """Times between points of a leg that have no measure of their own, ps, timestamps as they are."""
    recount: Recount | None = None
    """The sketches of all its measures, where timestamps were corrected one by one."""
    below: dict[Mark, tuple[int, int]] = field(default_factory=dict)
    """For each mark, the number of messages below its value, and at or below it."""

    def __post_init__(self) -> None:
        for points in (OUTWARD, RETURN) if self.flow.relayed else (OUTWARD,):
            self.pairs |= {pair: Buckets() for pair in combinations(points, 2) if pair not in NAMES}

    def latencies(self) -> dict[tuple[str, str], Sketch]:
        """The sketch of every pair of points that a message has, ns, in the order of the way."""
        return {pair: found for pair, one in self.pairs.items() if (found := one.sketch(PS)) is not None}

    def take(self, rows: pl.DataFrame) -> None:
        """Messages of the measured part, in the order of their numbers."""
        final = "back_rx_app" if self.flow.relayed else "rx_app"
        # Only what is asked for is filtered: most messages arrive, and all columns of them would be copied.
        asked = rows.select("outcome", "sequence", *({"life"} & set(rows.columns)), final)
        self.arrivals.take_rows(asked.filter(~pl.col("outcome").is_in(LOST_OUTCOMES)), final)
        self._count(rows)
        if self.recount is not None:
            self.recount.take(rows)
        times = {point: _times(rows[point]) for pair in self.pairs for point in pair}

        def add(pair: tuple[str, str]) -> None:
            (start, has_start), (end, has_end) = (times[point] for point in pair)
            known = has_start if has_end is None else has_end if has_start is None else has_start & has_end
            took = end - start
            self.pairs[pair].add(took if known is None else took[known])

        side_by_side(add, list(self.pairs), rows.height)

    def _count(self, rows: pl.DataFrame) -> None:
        values = _values(self.flow, self.shift_ns)
        known = [mark for mark in sorted(self.marks) if mark[0] in values]
        if not known:
            return
        table = rows.select(
            *(
                sign(values[name], at).sum().alias(f"{place} {word}")
                for place, (name, at) in enumerate(known)
                for word, sign in (("below", pl.Expr.lt), ("up to", pl.Expr.le))
            )
        ).row(0, named=True)
        for place, mark in enumerate(known):
            below, up_to = self.below.get(mark, (0, 0))
            self.below[mark] = below + table[f"{place} below"], up_to + table[f"{place} up to"]


def census(
    found: Mapping[tuple[int, int], Census], rows: int, read: Callable[[pl.Expr, int], pl.DataFrame]
) -> None:
    """Takes all messages of the flows in `found`, which are by number and receiver.

    `read` gives the rows of a condition among the `BATCH` from a place on in a table of `rows`.
    """
    wanted = pl.col("flow").is_in(sorted({number for number, _ in found})) & ~pl.col("warm_up")
    for place in range(0, rows, BATCH):
        for one, mine in _by_receiver(read(wanted, place), found):
            one.take(mine)
    for one in found.values():
        one.arrivals.finish()


def _by_receiver(
    batch: pl.DataFrame, found: Mapping[tuple[int, int], Census]
) -> Iterator[tuple[Census, pl.DataFrame]]:
    if batch.height == 0:
        return
    flow = batch["flow"]
    # Rows of a single flow are not copied: most batches of long runs hold one flow only.
    alone = flow.min() == flow.max()
    parts = {(flow[0],): batch} if alone else batch.partition_by("flow", as_dict=True, maintain_order=True)
    for (number, receiver), one in found.items():
        part = parts.get((number,))
        if part is not None:
            yield one, part.filter(pl.col("to") == receiver) if one.flow.multicast else part


def _values(flow: FlowPlan, shift_ns: float) -> dict[str, pl.Expr]:
    """Measures that are one message's own, ns, as `series.extract` has them."""
    plans = differences(flow, shift_ns)
    found = {name: took.cast(pl.Float64) / PS - by for name, (took, _, by) in plans.items()}
    if flow.deadline_ns is not None:
        took, _, by = plans[flow.main]
        found["lateness"] = took.cast(pl.Float64) / PS - by + by - flow.deadline_ns
    for points in (OUTWARD, RETURN) if flow.relayed else (OUTWARD,):
        for start, end in combinations(points, 2):
            if (start, end) not in NAMES:
                by, _ = Correction(shift_ns, 0.0, 0.0).of(start, end)
                took = pl.col(end) - pl.col(start)
                found[distribution_of(start, end)] = took.cast(pl.Float64) / PS - by
    return found | {name: value.cast(pl.Float64) / PS for name, value in on_the_wire(flow).items()}


def _times(column: pl.Series) -> tuple[Integers, Flags | None]:
    """Times of a point, 0 where it saw nothing, and where it did; None where it saw all."""
    if not column.null_count():
        return column.to_numpy(), None
    return column.fill_null(0).to_numpy(), column.is_not_null().to_numpy()
