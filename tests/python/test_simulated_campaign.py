"""A whole campaign in virtual time: the same run directory at any number of jobs, and good order when it is stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simulation import trial
from wiregauge import results, runner
from wiregauge.cli import app
from wiregauge.config import load
from wiregauge.plan import decode, plain
from wiregauge.records import RunDirectory, RunDirectoryError, processing
from wiregauge.records.processing import begin_replacing
from wiregauge.runner.benches import simulation
from wiregauge.runner.benches.capabilities import beyond_namespaces

ROOT = Path(__file__).resolve().parents[2]
WALL_CLOCK = {"started", "finished", "writer_pid", "host", "environment", "digest"}


def simulated(test: Path, place: Path, jobs: int) -> dict[str, Any]:
    return dict(trial(test, place, jobs).manifest)


@pytest.fixture(scope="module")
def simulated_first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A run directory of the first example, and what is judged of its runs."""
    place = tmp_path_factory.mktemp("first") / "r"
    simulated(ROOT / "examples" / "first.xml", place, 1)
    runs: Any = results.show_json(results.judge(place))["runs"]
    return place, runs


@pytest.fixture
def first(simulated_first: tuple[Path, list[Any]], tmp_path: Path) -> tuple[Path, list[Any]]:
    """A copy of its own for a test that changes something."""
    place, runs = simulated_first
    return shutil.copytree(place, tmp_path / "r"), runs


