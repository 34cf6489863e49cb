"""Checks of what was on the network: background load, offered and accounted for, and what arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wiregauge.measures.evidence import Evidence, check, graded, number, parts, percent
from wiregauge.measures.plan import RunPlan
from wiregauge.measures.results import Check, FlowResult, Grade, Load
from wiregauge.measures.streams import load_accounts

__all__ = ["network_load", "offered_loads"]

LOAD_DEGRADED, LOAD_INVALID = 0.01, 0.10


def network_load(run: Evidence) -> Iterator[Check]:
    loads = offered_loads(run.plan, run.agents)
    known = [(load, load.offered) for load in loads if load.offered is not None]
    seen = [f"{load.on}: {100 * offered:.3g} % of {100 * load.intended:.3g} %" for load, offered in known]
    worst = max((abs(offered / load.intended - 1) for load, offered in known if load.intended), default=0.0)
    unreported = len(loads) - len(known)
    grade = graded(worst, LOAD_DEGRADED, LOAD_INVALID)
    yield check(
        "offered-load",
        "Offered background load",
        f"within {percent(LOAD_DEGRADED)} of the intended load; beyond {percent(LOAD_INVALID)} invalid",
        "; ".join(seen) if seen else ("not reported" if unreported else "none planned"),
        max(grade, Grade.INVALID if unreported else Grade.OK),
        "the background load was not reported"
        if unreported
        else f"the offered load missed the intended one ({'; '.join(seen)})",
    )
    yield _load_account(run)
    stray = {kind: count for kind, count in run.unplanned.items() if count and kind != "foreign"}
    text = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in stray.items())
    foreign = run.unplanned.get("foreign", 0)
    babble = "babble" in run.plan.disturbances and set(stray) <= {"never_sent"}
    grade = Grade.DEGRADED if stray and not babble else Grade.NOTE if stray or foreign else Grade.OK
    # Where no tap is at an end, nothing could be seen to arrive.
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
    )


def _load_account(run: Evidence) -> Check:
    """Background load is the network's to lose, but the receiver must have counted what arrived."""
    accounts = load_accounts(run.plan.injects, run.agents)
    uncounted = [account for account in accounts if not account.receiver]
    missed = sum(account.missed for account in accounts)
    said = [
        f"{account.on} to {account.to}: {account.distinct} of {account.sent} arrived"
        for account in accounts
        if account.receiver
    ]
    said += [f"{account.on} to {account.to}: not counted" for account in uncounted]
    trouble = f"{missed} frames of background load found the receiver too slow" if missed else ""
    if uncounted:
        trouble = f"nobody counted the background load that arrived ({uncounted[0].why})"
    return check(
        "background-load-account",
        "Account of background load",
        "noted: frames the receiver was too slow for, or load nobody counted",
        "; ".join(said) if said else "none reported",
        Grade.NOTE if trouble else Grade.OK,
        trouble,
    )


def _arrived(run: Evidence, flow: FlowResult) -> int:
    """Messages of the flow that came; one tap alone knows that without knowing their latency."""
    return flow.counts["delivered"] if run.tapped else flow.summaries["latency"].n


def offered_loads(plan: RunPlan, agents: Mapping[str, Mapping[str, object]]) -> tuple[Load, ...]:
    """Background load as planned and as its agents report it (RFC 2285, 3.5)."""
    found = []
    for inject in plan.injects:
        agent = agents.get(inject.on, {})
        tasks = [task for task in parts(agent, "tasks") if task.get("kind") == "inject"]
        intended = inject.load_ppm / 1e6
        ratio = None
        if tasks:
            done, planned = sum(number(t, "done") for t in tasks), sum(number(t, "planned") for t in tasks)
            ratio = (
                done / planned if planned else _offered_ratio(plan, inject.load_ppm, inject.rate_bps, tasks)
            )
        found.append(Load(inject.on, inject.to, intended, intended * ratio if ratio is not None else None))
    return tuple(found)


def _offered_ratio(
    plan: RunPlan, load_ppm: int, rate_bps: int, tasks: Sequence[Mapping[str, object]]
) -> float:
    seconds = (plan.warm_up_ns + plan.duration_ns) / 1e9
    intended_bits = rate_bps * load_ppm / 1e6 * seconds
    return sum(number(task, "wire_bytes") for task in tasks) * 8 / intended_bits if intended_bits else 1.0
