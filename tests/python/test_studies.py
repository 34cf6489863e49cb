"""Studies: cells collected from runs, laid beside what a paper printed, kept, and gone on with."""

from __future__ import annotations

import csv
import json
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from typer.testing import CliRunner

from wiregauge import studies
from wiregauge.cli.program import app
from wiregauge.studies import Item, ItemResult, Laid
from wiregauge.studies.dependence import origins
from wiregauge.studies.laying import Need
from wiregauge.studies.published import COLUMNS, read_expected
from wiregauge.studies.readme import items_of
from wiregauge.studies.shown import schema_path
from wiregauge.studies.summing import standings

ROOT = Path(__file__).resolve().parents[2]

TEST = """<test xmlns="urn:wiregauge:test:2" name="one" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/>
    <link between="a b" rate="100Mbit/s"/>
  </network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
  <tasks>
    <send flow="10" period="10ms" payload="64B" count="20"/>
    <receive flow="10"/>
  </tasks>
  <sweep><axis of="payload" values="64B 128B"/></sweep>
</test>
"""

STUDY = """
from wiregauge.studies import Item, Key, Part, Picture, Study, ratio

def cells(results):
    for payload in ("64", "128"):
        found = results.cell("one", "latency.mean", 10, payload=payload + "B")
        yield Key("Table 1", "UDP", payload + " B", "mean"), found
    yield Key("Table 2", "UDP", "", "128 B / 64 B"), ratio(
        results.cell("one", "latency.mean", 10, payload="128B"),
        results.cell("one", "latency.mean", 10, payload="64B"),
    )

STUDY = Study(
    name="toy", title="A toy", paper="Nobody, 2026", question="How long is a frame?",
    parts=[Part("one", "one.xml", {"quick": ("axis.payload.values=64B",)}, not_on={"netns": "it is a toy"})],
    items=[Item("Table 1", "Latency", picture=Picture("payload, B", "latency, us")), Item("Table 2", "Ratio")],
    cells=cells,
)
"""
# 64 B of payload are 110 B of frame and 8 B of preamble: 9.44 us at 100 Mbit/s; 128 B are 14.56 us.
EXPECTED = """Table 1,UDP,64 B,mean,9.44,us,rounding,
Table 1,UDP,128 B,mean,14.6,us,1%,
Table 1,UDP,256 B,mean,,us,,printed as a picture
Table 2,UDP,,128 B / 64 B,1.5,,±0.05,
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "one.xml").write_text(TEST)
    (folder / "study.py").write_text(STUDY)
    expect(folder, EXPECTED)
    return folder


def expect(folder: Path, rows: str) -> None:
    """Writes expectations; lines of eight values are predictions where they have a criterion, and none by chance."""
    text = f"{','.join(COLUMNS)}\n"
    for line in rows.splitlines():
        values = next(csv.reader([line]))
        role = f",{'prediction' if values[6] else ''}," if len(values) == 8 else ""
        text += line + role + ("," if len(values) in (8, 10) else "") + "\n"
    (folder / "expected.csv").write_text(text)


def carried(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["study", *map(str, arguments), "--json"])
    assert result.exit_code == code, (result.output, result.exception)
    tree = json.loads(result.stdout)
    Draft202012Validator(json.loads(schema_path().read_text())).validate(tree)
    return tree


def refused(*arguments: object) -> str:
    """What a whole command says that ends with bad input."""
    command = [sys.executable, "-m", "wiregauge", "study", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def cells_of(tree: Any, item: str) -> dict[str, Any]:
    (found,) = (one for one in tree["items"] if one["item"] == item)
    return {cell["x"]: cell for cell in found["cells"]}


def test_a_study_lays_the_papers_cells_beside_ours(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tree = carried(toy, "--out", out)
    assert tree["verdict"] == "PASS"
    table = cells_of(tree, "Table 1")
    assert (table["64 B"]["ours"], table["64 B"]["result"]) == (pytest.approx(9.44), "holds")
    assert table["64 B"]["n"] == 20
    assert table["128 B"]["result"] == "holds"
    assert table["256 B"] | {"result": "not compared", "reason": "printed as a picture"} == table["256 B"]
    assert cells_of(tree, "Table 2")[""]["ours"] == pytest.approx(14.56 / 9.44)
    assert json.loads((out / "study.json").read_text()) == tree
    page = (out / "report.html").read_text()
    assert "14.6 µs" in page
    assert "printed as a picture" in page
    assert (out / "runs" / "one" / "manifest.json").exists()
    shown = CliRunner().invoke(app, ["show", str(out / "runs" / "one"), "--json"])
    assert json.loads(shown.stdout)["points"][0]["flows"][0]["latency_ns"]["mean"] == pytest.approx(9440)


@pytest.mark.parametrize(
    ("row", "result", "code"),
    [
        ("Table 1,UDP,64 B,mean,9.45,us,rounding,", "fails", 1),
        ("Table 1,UDP,64 B,mean,9.4,us,rounding,", "holds", 0),
        ("Table 1,UDP,64 B,mean,10,us,5%,", "fails", 1),
        ("Table 1,UDP,64 B,mean,10,us,6%,", "holds", 0),
        ("Table 1,UDP,64 B,mean,0.01,ms,±0.001,", "holds", 0),
        ("Table 1,UDP,64 B,mean,0.01,ms,±0.0005,", "fails", 1),
        ("Table 1,UDP,64 B,mean,9.44,us,interval,", "holds", 0),
        ("Table 1,UDP,64 B,mean,9.5,us,interval,", "fails", 1),
        ("Table 1,UDP,64 B,mean,9,us,at-most,", "fails", 1),
        ("Table 1,UDP,64 B,mean,9,us,at-least,", "holds", 0),
        ("Table 1,UDP,512 B,mean,9,us,1%,", "undecided", 4),
    ],
)
def test_every_criterion_can_fail(toy: Path, tmp_path: Path, row: str, result: str, code: int) -> None:
    expect(toy, row + "\n")
    tree = carried(toy, "--out", tmp_path / "out", code=code)
    assert cells_of(tree, "Table 1")[row.split(",")[2]]["result"] == result
    assert tree["verdict"] == {0: "PASS", 1: "FAIL", 4: "UNDECIDED"}[code]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("Table 9,UDP,64 B,mean,1,us,1%,\n", 'declares no item "Table 9"'),
        ("Table 1,UDP,64 B,mean,1,us,about,\n", "is no criterion"),
        ("Table 1,UDP,64 B,mean,one,us,1%,\n", '"one" is no number'),
        ("Table 1,UDP,64 B,mean,1,furlong,1%,\n", "furlong"),
        ("Table 1,UDP,64 B,mean,,us,1%,\n", "needs a value"),
        ("Table 1,UDP,64 B,mean,1,us,,\n", "needs a reason"),
        ("Table 1,UDP,64 B,mean,1,us,1%,\n" * 2, "in line 2 already"),
        ("Table 1,UDP,64 B\n", "has not the 11 values"),
        ("Table 1,UDP,64 B,mean,1,Mbit/s,1%,\n", "cannot be compared"),
    ],
)
def test_bad_expectations_are_refused_in_one_line(toy: Path, tmp_path: Path, rows: str, said: str) -> None:
    expect(toy, rows)
    result = CliRunner().invoke(app, ["study", str(toy), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.exception
    assert said in result.output
    assert "Traceback" not in result.output


def test_what_a_size_or_a_bench_leaves_out_is_listed(toy: Path, tmp_path: Path) -> None:
    tree = carried(toy, "--quick", "--out", tmp_path / "out")
    left = cells_of(tree, "Table 1")["128 B"]
    assert (left["result"], left["reason"]) == ("not compared", "the quick form of one has no payload 128B")
    found = studies.open_study(str(toy))
    results = studies.Results("usual", "netns", tmp_path, {}, {}, {"one": "it is a toy"})
    laid = [cell for item in studies.lay(found, results) for cell in item.cells]
    assert {(cell.result, cell.reason) for cell in laid if cell.published and cell.published.criterion} == {
        ("not compared", "it is a toy")
    }


def test_some_cells_may_miss() -> None:
    assert Need("mean", 10, 8, 2, 0, 2).verdict == "PASS"
    assert Need("mean", 10, 7, 3, 0, 2).verdict == "FAIL"
    assert Need("mean", 10, 8, 1, 1, 2).verdict == "PASS"
    assert Need("mean", 10, 8, 1, 2, 2).verdict == "UNDECIDED"
    assert Need("mean", 0, 0, 0, 0, 0).verdict == "NONE"


def test_a_study_goes_on_where_it_was_stopped(toy: Path, tmp_path: Path) -> None:
    study = (toy / "study.py").read_text()
    two = 'Part("one", "one.xml"), Part("two", "one.xml", {"usual": ("send.10.count=200000", "send.10.period=20us")})'
    begin, end = study.index("    parts="), study.index("    items=")
    (toy / "study.py").write_text(f"{study[:begin]}    parts=[{two}],\n{study[end:]}")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "wiregauge", "study", str(toy), "--out", str(out), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        ends = time.monotonic() + 60
        while not (out / "runs" / "two").exists() and time.monotonic() < ends:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=120)
    kept = json.loads((out / "study.json").read_text())
    assert (running.returncode, kept["state"]) == (4, "interrupted"), said
    assert "--resume" in said[1]
    assert kept["verdict"] == "UNDECIDED"
    first = (out / "runs" / "one" / "manifest.json").stat().st_mtime_ns
    tree = carried(toy, "--resume", out)
    assert (tree["state"], tree["verdict"]) == ("complete", "PASS")
    assert (out / "runs" / "one" / "manifest.json").stat().st_mtime_ns == first
    assert carried(toy, "--resume", out)["items"] == tree["items"]


def test_what_is_there_is_not_written_over(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("somebody's")
    for option, said in (("--out", "already holds files"), ("--resume", "it holds no study.json")):
        assert said in refused(toy, option, out)
    assert "leave --out out" in refused(toy, "--resume", out, "--out", out)
    assert [path.name for path in out.iterdir()] == ["report.html"]


def test_another_study_size_or_test_does_not_go_on_here(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    carried(toy, "--out", out)
    for more in (["--quick"], ["--bench", "netns"]):
        assert "leave that out" in refused(toy, "--resume", out, *more)
    (toy / "one.xml").write_text(TEST.replace('count="20"', 'count="30"'))
    assert "another version of one.xml" in refused(toy, "--resume", out)


def test_names_that_are_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["study", "no-such-study"])
    assert (result.exit_code, "there is no study" in result.output) == (2, True)
    (tmp_path / "study.py").write_text("raise RuntimeError('broken')")
    result = CliRunner().invoke(app, ["study", str(tmp_path)])
    assert (result.exit_code, "RuntimeError: broken" in result.output) == (2, True)
    for options in (["--quick", "--full", "x"], ["--quick"], ["--out", "y"]):
        assert CliRunner().invoke(app, ["study", *options]).exit_code == 2


def test_the_list_keeps_its_schema() -> None:
    tree = carried()
    assert [one["name"] for one in tree["studies"]] == studies.names()
    assert all(size["runs"] for one in tree["studies"] for size in one["sizes"])


@pytest.mark.parametrize("name", studies.names())
def test_studies_are_whole(name: str) -> None:
    """Every test of every size is good, what is expected can be read, and the folder says what it is."""
    study = studies.open_study(name)
    assert study.name == name
    for size in studies.SIZES:
        assert studies.load_parts(study, size, "sim")
    expected = read_expected(study.folder, [item.number for item in study.items])
    assert {item.number for item in study.items} == {cell.key.item for cell in expected}
    linked = ROOT / "studies" / name
    assert (linked / "README.md").is_file()
    # What is installed is what the repository shows.
    assert contents(linked) == contents(study.folder)


QUICK = ("udp-versus-raw",)
"""Studies whose expected values are held here, in their quick form."""


@pytest.mark.parametrize("name", QUICK)
def test_what_papers_printed_comes_out_again(name: str, tmp_path: Path) -> None:
    tree = carried(name, "--quick", "--out", tmp_path / "out")
    assert (tree["state"], tree["verdict"]) == ("complete", "PASS")
    cells = [cell for item in tree["items"] for cell in item["cells"]]
    assert all(cell["result"] in ("holds", "shown", "not compared") for cell in cells)
    assert all(cell["reason"] for cell in cells if cell["result"] != "holds")


def test_every_study_of_the_program_is_run_by_make_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails when one does, and when one cannot be carried out at all."""
    ran = []

    def verdict(name: str, _place: Path) -> tuple[str, str]:
        ran.append(name)
        return verdicts.get(name, "PASS"), ""

    tool = runpy.run_path(str(ROOT / "tools" / "studies.py"))
    verdicts: dict[str, str] = {}
    monkeypatch.setitem(tool["main"].__globals__, "quick", verdict)
    assert tool["main"]([]) == 0
    assert ran == studies.names()
    for word in ("FAIL", "UNDECIDED", "NONE"):
        verdicts["udp-versus-raw"] = word
        assert tool["main"]([]) == 1
    monkeypatch.undo()
    assert tool["main"](["no-such-study"]) == 1


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_sums_and_ratios_never_narrow_an_interval() -> None:
    one = studies.Measured(10.0, "ns", 5, 9.0, 11.0, "one")
    other = studies.Measured(4.0, "ns", 7, 3.0, 5.0, "other")
    assert (studies.total(one, other).low, studies.total(one, other).high) == (12.0, 16.0)
    assert (studies.difference(one, other).low, studies.difference(one, other).high) == (4.0, 8.0)
    found = studies.ratio(one, other)
    assert (found.value, found.low, found.high, found.n) == (2.5, 9 / 5, 11 / 3, 5)
    missing = studies.Measured(None, "ns", reason="lost")
    assert studies.ratio(one, missing).reason == "lost"
    assert studies.total(missing, one).value is None
    nothing = studies.known(0.0, "ns", "nothing")
    assert studies.ratio(one, nothing).value is None
    assert isinstance(studies.scaled(one, 0.5), studies.Measured)


