"""Hosts of a lab: they join by a code, run tests for members alone, and stay within what they allow."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lab_support import World
from support import SECONDS, assert_measured, frame_times
from wiregauge.cli.schemas import schema_of

CLOCKS = {"alpha": "", "beta": "3000000000,20000", "gamma": ""}
"""Offset (ns) and drift (ppb) of the clocks of hosts: one of them is three seconds ahead and runs 20 ppm fast."""

MAY_SET_TSN = "gamma"
"""The host that allows tests to set up its interface."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A lab of three hosts, which have joined it."""
    config = 'interfaces = ["eth1", "eth2"]\naddresses = ["10.88.0.0/23"]\ntsn = true\n'
    made = World(tmp_path_factory.mktemp("lab"), CLOCKS, {MAY_SET_TSN: config})
    try:
        made.enrol_all()
        yield made
    finally:
        made.close()


TEST = """<?xml version="1.0"?>
<test xmlns="urn:wiregauge:test:2" name="two-hosts" seed="1" bench="lab">
  <network>
    <end-system name="controller"/>
    <end-system name="drive"/>
    <switch name="sw"/>
    <link between="controller sw" rate="1Gbit/s"/>
    <link between="drive sw" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="controller" to="drive"/>
    <flow id="20" protocol="raw" from="controller" to="drive"/>
  </flows>
  <tasks warm-up="200ms" drain="200ms">
    <send flow="10" period="2ms" payload="64B" count="300"/>
    <receive flow="10"/>
    <send flow="20" period="2ms" payload="100B" count="300" offset="1ms"/>
    <relay flow="20"/>
  </tasks>
  {synchronise}
  <limits><limit measure="lost" at-most="0"/></limits>
</test>
"""
EXCHANGE = '<synchronise reference="controller"><exchange period="10ms"/></synchronise>'


def flows_of(run: Path) -> dict[int, dict[str, Any]]:
    shown = json.loads((run / "measures.json").read_text())
    return {flow["flow"]: flow for flow in shown["runs"][0]["flows"]}


def test_hosts_say_what_they_have(world: World) -> None:
    done = world.run("lab", "status", "--json")
    assert done.code == 0, done.err
    jsonschema_rs.validate(json.loads(schema_of("lab status").read_text()), done.json())
    hosts = {host["name"]: host for host in done.json()["hosts"]}
    assert {name: host["interface"]["name"] for name, host in hosts.items()} == dict.fromkeys(CLOCKS, "eth1")
    assert {name: host["same_host"] for name, host in hosts.items()} == {
        "alpha": True,
        "beta": False,
        "gamma": True,
    }


def test_a_probe_is_an_ordinary_test(world: World) -> None:
    done = world.run("probe", "alpha", "--count", "500", "--payload", "64B,512B", "--limit", "lost <= 0")
    place = world.folder / "probe-alpha"
    assert_measured(done, place)
    assert (place / "report.html").exists()
    # A busy machine makes a run INVALID now and then, and that one alone keeps no limit.
    for run in done_runs(place):
        assert run["limits"][0]["result"] == ("undecided" if run["validity"] == "INVALID" else "pass")
    assert len(done_runs(place)) == 2
    assert flows_of(place)[10]["sent"] == 500
    again = world.run("probe", "10.77.0.2", "--count", "100", "--protocol", "raw", "--round-trip")
    assert_measured(again, world.folder / "probe-alpha-2")
    assert flows_of(world.folder / "probe-alpha-2")[10]["rtt_ns"]["n"] == 100
    assert "test" in (place / "test.xml").read_text()
    assert "PRIVATE KEY" not in "".join(
        file.read_text(errors="replace") for file in place.rglob("*") if file.is_file()
    )


