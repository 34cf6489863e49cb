"""One network on several threads: what is written and reported is the same, byte for byte, for every example."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from test_plan import EXAMPLES, compiled
from wiregauge import _native

THREADS = (2, 3, 8)
MOST_MESSAGES = 20_000
"""Of larger runs, the beginning is simulated."""
DIVIDED_AT_LEAST = 15
"""Examples, at least, whose networks can be divided: those without load, clocks, incidents and captures."""


def shortened(run: dict[str, Any]) -> dict[str, Any]:
    """The run with at most so many messages in all."""
    messages = sum(send["count"] for send in run["sends"])
    if messages <= MOST_MESSAGES:
        return run
    sends = [send | {"count": max(1, send["count"] * MOST_MESSAGES // messages)} for send in run["sends"]]
    return run | {"sends": sends}


def simulated(test: Path, spool: Path, threads: int) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All files of the spool by name, and the report."""
    plan = json.loads(compiled(test))
    run = shortened(plan["runs"][0])
    report = _native.simulate_run(json.dumps(plan["network"]), json.dumps(run), spool, None, threads)
    files = {str(path.relative_to(spool)): path.read_bytes() for path in spool.rglob("*") if path.is_file()}
    return files, json.loads(report)


@cache
def stages(test: Path) -> int:
    plan = json.loads(compiled(test))
    return _native.count_stages(json.dumps(plan["network"]), json.dumps(plan["runs"][0]), max(THREADS))


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda path: path.stem)
def test_any_number_of_threads_gives_the_same_bytes(test: Path, tmp_path: Path) -> None:
    if stages(test) == 1:
        return  # Its network cannot be divided: there is but one way to simulate it.
    files, report = simulated(test, tmp_path / "one", 1)
    assert files
    for threads in THREADS:
        others, told = simulated(test, tmp_path / str(threads), threads)
        assert sorted(others) == sorted(files)
        assert [name for name in files if others[name] != files[name]] == [], threads
        assert told == report, threads


def test_enough_examples_can_be_divided() -> None:
    assert sum(stages(test) > 1 for test in EXAMPLES) >= DIVIDED_AT_LEAST
