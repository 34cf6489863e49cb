"""Judges a run directory: measures, validity, limits, in this order for every run, then the repeats of each point."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.files import write_whole
from wiregauge.measures.calibration import citations
from wiregauge.measures.clocks import RunClocks, corrected, run_clocks, watched_clocks
from wiregauge.measures.contracts import bag_conformity, with_contracts
from wiregauge.measures.definitions import COUNTS, OUTCOMES, SERIES
from wiregauge.measures.evidence import Evidence, few, number, parts
from wiregauge.measures.hops import Passages, hops_of, passages, pool_hops
from wiregauge.measures.limits import judge_limits
from wiregauge.measures.pair_repeats import pool_pairs
from wiregauge.measures.pairs import Correction, pair_latencies, side_by_side
from wiregauge.measures.percentiles import Percentile
from wiregauge.measures.plan import FlowPlan, RunPlan
from wiregauge.measures.results import (
    Check,
    FlowResult,
    Grade,
    Judgement,
    PointResult,
    RunResult,
    Series,
    Summary,
)
from wiregauge.measures.rundir import RunDirectory, open_run_directory
from wiregauge.measures.series import WARM_UP, Extracted, Offsets, extract
from wiregauge.measures.service import pool_services, serve
from wiregauge.measures.settling import character
from wiregauge.measures.show import json_text, show_json
from wiregauge.measures.sketched import (
    Whole,
    exact,
    pool_sampled,
    read_wholes,
    summarise_repeats,
    with_loss_repeats,
)
from wiregauge.measures.stamping import stamp_error_ns, wire_errors_ns
from wiregauge.measures.summarise import loss, shifted, summarise, with_loss
from wiregauge.measures.tally import LOST_OUTCOMES, UNKNOWN
from wiregauge.measures.traffic import offered_loads
from wiregauge.measures.units import count_of
from wiregauge.measures.validity import judge_validity
from wiregauge.records import seal

_ACROSS_CLOCKS = ("latency", "driver_latency", "service_latency", "return_latency")


def judge(run_dir: Path) -> Judgement:
    """Judges everything in `run_dir` and writes `measures.json` there.

    A directory that cannot be written (an archive) is still judged. Raises RunDirectoryError, whose text is a
    sentence for the user, when the directory cannot be read.
    """
    directory = open_run_directory(run_dir)
    runs = tuple(_judge_run(directory, run) for run in directory.plan.runs if run.index in directory.runs)
    state, reason = _state(directory.manifest)
    judgement = Judgement(
        directory=run_dir,
        manifest=directory.manifest,
        plan=directory.plan,
        state=state,
        reason=reason,
        checks=_campaign_checks(directory, state, reason, len(runs)),
        runs=runs,
        points=_points(runs),
    )
    _write(run_dir / "measures.json", directory, show_json(judgement))
    return judgement


def _write(path: Path, directory: RunDirectory, shown: Mapping[str, object]) -> None:
    """Replaces `path` whole or not at all; says nothing where the directory is read-only.

    It carries its own digest and that of the manifest it was made from, which holds those of all other files.
    """
    sources = {"manifest.json": directory.digest} if directory.digest is not None else {}
    text = json_text({"digest": "", "sources": sources, **shown}) + "\n"
    with contextlib.suppress(OSError):
        write_whole(path, seal(text))


def _state(manifest: Mapping[str, object]) -> tuple[str, str | None]:
    state, reason = str(manifest.get("state")), manifest.get("reason")
    if state == "running":
        # Only the directory's lock tells a killed testmaster from a living one, and that is the opener's to see.
        return state, "its testmaster has not finished it"
    return state, str(reason) if reason else None


def _campaign_checks(directory: RunDirectory, state: str, reason: str | None, done: int) -> tuple[Check, ...]:
    planned = len(directory.plan.runs)
    ended = state == "complete"
    whole = Check(
        "campaign-complete",
        "Campaign ended as planned",
        "state complete",
        state,
        Grade.OK if ended else Grade.DEGRADED,
        "" if ended else f"the campaign is not complete ({state}): {reason or 'no reason was recorded'}",
    )
    missing = planned - done
    every = Check(
        "runs-done",
        "Every planned run was run",
        count_of(planned, "run"),
        count_of(done, "run"),
        Grade.INVALID if done == 0 else Grade.DEGRADED if missing else Grade.OK,
        f"{missing} of {planned} planned runs were not run" if missing else "",
    )
    return whole, every, _files_check(directory)


def _files_check(directory: RunDirectory) -> Check:
    """What was read is what was written, or nobody can tell: a directory of an older version has no hashes.

    A file that is not what was written ends the command, so there is no worse grade.
    """
    verified, adopted = directory.inventory.verified, directory.inventory.adopted
    reason = "" if verified else "unverified: the directory is of a version that kept no hashes of its files"
    if adopted:
        reason = f"records were put there by hand and are not those of the run: {few(adopted)}"
    return Check(
        "files",
        "Files are those that were written",
        "every file that is read has its hash in the manifest",
        f"{count_of(len(adopted), 'file')} put there by hand"
        if adopted
        else "verified"
        if verified
        else "unverified",
        Grade.DEGRADED if adopted else Grade.OK if verified else Grade.NOTE,
        reason,
    )


def _judge_run(directory: RunDirectory, plan: RunPlan) -> RunResult:
    entry = directory.runs[plan.index]
    tracked = (directory.tracked or {}).get(plan.index)
    # Counting passes over all messages: before any of them are held.
    one_in = directory.sampled(plan.index)
    clocks = run_clocks(directory, plan)
    wholes = read_wholes(directory, plan, one_in, clocks)
    frame = directory.messages(plan.index)
    through = passages(directory.passages(plan.index), one_in) if frame is not None else {}
    agents = _reports(entry)
    offsets = clocks.offsets
    contradictions: list[str] = []
    flows = []
    unseen = _unseen(directory.manifest, entry, plan)
    names = [node.name for node in directory.plan.nodes]
    if frame is not None:
        frame = corrected(frame, plan.flows, names, clocks)
    counted = (
        {(number(flow, "flow"), flow.get("to")): flow for flow in parts(tracked, "flows")} if tracked else {}
    )
    contracts = bag_conformity(directory.records(plan.index), plan.flows, names)
    for flow, rows in _by_flow(plan.flows, frame):
        count = counted.get((flow.id, flow.receiver), counted.get((flow.id, None)))
        result = _judge_flow(
            flow,
            rows,
            count or {},
            clocks.between(flow),
            stamp_error_ns(entry, agents),
            wire_errors_ns(agents),
            unseen,
            names,
            through.get(flow.id),
            len(plan.flows),
            wholes.get((flow.id, flow.receiver)),
            repeated=directory.plan.repeats > 1,
        )
        result = with_contracts(result, contracts)
        contradictions += _contradictions(result, count, clocks) if tracked is not None else []
        flows.append(result)
    unplanned = tracked.get("unplanned", {}) if tracked else {}
    strays = {str(k): number(unplanned, str(k)) for k in unplanned} if isinstance(unplanned, dict) else {}
    ends = {end for flow in plan.flows for end in (flow.source, flow.destination)}
    checks = judge_validity(
        Evidence(
            plan=plan,
            state=str(entry.get("state", "partial")),
            reason=str(entry["reason"]) if entry.get("reason") else None,
            agents=agents,
            clock_uncertainty_ns=max(
                (clocks.between(flow).uncertainty_ns for flow in plan.flows), default=0.0
            ),
            # Where nobody stamped there is no clock to know.
            clocks_missing=sorted(ends - offsets.keys() - unseen),
            flows=flows,
            tracked=frame is not None and tracked is not None,
            unplanned=strays,
            tracking=tracked or {},
            records_written=_records_written(entry, agents),
            contradictions=contradictions,
            node_names=names,
            virtual_time=directory.manifest.get("bench") == "sim",
            wrong_clocks=clocks.wrong,
            clocks=clocks.measured,
            clocks_uncompared=clocks.uncompared,
            synchronise=directory.plan.synchronise,
            watched=watched_clocks(directory, plan),
            clock_gate=gate if isinstance(gate := entry.get("clock_gate"), dict) else None,
            captures=_captures(entry, agents),
            tapped=directory.manifest.get("bench") == "capture",
            entry=entry,
            calibrations=citations(directory.manifest),
        )
    )
    return RunResult(
        plan=plan,
        state=str(entry.get("state", "partial")),
        reason=str(entry["reason"]) if entry.get("reason") else None,
        checks=checks,
        flows=tuple(flows),
        limits=judge_limits(directory.plan.limits, flows, strays),
        unplanned=strays,
        agents=agents,
        started=str(entry["started"]) if entry.get("started") else None,
        finished=str(entry["finished"]) if entry.get("finished") else None,
        loads=offered_loads(plan, agents, entry),
        clocks=clocks.measured,
    )


def _unseen(manifest: Mapping[str, object], entry: Mapping[str, object], plan: RunPlan) -> set[str]:
    """End systems of a run made from captures that none of them is of."""
    if manifest.get("bench") != "capture":
        return set()
    ends = {end for flow in plan.flows for end in (flow.source, flow.destination)}
    return ends - {str(tap.get("node")) for tap in parts(entry, "taps")}


def _by_flow(
    flows: Sequence[FlowPlan], table: pl.DataFrame | None
) -> Iterator[tuple[FlowPlan, pl.DataFrame]]:
    """Each flow with its rows of the message table, which are cut out of it and not copied."""
    if table is None:
        return
    numbers = table["flow"]
    for flow in flows:
        first, end = (numbers.search_sorted(flow.id, side) for side in ("left", "right"))
        rows = table.slice(first, end - first)
        yield flow, rows.filter(pl.col("to") == flow.receiver) if flow.multicast else rows


def _reports(entry: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    agents = entry.get("agents")
    if not isinstance(agents, dict):
        return {}
    return {str(name): report for name, report in agents.items() if isinstance(report, dict)}


def _captures(
    entry: Mapping[str, object], agents: Mapping[str, Mapping[str, object]]
) -> dict[str, Mapping[str, object]]:
    """By node the report of its capture: those of agents and, beside them, those of switches."""
    beside = entry.get("captures")
    found = {str(name): task for name, task in beside.items()} if isinstance(beside, dict) else {}
    for name, agent in agents.items():
        for task in parts(agent, "tasks"):
            if task.get("kind") == "capture":
                found[name] = dict(task)
    return {name: task for name, task in found.items() if isinstance(task, dict)}


def _records_written(entry: Mapping[str, object], agents: Mapping[str, Mapping[str, object]]) -> int:
    """What the bench says it recorded: a simulation as a whole, agents one by one."""
    simulation = entry.get("simulation")
    if isinstance(simulation, dict):
        return number(simulation, "records")
    return sum(number(agent, "records_written") for agent in agents.values())


def _judge_flow(
    flow: FlowPlan,
    rows: pl.DataFrame,
    tracked: Mapping[str, object],
    between: Offsets,
    stamp_ns: float,
    wire: Mapping[str, float],
    unseen: Collection[str],
    names: Sequence[str],
    through: Passages | None,
    among: int,
    whole: Whole | None,
    *,
    repeated: bool,
) -> FlowResult:
    """`among` flows of the run share the rate of false alarms of the rules; `whole`: what `rows` are a sample of;
    `wire`: by node the error of the interface's stamps.

    `repeated` results are pooled with those of other runs, and keep what that needs.
    """
    at_wire = {"tx_wire": wire.get(flow.source, 0.0), "rx_wire": wire.get(flow.destination, 0.0)}
    correction = Correction(between.outward_ns, between.uncertainty_ns, stamp_ns, at_wire)
    measured = rows.filter(~pl.col("warm_up"))
    extracted = extract(measured, flow, between, {WARM_UP: rows.height - measured.height})
    if through is not None:
        extracted["residence"] = Extracted(through.series(), {}, through.stretches() if whole else None)
    tally = dict(measured["outcome"].value_counts().iter_rows())
    outcomes = {name: int(tally.get(name, 0)) for name in OUTCOMES}
    gone = measured["outcome"].is_in(LOST_OUTCOMES).to_numpy()
    unknown = (measured["outcome"] == UNKNOWN).to_numpy()
    lost = int(np.count_nonzero(gone))
    counts = _counts(measured, lost, int(np.count_nonzero(unknown)))
    last = measured.filter(pl.col("outcome").is_in(LOST_OUTCOMES)).select("last_node", "last_point")
    places = {
        f"{point or 'never seen'}"
        + (f" at {names[node]}" if isinstance(node, int) and 0 <= node < len(names) else ""): int(count)
        for node, point, count in last.group_by("last_node", "last_point", maintain_order=True)
        .len()
        .iter_rows()
    }
    drops = tracked.get("drop_reasons")
    series = {name: found.series for name, found in extracted.items()}
    main = "rtt" if flow.relayed else "latency"
    summaries = _summaries(extracted, flow, between, stamp_ns)
    for name in ("latency", "rtt"):
        if name in summaries:
            steady, early = character(series[name].value, among)
            summaries[name] = replace(summaries[name], stationarity=steady, settling=early)
    begins = summaries[main].settling
    blind = tuple(sorted({flow.source, flow.destination} & set(unseen)))
    service = serve(measured, flow, gone, unknown) if not blind else None
    judged = FlowResult(
        plan=flow,
        counts=counts,
        outcomes=outcomes,
        planned=number(tracked, "planned") or flow.count,
        warm_up=rows.height - measured.height,
        last_seen=places,
        drop_reasons={str(k): number(drops, str(k)) for k in drops} if isinstance(drops, dict) else {},
        missing_send_records=number(tracked, "missing_send_records"),
        loss=loss(
            lost,
            measured.height,
            stats.flags_worth(gone),
            counts["unknown"],
            stats.flags_worth(gone | unknown),
        )
        if not blind
        else loss(0, 0),
        unseen=blind,
        summaries=summaries,
        series=series,
        with_loss=_with_loss(measured, flow, between, gone)
        if lost
        else summaries[main].percentiles or with_loss([], [], flow.quantiles),
        goodput=service.goodput.value if service is not None and service.goodput is not None else None,
        effective_bandwidth=_effective_bandwidth(summaries["latency"].mean, flow.payload),
        reorder_extent=_largest(measured["reorder_extent"]),
        hops=hops_of(through, names, stamp_ns),
        second_copies=number(tracked, "second_copies"),
        lost_copies=_lost_copies(measured) if flow.both_networks else {},
        late_sends=int(np.count_nonzero(series["send_error"].value > flow.period_ns / 10))
        if flow.period_ns
        else 0,
        settling=begins.n if begins is not None else 0,
        service=service,
        pairs=pair_latencies(
            measured,
            flow,
            correction,
            summaries,
            keep=repeated,
        ),
    )
    if whole is None:
        return judged
    return exact(judged, extracted, whole, names, correction)


def _summaries(
    extracted: Mapping[str, Extracted], flow: FlowPlan, between: Offsets, stamp_ns: float
) -> dict[str, Summary]:
    """One summary per series. What is another measure less a constant is that one's summary, moved."""
    whole = "rtt" if flow.relayed else "latency"
    moved = {"delay_variation": "latency", "lateness": whole}

    def own(name: str) -> Summary:
        found = extracted[name]
        clock_ns = _clock_error(name, flow, between)
        return summarise(
            name,
            [found.series.value],
            found.excluded,
            clock_ns=clock_ns,
            stamp_ns=stamp_ns,
            quantiles=flow.quantiles,
        )

    names = [name for name in extracted if name not in moved]
    summaries = dict(
        zip(names, side_by_side(own, names, len(extracted["latency"].series.value)), strict=True)
    )
    for name, base in moved.items():
        if name in extracted:
            values = extracted[name].series.value
            by = float(extracted[base].series.value[0] - values[0]) if len(values) else 0.0
            summaries[name] = shifted(
                summaries[base],
                name,
                by,
                negative=int(np.count_nonzero(values < 0)),
                clock_ns=_clock_error(name, flow, between),
            )
    return {name: summaries[name] for name in extracted}


