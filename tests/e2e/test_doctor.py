"""The doctor on real interfaces: planted faults are found, fixed and restored; here, and on hosts of a lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from lab_support import World
from support import COMMAND, SECONDS, assert_measured
from test_lab import CLOCKS, TEST
from wiregauge.cli.schemas import schema_of
from wiregauge.runner.agent_program import agent_program

SCHEMA = json.loads(schema_of("doctor").read_text())
HERE = """
set -e
ip link add ve0 type veth peer name ve1
ip link set ve0 up
ip link set ve1 up
ip addr add 198.18.0.1/24 dev ve0
echo 1 > /proc/sys/net/ipv4/conf/ve0/rp_filter
doctor() { "$@" || echo "code $?" >&2; }
doctor "$COMMAND" doctor --interface ve0 --json > before.json
doctor "$COMMAND" doctor --interface ve0 --fix --json > fixed.json 2> fixed.err
cat /proc/sys/net/ipv4/conf/ve0/rp_filter > fixed.filter
doctor "$COMMAND" doctor --restore --json > restored.json
cat /proc/sys/net/ipv4/conf/ve0/rp_filter > restored.filter
doctor "$COMMAND" doctor --interface ve0 --json > after.json
"""


def checks_of(told: dict[str, Any], interface: str) -> dict[str, dict[str, Any]]:
    """The checks of the host and of one interface, by name."""
    return {one["name"]: one for one in told["checks"] if one["interface"] in ("", interface)}


@pytest.mark.alone  # another test's ptp4l, which comes or goes meanwhile, would be found, too
def test_a_planted_fault_is_found_fixed_and_restored(tmp_path: Path) -> None:
    environment = {**os.environ, "COMMAND": str(COMMAND), "WIREGAUGE_MENDED": str(tmp_path / "mended")}
    done = subprocess.run(
        [str(agent_program()), "enclose", "--", "sh", "-c", HERE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, fixed, restored, after = (
        json.loads((tmp_path / f"{name}.json").read_text())
        for name in ("before", "fixed", "restored", "after")
    )
    for told in (before, fixed, restored, after):
        jsonschema_rs.validate(SCHEMA, told)
    found = checks_of(before, "ve0")
    assert (found["reverse-path-filter"]["severity"], found["reverse-path-filter"]["seen"]) == (
        "degrades",
        "strict",
    )
    assert found["reverse-path-filter"]["cure"] == "sysctl -w net.ipv4.conf.ve0.rp_filter=2"
    assert found["offload-tso"]["severity"] == "degrades"
    assert found["eee"]["severity"] == "unknown"
    mended = checks_of(fixed, "ve0")
    assert {mended[name]["severity"] for name in ("reverse-path-filter", "offload-tso", "offload-gso")} == {
        "fine"
    }
    changed = {one["setting"] for one in fixed["changes"] if not one["refused"]}
    assert {"rp_filter", "feature tx-tcp-segmentation"} <= changed
    assert (tmp_path / "fixed.filter").read_text() == "2\n"
    assert {one["setting"] for one in restored["changes"] if not one["refused"]} == changed
    assert (tmp_path / "restored.filter").read_text() == "1\n"
    now = checks_of(after, "ve0")
    # What is measured differs from one look to the next.
    assert now == found | {name: now[name] for name in ("spool-room", "wake-ups")}


FIREWALL = """
import subprocess, sys
from pyroute2.nftables.main import NFTables
with NFTables(nfgen_family=2) as kernel:
    kernel.table("add", name="filter")
    kernel.chain("add", table="filter", name="guard", hook="input", type="filter", policy=0)
    kernel.rule("add", table="filter", chain="guard", expressions=())
sys.exit(subprocess.run([sys.argv[1], "doctor", "--json"]).returncode)
"""


def test_a_firewall_that_drops_is_found(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(agent_program()), "enclose", "--", sys.executable, "-c", FIREWALL, str(COMMAND)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = checks_of(json.loads(done.stdout), "")["firewall"]
    assert (found["severity"], found["seen"]) == (
        "degrades",
        "ip filter guard drop: filter at input, 1 rules",
    )
    assert found["cure"] == "nft insert rule ip filter guard iifname INTERFACE accept"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A lab of three hosts, which have joined it."""
    made = World(tmp_path_factory.mktemp("doctor"), CLOCKS)
    try:
        made.enrol_all()
        yield made
    finally:
        made.close()


