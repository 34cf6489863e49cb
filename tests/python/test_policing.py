"""Stream filters, gates and meters of switches through whole simulated runs, against oracles written here."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from simulation import MS, US, Simulated, frame, occupation, simulate, trial, written
from wiregauge.config import TestError, load
from wiregauge.runner.benches.capabilities import beyond_namespaces

RATE = 100_000_000
DROPS = ("oversize-sdu", "stream-blocked", "stream-gate", "interval-octets", "red-frame")


def filtered(inside: str, tasks: str, *, classes: str = "", second: str = "", more: str = "") -> str:
    """Two senders and a receiver at a switch of 100 Mbit/s with stream filters, a second switch before the receiver."""
    network = (
        '<end-system name="a"/><end-system name="b"/><end-system name="d"/>'
        f'<switch name="s" delay="0s" priorities="strict"><switch-tsn>{classes}{inside}</switch-tsn></switch>'
        f'<switch name="t" delay="0s" priorities="strict">{second}</switch>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/>'
        '<link between="s t" rate="100Mbit/s"/><link between="t d" rate="100Mbit/s"/>'
    )
    flows = '<flow id="1" protocol="raw" from="a" to="d" vlan="1" priority="3"/>'
    if 'flow="2"' in tasks:
        flows += '<flow id="2" protocol="raw" from="b" to="d" vlan="2" priority="5"/>'
    return written(network, flows, tasks, more=more)


def sends(flow: int, period: str, payload: int, count: int, **more: str) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in more.items())
    sent = f'<send flow="{flow}" period="{period}" payload="{payload}B" count="{count}"{attributes}/>'
    return f'{sent}<receive flow="{flow}"/>'


def passed(run: Simulated, flow: int) -> set[int]:
    return set(run.times("switch-out", flow, "s"))


def counters(run: Simulated, flow: int) -> dict[str, int]:
    (own,) = (one for one in run.report["stream_filters"] if one["flow"] == flow)
    return {name: count for name, count in own.items() if name not in ("node", "port", "flow")}


def bucket(arrivals: dict[int, int], length: int, rate: int, burst: int) -> set[int]:
    """Which messages a bucket of `burst` bytes and `rate` bit/s has room for, in rationals."""
    tokens, last, green = Fraction(burst), None, set()
    for message, at in sorted(arrivals.items(), key=lambda one: one[1]):
        if last is not None:
            tokens = min(Fraction(burst), tokens + Fraction(at - last, 10**12) * rate / 8)
        last = at
        if tokens >= length:
            tokens -= length
            green.add(message)
    return green


@pytest.mark.parametrize(("rate", "burst"), [(10_000_000, 2048), (3_333_000, 1518), (1_000, 16_384)])
def test_a_meter_passes_what_its_bucket_has_room_for(tmp_path: Path, rate: int, burst: int) -> None:
    rule = f'<ingress flow="1"><police rate="{rate}bit/s" burst="{burst}B"/></ingress>'
    run = simulate(filtered(rule, sends(1, "10ms", 900, 400, burst="20")), tmp_path)
    into = run.times("switch-in", 1, "s")
    assert len(into) == 400
    green = bucket(into, frame(900, tagged=True), rate, burst)
    assert 0 < len(green) < 400
    assert passed(run, 1) == green
    assert run.dropped("red-frame", 1) == 400 - len(green)
    counted = counters(run, 1)
    assert (counted["matching"], counted["passed"], counted["red"]) == (400, len(green), 400 - len(green))
    # What passed arrives: nothing else was lost on the way.
    assert set(run.times("application-receive", 1)) == green


def test_excess_frames_are_yellow_and_an_aware_meter_behind_never_calls_them_green(tmp_path: Path) -> None:
    """The first meter has room for one green and two yellow frames of each burst of four; the second, which
    would have room for all, has no excess bucket: none of the yellow ones passes it."""
    length = frame(400, tagged=True)
    first = (
        f'<ingress flow="1"><police rate="1Mbit/s" burst="{length}B" excess-rate="1Mbit/s"'
        f' excess-burst="{2 * length}B"/></ingress>'
    )
    aware = '<switch-tsn><ingress flow="1"><police rate="50Mbit/s" burst="16KiB"{}/></ingress></switch-tsn>'
    tasks = sends(1, "50ms", 400, 40, burst="4")
    blind = simulate(filtered(first, tasks, second=aware.format("")), tmp_path / "blind")
    assert [one["yellow"] for one in blind.report["stream_filters"]] == [20, 0]
    assert (blind.dropped("red-frame", 1), len(blind.latencies(1))) == (10, 30)
    run = simulate(filtered(first, tasks, second=aware.format(' colour-mode="aware"')), tmp_path / "aware")
    assert (run.dropped("red-frame", 1), len(run.latencies(1))) == (30, 10)


def test_a_stream_gate_passes_frames_that_come_while_it_is_open(tmp_path: Path) -> None:
    """A period that is no divisor of the cycle meets every phase; what counts is when the last bit is in."""
    entries = (
        '<stream-gate-entry state="closed" for="150us"/><stream-gate-entry state="open" for="100us"/>'
        '<stream-gate-entry state="closed" for="250us"/>'
    )
    rule = f'<ingress flow="1"><stream-gate base-time="30us">{entries}</stream-gate></ingress>'
    run = simulate(filtered(rule, sends(1, "513us", 100, 500)), tmp_path)
    into = run.times("switch-in", 1, "s")
    within = {key for key, at in into.items() if 150 * US <= (at - 30 * US) % (500 * US) < 250 * US}
    assert 50 < len(within) < 450
    assert passed(run, 1) == within
    assert run.dropped("stream-gate", 1) == 500 - len(within)
    # Closed for good by the first frame that came at another time.
    closing = rule.replace("<stream-gate ", '<stream-gate close-on-invalid="on" ')
    shut = simulate(filtered(closing, sends(1, "513us", 100, 500)), tmp_path / "closing")
    first = min(set(into) - within)
    assert passed(shut, 1) == {key for key in within if key < first}


def test_octets_of_an_interval_are_counted_anew_in_each(tmp_path: Path) -> None:
    """Ten frames with 150 octets of data each come in one interval that has room for four."""
    gate = '<stream-gate><stream-gate-entry state="open" for="10ms" max-octets="{}B"/></stream-gate>'
    rule = f'<ingress flow="1">{gate.format(4 * 150 + 149)}</ingress>'
    run = simulate(filtered(rule, sends(1, "10ms", 150, 200, burst="10")), tmp_path)
    assert passed(run, 1) == {10 * burst + at for burst in range(20) for at in range(4)}
    assert run.dropped("interval-octets", 1) == 200 - 80
    assert counters(run, 1)["not_passing"] == 120


def test_streams_of_two_ports_share_a_meter(tmp_path: Path) -> None:
    """What the bucket has room for is of the frames of both, in the order in which their last bits come in."""
    both = sends(1, "10ms", 900, 200, burst="10") + sends(2, "7ms", 400, 250, burst="5")
    meter = '<ingress flow="1"><police rate="5Mbit/s" burst="4096B"/></ingress><ingress flow="2" {}/>'
    run = simulate(filtered(meter.format('meter-of="1"'), both), tmp_path)
    tokens, last = Fraction(4096), Fraction(0)
    green: dict[int, set[int]] = {1: set(), 2: set()}
    lengths = {1: frame(900, tagged=True), 2: frame(400, tagged=True)}
    came = [(at, flow, key) for flow in lengths for key, at in run.times("switch-in", flow, "s").items()]
    assert len({at for at, _, _ in came}) == len(came) == 450
    for at, flow, key in sorted(came):
        tokens = min(Fraction(4096), tokens + (at - last) * Fraction(5_000_000, 8 * 10**12))
        last = Fraction(at)
        if tokens >= lengths[flow]:
            tokens -= lengths[flow]
            green[flow].add(key)
    for flow, fine in green.items():
        assert 0 < len(fine) < len(run.times("switch-in", flow, "s"))
        assert passed(run, flow) == fine
        assert counters(run, flow)["passed"] == len(fine)
    # With a bucket each, the second stream takes nothing from the first.
    own = simulate(filtered(meter.format('max-sdu="1500B"'), both), tmp_path / "own")
    assert len(passed(own, 1)) > len(green[1])


def test_streams_share_the_octets_of_a_gate(tmp_path: Path) -> None:
    """Each interval has room for five data units of 150 B: those of the first stream come first, and take four."""
    gate = '<stream-gate><stream-gate-entry state="open" for="10ms" max-octets="750B"/></stream-gate>'
    rule = f'<ingress flow="2" gate-of="1"/><ingress flow="1">{gate}</ingress>'
    both = sends(1, "10ms", 150, 100, burst="4") + sends(2, "10ms", 150, 100, burst="4", offset="5ms")
    run = simulate(filtered(rule, both), tmp_path)
    assert passed(run, 1) == set(range(100))
    assert passed(run, 2) == set(range(0, 100, 4))
    assert counters(run, 2)["not_passing"] == 75


def test_a_longer_service_data_unit_is_dropped_and_may_block_its_stream(tmp_path: Path) -> None:
    """The service data unit of a tagged raw frame is the payload."""
    tasks = sends(1, "1ms", 200, 20)
    fits = simulate(filtered('<ingress flow="1" max-sdu="200B"/>', tasks), tmp_path / "fits")
    assert len(passed(fits, 1)) == 20
    long = simulate(filtered('<ingress flow="1" max-sdu="199B"/>', tasks), tmp_path / "long")
    assert long.dropped("oversize-sdu", 1) == 20
    blocks = simulate(filtered('<ingress flow="1" max-sdu="199B" block-oversize="on"/>', tasks), tmp_path)
    assert (blocks.dropped("oversize-sdu", 1), blocks.dropped("stream-blocked", 1)) == (1, 19)
    assert counters(blocks, 1)["not_passing_sdu"] == 20


def test_an_internal_priority_holds_within_the_switch_alone(tmp_path: Path) -> None:
    """A frame of flow 1, priority 3, meets a burst of priority 5 at each of two switches. Where its gate has it queued
    as 7 it waits for no more than the frame that is on the wire; in the second switch it is of priority 3 again."""
    network = (
        "".join(f'<end-system name="{name}"/>' for name in "abcd")
        + '<switch name="s" delay="0s" priorities="strict"><switch-tsn><ingress flow="1"><stream-gate>'
        '<stream-gate-entry state="open" for="1ms"{}/></stream-gate></ingress></switch-tsn></switch>'
        '<switch name="t" delay="0s" priorities="strict"/>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="1Gbit/s"/>'
        '<link between="s t" rate="100Mbit/s"/><link between="c t" rate="1Gbit/s"/>'
        '<link between="t d" rate="100Mbit/s"/>'
    )
    flows = "".join(
        f'<flow id="{flow}" protocol="raw" from="{sender}" to="d" vlan="{flow}" priority="{priority}"/>'
        for flow, sender, priority in ((1, "a", 3), (2, "b", 5), (3, "c", 5))
    )
    tasks = sends(1, "10ms", 200, 20, offset="100us") + sends(2, "10ms", 1500, 80, burst="4")
    tasks += sends(3, "10ms", 1500, 160, burst="8")
    waits = {}
    for name, own in (("own", ""), ("raised", ' priority="7"')):
        run = simulate(written(network.format(own), flows, tasks), tmp_path / name)
        for switch in "st":
            into, out = run.times("switch-in", 1, switch), run.times("switch-out", 1, switch)
            waits[name, switch] = [out[key] - at for key, at in into.items()]
            assert len(waits[name, switch]) == 20
    longest = occupation(frame(1500, tagged=True), RATE)
    assert min(waits["own", "s"]) > 2 * longest
    assert 0 < max(waits["raised", "s"]) <= longest
    assert min(waits["raised", "t"]) > longest


def test_a_stream_that_breaks_its_promise_harms_nobody_but_itself(tmp_path: Path) -> None:
    """Flow 2 floods with 90 % of the line; with its meter, flow 1 waits no longer than for what the meter passes."""
    rule = '<ingress flow="2"><police rate="1Mbit/s" burst="1522B"/></ingress>'
    own = sends(1, "1ms", 200, 200)
    flood = sends(2, "130us", 1500, 1500)
    quiet = simulate(filtered('<ingress flow="1" max-sdu="200B"/>', own), tmp_path / "quiet")
    held = simulate(filtered(rule, own + flood), tmp_path / "held")
    both = zip(held.latencies(1), quiet.latencies(1), strict=True)
    late = [with_flood - without for with_flood, without in both]
    longest = occupation(frame(1500, tagged=True), RATE)
    # A frame of the flood passes each 12 ms at most: one in twelve frames can meet one, at either switch.
    assert max(late) <= 2 * longest
    assert sum(delay > 0 for delay in late) <= 2 * (200 * MS // (12 * MS) + 1)
    assert held.dropped("red-frame", 2) > 1400


def test_policing_is_a_measure_with_limits(tmp_path: Path) -> None:
    rule = '<ingress flow="1" max-sdu="199B"/>'
    more = (
        '<limits><limit flow="1" measure="policing.not_passing_sdu" at-most="{}"/>'
        '<limit flow="1" measure="policing.matching" at-least="20"/></limits>'
    )
    file = tmp_path / "t.xml"
    for most, met in ((19, False), (20, True)):
        file.write_text(filtered(rule, sends(1, "1ms", 200, 20), more=more.format(most)))
        judgement = trial(file, tmp_path / str(most))
        result, matching = judgement.runs[0].limits
        assert (result.holds, result.observed, matching.holds, matching.observed) == (met, 20, True, 20)


def test_a_restart_opens_what_was_closed_for_good(tmp_path: Path) -> None:
    """The switch is down from 10 ms to 12 ms: the stream that the first frame blocked is blocked anew by the next."""
    rule = '<ingress flow="1" max-sdu="199B" block-oversize="on"/>'
    restart = '<faults><restart switch="s" from="10ms" until="12ms"/></faults>'
    run = simulate(filtered(rule, sends(1, "1ms", 200, 20), more=restart), tmp_path)
    assert run.dropped("oversize-sdu", 1) == 2


def test_namespaces_refuse_stream_filters(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(filtered('<ingress flow="1" max-sdu="199B"/>', sends(1, "1ms", 100, 5)))
    assert any("<switch-tsn>" in line for line in beyond_namespaces(load(file).campaign, "kernel"))


def datagrams(rule: str, flows: str, tasks: str, *, more: str = "") -> str:
    """Two senders and two receivers at a switch with a filter."""
    network = (
        '<end-system name="a"/><end-system name="b"/><end-system name="d"/><end-system name="e"/>'
        f'<switch name="s" delay="0s"><switch-tsn>{rule}</switch-tsn></switch><switch name="t" delay="0s"/>'
        '<link between="a s:1" rate="100Mbit/s"/><link between="b t:1" rate="100Mbit/s"/>'
        '<link between="t:2 s:2" rate="100Mbit/s"/><link between="s:3 d" rate="100Mbit/s"/>'
        '<link between="s:4 e" rate="100Mbit/s"/>'
    )
    return written(network, flows, tasks, more=more)


def udp(number: int, ends: str, more: str = "") -> str:
    sender, receiver = ends[0], ends[1]
    return f'<flow id="{number}" protocol="udp" from="{sender}" to="{receiver}" {more}/>'


HEADERS = {
    "destination-mac": ("", 'destination-mac="02:00:00:00:00:77"'),
    "source-ip": ("", 'source-ip="198.18.9.9"'),
    "destination-ip": ("", 'destination-ip="198.18.9.9"'),
    "dscp": ('dscp="46"', 'dscp="10"'),
    "source-port": ('source-port="5001"', 'source-port="5002"'),
    "destination-port": ('destination-port="7001"', 'destination-port="7002"'),
}
"""Attributes of two flows of one sender that differ in this field alone."""


@pytest.mark.parametrize("field", HEADERS)
def test_each_header_tells_two_flows_apart(tmp_path: Path, field: str) -> None:
    """Two flows differ in one header only; one has a filter that passes nothing."""
    one, other = HEADERS[field]
    flows = udp(1, "ad", one) + udp(2, "ad", other)
    tasks = sends(1, "1ms", 100, 50) + sends(2, "1ms", 300, 50, offset="300us")
    for fields in ("", f' fields="{field}"'):
        rule = f'<ingress flow="1" identify="ip"{fields} max-sdu="1B"/>'
        run = simulate(datagrams(rule, flows, tasks), tmp_path / f"x{len(fields)}")
        assert (run.dropped("oversize-sdu", 1), run.dropped("oversize-sdu", 2)) == (50, 0)
        assert (len(passed(run, 1)), len(passed(run, 2))) == (0, 50)
    others = " ".join(name for name in HEADERS if name != field)
    rule = f'<ingress flow="1" identify="ip" fields="{others}" max-sdu="1B"/>'
    with pytest.raises(TestError, match="cannot tell flow 1 from flow 2"):
        simulate(datagrams(rule, flows, tasks), tmp_path / "alike")


def test_a_wildcard_takes_what_comes_with_any_value(tmp_path: Path) -> None:
    """A filter on the receiver alone takes background load to it for the stream's; one on the port takes none, nor
    the answers of a relay, nor frames without a datagram."""
    flows = udp(1, "ad") + '<flow id="2" protocol="raw" from="b" to="e"/>' + udp(3, "ea")
    tasks = (
        sends(1, "1ms", 100, 50)
        + sends(2, "1ms", 100, 50)
        + '<send flow="3" period="1ms" payload="64B" count="50"/><relay flow="3"/>'
        + '<inject on="a" to="d" load="5%" frame="200B"/><inject on="a" to="e" load="5%" frame="200B"/>'
    )
    met = {}
    for name, fields in (
        ("to", "destination-ip"),
        ("port", "destination-ip destination-port"),
        ("from", "source-ip"),
    ):
        rule = f'<ingress flow="1" identify="ip" fields="{fields}" max-sdu="1500B"/>'
        run = simulate(datagrams(rule, flows, tasks), tmp_path / name)
        met[name] = counters(run, 1)["matching"]
        assert set(run.messages["outcome"].unique()) == {"delivered"}
    assert met["port"] == 50
    # Each load has a frame of 220 B on the wire in 352 us, for as long as messages are under way.
    assert 50 + 100 < met["to"] < 50 + 200
    # And the answers.
    assert met["from"] == 50 + 50 + 2 * (met["to"] - 50)
