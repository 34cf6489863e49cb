"""Recurring modes: what is planted is found with the right figures, and nothing is found where nothing recurs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from benchmarks.robot_modes import PLANTED, round_trips
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import binom

from chosen import also
from wiregauge import stats
from wiregauge.stats import recurrence
from wiregauge.stats.folding import laid_over, levelled, within
from wiregauge.stats.modes import FALSE_MODE, Bounded, Mode, cycle_medians, holds

Floats = NDArray[np.float64]
NOISES = ("white", "heavy", "clustered")


class Planted(Struct, frozen=True):
    """A mode to plant: times in s, height in units of the noise; `jitter` is the share of the period onsets vary by."""

    period: float
    duration: float
    height: float
    jitter: float = 0.0


def noise(rng: np.random.Generator, kind: str, n: int) -> Floats:
    """Noise of unit scale: normal, Student's t with 2 degrees, or first-order autoregressive with 0.9."""
    if kind == "white":
        return rng.normal(0, 1, n)
    if kind == "heavy":
        return rng.standard_t(2, n)
    made: Floats = lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], rng.normal(0, 1, n))
    return made


def plant(
    seed: int,
    kind: str,
    n: int,
    modes: tuple[Planted, ...] = (),
    *,
    step: float = 1e-3,
    irregular: bool = False,
) -> tuple[Floats, Floats]:
    """A series with modes planted at random starts."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, n * step, n)) if irregular else np.arange(n, dtype=np.float64) * step
    values = 100 + noise(rng, kind, n)
    for mode in modes:
        onsets = np.arange(rng.uniform(-mode.period, 0), t[-1] + mode.period, mode.period)
        onsets = onsets + rng.uniform(-mode.jitter, mode.jitter, len(onsets)) * mode.period
        last = np.searchsorted(onsets, t, side="right") - 1
        values = values + mode.height * ((last >= 0) & (t - onsets[np.maximum(last, 0)] < mode.duration))
    return t, np.asarray(values, dtype=np.float64)


PLANTINGS = (
    (Planted(1.0, 0.05, 5.0), False),
    (Planted(0.31, 0.021, 4.0), True),
    (Planted(0.9, 0.05, 6.0, jitter=0.02), False),
    (Planted(1.1, 0.0012, 25.0), False),
    (Planted(1.3, 0.2, 3.0), True),
)


def test_planted_modes_are_found_with_their_period_duration_and_height(thorough: bool) -> None:
    inside = {"period": 0, "duration": 0, "height": 0}
    total = 0
    for (mode, irregular), kind, seed in product(PLANTINGS, NOISES, range(3 if thorough else 1)):
        found = stats.find_modes(*plant(seed, kind, 20_000, (mode,), irregular=irregular)).modes
        case = f"{mode} in {kind} noise, seed {seed}: {found}"
        assert len(found) == 1, case
        assert found[0].period.value == pytest.approx(mode.period, rel=2e-3), case
        assert found[0].duration.value == pytest.approx(mode.duration, rel=0.12, abs=1.1e-3), case
        assert found[0].height.value == pytest.approx(mode.height, rel=0.25), case
        assert found[0].bands >= 0.8 * found[0].cycles, case
        assert found[0].p_value < FALSE_MODE, case
        total += 1
        for name in inside:
            bounded = getattr(found[0], name)
            inside[name] += bounded.low - 1e-9 <= getattr(mode, name) <= bounded.high + 1e-9
    # Nominal 95 %; what is still likely with 95 % is not refused.
    least = binom.ppf(0.001, total, 0.95)
    assert all(count >= least for count in inside.values()), (inside, total)


def test_weak_modes_are_found_though_no_single_value_shows_them() -> None:
    mode = Planted(1.0, 0.05, 1.0)
    found = [stats.find_modes(*plant(seed, "white", 20_000, (mode,))).modes for seed in range(6)]
    assert all(len(modes) == 1 for modes in found)
    assert all(modes[0].period.value == pytest.approx(1.0, rel=1e-3) for modes in found)
    covered = sum(modes[0].height.low <= 1.0 <= modes[0].height.high for modes in found)
    assert covered >= 4


@pytest.mark.parametrize("kind", NOISES)
def test_nothing_recurs_in_noise(kind: str, thorough: bool) -> None:
    """At most one in a hundred series has a false mode; of 150, more than 6 would speak against that (p < 0.001)."""
    named, rounds = 0, 150 if thorough else 40
    for seed in range(rounds):
        named += bool(stats.find_modes(*plant(9_000 + seed, kind, 1_500, irregular=seed % 2 == 1)).modes)
    assert named <= binom.ppf(0.999, rounds, FALSE_MODE)


def test_a_random_walk_a_step_and_a_drift_are_no_recurrence() -> None:
    rng = np.random.default_rng(5)
    t = np.arange(4_000, dtype=np.float64) * 1e-3
    walk = np.cumsum(rng.normal(0, 1, 4_000))
    step = rng.normal(0, 1, 4_000) + 30 * (t > 1.7)
    drift = 50 * t
    for values in (walk, step, drift, drift + rng.normal(0, 0.1, 4_000)):
        assert not stats.find_modes(t, np.asarray(values, dtype=np.float64)).modes


@pytest.mark.parametrize("kind", ["white", "heavy"])
def test_the_three_modes_of_the_robot_paper_are_told_apart(kind: str) -> None:
    """Ethernet UDP robot control 2016: long weak bands, single raised values, rare high ones; on a drift, shortened."""
    planted = (Planted(53.0, 2.5, 5.0), Planted(5.0, 0.01, 20.0), Planted(131.0, 0.1, 90.0))
    t, values = plant(3, kind, 120_000, planted, step=0.01)
    found = stats.find_modes(t, values + 0.01 * t).modes
    assert [mode.height.value for mode in found] == sorted((m.height.value for m in found), reverse=True)
    assert [mode.period.value for mode in found] == pytest.approx([131.0, 5.0, 53.0], rel=1e-3)
    assert [mode.duration.value for mode in found] == pytest.approx([0.1, 0.01, 2.5], rel=0.12, abs=0.011)
    assert [mode.height.value for mode in found] == pytest.approx([90.0, 20.0, 5.0], rel=0.05)


@pytest.mark.thorough
def test_a_day_of_round_trips_shows_its_three_modes_and_no_other() -> None:
    """24 hours at 10 Hz, a tenth of the robot's: wide and low, rare and high, and rarer; none stands before another."""
    t, took = round_trips(24, step=0.1)
    assert len(t) > recurrence.LONG
    found = stats.find_modes(t, took)
    periods = [mode.period.value for mode in found.modes]
    assert sorted(periods) == pytest.approx(sorted(period for period, _, _ in PLANTED), rel=1e-4), found.modes
    by_period = {round(mode.period.value): mode for mode in found.modes}
    for period, start, height in PLANTED:
        mode = by_period[round(period)]
        # Ten messages late by 15 to 150 µs are a ramp and no band: its middle is not its mean.
        assert mode.height.value == pytest.approx(height, rel=0.1 if period < 3600 else 0.9)
        assert (mode.start - start + period / 2) % period == pytest.approx(period / 2, abs=0.5)
    assert not found.apart[(t % 318.0 > 62) & (t % 318.0 < 73) & (t > 60)].any()


