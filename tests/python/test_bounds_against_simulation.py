"""No simulated frame is later than any bound allows. The two share the plan and the lengths of frames, and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bound_judge import FIFO, METHODS, judge, worst
from bound_networks import classed, late_hosts, network
from simulation import simulate
from wiregauge import bounds

QUICK, ALL = 24, 1000


@pytest.mark.parametrize("part", range(4))
def test_no_simulated_delay_exceeds_a_bound(part: int, tmp_path: Path, thorough: bool) -> None:
    networks = ALL if thorough else QUICK
    results = [judge(network(seed).to_xml(), tmp_path / str(seed)) for seed in range(part, networks, 4)]
    assert sum(one.compared for one in results) > 20 * len(results)
    # A bound that nothing comes near would be no judge.
    assert max(one.tightest for one in results) > 0.8


@pytest.mark.parametrize("part", range(3))
def test_no_simulated_delay_exceeds_a_bound_of_shaped_and_gated_classes(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    networks = ALL if thorough else QUICK
    ways = METHODS if part == 1 else FIFO
    results = [judge(classed(seed).to_xml(), tmp_path / str(seed), ways) for seed in range(part, networks, 3)]
    assert sum(one.compared for one in results) > 5 * len(results)
    assert max(one.tightest for one in results) > 0.5


@pytest.mark.parametrize("part", range(2))
def test_no_simulated_delay_exceeds_a_bound_where_hosts_take_time(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    networks = ALL if thorough else QUICK
    results = [
        judge(late_hosts(seed).to_xml(), tmp_path / str(seed), FIFO) for seed in range(part, networks, 2)
    ]
    assert sum(one.compared for one in results) > 10 * len(results)
    assert max(one.tightest for one in results) > 0.6


def test_a_planted_fault_is_seen(tmp_path: Path) -> None:
    """A sender that sends twice what the bounded test says breaks its arrival curve, and its bound."""
    test = network(2)
    file = tmp_path / "n.xml"
    file.write_text(test.to_xml(), encoding="utf-8")
    source = bounds.read(file)
    plan = json.loads(source.as_json)
    for send in plan["run"]["sends"]:
        send["payload"], send["pattern"] = 20, {"type": "periodic"}
    flattered = bounds.Source(source.file, source.format, json.dumps(plan))
    honest = bounds.bound(source, grouping=True)
    lower = bounds.bound(flattered, grouping=True)
    seen = worst(simulate(file.read_text(encoding="utf-8"), tmp_path / "run"))
    late = [
        seen[flow.flow, target.target] > target.delay * 1e12
        for answer in (honest, lower)
        for flow in answer.flows
        for target in flow.targets
        if (flow.flow, target.target) in seen and target.delay is not None
    ]
    half = len(late) // 2
    assert not any(late[:half])
    assert any(late[half:])
