"""A check that had nothing to look at says so: it is not in order, and grades nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from simulation import trial
from wiregauge.measures import Check, Grade, RunResult
from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.validity.checks import judge_validity
from wiregauge.measures.validity.evidence import Evidence

OF_THE_PLAN = {"run-complete", "imperfect-clocks", "planted-faults"}
"""Checks of what the manifest and the test always tell."""
NOTHING = RunPlan(
    index=0, point={}, repeat=0, seed=1, warm_up_ns=0.0, duration_ns=1e9, flows=(), injects=()
)  # fmt: skip
QUIET = """<test xmlns="urn:wiregauge:test:2" name="quiet" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><switch name="s"/>
    <link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/>
  </network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="10" period="1ms" payload="64B" count="{count}"/><receive flow="10"/></tasks>
</test>
"""
SAID_OF_NOTHING = (
    "none planned",
    "none reported",
    "none looked",
    "not ",
    "does not",
    "0 of 0",
    "nobody",
    "no ",
)


def checks(plan: RunPlan, run: RunResult | None = None, **other: object) -> dict[str, Check]:
    known: dict[str, object] = {
        "plan": plan, "state": "complete", "reason": None, "agents": {}, "clock_uncertainty_ns": None,
        "clocks_missing": (), "flows": run.flows if run else (), "tracked": False, "unplanned": {}, "tracking": None,
        "records_written": 0, "contradictions": (),
    }  # fmt: skip
    found = judge_validity(Evidence(**(known | other)))  # type: ignore[arg-type]
    return {check.name: check for check in found}


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("tapped", [False, True])
def test_of_nothing_no_check_is_in_order(*, virtual: bool, tapped: bool) -> None:
    found = checks(NOTHING, virtual_time=virtual, tapped=tapped)
    assert len(found) > 25
    fine = {name for name, check in found.items() if check.grade in (Grade.OK, Grade.NOTE)}
    assert fine - {"calibration"} == OF_THE_PLAN
    assert all(
        check.observed.startswith("not looked at: ") for check in found.values() if check.grade < Grade.OK
    )
    assert not any(check.reason for check in found.values() if check.grade <= Grade.OK)


@pytest.mark.parametrize("count", [1, 300])
def test_what_is_in_order_was_looked_at(tmp_path: Path, count: int) -> None:
    """In a real run, even of one message, every check that passes says what it examined."""
    file = tmp_path / "t.xml"
    file.write_text(QUIET.format(count=count))
    run = trial(file, tmp_path / "out").runs[0]
    assert run.validity <= Grade.NOTE
    for check in run.checks:
        unlooked = check.grade is Grade.NOT_LOOKED_AT
        assert check.observed.startswith("not looked at") == unlooked, check
        assert check.grade is not Grade.OK or not check.observed.startswith(SAID_OF_NOTHING), check
    names = {check.name for check in run.checks if check.grade is Grade.NOT_LOOKED_AT}
    assert {"stolen-time", "captures", "link-rate", "offered-load"} <= names
    assert ("stationary" in names) == (count == 1)


def test_what_was_not_looked_at_grades_nothing(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(QUIET.format(count=300))
    run = trial(file, tmp_path / "out").runs[0]
    looked = tuple(check for check in run.checks if check.grade is not Grade.NOT_LOOKED_AT)
    assert len(looked) < len(run.checks)
    assert replace(run, checks=looked).validity is run.validity
    assert Grade.NOT_LOOKED_AT.label == "not looked at"
