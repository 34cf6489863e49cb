"""What a data sheet claims: each line with what it rests on, and nothing that a short trial cannot know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from typer.testing import CliRunner

from chosen import also
from test_switching_tests import results
from wiregauge.cli.program import app
from wiregauge.config.schema import schema_path as schema_of_tests
from wiregauge.switching import (
    TESTS,
    Device,
    DeviceError,
    Latency,
    Outcome,
    Seen,
    Stream,
    Trial,
    device_of,
    service_of,
)
from wiregauge.switching.device import FAULTS, FAULTS_OF_TEST, REFUSED, REPLACED
from wiregauge.switching.evidence import EVIDENCE
from wiregauge.switching.trials import grown_ns

FILES = Path(__file__).parents[1] / "faults" / "switch"
XS = "{http://www.w3.org/2001/XMLSchema}"


def sheet_of(place: Path, file: Path, *options: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Its tests by name, and what was said beside."""
    arguments = ["switch", str(file), "--out", str(place / "s"), *options]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    sheet = json.loads((place / "s" / "datasheet.json").read_text())
    return {one["name"]: one for one in sheet["tests"]}, done.output


def perfect(trial: Trial) -> Outcome:
    """A device that does everything right, and floods what no port sends."""
    latency = Latency(1000, 13e3, 14e3, 15e3, 16e3, 1e3, 14e3, 10.0)

    def seen(stream: Stream) -> Seen:
        return Seen(1000, 0, 1.0, latency, 1.0, {"box:1": 1000, "box:2": 0}, 5_000.0)

    return Outcome("", "VALID", tuple(map(seen, trial.streams)), 0.1)


def test_every_row_and_line_says_what_it_rests_on(tmp_path: Path) -> None:
    found = results(tmp_path, ",".join(one.name for one in TESTS), perfect)
    measured = [one for one in found.values() if one.state == "measured"]
    assert len(measured) > 12
    for one in measured:
        assert set(EVIDENCE) <= set(one.columns), one.name
        for row in one.rows:
            assert isinstance(row["trials"], int), one.name
            assert row["trials"] >= 1
            assert isinstance(row["frames_sent"], int)
            assert row["frames_sent"] > 0
            assert isinstance(row["seconds"], float)
            assert row["seconds"] > 0
        for line in one.conclusion:
            assert re.search(r"\b(\d+|one) (trials?|frame sizes?|repeats|frames)\b", line), line
            assert not re.search(r"of any length|\b0 %|at most 0 ", line), line


NO_LOSS = re.compile(
    r"none of \d+ frames? lost|none lost|loses none|none was lost|no loss at|: pass|frames at least"
)
"""How sentences say that nothing was lost."""


def test_no_loss_is_told_with_what_it_could_hide(tmp_path: Path) -> None:
    """Every test of the data sheet reports the loss that a buffer or a burst credit would hide in a short trial."""
    promise = service_of({"cir": "100Mbit/s", "ftd": "1ms", "fdv": "100us", "flr": "0.1%"}, "a test")
    found = results(tmp_path, ",".join(one.name for one in TESTS), perfect, (promise,))
    telling = {}
    for one in found.values():
        for line in one.conclusion:
            if NO_LOSS.search(line) or one.name.startswith("service-"):
                telling[one.name] = line
                assert "of line rate would hide in 64 KiB of buffer or burst credit" in line, line
                assert "need not have shown" in line, line
    several = {
        "throughput",
        "latency",
        "loss",
        "back-to-back",
        "full-mesh",
        "service-steps",
        "service-performance",
    }
    assert several <= set(telling)


BOX = """<test xmlns="urn:wiregauge:test:2" name="box">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="box" queue-frames="6" {attributes}>{inside}</switch>
    <link between="a box" rate="1Gbit/s"/><link between="b box" rate="1Gbit/s"/>
    <link between="c box" rate="1Gbit/s"/><link between="d box" rate="1Gbit/s"/>
  </network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" period="1ms" payload="64B" count="10"/><receive flow="1"/></tasks>
</test>
"""
OWN = '<own-frames period="20ms" offset="7ms" frame="1518B"/>'
STEADY, JITTERY = 'delay="3us"', 'delay="0%:3us 100%:150us"'
STRICT = 'priorities="strict"'


