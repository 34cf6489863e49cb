"""`wiregauge new`: every template is good, commented, runs to a verdict as it is, and overwrites nothing."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator
from lxml import etree
from typer.testing import CliRunner, Result

from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import load, schema_path
from wiregauge.config.template_files import TEMPLATES, examples, templates

ROOT = Path(__file__).resolve().parents[2]


def asked(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_list_is_that_of_the_files() -> None:
    known = templates()
    assert [one.name for one in known] == list(TEMPLATES)
    own = set((ROOT / "python" / "wiregauge" / "config" / "templates").iterdir())
    assert own == {one.path for one in known} - set((ROOT / "examples").iterdir())
    listed = asked("new")
    assert listed.exit_code == 0
    for one in known:
        assert re.search(rf"^{one.name} +{re.escape(one.summary)}$", listed.stdout, re.MULTILINE)
        assert 20 < len(one.summary) < 120
    named = listed.stdout.partition("Examples: ")[2].replace("\n", " ")
    for path in (ROOT / "examples").glob("*.xml"):
        assert path.stem in TEMPLATES or re.search(rf"\b{path.stem}\b", named)
    assert not list(Path().iterdir())


def test_an_example_is_written_and_runs() -> None:
    assert asked("new", "gates", "mine.xml").exit_code == 0
    loaded = load(Path("mine.xml"))
    assert (loaded.campaign.name, loaded.warnings) == ("gates", ())
    assert schema_path().as_uri() in Path("mine.xml").read_text()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_checked_and_runs_to_a_verdict_as_it_is(name: str) -> None:
    done = asked("new", name)
    assert done.exit_code == 0, done.output
    file = Path(f"{name}.xml")
    loaded = load(file)
    assert loaded.warnings == ()
    assert loaded.campaign.name == name
    run, check = re.findall("`wiregauge ([^`]*)`", done.stdout)
    assert asked(*shlex.split(check)).exit_code == 0
    shown = asked(*shlex.split(run), "--json", "--out", "out")
    assert shown.exit_code == 0, shown.output
    result = json.loads(shown.stdout)
    assert (result["verdict"], result["validity"]) == ("PASS", "VALID")
    assert Path("out", "report.html").exists()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_teaches(name: str) -> None:
    """A comment at the top and some within, none too wide to read, and limits to change."""
    text = next(one for one in templates() if one.name == name).path.read_text(encoding="utf-8")
    root = etree.fromstring(text.encode())
    assert len(list(root.iter(etree.Comment))) >= 4
    assert text.index("<!--") < text.index("<test")
    assert max(map(len, text.splitlines())) <= 125
    assert root.find("{*}limits") is not None


def test_a_template_names_the_schema_of_this_installation() -> None:
    asked("new", "two-hosts", "mine.xml")
    root = etree.parse("mine.xml").getroot()
    place = root.get("{http://www.w3.org/2001/XMLSchema-instance}schemaLocation", "").split()[1]
    assert place == schema_path().as_uri()
    for one in templates():
        assert one.text != one.path.read_text(encoding="utf-8")


def test_the_readme_shows_what_is_written() -> None:
    """But for comments, and the place of the schema, which is that of the installation."""
    (shown,) = re.findall(
        r"^```xml\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    (first,) = [one for one in examples() if one.name == "first"]
    begin, place = (
        first.text.index("<test "),
        re.compile(r'\s+xmlns:xsi="[^"]*"\s+xsi:schemaLocation="[^"]*"\s+'),
    )
    assert shown == place.sub(" ", first.text[begin:])


def test_nothing_is_overwritten() -> None:
    Path("robot.xml").write_text("mine")
    Path("dangling.xml").symlink_to("nowhere.xml")
    for words in (("robot",), ("afdx", "robot.xml"), ("tsn", "dangling.xml")):
        refused = asked("new", *words)
        assert refused.exit_code == 2
        assert "there is a file of that name already, and it stays as it is; name another" in refused.stderr
    assert Path("robot.xml").read_text() == "mine"
    assert not Path("nowhere.xml").exists()
    assert sorted(path.name for path in Path().iterdir()) == ["dangling.xml", "robot.xml"]


def test_bad_names_and_places_say_what_to_do() -> None:
    unknown = asked("new", "robto")
    assert unknown.exit_code == 2
    said = 'there is no template "robto" (did you mean "robot"?); it is one of two-hosts, switch-comparison'
    assert said in unknown.stderr
    nowhere = asked("new", "robot", "nowhere/robot.xml")
    assert nowhere.exit_code == 2
    assert "name a file in a directory that exists" in nowhere.stderr
    assert not list(Path().iterdir())


@pytest.mark.parametrize("words", [("new",), ("new", "tsn")])
def test_json_keeps_its_schema(words: tuple[str, ...]) -> None:
    result = json.loads(asked(*words, "--json").stdout)
    Draft202012Validator(json.loads(schema_of("new").read_text(encoding="utf-8"))).validate(result)
    assert result["written"] == ("tsn.xml" if "tsn" in words else None)
    assert [one["name"] for one in result["templates"]] == list(TEMPLATES)
    assert {"gates", "ptp"} <= {one["name"] for one in result["examples"]}


def test_what_is_a_template_and_an_example_is_one_file_that_can_be_copied() -> None:
    folders = (ROOT / "examples", ROOT / "python" / "wiregauge" / "config" / "templates")
    files = [path for folder in folders for path in folder.iterdir()]
    assert not [path for path in files if path.is_symlink()]
    names = [path.name for path in files if path.suffix == ".xml"]
    assert {"afdx.xml", "robot.xml"} <= set(names)
    assert len(names) == len(set(names))
    shutil.copy(ROOT / "examples" / "afdx.xml", "copied.xml")
    assert load(Path("copied.xml")).campaign.name == "afdx"


def test_the_robot_shows_what_its_comment_says() -> None:
    """Reports that leave at once wait for each other, those that are put off do not."""
    asked("new", "robot")

    def slowest(place: str, *beside: str) -> float:
        shown = asked("run", "robot.xml", "--json", "--out", place, "--set=tasks.duration=100ms", *beside)
        flows = json.loads(shown.stdout)["runs"][0]["flows"]
        return max(float(flow["latency_ns"]["p50"]) for flow in flows if flow["flow"] > 200)

    assert slowest("together") > 200_000
    assert slowest("apart", "--set", "send.201-240.offset-step=12us") < 40_000


def test_the_bridges_show_what_their_comment_says() -> None:
    asked("new", "tsn")
    fifo = [f"--set=switch.bridge{number}.priorities=fifo" for number in (1, 2)]
    assert asked("run", "tsn.xml", "--out", "fifo", *fifo).exit_code == 1
