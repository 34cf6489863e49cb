"""Repeats of a result taken together: each attribute by the rule in its annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

__all__ = ["ADDED", "ALL", "FIRST", "LEAST", "MOST", "SUM", "Pooled", "added", "known", "pooled", "weighted"]

T = TypeVar("T")
K = TypeVar("K")


class Pooled(Struct, frozen=True):
    """The rule by which an attribute of all repeats follows from those of each, or `of_members` from the repeats."""

    rule: Callable[[Sequence[Any]], Any]
    of_members: bool = False


def added(counts: Sequence[Mapping[K, int]]) -> dict[K, int]:
    """The sums of counts by name."""
    total: dict[K, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


def known(values: Sequence[T | None]) -> list[T]:
    """The values that are determined."""
    return [value for value in values if value is not None]


def weighted(mean: str, count: Callable[[Any], int]) -> Pooled:
    """The rule for an attribute that is a mean over so many values."""

    def rule(members: Sequence[Any]) -> float | None:
        total = sum(map(count, members))
        sums = [getattr(one, mean) * count(one) for one in members if getattr(one, mean) is not None]
        return sum(sums) / total if total else None

    return Pooled(rule, of_members=True)


FIRST, ADDED, SUM, ALL = Pooled(lambda values: values[0]), Pooled(added), Pooled(sum), Pooled(all)
LEAST = Pooled(lambda values: min(known(values), default=None))
MOST = Pooled(lambda values: max(known(values), default=None))


def pooled(members: Sequence[T], **others: object) -> T:
    """Repeats as one; `others` are attributes without a rule, which else keep their default."""
    kind: Any = type(members[0])
    own = {
        name: one.rule(members if one.of_members else [getattr(member, name) for member in members])
        for name, one in _rules(kind).items()
    }
    made: T = kind(**own, **others)
    return made


@cache
def _rules(kind: type) -> dict[str, Pooled]:
    marks = {
        name: getattr(hint, "__metadata__", ())
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }
    return {name: mark for name, own in marks.items() for mark in own if isinstance(mark, Pooled)}
