"""Bounds of shaped and gated classes: networks whose bounds are worked by hand, and inputs that have none."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from wiregauge import bounds
from wiregauge.config import Cbs, GateEntry, GateSchedule, SwitchTsn, Test, TestError, TrafficClass

LINE = 10**8
"""Bit/s of every link."""


def wire(payload: int) -> int:
    """Bits of a tagged raw frame with preamble and gap: header 14, tag 4, FCS 4, preamble and gap 20."""
    return 8 * (14 + 4 + payload + 4 + 20)


def network(tsn: SwitchTsn, flows: dict[int, tuple[int, int, str]], *, ascending: bool = False) -> Test:
    """Each flow (priority, payload, period) from a host of its own over one switch to `to`.

    `ascending`: ports in the order in which they are passed, so that linear programmes cut no link.
    """
    test = Test("by-hand", host="ideal").switch("sw", tsn=[tsn], buffer="1MiB", delay="0ns")
    test.end_system("to")
    if not ascending:
        test.link("sw", "to", rate="100Mbit/s")
    for flow, (priority, payload, period) in flows.items():
        test.end_system(f"h{flow}").link(f"h{flow}", "sw", rate="100Mbit/s")
        test.flow(flow, protocol="raw", from_=f"h{flow}", to="to", vlan=7, priority=priority)
        test.send(flow, period=period, payload=f"{payload}B").receive(flow)
    if ascending:
        test.link("sw", "to", rate="100Mbit/s")
    return test.timing(duration="20ms")


def bound(test: Test, place: Path, method: str = "tfa") -> dict[str, Fraction | None]:
    file = place / "n.xml"
    file.write_text(test.to_xml(), encoding="utf-8")
    answer = bounds.bound(bounds.read(file), method, multiplexing="fifo", grouping=False)
    return {
        flow.flow: None if (exact := flow.targets[0].delay_exact) is None else Fraction(exact)
        for flow in answer.flows
    }


def at_host(bits: int, period: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """The delay at the sender's own link, and burst and rate of what leaves it."""
    delay, rate = Fraction(bits, LINE), bits / period
    return delay, bits + rate * delay, rate


def test_shaped_classes_wait_for_frames_below_and_debts_above(tmp_path: Path) -> None:
    upper, lower = 30_000_000, 20_000_000
    tsn = SwitchTsn(
        classes=[
            TrafficClass(0, "0 1 2 3 4 5"),
            TrafficClass(1, "6", shaper=Cbs("20Mbit/s")),
            TrafficClass(2, "7", shaper=Cbs("30Mbit/s")),
        ]
    )
    told = bound(network(tsn, {1: (7, 500, "1ms"), 2: (6, 800, "1ms"), 3: (0, 1400, "1ms")}), tmp_path)
    ms = Fraction(1, 1000)
    # Class A waits for the longest frame of the others, and then for its slope to serve the burst.
    delay, burst, _ = at_host(wire(500), ms)
    assert told["1"] == delay + Fraction(wire(1400), LINE) + burst / upper
    # Class B for a frame below and the debt of A, beside what A takes.
    delay, burst, _ = at_host(wire(800), ms)
    debt = Fraction((LINE - upper) * wire(500), LINE)
    assert told["2"] == delay + (wire(1400) + debt) / (LINE - upper) + burst / lower


def test_programmes_pay_the_burst_of_a_shaped_class_once(tmp_path: Path) -> None:
    """The sender's link and the shaper in a row: a frame on the first, a frame below, the burst at the slope."""
    upper = 30_000_000
    tsn = SwitchTsn(
        classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", shaper=Cbs("30Mbit/s"))],
    )
    flows = {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}
    told = bound(network(tsn, flows, ascending=True), tmp_path, "plp")
    own, other = wire(500), wire(1400)
    assert told["1"] == Fraction(own + other, LINE) + Fraction(own, upper)
    # Total flow analysis pays for the burst that has grown on the first link as well.
    total = bound(network(tsn, flows, ascending=True), tmp_path)
    _, burst, _ = at_host(own, Fraction(1, 1000))
    assert total["1"] == Fraction(own + other, LINE) + burst / upper
    # Cut between the two, the programmes find the burst behind the cut that total flow analysis finds; the whole path
    # by separated flow analysis is less.
    cut, total = bound(network(tsn, flows), tmp_path, "plp"), bound(network(tsn, flows), tmp_path)
    assert cut == bound(network(tsn, flows), tmp_path, "sfa")
    assert all((cut[flow] or 0) < (total[flow] or 0) for flow in cut)


