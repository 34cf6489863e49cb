"""Streams as agents report them: how traffic left, its timing, and the losses of background load.

A stream is sent by a thread of its own from a template (docs/explanation/generating.md). Senders leave records and have
an account of their timing only; background load leaves no records and is accounted for frame by frame where it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.metrics.load_plan import InjectPlan
from wiregauge.plan import NETWORK
from wiregauge.records.counters import known, sum_known
from wiregauge.records.reported import AgentReport, LoadFate, LoadReceived, StreamReport
from wiregauge.stats.counts import share_bound

__all__ = ["LoadAccount", "dropped_text", "load_accounts", "share_bounds", "streams_of"]


DROPPED_ON_PURPOSE: Final = (
    "buffer-full",
    "regulator-full",
    "policed",
    "red-frame",
    "interval-octets",
    "stream-gate",
    "stream-blocked",
    "oversize-sdu",
    "ring-full",
    "fifo-full",
)
"""Drops of a modelled network where the test loads, limits or polices: a full queue is loaded."""
BEFORE_NETWORK: Final = "before-network"
"""Frames handed over by their host that never reached the played network."""
BEHIND_NETWORK: Final = "behind-network"
"""Handed to its receiver by the network that is played, and not counted there."""
_BEFORE: Final = ("own-link", BEFORE_NETWORK)
UNDER_WAY: Final = "under-way"
"""Frames in the network when the run ended: neither dropped nor handed on by then."""


class LoadAccount(Struct, frozen=True):
    """Frame counts of an injector. `lost` counts those that left and are not among the distinct arrivals."""

    on: str
    to: str
    receiver: str
    why: str
    sent: int | None
    distinct: int
    duplicates: int
    reordered: int
    corrupted: int
    missed: int
    latency_p50_ns: float | None
    latency_p99_ns: float | None
    number: int
    plan: InjectPlan
    dropped: Mapping[str, int] | None = None
    """Frames that did not arrive, and copies that went astray, by how; None where the bench does not see it."""

    @property
    def entered(self) -> float | None:
        """Share of the frames that got over the first link, where the bench sees it."""
        if self.dropped is None or not self.sent:
            return None
        return 1 - min(sum(self.dropped.get(how, 0) for how in _BEFORE) / self.sent, 1.0)

    @property
    def never_came(self) -> int | None:
        """Frames that nothing the test loads has dropped: they reached neither their end nor a queue without room.

        What no bench counts is reckoned: a port that is offered more than it carries by plan drops the rest.
        """
        lost = self.lost
        if lost is None or self.sent is None:
            return None
        if self.dropped is not None:
            loaded = (*DROPPED_ON_PURPOSE, UNDER_WAY)
            return min(lost, sum(n for how, n in self.dropped.items() if how not in loaded))
        return max(0, lost - self.missed - round((1 - self.plan.due) * self.sent))

    @property
    def lost(self) -> int | None:
        """Frames that left and did not arrive; None where the number sent is unknown, or no receiver counts."""
        return None if self.sent is None or not self.receiver else max(0, self.sent - self.distinct)


def streams_of(agents: Mapping[str, AgentReport]) -> list[tuple[str, StreamReport]]:
    """All streams that were sent, each with its end system."""
    return [(name, part) for name, part in _reported(agents) if part.kind != "absorb"]


def load_accounts(
    injects: Sequence[InjectPlan], agents: Mapping[str, AgentReport]
) -> tuple[LoadAccount, ...]:
    """The account of every injector whose frames somebody counted, or could not."""
    played = agents[NETWORK].loads if NETWORK in agents else ()
    sent = _handed_over(injects, agents) | {
        stream.number: stream.figures.handed_over
        for _, stream in streams_of(agents)
        if stream.kind == "inject"
    }
    accounts = []
    for _, part in _reported(agents):
        number, account = part.number, part.figures.account or LoadReceived()
        if part.kind != "absorb" or number >= len(injects):
            continue
        of_load = LoadAccount(
            on=injects[number].on,
            to=injects[number].to,
            receiver=part.backend,
            why=part.why,
            sent=sent.get(number),
            distinct=known(account.distinct),
            duplicates=known(account.duplicates),
            reordered=known(account.reordered),
            corrupted=known(account.corrupted),
            missed=sum_known((part.figures.missed.ring, part.figures.missed.other)),
            latency_p50_ns=account.latency_ns.p50,
            latency_p99_ns=account.latency_ns.p99,
            number=number,
            plan=injects[number],
            dropped=part.figures.lost,
        )
        if number < len(played):
            of_load = replace(of_load, dropped=_dropped_between(of_load, played[number]))
        accounts.append(_with_rest(of_load))
    return tuple(accounts)


def dropped_text(dropped: Mapping[str, int]) -> str:
    """Frames by how they did not arrive, most first: `queue full 12, link 3`; empty without any."""
    most_first = sorted(dropped.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{how.replace('-', ' ')} {count}" for how, count in most_first if count)


def _dropped_between(account: LoadAccount, fate: LoadFate) -> dict[str, int]:
    """Losses by cause in a played network: drops of the model, and losses before and behind it, which are the
    hosts'."""
    unmet = max(0, fate.left - account.distinct - account.duplicates - account.corrupted)
    beside = {
        BEFORE_NETWORK: max(0, (account.sent or 0) - fate.entered),
        # A receiver that is too slow was loaded all the same.
        "ring-full": min(unmet, account.missed),
        BEHIND_NETWORK: max(0, unmet - account.missed) if account.receiver else 0,
    }
    dropped = dict(fate.lost)
    for how, count in beside.items():
        dropped[how] = dropped.get(how, 0) + count
    return {how: count for how, count in dropped.items() if count}


def _with_rest(account: LoadAccount) -> LoadAccount:
    """The account with the remaining frames, neither dropped nor arrived, as under way."""
    rest = (account.lost or 0) - sum(account.dropped.values()) if account.dropped is not None else 0
    return replace(account, dropped={**(account.dropped or {}), UNDER_WAY: rest}) if rest > 0 else account


def _handed_over(injects: Sequence[InjectPlan], agents: Mapping[str, AgentReport]) -> dict[int, int]:
    """Frames sent per load, as its task reports; tasks of an end system are in the order of the plan."""
    found: dict[int, int] = {}
    for on in {inject.on for inject in injects}:
        numbers = [number for number, inject in enumerate(injects) if inject.on == on]
        tasks = agents[on].tasks_of("inject") if on in agents else []
        if len(tasks) == len(numbers):
            found |= {number: known(task.done) for number, task in zip(numbers, tasks, strict=True)}
    return found


def share_bounds(part: float, n: int) -> tuple[float, float]:
    """95 % bounds of a share of n gaps, taken to be independent."""
    bound = share_bound(round(part * n), n)
    return bound.low, bound.high


def _reported(agents: Mapping[str, AgentReport]) -> Iterator[tuple[str, StreamReport]]:
    for name, agent in agents.items():
        for part in agent.streams:
            yield name, part
