"""What a run's calibrations change, and what they never change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic import Recipe, make
from wiregauge import measures, report, results
from wiregauge.measures import Grade
from wiregauge.measures.validity.calibration import citations

BASE = Recipe(protocols=("udp",), payloads=(64, 256), messages=400, warm_up=10, loss=0.0, relay=False)
ENTRY: dict[str, Any] = {
    "id": "loop-0123456789ab",
    "calibration": "loop",
    "made": "2026-01-05T08:00:00+00:00",
    "grade": "VALID",
    "used": True,
    "reason": None,
    "headline": "7.6 µs",
    "corrections": [
        {
            "measure": "latency",
            "protocol": "udp",
            "payload_bytes": 64,
            "load_percent": load,
            "overhead_ns": 7600.0 + load,
            "uncertainty_ns": 150.0,
            "error_ns": error,
        }
        for load, error in ((0, 100.0), (50, 1e9))
    ],
}


def judged(place: Path, cited: object, recipe: Recipe = BASE) -> measures.Judgement:
    make(place, recipe)
    manifest = json.loads((place / "manifest.json").read_text())
    if cited is not None:
        manifest["calibrations"] = cited
    (place / "manifest.json").write_text(json.dumps(manifest))
    return results.judge(place)


def note(judgement: measures.Judgement, run: int = 0) -> measures.Check:
    (found,) = [check for check in judgement.runs[run].checks if check.name == "calibration"]
    return found


def test_the_constant_is_subtracted_beside_the_raw_figures(tmp_path: Path) -> None:
    raw, with_it = judged(tmp_path / "a", None), judged(tmp_path / "b", [ENTRY])
    assert [flow.summaries for run in raw.runs for flow in run.flows] == [
        flow.summaries for run in with_it.runs for flow in run.flows
    ], "a raw figure changed"
    shown = results.show_json(with_it)
    jsonschema_rs.validate(json.loads(results.schema_path().read_text()), shown)
    runs: Any = shown["runs"]
    (one,) = runs[0]["flows"][0]["corrected"]
    latency = runs[0]["flows"][0]["latency_ns"]
    for key in ("min", "mean", "p50", "p99", "max"):
        assert one[key] == pytest.approx(latency[key] - 7600.0)
    assert one["uncertainty"] == pytest.approx(latency["uncertainty"] + 150.0)
    assert one["calibration"] == ENTRY["id"]
    assert not one["unresolved"]
    assert runs[1]["flows"][0]["corrected"] == [], "256 B were not calibrated"
    points: Any = shown["points"]
    assert points[0]["flows"][0]["corrected"] == [one]
    assert note(with_it).grade == Grade.OK
    assert note(with_it, 1).grade == Grade.NOTE


def test_a_load_takes_the_next_higher_constant_and_none_beyond(tmp_path: Path) -> None:
    recipe = Recipe(
        protocols=("udp",), payloads=(64,), loads=(0, 25, 75), messages=400, warm_up=10, loss=0.0, relay=False
    )
    shown: Any = results.show_json(judged(tmp_path, [ENTRY], recipe))
    found = [[one["overhead_ns"] for one in run["flows"][0]["corrected"]] for run in shown["runs"]]
    assert found == [[7600.0], [7650.0], []]
    assert shown["runs"][1]["flows"][0]["corrected"][0]["unresolved"], "below three times its error"


def test_a_refused_one_corrects_nothing_and_says_why(tmp_path: Path) -> None:
    refused = {**ENTRY, "used": False, "reason": "it is stale: 40 days old"}
    judgement = judged(tmp_path, [refused])
    shown: Any = results.show_json(judgement)
    assert all(flow["corrected"] == [] for run in shown["runs"] for flow in run["flows"])
    assert "stale" in note(judgement).reason
    assert judgement.validity.word == "VALID", "a note spoils nothing"
    page = report.write(tmp_path, judgement).read_text(encoding="utf-8")
    assert "it is stale: 40 days old" in page
    assert "Less the instrument itself" not in page


def test_the_page_shows_both_and_the_number(tmp_path: Path) -> None:
    page = report.write(tmp_path, judged(tmp_path, [ENTRY])).read_text(encoding="utf-8")
    assert "Less the instrument itself" in page
    assert ENTRY["id"] in page


def test_none_at_hand_is_noted_and_old_directories_are_left_alone(tmp_path: Path) -> None:
    assert note(judged(tmp_path / "a", [])).grade == Grade.NOTE
    assert note(judged(tmp_path / "b", None)).grade == Grade.NOT_LOOKED_AT


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(ENTRY)), inner, max_size=5)
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_manifest_breaks_reading(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(ENTRY)))
    broken = {**ENTRY, key: data.draw(json_values)}
    constant = {
        **ENTRY["corrections"][0],
        data.draw(st.sampled_from(sorted(ENTRY["corrections"][0]))): data.draw(json_values),
    }
    found = citations(
        {"calibrations": [broken, {**ENTRY, "corrections": [constant]}, data.draw(json_values)]}
    )
    assert found is not None
    for citation in found:
        for one in citation.constants:
            assert one.uncertainty_ns >= 0
