"""A run too big to be held: judged from counts, sketches and a sample, it says what judging it whole says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

import wiregauge as wg
from wiregauge import results, stats
from wiregauge.cli import app
from wiregauge.export import Choice, write
from wiregauge.measures.definitions import COUNTS, QUANTILES, quantile_named
from wiregauge.measures.explaining import explain
from wiregauge.measures.flow_measures import (
    AVAILABILITY,
    CONFORMITY,
    DEADLINE,
    GOODPUT,
    HOPS,
    LOSSES,
    PAIRS,
    REORDERING,
    WITH_LOSS,
)
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.measures.sketched import census
from wiregauge.measures.sketched import full_flow as wholes
from wiregauge.stats import sketch as sketches

ROOT = Path(__file__).resolve().parents[2]
ROWS = 20_000
WIDTH = 1e-3
"""A bucket is at most so much of its value wide."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repeats of faults on links, with a relayed flow beside them: some 10^5 messages."""
    place = tmp_path_factory.mktemp("volume")
    text = (ROOT / "examples" / "link-faults.xml").read_text(encoding="utf-8")
    text = text.replace('duration="5s"', 'duration="20s" warm-up="100ms"')
    text = text.replace("</faults>", '</faults> <sweep><repeat times="2"/></sweep>')
    text = text.replace('protocol="raw" from="a" to="b"', 'protocol="raw" from="a" to="b" deadline="900us"')
    text = text.replace('<receive flow="30"/>', '<relay flow="30" on="a"/>')
    (place / "t.xml").write_text(text, encoding="utf-8")
    command("run", place / "t.xml", "--bench", "sim", "--out", place / "r")
    return place / "r"


@pytest.fixture(scope="module")
def judged(run: Path) -> tuple[Judgement, Judgement]:
    """The run judged whole, and judged as too big to be held."""
    return both_ways(run, ROWS)


def both_ways(run: Path, rows: int) -> tuple[Judgement, Judgement]:
    """A run judged whole, and judged as if no more than `rows` messages could be held."""
    whole = results.judge(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "ROWS", rows)
        # Stretches of a flow that are looked at in any case would be most of a small run.
        patch.setattr(sampling, "STRETCH", 128)
        patch.setattr(sampling, "FEWEST", 2)
        patch.setattr(census, "BATCH", 3000)
        patch.setattr(wholes, "BATCH", 3000)
        return whole, results.judge(run)


