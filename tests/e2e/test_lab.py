"""Hosts of a lab: they join by a code, run tests for members alone, and stay within what they allow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support import COMMAND, SECONDS, Done, assert_measured
from wiregauge.benches import agent_program
from wiregauge.cli.schemas import schema_of

HERE = Path(__file__).parent
CLOCKS = {"alpha": "", "beta": "3000000000,20000", "gamma": ""}
"""Offset (ns) and drift (ppb) of the clocks of hosts: one of them is three seconds ahead and runs 20 ppm fast."""

MAY_SET_TSN = "gamma"
"""The host that allows tests to set up its interface."""


class World:
    """The lab and its enclosure; commands run inside it, as on a testmaster of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = folder / "lab"
        states = folder / "hosts"
        states.mkdir()
        (states / MAY_SET_TSN).mkdir()
        (states / MAY_SET_TSN / "agent.toml").write_text(
            'interfaces = ["eth1"]\naddresses = ["10.88.0.0/24"]\ntsn = true\n'
        )
        hosts = [f"{name}={clock}" if clock else name for name, clock in CLOCKS.items()]
        program = str(agent_program())
        self._process = subprocess.Popen(
            [
                program,
                "enclose",
                "--",
                sys.executable,
                str(HERE / "lab_world.py"),
                str(states),
                program,
                *hosts,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.codes: dict[str, str] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "pid" in said:
                break
            assert said["said"][0] == "joining"
            self.codes[said["host"]] = said["said"][2]
        assert set(self.codes) == set(CLOCKS)
        self._pid = _inner(self._process.pid)

    def run(self, *arguments: object, timeout: float = SECONDS, member: str | None = None) -> Done:
        """A command inside the enclosure, in the test's folder."""
        command = [str(COMMAND), *map(str, arguments)]
        environment = [f"WIREGAUGE_LAB={self.lab}", *([f"WIREGAUGE_MEMBER={member}"] if member else [])]
        answer = subprocess.run(
            [
                "nsenter",
                "-t",
                str(self._pid),
                "--net",
                "--mount",
                f"--wd={self.folder}",
                "--",
                "env",
                *environment,
                *command,
            ],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        done = Done(answer.returncode, answer.stdout, answer.stderr)
        assert "Traceback" not in done.out + done.err, done.err
        return done

    def audit(self, host: str) -> list[dict[str, str]]:
        """What the agent of a host has written down."""
        text = (self.folder / "hosts" / host / "keys" / "audit.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def close(self) -> None:
        self._process.communicate(timeout=10)


def _inner(pid: int) -> int:
    """The process that the enclosure runs: the last of the only children."""
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if not children or name.startswith("python"):
            return pid
        pid = int(children[0])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A lab of three hosts, which have joined it."""
    made = World(tmp_path_factory.mktemp("lab"))
    try:
        assert made.run("lab", "init").code == 0
        for number, name in enumerate(CLOCKS, 2):
            done = made.run("lab", "enrol", f"10.77.0.{number}", made.codes[name], "--interface", "eth1")
            assert done.code == 0, done.err
            assert done.out == f"{name} has joined the lab\n"
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
    jsonschema.validate(done.json(), json.loads(schema_of("lab status").read_text()))
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
    assert [run["limits"][0]["result"] for run in done_runs(place)] in (["pass"] * 2, ["undecided"] * 2)
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
        jsonschema.validate(mapped.json(), json.loads(schema_of("lab map").read_text()))
        facts = {fact["name"]: fact["value"] for fact in mapped.json()["facts"]}
        assert facts["controller"] == "gamma, interface eth1"
        assert facts["drive"] == "alpha, interface eth1"
        done = world.run("run", "two.xml", "--out", "two", "--lab", world.lab)
    finally:
        inventory.write_text(before)
    assert_measured(done, world.folder / "two")
    flows = flows_of(world.folder / "two")
    assert {number: flow["sent"] for number, flow in flows.items()} == {10: 300, 20: 300}


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
    left = sorted(path.name for path in (world.folder / "hosts" / MAY_SET_TSN / "keys").glob("tsn.json*"))
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
