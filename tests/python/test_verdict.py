"""A verdict rests on every message that the test measured: files whose verdict once did not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from jsonschema_rs import Draft202012Validator
from msgspec.structs import replace
from rich.console import Console
from typer.testing import CliRunner

from synthetic import Columns
from test_measures_validity import BASE, judged, limit
from wiregauge import measures, results
from wiregauge.cli import app
from wiregauge.measures.flow_measures import PAIRS

pytestmark = pytest.mark.usefixtures("unreported")

SCHEMA = json.loads(results.schema_path().read_text())
FAULTS = Path(__file__).resolve().parents[1] / "faults"


def simulated(name: str, place: Path) -> tuple[int, dict[str, Any]]:
    """Exit code of the simulated test of that name, and what is said of it, which `show --json` says as well."""
    words = ["run", str(FAULTS / f"{name}.xml"), "--bench", "sim", "--out", str(place / name), "--json"]
    done = CliRunner().invoke(app, words)
    return done.exit_code, json.loads(done.stdout)


def test_an_incident_near_the_start_fails_its_limit(tmp_path: Path) -> None:
    """2 % of the messages took 100 µs longer, among the first that differ from the rest."""
    code, shown = simulated("settling-hides-an-incident", tmp_path)
    assert code == 1
    assert shown["verdict"] == "FAIL"
    (run,) = shown["runs"]
    (flow,), (limit,) = run["flows"], run["limits"]
    rows = pl.read_parquet(tmp_path / "settling-hides-an-incident" / "messages" / "*.parquet")
    rows = rows.filter(~pl.col("warm_up"))
    took = np.sort((rows["rx_app"] - rows["tx_app"]).drop_nulls().to_numpy()) / 1000
    truth = float(took[-(-99 * len(took) // 100) - 1])
    assert flow["latency_ns"]["n"] == len(took) == flow["delivered"] == 5000
    assert limit["observed"] == flow["latency_ns"]["p99"] == truth
    assert 117_000 < truth < 119_000
    assert flow["latency_ns"]["max"] == took[-1]
    assert flow["settling"] > 1000
    assert flow["latency_ns"]["settling"]["without"]["p99"] < 50_000, "what the note says, and only the note"
    assert "the first" in next(check["observed"] for check in run["checks"] if check["name"] == "warm-up")


def test_the_same_incident_without_a_change_before_it_fails_too(tmp_path: Path) -> None:
    code, shown = simulated("settling-control", tmp_path)
    assert (code, shown["verdict"]) == (1, "FAIL")


@pytest.fixture(scope="module")
def headline(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], measures.Judgement]:
    """Exit code, JSON and judgement of the test whose maxima once differed."""
    place = tmp_path_factory.mktemp("headline")
    code, shown = simulated("headline-max", place)
    return code, shown, results.judge(place / "headline-max")


def test_headline_table_and_limit_say_the_same_maximum(
    headline: tuple[int, dict[str, Any], measures.Judgement],
) -> None:
    code, shown, judgement = headline
    assert code == 1
    (run,) = shown["runs"]
    tabled = {(flow["flow"], flow["to"]): flow["latency_ns"]["max"] for flow in run["flows"]}
    limits = [limit["observed"] for limit in run["limits"] if limit["measure"] == "latency.max"]
    assert sorted(limits) == sorted(tabled.values())
    worst = max(tabled.values())
    slowest = next(f"{flow} to {to}" for (flow, to), most in tabled.items() if most == worst)
    assert f"at most {worst / 1e6:.3f} ms (flow {slowest})" in results.headline(judgement)
    (pair,) = {
        pair.maximum
        for flow in judgement.runs[0].flows
        for pair in flow[PAIRS]
        if (pair.start, pair.end) == ("tx_app", "rx_app") and pair.maximum == worst
    }
    assert pair == worst


def test_a_limit_carries_its_margin_and_its_interval(tmp_path: Path) -> None:
    limits = [
        limit("latency.max", 1e9),
        limit("latency.min", 1e9, "at-least"),
        limit("latency.p99", 1e9),
        limit("latency.p99.9", 1e9),
        limit("lost", 0),
    ]
    judgement = judged(tmp_path / "r", replace(BASE, limits=limits))
    most, least, p99, rare, lost = judgement.runs[0].limits
    latency = judgement.runs[0].flows[0].summaries["latency"]
    assert most.margin == 1e9 - (latency.maximum or 0)
    assert (least.result, least.margin) == ("fail", (latency.minimum or 0) - 1e9)
    assert (p99.low, p99.high) == (latency.percentiles["p99"].low, latency.percentiles["p99"].high)
    assert (rare.result, rare.margin, rare.observed) == ("undecided", None, None)
    assert "needs 2995 values" in rare.reason
    assert (lost.result, lost.margin, lost.unit, lost.low) == ("pass", 0.0, "messages", None)
    shown: Any = results.show_json(judgement)
    Draft202012Validator(SCHEMA).validate(shown)
    for found in shown["runs"][0]["limits"]:
        assert found["holds"] == (found["result"] == "pass")
        if found["margin"] is not None:
            assert (found["margin"] >= 0) == found["holds"]
    console = Console(record=True, width=200)
    results.show_text(judgement, console)
    text = console.export_text()
    assert "undecided flow 10: latency.p99.9 at most 1e+09: p99.9 needs 2995 values, there are" in text
    assert "fail flow 10: latency.min at least 1e+09:" in text
    assert "short by" in text
    assert f"pass flow 10: lost at most 0: 0 (of {lost.n} messages sent), margin 0" in text


def test_the_observed_figure_decides_and_a_bound_within_its_interval_is_said(tmp_path: Path) -> None:
    plain = judged(tmp_path / "a").runs[0].flows[0].summaries["latency"].percentiles["p50"]
    assert plain.value is not None
    assert plain.high is not None
    between = (plain.value + plain.high) / 2
    (found,) = judged(tmp_path / "b", replace(BASE, limits=[limit("latency.p50", between)])).runs[0].limits
    assert (found.result, found.straddled) == ("pass", True)
    assert "the bound lies within its 95 % interval" in results.limit_text(found)


def untimestamped(count: int, name: str) -> Callable[[Columns, int], None]:
    """The first `count` messages of the measured part have no timestamp at a point."""

    def alter(columns: Columns, flow: int) -> None:
        first = int(columns["warm_up"].sum())
        columns["present"][name][first : first + count] = False

    return alter


@pytest.mark.parametrize(
    ("asked", "result"),
    [
        (limit("driver_latency.max", 1e9), "undecided"),
        (limit("driver_latency.max", 1.0), "fail"),
        (limit("driver_latency.mean", 1e9), "undecided"),
        (limit("driver_latency.min", 1.0, "at-least"), "undecided"),
        (limit("driver_latency.p50", 1e9), "pass"),
        (limit("driver_latency.p50", 1.0, "at-least"), "pass"),
        (limit("driver_latency.p99", 1e9), "undecided"),
        (limit("pair_latency.tx_drv-rx_drv.max", 1e9), "undecided"),
        (limit("latency.max", 1e9), "pass"),
    ],
)
def test_what_the_instrument_did_not_see_passes_no_limit(
    asked: dict[str, Any], result: str, tmp_path: Path
) -> None:
    """Five of 400 values are missing: enough to move p99 beyond any bound, and not the median."""
    recipe = replace(BASE, messages=400, loss=0.0, limits=[asked], alter=untimestamped(5, "tx_drv"))
    (found,) = judged(tmp_path, recipe).runs[0].limits
    assert found.result == result, found
    if result == "undecided":
        assert found.missing == 5
        assert "5 values that the instrument did not see" in found.reason


def test_a_percentile_among_the_lost_fails_and_what_never_happened_passes(tmp_path: Path) -> None:
    recipe = replace(
        BASE,
        loss=0.2,
        limits=[
            limit("latency_with_loss.p99", 1e9),
            limit("reorder_late_time.max", 1.0),
            limit("loss_distance.min", 1000, "at-least"),
        ],
    )
    lost, order, distance = judged(tmp_path / "r", recipe).runs[0].limits
    assert (lost.result, lost.observed) == ("fail", None)
    assert "falls among the lost" in lost.reason
    flow = judged(tmp_path / "s", replace(recipe, loss=0.0)).runs[0]
    assert distance.result == "fail"
    if not flow.flows[0].counts["reordered"]:
        assert (flow.limits[1].result, flow.limits[1].reason) == ("pass", "no message was reordered")
    assert order.result in ("pass", "fail")
    assert (flow.limits[2].result, flow.limits[2].observed) == ("pass", None)


def test_a_limit_of_a_multicast_flow_names_its_receiver(
    headline: tuple[int, dict[str, Any], measures.Judgement],
) -> None:
    _, shown, judgement = headline
    (run,) = shown["runs"]
    of_one = [found for found in run["limits"] if found["flow"] == 1 and found["measure"] == "latency.max"]
    assert [found["to"] for found in of_one] == ["es4", "es6"]
    for found in of_one:
        (flow,) = [f for f in run["flows"] if (f["flow"], f["to"]) == (1, found["to"])]
        assert found["observed"] == flow["latency_ns"]["max"]
    assert judgement.runs[0].limits[0].subject == "flow 1 to es4"


def test_any_percentile_that_a_limit_names_is_told_of_every_flow_and_run(tmp_path: Path) -> None:
    limits = [limit("latency.p95", 1e9), limit("latency.p99.999", 1e9), limit("latency_with_loss.p95", 1e9)]
    judgement = judged(tmp_path / "r", replace(BASE, limits=limits, repeats=2))
    Draft202012Validator(SCHEMA).validate(results.show_json(judgement))
    for run in judgement.runs:
        common, rare, lost = run.limits
        (flow,) = [f for f in run.flows if f.plan.id == 10]
        values = np.sort(flow.series["latency"].value)
        assert common.observed == values[-(-95 * len(values) // 100) - 1]
        assert (rare.result, rare.observed) == ("undecided", None)
        assert "p99.999 needs 299572 values" in rare.reason
        assert lost.observed is not None
        for summary in flow.summaries.values():
            assert (
                list(summary.percentiles) == ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "p99.999"]
                or not summary.n
            )
    (pooled,) = [f for f in judgement.points[0].flows if f.plan.id == 10]
    everything = np.sort(np.concatenate([run.flows[0].series["latency"].value for run in judgement.runs]))
    told = pooled.summaries["latency"].percentiles["p95"]
    assert told.value == everything[-(-95 * len(everything) // 100) - 1]
    console = Console(record=True, width=250)
    results.show_text(judgement, console)
    heads = next(line for line in console.export_text().splitlines() if "mean ± u" in line)
    assert [word for word in heads.split() if word.startswith("p")][1:7] == [
        "p50",
        "p90",
        "p95",
        "p99",
        "p99.9",
        "p99.999",
    ]
