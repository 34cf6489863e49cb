"""How late a network that an agent plays released its frames: figures by single frames, limits on them, windows."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from simulation import US, simulate, tables, trial
from test_gate_waits import CYCLE, OPEN, gated, sends
from wiregauge.config import load
from wiregauge.measures.flow_measures.gates import gate_waits
from wiregauge.measures.limits import judge_limits
from wiregauge.measures.metrics.flow_plan import CampaignPlan, LimitPlan, judged_plan
from wiregauge.measures.metrics.hops import passages
from wiregauge.measures.metrics.judgement import LimitResult
from wiregauge.measures.metrics.live_network import NetworkResult, no_network
from wiregauge.measures.metrics.releases import Errors, errors_of, network_of
from wiregauge.measures.run_measures import OfRun
from wiregauge.records import RunDirectoryError
from wiregauge.records.reported import AgentReport, Intake, NetworkCost, ReleaseReport

NAMES = ("sensor", "sink")


def stored(late: dict[int, list[int]], flow: int = 1) -> pl.DataFrame:
    """Rows of frames that left, by node, in ps, and of others that did not."""
    rows = [
        {"node": node, "flow": flow, "sequence": number, "late": one, "kind": "left"}
        for node, values in late.items()
        for number, one in enumerate(values)
    ]
    rows.append({"node": 0, "flow": flow, "sequence": 9, "late": 10**15, "kind": "entered"})
    legs = {"warm_up": pl.lit(value=False), "returning": pl.lit(value=False)}
    return pl.DataFrame(rows).with_columns(pl.col("kind").cast(pl.Categorical), **legs)


def entry(frames: dict[str, int], **more: Any) -> AgentReport:
    """What the agent reports itself, with percentiles that no table of single frames would give."""
    own = {"p50_ns": 71, "p99_ns": 72, "p999_ns": 73, "max_ns": 74, "undelivered": 0} | more
    return AgentReport(
        releases=tuple(ReleaseReport(end_system=name, frames=n, **own) for name, n in frames.items())
    )


def measured(late: dict[int, list[int]], *limits: LimitPlan) -> NetworkResult:
    counts = {NAMES[node]: len(values) for node, values in late.items()}
    rows = stored(late).filter(pl.col("kind") == "left").drop("kind")
    network = network_of(entry(counts), Errors(rows), NAMES, limits)
    assert network is not None
    return network


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_percentiles_are_values_of_single_frames_within_their_intervals(late: list[int]) -> None:
    (release, *_) = measured({0: late}).releases
    assert release.max_ns == max(late) / 1e3
    ascending = sorted(late)
    for name, q, needed in (("p50", 0.5, 5), ("p99", 0.99, 299), ("p99.9", 0.999, 2995)):
        value = release.value(name)
        assert (value is None) == (len(late) < needed), name
        if value is not None:
            assert value == ascending[ceil(q * len(late)) - 1] / 1e3
            low, high = release.intervals_ns.get(name, (None, None))
            assert low is None or low <= value
            assert high is None or value <= high


def test_frames_that_only_came_in_are_not_among_them_and_a_damaged_table_is_named(tmp_path: Path) -> None:
    file = tmp_path / "crossings.parquet"
    stored({0: [1_000, 2_000], 1: [3_000]}).write_parquet(file)
    errors = errors_of(file)
    assert errors.of_host(0).tolist() == [1.0, 2.0]
    assert errors.of_host(1).tolist() == [3.0]
    assert errors.moved is not None
    assert errors.moved["late"].to_list() == [10**15]
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(RunDirectoryError, match=r"crossings\.parquet"):
        errors_of(file)


def test_a_table_that_has_not_all_frames_is_not_taken_for_all_of_them() -> None:
    rows = stored({0: [5_000] * 400}).filter(pl.col("kind") == "left").drop("kind")
    network = network_of(entry({"sensor": 401}), Errors(rows), NAMES)
    assert network is not None
    (release,) = network.releases
    assert (release.p50_ns, release.p99_ns, release.max_ns) == (71, 72, 74)
    assert release.intervals_ns == {}


def test_what_a_frame_costs_is_by_part_and_unknown_where_nobody_said() -> None:
    told = entry({"sensor": 4})
    network = network_of(told, Errors(), NAMES)
    assert network is not None
    assert network.cost is None
    spent = NetworkCost(taking_ns=8, model_ns=40, handing_ns=4)
    told = replace(told, intake=Intake(frames=4), cost=spent)
    network = network_of(told, Errors(), NAMES)
    assert network is not None
    assert network.cost is not None
    assert (network.cost.taking_ns, network.cost.model_ns, network.cost.handing_ns) == (2, 10, 1)
    assert network.cost.total_ns == 13
    told = replace(told, intake=Intake(frames=0))
    idle = network_of(told, Errors(), NAMES)
    assert idle is not None
    assert idle.cost is None


def limited(measure: str, value: float, of_run: OfRun, bound: str = "at-most") -> LimitResult:
    (found,) = judge_limits([LimitPlan(None, measure, bound, value, "", 1)], [], of_run)
    return found


@pytest.mark.parametrize(
    ("measure", "value", "result", "observed"),
    [
        ("release_error.p50", 10.0, "pass", 10.0),
        ("release_error.p50", 9.0, "fail", 10.0),
        ("release_error.max", 499.0, "fail", 500.0),
        ("release_error.p99", 500.0, "pass", 10.0),
        # Of too few frames to one end system: its greatest stands for it.
        ("release_error.p97", 400.0, "fail", 500.0),
    ],
)
def test_a_limit_is_on_the_end_system_towards_which_it_is_greatest(
    measure: str, value: float, result: str, observed: float
) -> None:
    few = [500_000] * 3 if measure in ("release_error.p97", "release_error.max") else [1_000] * 3
    limit = LimitPlan(None, measure, "at-most", value, "", 1)
    network = measured({0: [10_000] * 400, 1: few}, limit)
    found = limited(measure, value, OfRun(network=network))
    assert (found.result, found.observed) == (result, observed)
    if measure == "release_error.p97":
        assert "the greatest stands for p97" in found.reason


@pytest.mark.parametrize(
    ("of_run", "why"),
    [
        (OfRun(no_network=no_network("kernel", None)), "bridges of the kernel say nothing"),
        (OfRun(no_network=no_network("model", None)), "left no report"),
        (OfRun(no_network=no_network("", None)), "no agent is the network"),
        (OfRun(network=NetworkResult()), "no frame left the network"),
        (OfRun(network=measured({0: [1_000] * 40})), "p99.9 needs 2995 frames, 40 left to sensor"),
    ],
)
def test_what_is_not_known_decides_nothing(of_run: OfRun, why: str) -> None:
    found = limited("release_error.p99.9", 1e12, of_run)
    assert found.result == "undecided"
    assert found.observed is None
    assert why in found.reason


def test_a_simulation_is_never_late_and_one_of_nothing_says_nothing(tmp_path: Path) -> None:
    limits = '<limits><limit measure="release_error.max" at-most="1ns"/></limits>'
    file = tmp_path / "t.xml"
    file.write_text(gated(sends("500us", 200, 50), limits=limits))
    (found,) = trial(file, tmp_path / "out").runs[0].limits
    assert (found.result, found.observed, found.n) == ("pass", 0.0, 50)
    assert limited("release_error.max", 1.0, OfRun(virtual_time=True)).result == "undecided"


def test_frames_handed_over_when_their_gate_had_closed_are_counted(tmp_path: Path) -> None:
    """Each frame is made late by as much as its number says; which come behind the closing is arithmetic."""
    text = gated(sends("613us", 200, 100))
    run = simulate(text, tmp_path)
    out = run.times("switch-out", 1)
    late = {number: number * 3 * US for number in range(len(out))}
    rows = stored({1: list(late.values())}).filter(pl.col("kind") == "left").drop("kind")
    file = tmp_path / "t.xml"
    file.write_text(text)
    plan: CampaignPlan = judged_plan(load(file).campaign)
    (flow,) = plan.runs[0].flows
    _, through, _ = tables(tmp_path)
    own = passages(through, {})[flow.id]
    expected = 0
    for message, left in out.items():
        closing = (left - 1) // (CYCLE * US) * CYCLE * US + OPEN * US
        closing += CYCLE * US if closing < left else 0
        expected += closing < left + late[message]
    assert 0 < expected < len(out)
    assert gate_waits(plan, flow, own, Errors(rows))["released_late"] == expected
    assert gate_waits(plan, flow, own)["released_late"] == 0
    assert gate_waits(plan, flow, own, Errors(rows))["released"] == len(out)
    # Of frames that are not stored, or not all, nobody knows it.
    assert "released_late" not in gate_waits(plan, flow, own, Errors())
    found = network_of(entry({"sensor": len(out)}), Errors(rows), NAMES)
    short = network_of(entry({"sensor": len(out) + 1}), Errors(rows), NAMES)
    assert Errors(rows).whole(found).rows is not None
    assert Errors(rows).whole(short).rows is None
    assert Errors(rows).whole(None).rows is None
    assert np.count_nonzero(Errors().of_messages(1, 1, own.sequence)) == 0
