"""What has a value has a place: below zero on an axis that would be logarithmic, and alone far from all others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from wiregauge import results, stats
from wiregauge.figures import build, printed
from wiregauge.figures.distributions import seen_part
from wiregauge.figures.model import Axis, Figure, Panel, Scatter, Style
from wiregauge.figures.styles import REPORT
from wiregauge.figures.ticks import extent, logarithmic

RECIPE = Recipe(
    protocols=("udp",), payloads=(64,), messages=2000, relay=False, warm_up=0, loss=0.0, repeats=1
)


def figures(tmp_path: Path, shift_us: float, share: float) -> dict[str, Figure]:
    """Those of a run in which a share of the messages, at the end, took so much longer."""

    def alter(columns: Columns, _flow: int) -> None:
        late = np.arange(len(columns["rx_app"])) >= (1 - share) * len(columns["rx_app"])
        columns["rx_app"] += (late * shift_us * 1e6).astype(np.int64)
        columns["rx_drv"] += (late * shift_us * 1e6).astype(np.int64)

    judgement = results.judge(make(tmp_path / "r", replace(RECIPE, alter=alter)))
    return {figure.id: figure for figure in build(judgement, results.shapes(judgement))}


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_values_below_zero_are_drawn_or_counted(tmp_path: Path, share: float) -> None:
    made = figures(tmp_path, -10_000, share)
    for name in ("latency-time", "latency-percentiles"):
        (panel,) = made[name].panels
        assert not logarithmic(panel.y, made[name].panels, "y"), name
        span = extent(made[name].panels, "y", positive=False)
        assert span is not None
        assert span[0] < 0
    density = made["latency-density"]
    span = extent(density.panels, "x", positive=False)
    assert span is not None
    assert span[0] < 0
    assert not any("not drawn" in note for note in density.notes)


def test_few_values_below_zero_leave_the_others_their_decades_and_are_counted(tmp_path: Path) -> None:
    def alter(columns: Columns, _flow: int) -> None:
        place = np.arange(len(columns["rx_app"]))
        by_us = np.where(place < 10, -10_000, np.where(place % 2, 5_000, 0))
        columns["rx_app"] += by_us * 1_000_000
        columns["rx_drv"] += by_us * 1_000_000

    judgement = results.judge(make(tmp_path / "r", replace(RECIPE, alter=alter)))
    made = {figure.id: figure for figure in build(judgement, results.shapes(judgement))}
    density = made["latency-density"]
    assert density.panels[0].x.log
    assert "10 values that are not positive are not drawn." in density.notes


def test_positive_values_keep_their_logarithm(tmp_path: Path) -> None:
    made = figures(tmp_path, 10_000, 0.25)
    for figure in (made["latency-time"], made["latency-percentiles"], made["latency-density"]):
        for panel in figure.panels:
            for axis, which in ((panel.x, "x"), (panel.y, "y")):
                assert logarithmic(axis, figure.panels, which) == axis.log


def test_a_density_reaches_a_message_that_is_alone(tmp_path: Path) -> None:
    figure = figures(tmp_path, 10_000, 1 / RECIPE.messages)["latency-density"]
    span = extent(figure.panels, "x", positive=True)
    assert span is not None
    assert span[0] < 5_000
    assert span[1] > 10_000


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_one_of_many_is_told_from_rounding(n: int) -> None:
    rng = np.random.default_rng(n)
    values = np.append(rng.normal(1000, 10, n - 1), 9e6)
    shape = stats.density(values, log=True)
    seen = seen_part(shape, float(shape.y.max()))
    assert shape.x[seen][-1] >= 9e6
    gap = (shape.x > 3000) & (shape.x < 3e6)
    assert (shape.y[gap] <= 1e-9 * shape.y.max()).all()


def test_a_printed_note_is_whole(tmp_path: Path) -> None:
    note = " ".join(f"word{k}" for k in range(120)) + " the-last-of-them"
    panel = Panel(
        "", Axis("x"), Axis("y"), [Scatter("a", np.arange(3.0), np.arange(3.0), Style("#000000"), 3, 1.0)]
    )
    figure = Figure("noted", "Title", "Caption.", [panel], notes=[note], measures=[])
    (path,) = printed.save(figure, tmp_path, ["svg"])
    text = path.read_text(encoding="utf-8")
    width = float(re.findall(r'width="([0-9.]+)pt"', text)[0])
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    with printed._settings(REPORT):
        prop = FontProperties(size=printed._NOTE_POINTS)
        lines = printed._notes(figure).split("\n")
        longest = max(TextPath((0, 0), line, prop=prop).get_extents().width for line in lines)
    assert longest < width * 0.98
    assert lines[-1].endswith("the-last-of-them")
