"""Records of an end system that come after the others were tracked are added, and the messages are whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import polars as pl

from support import COMMAND, SECONDS
from wiregauge.records import RunDirectory, add_spooled, recover

TEST = """<test xmlns="urn:wiregauge:test:2" name="late" seed="1" bench="netns">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="0s"><send flow="1" period="1ms" payload="64B" count="20000"/><receive flow="1"/></tasks>
</test>
"""


def killed(folder: Path) -> Path:
    """A run whose testmaster was killed after two seconds; its agents went with it, and their segments stayed."""
    (folder / "t.xml").write_text(TEST)
    place = folder / "r"
    process = subprocess.Popen(
        [COMMAND, "run", folder / "t.xml", "--out", place],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + SECONDS
    while not any(file.stat().st_size > 40_000 for file in place.glob("spool/run-0000/*/*.arrows")):
        assert time.monotonic() < end
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1.0)
    return place


def outcomes(place: Path) -> dict[str, int]:
    messages = pl.read_parquet(RunDirectory.open(place).messages(0))
    return dict(messages.group_by("outcome").len().iter_rows())


def test_records_that_come_later_make_a_run_what_it_would_have_been(tmp_path: Path) -> None:
    place, whole = killed(tmp_path), tmp_path / "whole"
    shutil.copytree(place, whole)
    assert recover(RunDirectory.open(whole))
    late = place / "spool" / "run-0000" / "node-0001"
    shutil.move(late, tmp_path / "late")
    assert recover(RunDirectory.open(place))
    alone = outcomes(place)
    assert "delivered" not in alone, "nothing is known of what arrived"
    directory = RunDirectory.open(place)
    directory.hold()
    try:
        (place / "spool" / "run-0000").mkdir(parents=True, mode=0o700)
        shutil.move(tmp_path / "late", late)
        assert add_spooled(directory, 0)
        assert not add_spooled(directory, 0)
    finally:
        directory.close()
    assert outcomes(place) == outcomes(whole)
    assert outcomes(place)["delivered"] > 500
    assert len(RunDirectory.open(place).record_files(0)) == 2
    for told in (place, whole):
        shown = subprocess.run(
            [COMMAND, "show", told, "--json"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert json.loads(shown.stdout)["validity"] == "INVALID"
        verified = subprocess.run([COMMAND, "verify", told], timeout=SECONDS, check=False)
        assert verified.returncode == 0
