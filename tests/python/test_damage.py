"""A bounded part of the damage campaign (`make nightly` runs all of it), and that the campaign itself can fail."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import stored
from campaigns import damage
from jsonschema_rs import Draft202012Validator

from wiregauge import report, results
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.records import DamagedError, integrity, verifying
from wiregauge.records.verifying import State, verify

SEED = 7


def test_no_damage_changes_a_figure_without_a_word(thorough: bool) -> None:
    outcomes = damage.campaign(*((50, 10) if thorough else (12, 3)), SEED, 2, lambda outcome: None)
    assert [fault for outcome in outcomes for fault in outcome.faults] == []
    ends = {end for outcome in outcomes for end in outcome.ends}
    assert ends == {"same", "named", "ended"}, "the campaign met damage that was read and damage that was not"


def test_the_campaign_would_see_a_silent_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the check of files taken out, one changed outcome of a message changes figures, and is found."""
    monkeypatch.setattr(integrity, "fault", lambda path, listed: None)
    monkeypatch.setattr(damage, "READERS", damage.READERS[:1])
    expected = damage.prepare(tmp_path)

    def swapped(place: Path, other: Path, draw: object) -> tuple[str, str]:
        name = "messages/run-0000.parquet"
        (place / name).write_bytes((other / name).read_bytes())
        return "swapped", name

    monkeypatch.setattr(damage, "mutate", swapped)
    outcome = damage.examine(damage.Case(0, 1, verified=True), tmp_path, expected)
    assert any("does not name messages/run-0000.parquet" in fault for fault in outcome.faults)


def test_every_mutation_can_strike_every_file(whole: Path, tmp_path: Path) -> None:
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    assert any(len(file.parts) == 3 for file in files), "captures are a folder deeper"
    for kind, (_, mutation) in damage.MUTATIONS.items():
        for number, file in enumerate(files):
            place = copied(whole, tmp_path / kind / str(number))
            mutation(place / file, random.Random(1), whole)
            shutil.rmtree(place)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored.make(tmp_path_factory.mktemp("damage") / "r", count=40)


def copied(whole: Path, into: Path) -> Path:
    shutil.copytree(whole, into)
    return into


def test_every_kind_of_damage_has_its_name(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path / "r")
    assert verify(place).state is State.WHOLE
    stored.flip(place / "records" / "run-0000.parquet", 999)
    (place / "messages" / "run-0001.parquet").write_bytes(
        (place / "messages" / "run-0000.parquet").read_bytes()
    )
    (place / "passages" / "run-0000.parquet").unlink()
    (place / "noise").mkdir()
    (place / "noise" / "run-0000.parquet").write_bytes((place / "truth" / "run-0000.parquet").read_bytes())
    (place / ".wiregauge-1-2").write_text("half")
    (place / "notes.txt").write_text("mine")
    found = verify(place)
    told = {finding.file: (finding.state, finding.detail) for finding in found.findings}
    assert {name: state for name, (state, _) in told.items()} == {
        "records/run-0000.parquet": State.DAMAGED,
        "messages/run-0001.parquet": State.DAMAGED,
        "passages/run-0000.parquet": State.MISSING,
        "noise/run-0000.parquet": State.FOREIGN,
        ".wiregauge-1-2": State.UNFINISHED,
        "notes.txt": State.OTHER,
    }
    assert "holds the messages of run 0" in told["messages/run-0001.parquet"][1]
    assert found.state is State.DAMAGED
    schema = json.loads(verifying.schema_path().read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(found.as_json())


def test_what_does_not_belong_is_not_read(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path / "r")
    (place / "noise").mkdir()
    (place / "noise" / "run-0000.parquet").write_bytes((place / "truth" / "run-0000.parquet").read_bytes())
    with pytest.raises(DamagedError, match=r"noise/run-0000\.parquet: does not belong to this run"):
        open_recorded(place).noise(0)


def test_a_directory_of_before_is_read_and_said_to_be_unverified(whole: Path, tmp_path: Path) -> None:
    place = stored.unsealed(whole, tmp_path / "r")
    judged = results.judge(place)
    (check,) = [check for check in judged.checks if check.name == "files"]
    assert (check.observed, check.grade.name) == ("unverified", "NOTE")
    assert judged.validity.word == results.judge(whole).validity.word
    assert verify(place).state is State.UNVERIFIED


def test_a_file_is_hashed_once_in_a_command(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copied(whole, tmp_path / "r")
    hashed = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        hashed.append(file.name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    report.write(place, results.judge(place))
    assert hashed
    assert len(hashed) == len(set(hashed)), hashed
