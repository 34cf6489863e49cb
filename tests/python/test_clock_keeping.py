"""Programs that keep clocks: what they are given, what they say, and when clocks are fit for a run.

No daemon runs here: a script in its place prints what ptp4l prints. The real one is run by the end-to-end tests.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.clocks import ClockError, ClockKeeper
from wiregauge.clocks.chrony import read_tracking
from wiregauge.clocks.keeper import EndSystem
from wiregauge.clocks.linuxptp import (
    phc2sys_command,
    ptp4l_configuration,
    read_line,
    read_pmc,
)
from wiregauge.config import Ptp, Test
from wiregauge.plan import Ptp as PlannedPtp
from wiregauge.plan import Synchronise

SECOND = 10**12


def planned(ptp: Ptp | None = None, *, chrony: bool = False, **gate: Any) -> Synchronise:
    """`synchronise` of a compiled test: the defaults are those of the language."""
    test = Test("clocks").end_system("mac").end_system("sensor").link("mac", "sensor", rate="1Gbit/s")
    test.flow(10, protocol="udp", from_="mac", to="sensor").send(10, period="1ms", payload="64B", count=9)
    test.receive(10).synchronise(ptp=ptp, chrony=chrony, **gate)
    found = test.compile().campaign.synchronise
    assert found is not None
    return found


def protocol(ptp: Ptp) -> PlannedPtp:
    """As the keeper of clocks gets it."""
    found = planned(ptp).ptp
    assert found is not None
    return found


def options(text: str) -> dict[str, str]:
    section, *lines = text.splitlines()
    assert section == "[global]"
    return dict(line.split(" ", 1) for line in lines if " " in line)


def test_the_constants_are_those_of_the_paper_unless_the_test_says_otherwise() -> None:
    command = phc2sys_command(protocol(Ptp()), server=False, interface="eth7")
    assert command[command.index("-P") + 1 : command.index("-P") + 4] == ["0.35", "-I", "0.15"]
    other = phc2sys_command(protocol(Ptp(kp="0.7", ki="0.3")), server=False, interface="eth7")
    assert other[other.index("-P") + 1 : other.index("-P") + 4] == ["0.7", "-I", "0.3"]


def test_time_flows_from_the_system_of_the_server_to_the_systems_of_the_others() -> None:
    ptp = protocol(Ptp())
    server, client = (phc2sys_command(ptp, server=s, interface="eth7") for s in (True, False))
    assert server[server.index("-s") + 1 : server.index("-s") + 4] == ["CLOCK_REALTIME", "-c", "eth7"]
    assert client[client.index("-s") + 1 : client.index("-s") + 4] == ["eth7", "-c", "CLOCK_REALTIME"]
    assert all("-O" in command for command in (server, client))


def test_configurations_say_who_serves_and_whether_clocks_are_set() -> None:
    ptp = protocol(Ptp(timestamps="software", steer="off", interval="125ms"))
    server = options(ptp4l_configuration(ptp, server=True, interface="eth0", socket="/s"))
    client = options(ptp4l_configuration(ptp, server=False, interface="eth0", socket="/c"))
    assert int(server["priority1"]) < 128 < int(client["priority1"])
    assert (server["slaveOnly"], client["slaveOnly"]) == ("0", "1")
    assert (client["free_running"], client["time_stamping"], client["uds_address"]) == ("1", "software", "/c")
    assert (client["logSyncInterval"], client["logMinDelayReqInterval"]) == ("-3", "-3")
    steered = options(ptp4l_configuration(protocol(Ptp()), server=False, interface="e", socket="/c"))
    assert (steered["free_running"], steered["logSyncInterval"]) == ("0", "0")
    # Where ptp4l sets the system's clock itself, the constants are its own.
    assert client["pi_proportional_const"] == "0.35"
    assert "pi_proportional_const" not in steered


@pytest.mark.parametrize(
    ("line", "program", "state", "offset", "delay"),
    [
        ("ptp4l[5374.018]: master offset         -7 s2 freq   +1234 path delay       567", "ptp4l", "s2", -7, 567),
        ("ptp4l[38691.851]: master offset       -152 s0 freq     +64 path delay      1894", "ptp4l", "s0", -152, 1894),
        ("ptp4l[1.5]: rms  737 max 1100 freq  -1234 +/-  56 delay   999 +/-   1", "ptp4l", "s2", 1100, 999),
        ("phc2sys[9.250]: CLOCK_REALTIME phc offset       -12 s2 freq   +345 delay    678", "phc2sys", "s2", -12, 678),
        ("phc2sys[9.250]: [0:eth7] eth7 sys offset        12 s1 freq     -3", "phc2sys", "s1", 12, None),
        ("ptp4l[7.000]: port 1: LISTENING to UNCALIBRATED on RS_SLAVE", "ptp4l", "UNCALIBRATED", None, None),
        ("ptp4l[7.000]: port 1 (eth0): UNCALIBRATED to SLAVE on X", "ptp4l", "SLAVE", None, None),
    ],
)  # fmt: skip
def test_lines_of_both_versions_are_read(
    line: str, program: str, state: str, offset: float | None, delay: float | None
) -> None:
    said = read_line(line + "\n")
    assert said is not None
    assert (said.program, said.state, said.offset_ns, said.delay_ns) == (program, state, offset, delay)


@pytest.mark.parametrize(
    "line", ["", "ptp4l", "ptp4l[1.0]: port 0: INITIALIZING to LISTENING on X", "x[1.0]: rms"]
)
def test_lines_that_say_nothing_of_a_clock_are_passed_over(line: str) -> None:
    assert read_line(line) is None


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    read_line(text)
    read_pmc(text)
    read_tracking(text)


def test_answers_of_pmc_are_read_by_data_set() -> None:
    text = (
        "sending: GET CURRENT_DATA_SET\n"
        "\t366972.fffe.b9d70d-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET \n"
        "\t\tstepsRemoved     1\n\t\toffsetFromMaster 71.0\n\t\tmeanPathDelay    1792.0\n"
        "sending: GET PORT_DATA_SET\n"
        "\t366972.fffe.b9d70d-1 seq 1 RESPONSE MANAGEMENT PORT_DATA_SET \n\t\tportState               SLAVE\n"
    )
    assert read_pmc(text) == {
        "CURRENT_DATA_SET": {"stepsRemoved": "1", "offsetFromMaster": "71.0", "meanPathDelay": "1792.0"},
        "PORT_DATA_SET": {"portState": "SLAVE"},
    }


def test_tracking_of_chrony_is_read_with_the_sign_of_an_offset() -> None:
    line = (
        "C0248F97,192.36.143.151,2,1700000000.123456789,0.000012345,-0.000001,0.000020,"
        "-1.234,0.001,0.050,0.012,0.0005,64.2,Normal"
    )
    found = read_tracking(line)
    assert found is not None
    # 12 µs "slow of NTP time": the clock shows less than the true time.
    assert found.offset_ns == pytest.approx(-12_345)
    assert (found.stratum, found.synchronised) == (2, True)
    assert found.root_delay_ns == pytest.approx(12e6)
    lost = read_tracking("00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised")
    assert lost is not None
    assert not lost.synchronised


# -- the gate ---------------------------------------------------------------------------------------------------

SCRIPT = """#!/bin/sh
case "$*" in
  *mac.conf) echo 'ptp4l[1.0]: port 1: LISTENING to MASTER on X'; exec sleep 60 ;;
  *) {client} ;;
