"""The central 95 % interval about 0 of a mixture of normal distributions, for many mixtures at once.

The width is found by bisection, on a logarithmic scale, to 1/4096 of the way from the narrowest distribution's to the
widest's. Bisection compares twelve widths with the solution. So the solution is found first, by a step or two of
Halley's method, and decides all twelve; the distributions are evaluated only where a width lies too near it.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats import special

__all__ = ["half_widths"]

Floats = NDArray[np.float64]

_NORMAL = 1.959963984540054
_BEYOND = 0.025
"""Probability beyond one end of the interval."""
_DENSITY = 0.3989422804014327
"""Density of the normal distribution at its mean."""
_HALVINGS = 12
_NEAR = 1e-6
"""Relative distance from the solution below which the distributions are evaluated."""
_FEW = 8
"""The most rows for which a loop is faster than NumPy calls for all of them."""
_GOOD = 1e-7
"""Relative error of a solution that needs no further step."""
_TAIL_ERROR = 7e-9
"""A twenty-fifth of the relative error of the tail below: a solution counts as known to a hundred times its error."""
_TAIL_SCALE = 0.28
_TAIL = (
    0.1117038576,
    0.1116998026,
    0.1030846677,
    0.08363075927,
    0.07277516606,
    -0.006449571649,
    0.09242865438,
    -0.09359349895,
    0.02472007781,
)
"""Coefficients of a polynomial in t = 1 / (1 + 0.28 z), fitted for least relative error; the accuracy `_NEAR` is
enough."""


def half_widths(deviations: Floats, share: Floats) -> Floats:
    """The half-width, by row, that contains 95 % of a mixture of normal distributions about 0.

    A row has the deviation and the share of each distribution; those of share 0 are ignored.
    """
    part = share > 0
    low = _NORMAL * np.where(part, deviations, np.inf).min(axis=1)
    high = _NORMAL * np.where(part, deviations, 0.0).max(axis=1)
    end, error = _ends(deviations, share, low, high)
    near = np.maximum(_NEAR, 100 * error)
    if len(end) <= _FEW:
        each = zip(low.tolist(), high.tolist(), end.tolist(), near.tolist(), strict=True)
        widths, known = zip(*[_halvings(*one) for one in each], strict=True)
        found, close = np.array(widths), np.array(known)
    else:
        found, close = _all_halvings(low, high, end, near)
    for row in np.flatnonzero(close & (low < high)).tolist():
        found[row] = _halved(deviations[row][part[row]], share[row][part[row]])
    return found


def _halvings(low: float, high: float, end: float, near: float) -> tuple[float, bool]:
    """The result of bisection, and whether a width on the way is too near the solution `end` to be decided by it."""
    close = False
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        close = close or not abs(middle / end - 1) > near
        if middle < end:
            low = middle
        else:
            high = middle
    return high, close


def _all_halvings(low: Floats, high: Floats, end: Floats, near: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """`_halvings` of many rows at once."""
    close = np.zeros(len(end), dtype=np.bool_)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        close |= ~(np.abs(middle / end - 1) > near)
        outside = middle < end
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return high, close


def _ends(deviations: Floats, share: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The solutions with `_BEYOND` probability beyond them, and their relative errors after the last step."""
    inverse = 1 / deviations
    at = np.clip(_NORMAL * np.sqrt((share * deviations * deviations).sum(axis=1)), low, high)
    error = np.full(len(at), np.inf)
    for _ in range(2):
        rows = np.flatnonzero(~(error < _GOOD))
        if not len(rows):
            break
        some = slice(None) if len(rows) == len(at) else rows
        step, slope = _step(at[some], inverse[some], share[some])
        at[some] = np.clip(at[some] * np.exp(step), low[some], high[some])
        # Halley's method triples the digits with each step; the steeper, the less the tail's error matters.
        error[some] = np.maximum(np.abs(step) ** 3, _TAIL_ERROR / np.abs(slope))
    return at, error


def _step(at: Floats, inverse: Floats, share: Floats) -> tuple[Floats, Floats]:
    """The increment of the logarithm of `at`, by row; and the slope of the probability beyond, both logarithmic."""
    z = at[:, None] * inverse
    squares = z * z
    density = np.exp(-0.5 * squares)
    density *= share
    beyond = np.einsum("ij,ij->i", density, _tail(z))
    density *= z
    first = _DENSITY * density.sum(axis=1)
    slope = -first / beyond
    bend = (_DENSITY * np.einsum("ij,ij->i", density, squares) - first) / beyond
    # The logarithm over the logarithm is nearly straight.
    off = np.log(beyond / _BEYOND)
    step = -off / slope
    return np.clip(-off / (slope + 0.5 * (bend - slope * slope) * step), -0.5, 0.5), slope


def _tail(z: Floats) -> Floats:
    """The probability beyond `z` of a normal distribution over exp(-z^2 / 2); relative error 2e-7."""
    t = 1 / (1 + _TAIL_SCALE * z)
    found = np.full_like(t, _TAIL[-1])
    for factor in _TAIL[-2::-1]:
        found *= t
        found += factor
    found *= t
    return found


def _halved(deviations: Floats, share: Floats) -> float:
    low, high = _NORMAL * float(deviations.min()), _NORMAL * float(deviations.max())
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        if float(share @ special.ndtr(-middle / deviations)) > _BEYOND:
            low = middle
        else:
            high = middle
    return high
