"""Data of the views of a simulated run: frames at ports, queues, clocks. Computed here: figures compute nothing.

Everything is bounded, however long the run: a timeline shows a few windows with a limited number of frames, a queue is
reduced to the extremes of equal intervals. Omissions are counted and stated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.judgement import Judgement, RunResult
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.validity.host_noise import NoiseView, noise_view
from wiregauge.plan import Hub
from wiregauge.records.modelled import ClusterReport
from wiregauge.results.credit_view import CreditShape, credit_shapes
from wiregauge.results.gate_view import Opening, port_openings
from wiregauge.results.ptp_views import PtpShape, ptp_shapes
from wiregauge.results.queue_view import QueueShape, queues
from wiregauge.results.sync_view import SyncView, sync_view

Floats = NDArray[np.float64]

MOST_WINDOWS = 6
"""Windows of a timeline: one per flow and receiver, the worst latencies first."""
MOST_FRAMES = 240
"""Frames drawn in a window."""
MOST_QUEUES = 8
"""Switch ports whose queues are drawn, the fullest first."""
PREAMBLE = 8
"""Bytes on the wire before the destination address: preamble and start delimiter."""


class FrameBar(Struct, frozen=True):
    """A frame at an output port, times in ns: it came to the device at `since`, its bits left from `start` to `end`."""

    lane: int
    flow: int
    sequence: int
    since: float
    start: float
    end: float
    chosen: bool
    """Whether it is the message that the window is about."""


class FrameWindow(Struct, frozen=True):
    """Output ports on the way of one message, and every frame that used or waited for them meanwhile."""

    run: int
    flow: int
    protocol: str
    destination: str
    sequence: int
    latency_ns: float
    begin_ns: float
    end_ns: float
    lanes: tuple[str, ...]
    frames: tuple[FrameBar, ...]
    left_out: int
    openings: tuple[Opening, ...] = ()
    """Open intervals of gates and of time-triggered windows, where a port has any."""
    crowded: tuple[str, ...] = ()
    """Ports whose gates and windows change too often to be drawn."""


class ClockShape(Struct, frozen=True):
    """Clock reading minus true time of a node, ns, against true time, s; and the instants at which it was set."""

    run: int
    node: str
    t: Floats
    offset: Floats
    steps_at: Floats


class Views(Struct, frozen=True):
    """The data of all views; empty where a bench keeps no records in the network."""

    run: RunPlan | None = None
    """The run that is drawn."""
    windows: tuple[FrameWindow, ...] = ()
    queues: tuple[QueueShape, ...] = ()
    clocks: tuple[ClockShape, ...] = ()
    synchronisation: SyncView = field(default_factory=SyncView)
    clusters: tuple[ClusterReport, ...] = ()
    ptp: tuple[PtpShape, ...] = ()
    credits: tuple[CreditShape, ...] = ()
    shaped: int = 0
    """Shaped queues of the run, those that are not drawn among them."""
    noise: NoiseView | None = None
    background: bool = False
    """The run has background load, which leaves no records."""
    flows_left_out: int = 0
    """Flows whose worst message has no window."""
    queues_left_out: int = 0
    """Ports with a queue that are not drawn."""
    unpaired: int = 0
    """Number of frames that left a switch and are in no queue, since their arrival is unknown."""


def views(judgement: Judgement) -> Views:
    """The views of the run with the longest latency.

    Raises RunDirectoryError for a damaged file of the run directory.
    """
    if not judgement.runs:
        return Views()
    directory = open_recorded(judgement.directory)
    longest = max(judgement.runs, key=_longest)
    plan = longest.plan
    found = queues(directory, plan)
    windows = _windows(directory, plan, {flow.plan.id for flow in longest.flows if flow.uncompared})
    return Views(
        run=plan,
        windows=windows,
        flows_left_out=len({flow.id for flow in plan.flows} - {window.flow for window in windows}),
        queues=found.shapes[:MOST_QUEUES],
        queues_left_out=max(len(found.shapes) - MOST_QUEUES, 0),
        unpaired=found.unpaired,
        clocks=_clocks(directory, plan),
        synchronisation=sync_view(directory, plan),
        clusters=longest.clusters,
        ptp=ptp_shapes(directory, plan),
        credits=credit_shapes(directory, plan, longest.credits),
        shaped=len(longest.credits),
        noise=noise_view(directory, longest),
        background=bool(plan.injects),
    )


def _longest(run: RunResult) -> float:
    return max((flow.summaries["latency"].maximum or 0.0 for flow in run.flows), default=0.0)


# -- clocks ---------------------------------------------------------------------------------------------------


def _clocks(directory: Recorded, plan: RunPlan) -> tuple[ClockShape, ...]:
    path = directory.truth(plan.index)
    if path is None:
        return ()
    wanted = pl.col("kind").cast(pl.String).is_in(["clock-offset", "clock-stepped"])
    truth = read_columns(path, ("time", "kind", "value", "node"), wanted).sort("time")
    found = []
    for (node,), part in sorted(truth.partition_by("node", as_dict=True).items()):
        is_offset = part["kind"].cast(pl.String) == "clock-offset"
        offsets = part.filter(is_offset)
        found.append(
            ClockShape(
                plan.index,
                _name(directory.plan, int(node)),
                offsets["time"].cast(pl.Float64).to_numpy() / 1e12,
                offsets["value"].cast(pl.Float64).to_numpy() / 1e3,
                part.filter(~is_offset)["time"].cast(pl.Float64).to_numpy() / 1e12,
            )
        )
    return tuple(found)


def _name(plan: CampaignPlan, node: int) -> str:
    return plan.network.nodes[node].name if 0 <= node < len(plan.network.nodes) else f"node {node}"


_KEY = ("flow", "sequence", "returning", "warm_up", "node")


# -- timelines ------------------------------------------------------------------------------------------------


def _windows(directory: Recorded, plan: RunPlan, apart: Collection[int]) -> tuple[FrameWindow, ...]:
    """Windows around the slowest messages; none for flows that are `apart`, whose clocks were not compared."""
    messages, records = directory.scan(plan.index), directory.records(plan.index)
    if messages is None or records is None:
        return ()
    took = messages.filter(~pl.col("warm_up")).select(
        "flow", "to", "sequence", "tx_app", "rx_app", took=pl.col("rx_app") - pl.col("tx_app")
    )
    longest = directory.collected(plan.index, took.group_by("flow", "to").agg(pl.col("took").max()))
    greatest: dict[tuple[int, int | None], int] = {}
    for number, to, most in longest.select("flow", "to", "took").iter_rows():
        for key in {(number, to), (number, None)}:
            if most is not None:
                greatest[key] = max(greatest.get(key, most), most)
    worst = []
    for flow in (flow for flow in plan.flows if flow.id not in apart):
        most = greatest.get((flow.id, flow.receiver if flow.multicast else None))
        if most is not None:
            mine = pl.col("flow") == flow.id
            worst.append((most, flow, mine & (pl.col("to") == flow.receiver) if flow.multicast else mine))
    # For a multicast flow, the receiver that waited longest.
    worst.sort(key=lambda entry: -entry[0])
    chosen = list({entry[1].id: entry for entry in reversed(worst)}.values())
    chosen.sort(key=lambda entry: -entry[0])
    rates = directory.plan.port_rates(plan)
    shared = _shared(directory.plan)
    found = []
    for most, flow, mine in chosen[:MOST_WINDOWS]:
        first = took.filter(mine & (pl.col("took") == most)).bottom_k(1, by=["sequence", "tx_app"])
        row = directory.collected(plan.index, first).row(0, named=True)
        begin, end = int(row["tx_app"]), int(row["rx_app"])
        margin = max((end - begin) // 4, 1)
        # Frames that came before the window may still wait in it.
        inside = pl.col("time").is_between(begin - 6 * margin, end + margin)
        points = ["application-send", "wire-send", "switch-in", "switch-out"]
        columns = (*_KEY, "port", "length", "point", "reason", "time")
        table = read_columns(records, columns, inside & pl.col("point").is_in(points))
        if not table["point"].is_in(["wire-send", "switch-out"]).any():
            continue
        lanes, frames = _frames(table, rates, shared, (flow.id, int(row["sequence"])))
        span = (begin - margin) / 1e3, (end + margin) / 1e3
        seen = [bar for bar in frames if bar.end > span[0] and bar.since < span[1]]
        middle = (span[0] + span[1]) / 2
        near = sorted(seen, key=lambda bar: (not bar.chosen, abs(bar.start - middle)))[:MOST_FRAMES]
        openings = [
            port_openings(directory.plan, plan, number, lane, span) for number, lane in enumerate(lanes)
        ]
        names = tuple(f"{_name(directory.plan, node)}:{port}" for node, port in lanes)
        found.append(
            FrameWindow(
                plan.index,
                flow.id,
                flow.protocol,
                flow.destination,
                int(row["sequence"]),
                most / 1e3,
                span[0],
                span[1],
                names,
                tuple(sorted(near, key=lambda bar: (bar.lane, bar.start))),
                len(seen) - len(near),
                tuple(one for of_port in openings for one in of_port or ()),
                tuple(name for name, of_port in zip(names, openings, strict=True) if of_port is None),
            )
        )
    return tuple(found)


def _shared(campaign: CampaignPlan) -> Mapping[tuple[int, int], list[tuple[int, int]]]:
    """All ports at the hub of each port; they share one medium."""
    stations: dict[int, list[tuple[int, int]]] = {}
    for link in campaign.network.links:
        for here, there in (link.ends, link.ends[::-1]):
            if isinstance(campaign.network.nodes[here.node].kind, Hub):
                stations.setdefault(here.node, []).append((there.node, there.port))
    return {port: ports for ports in stations.values() for port in ports}


def _frames(
    table: pl.DataFrame,
    rates: Mapping[tuple[int, int], int],
    shared: Mapping[tuple[int, int], list[tuple[int, int]]],
    chosen: tuple[int, int],
) -> tuple[list[tuple[int, int]], list[FrameBar]]:
    """The output ports the chosen message passed, in that order, and the frames that left by them.

    At a hub the ports of all stations: they wait for one another.
    """
    came: dict[tuple[int, int, bool, bool, int], int] = {}
    left: list[tuple[tuple[int, int, bool, bool, int], int, int, int]] = []
    rows = table.sort("time", maintain_order=True).select(*_KEY, "port", "length", "point", "time")
    for flow, sequence, returning, warm_up, node, port, length, point, time in rows.iter_rows():
        key = (flow, sequence, returning, warm_up, node)
        if point in ("switch-out", "wire-send"):
            left.append((key, port, length, time))
        else:
            came.setdefault(key, time)
    mine = [(key, port) for key, port, _, _ in left if key[:2] == chosen and not key[3]]
    passed = [(key[4], port) for key, port in mine]
    lanes = list(dict.fromkeys(lane for port in passed for lane in (port, *shared.get(port, ()))))
    frames = []
    for key, port, length, time in left:
        place = (key[4], port)
        if place not in lanes or place not in rates:
            continue
        on_wire = (length + PREAMBLE) * 8 / rates[place] * 1e9
        frames.append(
            FrameBar(
                lanes.index(place),
                key[0],
                key[1],
                came.get(key, time) / 1e3,
                time / 1e3,
                time / 1e3 + on_wire,
                key[:2] == chosen and not key[3],
            )
        )
    return lanes, frames
