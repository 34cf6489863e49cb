"""What Rust writes of a plan is read as a whole, and written again as it was; `test_language.py` compares the types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wiregauge import _native, plan
from wiregauge.config import groups, loading, reading

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.xml"))


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
