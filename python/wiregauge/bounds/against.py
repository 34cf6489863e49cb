"""Bounds beside what was measured or simulated: how tight they are, and which assumption failed if one was exceeded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from rich.console import Console

from wiregauge.bounds.analysing import Answer, TargetBound
from wiregauge.bounds.networks import Source
from wiregauge.identify.service import least_burst
from wiregauge.measures import judge
from wiregauge.measures.metrics.results import FlowResult
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory
from wiregauge.terminal import print_table

__all__ = ["Beside", "Hop", "Laid", "NotComparableError", "laid_json", "lay", "sends_of", "show_laid"]

_NS: Final = 1e9
_AROUND: Final = 20
_WIDTH: Final = 40
"""Characters of the axis."""

Sends = Mapping[int, tuple[int, int, int]]


class NotComparableError(Exception):
    """A run directory that has nothing of what was bounded; one sentence with the cure."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A server of a flow's path, s."""

    server: str
    bound: float
    measured: float | None
    """The longest residence there; None where nothing recorded it."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A flow at a target, s. `uncertainty` is what clocks and timestamps may add or take."""

    flow: str
    target: str
    bound: float
    measured: float | None
    n: int
    lost: int
    uncertainty: float
    hops: tuple[Hop, ...]
    alarms: tuple[str, ...]
    """Where the bound was exceeded beyond the uncertainty: the assumptions that failed."""

    @property
    def tightness(self) -> float | None:
        """Measured over bound."""
        return None if self.measured is None or not self.bound else self.measured / self.bound


@dataclass(frozen=True, slots=True)
class Laid:
    """A run directory beside the bounds."""

    run: str
    simulated: bool
    flows: tuple[Beside, ...]

    @property
    def exceeded(self) -> bool:
        """Whether a bound was."""
        return any(flow.alarms for flow in self.flows)


def lay(answer: Answer, source: Source, place: Path, run: int = 0) -> Laid:
    """Lays the longest latencies of run `run` of a directory beside the bounds.

    Raises NotComparableError where none of its flows is bounded, RunDirectoryError where it cannot be read.
    """
    directory = RunDirectory.open(place)
    judgement = judge(place, unkept=lambda _: None)
    results = next((one for one in judgement.runs if one.plan.index == run), None)
    if results is None:
        raise NotComparableError(f"{place}: has no run {run}; choose another with --run")
    bounds = {(flow.flow, target.target): target for flow in answer.flows for target in flow.targets}
    laid = []
    for result in results.flows:
        target = bounds.get((str(result.plan.id), result.plan.destination))
        if target is not None and target.delay is not None and answer.time_unit == "s":
            laid.append(_beside(directory, run, result, target, sends_of(source)))
    if not laid:
        raise NotComparableError(
            f"{place}: none of its flows is among those bounded; name a run of the same test"
        )
    return Laid(str(place), bool(judgement.traits.virtual_time), tuple(laid))


def _beside(
    directory: RunDirectory, run: int, result: FlowResult, target: TargetBound, sends: Sends
) -> Beside:
    latency = result.summaries.get("latency")
    longest = latency.maximum if latency is not None else None
    uncertainty = (latency.clock + latency.timestamp) / _NS if latency is not None else 0.0
    residences = {f"{hop.switch}:{hop.port}": hop.maximum for hop in result.hops}
    hops = tuple(
        Hop(server, bound, residences[server] / _NS if server in residences else None)
        for server, bound in zip(target.path, target.hops, strict=False)
    )
    measured = None if longest is None else longest / _NS
    bound = float(target.delay or 0.0)
    exceeded = measured is not None and measured - uncertainty > bound
    return Beside(
        str(result.plan.id),
        target.target,
        bound,
        measured,
        latency.n if latency is not None else 0,
        int(result.counts.get("lost", 0)),
        uncertainty,
        hops,
        tuple(_alarms(directory, run, result, (target.path, hops), sends)) if exceeded else (),
    )


def _alarms(
    directory: RunDirectory,
    run: int,
    result: FlowResult,
    way: tuple[tuple[str, ...], tuple[Hop, ...]],
    sends: Sends,
) -> Iterator[str]:
    """The assumptions of a bound that a run contradicts; where none is seen to fail, that."""
    found = False
    servers, hops = way
    for sentence in (
        *_off_path(directory, run, result.plan.id, servers),
        *_bursts(directory, run, set(servers), sends),
    ):
        found = True
        yield sentence
    for hop in hops:
        if hop.measured is not None and hop.measured > hop.bound:
            found = True
            yield (
                f"service slower than assumed: a frame stayed {hop.measured * 1e6:.3f} us at {hop.server}, "
                f"where {hop.bound * 1e6:.3f} us are the most"
            )
    if not found:
        yield (
            "service slower than assumed at a place without records (a host slower than its model, a link longer than "
            "the test says)"
        )


def _off_path(directory: RunDirectory, run: int, flow: int, servers: tuple[str, ...]) -> Iterator[str]:
    path = directory.passages(run)
    if not path.exists():
        return
    names = directory.plan.network.names
    seen = pl.read_parquet(path).filter((pl.col("flow") == flow) & ~pl.col("returning"))
    passed = {f"{names[node]}:{port}" for node, port in seen.select("node", "port").unique().iter_rows()}
    strange = sorted(passed - set(servers))
    receivers = next((one.receivers for one in directory.plan.runs[run].flows if one.id == flow), ())
    if strange and len(receivers) == 1:
        yield f"path wrong: its frames also left by {', '.join(strange)}"


