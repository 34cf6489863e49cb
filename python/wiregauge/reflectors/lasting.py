"""A session without an end: each second by itself, and all of a stretch of time, in memory that does not grow.

A second has the packets that were sent in it. It is closed when the last of them has had its time for an answer; what
comes later is late, and its packet lost. Every stretch, the whole session among them, is the sum of the same seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.reflectors.directions import first_of
from wiregauge.reflectors.exchange import (
    ClockTold,
    Collected,
    classes_of,
    clock_told,
    collected_of,
    hops_of,
    late_of,
    own_times,
)
from wiregauge.reflectors.grading import Evidence, graded
from wiregauge.reflectors.limits import Limit
from wiregauge.reflectors.measured import Counts, Measured, Order
from wiregauge.reflectors.times import TIMES, Raw, raw_times, series_of_none, series_of_sketch
from wiregauge.stats.growing import Growing

__all__ = ["Follower", "Second", "Tally"]

_SECOND_NS = 1_000_000_000
_HALF_U32 = 1 << 31
_CUMULATIVE = (
    *("refused", "port_unreachable", "unreachable", "foreign", "too_short", "not_authentic", "not_asked"),
    *("too_late", "left_out", "without_times", "dropped", "clock_moved_ns"),
)


class Second(Struct, frozen=True):
    """A second whose packets have had their time."""

    begin_ns: int
    """Since 1970."""
    collected: Collected
    """Its packets and their answers; the counts of the sender are those since the second before."""
    raw: Raw
    reordered: int
    """Answers behind one to a later packet."""


class Follower:
    """Takes what the agent program tells, and closes seconds."""

    def __init__(self, order: Order) -> None:
        self._patience_ns = order.patience_ns
        self._sent: deque[list[int]] = deque()
        self._left: dict[int, int] = {}
        self._heard: dict[int, list[dict[str, Any]]] = {}
        self._next = self._greatest = -1
        """First packet that is not in a closed second, and the greatest that was answered."""
        self._reordered: set[int] = set()
        self._late = 0
        self._counts: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._last: tuple[int, int, int] | None = None

    @property
    def open(self) -> int:
        """Packets whose time for an answer is not over."""
        return len(self._sent)

    def take(self, told: dict[str, Any]) -> None:
        """Takes a line of the agent program."""
        self._sent.extend(told["sent"])
        for asked, at in told["left"]:
            self._left[asked] = at
        for row in told["heard"]:
            asked = row["asked"]
            if asked < self._next:
                self._late += 1
                continue
            if asked < self._greatest and asked not in self._heard:
                self._reordered.add(asked)
            self._greatest = max(self._greatest, asked)
            self._heard.setdefault(asked, []).append(row)
        self._counts = told.get("so_far", self._counts)

    def close(self, now_ns: int) -> Iterator[Second]:
        """The seconds whose packets have had their time at `now_ns`, since 1970."""
        while self._sent:
            begin = self._sent[0][1] // _SECOND_NS * _SECOND_NS
            if now_ns < begin + _SECOND_NS + self._patience_ns:
                return
            yield self._closed(begin, begin + _SECOND_NS)

    def rest(self, now_ns: int) -> Iterator[Second]:
        """At the end: the packets before the first whose answer may still come, in the seconds they were sent in."""
        decided = 0
        for asked, written, _ in self._sent:
            if asked not in self._heard and written + self._patience_ns > now_ns:
                break
            decided += 1
        for _ in range(len(self._sent) - decided):
            self._sent.pop()
        while self._sent:
            begin = self._sent[0][1] // _SECOND_NS * _SECOND_NS
            yield self._closed(begin, begin + _SECOND_NS)

    def _closed(self, begin: int, until: int) -> Second:
        sent, left, heard, reordered = [], [], [], 0
        # A clock that is set back puts packets before `begin`: they are of this second, too.
        while self._sent and self._sent[0][1] < until:
            packet = self._sent.popleft()
            asked = packet[0]
            sent.append(packet)
            if (at := self._left.pop(asked, None)) is not None:
                left.append([asked, at])
            heard += self._heard.pop(asked, [])
            if asked in self._reordered:
                self._reordered.remove(asked)
                reordered += 1
        self._next = sent[-1][0] + 1
        # Timestamps of packets of earlier seconds that came late are of no use.
        for asked in [one for one in self._left if one < self._next]:
            del self._left[asked]
        heard.sort(key=lambda row: row["arrived_ns"])
        collected = collected_of(sent, left, heard, self._since())
        raw = raw_times(collected, self._last)
        self._last = raw.last
        return Second(begin, collected, raw, reordered)

    def _since(self) -> dict[str, Any]:
        """The counts of the sender since the second before, and what it states of its clock now."""
        now, before = self._counts, self._before
        since = {name: now.get(name, 0) - before.get(name, 0) for name in _CUMULATIVE}
        since["too_late"] += self._late
        self._before, self._late = now, 0
        return now | since


class Directions:
    """In which direction packets were lost, doubled or overtaken, from the numbers of answers; see `directions`."""

    def __init__(self, before: tuple[int, int] | None = None) -> None:
        """`before`: number of the last packet before the stretch, and of its answer, if it had one."""
        self._before = before
        self._first: tuple[int, int] | None = before
        self._last: tuple[int, int] | None = before
        self._are_own = self._restarted = False
        self._twice = 0

    @property
    def last(self) -> tuple[int, int] | None:
        """Number of the last packet with an answer, and the greatest of an answer."""
        return self._last

    def add(self, answers: pl.DataFrame) -> None:
        """Adds the answers to the packets of a second."""
        if answers.is_empty():
            return
        asked = answers["asked"].to_numpy()
        # Numbers of answers have 32 bits; they are near those of their packets, unless one began with more.
        behind = (asked - answers["sequence"].to_numpy() + _HALF_U32) % (2 * _HALF_U32) - _HALF_U32
        numbers = asked - behind
        self._are_own = self._are_own or bool(behind.any())
        pairs = len(set(zip(asked.tolist(), numbers.tolist(), strict=True)))
        self._twice += pairs - len(first_of(asked))
        begun_anew = self._last is not None and int(numbers.max()) < self._last[1]
        self._restarted = self._restarted or begun_anew or len(first_of(numbers)) < pairs
        if self._first is None:
            self._first = int(asked.min()), int(numbers.min())
        self._last = int(asked.max()), int(numbers.max())

    def counts(self, counts: Counts, first_sent: int) -> Counts:
        """The counts with those of both directions; None: cannot be told."""
        told = replace(
            counts,
            lost_forward=None if counts.lost else 0,
            lost_backward=None if counts.lost else 0,
            duplicated_forward=None if counts.duplicated else 0,
            duplicated_backward=None if counts.duplicated else 0,
            reordered_forward=None if counts.reordered else 0,
            reordered_backward=None if counts.reordered else 0,
        )
        if self.numbering != "own" or self._first is None or self._last is None:
            return told
        (asked, number), (last_asked, last_number) = self._first, self._last
        forward = (last_asked - asked) - (last_number - number - self._twice)
        begin = asked + 1 if self._before is not None else asked
        # Before the first answer and behind the last one nothing is known.
        if begin == first_sent and last_asked == first_sent + counts.sent - 1 and 0 <= forward <= counts.lost:
            told = replace(told, lost_forward=forward, lost_backward=counts.lost - forward)
        return replace(
            told, duplicated_forward=self._twice, duplicated_backward=counts.duplicated - self._twice
        )

    @property
    def numbering(self) -> Literal["own", "as-sent", "restarted"] | None:
        """Numbers of the answers; None: there is no answer."""
        if self._last is None or self._last == self._before:
            return None
        return "restarted" if self._restarted else "own" if self._are_own else "as-sent"


class Tally:
    """All seconds of a stretch; `before` is the one that it follows."""

    def __init__(self, before: Tally | None = None) -> None:
        self._counts = Counts(0, 0, 0, None, None, 0, None, None, 0, None, None, 0)
        self._first_sent = self._epoch_ns = 0
        self._directions = Directions(None if before is None else before.end())
        self._times = {name: Growing() for name in TIMES}
        self._one_way = ""
        self._uncertainty: float | None = None
        self._steps, self._step_ns = 0, 0.0
        self._clock: ClockTold | None = None
        self._hops: list[int] = []
        self._classes: set[int] = set()
        self._own_times = self._all_times = self._late_ns = 0
        self._summary: dict[str, Any] = {}

    def add(self, second: Second) -> None:
        """Adds a second."""
        packets, answers = second.collected.packets, second.collected.answers
        if not self._counts.sent:
            self._first_sent, self._epoch_ns = int(packets["asked"][0]), int(packets["written_ns"][0])
        answered = answers["asked"].n_unique()
        counts = self._counts
        self._counts = replace(
            counts,
            sent=counts.sent + len(packets),
            answered=counts.answered + answered,
            lost=counts.lost + len(packets) - answered,
            duplicated=counts.duplicated + len(answers) - answered,
            reordered=counts.reordered + second.reordered,
            unusable=counts.unusable + second.raw.unusable,
        )
        self._directions.add(answers)
        self._add_times(second.raw, answered)
        told = clock_told(answers)
        if told is not None:
            self._clock = told if self._clock is None else _both(self._clock, told)
        hops = [*self._hops, *hops_of(answers)]
        self._hops = sorted({min(hops), max(hops)}) if hops else []
        self._classes.update(classes_of(answers))
        self._own_times += own_times(second.collected)
        self._all_times += len(packets) + len(answers)
        self._late_ns = max(self._late_ns, late_of(packets))
        summary = second.collected.summary
        self._summary = summary | {
            name: self._summary.get(name, 0) + summary.get(name, 0) for name in _CUMULATIVE
        }

    def _add_times(self, raw: Raw, answered: int) -> None:
        for name, values in raw.values.items():
            self._times[name].add(values.astype(float))
        self._steps += len(raw.steps)
        self._step_ns = max(self._step_ns, *raw.steps, 0.0)
        if answered and raw.reason:
            self._one_way = self._one_way or raw.reason
        if raw.uncertainty is not None:
            self._uncertainty = max(self._uncertainty or 0.0, raw.uncertainty)

    def end(self) -> tuple[int, int] | None:
        """Number of the last packet, and of its answer; None where it has none."""
        last = self._directions.last
        is_answered = last is not None and last[0] == self._first_sent + self._counts.sent - 1
        return last if is_answered else None

    @property
    def is_empty(self) -> bool:
        """Whether no packet was sent."""
        return not self._counts.sent

    def measured(
        self, order: Order, limits: Sequence[Limit], *, complete: bool = True, reasons: Sequence[str] = ()
    ) -> Measured:
        """The stretch so far, graded and judged as every session is."""
        counts = self._counts
        told = self._directions.counts(counts, self._first_sent)
        series = {
            name: series_of_none(self._one_way)
            if self._one_way and name in ("latency", "return_latency")
            else series_of_sketch(
                growing, self._uncertainty if name in ("latency", "return_latency") else None
            )
            for name, growing in self._times.items()
        }
        seen = Evidence(
            counts=told,
            numbering=self._directions.numbering,
            series=series,
            steps=self._steps,
            step_ns=self._step_ns,
            epoch_ns=self._epoch_ns,
            clock=self._clock,
            hops=self._hops,
            classes=sorted(self._classes),
            own_times=self._own_times,
            all_times=self._all_times,
            late_ns=self._late_ns,
            summary=self._summary,
        )
        return graded(order, seen, limits, complete=complete, reasons=reasons)


def _both(one: ClockTold, other: ClockTold) -> ClockTold:
    errors = [error for error in (one.error_ns, other.error_ns) if error is not None]
    return ClockTold(
        one.some_ptp or other.some_ptp,
        one.all_ptp and other.all_ptp,
        one.all_synchronised and other.all_synchronised,
        max(errors, default=None),
    )
