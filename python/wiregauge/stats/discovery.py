"""Which of many figures changed, with a stated share of false ones among those that are named.

Figures come in families (one figure at every point of a sweep). A family is asked first, all its members together; the
members of those families that changed are asked next, at a level lowered by the share of families that did not
(Benjamini and Bogomolov, J. R. Stat. Soc. B 76, 2014). Both steps control the false discovery rate (Benjamini and
Hochberg, J. R. Stat. Soc. B 57, 1995): of what is called changed, at most that share is expected not to have changed;
and where nothing changed at all, it bounds the chance that anything is called so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from wiregauge.stats import special
from wiregauge.stats.moments import Floats
from wiregauge.stats.twosample import Chance

_SURE, _NEVER = 1e-300, 0.99
"""Chances are kept between these two where they are added up: a discrete test says 1 as soon as nothing was seen."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What came of a family: its chance as a whole, whether it changed, and which of its members did."""

    chance: Chance
    found: bool
    members: tuple[bool, ...]


def discoveries(families: Sequence[Sequence[Chance]], rate: float) -> list[Discovery]:
    """What changed, at a false discovery rate of `rate`; members of a family are independent of each other."""
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
    """The chance (two-sided) below which a member is found even if it is the only one of all that changed."""
    return rate / max(families, 1) / max(members, 1) / (2 if members > 1 else 1)


def below(chances: Floats, rate: float) -> list[bool]:
    """The step-up rule: the greatest k with the k-th least chance at most `rate` k / m, and all up to that one."""
    m = len(chances)
    ascending = np.sort(chances)
    passed = np.flatnonzero(ascending <= rate * np.arange(1, m + 1) / max(m, 1))
    if not len(passed):
        return [False] * m
    return [bool(chance <= ascending[passed[-1]]) for chance in chances]


def together(members: Sequence[Chance]) -> Chance:
    """The chance of a family as a whole, in either direction.

    Twice the lesser of two: Simes' (Biometrika 73, 1986), which a single great change meets, and Stouffer's sum of
    normal scores (1949), which many small ones in one direction meet.
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