def _with_loss(
    rows: pl.DataFrame, flow: FlowPlan, between: Offsets, gone: NDArray[np.bool_]
) -> dict[str, Percentile]:
    """What arrived without a stamp has no time and is left out; what was lost stays."""
    end, shift = ("back_rx_app", 0.0) if flow.relayed else ("rx_app", between.outward_ns)
    took = (rows[end] - rows["tx_app"]).cast(pl.Float64).to_numpy() / 1000 - shift
    known = gone | ~np.isnan(took)
    return with_loss([np.where(gone, 0.0, took)[known]], [gone[known]], flow.quantiles)


def _pooled_with_loss(flows: Sequence[FlowResult], main: str) -> dict[str, Percentile]:
    if any(flow.sampled for flow in flows):
        return with_loss_repeats(flows, main)
    runs, lost = [], []
    for flow in flows:
        values = flow.series[main].value
        runs.append(np.concatenate([values, np.zeros(flow.counts["lost"])]))
        lost.append(np.arange(len(runs[-1])) >= len(values))
    return with_loss(runs, lost, flows[0].plan.quantiles)


def _lost_copies(measured: pl.DataFrame) -> dict[str, int]:
    """Copies that were sent on a network and did not come off its wire at the receiver."""
    return {
        network: int((measured[f"tx_wire{of}"].is_not_null() & measured[f"rx_wire{of}"].is_null()).sum())
        for network, of in (("A", ""), ("B", "_b"))
    }


