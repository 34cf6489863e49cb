"""One mode or several: the number that is named, at its stated error rate, and the string it is read from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from test_modes import noise
from wiregauge import stats
from wiregauge.stats.modality import FALSE_PEAK, taut_string

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

SINGLE: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal": lambda rng, n: rng.lognormal(0, 1, n),
    "heavy": lambda rng, n: rng.standard_t(1.5, n),
    "rounded": lambda rng, n: np.round(rng.normal(0, 4, n)),
    "clustered": lambda rng, n: noise(rng, "clustered", n),
}


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_one_mode_is_not_taken_for_two(name: str) -> None:
    """The uniform distribution is the least favourable: there the stated rate is reached."""
    rng = np.random.default_rng(21)
    tries = 600 if name == "uniform" else 150
    wrong = sum(len(stats.peaks(SINGLE[name](rng, 600)).peaks) != 1 for _ in range(tries))
    assert wrong <= binom.ppf(0.999, tries, FALSE_PEAK)


@pytest.mark.parametrize(
    ("centres", "weights"),
    [((0.0, 6.0), (0.8, 0.2)), ((0.0, 6.0, 12.0), (0.5, 0.3, 0.2)), ((0.0, 40.0, 46.0), (0.7, 0.2, 0.1))],
)
def test_two_and_three_modes_are_named_with_place_and_weight(
    centres: tuple[float, ...], weights: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(9)
    right = inside = 0
    for _ in range(60):
        values = rng.choice(centres, 3_000, p=weights) + rng.normal(size=3_000)
        found = stats.peaks(values).peaks
        right += len(found) == len(centres)
        if len(found) == len(centres):
            assert [peak.position for peak in found] == pytest.approx(list(centres), abs=1.2)
            inside += all(p.weight_low <= w <= p.weight_high for p, w in zip(found, weights, strict=True))
    assert right >= 57
    assert inside >= 45


def test_levels_of_a_deterministic_network_are_modes_of_their_own() -> None:
    rng = np.random.default_rng(2)
    found = stats.peaks(rng.choice([22.8, 54.7, 1522.0], 900, p=[0.6, 0.3, 0.1]), resolution=0.001).peaks
    assert [peak.position for peak in found] == pytest.approx([22.8, 54.7, 1522.0])
    assert [peak.weight for peak in found] == pytest.approx([0.6, 0.3, 0.1], abs=0.05)
    (only,) = stats.peaks(np.full(100, 5.0)).peaks
    assert only.position == 5.0


def test_too_few_values_are_not_named() -> None:
    assert not stats.peaks(np.arange(19.0)).peaks
    assert not stats.peaks(np.full(50, np.nan)).peaks


@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=60), st.floats(0.001, 0.6))
def test_the_string_is_tied_at_its_ends_and_stays_in_its_band(steps: list[float], band: float) -> None:
    share = np.concatenate([[0.0], np.cumsum(steps)]) / sum(steps)
    x = np.arange(len(share), dtype=np.float64)
    edges, slopes = taut_string(x, share, band)
    heights = np.concatenate([[0.0], np.cumsum(slopes * np.diff(edges))])
    assert edges[0] == x[0]
    assert edges[-1] == x[-1]
    assert heights[-1] == pytest.approx(1.0)
    string = np.interp(x, edges, heights)
    assert (np.abs(string - share) <= band + 1e-9).all()
    # No line within the band that turns less often: a straight one is the string where it fits.
    straight = np.interp(x, [x[0], x[-1]], [0.0, 1.0])
    if (np.abs(straight - share) <= band).all():
        assert np.allclose(slopes, slopes[0])


@given(st.integers(1, 6), st.integers(0, 50))
def test_never_more_modes_than_values_there_are(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    atoms = np.cumsum(rng.uniform(2, 9, count))
    found = stats.peaks(rng.choice(atoms, 400), resolution=0.5)
    assert 1 <= len(found.peaks) <= count
    assert sum(peak.weight for peak in found.peaks) == pytest.approx(1.0)


def test_values_many_orders_apart_do_not_break_the_string() -> None:
    """As damaged timestamps have them: moved by the least, neighbours among the others fall together."""
    for least in (-9e18, -1e300):
        found = stats.peaks(np.concatenate([[least], np.arange(500.0), np.arange(500.0) + 0.25]))
        assert found.n == 1001


@given(st.integers(3, 14), st.floats(5.0, 5e4), st.integers(0, 10**6))
def test_a_comb_is_no_raster_where_the_resolution_is_known(teeth: int, spacing: float, seed: int) -> None:
    """Frames of a burst wait for none, one, two before them: equal gaps, and as many modes as values."""
    rng = np.random.default_rng(seed)
    values = 1e4 + np.rint(spacing * rng.integers(0, teeth, 300 * teeth))
    found = stats.peaks(values, resolution=1.0, n_effective=float(len(values)))
    assert len(found.peaks) == teeth
    assert all(peak.high - peak.low < 1.0 for peak in found.peaks)


@given(st.integers(0, 10**6), st.sampled_from([2.0, 16.0, 250.0]))
def test_a_raster_that_is_known_makes_no_modes(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.rint(rng.normal(0.0, 20 * step, 800) / step) * step
    assert len(stats.peaks(values, resolution=step).peaks) == 1