def _bursts(directory: RunDirectory, run: int, servers: set[str], sends: Sends) -> Iterator[str]:
    """Flows of the same servers that were sent with more than the bounded test lets them, by the least bucket."""
    plan: Campaign = directory.plan
    path = directory.messages(run)
    if not path.exists():
        return
    table = pl.read_parquet(path, columns=["flow", "tx_app", "length"]).drop_nulls()
    names = plan.network.names
    for flow in plan.runs[run].flows:
        ways = {f"{names[hop.from_]}:{hop.from_port}" for route in flow.routes for hop in route.hops}
        own = table.filter(pl.col("flow") == flow.id).sort("tx_app")
        send = sends.get(flow.id)
        if send is None or not ways & servers or own.is_empty():
            continue
        size, spacing, period = send
        bits = 8.0 * (own["length"].to_numpy().astype(np.float64) + _AROUND)
        longest = float(bits.max())
        rate = size * longest / (period / 1e12)
        two = np.concatenate([turn * period + spacing * np.arange(size, dtype=np.int64) for turn in (0, 1)])
        allowed = least_burst(two, np.full(len(two), longest), rate)
        had = least_burst(own["tx_app"].to_numpy().astype(np.int64), bits, rate)
        # A host that is late by less than a frame is none that sends more.
        if had > allowed + longest:
            yield (
                f"arrival curve exceeded: flow {flow.id} came with a burst of {had / 8:.0f} B above its rate, "
                f"the test says {allowed / 8:.0f} B"
            )


def sends_of(source: Source) -> Sends:
    """By flow that one sender sends periodically: frames of a burst, their spacing and the period, ps."""
    if source.format != "plan":
        return {}
    found: dict[int, list[tuple[int, int, int]]] = {}
    for send in json.loads(source.as_json)["run"]["sends"]:
        pattern = send.get("pattern") or {"type": "bursts", "size": 1, "spacing": 0}
        if pattern.get("type") == "bursts":
            own = (int(pattern["size"]), int(pattern.get("spacing") or 0), int(send["period"]))
            found.setdefault(int(send["flow"]), []).append(own)
    return {flow: own[0] for flow, own in found.items() if len(own) == 1}


def show_laid(laid: list[Laid], console: Console) -> None:
    """Every flow on one axis: measured (M) and simulated (S) maxima and the bound (|); then alarms."""
    rows = []
    places = {(flow.flow, flow.target): flow.bound for one in laid for flow in one.flows}
    scale = max(places.values(), default=0.0)
    scale = max([scale, *(flow.measured or 0.0 for one in laid for flow in one.flows)])
    for (name, target), bound in places.items():
        found: dict[bool, Beside] = {}
        for one in laid:
            for flow in one.flows:
                longest = found.get(one.simulated)
                if (flow.flow, flow.target) != (name, target) or flow.measured is None:
                    continue
                if longest is None or flow.measured > (longest.measured or 0.0):
                    found[one.simulated] = flow
        axis = [" "] * (_WIDTH + 1)
        axis[round(_WIDTH * bound / scale)] = "|"
        for simulated, flow in found.items():
            axis[round(_WIDTH * (flow.measured or 0.0) / scale)] = "S" if simulated else "M"
        texts = [
            "-" if (longest := found.get(kind)) is None else f"{1e6 * (longest.measured or 0.0):.3f}"
            for kind in (False, True)
        ]
        best = max((flow.tightness or 0.0 for flow in found.values()), default=None)
        tight = "-" if best is None else f"{100 * best:.1f} %"
        rows.append((name, target, *texts, f"{1e6 * bound:.3f}", tight, "".join(axis)))
    heads = ("flow", "target", "measured us", "simulated us", "bound us", "tightness", "0 to the greatest")
    print_table(heads, rows, console, leading=2)
    for one in laid:
        for flow in one.flows:
            for alarm in flow.alarms:
                text = f"ALARM {one.run}: flow {flow.flow} to {flow.target} exceeded its bound: {alarm}"
                console.print(text, style="bold", markup=False, highlight=False, soft_wrap=True)
            if flow.lost:
                text = f"Note: {one.run} lost {flow.lost} frames of flow {flow.flow}; a bound is of those that arrive"
                console.print(text, markup=False, highlight=False, soft_wrap=True)
    worst = max((flow for one in laid for flow in one.flows), key=lambda flow: flow.tightness or 0.0)
    if worst.hops:
        console.print(f"\nflow {worst.flow} to {worst.target}, hop by hop:", markup=False, highlight=False)
        hops = [
            (
                hop.server,
                f"{1e6 * hop.bound:.3f}",
                "-" if hop.measured is None else f"{1e6 * hop.measured:.3f}",
            )
            for hop in worst.hops
        ]
        print_table(("server", "bound us", "measured us"), hops, console)


def laid_json(laid: list[Laid]) -> list[dict[str, Any]]:
    """The same in the form of `wiregauge bounds --against DIR --json`; times in s."""
    return [
        {
            "run": one.run,
            "simulated": one.simulated,
            "flows": [
                {
                    "flow": flow.flow,
                    "target": flow.target,
                    "bound": flow.bound,
                    "measured": flow.measured,
                    "uncertainty": flow.uncertainty,
                    "n": flow.n,
                    "lost": flow.lost,
                    "tightness": flow.tightness,
                    "hops": [
                        {"server": hop.server, "bound": hop.bound, "measured": hop.measured}
                        for hop in flow.hops
                    ],
                    "alarms": list(flow.alarms),
                }
                for flow in one.flows
            ],
        }
        for one in laid
    ]
