"""What a replay says where there was nothing to compare."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from wiregauge.records.reported import AgentReport, Intake, OverlongFrames
from wiregauge.replay.playing import Compared, _missing, _releases, _unentered
from wiregauge.replay.text import _compared, _interval


@pytest.mark.parametrize(
    ("run", "differing", "told"),
    [(0, 0, "nothing to compare"), (5, 0, "equal"), (5, 2, "2 DIFFER"), (0, 2, "2 DIFFER")],
)
def test_nothing_is_not_equal(run: int, differing: int, told: str) -> None:
    (line, *_) = _compared("decisions", "record", Compared(run, differing, ()))
    assert line.endswith(told), line


@pytest.mark.parametrize(
    ("kinds", "whole", "dropped", "told"),
    [
        (["entered", "left", "ended"], True, 0, ""),
        (["ended"], True, 0, "no frame came from a host"),
        (["left"], False, 0, "no frame came from a host"),
        (["entered"], False, 0, "is stored up to"),
        (["entered", "ended"], True, 3, "lost 3 of its records"),
        (["entered", "ended"], True, None, "how many frames and records it lost is unknown"),
    ],
)
def test_what_a_replay_could_not_know_is_told(
    kinds: list[str], whole: bool, dropped: int | None, told: str
) -> None:
    network = AgentReport(records_dropped=dropped) if dropped is not None else None
    said = _missing(network, pl.DataFrame({"kind": kinds}), whole=whole, until_ns=1e6)
    assert told in said
    assert bool(told) == bool(said)


def test_release_errors_of_a_replay_have_intervals_and_none_where_frames_are_few() -> None:
    def of(count: int) -> Any:
        late = {
            "late": [1_000 * (number * 1_237 % count) for number in range(count)],
            "kind": ["left"] * count,
        }
        (found,) = _releases(pl.DataFrame({**late, "node": [0] * count}), ["a"], [0])
        return found

    few, many, none = of(999), of(4_000), of(0)
    assert (few.p999_ns, few.p99_ns, few.max_ns) == (None, 989.0, 998.0)
    assert many.p999_ns == 3_995.0
    low, high = many.intervals_ns["p50"]
    assert low < many.p50_ns < high
    assert "p99.9" not in few.intervals_ns
    assert (none.frames, none.p50_ns, none.max_ns, none.intervals_ns) == (0, None, None, {})
    assert _interval((1e3, 2e3)) == " (95 %: 1.000 µs to 2.000 µs)"
    assert _interval((None, 2e3)) == " (95 %: at most 2.000 µs)"
    assert _interval(None) == ""


def test_frames_that_the_model_never_had_have_a_row_or_a_count_with_their_reason() -> None:
    row = {"time": 5_000_000, "flow": 1, "sequence": 7, "returning": False, "warm_up": False, "length": 68}
    rows = pl.DataFrame([row | {"node": 1, "kind": "no-room"}, row | {"node": 0, "kind": "entered"}])
    network = AgentReport(intake=Intake(lost=9), overlong=(OverlongFrames(frames=3),))
    found = _unentered(network, rows, ["a", "b"])
    assert found.reasons == {"no-room": 1, "too-long": 3, "ring-full": 5}
    assert found.frames == 9
    (one,) = found.rows
    assert (one["node"], one["reason"], one["flow"], one["sequence"]) == ("b", "no-room", 1, 7)
    assert _unentered(AgentReport(intake=Intake()), rows.clear(), ["a", "b"]).frames == 0
