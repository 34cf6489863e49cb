"""Which declared predictions are none: the test bed was given what they agree with.

A cell repeats another if ours is the same figure of the same runs, or if the paper's value was fitted to, was put in,
or stands in a test: 110 ns predicted where 110 ns was fitted. Values are compared whatever they are of, since a value
does not say where it went; `coincidence` in `expected.csv` says why two are equal by chance. Figures are never so. A
bound (at most 1 µs) has no value that ours comes to. Not noticed: a multiple of what was fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from lxml import etree

from wiregauge.config import TestError
from wiregauge.plan import quantity
from wiregauge.studies.declaring import Key, Study
from wiregauge.studies.moving import moved_files
from wiregauge.studies.published import FILE, Published
from wiregauge.studies.size import StudyError

__all__ = ["Origin", "origins"]

Value = tuple[str, float]
"""Unit of ours, and how many of it to nine digits."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where what a declared prediction agrees with was fitted or put in, and what its agreement is worth then."""

    role: Literal["fit", "input"]
    name: str
    statement: str
    """What the paper says there; empty of an attribute of a test."""


def origins(study: Study, expected: Sequence[Published], sources: Mapping[Key, str]) -> dict[Key, Origin]:
    """Of every prediction that is none: what it repeats. `sources` say which figure each cell of ours is.

    Raises StudyError for a `coincidence` with nothing.
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
    """What each value was fitted or put in as; the first cell that has it."""
    return {_value(cell): _cell_origin(cell) for cell in reversed(given) if not cell.is_bound}


def _cell_origin(cell: Published) -> Origin:
    return Origin("fit" if cell.role == "fit" else "input", str(cell.key), cell.statement)


def _value(cell: Published) -> Value:
    return cell.base, _rounded((cell.value or 0.0) * cell.scale)


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _attributes(study: Study) -> dict[Value, Origin]:
    """The times and rates that stand in the tests; plain numbers are of too many things."""
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
    """Times and rates of an attribute; of a distribution `0%:1us 100%:3us` those behind the shares."""
    for word in text.split():
        for unit, read in (("ns", quantity.time_ns), ("bit/s", quantity.rate_bps)):
            with suppress(quantity.QuantityError):
                yield unit, _rounded(float(read(word.rpartition(":")[2])))
