"""The end of a run fits a screen: verdict, why, the figures that matter, where the others are."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from synthetic import Recipe, make
from wiregauge import results
from wiregauge.measures import Judgement
from wiregauge.terminal.console import ShownConsole

FAILING: Mapping[str, Any] = {
    "flow": None,
    "measure": "latency.max",
    "bound": "at-most",
    "value": 1.0,
    "written": "1ns",
    "line": 1,
}
HOLDING = {**FAILING, "measure": "lost", "value": 1000.0, "written": "1000"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    recipe = Recipe(messages=320, warm_up=10, limits=[FAILING, HOLDING], loss=0.01)
    # Under a short name, so that no line is longer for the place of the tests.
    return replace(results.judge(make(tmp_path_factory.mktemp("runs") / "r", recipe)), directory=Path("r"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(judgement: Judgement, *, terminal: bool = True, height: int = 24) -> str:
    console = ShownConsole(
        file=Terminal() if terminal else io.StringIO(),
        width=80,
        height=height,
        force_terminal=terminal,
        no_color=True,
    )
    results.closing_text(judgement, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO, as made above
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_screen_has_verdict_why_figures_and_the_way_to_the_others(judged: Judgement) -> None:
    text = printed(judged)
    lines = text.splitlines()
    assert len(lines) <= 20
    # A command is never broken, however long its directory is.
    assert all(len(line) <= 80 for line in lines if "`" not in line)
    assert "verdict FAIL" in lines[0]
    assert "fail" in text
    assert "more limits: fail" in text
    longest = max(
        (flow.summaries[flow.plan.main].maximum or 0.0, flow.plan.name)
        for one in judged.points
        for flow in one.flows
    )
    assert f"{longest[0] / 1e3:.1f} µs" in text
    words = " ".join(text.split())
    assert f"`wiregauge show {judged.directory}`" in words
    assert "--explain`" in words


def test_what_fits_is_shown_whole_and_a_file_has_everything(judged: Judgement) -> None:
    rows = sum(len(run.flows) for run in judged.runs)
    for text in (printed(judged, height=400), printed(judged, terminal=False)):
        assert len(text.splitlines()) > rows
        assert "worst of" not in text
    small = replace(judged, runs=judged.runs[:1], points=judged.points[:1])
    assert "worst of" not in printed(small, height=40)


def test_an_invalid_run_gives_its_first_reasons_and_counts_the_others(judged: Judgement) -> None:
    from wiregauge.measures.metrics.judgement import Grade

    first = judged.runs[0].checks[0]
    checks = tuple(
        replace(first, name=f"check-{k}", grade=Grade.INVALID, reason=f"reason number {k}.") for k in range(9)
    )
    text = printed(replace(judged, checks=checks))
    assert "validity INVALID" in text
    assert "reason number 0" in text
    assert "more reasons" in text
    assert len(text.splitlines()) <= 20


def test_a_run_without_a_flow_has_a_verdict(judged: Judgement) -> None:
    empty = replace(judged, runs=tuple(replace(run, flows=(), limits=()) for run in judged.runs), points=())
    assert "verdict" in printed(empty, height=8)


def test_flows_of_which_nothing_is_determined_are_counted(tmp_path: Path) -> None:
    """A flow that died has no percentile, and so is never the worst: the screen says that it is not among them."""
    recipe = Recipe(messages=320, warm_up=10, loss=1.0)
    judged = results.judge(make(tmp_path / "r", recipe))
    flows = sum(len(point.flows) for point in judged.points)
    text = printed(judged, height=12)
    assert f"not determined, and so not among them: p99 of {flows} flows, max of {flows} flows" in text
    assert "100 %" in text
