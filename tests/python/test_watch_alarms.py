"""Alarms of a watched contract: each promise once when it breaks, once when it is kept, however many they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from wiregauge.streams import PromiseResult
from wiregauge.watching.alarms import PromiseAlarms


def second(results: list[Literal["pass", "fail", "undecided"]]) -> Any:
    """A second in which each of so many promises had this result."""
    promises = [
        PromiseResult(f"VL {n}", "loss", "at-most", 0, "0", "frames", 1, 1, None, None, result, "")
        for n, result in enumerate(results)
    ]
    return SimpleNamespace(promises=promises)


@pytest.mark.parametrize("count", [3, 1500])
def test_promises_that_stay_broken_raise_one_alarm_each(count: int) -> None:
    alarms = PromiseAlarms()
    assert len(list(alarms.look(second(["fail"] * count), 1))) == count
    for at in (2, 3):
        assert not list(alarms.look(second(["fail"] * count), at)), "nothing began, nothing ended"
    assert (alarms.raised, alarms.active) == (count, count)
    assert len(alarms.broken()) == min(count, 1000)
    assert not list(alarms.look(second(["undecided"] * count), 4))
    ended = list(alarms.look(second(["pass"] * count), 5))
    assert [(one.begin_s, one.end_s) for one in ended] == [(1, 5)] * count
    assert alarms.active == 0
