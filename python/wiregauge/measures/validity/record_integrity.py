"""Checks that all records were kept and can be ordered: they are the only bridge between running and judging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.validity.evidence import (
    LOST_INSIDE,
    Evidence,
    check,
    few,
    lost_inside,
    own_fault,
    share_of,
    typical_latency_ns,
    untracked,
)
from wiregauge.records.counters import known, sum_known
from wiregauge.records.reported import Tap, TrackedRun

JUMP_NS = 100e6
"""Records that go back by more than this are no disorder: their clock was set."""
OF_QUEUES_NS = 10e6
"""How far frames of several queues of one interface may be written out of time order, ns."""
OF_A_CLOCK = 2
"""Number of times that a capture's times may go back before queues are the likely cause."""
OF_LATENCY = 1 / 3
"""Share of the median latency that a clock's error may have before figures are doubtful, as for clocks that are
apart."""


def kept(run: Evidence) -> Iterator[Check]:
    """Checks on the records between instrument and judge: segments, gaps, send records.

    A gap spoils the run when messages are missing, for those may be its own fault.
    """
    doubt = own_fault(run)
    tracking = run.tracking or TrackedRun(index=run.plan.index)
    damaged = tracking.damaged_segments or ()
    first = damaged[0].get("problem", "") if damaged else ""
    yield check(
        "segments",
        "Record files whole",
        LOST_INSIDE,
        f"{len(damaged)} damaged",
        lost_inside(run, len(damaged)),
        f"the instrument has {count_of(len(damaged), 'damaged record file')} ({first}){doubt}",
        nothing=untracked(tracking.damaged_segments),
    )
    stored = known(tracking.records)
    gone = max(run.records_written - stored, 0) if run.tracked else 0
    yield check(
        "records-stored",
        "Every record that was written is stored",
        LOST_INSIDE,
        f"{stored} of {max(run.records_written, stored)}",
        lost_inside(run, gone),
        f"{count_of(gone, 'record')} that the instrument wrote cannot be found: a part is missing{doubt}",
        nothing="" if run.tracked else "nothing was tracked",
    )
    unknown = run.total("unknown")
    causes = few(dict.fromkeys(str(gap.get("cause")) for gap in run.gaps if gap.get("cause")))
    yield check(
        "outcomes-known",
        "The outcome of every message is known",
        "0 unknown",
        f"{unknown} unknown",
        Grade.DEGRADED if unknown else Grade.OK,
        f"for {count_of(unknown, 'message')} it is unknown whether it was lost, because the instrument lost records "
        f"({causes or 'of their sending'}); bounds of losses and limits take both cases",
        nothing="" if run.flows else "no messages are known",
    )
    behind = sum_known(flow.behind_window for flow in tracking.flows)
    yield check(
        "records-in-window",
        "Records within the tracking window",
        "0",
        f"{behind} behind the window",
        Grade.DEGRADED if behind else Grade.OK,
        f"{count_of(behind, 'record')} came more than {known(tracking.window)} messages late, or of sends due "
        "millions of messages ahead of what was sent, and excluded from every count",
        nothing="" if tracking.flows else "nothing was tracked",
    )
    unpaired = sum_known(flow.unpaired_departures for flow in tracking.flows)
    yield check(
        "passages-paired",
        "Frames that left a switch were seen to come",
        "0 unpaired",
        f"{unpaired} unpaired",
        Grade.DEGRADED if unpaired else Grade.OK,
        f"{count_of(unpaired, 'frame')} left a switch more often than seen to come, or among more than 8192 of a flow "
        "in one switch; their residence times, which may be the longest, are in no figure",
        nothing="" if any(flow[HOPS] for flow in run.flows) else "no switch recorded what passed",
    )
    unordered = known(tracking.out_of_order)
    yield check(
        "records-in-order",
        "Records in the order of time",
        "0",
        f"{unordered} out of order",
        Grade.DEGRADED if unordered else Grade.OK,
        f"{count_of(unordered, 'record')} came too late to be put in order; which copy came first may be wrong",
        nothing=untracked(tracking.out_of_order),
    )
    yield _clock_jumps(run)
    restarts = [(flow.flow, flow.restarts) for flow in tracking.flows if flow.restarts]
    told = ", ".join(f"flow {flow}: {count_of(count, 'time')}" for flow, count in restarts)
    yield check(
        "numbers-once",
        "Sequence numbers handed over once",
        "no number twice",
        told or "counted through",
        Grade.DEGRADED if restarts else Grade.OK,
        f"a sender restarted its numbers ({told}): it was restarted, or its numbers overflowed",
        nothing="" if tracking.flows else "nothing was tracked",
    )
    # A message sent where no tap is has no send record; another check says so.
    unrecorded = sum(flow.missing_send_records for flow in run.flows if not flow.unseen)
    yield check(
        "send-records",
        "Send record for every message",
        "0 missing",
        f"{unrecorded} missing",
        Grade.DEGRADED if unrecorded else Grade.OK,
        f"{unrecorded} messages arrived without a send record",
        nothing=""
        if any(not flow.unseen and flow.counts["sent"] for flow in run.flows)
        else "nothing was sent",
    )


