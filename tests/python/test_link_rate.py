"""Ports keep the rate of their links, or the run says so: exactly in simulation, for whatever bench made the port."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from chosen import also
from simulation import trial
from wiregauge.measures import Grade, RunResult
from wiregauge.measures.metrics.line_time import line_time
from wiregauge.measures.metrics.port_plan import PortPlan
from wiregauge.measures.validity.evidence import Evidence
from wiregauge.measures.validity.link_rate import link_rates

STAR = """<test xmlns="urn:wiregauge:test:2" name="rate" seed="{seed}">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="s" {switch} buffer="4MiB"/>{second}
    <link between="a s" rate="{rate}"/><link between="b {last}" rate="{rate}"/>
    <link between="c {last}" rate="{rate}"/><link between="d s" rate="{rate}"/>
  </network>
  <flows>
    <flow id="10" protocol="raw" from="a" to="b"/><flow id="20" protocol="udp" from="d" to="b"/>
  </flows>
  <tasks warm-up="20ms">
    <send flow="10" period="{period}" payload="{payload}B" count="400" {pattern}/><receive flow="10"/>
    <send flow="20" period="3ms" payload="100B" count="60"/><receive flow="20"/>
    <inject on="c" to="b" load="{load}%" burst="{burst}" payload="{filling}B"/>
  </tasks>
</test>
"""


def run(place: Path, **values: object) -> RunResult:
    usual: dict[str, object] = {
        "seed": 1, "switch": "", "second": "", "last": "s", "rate": "100Mbit/s", "period": "500us", "payload": 500,
        "pattern": "", "load": 85, "burst": 10, "filling": 1472,
    }  # fmt: skip
    place.mkdir(parents=True, exist_ok=True)
    file = place / "t.xml"
    file.write_text(STAR.format(**(usual | values)))
    return trial(file, place / "out").runs[0]


def grades(run: RunResult, *, slower: float = 1.0, virtual: bool = True) -> dict[str, Grade]:
    """Grades of the two checks, as if the planned rates of all ports were `slower` times as high."""

    def planned(port: PortPlan) -> PortPlan:
        return replace(port, rate_bps=round(port.rate_bps * slower))

    plan = replace(run.plan, ports={at: planned(port) for at, port in run.plan.ports.items()})
    evidence = Evidence(
        plan=plan, state="complete", reason=None, agents=run.agents, clock_uncertainty_ns=0.0, clocks_missing=(),
        flows=run.flows, tracked=True, unplanned={}, tracking=None, records_written=0, contradictions=(),
        virtual_time=virtual,
    )  # fmt: skip
    return {check.name: check.grade for check in link_rates(evidence)}


@pytest.mark.parametrize("seed", [*range(6), *map(also, range(6, 120))])
def test_a_simulated_port_keeps_its_rate_exactly(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    two = bool(rng.integers(0, 2))
    found = run(
        tmp_path,
        seed=seed,
        switch=rng.choice(["", 'forwarding-mode="cut-through"', 'delay="3us"', 'priorities="strict"']),
        second='<switch name="s2"/><link between="s s2" rate="100Mbit/s"/>' if two else "",
        last="s2" if two else "s",
        rate=rng.choice(["100Mbit/s", "1Gbit/s"]),
        period=f"{rng.integers(140, 3000)}us",
        payload=int(rng.integers(64, 1400)),
        load=int(rng.integers(1, 140) if not two else rng.integers(1, 100)) % 101,
        burst=int(rng.choice([1, 2, 10, 100])),
        filling=int(rng.integers(64, 1472)),
    )
    told = grades(found)
    assert told["line-time"] == Grade.OK
    assert told["link-rate"] <= Grade.OK


@pytest.mark.parametrize("slower", [1.25, 2.0])
def test_a_port_that_is_slower_than_its_link_is_found(tmp_path: Path, slower: float) -> None:
    """The run is one of a port that is nearly full; the link that is asked about is faster."""
    found = run(tmp_path, load=95)
    assert grades(found)["link-rate"] == Grade.OK
    for virtual in (True, False):
        assert grades(found, slower=slower, virtual=virtual)["link-rate"] > Grade.OK


def test_a_frame_that_passed_no_line_is_found(tmp_path: Path) -> None:
    found = run(tmp_path, payload=1400, load=10)
    flow = found.flows[0]
    assert 226e3 < flow.plan.least_ns < 228e3
    assert grades(found)["line-time"] == Grade.OK
    quick = replace(flow, plan=replace(flow.plan, least_ns=flow.plan.least_ns * 2))
    quick = replace(quick, line_time=line_time(quick))
    assert grades(replace(found, flows=(quick, *found.flows[1:])))["line-time"] == Grade.DEGRADED


def test_what_cannot_be_asked_is_said(tmp_path: Path) -> None:
    place = tmp_path / "t"
    found = run(place)
    shaped = replace(found.plan, ports={})
    evidence = Evidence(
        plan=shaped, state="complete", reason=None, agents={}, clock_uncertainty_ns=0.0, clocks_missing=(),
        flows=found.flows, tracked=True, unplanned={}, tracking=None, records_written=0, contradictions=(),
    )  # fmt: skip
    rate, _ = link_rates(evidence)
    assert rate.observed.startswith("not looked at")
    assert rate.grade is Grade.NOT_LOOKED_AT


WAYS = """<test xmlns="urn:wiregauge:test:2" name="ways" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><switch name="s"/>{nodes}
    <link between="a s" rate="10Mbit/s"/><link between="b s" rate="10Mbit/s"/>{links}
  </network>
  <flows><flow id="10" protocol="{protocol}" from="a" to="b">{link}</flow></flows>
  <tasks><send flow="10" period="20ms" payload="1400B" count="20"/>{receive}</tasks>
</test>
"""
RELAYED = {"protocol": "udp", "receive": '<relay flow="10" on="b"/>', "nodes": "", "links": "", "link": ""}


@pytest.mark.parametrize("measure", ["latency", "return_latency", "rtt"])
@pytest.mark.parametrize("times", [0.04, 0.9, 0.999, 1.0, 1.5])
def test_a_round_trip_passes_its_links_twice(tmp_path: Path, measure: str, times: float) -> None:
    """Each leg, and both: whatever is faster than the links is found, in whichever measure it shows."""
    file = tmp_path / "t.xml"
    file.write_text(WAYS.format(**RELAYED))
    found = trial(file, tmp_path / "out").runs[0]
    flow = found.flows[0]
    assert flow.plan.least_ns == pytest.approx(2 * (1400 + 18) * 8 * 100)
    assert grades(found)["line-time"] == Grade.OK
    alone = flow.plan.least_ns * (2 if measure == "rtt" else 1)
    summary = replace(flow.summaries[measure], minimum=times * alone)
    quick = replace(flow, summaries={**flow.summaries, measure: summary})
    quick = replace(quick, line_time=line_time(quick))
    assert grades(replace(found, flows=(quick,)))["line-time"] == (Grade.DEGRADED if times < 1 else Grade.OK)
