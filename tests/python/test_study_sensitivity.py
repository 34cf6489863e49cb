"""How results of studies move with their parameters, and that READMEs tell predictions, fits and inputs apart."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from test_studies import ROOT, STUDY, TEST, carried, expect
from wiregauge import studies
from wiregauge.cli.program import app
from wiregauge.studies import Parameter, moving
from wiregauge.studies import sensitivity as room
from wiregauge.studies.effects import effects_of, falls_with, moved_most, rests_on, row_effects, row_sentence
from wiregauge.studies.moving import Move, moved_files, moves
from wiregauge.studies.readme import BEGIN, END, items_of, readme
from wiregauge.studies.sensitivity import Sensitivity

# The cable is assumed, the rate is stated. A frame of 64 B takes 9.44 us, the cable 1 us: 10.44 us.
LONG = TEST.replace('rate="100Mbit/s"', 'rate="100Mbit/s" delay="1us"')
DECLARED = """    parameters=[
        Parameter("cable", "assumed", [("*.xml", "//t:link/@delay")]),
        Parameter("granularity", "fitted", [("one.xml", "//t:end-system[@name='b']/t:clock/@granularity")], ("3ns",)),
    ],
"""
MOVING = STUDY.replace("Picture, Study", "Parameter, Picture, Study").replace(
    "    cells=cells,\n)", f"    cells=cells,\n{DECLARED})"
)
LONG = LONG.replace('<end-system name="b"/>', '<end-system name="b"><clock granularity="1ns"/></end-system>')
EXPECTED = """Table 1,UDP,64 B,mean,10.44,us,±0.06,,fit,
Table 1,UDP,128 B,mean,15.56,us,±5,,prediction,
Table 2,UDP,,128 B / 64 B,1.49,,±0.02,,input,
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "one.xml").write_text(LONG)
    (folder / "study.py").write_text(MOVING)
    expect(folder, EXPECTED)
    return folder


