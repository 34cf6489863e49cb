"""What `bounds` says of runs and changes is what it looked at: no INVALID run, no change that was never tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from wiregauge import runner
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import load

FAULTS = Path(__file__).resolve().parents[1] / "faults"


def asked(*arguments: str | Path, code: int) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


def run_of(name: str, place: Path) -> Path:
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
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
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
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
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(path, tmp_path / "run")
    (laid,) = json.loads(asked("bounds", path, "--against", tmp_path / "run", "--json", code=0).stdout)[
        "against"
    ]
    targets = {flow["target"]: flow for flow in laid["flows"]}
    assert set(targets) == {"b", "b and back"}
    assert targets["b and back"]["measured"] > targets["b"]["measured"]


def test_nothing_is_said_of_changes_that_were_never_tried() -> None:
    done = asked("bounds", FAULTS / "bounds-afdx-30.xml", "--advise", "--time-limit", "1ms", code=1)
    assert "no single change mends it" not in done.stdout
    assert "time was up" in done.stdout
    assert "changes was tried" in done.stdout or "changes mends it that were tried of" in done.stdout


def test_every_limit_says_how_many_of_its_changes_were_tried() -> None:
    answer = asked(
        "bounds", FAULTS / "bounds-afdx-30.xml", "--advise", "--time-limit", "1ms", "--json", code=1
    )
    advice = json.loads(answer.stdout)["advice"]
    assert advice["ended"] is False
    assert all(one["tried"] <= one["known"] for one in advice["exceeded"])
    assert sum(one["tried"] for one in advice["exceeded"]) < sum(one["known"] for one in advice["exceeded"])


def test_the_verdict_stands_in_the_first_line_and_each_flow_in_one() -> None:
    lines = asked("bounds", FAULTS / "bounds-afdx-30.xml", code=1).stdout.splitlines()
    assert lines[0].startswith("afdx30: 130 of 130 targets bounded; 110 of 130 limits NOT KEPT")
    assert lines[1].startswith("Worst flow: ")
    assert lines[2].startswith("Worst port: ")
    # Both copies of a flow are one line, and so are remarks that differ in the end system only.
    assert len([line for line in lines if line.startswith("101 ")]) == 1
    assert len([line for line in lines if line.startswith("Note: virtual links leave")]) == 1


SWEPT = """<test xmlns="urn:wiregauge:test:2" name="swept" seed="1">
<network host="ideal"><end-system name="a"/><end-system name="b"/><end-system name="z"/><switch name="s"/>
<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/><link between="z s" rate="100Mbit/s"/>
</network>
<flows><flow id="1" protocol="raw" from="a" to="z"/><flow id="2" protocol="raw" from="b" to="z"/></flows>
<tasks warm-up="0s" duration="40ms"><send flow="1" period="4ms" payload="500B"/><receive flow="1"/>
<send flow="2" period="4ms" payload="500B"/><receive flow="2"/></tasks>
<limits><limit measure="latency.max" at-most="{limit}"/></limits>
<sweep>{axis}{repeats}</sweep></test>"""
AXES = {
    "rate": ('<axis of="rate" values="100Mbit/s 1Gbit/s 10Mbit/s"/>', 3),
    "rate, the worst first": ('<axis of="rate" values="10Mbit/s 1Gbit/s"/>', 2),
    "payload": ('<axis of="payload" values="100B 1400B"/>', 2),
    "two axes": ('<axis of="payload" values="100B 1400B"/><axis of="rate" values="1Gbit/s 10Mbit/s"/>', 4),
    "points that are one network": ('<axis of="rate" values="100Mbit/s 0.1Gbit/s"/>', 1),
    "repeats": ("", 1),
}


def swept(place: Path, axis: str, limit: str = "300us") -> Path:
    path = place / "swept.xml"
    path.write_text(SWEPT.format(limit=limit, axis=AXES[axis][0], repeats='<repeat times="2"/>'))
    return path


def answered(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, [str(argument) for argument in ("bounds", *arguments, "--json")])
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("bounds").read_text()), answer)
    return done.exit_code, answer


@pytest.mark.parametrize("axis", sorted(AXES))
@pytest.mark.parametrize("limit", ["60us", "300us", "5ms"])
def test_a_limit_is_kept_where_every_run_keeps_it(axis: str, limit: str, tmp_path: Path) -> None:
    path = swept(tmp_path, axis, limit)
    code, answer = answered(path)
    runs = load(path).campaign.runs
    alone = {run.index: answered(path, "--run", str(run.index)) for run in runs}
    assert code == max(own for own, _ in alone.values())
    named = [run for one in answer["runs"] for run in one["runs"]]
    assert sorted(named) == sorted(alone)
    assert len(answer["runs"]) == AXES[axis][1]
    for one in answer["runs"]:
        for run in one["runs"]:
            own_code, own = alone[run]
            assert own["limits"] == one["limits"]
            assert one["kept"] == (own_code == 0)
    # Who reads nothing of runs reads of the worst.
    assert all(one["kept"] for one in answer["limits"]) == (code == 0)
    text = CliRunner().invoke(app, ["bounds", str(path)]).stdout
    assert ("limits NOT KEPT" in text) == (code == 1)


@pytest.mark.parametrize("axis", sorted(AXES))
def test_each_run_lies_beside_the_bound_of_its_own_network(axis: str, tmp_path: Path) -> None:
    path = swept(tmp_path, axis, "1s")
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(path, tmp_path / "run")
    code, answer = answered(path, "--against", tmp_path / "run")
    assert code == 0
    runs = load(path).campaign.runs
    assert [laid["index"] for laid in answer["against"]] == [run.index for run in runs]
    own = {run: one for one in answer["runs"] for run in one["runs"]}
    for laid in answer["against"]:
        bounds = {flow["flow"]: flow["targets"][0]["delay"] for flow in own[laid["index"]]["flows"]}
        assert {flow["flow"]: flow["bound"] for flow in laid["flows"]} == bounds
        assert not any(flow["alarms"] for flow in laid["flows"])
        assert laid["notes"] == []
    asked("report", tmp_path / "run", "--bounds", code=0)
    last = runs[-1].index
    code, answer = answered(path, "--run", str(last), "--against", tmp_path / "run")
    assert [laid["index"] for laid in answer["against"]] == [last]
    text = asked("bounds", path, "--run", str(last), "--against", tmp_path / "run", code=0).stdout
    assert text.startswith(f"run {last}")


def test_a_run_above_the_bound_of_its_own_network_is_an_alarm_whichever_it_is(tmp_path: Path) -> None:
    """The first run is the one it is said to be, the last has a switch that the bounded test has not."""
    path = swept(tmp_path, "rate")
    slow = tmp_path / "slow.xml"
    slow.write_text(
        path.read_text().replace('<switch name="s"/>', '<switch name="s" delay="0%:1us 100%:9ms"/>')
    )
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(slow, tmp_path / "run")
    code, answer = answered(path, "--against", tmp_path / "run")
    assert code == 1
    alarmed = [laid["index"] for laid in answer["against"] if any(flow["alarms"] for flow in laid["flows"])]
    assert alarmed == [laid["index"] for laid in answer["against"]]
    for laid in answer["against"]:
        assert "they differ in network" in laid["notes"][0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('payload="500B"/><receive flow="1"/>', 'payload="400B"/><receive flow="1"/>'), "sends"),
        (('duration="40ms"', 'duration="80ms"'), "duration"),
        (('<switch name="s"/>', '<switch name="s" delay="1us"/>'), "network"),
    ],
)
def test_a_run_of_another_test_is_laid_beside_with_a_word(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = swept(tmp_path, "repeats", "1s")
    other = tmp_path / "other.xml"
    other.write_text(path.read_text().replace(*change))
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(other, tmp_path / "run")
    _, answer = answered(path, "--against", tmp_path / "run")
    assert all(f"they differ in {said}" in laid["notes"][0] for laid in answer["against"])


def test_a_run_whose_flows_go_elsewhere_is_refused(tmp_path: Path) -> None:
    path = swept(tmp_path, "repeats", "1s")
    other = tmp_path / "other.xml"
    other.write_text(
        path.read_text().replace('id="2" protocol="raw" from="b"', 'id="2" protocol="raw" from="a"')
    )
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(other, tmp_path / "run")
    done = asked("bounds", path, "--against", tmp_path / "run", code=2)
    assert "its flow 2 goes from a to z" in " ".join(done.stderr.split())


def test_what_keeps_one_run_from_a_bound_names_it(tmp_path: Path) -> None:
    path = swept(tmp_path, "payload")
    # Two flows with 1400 B each 4 ms bring 6 Mbit/s.
    priorities = " ".join(map(str, range(8)))
    slope = f'<traffic-class number="0" priorities="{priorities}"><cbs idle-slope="3Mbit/s"/></traffic-class>'
    shaper = f'<switch-tsn ports="3">{slope}</switch-tsn>'
    path.write_text(path.read_text().replace('<switch name="s"/>', f'<switch name="s">{shaper}</switch>'))
    done = asked("bounds", path, code=2)
    assert "in run 2 (payload 1400B): a shaped class has an idle slope" in done.stderr
    asked("bounds", path, "--run", "0", code=1)


def test_one_network_is_written_and_of_several_one_is_chosen(tmp_path: Path) -> None:
    path = swept(tmp_path, "rate", "1s")
    done = asked("bounds", path, "--write", tmp_path / "out.json", code=2)
    assert "choose one with --run (0, 2, 4)" in " ".join(done.stderr.split())
    assert "choose one" in " ".join(asked("bounds", path, "--results", tmp_path / "o", code=2).stderr.split())
    asked("bounds", path, "--results", tmp_path / "out.xml", "--run", "2", code=0)


def test_every_run_whose_limits_are_not_kept_is_advised(tmp_path: Path) -> None:
    path = swept(tmp_path, "two axes", "200us")
    code, answer = answered(path, "--advise", "--time-limit", "5s")
    assert code == 1
    for one in answer["runs"]:
        assert ("advice" in one) == (not one["kept"])


def test_an_invalid_run_says_how_many_latencies_are_above_their_bound(tmp_path: Path) -> None:
    path = FAULTS / "bounds-drift.xml"
    run = run_of(path.name, tmp_path)
    fast = tmp_path / "fast.xml"
    fast.write_text(path.read_text().replace("100Mbit/s", "1Gbit/s"))
    (laid,) = json.loads(asked("bounds", fast, "--against", run, "--json", code=4).stdout)["against"]
    assert laid["above"] > 0
    text = " ".join(asked("bounds", fast, "--against", run, code=4).stdout.split())
    assert "longest latencies are above their bound nevertheless" in text
