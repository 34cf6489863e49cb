"""Clusters that synchronise by AS6802: from the example to figures, limits, report and truth."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.measures import Judgement
from wiregauge.results import judge

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "synchronised.xml"


def ran(tmp_path: Path, text: str) -> tuple[Judgement, Path]:
    test, out = tmp_path / "test.xml", tmp_path / "out"
    test.write_text(text, encoding="utf-8")
    CliRunner().invoke(app, ["run", str(test), "--bench", "sim", "--out", str(out)])
    return judge(out), out


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Judgement, Path]:
    return ran(tmp_path_factory.mktemp("clusters"), EXAMPLE.read_text(encoding="utf-8"))


def test_the_example_synchronises_within_its_bounds(example: tuple[Judgement, Path]) -> None:
    judgement, _ = example
    assert [limit.result for limit in judgement.runs[0].limits] == ["pass"] * 5
    (cluster,) = judgement.runs[0].clusters
    assert cluster.precision_ns is not None
    assert 0 < cluster.precision_ns <= cluster.precision_bound_ns
    assert cluster.startup_ns is not None
    assert 0 < cluster.startup_ns <= cluster.startup_bound_ns
    assert {device.state for device in cluster.devices} == {"STABLE"}
    assert {device.node: device.losses for device in cluster.devices if device.losses} == {"sw1": 1}
    assert [device.node for device in cluster.devices if device.faulty] == ["leg"]


def test_report_and_truth_show_it(example: tuple[Judgement, Path]) -> None:
    judgement, out = example
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Synchronisation" in page
    assert "compression master" in page
    truth = pl.read_parquet(out / "truth" / "run-0000.parquet").with_columns(pl.col("kind").cast(pl.String))
    told = truth.filter(pl.col("kind") == "sync-precision")["value"]
    precision = judgement.runs[0].clusters[0].precision_ns
    assert precision is not None
    assert told.max() == pytest.approx(precision * 1000)
    assert set(truth.filter(pl.col("kind") == "sync-state")["node"]) == set(range(8))


def test_a_cluster_that_cannot_start_fails_its_limits(tmp_path: Path) -> None:
    """Two of four masters are cut off: there is never a majority, and no message leaves by schedule."""
    cuts = "".join(
        f'<cut link="{end} {switch}" from="0s"/>' for end in ("cam", "arm") for switch in ("sw1", "sw2")
    )
    text = EXAMPLE.read_text(encoding="utf-8")
    text = text.replace('<restart switch="sw1" from="600ms" until="650ms"/>', cuts)
    judgement, _ = ran(tmp_path, text)
    results = {limit.measure: limit.result for limit in judgement.runs[0].limits}
    assert results["sync_startup"] == results["sync_precision"] == results["sync_missing"] == "fail"
    assert results["lost"] == "fail"
    assert judgement.runs[0].flows[0].counts["delivered"] == 0


def test_limits_of_a_run_without_clusters_are_undecided(tmp_path: Path) -> None:
    first = (EXAMPLE.parent / "first.xml").read_text(encoding="utf-8")
    limits = '<limits><limit measure="sync_missing" at-most="0"/></limits>'
    head, tail = first.rsplit("</test>", 1)
    if "<limits>" in head:
        head = head[: head.index("<limits>")]
    judgement, _ = ran(tmp_path, f"{head}{limits}</test>{tail}")
    (limit,) = judgement.runs[0].limits
    assert limit.result == "undecided"
    assert "AS6802" in limit.reason
