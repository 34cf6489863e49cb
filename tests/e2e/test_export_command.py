"""Exports through the installed command, as a user, a pipeline or a full disk would have them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from lxml import etree

from support import COMMAND, Runner, scenario

TASKS = '<tasks warm-up="10ms"><send flow="10" period="1ms" payload="64B" count="600"/><receive flow="10"/></tasks>'
LIMITS = '<limits><limit measure="latency.max" at-most="1ns"/><limit measure="lost" at-most="0"/></limits>'
FORMATS = ("parquet", "hlog", "junit", "openmetrics")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory that no test changes."""
    folder = tmp_path_factory.mktemp("campaign")
    (folder / "t.xml").write_text(scenario(TASKS, extra=LIMITS).replace(' bench="netns"', ""))
    done = subprocess.run(
        [str(COMMAND), "run", "t.xml", "--out", "r"], cwd=folder, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 1, "a limit fails"
    return folder / "r"


def test_every_format_from_the_command(wiregauge: Runner, place: Path, tmp_path: Path) -> None:
    shown = wiregauge("show", place, "--json").json()
    for form in FORMATS:
        done = wiregauge("export", place, "--to", form, "--out", f"out.{form}")
        assert (done.code, done.out, done.err) == (0, "", ""), form
        assert (tmp_path / f"out.{form}").stat().st_size > 100
    latency = shown["runs"][0]["flows"][0]["latency_ns"]
    exported = pl.read_parquet(tmp_path / "out.parquet").filter(measure="latency", statistic="p99")
    assert exported["value"].to_list() == [latency["p99"]]
    failed = etree.parse(str(tmp_path / "out.junit")).findall("testsuite/testcase/failure")
    assert len(failed) == 1
    assert f"is {latency['max']:.12g} ns" in str(failed[0].get("message"))
    assert not list(tmp_path.glob(".out*"))


def test_standard_output_is_the_file(wiregauge: Runner, place: Path, tmp_path: Path) -> None:
    wiregauge("export", place, "--to", "csv", "--what", "messages", "--out", "m.csv")
    piped = subprocess.run(
        [str(COMMAND), "export", str(place), "--to", "csv", "--what", "messages", "--out", "-"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert piped.stdout == (tmp_path / "m.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(piped.stdout.decode(), newline="")))
    assert sum(row["warm_up"] == "false" for row in rows) == 600


def test_what_cannot_be_done_is_one_line(wiregauge: Runner, place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for directory, arguments, named in (
        (place, ("--to", "xlsx", "--out", "t"), "parquet, arrow, csv"),
        (place, ("--to", "csv", "--out", "mine"), "already exists"),
        (place, ("--to", "csv", "--run", "3", "--out", "t"), "run 3 is not in the plan"),
        (place, ("--to", "hlog", "--measure", "rtt", "--out", "t"), "nothing to export"),
        (Path("nowhere"), ("--to", "csv", "--out", "t"), "no such directory"),
    ):
        done = wiregauge("export", directory, *arguments)
        assert done.code == 2
        assert named in done.err
        assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_full_disk_leaves_nothing_half_written(place: Path, tmp_path: Path) -> None:
    for what, form in (("records", "csv"), ("records", "parquet"), ("records", "arrow"), ("series", "json")):
        # The disk takes the beginning of each of them and no more.
        script = (
            f"mkdir -p small && mount -t tmpfs -o size=12k none small && "
            f'"{COMMAND}" export "{place}" --to {form} --what {what} --out small/t; code=$?; ls -A small; exit $code'
        )
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 3, (form, done.stderr)
        assert done.stdout == "", form
        assert "small/t: cannot be written" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_an_interrupted_campaign_is_exported_as_such(wiregauge: Runner, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "r")
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["state"], manifest["reason"] = "interrupted", "stopped by Ctrl-C"
    for key in ("digest", "files"):  # as a version without hashes would have left it
        manifest.pop(key)
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(manifest))
    assert wiregauge("export", "r", "--to", "junit", "--out", "t.xml").code == 0
    errors = etree.parse(str(tmp_path / "t.xml")).findall("testsuite/testcase/error")
    assert [error.get("type") for error in errors] == ["INCOMPLETE"]
    assert "Ctrl-C" in str(errors[0].get("message"))
