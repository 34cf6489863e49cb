"""The definition of every measure, used by all code that shows, compares or limits measures.

To add one: CONTRIBUTING.md, "Where things go".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from wiregauge.measures.definitions.counters import COUNTERS
from wiregauge.measures.definitions.definition import (
    PAIR_QUANTILES,
    QUANTILES,
    Definition,
    ascending,
    quantile_named,
)
from wiregauge.measures.definitions.of_messages import TIMES

__all__ = [
    "COUNTS",
    "DEFINITIONS",
    "MAIN",
    "OUTCOMES",
    "PAIR_QUANTILES",
    "QUANTILES",
    "SERIES",
    "SHARES",
    "SINGLES",
    "Definition",
    "ascending",
    "define",
    "quantile_named",
]

DEFINITIONS: dict[str, Definition] = {definition.name: definition for definition in (*TIMES, *COUNTERS)}
"""All measures by name; `flow_measures` and `run_measures` add their own."""


def define(*definitions: Definition) -> None:
    """Adds measures to the defined ones, each after the one that it names in `after`, else after the one before it."""
    ordered, before = dict(DEFINITIONS), ""
    for definition in definitions:
        if definition.name in ordered:
            raise ValueError(f"measure {definition.name} is defined twice")
        names = list(ordered)
        after = definition.after or before
        place = names.index(after) + 1 if after else len(names)
        rest = {name: ordered.pop(name) for name in names[place:]}
        ordered |= {definition.name: definition, **rest}
        before = definition.name
    DEFINITIONS.clear()
    DEFINITIONS.update(ordered)


class _Names(Sequence[str]):
    """Names of some measures, in the order of the definitions, as these are at the time."""

    def __init__(self, chosen: Callable[[Definition], bool]) -> None:
        self._chosen = chosen

    def __iter__(self) -> Iterator[str]:
        return (name for name, definition in DEFINITIONS.items() if self._chosen(definition))

    def __contains__(self, name: object) -> bool:
        found = DEFINITIONS.get(name) if isinstance(name, str) else None
        return found is not None and self._chosen(found)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return tuple(self)[place]


SERIES = _Names(lambda definition: definition.kind == "series")
"""Measures that have one value per message (or pair of messages) and so a distribution."""

COUNTS = _Names(lambda definition: definition.kind == "count")
"""Counters of messages."""

SINGLES = _Names(lambda definition: definition.kind == "single")
"""Measures that are one figure of a flow, with its interval."""

SHARES = _Names(lambda definition: definition.kind == "count" and definition.better == "lower")
"""Counters of mishaps of sent messages; compared as shares of the messages sent."""

MAIN = _Names(lambda definition: definition.main)
"""The main measures."""

OUTCOMES = ("delivered", "duplicated", "reordered", "late", "lost", "misdirected", "corrupted", "unknown")
