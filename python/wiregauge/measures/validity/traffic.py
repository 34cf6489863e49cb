"""Checks of the traffic on the network: background load, offered and accounted for, and arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.judgement import Check, FlowResult, Grade, Load
from wiregauge.measures.validity.evidence import Evidence, check, few, graded, percent, share_of
from wiregauge.measures.validity.load import LOAD_DEGRADED, LOAD_INVALID, load_account
from wiregauge.measures.validity.streams import LoadAccount, load_accounts, streams_of
from wiregauge.records.counters import known, sum_known
from wiregauge.records.reported import AgentReport, RunEntry, TaskReport

__all__ = ["Entered", "entries", "network_load", "offered_loads"]


def network_load(run: Evidence) -> Iterator[Check]:
    loads = offered_loads(run.plan, run.agents, run.entry)
    known = [(load, load.offered) for load in loads if load.offered is not None]
    entered = {one.end_system: one for one in entries(run.agents, run.entry)}
    seen = [
        f"{load.on}: {100 * offered:.3g} % of {100 * load.intended:.3g} %"
        + (f" ({entered[load.on].text})" if load.on in entered and entered[load.on].short else "")
        for load, offered in known
    ]
    # The rate of simulated threads follows from the time of their calls and sleeps: it is reported, not
    # judged.
    modelled = {inject.on for inject in run.plan.injects if inject.by_threads}
    missed = {
        load.on: share_of(abs(offered - load.intended), load.intended)
        for load, offered in known
        if load.on not in modelled
    }
    worst = max(missed.values(), default=0.0)
    unreported = len(loads) - len(known)
    grade = graded(worst, LOAD_DEGRADED, LOAD_INVALID)
    planted = {inject.on: inject.planted for inject in run.plan.injects if inject.planted}
    off = [on for on, share in missed.items() if share > LOAD_DEGRADED]
    by_plan = bool(off) and all(on in planted for on in off)
    if by_plan:
        grade = min(grade, Grade.DEGRADED)
    yield check(
        "offered-load",
        "Offered background load",
        f"within {percent(LOAD_DEGRADED)} of the intended load; beyond {percent(LOAD_INVALID)} invalid",
        "; ".join(seen) or "not reported",
        max(grade, Grade.INVALID if unreported else Grade.NOTE if modelled else Grade.OK),
        "the background load was not reported"
        if unreported
        else f"threads realise the load that their calls and sleeps leave ({'; '.join(seen)})"
        if modelled and grade is Grade.OK
        else f"the offered load missed the intended one ({'; '.join(seen)})"
        + (f": the test plants a {' and a '.join(planted[off[0]])} on its way" if by_plan else ""),
        nothing="" if loads else "none planned",
    )
    # Frames that a host sends to itself pass no port; where a bridge is, the host's queue belongs to the
    # network.
    looped = {flow.source for flow in run.plan.flows if flow.source == flow.destination}
    played = set(entered) - looped if run.network is not None else set()
    yield _entered(
        [one for one in entered.values() if one.streams or one.end_system in played],
        took_none=run.network is not None and not run.network.frames,
    )
    yield load_account(run)
    stray = {kind: count for kind, count in run.unplanned.items() if count and kind != "foreign"}
    text = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in stray.items())
    foreign = run.unplanned.get("foreign", 0)
    babble = "babble" in run.plan.disturbances and set(stray) <= {"never_sent"}
    grade = Grade.DEGRADED if stray and not babble else Grade.NOTE if stray or foreign else Grade.OK
    # Without a tap at an end no arrival can be seen.
    watched = [flow for flow in run.flows if not flow.unseen]
    silent = [flow.plan.name for flow in watched if flow.counts["sent"] and not _arrived(run, flow)]
    yield check(
        "arrivals",
        "Something arrived",
        "at least one message of every flow",
        f"nothing on flow {', '.join(silent)}" if silent else "on every flow",
        Grade.DEGRADED if silent else Grade.OK,
        f"nothing at all arrived on flow {', '.join(silent)}: "
        "look for a wrong address or a missing link before blaming the load",
        nothing="" if any(flow.counts["sent"] for flow in watched) else "nothing was sent",
    )
    yield check(
        "unplanned",
        "No unplanned frames",
        "0 of our own that no message explains; foreign frames are noted",
        text or (f"foreign {foreign}" if foreign else "0"),
        grade,
        (
            f"frames that belong to no sent message: {text}"
            + ("; the test makes a sender babble" if babble else "")
        )
        if stray
        else f"{foreign} foreign frames were seen",
        nothing="" if run.unplanned else "nothing was tracked",
    )


def _entered(sent: Sequence[Entered], *, took_none: bool) -> Check:
    """Checks how many of the frames that senders handed to their host entered the network; the rest it has not lost.

    `took_none`: a network that an agent plays took nothing in.
    """
    worst = max((1 - one.share for one in sent), default=0.0)
    short = few(f"{one.end_system}: {one.text}" for one in sent if one.short)
    return check(
        "streams-entered",
        "What was sent entered the network",
        f"at most {percent(LOAD_DEGRADED)} of the frames handed over missing at the first port; "
        f"beyond {percent(LOAD_INVALID)} invalid",
        short or f"{len(sent)} looked at",
        graded(worst, LOAD_DEGRADED, LOAD_INVALID),
        f"what was handed over did not enter the network ({short})"
        + (
            ": the process that plays it took no frame while the run went on, as when a program of higher priority has "
            "its core"
            if took_none
            else ""
        ),
        nothing="" if sent else "nothing was looked at behind its sender",
    )


def _arrived(run: Evidence, flow: FlowResult) -> int:
    """Messages of the flow that came; one tap alone knows that without knowing their latency."""
    return max(flow.counts["delivered"], flow.came_at_least) if run.tapped else flow.summaries["latency"].n


class Entered(Struct, frozen=True):
    """Number of frames that an end system handed over, and how many of them the network saw."""

    end_system: str
    handed_over: int
    seen: int
    by: str
    streams: bool
    """Whether some were of streams, which are fast."""

    @property
    def share(self) -> float:
        """The share of the frames handed over that entered, 0 to 1."""
        return min(self.seen / self.handed_over, 1.0)

    @property
    def short(self) -> bool:
        """Whether too many are missing."""
        return 1 - self.share > LOAD_DEGRADED

    @property
    def text(self) -> str:
        """The counts as text for people."""
        return f"{self.by} saw {self.seen} of {self.handed_over} frames handed over"


def entries(agents: Mapping[str, AgentReport], entry: RunEntry) -> tuple[Entered, ...]:
    """Frames seen by the first port behind each end system, where the bench can look at it.

    Elsewhere only a load without any arrival is known not to have entered: anything else the network may have lost.
    """
    ports = entry.first_ports or {}
    # Frames that a network which is played took from all its ports; None where none is.
    intake = entry.network.intake if entry.network is not None else None
    found = []
    arrived: dict[int, tuple[str, int]] = {}
    for name, agent in agents.items():
        for part in agent.streams:
            account = part.figures.account
            if part.kind == "absorb" and part.backend and account is not None:
                arrived[part.number] = (name, known(account.received))
    for name, agent in agents.items():
        streams = [one for _, one in streams_of({name: agent}) if one.figures.handed_over > 0]
        of_streams = sum(stream.figures.handed_over for stream in streams)
        handed_over = of_streams + sum_known(point.frames_sent for point in agent.access_points)
        port = ports.get(name)
        if port is not None and handed_over:
            received = known(port.received)
            seen = received if intake is None else min(received, intake.frames)
            found.append(Entered(name, handed_over, seen, f"port {port.port}", bool(streams)))
            continue
        loads = [stream for stream in streams if stream.kind == "inject"]
        told = [arrived[stream.number] for stream in loads if stream.number in arrived]
        if loads and len(told) == len(loads) and not any(count for _, count in told):
            found.append(Entered(name, of_streams, 0, f"the receiver {told[0][0]}", streams=True))
    return tuple(found)


def offered_loads(plan: RunPlan, agents: Mapping[str, AgentReport], entry: RunEntry) -> tuple[Load, ...]:
    """Background load as planned and as it entered the network (RFC 2285, 3.5).

    The latter is the count that its agents report as handed over, minus the frames that the first port never saw.
    """
    found = []
    entered = {one.end_system: one.share for one in entries(agents, entry)}
    accounts = {account.number: account for account in load_accounts(plan.injects, agents)}
    for place, inject in enumerate(plan.injects):
        account = accounts.get(place)
        tasks = agents[inject.on].tasks_of("inject") if inject.on in agents else []
        intended = inject.load_ppm / 1e6
        handed_over, share = None, entered.get(inject.on, 1.0)
        if account is not None and account.entered is not None:
            share = account.entered
        if tasks:
            done, planned = sum_known(t.done for t in tasks), sum_known(t.planned for t in tasks)
            ratio = (
                done / planned if planned else _offered_ratio(plan, inject.load_ppm, inject.rate_bps, tasks)
            )
            handed_over = intended * ratio if ratio is not None else None
        offered = handed_over * share if handed_over is not None else None
        load = Load(inject.on, inject.to, intended, offered)
        found.append(load if account is None else _with_arrived(load, account, handed_over))
    return tuple(found)


def _with_arrived(load: Load, account: LoadAccount, handed_over: float | None) -> Load:
    sent, came = account.sent, account.distinct if account.receiver else None
    arrived = None
    if sent and came is not None and handed_over is not None:
        arrived = handed_over * min(came / sent, 1.0)
    return replace(
        load,
        arrived=arrived,
        sent_frames=sent,
        arrived_frames=came,
        never_came=account.never_came,
        dropped=account.dropped,
    )


def _offered_ratio(plan: RunPlan, load_ppm: int, rate_bps: int, tasks: Sequence[TaskReport]) -> float | None:
    """Sent bits as a share of the planned bits; None where the plan does not say how many."""
    if not load_ppm:
        return 0.0
    seconds = (plan.warm_up_ns + plan.duration_ns) / 1e9
    intended_bits = rate_bps * load_ppm / 1e6 * seconds
    return sum_known(task.wire_bytes for task in tasks) * 8 / intended_bits if intended_bits else None
