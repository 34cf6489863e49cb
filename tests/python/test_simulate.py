"""The simulator writes records the log processor judges like any other, the same bytes every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from simulation import tables
from wiregauge import _native
from wiregauge.config import load
from wiregauge.plan import Campaign, as_json

ROOT = Path(__file__).resolve().parents[2]


def simulated(campaign: Campaign, place: Path) -> tuple[dict[str, Any], bytes]:
    network, run = as_json(campaign.network), as_json(campaign.runs[0])
    _native.simulate_run(network, run, place / "spool")
    segments = [str(path) for path in sorted((place / "spool").glob("*/*.arrows"))]
    records = place / "records.parquet"
    summary = json.loads(_native.process_run(network, run, segments, records, *tables(place)))
    return summary, records.read_bytes()


@pytest.mark.parametrize("example", ["first", "demo", "two-switches", "vlan"])
def test_every_message_arrives_in_an_idle_network(example: str, tmp_path: Path) -> None:
    summary, _ = simulated(load(ROOT / "examples" / f"{example}.xml").campaign, tmp_path)
    for flow in summary["flows"]:
        assert flow["sent"] == flow["planned"] == flow["delivered"]
        assert flow["outcomes"]["delivered"] == flow["sent"]


def test_planted_faults_come_back_exactly(tmp_path: Path) -> None:
    campaign = load(ROOT / "examples" / "faults.xml").campaign
    summary, _ = simulated(campaign, tmp_path)
    names = {"loss": "lost", "duplicate": "duplicated", "reorder": "reordered", "corrupt": "corrupted"}
    planted: dict[str, int] = {}
    for fault in campaign.runs[0].relays[0].faults:
        outcome = names.get(fault.kind.type, "misdirected")
        planted[outcome] = planted.get(outcome, 0) + sum(last - first + 1 for first, last in fault.sequences)
    (flow,) = summary["flows"]
    assert planted
    assert {name: flow["outcomes"][name] for name in planted} == planted


def test_the_same_run_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    campaign = load(ROOT / "examples" / "first.xml").campaign
    _, one = simulated(campaign, tmp_path / "a")
    _, two = simulated(campaign, tmp_path / "b")
    (run,) = campaign.runs
    _, other = simulated(replace(campaign, runs=(replace(run, seed=run.seed + 1),)), tmp_path / "c")
    assert one == two
    assert one != other
