"""A campaign that was cut off and resumed is the campaign that was not: the same records, figures and files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from wiregauge import runner
from wiregauge.records import (
    DamagedError,
    RunDirectory,
    RunDirectoryError,
    missing_runs,
    recover,
    resumed,
)
from wiregauge.records.reported import RunEntry
from wiregauge.records.verifying import State, verify
from wiregauge.results import judge, show_json
from wiregauge.runner import Observer
from wiregauge.runner.benches import simulation
from wiregauge.runner.stopping import Interrupted

TEST = """<test xmlns="urn:wiregauge:test:2" name="cut-off" seed="7">
  <network><end-system name="a"/><end-system name="b"/><switch name="s"/>
    <link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" period="1ms" distribution="exponential" payload="64B" count="300"/><receive flow="1"/></tasks>
  <sweep><axis of="payload" values="64B 256B 1024B"/></sweep>
</test>
"""


class Stops(Observer):
    """Asks to stop after so many runs."""

    def __init__(self, after: int) -> None:
        self._left = after

    def run_ended(self, position: int, entry: RunEntry) -> None:
        self._left -= 1
        if self._left == 0:
            raise Interrupted("stopped by a test")


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    (tmp_path / "t.xml").write_text(TEST)
    return tmp_path / "t.xml"


def figures(place: Path) -> list[Any]:
    shown = show_json(judge(place))
    return [(run["point"], run["flows"]) for run in json.loads(json.dumps(shown["runs"], default=str))]


@pytest.fixture
def cut_off(tmp_path: Path, test_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign stopped after its first run; its other runs do not end before, however slow this machine is."""
    simulate_run = simulation.simulate_run

    def first_alone(
        directory: RunDirectory, position: int, watch: simulation.Watch, *, threads: int = 1
    ) -> simulation.SimulatedRun | None:
        try:
            while position:
                watch(None)
                time.sleep(0.01)
        except simulation.SimulationStopped:
            return None
        return simulate_run(directory, position, watch, threads=threads)

    with monkeypatch.context() as patched:
        patched.setattr(simulation, "simulate_run", first_alone)
        with runner.open(runner.SimulatorBench(jobs=1), observer=Stops(1)) as trials:
            trials.run(test_file, tmp_path / "cut")
    return tmp_path / "cut"


def test_a_resumed_campaign_equals_one_that_was_not_cut_off(
    tmp_path: Path, test_file: Path, cut_off: Path
) -> None:
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(test_file, tmp_path / "whole")
    cut = RunDirectory.open(cut_off)
    missing = missing_runs(cut)
    assert cut.manifest["state"] == "interrupted"
    assert missing == [1, 2]
    with runner.open(runner.SimulatorBench(jobs=2)) as trials:
        trials.resume(tmp_path / "cut")
    directory = RunDirectory.open(tmp_path / "cut")
    assert directory.manifest["state"] == "complete"
    assert directory.manifest["resumed"][0]["runs"] == missing
    assert figures(tmp_path / "cut") == figures(tmp_path / "whole")
    whole = RunDirectory.open(tmp_path / "whole")
    for index in range(3):
        assert directory.messages(index).read_bytes() == whole.messages(index).read_bytes()
    assert {finding.state for finding in verify(tmp_path / "cut").findings} <= {State.WHOLE, State.OTHER}


def test_what_is_whole_is_not_resumed_and_what_is_damaged_is_refused(tmp_path: Path, test_file: Path) -> None:
    with runner.open(runner.SimulatorBench(jobs=1)) as trials:
        trials.run(test_file, tmp_path / "whole")
        with pytest.raises(RunDirectoryError, match="all its 3 runs are complete; nothing is to be resumed"):
            trials.resume(tmp_path / "whole")
        manifest = tmp_path / "whole" / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"complete"', '"failed"', 1))
        with pytest.raises(DamagedError):
            trials.resume(tmp_path / "whole")


def test_an_interrupted_directory_that_was_never_begun_is_left_alone(cut_off: Path) -> None:
    opened = resumed(cut_off)
    try:
        with pytest.raises(RunDirectoryError, match="another process is working on it"):
            RunDirectory.open(cut_off).hold()
        assert not recover(RunDirectory.open(cut_off))
    finally:
        opened.close()
