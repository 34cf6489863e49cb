"""What follows from the order of frames and from what is in them is alike between real hosts and in the simulator.

How late a host sends may decide a burst or a window, and where messages of two flows meet which of them a fault
strikes: no such test is here. In the one written below each faulty link carries one flow, and is cut half a period from
any message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from support import Runner
from wiregauge.cli import app

pytestmark = pytest.mark.alone  # a host that is held up for long sends what the network then meets otherwise

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNTS = (
    *("sent", "delivered", "lost", "unknown"),
    *("duplicated", "reordered", "corrupted", "misdirected", "redundant_discarded"),
)
BY_HOSTS = {"relay-fault"}
"""Kinds of truth that a real host does not tell."""

FAULTS = """<test xmlns="urn:wiregauge:test:2" name="outcomes" seed="3">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <end-system name="e"/><end-system name="f"/>
    <switch name="sw1"/>
    <link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/>
    <link between="c sw1" rate="1Gbit/s"/><link between="d sw1" rate="1Gbit/s"/>
    <link between="e sw1" rate="1Gbit/s"/><link between="f sw1" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="a" to="b"/>
    <flow id="20" protocol="raw" from="c" to="d"/>
    <flow id="30" protocol="be" from="e" to="f" priority="3"/>
  </flows>
  <tasks warm-up="100ms" drain="200ms">
    <send flow="10" period="10ms" payload="100B" count="100"/><receive flow="10"/>
    <send flow="20" period="10ms" payload="200B" count="100"/><receive flow="20"/>
    <send flow="30" period="10ms" payload="64B" count="100"/><relay flow="30"/>
  </tasks>
  <faults>
    <bit-errors link="a sw1" rate="5e-5" sent-by="a"/>
    <loss link="a sw1" flow="10" sequence="20-24"/>
    <duplicate link="b sw1" share="10%" sent-by="sw1"/>
    <delay link="b sw1" share="10%" by="15ms" sent-by="sw1"/>
    <corrupt link="c sw1" share="10%" sent-by="c"/>
    <cut link="d sw1" from="505ms" until="805ms"/>
    <loss link="e sw1" share="10%" sent-by="e"/>
    <loss link="e sw1" share="10%" sent-by="sw1"/>
    <corrupt link="f sw1" share="10%" sent-by="f"/>
  </faults>
</test>
"""


def outcomes(place: Path) -> dict[str, Any]:
    """The counts of every flow at every receiver by run, and the network's faults by kind."""
    told: dict[str, Any] = {}
    for run in json.loads((place / "measures.json").read_text(encoding="utf-8"))["runs"]:
        told[f"run {run['index']}"] = {
            f"{flow['flow']} to {flow['to']}": {count: flow[count] for count in COUNTS}
            for flow in run["flows"]
        }
    for file in sorted((place / "truth").glob("*.parquet")):
        kinds = pl.read_parquet(file, columns=["kind"])["kind"].cast(pl.String)
        told[f"truth {file.stem}"] = {
            kind: len(kinds.filter(kinds == kind)) for kind in sorted(set(kinds.to_list()) - BY_HOSTS)
        }
    return told


def simulated(test: Path, place: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["run", str(test), "--bench", "sim", "--out", str(place)])
    assert done.exit_code in (0, 1, 4), done.output
    return outcomes(place)


def played(test: Path, place: Path, wiregauge: Runner) -> dict[str, Any]:
    done = wiregauge("run", test, "--bench", "netns", "--switches", "model", "--out", place)
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete", done.err
    return outcomes(place)


@pytest.mark.parametrize(
    ("example", "something"),
    [
        ("faults", "duplicated"),
        ("multicast", "lost"),
        ("ring-frer", "redundant_discarded"),
        ("vlan-ports", "delivered"),
        ("restart", "lost"),
        ("round-trips", "delivered"),
    ],
)
def test_real_hosts_have_the_outcomes_of_a_simulation(
    example: str, something: str, tmp_path: Path, wiregauge: Runner
) -> None:
    test = EXAMPLES / f"{example}.xml"
    told = simulated(test, tmp_path / "sim")
    assert played(test, tmp_path / "live", wiregauge) == told
    assert sum(flow[something] for flow in told["run 0"].values()) > 0


def test_faults_between_real_hosts_strike_the_same_messages(tmp_path: Path, wiregauge: Runner) -> None:
    test, other = tmp_path / "t.xml", tmp_path / "other.xml"
    test.write_text(FAULTS)
    other.write_text(FAULTS.replace('seed="3"', 'seed="4"'))
    told = simulated(test, tmp_path / "sim")
    assert played(test, tmp_path / "live", wiregauge) == told
    assert simulated(other, tmp_path / "other") != told, "nothing was drawn by the seed"
    flows = told["run 0"]
    struck = {count for flow in flows.values() for count in COUNTS if flow[count]}
    assert {"lost", "duplicated", "reordered", "corrupted"} <= struck
    assert flows["20 to d"]["lost"] >= 30, "the link was cut for so many periods"