@pytest.mark.parametrize(
    ("delay", "order", "inside"),
    [
        (STEADY, STRICT, OWN),
        (JITTERY, STRICT, ""),
        (STEADY, "", OWN),
        also(STEADY, STRICT, ""),
        also(JITTERY, STRICT, OWN),
        also(STEADY, "", ""),
        also(JITTERY, "", ""),
        also(JITTERY, "", OWN),
    ],
)
def test_what_a_device_does_anyway_is_no_buffer_no_priority_and_no_blocking(
    tmp_path: Path, delay: str, order: str, inside: str
) -> None:
    """Jitter, and frames of its own, are in the control as well; six frames have room at a port, one of them sent."""
    path = tmp_path / "dut.xml"
    path.write_text(BOX.format(attributes=f"{delay} {order}", inside=inside))
    names = "buffer,priorities,head-of-line"
    tests, _ = sheet_of(tmp_path, path, "--tests", names, "--frame-sizes", "512")
    (row,) = tests["buffer"]["rows"]
    (held,) = tests["buffer"]["conclusion"]
    assert row["fewest"] <= 6
    assert row["frames"] is None or 5 <= row["frames"] <= 6, held
    assert ("to one frame" in held) == (row["frames"] is not None)
    (said,) = tests["priorities"]["conclusion"]
    assert said.startswith(("strict: ", "not told") if order else ("none: ", "not told")), said
    if delay == STEADY:
        assert not said.startswith("not told"), said
    (blocks,) = tests["head-of-line"]["conclusion"]
    assert blocks.startswith(("not blocked: ", "not told: ")), blocks


def test_no_burst_is_of_any_length(tmp_path: Path) -> None:
    """A device that sends 200 ppm slower than comes and holds 16 frames loses the 80 000th or so, of every length."""
    tests, _ = sheet_of(
        tmp_path, FILES / "d10-slow16.xml", "--tests", "back-to-back,latency", "--frame-sizes", "512"
    )
    (said,) = tests["throughput"]["conclusion"]
    assert "no loss at line rate in so short a time" in said
    assert re.search(r"forwards (19\d|20\d) ppm less", said), said
    (row,) = tests["back-to-back"]["rows"]
    assert 79_000 <= row["length"] <= 80_500
    assert row["corrected"] is None
    latencies = tests["latency"]["conclusion"]
    assert latencies[1].startswith("512 B at 100 %: p50 ")
    assert "in a longer trial it is greater" in latencies[1]


def test_a_burst_credit_is_no_throughput(tmp_path: Path) -> None:
    """A policer at 105 Mbit/s of frames with a bucket of 16 KiB: a trial of 27 ms at more would pass."""
    meter = '<switch-tsn ports="1"><ingress flow="1"><police rate="100Mbit/s" burst="16KiB"/></ingress></switch-tsn>'
    text = (FILES / "d10-slow16.xml").read_text()
    text = text.replace(' line-drift="-200ppm"', "").replace("></switch>", f">{meter}</switch>", 1)
    (tmp_path / "dut.xml").write_text(text.replace("1Gbit/s", "200Mbit/s"))
    tests, _ = sheet_of(tmp_path, tmp_path / "dut.xml", "--tests", "throughput", "--frame-sizes", "64")
    (row,) = tests["throughput"]["rows"]
    truth = 100 * 0.5 * 84 / 64
    assert row["lower"] <= truth * 1.005
    assert row["hidden"] <= 0.5 * truth / 100 * 1.01


def test_frames_of_the_device_itself_are_no_line_rate(tmp_path: Path) -> None:
    text = (FILES / "d10-slow16.xml").read_text().replace(' line-drift="-200ppm" buffer-frames="16"', "")
    own = '<own-frames period="10ms" frame="64B" ports="1 2 3 4"/>'
    (tmp_path / "dut.xml").write_text(text.replace("></switch>", f">{own}</switch>", 1))
    tests, _ = sheet_of(tmp_path, tmp_path / "dut.xml", "--tests", "throughput", "--frame-sizes", "512")
    (said,) = tests["throughput"]["conclusion"]
    assert "no loss at line rate in so short a time" in said
    assert "a longer trial loses" in said


