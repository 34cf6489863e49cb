"""What a study comes to: its verdict, its exit code, and one sentence of it."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures import Grade
from wiregauge.studies.carrying import Carried
from wiregauge.studies.laying import ItemResult, Verdict, worst
from wiregauge.terminal import exit_code

__all__ = ["code_of", "counts", "headline", "verdict_of"]


def verdict_of(carried: Carried, items: Sequence[ItemResult]) -> Verdict:
    """FAIL if an item fails, UNDECIDED while one is open or the study is not complete; NONE if nothing is compared."""
    found = worst([item.verdict for item in items])
    if found != "FAIL" and not _answered(carried):
        return "UNDECIDED"
    return found


def code_of(carried: Carried, items: Sequence[ItemResult]) -> int:
    """The exit code: 0 every expectation of the study is met, 1 one is not, 4 there is no answer."""
    found = worst([item.verdict for item in items])
    return exit_code(answered=_answered(carried), failed=found == "FAIL", undecided=found == "UNDECIDED")


def _answered(carried: Carried) -> bool:
    invalid = any(judgement.validity is Grade.INVALID for judgement in carried.judgements.values())
    return carried.state == "complete" and not invalid


def counts(items: Sequence[ItemResult]) -> dict[str, int]:
    """How many cells there are of each result."""
    results = [cell.result for item in items for cell in item.cells]
    return {
        result: results.count(result) for result in ("holds", "fails", "undecided", "shown", "not compared")
    }


def headline(carried: Carried, items: Sequence[ItemResult]) -> str:
    """The study in one sentence."""
    found = counts(items)
    compared = found["holds"] + found["fails"] + found["undecided"]
    parts = [f"{found['holds']} of {compared} compared cells agree with the paper"] if compared else []
    parts += [f"{found['fails']} do not"] if found["fails"] else []
    parts += [f"{found['undecided']} are undecided"] if found["undecided"] else []
    parts += [f"{found['shown']} are shown only"] if found["shown"] else []
    parts += (
        [f"{found['not compared']} cannot be compared, each with its reason"] if found["not compared"] else []
    )
    text = "; ".join(parts) or "nothing was compared"
    return f"{text}. {carried.state.capitalize()}: {carried.reason}" if carried.reason else f"{text}."
