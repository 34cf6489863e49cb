"""Clocks on real frames: a planted offset and drift are found, PTP is started, watched and stopped."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from support import COMMAND, SECONDS, Runner, assert_measured, interfaces_and_spaces, scenario

pytestmark = pytest.mark.alone  # the errors it states are held against what was measured

ONE_WAY = (
    '<tasks warm-up="200ms" duration="1500ms"><send flow="10" period="2ms" payload="64B"/>'
    '<receive flow="10"/></tasks>'
)
OFFSET_NS, DRIFT_PPM = 5_000_000.0, 60.0


def test_an_artificial_offset_and_drift_are_recovered_within_the_stated_uncertainty(
    wiregauge: Runner, tmp_path: Path
) -> None:
    run, noise, entry = looked_into(wiregauge, tmp_path)
    (clock,) = run["clocks"]
    assert (clock["node"], clock["reference"], clock["timestamps"]) == ("sensor", "mac", "driver")
    assert abs(clock["drift_ppm"] - DRIFT_PPM) <= clock["drift_uncertainty_ppm"]
    assert clock["offsets"]
    for point in clock["offsets"]:
        # The planted clock counts from the epoch: it shows t + offset + drift t.
        true = OFFSET_NS + DRIFT_PPM * 1e3 * (point["at_s"] - OFFSET_NS / 1e9)
        assert abs(point["offset_ns"] - true) <= point["uncertainty_ns"] + 10
    latency = next(flow for flow in run["flows"] if flow["flow"] == 10)["latency_ns"]
    assert -clock["uncertainty_ns"] <= latency["p50"] < OFFSET_NS / 2, "the offset is out of the latency"
    assert latency["uncertainty_parts"]["clock"] >= clock["uncertainty_ns"] * 0.99
    assert {"steal_ns", "interrupts", "switches", "rx_frames"} <= set(noise["counter"].unique())
    # The port behind mac and the agent itself say how many left it; the last look may have come before the last frame.
    (point,) = entry["agents"]["mac"]["access_points"]
    assert point["frames_sent"] == entry["first_ports"]["mac"]["received"]
    looks = sent_by_mac(noise)
    assert looks == sorted(looks)
    assert 0 < looks[-1] <= point["frames_sent"]


def sent_by_mac(noise: pl.DataFrame) -> list[int]:
    """Frames mac has sent by its interface, which is new, at each look that saw a change."""
    looks = noise.filter((pl.col("counter") == "tx_frames") & (pl.col("node") == "mac")).sort("time")
    return [int(value) for value in looks["value"]]


def looked_into(wiregauge: Runner, tmp_path: Path) -> tuple[dict[str, Any], pl.DataFrame, dict[str, Any]]:
    """A run whose clocks were compared and whose host was looked at while it went on: what is shown of it, the noise of
    its hosts, and its entry.

    The thread that looks steps back for all others, so on a busy host a short run may have no look within it: then a
    longer one is made, and in the end it is said what there was none of.
    """
    missing = []
    for attempt, seconds in enumerate(("1500ms", "6s", "24s")):
        text = scenario(
            ONE_WAY.replace("1500ms", seconds), extra="<synchronise><exchange/></synchronise>"
        ).replace(
            '<end-system name="sensor"/>',
            '<end-system name="sensor"><clock offset="5ms" drift="60ppm"/></end-system>',
        )
        (tmp_path / "t.xml").write_text(text)
        place = tmp_path / f"r{attempt}"
        done = wiregauge("run", "t.xml", "--out", place)
        assert_measured(done, place)
        (run,) = wiregauge("show", place, "--json").json()["runs"]
        noise = pl.read_parquet(place / "noise" / "run-0000.parquet")
        looks = sent_by_mac(noise)
        if run["clocks"] and looks and looks[-1] > 0:
            (entry,) = json.loads((place / "manifest.json").read_text())["runs"]
            return run, noise, entry
        missing.append(
            f"{seconds}: {len(run['clocks'])} clocks compared, looks at the frames of mac that saw some: {looks}"
        )
    raise AssertionError(f"this host let nobody look while a run went on: {missing}")


PTP = '<synchronise max-offset="1ms" wait="40s"><ptp timestamps="software" steer="off" interval="125ms"/></synchronise>'


def test_ptp_runs_free_between_two_namespaces_or_says_what_to_install(
    wiregauge: Runner, tmp_path: Path
) -> None:
    (tmp_path / "t.xml").write_text(scenario(ONE_WAY, extra=PTP))
    before = interfaces_and_spaces()
    done = wiregauge("run", "t.xml", "--out", "r")
    if shutil.which("ptp4l") is None:
        assert done.code == 3
        assert "install the package linuxptp" in done.err
        return
    assert_measured(done, tmp_path / "r")
    states = pl.read_parquet(tmp_path / "r" / "clocks" / "run-0000.parquet")
    offsets = states.filter(pl.col("node") == "sensor")["offset_ns"].drop_nulls()
    # One clock read by both: what ptp4l finds is the asymmetry of two paths through one kernel.
    assert len(offsets) >= 3
    assert float(np.median(np.abs(offsets.to_numpy()))) < 1e6
    (run,) = wiregauge("show", "r", "--json").json()["runs"]
    check = next(check for check in run["checks"] if check["name"] == "clock-kept")
    assert "sensor by ptp4l" in check["observed"]
    assert interfaces_and_spaces() == before, "neither ptp4l nor anything else that was started goes on"


def test_without_linuxptp_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(ONE_WAY, extra=PTP))
    # Nothing that is no file is a program.
    hide = (
        "for at in /usr/sbin /usr/local/sbin; do [ ! -e $at/ptp4l ] || mount --bind /dev/null $at/ptp4l; done"
    )
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            f'{hide}; exec "$@"',
            "sh",
            str(COMMAND),
            "run",
            "t.xml",
            "--out",
            "r",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, (tmp_path / "r").exists()) == (3, False), done.stderr
    assert "the program ptp4l is not installed; install the package linuxptp" in done.stderr


def test_what_namespaces_cannot_do_with_clocks_is_refused(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(ONE_WAY, extra="<synchronise><ptp/></synchronise>"))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert done.code == 3
    assert 'write timestamps="software"' in done.err
    assert not (tmp_path / "r").exists()
    assert 'write steer="off"' in done.err
