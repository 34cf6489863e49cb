"""`wiregauge calibrate` as a user runs it: what is measured is shown, kept and cited; what is wrong is one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest

from support import COMMAND, Runner, assert_measured, interfaces_and_spaces, scenario, until
from wiregauge.calibrate import schema_path
from wiregauge.calibrate.host_shown import schema_path as host_schema_path

pytestmark = pytest.mark.alone  # a busy host is no host to calibrate

SCHEMA = json.loads(schema_path().read_text(encoding="utf-8"))
TASKS = '<tasks><send flow="10" period="1ms" payload="64B" count="300"/><receive flow="10"/></tasks>'


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGAUGE_CALIBRATIONS", str(tmp_path / "store"))


def test_clocks_are_measured_shown_and_kept(wiregauge: Runner, tmp_path: Path) -> None:
    done = wiregauge("calibrate", "clocks", "--reads", 2000, "--seconds", 0.3, "--json", "--out", "page")
    assert done.code == 0, done.err
    found = done.json()
    jsonschema_rs.validate(SCHEMA, found)
    names = {entry["clock"] for entry in found["results"]["clocks"]}
    assert {"CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW"} <= names
    for entry in found["results"]["clocks"]:
        assert entry["cost"]["n"] == 2000
        assert entry["step"]["backwards"] == 0
    assert (tmp_path / "page" / "clocks.html").exists()
    assert (tmp_path / "page" / "clock-cost.svg").exists()
    listed = wiregauge("calibrate", "list", "--json").json()
    assert [(one["id"], one["usable"]) for one in listed["calibrations"]] == [(found["id"], True)]
    again = wiregauge("calibrate", "show", found["id"][:12])
    assert "Cost of a reading" in again.out


def test_a_loop_is_cited_by_a_run_and_subtracted(wiregauge: Runner, tmp_path: Path) -> None:
    before = interfaces_and_spaces()
    done = wiregauge("calibrate", "loop", "--loads", 0, "--count", 200, "--repeats", 2, "--json", timeout=240)
    assert done.code == 0, done.err
    loop = done.json()
    jsonschema_rs.validate(SCHEMA, loop)
    assert {point["measure"] for point in loop["results"]["points"]} == {"latency", "driver_latency"}
    assert all(len(point["repeats"]) == 2 for point in loop["results"]["points"])
    assert interfaces_and_spaces() == before
    (tmp_path / "t.xml").write_text(scenario(TASKS))
    ran = wiregauge("run", "t.xml", "--out", "r", "--json", timeout=240)
    assert_measured(ran, tmp_path / "r")
    shown = ran.json()
    (cited,) = shown["calibrations"]
    assert cited["id"] == loop["id"]
    flow = shown["runs"][0]["flows"][0]
    if loop["grade"] == "INVALID":  # a host too noisy to calibrate on: said, and nothing subtracted
        assert "INVALID" in cited["reason"]
        assert flow["corrected"] == []
        return
    assert cited["used"], cited["reason"]
    known = {p["measure"]: p for p in loop["results"]["points"] if p["grade"] != "INVALID"}
    assert {one["measure"] for one in flow["corrected"]} == set(known)
    for one in flow["corrected"]:
        raw = flow[f"{one['measure']}_ns"]
        assert one["mean"] == pytest.approx(raw["mean"] - known[one["measure"]]["systematic_ns"])
        assert one["uncertainty"] >= raw["uncertainty"]


def test_pacing_and_generator_leave_figures(wiregauge: Runner, tmp_path: Path) -> None:
    pacing = wiregauge("calibrate", "pacing", "--count", 300, "--no-save", "--json", timeout=240)
    assert pacing.code == 0, pacing.err
    jsonschema_rs.validate(SCHEMA, pacing.json())
    assert pacing.json()["results"]["timer_loop"]["n"] == 300
    generator = wiregauge("calibrate", "generator", "--count", 500, "--no-save", "--json", timeout=240)
    assert generator.code == 0, generator.err
    jsonschema_rs.validate(SCHEMA, generator.json())
    assert [case["case"] for case in generator.json()["results"]["cases"]] == ["line rate", "gap"]
    assert not (tmp_path / "store").exists(), "--no-save kept something"


def test_cables_from_points_and_from_runs(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("length_m,time_ns\n2,320\n8.5,352\n20,403.2\n")
    done = wiregauge("calibrate", "cable", "p.csv", "--no-save", "--json")
    assert done.code == 0, done.err
    assert round(done.json()["results"]["constant_overhead"]["value_ns"], 1) == 311.6
    for length, delay in ((2, "10ns"), (20, "100ns")):
        xml = scenario(TASKS).replace('rate="1Gbit/s"', f'rate="1Gbit/s" delay="{delay}"')
        (tmp_path / "t.xml").write_text(xml.replace("<network>", '<network host="ideal">'))
        assert wiregauge("run", "t.xml", "--bench", "sim", "--out", f"r{length}").code == 0
    done = wiregauge("calibrate", "cable", "2m=r2", "20m=r20", "--json")
    assert done.code == 0, done.err
    found = done.json()
    jsonschema_rs.validate(SCHEMA, found)
    assert found["results"]["per_metre"]["value_ns"] == pytest.approx(10.0), "two links of 5 ns a metre each"
    assert not found["results"]["plausible"]["holds"]
    assert found["identity"]["driver"] == "simulated"


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def written_by(process: int) -> int:
    """Bytes a process has written so far, and 0 once it is gone."""
    try:
        counters = Path(f"/proc/{process}/io").read_text()
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in counters.splitlines())["wchar"])


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(COMMAND), "calibrate", "clocks", "--reads", "1000", "--seconds", "600"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert process.stderr is not None
    assert "reading clocks" in process.stderr.readline()
    seen: list[int] = [0]

    def agent_has_spoken() -> bool:
        """Thrice, so that what it said first has been heard."""
        now = max(map(written_by, children(process.pid)), default=0)
        if now > seen[-1]:
            seen.append(now)
        return len(seen) > 3

    until(agent_has_spoken, "figures of the agent")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "Traceback" not in err
    assert "stopped early" in out
    (kept,) = (tmp_path / "store").glob("*.json")
    content = json.loads(kept.read_text())
    jsonschema_rs.validate(SCHEMA, content)
    assert content["state"] == "interrupted"


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two joined interfaces of this host; the second is down."""
    names = (f"wg{os.getpid() % 100000}a", f"wg{os.getpid() % 100000}b")
    made = subprocess.run(
        ["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("this host grants no virtual interfaces to this user")
    subprocess.run(["ip", "link", "set", names[0], "up"], check=True)
    yield names
    subprocess.run(["ip", "link", "del", names[0]], capture_output=True, check=False)


def is_up(name: str) -> bool:
    return bool(int((Path("/sys/class/net") / name / "flags").read_text(), 16) & 1)


def test_two_interfaces_are_lent_and_given_back(wiregauge: Runner, pair: tuple[str, str]) -> None:
    before = interfaces_and_spaces(*pair)
    speed = (Path("/sys/class/net") / pair[0] / "speed").read_text().strip()
    options = ["--interfaces", ",".join(pair), "--loads", 0, "--count", 100, "--repeats", 1, "--json"]
    done = wiregauge("calibrate", "loop", *options, "--rate", f"{speed}Mbit/s", timeout=240)
    assert done.code == 0, done.err
    found = done.json()
    assert found["identity"]["driver"] == f"veth {pair[0]}, veth {pair[1]}"
    assert found["results"]["points"][0]["n"] == 100
    assert interfaces_and_spaces(*pair) == before
    assert is_up(pair[0])
    assert not is_up(pair[1])
    wrong = wiregauge("calibrate", "loop", *options, "--rate", "100Mbit/s")
    assert wrong.code == 2
    assert "give --rate" in wrong.err
    subprocess.run(["ip", "addr", "add", "198.18.0.9/32", "dev", pair[0]], check=True)
    taken = wiregauge("calibrate", "loop", *options)
    assert taken.code == 3
    assert "has the address 198.18.0.9" in taken.err


def test_a_store_that_cannot_be_written_costs_no_measurement(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "p.csv").write_text("length_m,time_ns\n2,320\n8.5,352\n20,403.2\n")
    done = wiregauge("calibrate", "cable", "p.csv", "--store", "file", "--out", "file/page")
    assert done.code == 4
    assert "311.6" in done.out
    assert "is not kept" in done.err
    assert "pictures are missing" in done.err


def test_hosts_are_identified_and_simulated(wiregauge: Runner, tmp_path: Path) -> None:
    before = interfaces_and_spaces()
    done = wiregauge("calibrate", "host", "--out", "pc", "--count", 300, "--json", timeout=240)
    assert done.code == 0, done.err
    found = done.json()
    jsonschema_rs.validate(json.loads(host_schema_path().read_text(encoding="utf-8")), found)
    assert [host["name"] for host in found["hosts"]] == ["one", "two"]
    for host in found["hosts"]:
        assert host["transmit"]["fixed"]["value"] > 0
        assert host["receive"]["fixed"]["value"] > 0
        assert host["moderation"] is None, "nobody timestamps on the wire of a namespace"
        assert any("no timestamps on the wire" in sentence for sentence in host["untold"])
    assert found["hosts"][0]["relay_wake_up"] is not None
    figures = found["predictions"][0]["figures"]
    assert {one["flow"] for one in figures} == {"1", "2", "3"}
    assert all(one["predicted"] > 0 for one in figures if one["statistic"] == "p50")
    assert interfaces_and_spaces() == before
    (tmp_path / "t.xml").write_text(
        scenario(TASKS).replace(
            "<network>", '<network host="pc"><host-model name="pc" file="pc/one.host.xml"/>', 1
        )
    )
    # The model of a host that was measured while the machine was busy is itself late.
    assert_measured(wiregauge("run", "t.xml", "--bench", "sim", "--out", "r"), tmp_path / "r")
    again = wiregauge("calibrate", "host", "--out", "pc")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "already holds something" in again.err
