"""Real hosts at two networks, at a ring and in a cluster, of which something is missing: nobody notices.

A host that is late gives its card two time-triggered messages for one instant, and the card sends the newer one. Only
that may be lost here, and it is named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from support import Runner
from wiregauge.cli import app

pytestmark = pytest.mark.alone  # a host that is held up for long sends what the network then meets otherwise

EXAMPLES = Path(__file__).parents[2] / "examples"
BY_HOST = "superseded"


def edited(example: str, place: Path, *changes: tuple[str, str]) -> Path:
    text = (EXAMPLES / f"{example}.xml").read_text(encoding="utf-8")
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    place.write_text(text)
    return place


def played(test: Path, place: Path, wiregauge: Runner) -> dict[str, Any]:
    """The run between real hosts; what was not delivered has the host's reason."""
    done = wiregauge("run", test, "--bench", "netns", "--switches", "model", "--out", place)
    assert json.loads((place / "manifest.json").read_text("utf-8"))["state"] == "complete", done.err
    messages = pl.read_parquet(place / "messages" / "run-0000.parquet").filter(~pl.col("warm_up"))
    missing = messages.filter(pl.col("outcome").is_in(["lost", "corrupted", "misdirected"]))
    assert set(missing["drop_reason"].cast(pl.String).to_list()) <= {BY_HOST}
    return measured(place)


def measured(place: Path) -> dict[str, Any]:
    (run,) = json.loads((place / "measures.json").read_text("utf-8"))["runs"]
    assert isinstance(run, dict)
    return run


def test_an_afdx_network_that_is_cut_in_mid_run_costs_no_message(wiregauge: Runner, tmp_path: Path) -> None:
    cut = ('<loss link="a1 a2" share="2%"/>', '<cut link="a1 a2" from="1500ms"/>')
    run = played(edited("afdx", tmp_path / "t.xml", cut), tmp_path / "r", wiregauge)
    twice = [flow for flow in run["flows"] if flow["flow"] != 15]  # which is on network B alone
    assert all(flow["lost"] == flow["unknown"] == flow["duplicated"] == 0 for flow in run["flows"])
    # The second copies of what was sent before the cut, about a third.
    assert all(0.2 < flow["redundant_discarded"] / flow["sent"] < 0.5 for flow in twice)


def test_a_cluster_with_a_silent_master_says_the_same_as_in_a_simulation(
    wiregauge: Runner, tmp_path: Path
) -> None:
    changes = (
        ('behaviour="early" by="50us"', 'behaviour="silent"'),
        ('<restart switch="sw1" from="600ms" until="650ms"/>', ""),
        ("<faults>", ""),
        ("</faults>", ""),
    )
    test = edited("synchronised", tmp_path / "t.xml", *changes)
    told = CliRunner().invoke(app, ["run", str(test), "--bench", "sim", "--out", str(tmp_path / "sim")])
    assert told.exit_code == 0, told.output
    simulated = measured(tmp_path / "sim")
    live = played(test, tmp_path / "live", wiregauge)
    (cluster,), (theirs,) = live["clusters"], simulated["clusters"]
    # Its clocks are the cards'. Of precision it is the greatest of a run, and a real one ends later.
    assert (cluster["startup_ns"], cluster["devices"]) == (theirs["startup_ns"], theirs["devices"])
    faulty = {device["node"]: device["faulty"] for device in cluster["devices"]}
    assert [node for node, is_faulty in faulty.items() if is_faulty] == ["leg"]
    assert sum(flow["delivered"] for flow in live["flows"]) > 0
