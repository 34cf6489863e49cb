"""What is wrong with a command of `wiregauge calibrate` is one line and an exit code; told before anything is
measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.calibrate import agentwork
from wiregauge.cli import app


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGAUGE_CALIBRATIONS", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["cable"], 2, "name measured points"),
        (["cable", "missing.csv"], 2, "missing.csv: cannot be read"),
        (["cable", "2m=nowhere", "3m=nowhere"], 2, "nowhere: no such directory"),
        (["cable", "far=r"], 2, "write LENGTH=DIR"),
        (["cable", "--simulate", "--lengths", "5"], 2, "at least two lengths"),
        (["cable", "--simulate", "--overhead", "10"], 2, "less than the 576 ns"),
        (["cable", "--simulate", "--granularity", "7us", "--count", "100"], 2, "at most 100ns"),
        (["loop", "--payload", "64,many"], 2, '--payload "many"'),
        (["loop", "--loads", "0,150"], 2, '--loads "150"'),
        (["loop", "--period", "2"], 2, "has no unit"),
        (["generator", "--gap", "100"], 2, "shorter than the 4960 ns"),
        (["generator", "--rate", "fast"], 2, "--rate"),
        (["pacing", "--period", "1"], 2, "for example 1ms"),
        (["clocks", "--core", "4000"], 2, "--core 4000"),
        (["linearity", "--delays", "0,1"], 2, "at least three"),
        (["show", "loop"], 2, "no such calibration"),
        (["loop", "--interfaces", "a,b", "--bench", "sim"], 2, "no effect with --bench sim"),
        (["pacing", "--store", "x", "--count", "1"], 2, "--count"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], code: int, part: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["calibrate", *arguments])
    assert done.exit_code == code, done.output
    assert part in done.stderr
    assert not (tmp_path / "store").exists()


def test_an_empty_store_says_how_to_fill_it() -> None:
    done = CliRunner().invoke(app, ["calibrate", "list"])
    assert done.exit_code == 0
    assert "wiregauge calibrate loop" in done.stdout


def test_a_narrow_terminal_cuts_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.csv").write_text("length_m,time_ns\n2,320\n8.5,352\n20,403.2\n")
    for width in (200, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        done = CliRunner().invoke(app, ["calibrate", "cable", "p.csv", "--no-save"])
        assert done.exit_code == 0, done.output
        for figure in ("311.6 ± 19.6 ns", "+1.27 ns", "350.73 ns"):
            assert figure in done.stdout, width


def test_a_table_too_wide_goes_on_below_and_says_of_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(
        app, ["calibrate", "generator", "--bench", "sim", "--count", "200", "--no-save"]
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    below = lines[lines.index("Frame generation") :]
    parts = [line for line in below if line.startswith("case") and "timestamp" in line]
    assert len(parts) == 4
    assert [head for part in parts for head in part.split()].count("drift") == 1
    rows = [line for line in below if line.startswith(("line rate, 600 B", "gap, 600 B"))]
    assert len(rows) == 6 * len(parts)
    assert all(len(line.rstrip()) <= 80 for line in rows)


def test_a_narrow_terminal_cuts_no_number_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.csv").write_text("length_m,time_ns\n2,320\n8.5,352\n20,403.2\n")
    assert CliRunner().invoke(app, ["calibrate", "cable", "p.csv"]).exit_code == 0
    (kept,) = (tmp_path / "store").glob("*.json")
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, ["calibrate", "list"])
    assert f"\n{kept.stem.split('-', 1)[1]}  " in done.stdout
    assert "residuals at most 1.27 ns (n = 3)" in done.stdout


def test_an_agent_program_of_another_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "wiregauge-agent"
    old.write_text(
        "#!/bin/sh\nprintf 'error: unrecognized subcommand\\n\\nFor more information, try --help.\\n' >&2\nexit 2\n"
    )
    old.chmod(0o755)
    monkeypatch.setattr(agentwork, "agent_program", lambda: old)
    done = CliRunner().invoke(app, ["calibrate", "clocks"])
    assert done.exit_code == 3, done.output
    assert f"unrecognized subcommand; {old} seems to be of another version" in done.stderr
