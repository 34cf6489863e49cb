"""What is read of a run's entry is what its writers write, and nothing that nobody reported is 0."""

from __future__ import annotations

import json
import re
from functools import cache
from inspect import getmembers, isclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import stored

from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.records import DamagedError, modelled, reported
from wiregauge.records.counters import sum_known
from wiregauge.records.reported import AgentReport, RunEntry, read_entries

ROOT = Path(__file__).resolve().parents[2]
KINDS = [
    kind
    for module in (modelled, reported)
    for _, kind in getmembers(module, isclass)
    if issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__ and kind.__struct_fields__
]


@cache
def written() -> frozenset[str]:
    """Every word of whoever writes of a run: agents, simulator, tracking, testmaster, captures."""
    folders = (
        *ROOT.glob("crates/*/src"),
        ROOT / "crates/agent/proto",
        *(ROOT / "python/wiregauge" / room for room in ("captures", "records", "runner")),
    )
    files = (
        file for folder in folders for file in folder.rglob("*") if file.suffix in (".rs", ".proto", ".py")
    )
    others = (file for file in files if file.name not in ("modelled.py", "reported.py"))
    return frozenset(word for file in others for word in re.findall(r"\w+", file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_every_field_is_one_that_somebody_writes(kind: type[msgspec.Struct]) -> None:
    """An unknown key is somebody else's, so a misspelt field would be unknown for ever."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert names <= written(), "this test sees a misspelt one"
    assert "steal_nanoseconds" not in written()


def test_a_counter_that_nobody_reported_is_not_zero() -> None:
    agent = msgspec.convert({"steal_ns": 0, "access_points": [{"send_errors": 2}]}, AgentReport)
    assert (agent.steal_ns, agent.clock_steps, agent.grants) == (0, None, None)
    (point,) = agent.access_points
    assert (point.send_errors, point.socket_drops) == (2, None)
    assert sum_known((None, 2, None, 3)) == 5


def test_runs_are_found_by_their_index_and_keys_of_others_are_left_alone() -> None:
    entries = read_entries([{"index": 3, "state": "complete", "of_another": {"a": [1]}}, {"index": 1}])
    assert entries == {3: RunEntry(index=3, state="complete"), 1: RunEntry(index=1)}


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ({"agents": {"a": {"steal_ns": "much"}}}, "steal_ns"),
        ({"agents": [1]}, "agents"),
        ({"simulation": {"credits": [{"node": "s"}]}}, "credits"),
    ],
)
def test_an_entry_of_another_form_is_damage_that_is_named(
    tmp_path: Path, broken: dict[str, Any], place: str
) -> None:
    stored.make(tmp_path / "r", count=4)
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["runs"][0] |= broken
    # Of a directory without hashes only the form can tell.
    for key in ("digest", "files"):
        manifest.pop(key, None)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(DamagedError, match=place):
        open_recorded(tmp_path / "r")
