"""The plan is typed in one place: what Rust writes is read as a whole, and written again as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wiregauge import _native, plan
from wiregauge.config import groups, loading, reading
from wiregauge.plan import base, campaign, clusters, network, ptp, routes, tasks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.xml"))
# Of Rust, and what it is called here: a switch's model is its kind, two instances of one generic type are two.
RENAMED = {"SwitchModel": {"Switch"}, "Ends": {"AddressEnds", "PortEnds"}}
# In Rust a hop is written as numbers, by hand: a test of every example's plan holds them.
AS_NUMBERS = {"Hop"}


def compiled(test: Path) -> str:
    """The plan of a test as the compiler writes it."""
    root = groups.expanded(reading.parse(reading.read(test), str(test)), str(test)).root
    answer = _native.compile_plan(json.dumps(loading.plain_tree(root)), test.parent)
    assert answer.startswith('{"campaign":')
    return answer.removeprefix('{"campaign":').removesuffix("}")


@pytest.fixture
def raw() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compiled(ROOT / "examples" / "afdx.xml"))
    return found


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda path: path.stem)
def test_a_plan_is_written_as_it_was_read(test: Path) -> None:
    """To the character: no field is forgotten, and none is told that was not there."""
    text = compiled(test)
    typed = plan.decode(json.loads(text))
    assert plan.as_json(typed) == text
    assert plan.plain(typed) == json.loads(text)


FLATTENED = {"contract": ["bag", "lmax"], "costs": ["transmit", "receive"]}
"""The flattened fields of each field that is replaced by its own fields."""


def fields_of(body: str) -> list[str]:
    """The fields of a struct, as they are written in JSON."""
    found: list[str] = []
    for attribute, name in re.findall(r"((?:^    #\[serde\([^\n]*\)\]\n)?)^    pub (\w+):", body, re.M):
        renamed = re.search(r'rename = "(\w+)"', attribute)
        found += FLATTENED[name] if "flatten" in attribute else [renamed[1] if renamed else name]
    return found


def written_by_rust() -> dict[str, list[str]]:
    """The structs and tagged variants of a campaign, by name, with their fields."""
    found: dict[str, list[str]] = {}
    sources = [*(ROOT / "crates/plan/src/campaign").glob("*.rs")]
    sources += [ROOT / "crates/plan/src" / name for name in ("network.rs", "trace.rs")]
    item = re.compile(
        r"derive\(([^)]*)\)\]\n(?:#\[serde[^\n]*\n)*pub (struct|enum) (\w+)(?:<\w+>)? \{\n(.*?)\n\}", re.S
    )
    for source in sources:
        for derived, what, name, body in item.findall(source.read_text(encoding="utf-8")):
            if "Serialize" not in derived:
                continue
            if what == "struct":
                found[name] = fields_of(body)
            for variant, inside in re.findall(r"^    (\w+) \{\n(.*?)\n    \}", body, re.S | re.M):
                found[variant] = re.findall(r"^        (\w+):", inside, re.M)
    return found


def test_every_field_of_the_compiler_is_typed() -> None:
    """Also one that no example has; a field added in Rust is added here, or this fails."""
    ours = {
        name: list(each.__struct_encode_fields__)
        for room in (campaign, clusters, network, ptp, routes, tasks)
        for name, each in vars(room).items()
        if isinstance(each, type) and issubclass(each, base.Plan)
    }
    theirs = written_by_rust()
    assert {"Campaign", "Run", "Flow", "Node", "Replay", "Babble", "Ptp"} <= theirs.keys()
    for name, fields in theirs.items():
        if name in AS_NUMBERS:
            continue
        for typed in RENAMED.get(name, {name}):
            assert ours[typed] == fields, name


def test_an_unknown_kind_is_refused(raw: dict[str, Any]) -> None:
    raw["network"]["nodes"][0]["kind"]["type"] = "teapot"
    with pytest.raises(plan.PlanError, match=r"teapot.*nodes\[0\]\.kind.*damaged"):
        plan.decode(raw)


def test_another_schema_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(plan.PlanError, match=f"schema 99 is unknown .* reads {_native.PLAN_SCHEMA}"):
        plan.decode({**raw, "schema": 99})


@pytest.mark.parametrize(
    ("part", "key"),
    [("flows", "to"), ("flows", "from"), ("receives", "on")],
)
def test_a_number_that_is_no_node_s_is_refused(raw: dict[str, Any], part: str, key: str) -> None:
    raw["runs"][0][part][0][key] = 999
    with pytest.raises(plan.PlanError, match="node 999 is not in the plan, which has"):
        plan.decode(raw)


def test_the_receivers_of_a_flow_are_one_property() -> None:
    flows = plan.decode(json.loads(compiled(ROOT / "examples" / "multicast.xml"))).runs[0].flows
    several = next(flow for flow in flows if flow.also_to)
    assert several.receivers == (several.to, *several.also_to)
    assert several.ends == (several.from_, *several.receivers)
    assert all(several.ways_to(receiver)[0][-1] == receiver for receiver in several.receivers)


def test_a_plan_is_frozen(raw: dict[str, Any]) -> None:
    with pytest.raises(AttributeError):
        plan.decode(raw).name = "other"  # type: ignore[misc]  # what is tested
    assert msgspec.structs.replace(plan.decode(raw), name="other").name == "other"
