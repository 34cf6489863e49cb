"""Planted truth comes back exactly: what a relay did to single messages is what is found, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from support import Runner, assert_measured, scenario

pytestmark = pytest.mark.alone  # every message is to come through, at 12 500 a second


@pytest.mark.parametrize("protocol", ["udp", "raw"])
def test_planted_faults_come_back_exactly(
    wiregauge: Runner, tmp_path: Path, protocol: str, thorough: bool
) -> None:
    count = 100_000 if thorough else 25_000
    # Even numbers only, so that a swap's successor carries no fault of its own.
    chosen = random.Random(7).sample(range(2, count - 2, 2), 500)
    parts = {
        "loss": sorted(chosen[:100]),
        "duplicate": sorted(chosen[100:200]),
        "reorder": sorted(chosen[200:300]),
        "corrupt": sorted(chosen[300:400]),
        "misdirect": sorted(chosen[400:]),
    }
    faults = "".join(
        f'<fault kind="{kind}" sequence="{" ".join(map(str, numbers))}"'
        + (' to="other"' if kind == "misdirect" else "")
        + "/>"
        for kind, numbers in parts.items()
    )
    tasks = (
        f'<tasks warm-up="10ms" drain="300ms"><send flow="20" period="80us" payload="100B" count="{count}"/>'
        f'<relay flow="20">{faults}</relay></tasks>'
    )
    flows = f'<flow id="20" protocol="{protocol}" from="mac" to="sensor"/>'
    (tmp_path / "t.xml").write_text(scenario(tasks, flows=flows, systems=("mac", "sensor", "other")))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert_measured(done, tmp_path / "r")

    messages = pl.read_parquet(tmp_path / "r" / "messages" / "run-0000.parquet").filter(~pl.col("warm_up"))
    found = {
        outcome: sorted(messages.filter(pl.col("outcome") == outcome)["sequence"].to_list())
        for outcome in ("lost", "duplicated", "reordered", "corrupted", "misdirected", "late")
    }
    assert found == {
        "lost": parts["loss"],
        "duplicated": parts["duplicate"],
        "reordered": parts["reorder"],
        "corrupted": parts["corrupt"],
        "misdirected": parts["misdirect"],
        "late": [],
    }
    (flow,) = wiregauge("show", "r", "--json").json()["runs"][0]["flows"]
    assert (flow["sent"], flow["delivered"], flow["lost"]) == (count, count - 300, 300)
