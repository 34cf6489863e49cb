"""The search for bad cases: simulated runs of a test driven towards its bounds.

For each flow the senders of all interfering flows are aligned first, hop by hop: frames that join its path at a port
arrive just before its worst message. Hill climbing follows: many short runs, each a few offsets away from the worst
so far, which is stored. The worst case of all may be missed; what is found did happen, and can be run again.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from wiregauge.bounds.analysing import Answer
from wiregauge.bounds.short_runs import Journey, ShortRuns, Way
from wiregauge.bounds.telling import Tell, silent

__all__ = ["Found", "Goal", "goals", "search"]

_BATCH: Final = 16
_STALE: Final = 30
"""Batches without gain after which a climb restarts from other offsets."""
_CLIMBS: Final = 3
_EARLIER: Final = 1_000
"""How much earlier a frame is sent than one it would otherwise tie with, ps."""
_REACHED: Final = 0.999_9

Offsets = tuple[int, ...]


class Goal(Struct, frozen=True):
    """A flow at a receiver and its least bound, s; `method` is the one that gave it."""

    flow: str
    target: str
    bound: float
    method: str
    network: str | None = None
    """The network of the copy that is bounded, for a flow on two networks."""


class Found(Struct):
    """The longest simulated latency of a goal, ps, None where nothing arrived, and the offsets that gave it."""

    goal: Goal
    latency: int | None = None
    offsets: Offsets = ()

    @property
    def tightness(self) -> float | None:
        """The simulated latency over the bound."""
        return None if self.latency is None or not self.goal.bound else self.latency / 1e12 / self.goal.bound

    @property
    def exceeded(self) -> bool:
        """Whether a message took longer than the bound."""
        return self.latency is not None and self.latency > math.ceil(self.goal.bound * 1e12)


class Outcome(Struct):
    """The result of a search, and the number of runs it took."""

    found: list[Found] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0
    ended: bool = True
    """Whether every flow was searched until no more was gained, rather than until time was up."""

    def plus(self, other: Outcome) -> Outcome:
        """The outcome of this and another search together."""
        return Outcome(
            self.found + other.found,
            self.runs + other.runs,
            self.seconds + other.seconds,
            self.ended and other.ended,
        )


def goals(answers: Sequence[Answer], flows: Sequence[str], receivers: Sequence[str]) -> list[Goal]:
    """The least bound of several answers for each simulated flow and receiver.

    Where copies use two networks, the greater of both: one of them may be lost.
    """
    best: dict[tuple[str, str], dict[str, tuple[float, str, str | None]]] = {}
    for answer in answers:
        for flow in answer.flows:
            for target in flow.targets:
                receiver = target.target
                network = None
                if receiver not in receivers and receiver[-2:] in (" A", " B"):
                    receiver, network = receiver[:-2], receiver[-1]
                if flow.flow not in flows or receiver not in receivers or target.delay is None:
                    continue
                copies = best.setdefault((flow.flow, receiver), {})
                known = copies.get(target.target)
                if known is None or target.delay < known[0]:
                    copies[target.target] = (target.delay, answer.as_text, network)
    greatest = ((key, max(copies.values(), key=lambda copy: copy[0])) for key, copies in best.items())
    return [Goal(*key, bound, method, network) for key, (bound, method, network) in greatest]


def search(
    runs: ShortRuns,
    wanted: Sequence[Goal],
    *,
    seconds: float,
    seed: int,
    tell: Tell = silent,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Searches for the longest latencies of `wanted` for at most `seconds`.

    The same seed tries the same runs in the same order; their number depends on the time.
    """
    return _Search(runs, wanted, seconds, seed, tell, clock).run()


