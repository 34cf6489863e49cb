"""Tests that were once judged better than the truth, or did not run at all, on real frames."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support import Runner

pytestmark = pytest.mark.alone  # forty agents start at once, and a load is to enter the network

FAULTS = Path(__file__).parents[1] / "faults"


def run(wiregauge: Runner, folder: Path, name: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Exit code, manifest and what is shown of a fault file."""
    shutil.copy(FAULTS / name, folder / "t.xml")
    done = wiregauge("run", "t.xml", "--out", "r")
    manifest = json.loads((folder / "r" / "manifest.json").read_text())
    assert manifest["state"] == "complete", done.err
    shown: dict[str, Any] = wiregauge("show", "r", "--json").json()
    return done.code, manifest, shown


def test_a_load_enters_the_network_or_is_not_graded_as_load(wiregauge: Runner, tmp_path: Path) -> None:
    """A driver's way for which the trial saw nothing arrive is not taken; what is graded is what the port saw."""
    _, manifest, shown = run(wiregauge, tmp_path, "load-that-never-arrives.xml")
    (entry,) = manifest["runs"]
    (load,) = (stream for stream in entry["agents"]["e2"]["streams"] if stream["kind"] == "inject")
    port = entry["first_ports"]["e2"]
    assert port["port"] == "network:h2"
    assert port["received"] > 0, "some of the load entered the network"
    # A machine that is busy lets less of it enter, and then the run says that this was not the load.
    (graded,) = (check for check in shown["runs"][0]["checks"] if check["name"] == "offered-load")
    assert port["received"] >= 0.5 * load["figures"]["offered"] or graded["grade"] == "invalid", (port, load)
    (trial,) = (trial for trial in entry["trials"] if trial["end_system"] == "e2")
    assert trial["succeeded"]
    assert trial["backend"] == load["backend"]
    assert "trial frames arrived at the network" in load["why"]


def test_names_of_nodes_never_meet_those_of_the_instrument(wiregauge: Runner, tmp_path: Path) -> None:
    _, manifest, shown = run(wiregauge, tmp_path, "end-system-named-captures.xml")
    assert {path.name for path in (tmp_path / "r" / "captures" / "run-0000").iterdir()} == {
        "captures.pcapng",
        "cluster-1.pcapng",
        "lo.pcapng",
    }
    assert set(manifest["runs"][0]["agents"]) == {"captures", "cluster-1"}
    for flow in shown["runs"][0]["flows"]:
        assert flow["sent"] == 300
        assert flow["sent"] == flow["delivered"] + flow["lost"] + flow["unknown"]


def test_forty_one_agents_start_together(wiregauge: Runner, tmp_path: Path) -> None:
    _, manifest, shown = run(wiregauge, tmp_path, "fan-in-40.xml")
    assert len(manifest["runs"][0]["agents"]) == 41
    assert len(shown["runs"][0]["flows"]) == 40
    assert all(flow["sent"] == 300 for flow in shown["runs"][0]["flows"])
