"""Shifts of quantiles, means and shares: intervals that cover, with clusters, repeats and zero counts; steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import signal
from scipy import stats as scipy_stats

from chosen import also
from wiregauge import stats
from wiregauge.stats import Estimate, Sample, change_points, difference, reference, share

Floats = NDArray[np.float64]
REPEATS = 800

finite = st.floats(-1e9, 1e9, allow_nan=False)


def skewed(rng: np.random.Generator, n: int, correlation: float) -> Floats:
    """Latency-like values: log-normal, each resembling its neighbour, the same distribution for any correlation."""
    noise = rng.standard_normal(n + 300)
    chain = signal.lfilter([math.sqrt(1 - correlation**2)], [1, -correlation], noise)[300:]
    return np.asarray(np.exp(0.5 * chain))


def holds(estimate: Estimate, truth: float) -> bool:
    return (estimate.low is None or estimate.low <= truth) and (
        estimate.high is None or truth <= estimate.high
    )


@pytest.mark.parametrize(("correlation", "n"), [also(0.0, 3000), also(0.5, 3000), (0.7, 4000)])
def test_intervals_of_shifts_cover_the_truth_as_often_as_they_say(correlation: float, n: int) -> None:
    rng = np.random.default_rng(70)
    truth, figures = 0.3, (0.1, 0.5, 0.9, 0.99)
    covered = dict.fromkeys([*figures, "mean"], 0)
    for _ in range(REPEATS):
        base = Sample([skewed(rng, n, correlation)])
        new = Sample([skewed(rng, n, correlation) + truth])
        for q in figures:
            covered[q] += holds(difference(base.quantile(q, 0.95), new.quantile(q, 0.95)), truth)
        covered["mean"] += holds(difference(base.mean(0.95), new.mean(0.95)), truth)
    # 800 repeats of a true 95 % lie between 93.4 and 96.5 % 19 times in 20: below is what must never be. Above, the
    # doubt about the memory is in every interval, and most where few values, in few bunches, lie beyond the quantile:
    # 99.1 % at p10 and 98.4 % at p90 of 3000 values that resemble their neighbours by half. The middle has no excuse.
    shares = {name: count / REPEATS for name, count in covered.items()}
    assert all(share >= 0.93 for share in shares.values()), shares
    assert all(shares[name] <= 0.985 for name in (0.5, "mean")), shares
    assert all(shares[name] <= 0.9975 for name in (0.1, 0.9, 0.99)), shares


@pytest.mark.parametrize(("correlation", "n"), [also(0.8, 90), (0.95, 390)])
def test_shifts_of_series_worth_ten_values_are_covered(correlation: float, n: int) -> None:
    """Their memory comes out short unless it is freed from what the mean of the series takes off.

    Ten independent values hardly tell how long their memory is, and the intervals have that doubt in them: they are
    three to five times as wide as with the memory known, and hold the mean in 99 to 100 of 100. So not their coverage
    but their width has an upper bound; without one an interval of everything would pass.
    """
    rng = np.random.default_rng(71)
    covered = {"mean": 0, "p50": 0}
    widths = []
    for _ in range(1000):
        base, new = (Sample([skewed(rng, n, correlation)]) for _ in range(2))
        mean = difference(base.mean(0.95), new.mean(0.95))
        covered["mean"] += holds(mean, 0)
        covered["p50"] += holds(difference(base.quantile(0.5, 0.95), new.quantile(0.5, 0.95)), 0)
        widths.append(math.inf if mean.low is None or mean.high is None else mean.high - mean.low)
    assert all(count / 1000 >= 0.93 for count in covered.values()), covered
    # The autocovariance of the exponential of half a chain of unit variance, summed up to the variance of the mean.
    lag = np.arange(1, n)
    variance, others = (math.exp(0.25) * np.expm1(0.25 * correlation**k) for k in (0, lag))
    known = 2 * 1.96 * math.sqrt(2 * (variance + 2 * float((1 - lag / n) @ others)) / n)
    assert known < float(np.median(widths)) < 6 * known


def test_without_heeding_clusters_they_would_not() -> None:
    """The mutant of the test above: shuffled, clustered values promise what they cannot keep."""
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(200):
        one, other = (rng.permutation(skewed(rng, 3000, 0.9)) for _ in range(2))
        covered += holds(
            difference(Sample([one]).quantile(0.5, 0.95), Sample([other]).quantile(0.5, 0.95)), 0
        )
    assert covered / 200 < 0.7


@pytest.mark.parametrize(("p_base", "p_new", "n"), [(0.0, 0.005, 1000), (0.01, 0.02, 1000), (0.2, 0.25, 300)])
def test_intervals_of_differences_of_shares_cover(p_base: float, p_new: float, n: int) -> None:
    rng = np.random.default_rng(9)
    counts = rng.binomial(n, [p_base, p_new], (2000, 2))
    covered = sum(
        holds(difference(share(a, n, 0.95), share(b, n, 0.95)), p_new - p_base) for a, b in counts.tolist()
    )
    # Wilson's interval errs on the safe side where a count is almost always zero.
    assert 0.93 <= covered / 2000 <= (0.97 if p_base else 0.995)


def test_clustered_losses_are_counted_as_fewer_events() -> None:
    rng = np.random.default_rng(10)

    def bursts() -> NDArray[np.bool_]:
        return np.repeat(rng.random(300) < 0.1, 10)

    heeding = blind = 0
    for _ in range(300):
        flags = bursts(), bursts()
        clustered = max(stats.clustering([f]) for f in flags)
        counts = [int(f.sum()) for f in flags]
        heeding += holds(difference(*(share(count, 3000, 0.95, clustered) for count in counts)), 0.0)
        blind += holds(difference(*(share(count, 3000, 0.95) for count in counts)), 0.0)
    assert heeding / 300 > 0.93
    assert blind / 300 < 0.75


def test_shares_agree_with_scipy_and_with_the_published_example() -> None:
    for count, n in ((0, 29), (1, 30), (56, 70), (30, 30)):
        ours = share(count, n, 0.95)
        theirs = scipy_stats.binomtest(count, n).proportion_ci(0.95, "wilson")
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    # Newcombe 1998, table II, method 10: 56/70 less 48/80, and 0/10 less 0/20.
    found = difference(share(48, 80, 0.95), share(56, 70, 0.95))
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    none = difference(share(0, 20, 0.95), share(0, 10, 0.95))
    assert (none.low, none.high) == pytest.approx((-0.1611, 0.2775), abs=5e-5)


samples = hnp.arrays(np.float64, st.integers(2, 80), elements=finite)


@settings(max_examples=60)
@given(samples, samples, st.sampled_from([0.1, 0.5, 0.9]))
def test_a_shift_the_other_way_round_is_its_mirror(base: Floats, new: Floats, q: float) -> None:
    one, other = Sample([base]).quantile(q, 0.95), Sample([new]).quantile(q, 0.95)
    there, back = difference(one, other), difference(other, one)
    assert there.value == -back.value
    assert there.low == (None if back.high is None else pytest.approx(-back.high))
    assert there.high == (None if back.low is None else pytest.approx(-back.low))
    assert there.low is None or there.low <= there.value
    assert there.high is None or there.value <= there.high


@settings(max_examples=60)
@given(
    hnp.arrays(np.float64, st.integers(2, 80), elements=st.integers(-1000, 1000)),
    st.sampled_from([0.1, 0.5, 0.9]),
)
def test_more_confidence_is_never_a_narrower_interval(values: Floats, q: float) -> None:
    sample = Sample([values])
    for figure in (lambda level: sample.quantile(q, level), sample.mean):
        narrow, wide = figure(0.95), figure(0.999)
        assert wide.low is None or (narrow.low is not None and wide.low <= narrow.low)
        assert wide.high is None or (narrow.high is not None and wide.high >= narrow.high)


def test_an_interval_is_open_where_the_sample_has_nothing_extreme_enough() -> None:
    few = Sample([np.random.default_rng(1).permutation(np.arange(20.0))])
    assert few.quantile(0.5, 0.95).low is not None
    assert few.quantile(0.99, 0.95).high is None
    assert few.quantile(0.01, 0.95).low is None
    assert not few.supports(0.99)
    assert not few.supports(0.01)
    assert Sample([np.array([5.0])]).mean(0.95) == Estimate(5.0, None, None)
    with pytest.raises(ValueError, match="empty"):
        Sample([np.empty(0)])


def width(found: Estimate) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_repeats_that_differ_widen_the_interval_and_repeats_that_agree_do_not() -> None:
    rng = np.random.default_rng(11)
    alike = Sample([rng.normal(100, 1, 1000) for _ in range(4)])
    apart = Sample([rng.normal(100 + 5 * k, 1, 1000) for k in range(4)])
    for narrow, wide in (
        (alike.quantile(0.5, 0.95), apart.quantile(0.5, 0.95)),
        (alike.mean(0.95), apart.mean(0.95)),
    ):
        assert width(narrow) < 0.2
        assert width(wide) > 15


def coverage_over_runs(make: Callable[[np.random.Generator], list[Floats]]) -> float:
    rng = np.random.default_rng(12)
    found = [
        difference(Sample(make(rng)).quantile(0.5, 0.95), Sample(make(rng)).quantile(0.5, 0.95))
        for _ in range(300)
    ]
    return sum(holds(shift, 0.0) for shift in found) / 300


def test_intervals_cover_when_runs_differ_among_themselves() -> None:
    def noisy(rng: np.random.Generator) -> list[Floats]:
        return [rng.normal(rng.normal(0, 1), 1, 200) for _ in range(5)]

    assert coverage_over_runs(noisy) > 0.92


def test_all_judged_figures_together_raise_no_more_false_alarms_than_stated() -> None:
    """Twelve correlated quantiles of two equal samples, at the joint level: at most one comparison in twenty alarms."""
    rng = np.random.default_rng(13)
    quantiles = [k / 10 for k in range(1, 10)] + [0.95, 0.99]
    level = stats.simultaneous(0.95, len(quantiles))
    alarms = 0
    for _ in range(300):
        base, new = (Sample([skewed(rng, 1000, 0.3)]) for _ in range(2))
        shifts = [difference(base.quantile(q, level), new.quantile(q, level)) for q in quantiles]
        alarms += not all(holds(shift, 0.0) for shift in shifts)
    assert alarms / 300 <= 0.05


@pytest.mark.parametrize("own", [0.01, 3.0])
@pytest.mark.parametrize("n", [3, 6, 20])
def test_steady_histories_have_no_steps_at_the_stated_rate(n: int, own: float) -> None:
    """Scatter beyond what the values know of themselves (0.01), and scatter that they explain (3.0)."""
    rng = np.random.default_rng(14)
    halves = np.full(n, own)
    spread = 1.0 if own < 1 else own / 1.96
    alarms = sum(bool(change_points(rng.normal(50, spread, n), halves)) for _ in range(400))
    assert alarms / 400 <= 0.065


def test_planted_steps_are_found_where_they_are() -> None:
    rng = np.random.default_rng(15)
    for _ in range(20):
        levels = np.repeat([100.0, 112.0, 104.0], [8, 6, 9])
        assert change_points(levels + rng.normal(0, 0.8, 23), np.full(23, 0.5)) == [8, 14]


def test_a_step_within_the_instruments_error_is_none() -> None:
    values, halves = np.repeat([10.0, 11.0], 5), np.zeros(10)
    assert change_points(values, halves) == [5]
    assert change_points(values, halves, resolution=1.5) == []
    assert change_points(np.array([1.0, 9.0]), np.zeros(2)) == []
    with pytest.raises(ValueError, match="half-width"):
        change_points(values, halves[:3])


def test_a_reference_knows_how_runs_differ() -> None:
    steady = reference(np.array([10.0, 10.1, 9.9, 10.0]), np.full(4, 0.3), 0.95)
    assert steady.value == 10.0
    assert (steady.low, steady.high) == pytest.approx((9.7, 10.3))
    restless = reference(np.array([10.0, 14.0, 7.0, 12.0]), np.full(4, 0.3), 0.95)
    assert restless.low is not None
    assert restless.low < 2
    # Two runs that disagree say nothing about a third.
    two = reference(np.array([10.0, 14.0]), np.full(2, 0.3), 0.95)
    assert two.high is not None
    assert two.high > 40
    with pytest.raises(ValueError, match="at least one"):
        reference(np.empty(0), np.empty(0), 0.95)


@given(hnp.arrays(np.float64, st.integers(1, 500), elements=finite))
def test_an_empirical_distribution_keeps_its_ends_and_never_falls(values: Floats) -> None:
    shape = stats.ecdf(np.sort(values), 50)
    assert shape.value[0] == values.min()
    assert shape.value[-1] == values.max()
    assert shape.share[-1] == 1
    assert len(shape.value) <= 50
    assert (np.diff(shape.value) >= 0).all()
    for value, part in zip(shape.value, shape.share, strict=True):
        assert part <= np.mean(values <= value) + 1e-12


def test_a_spread_is_known_as_well_as_its_interval_says() -> None:
    rng = np.random.default_rng(16)
    held = sum(holds(Sample([rng.normal(50, 3, 500)]).deviation(0.95), 3.0) for _ in range(400))
    assert 0.92 <= held / 400 <= 0.98
    assert Sample([np.full(10, 4.0)]).deviation(0.95) == Estimate(0.0, 0.0, 0.0)
    assert Sample([np.array([4.0])]).deviation(0.95) == Estimate(0.0, None, None)
