"""Bounds compared with a measured or simulated run: the tightness, and the failed assumption where one is exceeded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from msgspec import Struct
from rich.console import Console

from wiregauge.bounds.analysing import Answer, TargetBound
from wiregauge.bounds.axis import AXIS, axis
from wiregauge.bounds.every_run import Bounded
from wiregauge.bounds.networks import RUN_ONLY, Source
from wiregauge.identify.service import least_burst
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.metrics.judgement import FlowResult, Grade, Judgement, RunResult
from wiregauge.plan import Campaign, plain
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.records import RunDirectory
from wiregauge.results import judge
from wiregauge.terminal import print_table

__all__ = [
    "Beside",
    "Hop",
    "Laid",
    "NotComparableError",
    "laid_json",
    "lay",
    "lay_every",
    "nearest",
    "sends_of",
    "show_laid",
    "tightest",
    "told_invalid",
]

_NS: Final = 1e9
_WIDTH: Final = 40
"""Width of the axis, characters."""

NETWORKS: Final = ("A", "B")
"""Suffixes that name the two copies of a flow on both networks."""
_WIRE: Final = {"A": "rx_wire", "B": "rx_wire_b"}
"""Columns of the message table with the receive time of each copy."""

Sends = Mapping[int, tuple[int, int, int]]


class NotComparableError(Exception):
    """A run directory cannot be compared with the bounds; one sentence with the cure."""


class Hop(Struct, frozen=True):
    """A server of a flow's path, with bound and measured residence, s."""

    server: str
    bound: float
    measured: float | None
    """The longest residence in its switch; None where it was not recorded."""
    wait: float = 0.0
    """The bound of what lies before the server: the line to its switch, the switch, a regulator."""


class Beside(Struct, frozen=True):
    """A flow at a target, with bound and measured latency, s. `uncertainty` is that of clocks and timestamps."""

    flow: str
    target: str
    bound: float
    measured: float | None
    n: int
    lost: int
    uncertainty: float
    hops: tuple[Hop, ...]
    alarms: tuple[str, ...]
    """The assumptions that failed, where the bound was exceeded by more than the uncertainty."""
    end: float = 0.0
    """The bound of what lies behind the last server."""

    @property
    def tightness(self) -> float | None:
        """The measured maximum over the bound."""
        return None if self.measured is None or not self.bound else self.measured / self.bound


class Laid(Struct, frozen=True):
    """The comparison of one run with its bounds."""

    run: str
    simulated: bool
    flows: tuple[Beside, ...]
    invalid: tuple[str, ...] = ()
    """Why the run is INVALID; it is then not compared."""
    notes: tuple[str, ...] = ()
    """Flows of the run without a bound, and differences between its test and the bounded one, a sentence each."""
    index: int = 0
    """The run's index in its directory."""
    network: int = 0
    """The first run of the network that it is compared with; tells the networks of one test apart."""
    several: bool = False
    """Whether other runs of its directory are compared as well."""
    above: tuple[int, int] = (0, 0)
    """For an INVALID run: how many longest latencies exceed their bound, and how many there are."""

    @property
    def exceeded(self) -> bool:
        """Whether a bound was exceeded."""
        return any(flow.alarms for flow in self.flows)

    @property
    def name(self) -> str:
        """The directory, with the run's index where there are several."""
        return f"{self.run} run {self.index}" if self.several else self.run


def lay(answer: Answer, source: Source, place: Path, run: int = 0) -> Laid:
    """Compares run `run` of a directory with the bounds; raises as `lay_every` does."""
    (one,) = lay_every([Bounded(source, answer)], place, run)
    return one


def lay_every(
    held: Sequence[Bounded], place: Path, only: int | None = None, judgement: Judgement | None = None
) -> list[Laid]:
    """Compares the longest latencies of a directory's runs, or of one run, with the bounds of their networks.

    Without `judgement` the directory is judged, and keeps that.

    Raises NotComparableError where the directory has runs or flows that were not bounded, RunDirectoryError where it
    cannot be read.
    """
    directory = RunDirectory.open(place)
    judgement = judgement or judge(place, unkept=lambda _: None)
    chosen = [one for one in judgement.runs if only is None or one.plan.index == only]
    if held[0].source.planned is None and only is None:
        # A network in another tool's format has one run.
        chosen = chosen[:1]
    if not chosen:
        raise NotComparableError(f"{place}: has no run {only or 0}; choose another with --run")
    laid = []
    for results in chosen:
        index = results.plan.index
        own = next((one for one in held if one.source.planned is None or index in one.source.runs), None)
        if own is None:
            raise NotComparableError(
                f"{place}: its run {index} is none of the test that is bounded; name a run directory of that test, "
                "or choose a run with --run"
            )
        simulated = bool(judgement.traits.virtual_time)
        laid.append(_laid((directory, place), results, own, several=len(chosen) > 1, simulated=simulated))
    return laid


