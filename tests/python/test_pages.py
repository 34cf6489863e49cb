"""`wiregauge docs`: every page can be named and printed, and a name that is none is answered with what was meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from wiregauge.cli import app
from wiregauge.cli.docs import linked, pages

ROOT = Path(__file__).resolve().parents[2]


def asked(*words: str) -> Result:
    return CliRunner().invoke(app, ["docs", *words])


def test_the_list_has_every_page_with_its_title() -> None:
    known = pages()
    assert {one.path for one in known} == {*(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"}
    listed, decisions = asked(), asked("decisions")
    assert (listed.exit_code, decisions.exit_code) == (0, 0)
    for one in known:
        assert one.title
        assert (
            f"{one.name.rpartition('/')[2]:<24} {one.title}"
            in (decisions if one.folder == "decisions" else listed).stdout
        )


def test_every_page_can_be_printed_and_nothing_of_it_is_lost() -> None:
    for one in pages():
        printed = asked(one.name)
        assert printed.exit_code == 0, one.name
        shown = set(printed.stdout.split())
        words = [word for word in one.title.split() if word.isalpha()]
        assert set(words) <= shown, one.name
        assert "<!--" not in printed.stdout


@pytest.mark.parametrize(
    "name", ["how-to/bounds", "how-to/bounds.md", "docs/how-to/bounds.md", "../how-to/bounds.md#sweeps"]
)
def test_a_page_is_found_as_links_name_it(name: str) -> None:
    assert asked(name).stdout == asked("how-to/bounds").stdout


def test_names_that_are_none_or_several() -> None:
    several = asked("bounds")
    assert several.exit_code == 2
    assert "how-to/bounds, reference/bounds; name one of them" in several.stderr
    unknown = asked("captrues")
    assert unknown.exit_code == 2
    assert (
        'there is no page "captrues" (did you mean "captures"?); `wiregauge docs` lists them'
        in unknown.stderr
    )
    assert "did you mean" not in asked("zzz").stderr


def test_the_installed_command_line_prints_a_page_elsewhere(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("wiregauge")
    done = subprocess.run(
        [program, "docs", "exit-codes"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Exit codes" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_links_name_pages_as_the_command_does() -> None:
    text = (
        "see [tests](../how-to/write-a-test.md#many), [time](#time), [it](https://x.example/) and ![a](b.png)"
    )
    assert linked(text) == "see tests (page write-a-test), time, [it](https://x.example/) and ![a](b.png)"
