"""Patterns in the outcomes of messages: runs of losses, reordering, early frames. Exact counts, on whole arrays.

Every function takes arrays in a stated order and knows no flow and no table; the tests compare each with a slow one
that follows the words of the standard.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

STEPS = 16
"""Number of neighbours compared for all messages at once; messages displaced farther are followed one by one."""


def run_lengths(flags: Flags) -> Integers:
    """Lengths of the runs of consecutive True, in order."""
    padded = np.concatenate([[False], flags, [False]])
    change = np.flatnonzero(padded[1:] != padded[:-1])
    return (change[1::2] - change[::2]).astype(np.int64)


def loss_distances(lost: Flags, sequence: Integers) -> Integers:
    """Differences of the sequence numbers of successive losses (RFC 3357, 5.4.1); the first loss has none."""
    return np.diff(sequence[lost])


def clear_lengths(lost: Flags) -> Integers:
    """Messages between successive loss periods (RFC 3357, 6.4, without the lost one that ends them)."""
    inside = ~lost
    hits = np.flatnonzero(lost)
    return run_lengths(inside[hits[0] : hits[-1]]) if len(hits) else np.empty(0, dtype=np.int64)


def reorder_extents(arrived: Integers) -> Integers:
    """Extent of every arrival (RFC 4737, 4.2.1); `arrived` holds sequence numbers in the order of arrival.

    The distance, in arrivals, back to the earliest one with a higher sequence number; 0 for a message that is not
    reordered.
    """
    if not len(arrived):
        return np.empty(0, dtype=np.int64)
    highest = np.maximum.accumulate(arrived)
    place = np.arange(len(arrived))
    late = arrived < highest
    extents = np.zeros(len(arrived), dtype=np.int64)
    # The running maximum never falls, so the earliest higher number is where it first exceeds this one.
    extents[late] = place[late] - np.searchsorted(highest, arrived[late], side="right")
    return extents


def n_reordering(arrived: Integers) -> Integers:
    """The largest n for which every arrival is n-reordered (RFC 4737, 5); 0 where it is for none.

    A message is n-reordered when the n arrivals directly before it all have higher sequence numbers: with n = 3 it
    looks lost to a TCP receiver.
    """
    count = len(arrived)
    found = np.zeros(count, dtype=np.int64)
    active = np.flatnonzero(arrived[1:] < arrived[:-1]) + 1
    for step in range(1, STEPS + 1):
        if not len(active):
            return found
        before = active - step
        higher = (before >= 0) & (arrived[np.maximum(before, 0)] > arrived[active])
        active = active[higher]
        found[active] = step
    if len(active):
        _follow(arrived.tolist(), set(active.tolist()), found)
    return found


def _follow(arrived: list[int], wanted: set[int], found: Integers) -> None:
    """The nearest smaller number before each of `wanted`, by one pass with a stack: linear however far it lies."""
    stack: list[int] = []
    for place, number in enumerate(arrived):
        while stack and arrived[stack[-1]] > number:
            stack.pop()
        if place in wanted:
            found[place] = place - (stack[-1] if stack else -1) - 1
        stack.append(place)


def policed(times: Integers, charged: Integers, lmax: int, bag: int, jitter: int) -> tuple[Flags, Integers]:
    """The frames a token account refuses, and how much too early each came, in the unit of the times.

    The account starts with `lmax` (1 + jitter / bag) bytes, holds no more and gains `lmax` bytes each `bag`.
    A frame that costs no more than there is passes and is charged; one that costs more is refused and is not. `times`
    ascending. As virtual scheduling (ITU-T I.371) has it: an expected time that only conforming frames push on. By how
    much a frame comes before it is the jitter that would let it pass.
    """
    refused = np.zeros(len(times), dtype=bool)
    early = np.zeros(len(times), dtype=np.int64)
    if not len(times):
        return refused, early
    # An upper bound of the charge: where it refuses no frame, none is refused.
    cost = -(-charged * bag // lmax)
    before = np.cumsum(cost) - cost
    np.maximum(np.maximum.accumulate(times - before) + before + cost - bag - times, 0, out=early)
    if not (early > jitter).any():
        return refused, early
    # Exact, in units of a 1 / lmax of the times.
    expected = -(1 << 200)
    for k, (time, bytes_) in enumerate(zip(times.tolist(), charged.tolist(), strict=True)):
        now = time * lmax
        after = max(expected, now) + bytes_ * bag
        ahead = after - now - bag * lmax
        early[k] = max(0, -(-ahead // lmax))
        refused[k] = ahead > jitter * lmax
        if not refused[k]:
            expected = after
    return refused, early


class Outages(Struct, frozen=True):
    """Times without service, in messages: stretches of failed ones less the first, which the survival time bridges."""

    number: int
    longest: int
    messages: int
    down: Flags


def outages(failed: Flags) -> Outages:
    """The service is down from the second failed message of a stretch to the next good one (one message survives).

    Where no message was good nothing survived: it was never up.
    """
    down = failed.copy()
    if not failed.all():
        down[1:] &= failed[:-1]
        down[0] = False
    lengths = run_lengths(down)
    return Outages(len(lengths), int(lengths.max(initial=0)), int(lengths.sum()), down)
