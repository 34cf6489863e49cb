"""Finds declared predictions that are none, since the test bed was given the value that they agree with.

A cell repeats another if ours is the same figure of the same runs, or if the paper's value was fitted to, was put in,
or is an attribute of a test: 110 ns predicted where 110 ns was fitted. Values are compared whatever they mean, since
the use of a value is unknown; `coincidence` in `expected.csv` gives the reason where two are equal by chance, which
does not apply to equal figures. Bounds (at most 1 µs) are not compared. A multiple of a fitted value is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from lxml import etree
from msgspec import Struct

from wiregauge.config import TestError
from wiregauge.plan import quantity
from wiregauge.studies.declaring import Key, Study
from wiregauge.studies.moving import moved_files
from wiregauge.studies.published import FILE, Published
from wiregauge.studies.size import StudyError

__all__ = ["Origin", "origins"]

Value = tuple[str, float]
"""Our base unit, and the amount of it to nine digits."""


class Origin(Struct, frozen=True):
    """The fitted or given value that a declared prediction repeats, and the role that its agreement then has."""

    role: Literal["fit", "input"]
    name: str
    statement: str
    """The paper's statement there; empty for an attribute of a test."""


def origins(study: Study, expected: Sequence[Published], sources: Mapping[Key, str]) -> dict[Key, Origin]:
    """The origin of every prediction that repeats a fit or an input. `sources`: which figure each cell of ours is.

    Raises StudyError for a `coincidence` without an equal value.
    """
    given = [cell for cell in expected if cell.role in ("fit", "input")]
    figures = {source: cell for cell in reversed(given) if (source := sources.get(cell.key))}
    values = {**_attributes(study), **_values(given)}
    found: dict[Key, Origin] = {}
    for cell in expected:
        same = values.get(_value(cell)) if cell.role == "prediction" and not cell.is_bound else None
        if cell.coincidence and same is None:
            raise StudyError(
                f"{study.folder / FILE}:{cell.line}: no fit, no input and no attribute of a test has the value of "
                f"{cell.key}; leave coincidence empty"
            )
        figure = figures.get(sources.get(cell.key, "")) if cell.role == "prediction" else None
        if figure is not None:
            found[cell.key] = _cell_origin(figure)
        elif same is not None and not cell.coincidence:
            found[cell.key] = same
    return found


def _values(given: Sequence[Published]) -> dict[Value, Origin]:
    """The origin of each fitted or given value; the first cell where several have it."""
    return {_value(cell): _cell_origin(cell) for cell in reversed(given) if not cell.is_bound}


def _cell_origin(cell: Published) -> Origin:
    return Origin("fit" if cell.role == "fit" else "input", str(cell.key), cell.statement)


def _value(cell: Published) -> Value:
    return cell.base, _rounded((cell.value or 0.0) * cell.scale)


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _attributes(study: Study) -> dict[Value, Origin]:
    """The times and rates in the tests' attributes; plain numbers could mean anything."""
    try:
        files, _ = moved_files(study, None)
    except TestError:
        return {}
    return {
        value: Origin("input", f'{name}, {where}="{text}"', "")
        for name, root in files.items()
        for where, text in _written(root)
        for value in _quantities(text)
    }


def _written(root: etree._Element) -> Iterator[tuple[str, str]]:
    for element in root.iter(etree.Element):
        for name in map(str, element.keys()):
            yield f"<{etree.QName(element).localname}> {name}", str(element.get(name))


def _quantities(text: str) -> Iterator[Value]:
    """Times and rates in an attribute; in a distribution `0%:1us 100%:3us` those after the shares."""
    for word in text.split():
        for unit, read in (("ns", quantity.time_ns), ("bit/s", quantity.rate_bps)):
            with suppress(quantity.QuantityError):
                yield unit, _rounded(float(read(word.rpartition(":")[2])))
