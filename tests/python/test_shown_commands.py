"""Whatever the documents show to be typed is typed: commands on the simulator, Python, SQL. `shown_commands` has how.

Lines of real frames are run by `tests/e2e/test_shown_live.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shown_commands import JUDGING, RUN, SHOWN, TYPED, Block, Stock, blocks, follow, is_live, not_printed

from wiregauge.cli.program import main

BLOCKS = list(blocks())
PAGES = sorted({block.page for block in BLOCKS if block.is_run})


def command(words: list[str]) -> int:
    """The program in this process: half a second less for every line."""
    given, sys.argv = sys.argv, ["wiregauge", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = given


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Stock:
    return Stock(tmp_path_factory.mktemp("stock"), command)


@pytest.fixture(autouse=True)
def _own_calibrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGAUGE_CALIBRATIONS", str(tmp_path / "calibrations"))


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_can_be_followed(
    page: str, stock: Stock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "page"
    place.mkdir()
    monkeypatch.chdir(place)
    follow(
        (block for block in BLOCKS if block.page == page and block.is_run), place, stock, command, live=False
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_every_block_is_run_or_says_why_not(block: Block) -> None:
    if block.language in RUN | SHOWN or block.reason:
        return
    assert not block.language, f"{block.language} is not known: run it, or say <!-- not run: WHY --> above it"
    assert not any(TYPED.match(line) for line in block.text.splitlines()), (
        "name its language, so that it is run"
    )


def test_pages_show_enough_for_this_to_mean_something() -> None:
    lines = [line for block in BLOCKS if block.is_run for line in block.lines]
    assert sum(line.startswith("wiregauge") for line in lines) > 30
    assert any(is_live(line) for line in lines)
    assert {line.split()[1] for line in lines if line.startswith("wiregauge ")} >= JUDGING - {"track"}


@pytest.mark.parametrize("line", ["wiregauge check nowhere.xml", "wiregauge show nowhere", "exit 3"])
def test_a_line_that_does_not_work_is_found(
    line: str, stock: Stock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        follow([Block("page", 1, "sh", line, "")], tmp_path, stock, command, live=False)


def test_a_time_beside_a_command_is_one_that_it_prints() -> None:
    output = "at most 41.20 µs; 2000 messages"
    assert not_printed("$ wiregauge run t.xml  # 41.2 us under load", output) == []
    assert not_printed("$ wiregauge run t.xml  # 41.3 us, not 123 ms", output) == ["41.3 us", "123 ms"]
    # Those beside commands are looked at, and there are some.
    assert [line for block in BLOCKS if block.is_run for line in block.lines if not_printed(line, "")]
