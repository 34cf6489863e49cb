"""Routes: named ones, the rule, what switches then do, and plans from before there were any."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
from lxml import etree

from simulation import simulate
from test_config_effect import RICH, compiled
from wiregauge import _native, plan
from wiregauge.benches.capabilities import beyond_namespaces
from wiregauge.config import load
from wiregauge.figures.network import _places
from wiregauge.plan.upgrade import upgraded

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
    said = beyond_namespaces(load(EXAMPLES / "ring.xml").campaign)
    assert said[0].startswith("links close a loop")
    assert not any("loop" in one for one in beyond_namespaces(load(EXAMPLES / "demo.xml").campaign))


def test_a_ring_is_drawn_as_one() -> None:
    network = load(EXAMPLES / "ring.xml").campaign.network
    places = _places(network)
    assert len(set(places)) == len(places)
    names = [node.name for node in network.nodes]
    north, east, south, west = (places[names.index(name)] for name in ("north", "east", "south", "west"))
    assert north[1] > east[1] > south[1]
    assert west[0] < north[0] < east[0]


def _with_domains_of_today(run: dict[str, Any]) -> None:
    """Domains of PTP came later."""
    for domain in run.get("ptp_domains", ()):
        domain["max_offset"] = domain.pop("within")


def _of_schema_3(raw: dict[str, Any]) -> dict[str, Any]:
    """With the names of version 1 of the test language."""
    text = json.dumps(raw)
    for new, name in (
        ("forwarding_mode", "mode"),
        ("forwarding-mode", "mode"),
        ("pacing", "mode"),
        ("max_offset", "within"),
        ("on_failure", "otherwise"),
        ("timestamps", "stamps"),
        ("goodput", "throughput"),
    ):
        text = text.replace(f'"{new}"', f'"{name}"')
    text = re.sub(r'"(bag|skew|window)_violations"', r'"\1_conformity"', text)
    old: dict[str, Any] = json.loads(text)
    old["schema"] = 3
    for node in old["network"]["nodes"]:
        # Errors of timestamps came later and had this name from the beginning.
        if "stamps" in node:
            node["timestamps"] = node.pop("stamps")
    for run in old["runs"]:
        _with_domains_of_today(run)
        for fault in run.get("link_faults", ()):
            for new, name in (("from", "begin"), ("until", "end"), ("sent_by", "from")):
                if new in fault:
                    fault[name] = fault.pop(new)
            fault["kind"]["type"] = fault["kind"]["type"].replace("loss", "lose")
        for incident in run.get("incidents", ()):
            until = {"cut": "restored", "restart": "back"}.get(incident["kind"]["type"])
            if until is not None and "until" in incident["kind"]:
                incident["kind"][until] = incident["kind"].pop("until")
        for relay in run["relays"]:
            for fault in relay["faults"]:
                kind = fault["kind"]["type"]
                fault["kind"]["type"] = {"loss": "drop", "reorder": "swap"}.get(kind, kind)
    return old


def _of_schema_2(raw: dict[str, Any]) -> dict[str, Any]:
    """As version 0.1 wrote it: nodes instead of links."""
    old = _of_schema_3(raw)
    old["schema"] = 2
    for run in old["runs"]:
        for flow in run["flows"]:
            routes = flow.pop("routes")
            ways = [[hop[1] for hop in route["hops"]] + [route["hops"][-1][3]] for route in routes]
            flow["path"] = ways[0]
            further = [
                {"network": route.get("network", "A"), "nodes": way}
                for route, way in zip(routes[1:], ways[1:], strict=True)
            ]
            if further:
                flow["further_paths"] = further
        for inject in run["injects"]:
            inject["route"] = inject.pop("route") and {"hops": []}
        for relay in run["relays"]:
            relay.pop("detours", None)
    return old


def test_plans_of_schema_3_become_what_they_were(tmp_path: Path) -> None:
    """Names changed, and only names; the rich test has all of them."""
    tests = [load(test).campaign for test in sorted(EXAMPLES.glob("*.xml"))]
    renamed = 0
    for campaign in [*tests, compiled(etree.fromstring(RICH), tmp_path)]:
        raw = plan.plain(campaign)
        old = _of_schema_3(raw)
        renamed += sum(
            key in json.dumps(old) for key in ('"restored"', '"back"', '"begin"', '"otherwise"', '"stamps"')
        )
        assert upgraded(old) == raw
    assert renamed >= 5


def test_plans_of_schema_2_become_what_they_were() -> None:
    """On trees: there nodes say which links."""
    for test in sorted(EXAMPLES.glob("*.xml")):
        if test.stem == "ring":
            continue
        raw = plan.plain(load(test).campaign)
        old = _of_schema_2(raw)
        new = upgraded(old)
        assert new["schema"] == _native.PLAN_SCHEMA == 5
        for one, other in zip(raw["runs"], new["runs"], strict=True):
            assert [flow["routes"] for flow in one["flows"]] == [flow["routes"] for flow in other["flows"]]
        assert len(plan.decode(old).runs) == len(raw["runs"])


def test_a_damaged_plan_is_left_to_its_reader() -> None:
    raw = _of_schema_2(plan.plain(load(EXAMPLES / "first.xml").campaign))
    raw["runs"][0]["flows"][0]["path"] = [0, 7]
    assert upgraded(raw) is raw
