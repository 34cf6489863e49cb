"""Bounds in the report: runs compared with the worst-case bounds of their tests, and the curves behind the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from wiregauge.bounds import Answer, bound_every
from wiregauge.bounds.against import Beside, Laid, lay_every, nearest, sends_of, tightest, told_invalid
from wiregauge.bounds.every_run import Bounded as NetworkBounds
from wiregauge.bounds.networks import Source, every_network
from wiregauge.figures import Figure
from wiregauge.figures.bounds import (
    Arrived,
    FlowMark,
    HopMark,
    Served,
    arrivals_figure,
    hops_figure,
    marks_figure,
    service_figure,
)
from wiregauge.identify import IdentifyError
from wiregauge.identify.passed import passed_by, wire_bits
from wiregauge.identify.service import arrival_curve
from wiregauge.identify.switches import fit_switch
from wiregauge.records import RunDirectory
from wiregauge.report.tables import NONE, Cell, Head, Section, Table

__all__ = ["Bounded", "Pair", "bounded", "mark_of", "networks_bounded", "pairs_of"]

_US = 1e6
_PS_PER_US = 1e6
_OCTET = 8.0


class Bounded(Struct, frozen=True):
    """The content of the report's section on bounds."""

    answer: Answer
    laid: Sequence[Laid]
    figures: Sequence[Figure]
    table: Table
    alarms: Sequence[str]
    """A sentence for each latency above its bound, with the assumption that failed."""
    invalid: Sequence[str] = ()
    """The reason, for each INVALID run, why it is not compared with bounds."""


def bounded(place: Path, beside: Sequence[Path] = ()) -> Bounded:
    """Bounds every run of a directory, and compares it and other directories with the bounds.

    The figure shows the network whose runs come nearest to their bounds, or furthest beyond; alarms are of all. Raises
    `TestError` where the test has no bounds, `NoAnswerError` and `NotComparableError` as documented there.
    """
    directory = RunDirectory.open(place)
    held = networks_bounded(directory, place)
    laid = [own for one in (place, *beside) for own in lay_every(held, one)]
    first = nearest(laid)
    shown = next(one for one in held if first in one.source.runs)
    source, answer = shown.source, shown.answer
    drawn_of = [one for one in laid if one.network == first]
    run = max((one for one in drawn_of if one.run == str(place)), key=tightest, default=drawn_of[0]).index
    pairs = pairs_of(drawn_of)
    drawn = [
        marks_figure([mark_of(own) for own in pairs.values()]),
        hops_figure([_hops(own) for own in sorted(pairs.values(), key=_tightest, reverse=True)]),
        arrivals_figure(list(_arrived(directory, source, run))),
        service_figure(list(_served(directory, run))),
    ]
    alarms = [
        f"flow {flow.flow} to {flow.target} exceeded its bound in {one.name}: {alarm}"
        for one in laid
        for flow in one.flows
        for alarm in flow.alarms
    ]
    invalid = [sentence for one in laid for sentence in told_invalid(one)]
    notes = [*invalid, *(f"{one.name}: {note}" for one in laid for note in one.notes)]
    if len(held) > 1:
        notes.append(
            f"The test has {len(held)} networks, and each run is held against the bounds of its own. Shown is "
            f"{shown.name}, whose latencies come nearest to their bounds or furthest beyond."
        )
    table = _table(pairs, answer, notes)
    return Bounded(answer, laid, [figure for figure in drawn if figure is not None], table, alarms, invalid)


def networks_bounded(directory: RunDirectory, place: Path) -> list[NetworkBounds]:
    """The bounds of every network of a directory's test. Raises `TestError`, `NoAnswerError`."""
    return bound_every(every_network(directory.plan, str(place / "test.xml")))


Pair = dict[bool, Beside]
"""The longest latency, by whether it was simulated."""


def pairs_of(laid: Sequence[Laid]) -> dict[tuple[str, str], Pair]:
    """The longest latencies by flow and receiver."""
    pairs: dict[tuple[str, str], Pair] = {}
    for one in laid:
        for flow in one.flows:
            own = pairs.setdefault((flow.flow, flow.target), {})
            known = own.get(one.simulated)
            if known is None or (flow.measured or 0.0) > (known.measured or 0.0):
                own[one.simulated] = flow
    return pairs


def _tightest(pair: Pair) -> float:
    return max(flow.tightness or 0.0 for flow in pair.values())


def _any(pair: Pair) -> Beside:
    return max(pair.values(), key=lambda flow: flow.tightness or 0.0)


