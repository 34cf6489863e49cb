"""Series looked at together have the figures that each has alone, and a mixture the width of its definition."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.metrics.batching import Batch, SeriesRequest
from wiregauge.measures.metrics.percentiles import percentiles
from wiregauge.stats.memory import flag_memories, flag_memory, memories, memory
from wiregauge.stats.mixture import half_widths

KINDS = ("independent", "wandering", "bursts", "steps", "constant", "alternating")


def near(found: float | None, expected: float | None) -> bool:
    """Whether two figures are one but for rounding, or none."""
    return found == expected if None in (found, expected) else found == pytest.approx(expected, rel=1e-9)


def series(kind: str, n: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Times in ns on a grid of ps."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=n)
    values = {
        "independent": drawn,
        "wandering": drawn.cumsum(),
        "bursts": rng.exponential(size=n) ** 3,
        "steps": np.round(drawn.cumsum() / 4) * 8,
        "constant": np.ones(n),
        "alternating": np.arange(n) % 2.0,
    }[kind]
    return np.rint(1e6 * values + 5e7) / 1000


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99)), min_size=1, max_size=9),
    st.integers(1, 400),
)
@settings(max_examples=60, deadline=None)
def test_what_a_row_remembers_does_not_depend_on_the_others(chosen: list[tuple[str, int]], n: int) -> None:
    rows = np.stack([series(kind, n, seed) for kind, seed in chosen])
    assert memories(rows) == [memory(row) for row in rows]
    above = rows > np.median(rows)
    assert flag_memories(above) == [flag_memory(row) for row in above]


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 9)), min_size=1, max_size=9),
    st.integers(1, 400),
)
@settings(max_examples=40, deadline=None)
def test_figures_asked_together_are_those_of_each_series(chosen: list[tuple[str, int]], n: int) -> None:
    """Also where a series lies a constant from another, and is not asked for what it remembers."""
    each = [series(kind, n, seed) for kind, seed in chosen]
    each += [each[0] + 1234.5]
    requests = [SeriesRequest(values, QUANTILES, spread=True) for values in each]
    for values, found in zip(each, Batch().statistics(requests), strict=True):
        ascending = np.sort(values)
        estimate = stats.mean_estimate(values)
        assert estimate is not None
        assert (found.n, found.minimum, found.maximum) == (n, ascending[0], ascending[-1])
        assert found.estimate.mean == estimate.mean
        assert near(found.estimate.half_width, estimate.half_width)
        assert found.estimate.n_effective == pytest.approx(estimate.n_effective, rel=1e-9)
        assert (found.sd, found.mad) == (stats.standard_deviation(values), stats.mad_of_ascending(ascending))
        for end, own in zip(found.sd_interval or (), stats.deviation_interval(values) or (), strict=True):
            assert near(end, own)
        for name, one in percentiles([values], ascending).items():
            other = found.percentiles[name]
            assert (other.value, other.low, other.high, other.needed) == (
                one.value,
                one.low,
                one.high,
                one.needed,
            ), name
            assert near(other.worth, one.worth)


def test_a_series_asked_alone_and_a_long_one_have_the_same_figures() -> None:
    values = series("wandering", 3_000, 1)
    requests = [SeriesRequest(values, QUANTILES, spread=True), SeriesRequest(values[:50], QUANTILES)]
    long, short = Batch().statistics(requests)
    assert (long.n, long.sd, short.n, short.sd) == (3_000, stats.standard_deviation(values), 50, None)


@given(st.integers(1, 40), st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_a_mixture_has_the_width_that_halving_finds(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    deviations = np.exp(rng.normal(size=(4, size)) * 2)
    share = rng.random((4, size)) * (rng.random((4, size)) < 0.7)
    share[:, 0] += 0.01
    share /= share.sum(axis=1)[:, None]
    for width, every, part in zip(half_widths(deviations, share), deviations, share, strict=True):
        own, weights = every[part > 0], part[part > 0]
        low, high = (1.959963984540054 * float(edge) for edge in (own.min(), own.max()))
        for _ in range(12):
            middle = sqrt(low * high)
            beyond = float(weights @ special.ndtr(-middle / own))
            low, high = (middle, high) if beyond > 0.025 else (low, middle)
        assert width == pytest.approx(high, rel=1e-12)
