"""The simulator against closed forms, to the picosecond: what each must say is derived here from first principles."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulation import GAP, MS, PREAMBLE, US, Simulated, bits, frame, occupation, sending, simulate, written

RATES = {"10Mbit/s": 10**7, "100Mbit/s": 10**8, "1Gbit/s": 10**9, "10Gbit/s": 10**10}
SLOW = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def chain(switches: list[str], rates: list[str], delays_ns: list[int]) -> str:
    """a - sw0 - sw1 - … - b with the given attributes of the switches."""
    names = ["a", *(f"sw{i}" for i in range(len(switches))), "b"]
    nodes = '<end-system name="a"/><end-system name="b"/>'
    nodes += "".join(f'<switch name="sw{i}" {text}/>' for i, text in enumerate(switches))
    links = "".join(
        f'<link between="{one} {other}" rate="{rate}" delay="{delay}ns"/>'
        for one, other, rate, delay in zip(names, names[1:], rates, delays_ns, strict=False)
    )
    return nodes + links


def one_flow(network: str, payload: int, place: Path, *, protocol: str = "raw", count: int = 3) -> Simulated:
    return simulate(
        written(
            network,
            f'<flow id="1" protocol="{protocol}" from="a" to="b"/>',
            f'<send flow="1" period="100ms" payload="{payload}B" count="{count}"/><receive flow="1"/>',
        ),
        place,
    )


@SLOW
@given(data=st.data())
def test_a_store_and_forward_chain(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    hops = data.draw(st.integers(0, 5))
    rates = data.draw(st.lists(st.sampled_from(list(RATES)), min_size=hops + 1, max_size=hops + 1))
    delays = data.draw(st.lists(st.integers(0, 5_000), min_size=hops + 1, max_size=hops + 1))
    processing = data.draw(st.lists(st.integers(0, 20_000), min_size=hops, max_size=hops))
    protocol = data.draw(st.sampled_from(["raw", "udp"]))
    payload = data.draw(st.integers(12, 1_472))
    network = chain([f'delay="{ns}ns"' for ns in processing], rates, delays)
    run = one_flow(network, payload, tmp_path_factory.mktemp("chain"), protocol=protocol)
    length = frame(payload, protocol)
    expected = sum(sending(length, RATES[rate]) for rate in rates) + 1_000 * (sum(delays) + sum(processing))
    assert run.latencies(1) == [expected] * 3


@SLOW
@given(data=st.data())
def test_a_cut_through_chain(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each switch costs the header (14 B behind the preamble) and its decision, whatever the frame's length."""
    hops = data.draw(st.integers(1, 5))
    rate = data.draw(st.sampled_from(list(RATES)))
    delays = data.draw(st.lists(st.integers(0, 5_000), min_size=hops + 1, max_size=hops + 1))
    processing = data.draw(st.lists(st.integers(0, 3_000), min_size=hops, max_size=hops))
    payload = data.draw(st.integers(46, 1_500))
    network = chain(
        [f'forwarding-mode="cut-through" delay="{ns}ns"' for ns in processing], [rate] * (hops + 1), delays
    )
    run = one_flow(network, payload, tmp_path_factory.mktemp("cut"))
    header = bits(PREAMBLE + 14, RATES[rate])
    expected = sending(frame(payload), RATES[rate]) + hops * header + 1_000 * (sum(delays) + sum(processing))
    assert run.latencies(1) == [expected] * 3


def test_cut_through_from_a_slow_to_a_fast_link_stores(tmp_path: Path) -> None:
    """A faster port would run dry, so the frame is stored first."""
    network = chain(['forwarding-mode="cut-through" delay="0ns"'], ["100Mbit/s", "1Gbit/s"], [0, 0])
    run = one_flow(network, 1_000, tmp_path)
    assert run.latencies(1)[0] == sending(frame(1_000), 10**8) + sending(frame(1_000), 10**9)


def star(senders: str, switch: str, rate: str = "100Mbit/s") -> str:
    """Senders on ports 1, 2, …, the sink on the last."""
    names = senders.split()
    nodes = (
        "".join(f'<end-system name="{name}"/>' for name in [*names, "sink"]) + f'<switch name="sw" {switch}/>'
    )
    return nodes + "".join(f'<link between="{name} sw" rate="{rate}"/>' for name in [*names, "sink"])


