"""Checks whether a run can be believed, before any limit is judged, from the reports of the instrument itself.

Each check states its limit in words, the observation, and one sentence a reader can act on. A *note* (host noise, a
refused real-time priority) is shown and recorded but never spoils a run by itself: if it hurt, a measured check (late
sends, missing timestamps, lost records) shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isinf

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.flow_plan import LATE_WORDS
from wiregauge.measures.metrics.judgement import Check, FlowResult, Grade
from wiregauge.measures.validity.calibrated import calibrated
from wiregauge.measures.validity.clock_methods import agreeing
from wiregauge.measures.validity.evidence import (
    LOST_INSIDE,
    Evidence,
    check,
    few,
    graded,
    lost_inside,
    own_fault,
    percent,
    share_of,
    typical_latency_ns,
    unreported,
)
from wiregauge.measures.validity.link_rate import link_rates
from wiregauge.measures.validity.matched import matched
from wiregauge.measures.validity.network_error import network_error
from wiregauge.measures.validity.record_integrity import captured, kept
from wiregauge.measures.validity.steadiness import steadiness
from wiregauge.measures.validity.timestamping import timestamps
from wiregauge.measures.validity.traffic import network_load
from wiregauge.records.counters import known, sum_known

LATE_DEGRADED, LATE_INVALID = 0.01, 0.10
UNSENT_INVALID = 0.01
NEGATIVE_INVALID = 0.01
DURATION_DEGRADED, DURATION_INVALID = 0.001, 0.10
_TSN = ("host-tsn", "tai-offset")
"""Grants that are settings of the interface, not of the host's scheduler."""
CLOCK_DEGRADED, CLOCK_INVALID = 1 / 3, 1.0


def judge_validity(run: Evidence) -> tuple[Check, ...]:
    """Every check of the run, in the order of a message's life. Nothing is skipped because it passed."""
    return tuple(
        found
        for group in (
            _whole,
            _held,
            _sending,
            _instrument,
            kept,
            captured,
            matched,
            timestamps,
            _clocks,
            steadiness,
            network_load,
            link_rates,
            network_error,
            calibrated,
            _host,
        )
        for found in group(run)
    )


def _whole(run: Evidence) -> Iterator[Check]:
    yield check(
        "run-complete",
        "Run ended as planned",
        "state complete",
        run.state,
        Grade.OK if run.state == "complete" else Grade.INVALID,
        f"the run ended early: {run.reason or 'no reason was recorded'}",
    )
    # A run made from captures has no agents: whatever was tapped, reports.
    wanted = (
        []
        if run.tapped
        else sorted({end for flow in run.plan.flows for end in (flow.source, flow.destination)})
    )
    missing = [name for name in wanted if name not in run.agents]
    yield check(
        "agents-reported",
        "Every agent reported",
        "all end systems with flows",
        f"{len(wanted) - len(missing)} of {len(wanted)}",
        Grade.INVALID if missing else Grade.OK,
        f"no report from the agent of {', '.join(missing)}",
        nothing="" if wanted else "no end system has an agent",
    )
    incomplete = [(name, agent) for name, agent in run.agents.items() if agent.complete is False]
    why = "; ".join(f"{name}: {agent.incomplete_reason or 'no reason given'}" for name, agent in incomplete)
    yield check(
        "agents-complete",
        "Every agent finished its tasks",
        "none incomplete",
        f"{len(incomplete)} incomplete",
        Grade.INVALID if incomplete else Grade.OK,
        f"an agent did not finish ({why})",
        nothing="" if run.agents else "no agent reported",
    )
    yield check(
        "tracked",
        "Messages were tracked",
        "a message table for the run",
        "yes" if run.tracked else "no",
        Grade.OK if run.tracked else Grade.INVALID,
        "no message table exists for the run, so nothing is known of its messages",
    )
    yield check(
        "conservation",
        "Every message accounted for",
        "sent = delivered + lost + unknown, outcomes add up, table = tracking.json",
        "holds" if not run.contradictions else f"{len(run.contradictions)} contradictions",
        Grade.INVALID if run.contradictions else Grade.OK,
        "message accounts do not add up: " + "; ".join(run.contradictions[:2]),
        nothing="" if run.tracked and run.flows else "no messages are known",
    )


