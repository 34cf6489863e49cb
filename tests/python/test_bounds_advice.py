"""Advice: what mends a limit, each change proved by the bound with it; and the results file of WoPANets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from typer.testing import CliRunner

from simulation import written
from test_bounds_search import placed, tandem, told
from wiregauge import bounds
from wiregauge.cli import app

LIMIT = '<limits><limit flow="1" measure="latency.max" at-most="{}"/></limits>'

AFDX = """<elements><network name="n" technology="AFDX" overhead="67" transmission-capacity="100Mbps"/>
<station name="a"/><station name="b"/><station name="c"/><switch name="s" tech-latency="0"/>
<link from="a" fromPort="0" to="s" toPort="0"/><link from="b" fromPort="0" to="s" toPort="1"/>
<link from="s" fromPort="2" to="c" toPort="0" name="down"/>
<flow name="f" source="a" max-payload="1000" period="2" deadline="{}"><target name="c"><path node="s"/><path node="c"/>
</target></flow>
<flow name="g" source="b" max-payload="1400" period="4"><target name="c"><path node="s"/><path node="c"/>
</target></flow>
</elements>"""


def advised(path: Path, *options: str, code: int) -> dict[str, Any]:
    advice: dict[str, Any] = told(path, "--advise", "--time-limit", "60s", *options, code=code)["advice"]
    return advice


def test_a_limit_that_is_kept_needs_no_advice(tmp_path: Path) -> None:
    advice = advised(placed(tmp_path, tandem(2, limits=LIMIT.format("9ms"))), code=0)
    assert advice == {"tried": 0, "ended": True, "exceeded": []}


def test_every_change_mends_it_and_is_the_least_that_does(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(2, limits=LIMIT.format("400us")))
    (one,) = advised(path, code=1)["exceeded"]
    assert one["delay"] > 400e-6
    assert one["port"]["server"].startswith("s")
    assert "1" in one["port"]["flows"]
    assert {change["kind"] for change in one["changes"]} >= {"frame", "link-rate"}
    assert [change["factor"] for change in one["changes"]] == sorted(
        change["factor"] for change in one["changes"]
    )
    for change in one["changes"]:
        assert change["delay"] <= 400e-6
        assert change["still_exceeded"] == 0
    # By hand: the change written into the test gives the bound that the advice says, and a byte more breaks the limit.
    frame = next(c for c in one["changes"] if (c["kind"], c["element"]) == ("frame", "flow 2"))
    size = int(frame["to"].removesuffix("B"))
    for payload, kept in ((size, True), (size + 1, False)):
        text = path.read_text().replace(
            '<send flow="2" period="2ms" payload="1400B"', f'<send flow="2" period="2ms" payload="{payload}B"'
        )
        other = tmp_path / f"{payload}.xml"
        other.write_text(text, encoding="utf-8")
        again = told(other, code=0 if kept else 1)
        assert again["limits"][0]["kept"] is kept
        if kept:
            assert again["limits"][0]["delay"] == frame["delay"]


def test_where_nothing_mends_it_that_is_said(tmp_path: Path) -> None:
    (one,) = advised(placed(tmp_path, tandem(1, limits=LIMIT.format("5us"))), code=1)["exceeded"]
    assert one["changes"] == []
    assert one["nearest"]["delay"] > 5e-6
    done = CliRunner().invoke(app, ["bounds", str(tmp_path / "t.xml"), "--advise"])
    assert done.exit_code == 1
    assert "no single change mends it" in done.stdout


def test_a_deadline_is_a_limit_for_advice_alone(tmp_path: Path) -> None:
    text = tandem(2).replace('<flow id="1"', '<flow id="1" deadline="400us"')
    path = placed(tmp_path, text)
    assert told(path, code=0)["limits"] == []
    (one,) = advised(path, code=1)["exceeded"]
    assert one["written"] == "deadline 400us"


def test_a_way_and_a_priority_mend(tmp_path: Path) -> None:
    """Two ways to the receiver, the one in use with a strict switch and traffic of a higher priority."""
    ends = "".join(f'<end-system name="{name}"/>' for name in "abyz")
    network = (
        f'{ends}<switch name="s" priorities="strict"/><switch name="l" priorities="strict"/><switch name="r"/>'
        '<switch name="t"/><link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/>'
        '<link between="s l" rate="100Mbit/s"/><link between="s r" rate="100Mbit/s"/>'
        '<link between="l t" rate="100Mbit/s"/><link between="r t" rate="100Mbit/s"/>'
        '<link between="t z" rate="1Gbit/s"/><link between="t y" rate="1Gbit/s"/>'
    )
    flows = (
        '<flow id="1" protocol="raw" from="a" to="z" priority="1"><path via="s l t"/></flow>'
        '<flow id="2" protocol="raw" from="b" to="y" priority="3"><path via="s l t"/></flow>'
    )
    tasks = (
        '<send flow="1" period="2ms" payload="500B"/><send flow="2" period="4ms" payload="1400B" burst="8"/>'
        '<receive flow="1"/><receive flow="2"/>'
    )
    text = written(network, flows, tasks, attributes='duration="20ms"', more=LIMIT.format("600us"))
    (one,) = advised(placed(tmp_path, text), code=1)["exceeded"]
    kinds = {(change["kind"], change["element"]): change["to"] for change in one["changes"]}
    assert kinds["route", "flow 1"] == "s r t"
    # Equal is enough: what comes over one link at its rate holds nobody up for long, where it is not served first.
    assert kinds["priority", "flow 1"] == "3"
    assert kinds["priority", "flow 2"] == "1"
    assert kinds["burst", "flow 2"] == "1"


def test_a_physical_network_is_advised_too(tmp_path: Path) -> None:
    """The bound by hand: 85.36 us at a, (8536 + 11736) / 100 us at s, and the bursts have grown by 85.36 us of
    4.268 Mbit/s and 117.36 us of 2.934 Mbit/s: 295.167 us. A longer period reduces only that growth, never by 5 us.
    """
    path = tmp_path / "n.xml"
    path.write_text(AFDX.format("0.29"), encoding="utf-8")
    (one,) = advised(path, code=1)["exceeded"]
    assert one["delay"] == pytest.approx(295.1665072e-6)
    assert one["port"]["server"] == "s-2"
    found = {(change["kind"], change["element"]) for change in one["changes"]}
    assert ("frame", "flow g") in found
    assert ("link-rate", "link s to c") in found
    assert ("bag", "flow g") not in found
    path.write_text(AFDX.format("0.294"), encoding="utf-8")
    (one,) = advised(path, code=1)["exceeded"]
    bag = next(
        change for change in one["changes"] if (change["kind"], change["element"]) == ("bag", "flow f")
    )
    assert bag["to"] in {"4", "8"}


@pytest.mark.parametrize("deadline", ["0.296", "0.295"])
def test_a_bound_by_hand_decides_over_advice(deadline: str, tmp_path: Path) -> None:
    path = tmp_path / "n.xml"
    path.write_text(AFDX.format(deadline), encoding="utf-8")
    answer = bounds.bound(bounds.read(path))
    advice = advised(path, code=0 if answer.kept else 1)
    assert bool(advice["exceeded"]) is not answer.kept


def test_results_as_wopanets_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "n.xml"
    path.write_text(AFDX.format("9"), encoding="utf-8")
    out = tmp_path / "n_res.xml"
    answer = told(path, "--results", str(out))
    root = etree.parse(out).getroot()
    assert root.tag == "results"
    for flow in answer["flows"]:
        target = root.find(f"delays/flow[@name='{flow['flow']}']/target[@name='c']")
        assert target is not None
        assert float(target.get("value", "")) == pytest.approx(flow["targets"][0]["delay"] * 1e6, abs=1e-6)
    assert [edge.get("name") for edge in root.iterfind("load/edge")] == ["a => s", "b => s", "down"]
    direct, reverse = root.iterfind("load/edge[@name='down']/usage")
    assert (direct.get("type"), reverse.get("type")) == ("direct", "reverse")
    rate = 8 * (1067 / 2e-3 + 1467 / 4e-3)
    assert float(direct.get("value", "")) == pytest.approx(rate, abs=0.01)
    assert direct.get("percent") == f"{rate / 1e6:.4f}%"
    assert float(reverse.get("value", "")) == 0


def test_results_of_output_ports_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.json"
    path.write_text(
        json.dumps(
            {
                "network": {"name": "n"},
                "flows": [
                    {"name": "f", "path": ["s"], "arrival_curve": {"bursts": ["1b"], "rates": ["1bps"]}}
                ],
                "servers": [{"name": "s", "service_curve": {"latencies": ["1s"], "rates": ["4bps"]}}],
            }
        )
    )
    done = CliRunner().invoke(app, ["bounds", str(path), "--results", str(tmp_path / "r.xml")])
    assert done.exit_code == 2
    assert "has no links" in done.stderr
