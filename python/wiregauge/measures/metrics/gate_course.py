"""Opening of a traffic class's gate at many instants, one per frame: by arithmetic, not by cycles.

A port's gate control lists (IEEE Std 802.1Q-2022, 8.6.9.1) repeat, each until the next one takes over. A day has 86
million cycles of a millisecond, but each list repeats up to the beginning of its last cycle, and then goes through its
entries once more, the last of them up to the change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.plan.tsn import PortSchedule

__all__ = ["GateCourse"]

Times = NDArray[np.int64]
_FIRST = int(np.iinfo(np.int64).min)
_NEVER = int(np.iinfo(np.int64).max)


class _Piece(Struct, frozen=True):
    """A piece of the gate's schedule from `begin` to `end`, ps of local time: repeated from `base` every `cycle`, or
    once."""

    begin: int
    end: int
    base: int
    cycle: int | None
    """Cycle time, ps; None: the state after the last of `starts` stays."""
    starts: Times
    """Start of each entry, ps from the beginning of the cycle."""
    opens: NDArray[np.bool_]
    """Whether the gate is open in each entry."""

    def _phases(self, at: Times) -> Times:
        since = at - self.base
        return since if self.cycle is None else since % self.cycle

    def is_open(self, at: Times) -> NDArray[np.bool_]:
        return self.opens[np.searchsorted(self.starts, self._phases(at), side="right") - 1]

    def next_closing(self, at: Times) -> Times:
        """The first closing after each instant within the piece, its beginning left out; else `_NEVER`."""
        before = np.roll(self.opens, 1)
        if self.cycle is None:
            before[0] = False
        closings = self.starts[before & ~self.opens]
        if not closings.size:
            return np.full(at.shape, _NEVER)
        phases = self._phases(at)
        place = np.searchsorted(closings, phases, side="right")
        if self.cycle is None:
            ahead = np.append(closings, _NEVER)[place]
            found = np.where(ahead == _NEVER, _NEVER, self.base + np.where(ahead == _NEVER, 0, ahead))
        else:
            found = at - phases + np.append(closings, closings[0] + self.cycle)[place]
        return np.where(found < self.end, found, _NEVER)


class GateCourse:
    """The gate of one traffic class at one port, by the local time in ps."""

    def __init__(self, lists: Sequence[PortSchedule], traffic_class: int) -> None:
        self._pieces = _pieces(lists, traffic_class)
        self._begins = np.array([piece.begin for piece in self._pieces], dtype=np.int64)
        self._first_closings = self._closings_from()

    def _closings_from(self) -> list[int]:
        """For each piece, the first closing at its beginning or later; one more entry at the end: `_NEVER`."""
        found = [_NEVER]
        for place in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[place]
            begin = np.array([piece.begin], dtype=np.int64)
            if place and self._pieces[place - 1].is_open(begin - 1)[0] and not piece.is_open(begin)[0]:
                first = piece.begin
            elif place:
                first = int(piece.next_closing(begin)[0])
            else:
                first = _NEVER  # nobody asks what was first of all
            found.append(found[-1] if first == _NEVER else first)
        return found[::-1]

    def _place(self, at: Times) -> NDArray[np.intp]:
        return np.searchsorted(self._begins, at, side="right") - 1

    def is_open(self, at: Times) -> NDArray[np.bool_]:
        """Whether the gate is open at each instant; at a change the new state counts."""
        found = np.empty(at.shape, dtype=np.bool_)
        places = self._place(at)
        for place, piece in enumerate(self._pieces):
            of_piece = places == place
            found[of_piece] = piece.is_open(at[of_piece])
        return found

    def next_closing(self, at: Times) -> Times:
        """The next closing of the gate after each instant; the largest integer: never."""
        found = np.empty(at.shape, dtype=np.int64)
        places = self._place(at)
        for place, piece in enumerate(self._pieces):
            of_piece = places == place
            own = piece.next_closing(at[of_piece])
            found[of_piece] = np.where(own == _NEVER, self._first_closings[place + 1], own)
        return found


def _pieces(lists: Sequence[PortSchedule], traffic_class: int) -> list[_Piece]:
    found: list[_Piece] = []
    for number, one in enumerate(lists):
        begin = one.base_time if number else _FIRST
        change = lists[number + 1].base_time if number + 1 < len(lists) else _NEVER
        if begin >= change:
            continue
        lengths = [entry.length for entry in one.entries]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        opens = np.array([traffic_class in entry.open for entry in one.entries], dtype=np.bool_)
        if change == _NEVER:
            found.append(_Piece(begin, change, one.base_time, one.cycle, starts, opens))
            continue
        last = one.base_time + (change - one.cycle_extension - one.base_time - 1) // one.cycle * one.cycle
        if number:
            last = max(last, one.base_time)
        if begin < last:
            found.append(_Piece(begin, last, one.base_time, one.cycle, starts, opens))
        found.append(_Piece(last, change, last, None, starts, opens))
    return found
