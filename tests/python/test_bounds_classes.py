"""Bounds of shaped and gated classes: networks whose bounds are worked by hand, and inputs that have none."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from wiregauge import bounds
from wiregauge.config import (
    Ats,
    Cbs,
    CyclicQueuing,
    FlowPath,
    Frer,
    GateEntry,
    GateSchedule,
    Scheduler,
    SwitchTsn,
    Test,
    TestError,
    TrafficClass,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

LINE = 10**8
"""Bit/s of every link."""
BELOW, ABOVE = TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7")


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
    answer = bounds.bound(bounds.read(file), method, multiplexing="fifo", grouping=False, phases="any")
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


def test_a_shaper_behind_a_gate_has_its_slope_over_all_time(tmp_path: Path) -> None:
    """While the gate is open the credit rises by 5/2 of the slope, and waits for what does not fit before it closes."""
    tsn = SwitchTsn(
        classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", shaper=Cbs("20Mbit/s"))],
        schedules=[GateSchedule([GateEntry("200us", open="1"), GateEntry("300us", open="0")])],
    )
    told = bound(network(tsn, {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}), tmp_path)
    delay, burst, _ = at_host(wire(500), Fraction(1, 1000))
    cycle, closed = Fraction(500, 10**6), Fraction(300, 10**6)
    share = closed / cycle
    stretch = closed * (1 - share)
    # Once a cycle a frame of its own does not fit before the gate closes.
    lost = Fraction(wire(500), LINE)
    rate, at_once = LINE * lost / cycle, LINE * lost * (1 - lost / cycle)
    waits = (at_once + rate / (1 - share) * stretch) / (LINE - rate / (1 - share))
    assert told["1"] == delay + (stretch + waits) / (1 - share) + burst / 20_000_000


def test_an_express_frame_waits_for_what_cannot_be_cut(tmp_path: Path) -> None:
    tsn = SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6", preemptable="on"), TrafficClass(1, "7")])
    told = bound(network(tsn, {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}), tmp_path)
    delay, burst, rate = at_host(wire(500), Fraction(1, 1000))
    assert told["1"] == delay + (8 * 143 + burst) / LINE
    # A frame of 64 B, 84 B on the wire, may cut one of 24 B more.
    cut = 1 + Fraction(24, 84)
    delay, own, _ = at_host(wire(1400), Fraction(1, 1000))
    assert told["2"] == delay + (cut * burst + own) / (LINE - cut * rate)


def with_bucket(burst: str) -> SwitchTsn:
    """A scheduler of 10 Mbit/s for flow 1."""
    shaper = Ats([Scheduler(1, "10Mbit/s", burst)], longest_residence="10ms")
    return SwitchTsn(classes=[BELOW, replace(ABOVE, shaper=shaper)])


def test_a_flow_within_its_bucket_is_shaped_for_free(tmp_path: Path) -> None:
    """Behind its sender's link it has the burst of its bucket again, and has waited for nothing."""
    flows = {1: (7, 500, "1ms"), 2: (0, 1400, "1ms")}
    own, other = wire(500), wire(1400)
    told = bound(network(with_bucket("542B"), flows), tmp_path)
    assert told["1"] == Fraction(own, LINE) + Fraction(other + own, LINE)
    # A bucket of less than a frame holds each frame until it has filled up beyond.
    told = bound(network(with_bucket("300B"), flows), tmp_path)
    assert told["1"] == Fraction(own, LINE) + Fraction(own - 2400, 10**7) + Fraction(other + own, LINE)


def test_what_comes_faster_than_its_bucket_passes_waits_for_the_residence_time_and_is_dropped(
    tmp_path: Path,
) -> None:
    test = network(with_bucket("542B"), {1: (7, 500, "200us"), 2: (0, 1400, "1ms")})
    file = tmp_path / "n.xml"
    file.write_text(test.limit(measure="latency.max", at_most="2s").to_xml(), encoding="utf-8")
    answer = bounds.bound(bounds.read(file), "tfa", multiplexing="fifo", grouping=False)
    (own,) = (flow.targets[0].delay for flow in answer.flows if flow.flow == "1")
    assert own == pytest.approx(0.01 + (2 * wire(500) + wire(1400)) / LINE, abs=1e-9)
    assert any("the scheduler of flow 1" in note and "longest-residence" in note for note in answer.notes)
    assert {limit.flow: limit.kept for limit in answer.limits} == {"1": False, "2": True}


