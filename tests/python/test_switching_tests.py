"""Tests of RFC 2889, RFC 8239 and Y.1564 against simulated switches that are known, and against made-up devices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from chosen import also
from wiregauge.cli.program import app
from wiregauge.switching import (
    BeyondError,
    Device,
    DeviceError,
    Latency,
    Outcome,
    Result,
    Seen,
    Service,
    Session,
    Sizes,
    Store,
    Stream,
    Trial,
    carry_out,
    chosen,
    device_of,
    envelopes_of,
    plain_device,
    read_services,
    schema_path,
    service_of,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "switch"
NETWORK = """<test xmlns="urn:wiregauge:test:2" name="known" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="box" {attributes}>{inside}</switch>
    <link between="a box" rate="1Gbit/s"/><link between="b box" rate="1Gbit/s"/>
    <link between="c box" rate="1Gbit/s"/><link between="d box" rate="1Gbit/s"/>
  </network>
  <flows><flow id="1001" protocol="raw" from="a" to="b"/></flows>
  <tasks duration="10ms"><send flow="1001" load="1%" frame="512B"/><receive flow="1001"/></tasks>
</test>
"""


def characterised(
    folder: Path, tests: str, *options: str, attributes: str = "", inside: str = ""
) -> dict[str, dict[str, Any]]:
    """What the tests find of a simulated switch, by name."""
    (folder / "dut.xml").write_text(NETWORK.format(attributes=attributes, inside=inside))
    out = folder / "sheet"
    arguments = ["switch", str(folder / "dut.xml"), "--out", str(out), "--tests", tests]
    done = CliRunner().invoke(app, [*arguments, "--frame-sizes", "512", *options])
    assert done.exit_code == 0, done.output
    sheet = json.loads((out / "datasheet.json").read_text())
    jsonschema_rs.validate(json.loads(schema_path().read_text()), sheet)
    return {one["name"]: one for one in sheet["tests"]}


def test_meshes_of_a_switch_that_keeps_up(tmp_path: Path) -> None:
    found = characterised(tmp_path, "full-mesh,one-to-many,many-to-one,broadcast")
    line = 1e9 / (8 * 532)
    for name, ports in (("full-mesh", 4), ("one-to-many", 1), ("many-to-one", 1), ("broadcast", 3)):
        (row,) = found[name]["rows"]
        assert (row["lower"], row["upper"], row["loss"]) == (100.0, None, 0.0), name
        # Frames leave the device at line rate by so many ports.
        assert row["frmol"] == pytest.approx(ports * line, rel=1e-3), name
        assert row["mfr"] == row["frmol"]


def test_a_mesh_over_ports_that_send_slowly_has_a_threshold(tmp_path: Path) -> None:
    """Its ports send 1000 ppm slower than they receive, with room for 8 frames: 99.9 % is what it forwards."""
    found = characterised(tmp_path, "many-to-one", attributes='buffer-frames="8" line-drift="-1000ppm"')
    (row,) = found["many-to-one"]["rows"]
    assert row["lower"] <= 99.9 < row["upper"]
    assert row["loss"] == pytest.approx(0.1, abs=0.03)
    assert row["frmol"] == pytest.approx(0.999 * 1e9 / (8 * 532), rel=1e-3)


@pytest.mark.parametrize(
    "more", [also(""), also('forwarding="learning"'), 'forwarding="learning" learning-time="100us"']
)
def test_a_congested_port_loses_a_third(tmp_path: Path, more: str) -> None:
    """Also of a switch that learns: receivers send learning frames, or all would be flooded."""
    found = characterised(tmp_path, "congestion", attributes=f'buffer="64KiB" {more}')
    (row,) = found["congestion"]["rows"]
    assert row["loss"] == pytest.approx(100 / 3, abs=0.02)
    assert row["free_loss"] == 0
    assert row["statement"].startswith("no head-of-line blocking; no back-pressure")


@pytest.mark.parametrize(("held", "more"), [(16, ""), also(100, ""), also(16, 'forwarding="learning"')])
def test_incast_finds_the_buffer(tmp_path: Path, held: int, more: str) -> None:
    found = characterised(tmp_path, "incast", attributes=f'buffer-frames="{held}" {more}')
    rows = found["incast"]["rows"]
    assert [row["senders"] for row in rows] == [2, 3]
    for row in rows:
        others = row["senders"] - 1
        assert held - others <= row["held"] <= held + others, row
        assert row["loss"] > 0


def test_the_table_of_addresses_is_found_exactly(tmp_path: Path) -> None:
    attributes = 'forwarding="learning" address-table="777" learning-time="100us"'
    found = characterised(tmp_path, "learning-rate", attributes=attributes)
    assert found["address-capacity"]["conclusion"] == [
        "777 addresses are kept; 14 trials, one of each number"
    ]
    rows = found["learning-rate"]["rows"]
    good = max(row["rate"] for row in rows if not row["flooded"])
    bad = min(row["rate"] for row in rows if row["flooded"])
    assert good <= 10_000 < bad
    assert bad / good < 1.006


def test_a_table_that_forgets_is_smaller(tmp_path: Path) -> None:
    """What is not seen for 50 ms is forgotten, so of stations 1 ms apart some fifty are left."""
    attributes = 'forwarding="learning" ageing-time="50ms"'
    found = characterised(tmp_path, "address-capacity", attributes=attributes)
    kept = max(row["stations"] for row in found["address-capacity"]["rows"] if not row["flooded"])
    assert 25 <= kept <= 50


def test_a_switch_that_does_not_learn_has_no_table(tmp_path: Path) -> None:
    found = characterised(tmp_path, "learning-rate")
    assert [one["state"] for one in found.values()] == ["not carried", "not carried"]
    assert 'write forwarding="learning"' in found["learning-rate"]["reason"]


ERRORS = [
    "wrong FCS",
    "undersize (runt)",
    "undersize and wrong FCS (fragment)",
    "oversize (giant)",
    "oversize and wrong FCS (jabber)",
]


@pytest.mark.parametrize(
    ("attributes", "forwarded"),
    [
        ("", set[str]()),
        ('forwarding-mode="cut-through"', set(ERRORS)),
        ('shortest-frame="32B"', {"undersize (runt)"}),
        ('longest-frame="2000B"', {"oversize (giant)"}),
    ],
)
def test_errored_frames(tmp_path: Path, attributes: str, forwarded: set[str]) -> None:
    """A store-and-forward switch filters what it does not take, and a cut-through switch cannot."""
    found = characterised(tmp_path, "errored-frames", attributes=attributes)
    rows = found["errored-frames"]["rows"]
    assert [row["error"] for row in rows] == ERRORS
    assert [row["frame"] for row in rows] == [512, 63, 63, 1519, 1519]
    for row in rows:
        assert row["sent"] == 1000
        assert row["forwarded"] == (1000 if row["error"] in forwarded else 0), row


@pytest.mark.parametrize(
    ("attributes", "gap", "loss", "pressure"),
    [
        ('buffer-frames="8"', 96, 100 / 532, False),
        ('buffer-frames="8" line-drift="-100ppm"', 96.43, 100 / 532 + 0.01, False),
        ('buffer-frames="8" line-drift="100ppm"', 95.57, 100 / 532 - 0.01, False),
        ('buffer-frames="8" interframe-gap="11B"', 88, 0, True),
    ],
)
def test_forward_pressure_is_told_from_a_fast_clock(
    tmp_path: Path, attributes: str, gap: float, loss: float, pressure: bool
) -> None:
    found = characterised(tmp_path, "forward-pressure", attributes=attributes)
    (row,) = found["forward-pressure"]["rows"]
    assert row["gap"] == pytest.approx(gap, abs=0.02)
    assert row["loss"] == pytest.approx(loss, abs=0.03)
    assert row["statement"].startswith("forward pressure" if pressure else "no forward pressure")
    assert row["mol"] == pytest.approx(1e9 / (8 * 531))
    assert row["mfr"] >= row["frmol"]


def test_the_careless_example_is_found_out(tmp_path: Path) -> None:
    arguments = ["switch", str(EXAMPLES / "careless.xml"), "--tests", "errored-frames,forward-pressure"]
    done = CliRunner().invoke(app, [*arguments, "--frame-sizes", "64,1518", "--out", str(tmp_path / "s")])
    assert done.exit_code == 0, done.output
    tests = {one["name"]: one for one in json.loads((tmp_path / "s" / "datasheet.json").read_text())["tests"]}
    forwarded = {row["error"] for row in tests["errored-frames"]["rows"] if row["forwarded"]}
    assert forwarded == {"undersize (runt)", "oversize (giant)"}
    gaps = [row["gap"] for row in tests["forward-pressure"]["rows"]]
    assert gaps == pytest.approx([88, 88], abs=0.1)


def test_a_gap_is_that_of_one_member_of_a_group(tmp_path: Path) -> None:
    network = NETWORK.format(attributes='buffer-frames="8"', inside="")
    for name in "abcd":
        network = network.replace(f'<link between="{name} box" rate="1Gbit/s"/>', "")
        network = network.replace(f'<end-system name="{name}"/>', "")
    group = '<end-system name="p[1-4]"/><link between="p[1-4] box" rate="1Gbit/s"/>'
    network = network.replace("</network>", f"{group}</network>")
    network = network.replace('from="a" to="b"', 'from="p1" to="p2"')
    (tmp_path / "dut.xml").write_text(network)
    arguments = ["switch", str(tmp_path / "dut.xml"), "--tests", "forward-pressure", "--frame-sizes", "512"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "s")])
    assert done.exit_code == 0, done.output
    sheet = json.loads((tmp_path / "s" / "datasheet.json").read_text())
    assert sheet["tests"][-1]["rows"][0]["loss"] == pytest.approx(100 / 532, abs=0.03)


METER = (
    '<switch-tsn ports="1"><ingress flow="1001"><police rate="100Mbit/s" burst="16KiB" '
    'excess-rate="20Mbit/s" excess-burst="16KiB"/></ingress></switch-tsn>'
)
PROMISE = "cir=100Mbit/s,eir=20Mbit/s,ftd=100us,fdv=10us,flr=0%,availability=100%"


def test_a_metered_service_passes_and_is_policed(tmp_path: Path) -> None:
    found = characterised(tmp_path, "service-steps,service-performance", "--service", PROMISE, inside=METER)
    rows = found["service-steps"]["rows"]
    assert [row["step"] for row in rows] == [
        "25 % of CIR", "50 % of CIR", "75 % of CIR", "100 % of CIR", "CIR + EIR", "policing",
    ]  # fmt: skip
    assert {row["verdict"] for row in rows} == {"pass"}
    assert rows[-1]["offered"] == pytest.approx(125, rel=1e-3)
    assert rows[-1]["rate"] == pytest.approx(120, rel=2e-3)
    (row,) = found["service-performance"]["rows"]
    assert (row["verdict"], row["flr"], row["availability"]) == ("pass", 0.0, 100.0)


def test_a_service_that_is_not_policed_or_late_fails(tmp_path: Path) -> None:
    late = PROMISE.replace("ftd=100us", "ftd=5us")
    found = characterised(tmp_path, "service-steps", "--service", late)
    verdicts = {row["step"]: row["verdict"] for row in found["service-steps"]["rows"]}
    assert verdicts["25 % of CIR"].startswith("fail: FTD ")
    assert verdicts["policing"].startswith("fail: IR 125 Mbit/s, above CIR + EIR: it is not policed, or")
    assert verdicts["CIR + EIR"] == "pass"


def test_a_meter_below_the_cir_fails(tmp_path: Path) -> None:
    found = characterised(
        tmp_path, "service-steps", "--service", PROMISE, inside=METER.replace("100Mbit/s", "70Mbit/s")
    )
    verdicts = {row["step"]: row["verdict"] for row in found["service-steps"]["rows"]}
    assert verdicts["75 % of CIR"] == "pass"
    assert verdicts["policing"].startswith("fail: IR ")


def test_traversal_gives_the_service_curve(tmp_path: Path) -> None:
    envelopes = "50%:8,50%:16,50%:64"
    found = characterised(
        tmp_path, "traversal", "--cross-traffic", envelopes, attributes='delay="3us" buffer="256KiB"'
    )
    rows = found["traversal"]["rows"]
    frame_us = 8 * 532 / 1e3
    (empty,) = [row for row in rows if row["output"] == "none"]
    # Two transmissions of 512 B with preamble, and the processing delay.
    assert empty["max"] == pytest.approx(empty["min"])
    for row in rows:
        if row["output"] == "another output":
            assert row["excess"] == pytest.approx(0)
        if row["output"] == "the same output":
            assert row["lost"] == 0
            # The output sends one frame for each that a port gives, and one is on the wire when the last ones come.
            standing = row["burst"] - row["burst"] / 2 + 1
            assert 0.9 * standing * frame_us < row["excess"] <= standing * frame_us + 1e-3
    (curve,) = [
        line for line in found["traversal"]["conclusion"] if line.startswith("rate-latency service curve")
    ]
    assert float(curve.split("rate ")[1].split()[0]) == pytest.approx(1000, rel=0.05)


def test_the_example_is_found_out(tmp_path: Path) -> None:
    arguments = ["switch", str(EXAMPLES / "metro.xml"), "--services", str(EXAMPLES / "services.toml")]
    arguments += ["--tests", "learning-rate,service-steps,service-performance", "--frame-sizes", "512"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "s"), "--json"])
    assert done.exit_code == 0, done.output
    tests = {one["name"]: one for one in json.loads((tmp_path / "s" / "datasheet.json").read_text())["tests"]}
    assert tests["address-capacity"]["conclusion"] == [
        "1000 addresses are kept; 14 trials, one of each number"
    ]
    assert {row["service"] for row in tests["service-steps"]["rows"]} == {"control", "bulk"}
    assert tests["service-steps"]["conclusion"][0].startswith("control: pass at every step that counts; ")
    # Nothing polices the second one.
    assert any(one.startswith("bulk: policing: fail") for one in tests["service-steps"]["conclusion"])
    assert [row["verdict"] for row in tests["service-performance"]["rows"]] == ["pass", "pass"]


class Made:
    """A device that does what a function says."""

    def __init__(self, does: Callable[[Trial], Outcome]) -> None:
        self.does = does

    def carry(self, trial: Trial, name: str) -> Outcome:
        return self.does(trial)


def seen(stream: Stream, *, loss: float = 0.0, p50: float = 6e3, offered: float = 1.0) -> Seen:
    latency = Latency(1000, 5e3, p50, 2 * p50, 3 * p50, 1e3, p50, 10.0)
    return Seen(1000, round(1000 * loss), offered, latency, 1 - loss)


def results(
    folder: Path, names: str, does: Callable[[Trial], Outcome], services: tuple[Service, ...] = ()
) -> dict[str, Result]:
    store = Store.begin(folder / "s", {"device": ""})
    session = Session(
        plain_device(4, "1Gbit/s"),
        Made(does),
        store,
        Sizes(quick=True, virtual=True),
        (512,),
        lambda _: None,
        services=services,
    )
    found, _ = carry_out(session, chosen(names.split(",")))
    return {one.name: one for one in found}


def outcome(trial: Trial, *streams: Seen, refused: str = "", grade: str = "VALID") -> Outcome:
    return Outcome(refused, grade, streams or tuple(map(seen, trial.streams)), 0.1)


@pytest.mark.parametrize(
    ("low", "high", "lost", "said"),
    [
        ((5e3, 4e5, 8e5), (5e3, 6e3, 9e3), 10, "strict: none of 1000 frames"),
        ((5e3, 4e5, 8e5), (5e3, 6e3, 331e3), 10, "not strict for every frame"),  # a gate, or a slow host
        ((5e3, 4e5, 8e5), (5e3, 4e5, 8e5), 10, "none: both priorities wait alike"),
        (
            (150e3, 170e3, 180e3),
            (150e3, 160e3, 180e3),
            300,
            "not told: both took alike, but only the low priority lost",
        ),  # a small queue
    ],
)
def test_the_longest_wait_says_whether_priorities_are_strict(
    tmp_path: Path, low: tuple[float, ...], high: tuple[float, ...], lost: int, said: str
) -> None:
    def does(trial: Trial) -> Outcome:
        if "priorities" not in trial.name:
            return outcome(trial)
        both = []
        for (least, middle, most), gone in ((low, lost), (high, lost if low == high else 0)):
            both.append(
                Seen(1000, gone, 1.0, Latency(1000, least, middle, most, most, 1.0, middle, 1.0), 1.0)
            )
        return outcome(trial, *both)

    (line,) = results(tmp_path, "priorities", does)["priorities"].conclusion
    assert line.startswith(said), line


@pytest.mark.parametrize(
    ("most", "said"), [(6e3, "to one frame"), (155e3, "latencies of the empty device differ")]
)
def test_jitter_is_no_buffer(tmp_path: Path, most: float, said: str) -> None:
    def does(trial: Trial) -> Outcome:
        if not trial.loads:
            first = Latency(1000, 5e3, 5e3, most, most, 1.0, 5e3, 1.0)
        else:
            first = Latency(1000, 5e3, 2e5, 2e5, 2e5, 1.0, 2e5, 1.0)
        return outcome(trial, *(Seen(1000, 9 if trial.loads else 0, 1.0, first, 1.0) for _ in trial.streams))

    (line,) = results(tmp_path, "buffer", does)["buffer"].conclusion
    assert said in line


def test_traversal_says_what_was_not_measured_and_no_rate_above_the_line(tmp_path: Path) -> None:
    """Waits that hardly grow with the burst would give a service curve faster than the line."""
    waits = {"bursts of 1,": 9e5, "bursts of 8,": 9.1e5}

    def does(trial: Trial) -> Outcome:
        if "bursts of 32" in trial.name or "another output" in trial.name:
            return outcome(trial, refused="INVALID: sends left late")
        wait = next((wait for burst, wait in waits.items() if burst in trial.name), 6e3)
        first, *others = map(seen, trial.streams)
        return outcome(trial, replace(first, latency=replace(first.latency, maximum=wait)), *others)

    empty, curve, same, other = results(tmp_path, "traversal", does)["traversal"].conclusion
    assert empty.startswith("512 B, empty: ")
    assert curve.startswith(
        "rate-latency service curve: rate 1000 Mbit/s, the line's: the greatest wait grows"
    )
    assert same.endswith("were seen, in 3 trials, not counting 50 % in bursts of 32: refused")
    assert other == "foreign traffic for another output: not known, no trial counts"


@pytest.mark.parametrize(
    ("free", "full", "offered", "refused", "said"),
    [
        ({}, {"loss": 1 / 3, "p50": 1e6}, 1.0, "", "no head-of-line blocking; no back-pressure"),
        ({"loss": 0.2}, {"loss": 1 / 3, "p50": 1e6}, 1.0, "", "head-of-line blocking: 200 of 1000 frames for the"),
        ({"p50": 1e6}, {"loss": 1 / 3, "p50": 1e6}, 1.0, "", "head-of-line blocking: frames for the"),
        ({}, {"p50": 1e6}, 2 / 3, "flow 3 was offered at 66.7 %", "back-pressure: the congested port lost none of "),
        ({"p50": 1e6}, {"p50": 1e6}, 2 / 3, "flow 3 was offered", "back-pressure: the congested port lost none "),
    ],
)  # fmt: skip
def test_blocking_and_pressure_are_told_apart(
    tmp_path: Path, free: dict[str, float], full: dict[str, float], offered: float, refused: str, said: str
) -> None:
    def does(trial: Trial) -> Outcome:
        if not trial.overload:
            return outcome(trial)
        first, *others = trial.streams
        streams = [seen(first, **free), *(seen(one, **full) for one in others)]
        return outcome(trial, *(replace(one, offered=offered) for one in streams), refused=refused)

    found = results(tmp_path, "congestion", does)["congestion"]
    assert found.state == "measured", found.notes
    statement = found.rows[0]["statement"]
    assert isinstance(statement, str)
    assert statement.startswith(said)


def test_a_congestion_trial_that_was_not_offered_and_lost_counts_for_nothing(tmp_path: Path) -> None:
    def does(trial: Trial) -> Outcome:
        if not trial.overload:
            return outcome(trial)
        streams = [replace(seen(one, loss=0.1), offered=0.5) for one in trial.streams]
        return outcome(trial, *streams, refused="flow 1 was offered at 50 %")

    found = results(tmp_path, "congestion", does)["congestion"]
    assert (found.state, found.rows) == ("refused", [])


def test_a_mesh_that_the_generator_limits_says_so(tmp_path: Path) -> None:
    def does(trial: Trial) -> Outcome:
        per_port = sum(one.load_ppm for one in trial.streams if one.source == 0)
        return outcome(trial, refused="flow 1 was offered at 90 %" if per_port > 400_000 else "")

    (row,) = results(tmp_path, "full-mesh", does)["full-mesh"].rows
    assert str(row["statement"]).endswith("limited by the generator")
    assert row["upper"] is None


def test_what_a_bench_cannot_is_listed_with_its_reason(tmp_path: Path) -> None:
    def does(trial: Trial) -> Outcome:
        if any(one.also_to for one in trial.streams):
            raise BeyondError("flow 1 has several receivers: this bench sends to one")
        return outcome(trial)

    found = results(tmp_path, "broadcast,one-to-many", does)
    assert found["broadcast"].state == "not carried"
    assert found["broadcast"].reason.endswith("this bench sends to one")
    assert found["one-to-many"].state == "measured"


def test_trials_of_before_are_the_same(tmp_path: Path) -> None:
    """A directory that an older version began holds trials without the fields that came since."""
    trial = Trial("64 B", 1.0, (Stream(0, 1, 500, 64),))
    assert trial.as_json() == {
        "name": "64 B",
        "seconds": 1.0,
        "streams": [{"source": 0, "to": 1, "load_ppm": 500, "frame": 64, "priority": None}],
        "loads": [],
        "warm_up": True,
    }
    assert replace(trial, overload=True).as_json()["overload"] is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write a table [[service]]"),
        ("[[service]]\nname = 1\n", "it has no cir"),
        ('[[service]]\ncir = "100"\n', "has no unit"),
        ('[[service]]\ncir = "1Mbit/s"\nspeed = 2\n', 'there is no "speed"'),
        ('[[service]]\ncir = "1Mbit/s"\nfrom = 2\n', "to itself"),
        ('[[service]]\ncir = "1Mbit/s"\nflr = "200%"\n', "more than 100%"),
        ('[[service]]\ncir = "1Mbit/s"\nframe = "20B"\n', "write 64B to 1518B"),
        ('[[service]]\ncir = "1Mbit/s"\npriority = 8\n', "whole number from 0 to 7"),
        ("[[service]\n", "it is no TOML"),
    ],
)
def test_services_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "services.toml"
    path.write_text(text)
    with pytest.raises(DeviceError) as refused:
        read_services(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--service", "cir"], "write KEY=VALUE"),
        (["--service", "cir=1Mbit/s,to=9"], "there is no port 9; the device has 4"),
        (["--service", "cir=999Mbit/s"], "more than a link of 1000000000 bit/s carries"),
        (["--services", "nowhere.toml"], "name a file of services"),
        (["--cross-traffic", "50"], "has no unit"),
        (["--cross-traffic", "99%:4"], "write a load up to 95%"),
        (["--cross-traffic", "50%:0"], "a burst of 1 to 1000"),
        (["--lab", "x"], "has no effect with --bench sim"),
    ],
)
def test_bad_input_is_said(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["switch", *arguments])
    assert done.exit_code == 2, done.output
    assert said in done.output.replace("\n", " ")


def test_a_rule_for_a_stream_that_a_trial_lacks_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "dut.xml").write_text(NETWORK.format(attributes="", inside=METER))
    device: Device = device_of(tmp_path / "dut.xml")
    assert b"police" in device.network
    assert envelopes_of("50%,80%:4")[1].burst == 4
    assert service_of({"cir": "1Mbit/s"}, "here").flr == 0.0


@pytest.mark.parametrize(
    "names", ["latency", "traversal", "buffer", "head-of-line", "priorities", "broadcast"]
)
def test_a_latency_below_one_transmission_is_none_of_the_device(tmp_path: Path, names: str) -> None:
    """512 B take 4.1 µs at 1 Gbit/s: a bench that delivers them sooner has no links of that rate."""

    def does(trial: Trial) -> Outcome:
        fast = Latency(1000, 2.7e3, 3e3, 9e3, 4e4, 1e3, 3e3, 10.0)
        return outcome(trial, *(replace(seen(one), latency=fast) for one in receivers(trial)))

    told = results(tmp_path, names, does)[names]
    said = " ".join([*told.conclusion, *told.notes, told.reason])
    assert "512 B arrived 2.7 µs after being sent, and one transmission at this rate takes 4.1 µs" in said
    times = {column.key for column in told.columns if column.unit == "us"}
    assert not any(row.get(key) for row in told.rows for key in times)


def receivers(trial: Trial) -> list[Stream]:
    return [one for one in trial.streams for _ in (one.to, *one.also_to)]


def test_a_latency_of_one_transmission_is_told(tmp_path: Path) -> None:
    def does(trial: Trial) -> Outcome:
        exact = Latency(1000, 4.096e3, 5e3, 6e3, 7e3, 1e3, 5e3, 10.0)
        return outcome(trial, *(replace(seen(one), latency=exact) for one in receivers(trial)))

    told = results(tmp_path, "latency", does)["latency"]
    assert [row["min"] for row in told.rows] == [4.096]
    assert not any("no latency of the device" in line for line in told.conclusion)
