"""Programs that keep clocks: what they say, and when clocks are fit for a run.

No program runs here: hosts say what ptp4l, pmc, chronyc and the kernel would. The real ones are run by the end-to-end
tests, and their configurations are tested where they are written, in `crates/agent/src/clocks`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from wiregauge.config import Ptp, Test
from wiregauge.plan import Ptp as PlannedPtp
from wiregauge.plan import Synchronise
from wiregauge.runner.clocks.chrony import read_tracking
from wiregauge.runner.clocks.host import Answers, ClockError, Line
from wiregauge.runner.clocks.keeper import ClockKeeper
from wiregauge.runner.clocks.linuxptp import read_line, read_pmc
from wiregauge.runner.clocks.relation import begun_with, bound_ns
from wiregauge.runner.clocks.state import ClockState
from wiregauge.runner.clocks.timescale import Timescale, findings


def planned(ptp: Ptp | None = None, *, chrony: bool = False, **gate: Any) -> Synchronise:
    """`synchronise` of a compiled test: the defaults are those of the language."""
    test = Test("clocks").end_system("mac").end_system("sensor").link("mac", "sensor", rate="1Gbit/s")
    test.flow(10, protocol="udp", from_="mac", to="sensor").send(10, period="1ms", payload="64B", count=9)
    test.receive(10).synchronise(ptp=ptp, chrony=chrony, **gate)
    found = test.compile().campaign.synchronise
    assert found is not None
    return found


def test_a_domain_its_transport_and_its_delays_are_in_the_plan() -> None:
    usual = planned(Ptp()).ptp
    assert usual is not None
    assert (usual.domain, usual.transport, usual.delay) == (0, "l2", "e2e")
    chosen = planned(Ptp(domain=20, transport="udp", delay="p2p")).ptp
    assert chosen is not None
    assert (chosen.domain, chosen.transport, chosen.delay) == (20, "udp", "p2p")


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
    read_tracking(text)
    Timescale.of(Answers(pmc=text))


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


def tracking_line(leap: str = "Normal", offset_s: float = 0.000012345) -> str:
    return (
        f"C0248F97,192.36.143.151,2,1700000000.123456789,{offset_s:.9f},-0.000001,0.000020,"
        f"-1.234,0.001,0.050,0.012,0.0005,64.2,{leap}"
    )


def test_tracking_of_chrony_is_read_with_the_sign_of_an_offset() -> None:
    found = read_tracking(tracking_line())
    assert found is not None
    # 12 µs "slow of NTP time": the clock shows less than the true time.
    assert found.offset_ns == pytest.approx(-12_345)
    assert (found.stratum, found.synchronised) == (2, True)
    assert found.root_delay_ns == pytest.approx(12e6)
    lost = read_tracking("00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised")
    assert lost is not None
    assert not lost.synchronised


# -- the scale of time --------------------------------------------------------------------------------------------

NOON = 1_700_049_600 // 86_400 * 86_400 + 43_200.0
"""Noon of some day, s since 1970."""


def pmc(
    *,
    leap61: int = 0,
    leap59: int = 0,
    offset: int = 37,
    valid: int = 0,
    timescale: int = 1,
    grandmaster: str = "02.fffe.01",
    steps: int = 1,
) -> str:
    """What pmc 3.1 prints of a port that follows a grandmaster."""
    return (
        "sending: GET CURRENT_DATA_SET\n"
        "\tb8cef6.fffe.000001-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET \n"
        f"\t\tstepsRemoved     {steps}\n\t\toffsetFromMaster -700.0\n"
        "sending: GET PARENT_DATA_SET\n"
        "\tb8cef6.fffe.000001-0 seq 1 RESPONSE MANAGEMENT PARENT_DATA_SET \n"
        f"\t\tparentPortIdentity                    {grandmaster}-1\n"
        f"\t\tgrandmasterIdentity                   {grandmaster}\n"
        "sending: GET TIME_PROPERTIES_DATA_SET\n"
        "\tb8cef6.fffe.000001-0 seq 2 RESPONSE MANAGEMENT TIME_PROPERTIES_DATA_SET \n"
        f"\t\tcurrentUtcOffset      {offset}\n\t\tleap61                {leap61}\n\t\tleap59                {leap59}\n"
        f"\t\tcurrentUtcOffsetValid {valid}\n\t\tptpTimescale          {timescale}\n\t\ttimeTraceable         0\n"
    )


def found(
    mac: Answers, sensor: Answers, *, begin_s: float = NOON, takes_s: float = 60.0, set_by_tai: bool = False
) -> list[str]:
    told = {"mac": Timescale.of(mac), "sensor": Timescale.of(sensor)}
    return list(findings(told, "mac", now_s=begin_s, end_s=begin_s + takes_s, set_by_tai=set_by_tai))


def test_a_domain_that_vouches_for_nothing_has_nothing_wrong() -> None:
    assert found(Answers(pmc()), Answers(pmc(offset=0))) == []
    assert found(Answers(), Answers()) == []


def test_another_grandmaster_is_named() -> None:
    (why,) = found(Answers(pmc()), Answers(pmc(grandmaster="ec.fffe.99")))
    assert "sensor follows the grandmaster ec.fffe.99 and not mac (02.fffe.01)" in why


@pytest.mark.parametrize(
    ("sensor", "which"),
    [
        (Answers(pmc(leap61=1)), "inserted"),
        (Answers(pmc(leap59=1)), "left out"),
        (Answers(pmc(), leap=1), "inserted"),
        (Answers(leap=-1), "left out"),
    ],
)
def test_a_leap_second_inside_the_run_is_found_and_one_after_it_is_not(sensor: Answers, which: str) -> None:
    assert found(Answers(pmc()), sensor) == []
    (why,) = found(Answers(pmc()), sensor, begin_s=NOON + 43_200 - 30)
    assert f"sensor was told of a leap second, {which} at " in why
    assert "00:00 UTC" in why
    (why,) = found(Answers(pmc()), sensor, takes_s=43_200)
    assert found(Answers(pmc()), sensor, begin_s=NOON + 43_205) == []


def test_chrony_s_leap_second_counts_too() -> None:
    told = {"mac": Timescale.of(Answers(), "Insert second")}
    late = NOON + 43_190
    assert len(list(findings(told, "mac", now_s=late, end_s=late + 60, set_by_tai=False))) == 1


def test_offsets_from_utc_that_differ_are_found() -> None:
    good = Answers(pmc(valid=1), tai_s=37)
    assert found(good, good, set_by_tai=True) == []
    (why, *_) = found(good, Answers(pmc(valid=1, offset=36), tai_s=36))
    assert "PTP announces TAI less UTC differently: 37 s at mac, 36 s at sensor" in why
    why = "; ".join(found(good, Answers(pmc(valid=1), tai_s=36)))
    assert "kernels were told TAI less UTC differently: 37 s at mac, 36 s at sensor" in why
    assert "the kernel of sensor was told that TAI is 36 s ahead of UTC, and PTP announces 37 s" in why
    # PTP that is no TAI says nothing of the kernel's offset.
    assert found(Answers(pmc(valid=1, timescale=0), tai_s=37), Answers(pmc(valid=1, timescale=0))) == []


def test_a_kernel_that_was_told_nothing_is_wrong_where_clocks_are_set_from_tai() -> None:
    good, untold = Answers(pmc(valid=1), tai_s=37), Answers(pmc(valid=1))
    assert found(good, untold) == []
    (why,) = found(good, untold, set_by_tai=True)
    assert "its clock would be set to TAI" in why


# -- how far clocks are from one another --------------------------------------------------------------------------


def seen(offsets: Sequence[float], delay: float = 100.0) -> list[ClockState]:
    """A look each second."""
    return [
        ClockState(at * 10**9, "sensor", "ptp4l", "s0", offset, delay) for at, offset in enumerate(offsets)
    ]


def test_a_start_goes_by_the_middle_of_the_last_offsets() -> None:
    assert begun_with(seen([1, 2, 3, 4])) is None
    relation = begun_with(seen([9000, 10, 20, 30, 40, 60]))
    assert relation is not None
    assert (relation.offset_ns, relation.uncertainty_ns) == (30, 30 + 100)


def test_a_clock_is_bounded_by_what_was_seen_of_it_and_its_path() -> None:
    states = seen([0, 0, 0, 0, 0, 0, 500, 200])
    assert bound_ns(states, 0, 5 * 10**9, 7 * 10**9) == 500 + 100
    # Two seconds that nobody saw, at the fastest it was seen to go.
    assert bound_ns(states, 0, 5 * 10**9, 9 * 10**9) == 500 + 2 * 500 + 100
    assert bound_ns(states, 200, 5 * 10**9, 7 * 10**9) == 300 + 100
    assert bound_ns(states, 0, 7 * 10**9, 8 * 10**9) is None, "nothing was seen in the run"
    assert bound_ns(states[6:], 0, 10**9, 8 * 10**9) is None, "nothing was seen before it"


@given(st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=20), st.floats(0, 1e4), st.floats(-1, 1))
def test_no_true_offset_is_outside_the_bound(true: list[float], delay: float, uneven: float) -> None:
    """Whatever the two directions share of the delay, and however the clock moves from look to look."""
    states = seen([offset + uneven * delay for offset in true], delay)
    begun = begun_with(states[:6])
    assert begun is not None
    assert abs(begun.offset_ns - sorted(true[1:6])[2]) <= begun.uncertainty_ns + 1e-6
    bound = bound_ns(states, begun.offset_ns, 5 * 10**9, (len(true) - 1) * 10**9)
    assert bound is not None
    assert all(abs(offset - begun.offset_ns) <= bound + 1e-6 for offset in true[5:])


# -- the gate -----------------------------------------------------------------------------------------------------

MASTER = "ptp4l[1.0]: port 1: LISTENING to MASTER on X"
HEARS = "ptp4l[1.0]: port 1: LISTENING to UNCALIBRATED on RS_SLAVE"


class Planted:
    """A host that says what it was given: lines once, the last of them again and again."""

    def __init__(
        self, *lines: str, gone: str = "", answers: Answers | None = None, refuses: str = ""
    ) -> None:
        self._lines, self._gone, self.answers, self._refuses = lines, gone, answers or Answers(pmc()), refuses
        self.over = threading.Event()
        self.started: list[tuple[PlannedPtp, bool]] = []

    def start(self, ptp: PlannedPtp, *, server: bool) -> None:
        if self._refuses:
            raise ClockError(self._refuses)
        self.started.append((ptp, server))

    def lines(self) -> Iterator[Line]:
        for text in self._lines:
            yield Line(text, time.time_ns() - 10**9)
        if self._gone:
            yield Line(self._gone, 0, gone=True)
        while not self.over.wait(0.02):
            yield Line(self._lines[-1], time.time_ns() - 2 * 10**9)

    def ask(self, *, ptp: bool, chrony: bool) -> Answers:
        del ptp
        if chrony and self._refuses:
            raise ClockError(self._refuses)
        return self.answers

    def stop(self) -> None:
        self.over.set()


def steady(offset: int, servo: str = "s0") -> str:
    return f"ptp4l[2.0]: master offset {offset} {servo} freq +1 path delay 9"


@pytest.fixture
def keeper() -> Iterator[Any]:
    made: list[ClockKeeper] = []

    def make(plan: Synchronise, sensor: Planted, mac: Planted | None = None) -> ClockKeeper:
        made.append(ClockKeeper(plan, "mac", {"sensor": sensor, "mac": mac or Planted(MASTER)}))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def free(**gate: Any) -> Synchronise:
    return planned(Ptp(timestamps="software", steer="off"), **gate)


def test_a_run_begins_when_every_clock_has_been_fit_for_a_while(keeper: Any) -> None:
    mac, sensor = Planted(MASTER), Planted(HEARS, steady(-700), answers=Answers(pmc()))
    mac.answers = Answers(pmc(steps=0))
    kept = keeper(free(max_offset="1us", on_failure="refuse"), sensor, mac)
    kept.start()
    assert kept.wait() is None
    states = kept.states(0, time.time_ns() + 10**18)
    assert {state.node for state in states} == {"mac", "sensor"}
    assert sum(state.offset_ns == -700 for state in states) >= 5
    assert [one.started[0][1] for one in (mac, sensor)] == [True, False]
    relations = kept.relations()
    assert (relations["mac"].uncertainty_ns, relations["sensor"].offset_ns) == (0, -700)
    kept.stop()
    assert mac.over.is_set()
    assert sensor.over.is_set()


def test_a_clock_that_is_off_is_refused_or_noted(keeper: Any) -> None:
    for otherwise in ("grade", "refuse"):
        plan = free(max_offset="1us", on_failure=otherwise, wait="600ms")
        kept = keeper(plan, Planted(HEARS, steady(5000)))
        kept.start()
        if otherwise == "grade":
            assert "sensor: ptp4l is off by 5 µs" in kept.wait()
        else:
            with pytest.raises(ClockError, match=r"off by 5 µs after 0\.6 s; raise wait or within"):
                kept.wait()


def test_a_clock_that_does_not_lock_is_not_fit_where_clocks_are_set(keeper: Any) -> None:
    kept = keeper(planned(Ptp(timestamps="software"), wait="600ms"), Planted(HEARS, steady(1)))
    kept.start()
    assert "has not locked" in kept.wait()


def test_an_end_system_that_hears_no_server_is_named_with_its_domain(keeper: Any) -> None:
    plan = planned(Ptp(timestamps="software", steer="off", domain=7), wait="200ms")
    kept = keeper(plan, Planted("ptp4l[1.0]: port 1: INITIALIZING to LISTENING on INIT_COMPLETE"))
    kept.start()
    assert "sensor hears no PTP server in domain 7 (its port is LISTENING)" in kept.wait()


def test_a_server_that_others_outdo_is_named(keeper: Any) -> None:
    kept = keeper(free(wait="200ms"), Planted(HEARS, steady(1)), Planted(HEARS))
    kept.start()
    told = "mac does not serve PTP yet (its port is UNCALIBRATED: another clock of the domain is preferred)"
    assert told in kept.wait()


def test_a_ptp4l_that_pmc_gets_no_answer_from_is_not_fit(keeper: Any) -> None:
    kept = keeper(free(wait="600ms"), Planted(HEARS, steady(1), answers=Answers()))
    kept.start()
    assert "sensor does not say whom it follows" in kept.wait()


def test_a_leap_second_inside_the_run_keeps_the_gate_shut(
    keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for otherwise in ("grade", "refuse"):
        plan = free(max_offset="1us", on_failure=otherwise, wait="1500ms")
        answers = Answers(pmc(leap61=1))
        kept = keeper(plan, Planted(HEARS, steady(1), answers=answers), Planted(MASTER, answers=answers))
        kept.start()
        assert kept.wait(0.0) is None or time.time() % 86_400 > 86_390
        if otherwise == "grade":
            assert "was told of a leap second, inserted at" in kept.wait(86_400.0)
        else:
            with pytest.raises(ClockError, match="and the run goes on beyond; begin it after that"):
                kept.wait(86_400.0)


def test_a_program_that_ends_is_told_in_its_own_words(keeper: Any) -> None:
    kept = keeper(free(), Planted(HEARS, gone="ptp4l ended with code 7: failed to create a clock"))
    kept.start()
    assert "sensor: ptp4l ended with code 7: failed to create a clock" in kept.wait()
    assert "failed to create a clock" in kept.ended()


def test_a_host_that_refuses_is_told(keeper: Any) -> None:
    kept = keeper(free(), Planted(MASTER, refuses="this host starts no ptp4l for tests"))
    with pytest.raises(ClockError, match="starts no ptp4l"):
        kept.start()


def test_clocks_of_interfaces_that_run_free_say_nothing_of_system_clocks(keeper: Any) -> None:
    kept = keeper(planned(Ptp(steer="off")), Planted(HEARS, steady(-700)))
    kept.start()
    assert kept.wait() is None
    assert kept.relations() == {}


@pytest.mark.parametrize(("delay", "steps"), [("e2e", 2), ("p2p", 1)])
def test_a_delay_that_is_not_that_of_the_whole_way_bounds_nothing(
    keeper: Any, delay: str, steps: int
) -> None:
    plan = planned(Ptp(timestamps="software", steer="off", delay=delay))
    kept = keeper(plan, Planted(HEARS, steady(-700), answers=Answers(pmc(steps=steps))))
    kept.start()
    assert kept.wait() is None
    assert kept.relations() == {}


def test_chrony_is_asked_while_the_test_runs(keeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wiregauge.runner.clocks.keeper._ASK_S", 0.01)
    answers = Answers(chrony=tracking_line(offset_s=0.000002))
    plan = planned(chrony=True, max_offset="1us", wait="3s")
    kept = keeper(plan, Planted(MASTER, answers=answers), Planted(MASTER, answers=answers))
    kept.start()
    assert "chrony is off by 2 µs" in (kept.wait() or "")
    assert kept.states(0, time.time_ns())[0].frequency_ppb == pytest.approx(-1234)


def test_a_chrony_that_says_nothing_is_not_fit(keeper: Any) -> None:
    silent = Planted(MASTER, answers=Answers(chrony=""))
    kept = keeper(planned(chrony=True, wait="100ms"), silent, replaced(silent))
    kept.start()
    assert "chrony does not answer or has no source of time" in (kept.wait() or "")


def test_a_host_that_does_not_let_chrony_be_asked_is_told_at_once(keeper: Any) -> None:
    kept = keeper(planned(chrony=True), Planted(MASTER, refuses="this host starts no chronyc for tests"))
    with pytest.raises(ClockError, match="starts no chronyc"):
        kept.start()


def replaced(one: Planted) -> Planted:
    return Planted(MASTER, answers=replace(one.answers))
