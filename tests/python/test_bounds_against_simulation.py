"""No simulated frame is later than any bound allows. The two share the plan and the lengths of frames, and no more."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bound_judge import FIFO, METHODS, OVERLOADED, judge, worst
from bound_networks import classed, converged, late_hosts, network, ticking
from simulation import simulate
from wiregauge import bounds
from wiregauge._native import simulate_offsets
from wiregauge.config import TestError
from wiregauge.plan import as_json

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


@pytest.mark.parametrize("part", range(4))
def test_no_simulated_delay_exceeds_a_bound_where_all_classes_share_a_port(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    """Windows, virtual links before classes and in them, shapers, gates and fragments; at switches, and at hosts."""
    networks = ALL if thorough else 2 * QUICK
    results = [judge(converged(seed), tmp_path / str(seed), FIFO) for seed in range(part, networks, 4)]
    assert sum(one.compared for one in results) > 10 * len(results)
    shares = [(int(flow), share) for one in results for flow, share in one.shares.items()]
    assert max(share for flow, share in shares if flow > 10) > 0.7
    # Flows up to 10 have windows: where nothing holds them up their bounds are exact.
    assert max(share for flow, share in shares if flow < 10) > 0.999


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


def beyond(file: Path, answers: list[bounds.Answer]) -> tuple[list[float], list[str]]:
    """The share of its bounds that each true latency takes, and what is above; by the file's offsets and others."""
    network, run = bounds.read(file).planned or pytest.fail("it is a test")
    draw = random.Random(str(file.name))
    offsets = [[send.offset for send in run.sends]]
    offsets += [[draw.randrange(send.period) for send in run.sends] for _ in range(3)]
    told = json.loads(simulate_offsets(as_json(network), as_json(run), offsets, False))
    worst: dict[tuple[str, str], float] = {}
    for one in (own for run in told for own in run["longest"]):
        key = str(one["flow"]), network.names[one["receiver"]]
        worst[key] = max(worst.get(key, 0.0), one["latency"] / 1e12)
    shares, above = [], []
    for target, bound in (
        ((flow.flow, target.target), target.delay)
        for answer in answers
        for flow in answer.flows
        for target in flow.targets
    ):
        if target in worst and bound is not None:
            shares.append(worst[target] / bound)
            above += [f"{target}: {worst[target]} of {bound}"] if worst[target] > bound else []
    return shares, above


@pytest.mark.parametrize("part", range(4))
def test_no_true_delay_exceeds_a_bound_where_clocks_tick_coarsely(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    """In true time, which is what passes: what such clocks show is another matter."""
    shares: list[float] = []
    for seed in range(part, ALL if thorough else 240, 4):
        file = tmp_path / f"{seed}.xml"
        file.write_text(ticking(seed), encoding="utf-8")
        try:
            source = bounds.read(file)
            answers = [
                bounds.bound(source, method, grouping=grouping)
                for method, grouping in (("tfa", True), ("tfa", False), ("sfa", True))
            ]
        except TestError as error:
            if not any(reason in str(error) for reason in OVERLOADED):
                raise
            continue
        own, above = beyond(file, answers)
        assert not above, f"{seed}: {above}"
        shares += own
    assert len(shares) > 500
    assert max(shares) > 0.9


def test_ticks_of_a_clock_that_are_not_counted_are_seen(tmp_path: Path) -> None:
    """The planted fault: the bounded plan has clocks without granularity."""
    seen = 0
    for seed in range(0, 30, 3):
        file = tmp_path / f"{seed}.xml"
        file.write_text(ticking(seed), encoding="utf-8")
        source = bounds.read(file)
        plan = json.loads(source.as_json)
        for node in plan["network"]["nodes"]:
            node.get("clock", {}).pop("granularity", None)
        flattered = bounds.Source(source.file, source.format, json.dumps(plan))
        seen += bool(beyond(file, [bounds.bound(flattered, grouping=True)])[1])
        assert not beyond(file, [bounds.bound(source, grouping=True)])[1]
    assert seen > 3


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