def mark_of(pair: Pair) -> FlowMark:
    """The bound of a flow at a receiver and the longest latencies that were measured and simulated."""
    flow = _any(pair)
    values = {kind: own.measured * _US for kind, own in pair.items() if own.measured is not None}
    return FlowMark(
        _name(flow),
        flow.bound * _US,
        values.get(False),
        values.get(True),
        any(own.alarms for own in pair.values()),
    )


def _name(flow: Beside) -> str:
    return f"{flow.flow} to {flow.target}"


def _hops(pair: Pair) -> HopMark:
    flow = _any(pair)
    seen = {
        kind: [None if hop.measured is None else hop.measured * _US for hop in own.hops]
        for kind, own in pair.items()
    }
    return HopMark(
        _name(flow),
        [hop.server for hop in flow.hops],
        [hop.bound * _US for hop in flow.hops],
        seen.get(False, ()),
        seen.get(True, ()),
        [hop.wait * _US for hop in flow.hops],
    )


def _arrived(directory: RunDirectory, source: Source, run: int) -> Iterator[Arrived]:
    """The arrivals of flows as their senders handed them over."""
    path = directory.messages(run)
    if not path.exists():
        return
    table = pl.read_parquet(path, columns=["flow", "tx_app", "length"], glob=False).drop_nulls()
    sends = sends_of(source)
    for (flow,), own in sorted(table.group_by("flow"), key=lambda part: str(part[0])):
        bits = wire_bits(own["length"].to_numpy().astype(np.int64))
        curve = arrival_curve(own["tx_app"].to_numpy().astype(np.int64), bits)
        if curve is None:
            continue
        time = np.array([span[1] for span in curve.spans]) / _PS_PER_US
        octets = np.array([span[2] for span in curve.spans]) / _OCTET
        send = sends.get(int(str(flow)))
        # A burst of frames each period, all as long as the longest.
        burst = float(bits.max()) * send[0] if send is not None else 0.0
        yield Arrived(
            f"flow {flow}",
            time,
            octets,
            (curve.burst_bits / _OCTET, curve.rate_bps / _OCTET / 1e6),
            None if send is None else (burst / _OCTET, burst / _OCTET / (send[2] / _PS_PER_US)),
        )


def _served(directory: RunDirectory, run: int) -> Iterator[Served]:
    """The service of switch ports with records."""
    plan: Any = directory.plan
    for node in plan.network.nodes:
        if node.is_end_system:
            continue
        try:
            fit = fit_switch(passed_by(directory, node.name, run))
        except IdentifyError:
            continue
        for port in fit.ports:
            if port.served:
                time, bits = (np.array(column, dtype=np.float64) for column in zip(*port.served, strict=True))
                yield Served(
                    port.port,
                    time / _PS_PER_US,
                    bits / _OCTET,
                    port.guaranteed.rate_bps / _OCTET / 1e6,
                    port.guaranteed.latency_ps / _PS_PER_US,
                )


def _table(pairs: dict[tuple[str, str], Pair], answer: Answer, more: Sequence[str]) -> Table:
    heads = [
        Head("flow", kind="text"),
        Head("receiver", kind="text"),
        Head("measured", unit="µs"),
        Head("simulated", unit="µs"),
        Head("bound", unit="µs"),
        Head("tightness"),
        Head("n"),
        Head("lost"),
        Head("largest hop", kind="text"),
    ]
    rows = []
    for (flow, target), pair in pairs.items():
        one = _any(pair)
        hop = max(one.hops, key=lambda hop: hop.bound, default=None)
        share = "" if hop is None else f"{hop.server}, {100 * hop.bound / one.bound:.0f} %"
        rows.append(
            [
                Cell(flow, kind="text short"),
                Cell(target, kind="text short"),
                *(_cell(pair.get(kind)) for kind in (False, True)),
                Cell(f"{one.bound * _US:.3f}"),
                Cell(NONE if one.tightness is None else f"{100 * one.tightness:.1f} %"),
                Cell(str(one.n)),
                Cell(str(one.lost)),
                Cell(share, kind="text short"),
            ]
        )
    notes = [
        *more,
        f"Bounded by {answer.as_text}. Tightness is the longest latency over the bound. These bounds hold if: "
        + "; ".join(answer.assumptions)
        + ".",
    ]
    return Table("Longest latencies beside their bounds", heads, [Section("", rows)], notes=notes)


def _cell(flow: Beside | None) -> Cell:
    if flow is None or flow.measured is None:
        return Cell(NONE)
    return Cell(f"{flow.measured * _US:.3f}", kind="bad" if flow.alarms else "")
