"""The result of a test of a device: rows under named columns, conclusions, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Chart", "Column", "Result"]

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `unit` of its numbers, empty for text and pure numbers."""

    key: str
    title: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of the rows: columns over a column, a line for each value of `group`."""

    x: str
    y: tuple[str, ...]
    group: str = ""


@dataclass(slots=True)
class Result:
    """The result of a test. `state`: measured, not carried (by this bench), refused (its trials), or not measured."""

    name: str
    title: str
    source: str
    state: str
    reason: str = ""
    conclusion: list[str] = field(default_factory=list)
    columns: tuple[Column, ...] = ()
    rows: list[dict[str, Value]] = field(default_factory=list)
    chart: Chart | None = None
    notes: list[str] = field(default_factory=list)
