"""The tables of the network's own errors, where an agent plays the network."""

from __future__ import annotations

from collections.abc import Mapping

from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.validity.streams import dropped_text
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, micro, place_cell, text_heads

__all__ = ["foreign_table", "network_table"]


def network_table(judgement: Judgement) -> Table:
    """A row per run and end system: the delay of frames towards it against the model's times."""
    heads = [
        *text_heads("point", "towards"),
        Head("frames"),
        Head("late, p50", unit="µs"),
        Head("late, p99", unit="µs"),
        Head("late, p99.9", unit="µs"),
        Head("late, max", unit="µs"),
        Head("refused by the kernel"),
    ]
    sections = [
        Section(_title(run.network), _rows(run.network, run.plan.point))
        for run in judgement.runs
        if run.network is not None
    ]
    return Table("The network's own error", heads, sections, lead=2)


def foreign_table(judgement: Judgement) -> Table:
    """A row per run and kind of frames that an end system sent outside of the test."""
    heads = [
        *text_heads("point", "from", "what"),
        Head("frames"),
        Head("bytes"),
        Head("handed to end systems"),
        Head("had lines", unit="µs"),
        Head("dropped", kind="text"),
    ]
    rows = [
        [
            place_cell(run.plan.point),
            Cell(one.end_system or NONE, kind="text short"),
            Cell(one.kind, kind="text short"),
            Cell(str(one.frames)),
            Cell(str(one.bytes), "destination address to FCS"),
            Cell(str(one.delivered), "every copy"),
            Cell(micro(one.line_ns), "of all lines together; media of hubs left out"),
            Cell(dropped_text(one.dropped) or NONE, kind="text"),
        ]
        for run in judgement.runs
        if run.network is not None
        for one in run.network.foreign or ()
    ]
    return Table("Frames on the network that are not of the test", heads, [Section("", rows)], lead=3)


def _title(network: NetworkResult) -> str:
    moved = f", by {micro(network.most_moved_ns)} µs at most" if network.moved else ""
    ways = " and ".join(sorted({one.access for one in network.releases if one.access}))
    given = f"; given to them by {ways}" if ways else ""
    cost = network.cost
    spent = (
        f"; of its core a frame took {micro(cost.total_ns)} µs: {micro(cost.taking_ns)} to take it, "
        f"{micro(cost.model_ns)} in the model, {micro(cost.handing_ns)} to hand it over"
        if cost is not None
        else ""
    )
    return (
        f"{network.frames} frames taken from end systems: {network.moved} came late into the model{moved}; "
        f"{network.lost} found no room{given}{spent}"
    )


def _rows(network: NetworkResult, point: Mapping[str, str]) -> list[list[Cell]]:
    return [
        [
            place_cell(point),
            Cell(one.end_system, kind="text short"),
            Cell(str(one.frames)),
            *(
                Cell(NONE if late.value is None else micro(late.value), _beside(late, one.frames))
                for late in one.shown.values()
            ),
            Cell(NONE if one.max_ns is None else micro(one.max_ns), f"n = {one.frames}"),
            Cell(str(one.undelivered), kind="bad" if one.undelivered else ""),
        ]
        for one in network.releases
    ]


def _beside(late: Percentile, n: int) -> str:
    """The interval of a percentile and its n."""
    low, high = (NONE if edge is None else micro(edge) for edge in (late.low, late.high))
    return f"n = {n}" if low == high == NONE else f"95 % {low} to {high} µs, n = {n}"