def done_runs(place: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((place / "measures.json").read_text())["runs"]
    return runs


def test_exchanges_bring_clocks_of_hosts_together(world: World) -> None:
    """Beta is three seconds ahead and 20 ppm fast; one-way latencies are those of a host whose clock is right."""
    done = world.run("probe", "beta", "--duration", "2s", "--period", "2ms")
    place = world.folder / "probe-beta"
    assert_measured(done, place)
    latency = flows_of(place)[10]["latency_ns"]
    # A veth pair and a bridge take microseconds; drift alone would make it 40 µs by the end, and the offset 3 s.
    assert -1e6 < latency["min"] < 5e6
    (clock,) = done_runs(place)[0]["clocks"]
    assert clock["method"] == "exchange"


def test_without_exchanges_one_way_figures_bear_the_uncertainty_of_the_control_connection(
    world: World,
) -> None:
    (world.folder / "bare.xml").write_text(TEST.format(synchronise=""))
    inventory = world.lab / "lab.toml"
    before = inventory.read_text()
    try:
        inventory.write_text(before + 'end-systems = ["nobody"]\n')
        done = world.run("run", "bare.xml", "--out", "bare")
        assert_measured(done, world.folder / "bare")
    finally:
        inventory.write_text(before)
    manifest = json.loads((world.folder / "bare" / "manifest.json").read_text())
    offset = manifest["runs"][0]["clock_offsets"]["drive"]
    assert offset["method"] == "control-connection"
    assert offset["offset_ns"] == 0
    assert offset["uncertainty_ns"] > 1_000
    half = flows_of(world.folder / "bare")[10]["latency_ns"]["uncertainty_parts"]["clock"]
    assert half >= offset["uncertainty_ns"]


def test_a_test_file_runs_on_the_hosts_it_names(world: World) -> None:
    (world.folder / "two.xml").write_text(TEST.format(synchronise=EXCHANGE))
    inventory = world.lab / "lab.toml"
    before = inventory.read_text()
    try:
        inventory.write_text(before + 'end-systems = ["controller"]\n')
        mapped = world.run("lab", "map", "two.xml", "--json", "--lab", inventory)
        assert mapped.code == 0, mapped.err
        jsonschema_rs.validate(json.loads(schema_of("lab map").read_text()), mapped.json())
        facts = {fact["name"]: fact["value"] for fact in mapped.json()["facts"]}
        assert facts["controller"] == "gamma, interface eth1"
        assert facts["drive"] == "alpha, interface eth1"
        done = world.run("run", "two.xml", "--out", "two", "--lab", world.lab)
    finally:
        inventory.write_text(before)
    assert_measured(done, world.folder / "two")
    flows = flows_of(world.folder / "two")
    assert {number: flow["sent"] for number, flow in flows.items()} == {10: 300, 20: 300}


def test_hosts_tell_live_figures_and_an_alarm_ends_the_run_on_all_of_them(world: World) -> None:
    long = TEST.replace('count="300"', 'count="15000"').replace("{synchronise}", "")
    (world.folder / "long.xml").write_text(long)
    done = world.run("run", "long.xml", "--out", "alarmed", "--alarm", "rtt.p50 <= 1ns", "--on-alarm", "exit")
    assert done.code == 4, done.err
    manifest = json.loads((world.folder / "alarmed" / "manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert "flow 20 (controller → drive): rtt.p50 is" in manifest["reason"]
    (incident,) = manifest["runs"][0]["alarms"]["incidents"]
    assert (incident["flow"], incident["unit"]) == (20, "ns")
    # A switch and two veth pairs there and back, on a host that may be busy.
    assert 1_000 < incident["first"] < 1e9
    flows = flows_of(world.folder / "alarmed")
    assert 0 < flows[20]["delivered"] < 15_000


WATCH = """
import json, re, sys, time, urllib.parse, urllib.request
base = sys.argv[1]
def asked(place, form=None):
    data = None if form is None else urllib.parse.urlencode(form).encode()
    origin = "/".join(base.split("/")[:3])
    request = urllib.request.Request(urllib.parse.urljoin(base, place), data, {"accept": "text/html", "origin": origin})
    with urllib.request.urlopen(request) as answer:
        return answer.url, answer.read().decode()
_, tests = asked("tests")
place = re.search(r'href="([^"]*)">watched.xml<', tests)[1]
seen = re.search(r'name="seen" value="([^"]*)"', asked(place)[1])[1]
url, _ = asked(place + "/run", {"seen": seen, "bench": "lab"})
while "/run/" not in url:
    time.sleep(0.2)
    url, _ = asked(url)
while True:
    said = json.loads(asked(url + "/live")[1])
    flows = ((said.get("live") or {}).get("now") or {}).get("flows")
    if said["over"] or (flows and all(flow["received"] for flow in flows)):
        break
    time.sleep(0.2)
print(json.dumps(said))
asked(url + "/stop", {"sure": "yes"})
while not json.loads(asked(url + "/live")[1])["over"]:
    time.sleep(0.2)
"""


def test_a_run_of_a_lab_is_started_watched_and_stopped_from_its_page(world: World) -> None:
    long = TEST.replace('count="300"', 'count="15000"').replace("{synchronise}", "")
    (world.folder / "watched.xml").write_text(long)
    server = world.begin("serve", world.folder, "--control", "--port", "0")
    try:
        assert server.stdout is not None
        base = server.stdout.readline().strip()
        inside = ["nsenter", "-t", str(world.pid), "--net", "--", sys.executable, "-c", WATCH, base]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        server.terminate()
        server.communicate()
    now = json.loads(done.stdout)["live"]["now"]
    assert {flow["flow"]: flow["measure"] for flow in now["flows"]} == {10: "latency", 20: "rtt"}
    assert all(flow["received"] > 0 for flow in now["flows"])
    manifest = json.loads((world.folder / "watched-run" / "manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert "from a page" in manifest["reason"]


def test_captures_of_hosts_keep_what_surrounds_an_alarm_whatever_their_clocks_show(world: World) -> None:
    captured = (
        TEST.replace('count="300"', 'count="5000"')
        .format(synchronise="")
        .replace(
            '<relay flow="20"/>',
            '<relay flow="20"><fault kind="loss" sequence="1000-1006"/></relay>'
            '<capture on="controller"/><capture on="drive"/>',
        )
    )
    (world.folder / "around.xml").write_text(captured)
    done = world.run(
        "run", "around.xml", "--out", "around", "--alarm", "lost <= 0", "--capture-around", "200ms"
    )
    # A machine that is busy sends late, and a run that is INVALID for it fails no limit.
    assert done.code in (1, 4), done.err
    (entry,) = json.loads((world.folder / "around" / "manifest.json").read_text())["runs"]
    ((begin, end),) = entry["alarms"]["kept"]
    assert begin < 0.2 + 1000 * 0.002 < end < 8
    for node in ("controller", "drive"):
        (task,) = (task for task in entry["agents"][node]["tasks"] if task["kind"] == "capture")
        capture = world.folder / "around" / "captures" / "run-0000" / f"{node}.pcapng"
        # What is captured bears the kernel's time, which the planted clocks do not touch.
        times = frame_times(capture, entry["epoch_realtime_ns"])
        assert len(times) == task["done"] > 0
        assert begin - 0.5 <= min(times) <= max(times) <= end + 0.5, node
        assert any(abs(at - 2.2) < 0.1 for at in times), node
        assert task["passed_over"] > task["done"] / 4


def test_what_hosts_cannot_do_is_refused_before_anything_is_sent(world: World) -> None:
    (world.folder / "four.xml").write_text(
        TEST.format(synchronise="")
        .replace(
            '<end-system name="drive"/>',
            '<end-system name="drive"/>' + "".join(f'<end-system name="x{n}"/>' for n in range(2)),
        )
        .replace(
            "</network>",
            "".join(f'<link between="x{n} sw" rate="1Gbit/s"/>' for n in range(2)) + "</network>",
        )
    )
    done = world.run("run", "four.xml")
    assert done.code == 3
    assert "there is no host for x1; the test needs 4. alpha: controller is on it" in done.err
    assert not (world.folder / "two-hosts-run").exists()
    fast = world.run(
        "probe", "alpha", "--period", "10us", "--payload", "1472B", "--count", "100", "--round-trip"
    )
    assert fast.code != 0
    assert "it allows at most 100Mbit/s" in fast.err + fast.out
    long = world.run("probe", "alpha", "--duration", "2h", "--period", "1s")
    assert "this host allows at most 3600 s" in long.err + long.out


TSN = """<host-tsn>
      <traffic-class number="0" priorities="7"/><traffic-class number="1" priorities="0 1 2 3 4 5 6"/>
      <classify flow="10" priority="7"/>
    </host-tsn>"""


def test_hosts_set_up_their_interfaces_only_where_they_allow_it(world: World) -> None:
    """On a kernel without the queue disciplines the host says which it lacks; with them, the run is an ordinary one."""
    text = TEST.format(synchronise="").replace(
        '<end-system name="controller"/>', f'<end-system name="controller">{TSN}</end-system>'
    )
    # What a veth pair says of itself; settings for another rate are refused.
    text = text.replace('"controller sw" rate="1Gbit/s"', '"controller sw" rate="10Gbit/s"')
    (world.folder / "tsn.xml").write_text(text)
    inventory = world.lab / "lab.toml"
    before = inventory.read_text()
    dry = world.run("run", "tsn.xml", "--dry-run")
    assert dry.code == 0, dry.err
    assert dry.out.startswith("# controller, interface eth1: before a run\ntc qdisc add dev eth1 clsact\n"), (
        dry.out
    )
    # The addresses are those that the hosts have.
    assert (
        "ip_proto udp src_ip 10.88.0.2 dst_ip 10.88.0.3 dst_port 61188 action skbedit priority 7" in dry.out
    )
    assert not (world.folder / "two-hosts-run").exists()
    refused = world.run("run", "tsn.xml", "--out", "refused")
    assert refused.code == 4
    assert "this host allows no TSN settings of its interfaces; tsn = true" in refused.err
    try:
        inventory.write_text(before + 'end-systems = ["controller"]\n')
        done = world.run("run", "tsn.xml", "--out", "allowed")
    finally:
        inventory.write_text(before)
    if done.code == 4:
        assert "eth1 takes no such TSN settings: its kernel has no " in done.err, done.err
    else:
        assert_measured(done, world.folder / "allowed")
    left = sorted(path.name for path in (world.folder / "hosts" / MAY_SET_TSN / "keys").glob("tsn*.json*"))
    assert left == []


def test_an_agent_obeys_members_alone_within_their_roles(world: World) -> None:
    assert world.run("lab", "member", "eve", "--role", "observer").code == 0
    assert world.run("lab", "status", member="eve").code == 0
    refused = world.run("probe", "alpha", "--count", "10", member="eve")
    assert refused.code == 3
    assert "Hello needs the role operator; the certificate of eve has the role observer" in refused.err
    last = [line for line in world.audit("alpha") if line["who"] == "eve (observer)"][-1]
    assert (last["call"], last["refused"].split(";")[0]) == ("Hello", "Hello needs the role operator")
    # Another lab's members are nobody here.
    own, world.lab = world.lab, world.folder / "other"
    try:
        assert world.run("lab", "init").code == 0
        (world.lab / "lab.toml").write_text((own / "lab.toml").read_text())
        foreign = world.run("lab", "status", "--json")
        assert foreign.code == 3
        assert [host["unfit"] for host in foreign.json()["hosts"]] == [
            f"no answer (10.77.0.{number}:47170: it is in no lab yet, or in another one: enrol it with its agent's "
            "join code)"
            for number in (2, 3, 4)
        ]
        assert foreign.err == ""
        again = world.run("lab", "enrol", "10.77.0.2", world.codes["alpha"])
        assert again.code == 3
        assert "did not print this join code" in again.err
    finally:
        world.lab = own


def test_a_host_that_stands_in_for_another_is_not_believed(world: World) -> None:
    inventory = world.lab / "lab.toml"
    before = inventory.read_text()
    try:
        inventory.write_text(before.replace("10.77.0.3", "10.77.0.4"))
        done = world.run("lab", "status", "--json")
    finally:
        inventory.write_text(before)
    assert done.code == 3
    hosts = {host["name"]: host["unfit"] for host in done.json()["hosts"]}
    assert hosts["gamma"] is None
    assert hosts["beta"] is not None


def test_a_host_is_an_end_system_on_each_of_its_interfaces(world: World) -> None:
    (world.folder / "same.xml").write_text(TEST.format(synchronise=""))
    inventory = world.lab / "lab.toml"
    before = inventory.read_text()
    try:
        inventory.write_text(
            '[[host]]\nname = "alpha"\naddress = "10.77.0.2"\n[[host.interfaces]]\nname = "eth1"\n'
            '[[host.interfaces]]\nname = "eth2"\nend-systems = ["controller"]\n'
        )
        listed = world.run("lab", "status", "--json").json()
        jsonschema_rs.validate(json.loads(schema_of("lab status").read_text()), listed)
        assert [host["interface"]["name"] for host in listed["hosts"]] == ["eth1", "eth2"]
        done = world.run("run", "same.xml", "--out", "same")
    finally:
        inventory.write_text(before)
    assert_measured(done, world.folder / "same")
    facts = {fact["name"]: fact["value"] for fact in manifest_of(world.folder / "same")["bench_facts"]}
    assert (facts["controller"], facts["drive"]) == ("alpha, interface eth2", "alpha, interface eth1")
    assert facts["reachability"] == "every receiver answers its senders"
    flows = flows_of(world.folder / "same")
    assert {number: flow["delivered"] for number, flow in flows.items()} == {10: 300, 20: 300}


def manifest_of(place: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((place / "manifest.json").read_text())
    return manifest


def test_what_is_wrong_with_the_network_is_said_before_the_first_frame(world: World) -> None:
    (world.folder / "large.xml").write_text(
        TEST.format(synchronise="").replace('payload="100B"', 'payload="1400B"')
    )
    world.order("down alpha 1")
    world.order("down beta 1")
    try:
        cut = world.run("run", "large.xml", "--out", "cut")
    finally:
        world.order("up alpha 1")
        world.order("up beta 1")
    assert cut.code == 3
    assert "alpha: eth1 is down; beta: eth1 is down" in cut.err
    world.space("gamma", "ip", "addr", "add", "10.88.0.3/32", "dev", "eth1")
    try:
        twice = world.run("run", "large.xml", "--out", "twice")
    finally:
        world.space("gamma", "ip", "addr", "del", "10.88.0.3/32", "dev", "eth1")
    assert twice.code == 3
    assert "controller asked for 10.88.0.3, which is drive on beta, and " in twice.err
    assert "give one of them another address" in twice.err
    world.space("switches", "ip", "link", "set", "p2-1", "mtu", "1000")
    try:
        narrow = world.run("run", "large.xml", "--out", "narrow")
    finally:
        world.space("switches", "ip", "link", "set", "p2-1", "mtu", "1500")
    assert narrow.code == 3
    assert "answers short frames of controller, and none of 1400 bytes after the header" in narrow.err
    for place in ("cut", "twice", "narrow"):
        assert not (world.folder / place).exists()


def _lldpd(into: list[str], ports: str) -> subprocess.Popen[bytes]:
    """A daemon with its socket and its files in a /run of this place's own."""
    own = f"mount -t tmpfs none /run && mkdir /run/lldpd && exec lldpd -d -I {ports}"
    return subprocess.Popen([*into, "sh", "-c", own], stderr=subprocess.DEVNULL)


@pytest.fixture
def discovery(world: World) -> Iterator[None]:
    """LLDP at the switch and on two hosts, each with a socket where its agent looks for one."""
    if shutil.which("lldpd") is None:
        pytest.skip("needs lldpd")
    daemons = []
    for host in ("alpha", "beta"):
        agent = world.processes(host, "wiregauge-agent")[0]
        into = ["nsenter", "-t", str(agent), "--net", "--mount", "--uts", "--"]
        daemons.append(_lldpd(into, "eth1"))
    time.sleep(1)
    daemons.append(_lldpd([*world.into("switches"), "unshare", "--mount"], "p1-1,p2-1"))
    yield
    for daemon in daemons:
        daemon.terminate()
    for daemon in daemons:
        daemon.wait(timeout=10)


def test_cables_are_compared_with_what_neighbours_say(world: World, discovery: None) -> None:
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        hosts = world.run("lab", "status", "--json").json()["hosts"]
        heard = {host["name"]: host["interface"]["neighbours"] for host in hosts}
        if heard["alpha"] and heard["beta"]:
            break
        time.sleep(0.5)
    ports = {name: [one["port_description"] for one in found] for name, found in heard.items()}
    assert ports == {"alpha": ["p1-1"], "beta": ["p2-1"], "gamma": []}
    two = TEST.format(synchronise="").replace('name="sw"/>', 'name="sw"/><switch name="far"/>', 1)
    near, far = (f'between="drive {name}" rate="1Gbit/s"/>' for name in ("sw", "far"))
    two = two.replace(near, far + '\n<link between="sw far" rate="1Gbit/s"/>')
    (world.folder / "cables.xml").write_text(two)
    assert world.run("run", "cables.xml", "--out", "cables").code in {0, 1, 4}
    facts = {fact["name"]: fact for fact in manifest_of(world.folder / "cables")["bench_facts"]}
    assert "controller and drive have no switch in common in the test" in facts["cables"]["note"]
    assert "at port p1-1 of " in facts["controller"]["note"]


def test_a_drained_host_is_left_alone(world: World) -> None:
    assert world.run("lab", "drain", "beta", "--reason", "its fan is changed").out == (
        "beta takes no new tests\n"
    )
    try:
        status = world.run("lab", "status", "--json")
        assert status.code == 3
        unfit = {host["name"]: host["unfit"] for host in status.json()["hosts"]}
        assert unfit["alpha"] is None
        assert unfit["beta"].endswith(": its fan is changed")
        refused = world.run("probe", "beta", "--count", "10")
        assert refused.code == 3
        assert "its fan is changed" in refused.err
    finally:
        assert world.run("lab", "drain", "beta", "--undo").out == "beta takes tests again\n"
    assert world.run("lab", "status").code == 0
    assert world.run("lab", "drain", "nobody").code == 2
    assert world.run("lab", "clean").out == "".join(f"{name}: nothing is kept\n" for name in CLOCKS)


def test_a_host_that_is_used_is_waited_for_where_that_is_asked(world: World) -> None:
    (world.folder / "all.xml").write_text(
        TEST.format(synchronise="")
        .replace('<end-system name="drive"/>', '<end-system name="drive"/><end-system name="third"/>')
        .replace("</network>", '<link between="third sw" rate="1Gbit/s"/></network>')
        .replace('count="300"', 'count="8000"')
    )
    first = world.begin("run", "all.xml", "--out", "first")
    end = time.monotonic() + 30
    while not any(host["in_use"] for host in world.run("lab", "status", "--json").json()["hosts"]):
        assert time.monotonic() < end, first.communicate()
    refused = world.run("run", "all.xml", "--out", "turned-away")
    assert refused.code == 3
    assert "alpha: eth1 is used by root for " in refused.err
    waited = world.run("run", "all.xml", "--out", "waited", "--wait", "1min")
    assert_measured(waited, world.folder / "waited")
    out, err = first.communicate(timeout=60)
    assert first.returncode in (0, 4), out + err
    for place in ("first", "waited"):
        assert {flow["sent"] for flow in flows_of(world.folder / place).values()} == {8000}
    assert world.run("run", "all.xml", "--wait", "long").code == 2
    assert world.run("run", "all.xml", "--bench", "sim", "--wait", "1s").code == 2
