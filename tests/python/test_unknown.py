"""What the instrument lost sight of is unknown: never lost by the network, and never left out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from wiregauge import _native
from wiregauge.cli import app
from wiregauge.config import Test
from wiregauge.records import traits_of
from wiregauge.records.gaps import gaps_of
from wiregauge.records.reported import read_entries

pytestmark = pytest.mark.usefixtures("unreported")

TEST = """<test xmlns="urn:wiregauge:test:2" name="torn" seed="3">
  <network>
    <end-system name="a"/> <end-system name="b"/> <switch name="s"/>
    <link between="a s" rate="100Mbit/s"/> <link between="s b" rate="100Mbit/s" delay="1ms"/>
  </network>
  <flows><flow id="10" protocol="raw" from="a" to="b" deadline="10ms"/></flows>
  <tasks>
    <send flow="10" period="50us" payload="64B" count="{count}"/> <receive flow="10"/>
  </tasks>
  <limits>
    <limit flow="10" measure="lost" at-most="0"/>
    <limit flow="10" measure="loss" at-most="99%"/>
    <limit flow="10" measure="delivered" at-least="1"/>
    <limit flow="10" measure="loss_period.longest" at-most="0"/>
    <limit flow="10" measure="availability" at-least="99.999%"/>
    <limit flow="10" measure="latency.max" at-most="10ms"/>
  </limits>
</test>
"""


@pytest.fixture(params=[(40_000, 0.667), (200_000, 0.9995)])
def torn(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `show --json` says of so many messages of whose only segment a share is left, as on a full disk."""
    count, share = request.param
    whole = _native.process_run

    def tear(network: str, run: str, segments: list[str], *out: str) -> str:
        # A link of 1 ms has twenty messages on their way wherever it ends.
        file = Path(segments[-1])
        content = file.read_bytes()
        file.write_bytes(content[: int(len(content) * share)])
        return whole(network, run, segments, *out)

    monkeypatch.setattr(_native, "process_run", tear)
    text = TEST.replace("{count}", str(count))
    (tmp_path / "t.xml").write_text(text, encoding="utf-8")
    CliRunner().invoke(app, ["run", str(tmp_path / "t.xml"), "--bench", "sim", "--out", str(tmp_path / "r")])
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "r"), "--json"])
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def test_a_torn_spool_loses_no_message_of_the_network(torn: dict[str, Any]) -> None:
    (run,) = torn["runs"]
    (flow,) = run["flows"]
    assert flow["lost"] == 0 < flow["delivered"]
    assert flow["sent"] == flow["delivered"] + flow["lost"] + flow["unknown"]
    assert flow["outcomes"]["unknown"] == flow["unknown"] > 0
    assert flow["loss"]["low"] == 0
    assert flow["loss"]["high"] > flow["unknown"] / flow["sent"], (
        "the bound takes the case that all were lost"
    )
    assert flow["latency_ns"]["excluded"].get("lost", 0) == 0
    check = next(check for check in run["checks"] if check["name"] == "outcomes-known")
    assert check["grade"] == "degraded"
    assert "damaged record file" in check["reason"]


def test_a_limit_that_hangs_on_the_unknown_is_undecided(torn: dict[str, Any]) -> None:
    (run,) = torn["runs"]
    decided = [(limit["measure"], limit["result"]) for limit in run["limits"]]
    # More than 1 % of the plan has no record of being sent, so no limit of the run is passed.
    whatever_they_became = "undecided" if torn["validity"] == "INVALID" else "pass"
    assert decided == [
        ("lost", "undecided"),
        ("loss", whatever_they_became),
        ("delivered", whatever_they_became),
        ("loss_period.longest", "undecided"),
        ("availability", "undecided"),
        ("latency.max", "undecided"),
    ]
    assert "it is unknown whether" in run["limits"][0]["reason"]


@pytest.mark.parametrize(
    ("torn", "validity"),
    [((40_000, 0.667), "INVALID"), ((200_000, 0.9995), "DEGRADED")],
    indirect=["torn"],
)
def test_a_sent_message_without_a_record_is_not_called_unsent(torn: dict[str, Any], validity: str) -> None:
    (run,) = torn["runs"]
    assert run["validity"] == validity
    check = next(check for check in run["checks"] if check["name"] == "sent-as-planned")
    assert check["grade"] == validity.lower()
    assert "they never were, or the instrument lost the record" in check["reason"]


def gaps(
    entry: dict[str, Any], place: Path, noise: list[tuple[int, int]], **manifest: Any
) -> list[dict[str, Any]]:
    """The gaps of a run of flow 10 from a (node 0) to b (node 1); `noise` are times and counts of full rings at b."""
    table = pl.DataFrame(
        [(at, "b", "ring_drops", "records", count) for at, count in noise],
        schema=["time", "node", "counter", "key", "value"],
        orient="row",
    )
    if noise:
        table.write_parquet(place / "noise.parquet")
    test = Test("two").end_system("a").end_system("b").link("a", "b", rate="1Gbit/s")
    test.flow(10, protocol="raw", from_="a", to="b").timing(warm_up="5ms").receive(10)
    test.send(10, period="1ms", payload="64B", count=9)
    directory: Any = SimpleNamespace(
        plan=test.compile().campaign,
        traits=traits_of(manifest),
        entries=lambda: read_entries([{"index": 0, **entry}]),
        noise=lambda _: place / "noise.parquet",
        record_files=lambda _: [],
    )
    return gaps_of(directory, 0, [])


def test_a_full_ring_leaves_a_gap_where_its_counter_rose(tmp_path: Path) -> None:
    entry = {"state": "complete", "agents": {"a": {"complete": True}, "b": {"records_dropped": 7}}}
    assert gaps({**entry, "agents": {}}, tmp_path, []) == []
    (gap,) = gaps(entry, tmp_path, [(100, 0), (200, 0), (300, 7), (400, 7)])
    assert (gap["node"], gap["from_ps"], gap["to_ps"]) == (1, 200, 300)
    (gap,) = gaps(entry, tmp_path, [(100, 0), (200, 3)])
    assert (gap["from_ps"], gap["to_ps"]) == (None, None), "a full disk lost the others, nobody knows when"


def test_what_a_sender_lost_the_records_of_is_counted_by_its_report(tmp_path: Path) -> None:
    report = {"records_dropped": 1, "tasks": [{"kind": "send", "flow": 10, "done": 105}]}
    found = gaps({"state": "complete", "agents": {"a": report, "b": {}}}, tmp_path, [])
    assert [(gap["node"], gap.get("handed_over")) for gap in found] == [(0, None), (0, 100)]


def test_full_buffers_and_killed_agents_leave_gaps(tmp_path: Path) -> None:
    dropping = {"access_points": [{"protocol": "udp", "socket_drops": 2}], "complete": True}
    (gap,) = gaps({"state": "complete", "agents": {"b": dropping}}, tmp_path, [])
    assert (gap["node"], gap["frames"]) == (1, True)
    (gap,) = gaps({"state": "partial", "agents": {"a": {"complete": True}}}, tmp_path, [], bench="netns")
    assert gap["node"] == 1
    assert "ended early" in gap["cause"]
