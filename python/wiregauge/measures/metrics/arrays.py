"""The message table of some flows as arrays: made once for all of them, cut for each.

A query costs more than the few ten rows of a flow; so expressions that are the same for every flow (a difference of two
times, which message is lost) are evaluated once for the whole table, and a flow takes its part of the result without a
copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.metrics import sampling

__all__ = ["Column", "Part", "Rows", "column_of", "seams_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Column(Struct, frozen=True):
    """Integer values, 0 where one is missing; `known` is False there, and None where none is missing."""

    values: Integers
    known: Flags | None

    def cut(self, begin: int, end: int) -> Column:
        """The rows from `begin` to before `end`."""
        known = self.known[begin:end] if self.known is not None else None
        return Column(self.values[begin:end], None if known is None or known.all() else known)

    def present(self) -> Integers:
        """The values that are not missing, in order."""
        return self.values if self.known is None else self.values[self.known]

    @property
    def missing(self) -> int:
        """The number of missing values."""
        return 0 if self.known is None else len(self.known) - int(np.count_nonzero(self.known))


def column_of(series: pl.Series) -> Column:
    """A column of whole numbers as arrays."""
    whole = series.cast(pl.Int64)
    if not whole.null_count():
        return Column(whole.to_numpy(), None)
    return Column(whole.fill_null(0).to_numpy(), whole.is_not_null().to_numpy())


class Rows(Struct):
    """Rows of the message table, of one or more flows in succession, each in the order of sequence."""

    frame: pl.DataFrame
    keeps: bool = True
    """Whether results of expressions are cached: a single flow uses each only once."""
    _columns: dict[str, Column] = field(default_factory=dict)
    _made: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    _names: frozenset[str] | None = None
    _whole: bool | None = None

    @property
    def whole(self) -> bool:
        """Whether no row is one of a sample."""
        if self._whole is None:
            self._whole = not self.has("stretch") or not self.column("stretch").values.any()
        return self._whole

    def column(self, name: str, expression: pl.Expr | None = None) -> Column:
        """A column by its name; or the result of `expression`, which is cached under that name."""
        if name in self._columns:
            return self._columns[name]
        series = (
            self.frame[name] if expression is None else self.frame.select(expression.alias(name)).to_series()
        )
        found = column_of(series)
        if self.keeps or expression is None:
            self._columns[name] = found
        return found

    def flags(self, name: str, expression: pl.Expr | None = None) -> Flags:
        """A column or expression as booleans; missing is False."""
        if name not in self._made:
            series = self.frame.select((pl.col(name) if expression is None else expression).alias(name))
            self._made[name] = series.to_series().fill_null(value=False).to_numpy()
        return np.asarray(self._made[name], dtype=np.bool_)

    def made(self, name: str, make: Callable[[], NDArray[np.generic]]) -> NDArray[np.generic]:
        """The result of `make` for these rows, cached by `name`."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        if self._names is None:
            self._names = frozenset(self.frame.columns)
        return name in self._names


class Part(Struct, frozen=True):
    """The rows of one flow: from `begin` to before `end` of `rows`."""

    rows: Rows
    begin: int
    end: int

    @staticmethod
    def whole(frame: pl.DataFrame) -> Part:
        """All rows of a table, which are those of one flow."""
        return Part(Rows(frame, keeps=False), 0, frame.height)

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.end - self.begin

    @property
    def frame(self) -> pl.DataFrame:
        """The rows as a table."""
        return self.rows.frame.slice(self.begin, self.height)

    @property
    def sampled(self) -> bool:
        """Whether the rows are a sample, with messages missing between them."""
        if not self.height or self.rows.whole:
            return False
        return bool(self.rows.column("stretch").values[self.begin])

    def column(self, name: str, expression: pl.Expr | None = None) -> Column:
        """Like `Rows.column`, for this flow only."""
        return self.rows.column(name, expression).cut(self.begin, self.end)

    def flags(self, name: str, expression: pl.Expr | None = None) -> Flags:
        """Like `Rows.flags`, for this flow only."""
        return self.rows.flags(name, expression)[self.begin : self.end]

    def stretch(self) -> Integers | None:
        """The stretch of each row, where the flow is sampled."""
        return self.column("stretch").values if self.sampled else None

    def counted(self, kinds: Mapping[str, pl.Expr]) -> dict[str, int]:
        """Number of rows to which each of `kinds` applies, by name."""
        return {name: int(np.count_nonzero(self.flags(f"is {name}", kind))) for name, kind in kinds.items()}


def seams_of(part: Part) -> Flags | None:
    """For each row after the first, whether a seam lies before it; None for a flow that is not sampled."""
    stretch = part.stretch()
    return sampling.seams(stretch) if stretch is not None else None
