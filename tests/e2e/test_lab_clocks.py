"""PTP between hosts of a lab: started by their agents, watched, ended whatever happens, only where a host allows it.

Namespaces share one real-time clock, so nothing is steered here; gamma's agent shows another clock on purpose.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lab_support import World
from support import assert_measured

CLOCKS = {"alpha": "", "beta": "", "gamma": "3000000000,20000"}
TEST = """<?xml version="1.0"?>
<test xmlns="urn:wiregauge:test:2" name="kept" seed="1" bench="lab">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <synchronise max-offset="1ms" wait="{wait}" on-failure="{otherwise}">
    <ptp timestamps="software" steer="{steer}" interval="125ms" domain="{domain}"/>{more}
  </synchronise>
  <tasks warm-up="200ms" drain="200ms">
    <send flow="1" period="2ms" payload="64B" count="{count}"/><receive flow="1"/>
  </tasks>
</test>
"""

pytestmark = pytest.mark.skipif(shutil.which("ptp4l") is None, reason="ptp4l is not installed")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("lab"), CLOCKS)
    try:
        made.enrol_all()
        yield made
    finally:
        made.close()


def put(world: World, b: str = "beta", **values: Any) -> Path:
    """A test whose end systems are on alpha and on that host."""
    inventory = world.lab / "lab.toml"
    kept = [line for line in inventory.read_text().splitlines() if not line.startswith("end-systems")]
    on = {"alpha": "a", b: "b"}
    lines = []
    for line in kept:
        lines.append(line)
        if line.startswith("name = "):
            host = line.split('"')[1]
            lines.append(f'end-systems = ["{on.get(host, "nobody")}"]')
    inventory.write_text("\n".join(lines) + "\n")
    usual = {
        "wait": "40s",
        "otherwise": "refuse",
        "steer": "off",
        "domain": 0,
        "count": 1500,
        "more": '<exchange period="10ms"/>',
    }
    file = world.folder / "kept.xml"
    file.write_text(TEST.format(**usual | values))
    return file


def programs(world: World, host: str) -> list[int]:
    """Every ptp4l in the network of a host."""
    return world.processes(host, "ptp4l")


def entry_of(place: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((place / "manifest.json").read_text())["runs"][0]
    return entry


def test_clocks_of_hosts_are_compared_by_their_agents_programs(world: World) -> None:
    put(world, domain=20)
    done = world.run("run", "kept.xml", "--out", "kept", timeout=120)
    place = world.folder / "kept"
    assert_measured(done, place)
    states = pl.read_parquet(place / "clocks" / "run-0000.parquet")
    offsets = states.filter(pl.col("node") == "b")["offset_ns"].drop_nulls()
    # One clock read by both: what ptp4l finds is the asymmetry of two paths through one kernel.
    assert len(offsets) >= 5
    assert float(np.median(np.abs(offsets.to_numpy()))) < 1e6
    entry = entry_of(place)
    assert entry["clock_gate"] == {"fit": True, "reason": None}
    assert entry["ptp"]["b"]["PORT_DATA_SET"]["portState"] in ("SLAVE", "UNCALIBRATED")
    assert (
        entry["ptp"]["b"]["PARENT_DATA_SET"]["grandmasterIdentity"]
        == entry["ptp"]["a"]["PARENT_DATA_SET"]["grandmasterIdentity"]
    )
    assert "currentUtcOffset" in entry["ptp"]["a"]["TIME_PROPERTIES_DATA_SET"]
    calls = [line["call"] for line in world.audit("beta")]
    assert {"StartClockPrograms", "StopClockPrograms"} <= set(calls)
    assert programs(world, "alpha") + programs(world, "beta") == []
    assert not (world.folder / "hosts" / "beta" / "spool" / "clock-programs").exists()


def test_a_clock_that_ptp_does_not_see_is_no_clock_that_it_compares(world: World) -> None:
    """Gamma's agent is three seconds ahead of what ptp4l reads: nobody knows which of the two is right."""
    put(world, "gamma")
    done = world.run("run", "kept.xml", "--out", "other", timeout=120)
    assert done.code == 3, done.out
    assert "one of them does not compare these clocks" in done.err
    assert "PTP sees the clock of b" in done.err
    put(world, "gamma", otherwise="grade")
    graded = world.run("run", "kept.xml", "--out", "graded", timeout=120)
    place = world.folder / "graded"
    assert graded.code in (0, 1, 4), graded.err
    entry = entry_of(place)
    assert entry["clock_gate"]["fit"] is False
    assert entry["clock_offsets"]["b"]["method"] == "control-connection"
    checks = json.loads((place / "measures.json").read_text())["runs"][0]["checks"]
    (kept,) = [check for check in checks if check["name"] == "clock-kept"]
    assert kept["grade"] == "degraded", kept


