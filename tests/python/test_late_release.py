"""A limit in a run whose network was played is decided where lateness, known of every frame, decides nothing.

Lateness is planted into a simulated run: each message comes later to its host by an instant of its own, stored as the
network stores it. What the model wanted is then known: the figures of the simulation.
"""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from stored import unsealed

from test_silence import STAR, limit_names, simulated
from wiregauge import results
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.instrument import LATE_RELEASE
from wiregauge.measures.limits import judge_limits, observe
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import FlowResult, LimitResult, RunResult
from wiregauge.measures.run_measures import OfRun

pytestmark = pytest.mark.usefixtures("unreported")

DEADLINE_NS = 35_000
TEXT = STAR.replace('deadline="1ms"', f'deadline="{DEADLINE_NS // 1000}us"').replace("1000", "3000")
NAMES = [str(name) for name in limit_names().names() if DEFINITIONS[name.measure].needs != "run"]
REAL_NS = 3.0
"""What timestamps of real hosts are off by, and more."""


def planted(place: Path, *, keep: float = 1.0, seed: int = 4) -> tuple[RunResult, RunResult]:
    """A simulated run, and the same through a network that was late; of its rows that share is stored."""
    simulated(TEXT, place)
    model = results.judge(place / "run").runs[0]
    run = unsealed(place / "run", place / "late")
    (table,) = (run / "messages").glob("*.parquet")
    rows = pl.read_parquet(table)
    draw = np.random.default_rng(seed)
    out, back, moved = (draw.exponential(9e6, rows.height).astype(np.int64) for _ in range(3))
    moved[draw.random(rows.height) < 0.7] = 0
    pl.DataFrame(crossings(rows, out, back, moved)[: int(3 * keep * rows.height)]).with_columns(
        pl.col("kind").cast(pl.Categorical)
    ).write_parquet(run / "crossings" / table.name.replace("messages", "crossings"), mkdir=True)
    whole = pl.Series(out + moved)
    later = dict.fromkeys(("rx_drv", "rx_app", "back_tx_app", "back_tx_drv"), whole)
    later |= {name: whole + pl.Series(back) for name in ("back_rx_drv", "back_rx_app")}
    rows = rows.with_columns((rows[name] + by).alias(name) for name, by in later.items())
    is_late = pl.col("rx_app") - pl.col("tx_app") > DEADLINE_NS * 1000
    rows = rows.with_columns(late=is_late.fill_null(value=False) & (pl.col("flow") == 1))
    stored = pl.read_parquet_metadata(table)
    rows.with_columns(
        outcome=pl.when(pl.col("late"))
        .then(pl.lit("late"))
        .otherwise(pl.lit("delivered"))
        .cast(rows["outcome"].dtype)
    ).write_parquet(table, metadata={key: stored[key] for key in stored if key.startswith("wiregauge.")})
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["traits"] = {"one_clock": True, "switches": "model", "driver": "veth"}
    frames = {"a": rows.filter(pl.col("flow") == 2).height, "b": rows.height}
    late = {"a": int(back.max()), "b": int(out.max())}
    manifest["runs"][0]["network"] = {
        "releases": [
            {"end_system": name, "frames": count, "max_ns": late[name] // 1000}
            for name, count in frames.items()
        ],
        "intake": {"frames": sum(frames.values()), "moved": 1, "most_moved_ns": int(moved.max()) // 1000},
    }
    manifest["plan"]["limits"] = [
        {"flow": None, "measure": name, "bound": "at-most", "value": 0.0, "written": "0", "line": 1}
        for name in NAMES
    ]
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return model, results.judge(run).runs[0]


def crossings(rows: pl.DataFrame, out: Any, back: Any, moved: Any) -> list[dict[str, Any]]:
    """As the network stores them: node 0 sends everything, node 1 answers flow 2."""
    found = []
    for place, row in enumerate(rows.select("flow", "sequence", "warm_up").iter_rows(named=True)):
        found.append(row | {"node": 0, "returning": False, "kind": "entered", "late": int(moved[place])})
        found.append(row | {"node": 1, "returning": False, "kind": "left", "late": int(out[place])})
        if row["flow"] == 2:
            found.append(row | {"node": 0, "returning": True, "kind": "left", "late": int(back[place])})
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResult, RunResult]:
    return planted(tmp_path_factory.mktemp("late"))


def held(name: str, bound: str, value: float, flow: FlowResult) -> LimitResult:
    (found,) = judge_limits([LimitPlan(flow.plan.id, name, bound, value, "", 1)], [flow], OfRun())
    return found


def worth(name: str, flow: FlowResult) -> float | None:
    figure = observe(name, flow)
    return figure.value if figure.value is not None else figure.stands_for


def test_every_figure_that_lateness_moves_has_what_the_model_wanted_and_no_other_has(
    runs: tuple[RunResult, RunResult],
) -> None:
    seen = set()
    for wanted, flow in zip(runs[0].flows, runs[1].flows, strict=True):
        for name in NAMES:
            true, value = worth(name, wanted), worth(name, flow)
            if true is None or value is None:
                continue
            if value != true:
                assert name.partition(".")[0] in LATE_RELEASE, name
            if name not in flow.in_time:
                assert value == true, name
                continue
            low, high = flow.in_time[name]
            assert low <= true + 1e-6 * abs(true) + 1e-6, name
            assert high >= true - 1e-6 * abs(true) - 1e-6, name
            if value != true:
                seen.add(name.partition(".")[0])
    assert seen == LATE_RELEASE - {"reorder_late_time"}


def test_a_limit_that_lateness_decides_is_open_and_one_beyond_both_is_decided(
    runs: tuple[RunResult, RunResult],
) -> None:
    decided = 0
    for wanted, flow in zip(runs[0].flows, runs[1].flows, strict=True):
        for name in sorted(flow.in_time):
            true, value = worth(name, wanted), worth(name, flow)
            assert true is not None
            assert value is not None
            width = abs(value - true)
            if not isfinite(width) or (
                width < 50 * REAL_NS and DEFINITIONS[name.partition(".")[0]].unit == "ns"
            ):
                continue
            for bound in ("at-most", "at-least"):
                between = held(name, bound, (value + true) / 2, flow)
                if width and flow.in_time[name] != (value, value):
                    assert between.result == "undecided", (name, bound)
                low, high = between.instrument or (value, value)
                beyond = {"at-most": (high, low), "at-least": (low, high)}[bound]
                step = {"at-most": 1, "at-least": -1}[bound] * max(width, 1e-6 * abs(value), 1e-9)
                assert held(name, bound, beyond[0] + step, flow).result == "pass", (name, bound)
                assert held(name, bound, beyond[1] - step, flow).result == "fail", (name, bound)
                decided += 1
    assert decided > 100


@pytest.mark.parametrize(
    ("measure", "bound", "limit", "result"),
    [
        # The model takes 20.88 us; hosts saw up to 100 us and more.
        ("latency.max", "at-most", 30_000.0, "undecided"),
        ("latency.max", "at-most", 20_000.0, "fail"),
        ("latency.p50", "at-most", 25_000.0, "undecided"),
        ("latency.p50", "at-most", 90_000.0, "pass"),
        ("latency.max", "at-least", 30_000.0, "undecided"),
        ("latency.min", "at-least", 10_000.0, "pass"),
        # In time every message comes after 1 ms: what came sooner or later did so for lateness.
        ("receive_period.min", "at-least", 990_000.0, "undecided"),
        ("receive_period.max", "at-most", 1_010_000.0, "undecided"),
        ("receive_period_jitter", "at-most", 1_000.0, "undecided"),
        ("range", "at-most", 1_000.0, "undecided"),
        ("late", "at-most", 10.0, "undecided"),
        ("deadline_missed", "at-most", 0.0, "undecided"),
        ("lost", "at-most", 0.0, "pass"),
    ],
)
def test_what_came_late_of_the_network_fails_nothing(
    runs: tuple[RunResult, RunResult], measure: str, bound: str, limit: float, result: str
) -> None:
    found = held(measure, bound, limit, runs[1].flows[0])
    assert found.result == result, found
    if result == "undecided":
        assert "handed messages over late" in found.reason
        assert "would decide it" in found.reason


def test_lateness_flatters_no_figure_that_it_takes_from(runs: tuple[RunResult, RunResult]) -> None:
    """A regular late frame hides that the model was irregular: what is kept as measured only is not kept."""
    flow = runs[1].flows[0]
    figure = observe("receive_period_jitter", flow)
    assert figure.value is not None
    calm = replace(flow, in_time={"receive_period_jitter": (2 * figure.value, 2 * figure.value)})
    assert held("receive_period_jitter", "at-most", 1.5 * figure.value, calm).result == "undecided"
    assert held("receive_period_jitter", "at-most", 2.5 * figure.value, calm).result == "pass"


def test_where_single_frames_are_not_stored_the_most_bounds_them(tmp_path: Path) -> None:
    model, late = planted(tmp_path, keep=0.5)
    for wanted, flow in zip(model.flows, late.flows, strict=True):
        for name in NAMES:
            true, value = worth(name, wanted), worth(name, flow)
            if (
                true is None
                or value is None
                or not isfinite(value)
                or name.partition(".")[0] not in LATE_RELEASE
            ):
                continue
            low, high = flow.in_time.get(name, (value, value))
            is_within = low - 1e-6 <= true <= high + 1e-6
            assert is_within, (name, low, true, high)
    flow = late.flows[0]
    value = worth("latency.max", flow)
    assert value is not None
    assert held("latency.max", "at-most", value - 5_000, flow).result == "undecided"
    assert held("latency.max", "at-most", 1_000, flow).result == "undecided", "of the most nobody knows when"
    assert held("latency.max", "at-most", value + 1e6, flow).result == "pass"


def test_a_simulation_and_bridges_of_the_kernel_have_none(tmp_path: Path) -> None:
    text = STAR.replace(
        "</tasks>", '</tasks><limits><limit measure="latency.max" at-most="20.8us"/></limits>'
    )
    run = simulated(text, tmp_path)
    assert all(not flow.in_time for flow in run.flows)
    assert {limit.result for limit in run.limits} == {"fail"}
