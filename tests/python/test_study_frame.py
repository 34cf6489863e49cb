"""What studies may make of the course of a flow and of several cells, each against a course written here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from wiregauge import stats, studies
from wiregauge.figures.model import Bars, Scatter
from wiregauge.measures.metrics.judgement import Series
from wiregauge.stats.recurrence import resolution
from wiregauge.studies import Course, Measured, StudyError

Floats = NDArray[np.float64]
NOTHING = Measured(None, "", reason="it has not run")


def times(n: int, step: float = 0.01) -> Floats:
    return np.arange(n, dtype=np.float64) * step


def course(values: Floats, step: float = 0.01) -> Course:
    return Course("here", Series(times(len(values), step), values), NOTHING)


def holds(figure: Measured, true: float) -> bool:
    """Whether a true value lies in the interval of a figure, which it has to have."""
    assert figure.low is not None
    assert figure.high is not None
    return figure.low <= true <= figure.high


def comb(n: int, period: int, height: float, seed: int = 1) -> Floats:
    """Noise of unit scale with every `period`-th value raised."""
    values = 100 + np.random.default_rng(seed).normal(0, 1, n)
    values[period // 2 :: period] += height
    return values


def test_modes_of_a_course_are_figures_by_their_period() -> None:
    found = studies.recurring(course(comb(20_000, 100, 30.0)))
    assert (found.count.value, found.count.n) == (1.0, 20_000)
    period, height = found.period(1.0), found.height(1.0)
    assert period.unit == "ns"
    assert holds(period, 1e9)
    assert height.value == pytest.approx(30, abs=1)
    assert found.bands(1.0).value == 200
    assert found.highest(1.0).value == pytest.approx(33, abs=3)
    missing = found.period(5.0)
    assert missing.value is None
    assert "no mode has a period near 5 s; found: 1 s" in missing.reason


def test_a_course_that_there_is_not_gives_its_reason() -> None:
    absent = Course("part", None, NOTHING)
    found, left = studies.recurring(absent), studies.leaves(absent)
    figures = [
        found.count,
        found.period(1.0),
        found.highest(1.0),
        left.count,
        left.height,
        left.range_outside,
    ]
    assert {figure.reason for figure in figures} == {"it has not run"}
    assert studies.over_time("a", "A", {"one": absent}) == []
    assert studies.against_rarity("a", "A", {"one": absent}) == []
    assert studies.as_counts("a", "A", {"one": absent}, 10) == []


def sawtooth(n: int, every: int, height: float, slope: float, noise: float) -> Floats:
    """A level of 1000 that is left every so many values by a step which comes back by `slope` a value."""
    after = (np.arange(n) - every // 2) % every
    raised = np.where(np.arange(n) >= every // 2, np.maximum(height - slope * after, 0), 0)
    return 1000 + raised + np.random.default_rng(3).uniform(-noise, noise, n)


@pytest.mark.parametrize("noise", [0.0, 50.0])
def test_a_queue_that_fills_at_once_and_empties_slowly_is_seen(noise: float) -> None:
    found = studies.leaves(course(sawtooth(60_000, 10_000, 680.0, 0.5, noise)))
    assert found.count.value == 6
    assert found.height.value == pytest.approx(680, abs=0.15 * noise + 1)
    assert found.back_after.value == pytest.approx(1360, rel=0.03)
    assert found.slope.value == pytest.approx(0.5, rel=0.03)
    assert found.range_outside.value == pytest.approx(2 * noise, rel=0.05, abs=20)
    if noise:
        for figure, true in ((found.height, 680), (found.back_after, 1360)):
            assert holds(figure, true)


def test_noise_alone_leaves_no_level() -> None:
    rng = np.random.default_rng(7)
    for values in (rng.normal(0, 1, 50_000), rng.standard_t(3, 50_000), np.full(1_000, 3.0), np.zeros(2)):
        assert not stats.excursions(values).found


def test_a_line_through_cells_has_the_interval_of_the_regression() -> None:
    rng = np.random.default_rng(5)
    inside = {"slope": 0, "intercept": 0}
    for _ in range(200):
        points = [(x, Measured(4.9 * x + 813.3 + rng.normal(0, 1), "ns", 9)) for x in (5.0, 10, 30, 60, 100)]
        slope, intercept = studies.line(points, "m")
        assert (slope.unit, intercept.unit, slope.n) == ("ns/m", "ns", 9)
        for name, found, true in (("slope", slope, 4.9), ("intercept", intercept, 813.3)):
            inside[name] += holds(found, true)
    # 95 % of 200; fewer than 180 has a chance below 0.2 %, all 200 one below 0.01 %.
    assert all(180 <= count < 200 for count in inside.values()), inside


def test_a_line_says_what_it_lacks() -> None:
    here = Measured(1.0, "ns", 1)
    assert studies.line([(0.0, here), (1.0, NOTHING)], "m")[0].reason == "it has not run"
    assert studies.line([(0.0, here), (1.0, here)], "m")[0].low is None
    with pytest.raises(StudyError, match="one unit"):
        studies.line([(0.0, here), (1.0, Measured(1.0, "share", 1))], "m")
    with pytest.raises(StudyError, match="same x"):
        studies.line([(1.0, here), (1.0, here)], "m")


def test_least_and_greatest_keep_the_edges() -> None:
    one, other = Measured(3.0, "ns", 5, 2.0, 4.0, "one"), Measured(4.0, "ns", 7, 3.5, 6.0, "other")
    low, high = studies.least(one, other), studies.greatest(one, other)
    assert (low.value, low.low, low.high, low.n) == (3.0, 2.0, 4.0, 5)
    assert (high.value, high.low, high.high) == (4.0, 3.5, 6.0)
    assert studies.least(one, NOTHING).reason == "it has not run"


def test_values_on_a_grid_tell_its_step() -> None:
    rng = np.random.default_rng(2)
    assert resolution(np.floor(rng.normal(0, 9, 10_000)) * 250 + 7) == 250
    assert resolution(rng.normal(0, 9, 10_000)) == 0
    assert resolution(np.repeat([1.0, 17.0], 500)) == 0


def test_a_coarse_clock_widens_the_height_of_a_mode() -> None:
    values = np.floor(comb(20_000, 100, 30.0) / 0.25) * 0.25
    (mode,) = stats.find_modes(times(20_000), values).modes
    assert mode.height.high - mode.height.low >= 0.5


def test_a_ramp_is_within_the_interval_of_its_mode() -> None:
    """Ten values late by 15 to 150, as in the robot paper: the box at half its height has eight of them."""
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.3, 60_000)
    for begin in range(2_000, 60_000, 6_000):
        values[begin : begin + 10] += 15 * np.arange(1, 11)
    (mode,) = stats.find_modes(times(60_000), values).modes
    assert mode.period.value == pytest.approx(60, rel=1e-4)
    assert mode.duration.low <= 0.1 <= mode.duration.high
    assert mode.height.low <= 82.5 <= mode.height.high
    flat = rng.normal(0, 0.3, 60_000)
    for begin in range(2_000, 60_000, 6_000):
        flat[begin : begin + 10] += 80
    (box,) = stats.find_modes(times(60_000), flat).modes
    assert box.duration.high - box.duration.low < 0.03
    assert box.height.high - box.height.low < 1


def test_pictures_of_courses(tmp_path: Path) -> None:
    whole = {"one": course(comb(20_000, 100, 30.0))}
    (figure,) = studies.over_time("over", "Over time", whole, (0.0, 10.0))
    (trace,) = figure.panels[0].traces
    assert isinstance(trace, Scatter)
    assert trace.x.max() < 10
    assert len(studies.against_rarity("rare", "Rare", whole)) == 1
    (counts,) = studies.as_counts("counts", "Counts", {"one": course(np.array([10.0, 20, 20, 50]))}, 10)
    (bars,) = counts.panels[0].traces
    assert isinstance(bars, Bars)
    assert bars.height.tolist() == [1, 2, 0, 0, 1]
    known = studies.known(3.0, "ns", "here")
    assert studies.with_extremes("bars", "Bars", "m", [(1.0, known, known, NOTHING)]) == []
    assert len(studies.with_extremes("bars", "Bars", "m", [(1.0, known, known, known)])) == 1
