"""Finds which of many figures changed, at a controlled false discovery rate.

Figures come in families (one figure at every point of a sweep). Families are tested first, each as a whole; then the
members of families that changed, at a level lowered by the share of families that did not
(Benjamini and Bogomolov, J. R. Stat. Soc. B 76, 2014). Both steps control the false discovery rate (Benjamini and
Hochberg, J. R. Stat. Soc. B 57, 1995): at most that share of reported changes is expected to be false;
and where nothing changed, it bounds the probability of any report.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from wiregauge.stats import special
from wiregauge.stats.moments import Floats
from wiregauge.stats.twosample import Chance

_SURE, _NEVER = 1e-300, 0.99
"""Limits of p-values when they are combined: a discrete test gives 1 as soon as nothing was seen."""


class Discovery(Struct, frozen=True):
    """The result for a family: its p-value as a whole, whether it changed, and which members did."""

    chance: Chance
    found: bool
    members: tuple[bool, ...]


def discoveries(families: Sequence[Sequence[Chance]], rate: float) -> list[Discovery]:
    """The changed families and members at a false discovery rate of `rate`; members of a family are independent."""
    chances = [together(members) for members in families]
    chosen = below(np.array([chance.both for chance in chances]), rate)
    share = rate * sum(chosen) / max(len(families), 1)
    return [
        Discovery(
            chance,
            found,
            tuple(below(np.array([member.both for member in members]), share))
            if found
            else (False,) * len(members),
        )
        for chance, found, members in zip(chances, chosen, families, strict=True)
    ]


def lone_level(rate: float, families: int, members: int) -> float:
    """The two-sided p-value below which a member is found even if nothing else changed."""
    return rate / max(families, 1) / max(members, 1) / (2 if members > 1 else 1)


def below(chances: Floats, rate: float) -> list[bool]:
    """The step-up rule: the greatest k with the k-th least p-value at most `rate` k / m, and all up to it."""
    m = len(chances)
    ascending = np.sort(chances)
    passed = np.flatnonzero(ascending <= rate * np.arange(1, m + 1) / max(m, 1))
    if not len(passed):
        return [False] * m
    return [bool(chance <= ascending[passed[-1]]) for chance in chances]


def together(members: Sequence[Chance]) -> Chance:
    """The p-values of a family as a whole, by direction.

    Twice the lesser of two: Simes' (Biometrika 73, 1986), sensitive to a single great change, and Stouffer's sum of
    normal scores (1949), sensitive to many small ones in one direction.
    """
    if len(members) == 1:
        return members[0]
    up, down = (
        np.array([getattr(member, way) for member in members], dtype=np.float64) for way in ("up", "down")
    )
    return Chance(_together(up), _together(down))


def _together(chances: Floats) -> float:
    m = len(chances)
    if m == 0:
        return 1.0
    simes = float((np.sort(chances) * m / np.arange(1, m + 1)).min())
    scores = -special.ndtri(np.clip(chances, _SURE, _NEVER))
    return min(1.0, 2 * min(simes, float(special.ndtr(-scores.sum() / sqrt(m)))))
