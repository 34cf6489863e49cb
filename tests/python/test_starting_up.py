"""A command imports what it needs: heavy packages take longer than many a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "first.xml"
HEAVY = (
    "cryptography",
    "grpc",
    "matplotlib",
    "numpy",
    "plotly",
    "polars",
    "pyarrow",
    "ray",
    "scipy",
    "scipy.stats",
)
PROGRAM = f"""
import contextlib, io, json, sys
from wiregauge.cli.program import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["wiregauge", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, sorted(set({HEAVY!r}) & set(sys.modules))]))
"""


def imported(place: Path, *commands: list[str]) -> list[tuple[int, set[str]]]:
    """The exit code of each command, one after the other in one process, and what is imported after it."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return [(code, set(names)) for code, names in map(json.loads, answer.stdout.splitlines())]


def test_commands_that_compute_nothing_import_nothing_heavy(tmp_path: Path) -> None:
    commands = (["--version"], ["--help"], ["run", "--help"], ["check", str(EXAMPLE)], ["show", "nowhere"])
    assert imported(tmp_path, *commands) == [(0, set())] * 4 + [(2, set())]


def test_a_run_imports_what_its_figures_are_made_with_and_no_more(tmp_path: Path) -> None:
    run = ["run", str(EXAMPLE), "--bench", "sim", "--out", "r"]
    export = ["export", "r", "--to", "parquet", "--out", "tables"]
    figures = {"numpy", "polars", "scipy"}
    # The last is seen to import more: so would the others be.
    found = imported(tmp_path, run, ["show", "r"], export)
    assert found == [(0, figures), (0, figures), (0, figures | {"pyarrow"})]
