"""What a replay says where there was nothing to compare."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from wiregauge.replay.playing import Compared, _missing
from wiregauge.replay.text import _compared


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
    ],
)
def test_what_a_replay_could_not_know_is_told(kinds: list[str], whole: bool, dropped: int, told: str) -> None:
    entry: dict[str, Any] = {"network": {"records_dropped": dropped}}
    said = _missing(entry, pl.DataFrame({"kind": kinds}), whole=whole, until_ns=1e6)
    assert told in said
    assert bool(told) == bool(said)
