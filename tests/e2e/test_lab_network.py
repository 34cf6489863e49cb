"""A host of a lab is the network between the others: every protocol between hosts, over cables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab_support import World

TEST = """<test xmlns="urn:wiregauge:test:2" name="between" seed="5">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/>
    <switch name="sw1" kind="mixed-criticality"/>
    <link between="a sw1" rate="100Mbit/s"/><link between="b sw1" rate="100Mbit/s"/>
    <link between="c sw1" rate="100Mbit/s"/>
  </network>
  <flows>
    <flow id="1" protocol="tt" from="a" to="c" period="10ms" offset="1ms"/>
    <flow id="2" protocol="rc" from="b" to="c" vl="7" bag="8ms" lmax="300B"/>
    <flow id="3" protocol="be" from="b" to="c"/>
    <flow id="4" protocol="raw" from="c" to="a"/>
    <flow id="5" protocol="udp" from="a" to="b"/>
  </flows>
  <tasks warm-up="100ms" drain="200ms">
    <send flow="1" period="10ms" payload="200B" count="60"/><receive flow="1"/>
    <send flow="2" period="16ms" payload="200B" count="40"/><receive flow="2"/>
    <send flow="3" period="10ms" payload="900B" count="60"/><receive flow="3"/>
    <send flow="4" period="10ms" payload="64B" count="60"/><receive flow="4"/>
    <send flow="5" period="10ms" payload="64B" count="60"/><receive flow="5"/>
  </tasks>
  <faults><loss link="c sw1" flow="4" sequence="20-29"/></faults>