def _held(run: Evidence) -> Iterator[Check]:
    """Checks that every message was held, or notes the sampling behind the figures of a run too big for that."""
    sparse = [(flow, flow.sampled) for flow in run.flows if flow.sampled is not None]
    named = few(
        f"flow {flow.plan.name} 1 in {one.one_in} ({one.rows} of {count_of(one.of, 'message')})"
        for flow, one in sparse
    )
    yield check(
        "held-whole",
        "Every message held",
        f"noted: more than {sampling.ROWS} messages in the run directory",
        f"sampled: {named}" if sparse else "all",
        Grade.NOTE if sparse else Grade.OK,
        "judged from sketches and a sample of 1 in k stretches: "
        f"{named}; counts, losses, outages, reordering, contracts, extremes and means are of all messages, "
        "percentiles too, with 3 significant digits; series, pictures and how far intervals reach rest on the sample",
        nothing="" if run.flows else "no messages are known",
    )


def _sending(run: Evidence) -> Iterator[Check]:
    # Without a tap at the sender a number that no tap saw may be lost as well as unsent; where none saw any of a
    # flow (cut frames prove no message), neither is known.
    seen = [flow for flow in run.flows if flow.plan.source not in flow.unseen or flow.counts["sent"]]
    blind = sorted(
        {flow.plan.source for flow in run.flows if flow.unseen} - {flow.plan.source for flow in seen}
    )
    short = any(flow.plan.source in flow.unseen and flow.counts["sent"] < flow.planned for flow in seen)
    planned, sent = sum(flow.planned for flow in seen), sum(flow.counts["sent"] for flow in seen)
    unsent = sum(max(flow.planned - flow.counts["sent"], 0) for flow in seen)
    surplus = sum(max(flow.counts["sent"] - flow.planned, 0) for flow in run.flows)
    share = share_of(unsent, planned)
    yield check(
        "sent-as-planned",
        "Messages sent as planned",
        f"all; more than {percent(UNSENT_INVALID)} missing is invalid",
        "; ".join(
            [
                *([f"{sent} of {planned}"] if seen or not blind else []),
                *([f"not known: no tap at {', '.join(blind)}"] if blind else []),
            ]
        ),
        Grade.INVALID if surplus else graded(share, 0.0, UNSENT_INVALID),
        f"{surplus} messages more than planned were seen"
        if surplus
        else f"{unsent} of {planned} messages "
        + (
            "were seen by no tap: never sent, or lost before one"
            if short
            else "have no record of being sent: they never were, or the instrument lost the record"
            if run.gaps
            else "were never sent"
        ),
        nothing="" if planned or blind else "no messages are planned",
    )
    due = [flow for flow in seen if flow.plan.late_after_ns]
    late, due_sent = sum(flow.late_sends for flow in due), sum(flow.counts["sent"] for flow in due)
    late_share = share_of(late, due_sent)
    yield check(
        "late-sends",
        "Sends on schedule",
        f"at most {percent(LATE_DEGRADED)} later than {LATE_WORDS}; above {percent(LATE_INVALID)} invalid",
        f"{late} of {due_sent} late ({percent(late_share)})",
        graded(late_share, LATE_DEGRADED, LATE_INVALID),
        f"{percent(late_share)} of the sends left more than {LATE_WORDS} late: "
        "the load was not the planned one",
        nothing="" if due_sent else "no message was sent that the plan has an instant for",
    )
    refused = sum_known(point.send_errors for point in run.access_points)
    refused_share = share_of(refused, sent)
    yield check(
        "send-refused",
        "Sends the kernel refused",
        f"0; above {percent(UNSENT_INVALID)} invalid",
        str(refused),
        graded(refused_share, 0.0, UNSENT_INVALID),
        f"the kernel refused {refused} sends",
        nothing=unreported(point.send_errors for point in run.access_points),
    )
    errors = [(flow, error) for flow in seen if (error := _length_error(flow)) is not None]
    worst, tolerance = 0.0, DURATION_DEGRADED
    for flow, error in errors:
        if abs(error) > worst:
            worst, tolerance = abs(error), max(DURATION_DEGRADED, 1 / max(flow.counts["sent"] - 1, 1))
    yield check(
        "duration",
        "Duration of sending",
        f"within {percent(DURATION_DEGRADED)} of the plan (or one period); "
        f"beyond {percent(DURATION_INVALID)} invalid",
        f"off by {percent(worst)}",
        graded(worst, tolerance, DURATION_INVALID),
        f"sending took {percent(worst)} more or less time than planned",
        nothing=""
        if errors
        else f"no tap at {', '.join(blind)}"
        if blind and not seen
        else "no flow has two messages that the plan has instants for",
    )