def test_nothing_recurs_in_noise_searched_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "LONG", 4_000)
    monkeypatch.setattr(recurrence, "GROUPS", 1_024)
    named = 0
    for seed, kind in product(range(20), NOISES):
        named += bool(stats.find_modes(*plant(7_000 + seed, kind, 9_000)).modes)
    assert named <= binom.ppf(0.999, 60, FALSE_MODE)


def test_parts_of_a_period_and_falls_are_no_modes() -> None:
    """At a half or a third of a true period the test finds the bands, too, but few cycles have one."""

    def mode(bands: int, low: float) -> Mode:
        known = Bounded(1.0, low, 2.0)
        return Mode(Bounded(106.0, 105.9, 106.1), known, known, 0.0, bands, 90, 1.0, 0.0, 1e-40)

    assert holds(mode(80, 0.5))
    assert not holds(mode(30, 0.5))
    assert not holds(mode(45, 0.5))
    assert not holds(mode(80, -0.1))


def test_values_in_bands_are_told_from_the_rest() -> None:
    t, values = plant(1, "white", 20_000, (Planted(1.0, 0.05, 8.0),))
    found = stats.find_modes(t, values)
    raised = values > 104
    assert found.apart[~raised].mean() > 0.9
    assert not found.apart[raised].any()
    assert found.modes[0].inside(t)[raised].all()
    assert not found.modes[0].inside(t)[found.apart].any()


