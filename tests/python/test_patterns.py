"""Counted measures against tiny references that follow the words of their standards, in whole numbers."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge.measures.metrics import patterns

flags = st.lists(st.booleans(), max_size=60)
orders = st.integers(0, 40).flatmap(lambda n: st.permutations(range(n)))
# Arrivals displaced by a few places, as networks do it, among full shuffles.
displaced = st.lists(st.integers(0, 12), max_size=80).map(
    lambda by: [k for _, k in sorted((k + shift, k) for k, shift in enumerate(by))]
)
arrivals = orders | displaced
times = st.lists(st.integers(0, 10_000), max_size=40).map(sorted)


def loss_periods(lost: list[bool]) -> list[int]:
    """RFC 3357, 5.4.2: a period begins with a lost message whose predecessor came, and ends with one that came."""
    found: list[int] = []
    before = False
    for gone in lost:
        if gone and not before:
            found.append(0)
        if gone:
            found[-1] += 1
        before = gone
    return found


@given(flags)
def test_loss_periods(lost: list[bool]) -> None:
    assert patterns.run_lengths(np.array(lost, dtype=bool)).tolist() == loss_periods(lost)


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=50))
def test_loss_distances(steps: list[tuple[int, bool]]) -> None:
    """Sequence numbers may be missing: a message that was never sent is no loss."""
    sequence = np.cumsum([by for by, _ in steps]).astype(np.int64)
    lost = [gone for _, gone in steps]
    numbers = [int(number) for number, gone in zip(sequence, lost, strict=True) if gone]
    wanted = [later - earlier for earlier, later in pairwise(numbers)]
    assert patterns.loss_distances(np.array(lost, dtype=bool), sequence).tolist() == wanted


@given(flags)
def test_clear_lengths_lie_between_loss_periods(lost: list[bool]) -> None:
    text = "".join("x" if gone else "." for gone in lost).strip(".")
    assert patterns.clear_lengths(np.array(lost, dtype=bool)).tolist() == [
        len(part) for part in text.split("x") if part
    ]


def extent(arrived: list[int], i: int) -> int:
    """RFC 4737, 4.2.1: for a reordered arrival i the largest i - j over the j before it with a higher number."""
    return max((i - j for j in range(i) if arrived[j] > arrived[i]), default=0)


@given(arrivals)
def test_reordering_extents(arrived: list[int]) -> None:
    found = patterns.reorder_extents(np.array(arrived, dtype=np.int64))
    assert found.tolist() == [extent(arrived, i) for i in range(len(arrived))]


def degree(arrived: list[int], i: int) -> int:
    """RFC 4737, 5: the largest n such that arrived[j] > arrived[i] for all j with i - n <= j < i."""
    n = 0
    while n < i and all(arrived[j] > arrived[i] for j in range(i - n - 1, i)):
        n += 1
    return n


@given(arrivals)
def test_n_reordering(arrived: list[int]) -> None:
    found = patterns.n_reordering(np.array(arrived, dtype=np.int64))
    assert found.tolist() == [degree(arrived, i) for i in range(len(arrived))]


def test_n_reordering_far_beyond_the_steps_taken_at_once() -> None:
    arrived = [*range(100, 300), *range(50, 100), 400, *range(50), 401]
    found = patterns.n_reordering(np.array(arrived, dtype=np.int64))
    assert found.tolist() == [degree(arrived, i) for i in range(len(arrived))]
    assert found.max() == 251


@given(times, st.data(), st.integers(1, 2000), st.integers(0, 3000), st.integers(1, 90))
def test_what_is_policed_is_what_a_token_account_refuses(
    at: list[int], data: st.DataObject, gap: int, jitter: int, lmax: int
) -> None:
    """An account of lmax (1 + jitter / gap) bytes, filled with lmax each gap; what it refuses is not charged."""
    sizes = data.draw(st.lists(st.integers(1, lmax), min_size=len(at), max_size=len(at)))
    largest = lmax * (1 + Fraction(jitter, gap))
    tokens, last = largest, None
    refused, early = patterns.policed(
        np.array(at, dtype=np.int64), np.array(sizes, dtype=np.int64), lmax, gap, jitter
    )
    for k, (now, size) in enumerate(zip(at, sizes, strict=True)):
        if last is not None:
            tokens = min(largest, tokens + Fraction(lmax * (now - last), gap))
        last = now
        assert bool(refused[k]) == (tokens < size)
        if tokens >= size:
            tokens -= size
    assert bool(refused.any()) == (int(early.max(initial=0)) > jitter)


@given(flags)
def test_outages_begin_with_the_second_failed_message(failed: list[bool]) -> None:
    down: list[bool] = []
    last: deque[bool] = deque(maxlen=1)
    for bad in failed:
        down.append(bad and (all(failed) or (bool(last) and last[0])))
        last.append(bad)
    found = patterns.outages(np.array(failed, dtype=bool))
    bridged = not all(failed)
    lengths = [length - bridged for length in loss_periods(failed) if length > bridged]
    assert found.down.tolist() == down
    assert (found.number, found.longest, found.messages) == (
        len(lengths),
        max(lengths, default=0),
        sum(lengths),
    )


@given(st.lists(st.integers(0, 30), max_size=80, unique=True), st.integers(0, 3))
@settings(max_examples=50)
def test_what_is_reordered_is_what_both_measures_say(arrived: list[int], n: int) -> None:
    """A message that is n-reordered for any n is reordered, and never farther than its extent."""
    each = np.array(arrived, dtype=np.int64)
    extents, degrees = patterns.reorder_extents(each), patterns.n_reordering(each)
    assert (degrees <= extents).all()
    assert ((degrees >= n) <= (extents >= n)).all()