def in_cycles(cycle: str, payload: int) -> Test:
    """Flow 1 from `h1` over two switches whose cycles begin 30 us apart, beside 1400 B of another class."""
    test = Test("cycles", host="ideal").end_system("h1").end_system("h2").end_system("to")
    classes = [TrafficClass(0, "0 1 2 3 4 5"), TrafficClass(1, "6"), TrafficClass(2, "7")]
    for name, base in (("s1", "0ns"), ("s2", "30us")):
        tsn = SwitchTsn(classes=classes, cyclic=CyclicQueuing("1 2", cycle, base_time=base))
        test.switch(name, tsn=[tsn], delay="2us", buffer="1MiB")
    for ends in (("h1", "s1"), ("h2", "s1"), ("s1", "s2"), ("s2", "to")):
        test.link(*ends, rate="100Mbit/s")
    for flow, size, priority in ((1, payload, 7), (2, 1400, 0)):
        test.flow(flow, protocol="raw", from_=f"h{flow}", to="to", vlan=7, priority=priority)
        test.send(flow, period="1ms", payload=f"{size}B").receive(flow)
    return test.timing(duration="20ms")


def test_cyclic_queues_take_a_cycle_each_and_one_more(tmp_path: Path) -> None:
    told = bound(in_cycles("400us", 500), tmp_path)
    # The own line and the way to the first port, a cycle there and one behind it, the later beginning of the second.
    cycles = Fraction(2 + 400 + 400 + 30, 10**6)
    # Of the last cycle what a frame below, the gap before it and the own one take.
    assert told["1"] == Fraction(wire(500), LINE) + cycles + Fraction(wire(1400) + 96 + wire(500), LINE)


def test_a_cycle_that_is_too_short_for_what_comes_is_refused_with_its_port(tmp_path: Path) -> None:
    # Beside a frame of 1400 B and a gap a cycle of 200 us has room for 8368 bit.
    assert bound(in_cycles("200us", 1003), tmp_path)["1"] is not None
    with pytest.raises(TestError, match="8376 bit may come to its cyclic queues in a cycle") as caught:
        bound(in_cycles("200us", 1005), tmp_path)
    (one, _) = caught.value.diagnostics
    assert (one.element, one.limit) == ('server "s1:3"', "8368 bit")
    assert "lengthen the cycle" in one.cure


def copied(history: int) -> Test:
    """Flow 1 of 500 B every 33 us over one switch or three between `s` and `t`, each 2 us."""
    test = Test("copied", host="ideal")
    for name in ("s", "a", "b1", "b2", "t"):
        test.switch(name, delay="60us" if name == "b2" else "2us", buffer="1MiB")
    test.end_system("h").end_system("z")
    for ends in (("h", "s"), ("s", "a"), ("a", "t"), ("s", "b1"), ("b1", "b2"), ("b2", "t"), ("t", "z")):
        test.link(*ends, rate="1Gbit/s")
    frer, paths = Frer(history_length=history, replicate_at="s"), [FlowPath("s a t"), FlowPath("s b1 b2 t")]
    test.flow(1, protocol="raw", from_="h", to="z", frer=frer, paths=paths)
    return test.send(1, period="33us", payload="500B").receive(1).timing(duration="20ms")


@pytest.mark.parametrize("history", [2, 3])
def test_copies_are_bounded_on_each_path_and_their_history_is_judged(history: int, tmp_path: Path) -> None:
    file = tmp_path / "n.xml"
    file.write_text(copied(history).to_xml(), encoding="utf-8")
    answer = bounds.bound(bounds.read(file), "tfa", grouping=True)
    told = {target.target: target for target in answer.flows[0].targets}
    # The tag of 6 B makes a frame of 550 B on the wire, and both copies share the last line only.
    line = Fraction(8 * (14 + 500 + 4 + 20 + 6), 10**9)
    one, other = (Fraction(told[f"z, path {path}"].delay_exact or 0) for path in (1, 2))
    assert told["z"].delay == told["z, path 2"].delay
    assert 3 * line + Fraction(6, 10**6) < one < 6 * line + Fraction(6, 10**6)
    assert 4 * line + Fraction(66, 10**6) < other < 7 * line + Fraction(66, 10**6)
    assert told["z"].least == told["z, path 1"].least
    (note,) = [note for note in answer.notes if note.startswith("copies of flow 1 come up to")]
    assert "which is 2 sequence numbers later" in note
    assert ("does not hold so many" in note) is (history == 2)


