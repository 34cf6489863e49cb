"""Changes of level and spread within a run: found where they were planted, and not in series that only look like it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from test_modes import NOISES, noise
from wiregauge import stats
from wiregauge.stats import levels
from wiregauge.stats.levels import FALSE_CHANGE


@pytest.mark.parametrize("kind", NOISES)
def test_a_planted_step_is_found_where_it_is(kind: str) -> None:
    covered = alone = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        values = noise(rng, kind, 8_000)
        place = int(rng.integers(2_000, 6_000))
        values[place:] += 2.5
        found = stats.level_changes(np.arange(8_000.0), values)
        levels = [change for change in found.changes if change.kind == "level"]
        alone += len(levels) == 1
        nearest = min(levels, key=lambda change: abs(change.at - place))
        assert nearest.at == pytest.approx(place, abs=250), (kind, seed, found)
        assert nearest.after - nearest.before == pytest.approx(2.5, abs=1.2)
        covered += nearest.low <= place <= nearest.high
    assert alone >= 14
    assert covered >= 12


def test_a_step_that_is_undone_and_a_wider_spread_are_both_found() -> None:
    rng = np.random.default_rng(4)
    t = np.arange(10_000, dtype=np.float64) * 1e-3
    values = rng.standard_t(2, 10_000)
    values[3_000:6_000] += 2
    values[8_000:] *= 4
    found = stats.level_changes(t, values)
    assert [change.kind for change in found.changes] == ["level", "level", "spread"]
    assert [change.at for change in found.changes] == pytest.approx([3.0, 6.0, 8.0], abs=0.05)
    assert found.changes[2].after / found.changes[2].before == pytest.approx(4, rel=0.3)
    assert found.slope is None


@pytest.mark.parametrize("kind", [*NOISES, "walking"])
def test_nothing_changes_in_stationary_noise(kind: str) -> None:
    """At most one in a hundred; neighbours that resemble each other (0.97) must not pass for a change."""
    named = 0
    for seed in range(150):
        rng = np.random.default_rng(700 + seed)
        n = 3_000
        if kind == "walking":
            values = np.convolve(rng.normal(size=n + 400), 0.97 ** np.arange(400), "valid")[:n]
        else:
            values = noise(rng, kind, n)
        named += bool(stats.level_changes(np.arange(float(n)), values).changes)
    assert named <= binom.ppf(0.999, 150, FALSE_CHANGE)


def test_a_drift_is_a_slope_and_no_step() -> None:
    rng = np.random.default_rng(1)
    t = np.arange(5_000, dtype=np.float64) * 1e-3
    for values in (20 * t, 20 * t + rng.normal(0, 1, 5_000)):
        found = stats.level_changes(t, values)
        assert found.slope == pytest.approx(20, rel=0.02)
        assert not found.changes
    stepped = stats.level_changes(t, 20 * t + rng.normal(0, 1, 5_000) + 30 * (t > 2))
    assert stepped.changes


def test_short_series_are_not_tested_and_say_so() -> None:
    found = stats.level_changes(np.arange(50.0), np.append(np.zeros(25), np.ones(25)))
    assert not found.tested
    assert not found.changes
    constant = stats.level_changes(np.arange(1_000.0), np.ones(1_000))
    assert constant.tested
    assert not constant.changes


def test_order_and_missing_values_do_not_matter() -> None:
    rng = np.random.default_rng(8)
    t = np.arange(4_000.0)
    values = rng.normal(size=4_000) + 3 * (t > 1_500)
    values[::11] = np.nan
    mixed = rng.permutation(4_000)
    assert stats.level_changes(t, values) == stats.level_changes(t[mixed], values[mixed])


@pytest.mark.parametrize("blocks", [16, 64, 256])
def test_the_table_of_chance_is_what_simulation_gives(blocks: int) -> None:
    scales, greatest = levels._null(blocks)
    again, ratios = levels.simulated(blocks)
    assert list(again) == list(scales)
    np.testing.assert_allclose(list(scales.values()), list(again.values()), rtol=1e-9)
    np.testing.assert_allclose(greatest, ratios, rtol=1e-9)
