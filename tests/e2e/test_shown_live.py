"""Pages that show real frames are followed with them: `tests/python/test_shown_commands.py` runs everything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shown_commands import Stock, blocks, follow, is_live

from support import Runner

BLOCKS = [block for block in blocks() if block.is_run]
PAGES = sorted({block.page for block in BLOCKS if any(is_live(line) for line in block.lines)})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_with_real_frames_can_be_followed(
    page: str, wiregauge: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stock = tmp_path / "stock"
    stock.mkdir()

    def command(words: list[str]) -> int:
        done = wiregauge(*words)
        sys.stdout.write(done.out)
        return done.code

    shown = (block for block in BLOCKS if block.page == page)
    follow(shown, tmp_path, Stock(stock, command), command, live=True)
