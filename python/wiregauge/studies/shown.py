"""What `study.json` and `wiregauge study --json` hold, typed; their schema is made from this.

Figures of cells are in the unit that the paper prints. None: not determined, or not printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.measures.schemas import Count, Figure, From, Grade, Positive, Verdict, filled, json_schema
from wiregauge.studies.carrying import RUNS, Carried
from wiregauge.studies.laying import ItemResult, Laid
from wiregauge.studies.summing import standings, verdict_of

__all__ = ["schema_path", "study_json", "study_schema"]


class PartShown(TypedDict):
    name: str
    test: str
    settings: Annotated[list[str], Meta(description="as --set takes them, in this size")]
    directory: Annotated[str | None, Meta(description="from the study directory; null: there is none")]
    state: Annotated[
        str, Meta(extra_json_schema={"enum": ["complete", "interrupted", "failed", "missing", "left out"]})
    ]
    validity: Grade | None
    reason: str | None


class CellShown(TypedDict):
    series: Annotated[str, From("key.series")]
    x: Annotated[str, From("key.x")]
    statistic: Annotated[str, From("key.statistic")]
    unit: Annotated[str, Meta(description="that of the paper; empty: a plain number")]
    published: Annotated[Figure, From("published.value")]
    printed: Annotated[str | None, Meta(description="as the paper prints it"), From("published.text")]
    criterion: Annotated[str | None, From("published.criterion.written")]
    ours: Figure
    low: Annotated[Figure, Meta(description="of our 95 % interval")]
    high: Figure
    n: Annotated[
        int, Meta(ge=0, description="values behind ours; 0: it follows from the test, or there is none")
    ]
    deviation: Annotated[Figure, Meta(description="(ours - published) / published")]
    role: Annotated[
        str,
        Meta(
            description="what an agreement is worth; empty: nothing is compared",
            extra_json_schema={"enum": ["prediction", "fit", "input", ""]},
        ),
    ]
    statement: Annotated[str, Meta(description="what the paper says; cells of one statement count once")]
    result: Literal["holds", "fails", "undecided", "shown", "not compared"]
    reason: str
    source: Annotated[str, Meta(description="which figure of which part ours is")]


class NeedShown(TypedDict):
    statistic: str
    compared: Count
    holds: Count
    fails: Count
    undecided: Count
    may_miss: Count
    verdict: Verdict


class ItemShown(TypedDict):
    item: Annotated[str, From("item.number")]
    title: Annotated[str, From("item.title")]
    verdict: Verdict
    note: Annotated[str, From("item.note")]
    needs: list[NeedShown]
    cells: list[CellShown]


class StandingShown(TypedDict):
    role: Annotated[str, Meta(extra_json_schema={"enum": ["prediction", "fit", "input"]})]
    statements: Annotated[int, Meta(ge=0, description="of the paper, each counted once")]
    holds: Count
    fails: Count
    undecided: Count
    bounds: Annotated[int, Meta(ge=0, description="of those that hold: at least or at most so much")]
    cells: Count


class ProgramShown(TypedDict):
    name: str
    version: str


class StudyShown(TypedDict):
    schema: Literal[1]
    study: str
    title: str
    paper: str
    question: str
    size: Annotated[str, Meta(extra_json_schema={"enum": ["quick", "usual", "full"]})]
    bench: str
    program: ProgramShown
    started: str
    finished: str | None
    state: Annotated[str, Meta(extra_json_schema={"enum": ["running", "complete", "interrupted", "failed"]})]
    reason: str | None
    verdict: Verdict
    standings: list[StandingShown]
    parts: list[PartShown]
    items: list[ItemShown]


class SizeShown(TypedDict):
    size: str
    runs: Count
    planned_seconds: Annotated[Positive, Meta(description="of traffic, in virtual or in real time")]


class ListedShown(TypedDict):
    name: str
    title: str
    paper: str
    question: str
    benches: list[str]
    items: list[str]
    sizes: list[SizeShown]


class ListShown(TypedDict):
    schema: Literal[1]
    studies: list[ListedShown]


def study_json(carried: Carried, items: tuple[ItemResult, ...]) -> StudyShown:
    """The study as JSON objects."""
    study = carried.study
    return {
        "schema": 1,
        "study": study.name,
        "title": study.title,
        "paper": study.paper,
        "question": study.question,
        "size": carried.size,
        "bench": carried.bench,
        "program": {"name": "wiregauge", "version": carried.version},
        "started": carried.started,
        "finished": carried.finished,
        "state": carried.state,
        "reason": carried.reason,
        "verdict": verdict_of(carried, items),
        "standings": [filled(StandingShown, one) for one in standings(items)],
        "parts": [_part(carried, index) for index in range(len(study.parts))],
        "items": [_item(item) for item in items],
    }


def _part(carried: Carried, index: int) -> PartShown:
    part = carried.study.parts[index]
    judgement = carried.judgements.get(part.name)
    skipped, missing = carried.skipped.get(part.name), carried.missing.get(part.name)
    state = "left out" if skipped else "missing" if judgement is None else judgement.state
    reason = judgement.reason if judgement is not None else skipped or missing or "it has not run yet"
    return {
        "name": part.name,
        "test": part.test,
        "settings": list(part.settings.get(carried.size, ())),
        "directory": f"{RUNS}/{part.name}" if judgement is not None else None,
        "state": state,
        "validity": judgement.validity.word if judgement is not None else None,
        "reason": reason,
    }


def _item(item: ItemResult) -> ItemShown:
    return filled(
        ItemShown,
        item,
        needs=[filled(NeedShown, need) for need in item.needs],
        cells=[_cell(cell) for cell in item.cells],
    )


def _cell(cell: Laid) -> CellShown:
    return filled(CellShown, cell)


def schema_path() -> Path:
    """The JSON Schema of `wiregauge study --json` and of study.json, shipped with the package."""
    return Path(__file__).with_name("study.schema.json")


def study_schema() -> dict[str, Any]:
    """The schema: a study that was carried out, or the list of those that there are."""
    one = json_schema(StudyShown, "one study", closed=True)
    listed = json_schema(ListShown, "the list of studies", closed=True)
    parts = {**one.pop("$defs"), **listed.pop("$defs")}
    for schema in (one, listed):
        del schema["$schema"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:wiregauge:study:1",
        "title": "`wiregauge study --json`, study.json",
        "description": "null: not determined, or not printed by the paper.",
        "anyOf": [one, listed],
        "$defs": parts,
    }