def command(*words: str | Path) -> str:
    """What `wiregauge` prints."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code in (0, 1), done.output
    # On a slow machine progress is told, on standard error.
    return done.stdout


def flows(judgement: Judgement) -> list[FlowResult]:
    return [flow for run in judgement.runs for flow in run.flows]


def everything(judgement: Judgement) -> list[FlowResult]:
    return flows(judgement) + [flow for point in judgement.points for flow in point.flows]


def overlap(one: tuple[float | None, float | None], other: tuple[float | None, float | None]) -> bool:
    (a, b), (c, d) = one, other
    return (a is None or d is None or a <= d) and (c is None or b is None or c <= b)


def test_it_is_sampled_and_says_so(judged: tuple[Judgement, Judgement]) -> None:
    whole, big = judged
    assert all(flow.sampled is None for flow in everything(whole))
    for flow in everything(big):
        assert flow.sampled is not None
        assert flow.sampled.one_in > 1
        assert flow.sampled.rows < flow.sampled.of == flow.counts["sent"]
    check = next(check for check in big.runs[0].checks if check.name == "held-whole")
    assert check.grade.name == "NOTE"
    assert "sketches and a sample of 1 in k" in check.reason
    shown: Any = results.show_json(big)
    assert shown["runs"][0]["flows"][0]["sampled"]["of"] == shown["runs"][0]["flows"][0]["sent"]


def test_counts_are_those_of_all_messages(judged: tuple[Judgement, Judgement]) -> None:
    for one, other in zip(*map(everything, judged), strict=True):
        assert {name: one.counts[name] for name in COUNTS} == {name: other.counts[name] for name in COUNTS}
        assert (one.outcomes, one.drop_reasons, one.last_seen) == (
            other.outcomes,
            other.drop_reasons,
            other.last_seen,
        )
        assert (one.warm_up, one.late_sends, one.reorder_extent, one.loss.ratio) == (
            other.warm_up,
            other.late_sends,
            other.reorder_extent,
            other.loss.ratio,
        )
        assert one[GOODPUT] is not None
        assert other[GOODPUT] is not None
        assert one[GOODPUT].value == pytest.approx(other[GOODPUT].value, rel=1e-9)
        assert one.loss == other.loss
        assert one[LOSSES] == other[LOSSES] is not None
        assert one[AVAILABILITY] == other[AVAILABILITY] is not None
        assert one[REORDERING] is not None
        assert other[REORDERING] is not None
        assert one[REORDERING].share == other[REORDERING].share
        mine, its = one[DEADLINE], other[DEADLINE]
        assert (mine is None) == (its is None)
        if mine is not None and its is not None:
            assert mine.missed == its.missed
            assert mine.tardiness_max_ns == pytest.approx(its.tardiness_max_ns)
    assert all(
        run.validity.word == same.validity.word
        for run, same in zip(judged[0].runs, judged[1].runs, strict=True)
    )


def test_figures_are_those_of_all_messages(judged: tuple[Judgement, Judgement]) -> None:
    seen = 0
    for one, other in zip(*map(everything, judged), strict=True):
        assert set(one.summaries) == set(other.summaries)
        for name, summary in one.summaries.items():
            same = other.summaries[name]
            assert (summary.n, summary.excluded, summary.negative) == (
                same.n,
                same.excluded,
                same.negative,
            ), name
            # A variation is a latency less the least one, as exact as that.
            size = abs((one.summaries["latency"] if name == "delay_variation" else summary).maximum or 0.0)
            size += one.plan.deadline_ns or 0.0 if name == "lateness" else 0.0
            for statistic in ("min", "mean", "max", "sd"):
                expected = summary.value(statistic)
                assert same.value(statistic) == pytest.approx(expected, rel=1e-6, abs=1e-9 * size), (
                    name,
                    statistic,
                )
            for quantile in QUANTILES:
                mine, its = summary.percentiles.get(quantile), same.percentiles.get(quantile)
                if mine is None or its is None or mine.value is None:
                    assert (mine and mine.value) == (its and its.value)
                    continue
                assert its.value == pytest.approx(mine.value, rel=WIDTH, abs=WIDTH * size), (name, quantile)
                assert overlap((mine.low, mine.high), (its.low, its.high)), (name, quantile)
                seen += 1
    assert seen > 100


def test_order_contracts_and_pairs_of_points_are_those_of_all_messages(
    judged: tuple[Judgement, Judgement],
) -> None:
    same_exact_figures(judged)
    assert sum(order.n_reordered[1] for flow in flows(judged[1]) if (order := flow[REORDERING])) > 100


@pytest.mark.parametrize("example", ["exchange", "afdx", "mixed-criticality", "multicast"])
def test_every_contract_and_clock_is_judged_from_all_messages(example: str, tmp_path: Path) -> None:
    """Timestamps corrected one by one, virtual links on two networks, schedules, several receivers."""
    text = (ROOT / "examples" / f"{example}.xml").read_text(encoding="utf-8")
    (tmp_path / "t.xml").write_text(
        re.sub(r"<sweep>.*?</sweep>", "", text, flags=re.DOTALL), encoding="utf-8"
    )
    command("run", tmp_path / "t.xml", "--bench", "sim", "--out", tmp_path / "r")
    judged = both_ways(tmp_path / "r", 500)
    assert any(flow.sampled is not None for flow in flows(judged[1]))
    same_exact_figures(judged)
    test_counts_are_those_of_all_messages(judged)
    test_figures_are_those_of_all_messages(judged)
    assert not any(summary.of_sample for flow in flows(judged[1]) for summary in flow.summaries.values())


def test_limits_on_what_only_single_messages_tell_see_all_of_them(tmp_path: Path) -> None:
    """A sample told of 683 messages that are 3-reordered, and of a maximum within its limit."""
    test = ROOT / "tests" / "faults" / "limits-of-sampled-counts.xml"
    command("run", test, "--bench", "sim", "--out", tmp_path / "r")
    shown = json.loads(command("show", tmp_path / "r", "--json"))
    assert shown["verdict"] == "FAIL"
    (run,) = shown["runs"]
    observed = {limit["measure"]: (limit["observed"], limit["holds"]) for limit in run["limits"]}
    rows = pl.read_parquet(tmp_path / "r" / "messages" / "*.parquet")
    rows = rows.filter((pl.col("flow") == 10) & ~pl.col("warm_up"))
    before = [int(number) for number in rows.drop_nulls("rx_app").sort("rx_app", "sequence")["sequence"]]
    three = sum(min(before[at - 3 : at]) > before[at] for at in range(3, len(before)))
    longest = int((rows["tx_drv"] - rows["intended"]).to_numpy().max()) / 1000
    assert observed["n_reordering.3"] == (three, False)
    assert observed["pair_latency.intended-tx_drv.max"] == (longest, False)
    assert observed["reordered"][1] is True


def test_a_limit_within_the_bucket_of_its_percentile_is_decided_by_counting(
    run: Path, tmp_path: Path
) -> None:
    """A bound at the percentile itself, and one a picosecond below: no sketch knows them apart."""
    shown = json.loads(command("show", run, "--json"))["runs"][0]["flows"][0]
    limits = "".join(
        f'<limit flow="10" measure="{of}.{name}" at-most="{round(shown[f"{of}_ns"][name], 3) - less:.3f}ns"/>'
        for of in ("latency", "lateness", "receive_period")
        if shown[f"{of}_ns"] is not None
        for name, less in (("p90", 0.0), ("p99", 0.001))
    )
    rows = pl.read_parquet(run / "messages" / "run-0000.parquet").filter(
        (pl.col("flow") == 10) & ~pl.col("warm_up")
    )
    points = (("tx_wire", "rx_drv"), ("intended", "rx_wire"), ("tx_app", "rx_app"))
    for start, end in points:
        took = np.sort((rows[end] - rows[start]).drop_nulls().to_numpy()) / 1000
        for name, less in (("p99.9", 0.0), ("p95", 0.001)):
            value = took[stats.rank(len(took), quantile_named(name) or 0.0) - 1]
            limits += f'<limit flow="10" measure="pair_latency.{start}-{end}.{name}" at-most="{value - less:.3f}ns"/>'
    text = (run.parent / "t.xml").read_text(encoding="utf-8")
    text = re.sub(r"<limits>.*?</limits>", "", text, flags=re.DOTALL)
    text = text.replace("</test>", f"<limits>{limits}</limits></test>").replace('times="2"', 'times="1"')
    (tmp_path / "t.xml").write_text(text, encoding="utf-8")
    command("run", tmp_path / "t.xml", "--bench", "sim", "--out", tmp_path / "r")
    whole, big = both_ways(tmp_path / "r", ROWS)
    for one, other in zip(whole.runs[0].limits, big.runs[0].limits, strict=True):
        counted = not one.measure.startswith("receive_period")
        assert other.result in ((one.result,) if counted else (one.result, "undecided")), one
    results = [limit.result for limit in big.runs[0].limits]
    assert results[:2] == ["pass", "fail"]
    assert results[-2 * len(points) :] == ["pass", "fail"] * len(points)


def same_exact_figures(judged: tuple[Judgement, Judgement]) -> None:
    """What is no shape is the same however a run was judged."""
    for one, other in zip(*map(everything, judged), strict=True):
        mine, its = one[REORDERING], other[REORDERING]
        assert mine is not None
        assert its is not None
        assert its.extent_mean == pytest.approx(mine.extent_mean)
        assert (mine.extent_max, mine.n_reordered, mine.n_max, mine.late_time_max_ns) == (
            its.extent_max,
            its.n_reordered,
            its.n_max,
            its.late_time_max_ns,
        )
        assert one[CONFORMITY] == other[CONFORMITY]
        assert [(p.start, p.end) for p in one[PAIRS]] == [(p.start, p.end) for p in other[PAIRS]]
        for pair, same in zip(one[PAIRS], other[PAIRS], strict=True):
            assert (pair.n, pair.missing) == (same.n, same.missing)
            assert (same.minimum, same.mean, same.maximum) == pytest.approx(
                (pair.minimum, pair.mean, pair.maximum), rel=1e-12
            )
            assert list(pair.percentiles) == list(same.percentiles)
            for name, percentile in pair.percentiles.items():
                again = same.percentiles[name].value
                assert (percentile.value is None) == (again is None)
                if percentile.value is not None:
                    assert again == pytest.approx(percentile.value, rel=WIDTH, abs=1e-3)


def test_percentiles_with_loss_know_all_that_were_lost(judged: tuple[Judgement, Judgement]) -> None:
    for one, other in zip(*map(everything, judged), strict=True):
        for name, mine in one[WITH_LOSS].items():
            its = other[WITH_LOSS][name]
            assert (its.value is None) == (mine.value is None)
            if mine.value is not None:
                assert its.value == pytest.approx(mine.value, rel=WIDTH), name


def test_hops_are_those_of_all_passages(judged: tuple[Judgement, Judgement]) -> None:
    for one, other in zip(*map(flows, judged), strict=True):
        assert len(one[HOPS]) == len(other[HOPS]) > 0
        for mine, its in zip(one[HOPS], other[HOPS], strict=True):
            assert (mine.switch, mine.port, mine.n) == (its.switch, its.port, its.n)
            assert (its.minimum, its.mean, its.maximum) == pytest.approx(
                (mine.minimum, mine.mean, mine.maximum)
            )
            assert its.p99 == pytest.approx(mine.p99, rel=WIDTH)


def test_the_sample_is_of_whole_stretches(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = open_recorded(run).messages(0)
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    directory = open_recorded(run)
    some, one_in = directory.messages(0), directory.sampled(0)
    assert whole is not None
    assert some is not None
    assert one_in
    for (number,), part in whole.filter(~whole["warm_up"]).partition_by("flow", as_dict=True).items():
        step, stretch = one_in[int(number)], part["sequence"] // sampling.STRETCH
        mine = some.filter((some["flow"] == number) & ~some["warm_up"])
        looked_at = (mine["sequence"] // sampling.STRETCH).unique()
        kept = part.filter(stretch.is_in(looked_at.to_list()))
        assert mine["sequence"].equals(kept["sequence"]), "stretches are whole"
        assert mine["stretch"].n_unique() == len(looked_at)
        # One of every `step` stretches that follow one another, wherever in them.
        groups = (looked_at // step).to_list()
        assert len(groups) == len(set(groups))
        there = set(stretch.unique().to_list())
        entire = {
            k for k in range(max(there) // step) if {k * step + place for place in range(step)} <= there
        }
        assert entire <= set(groups)


def test_a_seam_makes_no_gap(judged: tuple[Judgement, Judgement]) -> None:
    for one, other in zip(*map(flows, judged), strict=True):
        for name in ("period", "receive_period", "ipdv"):
            assert set(np.round(other.series[name].value, 6)) <= set(np.round(one.series[name].value, 6)), (
                name
            )
        assert one[LOSSES] is not None
        assert other[LOSSES] is not None


def test_the_command_tells_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    assert "sample of 1 in k stretches" in re.sub(r"\s+", " ", command("show", run))
    shown = json.loads(command("show", run, "--json"))
    assert shown["runs"][0]["flows"][0]["sampled"]["stretch"] == sampling.STRETCH


def test_exports_are_of_all_messages_or_say_that_they_are_not(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    choice = Choice(run=0, flow="10", measure="latency")
    text = command("export", run, "--to", "openmetrics", "--out", "-", "--run", "0", "--flow", "10")
    counted = {
        float(found["le"]): float(found["n"])
        for found in re.finditer(
            r'^wiregauge_latency_seconds_bucket\{.*le="(?P<le>[^"]+)".*\} (?P<n>\S+)', text, re.MULTILINE
        )
    }
    flow = next(flow for flow in flows(results.judge(run)) if flow.plan.id == 10)
    assert counted[float("inf")] == flow.summaries["latency"].n
    assert counted[1e-4] == 0 < counted[2e-4]
    assert not write(run, "parquet", tmp_path / "m.parquet", "messages", Choice(run=0))
    (note,) = write(run, "csv", tmp_path / "s.csv", "series", choice)
    assert "sample of whole stretches" in note
    (note,) = write(run, "hgrm", tmp_path / "h.hgrm", None, choice)
    assert "in one piece" in note
    text = (tmp_path / "h.hgrm").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d", line)]
    assert int(rows[-1][2]) == flow.summaries["latency"].n


def test_the_worst_messages_are_those_of_all(
    run: Path, judged: tuple[Judgement, Judgement], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = explain(judged[0], worst=5)
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    for one, other in zip(whole.flows, explain(judged[1], worst=5).flows, strict=True):
        assert [m.sequence for m in one.worst] == [m.sequence for m in other.worst]
        assert [m.value for m in one.worst] == [m.value for m in other.worst]
        assert [m.neighbours for m in one.worst] == [m.neighbours for m in other.worst]


def test_a_notebook_knows_percentiles_of_all(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def percentiles() -> list[tuple[int, float | None]]:
        opened = wg.open(run)
        chosen = [opened.latency(flow=20), opened.latency(flow=20, repeat=0)]
        return [(q.n, q.value) for latency in chosen for p in (25, 99.5) for q in [latency.percentile(p)]]

    whole = percentiles()
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    for (n, value), (same_n, same) in zip(whole, percentiles(), strict=True):
        assert n == same_n
        assert same == pytest.approx(value, rel=WIDTH)


def test_compare_says_that_it_rests_on_a_sample(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", ROWS)
    shown = json.loads(command("compare", run, run, "--json"))
    assert sum("rest on its sample" in sentence for sentence in shown["differences"]) == 2


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50), st.integers(1, 10**6))
def test_a_fair_share_uses_what_small_ones_leave(counts: list[int], rows: int) -> None:
    share = sampling.fair(counts, rows)
    if share is None:
        assert sum(counts) <= rows
    else:
        assert sum(min(count, share) for count in counts) <= rows < sum(min(c, share + 1) for c in counts)


@given(st.dictionaries(st.integers(1, 60), st.integers(1, 10**9), min_size=1, max_size=40))
def test_the_rows_that_are_held_are_bounded(counts: dict[int, int]) -> None:
    one_in = sampling.every(counts, sampling.ROWS)
    held = sum(count / one_in.get(flow, 1) for flow, count in counts.items())
    assert held <= sampling.ROWS + len(counts) * (sampling.FEWEST * sampling.STRETCH + 1)
    if sum(counts.values()) <= sampling.ROWS:
        assert not one_in


values = arrays(np.float64, st.integers(1, 200), elements=st.integers(-1000, 1000).map(float))


@settings(max_examples=50)
@given(st.lists(values, min_size=1, max_size=4))
def test_merged_sketches_are_those_of_all_values(runs: list[np.ndarray[Any, np.dtype[np.float64]]]) -> None:
    merged = sketches.merged([sketches.sketch_of(one) for one in runs])
    every = np.concatenate(runs)
    assert (merged.n, merged.minimum, merged.maximum) == (len(every), every.min(), every.max())
    assert merged.mean == pytest.approx(every.mean(), abs=1e-9)
    assert merged.squared_deviations == pytest.approx(np.sum((every - every.mean()) ** 2), rel=1e-9, abs=1e-6)
    ascending = np.sort(every)
    for place in {1, (len(every) + 1) // 2, len(every)}:
        assert merged.ranked(place) == ascending[place - 1]
    assert len(merged.count) == len(np.unique(every))


def test_a_memory_beyond_a_stretch_is_seen() -> None:
    noise = np.random.default_rng(5).normal(size=64 * 1024)
    stretch = np.repeat(np.arange(64), 1024)
    assert not sketches.outlasts(noise, sketches.halves_of(stretch))
    slow = np.repeat(np.random.default_rng(6).normal(size=64), 1024)
    assert sketches.outlasts(noise + 0.3 * slow, sketches.halves_of(stretch)), "a small part that lasts"
    assert sketches.outlasts(noise[:2048], sketches.halves_of(stretch[:2048])), "too few stretches to tell"
