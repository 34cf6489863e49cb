"""What prints at 80 columns fits 80 columns: no word is broken, nothing is cut, and no column that matters is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.cli.doctor import _unused
from wiregauge.examining import Fact

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WIDE = 1000


def printed(width: int, *words: str | Path) -> str:
    result = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": str(width)})
    assert result.exit_code in (0, 1, 4), result.output
    return result.stdout


def broken(narrow: str, wide: str) -> set[tuple[str, str]]:
    """Words that a narrow terminal got in two pieces, one below the other."""
    whole, pieces = set(wide.split()), set(narrow.split()) - set(wide.split())
    return {
        (one, other) for one in pieces for other in pieces | whole if one + other in whole and one != other
    }


def table_lines(text: str, wide: str) -> list[str]:
    """Lines of tables: sentences, which the terminal itself wraps, stand as they are in the wide form."""
    sentences = {line.strip() for line in wide.splitlines()}
    return [line for line in text.splitlines() if line.strip() not in sentences]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    for name, example, seed in (
        ("first", "first", "1"),
        ("other", "first", "2"),
        ("priorities", "priorities", "1"),
        ("again", "priorities", "2"),
        ("round", "round-trips", "1"),
        ("back", "round-trips", "2"),
    ):
        printed(
            80,
            "run",
            EXAMPLES / f"{example}.xml",
            "--bench",
            "sim",
            "--seed",
            seed,
            "-q",
            "--out",
            place / name,
        )
    return place


COMMANDS = {
    "show": "show {first}",
    "show-priorities": "show {priorities}",
    "show-round-trips": "show {round}",
    "explain": "show {priorities} --explain --worst 2",
    "compare": "compare {first} {other}",
    "compare-priorities": "compare {priorities} {again}",
    "compare-round-trips": "compare {round} {back}",
    "trend": "trend {first} {other}",
    "trend-priorities": "trend {priorities} {again}",
    "bounds": "bounds {examples}/two-switches.xml",
    "schedule": "schedule {examples}/windows-by-hand.xml --check",
    "new": "new",
    "study": "study",
    "tsn": "tsn {examples}/gates.xml",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_at_80_columns_is_whole(name: str, runs: Path) -> None:
    places = {path.name: path for path in runs.iterdir()}
    words = COMMANDS[name].format(examples=EXAMPLES, **places).split()
    wide, narrow = printed(WIDE, *words), printed(80, *words)
    assert broken(narrow, wide) == set()
    assert [line for line in table_lines(narrow, wide) if len(line.rstrip()) > 80] == []
    assert narrow.count("…") <= wide.count("…")
    assert "\\n" not in narrow


def test_lines_of_a_cell_are_lines() -> None:
    told = printed(WIDE, "doctor", "--fine")
    assert "what it does, and the cure" in told
    assert "\\n" not in told


def test_interfaces_that_are_down_are_named_once() -> None:
    states = {"eth0": "up", "ifb0": "down", "ifb1": "down"}
    facts = [Fact("state", name, state) for name, state in states.items()]
    assert _unused([Fact("kernel", "", "7"), *facts]) == ["ifb0", "ifb1"]
    assert _unused(facts[1:]) == []


@pytest.mark.parametrize("run", ["first", "priorities", "round"])
@pytest.mark.parametrize("width", [50, 80, 100])
def test_show_has_what_was_sent_and_the_median_at_every_width(run: str, runs: Path, width: int) -> None:
    heads = printed(width, "show", runs / run).split()
    assert [head for head in ("sent", "lost", "p50", "p99", "max") if head not in heads] == []


def test_a_broken_word_is_seen() -> None:
    assert broken("undeci\nded: 2", "undecided: 2") == {("undeci", "ded:")}
    assert broken("undecided:\n2", "undecided: 2") == set()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_an_interval_stands_below_its_percentile(width: int, runs: Path) -> None:
    """As the caption says, in a line of its own: no line feed is shown as one."""
    for place in sorted(runs.iterdir()):
        shown = printed(width, "show", place)
        assert "\\n" not in shown, place.name
        assert "[/]" not in shown, place.name