def test_a_switch_that_keeps_up_has_line_rate_with_its_bound(tmp_path: Path) -> None:
    text = (FILES / "d10-slow16.xml").read_text().replace(' line-drift="-200ppm"', "")
    (tmp_path / "dut.xml").write_text(text)
    tests, _ = sheet_of(
        tmp_path, tmp_path / "dut.xml", "--tests", "loss,back-to-back", "--frame-sizes", "512"
    )
    (said,) = tests["throughput"]["conclusion"]
    assert said.startswith(
        "512 B: no loss at line rate: none of 80000 frames lost, so at most 0.0037 % (95 %)"
    )
    assert "would hide in 64 KiB of buffer or burst credit" in said
    (lost,) = tests["loss"]["conclusion"]
    assert lost.startswith("512 B: none of 152000 frames lost, so at most 0.002 % (95 %)")
    (burst,) = tests["back-to-back"]["conclusion"]
    assert burst.startswith("512 B: 131072 frames at least, no longer burst was tried")


def test_faults_of_a_device_hold_in_its_trials(tmp_path: Path) -> None:
    tests, said = sheet_of(
        tmp_path, FILES / "d2-lossy.xml", "--tests", "loss,errored-frames", "--frame-sizes", "512"
    )
    assert "hold in every trial: its network and its faults (loss)" in said
    assert tests["throughput"]["rows"][0]["lower"] is None
    (lost,) = tests["loss"]["conclusion"]
    assert re.match(r"512 B: most at \d+ %: \d+ of \d+ frames lost", lost)
    top = tests["loss"]["rows"][0]
    assert top["lost"] > 0
    assert top["low"] < 0.01 < top["bound"]


def names_of(element: str) -> list[str]:
    """The children that an element may have, by the schema."""
    root = etree.parse(str(schema_of_tests())).getroot()
    (found,) = (one for one in root.findall(f"{XS}element") if one.get("name") == element)
    return [str(one.get("ref")) for one in found.iter(f"{XS}element") if one.get("ref")]


def test_every_element_of_a_device_file_is_applied_replaced_or_refused() -> None:
    assert set(names_of("test")) == {"network", "faults", *REPLACED, *REFUSED}
    assert set(FAULTS) < set(names_of("faults"))


ATTRIBUTES = {
    "bit-errors": 'link="e2 dut" rate="1e-9"',
    "loss": 'link="e2 dut" share="0.01%"',
    "duplicate": 'link="e2 dut" share="0.01%"',
    "delay": 'link="e2 dut" by="1us" share="1%"',
    "corrupt": 'link="e2 dut" share="0.01%"',
    "wrong-length": 'link="e2 dut" length="63B" share="0.01%"',
    "cut": 'link="e2 dut" from="1ms"',
    "babble": 'flow="1" from="1ms" until="2ms" load="10%"',
    "restart": 'switch="dut" from="1ms" until="2ms"',
    "step-clock": 'on="e1" at="1ms" by="1us"',
}


@pytest.mark.parametrize("fault", names_of("faults"))
def test_every_fault_is_applied_or_refused_by_name(fault: str, tmp_path: Path) -> None:
    text = (FILES / "d2-lossy.xml").read_text()
    text = text.replace('<loss link="e2 dut" share="0.01%"/>', f"<{fault} {ATTRIBUTES[fault]}/>")
    path = tmp_path / "dut.xml"
    path.write_text(text)
    if fault not in FAULTS:
        with pytest.raises(DeviceError, match=f"<{fault}> happens at a time, or to a flow"):
            device_of(path)
        return
    device: Device = device_of(path)
    assert [etree.QName(etree.fromstring(one)).localname for one in device.faults] == [fault]
    for key, value in zip(FAULTS_OF_TEST, ("1", "3", "1ms", "2ms"), strict=True):
        if key == "sequence" or (fault == "bit-errors" and key == "flow"):
            continue
        held = f'{ATTRIBUTES[fault]} {key}="{value}"'
        if key == "flow":
            held = re.sub('share="[^"]*"', 'sequence="3"', held)
        path.write_text(text.replace(ATTRIBUTES[fault], held))
        with pytest.raises(DeviceError, match=f'<{fault}> names {key}="{value}" of this test'):
            device_of(path)


