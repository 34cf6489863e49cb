"""Bounds that other tools publish, to their last digit."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wiregauge.cli.program import app

Flows = Sequence[tuple[float, float, Sequence[int]]]
"""Burst, rate and path of each."""
Servers = Sequence[tuple[float, float]]
"""Rate and latency of each."""


def ask(file: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bounds", str(file), *options, "--json"])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def ports(place: Path, servers: Servers, flows: Flows, **network: str) -> Path:
    file = place / "ports.json"
    served = [
        {
            "name": f"s{k}",
            "service_curve": {"latencies": [latency], "rates": [rate]},
            "capacity": rate,
        }
        for k, (rate, latency) in enumerate(servers)
    ]
    sent = [
        {
            "name": f"f{k}",
            "path": [f"s{at}" for at in path],
            "arrival_curve": {"bursts": [burst], "rates": [rate]},
        }
        for k, (burst, rate, path) in enumerate(flows)
    ]
    file.write_text(json.dumps({"network": network, "flows": sent, "servers": served}))
    return file


def exact(told: dict[str, Any]) -> list[Fraction]:
    return [Fraction(end["delay_exact"]) for flow in told["flows"] for end in flow["targets"]]


# Functional tests of NetCal/DNC: all servers alike (20, 20), all flows alike (25, 5). DNC leaves the flow it looks at
# out of what bounds the others on their way with it, we do not: those of its values that this lowers are not here.
FF_3S = ((0, 2), (0, 1, 2))
FF_4S_3F = ((0, 1, 3), (2, 3), (2, 1))
FF_4S_4F = ((0, 1, 3), (2, 3), (2, 1), (2, 0, 3))
TA_3S_3F = ((0, 1), (2,), (0, 1, 2))
TA_4S_2F = ((0, 1, 2, 3), (1, 2))
TR_3S_2F = ((0, 2), (1, 2))
TR_7S_3F = ((1, 2, 5, 6), (0, 1, 2, 5, 6), (3, 4, 5, 6))


@pytest.mark.parametrize(
    ("paths", "method", "order", "published"),
    [
        (FF_3S, "sfa", "arbitrary", "670/9 790/9"),
        (FF_3S, "sfa", "fifo", "2615/48 3335/48"),
        (FF_3S, "pmoo", "arbitrary", "670/9 790/9"),
        (FF_4S_3F, "sfa", "arbitrary", "875/9 2095/27 65"),
        (FF_4S_3F, "sfa", "fifo", "1795/24 10715/192 295/6"),
        (FF_4S_3F, "pmoo", "arbitrary", "875/9 2095/27 65"),
        (FF_4S_4F, "tfa", "arbitrary", "1370/3 395 1105/6 925/2"),
        (FF_4S_4F, "sfa", "arbitrary", "580/3 345/2 1625/18 560/3"),
        (FF_4S_4F, "sfa", "fifo", "1525/16 575/8 1695/32 1405/16"),
        # With DNC's AGGR_PMOO for what crosses; its other arrival bounds give 650/3 and 345/2 to the first two.
        (FF_4S_4F, "pmoo", "arbitrary", "875/4 2095/12 305/3 1145/6"),
        (TA_3S_3F, "pmoo", "arbitrary", "170/3 145/3 85"),
        (TA_4S_2F, "pmoo", "arbitrary", "290/3 190/3"),
        (TR_3S_2F, "sfa", "arbitrary", "170/3 170/3"),
        (TR_3S_2F, "sfa", "fifo", "575/12 575/12"),
        (TR_7S_3F, "pmoo", "arbitrary grouped", "355/2 375/2 355/2"),
    ],
)
def test_functional_tests_of_dnc(
    tmp_path: Path, paths: Sequence[Sequence[int]], method: str, order: str, published: str
) -> None:
    count = 1 + max(max(path) for path in paths)
    file = ports(tmp_path, [(20, 20)] * count, [(25, 5, path) for path in paths])
    order, _, grouped = order.partition(" ")
    told = ask(file, "--method", method, "--multiplexing", order, "--grouping", "on" if grouped else "off")
    assert exact(told) == [Fraction(value) for value in published.split()]


def test_one_server_of_dnc(tmp_path: Path) -> None:
    """S_1SC_2F_2AC and S_1SC_10F_10AC, delays and backlogs."""
    two = ports(tmp_path, [(10, 10)], [(10, 4, (0,)), (25, 5, (0,))])
    for order, delay in (("fifo", "27/2"), ("arbitrary", "135")):
        told = ask(two, "--multiplexing", order)
        assert exact(told) == [Fraction(delay)] * 2
        assert told["servers"][0]["backlog_exact"] == "125"
    assert exact(ask(two, "--method", "sfa")) == [Fraction(29, 2), Fraction(91, 6)]
    assert exact(ask(two, "--method", "pmoo")) == [Fraction(27), Fraction(45, 2)]
    ten = ports(tmp_path, [(10, 10)], [(k, k / 10, (0,)) for k in range(1, 11)])
    assert exact(ask(ten, "--multiplexing", "arbitrary"))[0] == Fraction(310, 9)
    left = exact(ask(ten, "--method", "sfa"))
    assert (left[0], left[6]) == (Fraction(1796, 115), Fraction(2099, 130))


def interleaved(count: int) -> list[tuple[int, ...]]:
    return [tuple(range(count)), *((k, k + 1) for k in range(count - 1))]


def ring(count: int) -> list[tuple[int, ...]]:
    return [tuple((k + hop) % count for hop in range(count)) for k in range(count)]


# Notebook of panco: servers (10 Mbit/s, 1 ms), bursts of 1000 b; printed with eight decimals of a second.
FOUR, TEN, FIVE = interleaved(4), interleaved(10), ring(5)


@pytest.mark.parametrize(
    ("paths", "rate", "method", "published"),
    [
        (FOUR, 8e6 / 3, "tfa", "0.00565867 0.00278 0.00345867 0.00287867"),
        (FOUR, 8e6 / 3, "plp", "0.00462756 0.00235333 0.00269279 0.00269479"),
        (
            TEN,
            8e6 / 3,
            "tfa",
            "0.02627555 0.00278 0.00345867 0.00408912 0.00480829 0.00565057 0.00663996 0.00780253 "
            "0.00916863 0.00595333",
        ),
        (
            TEN,
            8e6 / 3,
            "plp",
            "0.01684698 0.00235333 0.00269279 0.00299995 0.00334876 0.00375565 0.00421315 0.00469578 0.00523664 "
            "0.00416789",
        ),
        (FIVE, 1e6, "tfa", "0.007 0.007 0.007 0.007 0.007"),
        (FIVE, 1.4e6, "tfa", "0.01106555 0.01106555 0.01106555 0.01106555 0.01106555"),
        (FIVE, 1.6e6, "tfa", "0.0221154 0.0221154 0.0221154 0.0221154 0.0221154"),
    ],
)
def test_examples_of_panco(
    tmp_path: Path, paths: Sequence[Sequence[int]], rate: float, method: str, published: str
) -> None:
    count = max(len(path) for path in paths)
    file = ports(tmp_path, [(1e7, 1e-3)] * count, [(1000, rate, path) for path in paths], time_unit="s")
    told = ask(file, "--method", method, "--multiplexing", "fifo", "--grouping", "on")
    delays = [float(delay) for delay in exact(told)]
    # lp_solve is asked for six digits: its last may be off by three.
    assert delays == pytest.approx([float(value) for value in published.split()], abs=3.1e-8)


@pytest.mark.parametrize(
    ("paths", "share", "published"),
    [
        (interleaved(12), 3, 147.38),
        ([tuple(range(k, 12)) for k in range(12)], 12, 133.01),
    ],
)
def test_tandems_of_ecowcdb(
    tmp_path: Path, paths: Sequence[Sequence[int]], share: int, published: float
) -> None:
    """Servers (10 Gbit/s, 10 us), bursts of 8 kb, half loaded; of the first flow, in us, no link cut."""
    flows = [(8000.0, 5e9 / share, path) for path in paths]
    told = ask(
        ports(tmp_path, [(1e10, 1e-5)] * 12, flows, time_unit="s"), "--method", "plp", "--grouping", "on"
    )
    assert round(told["flows"][0]["targets"][0]["delay"] * 1e6, 2) == published


@pytest.mark.parametrize(
    ("servers", "flows", "reached", "published", "ours"),
    [
        # A tandem of six with flows that overlap: its cuts cost DEBORAH more than the programme.
        (
            [(32, 1)] * 6,
            [(5, 4, path) for path in (range(6), (0,), (0, 1), range(1, 5), (2, 3), (3, 4), (5,))],
            6.908508,
            9.730406,
            7.630452,
        ),
        # Its sink-tree is tight, and a programme of polynomial size is not.
        (
            [(100, 10), (200, 10), (300, 10), (400, 10), (500, 10)],
            [(20, rate, range(k, 5)) for k, rate in enumerate((10, 15, 30, 35, 40))],
            50.456667,
            50.456667,
            51.036705,
        ),
        # source16-50: sixteen flows that begin together and leave one by one.
        (
            [(8 * (16 - k), 1) for k in range(16)],
            [(5, 4, range(16)), *((5, 4, range(k)) for k in range(1, 16))],
            16.625,
            18.112956,
            18.112956,
        ),
        # tmp2kX2Es: cross traffic of single servers.
        (
            [(1, 4), (1, 8), (2, 8), (4, 4)],
            [(2, 0.05, range(4)), (2.7, 0.05, (2,)), (2.65, 0.05, (3,))],
            27.0625,
            28.0125,
            28.0125,
        ),
    ],
)
def test_tandems_of_deborah(
    tmp_path: Path,
    servers: Servers,
    flows: Flows,
    reached: float,
    published: float,
    ours: float,
) -> None:
    """Between a delay that DEBORAH reaches and its least upper bound, or why not."""
    file = ports(tmp_path, servers, flows)
    told = ask(file, "--method", "plp", "--grouping", "off")
    delay = told["flows"][0]["targets"][0]["delay"]
    assert delay == pytest.approx(ours, abs=1e-6)
    assert delay >= reached - 1e-6
    for method in ("tfa", "sfa"):
        other = ask(file, "--method", method, "--grouping", "off")["flows"][0]["targets"][0]["delay"]
        assert other >= reached - 1e-6
    assert delay <= published * 1.02


def test_two_switches_of_wopanets(tmp_path: Path) -> None:
    """ISAE_TEST_1: five virtual links from one switch to all five stations of another; rounded up, in us, and loads."""
    payloads = (1000, 1050, 1100, 1200, 1250)
    lines = ['<elements><network overhead="67" technology="AFDX" transmission-capacity="100000000"/>']
    lines += [f'<station name="{side}{k}"/>' for side in "ab" for k in range(5)]
    lines += ['<switch name="A" tech-latency="0"/><switch name="B" tech-latency="0"/>']
    lines += [
        f'<link name="{side}{k}" from="{side}{k}" fromPort="0" to="{side.upper()}" toPort="{k}"/>'
        for side in "ab"
        for k in range(5)
    ]
    lines.append('<link name="trunk" from="A" fromPort="5" to="B" toPort="5"/>')
    for k, payload in enumerate(payloads):
        ends = "".join(
            f'<target name="b{end}"><path node="A"/><path node="B"/><path node="b{end}"/></target>'
            for end in range(5)
        )
        lines.append(f'<flow name="{k}" source="a{k}" max-payload="{payload}" period="1">{ends}</flow>')
    file = tmp_path / "isae.xml"
    file.write_text("\n".join([*lines, "</elements>"]))
    told = ask(file)
    for flow, up, digits in zip(
        told["flows"],
        (1373, 1377, 1381, 1389, 1393),
        (1372.66, 1376.66, 1380.66, 1388.66, 1392.66),
        strict=True,
    ):
        micros = {end["delay"] * 1e6 for end in flow["targets"]}
        assert {math.ceil(one) for one in micros} == {up}
        assert {round(one, 2) for one in micros} == {digits}
    loads = {server["server"]: server["load"] for server in told["servers"]}
    assert loads["A-5"] == pytest.approx(0.4748, abs=1e-12)


def test_either_word_for_whole_frames_counts(tmp_path: Path) -> None:
    """Saihu takes the words of a technology as options of the analysis, too: IS and PK."""
    file = ports(tmp_path, [(10, 1), (10, 1)], [(10, 1, (0, 1)), (10, 1, (1,))])
    written = json.loads(file.read_text())
    for flow in written["flows"]:
        flow["max_packet_length"] = 3
    told = []
    for network in ({"analysis_option": ["IS", "PK"]}, {"analysis_option": ["IS"], "packetizer": True}):
        file.write_text(json.dumps(written | {"network": network}))
        answers = [ask(file, "--method", method) for method in ("tfa", "sfa")]
        assert all(answer["packetizer"] for answer in answers)
        told.append([exact(answer)[0] for answer in answers])
    assert told[0] == told[1] == [Fraction(22, 5), Fraction(397, 90)]


def test_a_programme_is_never_above_the_separated_bound_of_a_flow_that_is_cut(tmp_path: Path) -> None:
    """The curves by hand: alone with the other at the first server (9, 2); at the last, after 13, (9, 2.3)."""
    file = ports(tmp_path, [(10, 1)] * 3, [(10, 1, (0, 1, 2)), (10, 1, (0, 2))])
    separated = exact(ask(file, "--method", "sfa", "--grouping", "off"))
    assert separated[1] == Fraction(487, 90)
    assert exact(ask(file, "--method", "plp", "--grouping", "off"))[1] <= separated[1]


@pytest.mark.parametrize("method", ["tfa", "sfa", "pmoo"])
def test_one_flow_alone_does_not_overtake_itself(tmp_path: Path, method: str) -> None:
    file = ports(tmp_path, [(20, 20 / 2)], [(50, 5, (0,))])
    assert exact(ask(file, "--method", method, "--multiplexing", "arbitrary")) == [Fraction(25, 2)]


def test_separated_bounds_of_a_ring_need_no_others(tmp_path: Path) -> None:
    """Four servers of rate 20 without latency, four flows of 3.5: total flow analysis holds below 20/6 only. By
    hand: what a flow brings to hop k grows by a = 0.175 of what the others bring, x' = x + a (S - x), so S = 10
    s/(s - 3) with s = (1 - (1 - a)^4)/a, and the delay is 3 S/20 + 10/9.5."""
    ring = [(10, 3.5, [(at + step) % 4 for step in range(4)]) for at in range(4)]
    file = ports(tmp_path, [(20, 0)] * 4, ring)
    told = ask(file, "--method", "sfa", "--grouping", "off")
    assert exact(told) == [Fraction(11360809, 163286)] * 4
    assert [server["delay"] for server in told["servers"]] == [None] * 4
    assert any("servers have no bounds" in note for note in told["notes"])
    refused = CliRunner().invoke(app, ["bounds", str(file), "--method", "tfa"])
    assert refused.exit_code == 4


def test_what_is_not_known_of_a_file_is_named(tmp_path: Path) -> None:
    file = ports(tmp_path, [(10, 1)], [(10, 1, (0,))])
    written = json.loads(file.read_text())
    written["servers"][0] |= {"capacty": 5, "capacity": 5}
    written["network"] = {"analysis_opton": ["IS"], "analysis_option": ["XX"]}
    # As editors of Windows save it.
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(written).encode())
    told = ask(file, "--method", "tfa", "--grouping", "on")
    assert [note for note in told["notes"] if "known here" in note] == [
        '"capacty" of a server is no member that is known here: it changes nothing',
        '"analysis_opton" of the network is no member that is known here: it changes nothing',
        'the analysis option "XX" is not known here: it changes nothing',
    ]
    assert any(note.startswith('the capacity of server "s0" is below') for note in told["notes"])
    written["servers"][0]["capacity"] = "1e100000"
    file.write_text(json.dumps(written))
    refused = CliRunner().invoke(app, ["bounds", str(file)])
    assert refused.exit_code == 2
    assert "out of range" in refused.output
