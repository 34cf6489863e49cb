"""A command imports what it needs: heavy packages take longer than many a command."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "first.xml"
HEAVY = (
    "cryptography",
    "grpc",
    "jinja2",
    "lxml",
    "matplotlib",
    "numpy",
    "numpy.f2py",
    "plotly",
    "polars",
    "pyarrow",
    "pydantic",
    "ray",
    "rich",
    "scipy",
    "scipy.special",
    "scipy.stats",
    "wiregauge.bounds",
    "wiregauge.measures.comparing",
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


def test_help_imports_no_command_and_nothing_heavy(tmp_path: Path) -> None:
    commands: tuple[list[str], ...] = (["--version"], ["--help"], [], ["shw"])
    assert imported(tmp_path, *commands) == [(0, set()), (0, set()), (2, set()), (2, set())]
    helps = (["run", "--help"], ["show", "--help"], ["show", "nowhere"], ["calibrate", "--help"])
    *rest, (code, names) = imported(tmp_path, *helps)
    assert rest == [(0, set()), (0, set()), (2, set())]
    assert (code, names & {"numpy", "polars", "pydantic"}) == (0, set())


def test_a_check_imports_what_reads_a_test_and_no_more(tmp_path: Path) -> None:
    assert imported(tmp_path, ["check", str(EXAMPLE)]) == [(0, {"lxml"})]


def test_a_run_imports_what_its_figures_are_made_with_and_no_more(tmp_path: Path) -> None:
    run = ["run", str(EXAMPLE), "--bench", "sim", "--out", "r"]
    export = ["export", "r", "--to", "parquet", "--out", "tables"]
    figures = {"lxml", "numpy", "polars", "rich", "scipy"}
    picture = ["report", "r", "--png", "p"]
    # The last is seen to import more: so would the others be.
    found = imported(tmp_path, run, ["show", "r"], export, picture)
    assert found[:3] == [(0, figures | {"jinja2"})] * 3
    assert found[3] == (0, figures | {"jinja2", "matplotlib"})


def test_a_value_that_is_not_plain_is_still_refused_by_the_parser(tmp_path: Path) -> None:
    # The library it words errors with is seen to come in then.
    wrong = (["run", "--jobs", "x"], ["run", "--jobs", "0"], ["run", "--bench", "no", str(EXAMPLE)])
    assert all((code, "pydantic" in names) == (2, True) for code, names in imported(tmp_path, *wrong))


def test_functions_without_their_package_are_those_of_the_package() -> None:
    from wiregauge.stats import special

    rows = np.random.default_rng(1).normal(size=(5, 997))
    mine = special.cosine_transform(rows)
    scipy_special, fft = importlib.import_module("scipy.special"), importlib.import_module("scipy.fft")
    assert special._UFUNCS is not None, (
        "SciPy has them elsewhere now: every command that computes starts later"
    )
    assert np.array_equal(mine, fft.dct(rows, norm="ortho", axis=1))
    functions = (name for name in special.__all__ if hasattr(scipy_special, name))
    assert all(getattr(special, name) is getattr(scipy_special, name) for name in functions)
    assert special.compiled("scipy.special", "there_is_no_such_module") is None