@pytest.mark.parametrize(
    ("held", "said"),
    [('<sweep><repeat times="2"/></sweep>', "<sweep>: a device has one value")],
)
def test_what_no_trial_can_have_is_refused(held: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "dut.xml"
    path.write_text((FILES / "d2-lossy.xml").read_text().replace("</faults>", f"</faults>{held}"))
    with pytest.raises(DeviceError, match=said):
        device_of(path)


def test_growing_waits_are_told_from_noise() -> None:
    chance = np.random.default_rng(5)
    flat = np.full(4000, 5e3)
    assert grown_ns(flat, 0.0) is None
    assert grown_ns(flat + np.linspace(0, 3e3, 4000), 0.0) == pytest.approx(2.7e3, rel=0.01)
    stepped = flat.copy()
    stepped[2900:] += 672
    assert grown_ns(stepped, 0.0) == pytest.approx(672)
    assert grown_ns(stepped, 1e3) is None
    told = sum(grown_ns(flat + chance.exponential(500, 4000), 0.0) is not None for _ in range(400))
    assert told <= 8


def test_how_long_it_takes_and_what_is_left_out_is_said_first(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["switch", "--tests", "latency", "--frame-sizes", "1518", "--out", str(tmp_path / "s")]
    )
    lines = [line for line in done.output.splitlines() if line.startswith("wiregauge: ")]
    assert re.match(r"wiregauge: 2 tests: about \d+ trials, about \d+:\d\d; at most 14:00", lines[0])
    assert "--quick (the default) has trials of 492 ms where --standard has 60 s" in lines[1]
    assert lines[2].startswith("wiregauge: throughput ")


POLICED = """<test xmlns="urn:wiregauge:test:2" name="box">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="box" delay="3us" buffer="256KiB"><switch-tsn ports="1"><ingress flow="1001">
      <police rate="{rate}" burst="64KiB"/></ingress></switch-tsn></switch>
    <link between="a box" rate="1Gbit/s"/><link between="b box" rate="1Gbit/s"/>
    <link between="c box" rate="1Gbit/s"/><link between="d box" rate="1Gbit/s"/>
  </network>
  <flows><flow id="1001" protocol="raw" from="a" to="b"/></flows>
  <tasks><send flow="1001" period="1ms" payload="64B" count="10"/><receive flow="1001"/></tasks>
</test>
"""


@pytest.mark.parametrize(
    ("rate", "passes"), [("99.85Mbit/s", False), also("99.95Mbit/s", True), also("100Mbit/s", True)]
)
def test_a_burst_credit_keeps_no_promise(rate: str, passes: bool, tmp_path: Path) -> None:
    """A service that may lose 0.1 %: a policer of 64 KiB at 99.85 % of its rate loses 0.15 %, after some seconds."""
    path = tmp_path / "dut.xml"
    path.write_text(POLICED.format(rate=rate))
    promise = "cir=100Mbit/s,ftd=1ms,fdv=100us,flr=0.1%"
    tests, _ = sheet_of(tmp_path, path, "--tests", "service-performance", "--service", promise)
    (row,) = tests["service-performance"]["rows"]
    assert (row["verdict"] == "pass") == passes, row
    assert row["bound"] + 100 * 8 * 64 * 1024 / (row["seconds"] * 1e8) < 0.1 or not passes


def test_few_frames_keep_no_share(tmp_path: Path) -> None:
    """None of 1000 lost: at most 0.3 %, which is no 0.1 %."""
    promise = service_of({"cir": "100Mbit/s", "flr": "0.1%"}, "a test")
    for one in results(tmp_path, "service-steps,service-performance", perfect, (promise,)).values():
        held = [row["verdict"] for row in one.rows if row.get("step") not in ("policing", "CIR + EIR")]
        assert held
        assert all(str(verdict).startswith("undecided: FLR at most 0.3 %") for verdict in held)


def test_no_line_says_of_no_loss_without_how_many_and_at_most(tmp_path: Path) -> None:
    promise = service_of({"cir": "100Mbit/s", "ftd": "1ms", "fdv": "100us", "flr": "1%"}, "a test")
    found = results(tmp_path, ",".join(one.name for one in TESTS), perfect, (promise,))
    told = [line for one in found.values() for line in one.conclusion if NO_LOSS.search(line)]
    assert len(told) > 8
    for line in told:
        assert re.search(r"at most [\d.e-]+ %", line), line
        assert re.search(r"\d+ frames|of \d+", line), line
