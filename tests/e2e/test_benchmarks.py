"""Every benchmark runs, short, and gives its rows: what it measures then means nothing, that it runs does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The kernels run with the tests of their crates, which build them.
PARTS = (
    "round_trip",
    "generator",
    "log_processor",
    "ns3.compare",
    "judging",
    "robot_modes",
    "host_model",
    "live_network",
    "zoom",
    "watching",
)


@pytest.mark.parametrize("part", PARTS)
def test_a_benchmark_runs_and_gives_its_rows(part: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{part}", "--smoke"],
        cwd=ROOT,
        env=os.environ | {"WIREGAUGE_BENCH_ROWS": str(rows)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    assert found, done.stdout
    assert all(row["what"] and row["figure"] for row in found)
