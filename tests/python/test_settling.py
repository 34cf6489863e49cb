"""What is noted of a beginning that differs and of a drift: beside figures and verdict, which see every message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema_rs import Draft202012Validator
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from test_measures_validity import grade, limit
from wiregauge import measures, results
from wiregauge.measures import Grade
from wiregauge.measures.flow_measures import LOSSES, WITH_LOSS

CALM = Recipe(protocols=("udp",), payloads=(64,), messages=1500, warm_up=30, loss=0.0, relay=False)
SCHEMA = json.loads(results.schema_path().read_text())
US = 1_000_000


def smooth(columns: Columns) -> None:
    """Latency of 20 µs with a little independent noise; everything in between follows."""
    rng = np.random.default_rng(5)
    n = len(columns["tx_app"])
    columns["tx_drv"] = columns["tx_app"] + 2 * US
    columns["rx_drv"] = columns["tx_app"] + 15 * US
    columns["rx_app"] = columns["tx_app"] + 20 * US + (rng.gamma(2.0, 0.5, n) * US).astype(np.int64)


def settling(length: int, by_us: float) -> Callable[[Columns, int], None]:
    """The first `length` messages after the warm-up take longer."""

    def alter(columns: Columns, flow: int) -> None:
        smooth(columns)
        first = int(columns["warm_up"].sum())
        columns["rx_app"][first : first + length] += int(by_us * US)

    return alter


def drifting(columns: Columns, flow: int) -> None:
    smooth(columns)
    columns["rx_app"] += np.linspace(0, 3 * US, len(columns["rx_app"])).astype(np.int64)


def clustered(columns: Columns, flow: int) -> None:
    """The same extra delay for fifteen messages in a row."""
    smooth(columns)
    n = len(columns["rx_app"])
    rng = np.random.default_rng(6)
    columns["rx_app"] += np.repeat(rng.gamma(2.0, 3.0, n // 15 + 1) * US, 15)[:n].astype(np.int64)


def judged(path: Path, recipe: Recipe) -> measures.Judgement:
    judgement = results.judge(make(path, recipe))
    Draft202012Validator(SCHEMA).validate(results.show_json(judgement))
    return judgement


def test_a_steady_run_bears_no_note(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(CALM, alter=lambda columns, flow: smooth(columns)))
    (flow,) = judgement.runs[0].flows
    assert flow.settling == 0
    assert {grade(judgement, name) for name in ("warm-up", "stationary", "independence")} == {Grade.OK}
    latency = flow.summaries["latency"]
    assert latency.settling is None
    assert latency.stationarity is not None
    assert latency.stationarity.steady is True


def test_a_beginning_that_differs_is_noted_and_stays_in_every_figure(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(CALM, alter=settling(60, 40.0)))
    (flow,) = judgement.runs[0].flows
    assert 55 <= flow.settling <= 70
    assert grade(judgement, "warm-up") == Grade.NOTE
    assert judgement.validity.word == "VALID"
    assert flow.counts["sent"] == 1500
    for name, summary in flow.summaries.items():
        between = name in ("period", "receive_period", "ipdv")
        total = summary.n + sum(summary.excluded.values())
        assert set(summary.excluded) <= {"warm-up", "no timestamp"}, name
        assert total == 1530 - between, name
    latency = flow.summaries["latency"]
    assert latency.n == 1500
    assert latency.maximum == flow.series["latency"].value.max() > 60_000
    early = latency.settling
    assert early is not None
    rest = np.sort(flow.series["latency"].value[early.n :])
    assert early.maximum == latency.maximum
    assert early.without.max == rest[-1] < 40_000
    assert early.without.p99 == rest[-(-99 * len(rest) // 100) - 1]
    told: Any = results.show_json(judgement)
    shown = told["runs"][0]["flows"][0]
    assert shown["settling"] == flow.settling
    assert shown["latency_ns"]["settling"]["max"] == latency.maximum
    (check,) = [c for c in judgement.runs[0].checks if c.name == "warm-up"]
    assert f"the first {early.n} values differ" in check.observed
    assert "with them left out p50 would be" in check.observed


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (limit("latency.max", 50_000), False),
        (limit("latency.max", 90_000), True),
        (limit("latency.p99", 30_000), False),
        (limit("latency.p99", 90_000), True),
        (limit("latency.min", 19_000, "at-least"), True),
        (limit("pair_latency.tx_app-rx_app.max", 50_000), False),
        (limit("pair_latency.tx_drv-rx_app.max", 50_000), False),
        (limit("pair_latency.tx_app-rx_app.max", 90_000), True),
        (limit("pair_latency.tx_app-rx_app.p99", 30_000), False),
        (limit("range", 30_000), False),
        (limit("range", 90_000), True),
    ],
)
def test_no_rule_helps_a_run_to_pass(tmp_path: Path, asked: dict[str, object], holds: bool) -> None:
    """One message in 25 was slow at the beginning: every limit sees it."""
    judgement = judged(tmp_path, replace(CALM, alter=settling(60, 40.0), limits=(asked,)))
    assert judgement.runs[0].flows[0].settling > 0
    assert judgement.runs[0].limits[0].holds is holds


def test_messages_lost_while_settling_stay_lost(tmp_path: Path) -> None:
    def alter(columns: Columns, flow: int) -> None:
        settling(60, 40.0)(columns, flow)
        first = int(columns["warm_up"].sum())
        columns["lost"][first + 3] = True
        for name in ("rx_drv", "rx_app"):
            columns["present"][name][first + 3] = False
        columns["copies"] = np.where(columns["lost"], 0, 1)
        columns["reordered"][:] = False

    (flow,) = judged(tmp_path, replace(CALM, alter=alter)).runs[0].flows
    assert flow.settling > 50
    assert flow.counts["lost"] == 1
    latency = flow.summaries["latency"]
    assert latency.excluded["lost"] == 1
    most, losses = flow[WITH_LOSS]["p99"].value, flow[LOSSES]
    assert most is not None
    assert most >= (latency.value("p99") or 0)
    assert losses is not None
    assert losses.periods == 1


def test_a_drift_is_noted_and_cuts_nothing(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(CALM, alter=drifting))
    assert judgement.runs[0].flows[0].settling == 0
    assert grade(judgement, "stationary") == Grade.NOTE
    (check,) = [c for c in judgement.runs[0].checks if c.name == "stationary"]
    assert "in the first half" in check.observed
    assert judgement.validity.word == "VALID"


def test_messages_in_clusters_are_worth_fewer(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(CALM, alter=clustered))
    latency = judgement.runs[0].flows[0].summaries["latency"]
    assert latency.n_effective is not None
    assert latency.n_effective < 0.1 * latency.n
    assert grade(judgement, "independence") == Grade.NOTE
    worth = latency.percentiles["p50"].worth
    assert worth is not None
    assert worth < 0.2 * latency.n


def test_repeats_are_taken_together_with_their_beginnings(tmp_path: Path) -> None:
    recipe = replace(CALM, repeats=3, alter=settling(60, 40.0))
    judgement = judged(tmp_path, recipe)
    (point,) = judgement.points
    (flow,) = point.flows
    assert flow.settling == sum(run.flows[0].settling for run in judgement.runs)
    latency = flow.summaries["latency"]
    assert latency.n == 4500
    assert latency.maximum == max(run.flows[0].summaries["latency"].maximum or 0 for run in judgement.runs)
    assert latency.repeats is not None
    assert latency.repeats.runs == 3
    assert latency.uncertainty is not None
    means = np.array([run.flows[0].summaries["latency"].mean for run in judgement.runs])
    ends = latency.percentiles["p50"].low, latency.percentiles["p50"].high
    assert ends[0] is not None
    assert latency.uncertainty.sampling == pytest.approx(4.3027 * means.std(ddof=1) / 3**0.5, rel=0.05)


def test_a_moved_summary_is_the_summary_of_the_moved_values(tmp_path: Path) -> None:
    flow = judged(tmp_path, replace(CALM, alter=clustered)).runs[0].flows[0]
    moved, values = flow.summaries["delay_variation"], np.sort(flow.series["delay_variation"].value)
    assert moved.minimum == pytest.approx(0.0, abs=1e-9)
    assert moved.mean == pytest.approx(values.mean())
    assert moved.maximum == pytest.approx(values[-1])
    assert moved.value("p99") == pytest.approx(values[-(-99 * len(values) // 100) - 1])
    assert moved.negative == 0
    assert moved.uncertainty is not None
    assert moved.uncertainty.clock == 0
