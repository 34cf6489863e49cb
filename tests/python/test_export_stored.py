"""Exports of a simulated run, which has records, switches and several receivers: its stored tables and sketches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

import synthetic
import wiregauge as wg
from test_export import RECIPE, ROOT, as_table
from wiregauge.export import Choice, histograms, tables, write
from wiregauge.export.paper import paper_table
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.records.notes import change_notes
from wiregauge.results import judge


@pytest.fixture(scope="module")
def multicast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("multicast") / "r"
    wg.simulate(ROOT / "examples" / "multicast.xml", place)
    return place


@pytest.mark.parametrize("what", ["records", "messages", "passages"])
def test_stored_tables_are_exported_whole(multicast: Path, tmp_path: Path, what: str) -> None:
    stored = pl.read_parquet(sorted((multicast / what).glob("*.parquet")))
    for to in ("parquet", "arrow"):
        write(multicast, to, tmp_path / to, what)
        table = as_table(tmp_path / to, to)
        assert table.height == stored.height
        times = [name for name in table.columns if name.endswith("_ps")]
        assert times
        for name in times:
            assert table[name].equals(stored[name.removesuffix("_ps")])
    nodes = {"records": "node", "messages": "to", "passages": "switch"}[what]
    assert table[nodes].null_count() == 0


def test_passages_are_the_residence(multicast: Path, tmp_path: Path) -> None:
    write(multicast, "parquet", tmp_path / "t", "passages")
    table = pl.read_parquet(tmp_path / "t")
    for run in judge(multicast).runs:
        for flow in run.flows:
            mine = table.filter((pl.col("run") == run.plan.index) & (pl.col("flow") == flow.plan.id))
            took = (mine["left_ps"] - mine["came_ps"]).to_numpy() / 1000
            assert set(flow.series["residence"].value) <= set(took)


def test_one_receiver_of_several(multicast: Path, tmp_path: Path) -> None:
    (flow,) = {f.plan.id for r in judge(multicast).runs for f in r.flows if f.plan.multicast}
    receivers = [f.plan.destination for f in judge(multicast).runs[0].flows if f.plan.id == flow]
    assert len(receivers) > 1
    write(multicast, "parquet", tmp_path / "all", "messages", Choice(flow=str(flow)))
    for receiver in receivers:
        write(multicast, "parquet", tmp_path / receiver, "messages", Choice(flow=f"{flow} to {receiver}"))
        mine = pl.read_parquet(tmp_path / receiver)
        assert mine["to"].unique().to_list() == [receiver]
        assert mine.equals(pl.read_parquet(tmp_path / "all").filter(pl.col("to") == receiver))
    write(multicast, "hlog", tmp_path / "t.hlog")
    tags = {
        line.split(",")[0] for line in (tmp_path / "t.hlog").read_text().splitlines() if line[:4] == "Tag="
    }
    assert {f"Tag=run-0.flow-{flow}.to-{receiver}.latency" for receiver in receivers} <= tags


@pytest.mark.parametrize("flow", [None, "10"])
@pytest.mark.parametrize("what", ["records", "messages", "passages"])
def test_rows_go_from_file_to_file_in_batches(multicast: Path, what: str, flow: str | None) -> None:
    directory = open_recorded(multicast)
    table = getattr(tables, what)(directory, Choice(flow=flow))
    plan = table.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    # Polars colours the nodes that hold more than a batch.
    assert "multi-scan" in plan
    assert "style=filled" not in plan


def test_every_column_is_documented(multicast: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "export.md").read_text()
    directory = open_recorded(multicast)
    judgement = judge(synthetic.make(tmp_path / "r", RECIPE))
    for what, table in (
        ("records", tables.records(directory, Choice())),
        ("messages", tables.messages(directory, Choice())),
        ("passages", tables.passages(directory, Choice())),
        ("sketches", tables.sketches(directory, Choice())),
        ("measures", tables.measures(judgement, Choice())),
        ("series", tables.series(judgement, Choice())),
    ):
        section = page.split(f"**{what}**:")[1].split("\n**")[0].split("\n## ")[0]
        for column in table.collect_schema().names():
            if column == "run" or column.startswith("point_"):
                continue
            assert f"`{column}`" in section, f"{what}: {column}"


def test_sketches_are_the_series_of_runs_too_big_to_read(multicast: Path, tmp_path: Path) -> None:
    write(multicast, "hlog", tmp_path / "t.hlog", "sketches")
    reader = HistogramLogReader(str(tmp_path / "t.hlog"), HdrHistogram(1, 10**10, histograms.DIGITS))
    tops = {
        line.split(",")[0][4:]: float(line.split(",")[3]) * 1e6
        for line in (tmp_path / "t.hlog").read_text().splitlines()
        if line.startswith("Tag=")
    }
    seen = set()
    for run in judge(multicast).runs:
        for _flow in run.flows:
            part = reader.get_next_interval_histogram()
            assert part is not None
            seen.add(part.get_tag())
    assert reader.get_next_interval_histogram() is None
    reader.close()
    assert seen == set(tops)
    for run in judge(multicast).runs:
        for flow in run.flows:
            name = "rtt" if flow.plan.relayed else "latency"
            values = np.sort(flow.series[name].value)
            receiver = f" to {flow.plan.destination}" if flow.plan.multicast else ""
            tag = f"run-{run.plan.index}.flow-{flow.plan.id}{receiver.replace(' to ', '.to-')}.{name}"
            assert tops[tag] == pytest.approx(values[-1], abs=1e-3)
            choice = Choice(run.plan.index, f"{flow.plan.id}{receiver}", name)
            write(multicast, "hgrm", tmp_path / tag, "sketches", choice)
            text = (tmp_path / tag).read_text()
            assert f"minimum = {values[0]:.3f}, maximum = {values[-1]:.3f}]" in text
            rows = [line.split() for line in text.splitlines()[2:] if not line.startswith("#")]
            assert int(rows[-1][2]) == len(values)
            for value, _, count, *_ in rows:
                assert values[int(count) - 1] == pytest.approx(float(value), rel=2e-3, abs=1)


def test_notes_are_a_table(tmp_path: Path) -> None:
    place = tmp_path / "r"
    wg.simulate(ROOT / "examples" / "first.xml", place)
    write(place, "csv", tmp_path / "none.csv", "notes")
    assert (tmp_path / "none.csv").read_text() == "run,flow,to,at_s,text,written\n"
    change_notes(place, lambda notes: notes.added("route changed here", run=0, flow=10, at_s=0.25))
    change_notes(place, lambda notes: notes.added("=1+1"))
    change_notes(place, lambda notes: notes.added("of another run", run=3))
    for to in ("parquet", "arrow", "csv"):
        write(place, to, tmp_path / to, "notes", Choice(run=0, flow="10"))
        table = as_table(tmp_path / to, to)
        assert table["text"].to_list() == ["route changed here", "=1+1"]
        assert table["at_s"].cast(pl.Float64).to_list() == [0.25, None]
    write(place, "csv", tmp_path / "safe.csv", "notes", Choice(no_formulas=True))
    assert "'=1+1" in (tmp_path / "safe.csv").read_text()
    assert wg.open(place).notes["text"].to_list() == ["route changed here", "=1+1", "of another run"]


def test_a_table_of_chosen_columns_is_that_of_the_paper(multicast: Path) -> None:
    run = wg.open(multicast)
    table = run.table(["flow", "to", "sent", "latency.p50"])
    made = paper_table([("r", run.judgement)], ["flow", "to", "sent", "latency.p50"])
    assert table.columns == ["flow", "to", "sent", "latency.p50"]
    assert table.height == len(made.rows) > 1
    assert table["latency.p50"].to_list() == [
        row[3].value for row in made.raw if isinstance(row[3], Quantity)
    ]
    with pytest.raises(wg.WiregaugeError, match="latancy"):
        run.table(["flow", "latancy.p50"])
