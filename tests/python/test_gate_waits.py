"""Frames that found their gate closed or missed a window, against a table of instants written here."""

from __future__ import annotations

from pathlib import Path

from simulation import US, frame, sending, simulate, trial, written
from wiregauge.measures.flow_measures import GATES

CYCLE, OPEN = 500, 100
"""us"""


def gated(tasks: str, *, limits: str = "") -> str:
    """A switch whose class 1 is open for the first 100 us of each 500 us, from 1 Gbit/s to 100 Mbit/s."""
    lists = (
        f'<gate-schedule><gate-entry open="1" for="{OPEN}us"/>'
        f'<gate-entry open="0" for="{CYCLE - OPEN}us"/></gate-schedule>'
    )
    network = (
        '<end-system name="a"/><end-system name="d"/><switch name="s" delay="3us"><switch-tsn>'
        '<traffic-class number="0" priorities="0 1 2 3 4 5 6"/><traffic-class number="1" priorities="7"/>'
        f'{lists}</switch-tsn></switch><link between="a s" rate="1Gbit/s"/><link between="s d" rate="100Mbit/s"/>'
    )
    flows = '<flow id="1" protocol="raw" from="a" to="d" vlan="1" priority="7"/>'
    return written(network, flows, tasks, more=limits)


def sends(period: str, payload: int, count: int, **more: str) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in more.items())
    sent = f'<send flow="1" period="{period}" payload="{payload}B" count="{count}"{attributes}/>'
    return f'{sent}<receive flow="1"/>'


def counted(text: str, place: Path) -> tuple[int, int, int]:
    """Passages, those that found the gate closed, those that missed a window, as the judge has them."""
    place.mkdir()
    file = place / "t.xml"
    file.write_text(text)
    (flow,) = trial(file, place / "out").runs[0].flows
    return flow[GATES]["passages"], flow[GATES]["found_closed"], flow[GATES]["missed"]


def expected(text: str, place: Path) -> tuple[int, int, int]:
    """The same by the records of the simulator, each microsecond at a time."""
    run = simulate(text, place)
    into, out = run.times("switch-in", 1), run.times("switch-out", 1)
    closed = missed = 0
    for message, left in out.items():
        ready = into[message] + 3 * US
        closed += ready % (CYCLE * US) >= OPEN * US
        # A closing is at 100 us of each cycle; one at the very instant of leaving is none.
        first = ready // (CYCLE * US) * CYCLE * US + OPEN * US
        while first <= ready:
            first += CYCLE * US
        missed += first < left
    return len(out), closed, missed


def test_every_phase_of_the_cycle_and_bursts_that_do_not_fit(tmp_path: Path) -> None:
    """A frame of 1022 B takes 83 us of a window of 100 us: of two that come together the second one misses it."""
    for name, tasks in (
        ("phases", sends("613us", 200, 300)),
        ("long", sends("613us", 1000, 300)),
        ("bursts", sends("5ms", 1000, 100, burst="4")),
    ):
        text = gated(tasks)
        assert counted(text, tmp_path / name) == expected(text, tmp_path / f"{name}-records"), name
    assert 80 * US < sending(frame(1000, tagged=True), 100_000_000) < 100 * US


def test_what_comes_into_its_window_misses_none_and_limits_see_it(tmp_path: Path) -> None:
    names = ("gates.missed", "gates.found_closed")
    limits = "".join(f'<limit measure="{name}" at-most="0"/>' for name in names)
    limits = f"<limits>{limits}</limits>"
    for offset, met in (("10us", (0, 0)), ("90us", (0, 100)), ("150us", (100, 0))):
        file = tmp_path / f"{offset}.xml"
        file.write_text(gated(sends("500us", 200, 100, offset=offset), limits=limits))
        judged = trial(file, tmp_path / offset).runs[0].limits
        assert [(limit.holds, limit.observed, limit.n) for limit in judged] == [
            (count == 0, count, 100) for count in (met[1], met[0])
        ], offset


def test_a_flow_that_no_gate_can_hold_has_no_such_measure(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(gated(sends("500us", 200, 10)).replace('open="0"', 'open="0 1"'))
    (flow,) = trial(file, tmp_path / "out").runs[0].flows
    assert not flow[GATES]


def test_virtual_links_meet_the_gate_of_the_class_that_takes_them(tmp_path: Path) -> None:
    def of(virtual_links: str) -> str:
        lists = (
            f'<gate-schedule><gate-entry open="1" for="{OPEN}us"/>'
            f'<gate-entry open="0" for="{CYCLE - OPEN}us"/></gate-schedule>'
        )
        network = (
            '<end-system name="a"/><end-system name="d"/><switch name="s" kind="arinc664" delay="3us"><switch-tsn>'
            '<traffic-class number="0" priorities="0 1 2 3 4 5 6"/>'
            f'<traffic-class number="1" priorities="7"{virtual_links}/>'
            f'{lists}</switch-tsn></switch><link between="a s" rate="1Gbit/s"/>'
            '<link between="s d" rate="100Mbit/s"/>'
        )
        flows = '<flow id="1" protocol="rc" from="a" to="d" bag="1ms" lmax="300B"/>'
        return written(network, flows, sends("1013us", 200, 300))

    text = of(' virtual-links="low high"')
    assert counted(text, tmp_path / "taken") == expected(text, tmp_path / "taken-records")
    text = of("")
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "t.xml").write_text(text)
    (flow,) = trial(tmp_path / "above" / "t.xml", tmp_path / "out").runs[0].flows
    assert not flow[GATES]