def _counts(measured: pl.DataFrame, lost: int, unknown: int) -> dict[str, int]:
    """The counters of a flow from its rows; each counts messages to which that happened, whatever else did."""
    happened = {
        "duplicated": pl.col("copies") > 1,
        "reordered": pl.col("reordered"),
        "late": pl.col("late"),
        "misdirected": pl.col("misdirected_copies") > 0,
        "corrupted": pl.col("corrupted_copies") > 0,
    }
    row = measured.select(condition.sum().alias(name) for name, condition in happened.items()).row(
        0, named=True
    )
    delivered = measured.height - lost - unknown
    counts = {"sent": measured.height, "delivered": delivered, "lost": lost, "unknown": unknown}
    return counts | {name: int(value or 0) for name, value in row.items()}


def _largest(column: pl.Series) -> int:
    top = column.max()
    return top if isinstance(top, int) else 0


def _clock_error(name: str, flow: FlowPlan, between: Offsets) -> float:
    across = name in _ACROSS_CLOCKS or (name in ("network", "lateness") and not flow.relayed)
    return between.uncertainty_ns if across else 0.0


def _effective_bandwidth(mean_ns: float | None, payload: int | None) -> float | None:
    return (
        8 * payload / (mean_ns / 1e9) if payload is not None and mean_ns is not None and mean_ns > 0 else None
    )


