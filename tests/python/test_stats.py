"""Percentiles against exact arithmetic, intervals against their nominal coverage, shapes against their totals."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from math import ceil, comb, log

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import rankdata

from wiregauge import stats
from wiregauge.stats.dependence import inner
from wiregauge.stats.ranks import average_ranks

finite = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)
samples = st.lists(finite, min_size=1, max_size=200).map(lambda values: np.array(sorted(values)))
# Decimals as people write them: 0.5, 0.99, 0.9999.
shares = st.integers(0, 10_000).map(lambda k: k / 10_000)


@given(st.integers(1, 10_000), shares)
def test_rank_is_the_least_k_with_k_over_n_at_least_q(n: int, q: float) -> None:
    wanted = Fraction(str(q))
    k = stats.rank(n, q)
    assert Fraction(k, n) >= wanted
    assert k == 1 or Fraction(k - 1, n) < wanted


def test_a_binary_fraction_does_not_shift_the_rank() -> None:
    # 0.07 * 100 is 7.000000000000001 in binary: a careless ceiling takes the eighth value.
    assert ceil(0.07 * 100) == 8
    assert stats.rank(100, 0.07) == 7


def test_a_float_stays_a_decimal_where_its_binary_fraction_was_asked_before() -> None:
    # They are equal and hash alike: what remembers one must not answer for the other.
    binary = Fraction(0.07)
    assert binary == 0.07
    assert stats.rank(100, binary) == 8
    assert stats.rank(100, 0.07) == 7
    assert stats.rank(100, binary) == 8


@given(samples, shares)
def test_a_quantile_is_a_measured_value(values: np.ndarray, q: float) -> None:
    found = stats.quantile(values, q)
    assert found in values
    below = np.count_nonzero(values <= found)
    assert Fraction(int(below), len(values)) >= Fraction(str(q))


@pytest.mark.parametrize(("q", "needed"), [(0.5, 5), (0.9, 29), (0.99, 299), (0.999, 2995), (0.9999, 29956)])
def test_values_needed_for_a_percentile(q: float, needed: int) -> None:
    assert stats.samples_needed(q) == needed == ceil(log(0.05) / log(q))
    assert stats.supported(needed, q)
    assert not stats.supported(needed - 1, q)
    assert stats.largest_supported(needed) >= q > stats.largest_supported(needed - 1)


@given(st.integers(1, 60), st.integers(1, 99))
def test_rank_interval_has_the_coverage_it_claims(n: int, percent: int) -> None:
    """The coverage of [X(l), X(u)] is P(l <= B < u) for B binomial (n, q), here with whole numbers."""
    q = Fraction(percent, 100)
    found = stats.quantile_ranks(n, q)
    low, high = found.low or 0, found.high or n + 1
    exact = sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(low, high))
    assert exact >= Fraction(95, 100) - Fraction(1, 10**9)
    assert found.coverage == pytest.approx(float(exact), abs=1e-9)
    # No narrower: without either of its ends it would fall short.
    ends = [k for k in (low, high - 1) if low < high - 1]
    for k in ends:
        assert exact - comb(n, k) * q**k * (1 - q) ** (n - k) < Fraction(95, 100) + Fraction(1, 10**9)


def coverage(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


@pytest.mark.parametrize(("q", "n"), [(0.5, 1000), (0.9, 500), (0.99, 2000)])
def test_nominal_95_percent_of_quantile_intervals_cover_the_truth(q: float, n: int) -> None:
    rng = np.random.default_rng(1)
    truth = -np.log(1 - q)
    ranks = stats.quantile_ranks(n, q)
    assert ranks.low is not None
    assert ranks.high is not None
    hits = []
    for _ in range(3000):
        values = np.sort(rng.exponential(size=n))
        hits.append(bool(values[ranks.low - 1] <= truth <= values[ranks.high - 1]))
    assert 0.93 <= coverage(hits) <= 0.985


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_nominal_95_percent_of_mean_intervals_cover_the_truth(phi: float) -> None:
    """Also when neighbours resemble each other (AR(1)), where an interval with n would cover far less."""
    rng = np.random.default_rng(2)
    n, hits, naive = 2000, [], []
    for _ in range(1000):
        noise = rng.normal(size=n + 100)
        series = np.empty(n + 100)
        series[0] = noise[0]
        for k in range(1, n + 100):
            series[k] = phi * series[k - 1] + noise[k]
        estimate = stats.mean_estimate(series[100:])
        assert estimate is not None
        assert estimate.half_width is not None
        hits.append(abs(estimate.mean) <= estimate.half_width)
        naive.append(abs(estimate.mean) <= 1.96 * series[100:].std(ddof=1) / n**0.5)
    assert 0.93 <= coverage(hits) <= 0.985
    if phi:
        assert coverage(naive) < 0.85, "the naive interval must fail here, or this test shows nothing"


@given(st.integers(1, 400), st.data())
def test_share_bounds_solve_their_equation(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    bound = stats.share_bound(count, n)
    assert 0 <= bound.low <= count / n <= bound.high <= 1

    def at_most(k: int, p: float) -> float:
        return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))

    tail = 0.05 if bound.one_sided else 0.025
    if count < n:
        assert at_most(count, bound.high) == pytest.approx(tail, rel=1e-6)
    if count > 0:
        assert 1 - at_most(count - 1, bound.low) == pytest.approx(tail, rel=1e-6)


def test_rule_of_three() -> None:
    assert stats.share_bound(0, 3_000_000).high == pytest.approx(1e-6, rel=0.002)
    assert stats.share_bound(0, 0) == stats.ShareBound(0, 0, 0.0, 1.0, one_sided=False)
    with pytest.raises(ValueError, match="is not a count"):
        stats.share_bound(3, 2)


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=300).map(np.array), st.booleans())
@example(np.array([1.0, 1.0, 2.0, 377.0]), False)  # a kernel narrower than the grid
def test_density_integrates_to_the_share_it_shows(values: np.ndarray, log_axis: bool) -> None:
    shape = stats.density(values, log=log_axis)
    x = np.log10(shape.x) if log_axis else shape.x
    assert shape.n == len(values)
    assert shape.outside == 0
    assert (shape.y >= 0).all()
    assert np.sum(shape.y) * (x[1] - x[0]) == pytest.approx(1, abs=0.02)


def test_density_of_a_known_distribution_and_of_hidden_values() -> None:
    values = np.random.default_rng(4).normal(100, 5, 20_000)
    shape = stats.density(values)
    truth = np.exp(-0.5 * ((shape.x - 100) / 5) ** 2) / (5 * np.sqrt(2 * np.pi))
    assert np.abs(shape.y - truth).max() < 0.06 * truth.max()
    assert stats.density(values, span=(95.0, 105.0)).outside == np.count_nonzero(
        (values < 95) | (values > 105)
    )
    hidden = stats.density(np.array([-1.0, 0.0, 1.0, 10.0]), log=True)
    assert (hidden.n, hidden.outside) == (2, 2)
    assert len(stats.density(np.array([-1.0]), log=True).x) == 0
    assert np.isfinite(stats.density(np.full(10, 7.0)).y).all()


@given(samples)
def test_box_is_ordered_and_counts_what_it_leaves_out(values: np.ndarray) -> None:
    box = stats.box(values, most_outliers=4)
    assert box is not None
    assert box.low_whisker <= box.q1 <= box.median <= box.q3 <= box.high_whisker
    assert box.outside == np.count_nonzero((values < box.low_whisker) | (values > box.high_whisker))
    assert len(box.outliers) <= max(4, 1)
    if box.outside:
        extremes = {values[0], values[-1]} - {v for v in values if box.low_whisker <= v <= box.high_whisker}
        assert extremes <= set(box.outliers)
    assert stats.box(np.empty(0)) is None


@given(samples)
def test_tail_places_every_value_by_how_many_are_at_least_as_large(values: np.ndarray) -> None:
    shape = stats.tail(values, points=50)
    assert shape.value[-1] == values[-1]
    assert (np.diff(shape.one_in) > 0).all()
    for rarity, value in zip(shape.one_in, shape.value, strict=True):
        position = round(len(values) - len(values) / rarity)
        assert values[position] == value


@given(st.lists(finite, min_size=1, max_size=500).map(np.array), st.integers(2, 50))
def test_envelope_keeps_the_extremes(values: np.ndarray, most: int) -> None:
    t = np.arange(len(values), dtype=float)
    shape = stats.envelope(t, values, most)
    assert {values.min(), values.max()} <= set(shape.value)
    assert (np.diff(shape.t) > 0).all()
    assert len(shape.t) <= max(most, 2) + 2
    assert (shape.per_mark == 1) == (len(values) <= most)


@given(samples)
def test_histogram_loses_nothing(values: np.ndarray) -> None:
    shape = stats.histogram(values, np.array([-10.0, 0.0, 5.0, 100.0]))
    assert shape.counts.sum() + shape.below + shape.above == len(values)


def test_effective_n_is_n_without_and_less_with_correlation() -> None:
    rng = np.random.default_rng(5)
    white = rng.normal(size=4000)
    assert stats.effective_n(white) > 3000
    assert stats.effective_n(np.repeat(rng.normal(size=400), 10)) == pytest.approx(400, rel=0.4)
    assert stats.effective_n(np.full(10, 3.0)) == 10
    assert stats.mad(np.array([1.0, 2.0, 4.0])) == 1.0
    assert stats.mad(np.empty(0)) is None
    assert stats.standard_deviation(np.array([1.0])) is None
    assert stats.mean_estimate(np.empty(0)) is None


@given(st.integers(0, 40_000), st.integers(0, 2**32 - 1))
@example(20_000, 1)
def test_sums_of_products_are_exact_to_rounding(n: int, seed: int) -> None:
    a, b = np.random.default_rng(seed).integers(-(2**18), 2**18, size=(2, n)).astype(np.float64)
    assert inner(a, b) == float(sum((a * b).astype(np.int64).tolist()))


def test_figures_do_not_depend_on_the_number_of_cores() -> None:
    """NumPy's linear algebra divides long sums among its threads, and floating-point sums depend on their order."""
    script = (
        "import numpy as np; from wiregauge import stats; "
        "found = stats.mean_estimate(np.random.default_rng(1).normal(size=200_001).cumsum()[::7] % 13); "
        "print(found.half_width.hex(), found.n_effective.hex())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            check=True,
            capture_output=True,
        ).stdout
        for threads in ("1", "2", "4")
    }
    assert len(told) == 1


@given(samples)
def test_equal_values_share_the_mean_of_their_ranks(values: np.ndarray) -> None:
    assert average_ranks(values).tolist() == rankdata(values).tolist()


def test_what_every_command_imports_is_without_what_takes_long_to_import() -> None:
    code = "import sys, wiregauge.measures; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
