"""Exact counts of flows too big to be held, from one pass over their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import polars as pl
from msgspec import Struct, field

from wiregauge.measures.definitions import OUTCOMES
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.series import (
    LOST,
    LOST_OUTCOMES,
    NO_TIMESTAMP,
    NOT_RETURNED,
    UNSEEN,
    differences,
)
from wiregauge.measures.metrics.silences import DUE, unsent

__all__ = ["LOST_OUTCOMES", "UNKNOWN", "Tally", "happened", "tally"]

UNKNOWN = "unknown"
"""Outcome of a message that may or may not have been lost."""
_LAST = ("last_node", "last_point")


class Tally(Struct):
    """Counts of one flow at one receiver over all its messages; `figures` by the names that `_figures` gives."""

    figures: Mapping[str, float | int | None]
    warm_up: int
    relayed: bool
    last: dict[tuple[int | None, str | None], int] = field(default_factory=dict)
    """Lost messages by the last observer and point that saw them."""

    def count(self, name: str) -> int:
        """A count; 0 where there is none."""
        return int(self.figures.get(name) or 0)

    def time(self, name: str) -> int | None:
        """A time, ps; None where no message has it."""
        value = self.figures.get(name)
        return int(value) if value is not None else None

    def silences(self, of: str, flow: FlowPlan) -> tuple[int, int]:
        """Open silences before the first and after the last that came, ps, as `silences.open_silences` has them."""
        first, last = self.time("due first"), self.time("due last")
        came = self.time(f"{of} due first"), self.time(f"{of} due last")
        if first is None or last is None:
            return 0, 0
        if not self.count("lives"):
            before, after = unsent(flow, self.count("sequence first"), self.count("sequence last"))
            first, last = first - before, last + after
        if came[0] is None or came[1] is None:
            return 0, last - first
        return came[0] - first, last - came[1]

    def outcomes(self) -> dict[str, int]:
        """The one outcome of each message, counted."""
        return {name: self.count(f"outcome {name}") for name in OUTCOMES}

    def counts(self) -> dict[str, int]:
        """The counters of the flow."""
        sent, lost, unknown = self.count("sent"), self.count("lost"), self.count(f"outcome {UNKNOWN}")
        return {"sent": sent, "delivered": sent - lost - unknown, "lost": lost, "unknown": unknown} | {
            name: self.count(name) for name in happened()
        }

    def excluded(self, measure: str) -> dict[str, int] | None:
        """Numbers of messages without a value, by reason, for a measure that is a difference of times; None for
        others."""
        if f"without {measure}" not in self.figures:
            return None
        without, gone = self.count(f"without {measure}"), self.count(f"gone {measure}")
        unknown = self.count(f"unknown {measure}")
        returns = self.count(f"returns {measure}")
        return {
            NOT_RETURNED if returns else LOST: gone - unknown,
            UNSEEN: unknown,
            NO_TIMESTAMP: without - gone,
        }


@cache
def happened() -> dict[str, pl.Expr]:
    """Conditions for what happened to a message beside its outcome, by the name of the counter."""
    return {
        "duplicated": pl.col("copies") > 1,
        "reordered": pl.col("reordered"),
        "late": pl.col("late"),
        "misdirected": pl.col("misdirected_copies") > 0,
        "corrupted": pl.col("corrupted_copies") > 0,
    }


def tally(rows: pl.LazyFrame, flows: Sequence[FlowPlan]) -> dict[tuple[int, int], Tally]:
    """Counts of `flows` by number and receiver, from all rows of the message table of a run."""
    found: dict[tuple[int, int], Tally] = {}
    for relayed in (False, True):
        mine = {(flow.id, flow.receiver): flow for flow in flows if flow.relayed == relayed}
        if not mine:
            continue
        own = rows.filter(pl.col("flow").is_in(sorted({number for number, _ in mine})))
        measured = own.filter(~pl.col("warm_up"))
        key = ("flow", "to")
        some = next(iter(mine.values()))
        lost = pl.col("outcome").is_in(LOST_OUTCOMES)
        queries = [
            measured.group_by(key).agg(**_figures(some, list(mine.values()))),
            own.group_by(key).agg(pl.col("warm_up").sum()),
            measured.filter(lost).group_by(*key, *_LAST).len(),
        ]
        # Read one by one: columns read together are all held together.
        figures, early, last = (query.collect(engine="streaming") for query in queries)
        for (number, receiver), flow in mine.items():
            here = pl.col("flow") == number
            if flow.multicast:
                here &= pl.col("to") == receiver
            row = figures.filter(here)
            warm = early.filter(here)["warm_up"].sum()
            found[number, receiver] = Tally(
                row.row(0, named=True) if row.height else {},
                int(warm or 0),
                relayed,
                {
                    (node, point): int(count)
                    for node, point, count in last.filter(here).select(*_LAST, "len").sort(*_LAST).iter_rows()
                },
            )
    return found


def _figures(some: FlowPlan, flows: Sequence[FlowPlan]) -> dict[str, pl.Expr]:
    """Expressions of all counters, by name; `some` flow stands for the others, which have the same measures."""
    lost = pl.col("outcome").is_in(LOST_OUTCOMES)
    final = pl.col("back_rx_app" if some.relayed else "rx_app")
    both = pl.col("intended").is_not_null() & pl.col("tx_app").is_not_null()
    arrived = pl.when(~lost).then(final)
    tardy = pl.when(pl.col("late") & ~lost).then(final - pl.col("tx_app"))
    figures = {
        "sent": pl.len(),
        "lost": lost.sum(),
        "reorder_extent": pl.col("reorder_extent").max(),
        "mean extent": pl.when(pl.col("reordered")).then(pl.col("reorder_extent")).mean(),
        "late_sends": _late_sends(flows).sum(),
        "lost A": (pl.col("tx_wire").is_not_null() & pl.col("rx_wire").is_null()).sum(),
        "lost B": (pl.col("tx_wire_b").is_not_null() & pl.col("rx_wire_b").is_null()).sum(),
        "late arrived": (pl.col("late") & ~lost).sum(),
        "tardiest": tardy.max(),
        "tardy on average": tardy.mean(),
        "arrivals": arrived.count(),
        "arrivals first": arrived.min(),
        "arrivals last": arrived.max(),
        "due first": DUE.min(),
        "due last": DUE.max(),
        "sequence first": pl.col("sequence").min(),
        "sequence last": pl.col("sequence").max(),
        "lives": pl.col("life").max(),
        "arrivals due first": pl.when(~lost).then(DUE).min(),
        "arrivals due last": pl.when(~lost).then(DUE).max(),
        "received due first": pl.when(~lost | pl.col("rx_app").is_not_null()).then(DUE).min(),
        "received due last": pl.when(~lost | pl.col("rx_app").is_not_null()).then(DUE).max(),
        "offered": both.sum(),
        "offered first": pl.when(both).then(pl.col("tx_app")).min(),
        "offered last": pl.when(both).then(pl.col("tx_app")).max(),
        "intended first": pl.when(both).then(pl.col("intended")).min(),
        "intended last": pl.when(both).then(pl.col("intended")).max(),
        "number first": pl.when(both).then(pl.col("sequence")).min(),
        "number last": pl.when(both).then(pl.col("sequence")).max(),
        "length": pl.when(both & (pl.col("length") > 0)).then(pl.col("length")).mean(),
        "no rx_app": pl.col("rx_app").is_null().sum(),
        "no tx_wire": pl.col("tx_wire").is_null().sum(),
    }
    figures |= {f"outcome {name}": (pl.col("outcome") == name).sum() for name in OUTCOMES}
    figures |= {name: condition.sum() for name, condition in happened().items()}
    for name, (difference, needs, _) in differences(some, 0.0).items():
        missing = difference.is_null()
        figures[f"without {name}"] = missing.sum()
        gone = (missing & pl.col(needs).is_null()).sum() if needs != "tx_app" else pl.lit(0)
        figures[f"gone {name}"] = gone
        unknown = missing & pl.col(needs).is_null() & (pl.col("outcome") == UNKNOWN)
        figures[f"unknown {name}"] = unknown.sum() if needs != "tx_app" else pl.lit(0)
        figures[f"returns {name}"] = pl.lit(int(needs == "back_rx_app" and some.relayed))
    return figures


def _late_sends(flows: Sequence[FlowPlan]) -> pl.Expr:
    """Sent later than intended by more than `FlowPlan.late_after_ns`."""
    behind = (pl.col("tx_app") - pl.col("intended")) / 1000
    bounds = sorted({flow.late_after_ns for flow in flows if flow.late_after_ns})
    # Bound by bound and not looked up by flow: a look-up has the engine hold every row.
    return pl.any_horizontal(
        pl.lit(False),
        *(
            pl.col("flow").is_in([flow.id for flow in flows if flow.late_after_ns == bound])
            & (behind > bound)
            for bound in bounds
        ),
    )