def test_programmes_take_every_piece_of_what_a_class_is_left(tmp_path: Path) -> None:
    """Strict priority: below a class of burst `b` and rate `r` there are left `C - r` after `b / (C - r)`."""
    tsn = SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7")])
    flows = {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}
    told = bound(network(tsn, flows, ascending=True), tmp_path, "plp")
    _, above, rate = at_host(wire(500), Fraction(1, 1000))
    assert told["1"] == Fraction(2 * wire(500) + wire(1400), LINE)
    left = LINE - rate
    assert told["2"] == Fraction(wire(1400), LINE) + above / left + wire(1400) / left


def test_a_strict_class_above_a_shaped_one_delays_its_credit(tmp_path: Path) -> None:
    tsn = SwitchTsn(
        classes=[
            TrafficClass(0, "0 1 2 3 4 5"),
            TrafficClass(1, "6", shaper=Cbs("20Mbit/s")),
            TrafficClass(2, "7"),
        ]
    )
    told = bound(network(tsn, {1: (7, 500, "1ms"), 2: (6, 800, "1ms"), 3: (0, 1400, "1ms")}), tmp_path)
    ms = Fraction(1, 1000)
    _, above, rate = at_host(wire(500), ms)
    delay, burst, _ = at_host(wire(800), ms)
    assert told["2"] == delay + (wire(1400) + above) / (LINE - rate) + burst / 20_000_000


def test_a_gate_that_closes_once_a_cycle(tmp_path: Path) -> None:
    tsn = SwitchTsn(
        classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7")],
        schedules=[GateSchedule([GateEntry("200us", open="1"), GateEntry("300us", open="0")])],
    )
    told = bound(network(tsn, {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}), tmp_path)
    for flow, payload, closed in (("1", 500, 300), ("2", 1400, 200)):
        delay, burst, _ = at_host(wire(payload), Fraction(1, 1000))
        # Closed, and before that one frame that does not fit.
        shut = Fraction(closed, 10**6) + Fraction(wire(payload), LINE)
        served = LINE * (1 - shut / Fraction(500, 10**6))
        assert told[flow] == delay + shut + burst / served


def test_a_class_kept_apart_is_bounded_beside_one_that_is_overloaded(tmp_path: Path) -> None:
    tsn = SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", shaper=Cbs("20Mbit/s"))])
    test = network(tsn, {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")})
    test.inject(on="h2", to="to", load="70%", payload="1400B")
    test.inject(on="h1", to="to", load="60%", payload="1400B")
    told = bound(test, tmp_path)
    assert told["1"] is not None
    assert told["2"] is None


@pytest.mark.parametrize(
    ("tsn", "said"),
    [
        (
            SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", preemptable="on")]),
            "its ports have preemption",
        ),
        (
            SwitchTsn(
                classes=[
                    TrafficClass(0, "0 1 2 3 4 5 6"),
                    TrafficClass(1, "7", shaper=Cbs("20Mbit/s")),
                ],
                schedules=[GateSchedule([GateEntry("250us", open="1"), GateEntry("250us", open="0 1")])],
            ),
            "credit-based shapers behind gates",
        ),
    ],
)
def test_combinations_without_a_curve_are_refused(tsn: SwitchTsn, said: str, tmp_path: Path) -> None:
    with pytest.raises(TestError, match=said):
        bound(network(tsn, {1: (7, 500, "1ms")}), tmp_path)


def test_shapers_do_not_go_with_any_order(tmp_path: Path) -> None:
    tsn = SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", shaper=Cbs("20Mbit/s"))])
    file = tmp_path / "n.xml"
    file.write_text(network(tsn, {1: (7, 500, "1ms")}).to_xml(), encoding="utf-8")
    source = bounds.read(file)
    for method in ("tfa", "sfa", "pmoo"):
        with pytest.raises(TestError, match="holds frames back while the line is free"):
            bounds.bound(source, method, multiplexing="arbitrary")


def test_virtual_links_beside_classes_are_refused_where_they_meet(tmp_path: Path) -> None:
    def read(ports: str) -> None:
        tsn = SwitchTsn(ports=ports, classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7")])
        test = Test("links", host="ideal").switch("sw", kind="arinc664", tsn=[tsn], delay="0ns")
        for host in ("a", "b", "c"):
            test.end_system(host).link(host, "sw", rate="100Mbit/s")
        test.flow(1, protocol="rc", from_="a", to="b", bag="2ms", lmax="200B")
        test.send(1, period="4ms", payload="100B").receive(1)
        test.flow(2, protocol="be", from_="a", to="c").send(2, period="4ms", payload="100B").receive(2)
        file = tmp_path / "n.xml"
        file.write_text(test.timing(duration="20ms").to_xml(), encoding="utf-8")
        bounds.bound(bounds.read(file), "tfa")

    read("3")
    with pytest.raises(TestError, match="virtual links or windows beside traffic classes") as caught:
        read("2")
    assert "leave <switch-tsn> out of the ports that rc and tt flows take" in str(caught.value)
