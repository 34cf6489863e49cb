"""What earlier versions stored is read under today's names: run directories and calibrations."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from synthetic import Recipe
from synthetic import make as make_directory
from wiregauge import measures
from wiregauge.calibrate import CalibrationError, Store, make
from wiregauge.calibrate.store import _number, read
from wiregauge.records.upgrade import SCHEMA, upgraded_manifest, upgraded_tracking

NEW_AGENT: dict[str, Any] = {
    "end_system": "a",
    "access_points": [
        {"protocol": "udp", "missing_tx_timestamps": 1, "missing_rx_timestamps": 2, "foreign_frames": 3}
    ],
    "tasks": [{"kind": "capture", "unwritten": 0, "hardware_timestamps": 4, "failure": ""}],
    "streams": [{"kind": "send", "number": 1, "pacing": "gap", "figures": {"offered": 5}}],
    "timestamps": [
        {
            "interface": "eth0",
            "transmit": "hardware",
            "receive": "software",
            "figures": {
                "sent": {"timestamped": "first", "recorded": "preamble"},
                "received": {"timestamped": "last", "recorded": "last"},
                "transmit_timestamps": {"asked": 9, "timestamped": 8, "missing": 1},
                "receive_timestamps": {"timestamped": 7, "missing": 0},
                "clock": None,
            },
        }
    ],
}
NEW_RUN: dict[str, Any] = {
    "index": 0,
    "agents": {"a": NEW_AGENT, "gone": None},
    "captures": {"sw1": {"kind": "capture", "hardware_timestamps": 1, "missing_hardware_timestamps": 2}},
}
OF_SCHEMA_2 = {
    "timestamps": "stamps",
    "pacing": "mode",
    "missing_tx_timestamps": "missing_tx_stamps",
    "missing_rx_timestamps": "missing_rx_stamps",
    "hardware_timestamps": "hardware_stamps",
    "missing_hardware_timestamps": "missing_hardware_stamps",
    "transmit_timestamps": "transmit_stamps",
    "receive_timestamps": "receive_stamps",
    "timestamped": "stamped",
}


def renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): renamed(part, names) for key, part in value.items()}
    return [renamed(part, names) for part in value] if isinstance(value, list) else value


def test_what_agents_reported_in_schema_2_has_todays_names() -> None:
    new = {"schema": SCHEMA, "runs": [NEW_RUN, "damaged"]}
    old = {"schema": 2, "runs": [renamed(NEW_RUN, OF_SCHEMA_2), "damaged"]}
    assert old["runs"] != new["runs"]
    before = copy.deepcopy(old)
    assert upgraded_manifest(old) == new
    assert old == before, "the document is left as it is"
    assert upgraded_manifest(new) is new


def test_a_run_directory_of_schema_1_has_both_steps_of_names() -> None:
    taps = {"timestamps": {"a": {"kind": "hardware"}}, "taps": [{"name": "t", "timestamps": None}]}
    new = {"schema": SCHEMA, "runs": [{**NEW_RUN, **taps}]}
    old = {"schema": 1, "runs": renamed(new["runs"], OF_SCHEMA_2)}
    assert upgraded_manifest(old) == new
    flows = [{"id": 1, "redundant_discarded": 3}]
    tracking = {"schema": 1, "runs": [{"index": 0, "flows": [{"id": 1, "second_copies": 3}]}]}
    assert upgraded_tracking(tracking) == {"schema": SCHEMA, "runs": [{"index": 0, "flows": flows}]}
    future = {"schema": SCHEMA + 1, "runs": []}
    assert upgraded_manifest(future) is future
    assert upgraded_tracking(future) is future


def test_an_old_run_is_judged_as_a_new_one(tmp_path: Path) -> None:
    """The same run with old and with new names: the checks of timestamps and streams find the same in both."""
    found = []
    for schema, name in ((SCHEMA, "new"), (2, "old")):
        place = make_directory(tmp_path / name, Recipe())
        path = place / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        agent = copy.deepcopy(NEW_AGENT)
        agent["timestamps"][0]["figures"]["transmit_timestamps"]["missing"] = 3
        manifest["schema"] = schema
        manifest["runs"][0]["agents"]["sensor"].update(
            agent if schema == SCHEMA else renamed(agent, OF_SCHEMA_2)
        )
        path.write_text(json.dumps(manifest), encoding="utf-8")
        run = measures.judge(place).runs[0]
        found.append([(check.name, check.observed, check.grade) for check in run.checks])
    assert found[0] == found[1]
    observed = {name: text for name, text, _ in found[0]}
    assert "3 of 16 timestamps never came" in observed["hardware-timestamps"]


def loop_and_generator() -> list[dict[str, Any]]:
    """Results in today's names."""
    case: dict[str, Any] = {
        "case": "line",
        "protocol": "raw",
        "pacing": "rate",
        "backend": None,
        "frame_bytes": 600,
        "gap_ns": 4960.0,
        "intended_bps": 1e9,
        "line_bps": 1e9,
        "sent": 5,
        "lost": 0,
        "grade": "VALID",
        "reasons": [],
        "timestamps": {"driver-send": {"n": 4, "mean_bps": 9e8}},
    }
    return [{"cases": [case]}, {"points": [{"timestamp_ns": 20.0, "measure": "latency"}]}]


OLD_RESULTS = {
    "pacing": "mode",
    "intended_bps": "intended_bit_per_s",
    "line_bps": "line_bit_per_s",
    "mean_bps": "mean_bit_per_s",
    "timestamps": "stamps",
    "timestamp_ns": "stamp_ns",
}


def test_a_kept_calibration_of_schema_1_is_read_and_keeps_its_number(tmp_path: Path) -> None:
    from test_calibrate_store import a_loop

    new = a_loop()
    old = {**new.content, "schema": 1, "results": renamed(dict(new.results), OLD_RESULTS)}
    assert "stamp_ns" in json.dumps(old)
    old["id"] = _number(old)
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old), encoding="utf-8")
    found = read(file)
    assert found.content == {**new.content, "id": old["id"]}
    assert Store(tmp_path).find(old["id"][:9]).number == old["id"]
    old["results"]["points"][0]["stamp_ns"] += 1
    file.write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(CalibrationError, match="was altered"):
        read(file)


@pytest.mark.parametrize("results", loop_and_generator())
def test_every_renamed_key_of_a_calibration_is_upgraded(results: dict[str, Any]) -> None:
    from wiregauge.calibrate.upgrade import upgraded

    new = dict(make("loop", bench="netns", identity={}, settings={"mode": "rate"}, results=results).content)
    old = {**new, "schema": 1, "results": renamed(results, OLD_RESULTS)}
    assert old["results"] != results
    assert upgraded(old) == new
    assert upgraded(new) is new
    assert upgraded({"schema": 1, "results": {"cases": [None], "points": 3}})["results"] == {
        "cases": [None],
        "points": 3,
    }