def _contradictions(flow: FlowResult, tracked: Mapping[str, object] | None, clocks: RunClocks) -> list[str]:
    """Where the message table and tracking.json disagree, or do not add up in themselves."""
    if tracked is None:
        return [f"flow {flow.plan.name} is not in tracking.json"]
    found = [
        f"flow {flow.plan.name}: {flow.counts[key]} {key} in the table, {number(tracked, key)} counted"
        for key in COUNTS
        # Tracking takes stamps as they are, so where clocks were corrected it may find others late.
        if number(tracked, key) != flow.counts[key] and not (key == "late" and clocks.moved(flow.plan))
    ]
    if sum(flow.outcomes.values()) != flow.counts["sent"]:
        found.append(
            f"flow {flow.plan.name}: outcomes add to {sum(flow.outcomes.values())} of {flow.counts['sent']} sent"
        )
    if sum(number(tracked, key) for key in ("delivered", "lost", "unknown")) != number(tracked, "sent"):
        found.append(f"flow {flow.plan.name}: delivered, lost and unknown do not add to sent")
    return found


def _points(runs: Sequence[RunResult]) -> tuple[PointResult, ...]:
    groups: dict[tuple[tuple[str, str], ...], list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[tuple(sorted(run.plan.point.items()))].append(run)
    return tuple(
        PointResult(
            point=members[0].plan.point,
            runs=tuple(run.plan.index for run in members),
            flows=_pooled_flows(members),
            validity=max(run.validity for run in members),
        )
        for members in groups.values()
    )


def _pooled_flows(members: Sequence[RunResult]) -> tuple[FlowResult, ...]:
    by_flow: dict[tuple[int, str], list[FlowResult]] = defaultdict(list)
    for run in members:
        for flow in run.flows:
            by_flow[flow.plan.id, flow.plan.destination].append(flow)
    return tuple(flows[0] if len(flows) == 1 else pool(flows) for flows in by_flow.values())


def pool(flows: Sequence[FlowResult]) -> FlowResult:
    """Repeats of one flow as one: counts add, series join, the mean's uncertainty sees the spread between them."""
    counts = _added([flow.counts for flow in flows])
    summaries = {}
    for name in SERIES:
        members = [flow for flow in flows if name in flow.summaries]
        if not members:
            continue
        excluded = _added([flow.summaries[name].excluded for flow in members])
        clock_ns = max(flow.summaries[name].clock for flow in members)
        stamp_ns = max(flow.summaries[name].stamp for flow in members)
        if any(flow.sampled for flow in members):
            summaries[name] = summarise_repeats(name, members, excluded, clock_ns=clock_ns, stamp_ns=stamp_ns)
        else:
            values = [flow.series[name].value for flow in members]
            summaries[name] = summarise(
                name,
                values,
                excluded,
                clock_ns=clock_ns,
                stamp_ns=stamp_ns,
                quantiles=members[0].plan.quantiles,
            )
    series = {
        name: Series(
            np.concatenate([flow.series[name].t for flow in flows if name in flow.series]),
            np.concatenate([flow.series[name].value for flow in flows if name in flow.series]),
        )
        for name in summaries
    }
    rates = [flow.goodput for flow in flows if flow.goodput is not None]
    plan = flows[0].plan
    return FlowResult(
        plan=plan,
        counts=counts,
        outcomes=_added([flow.outcomes for flow in flows]),
        planned=sum(flow.planned for flow in flows),
        warm_up=sum(flow.warm_up for flow in flows),
        last_seen=_added([flow.last_seen for flow in flows]),
        drop_reasons=_added([flow.drop_reasons for flow in flows]),
        missing_send_records=sum(flow.missing_send_records for flow in flows),
        loss=loss(
            counts["lost"],
            counts["sent"],
            stats.repeated_share_worth(
                [flow.counts["lost"] for flow in flows], [flow.counts["sent"] for flow in flows]
            ),
            counts["unknown"],
            stats.repeated_share_worth(
                [flow.counts["lost"] + flow.counts["unknown"] for flow in flows],
                [flow.counts["sent"] for flow in flows],
            ),
        ),
        summaries=summaries,
        series=series,
        with_loss=_pooled_with_loss(flows, "rtt" if plan.relayed else "latency"),
        goodput=float(np.mean(rates)) if rates else None,
        effective_bandwidth=_effective_bandwidth(summaries["latency"].mean, plan.payload),
        reorder_extent=max(flow.reorder_extent for flow in flows),
        hops=pool_hops([flow.hops for flow in flows]),
        second_copies=sum(flow.second_copies for flow in flows),
        unseen=flows[0].unseen,
        lost_copies=_added([flow.lost_copies for flow in flows]),
        late_sends=sum(flow.late_sends for flow in flows),
        settling=sum(flow.settling for flow in flows),
        service=pool_services([flow.service for flow in flows if flow.service is not None]),
        pairs=pool_pairs([flow.pairs for flow in flows], summaries),
        repeats=len(flows),
        sampled=pool_sampled(flows),
    )


def _added(maps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in maps:
        for key, count in counts.items():
            total[key] = total.get(key, 0) + count
    return total
