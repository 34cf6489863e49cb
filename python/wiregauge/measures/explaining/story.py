"""The story of one message: found by an instant of a time course, explained like the worst ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl
from msgspec import Struct

from wiregauge.measures.explaining.around import Surroundings, surroundings
from wiregauge.measures.explaining.explanation import WorstMessage
from wiregauge.measures.explaining.worst import Subject, explained_messages, message_table, of_flow, took
from wiregauge.measures.extremes.building import RESIDENCE
from wiregauge.measures.extremes.spaced import COLUMNS
from wiregauge.measures.metrics.clocks import RunClocks, run_clocks
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.metrics.series import Offsets
from wiregauge.records.reported import AgentReport

__all__ = ["Fate", "Stories", "Story"]

NEAR_PS: Final = 200
"""How far the instant that names a message may lie from its time: instants are s in floating point."""
_SENT: Final = ("tx_app", "intended", "tx_drv", "rx_app")
"""Columns of which the first that is there is a message's sending time, as in the extremes."""


class Fate(Struct, frozen=True):
    """What became of a message; `last_node` and `last_point` are where it was last seen."""

    sequence: int
    sent_at: float | None
    """When it was sent, s of the run; None where its send was not recorded."""
    outcome: str
    last_node: str
    last_point: str
    drop_reason: str


class Story(Struct, frozen=True):
    """A message with its fate; `explained` is None where it did not arrive, so that it took no time."""

    fate: Fate
    explained: WorstMessage | None


class _Reported(Struct, frozen=True):
    plan: RunPlan
    agents: Mapping[str, AgentReport]


class Stories:
    """The stories of messages of one run, whose surroundings are read once."""

    def __init__(self, directory: Recorded, run: RunPlan) -> None:
        self._directory = directory
        self._run = _Reported(run, directory.runs[run.index].reports())
        self._clocks: RunClocks = run_clocks(directory, run)
        self._around: Surroundings | None = None

    def at(self, subject: Subject, measure: str, at_s: float) -> Story | None:
        """The story of the message whose value of a measure lies at an instant of its course; None where none does.

        Raises RunDirectoryError for a damaged file.
        """
        sequence = self._sequence_at(subject.plan, measure, round(at_s * 1e12))
        return None if sequence is None else self.of(subject, sequence)

    def of(self, subject: Subject, sequence: int) -> Story | None:
        """The story of a message by its number; None where the flow has none. Raises RunDirectoryError."""
        fate = self._fate(subject.plan, sequence)
        if fate is None:
            return None
        if self._around is None:
            self._around = surroundings(self._directory, self._run, self._clocks)
        table = message_table(self._directory, self._run, self._clocks)
        assert table is not None  # the fate is from it
        flow = subject.plan
        between = self._clocks.between(flow)
        offsets = {(flow.id, flow.receiver): Offsets(between.outward_ns, between.uncertainty_ns)}
        own = took(of_flow(table, flow).filter(pl.col("sequence") == sequence), flow, offsets)
        rows = self._collected(own.head(1))
        if not rows.height:
            return Story(fate, None)
        key = flow.id, flow.receiver
        found = explained_messages(
            self._directory, self._run, table, [subject], {key: rows}, offsets, self._around, self._clocks
        )
        return Story(fate, found[key][0])

    def _collected(self, query: pl.LazyFrame) -> pl.DataFrame:
        return self._directory.collected(self._run.plan.index, query)

    def _sequence_at(self, flow: FlowPlan, measure: str, at: int) -> int | None:
        if measure == RESIDENCE:
            path = self._directory.passages(self._run.plan.index)
            if path is None:
                return None
            rows, time = pl.scan_parquet(path, glob=False).filter(pl.col("flow") == flow.id), pl.col("left")
        else:
            table = message_table(self._directory, self._run, self._clocks, (*_SENT, *COLUMNS.values()))
            if table is None:
                return None
            rows = of_flow(table, flow)
            column = {"bag_jitter": "bag_spacing"}.get(measure, measure)
            time = pl.col(COLUMNS[column]) if column in COLUMNS else pl.col(_SENT[0])
        found = self._nearest(rows, time, at)
        if found is None and measure != RESIDENCE and measure not in COLUMNS:
            found = self._nearest(rows, pl.coalesce(_SENT), at)
        return found

    def _nearest(self, rows: pl.LazyFrame, time: pl.Expr, at: int) -> int | None:
        near = rows.filter(time.is_between(at - NEAR_PS, at + NEAR_PS))
        found = self._collected(near.select("sequence", apart=(time - at).abs()).sort("apart").head(1))
        return int(found["sequence"][0]) if found.height else None

    def _fate(self, flow: FlowPlan, sequence: int) -> Fate | None:
        columns = ("last_node", "last_point", "drop_reason", *_SENT)
        table = message_table(self._directory, self._run, self._clocks, columns)
        if table is None:
            return None
        row = self._collected(of_flow(table, flow).filter(pl.col("sequence") == sequence).head(1))
        if not row.height:
            return None
        one = row.row(0, named=True)
        names = self._directory.plan.network.names
        node = one["last_node"]
        sent = next((one[name] for name in _SENT[:-1] if one[name] is not None), None)
        return Fate(
            sequence,
            None if sent is None else sent / 1e12,
            one["outcome"] or "",
            names[node] if node is not None and 0 <= node < len(names) else "",
            one["last_point"] or "",
            one["drop_reason"] or "",
        )
