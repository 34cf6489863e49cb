"""Prints a study on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console

from wiregauge.measures.definitions.units import significant
from wiregauge.studies.beside import Beside
from wiregauge.studies.carrying import Carried
from wiregauge.studies.effects import effects_of, moved_most, rests_on, row_effects, row_sentence
from wiregauge.studies.laying import ItemResult, Laid
from wiregauge.studies.published import ROLES
from wiregauge.studies.sensitivity import Sensitivity
from wiregauge.studies.summing import headline, verdict_of
from wiregauge.terminal import print_table

__all__ = [
    "basis_text",
    "dependence_text",
    "deviation_text",
    "interval_of",
    "moved_text",
    "needs_text",
    "number",
    "printed",
    "study_text",
    "unit_text",
]


def number(value: float | None, unit: str = "") -> str:
    """A figure with its unit; a dash where there is none."""
    return "\N{EN DASH}" if value is None else f"{_signed(value)} {unit_text(unit)}".strip()


def unit_text(unit: str) -> str:
    """A unit as displayed."""
    return "µs" if unit == "us" else unit


def printed(cell: Laid) -> str:
    """The figure that the paper prints; a dash where it prints none."""
    theirs = cell.published
    return f"{theirs.text} {unit_text(theirs.unit)}".strip() if theirs and theirs.text else "\N{EN DASH}"


def _signed(value: float) -> str:
    text = significant(abs(value))
    return f"-{text}" if value < 0 else text


def interval_of(cell: Laid) -> str:
    """The 95 % interval of our figure; empty where it has none or is exact."""
    if cell.low is None or cell.high is None or cell.low == cell.high:
        return ""
    return f"{_signed(cell.low)} to {_signed(cell.high)}"


def deviation_text(cell: Laid) -> str:
    """The relative deviation of our figure, %."""
    return "" if cell.deviation is None else f"{100 * cell.deviation:+.1f} %"


def needs_text(item: ItemResult) -> list[str]:
    """A line for every statistic that is compared."""
    texts = []
    for need in item.needs:
        of = f" of {need.statistic}" if need.statistic else ""
        text = f"{need.holds} of {need.compared}{of} within the criterion"
        text += f", {need.compared - need.may_miss} needed" if need.may_miss else ""
        text += f", {need.undecided} undecided" if need.undecided else ""
        texts.append(f"{text}: {need.verdict} ({_by_role(item, need.statistic)})")
    return texts


def _by_role(item: ItemResult, statistic: str) -> str:
    """The number of cells of a statistic that hold, by role: fitted or given values agree for another reason."""
    told = []
    for role in ROLES:
        of = [cell for cell in item.cells if (cell.role, cell.key.statistic) == (role, statistic)]
        judged = [cell for cell in of if cell.result in ("holds", "fails", "undecided")]
        if judged:
            told.append(f"{role}: {sum(cell.result == 'holds' for cell in judged)} of {len(judged)}")
    return ", ".join(told)


def study_text(
    carried: Carried, items: Sequence[ItemResult], console: Console, sensitivity: Sensitivity | None = None
) -> None:
    """Prints every item with the paper's cells and ours, and the parameters that they stand or fall with."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    study = carried.study
    say(f"{study.title}: {verdict_of(carried, items)} ({carried.size}, bench {carried.bench})")
    say(headline(carried, items))
    say(basis_text(carried, sensitivity))
    for item in items:
        say("")
        say(f"{item.item.number}: {item.item.title}")
        for line in needs_text(item):
            say(f"  {line}")
        alone = len({cell.key.statistic for cell in item.cells}) == 1
        beside = carried.beside
        rows = [_row(cell, beside, alone=alone) for cell in item.cells]
        if rows:
            more = [beside.name] if beside is not None else []
            heads = ["cell", "published", "ours", "95 %", "n", *more, "differs", "role", "result"]
            print_table(heads, rows, console)
        for line in (
            *map(row_sentence, row_effects(item.cells, sensitivity)),
            *dependence_text(item),
            *_note(item),
            *_named(item, lambda cell: f"{cell.result}, {cell.reason}" if cell.reason else ""),
        ):
            say(f"  {line}")


def _note(item: ItemResult) -> list[str]:
    return [item.item.note] if item.item.note else []


def basis_text(carried: Carried, found: Sensitivity | None) -> str:
    """A sentence on how far the model's parameters were moved, or why they were not."""
    if not carried.results.modelled:
        return "The hosts are this machine's and no model, so there is nothing of theirs to move."
    if not carried.study.parameters:
        return "How results move with the model is not known: the study declares no parameters."
    if found is None:
        return (
            "How results move with the model is not known of these tests; "
            f"`wiregauge study {carried.study.name} --sensitivity` finds out."
        )
    others = f", in the {found.size} form" if found.size != carried.size else ""
    return (
        f"Each of {len(carried.study.parameters)} parameters that the paper does not state was moved alone, by 10 % "
        f"either way where nothing else is said{others}. What another seed moves as far is not named."
    )


def moved_text(cell: Laid, found: Sensitivity | None, most: int = 1) -> str:
    """The parameters that move a cell most, and those with which its outcome would differ."""
    effects = effects_of(cell, found)
    moving = "; ".join(
        f"{some[0].name} {', '.join(f'{one.to}: {one.text}' for one in some)}"
        for some in moved_most(effects, most)
    )
    if effects and not moving:
        moving = "none further than another seed"
    return "; ".join(filter(None, (moving, rests_on(effects))))


def _row(cell: Laid, beside: Beside | None, *, alone: bool) -> list[str]:
    """A row of the table; `alone`: the item has one statistic, which is not named."""
    theirs = cell.published
    criterion = (
        f" ({theirs.criterion.written})" if theirs is not None and theirs.criterion is not None else ""
    )
    return [
        ", ".join(filter(None, (cell.key.series, cell.key.x, "" if alone else cell.key.statistic))),
        printed(cell),
        number(cell.ours, cell.unit),
        interval_of(cell),
        str(cell.n or ""),
        *([number(*beside.shown(cell))] if beside is not None else []),
        deviation_text(cell),
        cell.role,
        f"{cell.result}{criterion}",
    ]


def dependence_text(item: ItemResult) -> list[str]:
    """The declared predictions that repeat a fit or an input, and those with an equal value by chance."""
    return [*_named(item, _repeated), *_named(item, _by_chance)]


def _repeated(cell: Laid) -> str:
    origin = cell.origin
    return f"{origin.role} and no prediction, since it repeats {origin.name}" if origin is not None else ""


def _by_chance(cell: Laid) -> str:
    why = cell.published.coincidence if cell.published is not None and cell.origin is None else ""
    return f"the value of a fit or an input by coincidence, {why}" if why else ""


def _named(item: ItemResult, said: Callable[[Laid], str]) -> list[str]:
    """The remarks on cells, each text once, with the cells it applies to."""
    found: dict[str, list[str]] = {}
    for cell in item.cells:
        if text := said(cell):
            name = " ".join(filter(None, (cell.key.series, cell.key.x, cell.key.statistic)))
            found.setdefault(text, []).append(name)
    return [
        f"{text}: {'; '.join(cells) if len(cells) < 9 else f'{len(cells)} cells'}"
        for text, cells in found.items()
    ]