def timeless(value: Any) -> Any:
    """Without what a clock on the wall says."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in WALL_CLOCK}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def test_a_campaign_is_the_same_at_any_number_of_jobs(tmp_path: Path) -> None:
    test = ROOT / "examples" / "under-load.xml"
    manifests = {jobs: simulated(test, tmp_path / str(jobs), jobs) for jobs in (1, 4)}
    assert timeless(manifests[1]) == timeless(manifests[4])
    assert manifests[1]["state"] == "complete"
    assert len(manifests[1]["runs"]) == 18
    records = sorted(name for name in manifests[1]["files"] if name.startswith("records/"))
    assert sorted(manifests[4]["files"]["tracking.json"]["from"]) == records, (
        "of all runs, whichever ended last"
    )
    names = sorted(str(p.relative_to(tmp_path / "1")) for p in (tmp_path / "1").rglob("*.parquet"))
    assert len(names) == 5 * 18
    for name in [*names, "tracking.json"]:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "4" / name).read_bytes(), name


def test_tables_that_are_gone_are_made_anew_and_that_is_said(first: tuple[Path, list[Any]]) -> None:
    """Those a killed `track` struck off the list: one that is on the list and gone is damage."""
    place, _ = first
    tables = [place / name for name in ("tracking.json", "messages/run-0000.parquet")]
    whole = [table.read_bytes() for table in tables]
    directory = RunDirectory.open(place)
    directory.hold()
    begin_replacing(directory, 0)
    directory.close()
    for table in tables:
        table.unlink()
    done = CliRunner().invoke(app, ["show", str(place)])
    assert done.exit_code == 0, done.output
    assert done.stderr == f"wiregauge: {place}: tables were missing and were made again from the records\n"
    assert tables[1].read_bytes() == whole[1]


@pytest.mark.parametrize("name", ["tracking.json", "messages/run-0000.parquet"])
def test_a_listed_table_that_is_gone_is_damage_and_track_makes_it_anew(
    first: tuple[Path, list[Any]], name: str
) -> None:
    place, before = first
    (place / name).unlink()
    command = [sys.executable, "-m", "wiregauge"]
    shown = subprocess.run([*command, "show", str(place)], capture_output=True, text=True, check=False)
    assert shown.returncode == 4
    assert f"{name}: is missing; `wiregauge track {place}` makes it again" in shown.stderr
    assert shown.stdout == ""
    assert not (place / name).exists()
    subprocess.run([*command, "track", str(place)], capture_output=True, check=True)
    assert results.show_json(results.judge(place))["runs"] == before


@pytest.mark.parametrize("state", ["listed", "not listed", "killed"])
@pytest.mark.parametrize("content", ["{", '{"schema": 3, "runs": 3}'])
def test_the_cure_for_a_tracking_that_cannot_be_read_cures_it(
    first: tuple[Path, list[Any]], state: str, content: str
) -> None:
    place, before = first
    (place / "tracking.json").write_text(content, encoding="utf-8")
    directory = RunDirectory.open(place)
    if state == "not listed":
        directory.strike_files(["tracking.json"])
    elif state == "killed":
        directory.manifest["state"] = "running"
    directory.save()
    directory.close()

    def wiregauge(word: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wiregauge", word, str(place)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = wiregauge("show")
    assert refused.returncode == 4
    (sentence,) = refused.stderr.splitlines()
    if state == "listed":
        assert f"`wiregauge track {place}` makes it again" in sentence
        assert "remove it" not in sentence
        wiregauge("track")
    else:
        assert f"remove it, and `wiregauge show {place}` makes it again" in sentence
        (place / "tracking.json").unlink()
    cured = wiregauge("show")
    assert cured.returncode == (4 if state == "killed" else 0), cured.stderr
    assert results.show_json(results.judge(place))["runs"] == before


def test_a_reader_that_stops_reading_is_no_failed_limit(first: tuple[Path, list[Any]]) -> None:
    command = [sys.executable, "-m", "wiregauge", "show", str(first[0])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shown:
        assert shown.stdout is not None
        shown.stdout.close()
        assert shown.wait(timeout=60) == 0


def test_a_simulated_run_is_judged_like_any_other(tmp_path: Path) -> None:
    simulated(ROOT / "examples" / "first.xml", tmp_path / "r", 1)
    shown: Any = results.show_json(results.judge(tmp_path / "r"))
    assert shown["validity"] == "VALID"
    flow = shown["runs"][0]["flows"][0]
    assert flow["sent"] == flow["delivered"] + flow["lost"] == flow["latency_ns"]["n"]
    checks = {check["name"]: check for check in shown["runs"][0]["checks"]}
    assert checks["stolen-time"]["observed"] == "not looked at: virtual time"


def wait_for_records(spool: Path) -> None:
    """Until something was written down, a minute at most."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end and not any(file.stat().st_size for file in spool.glob("*")):
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_campaign_keeps_what_was_simulated(tmp_path: Path, number: signal.Signals) -> None:
    text = (ROOT / "examples" / "first.xml").read_text(encoding="utf-8")
    test = tmp_path / "long.xml"
    test.write_text(re.sub(r'count="\d+"', 'count="40000000"', text), encoding="utf-8")
    spool = tmp_path / "r" / "spool" / "run-0000"

    def stop() -> None:
        """As soon as something was written down."""
        wait_for_records(spool)
        os.kill(os.getpid(), number)

    threading.Thread(target=stop).start()
    manifest = simulated(test, tmp_path / "r", 1)
    assert manifest["state"] == "interrupted"
    assert [run["state"] for run in manifest["runs"]] == ["partial"]
    shown: Any = results.show_json(results.judge(tmp_path / "r"))
    assert shown["validity"] == "INVALID"
    assert shown["runs"][0]["flows"][0]["delivered"] > 0
    assert not (tmp_path / "r" / "spool" / "run-0000").exists()


