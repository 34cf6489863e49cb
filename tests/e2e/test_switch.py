"""`wiregauge switch` on real frames: a kernel bridge to a data sheet, and a stop that keeps what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from support import SECONDS, Runner, interfaces_and_spaces


def test_a_bridge_is_characterised(wiregauge: Runner, tmp_path: Path) -> None:
    """How much this machine offers depends on its load; that what it says is consistent does not."""
    before = interfaces_and_spaces()
    done = wiregauge(
        "switch",
        "--bench",
        "netns",
        "--ports",
        "3",
        "--frame-sizes",
        "1518",
        "--tests",
        "latency,buffer",
        "--out",
        "s",
        timeout=3 * SECONDS,
    )
    assert done.code in (0, 4), done.err
    assert interfaces_and_spaces() == before
    sheet = json.loads((tmp_path / "s" / "datasheet.json").read_text())
    assert (sheet["bench"], sheet["state"], sheet["ports"]) == ("netns", "complete", 3)
    tests = {one["name"]: one for one in sheet["tests"]}
    assert list(tests) == ["throughput", "latency", "buffer"]
    (row,) = tests["throughput"]["rows"]
    lines = [json.loads(line) for line in (tmp_path / "s" / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == sheet["trials"]
    clean = [one for one in lines if one["test"] == "throughput" and not one["outcome"]["refused"]]
    if row["lower"] is None:
        assert done.code == 4
        assert not [one for one in clean if one["trial"]["seconds"] >= 1 and not lost(one)]
    else:
        at_lower = [
            one for one in clean if one["trial"]["streams"][0]["load_ppm"] == round(row["lower"] * 1e4)
        ]
        assert len([one for one in at_lower if one["trial"]["seconds"] >= 1]) >= 2
        assert not any(lost(one) for one in at_lower if one["trial"]["seconds"] >= 1)
    for one in lines:
        # Each is an ordinary run directory, with its own grade.
        assert (tmp_path / "s" / "trials" / one["outcome"]["directory"] / "measures.json").exists()
    assert (tmp_path / "s" / "report.html").exists()


def lost(line: dict[str, dict[str, list[dict[str, int]]]]) -> int:
    """Frames that a trial lost."""
    return sum(one["lost"] for one in line["outcome"]["streams"])