def _length_error(flow: FlowResult) -> float | None:
    """Relative error of the time between the first and the last send; None where it is not defined."""
    errors = flow.series.get("send_error")
    if errors is None or len(errors.t) < 2 or not flow.plan.period_ns:
        return None
    sent_over = (errors.t[-1] - errors.t[0]) * 1e9
    planned = sent_over - (errors.value[-1] - errors.value[0])
    return share_of(float(sent_over - planned), float(planned))


def _instrument(run: Evidence) -> Iterator[Check]:
    """Losses inside the instrument. They spoil the run when messages are missing, for those may be its own fault."""
    doubt = own_fault(run)
    dropped = sum_known(agent.records_dropped for agent in run.agents.values())
    yield check(
        "record-drops",
        "Records lost (full ring)",
        LOST_INSIDE,
        str(dropped),
        lost_inside(run, dropped),
        f"the instrument lost {count_of(dropped, 'record')}{doubt}",
        nothing=unreported(agent.records_dropped for agent in run.agents.values()),
    )
    sockets = [point.socket_drops for point in run.access_points]
    inboxes = [point.inbox_drops for point in run.access_points]
    for name, drops, title, what in (
        ("socket-drops", sockets, "Frames lost (full socket buffer)", "dropped by a full socket buffer"),
        ("inbox-drops", inboxes, "Frames lost (full inbox)", "dropped by a full task inbox"),
    ):
        count = sum_known(drops)
        yield check(
            name,
            title,
            LOST_INSIDE,
            str(count),
            lost_inside(run, count),
            f"the instrument lost {count_of(count, 'frame')}, {what}{doubt}",
            nothing=unreported(drops),
        )


def _clocks(run: Evidence) -> Iterator[Check]:
    timed = [
        (flow.plan.name, name, flow.summaries[name])
        for flow in run.flows
        for name in (
            "latency",
            "driver_latency",
            "return_latency",
            "rtt",
            "stack_down",
            "network",
            "stack_up",
            "turnaround",
        )
        if name in flow.summaries and flow.summaries[name].n
    ]
    wrong = [one for one in timed if one[2].negative]
    worst = max((summary.negative / summary.n for _, _, summary in wrong), default=0.0)
    named = "; ".join(
        f"flow {number} {name.replace('_', ' ')}: {summary.negative} of {summary.n}, least {summary.minimum:.0f} ns"
        for number, name, summary in wrong[:3]
    )
    yield check(
        "negative-latency",
        "No negative times",
        f"0 negative; above {percent(NEGATIVE_INVALID)} invalid",
        named or "0 negative",
        graded(worst, 0.0, NEGATIVE_INVALID),
        f"negative times were measured ({named})",
        nothing="" if timed else "no times were measured",
    )
    yield _steps(run)
    typical = typical_latency_ns(run.flows)
    bound = run.clock_uncertainty_ns
    share = share_of(bound or 0.0, typical) if typical is not None else 0.0
    observed = f"± {bound:.0f} ns" if bound is not None else "not known"
    if typical is not None and bound is not None:
        observed += (
            f", where the median latency is {typical:.3g} ns"
            if isinf(share)
            else f", {percent(share)} of the median latency"
            if share < 2
            else f", {share:.0f} times the median latency"
        )
    elif bound:
        observed += "; no latency was measured to hold it against"
    blind = [flow.uncompared for flow in run.flows if flow.uncompared]
    missing = f"; unknown for {', '.join(run.clocks_missing)}" if run.clocks_missing else ""
    if blind:
        missing += (
            f"; one-way figures of {count_of(len(blind), 'flow')} are not determined: {few(dict.fromkeys(blind))}; "
            "what varies, comes in order or is lost is, if the clocks neither drift nor are set"
        )
    grade = graded(share, CLOCK_DEGRADED, CLOCK_INVALID)
    if run.wrong_clocks:
        # An error that the test plants spoils one-way times, but no counts.
        grade = min(grade, Grade.DEGRADED)
    if run.clocks_missing or blind:
        grade = max(grade, Grade.DEGRADED)
    yield check(
        "clock-offset",
        "Clock offset against latency",
        "at most a third of the median one-way latency; above the latency itself invalid",
        observed + missing,
        grade,
        f"the clock offset is uncertain: {observed}{missing}{_cure(run) if blind else ''}",
        nothing=""
        if typical is not None and bound is not None
        else "no one-way latency between clocks that are known",
    )
    yield from _compared(run)
    yield from _kept(run)
    yield from agreeing(run)
    named = ", ".join(
        f"{name} (up to {bound / 1000:.3g} µs)" for name, bound in sorted(run.wrong_clocks.items())
    )
    yield check(
        "imperfect-clocks",
        "Clocks that the test makes imperfect",
        "noted: records bear the time of the node's own clock",
        named or "none",
        Grade.NOTE if run.wrong_clocks else Grade.OK,
        f"these clocks are imperfect: {named}: times between two nodes include the error of their clocks",
    )


