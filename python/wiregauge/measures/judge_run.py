"""Judges one run: its flows from their messages, then whether it is fit to be believed, then its limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wiregauge.measures.by_captures import by_captures
from wiregauge.measures.definitions import COUNTS
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.flow_measures.base import RunReading
from wiregauge.measures.judge_flows import judge_flows, read_flow
from wiregauge.measures.large import are_many
from wiregauge.measures.limits import OfRun, judge_limits
from wiregauge.measures.metrics.clocks import RunClocks, corrected, run_clocks, watched_clocks
from wiregauge.measures.metrics.clusters import clusters_of
from wiregauge.measures.metrics.contracts import bag_violations
from wiregauge.measures.metrics.credits import credits_of
from wiregauge.measures.metrics.flow_plan import FlowPlan, LimitPlan, RunPlan
from wiregauge.measures.metrics.judgement import FlowResult, Grade, RunResult
from wiregauge.measures.metrics.line_time import line_time, on_the_same_links
from wiregauge.measures.metrics.live_network import NetworkResult, no_network
from wiregauge.measures.metrics.ptp import ptp_domains_of
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.metrics.releases import network_of
from wiregauge.measures.metrics.reported import number, parts
from wiregauge.measures.metrics.shards import flow_parts, shards
from wiregauge.measures.sketched import read_wholes
from wiregauge.measures.validity.calibration import citations
from wiregauge.measures.validity.checks import judge_validity
from wiregauge.measures.validity.evidence import Evidence
from wiregauge.measures.validity.timestamping import timestamp_error_ns, wire_errors_ns
from wiregauge.measures.validity.traffic import offered_loads
from wiregauge.measures.without_clocks import without_clocks
from wiregauge.plan import NETWORK

__all__ = ["judge_run"]

Tracked = Mapping[str, Any]


def judge_run(directory: Recorded, plan: RunPlan, in_full: Collection[int]) -> RunResult:
    """The result of a run; of many flows latency between every two points is judged of those `in_full` only.

    Raises RunDirectoryError for a file that cannot be read.
    """
    entry = directory.runs[plan.index]
    tracked = (directory.tracked or {}).get(plan.index)
    if directory.traits.tapped or (tracked or {}).get("gaps"):
        # What has no record of being sent may have been sent all the same: when it was due proves no silence.
        plan = replace(plan, flows=tuple(replace(flow, is_periodic=False) for flow in plan.flows))
    agents = _reports(entry)
    clocks = run_clocks(directory, plan)
    errors = directory.release_errors(plan.index)
    network = network_of(entry, errors, directory.plan.network.names, directory.plan.limits)
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
    flows = _judge_flows(directory, plan, reading, clocks, _by_flow(tracked))
    evidence = _evidence(directory, plan, reading, clocks, tracked, flows, network)
    checks = judge_validity(evidence)
    of_run = OfRun(
        unplanned=evidence.unplanned,
        clusters=clusters_of(entry),
        ptp_domains=ptp_domains_of(entry),
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
        started=_text(entry, "started"),
        finished=_text(entry, "finished"),
        loads=offered_loads(plan, agents, entry),
        clocks=clocks.measured,
        clusters=tuple(of_run.clusters),
        ptp_domains=tuple(of_run.ptp_domains),
        credits=credits_of(entry),
        network=network,
    )


def _judge_flows(
    directory: Recorded,
    plan: RunPlan,
    reading: RunReading,
    clocks: RunClocks,
    tracked: Mapping[tuple[int, object], Tracked],
) -> list[FlowResult] | None:
    """The flows of a run in the order of its plan; None of a run without a message table."""
    # Counting passes over all messages: before any of them are held.
    one_in = directory.sampled(plan.index)
    wholes = read_wholes(directory, plan, one_in, clocks)
    frames = bag_violations(directory.records(plan.index), plan.flows, reading.names)
    found: dict[tuple[int, int], FlowResult] = {}
    has_table = False
    for some, table, through in shards(directory, plan, one_in):
        has_table = True
        for rows_of in flow_parts(some, corrected(table, plan.flows, reading.names, clocks)):
            readings = [
                read_flow(
                    reading,
                    flow,
                    rows,
                    _counted(tracked, flow) or {},
                    clocks.between(flow),
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
    return on_the_same_links([found[flow.id, flow.receiver] for flow in plan.flows]) if has_table else None


def _evidence(
    directory: Recorded,
    plan: RunPlan,
    reading: RunReading,
    clocks: RunClocks,
    tracked: Tracked | None,
    flows: Sequence[FlowResult] | None,
    network: NetworkResult | None,
) -> Evidence:
    entry, agents = reading.entry, _reports(reading.entry)
    unplanned = tracked.get("unplanned", {}) if tracked else {}
    ends = {end for flow in plan.flows for end in (flow.source, flow.destination)}
    related = [clocks.between(flow).uncertainty_ns for flow in plan.flows if clocks.related(flow)]
    gate = entry.get("clock_gate")
    counted = _by_flow(tracked)
    return Evidence(
        plan=plan,
        state=str(entry.get("state", "partial")),
        reason=_text(entry, "reason"),
        agents=agents,
        clock_uncertainty_ns=max(related, default=None),
        # Where nobody timestamped there is no clock to know.
        clocks_missing=sorted(ends - clocks.offsets.keys() - set(reading.unseen)),
        flows=flows or (),
        tracked=flows is not None and tracked is not None,
        unplanned={str(k): number(unplanned, str(k)) for k in unplanned}
        if isinstance(unplanned, dict)
        else {},
        tracking=tracked or {},
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
        clock_gate=gate if isinstance(gate, dict) else None,
        captures=_captures(entry, agents),
        tapped=directory.traits.tapped,
        entry=entry,
        switches=directory.traits.switches,
        network=network,
        limits=directory.plan.limits,
        calibrations=citations(directory.manifest),
    )


def _text(entry: Mapping[str, object], key: str) -> str | None:
    return str(entry[key]) if entry.get(key) else None


def _by_flow(tracked: Tracked | None) -> dict[tuple[int, object], Tracked]:
    """What tracking counted, by flow and receiver."""
    return {(number(one, "flow"), one.get("to")): one for one in parts(tracked, "flows")} if tracked else {}


def _by_known_clocks(flow: FlowResult, clocks: RunClocks, unseen: Collection[str]) -> FlowResult:
    """The flow without what lies between clocks that nobody compared; where an end has no clock, nothing does."""
    apart = frozenset(hop.switch for hop in flow[HOPS]) & clocks.apart
    compared = clocks.related(flow.plan) or bool({flow.plan.source, flow.plan.destination} & set(unseen))
    if compared and not apart:
        return flow
    return without_clocks(flow, clocks.taken_out(flow.plan), apart, compared=compared)


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