def _clock_jumps(run: Evidence) -> Check:
    """Checks clocks for steps: one planted by the test is reported with the clocks; any other spoils its times."""
    found = run.tracking.clock_jumps if run.tracking is not None else None
    jumps = {
        run.node_names[jump.node]: jump.farthest_ps / 1e9
        for jump in found or ()
        if jump.node < len(run.node_names)
    }
    turned = {tap.node: tap for tap in run.entry.taps if tap.back_ps}
    back = {name: known(tap.back_ps) / 1e9 for name, tap in turned.items()}
    jumps |= {name: ms for name, ms in back.items() if ms > OF_QUEUES_NS / 1e6}
    unplanned = {name: ms for name, ms in jumps.items() if name not in run.plan.stepped}
    told = ", ".join(f"{name} by up to {ms:.4g} ms" for name, ms in jumps.items())
    cure = (
        "; what comes before and behind such an instant is one capture each (editcap -r IN OUT FIRST-LAST); where "
        "frames are only written out of their order, put them in order first (reordercap IN OUT)"
        if turned
        else ""
    )
    grade = Grade.INVALID if unplanned else Grade.NOTE if jumps else Grade.OK
    reason = f"a clock was set back while it recorded ({told})" + (
        cure if unplanned else ", as the test asks"
    )
    if not jumps and turned:
        grade, told, reason = _slightly_back(run, turned, back)
        reason += cure if grade > Grade.NOTE else ""
    return check(
        "clocks-forward",
        "No clock went backwards",
        f"none by more than {JUMP_NS / 1e6:.0f} ms, in a capture file {OF_QUEUES_NS / 1e6:.0f} ms, or once or twice by "
        "more than a third of the median latency",
        told or "none",
        grade,
        reason,
        nothing=untracked(found),
    )


def _slightly_back(
    run: Evidence, turned: Mapping[str, Tap], back: Mapping[str, float]
) -> tuple[Grade, str, str]:
    """The grade of captures whose times go back no further than queues cause, with observation and reason.

    Queues do it again and again. One or two times in a capture are as likely from a clock, and the possible error is
    compared with the measured times.
    """
    told = f"frames of a capture out of order: {', '.join(f'{name} by up to {ms:.4g} ms' for name, ms in back.items())}"
    rarely = [name for name, tap in turned.items() if 0 < known(tap.turns) <= OF_A_CLOCK]
    worst = max((back[name] for name in rarely), default=0.0) * 1e6
    typical = typical_latency_ns(run.flows)
    if typical is not None and share_of(worst, typical) > OF_LATENCY:
        held = f"{told}, no more than {OF_A_CLOCK} times, where the median latency is {duration(typical)}"
        return (
            Grade.DEGRADED,
            held,
            f"{held}: either a queue did so, or a clock was set back, and times on both sides of it are off by as much",
        )
    return (
        Grade.NOTE,
        told,
        f"{told}, as the queues of an interface leave them, or a clock was set back by so little",
    )


def captured(run: Evidence) -> Iterator[Check]:
    """Checks that captures are complete: no figure uses them, but their readers must know of gaps."""
    missing = []
    frames = passed = 0
    # A run made from captures executed none of the test's tasks.
    nodes = sorted({*(() if run.tapped else run.plan.captures), *run.captures})
    for node in nodes:
        # The path after the run is stored, not the one written to.
        file = str(node) if run.tapped else f"captures/run-{run.plan.index:04d}/{node}.pcapng"
        task = run.captures.get(node)
        if task is None:
            # The simulator shows every frame, and ends where the disk refuses one; so does a network that it plays.
            if not run.virtual_time and run.network is None:
                missing.append(f"{file}: its task left no report")
            continue
        frames += known(task.done)
        passed += known(task.passed_over)
        crowded = known(task.crowded_out)
        dropped, unwritten = known(task.ring_drops), known(task.unwritten)
        why = [
            task.failure or "",
            f"{count_of(dropped, 'frame')} dropped{'' if run.tapped else ' by a full ring'}"
            if dropped
            else "",
            f"{count_of(unwritten, 'frame')} not written" if unwritten and not task.failure else "",
            f"{count_of(crowded, 'frame')} held back for alarms had to go early: 64 MiB wait at most; "
            "capture fewer bytes (snap), or a shorter time around alarms"
            if crowded
            else "",
        ]
        if any(why):
            missing.append(f"{file}: {'; '.join(text for text in why if text)}")
    files = count_of(len(nodes), "file")
    yield check(
        "captures",
        "Captures whole",
        "no frame dropped, none refused by the disk",
        (
            f"every frame in {files}"
            if run.virtual_time or (run.network is not None and not run.captures)
            else f"{count_of(frames, 'frame')} in {files}"
        )
        + (f", {count_of(passed, 'frame')} left out, near no alarm" if passed else "")
        + (f", {len(missing)} not whole" if missing else ""),
        Grade.DEGRADED if missing else Grade.OK,
        f"a capture is not whole ({' | '.join(missing)}); "
        + ("what it lacks is unknown and not lost" if run.tapped else "no figure comes from it"),
        nothing="" if nodes else "none planned",
    )
