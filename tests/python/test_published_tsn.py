"""What other simulators publish of TSN features, computed again here.

INET is inet-framework/inet at b52bc21a34, CoRE4INET is CoRE-RG/CoRE4INET. Published
figures are written as they stand there, in us, with where they stand. Lengths count the preamble there (58 B above the
UDP payload, tag included); here a payload of the protocol raw is chosen that gives the same frame.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from capture_files import Packet, pcap

from simulation import Simulated, simulate, written

CABLE = "50ns"
SECOND = 10**12


def link(one: str, other: str, rate: str = "100Mbit/s", delay: str = CABLE) -> str:
    return f'<link between="{one} {other}" rate="{rate}" delay="{delay}"/>'


def ends(names: str) -> str:
    return "".join(f'<end-system name="{name}"/>' for name in names.split())


def flow(number: int, path: str, priority: int | None = None, protocol: str = "raw") -> str:
    sender, receiver = path.split()
    tag = "" if priority is None else f' vlan="{number}" priority="{priority}"'
    return f'<flow id="{number}" protocol="{protocol}" from="{sender}" to="{receiver}"{tag}/>'


def sends(number: int, period: str, payload: int, **more: str) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in more.items())
    sent = f'<send flow="{number}" period="{period}" payload="{payload}B"{attributes}/>'
    return f'{sent}<receive flow="{number}"/>'


def replays(number: int, folder: Path, times: list[float], length: int) -> str:
    """Frames of `length` B, FCS included, at instants in seconds, rounded to the nanosecond."""
    file = folder / f"{number}.pcap"
    file.write_bytes(pcap([Packet(10**18 + round(time * 1e9), length - 4) for time in times], nano=True))
    return f'<replay flow="{number}" file="{file}"/><receive flow="{number}"/>'


def delays(run: Simulated, number: int, until: int | None = None) -> np.ndarray:
    """End-to-end delays in us, of messages that came by an instant in ps."""
    table = run.messages.filter((pl.col("flow") == number) & pl.col("rx_app").is_not_null()).sort("sequence")
    if until is not None:
        table = table.filter(pl.col("rx_app") <= until)
    return (table["rx_app"] - table["tx_app"]).to_numpy() / 1e6


def most_waiting(run: Simulated, numbers: list[int], delay: int = 0) -> int:
    """Most frames that waited for a port of the only switch at one instant."""
    here = pl.col("flow").is_in(numbers)
    into = run.at("switch-in").filter(here).select("flow", "sequence", came=pl.col("time") + delay)
    out = run.at("switch-out").filter(here).select("flow", "sequence", left="time")
    waited = into.join(out, on=["flow", "sequence"]).filter(pl.col("left") > pl.col("came"))
    steps = pl.concat(
        [
            waited.select(at="came", step=pl.lit(1)),
            waited.select(at="left", step=pl.lit(-1)),
        ]
    )
    depth = steps.group_by("at").agg(pl.col("step").sum()).sort("at")["step"].cum_sum().max()
    assert isinstance(depth, int)
    return depth


# --- credit-based and asynchronous shapers: four senders at one bridge --------------------------------------

CBS = ('<cbs idle-slope="10976kbit/s"/>', '<cbs idle-slope="21952kbit/s"/>')
# INET meters what is inside the MAC frame: 300 B each 250 us and 125 us. Here 342 B on the wire are counted.
ATS = (
    '<ats><scheduler flow="5" rate="10944kbit/s" burst="342B"/></ats>',
    '<ats><scheduler flow="6" rate="21888kbit/s" burst="342B"/></ats>',
)


def medium_network(shapers: tuple[str, str], *, seconds: int, cable: str, late: str) -> str:
    """Senders of best effort (flow 10) and of priorities 5, 6 and 7 (flows 5, 6 and 7)."""
    classes = (
        '<traffic-class number="0" priorities="0 1 2 3 4"/>'
        f'<traffic-class number="1" priorities="5">{shapers[0]}</traffic-class>'
        f'<traffic-class number="2" priorities="6">{shapers[1]}</traffic-class>'
        '<traffic-class number="3" priorities="7"/>'
    )
    switch = f'<switch name="sw" delay="8us" queue-frames="4"><switch-tsn>{classes}</switch-tsn></switch>'
    names = "S0 S5 S6 S7 R"
    network = ends(names) + switch + "".join(link(name, "sw", delay=cable) for name in names.split())
    flows = "".join(flow(n, f"S{n % 10} R", n % 10) for n in (10, 5, 6, 7))
    tasks = (
        sends(10, "125us", 1496)
        + sends(5, "250us", 300, offset="1ns")
        + sends(6, "125us", 300, offset=late)
        + sends(7, "300us", 1500, offset=late)
    )
    return written(network, flows, tasks, attributes=f'duration="{seconds}s" overload="on"')


def test_core4inet_medium_network_digit_by_digit(tmp_path: Path) -> None:
    """CoRE4INET, examples/tsn/medium_network/results/AnalyticalComparison.pdf, 4 s: count, mean, deviation, least
    and greatest as printed. Where a frame comes at the instant at which the next one begins, the next one is ahead
    there; here the frame that came takes part. Two senders that are 1 ps late make up for that, so delays are 1 ps
    less."""
    run = simulate(medium_network(CBS, seconds=4, cable="0ns", late="0.001ns"), tmp_path)
    published = {
        7: (13333, 298.5244671116778, 36.633493918176364, 252.96, 375.84),
        6: (32000, 161.194955, 73.62117934390194, 60.8, 307.2),
        5: (15999, 247.1058491780736, 106.53374659967001, 88.159, 535.999),
    }
    for number, (count, mean, deviation, least, greatest) in published.items():
        found = delays(run, number, until=4 * SECOND)
        late = 0.0 if number == 5 else 1e-6
        assert len(found) == count
        assert found.mean() + late == pytest.approx(mean, abs=2e-10 if late else 1e-9)
        assert found.std(ddof=1) == pytest.approx(deviation, abs=1e-8)
        assert found.min() == pytest.approx(least, abs=1.5e-6)
        assert found.max() == pytest.approx(greatest, abs=1.5e-6)


@pytest.mark.parametrize("shapers", [CBS, ATS, ("", "")], ids=["cbs", "ats", "strict"])
def test_inet_shaper_validation(tmp_path: Path, shapers: tuple[str, str]) -> None:
    """INET, python/inet/test/validation.py, observed results of both shapers: least and greatest as printed.
    Senders keep to their shapers, so strict priority gives the same. Means depend on which of two events at one
    picosecond is first, 16 times in this second; a picosecond to either side moves them by as much as they are
    apart."""
    run = simulate(medium_network(shapers, seconds=1, cable=CABLE, late="0s"), tmp_path)
    published = {
        7: (375.780, 298.477239, 252.900, 36.668923),
        6: (307.260, 161.309427, 60.900, 73.625945),
        5: (535.939, 247.258720, 88.259, 106.588325),
    }
    for number, (greatest, mean, least, deviation) in published.items():
        found = delays(run, number, until=SECOND)
        assert round(found.max(), 3) == greatest
        assert round(found.min(), 3) == least
        assert found.mean() == pytest.approx(mean, rel=1e-4)
        assert found.std(ddof=1) == pytest.approx(deviation, rel=2e-4)
    # The longest queue of a class above best effort, observed there: 2.0.
    assert max(most_waiting(run, [number], delay=8_000_000) for number in (5, 6, 7)) == 2


# --- seven groups of flows over three bridges ---------------------------------------------------------------

# First flow: how many, from and to, priority, period and first message in ms, payload (58 - 8 - 28 B below the
# length there).
GROUPS = {
    100: (10, "N1 N7", 6, 5, 70),
    200: (10, "N2 N7", 5, 10, 970),
    300: (10, "N3 N7", 4, 20, 1470),
    400: (5, "N4 N6", 5, 10, 970),
    500: (5, "N5 N6", 4, 20, 1470),
    600: (5, "N8 N7", 5, 10, 770),
    700: (5, "N8 N7", 4, 20, 1170),
}


def icct(bucket: str | None = 'rate="20Mbit/s" burst="20000B"') -> str:
    def classes(low: str = "", high: str = "") -> str:
        return (
            '<traffic-class number="0" priorities="0 1 2 3"/>'
            f'<traffic-class number="1" priorities="4">{low}</traffic-class>'
            f'<traffic-class number="2" priorities="5">{high}</traffic-class>'
            '<traffic-class number="3" priorities="6 7"/>'
        )

    def shaped(ports: str, low: list[int], high: list[int]) -> str:
        # INET has one bucket for all flows of a class at a switch, which holds all their frames of a period.
        buckets = [
            "".join(
                f'<scheduler flow="{first + k}" {bucket}/>' for first in some for k in range(GROUPS[first][0])
            )
            for some in (low, high)
        ]
        inside = classes(*(f"<ats>{text}</ats>" for text in buckets)) if bucket is not None else classes()
        return f'<switch-tsn ports="{ports}">{inside}</switch-tsn>'

    host = f'<host-tsn channels="4">{classes()}</host-tsn>'
    network = "".join(
        f'<end-system name="N{k}">{host if k in (1, 8) else ""}</end-system>' for k in range(1, 9)
    )
    for name, inside in (
        ("S1", shaped("4", [300], [200])),
        ("S2", shaped("4", [300, 500], [200, 400])),
        ("S3", shaped("1", [500], [400]) + shaped("2", [300, 700], [200, 600])),
    ):
        network += f'<switch name="{name}" delay="0s">{inside}</switch>'
    pairs = "N1 S1:1, N2 S1:2, N3 S1:3, S1:4 S2:1, N4 S2:2, N5 S2:3, S2:4 S3:4, N6 S3:1, N7 S3:2, N8 S3:3"
    for pair in pairs.split(", "):
        network += link(*pair.split())
    flows, tasks = "", ""
    for first, (count, path, priority, period, payload) in GROUPS.items():
        for number in range(first, first + count):
            flows += flow(number, path, priority)
            tasks += sends(number, f"{period}ms", payload, offset=f"{period}ms")
    # Best effort of 122.4 us each 100 us: its own line is never free.
    tasks += '<inject on="N1" to="N7" load="100%" frame="1510B" burst="1"/>'
    return written(network, flows, tasks, attributes='duration="100ms" overload="on"')


def test_inet_asynchronous_shaping_over_three_bridges(tmp_path: Path) -> None:
    """INET, python/inet/test/validation.py, icct: greatest delays, and the bounds of the paper that it names."""
    run = simulate(icct(), tmp_path)

    def greatest(first: int, until: int = SECOND // 10) -> float:
        most = max(delays(run, first + k, until).max() for k in range(GROUPS[first][0]))
        return round(float(most), 2)

    observed = {100: 505.16, 200: 1579.72, 400: 932.04, 600: 585.16}
    assert {first: greatest(first) for first in observed} == observed
    # Of the flows of 20 ms the figure there is that of their third burst here; the fourth is 24 us later.
    assert {first: greatest(first, SECOND * 7 // 100) for first in (300, 500)} == {300: 3371.72, 500: 2162.12}
    assert {first: greatest(first) for first in (300, 500)} == {300: 3395.72, 500: 2186.12}
    # 1963.24 there, one frame of 96.96 us and 1.12 us more; what is ahead of it there cannot be told from what is
    # stated.
    assert greatest(700) == 1865.16
    for first, bound in {100: 867.6, 200: 4665.5, 300: 10902, 400: 2505.2, 500: 5678.3}.items():
        assert greatest(first) < bound


@pytest.mark.parametrize(
    ("bucket", "holds_back"),
    [
        (None, False),
        ('rate="20Mbit/s" burst="40000B"', False),
        ('rate="40Mbit/s" burst="20000B"', False),
        # A frame of 970 + 58 B each 10 ms, and no token in advance for the next.
        ('rate="700kbit/s" burst="1028B"', True),
    ],
    ids=["none", "twice the burst", "twice the rate", "less than is sent"],
)
def test_the_buckets_of_the_three_bridges_hold_nothing_back(
    bucket: str | None, holds_back: bool, tmp_path: Path
) -> None:
    """What is published of them says nothing of asynchronous shaping: other buckets, or none, give the same."""
    run = simulate(icct(bucket), tmp_path)
    greatest = {
        first: round(
            max(float(delays(run, first + k, SECOND // 10).max()) for k in range(GROUPS[first][0])), 2
        )
        for first in (100, 200, 400, 600)
    }
    published = {100: 505.16, 200: 1579.72, 400: 932.04, 600: 585.16}
    assert (greatest != published) is holds_back
    assert greatest[100] == published[100] or holds_back


# --- gates, cut-through, schedules --------------------------------------------------------------------------


def test_inet_time_aware_shaping(tmp_path: Path) -> None:
    """INET, showcases/tsn/trafficshaping/timeawareshaper: 11.62 us, and about 120 us more at most without gates.
    There the switch takes the tag off, and pads the frame of 60 B again: 64 B on both links."""
    classes = (
        '<traffic-class number="0" priorities="0 1 2 3"/><traffic-class number="1" priorities="4 5 6 7"/>'
    )
    gates = (
        '<gate-schedule cycle-time="1ms"><gate-entry open="1" for="20us"/>'
        '<gate-entry open="0" for="980us"/></gate-schedule>'
    )
    tasks = sends(1, "200us", 1470, distribution="exponential") + sends(2, "1ms", 42)
    for inside, most in ((gates, 11.62), ("", 11.62 + 121.12)):
        network = ends("c1 c2 server") + link("c1", "sw") + link("c2", "sw") + link("sw", "server")
        network += f'<switch name="sw" delay="0s"><switch-tsn>{classes}{inside}</switch-tsn></switch>'
        run = simulate(
            written(
                network, flow(1, "c1 server", 0) + flow(2, "c2 server", 4), tasks, attributes='duration="1s"'
            ),
            tmp_path / str(bool(inside)),
        )
        found = delays(run, 2)
        assert len(found) == 1000
        assert found.min() == pytest.approx(11.62, abs=1e-9)
        assert found.max() <= most + 1e-9
        assert inside or found.max() > 120


@pytest.mark.parametrize(("mode", "published"), [("store-and-forward", 30.246), ("cut-through", 10.534)])
def test_inet_cut_through(tmp_path: Path, mode: str, published: float) -> None:
    """INET, showcases/tsn/cutthroughswitching: a header of 22 B, preamble included, at each of two switches."""
    network = ends("a b") + "".join(
        f'<switch name="s{k}" delay="0s" forwarding-mode="{mode}"/>' for k in (1, 2)
    )
    for pair in (("a", "s1"), ("s1", "s2"), ("s2", "b")):
        network += link(*pair, rate="1Gbit/s")
    run = simulate(
        written(network, flow(1, "a b", protocol="udp"), sends(1, "200us", 1200, count="50")), tmp_path
    )
    assert delays(run, 1) == pytest.approx([published] * 50, abs=1e-9)


def test_inet_gates_by_a_solver(tmp_path: Path) -> None:
    """INET, showcases/tsn/gatescheduling/sat: 254.07 us for each large frame, three times 84.64 us and 0.05 us;
    nothing waits."""

    def gates(ports: str, base: int, *entries: tuple[str, int]) -> str:
        classes = (
            '<traffic-class number="0" priorities="0 1 2 3"/><traffic-class number="1" priorities="4 5 6 7"/>'
        )
        if ports != "3" or base == 219_380:
            classes = '<traffic-class number="0" priorities="0 1 2 3 4 5 6 7"/>'
        lines = "".join(
            f'<gate-entry for="{time}ns"/>' if not number else f'<gate-entry open="{number}" for="{time}ns"/>'
            for number, time in entries
        )
        schedule = f'<gate-schedule base-time="{base}ns" cycle-time="250us">{lines}</gate-schedule>'
        return f'<switch-tsn ports="{ports}">{classes}{schedule}</switch-tsn>'

    first = gates(
        "3", 84_690, ("0", 85_600), ("", 4_400), ("1", 45_600), ("", 4_400), ("1", 45_600), ("", 64_400)
    )
    second = gates("2", 169_380, ("0", 85_600), ("", 164_400))
    second += gates("3", 219_380, ("0", 45_600), ("", 4_400), ("0", 45_600), ("", 154_400))
    network = ends("c1 c2 s1 s2")
    network += f'<switch name="a" delay="0s">{first}</switch><switch name="b" delay="0s">{second}</switch>'
    for pair in ("c1 a:1", "c2 a:2", "a:3 b:1", "b:2 s1", "b:3 s2"):
        network += link(*pair.split())
    flows = flow(1, "c1 s1", 0) + flow(2, "c1 s2", 4) + flow(3, "c2 s1", 0) + flow(4, "c2 s2", 4)
    tasks = sends(1, "500us", 1028) + sends(3, "500us", 1028, offset="250us")
    tasks += sends(2, "250us", 528, offset="130us") + sends(4, "250us", 528, offset="180us")
    run = simulate(written(network, flows, tasks, attributes='duration="20ms"'), tmp_path)
    for number, published in ((1, 254.07), (2, 134.07), (3, 254.07), (4, 134.07)):
        assert delays(run, number) == pytest.approx(published, abs=1e-9)


# --- rates that shapers let through -------------------------------------------------------------------------


@pytest.mark.parametrize("gated", [False, True])
def test_inet_credit_based_rates(tmp_path: Path, gated: bool) -> None:
    """INET, showcases/tsn/trafficshaping/creditbasedshaper and cbsandtas: 42.64 and 21.32 Mbit/s are a frame of
    1066 B on the wire each 200 and 400 us. With gates open 4 and 2 ms of 6 ms the slope is 63.96 Mbit/s there; here
    it is stated over all time."""
    gates = (
        '<gate-schedule cycle-time="6ms"><gate-entry open="0" for="4ms"/>'
        '<gate-entry open="1" for="2ms"/></gate-schedule>'
        if gated
        else ""
    )
    classes = "".join(
        f'<traffic-class number="{k}" priorities="{p}"><cbs idle-slope="{slope}kbit/s"/></traffic-class>'
        for k, p, slope in ((0, "0 1 2 3", 42640), (1, "4 5 6 7", 21320))
    )
    network = ends("c1 c2 server") + link("c1", "sw") + link("c2", "sw") + link("sw", "server")
    network += f'<switch name="sw" queue-buffer="128KiB"><switch-tsn>{classes}{gates}</switch-tsn></switch>'
    run = simulate(
        written(
            network,
            flow(1, "c1 server", 0) + flow(2, "c2 server", 4),
            sends(1, "150us", 1024) + sends(2, "150us", 1024),
            attributes='duration="240ms" overload="on"',
        ),
        tmp_path,
    )
    for number, each in ((1, 200), (2, 400)):
        out = np.array(list(run.times("switch-out", number).values())) // 10**6
        inside = out[(out >= 60_000) & (out < 240_000)]
        assert (np.bincount(inside // 6000)[10:] == 6000 // each).all()


# --- traffic whose rate goes up and down --------------------------------------------------------------------


def instants(gap: Callable[[float], float], end: float) -> list[float]:
    def walk() -> Iterator[float]:
        time = 0.0
        while time < end:
            yield time
            time = round(time + gap(time), 12)

    return list(walk())


@pytest.mark.parametrize(("rate", "waiting"), [(16, 20), (12, 15), (8, 10)])
def test_inet_asynchronous_shaper_alone(rate: int, waiting: int, tmp_path: Path) -> None:
    """INET, showcases/tsn/trafficshaping/underthehood: queueing of 10 ms at most, 10 ms / 0.5 ms = 20 frames of a
    stream, 60 of three. That counts those whose tokens come within 10 ms; one more is there while it waits for the
    line. The same quotient holds for other committed rates: this is a figure of the shaper, and not of the line."""
    gaps = (
        lambda t: (math.sin(2 * t) + 5) / 1e4,
        lambda t: (math.sin(3 * t) + 5) / 1e4,
        lambda t: (math.sin(t) + math.sin(8 * t) + 5) / 1e4,
    )
    buckets = "".join(f'<scheduler flow="{k}" rate="{rate}Mbit/s" burst="10000B"/>' for k in (1, 2, 3))
    shaper = f'<ats longest-residence="10ms">{buckets}</ats>'
    shaped = f'<traffic-class number="1" priorities="4 5 6 7">{shaper}</traffic-class>'
    classes = f'<traffic-class number="0" priorities="0 1 2 3"/>{shaped}'
    network = ends("a b c sink") + "".join(link(name, "sw", "10Gbit/s", "0ns") for name in "abc")
    network += (
        f'<switch name="sw" delay="0s" buffer="4MiB"><switch-tsn ports="4">{classes}</switch-tsn></switch>'
    )
    # 1000 B of a frame with preamble and gap take 0.1 ms, as the server there does.
    network += link("sw:4", "sink", "80Mbit/s", "0ns")
    flows = "".join(flow(k, f"{name} sink", 4) for k, name in ((1, "a"), (2, "b"), (3, "c")))
    tasks = "".join(replays(k, tmp_path, instants(gap, 5.5), 980) for k, gap in enumerate(gaps, 1))
    run = simulate(written(network, flows, tasks, attributes='overload="on"'), tmp_path / "run")
    assert [most_waiting(run, [k]) for k in (1, 2, 3)] == [waiting + 1] * 3
    assert 3 * waiting <= most_waiting(run, [1, 2, 3]) <= 3 * waiting + 3
    for k in (1, 2, 3):
        into, out = run.times("switch-in", k), run.times("switch-out", k)
        longest = max(out[key] - into[key] for key in out) / 1e9
        assert 10 <= longest <= 10.3
        assert run.dropped("policed", k)
        # Each second that stays above the rate passes 2000 frames of 1000 B at 16 Mbit/s.
        assert max(np.bincount(np.array(list(out.values())) // SECOND)) <= 125 * rate + 10


@pytest.mark.parametrize("rate", [8, 16])
@pytest.mark.parametrize("burst", [1, 4])
def test_a_burst_beyond_the_committed_one_is_spaced_at_the_committed_rate(
    rate: int, burst: int, tmp_path: Path
) -> None:
    """The scheduler's own rule (IEEE Std 802.1Q-2022, 8.6.11.3): of ten frames of 1000 B that come together as many go
    at once as the burst holds, and each further one as its tokens are there."""
    shaper = f'<ats><scheduler flow="1" rate="{rate}Mbit/s" burst="{1000 * burst}B"/></ats>'
    classes = (
        '<traffic-class number="0" priorities="0 1 2 3"/>'
        f'<traffic-class number="1" priorities="4 5 6 7">{shaper}</traffic-class>'
    )
    network = ends("a b") + link("a", "sw", "10Gbit/s", "0ns") + link("sw:2", "b", "1Gbit/s", "0ns")
    network += f'<switch name="sw" delay="0s"><switch-tsn ports="2">{classes}</switch-tsn></switch>'
    # 1000 B with tag, preamble and gap.
    tasks = sends(1, "50ms", 958, burst="10", count="10")
    run = simulate(written(network, flow(1, "a b", 4), tasks), tmp_path)
    out = sorted(run.times("switch-out", 1).values())
    token, line = 8000 * 10**6 // rate, 8000 * 10**3
    gaps = np.diff(out)
    assert (gaps[: burst - 1] == line).all()
    assert gaps[burst:] == pytest.approx(token, abs=2)
    # The tokens of the first that waits run from when the last before it came, by a line ten times as fast.
    assert token - burst * line <= gaps[burst - 1] <= token


def test_inet_token_bucket(tmp_path: Path) -> None:
    """INET, showcases/tsn/streamfiltering/tokenbucket: delays of the stream that keeps to its rate, about 25 ms at
    most without policing (read off a picture), below 1 ms and without a drop with. There 1028 and 528 B of a frame
    are metered, here 1050 and 550 B: rates and bursts are in that proportion."""
    times = instants(lambda t: 200e-6 + math.sin(10 * t) / 8e3, 1.0)
    police = (
        '<switch-tsn><ingress flow="1"><police rate="40856kbit/s" burst="10214B"/></ingress>'
        '<ingress flow="2"><police rate="20833kbit/s" burst="5208B"/></ingress></switch-tsn>'
    )
    for inside in ("", police):
        place = tmp_path / ("policed" if inside else "plain")
        place.mkdir()
        network = ends("c1 c2 server") + link("c1", "sw") + link("c2", "sw") + link("sw", "server")
        network += f'<switch name="sw" delay="0s" buffer="4MiB">{inside}</switch>'
        priority = 0 if inside else None
        run = simulate(
            written(
                network,
                flow(1, "c1 server", priority) + flow(2, "c2 server", priority),
                replays(1, place, times, 1050 if inside else 1046) + sends(2, "250us", 528),
                attributes='duration="1s" overload="on"',
            ),
            place / "run",
        )
        kept = delays(run, 2)
        assert len(kept) == 4000
        if inside:
            assert kept.max() < 1000
            assert run.dropped("red-frame", 1) > 1000
            # While more comes than that, 40 Mbit/s of 1028 B pass: 4864 a second.
            came = run.at("application-receive", 1)["time"].to_numpy() / SECOND
            assert ((came > 0.4) & (came < 0.6)).sum() == pytest.approx(0.2 * 40e6 / 8 / 1028, abs=2)
        else:
            assert 24_000 < kept.max() < 27_000


def test_inet_frame_preemption(tmp_path: Path) -> None:
    """INET, showcases/tsn/framepreemption, mean delays of random traffic by estimate: 360 us for all in one queue,
    150 us for urgent frames with a queue of their own, 100 us with preemption. The draws are not the same: means
    only."""
    chance = random.Random(1)

    def drawn(mean: float, deviation: float) -> list[float]:
        def gap(_: float) -> float:
            while True:
                if (value := chance.gauss(mean, deviation)) >= 0:
                    return value

        return instants(gap, 1.0)

    bulk, urgent = drawn(100e-6, 50e-6), drawn(1e-3, 500e-6)
    low = '<switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6"'
    high = '/><traffic-class number="1" priorities="7"/></switch-tsn>'
    for name, inside, published in (
        ("fifo", "", 360),
        ("priority", low + high, 150),
        ("preemption", f'{low} preemptable="on"{high}', 100),
    ):
        place = tmp_path / name
        place.mkdir()
        network = (
            ends("bulk urgent host") + link("bulk", "sw", "100Gbit/s") + link("urgent", "sw", "100Gbit/s")
        )
        network += link("sw", "host") + f'<switch name="sw" delay="0s" queue-frames="4">{inside}</switch>'
        run = simulate(
            written(
                network,
                flow(1, "bulk host", 0) + flow(2, "urgent host", 7),
                replays(1, place, bulk, 1250) + replays(2, place, urgent, 1250),
                attributes='overload="on"',
            ),
            place / "run",
        )
        assert delays(run, 2).mean() == pytest.approx(published, rel=0.06)


# --- replication and elimination ----------------------------------------------------------------------------


def test_inet_failure_protection(tmp_path: Path) -> None:
    """INET, showcases/tsn/framereplication/automaticfailureprotection: a switch is away from 20 to 80 ms; 100
    messages are sent, over one path those of 60 ms are lost, over several none."""
    network = ends("source destination other sink") + "".join(
        f'<switch name="{name}" delay="0s"/>' for name in ["s1", "s2a", "s2b", "s3a", "s3b", "s4"]
    )
    pairs = "source s1,other s1,s1 s2a,s1 s2b,s2a s3a,s2b s3b,s3a s4,s3b s4,s4 destination,s4 sink"
    network += "".join(link(*pair.split()) for pair in pairs.split(","))
    flows = (
        '<flow id="1" protocol="udp" from="source" to="destination">'
        '<frer history-length="10" replicate-at="s1" eliminate-at="s4"/>'
        '<path via="s1 s2a s3a s4"/><path via="s1 s2b s3b s4"/></flow>'
        '<flow id="2" protocol="udp" from="other" to="sink"><path via="s1 s2a s3a s4"/></flow>'
    )
    run = simulate(
        written(
            network,
            flows,
            sends(1, "1ms", 1200) + sends(2, "1ms", 1200, offset="500us"),
            attributes='duration="100ms"',
            more='<faults><restart switch="s2a" from="20ms" until="80ms"/></faults>',
        ),
        tmp_path,
    )
    assert len(delays(run, 1)) == 100
    assert len(delays(run, 2)) == 40
    # The tag of 6 B costs 0.48 us on each link between switches, and nothing stands out while the switch is away.
    assert np.ptp(delays(run, 1)) == 0
    assert delays(run, 1)[0] - delays(run, 2)[0] == pytest.approx(3 * 0.48)


def test_inet_ladder(tmp_path: Path) -> None:
    """INET, tests/validation/tsn/framereplication: a ladder with a rung, a fifth of the frames lost on each link:
    0.6578 of the messages arrive there, of 100 000 or so; 0.65667072 by formula."""
    links = "source s1,s1 s2a,s1 s2b,s2a s2b,s2a s3a,s2b s3b,s3a s4,s3b s4"
    network = ends("source destination") + "".join(
        f'<switch name="{name}" delay="0s"/>' for name in ["s1", "s2a", "s2b", "s3a", "s3b", "s4"]
    )
    network += "".join(link(*pair.split()) for pair in links.split(",")) + link("s4", "destination")
    paths = ["s1 s2a s3a s4", "s1 s2b s3b s4", "s1 s2a s2b s3b s4", "s1 s2b s2a s3a s4"]
    flows = (
        '<flow id="1" protocol="udp" from="source" to="destination">'
        '<frer intermediate-recovery="on" history-length="64" replicate-at="s1" eliminate-at="s4"/>'
        + "".join(f'<path via="{path}"/>' for path in paths)
        + "</flow>"
    )
    losses = "".join(f'<loss link="{pair}" share="20%"/>' for pair in links.split(","))
    count = 40_000
    run = simulate(
        written(
            network,
            flows,
            sends(1, "200us", 1200, count=str(count)),
            attributes='duration="8s"',
            more=f"<faults>{losses}</faults>",
        ),
        tmp_path,
    )
    share = len(delays(run, 1)) / count
    deviation = math.sqrt(0.65667 * 0.34333 / count)
    assert share == pytest.approx(0.65667072, abs=4 * deviation)
    assert share == pytest.approx(0.6578, abs=6 * deviation)
    # What is lost was lost on a link: no copy that was removed on the way is told as the reason.
    assert run.messages.filter(pl.col("rx_app").is_null())["drop_reason"].unique().to_list() == ["none"]
