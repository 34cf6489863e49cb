"""The precision study in its quick form: every number of the paper's text, from noisy timestamps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from wiregauge.cli.program import app


def test_the_precision_study_agrees_with_its_paper(tmp_path: Path) -> None:
    out = tmp_path / "precision"
    result = CliRunner().invoke(app, ["study", "precision", "--quick", "--out", str(out), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    tree = json.loads(result.stdout)
    assert tree["verdict"] == "PASS"
    cells: dict[tuple[str, ...], Any] = {
        (item["item"], cell["series"], cell["x"], cell["statistic"]): cell
        for item in tree["items"]
        for cell in item["cells"]
    }
    assert cells["Section III-A", "30 m", "", "half of it"]["ours"] == 55
    for statistic, planted in (("slope", 4.9), ("intercept", 813.3)):
        cell = cells["Figure 3", "line", "", statistic]
        assert cell["low"] <= planted <= cell["high"]
        assert cell["low"] < cell["ours"] < cell["high"]
    assert [
        cells["Figure 4", name, "", "greatest deviation"]["ours"] for name in ("line rate", "24 000 ns")
    ] == [
        90,
        90,
    ]
    assert cells["Figure 5", "", "", "foreign frames"]["ours"] == 23
    spikes = (
        cells["Figure 5", "spikes", "", "height"],
        cells["Figure 5", "spikes", "", "back to normal after"],
    )
    # A frame of 64 B with preamble and gap, and what 40 ppm of 11 360 ns take to work it off.
    for cell, true in zip(spikes, (672.0, 672 / (11_360 * 40e-6)), strict=True):
        assert abs(cell["ours"] / true - 1) < 0.01, cell
    page = (out / "report.html").read_text()
    for number in ("Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5"):
        assert number in page
