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
from wiregauge.measures.metrics.results import FlowResult, Grade
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory
from wiregauge.terminal import print_table

__all__ = [
    "Beside",
    "Hop",
    "Laid",
    "NotComparableError",
    "laid_json",
    "lay",
    "sends_of",
    "show_laid",
    "told_invalid",
]

_NS: Final = 1e9
_AROUND: Final = 20
_WIDTH: Final = 40
"""Characters of the axis."""

NETWORKS: Final = ("A", "B")
"""As bounds name the networks of a flow that takes both."""
_WIRE: Final = {"A": "rx_wire", "B": "rx_wire_b"}
"""The columns of messages that say when a copy was received."""

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
    invalid: tuple[str, ...] = ()
    """Why the run is INVALID; nothing of it is then laid beside the bounds."""
    notes: tuple[str, ...] = ()
    """Flows of the run that have no bound to lie beside, a sentence each."""

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
    simulated = bool(judgement.traits.virtual_time)
    if results.validity is Grade.INVALID:
        return Laid(str(place), simulated, (), invalid=results.reasons)
    bounds = {(flow.flow, target.target): target for flow in answer.flows for target in flow.targets}
    passed = {
        flow.flow: frozenset(server for target in flow.targets for server in target.path)
        for flow in answer.flows
    }
    laid: list[Beside] = []
    notes = []
    for result in results.flows:
        held = [
            _beside(directory, run, result, (bounds[named], found, passed[named[0]]), sends_of(source))
            for found in _found(directory, run, result)
            if (named := (str(result.plan.id), found.target)) in bounds
            and bounds[named].delay is not None
            and answer.time_unit == "s"
        ]
        if not held:
            notes.append(
                f"flow {result.plan.id} to {result.plan.destination} has no bound here, and nothing lies beside it"
            )
        laid += held
    if not laid:
        raise NotComparableError(
            f"{place}: none of its flows is among those bounded; name a run of the same test"
        )
    return Laid(str(place), simulated, tuple(laid), notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Found:
    """What a run has to lay beside the bound of a target: the longest latency and its uncertainty, ns."""

    target: str
    longest: float | None
    uncertainty: float
    n: int
    network: str | None = None
    """Of a flow on both networks."""


def _found(directory: RunDirectory, run: int, result: FlowResult) -> Iterator[_Found]:
    """The targets of a flow at a receiver as bounds name them, each with what was measured there."""
    plan = result.plan
    latency = result.summaries.get("latency")
    if plan.both_networks:
        yield from _copies(directory, run, result)
    elif latency is None:
        yield _Found(plan.destination, None, 0.0, 0)
    else:
        uncertainty = latency.clock + latency.timestamp
        yield _Found(plan.destination, latency.maximum, uncertainty, latency.n)
    there_and_back = result.summaries.get(plan.main) if plan.relayed and not plan.both_networks else None
    if there_and_back is not None:
        uncertainty = there_and_back.clock + there_and_back.timestamp
        yield _Found(f"{plan.destination} and back", there_and_back.maximum, uncertainty, there_and_back.n)


def _copies(directory: RunDirectory, run: int, result: FlowResult) -> Iterator[_Found]:
    """Of a flow on both networks: to the application of the copy that came first, to the interface of the other.

    A copy that comes second is not handed to the application, so its latency ends where it is received; clocks are
    corrected as those of the flow's latency are.
    """
    plan, path = result.plan, directory.messages(run)
    latency = result.summaries.get("latency")
    if latency is None or latency.maximum is None or not path.exists():
        for network in NETWORKS:
            yield _Found(f"{plan.destination} {network}", None, 0.0, 0, network)
        return
    columns = ["flow", "to", "warm_up", "tx_app", "rx_app", *_WIRE.values()]
    mine = (pl.col("flow") == plan.id) & ~pl.col("warm_up")
    if plan.multicast:
        mine &= pl.col("to") == plan.receiver
    rows = pl.read_parquet(path, columns=columns).filter(mine)
    handed_on = rows.select((pl.col("rx_app") - pl.col("tx_app")).max()).item()
    corrected = 0.0 if handed_on is None else handed_on / 1000 - latency.maximum
    for network, other in (NETWORKS, NETWORKS[::-1]):
        own, others = pl.col(_WIRE[network]), pl.col(_WIRE[other])
        first = own.is_not_null() & (others.is_null() | (own <= others))
        took = pl.when(first & pl.col("rx_app").is_not_null()).then(pl.col("rx_app")).otherwise(own)
        values = rows.select(took=took - pl.col("tx_app")).drop_nulls()["took"]
        longest = max(values.to_list()) / 1000 - corrected if len(values) else None
        uncertainty = latency.clock + latency.timestamp
        yield _Found(f"{plan.destination} {network}", longest, uncertainty, len(values), network)


def _beside(
    directory: RunDirectory,
    run: int,
    result: FlowResult,
    pair: tuple[TargetBound, _Found, frozenset[str]],
    sends: Sends,
) -> Beside:
    target, found, passed = pair
    uncertainty = found.uncertainty / _NS
    residences = {f"{hop.switch}:{hop.port}": hop.maximum for hop in result.hops}
    hops = tuple(
        Hop(server, bound, residences[server] / _NS if server in residences else None)
        for server, bound in zip(target.path, target.hops, strict=False)
    )
    measured = None if found.longest is None else found.longest / _NS
    bound = float(target.delay or 0.0)
    exceeded = measured is not None and measured - uncertainty > bound
    lost = result.counts if found.network is None else result.lost_copies
    return Beside(
        str(result.plan.id),
        target.target,
        bound,
        measured,
        found.n,
        int(lost.get("lost" if found.network is None else found.network, 0)),
        uncertainty,
        hops,
        tuple(_alarms(directory, run, result, (passed, hops), sends)) if exceeded else (),
    )


def _alarms(
    directory: RunDirectory,
    run: int,
    result: FlowResult,
    way: tuple[frozenset[str], tuple[Hop, ...]],
    sends: Sends,
) -> Iterator[str]:
    """The assumptions of a bound that a run contradicts; where none is seen to fail, that."""
    found = False
    servers, hops = way
    for sentence in (
        *_off_path(directory, run, result.plan.id, servers),
        *_bursts(directory, run, servers, sends),
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


def _off_path(directory: RunDirectory, run: int, flow: int, servers: frozenset[str]) -> Iterator[str]:
    path = directory.passages(run)
    if not path.exists():
        return
    names = directory.plan.network.names
    seen = pl.read_parquet(path).filter((pl.col("flow") == flow) & ~pl.col("returning"))
    passed = {f"{names[node]}:{port}" for node, port in seen.select("node", "port").unique().iter_rows()}
    strange = sorted(passed - servers)
    receivers = next((one.receivers for one in directory.plan.runs[run].flows if one.id == flow), ())
    if strange and len(receivers) == 1:
        yield f"path wrong: its frames also left by {', '.join(strange)}"


def _bursts(directory: RunDirectory, run: int, servers: frozenset[str], sends: Sends) -> Iterator[str]:
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
    if rows:
        print_table(heads, rows, console, leading=2)
    for text, style in _told(laid):
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    flows = (flow for one in laid for flow in one.flows)
    worst = max(flows, key=lambda flow: flow.tightness or 0.0, default=None)
    if worst is not None and worst.hops:
        console.print()
        console.print(f"flow {worst.flow} to {worst.target}, hop by hop:", markup=False, highlight=False)
        hops = [
            (
                hop.server,
                f"{1e6 * hop.bound:.3f}",
                "-" if hop.measured is None else f"{1e6 * hop.measured:.3f}",
            )
            for hop in worst.hops
        ]
        print_table(("server", "bound us", "measured us"), hops, console)


def _told(laid: list[Laid]) -> Iterator[tuple[str, str]]:
    """What there is to say of runs below their table, with its style."""
    for one in laid:
        for flow in one.flows:
            for alarm in flow.alarms:
                exceeded = f"flow {flow.flow} to {flow.target} exceeded its bound"
                yield f"ALARM {one.run}: {exceeded}: {alarm}", "bold"
            if flow.lost:
                lost = f"{one.run} lost {flow.lost} frames of flow {flow.flow}"
                yield f"Note: {lost}; a bound is of those that arrive", ""
        for sentence in told_invalid(one):
            yield sentence, "bold"
        for note in one.notes:
            yield f"Note: {one.run}: {note}", ""


def told_invalid(one: Laid) -> Iterator[str]:
    """Of an INVALID run why, and what helps; of others nothing."""
    if one.invalid:
        yield (
            f"{one.run} is INVALID, and no latency of it lies beside the bounds: {'; '.join(one.invalid)}. "
            "Mend that and run the test again"
        )


def laid_json(laid: list[Laid]) -> list[dict[str, Any]]:
    """The same in the form of `wiregauge bounds --against DIR --json`; times in s."""
    return [
        {
            "run": one.run,
            "simulated": one.simulated,
            "invalid": list(one.invalid),
            "notes": list(one.notes),
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
