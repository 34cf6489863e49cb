"""Background load, judged where it should have arrived: a load that loads nothing is evidence against the run."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.validity.evidence import Evidence, check, few, graded, percent, share_of
from wiregauge.measures.validity.streams import DROPPED_ON_PURPOSE, LoadAccount, dropped_text, load_accounts

__all__ = ["LOAD_DEGRADED", "LOAD_INVALID", "load_account"]

LOAD_DEGRADED, LOAD_INVALID = 0.01, 0.10


def load_account(run: Evidence) -> Check:
    """Checks which part of the background load arrived at its destination.

    A full queue is loaded, and its drops are losses of the network; frames that reach neither a full queue nor their
    destination loaded nothing behind the place of their loss.
    """
    accounts = load_accounts(run.plan.injects, run.agents)
    uncounted = [account for account in accounts if not account.receiver]
    missed = sum(account.missed for account in accounts)
    explained = _in_full_queues(run) >= sum(account.lost or 0 for account in accounts)
    astray = [account for account in accounts if _share(account) > LOAD_DEGRADED and not explained]
    said = [
        f"{account.on} to {account.to}: "
        + (
            f"{account.distinct} of {account.sent} arrived{_why(account)}"
            if account.receiver
            else "not counted"
        )
        for account in accounts
    ]
    if astray:
        grade = max(map(_grade, astray))
        trouble = f"background load never came to where it was sent ({_told(astray)})"
    elif uncounted:
        grade = Grade.NOTE if run.virtual_time else Grade.DEGRADED
        trouble = f"nobody counted the background load that arrived ({uncounted[0].why})"
    else:
        grade = Grade.NOTE if missed else Grade.OK
        trouble = f"{missed} frames of background load were dropped because the receiver was too slow"
    return check(
        "background-load-account",
        "Background load where it is to arrive",
        f"counted; at most {percent(LOAD_DEGRADED)} missing that no full queue explains; above {percent(LOAD_INVALID)} "
        "invalid, degraded where the test plants it or a full queue may have dropped it",
        "; ".join(said),
        grade,
        trouble,
        nothing="" if said else "none reported",
    )


def _why(account: LoadAccount) -> str:
    """A count of dropped frames by cause, in brackets; empty where the bench does not see causes."""
    told = dropped_text(account.dropped) if account.dropped is not None and account.lost else ""
    return f" ({told})" if told else ""


def _in_full_queues(run: Evidence) -> int:
    """Frames dropped, in a network played by an agent, where the test loads or limits queues; all flows; -1 without
    one."""
    if run.network is None:
        return -1
    simulation = run.entry.simulation
    if simulation is None:
        return -1
    ports = (port for one in simulation.switches.values() for port in one.ports)
    return sum(port.dropped.get(how, 0) for port in ports for how in DROPPED_ON_PURPOSE)


def _share(account: LoadAccount) -> float:
    """The share of the sent frames that loaded nothing."""
    return share_of(account.never_came or 0, account.sent)


def _grade(account: LoadAccount) -> Grade:
    """The grade of an account. A bench that does not see its queues cannot tell a full queue from a pulled cable:
    losses that queues filled by the plan may explain are not INVALID."""
    found = graded(_share(account), LOAD_DEGRADED, LOAD_INVALID)
    return min(found, Grade.DEGRADED) if account.plan.planted or _perhaps(account) else found


def _perhaps(account: LoadAccount) -> bool:
    if account.dropped is not None or not account.distinct or not account.sent or account.plan.least >= 1:
        return False
    return (account.distinct + account.missed) / account.sent >= account.plan.least - LOAD_DEGRADED


def _told(accounts: Sequence[LoadAccount]) -> str:
    def of(account: LoadAccount) -> str:
        text = f"{account.on} to {account.to}: {account.distinct} of {account.sent} arrived{_why(account)}"
        if account.distinct + (account.never_came or 0) < (account.sent or 0):
            text += f", {account.never_came} were in no queue that was full"
        if account.plan.planted:
            text += f"; the test plants a {' and a '.join(account.plan.planted)} on its way"
        elif account.dropped is None:
            text += "; look at its cables, its links and what lies between"
        return text

    return few(map(of, accounts))