def on(world: World, host: str, *command: str) -> str:
    """A command of the system on a host."""
    inside = ["nsenter", "-t", str(world.pid), "--net", "--mount", "--", "ip", "netns", "exec", host]
    return subprocess.run([*inside, *command], capture_output=True, text=True, check=True).stdout.strip()


def filter_of(world: World, host: str) -> str:
    return on(world, host, "cat", "/proc/sys/net/ipv4/conf/eth1/rp_filter")


@pytest.fixture
def strict(world: World) -> Iterator[None]:
    """Alpha has a strict reverse-path filter."""
    on(world, "alpha", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/eth1/rp_filter")
    yield
    on(world, "alpha", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/eth1/rp_filter")


def told_by(world: World, *arguments: str, code: int = 0, member: str | None = None) -> dict[str, Any]:
    done = world.run("doctor", *arguments, "--json", member=member)
    assert done.code == code, done.err
    told = done.json()
    jsonschema_rs.validate(SCHEMA, told)
    return {host["name"]: host for host in told["hosts"]} | {"changes": told.get("changes")}


@pytest.mark.usefixtures("strict")
def test_the_doctor_reaches_hosts(world: World) -> None:
    assert world.run("lab", "member", "eve", "--role", "observer").code == 0
    hosts = told_by(world, "--all-hosts", member="eve")
    assert set(hosts) == {*CLOCKS, "changes"}
    found = {name: checks_of(hosts[name], "eth1") for name in CLOCKS}
    assert found["alpha"]["reverse-path-filter"]["severity"] == "degrades"
    assert found["beta"]["reverse-path-filter"]["severity"] == "fine"
    assert {one["interface"] for name in CLOCKS for one in hosts[name]["checks"]} == {"", "eth1"}
    text = world.run("doctor", "gamma", "--fine", member="eve")
    assert text.code == 0
    assert "gamma (10.77.0.4)" in text.out
    assert "alpha" not in text.out


def test_what_cannot_be_looked_at_is_said(world: World) -> None:
    refused = told_by(world, "alpha", "--interface", "eth0", code=3)
    assert (
        "this host allows no test on its interface eth0; it allows interfaces eth1"
        in refused["alpha"]["trouble"]
    )
    assert refused["alpha"]["checks"] == []
    unknown = world.run("doctor", "delta")
    assert unknown.code == 2
    assert "has no host delta; it has alpha, beta, gamma" in unknown.err
    both = world.run("doctor", "alpha", "--fix", "--restore")
    assert both.code == 2


def test_an_address_that_two_hosts_have_is_found(world: World) -> None:
    own = on(world, "beta", "cat", "/sys/class/net/eth1/address")
    try:
        on(
            world,
            "beta",
            "ip",
            "link",
            "set",
            "eth1",
            "address",
            on(world, "alpha", "cat", "/sys/class/net/eth1/address"),
        )
        hosts = told_by(world, "alpha", "beta")
    finally:
        on(world, "beta", "ip", "link", "set", "eth1", "address", own)
    found = checks_of(hosts["beta"], "eth1")["duplicate-addresses"]
    assert found["severity"] == "prevents"
    assert "is also that of alpha eth1" in found["seen"]
    assert "duplicate-addresses" not in checks_of(told_by(world, "alpha", "beta")["beta"], "eth1")


@pytest.mark.usefixtures("strict")
def test_administrators_fix_and_restore_hosts_and_nobody_else_does(world: World) -> None:
    assert world.run("lab", "member", "oscar", "--role", "operator").code == 0
    refused = world.run("doctor", "alpha", "--fix", member="oscar")
    assert refused.code == 3
    assert "Mend needs the role administrator; the certificate of oscar has the role operator" in refused.err
    assert filter_of(world, "alpha") == "1"
    fixed = told_by(world, "alpha", "--fix", code=FIXED)
    assert filter_of(world, "alpha") == "2"
    assert checks_of(fixed["alpha"], "eth1")["reverse-path-filter"]["severity"] == "fine"
    assert "rp_filter" in {one["setting"] for one in fixed["changes"]}
    restored = told_by(world, "--all-hosts", "--restore")
    assert filter_of(world, "alpha") == "1"
    assert {one["host"] for one in restored["changes"]} == {"alpha"}
    lines = world.audit("alpha")
    assert "eth1: rp_filter: 1 to 2" in [line.get("done") for line in lines if line["call"] == "Mend"]
    assert "eth1: rp_filter: 2 to 1" in [line.get("done") for line in lines if line["call"] == "Restore"]
    assert any(line["call"] == "Mend" and "refused" in line for line in lines)


FIXED = 3
"""Namespaces of tests may not set the buffers of sockets, which are the host's: that is refused, and said."""


@pytest.mark.usefixtures("strict")
def test_a_run_fixes_hosts_and_leaves_them_as_they_were(world: World) -> None:
    (world.folder / "fix.xml").write_text(TEST.format(synchronise=""))
    done = world.run("run", "fix.xml", "--fix", "--out", "fixed")
    assert_measured(done, world.folder / "fixed")
    assert filter_of(world, "alpha") == "1"
    facts = json.loads((world.folder / "fixed" / "manifest.json").read_text())["bench_facts"]
    told = {(fact["name"], fact["value"]): fact["note"] for fact in facts}
    assert told["set for measuring: controller, eth1", "rp_filter: 1 to 2"] == "restored after the run"
    assert world.run("lab", "member", "olga", "--role", "operator").code == 0
    refused = world.run("run", "fix.xml", "--fix", "--out", "refused", member="olga")
    assert refused.code == 3
    assert "Mend needs the role administrator; the certificate of olga has the role operator" in refused.err
    assert not (world.folder / "refused").exists()
    elsewhere = world.run("run", "fix.xml", "--fix", "--bench", "netns")
    assert elsewhere.code == 2
    assert "--fix has no effect with --bench netns; leave it out or run with --bench lab" in elsewhere.err


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_hosts_as_they_were(world: World, number: signal.Signals) -> None:
    """One that is killed leaves it to the agents, whose lease ends."""
    long = TEST.format(synchronise="").replace('count="300"', 'count="30000"')
    (world.folder / "long.xml").write_text(long)
    inside = ["nsenter", "-t", str(world.pid), "--net", "--mount", f"--wd={world.folder}", "--"]
    command = [str(COMMAND), "run", "long.xml", "--fix", "--out", f"long-{number.name}"]
    process = subprocess.Popen(
        [*inside, "env", f"WIREGAUGE_LAB={world.lab}", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await_filter(world, "2")
        process.send_signal(number)
        process.wait(SECONDS)
        await_filter(world, "1")
    finally:
        process.kill()
        process.wait()


def await_filter(world: World, wanted: str) -> None:
    # A lease lasts some 33 s.
    end = time.monotonic() + 70
    while filter_of(world, "alpha") != wanted:
        assert time.monotonic() < end, f"the filter of alpha never became {wanted}"
        time.sleep(0.1)


@pytest.mark.usefixtures("strict")
def test_an_agent_that_was_killed_restores_when_it_starts_again(world: World) -> None:
    """The last test: the agent that it starts belongs to it."""
    told_by(world, "alpha", "--fix", "--interface", "eth1", code=FIXED)
    assert filter_of(world, "alpha") == "2"
    state = world.folder / "hosts" / "alpha"
    (old,) = agents_of(state / "keys")
    os.kill(old, signal.SIGKILL)
    serve: list[str | Path] = ["--listen", "tls:10.77.0.2:47170", "--announce", "--die-with-parent"]
    serve += ["--state", state / "keys", "--config", state / "agent.toml", "--spool", state / "again"]
    inside = [
        "nsenter",
        "-t",
        str(world.pid),
        "--net",
        "--mount",
        "--pid",
        "--",
        "ip",
        "netns",
        "exec",
        "alpha",
    ]
    (state / "again").mkdir(mode=0o700)
    with subprocess.Popen(
        [*inside, agent_program(), "serve", *serve],
        stdout=subprocess.PIPE,
        text=True,
    ) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline().startswith("listening ")
            assert filter_of(world, "alpha") == "1"
            assert (
                checks_of(told_by(world, "alpha")["alpha"], "eth1")["reverse-path-filter"]["seen"] == "strict"
            )
        finally:
            agent.terminate()
    assert "this agent" in {line["who"] for line in world.audit("alpha") if line["call"] == "Restore"}


def agents_of(keys: Path) -> list[int]:
    """The processes of agents with this state folder, as this machine numbers them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if command[0].endswith(b"wiregauge-agent") and os.fsencode(keys) in command:
            found.append(int(entry.name))
    return found
