"""Nothing that an example gives changes by accident: records, truth, tracking, captures and figures.

Each example is run once; what commands print of that run is held against their schemas as well.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec import Struct
from msgspec.structs import replace

import reference
from chosen import also
from command_json import asked, held, validator
from wiregauge import measures, results
from wiregauge.results.explaining import explain_schema_path

STORED = json.loads(reference.REFERENCE.read_text(encoding="utf-8"))


def test_every_example_is_in_the_reference() -> None:
    assert set(STORED) == {path.stem for path in reference.EXAMPLES.glob("*.xml")}


class Example(Struct, frozen=True):
    """A run of an example, as a user makes it: the test, its run directory, what was printed, how it was judged."""

    name: str
    test: Path
    run: Path
    code: int
    printed: str
    judgement: measures.Judgement


THIRTY_SWITCHES = "ring-tsn"
"""Seventeen million records. Its parts are examples of their own: `ring-frer`, `gates`, `ptp`."""


@pytest.fixture(
    scope="module", params=[also(name) if name == THIRTY_SWITCHES else name for name in sorted(STORED)]
)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    """An example shared by the tests that examine it: run once, and then removed."""
    name: str = request.param
    place = tmp_path_factory.mktemp(name)
    judge, judged = results.judge, []

    def noted(*arguments: Any, **options: Any) -> measures.Judgement:
        judged.append(judge(*arguments, **options))
        return judged[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "judge", noted)
        test = reference.EXAMPLES / f"{name}.xml"
        code, printed = reference.simulate(test, place / "run", "--json")
    yield Example(name, test, place / "run", code, printed, judged[-1])
    shutil.rmtree(place)


def test_an_example_gives_what_it_gave(example: Example) -> None:
    differ = reference.differences(STORED[example.name], reference.digests(example.run))
    assert not differ, (
        f"{len(differ)} differ; if that is meant: the changelog, then `python reference.py write DIR`"
    )


def test_every_command_keeps_its_schema_for_every_example(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run directory, and its copy, are judged once for all commands; judging is not what is looked at here."""

    def once(directory: Path, *arguments: Any, **options: Any) -> measures.Judgement:
        return replace(example.judgement, directory=directory)

    monkeypatch.setattr(results, "judge", once)
    run, twin = example.run, tmp_path / "twin"
    assert asked("check", example.test, codes=(0,))["tests"][0]["ok"]
    assert example.code in (0, 1, 4)
    first = held("run", example.printed)
    shown = asked("show", run)
    assert shown["points"] == first["points"]
    explained = asked("show", run, "--explain", "--worst", 1)["explained"]
    validator(explain_schema_path()).validate(explained)
    steps = [step for flow in explained["flows"] for worst in flow["worst"] for step in worst["steps"]]
    # No frame leaves a node before it came; what a copy on another path did is no step of this one.
    assert not [
        step for step in steps if min(step["took_ns"], step["usual_ns"] or 0) < -(step["clocks_ns"] or 0)
    ]
    assert asked("verify", run, codes=(0,))["state"] == "whole"
    shutil.copytree(run, twin)
    found = asked("compare", run, twin)
    assert found["verdict"] == ("undecided" if found["unfit"] else "same")
    asked("trend", run, twin)
    shutil.rmtree(twin)


def test_another_value_anywhere_is_told(tmp_path: Path) -> None:
    """The judge fails where it should: one value of one column, one figure, one byte of a capture."""
    run = tmp_path / "taps"
    reference.simulate(reference.EXAMPLES / "taps.xml", run)
    before = reference.digests(run)
    messages = run / "messages" / "run-0000.parquet"
    table = pl.read_parquet(messages)
    last = pl.int_range(pl.len()) == pl.len() - 1
    table.with_columns(
        pl.when(last).then(pl.col("flow") + 1).otherwise(pl.col("flow")).alias("flow")
    ).write_parquet(messages)
    figures = run / "measures.json"
    stored = json.loads(figures.read_text(encoding="utf-8"))
    stored["digest"] = "another"
    stored["runs"][0]["flows"][0]["sent"] = -1
    figures.write_text(json.dumps(stored), encoding="utf-8")
    capture = next((run / "captures").rglob("*.pcapng"))
    capture.write_bytes(capture.read_bytes()[:-1] + b"?")
    assert reference.differences(before, reference.digests(run)) == sorted(
        ["messages/run-0000.parquet: flow", "measures.json", capture.relative_to(run).as_posix()]
    )