def test_clocks_are_set_only_where_the_host_says_so(world: World) -> None:
    put(world, "gamma", steer="on")
    done = world.run("run", "kept.xml", "--out", "steered", timeout=60)
    assert (done.code, (world.folder / "steered").exists()) == (3, False)
    assert "lets no test set its clocks" in done.err
    assert "may-set-clock = true" in done.err
    text = put(world).read_text().replace(' timestamps="software"', "")
    (world.folder / "kept.xml").write_text(text)
    done = world.run("run", "kept.xml", "--out", "steered", timeout=60)
    assert done.code == 3
    assert 'the agent of a: eth1 has no clock of its own; write timestamps="software" in <ptp>' in done.err
    # Hosts of one kernel have one clock, whatever they allow.
    put(world, steer="on")
    done = world.run("run", "kept.xml", "--out", "steered", timeout=60)
    assert done.code == 3
    assert 'PTP would steer the one clock that a and b share; write steer="off"' in done.err
    assert programs(world, "alpha") + programs(world, "beta") == []


def test_programs_are_started_only_where_the_host_says_so(world: World) -> None:
    text = put(world).read_text()
    (world.folder / "kept.xml").write_text(
        text.replace("<ptp ", "<chrony/><ptp ") if "<chrony/>" not in text else text
    )
    done = world.run("run", "kept.xml", "--out", "asked", timeout=60)
    assert (done.code, (world.folder / "asked").exists()) == (3, False)
    assert "this host starts no chronyc for tests" in done.err


def test_another_server_in_the_domain_keeps_the_gate_shut(world: World) -> None:
    configuration = world.folder / "better.conf"
    configuration.write_text(
        "[global]\ntime_stamping software\nfree_running 1\nnetwork_transport L2\npriority1 1\n"
        f"logAnnounceInterval -2\nuds_address {world.folder}/better\n[eth1]\n"
    )
    better = subprocess.Popen(
        [*world.into("gamma"), "ptp4l", "-q", "-f", str(configuration)], stdin=subprocess.DEVNULL
    )
    try:
        put(world, wait="8s")
        done = world.run("run", "kept.xml", "--out", "outdone", timeout=120)
        assert (done.code, (world.folder / "outdone").exists()) == (3, False)
        assert "another clock of the domain is preferred" in done.err
        put(world, domain=3)
        assert_measured(world.run("run", "kept.xml", "--out", "apart", timeout=120), world.folder / "apart")
    finally:
        better.terminate()
        better.wait()


def test_a_control_network_that_comes_back_costs_no_line(world: World) -> None:
    put(world, count=5_000)
    running = world.begin("run", "kept.xml", "--out", "cut")
    end = time.monotonic() + 90
    while not entry_begun(world.folder / "cut"):
        assert time.monotonic() < end, running.communicate()
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    world.order("down beta 0")
    time.sleep(4.0)
    world.order("up beta 0")
    out, err = running.communicate(timeout=90)
    assert running.returncode in (0, 4), out + err
    entry = entry_of(world.folder / "cut")
    assert (entry["state"], entry["clock_gate"]["fit"]) == ("complete", True)
    states = pl.read_parquet(world.folder / "cut" / "clocks" / "run-0000.parquet")
    seen = states.filter((pl.col("node") == "b") & pl.col("offset_ns").is_not_null())["time"].cast(pl.Int64)
    # PTP goes over the network under test: a free-running ptp4l says one offset a second, throughout.
    gaps = np.diff(np.sort(seen.to_numpy())) / 1e12
    assert len(seen) >= 10
    assert gaps.max() < 2.5, gaps


def test_a_killed_agent_leaves_no_program_and_neither_does_a_killed_testmaster(world: World) -> None:
    put(world, count=15_000)
    running = world.begin("run", "kept.xml", "--out", "killed")
    end = time.monotonic() + 90
    while not (world.folder / "killed").exists() or not entry_begun(world.folder / "killed"):
        assert time.monotonic() < end, running.communicate()
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    assert len(programs(world, "alpha")) == len(programs(world, "beta")) == 1
    world.order("kill beta")
    assert programs(world, "beta") == []
    world.order("start beta")
    running.kill()
    running.communicate(timeout=30)
    # Alpha waits for the testmaster as long as the lease.
    end = time.monotonic() + 90
    while programs(world, "alpha"):
        assert time.monotonic() < end
        time.sleep(0.5)


def entry_begun(place: Path) -> bool:
    try:
        runs = json.loads((place / "manifest.json").read_text())["runs"]
    except OSError:
        return False
    return bool(runs and runs[-1]["epoch_realtime_ns"])
