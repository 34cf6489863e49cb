"""Simulations of INET as tests: what the export writes comes back, and what is not carried is named."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from command_json import validator
from simulation import US, frame, sending, simulate
from simulation import written as written_test
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import load, load_bytes
from wiregauge.inet import InetError, inet_files, read_inet
from wiregauge.inet.settings import fits
from wiregauge.inet.values import Call, Quantity, UnreadableError, evaluated, picos
from wiregauge.plan import Campaign

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

NED = """
package lab;
import inet.node.ethernet.EthernetLink;
// a network of three
channel Short extends EthernetLink { length = 2m; }
module Bridge extends inet.node.tsn.TsnSwitch { parameters: @display("i=a;b"); }
network Lab
{
    parameters:
        *.*.eth[*].bitrate = default(100Mbps);
    submodules:
        camera: <default("TsnDevice")> like IEthernetNetworkNode { @display("p=1,2"); }
        brake: TsnDevice { @display("p=1,2"); }
        bridge: Bridge;
        clock: <> like IEthernetNetworkNode if typename != "" { @display("p=3,4"); }
    connections:
        camera.ethg++ <--> Short <--> bridge.ethg++;
        brake.ethg++ <--> EthernetLink { delay = 1us; @display("ls=red"); } <--> bridge.ethg++;
        clock.ethg++ <--> EthernetLink <--> bridge.ethg++ if exists(clock);
}
"""
INI = """
[General]
network = Lab
sim-time-limit = 10ms   # "as long"
*.visualizer.displayGates = true
*.camera.numApps = 1
*.camera.app[0].typename = "UdpSourceApp"
*.camera.app[*].io.destAddress = "brake"
*.camera.app[0].io.destPort = 1000
*.camera.app[0].source.packetLength = 1500B - 4*125B
*.camera.app[0].source.productionInterval = 1ms
*.brake.numApps = 1
*.brake.app[0].typename = "UdpSinkApp"
[Config Tagged]
*.camera.hasOutgoingStreams = true
*.camera.bridging.streamIdentifier.identifier.mapping =
    [{stream: "a", packetFilter: expr(has(udp) && udp.destPort == 1000)}, {stream: "b", packetFilter: "*"}]
