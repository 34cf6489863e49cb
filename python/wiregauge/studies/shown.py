"""The types of `study.json` and `wiregauge study --json`; the schema is generated from them.

Figures of cells are in the unit that the paper prints. None: not determined, or not printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.files.typed_json import Count, Figure, From, Grade, Positive, Verdict, filled, json_schema
from wiregauge.studies.beside import Beside
from wiregauge.studies.carrying import RUNS, Carried
from wiregauge.studies.effects import effects_of, moved_most, rests_on
from wiregauge.studies.laying import ItemResult, Laid
from wiregauge.studies.sensitivity import Sensitivity
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


class MoveShown(TypedDict):
    parameter: Annotated[str, From("name")]
    to: Annotated[str, Meta(description="a share of what stands in the tests, or what stands there instead")]
    ours: Figure
    result: Annotated[str, Meta(extra_json_schema={"enum": ["holds", "fails", "undecided"]})]


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
    beside: Annotated[
        Figure, Meta(description="the figure of the study that stands beside, in the same unit")
    ]
    n: Annotated[
        int, Meta(ge=0, description="values behind ours; 0: it follows from the test, or there is none")
    ]
    deviation: Annotated[Figure, Meta(description="(ours - published) / published")]
    role: Annotated[
        str,
        Meta(
            description="what an agreement is worth, of a prediction that repeats another cell that one's; "
            "empty: nothing is compared",
            extra_json_schema={"enum": ["prediction", "fit", "input", ""]},
        ),
    ]
    statement: Annotated[str, Meta(description="what the paper says; cells of one statement count once")]
    repeats: Annotated[
        str | None,
        Meta(
            description="what was declared a prediction: the cell, or the attribute of a test, that it repeats"
        ),
        From("origin.name"),
    ]
    coincidence: Annotated[
        str | None,
        Meta(description="why a prediction with the value of a fit or an input depends on neither"),
        From("published.coincidence"),
    ]
    result: Literal["holds", "fails", "undecided", "shown", "not compared"]
    reason: str
    rests_on: Annotated[
        str,
        Meta(description="with which parameter it would come out otherwise; empty: with none that was moved"),
    ]
    moves: Annotated[
        list[MoveShown], Meta(description="what moves it by more than another seed does, the most first")
    ]
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


class ParameterShown(TypedDict):
    name: str
    basis: Literal["fitted", "assumed"]
    moved: Annotated[list[str], Meta(description="to what, one at a time")]
    because: Annotated[str, Meta(description="why by other than a tenth; empty: by a tenth")]


class SensitivityShown(TypedDict):
    size: Annotated[str, Meta(extra_json_schema={"enum": ["quick", "usual", "full"]})]
    version: Annotated[str, Meta(description="of the program that found it")]
    parameters: list[ParameterShown]


class ProgramShown(TypedDict):
    name: str
    version: str


class BesideShown(TypedDict):
    bench: str
    size: Annotated[str, Meta(extra_json_schema={"enum": ["quick", "usual", "full"]})]
    version: Annotated[str, Meta(description="of the program that made it")]


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
    beside: Annotated[
        BesideShown | None, Meta(description="the study whose figures stand beside; null: none does")
    ]
    sensitivity: Annotated[
        SensitivityShown | None, Meta(description="null: not found of these tests; --sensitivity finds it")
    ]
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


def study_json(
    carried: Carried, items: tuple[ItemResult, ...], sensitivity: Sensitivity | None = None
) -> StudyShown:
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
        "beside": filled(BesideShown, carried.beside) if carried.beside is not None else None,
        "sensitivity": _sensitivity(carried, sensitivity),
        "parts": [_part(carried, index) for index in range(len(study.parts))],
        "items": [_item(item, sensitivity, carried.beside) for item in items],
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
        "settings": list(part.settings_of(carried.bench, carried.size)),
        "directory": f"{RUNS}/{part.name}" if judgement is not None else None,
        "state": state,
        "validity": judgement.validity.word if judgement is not None else None,
        "reason": reason,
    }


def _sensitivity(carried: Carried, found: Sensitivity | None) -> SensitivityShown | None:
    if found is None:
        return None
    parameters = [filled(ParameterShown, one) for one in carried.study.parameters]
    return {"size": found.size, "version": found.version, "parameters": parameters}


def _item(item: ItemResult, sensitivity: Sensitivity | None, beside: Beside | None) -> ItemShown:
    return filled(
        ItemShown,
        item,
        needs=[filled(NeedShown, need) for need in item.needs],
        cells=[_cell(cell, sensitivity, beside) for cell in item.cells],
    )


def _cell(cell: Laid, sensitivity: Sensitivity | None, beside: Beside | None) -> CellShown:
    effects = effects_of(cell, sensitivity)
    moving = [one for some in moved_most(effects, len(effects)) for one in some]
    return filled(
        CellShown,
        cell,
        beside=beside.of(cell) if beside is not None else None,
        rests_on=rests_on(effects),
        moves=[filled(MoveShown, one) for one in moving],
    )


def schema_path() -> Path:
    """The JSON Schema of `wiregauge study --json` and of study.json, shipped with the package."""
    return Path(__file__).with_name("study.schema.json")


def study_schema() -> dict[str, Any]:
    """The schema: a study that was carried out, or the list of available studies."""
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
