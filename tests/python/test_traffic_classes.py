"""Traffic classes of switches and hosts through whole simulated runs, against closed forms and bounds from here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simulation import GAP, MS, PREAMBLE, US, Simulated, bits, frame, occupation, sending, simulate, written
from wiregauge.config import TestError, load
from wiregauge.runner.benches.capabilities import beyond_namespaces, beyond_simulator

RATE = 100_000_000
TWO = (
    '<traffic-class number="0" priorities="0 1 2 3 4 5 6"{0}/>'
    '<traffic-class number="1" priorities="7"{1}>{2}</traffic-class>'
)


def classes(inside: str = "", *, low: str = "", high: str = "") -> str:
    """Everything in class 0, priority 7 in class 1."""
    return TWO.format(low, high, inside)


def switch_tsn(inside: str = "", after: str = "", *, low: str = "", attributes: str = "") -> str:
    return f"<switch-tsn{attributes}>{classes(inside, low=low)}{after}</switch-tsn>"


TWENTY = '<cbs idle-slope="20Mbit/s"/>'
GIVES_WAY = ' preemptable="on"'


def switched(
    tsn: str, tasks: str, *, flows: str = "", talker: str = "", more: str = "", delay: str = "0s"
) -> str:
    """Two senders and a receiver at a switch of 100 Mbit/s; a third sender floods at 1 Gbit/s."""
    ends = f'<end-system name="a">{talker}</end-system>'
    ends += "".join(f'<end-system name="{name}"/>' for name in "bcd")
    network = (
        f'{ends}<switch name="s" delay="{delay}">{tsn}</switch>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/>'
        '<link between="c s" rate="1Gbit/s"/><link between="s d" rate="100Mbit/s"/>'
    )
    if not flows:
        flows = '<flow id="1" protocol="raw" from="a" to="d" vlan="1" priority="7"/>'
        if 'flow="2"' in tasks:
            flows += '<flow id="2" protocol="raw" from="c" to="d" vlan="1"/>'
    return written(network, flows, tasks, more=more)


def sends(flow: int, period: str, payload: int, count: int, **more: str) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in more.items())
    sent = f'<send flow="{flow}" period="{period}" payload="{payload}B" count="{count}"{attributes}/>'
    return f'{sent}<receive flow="{flow}"/>'


def waits(run: Simulated, flow: int) -> list[int]:
    """From the last bit in to the first bit out of the switch, ps."""
    into, out = run.times("switch-in", flow), run.times("switch-out", flow)
    return [out[key] - into[key] for key in sorted(out)]


def test_a_shaped_burst_leaves_at_its_idle_slope_and_no_flood_holds_it_up_for_long(tmp_path: Path) -> None:
    """Ten frames at once, 20 % of the line: each takes five times as long as on the line alone, whatever floods the
    class below; the first waits for the longest frame at most, and gets that back by its credit (802.1Q, L.3)."""
    shaped = switch_tsn(TWENTY)
    tasks = sends(1, "20ms", 500, 200, burst="10")
    quiet = simulate(switched(shaped, tasks), tmp_path / "quiet")
    own = occupation(frame(500, tagged=True), RATE)
    out = sorted(quiet.times("switch-out", 1).values())
    for burst in range(20):
        begins = np.diff(out[10 * burst : 10 * burst + 10])
        assert (begins == 5 * own).all()
    flood = sends(2, "130us", 1500, 4000)
    full = simulate(switched(shaped, tasks + flood), tmp_path / "full")
    loaded = sorted(full.times("switch-out", 1).values())
    longest = occupation(frame(1500, tagged=True), RATE)
    # Each is at most a longest frame later than without the flood; credit lets none fall behind further.
    late = np.array(loaded) - np.array(out)
    assert 0 < late.max() <= longest
    assert late.min() >= 0


def test_what_is_shaped_at_the_host_leaves_it_shaped(tmp_path: Path) -> None:
    """<host-tsn> of a sender in the simulator: the burst leaves the host at the idle slope."""
    host = f'<host-tsn channels="2">{classes(TWENTY)}</host-tsn>'
    run = simulate(switched("", sends(1, "20ms", 500, 50, burst="10"), talker=host), tmp_path)
    out = sorted(run.times("wire-send", 1).values())
    assert (np.diff(out[:10]) == 5 * occupation(frame(500, tagged=True), RATE)).all()


def test_gates_isolate_a_flow_from_any_load(tmp_path: Path) -> None:
    """The same latency to the picosecond with and without a flood, when the frame comes into its open gate."""
    entries = '<gate-entry open="1" for="100us"/><gate-entry open="0" for="400us"/>'
    gates = f'<gate-schedule base-time="0s">{entries}</gate-schedule>'
    tsn = switch_tsn(after=gates)
    tasks = sends(1, "500us", 200, 400, offset="10us")
    quiet = simulate(switched(tsn, tasks), tmp_path / "quiet")
    full = simulate(switched(tsn, tasks + sends(2, "170us", 1500, 1100)), tmp_path / "full")
    length = sending(frame(200, tagged=True), RATE)
    assert set(quiet.latencies(1)) == {2 * length} == set(full.latencies(1))
    # The flood leaves in its gate only, and is through before it closes.
    through = sending(frame(1500, tagged=True), RATE)
    phases = np.array(list(full.times("switch-out", 2).values())) % (500 * US)
    assert phases.min() >= 100 * US
    assert phases.max() + through <= 500 * US
    # Outside its gate the message waits for the next opening, exactly.
    late = simulate(switched(tsn, sends(1, "500us", 200, 100, offset="150us")), tmp_path / "late")
    assert set(waits(late, 1)) == {350 * US - length}


def test_gates_follow_the_clock_of_their_switch_and_lists_take_over(tmp_path: Path) -> None:
    """A clock of 100 ppm opens a gate 0.1 us earlier each millisecond; the second list waits for its base time."""
    first = '<gate-entry open="0" for="600us"/><gate-entry open="1" for="400us"/>'
    second = '<gate-entry open="1" for="400us"/><gate-entry open="0" for="600us"/>'
    lists = (
        f'<gate-schedule cycle-extension="500us">{first}</gate-schedule>'
        f'<gate-schedule base-time="50300us">{second}</gate-schedule>'
    )
    # Sent so that it is there long before the gate opens.
    tasks = sends(1, "1ms", 100, 100, offset="100us")
    drifting = simulate(
        switched(f'<clock drift="100ppm"/><switch-tsn>{classes()}{lists}</switch-tsn>', tasks), tmp_path
    )
    came = drifting.times("application-receive", 1)
    length = sending(frame(100, tagged=True), RATE)
    # Of an end system with a true clock; the switch's own would say that all is well.
    out = np.array([came[key] - length for key in sorted(came)])
    opens = np.array([(k * 1000 + 600) * US for k in range(50)])
    # In true time: earlier by a part in 10001, rounded up to the picosecond.
    assert (out[:50] == -(-opens * 10_000 // 10_001)).all()
    # The cycle that would begin at 50 ms is 300 us from the change, less than the extension: the last entry lasts.
    assert out[50] == (50_000 + 100) * US + length
    # From 50.3 ms on class 1 has the first 400 us of each ms after that.
    expected = -(-np.array([(51_300 + 1000 * k) * US for k in range(49)]) * 10_000 // 10_001)
    assert (out[51:] == expected).all()


@pytest.mark.parametrize(("least", "longest"), [("64B", 143), ("128B", 207), ("256B", 335)])
def test_an_express_frame_waits_no_longer_than_the_fragment(tmp_path: Path, least: str, longest: int) -> None:
    """8 + 123 + 12 bytes with fragments of 64 (802.3, clause 99): 59 bytes more than the fragment are not cut."""
    tsn = switch_tsn(low=GIVES_WAY, attributes=f' shortest-fragment="{least}"')
    flows = '<flow id="1" protocol="raw" from="a" to="d" priority="7"/>' + "".join(
        f'<flow id="{k}" protocol="raw" from="c" to="d"/>' for k in (2, 3, 4)
    )
    urgent = sends(1, "1003us", 46, 900)
    # Frames that are just too short to be cut, longest ones, and some between.
    bulk = sends(2, "307us", int(least[:-1]) + 59 - 18, 3000)
    bulk += sends(3, "290us", 1500, 3000) + sends(4, "1013us", 700, 900)
    run = simulate(switched(tsn, urgent + bulk, flows=flows), tmp_path)
    worst = max(waits(run, 1))
    assert worst <= bits(longest, RATE)
    assert worst > bits(longest, RATE) * 0.9, "nothing came near the bound: this shows little"
    # Nothing is lost or doubled by it, and nothing overtakes within a flow.
    for flow, count in ((1, 900), (2, 3000), (3, 3000), (4, 900)):
        received = run.times("application-receive", flow)
        assert len(received) == count
        times = [received[key] for key in sorted(received)]
        assert times == sorted(times)


def test_a_preempted_frame_is_later_by_the_express_one_and_24_bytes(tmp_path: Path) -> None:
    tsn = switch_tsn(low=GIVES_WAY)
    flows = '<flow id="1" protocol="raw" from="a" to="d" priority="7"/><flow id="2" protocol="raw" from="b" to="d"/>'
    # The long frame begins to leave at 122.08 us; the short one is there at 150 us.
    long = sending(frame(1500), RATE)
    short = frame(100, tagged=True)
    offset = 150 * US - sending(short, RATE)
    tasks = sends(2, "1ms", 1500, 50) + sends(1, "1ms", 100, 50, offset=f"{offset // 1000}ns")
    run = simulate(switched(tsn, tasks, flows=flows), tmp_path)
    assert set(run.latencies(2)) == {2 * long + occupation(short, RATE) + bits(24, RATE)}
    # What is sent of it at 150 us, to the next byte, its check of 4 bytes and the gap.
    gone = -(-(150 * US - long) // bits(1, RATE)) * bits(1, RATE)
    assert set(waits(run, 1)) == {long + gone + bits(4 + GAP, RATE) - 150 * US}


def test_links_that_lose_delay_and_double_fragmented_frames_account_for_each(tmp_path: Path) -> None:
    tsn = switch_tsn(low=GIVES_WAY)
    tasks = sends(1, "97us", 100, 9000) + sends(2, "151us", 1500, 6000)
    faults = (
        '<faults><loss link="s d" share="5%" sent-by="s"/>'
        '<delay link="s d" share="5%" by="300us" sent-by="s"/></faults>'
    )
    run = simulate(switched(tsn, tasks, more=faults), tmp_path)
    for flow, count in ((1, 9000), (2, 6000)):
        lost = run.truth.filter((run.truth["kind"] == "link-lost") & (run.truth["flow"] == flow)).height
        assert 0.04 * count < lost < 0.06 * count
        assert len(run.times("application-receive", flow)) == count - lost


def test_asynchronous_shaping_spreads_a_burst_by_its_bucket(tmp_path: Path) -> None:
    """A bucket of two frames at 10 Mbit/s: two leave at once, then one each 10 times its time on the line."""
    length = frame(500, tagged=True)
    wire = length + PREAMBLE + GAP
    shaper = f'<ats><scheduler flow="1" rate="10Mbit/s" burst="{2 * wire}B"/></ats>'
    run = simulate(
        switched(switch_tsn(shaper), sends(1, "50ms", 500, 100, burst="10")),
        tmp_path,
    )
    own = occupation(length, RATE)
    out = sorted(run.times("switch-out", 1).values())
    into = sorted(run.times("switch-in", 1).values())
    for burst in range(10):
        left = np.array(out[10 * burst : 10 * burst + 10]) - into[10 * burst]
        # The first finds a full bucket. The bucket is empty once two have gone, and has filled a little meanwhile.
        assert left[0] == 0
        eligible = [max(k * own, (k - 1) * 10 * own) for k in range(1, 10)]
        assert (left[1:] == eligible).all()
    short = shaper.replace("<ats>", '<ats longest-residence="1ms">')
    run = simulate(
        switched(switch_tsn(short), sends(1, "50ms", 500, 100, burst="10")),
        tmp_path / "dropped",
    )
    assert run.dropped("policed", 1) > 0
    assert max(waits(run, 1)) <= 1 * MS


def test_cyclic_queuing_bounds_the_latency_of_each_hop_by_two_cycles(tmp_path: Path) -> None:
    cyclic = '<traffic-class number="0" priorities="0 1 2 3 4 5"/><traffic-class number="1" priorities="6"/>'
    cyclic += '<traffic-class number="2" priorities="7"/><cyclic-queuing classes="1 2" cycle="250us"/>'
    tasks = sends(1, "333us", 100, 1500) + sends(2, "140us", 1500, 3500)
    run = simulate(switched(f"<switch-tsn>{cyclic}</switch-tsn>", tasks), tmp_path)
    into, out = run.times("switch-in", 1), run.times("switch-out", 1)
    cycles = [out[key] // (250 * US) - into[key] // (250 * US) for key in into]
    assert set(cycles) == {1}, "each leaves in the cycle after the one it came in"


def test_frames_longer_than_their_class_allows_are_dropped_and_the_test_says_so_before(
    tmp_path: Path,
) -> None:
    tsn = switch_tsn(low=' longest-frame="1000B"')
    text = switched(tsn, sends(1, "1ms", 100, 50) + sends(2, "1ms", 1500, 50))
    run = simulate(text, tmp_path)
    assert run.dropped("filtered", 2) == 50
    assert len(run.times("application-receive", 1)) == 50
    file = tmp_path / "long.xml"
    file.write_text(text)
    (warning,) = load(file).campaign.warnings
    assert "1522 B, 1000 B may enter" in warning


def test_benches_say_what_they_have_no_model_of(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(switched(switch_tsn(), sends(1, "1ms", 100, 5) + sends(2, "1ms", 100, 5)))
    assert any("<switch-tsn>" in line for line in beyond_namespaces(load(file).campaign, "kernel"))
    assert beyond_simulator(load(file).campaign) == []
    host = f'<host-tsn>{classes()}<classify flow="1" priority="7"/></host-tsn>'
    flows = '<flow id="1" protocol="raw" from="a" to="d"/>'
    file.write_text(switched("", sends(1, "1ms", 100, 5), talker=host, flows=flows))
    (refusal,) = beyond_simulator(load(file).campaign)
    assert "<classify>" in refusal


def test_classes_that_no_flow_is_in_may_stay_closed(tmp_path: Path) -> None:
    """A gate control list as people write it names the classes in use; a class in use must open."""
    file = Path(__file__).resolve().parents[1] / "faults" / "unused-classes-never-open.xml"
    (warning,) = load(file).warnings
    assert warning == (
        'classes 0, 1, 2, 3 of "sw" are never open: no flow is in them, and other frames of theirs would never leave'
    )
    text = file.read_text(encoding="utf-8")
    run = simulate(text, tmp_path / "run")
    assert {flow: len(run.times("switch-out", flow)) for flow in (4, 5, 6)} == {4: 100, 5: 100, 6: 100}
    for flow in (6, 5, 4):
        closed = tmp_path / f"{flow}.xml"
        closed.write_text(text.replace(f'open="{flow} 7"', 'open="7"'), encoding="utf-8")
        with pytest.raises(TestError) as refused:
            load(closed)
        assert f"class {flow} is never open: the frames of flow {flow} would never leave" in str(
            refused.value
        )


def test_a_host_may_keep_classes_closed_that_it_sends_nothing_in(tmp_path: Path) -> None:
    file = tmp_path / "host.xml"
    file.write_text(
        """<test xmlns="urn:wiregauge:test:2" name="host" bench="sim"><network>
  <end-system name="a"><host-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6"/>
    <traffic-class number="1" priorities="7"/>
    <gate-schedule><gate-entry open="1" for="1ms"/></gate-schedule></host-tsn></end-system>
  <end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
 <flows><flow id="1" protocol="raw" from="a" to="b" vlan="1" priority="7"/></flows>
 <tasks><send flow="1" period="1ms" payload="64B" count="10"/><receive flow="1"/></tasks></test>""",
        encoding="utf-8",
    )
    (warning,) = load(file).warnings
    assert warning.startswith('class 0 of "a" is never open: no flow is in it')