</test>
"""
CONFIG = 'interfaces = ["eth1", "t0", "c1", "c2", "c3"]\naddresses = ["10.88.0.0/23", "10.99.0.0/24"]\n'
ENDS = {"alpha": "a", "beta": "b", "gamma": "c"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    names = [*ENDS, "delta"]
    made = World(tmp_path_factory.mktemp("lab"), dict.fromkeys(names, ""), dict.fromkeys(names, CONFIG))
    try:
        made.enrol_all()
        for number, host in enumerate(ENDS, 1):
            made.order(f"wire {host} t0 10.99.0.{number}/24 delta c{number}")
        yield made
    finally:
        made.close()


def inventory(leads: dict[str, str]) -> str:
    text = "".join(
        f'[[host]]\nname = "{host}"\naddress = "10.77.0.{number}"\ninterface = "t0"\nend-systems = ["{end}"]\n\n'
        for number, (host, end) in enumerate(ENDS.items(), 2)
    )
    text += '[[host]]\nname = "delta"\naddress = "10.77.0.5"\n'
    return text + "".join(
        f'[[host.interfaces]]\nname = "{interface}"\nleads-to = "{end}"\n' for interface, end in leads.items()
    )


def test_every_protocol_crosses_a_network_that_a_host_plays(world: World) -> None:
    (world.folder / "test.xml").write_text(TEST)
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "c3": "c"}))
    done = world.run("lab", "status")
    assert done.code == 0, done.out + done.err
    assert "leads to a" in " ".join(done.out.split())
    done = world.run("run", "test.xml", "--bench", "lab", "--out", "r")
    manifest: dict[str, Any] = json.loads((world.folder / "r" / "manifest.json").read_text())
    assert manifest["state"] == "complete", done.err
    assert manifest["traits"]["switches"] == "model"
    facts = [(fact["name"], fact["note"]) for fact in manifest["bench_facts"]]
    assert any(name == "network" and "c1 to a, c2 to b, c3 to c" in note for name, note in facts)
    flows = {
        flow["flow"]: flow
        for flow in json.loads((world.folder / "r" / "measures.json").read_text())["runs"][0]["flows"]
    }
    # Which time-triggered message a later one overtakes at the card hangs on how late the host sends.
    assert flows[1]["sent"] == 60
    assert flows[1]["delivered"] > 0
    for number, sent, lost in ((2, 40, 0), (3, 60, 0), (4, 60, 10), (5, 60, 0)):
        assert (flows[number]["sent"], flows[number]["lost"]) == (sent, lost), number
    replayed = world.run("replay", "r", "--json")
    (run,) = json.loads(replayed.out)["runs"]
    assert (replayed.code, run["equal"]) == (0, True), replayed.out
    assert run["decisions"]["run"] > 400


def test_a_network_that_cannot_be_is_told_before_anything_is_sent(world: World) -> None:
    (world.folder / "test.xml").write_text(TEST)
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b"}))
    done = world.run("run", "test.xml", "--bench", "lab", "--out", "without")
    assert done.code == 3
    assert 'no interface leads to c; write leads-to = "c"' in done.err
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "eth1": "c"}))
    done = world.run("run", "test.xml", "--bench", "lab", "--out", "addressed")
    assert done.code == 3
    assert "eth1 has the address 10.88.0.5" in done.err
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "eth2": "c"}))
    done = world.run("run", "test.xml", "--bench", "lab", "--out", "forbidden")
    assert done.code == 3
    assert "does not allow tests on eth2" in done.err
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "a"}))
    done = world.run("run", "test.xml", "--bench", "lab", "--out", "twice")
    assert done.code in (2, 3)
    assert "leads-to a is listed twice" in done.err
    assert not (world.folder / "twice").exists()


def test_a_network_that_is_killed_ends_the_run_and_keeps_what_was_measured(world: World) -> None:
    (world.folder / "long.xml").write_text(TEST.replace('count="60"', 'count="2000"'))
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "c3": "c"}))
    running = world.begin("run", "long.xml", "--bench", "lab", "--out", "long")
    manifest = world.folder / "long" / "manifest.json"
    end = time.monotonic() + 60
    while not (manifest.exists() and json.loads(manifest.read_text())["runs"]) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(3.0)
    world.order("kill delta")
    time.sleep(0.5)
    world.order("start delta")
    out, err = running.communicate(timeout=120)
    assert running.returncode == 4, out + err
    told = json.loads(manifest.read_text())
    assert told["state"] == "failed"
    assert "the network" in told["reason"]
    shown = world.run("show", "long", "--json")
    (run,) = json.loads(shown.out)["runs"]
    flows = {flow["flow"]: flow for flow in run["flows"]}
    assert flows[4]["delivered"] > 50
    # Nobody knows what a network that is gone did with what it held.
    assert flows[4]["unknown"] > 0
    assert {flow["lost"] for number, flow in flows.items() if number in (2, 3)} == {0}
    assert world.run("verify", "long").code == 0
    again = world.run("run", "test.xml", "--bench", "lab", "--out", "again")
    assert json.loads((world.folder / "again" / "manifest.json").read_text())["state"] == "complete", (
        again.err
    )


def test_a_port_without_room_for_the_frames_of_the_test_is_told_before_the_first_one(world: World) -> None:
    (world.folder / "test.xml").write_text(TEST)
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "c3": "c"}))
    # Flow 3 from b to c has 900 B, and 928 with its headers: too much for the port that only receives it, too.
    world.space("delta", "ip", "link", "set", "dev", "c3", "mtu", "600")
    try:
        done = world.run("run", "test.xml", "--bench", "lab", "--out", "narrow")
        assert done.code == 3, done.err
        assert "c3 of delta, which leads to c, has an MTU of 600" in done.err
        assert "ip link set dev c3 mtu 928" in done.err
        assert not (world.folder / "narrow" / "records").exists()
    finally:
        world.space("delta", "ip", "link", "set", "dev", "c3", "mtu", "1500")


AHEAD = 200_000_000
"""What a planted clock shows more than that of the other hosts, ns."""


def between(world: World, place: str) -> list[dict[str, Any]]:
    """Steps between an end system and the switch, of the worst message of flow 5."""
    told = json.loads(world.run("show", place, "--explain", "--json").out)["explained"]
    (flow,) = (flow for flow in told["flows"] if flow["flow"] == 5)
    # Records of the switch are found however its clock differs: down, to the switch, through it, from it, up.
    assert {len(message["steps"]) for message in flow["worst"]} == {5}
    steps: list[dict[str, Any]] = flow["worst"][0]["steps"]
    within = [step for step in steps if step["kind"] in ("stack", "port")]
    assert {step["clocks_ns"] for step in within} == {0.0}
    return [step for step in steps if step["kind"] in ("link", "network")]


def test_times_at_switches_have_the_uncertainty_of_the_clock_of_their_host(world: World) -> None:
    (world.folder / "test.xml").write_text(TEST)
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "c3": "c"}))
    world.order("kill delta")
    world.order(f"start delta {AHEAD},0")
    try:
        done = world.run("run", "test.xml", "--bench", "lab", "--out", "clocks")
    finally:
        world.order("kill delta")
        world.order("start delta")
    file = world.folder / "clocks" / "manifest.json"
    manifest: dict[str, Any] = json.loads(file.read_text())
    assert manifest["state"] == "complete", done.err
    offsets = manifest["runs"][0]["clock_offsets"]
    assert {name: one["method"] for name, one in offsets.items()} == dict.fromkeys("abc", "same-clock") | {
        "the network": "control-connection"
    }
    bound = offsets["the network"]["uncertainty_ns"]
    assert 0 < bound < AHEAD / 10
    # From a to the switch and from there to b; what the clock is ahead by is taken out.
    steps = between(world, "clocks")
    assert [step["clocks_ns"] for step in steps] == [pytest.approx(bound)] * 2
    assert all(-bound <= step["took_ns"] < AHEAD / 4 for step in steps), steps
    told = " ".join(world.run("show", "clocks", "--explain").out.split())
    assert "±" in told


def test_a_port_that_is_taken_away_while_the_network_is_played_is_told(world: World) -> None:
    (world.folder / "long.xml").write_text(TEST.replace('count="60"', 'count="600"'))
    (world.lab / "lab.toml").write_text(inventory({"c1": "a", "c2": "b", "c3": "c"}))
    running = world.begin("run", "long.xml", "--bench", "lab", "--out", "taken")
    manifest = world.folder / "taken" / "manifest.json"
    end = time.monotonic() + 60
    while not (manifest.exists() and json.loads(manifest.read_text())["runs"]) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(3.0)
    world.space("delta", "ip", "link", "del", "c3")
    try:
        out, err = running.communicate(timeout=120)
        assert running.returncode == 4, out + err
        told = json.loads(manifest.read_text())
        assert "'c3', which leads to c, was taken away while the network was played" in err + told["reason"]
    finally:
        world.order("wire gamma t0 10.99.0.3/24 delta c3")