@settings(max_examples=8)
@given(
    shift=st.floats(-1e6, 1e6),
    scale=st.floats(1e-3, 1e6),
    later=st.floats(-1e5, 1e5),
    seed=st.integers(0, 100),
)
def test_units_origin_and_order_do_not_matter(shift: float, scale: float, later: float, seed: int) -> None:
    t, values = plant(seed, "heavy", 6_000, (Planted(0.5, 0.04, 6.0),))
    mixed = np.random.default_rng(seed).permutation(len(t))
    (one,) = stats.find_modes(t, values).modes
    (other,) = stats.find_modes(t[mixed] + later, values[mixed] * scale + shift).modes
    assert other.period.value == pytest.approx(one.period.value, rel=1e-6)
    # Times are rounded where they are moved, and a value at the end of a window may then fall on its other side: that
    # is little beside what the figures leave open themselves.
    for told, expected, unit in ((other.duration, one.duration, 1.0), (other.height, one.height, scale)):
        open_to = (expected.high - expected.low) * unit / 2
        assert told.value == pytest.approx(expected.value * unit, rel=1e-3, abs=open_to / 4)
    assert other.bands == pytest.approx(one.bands, abs=1)


def test_what_is_missing_short_or_constant_has_no_modes() -> None:
    t, values = plant(2, "white", 20_000, (Planted(1.0, 0.05, 8.0),))
    values[::7] = np.nan
    found = stats.find_modes(t, values)
    assert len(found.modes) == 1
    assert found.n == np.isfinite(values).sum()
    assert not found.apart[::7].any()
    for n in (0, 1, 2, 63):
        assert not stats.find_modes(t[:n], values[:n]).modes
    assert not stats.find_modes(t, np.full(len(t), 3.0)).modes
    assert not stats.find_modes(np.zeros(100), np.arange(100.0)).modes


@given(st.floats(0.01, 5), st.floats(-3, 3), st.floats(0.001, 1), st.integers(1, 200))
def test_windows_of_all_cycles_hold_what_a_slow_search_finds(
    period: float, begin: float, share: float, n: int
) -> None:
    t = np.linspace(0, 3, n)
    length = share * period * 0.9
    index, cycle = within(t, begin, period, length)
    after = t[index] - begin - cycle * period
    assert (after >= -1e-9).all()
    assert (after <= length + 1e-9).all()
    slow = [k for k, at in enumerate(t) if 1e-9 < (at - begin) % period < length - 1e-9]
    assert set(slow) <= set(index.tolist())
    assert len(set(index.tolist())) == len(index)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_rows_laid_over_one_another_against_the_definition(
    rows: int, number: int, sums: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, shift = rng.normal(size=(rows, number)), rng.integers(-2 * number, 2 * number + 1, (sums, rows))
    found = laid_over(values, shift)
    for of, added in zip(shift, found, strict=True):
        for at in range(number):
            places = [(row, at + int(by)) for row, by in enumerate(of)]
            wanted = sum(values[row, place] for row, place in places if 0 <= place < number)
            assert added[at] == pytest.approx(wanted, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-1e6, 1e6), st.booleans()), max_size=60))
def test_medians_by_cycle_are_those_of_numpy(rows: list[tuple[int, float, bool]]) -> None:
    rows.sort(key=lambda row: row[0])
    cycle = np.array([row[0] for row in rows], dtype=np.int64)
    rise, chosen = (
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], bool),
    )
    cycles, medians = cycle_medians(rise, cycle, chosen)
    wanted = {int(of): float(np.median(rise[chosen & (cycle == of)])) for of in np.unique(cycle[chosen])}
    assert dict(zip(cycles.tolist(), medians.tolist(), strict=True)) == wanted


def test_a_series_of_which_a_mode_takes_every_value_is_searched_to_its_end() -> None:
    """A schedule whose latency repeats exactly leaves nothing once its band is removed."""
    t: Floats = np.arange(4_000, dtype=np.float64) * 1e6
    whole = levelled(t, np.tile(np.array([62e3, 162e3]), 2_000))
    nothing = whole.without(np.zeros(4_000, dtype=np.bool_))
    assert len(nothing.t) == 0
    assert nothing.coarse == ()


def gate_waits(send: int, gate: int, opened: int, n: int) -> tuple[Floats, Floats]:
    """Messages every `send` us before a gate that is open for `opened` us of every `gate`: when sent (s), wait (us)."""
    t = np.arange(n, dtype=np.int64) * send
    phase = t % gate
    return t / 1e6, np.where(phase < opened, 0, gate - phase).astype(np.float64)


