"""A network that was played between real hosts is played once more, and what differs is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from support import Runner
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.records import RunDirectory, describe
from wiregauge.records.processing import adopt_records

TEST = """<test xmlns="urn:wiregauge:test:2" name="again" seed="5">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/>
    <switch name="sw1" kind="mixed-criticality" integration="preemption"/>
    <link between="a sw1" rate="100Mbit/s"/><link between="b sw1" rate="100Mbit/s"/>
    <link between="c sw1" rate="100Mbit/s"/>
  </network>
  <flows>
    <flow id="1" protocol="tt" from="a" to="c" period="4ms" offset="1ms"/>
    <flow id="2" protocol="udp" from="b" to="c"/>
    <flow id="3" protocol="be" from="b" to="c"/>
  </flows>
  <tasks warm-up="20ms" drain="100ms">
    <send flow="1" period="4ms" payload="200B" count="100"/><receive flow="1"/>
    <send flow="2" period="1ms" payload="1400B" count="400"/><receive flow="2"/>
    <send flow="3" period="3ms" payload="900B" count="130"/><receive flow="3"/>
  </tasks>
  <faults>
    <loss link="b sw1" share="5%" sent-by="b"/>
    <duplicate link="c sw1" share="5%" sent-by="sw1"/>
    <corrupt link="b sw1" share="5%" sent-by="b"/>
    <cut link="a sw1" from="200ms" until="220ms"/>
  </faults>
</test>
"""


@pytest.fixture
def made(tmp_path: Path, wiregauge: Runner) -> Path:
    (tmp_path / "test.xml").write_text(TEST, encoding="utf-8")
    done = wiregauge("run", tmp_path / "test.xml", "--bench", "netns", "--out", tmp_path / "r")
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["state"] == "complete", done.err
    return tmp_path / "r"


def asked(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def replayed(place: Path, code: int) -> dict[str, Any]:
    done = asked("replay", place, "--json")
    assert done.exit_code == code, done.output
    told = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("replay").read_text(encoding="utf-8")), told)
    (run,) = told["runs"]
    return dict(run)


def altered(made: Path, name: str, alter: Callable[[RunDirectory], None]) -> Path:
    place = made.with_name(name)
    shutil.copytree(made, place)
    alter(RunDirectory.open(place))
    return place


def without_a_departure_from_the_switch(directory: RunDirectory) -> None:
    (path,) = directory.record_files(0)
    rows = pl.read_parquet(path).with_row_index()
    gone = rows.filter(pl.col("point").cast(pl.String) == "switch-out")["index"][7]
    told = pl.read_parquet_metadata(path)
    told.pop("ARROW:schema", None)
    rows.filter(pl.col("index") != gone).drop("index").write_parquet(path, metadata=told)
    adopt_records(directory, 0)


def relisted(directory: RunDirectory, rows: pa.Table) -> None:
    """Other crossings, with the hash of theirs."""
    path = directory.crossings(0)
    pq.write_table(rows, path, compression="lz4")
    name = directory.name_of(path)
    directory.strike_files([name])
    directory.note_files({name: describe(path, {})})
    directory.save()


def without_the_end(directory: RunDirectory) -> None:
    rows = pq.read_table(directory.crossings(0))
    relisted(directory, rows.slice(0, rows.num_rows // 2))


def best_effort_a_microsecond_later(directory: RunDirectory) -> None:
    """What waits for a dispatch or behind another frame leaves when it did; not all of a flow does."""
    rows = pq.read_table(directory.crossings(0))
    columns = (rows[name].to_pylist() for name in ("time", "kind", "flow"))
    times = [
        time + 1_000_000 * (kind == "entered" and flow == 2)
        for time, kind, flow in zip(*columns, strict=True)
    ]
    later = rows.set_column(rows.schema.get_field_index("time"), "time", pa.array(times))
    relisted(directory, later.take(sorted(range(len(times)), key=times.__getitem__)))


def backwards(directory: RunDirectory) -> None:
    rows = pq.read_table(directory.crossings(0))
    relisted(directory, rows.take(list(range(rows.num_rows - 1, -1, -1))))


def test_the_network_did_what_the_model_does_and_what_differs_is_found(made: Path) -> None:
    run = replayed(made, 0)
    assert run["equal"]
    assert run["missing"] is None
    # There was something to compare of each.
    for part, least in (("decisions", 1000), ("truth", 20), ("departures", 500)):
        assert run[part]["run"] > least, part
    reports = json.loads((made / "manifest.json").read_text())["runs"][0]["network"]["releases"]
    stated = {one["end_system"]: one for one in reports}
    for release in run["releases"]:
        own = stated[release["end_system"]]
        assert release["frames"] == own["frames"]
        if release["frames"]:
            # The report's distribution has buckets.
            assert release["max_ns"] == pytest.approx(own["max_ns"], abs=1)
            assert release["p50_ns"] == pytest.approx(own["p50_ns"], rel=0.05, abs=2)
    shown = asked("replay", made).stdout
    assert "equal" in shown
    assert "DIFFER" not in shown

    gone = altered(made, "gone", without_a_departure_from_the_switch)
    run = replayed(gone, 1)
    assert run["decisions"]["differing"] == 1
    (row,) = run["decisions"]["rows"]
    assert (row["side"], row["point"], row["node"]) == ("replay", "switch-out", "sw1")
    assert "only in the replay" in asked("replay", gone).stdout

    moved = replayed(altered(made, "moved", best_effort_a_microsecond_later), 1)
    assert moved["decisions"]["differing"] + moved["departures"]["differing"] >= 2

    assert replayed(altered(made, "cut", without_the_end), 4)["missing"]

    done = asked("replay", altered(made, "backwards", backwards))
    assert done.exit_code == 2
    assert "not in the order of time" in " ".join(done.output.split())


def test_where_nothing_was_played_there_is_nothing_to_replay(tmp_path: Path) -> None:
    (tmp_path / "test.xml").write_text(TEST, encoding="utf-8")
    assert asked("run", tmp_path / "test.xml", "--out", tmp_path / "r").exit_code == 0
    done = asked("replay", tmp_path / "r")
    assert done.exit_code == 2
    assert "no network was played" in done.output