class _Search:
    def __init__(
        self,
        runs: ShortRuns,
        wanted: Sequence[Goal],
        seconds: float,
        seed: int,
        tell: Tell,
        clock: Callable[[], float],
    ) -> None:
        self._runs, self._tell, self._clock = runs, tell, clock
        self._begin = clock()
        self._end = self._begin + seconds
        self._seed = seed
        names = {name: index for index, name in enumerate(runs.names)}
        self._keys = {(int(goal.flow), names[goal.target]): Found(goal) for goal in wanted}
        self._outcome = Outcome(list(self._keys.values()))

    def run(self) -> Outcome:
        keys = list(self._keys)
        together = tuple(self._runs.critical for _ in self._runs.senders)
        self._try([together])
        for done, key in enumerate(keys):
            left = self._end - self._clock()
            self._told(done)
            # Each has an equal share of the time that is left; unused time goes to the others.
            until = self._clock() + left / (len(keys) - done)
            if not self._one(key, until, done):
                self._outcome.ended = False
            if self._clock() >= self._end:
                self._outcome.ended = False
                break
        for key, found in self._keys.items():
            if found.latency is not None:
                # The written test decides what is reported.
                found.latency = self._runs.again(found.offsets).longest.get(key, (None, 0))[0]
        self._tell(1.0)
        self._outcome.seconds = self._clock() - self._begin
        return self._outcome

    def _told(self, done: int) -> None:
        spent = (self._clock() - self._begin) / (self._end - self._begin)
        self._tell(min(1.0, max(spent, done / len(self._keys))))

    def _try(self, offsets: Sequence[Offsets], *, passages: bool = False) -> list[Journey]:
        """Simulates, and stores the worst latency so far of every flow."""
        offsets = [self._runs.kept(own) for own in offsets]
        journeys = self._runs.simulate(offsets, passages=passages)
        self._outcome.runs += len(journeys)
        for own, journey in zip(offsets, journeys, strict=True):
            for key, (latency, _) in journey.longest.items():
                found = self._keys.get(key)
                if found is not None and (found.latency is None or latency > found.latency):
                    found.latency, found.offsets = latency, own
        return journeys

    def _one(self, key: tuple[int, int], until: float, done: int) -> bool:
        """Searches for one goal; returns False where time ran out."""
        found = self._keys[key]
        draw = random.Random(f"{self._seed} {found.goal.flow} {found.goal.target}")
        ways = self._runs.ways.get(key[0], {}).get(key[1], [])
        starts: list[Offsets] = []
        for way in ways:
            for blocked in (False, True):
                starts.append(_LinedUp(self._runs, key, way, blocked=blocked, simulate=self._try).offsets)
                if (found.tightness or 0.0) >= _REACHED:
                    return True
        for climb in range(_CLIMBS):
            begin = (
                found.offsets
                if climb == 0
                else _shaken(draw, starts[climb % len(starts)] if starts else found.offsets, self._runs)
            )
            if not begin or not self._climb(key, begin, draw, until, done):
                return False
            if (found.tightness or 0.0) >= _REACHED:
                return True
        return True

    def _climb(
        self, key: tuple[int, int], begin: Offsets, draw: random.Random, until: float, done: int
    ) -> bool:
        found = self._keys[key]
        moves = _Moves(self._runs, key, draw)
        (journey,) = self._try([begin], passages=True)
        best, latency = begin, journey.longest.get(key, (-1, 0))[0]
        moves.seen(journey)
        stale = 0
        while stale < _STALE and (found.tightness or 0.0) < _REACHED:
            if self._clock() >= min(until, self._end):
                return False
            self._told(done)
            batch = [moves.changed(best) for _ in range(_BATCH)]
            journeys = self._try(batch)
            reached = [journey.longest.get(key, (-1, 0))[0] for journey in journeys]
            top = max(range(_BATCH), key=lambda index: (reached[index], -index))
            stale = 0 if reached[top] > latency else stale + 1
            if reached[top] > latency:
                best, latency = batch[top], reached[top]
                (journey,) = self._try([best], passages=True)
                moves.seen(journey)
        return True


def _shaken(draw: random.Random, offsets: Offsets, runs: ShortRuns) -> Offsets:
    """Offsets for a restart: about every third sender begins at another time."""
    return tuple(
        offset
        if draw.random() > 1 / 3
        else max(0, runs.critical - draw.randrange(min(sender.period, runs.critical)))
        for offset, sender in zip(offsets, runs.senders, strict=True)
    )