def test_a_campaign_stopped_while_its_runs_are_submitted_keeps_what_was_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run is under way, and writes, before the main thread knows that it was submitted."""
    text = (ROOT / "examples" / "first.xml").read_text(encoding="utf-8")
    test = tmp_path / "long.xml"
    test.write_text(re.sub(r'count="\d+"', 'count="40000000"', text), encoding="utf-8")
    spool = tmp_path / "r" / "spool" / "run-0000"

    class Slow(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            future: Any = super().submit(*arguments, **named)
            wait_for_records(spool)
            os.kill(os.getpid(), signal.SIGINT)
            return future

    monkeypatch.setattr(simulation, "ThreadPoolExecutor", Slow)
    manifest = simulated(test, tmp_path / "r", 1)
    assert [run["state"] for run in manifest["runs"]] == ["partial"]


def test_lists_of_all_runs_are_not_written_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long writing them takes, it takes a small part of the time."""
    written: list[tuple[float, float, int]] = []
    save = RunDirectory.save

    def slow(directory: RunDirectory) -> None:
        at = time.monotonic()
        time.sleep(0.02)
        save(directory)
        written.append((at, time.monotonic(), len(directory.runs)))

    monkeypatch.setattr(RunDirectory, "save", slow)
    manifest = simulated(ROOT / "examples" / "under-load.xml", tmp_path / "r", 2)
    assert [run["state"] for run in manifest["runs"]] == ["complete"] * 18
    # Before the first run and after the last, and on the way.
    *on_the_way, _last, _ended = [one for one in written if one[2] > 0]
    for (began, ended, _), (next_began, _, _) in pairwise(on_the_way):
        assert next_began - ended >= 0.9 * simulation.INTERVAL * (ended - began)


def test_runs_that_could_not_be_listed_are_partial_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their spools are there, so whoever reads the directory next tracks them."""
    note, refused = processing.note_tracking, [True]

    def noted(directory: RunDirectory, summaries: Mapping[int, dict[str, Any]]) -> None:
        if refused.pop():
            refused.append(False)
            raise RunDirectoryError("tracking.json: cannot be written: No space left on device")
        refused.append(False)
        note(directory, summaries)

    monkeypatch.setattr(processing, "note_tracking", noted)
    place = tmp_path / "r"
    said = rf"No space left on device; once the disk can be written again, `wiregauge show {place}`"
    with pytest.raises(runner.DiskError, match=said):
        trial(ROOT / "examples" / "under-load.xml", place, 2)
    runs = RunDirectory.open(place).runs
    reasons = {run["reason"] for run in runs if run["state"] == "partial"}
    assert "tracking.json: cannot be written: No space left on device" in reasons
    assert CliRunner().invoke(app, ["show", str(place)]).exit_code == 4
    shown: Any = results.show_json(results.judge(place))
    assert shown["state"] == "failed"
    assert all(flow["delivered"] == flow["sent"] > 0 for flow in shown["runs"][0]["flows"])


def test_a_run_that_was_tracked_but_not_entered_is_found(first: tuple[Path, list[Any]]) -> None:
    """As after a kill between tracking.json and the manifest."""
    place, _ = first
    killed = RunDirectory.open(place)
    killed.manifest["state"] = "running"
    killed.runs.clear()
    killed.save()
    done = CliRunner().invoke(app, ["show", str(place)])
    assert done.exit_code == 4, done.output
    (run,) = RunDirectory.open(place).runs
    assert (run["state"], run["reason"]) == ("partial", "the testmaster was killed during this run")


@pytest.mark.parametrize("example", ["first", "demo", "two-switches", "faults", "under-load", "vlan"])
def test_namespaces_carry_what_they_are_said_to(example: str) -> None:
    assert beyond_namespaces(load(ROOT / "examples" / f"{example}.xml").campaign, "kernel") == []


def test_what_namespaces_cannot_carry_is_named_once(tmp_path: Path) -> None:
    campaign = plain(load(ROOT / "examples" / "under-load.xml").campaign)
    nodes = {node["name"]: node for node in campaign["network"]["nodes"]}
    nodes["sw1"]["clock"] = {"offset": 1, "wander_ppb": 3}
    nodes["sw1"]["kind"].update(forwarding_mode="cut-through", strict_priority=True)
    campaign["network"]["links"][0]["network"] = "B"
    for run in campaign["runs"]:
        run["flows"][0]["protocol"] = "rc"
        run["incidents"] = [{"at": 1, "kind": {"type": "cut", "link": 0}}]
    said = beyond_namespaces(decode(campaign), "kernel")
    assert len(said) == 6
    for words in (
        '"sw1" has a clock of its own',
        "cut-through",
        "strict priority",
        "network B",
        "protocol rc",
        "cuts",
    ):
        assert sum(words in line for line in said) == 1, words
