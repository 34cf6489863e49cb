"""Intervals between arrivals in blocks, from instants that come nearly in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.measures.metrics.columns import ascending
from wiregauge.stats.pyramid import Blocks, Growing, Values, chain

__all__ = ["COLUMNS", "Spaced"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

COLUMNS = {"receive_period": "rx_app", "bag_spacing": "tx_wire"}
"""The column of the message table that is sorted for each measure."""
HELD = 1 << 16
"""Number of instants that are held back, since one of a later batch may lie before them."""


class Spaced:
    """The finest blocks of one series: `take` its instants in parts, then `finish`.

    An instant earlier than more than `HELD` of those already taken makes it `disordered`: then all instants must be
    given again with `take_again`, and are held in memory.

    With `silences` two further elements hold the time for which sends were due before the first arrival and after the
    last, as in `open_silences`; each is a block of its own without rows, at the first arrival, and so long after the
    last.
    """

    def __init__(self, name: str, *, silences: bool) -> None:
        self._name = name
        self.disordered = False
        self._silences = silences
        self._growing = Growing()
        self._held: Integers = np.zeros(0, dtype=np.int64)
        self._all: list[Integers] = []
        self._given = 0
        self._last: int | None = None
        self._first: int | None = None
        self._due: list[int] = []
        self._met: list[int] = []
        self._missed = False

    def take(self, instants: Integers) -> None:
        """The instants of further messages."""
        if self.disordered or not len(instants):
            return
        held = ascending(instants)
        if len(self._held):
            together = np.concatenate([self._held, held])
            held = together if self._held[-1] <= held[0] else np.sort(together)
        if self._last is not None and held[0] < self._last:
            self.disordered = True
            return
        ready = max(len(held) - HELD, 0)
        self._give(held[:ready])
        self._held = held[ready:].copy()

    def take_again(self, instants: Integers) -> None:
        """Adds instants a second time, if the series is `disordered`."""
        if self.disordered:
            self._all.append(instants)

    def wait(self, due: Integers, known: Flags | None, came: Flags | None) -> None:
        """Adds due times of messages, where known, and whether they arrived; None: all did."""
        if not self._silences:
            return
        times = due if known is None else due[known]
        if came is not None:
            self._missed |= not came.all()
            met = due[came] if known is None else due[came & known]
        else:
            met = times
        self._due += _ends(times)
        self._met += _ends(met)

    def finish(self) -> Blocks | None:
        """All blocks; None of no element."""
        if self.disordered:
            self._growing, self._given, self._last, self._first = Growing(), 0, None, None
            self._held = np.sort(np.concatenate(self._all))
        self._give(self._held)
        begin, end = self._open()
        first, last = (self._first, self._last) if self._first is not None else (0, 0)
        assert last is not None  # with the first
        blocks = self._growing.finish()
        parts = [_silence(self._name, first, begin, 0)] if begin else []
        parts += [blocks] if blocks is not None else []
        parts += [_silence(self._name, last + end, end, self._given)] if end else []
        return chain(parts) if parts else None

    def of_blocks(
        self, blocks: Blocks, span: tuple[int, int], read: Callable[[int, int], Integers]
    ) -> Values:
        """The elements of blocks from one number to before another; `read` gives the instants from one to another."""
        begin, end = span
        found = []
        real = np.flatnonzero(blocks.past[begin:end] > blocks.first[begin:end]) + begin
        if len(real):
            found = [self._of_arrivals(blocks, int(real[0]), int(real[-1]) + 1, read)]
        before = [at for at in range(begin, end) if not len(real) or at < real[0]]
        after = [at for at in range(begin, end) if len(real) and at > real[-1]]
        for at in reversed(before):
            found.insert(0, _element(self._name, blocks, at))
        found += [_element(self._name, blocks, at) for at in after]
        joined = found[0]
        for part in found[1:]:
            joined = part.after(joined)
        return joined

    def _of_arrivals(
        self, blocks: Blocks, begin: int, end: int, read: Callable[[int, int], Integers]
    ) -> Values:
        real = blocks.past > blocks.first
        first, last = begin, end
        # Arrivals at one instant may lie in two blocks: a search by instants reads both.
        while first and real[first - 1] and blocks.end[first - 1] == blocks.begin[first]:
            first -= 1
        while last < len(blocks) and real[last] and blocks.begin[last] == blocks.end[last - 1]:
            last += 1
        instants = ascending(read(int(blocks.begin[first]), int(blocks.end[last - 1])))
        before = int(blocks.end[first - 1]) if first and real[first - 1] else None
        values = self._spaces(instants, before, int(blocks.first[first]))
        skipped = int(blocks.first[begin] - blocks.first[first])
        return values.cut(slice(skipped, skipped + int(blocks.past[end - 1] - blocks.first[begin])))

    def _give(self, instants: Integers) -> None:
        if not len(instants):
            return
        self._growing.add(self._spaces(instants, self._last, self._given))
        self._first = int(instants[0]) if self._first is None else self._first
        self._last = int(instants[-1])
        self._given += len(instants)

    def _open(self) -> tuple[int, int]:
        if not self._missed or not self._due:
            return 0, 0
        first, last = min(self._due), max(self._due)
        if not self._met:
            return 0, last - first
        return min(self._met) - first, last - max(self._met)

    def _spaces(self, instants: Integers, before: int | None, place: int) -> Values:
        """Instants in order as elements; without `before` the interval before the first is not known."""
        space = np.empty(len(instants), dtype=np.int64)
        space[1:] = instants[1:] - instants[:-1]
        space[0] = instants[0] - before if before is not None else 0
        known = None
        if before is None:
            known = np.ones(len(instants), dtype=np.bool_)
            known[0] = False
        nothing = np.zeros(len(instants), dtype=np.bool_)
        return Values(
            np.arange(place, place + len(instants)), instants, nothing, nothing, {self._name: (space, known)}
        )


def _ends(times: Integers) -> list[int]:
    return [int(times.min()), int(times.max())] if len(times) else []


def _silence(name: str, at: int, space: int, place: int) -> Blocks:
    where, length = np.array([at], dtype=np.int64), np.array([space], dtype=np.int64)
    nothing = np.zeros(1, dtype=np.bool_)
    one = Values(np.array([place]), where, nothing, nothing, {name: (length, None)}).single()
    return replace(one, past=one.first)


def _element(name: str, blocks: Blocks, at: int) -> Values:
    """A block of no rows as its one element."""
    one = blocks.chosen(slice(at, at + 1))
    nothing = np.zeros(1, dtype=np.bool_)
    return Values(one.first, one.begin, nothing, nothing, {name: (one.of[name].least, None)})
