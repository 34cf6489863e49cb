"""What few messages do, what no reach is, and equal values that are not equal times: none of them is "same"."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from test_shift import skewed
from wiregauge import measures, results, stats
from wiregauge.measures.comparing import compare, read_threshold, trend
from wiregauge.measures.comparing.comparison import Comparison
from wiregauge.measures.comparing.judging import out_of_reach
from wiregauge.measures.comparing.rules import JUDGED_STATISTICS
from wiregauge.results.comparing import compare_headline
from wiregauge.stats import Pair, Sample

N = 1000
ONE = Recipe(protocols=("udp",), payloads=(64,), messages=N, relay=False, loss=0)


def straggling(count: int, by_us: float = 800, seed: int = 0) -> Callable[[Columns, int], None]:
    """Each message takes 11 to 15 us by itself; so many, far apart, take up to so much longer."""

    def alter(columns: Columns, flow: int) -> None:
        n = len(columns["tx_app"])
        rng = np.random.default_rng([seed, count])
        took = rng.integers(11_000_000, 15_000_000, n)
        took[rng.choice(np.arange(60, n), count, replace=False)] += (
            np.linspace(0.3, 1, count) * by_us * 1e6
        ).astype(np.int64)
        columns["tx_drv"] = columns["tx_app"] + 1_000_000
        columns["rx_app"] = columns["tx_app"] + took
        columns["rx_drv"] = columns["rx_app"] - 1_000_000
        columns["reordered"][:] = False

    return alter


def day(place: Path, number: int, count: int = 0, **changes: Any) -> measures.Judgement:
    make(place, replace(ONE, seed=200 + number, alter=straggling(count, seed=number), **changes))
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["started"] = f"2026-02-{number + 1:02d}T09:00:00Z"
    (place / "manifest.json").write_text(json.dumps(manifest))
    return results.judge(place)


def greatest(found: Comparison) -> Any:
    (flow,) = found.flows
    return flow.measures["latency"].greatest


@pytest.mark.parametrize("count", [10, 14, 20])
def test_one_message_in_a_hundred_that_is_far_later_is_worse_in_compare_and_trend(
    count: int, tmp_path: Path
) -> None:
    base, new = day(tmp_path / "a", 0), day(tmp_path / "b", 1, count)
    found, history = compare(base, new), trend([base, new])
    assert (found.verdict, found.exit_code) == (history.verdict, history.exit_code) == ("worse", 1)
    shift = greatest(found)
    assert (shift.verdict, shift.beyond.base_count) == ("worse", 0)
    assert shift.beyond.new_count >= count
    assert greatest(compare(new, base)).verdict == "better"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_of_them_are_never_the_same(count: int, tmp_path: Path) -> None:
    base, new = day(tmp_path / "a", 0), day(tmp_path / "b", 1, count, messages=N)
    found = compare(base, new)
    assert found.verdict != "better"
    if found.verdict == "same":  # then it says from which share of the messages on it would not be
        unseen = found.flows[0].unseen_tail
        assert unseen is not None
        assert unseen > count / N
        assert "and a tail from" in compare_headline(found)


def test_later_runs_are_held_against_all_before(tmp_path: Path) -> None:
    steady = [day(tmp_path / f"d{k}", k) for k in range(4)]
    late = day(tmp_path / "late", 5, 12)
    quiet = day(tmp_path / "quiet", 6)

    def word(runs: Sequence[measures.Judgement]) -> str | None:
        (series,) = [one for one in trend(runs).series if one.figure == "latency.max"]
        point = series.at(len(runs) - 1)
        assert point is not None
        return point.verdict

    assert word([*steady, quiet]) == "same"
    assert word([*steady, late]) == "worse"
    # Among runs of which one had such a tail before, another one tells nothing.
    wild = day(tmp_path / "wild", 4, 14)
    assert word([*steady, wild, day(tmp_path / "wilder", 7, 14, messages=N)]) != "worse"


# -- the test itself -----------------------------------------------------------------------------------------


def test_all_beyond_the_other_side_have_the_chance_that_counting_gives() -> None:
    rng = np.random.default_rng(1)
    base = rng.permutation(np.arange(50.0))
    new = rng.permutation(np.concatenate([np.arange(44.0), 100 + np.arange(6.0)]))
    found = Pair(Sample([base]), Sample([new])).tail().chance
    # Three cuts at most are asked, here two: of so few values thirty are no tail. That some lie together makes it more.
    assert 2 * comb(50, 6) / comb(100, 6) <= found.up <= 5 * comb(50, 6) / comb(100, 6)
    assert found.down == 1.0


@pytest.mark.parametrize("n", [40, 300, 2000])
@pytest.mark.parametrize("ties", [0, 1])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_tail_test_keeps_its_level(n: int, ties: int, correlation: float) -> None:
    rng = np.random.default_rng([n, ties, int(10 * correlation)])
    tries, alarms = 200, 0
    for _ in range(tries):
        base, new = (skewed(rng, n, correlation) for _ in range(2))
        if ties:
            base, new = np.round(base, 0), np.round(new, 0)
        alarms += Pair(Sample([base]), Sample([new])).tail().chance.both <= 0.05
    # A true 5 % yields more than 20 of 200 once in 1000 times.
    assert alarms <= 20


def test_a_tail_of_the_stated_share_is_found_as_often_as_stated() -> None:
    rng = np.random.default_rng(77)
    hits = asked = 0
    for _ in range(60):
        base, new = Sample([skewed(rng, 1500, 0.0)]), skewed(rng, 1500, 0.0)
        reach = Pair(base, Sample([new])).tail().reach(0.005)
        if reach is None:
            continue
        asked += 1
        far = new + 1e6 * (rng.random(1500) < reach)
        hits += Pair(base, Sample([far])).tail().chance.both <= 0.005
    assert asked >= 45
    assert hits >= 0.65 * asked


def test_an_instrument_that_may_explain_the_tail_leaves_it_open() -> None:
    rng = np.random.default_rng(2)
    base = rng.permutation(np.arange(500.0))
    new = rng.permutation(np.concatenate([np.arange(480.0), 600 + np.arange(20.0)]))
    assert Pair(Sample([base]), Sample([new]), 50).tail().chance.up < 0.001
    assert Pair(Sample([base]), Sample([new]), 150).tail().chance.up == 1.0
    assert stats.TailTest(Pair(Sample([base[:4]]), Sample([new[:4]]))).reach(0.01) is None


# -- a reach greater than the figure is none -----------------------------------------------------------------


@pytest.mark.parametrize("statistic", sorted(JUDGED_STATISTICS - {"max"}))
def test_no_statistic_is_the_same_by_a_reach_beyond_itself(statistic: str) -> None:
    assert out_of_reach(statistic, 751.0, 15.0)
    assert out_of_reach(statistic, 1e-9, 0.0)
    assert out_of_reach(statistic, 3.0, -2.0)
    assert not out_of_reach(statistic, 15.0, 15.0)
    assert not out_of_reach(statistic, 0.0, 0.0)


@pytest.mark.parametrize("messages", [12, 40, 1000])
@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_what_is_called_the_same_was_within_reach(count: int, messages: int, tmp_path: Path) -> None:
    count = min(count, messages // 4)

    def of(place: str, number: int, late: int) -> measures.Judgement:
        def alter(columns: Columns, flow: int) -> None:
            more = np.zeros(len(columns["tx_app"]), dtype=np.int64)
            more[-1 : -1 - late * 2 : -2] = 9_000_000_000
            columns["rx_app"] = columns["rx_app"] + more

        make(tmp_path / place, replace(ONE, messages=messages, seed=300 + number, alter=alter))
        return results.judge(tmp_path / place)

    found = compare(of("a", 1, 0), of("b", 2, count))
    for flow in found.flows:
        for name, shift in flow.judged:
            if shift.verdict == "same" and shift.basis == "no-difference" and not shift.of_share:
                assert shift.detectable is not None, name
                assert shift.detectable <= abs(shift.base.value), name


# -- equal values of clocks that may be wrong ----------------------------------------------------------------


def twins(
    tmp_path: Path, off_ns: int, bench: str | None = None
) -> tuple[measures.Judgement, measures.Judgement]:
    """Two runs with the very same values, of clocks that are known to so much."""
    for name in ("a", "b"):
        make(tmp_path / name, ONE)
        path = tmp_path / name / "manifest.json"
        manifest = json.loads(path.read_text())
        for node in ("mac", "sensor"):
            manifest["runs"][0]["clock_offsets"][node]["uncertainty_ns"] = off_ns // 2
        path.write_text(json.dumps(manifest))
    return results.judge(tmp_path / "a"), results.judge(tmp_path / "b")


@pytest.mark.parametrize("asked", [(), ("latency=1us",), ("latency.p50=1us",), ("latency.p99=50%",)])
def test_equal_values_are_not_equal_times(asked: tuple[str, ...], tmp_path: Path) -> None:
    base, new = twins(tmp_path, 18_000)
    thresholds = [read_threshold(text) for text in asked]
    found = compare(base, new, thresholds=thresholds, equivalence=bool(asked))
    for name, shift in found.flows[0].judged:
        if name.startswith("latency") and shift.statistic != "sd":
            assert shift.basis != "identical", name
            reach = shift.detectable or 0
            assert shift.verdict == "undecided" or (not asked and (shift.of_share or reach >= 18_000)), name
    assert "identical" not in compare_headline(found)
    again = compare(base, base, thresholds=thresholds, equivalence=bool(asked))
    assert again.verdict == "same"
    assert {shift.basis for name, shift in again.flows[0].judged if name.startswith("latency")} == {
        "identical"
    }


def test_a_spread_that_clocks_leave_alone_is_identical(tmp_path: Path) -> None:
    base, new = twins(tmp_path, 18_000)
    found = compare(base, new, thresholds=[read_threshold("latency.sd=1ns")], equivalence=True)
    assert {shift.basis for _, shift in found.flows[0].judged} == {"identical"}