def _laid(
    opened: tuple[RunDirectory, Path], results: RunResult, own: Bounded, *, several: bool, simulated: bool
) -> Laid:
    (directory, place), run = opened, results.plan.index
    answer, source = own.answer, own.source
    notes = _differing(directory, source, place, run)
    bounds = {(flow.flow, target.target): target for flow in answer.flows for target in flow.targets}
    passed = {
        flow.flow: frozenset(server for target in flow.targets for server in target.path)
        for flow in answer.flows
    }
    valid = results.validity is not Grade.INVALID
    laid: list[Beside] = []
    for result in results.flows:
        beside = [
            _beside(directory, run, result, (bounds[named], found, passed[named[0]]), sends_of(source))
            for found in _found(directory, run, result)
            if (named := (str(result.plan.id), found.target)) in bounds
            and bounds[named].delay is not None
            and answer.time_unit == "s"
        ]
        if not beside:
            notes.append(
                f"flow {result.plan.id} to {result.plan.destination} has no bound here, and nothing lies beside it"
            )
        laid += beside
    if valid and not laid:
        raise NotComparableError(
            f"{place}: none of its flows is among those bounded; name a run of the same test"
        )
    above = sum(one.measured is not None and one.measured > one.bound for one in laid), len(laid)
    return Laid(
        str(place),
        simulated,
        tuple(laid) if valid else (),
        () if valid else results.reasons,
        tuple(notes),
        index=run,
        network=source.runs[0] if source.runs else 0,
        several=several,
        above=(0, 0) if valid else above,
    )


def _differing(directory: RunDirectory, source: Source, place: Path, run: int) -> list[str]:
    """The differences between a run's test and the bounded one; raises NotComparableError where the flows differ."""
    if source.planned is None:
        return []
    network, planned = source.planned
    other_network, other = directory.plan.network, directory.plan.runs[run]
    ends = {flow.id: tuple(network.names[node] for node in flow.ends) for flow in planned.flows}
    for flow in other.flows:
        its = tuple(other_network.names[node] for node in flow.ends)
        if not flow.exchange and ends.get(flow.id) != its:
            ways = "no such flow" if flow.id not in ends else _way(ends[flow.id])
            raise NotComparableError(
                f"{place}: its flow {flow.id} goes {_way(its)}, and the test that is bounded has {ways}; name a "
                "run of the same test"
            )
    parts: dict[str, tuple[object, object]] = {"network": (plain(network), plain(other_network))}
    parts |= {key: (value, plain(other).get(key)) for key, value in plain(planned).items()}
    differing = [key for key, (one, two) in parts.items() if key not in RUN_ONLY and one != two]
    if not differing:
        return []
    named = ", ".join(differing)
    return [
        f"its test is not the one that is bounded: they differ in {named}, and its bounds would be others"
    ]


def _way(ends: tuple[str, ...]) -> str:
    return f"from {ends[0]} to {', '.join(ends[1:])}"


class _Found(Struct, frozen=True):
    """The longest latency of a run at a bounded target and its uncertainty, ns."""

    target: str
    longest: float | None
    uncertainty: float
    n: int
    network: str | None = None
    """The network, A or B, of a copy; None where the flow uses one network."""