def _cure(run: Evidence) -> str:
    """A way to get one-way figures; the beginning of a further clause."""
    if run.tapped:
        return (
            ". Import again with --max-clock-offset, by how much the clocks differ at most"
            + (
                ", and with --clock-offset, what the second shows more"
                if run.entry.passive is not None
                else ""
            )
            + ", or tap both ends by one clock"
        )
    return ". Compare the clocks with <synchronise>, or measure a round trip with <relay>"


def _steps(run: Evidence) -> Check:
    """Steps that agents saw of their hosts' clocks, and those that exchanges found, which may be far smaller."""
    steps = sum_known(agent.clock_steps for agent in run.agents.values())
    largest = max((abs(known(agent.largest_clock_step_ns)) for agent in run.agents.values()), default=0)
    seen = few(
        f"{clock.node} by {duration(one.by)} or more between {one.begin:.4g} and {one.end:.4g} s"
        for clock in run.clocks
        for one in clock.moved
    )
    by_hosts = f"{steps} steps" + (f", largest {largest} ns" if steps else "")
    return check(
        "clock-steps",
        "Clock was not stepped",
        "0 steps; one that only exchanges found, and whose uncertainty holds it, is degraded",
        f"{by_hosts}; by exchanges: {seen}" if seen else by_hosts,
        Grade.INVALID if steps else Grade.DEGRADED if seen else Grade.OK,
        f"a clock was stepped {steps} times during the run, by up to {largest} ns"
        if steps
        else f"a clock was set or driven during the run: {seen}; one-way times there are uncertain by as much",
        nothing="" if run.clocks else unreported(agent.clock_steps for agent in run.agents.values()),
    )


def _compared(run: Evidence) -> Iterator[Check]:
    """Checks the exchanges' offsets of clocks against the limit that the test sets."""
    plan = run.synchronise
    if plan is None or plan.exchange is None:
        return
    worst = max(run.clocks, key=lambda clock: clock.uncertainty, default=None)
    limit = plan.max_offset_ns
    seen = f"± {duration(worst.uncertainty)} ({worst.node})" if worst is not None else "no clock was compared"
    silent = (
        f"; no exchange returned from {', '.join(run.clocks_uncompared)}" if run.clocks_uncompared else ""
    )
    over = limit is not None and (worst is None or worst.uncertainty > limit)
    failed = over or bool(run.clocks_uncompared)
    yield check(
        "clock-gate",
        "Clocks compared by exchanges",
        "every clock compared" + (f", each within {duration(limit)}" if limit is not None else ""),
        seen + silent,
        (Grade.INVALID if plan.refuse else Grade.DEGRADED) if failed else Grade.OK,
        f"the clock offsets are more uncertain than the test allows: {seen}{silent}",
    )


