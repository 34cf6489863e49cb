"""Preemption at end systems and gates that hold the MAC, through whole simulated runs against closed forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import GAP, US, Simulated, bits, frame, occupation, sending, simulate, written
from wiregauge.config import load
from wiregauge.plan.host_commands import host_commands
from wiregauge.runner.benches.capabilities import beyond_hosts, beyond_simulator

RATE = 100_000_000
REST = bits(143, RATE)
CLASSES = (
    '<traffic-class number="0" priorities="0 1 2 3 4 5 6" preemptable="on"/>'
    '<traffic-class number="1" priorities="7"/>'
)
FLOWS = (
    '<flow id="1" protocol="raw" from="a" to="d" vlan="1" priority="7"/>'
    '<flow id="2" protocol="raw" from="{0}" to="d" vlan="1"/>'
)


def sends(flow: int, period: str, payload: int, count: int, offset: str = "0s") -> str:
    sent = f'<send flow="{flow}" period="{period}" payload="{payload}B" count="{count}" offset="{offset}"/>'
    return f'{sent}<receive flow="{flow}"/>'


def at_host(settings: str, tasks: str, *, cut_through: bool = False) -> str:
    """Express and preemptable frames of one end system, by a switch that costs nothing."""
    switch = ' forwarding-mode="cut-through"' if cut_through else ""
    network = (
        f'<end-system name="a"><host-tsn offload="full"{settings}</host-tsn></end-system><end-system name="d"/>'
        f'<switch name="s" delay="0s"{switch}/><link between="a s" rate="100Mbit/s"/>'
        '<link between="s d" rate="100Mbit/s"/>'
    )
    return written(network, FLOWS.format("a"), tasks)


def at_switch(settings: str, tasks: str) -> str:
    """Express frames of one end system, preemptable ones of another, to one port."""
    network = (
        '<end-system name="a"/><end-system name="b"/><end-system name="d"/>'
        f'<switch name="s" delay="0s"><switch-tsn{settings}</switch-tsn></switch>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="1Gbit/s"/>'
        '<link between="s d" rate="100Mbit/s"/>'
    )
    return written(network, FLOWS.format("b"), tasks)


def windows(*, hold: bool = True, advance: str = "", opens: str = "0 1") -> str:
    """Express frames have the last 50 us of each 500 us."""
    release, held = (' mac="release"', ' mac="hold"') if hold else ("", "")
    return (
        f'{advance}>{CLASSES}<gate-schedule><gate-entry open="0" for="450us"{release}/>'
        f'<gate-entry open="{opens}" for="50us"{held}/></gate-schedule>'
    )


def begins(run: Simulated, point: str) -> list[int]:
    """When frames of the express flow begin, in the cycle, ps."""
    return [time % (500 * US) for time in run.times(point, 1).values()]


def test_an_express_frame_of_a_host_waits_no_longer_than_the_fragment(tmp_path: Path) -> None:
    """As at a switch: 143 byte times at most, and frames that were cut are whole where they arrive."""
    for least, longest in ((64, 143), (256, 335)):
        # Frames that are just too short to be cut, and long ones.
        for name, payload, period, count in (
            ("uncut", least + 59 - 22, f"{longest // 10}us", 9_000),
            ("long", 1500, "290us", 1_000),
        ):
            tasks = sends(1, "1003us", 46, 280) + sends(2, period, payload, count)
            settings = f' shortest-fragment="{least}B">{CLASSES}'
            run = simulate(at_host(settings, tasks), tmp_path / f"{least}-{name}")
            called, sent = run.times("application-send", 1), run.times("wire-send", 1)
            waits = [sent[key] - called[key] for key in sent]
            assert bits(longest, RATE) * (0.4 if name == "long" else 0.85) < max(waits) <= bits(longest, RATE)
            assert (len(sent), len(run.times("application-receive", 1))) == (280, 280)
            assert len(run.times("application-receive", 2)) == count


@pytest.mark.parametrize("cut_through", [False, True])
def test_a_frame_that_a_host_cuts_is_later_by_the_express_one_and_24_bytes(
    tmp_path: Path, cut_through: bool
) -> None:
    """A switch behind it hands on what is whole, cut-through or not."""
    tasks = sends(2, "1ms", 1500, 50) + sends(1, "1ms", 100, 50, offset="50us")
    run = simulate(at_host(f">{CLASSES}", tasks, cut_through=cut_through), tmp_path)
    long, short = frame(1500, tagged=True), frame(100, tagged=True)
    assert set(run.latencies(2)) == {2 * sending(long, RATE) + occupation(short, RATE) + bits(24, RATE)}
    # What is sent of it by then, to the next byte, its check of 4 bytes and the gap.
    gone = -(-50 * US // bits(1, RATE)) * bits(1, RATE)
    called, sent = run.times("application-send", 1), run.times("wire-send", 1)
    assert {sent[key] - called[key] for key in sent} == {gone + bits(4 + GAP, RATE) - 50 * US}


def test_with_hold_a_window_never_waits_and_without_for_a_fragment(tmp_path: Path) -> None:
    """Express frames lie ready when their window opens; bulk that is just not cut, or long, fills the line."""
    tasks = sends(1, "500us", 46, 400, offset="100us")
    bulk = {"uncut": sends(2, "12us", 123 - 22, 14_000), "long": sends(2, "140us", 1500, 1_400)}
    for name, load_of in bulk.items():
        for place, build, point in (("host", at_host, "wire-send"), ("switch", at_switch, "switch-out")):
            held = simulate(build(windows(), tasks + load_of), tmp_path / f"{place}-{name}")
            assert set(begins(held, point)) == {450 * US}, (place, name)
            free = simulate(build(windows(hold=False), tasks + load_of), tmp_path / f"{place}-{name}-free")
            late = [begin - 450 * US for begin in begins(free, point)]
            assert 0 < max(late) <= REST, (place, name)
            # No byte of bulk begins while the MAC is held, and what was cut is whole at the end.
            bulk_begins = [time % (500 * US) for time in held.times(point, 2).values()]
            assert all(begin < 450 * US - REST for begin in bulk_begins)
            assert len(held.times("application-receive", 2)) == int(load_of.split('count="')[1].split('"')[0])


def test_a_shorter_advance_lets_a_fragment_into_the_window_and_is_warned_of(tmp_path: Path) -> None:
    tasks = sends(1, "500us", 46, 400, offset="100us") + sends(2, "12us", 123 - 22, 14_000)
    text = at_switch(windows(advance=' hold-advance="3us"'), tasks)
    run = simulate(text, tmp_path)
    late = max(begins(run, "switch-out")) - 450 * US
    assert 0 < late <= REST - 3 * US
    # One for each port of 100 Mbit/s; at 1 Gbit/s it would do.
    assert [warning.split(" at ")[0] for warning in run.plan.warnings] == ["the hold-advance of 3us"] * 2


def test_a_hold_costs_its_advance(tmp_path: Path) -> None:
    """Frames too short to be cut, always waiting: as many leave in a cycle as begin before the MAC is told."""
    tasks = sends(2, "7300ns", 46, 8_000) + sends(1, "500us", 46, 100, offset="460us")
    run = simulate(at_switch(windows(), tasks), tmp_path)
    out = sorted(run.times("switch-out", 2).values())
    own = occupation(frame(46, tagged=True), RATE)
    for cycle in range(5, 50):
        inside = sum(cycle * 500 * US <= time < (cycle + 1) * 500 * US for time in out)
        assert inside == -(-(450 * US - REST) // own)


def test_what_is_released_in_advance_begins_in_the_window(tmp_path: Path) -> None:
    tasks = sends(2, "7300ns", 46, 8_000) + sends(1, "500us", 46, 100, offset="460us")
    run = simulate(at_switch(windows(advance=' release-advance="20us"'), tasks), tmp_path)
    first = min(t % (500 * US) for t in run.times("switch-out", 2).values() if t % (500 * US) > 450 * US)
    assert first == 480 * US


def test_schedules_of_hosts_tell_tc_to_hold_and_release(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(at_host(windows(), sends(1, "1ms", 46, 5) + sends(2, "1ms", 46, 5)))
    campaign = load(file).campaign
    (told,) = host_commands(campaign, {"a": "eth0", "d": "eth1"})
    assert "sched-entry R 01 450000 sched-entry H 03 50000 flags 0x2 fp P E" in " ".join(told.apply)
    assert beyond_simulator(campaign) == []
    assert beyond_hosts(campaign) == []
