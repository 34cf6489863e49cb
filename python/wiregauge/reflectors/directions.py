"""In which direction packets were lost, doubled or overtaken, from the numbers of packets and answers.

A stateful reflector numbers its answers itself, so that a packet lost on the way to it leaves no gap in them. Numbers
that are all the packets' own say nothing: the reflector copies them, or has missed no packet.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

__all__ = ["Directions", "directions"]

Ints = NDArray[np.int64]
Numbering = Literal["own", "as-sent", "restarted"]


class Directions(Struct, frozen=True):
    """Counts of both directions; None: cannot be told."""

    numbering: Numbering | None
    lost: tuple[int | None, int | None]
    duplicated: tuple[int | None, int | None]
    reordered: tuple[int | None, int | None]


def directions(sent: int, asked: Ints, numbers: Ints) -> Directions:
    """The directions of what befell `sent` packets, numbered from 0, from the answers in the order of their arrival.

    `asked` has the packet of each answer, `numbers` the answer's own number.
    """
    pairs = np.unique(np.column_stack([asked, numbers]), axis=0)
    answered = len(np.unique(asked))
    further = len(asked) - answered
    overtaken = behind(first_of(asked))
    none = (0, 0)
    untold = (None, None)
    numbering = _numbering(asked, numbers, pairs)
    if numbering != "own":
        return Directions(
            numbering,
            untold if sent > answered else none,
            untold if further else none,
            untold if overtaken else none,
        )
    twice_there = len(pairs) - answered
    order = np.argsort(numbers, kind="stable")
    return Directions(
        numbering,
        _lost(sent, asked, numbers, twice_there),
        (twice_there, further - twice_there),
        (behind(first_of(asked[order])), behind(first_of(numbers))),
    )


def first_of(values: Ints) -> Ints:
    """Values in their order, each where it comes first."""
    return values[np.sort(np.unique(values, return_index=True)[1])]


def behind(values: Ints) -> int:
    """Number of values behind a greater one."""
    return int((values < np.maximum.accumulate(values)).sum()) if len(values) else 0


def _numbering(asked: Ints, numbers: Ints, pairs: Ints) -> Numbering | None:
    if not len(asked):
        return None
    if np.array_equal(asked, numbers):
        return "as-sent"
    # One number for two packets: it began anew.
    return "restarted" if len(np.unique(numbers)) < len(pairs) else "own"


def _lost(sent: int, asked: Ints, numbers: Ints, twice_there: int) -> tuple[int | None, int | None]:
    """Packets lost there and back. None where the numbers leave it open."""
    total = sent - len(np.unique(asked))
    last, last_number = int(asked.max()), int(numbers.max())
    if last != sent - 1 or int(numbers.min()) > int(asked.min()):
        # Behind the last answer nothing is known; nor before the first, if the numbers did not begin with the session.
        return (0, 0) if total == 0 else (None, None)
    forward = sent - (last_number + 1 - twice_there)
    return (forward, total - forward) if 0 <= forward <= total else (None, None)
