"""Streams as agents report them: how traffic left, how well its times were kept, and what became of background load.

A stream is sent by a thread of its own from a template (docs/explanation/generating.md). Senders leave records and
have an account here only of how they kept their times; background load leaves none and is accounted for frame by frame
where it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wiregauge.measures.metrics.load_plan import InjectPlan
from wiregauge.measures.metrics.reported import parts
from wiregauge.plan import NETWORK
from wiregauge.stats.counts import share_bound

__all__ = ["LoadAccount", "Stream", "dropped_text", "load_accounts", "share_bounds", "streams_of"]


@dataclass(frozen=True)
class Stream:
    """A stream as its sender saw it. Times are ns; shares are of 1."""

    end_system: str
    kind: str
    number: int
    backend: str
    why: str
    pacing: str
    past_queue: bool
    offered: int
    refused: int
    given_up: int
    rate: float
    error_p99_ns: float | None
    gaps: int
    within: tuple[float, float, float] | None


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
"""Drops of a modelled network that are what the test loads, limits or polices: a full queue is loaded."""
BEFORE_NETWORK: Final = "before-network"
"""Handed over by its host, and never come to the network that is played."""
BEHIND_NETWORK: Final = "behind-network"
"""Handed to its receiver by the network that is played, and not counted there."""
_BEFORE: Final = ("own-link", BEFORE_NETWORK)
UNDER_WAY: Final = "under-way"
"""In the network when the run ended: neither dropped nor handed on by then."""


@dataclass(frozen=True)
class LoadAccount:
    """What became of an injector's frames. `lost` counts those that left and are not among the distinct arrivals."""

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
        """None where nobody knows how many were sent, or the load has no receiver that counts."""
        return None if self.sent is None or not self.receiver else max(0, self.sent - self.distinct)


def streams_of(agents: Mapping[str, Mapping[str, object]]) -> tuple[Stream, ...]:
    """All streams that were sent, by end system."""
    return tuple(_stream(name, part) for name, part in _reported(agents) if part.get("kind") != "absorb")


def load_accounts(
    injects: Sequence[InjectPlan], agents: Mapping[str, Mapping[str, object]]
) -> tuple[LoadAccount, ...]:
    """The account of every injector whose frames somebody counted, or could not."""
    streams = {stream.number: stream for stream in streams_of(agents) if stream.kind == "inject"}
    played = parts(agents.get(NETWORK, {}), "loads")
    sent = _handed_over(injects, agents) | {
        number: stream.offered - stream.refused for number, stream in streams.items()
    }
    accounts = []
    for _, part in _reported(agents):
        number = _whole(part.get("number"))
        if part.get("kind") != "absorb" or number >= len(injects):
            continue
        figures = _object(part.get("figures"))
        account, missed = _object(figures.get("account")), _object(figures.get("missed"))
        latency = _object(account.get("latency_ns"))
        dropped = figures.get("lost")
        of_load = LoadAccount(
            on=injects[number].on,
            to=injects[number].to,
            receiver=str(part.get("backend", "")),
            why=str(part.get("why", "")),
            sent=sent.get(number),
            distinct=_whole(account.get("distinct")),
            duplicates=_whole(account.get("duplicates")),
            reordered=_whole(account.get("reordered")),
            corrupted=_whole(account.get("corrupted")),
            missed=_whole(missed.get("ring")) + _whole(missed.get("other")),
            latency_p50_ns=_real(latency.get("p50")),
            latency_p99_ns=_real(latency.get("p99")),
            number=number,
            plan=injects[number],
            dropped=_counts(dropped) if isinstance(dropped, dict) else None,
        )
        if number < len(played):
            of_load = replace(of_load, dropped=_dropped_between(of_load, played[number]))
        accounts.append(_with_rest(of_load))
    return tuple(accounts)


def dropped_text(dropped: Mapping[str, int]) -> str:
    """Frames by how they did not arrive, most first: `queue full 12, link 3`; empty without any."""
    most_first = sorted(dropped.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{how.replace('-', ' ')} {count}" for how, count in most_first if count)


def _dropped_between(account: LoadAccount, fate: Mapping[str, object]) -> dict[str, int]:
    """By how frames did not arrive, where the network is played: what the model dropped, and what was lost on either
    side of it, which is the hosts'."""
    entered, left = _whole(fate.get("entered")), _whole(fate.get("left"))
    unmet = max(0, left - account.distinct - account.duplicates - account.corrupted)
    beside = {
        BEFORE_NETWORK: max(0, (account.sent or 0) - entered),
        # Whoever is too slow has been loaded.
        "ring-full": min(unmet, account.missed),
        BEHIND_NETWORK: max(0, unmet - account.missed) if account.receiver else 0,
    }
    dropped = _counts(_object(fate.get("lost")))
    for how, count in beside.items():
        dropped[how] = dropped.get(how, 0) + count
    return {how: count for how, count in dropped.items() if count}


def _with_rest(account: LoadAccount) -> LoadAccount:
    """With what was neither dropped nor came."""
    rest = (account.lost or 0) - sum(account.dropped.values()) if account.dropped is not None else 0
    return replace(account, dropped={**(account.dropped or {}), UNDER_WAY: rest}) if rest > 0 else account


def _counts(told: Mapping[str, object]) -> dict[str, int]:
    return {str(how): _whole(n) for how, n in told.items()}


def _handed_over(injects: Sequence[InjectPlan], agents: Mapping[str, Mapping[str, object]]) -> dict[int, int]:
    """By load what its task says to have sent; tasks of an end system come in the order of the plan."""
    found: dict[int, int] = {}
    for on in {inject.on for inject in injects}:
        numbers = [number for number, inject in enumerate(injects) if inject.on == on]
        tasks = [task for task in parts(agents.get(on, {}), "tasks") if task.get("kind") == "inject"]
        if len(tasks) == len(numbers):
            found |= {number: _whole(task.get("done")) for number, task in zip(numbers, tasks, strict=True)}
    return found


def share_bounds(part: float, n: int) -> tuple[float, float]:
    """95 % bounds of a share of n gaps, as if they were independent."""
    bound = share_bound(round(part * n), n)
    return bound.low, bound.high


def _reported(agents: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, agent in agents.items():
        for part in parts(agent, "streams"):
            yield name, part


def _stream(name: str, part: Mapping[str, object]) -> Stream:
    figures = _object(part.get("figures"))
    gaps, error = _object(figures.get("gaps")), _object(figures.get("send_error_ns"))
    within = tuple(_real(gaps.get(f"within_{us}us")) or 0.0 for us in (1, 5, 50))
    return Stream(
        end_system=name,
        kind=str(part.get("kind", "")),
        number=_whole(part.get("number")),
        backend=str(part.get("backend", "")),
        why=str(part.get("why", "")),
        pacing=str(part.get("pacing", "")),
        past_queue=part.get("past_queue") is True,
        offered=_whole(figures.get("offered")),
        refused=_whole(figures.get("refused")),
        given_up=_whole(figures.get("given_up")),
        rate=_real(figures.get("rate")) or 0.0,
        error_p99_ns=_real(error.get("p99")),
        gaps=_whole(gaps.get("n")),
        within=(within[0], within[1], within[2]) if gaps else None,
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
