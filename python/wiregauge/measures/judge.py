"""Judges a run directory: measures, validity, limits, in this order for every run, then the repeats of each point."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from wiregauge.files import cure_for, whole
from wiregauge.measures.definitions import COUNTS, DEFINITIONS
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.extremes import keep
from wiregauge.measures.gate_waits import gate_waits, has_gates
from wiregauge.measures.large import are_many, large_run
from wiregauge.measures.limits import OfRun, judge_limits
from wiregauge.measures.metrics.clocks import RunClocks, corrected, run_clocks, watched_clocks
from wiregauge.measures.metrics.clusters import clusters_of
from wiregauge.measures.metrics.contracts import bag_violations, with_contracts
from wiregauge.measures.metrics.credits import credit_met, credits_of
from wiregauge.measures.metrics.flow_plan import FlowPlan, LimitPlan, RunPlan
from wiregauge.measures.metrics.line_time import line_time, on_the_same_links
from wiregauge.measures.metrics.live_network import no_network
from wiregauge.measures.metrics.ptp import ptp_domains_of
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.releases import network_of
from wiregauge.measures.metrics.reported import number, parts
from wiregauge.measures.metrics.results import (
    Check,
    FlowResult,
    Grade,
    Judgement,
    RunResult,
)
from wiregauge.measures.metrics.shards import flow_parts, shards
from wiregauge.measures.metrics.together import together
from wiregauge.measures.metrics.uncompared import without_clocks
from wiregauge.measures.one_flow import Known, judge_flow
from wiregauge.measures.passive import by_captures
from wiregauge.measures.progress import reached
from wiregauge.measures.repeats import points_of
from wiregauge.measures.show import details, details_file, show_chunks
from wiregauge.measures.sketched import (
    read_wholes,
)
from wiregauge.measures.validity.calibration import citations
from wiregauge.measures.validity.checks import judge_validity
from wiregauge.measures.validity.evidence import Evidence, few
from wiregauge.measures.validity.timestamping import timestamp_error_ns, wire_errors_ns
from wiregauge.measures.validity.traffic import offered_loads
from wiregauge.plan import NETWORK
from wiregauge.records import uncollected, write_sealed


def _warned(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)


def judge(
    run_dir: Path,
    *,
    unkept: Callable[[str], object] = _warned,
    in_full: Collection[int] = (),
    held: bool = False,
) -> Judgement:
    """Judges everything in `run_dir` and writes `measures.json` there, and the extremes that pictures draw.

    Of a run with more flows than `large.MANY`, latency between every two points is judged of the flows `in_full` only,
    by number, or where a limit is on it.

    A directory that cannot be written (an archive, a full disk) is still judged, and what was there stays: `unkept` is
    told so in a sentence for the user; unless somebody listens it is a warning. `held`: the caller holds the directory.
    Raises RunDirectoryError, whose text is
    such a sentence, when the directory cannot be read.
    """
    directory = open_recorded(run_dir)
    with uncollected() if any(are_many(run.flows) for run in directory.plan.runs) else nullcontext():
        return _judge(keep(directory, unkept, held=held), unkept, in_full)


def _judge(directory: Recorded, unkept: Callable[[str], object], in_full: Collection[int]) -> Judgement:
    run_dir = directory.path
    made = [run for run in directory.plan.runs if run.index in directory.runs]
    judged = []
    for place, run in enumerate(made):
        reached("judging", place / len(made))
        judged.append(_judge_run(directory, run, in_full))
    reached("judging", 1.0)
    runs = tuple(judged)
    state, reason = _state(directory.manifest)
    judgement = Judgement(
        directory=run_dir,
        manifest=directory.manifest,
        plan=directory.plan,
        state=state,
        reason=reason,
        checks=_campaign_checks(directory, state, reason, len(runs)),
        runs=runs,
        points=points_of(runs),
    )
    try:
        _write_details(run_dir, judgement)
        _write(run_dir / "measures.json", directory, judgement)
    except OSError as error:
        unkept(
            f"{run_dir / 'measures.json'}: the judgement is not kept ({error.strerror or error}); {cure_for(error)}, "
            f"then `wiregauge show {run_dir}` keeps it"
        )
    return judgement


def _write(path: Path, directory: Recorded, judgement: Judgement) -> None:
    """Replaces `path` whole or not at all; raises OSError where the disk refuses.

    It carries its own digest and that of the manifest it was made from, which holds those of all other files.
    """
    digest = directory.manifest.get("digest")
    sources = {"manifest.json": digest} if digest is not None else {}
    with whole(path) as beside:
        write_sealed(beside, chain(show_chunks(judgement, {"digest": "", "sources": sources}, {}), ["\n"]))


def _write_details(run_dir: Path, judgement: Judgement) -> None:
    """Of runs with very many flows all figures of each, in files of their own; raises OSError as `_write`.

    Compressed they are a fifth as long, at the least effort: the program is to be at its figures, not at this.
    """
    for run in filter(large_run, judgement.runs):
        path = run_dir / details_file(run.plan.index)
        path.parent.mkdir(exist_ok=True)
        with whole(path) as beside, gzip.open(beside, "wb", compresslevel=1) as file:
            file.writelines(details(judgement, run))


def _state(manifest: Mapping[str, object]) -> tuple[str, str | None]:
    state, reason = str(manifest.get("state")), manifest.get("reason")
    if state == "running":
        # Only the directory's lock tells a killed testmaster from a living one, and that is the opener's to see.
        return state, "its testmaster has not finished it"
    return state, str(reason) if reason else None


def _campaign_checks(directory: Recorded, state: str, reason: str | None, done: int) -> tuple[Check, ...]:
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


def _files_check(directory: Recorded) -> Check:
    """What was read is what was written, or nobody can tell: a directory may have no hashes.

    A file that is not what was written ends the command, so there is no worse grade.
    """
    verified, adopted = directory.inventory.verified, directory.inventory.adopted
    reason = "" if verified else "unverified: the directory keeps no hashes"
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


def _judge_run(directory: Recorded, plan: RunPlan, in_full: Collection[int]) -> RunResult:
    entry = directory.runs[plan.index]
    shaped = credits_of(entry)
    tracked = (directory.tracked or {}).get(plan.index)
    if directory.traits.tapped or (tracked or {}).get("gaps"):
        # What has no record of being sent may have been sent all the same: when it was due proves no silence.
        plan = replace(plan, flows=tuple(replace(flow, is_periodic=False) for flow in plan.flows))
    # Counting passes over all messages: before any of them are held.
    one_in = directory.sampled(plan.index)
    clocks = run_clocks(directory, plan)
    wholes = read_wholes(directory, plan, one_in, clocks)
    agents = _reports(entry)
    offsets = clocks.offsets
    contradictions: list[str] = []
    unseen = directory.unseen(plan)
    names = directory.plan.network.names
    counted = (
        {(number(flow, "flow"), flow.get("to")): flow for flow in parts(tracked, "flows")} if tracked else {}
    )
    contracts = bag_violations(directory.records(plan.index), plan.flows, names)
    elimination, policing = _eliminations(entry), _policings(entry)
    known = Known(
        names,
        timestamp_error_ns(entry, agents),
        wire_errors_ns(agents),
        unseen,
        len(plan.flows),
        _unpaired(tracked),
        repeated=directory.plan.repeats > 1,
        paired=in_full if are_many(plan.flows) and not _limits_pairs(directory.plan.limits) else None,
    )
    gated = has_gates(directory.plan)
    errors = directory.release_errors(plan.index)
    network = network_of(entry, errors, names, directory.plan.limits)
    played = errors.whole(network) if directory.traits.switches == "model" else None
    found: dict[tuple[int, int], FlowResult] = {}
    has_table = False
    for some, table, through in shards(directory, plan, one_in):
        has_table = True
        for part in flow_parts(some, corrected(table, plan.flows, names, clocks)):
            judged = together(
                [
                    judge_flow(
                        flow,
                        rows,
                        _counted(counted, flow) or {},
                        clocks.between(flow),
                        known,
                        through.get(flow.id),
                        wholes.get((flow.id, flow.receiver)),
                        contracts.get(flow.id),
                    )
                    for flow, rows in part
                ]
            )
            for result in judged:
                flow = result.plan
                timed = _by_known_clocks(with_contracts(result, contracts), clocks, unseen)
                found[flow.id, flow.receiver] = _with_met(
                    by_captures(timed, entry),
                    line_time=line_time(timed, clocks.wrong),
                    elimination=elimination.get(flow.id),
                    policing=policing.get(flow.id),
                    credit=credit_met(directory.plan.network, flow, shaped) if shaped else None,
                    gates=gate_waits(directory.plan, flow, through.get(flow.id), played)
                    if gated and flow.id not in one_in
                    else None,
                )
    flows = on_the_same_links([found[flow.id, flow.receiver] for flow in plan.flows]) if has_table else []
    if tracked is not None:
        for result in flows:
            contradictions += _contradictions(result, _counted(counted, result.plan), clocks)
    unplanned = tracked.get("unplanned", {}) if tracked else {}
    strays = {str(k): number(unplanned, str(k)) for k in unplanned} if isinstance(unplanned, dict) else {}
    clusters, ptp_domains = clusters_of(entry), ptp_domains_of(entry)
    ends = {end for flow in plan.flows for end in (flow.source, flow.destination)}
    checks = judge_validity(
        Evidence(
            plan=plan,
            state=str(entry.get("state", "partial")),
            reason=str(entry["reason"]) if entry.get("reason") else None,
            agents=agents,
            clock_uncertainty_ns=max(
                (clocks.between(flow).uncertainty_ns for flow in plan.flows if clocks.related(flow)),
                default=None,
            ),
            # Where nobody timestamped there is no clock to know.
            clocks_missing=sorted(ends - offsets.keys() - unseen),
            flows=flows,
            tracked=has_table and tracked is not None,
            unplanned=strays,
            tracking=tracked or {},
            records_written=_records_written(entry, agents),
            contradictions=contradictions,
            node_names=names,
            virtual_time=directory.traits.virtual_time,
            wrong_clocks=clocks.wrong,
            clocks=clocks.measured,
            clocks_uncompared=clocks.uncompared,
            synchronise=directory.plan.synchronise,
            watched=watched_clocks(directory, plan),
            clock_gate=gate if isinstance(gate := entry.get("clock_gate"), dict) else None,
            captures=_captures(entry, agents),
            tapped=directory.traits.tapped,
            entry=entry,
            switches=directory.traits.switches,
            network=network,
            limits=directory.plan.limits,
            calibrations=citations(directory.manifest),
        )
    )
    return RunResult(
        plan=plan,
        state=str(entry.get("state", "partial")),
        reason=str(entry["reason"]) if entry.get("reason") else None,
        checks=checks,
        flows=tuple(flows),
        limits=judge_limits(
            directory.plan.limits,
            flows,
            OfRun(
                unplanned=strays,
                clusters=clusters,
                ptp_domains=ptp_domains,
                network=network,
                no_network=no_network(directory.traits.switches, network),
                virtual_time=directory.traits.virtual_time,
            ),
            fit=max((check.grade for check in checks), default=Grade.OK) != Grade.INVALID,
        ),
        unplanned=strays,
        agents=agents,
        started=str(entry["started"]) if entry.get("started") else None,
        finished=str(entry["finished"]) if entry.get("finished") else None,
        loads=offered_loads(plan, agents, entry),
        clocks=clocks.measured,
        clusters=clusters,
        ptp_domains=ptp_domains,
        credits=shaped,
        network=network,
    )


def _by_known_clocks(flow: FlowResult, clocks: RunClocks, unseen: Collection[str]) -> FlowResult:
    """The flow without what lies between clocks that nobody compared; where an end has no clock, nothing does."""
    apart = frozenset(hop.switch for hop in flow.hops) & clocks.apart
    compared = clocks.related(flow.plan) or bool({flow.plan.source, flow.plan.destination} & set(unseen))
    if compared and not apart:
        return flow
    return without_clocks(flow, clocks.taken_out(flow.plan), apart, compared=compared)


def _with_met(flow: FlowResult, **met: object) -> FlowResult:
    """The flow with what else it met on its way, by field; nothing is as it is."""
    known: dict[str, Any] = {name: value for name, value in met.items() if value}
    return replace(flow, **known) if known else flow


def _limits_pairs(limits: Sequence[LimitPlan]) -> bool:
    return any(limit.measure.startswith("pair_latency") for limit in limits)


def _unpaired(tracked: Mapping[str, object] | None) -> dict[int, int]:
    """Departures of which no switch remembers that they came, by flow; of a multicast flow those of all its frames."""
    found: dict[int, int] = {}
    for one in parts(tracked, "flows") if tracked else ():
        flow = number(one, "flow")
        found[flow] = found.get(flow, 0) + number(one, "unpaired_departures")
    return found


def _counted(
    counted: Mapping[tuple[int, object], Mapping[str, object]], flow: FlowPlan
) -> Mapping[str, object] | None:
    """What tracking counted of a flow at its receiver."""
    return counted.get((flow.id, flow.receiver), counted.get((flow.id, None)))


def _reports(entry: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Of agents by their end systems, and of the one that is the network."""
    agents = entry.get("agents")
    found = {**agents} if isinstance(agents, dict) else {}
    found[NETWORK] = entry.get("network")
    return {str(name): report for name, report in found.items() if isinstance(report, dict)}


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
    if isinstance(simulation, dict) and NETWORK not in agents:
        return number(simulation, "records")
    return sum(number(agent, "records_written") for agent in agents.values())


