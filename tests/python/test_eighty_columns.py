"""What prints at 80 columns fits 80 columns: no word is broken, nothing is cut, and no column that matters is lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.cli.doctor import _unused
from wiregauge.examining import Fact, facts_of_json
from wiregauge.runner.agent_program import agent_program, examine
from wiregauge.terminal.wrapping import indent_of, wrapped

BENCH = {
    "name": "netns",
    "works": False,
    "detail": "this machine grants no namespaces",
    "cure": "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WIDE = 1000


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a command prints is taken for a terminal; the last test has one."""
    for module in ("output", "console", "exits"):
        monkeypatch.setattr(
            f"wiregauge.terminal.{module}.width_for", lambda _: int(os.environ.get("COLUMNS", WIDE))
        )


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


def too_wide(text: str) -> list[str]:
    """Lines that a terminal of 80 columns would break; not those of one word, which nothing can break."""
    return [line for line in text.splitlines() if len(line.rstrip()) > 80 and " " in line.strip()]


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
        ("ring", "ring-frer", "1"),
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
    "check": "check {examples}/under-load.xml {examples}/policing.xml",
    "demo": "run {examples}/demo.xml --out {first}/again",
    "verify": "verify {first}",
    "docs": "docs",
    "tsn": "tsn {examples}/cyclic.xml",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_at_80_columns_is_whole(name: str, runs: Path) -> None:
    places = {path.name: path for path in runs.iterdir()}
    words = COMMANDS[name].format(examples=EXAMPLES, **places).split()
    wide, narrow = printed(WIDE, *words), printed(80, *words)
    assert broken(narrow, wide) == set()
    assert too_wide(narrow) == []
    assert narrow.count("…") <= wide.count("…")
    assert "\\n" not in narrow


def test_a_cure_is_a_line_that_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is; what is said of it is wrapped between words."""
    monkeypatch.setattr("wiregauge.cli.doctor._benches", lambda _: [BENCH])
    # What is measured differs from one look to the next.
    seen = examine()
    monkeypatch.setattr("wiregauge.runner.agent_program.examine", lambda: seen)
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    checks = [one for one in told["checks"] if one["severity"] != "fine"]
    cures = [one["cure"] for one in (BENCH, *told["programs"], *checks) if one["cure"]]
    down = _unused(facts_of_json(told["facts"]))
    cures = [cure for cure in cures if not any(name in cure.split() for name in down)]
    for width in (40, 80):
        lines = [line.strip() for line in printed(width, "doctor").splitlines()]
        assert [cure for cure in cures if cure not in lines] == []
        assert [line for line in lines if len(line) > width and line not in cures and " " in line] == []


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


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_help_of_the_agent_fits(columns: str) -> None:
    """The help of the program and of each of its commands fits, even when printed to a file."""

    def told(*words: str) -> str:
        command = [str(agent_program()), *words, "--help"]
        environment = {**os.environ, "COLUMNS": columns}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    top = told()
    commands = [
        line.split()[0]
        for line in top.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
        if line[2] != " "
    ]
    assert {"serve", "capture", "generate"} < set(commands)
    assert [line for name in commands if name != "help" for line in too_wide(told(name))] == []
    assert too_wide(top) == []


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


def test_a_sentence_is_broken_between_words_alone() -> None:
    """Not in a command, nor in an interval; a list goes on below its words."""
    text = "  - a median of 22.8 µs [22.7 µs, 22.9 µs]; `wiregauge show r --explain` says why"
    assert wrapped(text, 30).splitlines() == [
        "  - a median of 22.8 µs",
        "    [22.7 µs, 22.9 µs];",
        "    `wiregauge show r --explain`",
        "    says why",
    ]
    assert wrapped(text, None) == text
    assert " ".join(line.strip() for line in wrapped(text, 30).splitlines()) == text.strip()
    assert wrapped("x" * 50 + " y", 30) == "x" * 50 + "\ny"
    assert [indent_of(line) for line in ("a", "  a", "- a", " · a")] == [0, 2, 2, 3]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_intervals_are_explained_where_some_are_shown(width: int, runs: Path) -> None:
    """A percentile may have one that is shown only in a wide table, or one that prints as the figure does."""
    seen = set()
    for place in sorted(runs.iterdir()):
        shown = printed(width, "show", place)
        has = re.search(r"^ .*\d…|^ .*…\d", shown, re.MULTILINE) is not None
        assert has == ("intervals below" in " ".join(shown.split())), shown
        seen.add(has)
    assert seen == {False, True} or width != 120


def test_a_terminal_gets_a_sentence_in_lines_and_a_file_in_one(runs: Path) -> None:
    """For programs to search; a table has its columns all the same."""
    command = [sys.executable, "-m", "wiregauge", "show", str(runs / "priorities")]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    file = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert any(line.startswith("Median one-way latency") and len(line) > 200 for line in file.splitlines())
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 65536):
                shown += more
    os.close(ours)
    told = shown.decode()
    assert "Median one-way latency" in told
    assert too_wide(told) == []
