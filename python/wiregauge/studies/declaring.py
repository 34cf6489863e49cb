"""What a study declares: its paper, the tests it runs, the items of the paper it lays beside them.

A study is a folder: `study.py` with one `STUDY`, its test files, `expected.csv` with what the paper printed, README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wiregauge.figures.model import Figure
from wiregauge.studies.measured import Measured
from wiregauge.studies.results import Results
from wiregauge.studies.size import Size

__all__ = ["Cells", "Item", "Key", "Parameter", "Part", "Picture", "Study"]


@dataclass(frozen=True, slots=True)
class Key:
    """Names a cell: the item of the paper, and in it the row, the column and what is told of them."""

    item: str
    series: str
    x: str
    statistic: str

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.item, self.series, self.x, self.statistic)))


@dataclass(frozen=True, slots=True)
class Part:
    """One test of the study; its run directory is `runs/NAME` of the study directory.

    `settings` are those of `--set`, by size; a size without an entry runs the file as it is. `settings_on` has those of
    a bench that wants others. `not_on` says why a bench does not carry it: its cells are listed with that reason, and
    never left out silently. A size of `not_in` leaves the part out likewise.
    """

    name: str
    test: str
    """Its file in the folder of the study."""
    settings: Mapping[Size, Sequence[str]] = field(default_factory=dict)
    not_on: Mapping[str, str] = field(default_factory=dict)
    not_in: Mapping[Size, str] = field(default_factory=dict)
    settings_on: Mapping[str, Mapping[Size, Sequence[str]]] = field(default_factory=dict)
    """By bench and size, in place of `settings`."""

    def settings_of(self, bench: str, size: Size) -> Sequence[str]:
        """What is set beside the file on this bench in this size."""
        return self.settings_on.get(bench, {}).get(size, self.settings.get(size, ()))

    def left_out(self, bench: str, size: Size) -> str:
        """Why it does not run on this bench, or in this size; empty where it does."""
        return self.not_on.get(bench, "") or self.not_in.get(size, "")


@dataclass(frozen=True, slots=True)
class Picture:
    """Draws the cells of an item over `x`, a line for each series: the paper's and ours side by side."""

    x: str
    """Title of the axis; the number at the beginning of a cell's `x` is its place."""
    y: str
    statistic: str = ""
    """Which cells are drawn, where the item has several statistics."""
    log_x: bool = False
    log_y: bool = False
    lines: bool = True
    """Whether the points of a series are joined."""


@dataclass(frozen=True, slots=True)
class Item:
    """A table, a figure or a sentence of the paper, by the paper's number."""

    number: str
    """As the paper calls it: `Table 3`, `Figure 5`, `Section 4`."""
    title: str
    may_miss: Mapping[str, int] = field(default_factory=dict)
    """Of a statistic how many cells may miss their criterion; all have to meet it where nothing is said."""
    picture: Picture | None = None
    note: str = ""
    judged_on: Sequence[str] = ("sim",)
    """Benches on which the criteria count. Real hosts are not the paper's, so there the cells are shown only."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number of the model that the paper does not state, and what it is moved to, to see which results move with it.

    `places` are the attributes that hold it: files of the study's folder, as a pattern, and an XPath whose prefix `t`
    is the test language. `moved` has shares of what stands there, `90%`, or values in its place; of a distribution
    every quantity is scaled. Settings of a size win over what stands in a file.
    """

    name: str
    basis: Literal["fitted", "assumed"]
    places: Sequence[tuple[str, str]]
    moved: Sequence[str] = ("90%", "110%")
    because: str = ""
    """Why it is moved by other than a tenth."""


Cells = Iterable[tuple[Key, Measured]]


@dataclass(frozen=True, slots=True)
class Study:
    """A whole experiment of a published paper.

    `cells` collects named cells from the figures of the runs; `figures` may draw more than an item's own picture, by
    the number of the item.
    """

    name: str
    title: str
    paper: str
    """How to cite it."""
    question: str
    parts: Sequence[Part]
    items: Sequence[Item]
    cells: Callable[[Results], Cells]
    figures: Callable[[Results], Mapping[str, Sequence[Figure]]] | None = None
    parameters: Sequence[Parameter] = ()
    folder: Path = Path()
    """Where its files are; whoever loads it says so."""