def test_statements_count_once_and_roles_apart(toy: Path) -> None:
    """Thirty cells that repeat one sentence of a paper are one statement, and what was put in predicts nothing."""
    expect(
        toy,
        "".join(f"Table 1,UDP,{n} B,mean,1,us,at-least,,prediction,always slower\n" for n in range(1, 31))
        + "Table 2,UDP,,a,1,,±1,,fit,\nTable 2,UDP,,b,1,,±1,,input,\n",
    )
    cells = [
        Laid(one.key, one, one.unit, 2.37, None, None, 1, "holds", "", "")
        for one in read_expected(toy, ["Table 1", "Table 2"])
    ]
    items = (ItemResult(Item("Table 1", ""), cells),)
    prediction, fit, put_in = standings(items)
    assert (prediction.statements, prediction.holds, prediction.bounds, prediction.cells) == (1, 1, 1, 30)
    assert (fit.statements, put_in.statements) == (1, 1)


DEPENDENT = [
    # The paper's value is one that was fitted, whatever unit it is written in.
    ("Table 1,UDP,128 B,mean,14560,ns,1%,,prediction,again", "Table 1, UDP, 64 B, mean"),
    # It stands in the test.
    ("Table 1,UDP,128 B,mean,0.01,s,1%,,prediction,again", 'one.xml, <send> period="10ms"'),
    ("Table 1,UDP,128 B,mean,14.57,us,1%,,prediction,again", None),
    # A bound says no value, and plain numbers are of too many things.
    ("Table 1,UDP,128 B,mean,14.56,us,at-most,,prediction,again", None),
    ("Table 2,UDP,,128 B / 64 B,20,,1%,,prediction,again", None),
]