REFUSED = {
    "shaped classes that are preemptable": "its port 1 has shaped classes that are preemptable",
    "express classes below preemptable ones": "its port 1 has express classes below preemptable ones",
    "cyclic queuing around a class": "its port 1 has a class between those of cyclic queuing",
    "holds": "its port 1 has gates that hold the MAC",
    "several lists": "its port 1 has gate schedules that take over one another",
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_combinations_without_a_curve_are_refused_by_port_limit_and_cure(what: str, tmp_path: Path) -> None:
    low, high = TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7")
    halves = [GateEntry("250us", open="1"), GateEntry("250us", open="0 1")]
    held = [GateEntry("250us", open="1", mac="hold"), GateEntry("250us", open="0 1", mac="release")]
    tsn = {
        "shaped classes that are preemptable": SwitchTsn(
            classes=[replace(low, preemptable="on", shaper=Cbs("20Mbit/s")), high]
        ),
        "express classes below preemptable ones": SwitchTsn(classes=[low, replace(high, preemptable="on")]),
        "cyclic queuing around a class": SwitchTsn(
            classes=[TrafficClass(0, "0 1 2 3"), TrafficClass(1, "4 5 6"), TrafficClass(2, "7")],
            cyclic=CyclicQueuing("0 2", "500us"),
        ),
        "holds": SwitchTsn(classes=[replace(low, preemptable="on"), high], schedules=[GateSchedule(held)]),
        "several lists": SwitchTsn(
            classes=[low, high],
            schedules=[GateSchedule(halves), GateSchedule(halves, base_time="5ms")],
        ),
    }[what]
    with pytest.raises(TestError) as caught:
        bound(network(tsn, {1: (7, 500, "1ms")}), tmp_path)
    (one,) = caught.value.diagnostics
    assert REFUSED[what] in one.message
    assert one.limit
    assert one.cure


def test_what_no_flow_takes_is_not_refused(tmp_path: Path) -> None:
    """A port that all flows come in by, and none leaves by, may have what it likes."""
    tsn = [
        SwitchTsn(ports="1", classes=[BELOW, ABOVE]),
        SwitchTsn(ports="2", classes=[BELOW, replace(ABOVE, preemptable="on")]),
    ]
    test = Test("unused", host="ideal").switch("sw", tsn=tsn, delay="0ns")
    test.end_system("to").link("sw:1", "to", rate="100Mbit/s")
    test.end_system("h1").link("h1", "sw:2", rate="100Mbit/s")
    test.flow(1, protocol="raw", from_="h1", to="to", vlan=7, priority=7)
    test.send(1, period="1ms", payload="500B").receive(1)
    assert bound(test.timing(duration="20ms"), tmp_path)["1"] is not None


def test_shapers_do_not_go_with_any_order(tmp_path: Path) -> None:
    tsn = SwitchTsn(classes=[TrafficClass(0, "0 1 2 3 4 5 6"), TrafficClass(1, "7", shaper=Cbs("20Mbit/s"))])
    file = tmp_path / "n.xml"
    file.write_text(network(tsn, {1: (7, 500, "1ms")}).to_xml(), encoding="utf-8")
    source = bounds.read(file)
    for method in ("tfa", "sfa", "pmoo"):
        with pytest.raises(TestError, match="holds frames back while the line is free"):
            bounds.bound(source, method, multiplexing="arbitrary")


def converged(
    tsn: SwitchTsn, *, scheduled: bool = False, integration: str | None = None, priority: int = 4
) -> Test:
    """A virtual link of 100 B from `a`, best effort of 1400 B from `b`, perhaps a window of 100 us, to `z`."""
    test = Test("converged", host="ideal").switch(
        "s", kind="mixed-criticality", tsn=[tsn], buffer="1MiB", delay="0ns", integration=integration
    )
    for host in ("a", "b", "t", "z"):
        test.end_system(host).link(host, "s", rate="100Mbit/s")
    test.flow(1, protocol="rc", from_="a", to="z", bag="2ms", lmax="200B", priority=priority)
    test.send(1, period="4ms", payload="100B").receive(1)
    test.flow(2, protocol="be", from_="b", to="z", vlan=7, priority=0)
    test.send(2, period="4ms", payload="1400B").receive(2)
    if scheduled:
        test.flow(9, protocol="tt", from_="t", to="z", period="2ms", window="100us")
        test.send(9, period="2ms", payload="20B", cycle_offset="dispatch").receive(9)
    return test.timing(duration="20ms")


LINK = 8 * (100 + 47 + 20)
"""Bits on the wire of a virtual link with 100 B: addresses, type, IPv4, UDP, sequence number, FCS, preamble, gap."""
BULK = 8 * (1400 + 28 + 18 + 4 + 20)
PERIOD = Fraction(4, 1000)


def test_virtual_links_go_before_all_classes_or_wait_in_one(tmp_path: Path) -> None:
    delay, burst, rate = at_host(LINK, PERIOD)
    other, bulk, _ = at_host(BULK, PERIOD)
    told = bound(converged(SwitchTsn(classes=[BELOW, ABOVE])), tmp_path)
    assert told == {"1": delay + (BULK + burst) / LINE, "2": other + (burst + bulk) / (LINE - rate)}
    # In the class of the bulk it is served as it comes.
    told = bound(converged(SwitchTsn(classes=[replace(BELOW, virtual_links="low high"), ABOVE])), tmp_path)
    assert told == {"1": delay + (burst + bulk) / LINE, "2": other + (burst + bulk) / LINE}
    # Those of low priority alone in the shaped one.
    takes = replace(ABOVE, virtual_links="low", shaper=Cbs("10Mbit/s"))
    told = bound(converged(SwitchTsn(classes=[BELOW, takes]), priority=0), tmp_path)
    assert told["1"] == delay + Fraction(BULK, LINE) + burst / 10_000_000
    told = bound(converged(SwitchTsn(classes=[BELOW, takes]), priority=7), tmp_path)
    assert told["1"] == delay + (BULK + burst) / LINE


@pytest.mark.parametrize("integration", ["timely-block", "shuffling"])
def test_a_window_is_a_strict_class_to_a_shaper(integration: str, tmp_path: Path) -> None:
    takes = replace(ABOVE, virtual_links="low high", shaper=Cbs("10Mbit/s"))
    tsn = SwitchTsn(classes=[BELOW, takes])
    told = bound(converged(tsn, scheduled=True, integration=integration), tmp_path)
    delay, burst, _ = at_host(LINK, PERIOD)
    # The window, and before it a frame that does not fit.
    window = LINE * Fraction(100, 10**6) + (LINK if integration == "timely-block" else 0)
    rate = window / Fraction(2, 1000)
    waits = (BULK + window * (1 - rate / LINE)) / (LINE - rate)
    assert told["1"] == delay + waits + burst / 10_000_000


def test_a_window_is_taken_from_what_gates_leave(tmp_path: Path) -> None:
    tsn = SwitchTsn(
        classes=[BELOW, replace(ABOVE, virtual_links="low high")],
        schedules=[GateSchedule([GateEntry("200us", open="1"), GateEntry("300us", open="0")])],
    )
    told = bound(converged(tsn, scheduled=True), tmp_path)
    delay, burst, _ = at_host(LINK, PERIOD)
    window = LINE * Fraction(100, 10**6) + LINK
    shut = LINE * Fraction(300, 10**6) + LINK
    taken = [(window, Fraction(2, 1000)), (shut, Fraction(500, 10**6))]
    rate = sum(bits / period for bits, period in taken)
    at_once = sum(bits * (1 - bits / period / LINE) for bits, period in taken)
    assert told["1"] == delay + (at_once + burst) / (LINE - rate)


def test_shapers_beside_windows_that_cut_frames_off_are_refused(tmp_path: Path) -> None:
    tsn = SwitchTsn(classes=[BELOW, replace(ABOVE, shaper=Cbs("10Mbit/s"))])
    with pytest.raises(
        TestError, match="its port 4 has credit-based shapers beside windows that cut"
    ) as caught:
        bound(converged(tsn, scheduled=True, integration="preemption"), tmp_path)
    assert 'write integration="timely-block" or "shuffling"' in str(caught.value)


def test_the_example_of_all_classes_on_one_port_is_bounded() -> None:
    answer = bounds.bound(bounds.read(EXAMPLES / "converged.xml"), "tfa")
    told = {flow.flow: flow.targets[0].delay for flow in answer.flows}
    # Bulk fills the port: of it alone nothing is promised.
    assert {flow for flow, delay in told.items() if delay is None} == {"40"}
    # Two lines of 22.56 us and the 4 us of the switch.
    assert told["10"] == pytest.approx(49.12e-6, abs=1e-12)
