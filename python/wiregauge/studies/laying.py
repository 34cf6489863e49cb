"""Compares the paper's cells with ours, each by its criterion, and derives the verdicts of items.

The figure decides, as for a limit; its interval is only shown. A cell that was not measured is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.studies.declaring import Item, Key, Study
from wiregauge.studies.dependence import Origin, origins
from wiregauge.studies.measured import Measured
from wiregauge.studies.published import Published, Role, read_expected
from wiregauge.studies.results import Results
from wiregauge.studies.size import StudyError

__all__ = ["ItemResult", "Laid", "Need", "lay", "with_origins"]

Agreement = Literal["holds", "fails", "undecided", "shown", "not compared"]
Verdict = Literal["PASS", "FAIL", "UNDECIDED", "NONE"]


class Laid(Struct, frozen=True):
    """A cell: the paper's figure, ours in the paper's unit, and whether they agree."""

    key: Key
    published: Published | None
    unit: str
    ours: float | None
    low: float | None
    high: float | None
    n: int
    result: Agreement
    reason: str
    source: str
    origin: Origin | None = None
    """Where the value of a declared prediction was fitted or put in; None for true predictions."""

    @property
    def role(self) -> Role:
        """The role of an agreement: input, fit or prediction; empty where nothing is compared."""
        if self.origin is not None:
            return self.origin.role
        return self.published.role if self.published is not None else ""

    @property
    def statement(self) -> str:
        """The paper's statement; cells that repeat it share its text."""
        if self.origin is not None and self.origin.statement:
            return self.origin.statement
        return self.published.statement if self.published is not None else ""

    @property
    def is_bound(self) -> bool:
        """Whether the paper's value only bounds ours, so that a distant value agrees too."""
        return self.published is not None and self.published.is_bound

    @property
    def deviation(self) -> float | None:
        """(ours - published) / published; None where one of them is missing or the paper's is zero."""
        theirs = self.published.value if self.published is not None else None
        return None if self.ours is None or not theirs else (self.ours - theirs) / theirs


class Need(Struct, frozen=True):
    """How many cells of a statistic meet their criterion, and how many may miss it."""

    statistic: str
    compared: int
    holds: int
    fails: int
    undecided: int
    may_miss: int

    @property
    def verdict(self) -> Verdict:
        """PASS if no more cells fail than may; UNDECIDED while undecided cells could change that."""
        if not self.compared:
            return "NONE"
        if self.fails > self.may_miss:
            return "FAIL"
        return "UNDECIDED" if self.undecided and self.fails + self.undecided > self.may_miss else "PASS"


class ItemResult(Struct, frozen=True):
    """An item of the paper with its compared cells."""

    item: Item
    cells: Sequence[Laid]
    needs: Sequence[Need] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """FAIL if a statistic fails; NONE where nothing is compared."""
        return worst([need.verdict for need in self.needs])


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of several verdicts."""
    for one in ("FAIL", "UNDECIDED", "PASS"):
        if one in verdicts:
            return one
    return "NONE"


def lay(study: Study, results: Results) -> tuple[ItemResult, ...]:
    """Compares every item of the study. Raises StudyError where cells and expectations do not match."""
    expected = read_expected(study.folder, [item.number for item in study.items])
    ours: dict[Key, Measured] = {}
    for key, found in study.cells(results):
        if key in ours:
            raise StudyError(f"study {study.name}: {key} is collected twice")
        ours[key] = found
    items = {item.number: item for item in study.items}
    unknown = [key for key in ours if key.item not in items]
    if unknown:
        raise StudyError(f'study {study.name}: it declares no item "{unknown[0].item}"')
    cells = [_laid(one, ours.pop(one.key, None), items[one.key.item], results.bench) for one in expected]
    cells += [_own(key, found) for key, found in ours.items()]
    cells = with_origins(study, expected, cells)
    return tuple(
        _item(item, [cell for cell in cells if cell.key.item == item.number]) for item in study.items
    )


def with_origins(study: Study, expected: Sequence[Published], cells: Sequence[Laid]) -> list[Laid]:
    """The cells with the origin of predictions that repeat a fit or an input. Raises StudyError as `origins` does."""
    found = origins(study, expected, {cell.key: cell.source for cell in cells if cell.source})
    return [replace(cell, origin=found.get(cell.key)) for cell in cells]


def _item(item: Item, cells: Sequence[Laid]) -> ItemResult:
    judged = [cell for cell in cells if cell.result in ("holds", "fails", "undecided")]
    needs = []
    for statistic in dict.fromkeys(cell.key.statistic for cell in judged):
        found = [cell.result for cell in judged if cell.key.statistic == statistic]
        holds, fails, undecided = (found.count(result) for result in ("holds", "fails", "undecided"))
        allowed = item.may_miss.get(statistic, 0)
        needs.append(Need(statistic, len(found), holds, fails, undecided, allowed))
    return ItemResult(item, cells, tuple(needs))


def _own(key: Key, found: Measured) -> Laid:
    """A cell of ours without a counterpart in the paper."""
    reason = found.reason or "the paper has no such cell"
    return Laid(
        key, None, found.unit, found.value, found.low, found.high, found.n, "shown", reason, found.source
    )


def _laid(published: Published, found: Measured | None, item: Item, bench: str) -> Laid:
    if found is None:
        result, reason = _absent(published)
        return Laid(published.key, published, published.unit, None, None, None, 0, result, reason, "")
    if found.value is not None and found.unit != published.base:
        raise StudyError(
            f'{published.key}: the paper has "{published.unit}", and {found.source} is in "{found.unit}"; '
            "they cannot be compared"
        )
    scale = published.scale
    ours, low, high = (None if one is None else one / scale for one in (found.value, found.low, found.high))
    result, reason = _agreement(published, found, item, bench, (ours, low, high))
    return Laid(
        published.key, published, published.unit, ours, low, high, found.n, result, reason, found.source
    )


def _absent(published: Published) -> tuple[Agreement, str]:
    if published.criterion is None:
        return "not compared", published.reason
    return "undecided", "the study collects no such cell"


def _agreement(
    published: Published,
    found: Measured,
    item: Item,
    bench: str,
    ours: tuple[float | None, float | None, float | None],
) -> tuple[Agreement, str]:
    if found.skipped:
        return "not compared", found.reason
    if published.criterion is None:
        return "not compared", published.reason
    if bench not in item.judged_on:
        return "shown", f"bench {bench} has other hosts than the paper"
    if found.value is None:
        return "undecided", found.reason
    within = _within(published, *ours)
    if within is None:
        return "undecided", "ours has no interval"
    return ("holds" if within else "fails"), ""


def _within(published: Published, ours: float | None, low: float | None, high: float | None) -> bool | None:
    criterion, theirs = published.criterion, published.value
    if criterion is None or theirs is None or ours is None:
        return None
    if criterion.kind == "interval":
        return None if low is None or high is None else low <= theirs <= high
    if criterion.kind == "at-most":
        return ours <= theirs
    if criterion.kind == "at-least":
        return ours >= theirs
    allowed = criterion.size * abs(theirs) if criterion.kind == "relative" else criterion.size
    # Compare with as many digits as were printed: 0.1 + 0.2 is not beyond 0.3.
    return abs(ours - theirs) <= allowed * (1 + 1e-12)