def _eliminations(entry: Mapping[str, object]) -> dict[int, dict[str, int]]:
    """By flow what the elimination of its copies counted, by the statistics of the measure."""
    simulation = entry.get("simulation")
    reports = simulation.get("frer") if isinstance(simulation, dict) else None
    found = {}
    for flow, report in reports.items() if isinstance(reports, dict) else ():
        if isinstance(report, dict):
            counted = {**report.get("recovery", {}), "latent_errors": report.get("latent_errors")}
            found[int(flow)] = {
                name: count
                for name in DEFINITIONS["elimination"].statistics
                if isinstance(count := counted.get(name), int)
            }
    return found


def _policings(entry: Mapping[str, object]) -> dict[int, dict[str, int]]:
    """By flow what its stream filters counted together."""
    simulation = entry.get("simulation")
    reports = simulation.get("stream_filters") if isinstance(simulation, dict) else None
    found: dict[int, dict[str, int]] = {}
    for report in reports if isinstance(reports, list) else ():
        own = found.setdefault(report.get("flow"), dict.fromkeys(DEFINITIONS["policing"].statistics, 0))
        for name in own:
            own[name] += number(report, name)
    return found


def _contradictions(flow: FlowResult, tracked: Mapping[str, object] | None, clocks: RunClocks) -> list[str]:
    """Where the message table and tracking.json disagree, or do not add up in themselves."""
    if tracked is None:
        return [f"flow {flow.plan.name} is not in tracking.json"]
    found = [
        f"flow {flow.plan.name}: {flow.counts[key]} {key} in the table, {number(tracked, key)} counted"
        for key in COUNTS
        # Tracking takes timestamps as they are, so where clocks were corrected it may find others late.
        if number(tracked, key) != flow.counts[key] and not (key == "late" and clocks.moved(flow.plan))
    ]
    if sum(flow.outcomes.values()) != flow.counts["sent"]:
        found.append(
            f"flow {flow.plan.name}: outcomes add to {sum(flow.outcomes.values())} of {flow.counts['sent']} sent"
        )
    if sum(number(tracked, key) for key in ("delivered", "lost", "unknown")) != number(tracked, "sent"):
        found.append(f"flow {flow.plan.name}: delivered, lost and unknown do not add to sent")
    return found
