"""Models of hosts and of a switch from a run between real hosts, and the next run predicted with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Runner, assert_measured

pytestmark = pytest.mark.alone  # a busy host is no host to calibrate

HOSTS = ("mac", "sensor", "third")
NETWORK = """<network>{models}
    <end-system name="mac"{mac}/><end-system name="sensor"{sensor}/><end-system name="third"{third}/>
    <switch name="sw1" {switch}/>
    <link between="mac sw1" rate="100Mbit/s"/><link between="sensor sw1" rate="100Mbit/s"/>
    <link between="third sw1" rate="100Mbit/s"/>
  </network>"""
TASKS = """
  <flows>
    <flow id="10" protocol="udp" from="mac" to="sensor"/><flow id="20" protocol="raw" from="third" to="sensor"/>
  </flows>
  <tasks warm-up="100ms">
    <send flow="10" period="{period}" payload="{payload}" count="500"/><receive flow="10"/>
    <send flow="20" period="2.6ms" payload="1000B" count="400"/><receive flow="20"/>
  </tasks>
"""
DELAY_PS = 7_300_000


def written(place: Path, network: str, period: str, payload: str) -> Path:
    tasks = TASKS.format(period=period, payload=payload)
    place.write_text(f'<test xmlns="urn:wiregauge:test:2" name="models" seed="1">{network}{tasks}</test>')
    return place


def test_hosts_and_switch_of_a_live_run_predict_the_next_through_the_same_switch(
    wiregauge: Runner, tmp_path: Path
) -> None:
    bare = NETWORK.format(models="", switch='delay="7.3us"', **dict.fromkeys(HOSTS, ""))
    first = written(tmp_path / "first.xml", bare, "2ms", "64B")
    second = written(tmp_path / "second.xml", bare, "3ms", "256B")
    for test in (first, second):
        place = tmp_path / test.stem
        assert_measured(wiregauge("run", test, "--bench", "netns", "--out", place), place)

    switch = wiregauge("identify", "first", "--out", "sw1.switch.xml", "--json").json()
    assert switch["delay"]["delay"]["low"] <= DELAY_PS <= switch["delay"]["delay"]["high"]
    assert switch["attributes"]["delay"] == "7300ns"

    hosts = wiregauge("calibrate", "host", "--from", "first", "--beside", "second", "--out", "pc", "--json")
    assert hosts.code == 0, hosts.err
    (prediction,) = hosts.json()["predictions"]
    assert (prediction["run"], prediction["seen"]) == ("second", False)
    figures = {one["flow"]: one for one in prediction["figures"] if one["statistic"] == "p50"}
    # Frame and preamble twice at 100 Mbit/s, and the switch: what no host can undercut.
    for flow, sent in (("10", 8 + 46 + 256), ("20", 8 + 18 + 1000)):
        least_ns = 2 * 80 * sent + DELAY_PS / 1000
        assert figures[flow]["predicted"] > least_ns
        assert figures[flow]["measured"] > least_ns

    models = "".join(f'<host-model name="m-{name}" file="pc/{name}.host.xml"/>' for name in HOSTS)
    modelled = NETWORK.format(
        models=models, switch='file="sw1.switch.xml"', **{name: f' host="m-{name}"' for name in HOSTS}
    )
    again = written(tmp_path / "again.xml", modelled, "3ms", "256B")
    # Models of hosts that were measured while the machine was busy are themselves late.
    assert_measured(wiregauge("run", again, "--bench", "sim", "--out", "again"), tmp_path / "again")
    live, simulated = (
        {
            (flow["flow"], flow["to"]): (flow["sent"], flow["delivered"])
            for flow in json.loads((tmp_path / run / "measures.json").read_text("utf-8"))["runs"][0]["flows"]
        }
        for run in ("second", "again")
    )
    assert simulated == live


def test_what_a_model_would_be_too_slow_for_is_said_of_simulated_hosts_alone(
    wiregauge: Runner, tmp_path: Path
) -> None:
    models = '<host-model name="slow" like="ideal" receive="9ms"/>'
    hosts = {"mac": "", "sensor": ' host="slow"', "third": ""}
    test = written(tmp_path / "t.xml", NETWORK.format(models=models, switch="", **hosts), "2ms", "64B")
    notes = {
        bench: "by its host model" in wiregauge("run", test, "--bench", bench, "--out", bench).err
        for bench in ("sim", "netns")
    }
    assert notes == {"sim": True, "netns": False}
