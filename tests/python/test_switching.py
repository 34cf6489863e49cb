"""`wiregauge switch`: the search against made-up devices, the store, and known simulated switches end to end."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from wiregauge.cli.program import app
from wiregauge.records import RunDirectoryError
from wiregauge.switching import (
    Kind,
    Latency,
    Outcome,
    Seen,
    Session,
    SheetError,
    Sizes,
    StopError,
    Store,
    Stream,
    Trial,
    carry_out,
    chosen,
    plain_device,
    schema_path,
)
from wiregauge.switching.search import Goal, search
from wiregauge.switching.trials import Bench

QUICK = Goal(0.1, 1.0, 1.0)
SWITCH = """<test xmlns="urn:wiregauge:test:2" name="secret" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="box" {}/>
    <link between="a box" rate="1Gbit/s"/><link between="b box" rate="1Gbit/s"/>
    <link between="c box" rate="1Gbit/s"/><link between="d box" rate="1Gbit/s"/>
  </network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks duration="100ms"><send flow="1" period="1ms" payload="64B"/><receive flow="1"/></tasks>
</test>
"""


@given(threshold=st.integers(1_000, 999_999), rising=st.booleans(), initial=st.sampled_from([0.1, 1.0]))
def test_the_search_encloses_a_threshold(threshold: int, *, rising: bool, initial: float) -> None:
    asked: list[int] = []

    def measure(load: int, seconds: float) -> float:
        asked.append(load)
        return 0.0 if load <= threshold else 1 - threshold / load

    found = search(measure, Goal(initial, 1.0, 1.0), rising=rising)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= threshold < found.upper
    assert found.upper - found.lower <= max(1, 0.005 * found.upper)
    assert not found.limited
    assert found.conditional == found.lower
    assert len(asked) < 80


@given(limit=st.integers(1_000, 999_999), rising=st.booleans())
def test_a_generator_that_cannot_is_not_a_device_that_loses(limit: int, *, rising: bool) -> None:
    found = search(lambda load, _: 0.0 if load <= limit else None, QUICK, rising=rising)
    assert found.limited
    assert found.upper is None
    assert found.lower is not None
    assert 0.75 * limit <= found.lower <= limit


@given(seed=st.integers(0, 10_000), rising=st.booleans())
def test_noise_never_turns_a_load_that_lost_into_a_bound(seed: int, *, rising: bool) -> None:
    """With a share of exceeding trials of zero, no load that lost in a full-length trial is a lower bound."""
    chance = random.Random(seed)
    lost: set[int] = set()

    def measure(load: int, seconds: float) -> float:
        loss = 0.01 if chance.random() < load / 1e6 * 0.3 or load > 700_000 else 0.0
        if loss and seconds >= 1.0:
            lost.add(load)
        return loss

    found = search(measure, Goal(0.1, 1.0, 2.0), rising=rising)
    assert found.lower is None or (found.lower not in lost and all(found.lower < load for load in lost))
    assert found.lower is None or found.lower <= 700_000


def test_a_share_of_trials_may_exceed() -> None:
    losses = iter([0.0, 0.0, 0.1])
    found = search(lambda *_: next(losses, 0.0), Goal(1.0, 1.0, 4.0, exceed_ratio=0.5))
    assert found.lower == 1_000_000


@pytest.mark.parametrize("rising", [True, False])
def test_line_rate_and_nothing(rising: bool) -> None:
    whole = search(lambda *_: 0.0, QUICK, rising=rising)
    assert (whole.lower, whole.upper) == (1_000_000, None)
    none = search(lambda *_: 1.0, QUICK, rising=rising)
    assert (none.lower, none.upper) == (None, 1000)


class Made:
    """A device that loses above a threshold, and stops, or is not offered a load, when it is told to."""

    def __init__(self, threshold: int, *, stop_after: int = 10**9, refuses: int = 0) -> None:
        self.threshold, self.stop_after, self.refuses = threshold, stop_after, refuses
        self.made = 0

    def carry(self, trial: Trial, name: str) -> Outcome:
        if self.made >= self.stop_after:
            raise StopError("a signal asked for it")
        self.made += 1
        if self.refuses:
            self.refuses -= 1
            return Outcome("INVALID: it was late", "INVALID", (), 0.1, name)
        latency = Latency(1000, 5e3, 6e3, 7e3, 8e3, 3e3, 6e3, 10.0)
        return Outcome(
            "",
            "VALID",
            tuple(
                Seen(1000, 10 if one.load_ppm > self.threshold else 0, 1.0, latency) for one in trial.streams
            ),
            0.1,
            name,
        )


def session(place: Path, made: Made, *, resume: bool = False) -> tuple[Session, list[Kind]]:
    store = Store.resume(place) if resume else Store.begin(place, {"device": ""})
    device = plain_device(2, "1Gbit/s")
    kinds = chosen(["throughput", "latency", "loss"])
    return Session(device, made, store, Sizes(quick=True, virtual=True), (64, 512), lambda _: None), kinds


def test_resuming_makes_only_what_is_missing(tmp_path: Path) -> None:
    whole = Made(300_000)
    expected, stopped = carry_out(*session(tmp_path / "whole", whole))
    assert not stopped
    assert all(one.state == "measured" for one in expected)
    first = Made(300_000, stop_after=7)
    results, stopped = carry_out(*session(tmp_path / "cut", first))
    assert stopped
    assert results[0].state == "not measured"
    with (tmp_path / "cut" / "trials.jsonl").open("a") as lines:
        lines.write('{"test": "through')  # as a killed writer leaves it
    rest = Made(300_000)
    again, kinds = session(tmp_path / "cut", rest, resume=True)
    again.store.mend()
    results, stopped = carry_out(again, kinds)
    assert not stopped
    assert rest.made == whole.made - 7
    assert results == expected


def test_damaged_lines_are_refused(tmp_path: Path) -> None:
    carry_out(*session(tmp_path / "a", Made(300_000)))
    path = tmp_path / "a" / "trials.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"test": 1}', *lines[2:]]) + "\n")
    with pytest.raises(SheetError, match=r"line 2: it is no trial"):
        Store.resume(tmp_path / "a")


def test_other_trials_are_not_taken_for_ours(tmp_path: Path) -> None:
    carry_out(*session(tmp_path / "a", Made(300_000)))
    again, kinds = session(tmp_path / "a", Made(300_000), resume=True)
    again.frames = (128,)
    with pytest.raises(SheetError, match="another trial"):
        carry_out(again, kinds)


def test_a_refused_trial_is_repeated_once(tmp_path: Path) -> None:
    made = Made(1_000_000, refuses=1)
    results, _ = carry_out(*session(tmp_path / "once", made))
    assert results[0].rows[0]["lower"] == 100.0
    never = Made(1_000_000, refuses=10**9)
    asking, kinds = session(tmp_path / "never", never)
    results, _ = carry_out(asking, kinds)
    assert [one.state for one in results] == ["refused"] * 3
    assert asking.refusals
    assert all(row["lower"] is None for row in results[0].rows)


def characterised(tmp_path: Path, attributes: str, *options: str) -> dict[str, dict[str, Any]]:
    """The data sheet's tests of a simulated switch with these attributes, by name."""
    (tmp_path / "dut.xml").write_text(SWITCH.format(attributes))
    out = tmp_path / "sheet"
    done = CliRunner().invoke(app, ["switch", str(tmp_path / "dut.xml"), "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    sheet = json.loads((out / "datasheet.json").read_text())
    jsonschema_rs.validate(json.loads(schema_path().read_text()), sheet)
    assert (out / "report.html").exists()
    return {one["name"]: one for one in sheet["tests"]}


@pytest.mark.parametrize(
    ("attributes", "frames", "kind", "order"),
    [
        ('buffer="32KiB" delay="3us"', 64, "store-and-forward", "none"),
        (
            'buffer="64KiB" queue-buffer="16KiB" forwarding-mode="cut-through" priorities="strict"',
            32,
            "cut-through",
            "strict",
        ),
    ],
)
def test_a_known_switch_is_found_out(
    tmp_path: Path, attributes: str, frames: int, kind: str, order: str
) -> None:
    names = "throughput,latency,buffer,priorities,head-of-line"
    tests = characterised(tmp_path, attributes, "--frame-sizes", "512,1518", "--tests", names)
    rows = tests["throughput"]["rows"]
    assert isinstance(rows, list)
    assert all(row["lower"] == 100.0 for row in rows)
    assert str(tests["latency"]["conclusion"]).startswith(f"['{kind}:")
    found = tests["buffer"]["rows"]
    assert isinstance(found, list)
    assert abs(found[0]["frames"] - frames) <= 1
    assert str(tests["priorities"]["conclusion"]).startswith(f"['{order}:")
    assert "not blocked" in str(tests["head-of-line"]["conclusion"])


def test_a_slow_switch_has_a_threshold_and_a_burst(tmp_path: Path) -> None:
    """It sends 1000 ppm slower than it receives, so 99.9 % is its throughput, and its buffer holds 16 frames."""
    attributes = 'buffer="8KiB" line-drift="-1000ppm"'
    tests = characterised(tmp_path, attributes, "--tests", "back-to-back", "--frame-sizes", "512")
    (row,) = tests["throughput"]["rows"]
    assert row["lower"] <= 99.9 < row["upper"]
    (burst,) = tests["back-to-back"]["rows"]
    assert 15_000 <= burst["length"] <= 18_000
    truth = 16 * 8 * 532 / 1e9 * 1e6
    assert burst["corrected_low"] <= truth <= burst["corrected"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tests", "speed"], 'there is no "speed"'),
        (["--frame-sizes", "63"], "from 64 to 1518"),
        (["--frame-sizes", "a"], "whole numbers"),
        (["--ports", "1"], "give 2 to 64"),
        (["--rate", "fast"], "write a rate"),
        (["--quick", "--standard"], "not both"),
        (["--resume", "nowhere"], "it holds no switch.json"),
        (["--resume", "x", "--ports", "3"], "give it alone"),
        (["nowhere.xml"], "nowhere.xml"),
    ],
)
def test_bad_input_is_said(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["switch", *arguments])
    assert done.exit_code == 2
    assert said in done.output


def test_networks_that_are_no_device(tmp_path: Path) -> None:
    text = SWITCH.format("").replace('between="d box" rate="1G', 'between="d box" rate="100M')
    (tmp_path / "dut.xml").write_text(text)
    done = CliRunner().invoke(app, ["switch", str(tmp_path / "dut.xml")])
    assert done.exit_code == 2
    assert "have 2 rates" in done.output


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = CliRunner().invoke(app, ["switch", "--out", str(tmp_path)])
    # The program's own entry point says it and ends with exit code 2.
    assert isinstance(done.exception, RunDirectoryError)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_stopped_command_keeps_its_trials_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wiregauge.switching import Bench

    carry = Bench.carry
    made: list[str] = []

    def stopping(self: Bench, trial: Trial, name: str) -> Outcome:
        if len(made) == 3:
            raise StopError("SIGINT")
        made.append(name)
        return carry(self, trial, name)

    monkeypatch.setattr(Bench, "carry", stopping)
    out = tmp_path / "s"
    arguments = ["--tests", "throughput,latency", "--frame-sizes", "512,1518", "--ports", "2"]
    done = CliRunner().invoke(app, ["switch", *arguments, "--out", str(out)])
    assert done.exit_code == 4, done.output
    assert f"--resume {out}" in done.output
    sheet = json.loads((out / "datasheet.json").read_text())
    assert (sheet["state"], sheet["trials"]) == ("interrupted", 3)
    monkeypatch.setattr(Bench, "carry", carry)
    done = CliRunner().invoke(app, ["switch", "--resume", str(out)])
    assert done.exit_code == 0, done.output
    sheet = json.loads((out / "datasheet.json").read_text())
    assert (sheet["state"], sheet["trials"]) == ("complete", 6)
    assert len(list((out / "trials").iterdir())) == 6


def test_bursts_leave_by_paced_streams(tmp_path: Path) -> None:
    # One by one by an ordinary task, the last of 16 would be late.
    bench = Bench(plain_device(4, "10Mbit/s"), cast(Any, None), tmp_path, model=False)
    streams = (Stream(0, 1, 20_000, 512), Stream(2, 1, 250_000, 512, burst=16))
    root = ElementTree.fromstring(bench.test(Trial("a", 1.0, streams)).to_xml())
    sends = [one for one in root.iter() if one.tag.endswith("}send") and one.get("count") != "1"]
    assert [(one.get("burst"), one.get("pacing")) for one in sends] == [(None, "rate"), ("16", "rate")]
