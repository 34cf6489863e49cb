"""The result of a test of a device: rows under named columns, conclusions, and what is missing."""

from __future__ import annotations

from msgspec import Struct, field

__all__ = ["Chart", "Column", "Result"]

Value = str | int | float | None


class Column(Struct, frozen=True):
    """A column; `unit` of its numbers, empty for text and pure numbers."""

    key: str
    title: str
    unit: str = ""


class Chart(Struct, frozen=True):
    """The chart of the rows: columns over a column, a line for each value of `group`."""

    x: str
    y: tuple[str, ...]
    group: str = ""


class Result(Struct):
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