@pytest.mark.parametrize(("row", "origin"), DEPENDENT)
def test_a_value_that_was_fitted_or_put_in_predicts_nothing(toy: Path, row: str, origin: str | None) -> None:
    expect(toy, f"Table 1,UDP,64 B,mean,14.56,us,1%,,fit,long frames\n{row}\n")
    study = studies.open_study(str(toy))
    expected = read_expected(toy, ["Table 1", "Table 2"])
    found = origins(study, expected, {}).get(expected[1].key)
    assert (found.name if found else None) == origin
    # Whoever knows better says why; who says it of nothing is refused.
    expect(toy, f"Table 1,UDP,64 B,mean,14.56,us,1%,,fit,long frames\n{row},by chance\n")
    excused = read_expected(toy, ["Table 1", "Table 2"])
    if origin is not None:
        assert origins(study, excused, {}) == {}
    else:
        with pytest.raises(studies.StudyError, match=r"expected\.csv:3: no fit, no input and no attribute"):
            origins(study, excused, {})


def test_the_same_figure_twice_predicts_nothing_the_second_time(toy: Path, tmp_path: Path) -> None:
    """Whatever the paper says of it: a ratio that was fitted to 1.54 is also more than 1."""
    twice = (
        (toy / "study.py")
        .read_text()
        .replace(
            '    yield Key("Table 2"',
            '    yield Key("Table 1", "UDP", "again", "mean"), found\n    yield Key("Table 2"',
        )
    )
    (toy / "study.py").write_text(twice)
    expect(
        toy,
        "Table 1,UDP,128 B,mean,14.6,us,1%,,fit,long frames\n"
        "Table 1,UDP,again,mean,1,us,at-least,,prediction,it takes time\n"
        "Table 1,UDP,64 B,mean,9.4,us,1%,,prediction,short frames\n",
    )
    tree = carried(toy, "--out", tmp_path / "out")
    cells = cells_of(tree, "Table 1")
    assert (cells["again"]["role"], cells["again"]["repeats"]) == ("fit", "Table 1, UDP, 128 B, mean")
    assert cells["again"]["statement"] == "long frames"
    assert (cells["64 B"]["role"], cells["64 B"]["repeats"]) == ("prediction", None)
    assert {one["role"]: one["statements"] for one in tree["standings"]} == {
        "prediction": 1,
        "fit": 1,
        "input": 0,
    }
    said = "fit and no prediction, since it repeats Table 1, UDP, 128 B, mean: UDP again mean"
    assert said in (tmp_path / "out" / "report.html").read_text()
    text = CliRunner().invoke(app, ["study", str(toy), "--resume", str(tmp_path / "out")]).stdout
    assert said in " ".join(text.split())
    assert "1 of 1 independent prediction agrees" in text


@pytest.mark.parametrize("name", studies.names())
def test_no_study_of_the_program_calls_a_prediction_what_it_was_given(name: str) -> None:
    """Checks values, and figures: sensitivity.json says which cells are one figure."""
    study = studies.open_study(name)
    found = studies.find_sensitivity(study, "quick", study.folder)
    assert found is not None
    repeated = [cell for item in items_of(study, found) for cell in item.cells if cell.origin is not None]
    assert [(str(cell.key), cell.origin) for cell in repeated] == []