*.camera.bridging.streamCoder.encoder.mapping = [{stream: "b", pcp: 1}, {stream: "a", pcp: 6}]
[Gates]
extends = Tagged
*.bridge.hasEgressTrafficShaping = true
*.bridge.eth[1].macLayer.queue.numTrafficClasses = 2
*.bridge.eth[1].macLayer.queue.transmissionGate[1].initiallyOpen = false
*.bridge.eth[1].macLayer.queue.transmissionGate[1].durations = [300us, 200us]
*.bridge.eth[1].macLayer.queue.transmissionGate[1].offset = 100us
*.bridge.eth[1].macLayer.queue.transmissionSelectionAlgorithm[0].typename = "Ieee8021qCreditBasedShaper"
*.bridge.eth[1].macLayer.queue.transmissionSelectionAlgorithm[0].idleSlope = 42.5Mbps
"""


def written(folder: Path, ini: str = INI, ned: str = NED) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "lab.ned").write_text(ned, encoding="utf-8")
    (folder / "omnetpp.ini").write_text(ini, encoding="utf-8")
    return folder / "omnetpp.ini"


def carried(ini: Path, configuration: str | None) -> Campaign:
    return load_bytes(read_inet(ini, configuration, ()).xml, ini.with_name("t.xml"), ()).campaign


SHAPED = written_test(
    """<end-system name="a"/><end-system name="b"/><end-system name="c"/>
    <switch name="sw" delay="3us">
      <switch-tsn ports="3">
        <traffic-class number="0" priorities="0 1 2 3"/>
        <traffic-class number="1" priorities="4 5"><cbs idle-slope="20Mbit/s"/></traffic-class>
        <traffic-class number="2" priorities="6 7"/>
        <gate-schedule base-time="70us" cycle-time="500us">
          <gate-entry open="2" for="40us"/><gate-entry open="0 1" for="440us"/><gate-entry for="20us"/>
        </gate-schedule>
      </switch-tsn>
    </switch>
    <link between="a sw" rate="1Gbit/s" delay="200ns"/><link between="b sw" rate="100Mbit/s"/>
    <link between="sw c" rate="100Mbit/s"/>""",
    """<flow id="1" protocol="udp" from="a" to="c"/><flow id="2" protocol="udp" from="b" to="c" priority="5"/>
    <flow id="3" protocol="udp" from="a" to="c" priority="7"/>""",
    """<send flow="1" period="310us" payload="1200B" count="60"/><receive flow="1"/>
    <send flow="2" period="170us" payload="300B" count="100" offset="13us"/><receive flow="2"/>
    <send flow="3" period="500us" payload="100B" count="40" offset="50us"/><receive flow="3"/>""",
)


def test_what_the_export_writes_comes_back(tmp_path: Path) -> None:
    """The same frames meet the same gates, shapers and queues: latencies agree to the picosecond."""
    own = simulate(SHAPED, tmp_path / "own")
    ini = tmp_path / "inet" / "omnetpp.ini"
    ini.parent.mkdir()
    for file, text in inet_files(own.plan).items():
        ini.with_name(file).write_text(text, encoding="utf-8")
    again = simulate(read_inet(ini, None, ()).xml.decode(), tmp_path / "again")
    assert [len(own.latencies(flow)) for flow in (1, 2, 3)] == [60, 100, 40]
    assert len(set(own.latencies(2))) > 10
    # Flows are counted from node to node.
    for flow, number in ((1, 1), (3, 2), (2, 3)):
        assert again.latencies(number) == own.latencies(flow)


@pytest.mark.parametrize("name", ["gates", "cut-through"])
def test_examples_come_back(name: str, tmp_path: Path) -> None:
    own = load(EXAMPLES / f"{name}.xml").campaign
    for file, text in inet_files(own).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    read = read_inet(tmp_path / "omnetpp.ini", None, ())
    assert not read.left
    again = load_bytes(read.xml, tmp_path / "t.xml", ()).campaign
    assert [node.name for node in again.network.nodes] == [node.name for node in own.network.nodes]
    assert [(link.rate_bps, link.delay) for link in again.network.links] == [
        (link.rate_bps, link.delay) for link in own.network.links
    ]


def test_the_example_has_a_window_for_its_commands(tmp_path: Path) -> None:
    """Three transmissions, two switches of 4 us and 90 m of cable: no command waits for anything."""
    read = read_inet(EXAMPLES / "inet" / "omnetpp.ini", "Gates", ())
    assert not read.left
    (latency,) = set(simulate(read.xml.decode(), tmp_path / "t").latencies(1))
    cables = (20 + 60 + 10) * 5_000
    assert latency == 3 * sending(frame(100, "udp", tagged=True), 10**8) + 2 * 4 * US + cables


def test_a_network_and_its_settings(tmp_path: Path) -> None:
    campaign = carried(written(tmp_path), None)
    assert [node.name for node in campaign.network.nodes] == ["camera", "brake", "bridge"]
    # Two metres at 2 x 10^8 m/s, and a delay of its own.
    assert [(link.rate_bps, link.delay) for link in campaign.network.links] == [
        (10**8, 10_000),
        (10**8, 10**6),
    ]
    (flow,), (send,) = campaign.runs[0].flows, campaign.runs[0].sends
    assert (flow.vlan, send.payload, send.period, send.count) == (None, 1000, 10**9, 10)


def test_streams_become_priorities_and_gates_a_list(tmp_path: Path) -> None:
    campaign = carried(written(tmp_path), "Gates")
    (flow,) = campaign.runs[0].flows
    assert flow.vlan is not None
    assert flow.vlan.priority == 6
    xml = read_inet(tmp_path / "omnetpp.ini", "Gates", ()).xml.decode()
    # 100 us of the 300 us in which it is closed are over at time zero.
    assert '<gate-entry for="200us" open="0"/>' in xml
    assert '<gate-entry for="200us" open="0 1"/>' in xml
    assert xml.index('for="200us" open="0"') < xml.index('open="0 1"') < xml.index('for="100us" open="0"')
    assert '<cbs idle-slope="42.5Mbit/s"/>' in xml
    assert '<traffic-class number="1" priorities="4 5 6 7"/>' in xml


REFUSED = {
    "a sine": (
        "productionInterval = 1ms",
        'productionInterval = replaceUnit(sin(1), "ms")',
        "neither constant",
    ),
    "a feature": (
        "[Config",
        "*.bridge.hasTimeSynchronization = true\n[Config",
        '"bridge" has time synchronisation',
    ),
    "a host with gates": (
        "[Config",
        "*.*.hasEgressTrafficShaping = true\n[Config",
        '"camera" has shapers or gates',
    ),
    "a clock": (
        "[Config",
        "*.*.clock.oscillator.driftRate = 1ppm\n[Config",
        r"omnetpp.ini:\d+: \*.\*.clock.oscillator",
    ),
    "a queue": (
        "[Config",
        '*.bridge.eth[*].macLayer.queue.typename = "Odd"\n[Config',
        "macLayer.queue.typename",
    ),
    "an address": ('"brake"', '"224.0.0.1"', "no node of that name"),
    "an application": ("UdpSourceApp", "TcpApp", "of the type TcpApp"),
    "no end": ("sim-time-limit = 10ms", "", "no sim-time-limit"),
    "no network": ("network = Lab", "network = Other", "none of 1 NED files"),
    "no assignment": ("network = Lab", "network Lab", "neither a section nor an assignment"),
    "two units": ("1500B - 4*125B", "1500B - 1us", "adds two units"),
    "a configuration": ("extends = Tagged", "extends = Nobody", 'extends "Nobody"'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_carried_is_named(what: str, tmp_path: Path) -> None:
    before, after, reason = REFUSED[what]
    assert before in INI
    with pytest.raises(InetError, match=reason):
        read_inet(written(tmp_path, INI.replace(before, after)), "Gates", ())


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("camera: <", "camera[3]: <", "vector of nodes"),
        ("brake: TsnDevice", "brake: Toaster", "of the type Toaster"),
        ("        camera.ethg++ <-->", "        for i=0..2 { camera.ethg++ <-->", "loop"),
        ("if exists(clock)", "if size > 3", "has a condition"),
        ("network Lab\n", "network Lab extends Elsewhere\n", 'extends "Elsewhere"'),
    ],
)
def test_networks_beyond_this_are_named(before: str, after: str, reason: str, tmp_path: Path) -> None:
    assert before in NED
    with pytest.raises(InetError, match=reason):
        read_inet(written(tmp_path, ned=NED.replace(before, after)), None, ())


@settings(max_examples=150)
@given(st.integers(0, len(NED) - 1), st.integers(0, 40), st.text('{}();:<->+.="/ a1', max_size=6))
def test_a_damaged_network_ends_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, gone: int, put: str
) -> None:
    ini = written(tmp_path_factory.getbasetemp() / "damaged", ned=NED[:at] + put + NED[at + gone :])
    reasons: tuple[str, ...] = ()
    try:
        read = read_inet(ini, "Gates", ())
    except InetError as error:
        reasons = error.reasons
    else:
        reasons = (read.xml.decode(),)
    assert all(reasons)


@pytest.mark.parametrize(
    ("pattern", "path", "is_for_it"),
    [
        ("*.client*.app[*].typename", "client1.app[0].typename", True),
        ("*.client*.app[*].typename", "server.app[0].typename", False),
        ("Net.client.x", "client.x", True),
        ("**.x", "a.b.c.x", True),
        ("*.x", "a.x", False),
        ("*.*.x", "a.x", True),
        ("*.a[1..3].x", "a[2].x", True),
        ("*.a[1..3].x", "a[12].x", False),
        ("*.a{1..12}.x", "a12.x", True),
        ("*.a?.x", "a.x", False),
    ],
)
def test_patterns_are_those_of_omnetpp(pattern: str, path: str, is_for_it: bool) -> None:
    assert fits(pattern, path) is is_for_it


def test_values() -> None:
    assert picos(evaluated("(2 + 1) * 1ms / 2 - 0.5us")) == 1_499_500_000
    assert evaluated("exponential(200us)") == Call("exponential", [Quantity(Fraction(1, 5000), "s")])
    assert evaluated('[{a: "b\\"c", d: true}]') == [{"a": 'b"c', "d": True}]
    for text in ("1ms + 1B", "1ms * 1ms", "1 / 0", "[1, 2", "x + 1", "1parsec", "(" * 100, ""):
        with pytest.raises(UnreadableError):
            evaluated(text)


def test_the_command_writes_a_test_and_names_what_it_leaves(tmp_path: Path) -> None:
    ini = written(tmp_path, INI.replace("[Config", '*.camera.eth[0].address = "0A"\n[Config'))
    words = ["new", str(tmp_path / "lab.xml"), "--from", str(ini), "--config", "Gates"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "not carried" in result.stderr
    assert load(tmp_path / "lab.xml").campaign.name == "Gates"
    assert CliRunner().invoke(app, words).exit_code == 2
    told = CliRunner().invoke(app, ["new", str(tmp_path / "again.xml"), *words[2:], "--json"])
    answer = json.loads(told.stdout)
    validator(schema_of("new")).validate(answer)
    assert answer["written"] == str(tmp_path / "again.xml")
    assert ["camera.eth[0].address" in one for one in answer["left"]] == [True]
    assert CliRunner().invoke(app, ["new", "--config", "Gates"]).exit_code == 2
    missing = CliRunner().invoke(app, [*words[:2], "--from", str(tmp_path / "none.ini")])
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr
