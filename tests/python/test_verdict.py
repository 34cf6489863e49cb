"""A verdict rests on every message that the test measured: files whose verdict once did not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typer.testing import CliRunner

from wiregauge import measures
from wiregauge.cli import app

FAULTS = Path(__file__).resolve().parents[1] / "faults"


def simulated(name: str, place: Path) -> tuple[int, dict[str, Any]]:
    """Exit code of the simulated test of that name, and what `show --json` says of it."""
    out = place / name
    done = CliRunner().invoke(app, ["run", str(FAULTS / f"{name}.xml"), "--bench", "sim", "--out", str(out)])
    shown = CliRunner().invoke(app, ["show", str(out), "--json"])
    assert shown.exit_code == done.exit_code, done.output
    return done.exit_code, json.loads(shown.stdout)


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


def test_headline_table_and_limit_say_the_same_maximum(tmp_path: Path) -> None:
    code, shown = simulated("headline-max", tmp_path)
    assert code == 1
    (run,) = shown["runs"]
    tabled = {(flow["flow"], flow["to"]): flow["latency_ns"]["max"] for flow in run["flows"]}
    limits = [limit["observed"] for limit in run["limits"] if limit["measure"] == "latency.max"]
    assert sorted(limits) == sorted(tabled.values())
    judgement = measures.judge(tmp_path / "headline-max")
    worst = max(tabled.values())
    assert f"at most {worst / 1e6:.3f} ms" in measures.headline(judgement)
    (pair,) = {
        pair.maximum
        for flow in judgement.runs[0].flows
        for pair in flow.pairs
        if (pair.start, pair.end) == ("tx_app", "rx_app") and pair.maximum == worst
    }
    assert pair == worst
