"""Captures as evidence: what nobody saw at an end system must not pass for a measured loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simulation import trial
from wiregauge.cli import app
from wiregauge.results import headline, judge

TEST = Path(__file__).resolve().parents[2] / "examples" / "taps.xml"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("taps") / "r"
    trial(TEST, place)
    return place / "captures" / "run-0000"


@pytest.mark.parametrize(
    ("taps", "code", "missing"),
    [(["mac", "sw1", "sensor"], 0, None), (["mac", "sw1"], 4, "sensor"), (["sw1"], 4, "mac, sensor")],
)
def test_an_end_system_without_a_tap_is_named(
    captures: Path, taps: list[str], code: int, missing: str | None, tmp_path: Path
) -> None:
    files = [str(captures / f"{tap}.pcapng") for tap in taps]
    done = CliRunner().invoke(
        app,
        ["import", *files, "--test", str(TEST), "--max-clock-offset", "0ns", "--out", str(tmp_path / "seen")],
    )
    assert done.exit_code == code, done.output
    manifest = json.loads((tmp_path / "seen" / "manifest.json").read_text())
    if missing is None:
        assert manifest["state"] == "complete"
    else:
        assert f"no tap at {missing}:" in manifest["reason"]
        assert f"no tap at {missing}:" in done.stderr


def test_a_loss_that_nobody_could_see_is_claimed_nowhere(captures: Path, tmp_path: Path) -> None:
    files = [str(captures / "sw1.pcapng")]
    done = CliRunner().invoke(
        app,
        ["import", *files, "--test", str(TEST), "--max-clock-offset", "0ns", "--out", str(tmp_path / "seen")],
    )
    assert done.exit_code == 4, done.output
    shown = judge(tmp_path / "seen")
    assert "what was lost is not known without a tap at mac and sensor" in headline(shown)
    for run in shown.runs:
        assert all(flow.unseen == ("mac", "sensor") and flow.loss.ratio is None for flow in run.flows)
        reasons = {check.name: check.reason for check in run.checks}
        assert not reasons["arrivals"]
        assert not reasons["send-records"]
    page = (tmp_path / "seen" / "report.html").read_text(encoding="utf-8")
    assert "not known" in page
    assert f"{sum(flow.counts['lost'] for flow in shown.runs[0].flows)} of" not in headline(shown)


def test_what_was_cut_short_by_a_tap_in_the_middle_is_not_called_unsent(tmp_path: Path) -> None:
    """Cut frames prove no message, so that nothing at all is known to be sent; the switch is still measured."""
    test = tmp_path / "cut.xml"
    test.write_text(
        """<test xmlns="urn:wiregauge:test:2" name="cut">
  <network><end-system name="mac"/><end-system name="sensor"/><switch name="sw1"/>
    <link between="mac sw1" rate="1Gbit/s"/><link between="sensor sw1" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="mac" to="sensor"/></flows>
  <tasks><send flow="10" period="1ms" payload="64B" count="50"/><receive flow="10"/>
    <capture on="sw1" snap="96B"/></tasks>
</test>""",
        encoding="utf-8",
    )
    run = CliRunner().invoke(app, ["run", str(test), "--out", str(tmp_path / "r")])
    assert run.exit_code == 0, run.output
    files = [str(tmp_path / "r" / "captures" / "run-0000" / "sw1.pcapng")]
    done = CliRunner().invoke(app, ["import", *files, "--test", str(test), "--out", str(tmp_path / "seen")])
    assert done.exit_code == 4, done.output
    shown = judge(tmp_path / "seen")
    said = {check.name: (check.observed, check.reason) for check in shown.runs[0].checks}
    assert said["sent-as-planned"] == ("not known: no tap at mac", "")
    assert said["duration"] == ("not looked at: no tap at mac", "")
    (flow,) = shown.runs[0].flows
    assert flow.summaries["residence"].n == 50
    told = json.loads(CliRunner().invoke(app, ["show", str(tmp_path / "seen"), "--json"]).stdout)
    assert told["runs"][0]["flows"][0]["unseen"] == ["mac", "sensor"]
    page = (tmp_path / "seen" / "report.html").read_text(encoding="utf-8")
    assert "only what passed the other taps is measured" in page
    assert "nothing to tabulate" not in page


def test_a_number_that_no_tap_saw_may_be_lost_before_it(tmp_path: Path) -> None:
    text = TEST.read_text(encoding="utf-8")
    faults = '<faults><loss link="mac sw1" flow="10" sequence="100-101"/></faults>'
    test = tmp_path / "lossy.xml"
    test.write_text(text.replace("</test>", f"{faults}</test>"), encoding="utf-8")
    run = CliRunner().invoke(app, ["run", str(test), "--out", str(tmp_path / "r")])
    assert run.exit_code == 0, run.output
    files = [str(tmp_path / "r" / "captures" / "run-0000" / "sw1.pcapng")]
    done = CliRunner().invoke(app, ["import", *files, "--test", str(test), "--out", str(tmp_path / "seen")])
    assert done.exit_code == 4, done.output
    reasons = {check.name: check.reason for check in judge(tmp_path / "seen").runs[0].checks}
    assert reasons["sent-as-planned"] == (
        "2 of 1000 messages were seen by no tap: never sent, or lost before one"
    )


def test_the_far_end_of_the_only_tap_is_no_place_to_tap(captures: Path, tmp_path: Path) -> None:
    files = [str(captures / "sensor.pcapng")]
    done = CliRunner().invoke(app, ["import", *files, "--out", str(tmp_path / "seen")])
    assert done.exit_code == 0, done.output
    assert "what was lost before the tap is not known" in headline(judge(tmp_path / "seen"))
    page = (tmp_path / "seen" / "report.html").read_text(encoding="utf-8")
    assert "no second tap" in page
    assert "tap at beyond" not in page


def test_an_untapped_receiver_of_several_is_named(tmp_path: Path) -> None:
    test = tmp_path / "two.xml"
    test.write_text(
        """<test xmlns="urn:wiregauge:test:2" name="two" bench="sim">
  <network><end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="sw1"/>
    <link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/>
    <link between="c sw1" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="b c"/></flows>
  <tasks><send flow="10" period="1ms" payload="64B" count="50"/><receive flow="10"/>
    <capture on="a"/><capture on="b"/></tasks>
</test>""",
        encoding="utf-8",
    )
    run = CliRunner().invoke(app, ["run", str(test), "--out", str(tmp_path / "r")])
    assert run.exit_code == 0, run.output
    place = tmp_path / "r" / "captures" / "run-0000"
    files = [str(place / f"{tap}.pcapng") for tap in "ab"]
    done = CliRunner().invoke(
        app,
        ["import", *files, "--test", str(test), "--max-clock-offset", "0ns", "--out", str(tmp_path / "seen")],
    )
    assert done.exit_code == 4, done.output
    assert "no tap at c:" in done.stderr
    told = {flow.plan.destination: flow.unseen for flow in judge(tmp_path / "seen").runs[0].flows}
    assert told == {"b": (), "c": ("c",)}
