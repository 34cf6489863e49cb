"""What a test plants against the assumptions of its bounds and of its schedule: every row of the table, planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wiregauge import runner
from wiregauge.cli import app
from wiregauge.plan.planted import ASSUMPTIONS

pytestmark = pytest.mark.usefixtures("unreported")

FAULTS = Path(__file__).resolve().parents[1] / "faults"

PLAIN = """<test xmlns="urn:wiregauge:test:2" name="planted" seed="1">
<network host="ideal">
<end-system name="a">{of_a}</end-system>
<end-system name="b">{of_b}</end-system>
<end-system name="c"/>
<switch name="s"{switch}>{of_s}</switch>
<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/><link between="c s" rate="100Mbit/s"/>
</network>
<flows><flow id="1" protocol="udp" from="a" to="b"/><flow id="2" protocol="udp" from="c" to="b"/>{flow}</flows>
<tasks warm-up="0s" duration="{duration}">
<send flow="1" period="1ms" payload="100B"{send}/>{at_b}
<send flow="2" period="1ms" payload="1472B"/><receive flow="2"/>{task}
</tasks>
{faults}
</test>
"""
FILLED = {
    "of_a": "", "of_b": "", "switch": "", "of_s": "", "flow": "", "duration": "100ms", "send": "",
    "at_b": '<receive flow="1"/>', "task": "", "faults": "",
}  # fmt: skip


def planted(place: Path, **parts: str) -> Path:
    if "fault" in parts:
        parts["faults"] = f"<faults>{parts.pop('fault')}</faults>"
    path = place / "planted.xml"
    path.write_text(PLAIN.format(**{**FILLED, **parts}))
    return path


def asked(*arguments: str | Path, code: int) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


def relayed(kind: str) -> dict[str, str]:
    return {"at_b": f'<relay flow="1" on="b"><fault kind="{kind}" sequence="3"/></relay>'}


REFUSED: dict[str, dict[str, str]] = {
    "once": {"fault": '<duplicate link="a s" share="10%"/>'},
    "once by a relay": relayed("duplicate"),
    "in-time": {"fault": '<delay link="a s" by="1ms" share="10%"/>'},
    "in-time by a relay": relayed("reorder"),
    "length": {"fault": '<wrong-length link="a s" length="1600B" share="10%"/>'},
    "contract": {"fault": '<babble flow="2" from="10ms" until="20ms" load="50%"/>'},
    "clocks-kept": {"fault": '<step-clock on="a" at="20ms" by="10ms"/>'},
    "keeps-up": {"of_a": '<host transmit="1100us"/>'},
}
TOLD: dict[str, dict[str, str]] = {
    "arrives": {"fault": '<loss link="a s" share="10%"/>'},
    "arrives whole": {"fault": '<bit-errors link="a s" rate="1e-5"/>'},
    "arrives as sent": {"fault": '<corrupt link="a s" share="10%"/>'},
    "arrives over a cut": {"fault": '<cut link="a s" from="10ms" until="20ms"/>'},
    "arrives through a restart": {"fault": '<restart switch="s" from="10ms" until="20ms"/>'},
    "arrives at a relay": relayed("loss"),
    "clocks-looked-at": {"fault": '<step-clock on="b" at="20ms" by="1us"/>'},
}
COUNTED: dict[str, dict[str, str]] = {
    "drift": {"of_a": '<clock drift="500ppm"/>'},
    "changes of temperature that add up": {
        "of_a": '<clock><temperature at="10ms" drift="100ppm"/><temperature at="20ms" drift="100ppm"/></clock>'
    },
    "wander": {"of_a": '<clock wander="50ppm"/>', "duration": "3s"},
    "lines": {"switch": ' line-drift="-100ppm"'},
    "events that hold up senders": {
        "of_a": '<event period="7ms" duration="3ms" latency="300us" threads="send"/>'
    },
    "events that hold up receivers": {
        "of_b": '<event period="7ms" duration="3ms" latency="300us" threads="receive"/>'
    },
    "ramps": {"of_b": '<event period="7ms" duration="3ms" latency="10us" ramp-to="400us"/>'},
    "reading clocks": {"of_a": '<timestamps read-cost="30us"/>', "of_b": '<timestamps read-cost="50us"/>'},
    "bursts": {"send": ' burst="5"'},
}


def test_every_row_of_the_table_is_planted_here() -> None:
    planted_here = {name.split(" ")[0] for name in (*REFUSED, *TOLD)} | {"clocks-agree"}
    assert planted_here == {row.name for row in ASSUMPTIONS}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_contradicts_a_bound_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    path = planted(tmp_path, **REFUSED[name])
    done = asked("bounds", path, code=2)
    row = next(row for row in ASSUMPTIONS if row.name == name.split(" ", maxsplit=1)[0])
    assert row.text in done.stderr
    line = next(
        number
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if any(tag in text for tag in ("<faults>", "<fault ", "<host "))
    )
    assert f"planted.xml:{line}: <" in done.stderr


@pytest.mark.parametrize("name", sorted(TOLD))
def test_what_is_lost_is_told_and_the_rest_stays_below_its_bound(name: str, tmp_path: Path) -> None:
    path = planted(tmp_path, **TOLD[name])
    notes = json.loads(asked("bounds", path, "--json", code=0).stdout)["notes"]
    assert any(note.startswith("line ") and "of frames that arrive without it" in note for note in notes)
    stays_below(path, tmp_path)


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_what_is_counted_stays_below_its_bound(name: str, tmp_path: Path) -> None:
    path = planted(tmp_path, **COUNTED[name])
    asked("bounds", path, code=0)
    stays_below(path, tmp_path)


def stays_below(path: Path, place: Path) -> None:
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(path, place / "run")
    answer = json.loads(
        CliRunner().invoke(app, ["bounds", str(path), "--against", str(place / "run"), "--json"]).stdout
    )
    (laid,) = answer["against"]
    for flow in laid["flows"]:
        assert not flow["alarms"], flow


def test_changes_of_temperature_add_up(tmp_path: Path) -> None:
    loads = []
    for steps in (1, 2):
        written = "".join(f'<temperature at="{10 * k}ms" drift="10000ppm"/>' for k in range(1, steps + 1))
        path = planted(tmp_path, of_a=f"<clock>{written}</clock>")
        servers = json.loads(asked("bounds", path, "--json", code=0).stdout)["servers"]
        loads.append(next(server["load"] for server in servers if server["server"] == "a:1"))
    assert loads[1] / loads[0] == pytest.approx(1.02 / 1.01)


@pytest.mark.parametrize(
    ("parts", "element"),
    [
        ({"switch": ' forwarding="learning"'}, "switch"),
        ({"task": '<inject on="c" to="b" load="10%" distribution="exponential"/>'}, "inject"),
        ({"send": ' distribution="exponential"'}, "send"),
    ],
)
def test_what_no_curve_bounds_is_refused_with_its_line(
    parts: dict[str, str], element: str, tmp_path: Path
) -> None:
    path = planted(tmp_path, **parts)
    checked = CliRunner().invoke(app, ["check", str(path)])
    assert checked.exit_code == 0, checked.stdout + checked.stderr
    done = asked("bounds", path, code=2)
    own = [number for number, text in enumerate(path.read_text().splitlines(), 1) if f"<{element}" in text]
    assert any(f"planted.xml:{number}: " in done.stderr for number in own), done.stderr


def test_a_bound_of_a_schedule_is_refused_where_its_clocks_part() -> None:
    path = FAULTS / "schedule-drift.xml"
    done = asked("bounds", path, code=2)
    assert "clocks keep the schedule" in done.stderr
    assert f"schedule-drift.xml:{line_of(path, '<clock')}" in done.stderr


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_schedule_does_not_hold_where_its_clocks_part() -> None:
    path = FAULTS / "schedule-drift.xml"
    done = asked("schedule", path, "--check", code=1)
    assert f"schedule-drift.xml:{line_of(path, '<clock')}: <clock>" in done.stderr
    assert "holds" not in done.stdout
    assert "clocks that differ" in done.stdout


def test_a_precision_that_the_test_contradicts_is_refused() -> None:
    done = asked("schedule", FAULTS / "schedule-drift.xml", "--check", "--precision", "1us", code=2)
    assert "--precision" in done.stderr


def kept(place: Path, clock: str, faults: str = "") -> Path:
    text = (FAULTS / "schedule-drift.xml").read_text().replace('<clock drift="50ppm"/>', clock)
    path = place / "kept.xml"
    path.write_text(text.replace("  <limits>", f"  {faults}\n  <limits>"))
    return path


@pytest.mark.parametrize("clock", ["", '<clock drift="0ppm"/>'])
def test_a_schedule_whose_clocks_agree_holds(clock: str, tmp_path: Path) -> None:
    done = asked("schedule", kept(tmp_path, clock), "--check", code=0)
    assert "holds" in done.stdout
    asked("bounds", kept(tmp_path, clock), code=0)


@pytest.mark.parametrize(
    "clock",
    [
        '<clock offset="50us"/>',
        '<clock wander="20ppm"/>',
        '<clock granularity="50us"/>',
        '<clock><temperature at="10ms" drift="90ppm"/></clock>',
    ],
)
def test_every_way_in_which_clocks_part_is_reckoned_with(clock: str, tmp_path: Path) -> None:
    asked("schedule", kept(tmp_path, clock), "--check", code=1)
    asked("bounds", kept(tmp_path, clock), code=2)


def test_a_set_clock_is_reckoned_with(tmp_path: Path) -> None:
    step = '<faults><step-clock on="arm" at="200ms" by="40us"/></faults>'
    asked("schedule", kept(tmp_path, "", step), "--check", code=1)
    asked("bounds", kept(tmp_path, "", step), code=2)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ('<delay link="camera cabinet" by="50us" share="10%"/>', 2),
        ('<duplicate link="camera cabinet" share="10%"/>', 2),
        ('<babble flow="5" from="110ms" until="120ms" load="50%"/>', 2),
        ('<loss link="camera cabinet" share="10%"/>', 0),
        ('<cut link="camera cabinet" from="110ms" until="120ms"/>', 0),
    ],
)
def test_a_schedule_stands_beside_no_fault_unsaid(fault: str, code: int, tmp_path: Path) -> None:
    path = kept(tmp_path, "", f"<faults>{fault}</faults>")
    done = asked("schedule", path, "--check", code=code)
    assert (
        f"line {line_of(path, '<faults>')}, <" in done.stderr
        or f":{line_of(path, '<faults>')}: <" in done.stderr
    )


EXAMPLES = FAULTS.parents[1] / "examples"
EVENT = '<event period="50ms" duration="1ms" latency="{}" threads="{}"/>'
SCHEDULED = {
    "nothing": ("", "", 0, 0),
    "an event that holds up the sender": (EVENT.format("300us", "send"), EVENT.format("50us", "both"), 1, 1),
    "an event of the other threads": (
        EVENT.format("300us", "receive"),
        EVENT.format("50us", "receive"),
        1,
        0,
    ),
    "reading a clock": ('<timestamps read-cost="150us"/>', '<timestamps read-cost="30us"/>', 1, 1),
    "reading a clock now and then": (
        '<timestamps read-cost="0%:0ns 99%:0ns 100%:150us"/>',
        '<timestamps read-cost="0%:0ns 99%:0ns 100%:30us"/>',
        1,
        1,
    ),
    "waking up late": ('<host send-wake-up="150us"/>', '<host send-wake-up="30us"/>', 1, 1),
    "a clock that ticks": ('<clock granularity="50us"/>', '<clock granularity="50us"/>', 1, 1),
    "a clock that drifts": ('<clock drift="90ppm"/>', '<clock drift="90ppm"/>', 1, 1),
}
OWN = {
    "frames of its own, in the class of the gate": ('<own-frames period="777us" frame="64B"/>', 1),
    "frames of its own, in another class": ('<own-frames period="7ms" frame="1500B" priority="0"/>', 0),
}


def gated(place: Path, in_sender: str, in_switch: str = "") -> Path:
    text = (EXAMPLES / "gates.xml").read_text()
    text = text.replace(
        '<end-system name="controller"/>', f'<end-system name="controller">{in_sender}</end-system>'
    )
    path = place / "gated.xml"
    path.write_text(text.replace('queue-buffer="384KiB">', f'queue-buffer="384KiB">{in_switch}', 1))
    return path


@pytest.mark.parametrize("name", sorted(SCHEDULED))
def test_a_schedule_counts_what_its_hosts_have_planted(name: str, tmp_path: Path) -> None:
    """Windows and gates by the same table; what is said to hold is played."""
    of_windows, of_gates, windows, gates = SCHEDULED[name]
    path = kept(tmp_path, "")
    for node in ("drive1", "controller"):
        path.write_text(
            path.read_text().replace(
                f'<end-system name="{node}"/>', f'<end-system name="{node}">{of_windows}</end-system>'
            )
        )
    for file, code in ((path, windows), (gated(tmp_path, of_gates), gates)):
        asked("schedule", file, "--check", code=code)
        if code == 0:
            asked("run", file, "--out", tmp_path / f"run-{file.stem}", code=0)


@pytest.mark.parametrize("name", sorted(OWN))
def test_gates_count_what_switches_send_by_themselves(name: str, tmp_path: Path) -> None:
    frames, code = OWN[name]
    asked("schedule", gated(tmp_path, "", frames), "--check", code=code)
    if code == 0:
        asked("run", gated(tmp_path, "", frames), "--out", tmp_path / "run", code=0)
    path = kept(tmp_path, "")
    switch = '<switch name="arm" kind="mixed-criticality" delay="4us"'
    path.write_text(path.read_text().replace(f"{switch}/>", f"{switch}>{frames}</switch>"))
    # Others keep out of the way of windows, whoever sends them.
    asked("schedule", path, "--check", code=0)
    asked("run", path, "--out", tmp_path / "run-windows", code=0)


@pytest.mark.parametrize("name", sorted(TOLD))
def test_limits_are_said_to_be_kept_by_what_arrives(name: str, tmp_path: Path) -> None:
    path = planted(tmp_path, **TOLD[name])
    limits = '<limits><limit measure="latency.max" at-most="1s"/></limits></test>'
    path.write_text(path.read_text().replace("</test>", limits))
    line = asked("bounds", path, code=0).stdout.splitlines()[0]
    assert ("by the frames that arrive" in line) == name.startswith("arrives")


BUSY: dict[str, tuple[dict[str, str], str]] = {
    "sending": ({"of_a": '<host transmit="{}"/>'}, 'sending takes {} % of the time of "a"'),
    "receiving": ({"of_b": '<host receive="{}"/>'}, 'receiving takes {} % of the time of "b"'),
    "reading a card": ({"of_b": '<host card-read="{}"/>'}, 'reading its card takes {} % of the time of "b"'),
    "a stack of its own": (
        {"of_a": '<host><stack protocol="{protocol}" transmit="{}"/></host>'},
        'sending takes {} % of the time of "a"',
    ),
}
GATED = (
    '<switch-tsn ports="2"><traffic-class number="0" priorities="0 1 2 3 4 5 6"/><traffic-class number="1" '
    'priorities="7"/><gate-schedule><gate-entry open="1" for="500us"/><gate-entry open="0" for="500us"/>'
    "</gate-schedule></switch-tsn>"
)
CARRIED = {
    "bounds": ("udp", "", ""),
    "windows": ("tt", 'period="1ms"', ""),
    "gates": ("raw", 'vlan="1" priority="7"', GATED),
}


@pytest.mark.parametrize("carried", sorted(CARRIED))
@pytest.mark.parametrize("name", sorted(BUSY))
def test_a_host_that_does_not_keep_up_is_told_by_all(name: str, carried: str, tmp_path: Path) -> None:
    """At 90 % of its time all answer; above it `check` warns, and whoever promises something refuses."""
    protocol, attributes, tsn = CARRIED[carried]
    words = ("bounds",) if carried == "bounds" else ("schedule", "--check")
    for share, is_busy in (("900us", False), ("1200us", True)):
        parts = {place: text.format(share, protocol=protocol) for place, text in BUSY[name][0].items()}
        kind = ' kind="mixed-criticality"' if protocol == "tt" else ""
        path = planted(tmp_path, **parts, of_s=tsn, switch=kind)
        text = path.read_text().replace('<flow id="2" protocol="udp" from="c" to="b"/>', "")
        text = text.replace('<send flow="2" period="1ms" payload="1472B"/><receive flow="2"/>', "")
        path.write_text(text.replace('protocol="udp"', f'protocol="{protocol}" {attributes}'))
        told = BUSY[name][1].format(120)
        checked = CliRunner().invoke(app, ["check", str(path)])
        assert checked.exit_code == 0
        assert (told in checked.stdout + checked.stderr) is is_busy
        done = CliRunner().invoke(app, [words[0], str(path), *words[1:]])
        assert (told in done.stderr and "send less often" in done.stderr) is is_busy
        assert (done.exit_code == 2) is is_busy, done.stdout + done.stderr


def test_what_every_sender_takes_of_a_host_is_added(tmp_path: Path) -> None:
    """Bursts, several flows and answers of relays; a sender that pauses is not guessed at."""
    for parts, told in (
        ({"of_c": "300us", "more": 'burst="4"'}, "sending takes 120 %"),
        ({"of_c": "1200us", "more": 'active="1ms" pause="9ms"'}, ""),
    ):
        host = f'<end-system name="c"><host transmit="{parts["of_c"]}"/></end-system>'
        path = planted(tmp_path)
        text = path.read_text().replace('<end-system name="c"/>', host)
        path.write_text(text.replace('payload="1472B"', f'payload="1472B" {parts["more"]}'))
        done = CliRunner().invoke(app, ["check", str(path)])
        assert done.exit_code == 0, done.stdout + done.stderr
        assert ("of the time of" in done.stdout + done.stderr) is bool(told)
        assert told in done.stdout + done.stderr
    path = planted(tmp_path, of_b='<host transmit="1200us"/>', at_b='<relay flow="1" on="b"/>')
    done = CliRunner().invoke(app, ["check", str(path)])
    assert 'sending takes 120 % of the time of "b"' in done.stdout + done.stderr
