"""What nodes do beside their work, against models written here from the test alone: errors of timestamps, lines with an
oscillator of their own, events of hosts, the delays and own frames of switches, threads that inject."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulation import MS, US, Simulated, frame, occupation, sending, simulate, trial, written

FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
NS = 1_000
GIGABIT = 10**9
SENT = '<send flow="1" period="1ms" payload="100B" count="400"/><receive flow="1"/>'


def pair(
    a: str = "", b: str = "", *, tasks: str = SENT, attributes: str = "", more: str = "", a_is: str = ""
) -> str:
    """Two end systems on one link."""
    network = (
        f'<end-system name="a" {a_is}>{a}</end-system><end-system name="b">{b}</end-system>'
        '<link between="a b" rate="1Gbit/s" delay="100ns"/>'
    )
    flow = '<flow id="1" protocol="raw" from="a" to="b"/>'
    return written(network, flow, tasks, attributes=attributes, more=more)


def switched(
    switch: str, inside: str = "", *, rates: tuple[str, str] = ("1Gbit/s", "1Gbit/s"), tasks: str = SENT
) -> str:
    """Two end systems at a switch."""
    network = (
        f'<end-system name="a"/><end-system name="b"/><switch name="s" {switch}>{inside}</switch>'
        f'<link between="a s" rate="{rates[0]}"/><link between="s b" rate="{rates[1]}"/>'
    )
    return written(network, '<flow id="1" protocol="raw" from="a" to="b"/>', tasks)


def errors(exact: Simulated, noisy: Simulated, point: str) -> np.ndarray:
    """What is between two runs of one test at a point, ps."""
    one, other = exact.times(point, 1), noisy.times(point, 1)
    assert one.keys() == other.keys()
    return np.array([other[key] - one[key] for key in sorted(one)])


def test_errors_of_timestamps_are_those_of_the_test(tmp_path: Path) -> None:
    """Uniform within a bound; by quantiles; at the points and the node that have them and nowhere else."""
    exact = simulate(pair(), tmp_path / "exact")
    noisy = simulate(
        pair(
            '<timestamps wire-error="55ns"/>', '<timestamps application-error="0%:-20ns 75%:0ns 100%:60ns"/>'
        ),
        tmp_path / "noisy",
    )
    wire = errors(exact, noisy, "wire-send")
    assert wire.min() >= -55 * NS
    assert wire.max() <= 55 * NS
    # 400 uniform draws: the extremes come within 3 % of the bound, quartiles within 4.5 standard errors.
    assert wire.max() - wire.min() > 0.97 * 110 * NS
    assert abs(np.mean(wire < -27.5 * NS) - 0.25) < 0.1
    came = errors(exact, noisy, "application-receive")
    assert -20 * NS <= came.min() < 0 < came.max() <= 60 * NS
    assert abs(np.mean(came < 0) - 0.75) < 0.1
    for point in ("application-send", "driver-send", "wire-receive", "driver-receive", "intended-send"):
        assert not errors(exact, noisy, point).any(), point
    again = simulate(pair('<timestamps wire-error="55ns"/>'), tmp_path / "again")
    assert (errors(exact, again, "wire-send") == wire).all(), "another node changed its chance"


def test_a_clock_rounds_what_is_off_already(tmp_path: Path) -> None:
    noisy = simulate(pair('<clock granularity="10ns"/><timestamps wire-error="45ns"/>'), tmp_path)
    shown = np.array(list(noisy.times("wire-send", 1).values()))
    assert not (shown % (10 * NS)).any()
    off = shown - np.arange(400) * MS
    assert set(off // (10 * NS)) == set(range(-5, 5))


def test_the_cost_of_a_reading_is_paid_and_its_least_is_subtracted(tmp_path: Path) -> None:
    cost = '<timestamps read-cost="0%:20ns 100%:90ns"/>'
    less = cost.replace("/>", ' subtract-read-cost="least"/>')
    exact = simulate(pair(), tmp_path / "exact")
    paid = simulate(pair(cost, cost), tmp_path / "paid")
    subtracted = simulate(pair(less, less), tmp_path / "less")
    for point, fewest in (("application-send", 1), ("application-receive", 2)):
        late = errors(exact, paid, point)
        assert late.min() >= 20 * NS * fewest
        assert late.max() <= 90 * NS * fewest
        assert late.std() > 15 * NS
        assert (errors(paid, subtracted, point) == -20 * NS).all()
    # What is read before a message is sent keeps it: its frame leaves as much later.
    assert (errors(exact, paid, "wire-send") == errors(exact, paid, "application-send")).all()


@given(st.integers(-100_000, 100_000))
@FEW
def test_a_line_has_the_rate_of_its_oscillator(tmp_path: Path, ppb: int) -> None:
    place = tmp_path / f"{ppb}"
    found = simulate(pair(a_is=f'line-drift="{ppb}ppb"'), place)
    bits = 8 * (8 + frame(100))
    expected = 100 * NS + -(-bits * 10**12 // (GIGABIT + ppb))
    sent, came = found.times("wire-send", 1), found.times("wire-receive", 1)
    assert {came[key] - sent[key] for key in sent} == {expected}


def held(time: int, period: int, offset: int, duration: int) -> int | None:
    """How far into an event an instant is; None outside."""
    into = (time - offset) % period
    return into if time >= offset and into < duration else None


@given(
    period=st.integers(5, 200), duration=st.integers(1, 100), offset=st.integers(0, 150), ramp=st.booleans()
)
@FEW
def test_events_hold_up_what_they_meet(
    tmp_path: Path, period: int, duration: int, offset: int, ramp: bool
) -> None:
    """Whether, and for how long, each message is held up, at sender and receiver, follows from the instants alone."""
    duration = min(duration, period)
    to = ' ramp-to="150us"' if ramp else ""
    event = f'<event period="{period}ms" offset="{offset}ms" duration="{duration}ms" latency="16us"{to}'
    place = tmp_path / f"{period}-{duration}-{offset}-{ramp}"
    found = simulate(pair(f'{event} threads="send"/>', f'{event} threads="receive"/>'), place)

    def extra(time: int) -> int:
        into = held(time, period * MS, offset * MS, duration * MS)
        if into is None:
            return 0
        return 16 * US + (134 * US * into // (duration * MS) if ramp else 0)

    sent, came = found.times("application-send", 1), found.times("application-receive", 1)
    arrived = found.times("wire-receive", 1)
    for key, time in sent.items():
        assert time == key * MS + extra(key * MS)
        assert came[key] == arrived[key] + extra(arrived[key])
    struck = sum(extra(key * MS) > 0 for key in sent), sum(extra(arrived[key]) > 0 for key in sent)
    told = found.truth.filter(pl.col("kind") == "held-up")
    assert told.height == sum(struck)
    began = found.truth.filter((pl.col("kind") == "host-event-began") & (pl.col("node") == 0))["time"]
    assert began.to_list() == [offset * MS + k * period * MS for k in range(began.len())]
    assert found.told("host-event-ended") in (2 * began.len(), 2 * began.len() - 2)


def test_a_drawn_event_is_drawn_for_each_message(tmp_path: Path) -> None:
    event = '<event period="100ms" duration="50ms" latency="0%:15us 100%:150us" threads="receive"/>'
    found = simulate(pair("", event), tmp_path)
    by = found.truth.filter(pl.col("kind") == "held-up")["value"].to_numpy()
    assert by.size == 200
    assert 15 * US <= by.min() < 25 * US
    assert 140 * US < by.max() <= 150 * US
    assert abs(np.median(by) - 82.5 * US) < 15 * US


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
def test_a_switch_decides_in_drawn_time_and_keeps_the_order(tmp_path: Path, mode: str) -> None:
    """Frames back to back: each may leave when it and all before it are decided on and the line is free."""
    tasks = '<send flow="1" period="10ms" payload="100B" burst="20" count="2000"/><receive flow="1"/>'
    found = simulate(
        switched(f'delay="0%:1us 50%:2us 100%:9us" forwarding-mode="{mode}"', tasks=tasks), tmp_path
    )
    into, out = found.times("switch-in", 1), found.times("switch-out", 1)
    numbers = sorted(into)
    assert numbers == list(range(2000)) == sorted(out, key=lambda key: out[key])
    held_for = np.array([out[key] - into[key] for key in numbers])
    first = held_for[::20]
    assert first.min() >= 1 * US
    assert first.max() <= 9 * US
    assert abs(np.mean(first <= 2 * US) - 0.5) < 0.2
    rest = sending(frame(100), GIGABIT) - (8 * (8 + 14) * NS)
    seen = (
        sending(frame(100), GIGABIT) if mode == "store-and-forward" else sending(frame(100), GIGABIT) - rest
    )
    sent = found.times("wire-send", 1)
    assert {into[key] - sent[key] for key in numbers} == {seen}
    gaps = np.diff([out[key] for key in numbers])
    assert gaps.min() >= occupation(frame(100), GIGABIT)


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
def test_frames_pay_between_ports_of_different_rates_only(tmp_path: Path, mode: str) -> None:
    for rates, late in (
        (("1Gbit/s", "1Gbit/s"), 0),
        (("1Gbit/s", "100Mbit/s"), 7 * US),
        (("100Mbit/s", "1Gbit/s"), 7 * US),
    ):
        plain = simulate(
            switched(f'delay="2us" forwarding-mode="{mode}"', rates=rates), tmp_path / f"plain{rates}{late}"
        )
        slow = simulate(
            switched(f'delay="2us" mixed-rate-delay="7us" forwarding-mode="{mode}"', rates=rates),
            tmp_path / f"slow{rates}{late}",
        )
        assert (errors(plain, slow, "switch-out") == late).all()
        assert not errors(plain, slow, "switch-in").any()


@given(period=st.integers(3, 60), offset=st.integers(0, 900), length=st.integers(64, 1518))
@FEW
def test_own_frames_take_the_line_when_they_are_due(
    tmp_path: Path, period: int, offset: int, length: int
) -> None:
    """A message waits for the rest of an own frame that has begun; nobody else notices them."""
    place = tmp_path / f"{period}-{offset}-{length}"
    own = f'<own-frames period="{period}ms" offset="{offset}us" frame="{length}B"/>'
    found = simulate(switched('delay="0s"', own), place)
    busy = occupation(length, GIGABIT)
    into, out = found.times("switch-in", 1), found.times("switch-out", 1)
    for key, time in into.items():
        late = (time - offset * US) % (period * MS) if time >= offset * US else busy
        assert out[key] - time == max(busy - late, 0) if late > 0 else out[key] - time in (0, busy)
    sent = found.told("own-frame")
    ports = found.report["switches"]["s"]["ports"]
    assert sum(port["frames"] for port in ports) == sent + 400
    assert sum(port["bytes"] for port in ports) == sent * length + 400 * frame(100)
    assert sent == 2 * (((found.report["simulated_ps"] - offset * US) // (period * MS)) + 1)
    assert found.summary["unplanned"] == {} or not any(found.summary["unplanned"].values())


def test_own_frames_go_to_the_neighbour_and_no_further(tmp_path: Path) -> None:
    nodes = (
        '<end-system name="a"/><end-system name="b"/><switch name="s"><own-frames period="10ms"/></switch>'
        '<switch name="t" forwarding="learning"/><link between="a s" rate="1Gbit/s"/>'
        '<link between="s t" rate="1Gbit/s"/><link between="t b" rate="1Gbit/s"/>'
    )
    found = simulate(written(nodes, '<flow id="1" protocol="raw" from="a" to="b"/>', SENT), tmp_path)
    ports = found.report["switches"]["t"]["ports"]
    assert sum(port["frames"] for port in ports) == 400
    assert not any(port["dropped"] for port in ports)


def realised(threads: int, burst: int, cost: int, asleep: int, interval: int, until: int) -> int:
    """Frames of threads that send and sleep, counted one by one."""
    count = 0
    for thread in range(threads):
        time = thread * interval
        while time < until:
            for _ in range(burst):
                count += time < until
                time += cost
            time += threads * interval + asleep
    return count


@given(
    threads=st.integers(1, 4), burst=st.integers(1, 12), cost=st.integers(0, 60), asleep=st.integers(0, 90)
)
@FEW
def test_threads_realise_the_load_their_calls_and_sleeps_leave(
    tmp_path: Path, threads: int, burst: int, cost: int, asleep: int
) -> None:
    place = tmp_path / f"{threads}-{burst}-{cost}-{asleep}"
    inject = (
        f'<inject on="a" to="b" load="50%" frame="1230B" burst="{burst}" threads="{threads}" '
        f'send-cost="{cost}us" sleep-overhead="{asleep}us"/>'
    )
    text = pair(tasks=f'<send flow="1" period="10ms" payload="100B" count="20"/><receive flow="1"/>{inject}')
    found = simulate(text, place)
    task = next(task for task in found.report["agents"]["a"]["tasks"] if task["kind"] == "inject")
    # 1250 B on the wire are 10 us, half the load twice as much.
    expected = realised(threads, burst, cost * US, asleep * US, burst * 20 * US, 200 * MS)
    assert abs(task["done"] - expected) <= 1
    assert task["planned"] == pytest.approx(200 * MS / (20 * US), abs=burst)


def test_the_realised_load_stands_beside_the_intended_one(tmp_path: Path) -> None:
    """As the MAPS paper's injectors: three threads, bursts of ten, 40 us a call, 60 us of sleep overhead."""
    nodes = '<end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="s"/>' + "".join(
        f'<link between="{name} s" rate="1Gbit/s"/>' for name in "abc"
    )
    inject = '<inject on="c" to="b" load="100%" threads="3" send-cost="40us" sleep-overhead="60us"/>'
    text = written(nodes, '<flow id="1" protocol="raw" from="a" to="b"/>', SENT + inject)
    file = tmp_path / "t.xml"
    file.write_text(text, encoding="utf-8")
    judged = trial(file, tmp_path / "out")
    (load,) = judged.runs[0].loads
    # 30 frames of 12.304 us in 400 + 369.12 + 60 us.
    assert load.intended == 1.0
    assert load.offered == pytest.approx(30 * 12.304 / (400 + 369.12 + 60), rel=0.01)
    check = next(check for check in judged.runs[0].checks if check.name == "offered-load")
    assert check.grade.name == "NOTE"
    assert "c: 44.5 % of 100 %" in check.observed
