"""The effect of a parameter of a study's model on a result: how far it moves it, and whether it changes the outcome."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from wiregauge.measures.definitions.units import significant
from wiregauge.studies.laying import Laid
from wiregauge.studies.moving import SEED
from wiregauge.studies.sensitivity import Found, Sensitivity

_POINT: Final = re.compile(r", \d.*")
"""The suffix of a series' name for one load or one network."""
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


class Effect(Struct, frozen=True):
    """The value and result of a cell with one parameter at another value."""

    name: str
    to: str
    base: float | None
    ours: float | None
    unit: str
    before: Found
    result: Found

    @property
    def size(self) -> float:
        """The size of the change in the terms of `text`; infinite where one of the figures is missing."""
        if self.base is None or self.ours is None:
            return 0.0 if self.base is self.ours else inf
        change = abs(self.ours - self.base)
        return change if self.unit == "%" or not self.base else 100 * change / abs(self.base)

    @property
    def text(self) -> str:
        """The change as text: relative; for shares and values that were zero, the difference."""
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
    """The effect of every move of the study on a cell; empty for a cell that is not compared."""
    at = found.at(cell.key) if found is not None else None
    if found is None or at is None:
        return ()
    base, before = found.base.ours[at], found.base.results[at]
    return tuple(
        Effect(one.name, one.to, base, one.ours[at], cell.unit, before, one.results[at])
        for one in found.moved
    )


def moved_most(effects: Sequence[Effect], most: int = 2) -> tuple[tuple[Effect, ...], ...]:
    """The parameters that move a cell most, at all their values; only those that move it more than a seed does."""
    by_name: dict[str, list[Effect]] = {}
    for one in effects:
        by_name.setdefault(one.name, []).append(one)
    chance = _greatest(by_name.pop(SEED, []))
    moving = [some for some in by_name.values() if _greatest(some) > chance]
    return tuple(tuple(some) for some in sorted(moving, key=_greatest, reverse=True)[:most])


def _greatest(effects: Sequence[Effect]) -> float:
    return max((one.size for one in effects), default=0.0)


def rests_on(effects: Sequence[Effect]) -> str:
    """The parameters with which the cell's outcome would differ, as text; empty where there is none."""
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


class RowEffects(Struct, frozen=True):
    """A row of a table of the paper: compared cells of one statistic and one series, at all its points (`, 50 %`)."""

    item: str
    series: str
    statistic: str
    roles: tuple[str, ...]
    cells: tuple[tuple[Effect, ...], ...]

    @property
    def name(self) -> str:
        """The row's name for display."""
        return ", ".join(filter(None, (self.series, self.statistic)))

    @property
    def holds(self) -> int:
        """The number of cells that hold with the tests unchanged."""
        return sum(effects[0].before == "holds" for effects in self.cells)

    def holding(self) -> Mapping[tuple[str, str], int]:
        """The number of cells that still hold, by parameter and value."""
        found: dict[tuple[str, str], int] = {}
        for effects in self.cells:
            for one in effects:
                found.setdefault((one.name, one.to), 0)
                found[one.name, one.to] += one.before == one.result == "holds"
        return found

    def greatest(self) -> Mapping[str, tuple[Effect, ...]]:
        """The effects on the cell that it moves most, by parameter."""
        found: dict[str, tuple[Effect, ...]] = {}
        for effects in self.cells:
            for some in moved_most(effects, most=len(effects)):
                if _greatest(some) > _greatest(found.get(some[0].name, ())):
                    found[some[0].name] = some
        return dict(sorted(found.items(), key=lambda one: -_greatest(one[1])))


class Fall(Struct, frozen=True):
    """A parameter at a value with which `left` of `holds` cells of a row still hold."""

    name: str
    to: str
    left: int
    holds: int

    @property
    def text(self) -> str:
        """The outcome in words; the row stands or falls with the parameter if fewer than half of its cells are left."""
        what = f"another seed ({self.to})" if self.name == SEED else f"{self.name} at {self.to}"
        if self.holds == 1:
            return f"stands or falls with {what}"
        left = f"{self.left} of {self.holds} hold"
        return f"stands or falls with {what}: {left}" if 2 * self.left < self.holds else f"{left} with {what}"


def row_effects(cells: Sequence[Laid], found: Sensitivity | None) -> tuple[RowEffects, ...]:
    """The rows of the cells, in their order; without cells that have no effects."""
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
    """Parameters with which some cells of a row no longer hold, each at its worst value, the most cells first."""
    worst: dict[str, Fall] = {}
    for (name, to), left in row.holding().items():
        if left < row.holds and (name not in worst or left < worst[name].left):
            worst[name] = Fall(name, to, left, row.holds)
    return tuple(sorted(worst.values(), key=lambda one: one.left))


def row_sentence(row: RowEffects, most: int = 3) -> str:
    """A sentence with the parameter that moves a row most, and those it stands or falls with."""
    texts = [f"{row.holds} of {len(row.cells)} hold"] if len(row.cells) > 1 else []
    greatest = next(iter(row.greatest().values()), ())
    moving = ", ".join(f"{one.to}: {one.text}" for one in greatest)
    texts.append(
        f"moved most by {greatest[0].name} ({moving})" if greatest else "moved by none of the parameters"
    )
    texts += [one.text for one in falls_with(row)[:most]]
    return f"{row.name}: {'; '.join(texts)}" if row.name else "; ".join(texts)
