"""Routes: named ones, the rule, and what switches then do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from simulation import simulate
from wiregauge.config import load
from wiregauge.figures.network import places_of
from wiregauge.runner.benches.capabilities import beyond_namespaces

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RING = (EXAMPLES / "ring.xml").read_text(encoding="utf-8")


def passed(run: Any, flow: int) -> list[str]:
    """Nodes that the first message of a flow entered, in their order."""
    names = list(run.plan.network.names)
    entered = run.records.filter(
        (pl.col("flow") == flow)
        & (pl.col("sequence") == 0)
        & pl.col("point").is_in(["switch-in", "wire-receive"])
    )
    return [names[node] for node in entered.sort("time")["node"]]


def test_every_flow_goes_the_way_it_names(tmp_path: Path) -> None:
    run = simulate(RING, tmp_path / "ring")
    assert passed(run, 1) == ["north", "west", "south", "control"]
    assert passed(run, 2) == ["north", "east", "south", "control"]
    assert passed(run, 3) == ["south", "east", "north", "camera"]
    for flow in run.summary["flows"]:
        assert flow["sent"] == flow["delivered"]


def test_the_rule_takes_the_link_that_comes_first_in_the_file(tmp_path: Path) -> None:
    text = RING.replace('<path via="north west south"/>', "").replace(
        "<network ", '<network routing="shortest" '
    )
    run = simulate(text, tmp_path / "first")
    assert passed(run, 1) == ["north", "east", "south", "control"]
    east, west = (
        f'<link between="{a}" rate="100Mbit/s" delay="100ns"/>' for a in ("north east", "west north")
    )
    swapped = (
        text.replace(east, "@")
        .replace(west, east)
        .replace("@", west)
        .replace('ports="1 3 4"', 'ports="1 2 3 4"')
    )
    run = simulate(swapped, tmp_path / "second")
    assert passed(run, 1) == ["north", "west", "south", "control"]


def test_namespaces_carry_no_loop() -> None:
    said = beyond_namespaces(load(EXAMPLES / "ring.xml").campaign, "kernel")
    assert said[0].startswith("links close a loop")
    assert not any("loop" in one for one in beyond_namespaces(load(EXAMPLES / "demo.xml").campaign, "kernel"))


def test_a_ring_is_drawn_as_one() -> None:
    network = load(EXAMPLES / "ring.xml").campaign.network
    places = places_of(network)
    assert len(set(places)) == len(places)
    names = [node.name for node in network.nodes]
    north, east, south, west = (places[names.index(name)] for name in ("north", "east", "south", "west"))
    assert north[1] > east[1] > south[1]
    assert west[0] < north[0] < east[0]
