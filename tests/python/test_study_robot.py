"""The robot study in its quick form: every number of the paper's text, and the modes that were planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from wiregauge.cli.program import app


def test_the_robot_study_agrees_with_its_paper(tmp_path: Path) -> None:
    out = tmp_path / "robot"
    result = CliRunner().invoke(app, ["study", "robot", "--quick", "--out", str(out), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    tree = json.loads(result.stdout)
    assert tree["verdict"] == "PASS"
    cells: dict[tuple[str, ...], Any] = {
        (item["item"], cell["series"], cell["x"], cell["statistic"]): cell
        for item in tree["items"]
        for cell in item["cells"]
    }

    def ours(*key: str) -> Any:
        return cells[key]["ours"]

    for mode, period, duration in (("1", 318, 15.01), ("2", 5, 0.01)):
        for statistic, planted in (("period", period), ("duration", duration)):
            cell = cells["Modes", f"mode {mode}", "1 h", statistic]
            assert cell["low"] - 1e-9 <= planted <= cell["high"] + 1e-9, cell
    assert ours("Modes", "all", "1 h", "modes found") == 2
    assert ours("Modes", "without modes", "", "modes found") == 0
    # Mode 2 waits for an instant: behind a slow switch there is none.
    found = [ours("Figures 8 and 9", name, "", "mode 2") for name in ("RB750Gr2", "KSZ8863", "GS105")]
    assert found == [1, 0, 0]
    page = (out / "report.html").read_text()
    for number in ("Figure 4", "Figure 5", "Figure 9", "Figure 13", "Figure 16"):
        assert number in page
    not_compared = [cell["reason"] for cell in cells.values() if cell["result"] == "not compared"]
    assert all(not_compared)