def test_each_parameter_is_moved_alone_and_its_share_of_every_cell_shown(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tree = carried(toy, "--out", out, "--sensitivity")
    assert tree["sensitivity"]["size"] == "usual"
    assert [one["name"] for one in tree["sensitivity"]["parameters"]] == ["cable", "granularity"]
    cells = {cell["x"]: cell for item in tree["items"] for cell in item["cells"]}
    short = {(move["parameter"], move["to"]): move for move in cells["64 B"]["moves"]}
    assert short["cable", "90%"]["ours"] == pytest.approx(10.34, abs=0.002)
    assert short["cable", "110%"]["ours"] == pytest.approx(10.54, abs=0.002)
    assert short["cable", "110%"]["result"] == "fails"
    assert cells["64 B"]["rests_on"] == "stands or falls with cable at 90%, 110%"
    assert cells["128 B"]["rests_on"] == ""
    assert {move["parameter"] for move in cells["128 B"]["moves"]} >= {"cable"}
    page = (out / "report.html").read_text()
    assert "stands or falls with cable at 90%" in page
    assert "1us \N{RIGHTWARDS ARROW} 0.9us" in page
    for item in tree["items"]:
        for cell in item["cells"]:
            # The role stands in the row of the cell, and what holds is counted by it.
            row = next(
                row for row in page.split("<tr")[1:] if f">{cell['statistic']}<" in row and cell["x"] in row
            )
            assert re.search(rf">{cell['role']}\s*<", row)
    # So does it in the table of what moves each.
    moves = [part for part in page.split("<table") if "granularity 3ns" in part]
    assert moves
    assert all(re.search(r">role\s*<", part) for part in moves)
    assert "2 of 2 of mean within the criterion: PASS (prediction: 1 of 1, fit: 1 of 1)" in page
    assert not list(out.glob("moved-*"))
    text = CliRunner().invoke(app, ["study", str(toy), "--resume", str(out)]).stdout
    assert "UDP, mean: 2 of 2 hold; moved most by cable (90%: -0.96 %, 110%: +0.96 %)" in text
    assert "; 1 of 2 hold with cable at 90%" in text


def test_moves_are_kept_and_made_once(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    first = carried(toy, "--out", out, "--sensitivity")
    kept = (out / "sensitivity.json").read_bytes()

    def again(*_: object) -> None:
        raise AssertionError("it was moved before")

    with monkeypatch.context() as patch:
        patch.setattr(room, "_judged", again)
        assert carried(toy, "--resume", out, "--sensitivity")["items"] == first["items"]
    assert (out / "sensitivity.json").read_bytes() == kept
    # What another number moves is another move: only this one is made anew.
    (toy / "study.py").write_text(MOVING.replace('("3ns",)', '("4ns",)'))
    made: list[Any] = []
    real: Any = room._judged

    def counted(*some: Any) -> Any:
        made.append(some)
        return real(*some)

    monkeypatch.setattr(room, "_judged", counted)
    carried(toy, "--resume", out, "--sensitivity")
    assert len(made) == 1


def test_what_was_found_of_other_tests_is_not_shown(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    carried(toy, "--out", out, "--sensitivity")
    shutil.copy(out / "sensitivity.json", toy)
    assert carried(toy, "--out", tmp_path / "same")["sensitivity"] is not None
    (toy / "one.xml").write_text(LONG.replace('delay="1us"', 'delay="2us"'))
    tree = carried(toy, "--out", tmp_path / "other", code=1)
    assert tree["sensitivity"] is None
    text = CliRunner().invoke(app, ["study", str(toy), "--out", str(tmp_path / "third")]).stdout
    assert "not known of these tests" in text


def test_what_cannot_be_moved_is_refused(toy: Path, tmp_path: Path) -> None:
    def said(*options: str) -> str:
        done = CliRunner().invoke(
            app, ["study", str(toy), "--out", str(tmp_path / options[-1]), *options[:-1]]
        )
        assert done.exit_code == 2, done.output
        return " ".join(done.output.split())

    assert "only bench sim has one" in said("--bench", "netns", "--sensitivity", "a")
    (toy / "study.py").write_text(MOVING.replace("//t:link/@delay", "//t:link/@dely"))
    assert "cable: *.xml has no //t:link/@dely" in said("--sensitivity", "b")
    (toy / "study.py").write_text(STUDY)
    assert "it declares no parameters" in said("--sensitivity", "c")
    (toy / "study.py").write_text(MOVING.replace('("3ns",)', '("3m",)'))
    assert "granularity" in said("--sensitivity", "d")
    assert CliRunner().invoke(app, ["study", "--sensitivity"]).exit_code == 2


@pytest.mark.parametrize(
    ("before", "to", "after"),
    [
        ("45.7us", "90%", "41.13us"),
        ("0%:0us 100%:10.5us", "110%", "0%:0us 100%:11.55us"),
        ("0%:-53.2ns 37.41%:0ns 100%:31.8ns", "110%", "0%:-58.52ns 37.41%:0ns 100%:34.98ns"),
        ("61", "90%", "55"),
        ("3600B", "110%", "3960B"),
        ("2.003ms", "2ms", "2ms"),
    ],
)
def test_quantities_are_scaled_and_the_shares_among_them_are_not(before: str, to: str, after: str) -> None:
    assert moving._changed(before, to) == after


@pytest.mark.parametrize("name", studies.names())
def test_every_study_comes_with_what_moves_its_results(name: str) -> None:
    """The sensitivity is of exactly these tests and all parameters, and every move changes a number of a valid test."""
    study = studies.open_study(name)
    assert study.parameters
    found = studies.find_sensitivity(study, "quick", study.folder)
    assert found is not None, "run `wiregauge study NAME --quick --sensitivity` and copy its sensitivity.json"
    assert {cell.key for item in items_of(study, found) for cell in item.cells} == set(found.named())
    for move in moves(study):
        assert moved_files(study, move)[1], move
    # That a number does something is the reason to name it: each moves some cell.
    untouched = {one.name for one in study.parameters} - {
        some[0].name
        for item in items_of(study, found)
        for cell in item.cells
        for some in moved_most(effects_of(cell, found), len(found.moved))
    }
    assert untouched == UNMOVING.get(name, set())


UNMOVING = {
    "precision": {"delay of the switch", "buffer of the switch"},
    "robot": {"delay of the GS748T", "stack of the real-time Linux", "Windows"},
}
"""Parameters with which no compared cell moves: the pages say so."""


@pytest.mark.parametrize("name", studies.names())
def test_the_readme_of_a_study_has_what_the_program_found(name: str) -> None:
    study = studies.open_study(name)
    assert (study.folder / "README.md").read_text(encoding="utf-8") == readme(study), "run `make reference`"


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The heads and rows of every table."""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|").split("|")])
        elif lines:
            yield lines[0], lines[2:]
            lines = []


def unmarked(text: str) -> list[list[str]]:
    """Rows of tables of results that do not say what their agreement is worth."""
    _, _, result = text.partition("\n## Result\n")
    result = re.split(r"\n## |<!-- Generated", result, maxsplit=1)[0]
    wrong = []
    for heads, rows in tables(result):
        by_column = all(re.match("(fit|prediction|input)", head) for head in heads[1:])
        if "role" in heads:
            wrong += [row for row in rows if row[heads.index("role")] not in ("prediction", "fit", "input")]
        elif not by_column:
            wrong += rows
    return wrong


@pytest.mark.parametrize("name", studies.names())
def test_results_in_a_readme_tell_predictions_fits_and_inputs_apart(name: str) -> None:
    text = (ROOT / "studies" / name / "README.md").read_text(encoding="utf-8")
    assert "\n## Result\n" in text
    assert list(tables(text.partition("\n## Result\n")[2]))
    assert not unmarked(text)
    generated = text.partition(BEGIN)[2].partition(END)[0]
    assert "Only they are evidence" in generated
    # A row without its role is seen.
    heads, rows = next(tables(text.partition("\n## Result\n")[2]))
    planted = "\n## Result\n| what | ours |\n| --- | --- |\n| mean | 3 |\n"
    assert unmarked(planted) == [["mean", "3"]]
    assert unmarked(planted.replace("ours |", "ours | role |").replace("3 |", "3 | good |"))
    assert heads
    assert rows


@pytest.mark.parametrize("name", studies.names())
def test_only_independent_predictions_are_counted_as_evidence(name: str) -> None:
    """A README counts statements by their role, and those only that expected.csv marks as predictions."""
    study = studies.open_study(name)
    found = studies.find_sensitivity(study, "quick", study.folder)
    assert found is not None
    cells = [cell for item in items_of(study, found) for cell in item.cells if cell.role == "prediction"]
    statements: dict[str, set[str]] = {}
    for cell in cells:
        statements.setdefault(cell.statement, set()).add(cell.result)
    agree = sum(results == {"holds"} for results in statements.values())
    said = f"Independent predictions that agree: {agree} of {len(statements)}."
    text = (study.folder / "README.md").read_text(encoding="utf-8")
    assert said in text
    chance = sum(bool(cell.published and cell.published.coincidence) for cell in cells)
    assert re.findall(r"^(\d+) of their", text, re.MULTILINE) == ([str(chance)] if chance else [])


def test_what_comes_with_a_study_is_what_it_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick form and one move of the cheapest study, made again."""
    study = studies.open_study("udp-versus-raw")
    kept = studies.find_sensitivity(study, "quick", study.folder)
    assert kept is not None
    chosen = "delay of the switch"
    only = [move for move in moves(study) if move.name == chosen]
    monkeypatch.setattr(room, "moves", lambda _: iter(only))
    arguments = ["study", study.name, "--quick", "--sensitivity", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    found = msgspec.json.decode((tmp_path / "out" / "sensitivity.json").read_bytes(), type=Sensitivity)
    assert found.cells == kept.cells
    assert found.base == kept.base
    assert found.moved == tuple(one for one in kept.moved if one.name == chosen)


def test_the_row_of_tte_says_that_it_rests_on_the_period_of_its_sender() -> None:
    study = studies.open_study("maps")
    found = studies.find_sensitivity(study, "quick", study.folder)
    assert found is not None
    (table,) = (item for item in items_of(study, found) if item.item.number == "Table 3")
    rows = {(row.series, row.statistic): row for row in row_effects(table.cells, found)}
    assert "stands or falls with period of the sender at 2ms" in row_sentence(rows["TTE", "sd"])
    assert not any("period of the sender" in one.name for one in falls_with(rows["RC", "mean"]))
    idle = next(
        cell
        for cell in table.cells
        if (cell.key.series, cell.key.x, cell.key.statistic) == ("TTE, 0 %", "64 B", "sd")
    )
    assert "period of the sender" in rests_on(effects_of(idle, found))


def test_a_parameter_is_not_named_for_what_another_seed_does_as_well() -> None:
    """Chance is the yardstick: a change no greater than that of a seed names nobody."""
    study = studies.open_study("maps")
    found = studies.find_sensitivity(study, "quick", study.folder)
    assert found is not None
    for item in items_of(study, found):
        for cell in item.cells:
            effects = effects_of(cell, found)
            chance = max(one.size for one in effects if one.name == moving.SEED)
            for some in moved_most(effects, len(effects)):
                assert max(one.size for one in some) > chance
                assert some[0].name != moving.SEED


def test_a_move_names_one_number() -> None:
    """Seeds and parameters, each at each of its values, and nothing twice."""
    one = Parameter("p", "assumed", [("*.xml", "//@delay")], ("1us", "2us"))
    study = studies.open_study("maps")
    named = [(move.name, move.to) for move in moves(study)]
    assert len(named) == len(set(named))
    assert Move(one.name, "1us", tuple(one.places)).places == (("*.xml", "//@delay"),)
    assert json.loads((study.folder / "sensitivity.json").read_text())["sensitivity of"] == "maps"
