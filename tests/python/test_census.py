"""What is gathered of messages in parts is what they are at once: order of arrival, and values in buckets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.measures.metrics import arrivals, patterns
from wiregauge.measures.metrics.arrivals import Arrivals
from wiregauge.stats.buckets import Buckets

REACH = 32
messages = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 0, 7, 25, 60])), max_size=120)


@given(messages, st.lists(st.integers(0, 120), max_size=5))
def test_who_overtook_whom_is_the_same_in_parts(steps: list[tuple[int, int]], ends: list[int]) -> None:
    """Delays are short of what a number may be overtaken by, as tracking's window makes sure."""
    numbers = np.cumsum([step for step, _ in steps], dtype=np.int64)
    times = numbers * 5 + np.array([late for _, late in steps], dtype=np.int64)
    order = np.lexsort((numbers, times))
    degree, extents = patterns.n_reordering(numbers[order]), patterns.reorder_extents(numbers[order])
    late, came = np.flatnonzero(extents), times[order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "REACH", REACH)
        gathered = Arrivals()
        for part in np.split(np.arange(len(numbers)), sorted(min(end, len(numbers)) for end in ends)):
            gathered.take(numbers[part], times[part])
        gathered.finish()
    assert gathered.n_reordered == {n: int((degree >= n).sum()) for n in (1, 2, 3)}
    assert gathered.n_max == degree.max(initial=0)
    assert gathered.late_time_max == (
        int((came[late] - came[late - extents[late]]).max()) if len(late) else None
    )


sizes = st.one_of(st.integers(-3000, 3000), st.integers(-(10**13), 10**13), st.integers(0, 10**8))


@given(st.lists(sizes, min_size=1, max_size=100), st.lists(st.integers(0, 100), max_size=4))
def test_buckets_hold_every_rank_and_exact_extremes_and_sums(
    given_values: list[int], ends: list[int]
) -> None:
    buckets = Buckets()
    assert buckets.sketch() is None
    values = np.array(given_values, dtype=np.int64)
    for part in np.split(values, sorted(min(end, len(values)) for end in ends)):
        buckets.add(part)
    sketch = buckets.sketch()
    assert sketch is not None
    ascending = np.sort(values)
    assert (sketch.n, sketch.minimum, sketch.maximum) == (len(values), ascending[0], ascending[-1])
    assert sketch.mean == pytest.approx(sum(given_values) / len(values), abs=1e-9)
    scale = float(np.abs(values).max()) ** 2 * len(values)
    assert sketch.squared_deviations == pytest.approx(
        float(np.sum((values - sketch.mean) ** 2)), abs=1e-9 * scale
    )
    held = np.searchsorted(np.cumsum(sketch.count), np.arange(1, len(values) + 1))
    low, high = sketch.low[held], sketch.high[held]
    assert np.all((low <= ascending) & (ascending <= high))
    assert np.all(high - low <= np.maximum(np.abs(low), np.abs(high)) / 1000)
