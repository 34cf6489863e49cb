"""Tables on a terminal that may be too narrow: never a cut figure, never a list where a table fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich: many commands print plain lines only
    from rich.console import Console, JustifyMethod
    from rich.table import Table

__all__ = ["print_table"]

_LONG_HEAD = 20
"""Length from which heads may be broken into lines, letters."""


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], console: Console, *, leading: int = 1
) -> None:
    """Prints a table. If it is too wide it is split by columns into several.

    Each begins with the first `leading` columns, which identify the rows. If not even these and one other fit, each row
    is a list.
    """
    first, others = list(range(leading)), list(range(leading, len(heads)))
    if not others:
        first, others = first[:-1], first[-1:]
    while others:
        fitting = next(
            (k for k in range(len(others), 0, -1) if _fits(heads, rows, first + others[:k], console)), 0
        )
        if not fitting:
            _print_lists(heads, rows, first + others, console)
            return
        console.print(_table(heads, rows, first + others[:fitting], leading))
        others = others[fitting:]
        if others:
            console.print()


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], leading: int = 1
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for k in columns:
        side: JustifyMethod = "left" if k < leading else "right"
        table.add_column(Text(heads[k]), justify=side, no_wrap=len(heads[k]) < _LONG_HEAD)
    for row in rows:
        table.add_row(*(Text(row[k]) for k in columns))
    return table


def _fits(
    heads: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], console: Console
) -> bool:
    unbounded = console.options.update(width=10_000)
    return console.measure(_table(heads, rows, columns), options=unbounded).maximum <= console.width


def _print_lists(
    heads: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], console: Console
) -> None:
    from rich.table import Table
    from rich.text import Text

    for row in rows:
        block = Table(box=None, show_header=False, pad_edge=False)
        for k in columns:
            block.add_row(Text(heads[k]), Text(row[k]))
        console.print(block)
        console.print()
