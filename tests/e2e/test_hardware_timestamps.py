"""Timestamps of an interface from the kernel to the figures, by a clock that is planted, for hardly a machine has one.

The planted clock shows the kernel's own timestamps of the same frames, so what comes back after it was read, placed and
moved to the octets of the wire must be the kernel's again, within the error that the run states.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support import COMMAND, Done, Runner, assert_measured, scenario

pytestmark = pytest.mark.alone  # the errors it states are held against what was measured

RATE = 1_000_000_000
TASKS = (
    '<tasks warm-up="20ms" drain="80ms"><send flow="10" period="1ms" payload="200B" count="600"/>'
    '<send flow="20" period="3ms" payload="900B" count="150"/><receive flow="10"/><receive flow="20"/></tasks>'
)
FLOWS = '<flow id="10" protocol="udp" from="mac" to="sensor"/><flow id="20" protocol="raw" from="sensor" to="mac"/>'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose interfaces timestamp by a clock 37 s behind that gains 20 ppm and moves in steps of 8 ns."""
    folder = tmp_path_factory.mktemp("hardware")
    (folder / "t.xml").write_text(scenario(TASKS, flows=FLOWS))
    done = subprocess.run(
        [str(COMMAND), "run", "t.xml", "--bench", "netns", "--out", "r"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        env={**os.environ, "WIREGAUGE_PLANTED_HARDWARE": "-37000000000,20000,8"},
    )
    assert_measured(Done(done.returncode, done.stdout, done.stderr), folder / "r")
    return folder / "r"


def timestamped(place: Path) -> dict[str, Any]:
    """The report on timestamps by each end system's agent."""
    manifest = json.loads((place / "manifest.json").read_text())
    agents = manifest["runs"][0]["agents"]
    return {name: report["timestamps"][0] for name, report in agents.items()}


def test_the_timestamps_of_a_planted_clock_are_the_kernels_again_within_the_stated_error(place: Path) -> None:
    told = timestamped(place)
    records = pl.read_parquet(place / "records" / "run-0000.parquet").with_columns(
        pl.col("point").cast(pl.String), pl.col("clock").cast(pl.String)
    )
    key = ["flow", "sequence", "node", "warm_up", "returning"]
    key = [name for name in key if name in records.columns]
    for kernel, wire, ends in (
        ("driver-send", "wire-send", {10: "mac", 20: "sensor"}),
        ("driver-receive", "wire-receive", {10: "sensor", 20: "mac"}),
    ):
        by_kernel, by_wire = (records.filter(pl.col("point") == point) for point in (kernel, wire))
        assert set(by_wire["clock"]) == {"hardware"}
        both = by_kernel.join(by_wire, on=key, suffix="_wire")
        assert both.height == by_wire.height > 0
        for flow, name in ends.items():
            clock = told[name]["figures"]["clock"]
            # The timestamp is moved to whole nanoseconds when it is planted, and rounded down to the step.
            error = (clock["uncertainty_ns"] + clock["step_ns"] + 1) * 1000
            mine = both.filter(pl.col("flow") == flow)
            apart = (mine["time_wire"] - mine["time"]).abs().max()
            assert isinstance(apart, int)
            assert apart <= error, (flow, wire, apart, clock)
        if wire == "wire-receive":
            assert by_wire.height == by_kernel.height, "every frame received has its timestamp"


def test_the_report_of_an_agent_says_what_timestamped_and_how_well_the_clock_was_known(place: Path) -> None:
    for name, told in timestamped(place).items():
        figures = told["figures"]
        assert (told["transmit"], told["receive"], told["why"]) == ("planted", "planted", ""), name
        assert figures["sent"] == {"timestamped": "first", "recorded": "preamble"}
        assert figures["received"] == {"timestamped": "first", "recorded": "last"}
        sent, clock = figures["transmit_timestamps"], figures["clock"]
        assert figures["budget"] == 1
        assert sent["asked"] > 0
        assert sent["asked"] == sent["timestamped"] + sent["missing"]
        assert clock["step_ns"] == 8
        assert clock["steps"] == 0
        assert clock["unplaced"] == 0
        assert abs(clock["drift_ppm"] - 20) <= clock["drift_uncertainty_ppm"] + 0.1, clock
        assert clock["readings"] >= 10
        assert 0 < len(clock["points"]) <= 256
        assert all(point["half_width_ns"] <= clock["uncertainty_ns"] for point in clock["points"])


def test_the_wire_is_measured_with_the_error_of_its_clocks_and_planted_timestamps_are_no_measurement(
    place: Path, wiregauge: Runner
) -> None:
    shown = wiregauge("show", place, "--json").json()
    run = shown["runs"][0]
    assert "DEGRADED" in str(shown["validity"])
    assert "planted at" in str(run["checks"])
    told = timestamped(place)
    error = sum(
        told[name]["figures"]["clock"]["uncertainty_ns"] + told[name]["figures"]["clock"]["step_ns"]
        for name in ("mac", "sensor")
    )
    pairs = {(p["start"], p["end"]): p for p in run["flows"][0]["pairs"]}
    wire = pairs["tx_wire", "rx_wire"]
    assert wire["n"] + wire["missing"] == 600
    assert wire["n"] > 0
    assert wire["min"] > 0
    assert wire["uncertainty"] >= error


def test_without_a_clock_the_kernel_timestamps_and_the_page_says_which_octets(
    tmp_path: Path, wiregauge: Runner
) -> None:
    (tmp_path / "t.xml").write_text(scenario(TASKS, flows=FLOWS))
    done = wiregauge("run", "t.xml", "--bench", "netns", "--out", "r")
    assert_measured(done, tmp_path / "r")
    for told in timestamped(tmp_path / "r").values():
        assert (told["transmit"], told["receive"]) == ("software", "software")
        assert "the interface does not support it" in told["why"]
        assert told["figures"]["sent"] == {"timestamped": "preamble", "recorded": "preamble"}
        assert told["figures"]["received"] == {"timestamped": "last", "recorded": "last"}
        assert told["figures"]["clock"] is None
    records = pl.read_parquet(tmp_path / "r" / "records" / "run-0000.parquet")
    assert not set(records["point"].cast(pl.String)) & {"wire-send", "wire-receive"}
    shown = wiregauge("show", "r", "--json").json()
    kinds = next(c for c in shown["runs"][0]["checks"] if c["name"] == "timestamp-kind")
    assert "software (last octet)" in kinds["observed"]


def test_a_planted_clock_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(TASKS, flows=FLOWS))
    done = subprocess.run(
        [str(COMMAND), "run", "t.xml", "--bench", "netns", "--out", "r"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        env={**os.environ, "WIREGAUGE_PLANTED_HARDWARE": "soon"},
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    said = done.stdout + done.stderr
    assert "offset in ns" in said
    assert "WIREGAUGE_PLANTED_HARDWARE='soon'" in said, "what was set is named"
    assert "--planted-hardware" not in said