class _LinedUp:
    """Offsets at which frames that join the path of a flow reach each port just before its worst message does.

    With `blocked` all frames arrive almost together, each slightly before the last: a frame being sent is not
    interrupted. Without it, flows of one link follow one another at its rate.
    """

    def __init__(
        self,
        runs: ShortRuns,
        key: tuple[int, int],
        way: Way,
        *,
        blocked: bool,
        simulate: Callable[..., list[Journey]],
    ) -> None:
        self._runs, self._key, self._blocked = runs, key, blocked
        offsets = [runs.critical for _ in runs.senders]
        settled = {key[0]}
        for place, port in enumerate(way):
            (journey,) = simulate([tuple(offsets)], passages=True)
            worst = journey.longest.get(key)
            when = _came(journey, key[0], port[0], worst[1]) if worst is not None else None
            if when is None:
                break
            joining = [flow for flow in self._at(port) if flow not in settled]
            settled |= set(joining)
            for flow, shift in self._shifts(journey, joining, port, when, place):
                for index, sender in enumerate(runs.senders):
                    if sender.flow == flow:
                        offsets[index] = max(0, offsets[index] + shift)
        simulate([tuple(offsets)])
        self.offsets: Offsets = tuple(offsets)

    def _at(self, port: tuple[int, int]) -> Iterator[int]:
        """Flows that leave by a port."""
        for flow, receivers in self._runs.ways.items():
            if any(port in way for ways in receivers.values() for way in ways):
                yield flow

    def _shifts(
        self, journey: Journey, joining: Sequence[int], port: tuple[int, int], when: int, place: int
    ) -> Iterator[tuple[int, int]]:
        taken: dict[int, int] = {}
        bursts = {sender.flow: sender.burst for sender in self._runs.senders}
        earlier = _EARLIER
        for flow in joining:
            came = [
                (at, entry, length)
                for own, sequence, node, entry, at, length in journey.passages
                if own == flow and node == port[0] and sequence < bursts.get(flow, 1)
            ]
            if not came:
                continue
            at, entry, length = max(came)
            # Frames of one link arrive one after another, the last just in time.
            before = taken.get(entry, 0)
            if place and not self._blocked:
                own = self._runs.wire_time(port[0], entry, length) * bursts.get(flow, 1)
                taken[entry] = before + own
            yield flow, when - earlier - (0 if self._blocked else before) - at
            if self._blocked:
                earlier += _EARLIER


def _came(journey: Journey, flow: int, node: int, sequence: int) -> int | None:
    times = [
        at
        for own, number, at_node, _, at, _ in journey.passages
        if (own, number, at_node) == (flow, sequence, node)
    ]
    return min(times, default=None)


class _Moves:
    """Small changes of offsets, mostly of flows that share ports with a flow, sometimes of flows that meet those."""

    def __init__(self, runs: ShortRuns, key: tuple[int, int], draw: random.Random) -> None:
        self._runs, self._key, self._draw = runs, key, draw
        ports = {
            flow: {port for ways in receivers.values() for way in ways for port in way}
            for flow, receivers in runs.ways.items()
        }
        own = {port for way in runs.ways.get(key[0], {}).get(key[1], []) for port in way}
        near = {flow for flow, theirs in ports.items() if theirs & own}
        touched = set().union(*(ports[flow] for flow in near)) if near else set()
        far = {flow for flow, theirs in ports.items() if theirs & touched} - near
        self._own_nodes = [node for node, _ in (runs.ways.get(key[0], {}).get(key[1], []) or [()])[0]]
        self._near = [index for index, sender in enumerate(runs.senders) if sender.flow in near]
        self._far = [index for index, sender in enumerate(runs.senders) if sender.flow in far]
        self._alone = runs.has_phases_of_its_own
        self._came: dict[tuple[int, int], list[int]] = {}
        self._worst: dict[int, int] = {}

    def seen(self, journey: Journey) -> None:
        """Takes the times of the worst run so far, to move other frames to its worst message."""
        self._came = {}
        for flow, _, node, _, at, _ in journey.passages:
            self._came.setdefault((flow, node), []).append(at)
        sequence = journey.longest.get(self._key, (0, 0))[1]
        self._worst = {
            node: at
            for flow, number, node, _, at, _ in journey.passages
            if (flow, number) == (self._key[0], sequence)
        }

    def changed(self, offsets: Offsets) -> Offsets:
        """Random offsets near the given ones."""
        draw = self._draw
        new = list(offsets)
        if self._alone and draw.random() < 0.25:
            later = self._delta(max(sender.period for sender in self._runs.senders))
            return tuple(max(0, offset + later) for offset in new)
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            pool = self._far if self._far and draw.random() < 0.2 else self._near
            if not pool:
                break
            index = draw.choice(pool)
            sender = self._runs.senders[index]
            kind = draw.random()
            shift = self._meeting(sender.flow) if kind < 0.45 else None
            if shift is None:
                whole = kind < 0.55
                shift = draw.choice((-1, 1)) * sender.period if whole else self._delta(sender.period)
            new[index] = min(max(0, new[index] + shift), self._runs.critical + sender.period)
        return tuple(new)

    def _delta(self, period: int) -> int:
        size = round(math.exp(self._draw.uniform(math.log(_EARLIER), math.log(max(period, 2 * _EARLIER)))))
        return self._draw.choice((-1, 1)) * size

    def _meeting(self, flow: int) -> int | None:
        """The shift, ps, that moves a message of a flow to a node just before the worst message."""
        nodes = [node for node in self._worst if self._came.get((flow, node))]
        if flow == self._key[0] or not nodes:
            return None
        node = self._draw.choice(nodes)
        at = self._draw.choice(self._came[flow, node])
        return self._worst[node] - at - self._draw.choice((1, 1, 2, 5, 20)) * _EARLIER
