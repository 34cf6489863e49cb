"""The declaration of a study: its paper, the tests it runs, and the items of the paper to compare.

A study is a folder: `study.py` with one `STUDY`, its test files, `expected.csv` with the figures that the paper prints,
and README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from wiregauge.figures.model import Figure
from wiregauge.studies.measured import Measured
from wiregauge.studies.results import Results
from wiregauge.studies.size import Size

__all__ = ["Cells", "Item", "Key", "Parameter", "Part", "Picture", "Study"]


class Key(Struct, frozen=True):
    """The name of a cell: the item of the paper, the series (row), `x` (column) and the statistic."""

    item: str
    series: str
    x: str
    statistic: str

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.item, self.series, self.x, self.statistic)))


class Part(Struct, frozen=True):
    """One test of the study; its run directory is `runs/NAME` of the study directory.

    `settings` are those of `--set`, by size; a size without an entry runs the file as it is. `settings_on` has those of
    a bench that needs others. `not_on` says why a bench cannot run it: its cells are listed with that reason, and
    never left out silently. A size of `not_in` leaves the part out likewise.
    """

    name: str
    test: str
    """The test file, in the study's folder."""
    settings: Mapping[Size, Sequence[str]] = field(default_factory=dict)
    not_on: Mapping[str, str] = field(default_factory=dict)
    not_in: Mapping[Size, str] = field(default_factory=dict)
    settings_on: Mapping[str, Mapping[Size, Sequence[str]]] = field(default_factory=dict)
    """Settings that replace `settings`, by bench and size."""

    def settings_of(self, bench: str, size: Size) -> Sequence[str]:
        """The settings applied to the file on this bench in this size."""
        return self.settings_on.get(bench, {}).get(size, self.settings.get(size, ()))

    def left_out(self, bench: str, size: Size) -> str:
        """The reason why the part does not run on this bench or in this size; empty where it does."""
        return self.not_on.get(bench, "") or self.not_in.get(size, "")


class Picture(Struct, frozen=True):
    """Draws the cells of an item over `x`, a line for each series: the paper's and ours side by side."""

    x: str
    """Title of the axis; a cell is placed at the number at the beginning of its `x`."""
    y: str
    statistic: str = ""
    """The statistic that is drawn, where the item has several."""
    log_x: bool = False
    log_y: bool = False
    lines: bool = True
    """Whether the points of a series are joined."""


class Item(Struct, frozen=True):
    """A table, a figure or a sentence of the paper, by the paper's number."""

    number: str
    """The paper's number: `Table 3`, `Figure 5`, `Section 4`."""
    title: str
    may_miss: Mapping[str, int] = field(default_factory=dict)
    """The number of cells that may miss their criterion, by statistic; 0 where not given."""
    picture: Picture | None = None
    note: str = ""
    judged_on: Sequence[str] = ("sim",)
    """Benches where the criteria count. Real hosts differ from the paper's, so there cells are only shown."""


class Parameter(Struct, frozen=True):
    """A number of the model that the paper does not state, and other values of it that show which results depend on it.

    `places` are the attributes that hold it: files of the study's folder, as a pattern, and an XPath whose prefix `t`
    is the test language. `moved` has shares of the value, `90%`, or other values; of a distribution every
    quantity is scaled. Settings of a size override the files.
    """

    name: str
    basis: Literal["fitted", "assumed"]
    places: Sequence[tuple[str, str]]
    moved: Sequence[str] = ("90%", "110%")
    because: str = ""
    """The reason for values other than plus and minus a tenth."""


Cells = Iterable[tuple[Key, Measured]]


class Study(Struct, frozen=True):
    """A whole experiment of a published paper.

    `cells` collects named cells from the figures of the runs; `figures` may draw more than an item's own picture, by
    the number of the item.
    """

    name: str
    title: str
    paper: str
    """The citation of the paper."""
    question: str
    parts: Sequence[Part]
    items: Sequence[Item]
    cells: Callable[[Results], Cells]
    figures: Callable[[Results], Mapping[str, Sequence[Figure]]] | None = None
    parameters: Sequence[Parameter] = ()
    folder: Path = Path()
    """The folder of its files; set when the study is loaded."""