esac
"""
STEADY = (
    "echo 'ptp4l[1.0]: port 1: LISTENING to UNCALIBRATED on RS_SLAVE'; "
    "while :; do echo 'ptp4l[2.0]: master offset {offset} s0 freq +1 path delay 9'; sleep 0.02; done"
)


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made: list[ClockKeeper] = []

    def make(client: str, plan: Synchronise) -> ClockKeeper:
        program = tmp_path / "ptp4l"
        program.write_text(SCRIPT.replace("{client}", client))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        places = [EndSystem(name, "eth0", ()) for name in ("mac", "sensor")]
        made.append(ClockKeeper(plan, "mac", places))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def free(**gate: Any) -> Synchronise:
    return planned(Ptp(timestamps="software", steer="off"), **gate)


def test_a_run_begins_when_every_clock_has_been_fit_for_a_while(keeper: Any) -> None:
    kept = keeper(STEADY.format(offset=-700), free(max_offset="1us", on_failure="refuse"))
    kept.start()
    assert kept.wait() is None
    states = kept.states(0, time.time_ns() + 10**18)
    assert {state.node for state in states} == {"mac", "sensor"}
    assert sum(state.offset_ns == -700 for state in states) >= 5


def test_a_clock_that_is_off_is_refused_or_noted(keeper: Any) -> None:
    for otherwise in ("grade", "refuse"):
        kept = keeper(STEADY.format(offset=5000), free(max_offset="1us", on_failure=otherwise, wait="600ms"))
        kept.start()
        if otherwise == "grade":
            assert "sensor: ptp4l is off by 5 µs" in kept.wait()
        else:
            with pytest.raises(ClockError, match=r"off by 5 µs after 0\.6 s; raise wait or within"):
                kept.wait()


def test_a_clock_that_does_not_lock_is_not_fit_where_clocks_are_set(keeper: Any) -> None:
    plan = planned(Ptp(timestamps="software"), wait="600ms")
    kept = keeper(STEADY.format(offset=1), plan)
    kept.start()
    assert "has not locked" in kept.wait()


def test_a_program_that_ends_is_told_in_its_own_words(keeper: Any) -> None:
    kept = keeper("echo 'failed to create a clock'; exit 7", free())
    kept.start()
    assert "ptp4l ended with code 7: failed to create a clock" in kept.wait()
    assert "failed to create a clock" in kept.ended()


def test_a_program_that_is_missing_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClockError, match="ptp4l is not installed; install the package linuxptp"):
        ClockKeeper(free(), "mac", [EndSystem("mac", "eth0", ())]).start()
    with pytest.raises(ClockError, match="chronyc is not installed; install the package chrony"):
        ClockKeeper(planned(chrony=True), "mac", [EndSystem("mac", "eth0", ())]).start()


def test_nothing_runs_on_after_stop(keeper: Any, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    kept = keeper(f"echo $$ > {note}; " + STEADY.format(offset=0), free())
    kept.start()
    assert kept.wait() is None
    pid = int(note.read_text())
    kept.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_chrony_is_asked_while_the_test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chronyc"
    line = "C0248F97,a,2,1.0,0.000002,0.0,0.0,1.5,0.0,0.05,0.012,0.0005,64.2,Normal"
    program.write_text(f"#!/bin/sh\necho {line}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("wiregauge.clocks.keeper._ASK_S", 0.01)
    kept = ClockKeeper(
        planned(chrony=True, max_offset="1us", wait="3s"), "mac", [EndSystem("mac", "eth0", ())]
    )
    try:
        kept.start()
        assert "mac: chrony is off by 2 µs" in (kept.wait() or "")
        assert kept.states(0, time.time_ns())[0].frequency_ppb == 1500
    finally:
        kept.stop()


def test_a_chrony_that_says_nothing_is_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chronyc"
    program.write_text("#!/bin/sh\necho 506 Cannot talk to daemon\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    kept = ClockKeeper(planned(chrony=True, wait="100ms"), "mac", [EndSystem("mac", "eth0", ())])
    try:
        kept.start()
        assert "mac: chrony does not answer or has no source of time" in (kept.wait() or "")
    finally:
        kept.stop()
