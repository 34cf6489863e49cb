"""Judges one run: its flows from their messages, then whether it is fit to be believed, then its limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from wiregauge.measures.by_captures import by_captures
from wiregauge.measures.definitions import COUNTS
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.flow_measures.base import FlowReading, RunReading
from wiregauge.measures.judge_flows import judge_flows, read_flow
from wiregauge.measures.large import are_many
from wiregauge.measures.late_release import LateRelease
from wiregauge.measures.limits import judge_limits
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.clocks import RunClocks, corrected, run_clocks, watched_clocks
from wiregauge.measures.metrics.contracts import bag_violations
from wiregauge.measures.metrics.flow_plan import FlowPlan, LimitPlan, RunPlan
from wiregauge.measures.metrics.judgement import FlowResult, Grade, RunResult
from wiregauge.measures.metrics.line_time import line_time, on_the_same_links
from wiregauge.measures.metrics.live_network import NetworkResult, no_network
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.metrics.releases import network_of
from wiregauge.measures.metrics.shards import flow_parts, shards
from wiregauge.measures.run_measures import OfRun
from wiregauge.measures.sketched.full_flow import read_wholes
from wiregauge.measures.validity.calibration import citations
from wiregauge.measures.validity.checks import judge_validity
from wiregauge.measures.validity.evidence import Evidence
from wiregauge.measures.validity.timestamping import timestamp_error_ns, wire_errors_ns
from wiregauge.measures.validity.traffic import offered_loads
from wiregauge.measures.without_clocks import without_clocks
from wiregauge.plan import NETWORK
from wiregauge.records.counters import known, sum_known
from wiregauge.records.reported import AgentReport, RunEntry, TaskReport, TrackedFlow, TrackedRun

__all__ = ["judge_run"]


def judge_run(directory: Recorded, plan: RunPlan, in_full: Collection[int]) -> RunResult:
    """The result of a run; of many flows latency between every two points is judged of those `in_full` only.

    Raises RunDirectoryError for a file that cannot be read.
    """
    entry = directory.runs[plan.index]
    tracked = (directory.tracked or {}).get(plan.index)
    if directory.traits.tapped or (tracked is not None and tracked.gaps):
        # A message without a send record may have been sent: its due time proves no silence.
        plan = replace(plan, flows=tuple(replace(flow, is_periodic=False) for flow in plan.flows))
    agents = entry.reports()
    clocks = run_clocks(directory, plan)
    errors = directory.release_errors(plan.index)
    network = network_of(entry.network, errors, directory.plan.network.names, directory.plan.limits)
    reading = RunReading(
        directory.plan,
        entry,
        timestamp_error_ns(entry, agents),
        wire_errors_ns(agents),
        directory.unseen(plan),
        len(plan.flows),
        _unpaired(tracked),
        errors.whole(network) if directory.traits.switches == "model" else None,
        paired=in_full if are_many(plan.flows) and not _limits_pairs(directory.plan.limits) else None,
    )
    late = None
    if reading.played is not None and directory.plan.limits:
        late = LateRelease(directory.plan.limits, reading.played, network, reading.names)
    flows = _judge_flows(directory, plan, reading, clocks, _by_flow(tracked), late)
    evidence = _evidence(directory, plan, reading, clocks, tracked, flows, network)
    checks = judge_validity(evidence)
    of_run = OfRun(
        unplanned=evidence.unplanned,
        clusters=entry.model.clusters,
        ptp_domains=entry.model.ptp_domains,
        network=network,
        no_network=no_network(directory.traits.switches, network),
        virtual_time=directory.traits.virtual_time,
    )
    fit = max((check.grade for check in checks), default=Grade.OK) != Grade.INVALID
    return RunResult(
        plan=plan,
        state=evidence.state,
        reason=evidence.reason,
        checks=checks,
        flows=tuple(flows or ()),
        limits=judge_limits(directory.plan.limits, flows or (), of_run, fit=fit),
        unplanned=evidence.unplanned,
        agents=agents,
        started=entry.started,
        finished=entry.finished,
        loads=offered_loads(plan, agents, entry),
        clocks=clocks.measured,
        clusters=tuple(of_run.clusters),
        ptp_domains=tuple(of_run.ptp_domains),
        credits=entry.model.credits,
        network=network,
    )


def _judge_flows(
    directory: Recorded,
    plan: RunPlan,
    reading: RunReading,
    clocks: RunClocks,
    tracked: Mapping[tuple[int, int | None], TrackedFlow],
    late: LateRelease | None,
) -> list[FlowResult] | None:
    """The flows of a run in the order of its plan; None of a run without a message table."""
    # Counting passes over all messages come first, before any are held.
    one_in = directory.sampled(plan.index)
    wholes = read_wholes(directory, plan, one_in, clocks)
    frames = bag_violations(directory.records(plan.index), plan.flows, reading.names)
    found: dict[tuple[int, int], FlowResult] = {}
    has_table = False

    def read(flow: FlowPlan, rows: tuple[Part, Part], *others: Any) -> FlowReading:
        return read_flow(reading, flow, rows, _counted(tracked, flow), clocks.between(flow), *others)

    for some, uncorrected, through in shards(directory, plan, one_in):
        has_table = True
        table = corrected(uncorrected, plan.flows, reading.names, clocks)
        for rows_of in flow_parts(some, table):
            readings = [
                read(
                    flow,
                    rows,
                    through.get(flow.id),
                    wholes.get((flow.id, flow.receiver)),
                    frames.get(flow.id),
                )
                for flow, rows in rows_of
            ]
            for result in judge_flows(readings):
                timed = _by_known_clocks(result, clocks, reading.unseen)
                found[result.plan.id, result.plan.receiver] = replace(
                    by_captures(timed, reading.entry), line_time=line_time(timed, clocks.wrong)
                )
        if late is not None:
            results = [found[flow.id, flow.receiver] for flow in some]
            for key, in_time in late.figures(results, table, read).items():
                found[key] = replace(found[key], in_time=in_time)
    return on_the_same_links([found[flow.id, flow.receiver] for flow in plan.flows]) if has_table else None


def _evidence(
    directory: Recorded,
    plan: RunPlan,
    reading: RunReading,
    clocks: RunClocks,
    tracked: TrackedRun | None,
    flows: Sequence[FlowResult] | None,
    network: NetworkResult | None,
) -> Evidence:
    entry, agents = reading.entry, reading.entry.reports()
    ends = {end for flow in plan.flows for end in (flow.source, flow.destination)}
    related = [clocks.between(flow).uncertainty_ns for flow in plan.flows if clocks.related(flow)]
    counted = _by_flow(tracked)
    return Evidence(
        plan=plan,
        state=entry.state,
        reason=entry.reason or None,
        agents=agents,
        clock_uncertainty_ns=max(related, default=None),
        # Without a timestamp at an end, its clock need not be known.
        clocks_missing=sorted(ends - clocks.offsets.keys() - set(reading.unseen)),
        flows=flows or (),
        tracked=flows is not None and tracked is not None,
        unplanned=tracked.unplanned if tracked is not None else {},
        tracking=tracked,
        records_written=_records_written(entry, agents),
        contradictions=[
            text
            for flow in flows or ()
            if tracked is not None
            for text in _contradictions(flow, _counted(counted, flow.plan), clocks)
        ],
        node_names=reading.names,
        virtual_time=directory.traits.virtual_time,
        wrong_clocks=clocks.wrong,
        clocks=clocks.measured,
        clocks_uncompared=clocks.uncompared,
        synchronise=directory.plan.synchronise,
        watched=watched_clocks(directory, plan),
        clock_gate=entry.clock_gate,
        captures=_captures(entry, agents),
        tapped=directory.traits.tapped,
        entry=entry,
        switches=directory.traits.switches,
        network=network,
        limits=directory.plan.limits,
        calibrations=citations(directory.manifest),
    )


def _by_flow(tracked: TrackedRun | None) -> dict[tuple[int, int | None], TrackedFlow]:
    """Tracking counters by flow and receiver."""
    return {(one.flow, one.to): one for one in (tracked.flows if tracked is not None else ())}


def _by_known_clocks(flow: FlowResult, clocks: RunClocks, unseen: Collection[str]) -> FlowResult:
    """The flow without values between clocks that were not compared; an end without a tap has no clock."""
    apart = frozenset(hop.switch for hop in flow[HOPS]) & clocks.apart
    compared = clocks.related(flow.plan) or bool({flow.plan.source, flow.plan.destination} & set(unseen))
    if compared and not apart:
        return flow
    return without_clocks(flow, clocks.taken_out(flow.plan), apart, compared=compared)


def _limits_pairs(limits: Sequence[LimitPlan]) -> bool:
    return any(limit.measure.startswith("pair_latency") for limit in limits)


def _unpaired(tracked: TrackedRun | None) -> dict[int, int]:
    """Departures of which no switch remembers that they came, by flow; of a multicast flow those of all its frames."""
    found: dict[int, int] = {}
    for one in tracked.flows if tracked is not None else ():
        found[one.flow] = found.get(one.flow, 0) + known(one.unpaired_departures)
    return found


def _counted(counted: Mapping[tuple[int, int | None], TrackedFlow], flow: FlowPlan) -> TrackedFlow | None:
    """The tracking counters of a flow at its receiver; None without any."""
    return counted.get((flow.id, flow.receiver), counted.get((flow.id, None)))


def _captures(entry: RunEntry, agents: Mapping[str, AgentReport]) -> dict[str, TaskReport]:
    """Capture reports by node: those of agents, and those of switches."""
    return entry.captures | {
        name: task for name, agent in agents.items() for task in agent.tasks_of("capture")
    }


def _records_written(entry: RunEntry, agents: Mapping[str, AgentReport]) -> int:
    """The number of records that the bench reports: a simulation as a whole, agents one by one."""
    if entry.simulation is not None and NETWORK not in agents:
        return known(entry.simulation.records)
    return sum_known(agent.records_written for agent in agents.values())


def _contradictions(flow: FlowResult, tracked: TrackedFlow | None, clocks: RunClocks) -> list[str]:
    """Sentences on disagreements between the message table and tracking.json, or within them."""
    name = f"flow {flow.plan.name}"
    if tracked is None:
        return [f"{name} is not in tracking.json"]
    counted: dict[str, int] = {key: known(getattr(tracked, key)) for key in COUNTS}
    found = [
        f"{name}: {flow.counts[key]} {key} in the table, {counted[key]} counted"
        for key in COUNTS
        # Tracking uses uncorrected timestamps, so with corrected clocks other messages may be late.
        if counted[key] != flow.counts[key] and not (key == "late" and clocks.moved(flow.plan))
    ]
    if sum(flow.outcomes.values()) != flow.counts["sent"]:
        found.append(f"{name}: outcomes add to {sum(flow.outcomes.values())} of {flow.counts['sent']} sent")
    if counted["delivered"] + counted["lost"] + counted["unknown"] != counted["sent"]:
        found.append(f"{name}: delivered, lost and unknown do not add to sent")
    return found