@pytest.mark.parametrize("late_ns", [1, 40_000, 80_000])
def test_strict_priority_waits_for_one_frame_in_progress(tmp_path: Path, late_ns: int) -> None:
    rate, low, high = 10**8, frame(1_500, tagged=True), frame(100, tagged=True)
    # Both were in at the switch: the low one first, the high one `late_ns` later.
    offset = sending(low, rate) - sending(high, rate) + late_ns * 1_000
    run = simulate(
        written(
            star("low high", 'priorities="strict" delay="0s"'),
            '<flow id="1" protocol="raw" from="low" to="sink" priority="0"/>'
            '<flow id="2" protocol="raw" from="high" to="sink" priority="7"/>',
            '<send flow="1" period="10ms" payload="1500B" count="2"/><receive flow="1"/>'
            f'<send flow="2" period="10ms" payload="100B" count="2" offset="{offset / 1_000:f}ns"/><receive flow="2"/>',
        ),
        tmp_path,
    )
    waited = occupation(low, rate) - late_ns * 1_000
    assert run.latencies(2) == [2 * sending(high, rate) + waited] * 2
    assert run.latencies(1) == [2 * sending(low, rate)] * 2


def test_a_high_frame_overtakes_what_waits_and_not_what_is_sent(tmp_path: Path) -> None:
    rate = 10**8
    long, short = frame(1_000, tagged=True), frame(50, tagged=True)
    run = simulate(
        written(
            star("low low2 high", 'priorities="strict" delay="0s"'),
            '<flow id="1" protocol="raw" from="low" to="sink" priority="1"/>'
            '<flow id="2" protocol="raw" from="low2" to="sink" priority="1"/>'
            '<flow id="3" protocol="raw" from="high" to="sink" priority="6"/>',
            "".join(
                f'<send flow="{flow}" period="10ms" payload="{size}B" count="1" offset="{offset}us"/>'
                f'<receive flow="{flow}"/>'
                for flow, size, offset in ((1, 1_000, 0), (2, 1_000, 0), (3, 50, 90))
            ),
        ),
        tmp_path,
    )
    begin = sending(long, rate)
    arrivals = {flow: run.times("wire-receive", flow)[0] for flow in (1, 2, 3)}
    assert arrivals[1] == begin + sending(long, rate)
    assert arrivals[3] == begin + occupation(long, rate) + sending(short, rate)
    assert arrivals[2] == begin + occupation(long, rate) + occupation(short, rate) + sending(long, rate)


