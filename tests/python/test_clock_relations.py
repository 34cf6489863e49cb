"""What a start is announced by, what is left uncertain, and what happens where two ways contradict each other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from wiregauge.config import Ptp, Test
from wiregauge.measures.metrics.clocks import RunClocks
from wiregauge.measures.metrics.judgement import Grade
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.measures.validity.clock_methods import agreeing
from wiregauge.plan import NETWORK, Campaign
from wiregauge.records.reported import AgentReport, ClockOffset, RunEntry
from wiregauge.runner.agents.client import ClockRelation
from wiregauge.runner.agents.clock_relations import ClockRelations
from wiregauge.runner.clocks.relation import PtpRelation


class PlantedAgent:
    """An agent whose clock the control connection sees as it was told."""

    def __init__(self, name: str, offset: int, uncertainty: int, *, own_clock: bool = True) -> None:
        self.place = SimpleNamespace(end_system=name, own_clock=own_clock, is_network=False)
        self.seen = self.clock = ClockRelation(offset, uncertainty)

    def relate_clock(self) -> ClockRelation:
        return self.seen


class PlantedKeeper:
    """PTP as it was told."""

    def __init__(self, told: Mapping[str, PtpRelation], bounds: Mapping[str, float]) -> None:
        self._told, self._bounds = told, bounds

    def relations(self) -> Mapping[str, PtpRelation]:
        return self._told

    def bounds(self, begun: object, since_ns: int, until_ns: int) -> Mapping[str, float]:
        assert begun == self._told
        assert since_ns < until_ns
        return self._bounds


@pytest.fixture
def plan() -> Campaign:
    test = Test("clocks").end_system("mac").end_system("sensor").link("mac", "sensor", rate="1Gbit/s")
    test.flow(10, protocol="udp", from_="mac", to="sensor").send(10, period="1ms", payload="64B", count=9)
    return test.receive(10).synchronise(ptp=Ptp(steer="off")).compile().campaign


TOLD = {"mac": PtpRelation(0, 0), "sensor": PtpRelation(-1_500, 300)}


def related(plan: Campaign, mac: PlantedAgent, sensor: PlantedAgent, **keeper: Any) -> ClockRelations:
    bounds = keeper.get("bounds", {"mac": 0.0, "sensor": 900.0})
    planted: Any = PlantedKeeper(TOLD, bounds)
    agents: Any = [mac, sensor]
    return ClockRelations(agents, planted, plan)


def entry() -> RunEntry:
    return RunEntry(agents={"mac": None, "sensor": None}, epoch_realtime_ns=time.time_ns() - 10**9)


def test_a_start_is_announced_by_ptp_where_it_knows_better(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 5_000_000, 200_000), PlantedAgent("sensor", 5_100_000, 150_000)
    relations = related(plan, mac, sensor)
    assert relations.choose() is None
    # Both begin at one instant of the reference, wherever this host sees it.
    assert sensor.clock.offset_ns - mac.clock.offset_ns == -1_500
    assert relations.after(entry()) == {
        "mac": ClockOffset(0, 0.0, "ptp"),
        "sensor": ClockOffset(0, 900.0, "ptp"),
    }


def test_where_ptp_lost_sight_of_the_run_the_control_connection_bounds_it(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 0, 200_000), PlantedAgent("sensor", 0, 150_000)
    relations = related(plan, mac, sensor, bounds={})
    assert relations.choose() is None
    after = relations.after(entry())
    assert {one.method for one in after.values()} == {"control-connection"}
    assert (after["sensor"].uncertainty_ns or 0) >= 150_000


def test_a_control_connection_that_knows_better_is_kept(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 0, 100), PlantedAgent("sensor", -1_400, 100)
    relations = related(plan, mac, sensor)
    assert relations.choose() is None
    assert sensor.clock == ClockRelation(-1_400, 100)
    assert relations.after(entry())["sensor"].method == "control-connection"


def test_a_clock_that_counts_tai_contradicts_the_control_connection(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 0, 200_000), PlantedAgent("sensor", 37_000_000_000, 200_000)
    relations = related(plan, mac, sensor)
    why = relations.choose()
    assert why is not None
    assert "PTP sees the clock of sensor -1.5 µs ahead of mac" in why
    assert relations.after(entry())["sensor"].method == "control-connection"


def test_a_reference_that_starts_by_its_own_clock_cannot_vouch_for_one_that_does_not(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 0, 200_000), PlantedAgent("sensor", 0, 0, own_clock=False)
    relations = related(plan, mac, sensor)
    assert relations.choose() is None
    assert sensor.clock.offset_ns == 0
    assert set(relations.after(entry())) == {"mac"}


def compared(offset_ns: float) -> ClockResult:
    flat = np.full(5, offset_ns)
    return ClockResult(
        *("sensor", "mac", "exchange", "driver"),
        *(100, 0, 20_000.0, 1_000.0),
        stated=True,
        drift=None,
        drift_uncertainty=None,
        uncertainty=200.0,
        t=np.arange(5.0),
        offset=flat,
        half_width=np.full(5, 200.0),
        trend=flat,
    )


@pytest.mark.parametrize(
    ("offset_ns", "grade"), [(0.0, Grade.OK), (-1_100.0, Grade.OK), (1_101.0, Grade.DEGRADED)]
)
def test_exchanges_that_contradict_ptp_degrade_a_run(offset_ns: float, grade: Grade) -> None:
    offsets = {
        name: ClockOffset(offset_ns=0, uncertainty_ns=bound, method="ptp")
        for name, bound in (("mac", 0.0), ("sensor", 900.0))
    }
    run: Any = SimpleNamespace(entry=RunEntry(clock_offsets=offsets), clocks=[compared(offset_ns)])
    (found,) = agreeing(run)
    assert (found.name, found.grade) == ("clock-methods", grade)
    bare: Any = SimpleNamespace(entry=RunEntry(), clocks=[compared(offset_ns)])
    assert list(agreeing(bare)) == []


def test_a_host_that_plays_the_network_is_related_as_end_systems_are(plan: Campaign) -> None:
    mac, sensor = PlantedAgent("mac", 0, 100), PlantedAgent("sensor", 0, 100)
    network = PlantedAgent(NETWORK, 7_000, 250)
    network.place = SimpleNamespace(end_system=NETWORK, own_clock=True, is_network=True)
    agents: Any = [mac, sensor, network]
    relations = ClockRelations(agents, None, plan)
    assert relations.choose() is None
    assert NETWORK not in relations.after(entry()), "it left no report"
    played = entry()
    played.network = AgentReport()
    after = relations.after(played)
    assert after[NETWORK].method == "control-connection"
    assert (after[NETWORK].uncertainty_ns or 0) >= 500
    network.place.own_clock = False
    assert relations.after(played)[NETWORK].uncertainty_ns == 0


def test_times_at_switches_are_by_a_clock_of_their_own() -> None:
    switches = frozenset({"sw1", "sw2"})
    clocks = RunClocks({"a": (0.0, 10.0), "b": (0.0, 20.0)}, {}, played=switches, played_ns=40.0)
    assert clocks.apart_ns("a", "b") == 30.0
    assert clocks.apart_ns("a", "sw1") == 50.0
    assert clocks.apart_ns("sw1", "sw2") == clocks.apart_ns("a", "a") == 0.0
    assert clocks.apart_ns("sw1", "c") is None, "an end system that nobody compared"
    assert clocks.reach_ns == 70.0, "records of a message are looked for so far from its sender's times"
    unknown = replace(clocks, played_ns=None)
    assert unknown.reach_ns > 1e6
    assert unknown.apart_ns("a", "sw1") is None
    assert unknown.apart_ns("sw1", "sw2") == 0.0
    # Between namespaces, and in a simulation, all go by one clock.
    assert RunClocks({"a": (0.0, 0.0)}, {}).apart_ns("a", "sw1") == 0.0
