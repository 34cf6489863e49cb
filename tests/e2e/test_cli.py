"""Bad input and usage: exit code 2, one clear message, nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_tests import faults

from support import Runner, scenario

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.xml"))
GOOD = '<tasks><send flow="10" period="1ms" payload="64B" count="10"/><receive flow="10"/></tasks>'


def test_every_broken_test_is_refused(wiregauge: Runner, tmp_path: Path) -> None:
    """All in one call of `check`, so that the start of the program is paid once."""
    paths = [fault.write(tmp_path) for fault in faults()]
    done = wiregauge("check", "--json", *paths)
    assert done.code == 2
    results = done.json()["tests"]
    assert [result["file"] for result in results] == [str(path) for path in paths]
    for fault, result in zip(faults(), results, strict=True):
        assert not result["ok"], f"{fault.name} was accepted"
        for diagnostic in result["diagnostics"]:
            assert diagnostic["message"]
            assert diagnostic["cure"], f"{fault.name}: {diagnostic['message']}: no cure"


def test_a_broken_test_is_not_run(wiregauge: Runner, tmp_path: Path) -> None:
    path = faults()[0].write(tmp_path)
    done = wiregauge("run", path, "--out", "r")
    assert done.code == 2
    assert path.name in done.err
    assert not (tmp_path / "r").exists()


def test_every_example_is_good(wiregauge: Runner) -> None:
    assert EXAMPLES
    done = wiregauge("check", *EXAMPLES)
    assert done.code == 0, done.err


def test_results_are_never_overwritten(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(GOOD))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "precious").write_text("x")
    done = wiregauge("run", "t.xml", "--out", "r")
    assert done.code == 2
    assert "never overwritten" in done.err
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run",), "name a test file"),
        (("run", "nowhere.xml"), "nowhere.xml"),
        (("run", "t.xml", "--bench", "moon"), "moon"),
        (("show", "nowhere"), "no such directory"),
        (("show", "."), "not a run directory"),
        (("report", "nowhere"), "no such directory"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_usage_errors(wiregauge: Runner, tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    (tmp_path / "t.xml").write_text(scenario(GOOD))
    done = wiregauge(*args)
    assert done.code == 2
    assert says in done.err


def test_a_directory_of_another_version_is_named(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_text('{"schema": 99}')
    done = wiregauge("show", "r")
    assert done.code == 2, "not damaged: another version reads it"
    assert "manifest.json: schema 99" in done.err


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema": 3}', "\xff\xfe"])
def test_a_damaged_manifest_is_named(wiregauge: Runner, tmp_path: Path, damage: str) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_text(damage, encoding="latin-1")
    done = wiregauge("show", "r")
    assert done.code == 4, "what is damaged gives no answer"
    assert "manifest.json" in done.err


def test_doctor_names_every_missing_grant(wiregauge: Runner) -> None:
    done = wiregauge("doctor", "--json")
    checks = done.json()["findings"]
    assert {check["name"] for check in checks} >= {"sched-fifo", "mlockall", "cpu-dma-latency"}
    assert all(check["cure"] for check in checks if not check["granted"])


def test_version_and_help(wiregauge: Runner) -> None:
    assert wiregauge("--version").out.startswith("wiregauge ")
    for command in ("check", "run", "show", "report", "doctor"):
        assert "Usage" in wiregauge(command, "--help").out
    assert json.loads(wiregauge("check", "--json", *EXAMPLES).out)["schema"] == 1