BEATS = (
    (1000, 1100, 100), (1000, 1200, 100), (1000, 900, 300), (1000, 700, 100), (1000, 1250, 100), (1000, 1500, 100),
    (1000, 2000, 100), (1000, 1010, 100), (1000, 1700, 500), (500, 4000, 100), (2000, 3000, 100), (1000, 1600, 100),
    (250, 275, 25), (4000, 4400, 400), (500, 350, 50),
)  # fmt: skip
PARTS = (
    (1000, 1300, 200),
    (1000, 370, 50),
    (1000, 3900, 390),
    (2000, 850, 255),
    (1000, 4600, 2300),
    (500, 5300, 2650),
)
"""Here a part of the beat explains as much: the period of the gate, or what it looks like between messages."""


@pytest.mark.parametrize(("send", "gate", "opened"), BEATS)
@pytest.mark.parametrize(("n", "noise_us"), [(2_000, 0.0), (11_000, 0.0), (11_000, 5.0)])
def test_a_beat_of_two_periods_is_told_with_the_beat_and_no_multiple(
    send: int, gate: int, opened: int, n: int, noise_us: float
) -> None:
    t, waits = gate_waits(send, gate, opened, n)
    found = stats.find_modes(t, waits + np.random.default_rng(send + gate).normal(0, noise_us, n)).modes
    assert found
    beat = math.lcm(send, gate) / 1e6
    for mode in found:
        assert mode.period.value == pytest.approx(beat, rel=1e-3 + mode.duration.value / t[-1]), found
        assert mode.bands > 0.6 * mode.cycles


@pytest.mark.parametrize(("send", "gate", "opened"), PARTS)
@pytest.mark.parametrize("noise_us", [0.0, 5.0])
def test_no_multiple_of_a_beat_is_told_where_a_part_of_it_explains_as_much(
    send: int, gate: int, opened: int, noise_us: float
) -> None:
    t, waits = gate_waits(send, gate, opened, 11_000)
    found = stats.find_modes(t, waits + np.random.default_rng(send + gate).normal(0, noise_us, 11_000)).modes
    assert found
    parts = math.lcm(send, gate) / 1e6 / max(found, key=lambda mode: mode.height.value).period.value
    assert parts == pytest.approx(round(parts), rel=1e-3), found
    assert round(parts) >= 1


@pytest.mark.parametrize(("send", "gate"), [(1000, 1500), also(1000, 1100)])
def test_groups_of_a_long_series_make_no_multiple_of_a_short_beat(send: int, gate: int) -> None:
    n = recurrence.LONG + 100_000
    found = stats.find_modes(*gate_waits(send, gate, 100, n)).modes
    assert found
    for mode in found:
        assert mode.period.value == pytest.approx(math.lcm(send, gate) / 1e6, rel=1e-3), found


@pytest.mark.parametrize("pattern", [(474, 474, 551, 551, 573), (551, 474, 573, 551, 474), (0, 1), (0, 0, 1)])
def test_a_pattern_of_few_values_recurs_though_its_band_is_near_the_median(pattern: tuple[int, ...]) -> None:
    """A band that rises less above the median than it does above what is beside it."""
    values = np.asarray(np.resize(pattern, 125), dtype=np.float64)
    found = stats.find_modes(np.arange(125, dtype=np.float64) * 0.032, values).modes
    assert found
    for mode in found:
        assert mode.period.value == pytest.approx(0.032 * len(pattern), rel=1e-3), found


def test_every_second_band_that_is_higher_doubles_the_period() -> None:
    """Nor is a divisor told that explains less."""
    t, values = plant(3, "white", 20_000, (Planted(0.4, 0.02, 8.0),))
    start = stats.find_modes(t, values).modes[0].start
    taller = values + 12.0 * ((t - start) % 0.8 < 0.02)
    found = stats.find_modes(t, np.asarray(taller, dtype=np.float64)).modes
    assert found[0].period.value == pytest.approx(0.8, rel=1e-3)
    assert found[0].height.value == pytest.approx(20.0, rel=0.25)


def test_windows_with_more_values_are_not_higher_for_that() -> None:
    """Skewed values on a raster that beats with the windows: some hold one more, and the sum of more is no height."""
    t, took = round_trips(3.6, step=0.1)
    found = stats.find_modes(t, took).modes
    assert sorted(round(mode.period.value) for mode in found) in ([5, 318], [5, 318, 3600]), found