def _kept(run: Evidence) -> Iterator[Check]:
    """Clocks that PTP or chrony keeps, before and during the run."""
    plan = run.synchronise
    if plan is None or run.clock_gate is None:
        return
    wanted = [name for name, used in (("PTP", plan.ptp), ("chrony", plan.chrony)) if used]
    seen = [clock for clock in run.watched if clock.worst is not None]
    told = few(
        f"{clock.node} by {clock.source}: {count_of(clock.n, 'offset')}, at most {duration(clock.worst or 0.0)}"
        for clock in seen
    )
    gate = run.clock_gate.reason or ""
    over = [
        clock.node
        for clock in seen
        if plan.max_offset_ns is not None and clock.worst is not None and clock.worst > plan.max_offset_ns
    ]
    late = (
        f"off by more than {duration(plan.max_offset_ns or 0.0)} during the run: {', '.join(over)}"
        if over
        else ""
    )
    silent = "" if seen or gate else "no offset was seen during the run"
    reason = "; ".join(part for part in (gate, late) if part)
    grade = (
        (Grade.INVALID if plan.refuse else Grade.DEGRADED) if reason else Grade.NOTE if silent else Grade.OK
    )
    yield check(
        "clock-kept",
        f"Clocks kept by {' and '.join(wanted)}",
        "fit before the run"
        + (f", within {duration(plan.max_offset_ns)} during it" if plan.max_offset_ns is not None else ""),
        "; ".join(part for part in (told, reason or silent) if part),
        grade,
        f"the clocks were not within the limit of the test: {reason or silent}",
    )


def _no_host(run: Evidence, found: Iterable[object]) -> str:
    """The reason why nothing is known of a host's activity."""
    return "virtual time" if run.virtual_time else unreported(found)


def _host(run: Evidence) -> Iterator[Check]:
    agents = run.agents.values()
    # Agents on one host all report that host's stolen time: the largest report, not their sum.
    steal = max((known(agent.steal_ns) for agent in agents), default=0)
    yield check(
        "stolen-time",
        "Processor not taken away",
        "0 ms stolen by the hypervisor",
        f"{steal / 1e6:.0f} ms stolen",
        Grade.DEGRADED if steal else Grade.OK,
        f"the hypervisor took the processor away for {steal / 1e6:.0f} ms: it may have caused the largest "
        "latencies, not the network",
        nothing=_no_host(run, (agent.steal_ns for agent in agents)),
    )
    switches = sum_known(agent.involuntary_switches for agent in agents)
    yield check(
        "preemptions",
        "Servicing threads not preempted",
        "noted: involuntary switches of servicing threads",
        f"{switches} preemptions",
        Grade.NOTE if switches else Grade.OK,
        "the host preempted a servicing thread",
        nothing=_no_host(run, (agent.involuntary_switches for agent in agents)),
    )
    refused = sorted(
        {
            grant.name
            for agent in agents
            for grant in agent.grants or ()
            if grant.granted is not True and grant.name not in _TSN
        }
    )
    yield check(
        "grants",
        "Real-time requests granted",
        "noted: requests that the host refused",
        "refused: " + ", ".join(refused) if refused else "all granted",
        Grade.NOTE if refused else Grade.OK,
        f"the host refused {', '.join(refused)}: expect longer tails",
        nothing=_no_host(run, (agent.grants for agent in agents)),
    )
    yield from _host_tsn(run)
    planted = sum(flow.plan.planted_faults for flow in run.flows) + len(run.plan.disturbances)
    yield check(
        "planted-faults",
        "Planted faults",
        "noted: the test damages messages on purpose",
        str(planted),
        Grade.NOTE if planted else Grade.OK,
        f"{planted} faults are planted by the test: losses and damage may be intended",
    )


def _host_tsn(run: Evidence) -> Iterator[Check]:
    """TSN settings that agents made, where any did."""
    told = [
        (name, grant)
        for name, agent in sorted(run.agents.items())
        for grant in agent.grants or ()
        if grant.name in _TSN
    ]
    if not told:
        return
    made = [f"{name}: {grant.detail}" for name, grant in told if grant.name == "host-tsn"]
    wrong = [f"{name}: {grant.name} {grant.detail}" for name, grant in told if grant.granted is not True]
    yield check(
        "host-tsn",
        "TSN settings of interfaces",
        "noted: settings that could not be taken off, and schedules by a TAI that nobody set",
        "; ".join(made),
        Grade.NOTE if wrong else Grade.OK,
        "; ".join(wrong),
    )
