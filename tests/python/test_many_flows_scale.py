"""What judging and comparing cost grows with the flows and no faster: calls are counted, no clock is read."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pytest
from msgspec import Struct

from simulation import trial
from wiregauge import results
from wiregauge.measures import comparing, large
from wiregauge.stats import many

ROOT = Path(__file__).resolve().parents[2]
FEW, TWICE = 100, 200
T = TypeVar("T")


@pytest.fixture(scope="module", autouse=True)
def _few_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY", 50)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, _few_are_many: None) -> dict[int, Path]:
    """Run directories of the example with so many flows."""
    spec = importlib.util.spec_from_file_location("large_network", ROOT / "examples" / "large_network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for flows in (FEW, TWICE):
        place = tmp_path_factory.mktemp(f"flows{flows}")
        module.large_network(20, 4, flows, duration="130ms").write(place / "t.xml")
        trial(place / "t.xml", place / "run")
        found[flows] = place / "run"
    return found


class Spent(Struct):
    """Calls of Python functions, and those that cost the same for one row as for thousands, by name."""

    calls: int
    queries: int
    memories: int


def spent(work: Callable[[], T]) -> tuple[T, Spent]:
    """What work gives, and what it took."""
    count: Counter[str] = Counter()
    made = {many.memories_of.__code__: "memories"}
    made |= {
        method.__code__: "queries"
        for method in (_code(pl.LazyFrame.collect), _code(pl.DataFrame.select), _code(pl.DataFrame.filter))
    }

    def seen(frame: Any, event: str, _: object) -> None:
        if event == "call":
            count["calls"] += 1
            count[made.get(frame.f_code, "")] += 1

    sys.setprofile(seen)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return result, Spent(count["calls"], count["queries"], count["memories"])


def _code(method: Any) -> Any:
    """The function below what decorators put around it."""
    while hasattr(method, "__wrapped__"):
        method = method.__wrapped__
    return method


def test_twice_the_flows_take_twice_the_calls_and_no_more_queries(runs: dict[int, Path]) -> None:
    """A query or a call of NumPy for every flow would show at once."""
    results.judge(runs[FEW])
    _, few = spent(lambda: results.judge(runs[FEW]))
    judged, twice = spent(lambda: results.judge(runs[TWICE]))
    assert len(judged.runs[0].flows) == TWICE
    assert few.queries > 0
    assert twice.queries <= few.queries + 10
    # Series of one length are asked together: with more flows there are a few more lengths.
    assert 0 < twice.memories <= 1.5 * few.memories
    assert twice.calls <= 2.4 * few.calls


def test_comparing_takes_twice_the_calls_for_twice_the_flows(
    runs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = {flows: results.judge(place) for flows, place in runs.items()}
    monkeypatch.setitem(comparing.compare.__globals__, "MOST_OF_EACH", 2)
    comparing.compare(sides[FEW], sides[FEW])
    _, few = spent(lambda: comparing.compare(sides[FEW], sides[FEW]))
    found, twice = spent(lambda: comparing.compare(sides[TWICE], sides[TWICE]))
    assert twice.calls <= 2.4 * few.calls
    assert len(found.flows) == TWICE
    assert 0 < len(found.in_full.flows) <= 8