@pytest.mark.parametrize("inputs", [2, 3, 7])
def test_a_merge_of_inputs_in_one_queue(tmp_path: Path, inputs: int) -> None:
    """Frames of one instant leave in the order of the ports, each one occupation after the other."""
    names = " ".join(f"s{i}" for i in range(inputs))
    flows = "".join(f'<flow id="{i + 1}" protocol="udp" from="s{i}" to="sink"/>' for i in range(inputs))
    tasks = "".join(
        f'<send flow="{i + 1}" period="10ms" payload="700B" count="4"/><receive flow="{i + 1}"/>'
        for i in range(inputs)
    )
    run = simulate(written(star(names, 'delay="3us"'), flows, tasks), tmp_path)
    length = frame(700, "udp")
    for i in range(inputs):
        expected = 2 * sending(length, 10**8) + 3 * US + i * occupation(length, 10**8)
        assert run.latencies(i + 1) == [expected] * 4


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ('buffer="8KiB"', 8_192 // 1_018),
        ('buffer="64KiB" buffer-frames="5"', 5),
        ('buffer="64KiB" queue-buffer="4KiB"', 4_096 // 1_018),
        ('buffer="64KiB" queue-frames="3"', 3),
        ('buffer="64KiB" shared-buffer="9KiB"', 9_216 // 1_018),
        ('buffer="64KiB" shared-frames="6"', 6),
    ],
)
def test_buffers_drop_exactly_what_they_cannot_hold(tmp_path: Path, limits: str, holds: int) -> None:
    """Two inputs at the rate of the output: every occupation two frames come and one goes."""
    burst, rate = 30, 10**8
    assert frame(1_000) == 1_018
    tasks = "".join(
        f'<send flow="{flow}" period="100ms" burst="{burst}" payload="1000B" count="{burst}"/><receive flow="{flow}"/>'
        for flow in (1, 2)
    )
    flows = '<flow id="1" protocol="raw" from="a" to="sink"/><flow id="2" protocol="raw" from="b" to="sink"/>'
    run = simulate(written(star("a b", f'delay="0s" {limits}'), flows, tasks), tmp_path)
    # The same queue, counted by hand: a frame in transmission holds no place.
    waiting, lost, free_at, step = 0, 0, 0, occupation(1_018, rate)
    for instant in range(burst):
        now = sending(1_018, rate) + instant * step
        for _ in range(2):
            if waiting == 0 and free_at <= now:
                free_at = now + step
            elif waiting < holds:
                waiting += 1
            else:
                lost += 1
        if waiting and free_at <= now:
            waiting, free_at = waiting - 1, now + step
    assert run.dropped("buffer-full") == lost > 0
    assert run.at("application-receive").height == 2 * burst - lost


def test_a_burst_leaves_at_the_rate_of_the_line(tmp_path: Path) -> None:
    network = chain([], ["1Gbit/s"], [100])
    run = simulate(
        written(
            network,
            '<flow id="1" protocol="udp" from="a" to="b"/>',
            '<send flow="1" period="10ms" burst="50" spacing="0s" payload="300B" count="100"/><receive flow="1"/>',
        ),
        tmp_path,
    )
    sent = run.times("wire-send", 1)
    step = occupation(frame(300, "udp"), 10**9)
    assert [sent[k + 1] - sent[k] for k in range(49)] == [step] * 49
    assert sent[50] - sent[0] == 10 * MS


def test_a_share_of_the_line_is_exact_in_the_long_run(tmp_path: Path) -> None:
    """MAPS 2015, Table 2: 1472 B in frames at 25 to 100 % of 1 Gbit/s."""
    for share, interval_us in ((25, 49.2), (50, 24.6), (75, 16.4), (100, 12.3)):
        run = simulate(
            written(
                chain([], ["1Gbit/s"], [0]),
                '<flow id="1" protocol="udp" from="a" to="b"/>',
                f'<send flow="1" load="{share}%" payload="1472B" count="1001"/><receive flow="1"/>',
            ),
            tmp_path / str(share),
        )
        sent = run.times("wire-send", 1)
        wire = occupation(frame(1_472, "udp"), 10**9)
        assert abs((sent[1_000] - sent[0]) - 1_000 * wire * 100 // share) <= 1_000
        assert round((sent[1_000] - sent[0]) / 1_000 / US, 1) == interval_us


def test_a_rate_limit_holds_the_mean_and_no_more(tmp_path: Path) -> None:
    run = simulate(
        written(
            chain([], ["1Gbit/s"], [0]),
            '<flow id="1" protocol="raw" from="a" to="b"/>',
            '<send flow="1" period="1ms" burst="10" payload="1000B" count="200" rate-limit="100Mbit/s"/>'
            '<receive flow="1"/>',
        ),
        tmp_path,
    )
    sent = sorted(run.times("wire-send", 1).values())
    wire_bits = 8 * (frame(1_000) + PREAMBLE + GAP)
    for first, last in itertools.combinations(range(0, 200, 7), 2):
        # All but the first frame of any stretch were paid for within it.
        assert (last - first) * wire_bits * 10**12 <= (
            sent[last] - sent[first]
        ) * 10**8 + 2 * wire_bits * 10**12


def kolmogorov(values: list[float], mean: float) -> float:
    """The statistic of Kolmogorov and Smirnov against the exponential distribution."""
    import math

    ordered, n = sorted(values), len(values)
    return max(
        max((k + 1) / n - (1 - math.exp(-value / mean)), (1 - math.exp(-value / mean)) - k / n)
        for k, value in enumerate(ordered)
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exponential_intervals_are_exponential(tmp_path: Path, seed: int) -> None:
    run = simulate(
        written(
            chain([], ["1Gbit/s"], [0]),
            '<flow id="1" protocol="raw" from="a" to="b"/>',
            '<send flow="1" period="1ms" payload="64B" count="20000" distribution="exponential"/><receive flow="1"/>',
            seed=seed,
        ),
        tmp_path,
    )
    due = sorted(run.times("intended-send", 1).values())
    intervals = [later - earlier for earlier, later in itertools.pairwise(due)]
    # Critical value for an error rate of 0.1 %: 1.95 / sqrt(n).
    assert kolmogorov([float(i) for i in intervals], 1e9) < 1.95 / len(intervals) ** 0.5
    assert kolmogorov([float(i) for i in intervals], 1.1e9) > 1.95 / len(intervals) ** 0.5


def test_a_drifting_clock_tilts_the_latency_by_its_drift(tmp_path: Path) -> None:
    """Sent by a clock 20 ppm fast: the sender's timestamp runs ahead by 20 us a second, and messages come early."""
    run = simulate(
        written(
            '<end-system name="a"><clock offset="50us" drift="20ppm"/></end-system><end-system name="b"/>'
            '<link between="a b" rate="1Gbit/s"/>',
            '<flow id="1" protocol="raw" from="a" to="b"/>',
            '<send flow="1" period="10ms" payload="64B" count="500"/><receive flow="1"/>',
        ),
        tmp_path,
    )
    sent, came = run.times("application-send", 1), run.times("application-receive", 1)
    first, last = came[0] - sent[0], came[499] - sent[499]
    true_time = came[499] - came[0]
    assert abs(first + 50 * US - sending(frame(64), 10**9)) < 2_000
    assert abs((last - first) + true_time * 20 // 10**6) <= 2
