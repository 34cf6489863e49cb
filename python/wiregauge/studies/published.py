"""Reads the figures a paper prints: `expected.csv` of a study, a line for each cell, comparable or not.

`item` is the number of the table, figure or section as the study declares it; `series`, `x` and `statistic` say which
cell of it. `value` is as printed, with all its digits, in `unit`; empty where the paper has no number. `criterion`:

    10%                at most this share of the value away
    ±3                 at most this far away, in the unit of the line
    rounding           half a unit of the last digit that is printed
    interval           the value lies in our 95 % interval
    at-most, at-least  the value bounds ours

Without a criterion the cell is only shown, and `reason` says why it cannot be compared.

`role` says what an agreement is worth: `input` was put into the test, or follows from it without a run; a parameter was
fitted to a `fit`; a `prediction` is neither. `statement` names a statement of the paper that several cells repeat:
they count once. `coincidence`: why a prediction whose value is that of a fit or an input depends on
neither (`dependence`).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, Literal, cast

from msgspec import Struct

from wiregauge.plan import quantity
from wiregauge.studies.declaring import Key
from wiregauge.studies.size import StudyError

__all__ = ["COLUMNS", "FILE", "ROLES", "Criterion", "Published", "Role", "read_expected"]

FILE = "expected.csv"
COLUMNS = (
    "item",
    "series",
    "x",
    "statistic",
    "value",
    "unit",
    "criterion",
    "reason",
    "role",
    "statement",
    "coincidence",
)
ROLES: Final = ("prediction", "fit", "input")
PLAIN = ("", "messages", "1/s", "ppm", "ns/m")
"""Units that are used as they are; others are quantities of the test language."""


Role = Literal["prediction", "fit", "input", ""]


class Criterion(Struct, frozen=True):
    """When a cell of ours agrees with the paper's; `size` is a share, or in the line's unit."""

    kind: Literal["relative", "absolute", "rounding", "interval", "at-most", "at-least"]
    written: str
    size: float = 0.0


class Published(Struct, frozen=True):
    """A cell of the paper. `value` is in the paper's `unit`, which is `scale` times our unit `base`."""

    key: Key
    value: float | None
    text: str
    unit: str
    base: str
    scale: float
    criterion: Criterion | None
    reason: str
    line: int
    role: Role = ""
    statement: str = ""
    """The paper's statement; cells of one statement count once."""
    coincidence: str = ""
    """The reason why its value equals that of a fit or an input by chance; empty where none is claimed."""

    @property
    def is_bound(self) -> bool:
        """Whether the value only bounds ours, so that a distant value agrees too."""
        return self.criterion is not None and self.criterion.kind in ("at-most", "at-least")


def read_expected(folder: Path, items: Sequence[str]) -> tuple[Published, ...]:
    """Reads the cells that a paper prints, in the order of the file. Raises StudyError for an invalid line."""
    path = folder / FILE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise StudyError(f"{path}: its first line has to be {','.join(COLUMNS)}")
            cells = tuple(_cell(path, rows.line_num, row) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path}: cannot be read ({error})") from None
    seen: dict[Key, int] = {}
    for cell in cells:
        if cell.key.item not in items:
            raise StudyError(f'{path}:{cell.line}: the study declares no item "{cell.key.item}"')
        if cell.key in seen:
            raise StudyError(f"{path}:{cell.line}: {cell.key} stands in line {seen[cell.key]} already")
        seen[cell.key] = cell.line
    return cells


def _cell(path: Path, line: int, row: dict[str, str]) -> Published:
    def refuse(text: str) -> StudyError:
        return StudyError(f"{path}:{line}: {text}")

    if None in row or None in row.values():
        raise refuse(f"it has not the {len(COLUMNS)} values of {','.join(COLUMNS)}")
    key = Key(*(row[name].strip() for name in COLUMNS[:4]))
    text, unit, written, reason = (row[name].strip() for name in COLUMNS[4:8])
    try:
        value = float(Decimal(text)) if text else None
        base, scale = _unit(unit)
        criterion = _criterion(written, text) if written else None
    except (InvalidOperation, quantity.QuantityError, ValueError) as error:
        raise refuse(
            str(error) if not isinstance(error, InvalidOperation) else f'"{text}" is no number'
        ) from None
    if criterion is not None and value is None:
        raise refuse("a criterion needs a value; say in reason why there is none")
    if criterion is None and not reason:
        raise refuse("a line without a criterion needs a reason: why the cell cannot be compared")
    if (role := row["role"].strip()) not in ROLES and (criterion is not None or role):
        raise refuse(f'role is "{role}"; a line with a criterion needs one of {", ".join(ROLES)}')
    statement = row["statement"].strip() or str(key)
    return Published(
        key,
        value,
        text,
        unit,
        base,
        scale,
        criterion,
        reason,
        line,
        cast("Role", role),
        statement,
        row["coincidence"].strip(),
    )


def _unit(unit: str) -> tuple[str, float]:
    """Our base unit for a unit, and the factor to it."""
    if unit in PLAIN:
        return unit, 1.0
    if unit == "%":
        return "share", 0.01
    if unit.endswith("bit/s"):
        return "bit/s", float(quantity.rate_bps(f"1{unit}"))
    return "ns", quantity.time_ns(f"1{unit}")


def _criterion(written: str, value: str) -> Criterion:
    match written:
        case "interval" | "at-most" | "at-least" as kind:
            return Criterion(kind, written)
    if written == "rounding":
        exponent = Decimal(value).as_tuple().exponent if value else 0
        if not isinstance(exponent, int):
            raise ValueError(f'"{value}" has no last digit')
        return Criterion("rounding", written, float(Decimal(5).scaleb(exponent - 1)))
    if written.endswith("%"):
        return Criterion("relative", written, quantity.share(written))
    if written.startswith("±"):
        return Criterion("absolute", written, float(Decimal(written[1:])))
    raise ValueError(
        f'"{written}" is no criterion; write 10%, ±3, rounding, interval, at-most or at-least, or nothing'
    )