def _found(directory: RunDirectory, run: int, result: FlowResult) -> Iterator[_Found]:
    """The targets of a flow at a receiver, named as in the bounds, with the latency measured at each."""
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
    """The longest latency of each copy of a flow on both networks: to the application if first, else to the interface.

    The second copy never reaches the application, so its latency ends at reception. Both get the clock correction of
    the flow's latency.
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
    rows = pl.read_parquet(path, columns=columns, glob=False).filter(mine)
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
    residences = {f"{hop.switch}:{hop.port}": hop.maximum for hop in result[HOPS]}
    waits = target.waits or (0.0,) * (len(target.hops) + 1)
    hops = tuple(
        Hop(server, bound, residences[server] / _NS if server in residences else None, wait)
        for server, bound, wait in zip(target.path, target.hops, waits, strict=False)
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
        waits[-1],
    )


def _alarms(
    directory: RunDirectory,
    run: int,
    result: FlowResult,
    way: tuple[frozenset[str], tuple[Hop, ...]],
    sends: Sends,
) -> Iterator[str]:
    """The assumptions of a bound that a run contradicts; a general sentence where no failed one can be named.

    Long residences follow from other ways and greater bursts, and only without these from a slower service.
    """
    servers, hops = way
    causes = [
        *_off_path(directory, run, result.plan.id, servers),
        *_bursts(directory, run, servers, sends),
    ]
    slow = [hop for hop in hops if hop.measured is not None and hop.measured > hop.wait + hop.bound]
    yield from causes
    if causes:
        return
    for hop in slow:
        yield (
            f"service slower than assumed: a frame stayed {(hop.measured or 0.0) * 1e6:.3f} µs at {hop.server}, "
            f"where {(hop.wait + hop.bound) * 1e6:.3f} µs are the most"
        )
    if not slow:
        yield (
            "service slower than assumed at a place without records (a host slower than its model, a link longer than "
            "the test says)"
        )


def _off_path(directory: RunDirectory, run: int, flow: int, servers: frozenset[str]) -> Iterator[str]:
    path = directory.passages(run)
    if not path.exists():
        return
    names = directory.plan.network.names
    seen = pl.read_parquet(path, glob=False).filter((pl.col("flow") == flow) & ~pl.col("returning"))
    passed = {f"{names[node]}:{port}" for node, port in seen.select("node", "port").unique().iter_rows()}
    strange = sorted(passed - servers)
    receivers = next((one.receivers for one in directory.plan.runs[run].flows if one.id == flow), ())
    if strange and len(receivers) == 1:
        yield f"path wrong: its frames also left by {', '.join(strange)}"


def _bursts(directory: RunDirectory, run: int, servers: frozenset[str], sends: Sends) -> Iterator[str]:
    """Flows at the same servers whose bursts, as least bucket sizes, exceed what the bounded test allows."""
    plan: Campaign = directory.plan
    path = directory.messages(run)
    if not path.exists():
        return
    table = pl.read_parquet(path, columns=["flow", "tx_app", "length"], glob=False).drop_nulls()
    names = plan.network.names
    for flow in plan.runs[run].flows:
        ways = {f"{names[hop.from_]}:{hop.from_port}" for route in flow.routes for hop in route.hops}
        own = table.filter(pl.col("flow") == flow.id).sort("tx_app")
        send = sends.get(flow.id)
        if send is None or not ways & servers or own.is_empty():
            continue
        size, spacing, period = send
        bits = 8.0 * (own["length"].to_numpy().astype(np.float64) + AROUND_FRAME)
        longest = float(bits.max())
        rate = size * longest / (period / 1e12)
        two = np.concatenate([turn * period + spacing * np.arange(size, dtype=np.int64) for turn in (0, 1)])
        allowed = least_burst(two, np.full(len(two), longest), rate)
        had = least_burst(own["tx_app"].to_numpy().astype(np.int64), bits, rate)
        # Lateness of a host by less than a frame is no excess burst.
        if had > allowed + longest:
            yield (
                f"arrival curve exceeded: flow {flow.id} came with a burst of {had / 8:.0f} B above its rate, "
                f"the test says {allowed / 8:.0f} B"
            )


def sends_of(source: Source) -> Sends:
    """Burst size in frames, spacing and period, ps, of each flow with one periodic sender, by flow."""
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
    """Every flow on one axis: measured (M) and simulated (S) maxima and the bound (|); then alarms.

    With several networks the axis shows the one nearest to or furthest beyond its bounds; remarks cover all.
    """
    networks = sorted({one.network for one in laid})
    shown = laid
    if len(networks) > 1:
        network = nearest(laid)
        shown = _of_network(laid, network)
        rows = [_row(own, _of_network(laid, own)) for own in networks]
        print_table(("bounds of run", "runs", "above their bound", "tightness"), rows, console)
        console.print()
        text = f"The runs beside the bounds of run {network}, which come nearest to them or furthest beyond:"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    _show_flows(shown, console)
    for text, style in _told(laid):
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    _show_hops(shown, console)


def _of_network(laid: Sequence[Laid], network: int) -> list[Laid]:
    return [one for one in laid if one.network == network]


def nearest(laid: Sequence[Laid]) -> int:
    """The first run of the network whose runs come nearest to their bounds, or furthest beyond."""
    return max(laid, key=tightest).network


def tightest(one: Laid) -> float:
    """The greatest tightness of a run; 0 where no flow was compared with a bound."""
    return max((flow.tightness or 0.0 for flow in one.flows), default=0.0)


def _row(network: int, laid: Sequence[Laid]) -> tuple[str, ...]:
    exceeded = sum(one.exceeded for one in laid)
    return str(network), str(len(laid)), str(exceeded), f"{100 * max(map(tightest, laid)):.1f} %"


def _show_flows(laid: Sequence[Laid], console: Console) -> None:
    rows = []
    places = {(flow.flow, flow.target): flow.bound for one in laid for flow in one.flows}
    for (name, target), bound in places.items():
        found: dict[bool, Beside] = {}
        for one in laid:
            for flow in one.flows:
                longest = found.get(one.simulated)
                if (flow.flow, flow.target) != (name, target) or flow.measured is None:
                    continue
                if longest is None or flow.measured > (longest.measured or 0.0):
                    found[one.simulated] = flow
        marks = ((flow.measured, "S" if simulated else "M") for simulated, flow in found.items())
        texts = [
            "-" if (longest := found.get(kind)) is None else f"{1e6 * (longest.measured or 0.0):.3f}"
            for kind in (False, True)
        ]
        best = max((flow.tightness or 0.0 for flow in found.values()), default=None)
        tight = "-" if best is None else f"{100 * best:.1f} %"
        rows.append((name, target, *texts, f"{1e6 * bound:.3f}", tight, axis(bound, marks, _WIDTH)))
    heads = ("flow", "target", "measured µs", "simulated µs", "bound µs", "tightness", AXIS)
    if rows:
        print_table(heads, rows, console, leading=2)


def _show_hops(laid: Sequence[Laid], console: Console) -> None:
    flows = ((one, flow) for one in laid for flow in one.flows)
    nearest_one = max(flows, key=lambda pair: pair[1].tightness or 0.0, default=None)
    if nearest_one is not None and nearest_one[1].hops:
        run, worst = nearest_one
        console.print()
        console.print(f"flow {worst.flow} to {worst.target}, hop by hop:", markup=False, highlight=False)
        hops = [
            (
                hop.server,
                f"{1e6 * hop.wait:.3f}",
                f"{1e6 * hop.bound:.3f}",
                "-" if hop.measured is None else f"{1e6 * hop.measured:.3f}",
            )
            for hop in worst.hops
        ]
        hops.append(("behind it", f"{1e6 * worst.end:.3f}", "-", "-"))
        kind = "simulated" if run.simulated else "measured"
        heads = ("server", "before it at most µs", "at it at most µs", f"{kind} in its switch µs")
        print_table(heads, hops, console)


def _told(laid: list[Laid]) -> Iterator[tuple[str, str]]:
    """The remarks printed below the tables of the runs, each with its style."""
    for one in laid:
        for flow in one.flows:
            for alarm in flow.alarms:
                exceeded = f"flow {flow.flow} to {flow.target} exceeded its bound"
                yield f"ALARM {one.name}: {exceeded}: {alarm}", "bold"
            if flow.lost:
                lost = f"{one.name} lost {flow.lost} frames of flow {flow.flow} to {flow.target}"
                yield f"Note: {lost}; a bound is of those that arrive", ""
        for sentence in told_invalid(one):
            yield sentence, "bold"
        for note in one.notes:
            yield f"Note: {one.name}: {note}", ""


def told_invalid(one: Laid) -> Iterator[str]:
    """Sentences on an INVALID run: the reason, how many latencies exceed their bounds, and the cure; else nothing."""
    if one.invalid:
        above, all_ = one.above
        exceeding = (
            f"{above} of its {all_} longest latencies are above their bound nevertheless. " if above else ""
        )
        yield (
            f"{one.name} is INVALID, and no latency of it lies beside the bounds: {'; '.join(one.invalid)}. "
            f"{exceeding}Mend that and run the test again"
        )


def laid_json(laid: list[Laid]) -> list[dict[str, Any]]:
    """The comparison in the form of `wiregauge bounds --against DIR --json`; times in s."""
    return [
        {
            "run": one.run,
            "index": one.index,
            "simulated": one.simulated,
            "invalid": list(one.invalid),
            "above": one.above[0],
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
                        {
                            "server": hop.server,
                            "wait": hop.wait,
                            "bound": hop.bound,
                            "measured": hop.measured,
                        }
                        for hop in flow.hops
                    ],
                    "alarms": list(flow.alarms),
                }
                for flow in one.flows
            ],
        }
        for one in laid
    ]
