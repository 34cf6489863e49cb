"""What a parameter of a study's model does to a result: how far it moves it, and whether it decides it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from wiregauge.measures.definitions.units import significant
from wiregauge.studies.laying import Laid
from wiregauge.studies.moving import SEED
from wiregauge.studies.sensitivity import Found, Sensitivity

_POINT: Final = re.compile(r", \d.*")
"""What a series has behind its name where it is of one load or one network."""
__all__ = [
    "Effect",
    "RowEffects",
    "effects_of",
    "falls_with",
    "moved_most",
    "rests_on",
    "row_effects",
    "row_sentence",
]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a cell comes to with one parameter at another value."""

    name: str
    to: str
    base: float | None
    ours: float | None
    unit: str
    before: Found
    result: Found

    @property
    def size(self) -> float:
        """By how much it moves, in the terms of `text`; endless where there is no figure any more."""
        if self.base is None or self.ours is None:
            return 0.0 if self.base is self.ours else inf
        change = abs(self.ours - self.base)
        return change if self.unit == "%" or not self.base else 100 * change / abs(self.base)

    @property
    def text(self) -> str:
        """By how much: a share of what it was; of shares, and of what was zero, the difference."""
        if self.base is None or self.ours is None:
            return "the same" if self.base is self.ours else "no figure"
        change = self.ours - self.base
        sign = "-" if change < 0 else "+"
        if not change:
            return "0"
        if self.unit == "%":
            return f"{sign}{significant(abs(change), 3)} points"
        if not self.base:
            return f"{sign}{significant(abs(change), 3)} {'µs' if self.unit == 'us' else self.unit}".strip()
        return f"{sign}{significant(100 * abs(change / self.base), 3)} %"


def effects_of(cell: Laid, found: Sensitivity | None) -> tuple[Effect, ...]:
    """Every move of the study with what the cell comes to; none of a cell that is not compared."""
    at = found.at(cell.key) if found is not None else None
    if found is None or at is None:
        return ()
    base, before = found.base.ours[at], found.base.results[at]
    return tuple(
        Effect(one.name, one.to, base, one.ours[at], cell.unit, before, one.results[at])
        for one in found.moved
    )


def moved_most(effects: Sequence[Effect], most: int = 2) -> tuple[tuple[Effect, ...], ...]:
    """The parameters that move a cell most, each at all of its values; none that moves it no further than a seed."""
    by_name: dict[str, list[Effect]] = {}
    for one in effects:
        by_name.setdefault(one.name, []).append(one)
    chance = _greatest(by_name.pop(SEED, []))
    moving = [some for some in by_name.values() if _greatest(some) > chance]
    return tuple(tuple(some) for some in sorted(moving, key=_greatest, reverse=True)[:most])


def _greatest(effects: Sequence[Effect]) -> float:
    return max((one.size for one in effects), default=0.0)


def rests_on(effects: Sequence[Effect]) -> str:
    """With which parameter a cell that holds would fail, or one that fails would hold; empty where with none."""
    other = _by_name(one for one in effects if one.result != one.before)
    if not other:
        return ""
    named = "; ".join(f"{name} at {', '.join(values)}" for name, values in other.items() if name != SEED)
    if SEED in other:
        seeds = f"another seed decides it ({', '.join(other[SEED])})"
        return f"{seeds}; so does {named}" if named else seeds
    if effects[0].before == "holds":
        return f"stands or falls with {named}" if len(other) == 1 else f"fails with {named}"
    return f"would hold with {named}"


def _by_name(effects: Iterable[Effect]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in effects:
        found.setdefault(one.name, []).append(one.to)
    return found


# -- rows: the cells of one series and statistic ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowEffects:
    """A row of a table of the paper: compared cells of one statistic and one series, at all its points (`, 50 %`)."""

    item: str
    series: str
    statistic: str
    roles: tuple[str, ...]
    cells: tuple[tuple[Effect, ...], ...]

    @property
    def name(self) -> str:
        """For the eye."""
        return ", ".join(filter(None, (self.series, self.statistic)))

    @property
    def holds(self) -> int:
        """Cells that hold with the tests as they are."""
        return sum(effects[0].before == "holds" for effects in self.cells)

    def holding(self) -> Mapping[tuple[str, str], int]:
        """By parameter and value: of the cells that hold, how many still do."""
        found: dict[tuple[str, str], int] = {}
        for effects in self.cells:
            for one in effects:
                found.setdefault((one.name, one.to), 0)
                found[one.name, one.to] += one.before == one.result == "holds"
        return found

    def greatest(self) -> Mapping[str, tuple[Effect, ...]]:
        """By parameter: the cell that it moves most, at each of its values."""
        found: dict[str, tuple[Effect, ...]] = {}
        for effects in self.cells:
            for some in moved_most(effects, most=len(effects)):
                if _greatest(some) > _greatest(found.get(some[0].name, ())):
                    found[some[0].name] = some
        return dict(sorted(found.items(), key=lambda one: -_greatest(one[1])))


@dataclass(frozen=True, slots=True)
class Fall:
    """A parameter at a value with which `left` of `holds` cells of a row still hold."""

    name: str
    to: str
    left: int
    holds: int

    @property
    def text(self) -> str:
        """A row stands or falls with what leaves fewer than half of its cells."""
        what = f"another seed ({self.to})" if self.name == SEED else f"{self.name} at {self.to}"
        if self.holds == 1:
            return f"stands or falls with {what}"
        left = f"{self.left} of {self.holds} hold"
        return f"stands or falls with {what}: {left}" if 2 * self.left < self.holds else f"{left} with {what}"


def row_effects(cells: Sequence[Laid], found: Sensitivity | None) -> tuple[RowEffects, ...]:
    """The rows that cells are of, in their order; none without what moves them."""
    rows: dict[tuple[str, str, str], list[tuple[str, tuple[Effect, ...]]]] = {}
    for cell in cells:
        if effects := effects_of(cell, found):
            series = _POINT.sub("", cell.key.series)
            rows.setdefault((cell.key.item, series, cell.key.statistic), []).append((cell.role, effects))
    return tuple(
        RowEffects(
            *key, tuple(dict.fromkeys(role for role, _ in some)), tuple(effects for _, effects in some)
        )
        for key, some in rows.items()
    )


def falls_with(row: RowEffects) -> tuple[Fall, ...]:
    """Where cells of a row that hold do no more, the most of them first: each parameter at its worst value."""
    worst: dict[str, Fall] = {}
    for (name, to), left in row.holding().items():
        if left < row.holds and (name not in worst or left < worst[name].left):
            worst[name] = Fall(name, to, left, row.holds)
    return tuple(sorted(worst.values(), key=lambda one: one.left))


def row_sentence(row: RowEffects, most: int = 3) -> str:
    """What moves a row most, and what it stands or falls with."""
    texts = [f"{row.holds} of {len(row.cells)} hold"] if len(row.cells) > 1 else []
    greatest = next(iter(row.greatest().values()), ())
    moving = ", ".join(f"{one.to}: {one.text}" for one in greatest)
    texts.append(
        f"moved most by {greatest[0].name} ({moving})" if greatest else "moved by none of the parameters"
    )
    texts += [one.text for one in falls_with(row)[:most]]
    return f"{row.name}: {'; '.join(texts)}" if row.name else "; ".join(texts)
