"""What befalls a lab while it measures: agents, testmasters and networks go away; what was recorded does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab_support import World

TEST = """<?xml version="1.0"?>
<test xmlns="urn:wiregauge:test:2" name="long" seed="1" bench="lab">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="200ms" drain="200ms">
    <send flow="1" period="2ms" payload="64B" count="{count}"/><receive flow="1"/>
  </tasks>
  {sweep}
</test>
"""
SWEEP = '<sweep><axis of="payload" values="64B 128B 256B"/></sweep>'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, {"alpha": "", "beta": ""})
    try:
        made.enrol_all()
        yield made
    finally:
        made.close()


def begun(world: World, count: int, sweep: str = "") -> subprocess.Popen[str]:
    """A run of so many messages, a good second after its first."""
    (world.folder / "long.xml").write_text(TEST.format(count=count, sweep=sweep))
    running = world.begin("run", "long.xml", "--out", "long")
    end = time.monotonic() + 30
    while not _epoch(world.folder / "long"):
        assert time.monotonic() < end, running.communicate()
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    time.sleep(2.0)
    return running


def _epoch(place: Path) -> int:
    try:
        runs = json.loads((place / "manifest.json").read_text())["runs"]
    except OSError:
        return 0
    return int(runs[-1]["epoch_realtime_ns"]) if runs else 0


def flow_of(place: Path, run: int = 0) -> dict[str, Any]:
    shown = json.loads((place / "measures.json").read_text())
    found: dict[str, Any] = shown["runs"][run]["flows"][0]
    return found


def manifest_of(place: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((place / "manifest.json").read_text())
    return manifest


def test_a_control_network_that_comes_back_costs_nothing(world: World) -> None:
    running = begun(world, 6_000)
    world.order("down beta 0")
    time.sleep(4.0)
    world.order("up beta 0")
    out, err = running.communicate(timeout=90)
    assert running.returncode in (0, 4), out + err
    flow = flow_of(world.folder / "long")
    assert (flow["sent"], flow["delivered"] + flow["lost"]) == (6_000, 6_000)
    assert manifest_of(world.folder / "long")["state"] == "complete"


def test_what_a_killed_agent_had_recorded_is_fetched_when_it_is_back(world: World) -> None:
    running = begun(world, 10_000)
    world.order("kill beta")
    time.sleep(0.5)
    world.order("start beta")
    out, err = running.communicate(timeout=90)
    assert running.returncode == 4, out + err
    place = world.folder / "long"
    manifest = manifest_of(place)
    assert manifest["state"] == "failed"
    assert "the agent of b" in manifest["reason"]
    assert "what the agent of b had recorded was fetched" in manifest["reason"]
    # Two seconds at 2 ms, less the last second that no disk had yet.
    assert flow_of(place)["delivered"] > 400
    assert world.run("lab", "clean").out == "alpha: nothing is kept\nbeta: nothing is kept\n"


def test_a_killed_testmaster_s_campaign_is_fetched_and_resumed(world: World) -> None:
    running = begun(world, 2_000, SWEEP)
    while len(manifest_of(world.folder / "long")["runs"]) < 2:
        time.sleep(0.1)
    time.sleep(2.5)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    place = world.folder / "long"
    # Until its lease is over an agent waits for the testmaster.
    end = time.monotonic() + 90
    while "being recorded" in (listed := world.run("lab", "clean").out):
        assert time.monotonic() < end, listed
        time.sleep(1.0)
    assert "run 1," in listed
    fetched = world.run("lab", "fetch", place)
    assert fetched.code in (0, 4), fetched.out + fetched.err
    assert "records of run 1 were fetched" in fetched.err
    assert flow_of(place, 1)["delivered"] > 400
    delivered = flow_of(place, 1)["delivered"]
    assert "the hosts keep nothing of this campaign" in world.run("lab", "fetch", place).err
    assert flow_of(place, 1)["delivered"] == delivered
    resumed = world.run("run", "--resume", place)
    assert resumed.code in (0, 4), resumed.err
    manifest = manifest_of(place)
    assert manifest["state"] == "complete"
    assert [run["index"] for run in manifest["runs"]] == [0, 1, 2]
    assert [run["state"] for run in manifest["runs"]] == ["complete"] * 3
    assert manifest["resumed"][0]["runs"] == [1, 2]
    assert [one["index"] for one in manifest["interrupted"]] == [1]
    assert list((place / manifest["interrupted"][0]["folder"]).glob("records*.parquet"))
    assert [flow_of(place, run)["sent"] for run in range(3)] == [2_000] * 3
    assert world.run("verify", place).code == 0
    again = world.run("run", "--resume", place)
    assert again.code == 2
    assert "all its 3 runs are complete; nothing is to be resumed" in again.err
    assert "nothing is kept" in world.run("lab", "clean").out


@pytest.mark.parametrize("command", ["probe", "run"])
def test_a_host_that_goes_away_ends_the_command_soon_after_its_plan(world: World, command: str) -> None:
    """It says what was counted, and by what command the rest comes when the host is back."""
    if command == "probe":
        running = world.begin("probe", "beta", "--period", "2ms", "--duration", "6s", "--out", "long")
        planned_s = 6.3
    else:
        running, planned_s = begun(world, 3_000), 6.4 - 2.0
    end = time.monotonic() + 60
    while not _epoch(world.folder / "long"):
        assert time.monotonic() < end, running.communicate()
        time.sleep(0.05)
    began = time.monotonic()
    time.sleep(1.0)
    world.order("unplug beta")
    out, err = running.communicate(timeout=90)
    # Patience with a host would take half a minute more; what a busy machine judges takes its time.
    assert time.monotonic() - began < planned_s + 30
    assert running.returncode == 4, out + err
    place = world.folder / "long"
    reason = manifest_of(place)["reason"]
    assert "received were counted by then, the warm-up included" in reason
    assert f"wiregauge lab fetch {place.name}" in reason or f"wiregauge lab fetch {place}" in reason
    assert "lab fetch" in out + err
