"""What `bounds` says of runs and changes is what it looked at: no INVALID run, no change that was never tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wiregauge import runner
from wiregauge.cli import app

FAULTS = Path(__file__).resolve().parents[1] / "faults"


def asked(*arguments: str | Path, code: int) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


def run_of(name: str, place: Path) -> Path:
    with runner.open(runner.Simulated(jobs=1)) as trials:
        trials.run(FAULTS / name, place / "run")
    return place / "run"


def test_an_invalid_run_lies_beside_no_bound(tmp_path: Path) -> None:
    run = run_of("bounds-drift.xml", tmp_path)
    done = asked("bounds", FAULTS / "bounds-drift.xml", "--against", run, code=4)
    assert f"{run} is INVALID" in done.stdout
    assert "tightness" not in done.stdout
    (laid,) = json.loads(
        asked("bounds", FAULTS / "bounds-drift.xml", "--against", run, "--json", code=4).stdout
    )["against"]
    assert laid["invalid"]
    assert laid["flows"] == []
    assert "is INVALID" in asked("report", run, "--bounds", code=4).stderr


def test_a_flow_over_both_networks_lies_beside_the_bound_of_each(tmp_path: Path) -> None:
    run = run_of("bounds-redundant.xml", tmp_path)
    (laid,) = json.loads(
        asked("bounds", FAULTS / "bounds-redundant.xml", "--against", run, "--json", code=0).stdout
    )["against"]
    assert [(flow["flow"], flow["target"]) for flow in laid["flows"]] == [("101", "e2 A"), ("101", "e2 B")]
    assert laid["notes"] == []
    for flow in laid["flows"]:
        assert flow["n"] == 500
        # Two lines of 13.36 us less a gap of 0.96 us, and what switches take, which is nothing here.
        assert flow["measured"] == pytest.approx(26.8e-6, abs=1e-8)
        assert flow["measured"] <= flow["bound"]
    asked("report", run, "--bounds", code=0)
    page = (run / "report.html").read_text()
    assert "e2 A" in page
    assert "e2 B" in page


def test_a_copy_that_is_lost_is_of_its_network(tmp_path: Path) -> None:
    text = (FAULTS / "bounds-redundant.xml").read_text()
    cut = '<faults><cut link="e2 a1" from="0s"/></faults></test>'
    path = tmp_path / "cut.xml"
    path.write_text(text.replace("</test>", cut))
    with runner.open(runner.Simulated(jobs=1)) as trials:
        trials.run(path, tmp_path / "run")
    (laid,) = json.loads(asked("bounds", path, "--against", tmp_path / "run", "--json", code=0).stdout)[
        "against"
    ]
    a, b = laid["flows"]
    assert (a["measured"], a["n"]) == (None, 0)
    assert a["lost"] == 500
    assert b["n"] == 500
    assert b["measured"] is not None


def test_a_round_trip_lies_beside_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "relay.xml"
    path.write_text(
        """<test xmlns="urn:wiregauge:test:2" name="relay"><network host="ideal">
<end-system name="a"/><end-system name="b"/><switch name="s"/>
<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
<tasks duration="100ms"><send flow="1" period="1ms" payload="100B"/><relay flow="1" on="b"/></tasks></test>"""
    )
    with runner.open(runner.Simulated(jobs=1)) as trials:
        trials.run(path, tmp_path / "run")
    (laid,) = json.loads(asked("bounds", path, "--against", tmp_path / "run", "--json", code=0).stdout)[
        "against"
    ]
    targets = {flow["target"]: flow for flow in laid["flows"]}
    assert set(targets) == {"b", "b and back"}
    assert targets["b and back"]["measured"] > targets["b"]["measured"]


def test_nothing_is_said_of_changes_that_were_never_tried() -> None:
    done = asked("bounds", FAULTS / "bounds-afdx-30.xml", "--advise", "--time", "1ms", code=1)
    assert "no single change mends it" not in done.stdout
    assert "time was up" in done.stdout
    assert "changes was tried" in done.stdout or "changes mends it that were tried of" in done.stdout


def test_every_limit_says_how_many_of_its_changes_were_tried() -> None:
    answer = asked("bounds", FAULTS / "bounds-afdx-30.xml", "--advise", "--time", "1ms", "--json", code=1)
    advice = json.loads(answer.stdout)["advice"]
    assert advice["ended"] is False
    assert all(one["tried"] <= one["known"] for one in advice["exceeded"])
    assert sum(one["tried"] for one in advice["exceeded"]) < sum(one["known"] for one in advice["exceeded"])


def test_the_verdict_stands_in_the_second_line() -> None:
    lines = asked("bounds", FAULTS / "bounds-afdx-30.xml", code=1).stdout.splitlines()
    assert "NOT KEPT" in lines[1]
    assert "targets bounded" in lines[1]
