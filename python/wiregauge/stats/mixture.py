"""The interval about 0 that holds 95 % of a mixture of normal distributions, for many mixtures at once.

The width is found to one part in 4096 of the way, on a logarithmic scale, from the narrowest distribution's to the
widest's, by halving. Halving asks twelve times on which side of the end a width lies. So the end itself is found
first, by two steps of Halley's method, and answers all twelve; the question is put to the distributions where a width
lies too near the end for that.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["half_widths"]

Floats = NDArray[np.float64]

_NORMAL = 1.959963984540054
_BEYOND = 0.025
"""What lies beyond one end."""
_DENSITY = 0.3989422804014327
"""Of the normal distribution at its mean."""
_HALVINGS = 12
_NEAR = 1e-6
"""Relative distance from the end below which a width is put to the distributions."""


def half_widths(deviations: Floats, share: Floats) -> Floats:
    """By row: the half-width that 95 % of a mixture of normal distributions about 0 lies within.

    A row has the deviation and the share of each distribution; those without a share are no part of the mixture.
    """
    part = share > 0
    low = _NORMAL * np.min(deviations, axis=1, initial=np.inf, where=part)
    high = _NORMAL * np.max(deviations, axis=1, initial=0.0, where=part)
    end, error = _ends(deviations, share, low, high)
    near = np.maximum(_NEAR, 100 * error)
    close = np.zeros(len(end), dtype=np.bool_)
    first = low, high
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        close |= ~(np.abs(middle / end - 1) > near)
        outside = middle < end
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    for row in np.flatnonzero(close & (first[0] < first[1])).tolist():
        high[row] = _halved(deviations[row][part[row]], share[row][part[row]])
    return np.asarray(high)


def _ends(deviations: Floats, share: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where `_BEYOND` is left beyond, and by how much the last step moved it, relatively."""
    inverse = 1 / deviations
    at = np.clip(_NORMAL * np.sqrt((share * deviations * deviations).sum(axis=1)), low, high)
    step = np.zeros(len(at))
    for _ in range(2):
        z = at[:, None] * inverse
        beyond = (share * special.ndtr(-z)).sum(axis=1)
        first = share * z * np.exp(-0.5 * z * z) * _DENSITY
        slope = -first.sum(axis=1)
        bend = (first * (z * z - 1)).sum(axis=1)
        # Of the logarithm over the logarithm, which is nearly straight.
        off = np.log(beyond / _BEYOND)
        slope, bend = slope / beyond, bend / beyond
        step = -off / slope
        step = np.clip(-off / (slope + 0.5 * (bend - slope * slope) * step), -0.5, 0.5)
        at = np.clip(at * np.exp(step), low, high)
    # Halley's method triples the digits with each step.
    return at, np.abs(step) ** 3


def _halved(deviations: Floats, share: Floats) -> float:
    low, high = _NORMAL * float(deviations.min()), _NORMAL * float(deviations.max())
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        if float(share @ special.ndtr(-middle / deviations)) > _BEYOND:
            low = middle
        else:
            high = middle
    return high
