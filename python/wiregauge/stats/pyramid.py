"""Minimum, maximum and count of blocks of a series, so that any window of it is drawn exactly from few numbers.

A series is cut into blocks of `BLOCK` neighbours, and four blocks make one of the next level. A window uses the
coarsest blocks entirely inside it, finer ones at its edges, and finally the values themselves: the result is exact,
whatever the order of the instants. Values and instants are integers; elements without a value are only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "FACTOR",
    "NOTHING",
    "Blocks",
    "Columns",
    "Extremes",
    "Growing",
    "Values",
    "chain",
    "levels",
    "window",
]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

BLOCK = 256
"""Elements in a block of the finest level."""
FACTOR = 4
"""Blocks of a level that form one of the next."""
NEAR = 512
"""The greatest gap, in blocks, between two blocks that are read together: one read costs more than the gap."""
_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
NOTHING = (_MOST, _LEAST)
"""Minimum and maximum of a block without values."""


class Extremes(Struct, frozen=True):
    """Extremes of a series by block: the number of values, minimum and maximum, and their instants."""

    n: Integers
    least: Integers
    greatest: Integers
    least_at: Integers
    greatest_at: Integers


class Blocks(Struct, frozen=True):
    """One level: blocks in the order of the series, and the extremes of each of its measures.

    A block holds `count` elements, stored at `first` up to before `past`, with instants `begin` to `end`; `lost` and
    `unknown` count those that were lost, and those of unknown outcome.
    """

    first: Integers
    past: Integers
    count: Integers
    begin: Integers
    end: Integers
    lost: Integers
    unknown: Integers
    of: Mapping[str, Extremes]

    def __len__(self) -> int:
        return len(self.first)

    def chosen(self, which: Flags | Integers | slice) -> Blocks:
        """The selected blocks."""
        taken = {name: getattr(self, name)[which] for name in _COUNTED}
        return Blocks(
            **taken, of={name: _map(one, lambda column: column[which]) for name, one in self.of.items()}
        )


_COUNTED = ("first", "past", "count", "begin", "end", "lost", "unknown")


class Values(Struct, frozen=True):
    """Elements of a series: place, instant, outcome, and for each measure the value and whether it exists."""

    first: Integers
    at: Integers
    lost: Flags
    unknown: Flags
    of: Mapping[str, tuple[Integers, Flags | None]]

    def __len__(self) -> int:
        return len(self.at)

    def cut(self, which: Flags | Integers | slice) -> Values:
        """The selected elements."""
        return Values(
            self.first[which],
            self.at[which],
            self.lost[which],
            self.unknown[which],
            {name: (value[which], _some(known, which)) for name, (value, known) in self.of.items()},
        )

    def after(self, before: Values) -> Values:
        """The concatenation of `before` and these."""
        return Values(
            np.concatenate([before.first, self.first]),
            np.concatenate([before.at, self.at]),
            np.concatenate([before.lost, self.lost]),
            np.concatenate([before.unknown, self.unknown]),
            {name: _joined(before.of[name], own) for name, own in self.of.items()},
        )

    def single(self) -> Blocks:
        """Each element as a block of its own."""
        return _blocks(self, 1)


class Columns(Struct, frozen=True):
    """A window in columns, each exact for the `count` elements it covers, whose instants are `begin` to `end`.

    Empty columns are left out. Together they cover every element of the window exactly once.
    """

    count: Integers
    begin: Integers
    end: Integers
    lost: Integers
    unknown: Integers
    n: Integers
    least: Integers
    greatest: Integers
    least_at: Integers
    greatest_at: Integers

    def __len__(self) -> int:
        return len(self.count)


def _some(known: Flags | None, which: Flags | Integers | slice) -> Flags | None:
    """The selected flags; None where all are set, which saves reading them."""
    if known is None:
        return None
    chosen = known[which]
    return None if chosen.all() else chosen


def _map(one: Extremes, do: Callable[[Integers], Integers]) -> Extremes:
    return Extremes(*(do(getattr(one, part)) for part in Extremes.__struct_fields__))


def _joined(
    one: tuple[Integers, Flags | None], other: tuple[Integers, Flags | None]
) -> tuple[Integers, Flags | None]:
    values = np.concatenate([one[0], other[0]])
    if one[1] is None and other[1] is None:
        return values, None
    known = [np.ones(len(value), dtype=np.bool_) if flags is None else flags for value, flags in (one, other)]
    return values, np.concatenate(known)


# -- making ---------------------------------------------------------------------------------------------------


def _in_rows(column: Integers, size: int, fill: int) -> Integers:
    """A column as rows of `size`, the last padded with `fill`."""
    rest = -len(column) % size
    if rest:
        column = np.concatenate([column, np.full(rest, fill, dtype=column.dtype)])
    return column.reshape(-1, size)


def _set_in(flags: Flags, size: int, blocks: int) -> Integers:
    """The number of flags set in each block."""
    return np.bincount(np.flatnonzero(flags) // size, minlength=blocks).astype(np.int64, copy=False)


def _blocks(values: Values, size: int) -> Blocks:
    starts = np.arange(0, len(values), size)
    count = np.minimum(size, len(values) - starts).astype(np.int64)
    at = values.at
    found = {}
    for name, (value, known) in values.of.items():
        low = value if known is None else np.where(known, value, _MOST)
        high = value if known is None else np.where(known, value, _LEAST)
        # Few are missing.
        n = count if known is None else count - _set_in(~known, size, len(starts))
        found[name] = _extremes(n, _in_rows(low, size, _MOST), _in_rows(high, size, _LEAST), at, at)
    return Blocks(
        values.first[starts],
        values.first[starts + count - 1] + 1,
        count,
        _in_rows(at, size, _MOST).min(axis=1),
        _in_rows(at, size, _LEAST).max(axis=1),
        _set_in(values.lost, size, len(starts)),
        _set_in(values.unknown, size, len(starts)),
        found,
    )


def _extremes(n: Integers, low: Integers, high: Integers, low_at: Integers, high_at: Integers) -> Extremes:
    """The extremes of rows of values; the instants are in the same order, not in rows."""
    begin = np.arange(len(low)) * low.shape[1]
    # In a padded row the index of the extreme may be beyond the end.
    lowest, highest = begin + low.argmin(axis=1), begin + high.argmax(axis=1)
    last = len(low_at) - 1
    return Extremes(
        n,
        low.ravel()[lowest],
        high.ravel()[highest],
        low_at[np.minimum(lowest, last)],
        high_at[np.minimum(highest, last)],
    )


def _coarser(blocks: Blocks) -> Blocks:
    """The next coarser level."""

    def total(column: Integers) -> Integers:
        return np.asarray(_in_rows(column, FACTOR, 0).sum(axis=1))

    return Blocks(
        blocks.first[::FACTOR],
        _in_rows(blocks.past, FACTOR, _LEAST).max(axis=1),
        total(blocks.count),
        _in_rows(blocks.begin, FACTOR, _MOST).min(axis=1),
        _in_rows(blocks.end, FACTOR, _LEAST).max(axis=1),
        total(blocks.lost),
        total(blocks.unknown),
        {
            name: _extremes(
                total(one.n),
                _in_rows(one.least, FACTOR, _MOST),
                _in_rows(one.greatest, FACTOR, _LEAST),
                one.least_at,
                one.greatest_at,
            )
            for name, one in blocks.of.items()
        },
    )


def levels(finest: Blocks) -> list[Blocks]:
    """All levels of a series, the finest first, down to one block."""
    found = [finest]
    while len(found[-1]) > FACTOR:
        found.append(_coarser(found[-1]))
    return found


def chain(parts: Sequence[Blocks]) -> Blocks:
    """Concatenates blocks of the same measures."""
    if len(parts) == 1:
        return parts[0]
    counted = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COUNTED}
    return Blocks(
        **counted,
        of={
            name: Extremes(
                *(
                    np.concatenate([getattr(part.of[name], of) for part in parts])
                    for of in Extremes.__struct_fields__
                )
            )
            for name in parts[0].of
        },
    )


class Growing(Struct):
    """Builds the finest level of a series whose elements arrive in parts: `add` them, then `finish`. An element is held
    only until its block is full.
    """

    _parts: list[Blocks] = field(default_factory=list)
    _rest: Values | None = None

    def add(self, values: Values) -> None:
        """Appends elements."""
        if self._rest is not None:
            lacking = BLOCK - len(self._rest)
            self._rest = values.cut(slice(lacking)).after(self._rest)
            if len(self._rest) < BLOCK:
                return
            self._parts.append(_blocks(self._rest, BLOCK))
            values = values.cut(slice(lacking, None))
        whole = len(values) - len(values) % BLOCK
        if whole:
            self._parts.append(_blocks(values.cut(slice(whole)), BLOCK))
        self._rest = values.cut(slice(whole, None)) if whole < len(values) else None

    def finish(self) -> Blocks | None:
        """All blocks; None without elements."""
        if self._rest is not None:
            self._parts.append(_blocks(self._rest, BLOCK))
            self._rest = None
        return chain(self._parts) if self._parts else None


# -- asking ---------------------------------------------------------------------------------------------------


def window(
    pyramid: Sequence[Blocks],
    name: str,
    span: tuple[int, int],
    most: int,
    read: Callable[[int, int], Values],
) -> Columns:
    """The elements with an instant in [span[0], span[1]), in at most `most` columns of about equal time.

    With few elements (at most `2 * most`) each is a column of its own. `read` gives the elements of blocks of the
    finest level, from one number to before another.
    """
    begin, end = span
    pyramid = [replace(level, of={name: level.of[name]}) for level in pyramid]
    finest = pyramid[0]
    near = np.flatnonzero((finest.end >= begin) & (finest.begin < end))
    if int(finest.count[near].sum()) <= 2 * most:
        single = [values.single() for values in elements(finest, span, read)]
        if not single:
            return _no_columns()
        each = chain(single)
        return _columns(each.chosen(np.argsort(each.begin, kind="stable")), name, np.arange(len(each)))
    pieces: list[Blocks] = []
    open_blocks = np.arange(len(pyramid[-1]))
    shown = max(end - begin, 1) / most
    for place in range(len(pyramid) - 1, -1, -1):
        level = pyramid[place]
        first, last = level.begin[open_blocks], level.end[open_blocks]
        touched = (last >= begin) & (first < end)
        inside = touched & (first >= begin) & (last < end)
        # A block wider than a column would blur it: its parts are more precise.
        narrow = inside & (last - first < shown)
        if narrow.any():
            pieces.append(level.chosen(open_blocks[narrow]))
        rest = open_blocks[touched & ~narrow]
        if not place:
            pieces += [
                _gathered(values, _column_of(values.at, begin, shown, most))
                for values in _elements(rest, finest, begin, end, read)
                if len(values)
            ]
            break
        below = (rest[:, None] * FACTOR + np.arange(FACTOR)).ravel()
        open_blocks = below[below < len(pyramid[place - 1])]
    found = [piece for piece in pieces if len(piece)]
    if not found:
        return _no_columns()
    pieces_of = chain(found)
    return _columns(pieces_of, name, _column_of(pieces_of.begin, begin, shown, most))


def elements(finest: Blocks, span: tuple[int, int], read: Callable[[int, int], Values]) -> Iterator[Values]:
    """The elements with an instant in [span[0], span[1]), in parts, as they are stored; `read` as for `window`."""
    begin, end = span
    near = np.flatnonzero((finest.end >= begin) & (finest.begin < end))
    yield from (values for values in _elements(near, finest, begin, end, read) if len(values))


def _column_of(at: Integers, begin: int, shown: float, most: int) -> Integers:
    """The column of each instant."""
    return np.asarray(np.minimum(((at - begin) / shown).astype(np.int64), most - 1))


def _elements(
    blocks: Integers, finest: Blocks, begin: int, end: int, read: Callable[[int, int], Values]
) -> Iterator[Values]:
    """The elements of some blocks that lie in the window; neighbouring blocks are read together."""
    for run in np.split(blocks, np.flatnonzero(np.diff(blocks) > NEAR) + 1) if len(blocks) else ():
        first, past = int(run[0]), int(run[-1]) + 1
        values = read(first, past)
        inside = (values.at >= begin) & (values.at < end)
        if len(run) < past - first:
            own = np.zeros(past - first, dtype=np.bool_)
            own[run - first] = True
            inside &= np.repeat(own, finest.count[first:past])
        yield values if inside.all() else values.cut(inside)


def _gathered(values: Values, number: Integers) -> Blocks:
    """The elements of each column as one block; `number` is the column of each element."""
    if (number[1:] < number[:-1]).any():
        order = np.argsort(number, kind="stable")
        values, number = values.cut(order), number[order]
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    sizes = np.diff(np.append(starts, len(number)))
    found = {}
    for name, (value, known) in values.of.items():
        low, high = (
            value if known is None else np.where(known, value, nothing) for nothing in (_MOST, _LEAST)
        )
        least, greatest = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        found[name] = Extremes(
            sizes if known is None else np.add.reduceat(known, starts, dtype=np.int64),
            least,
            greatest,
            _first_of(low == np.repeat(least, sizes), values.at, starts),
            _first_of(high == np.repeat(greatest, sizes), values.at, starts),
        )
    return Blocks(
        values.first[starts],
        values.first[starts + sizes - 1] + 1,
        sizes,
        np.minimum.reduceat(values.at, starts),
        np.maximum.reduceat(values.at, starts),
        np.add.reduceat(values.lost, starts, dtype=np.int64),
        np.add.reduceat(values.unknown, starts, dtype=np.int64),
        found,
    )


def _columns(pieces: Blocks, name: str, number: Integers) -> Columns:
    """Columns from pieces; `number` is the column of each piece."""
    order = np.argsort(number, kind="stable")
    pieces, number = pieces.chosen(order), number[order]
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    own = pieces.of[name]
    least, greatest = np.minimum.reduceat(own.least, starts), np.maximum.reduceat(own.greatest, starts)
    sizes = np.diff(np.append(starts, len(number)))
    return Columns(
        np.add.reduceat(pieces.count, starts),
        np.minimum.reduceat(pieces.begin, starts),
        np.maximum.reduceat(pieces.end, starts),
        np.add.reduceat(pieces.lost, starts),
        np.add.reduceat(pieces.unknown, starts),
        np.add.reduceat(own.n, starts),
        least,
        greatest,
        _first_of(own.least == np.repeat(least, sizes), own.least_at, starts),
        _first_of(own.greatest == np.repeat(greatest, sizes), own.greatest_at, starts),
    )


def _first_of(is_it: Flags, at: Integers, starts: Integers) -> Integers:
    """The earliest instant in each column at which the flag is set."""
    return np.asarray(np.minimum.reduceat(np.where(is_it, at, _MOST), starts))


def _no_columns() -> Columns:
    return Columns(*(np.zeros(0, dtype=np.int64) for _ in Columns.__struct_fields__))
