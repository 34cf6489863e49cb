"""Hosts of a lab: they join by a code, run tests for members alone, and stay within what they allow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import COMMAND, SECONDS, Done
from wiregauge.benches import agent_program

HERE = Path(__file__).parent
CLOCKS = {"alpha": "", "beta": "3000000000,20000", "gamma": ""}
"""Offset (ns) and drift (ppb) of the clocks of hosts: one of them is three seconds ahead and runs 20 ppm fast."""


class World:
    """The lab and its enclosure; commands run inside it, as on a testmaster of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = folder / "lab"
        states = folder / "hosts"
        states.mkdir()
        hosts = [f"{name}={clock}" if clock else name for name, clock in CLOCKS.items()]
        program = str(agent_program())
        self._process = subprocess.Popen(
            [program, "enclose", "--", sys.executable, str(HERE / "lab_world.py"), str(states), program, *hosts],
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
            ["nsenter", "-t", str(self._pid), "--net", "--mount", "--", "env", *environment, *command],
            cwd=self.folder,
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
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


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
            done = made.run(
                "lab", "enrol", f"10.77.0.{number}", made.codes[name], "--interface", "eth1"
            )
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


def flows_of(run: Path) -> dict[int, dict[str, object]]:
    shown = json.loads((run / "measures.json").read_text())
    return {flow["flow"]: flow for flow in shown["runs"][0]["flows"]}


def test_hosts_say_what_they_have(world: World) -> None:
    done = world.run("lab", "status", "--json")
    assert done.code == 0, done.err
    hosts = {host["name"]: host for host in json.loads(done.out)["hosts"]}
    assert {name: host["interface"]["name"] for name, host in hosts.items()} == dict.fromkeys(CLOCKS, "eth1")
    assert {name: host["same_host"] for name, host in hosts.items()} == {"alpha": True, "beta": False, "gamma": True}
