"""Summary of a study: its verdict, exit code, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from wiregauge.measures import Grade
from wiregauge.studies.carrying import Carried
from wiregauge.studies.laying import ItemResult, Laid, Verdict, worst
from wiregauge.studies.published import ROLES, Role
from wiregauge.terminal import exit_code

__all__ = ["Standing", "code_of", "counts", "headline", "standings", "verdict_of"]


def verdict_of(carried: Carried, items: Sequence[ItemResult]) -> Verdict:
    """FAIL if an item fails, UNDECIDED while one is open or the study is not complete; NONE if nothing is compared."""
    found = worst([item.verdict for item in items])
    if found != "FAIL" and not _answered(carried):
        return "UNDECIDED"
    return found


def code_of(carried: Carried, items: Sequence[ItemResult]) -> int:
    """The exit code: 0 if every expectation is met, 1 if one is not, 4 if there is no answer."""
    found = worst([item.verdict for item in items])
    return exit_code(answered=_answered(carried), failed=found == "FAIL", undecided=found == "UNDECIDED")


def _answered(carried: Carried) -> bool:
    invalid = any(judgement.validity is Grade.INVALID for judgement in carried.judgements.values())
    return carried.state == "complete" and not invalid


def counts(items: Sequence[ItemResult]) -> dict[str, int]:
    """The number of cells by result."""
    results = [cell.result for item in items for cell in item.cells]
    return {
        result: results.count(result) for result in ("holds", "fails", "undecided", "shown", "not compared")
    }


class Standing(Struct, frozen=True):
    """The paper's statements of one role, each counted once, however many cells repeat it."""

    role: Role
    statements: int
    holds: int
    fails: int
    undecided: int
    bounds: int
    """The number of statements that hold only as a bound, at least or at most."""
    cells: int


def standings(items: Sequence[ItemResult]) -> tuple[Standing, ...]:
    """The counts for predictions, fits and inputs. A statement fails if one of its cells fails, and holds if all do."""
    found = []
    for role in ROLES:
        cells = [
            cell
            for item in items
            for cell in item.cells
            if cell.role == role and cell.result in ("holds", "fails", "undecided")
        ]
        by_statement: dict[str, list[Laid]] = {}
        for cell in cells:
            by_statement.setdefault(cell.statement, []).append(cell)
        results = [{cell.result for cell in some} for some in by_statement.values()]
        holds = sum(one == {"holds"} for one in results)
        fails = sum("fails" in one for one in results)
        bounds = sum(
            all(cell.result == "holds" and cell.is_bound for cell in some) for some in by_statement.values()
        )
        found.append(
            Standing(
                role,
                len(results),
                holds,
                fails,
                len(results) - holds - fails,
                bounds,
                len(cells),
            )
        )
    return tuple(found)


def _standing_text(one: Standing) -> str:
    name = {
        "prediction": "independent prediction",
        "fit": "fitted statement",
        "input": "statement that was put in",
    }[one.role]
    if one.statements != 1:
        name = (
            name.replace("statement that was", "statements that were") if "that was" in name else f"{name}s"
        )
    text = f"{one.holds} of {one.statements} {name} {'agrees' if one.statements == 1 else 'agree'} with the paper"
    details = [f"{one.cells} cells"]
    details += [f"{one.fails} {'does' if one.fails == 1 else 'do'} not"] if one.fails else []
    details += [f"{one.undecided} undecided"] if one.undecided else []
    details += (
        [f"{one.bounds} only as {'a bound' if one.bounds == 1 else 'bounds'}, at least or at most"]
        if one.bounds
        else []
    )
    return f"{text} ({', '.join(details)})"


def headline(carried: Carried, items: Sequence[ItemResult]) -> str:
    """The study in one sentence."""
    found = counts(items)
    parts = [_standing_text(one) for one in standings(items) if one.statements]
    if parts and not any(one.statements for one in standings(items) if one.role == "prediction"):
        parts.insert(0, "nothing of the paper is predicted here")
    parts += [f"{found['shown']} are shown only"] if found["shown"] else []
    parts += (
        [f"{found['not compared']} cannot be compared, each with its reason"] if found["not compared"] else []
    )
    text = "; ".join(parts) or "nothing was compared"
    return f"{text}. {carried.state.capitalize()}: {carried.reason}" if carried.reason else f"{text}."
