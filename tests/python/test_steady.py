"""What the steady run makes of its readings: planted leaks are found, and what varies is none."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("grpc")

from campaigns import steady
from campaigns.steady import Reading, course

PLANNED_S = 600.0


def readings(
    leak_kib_per_s: float = 0.0, files_at: float | None = None, noise_kib: float = 500.0
) -> list[Reading]:
    draw = random.Random(1)
    return [
        Reading(
            at,
            int(40_000 + leak_kib_per_s * at + noise_kib * draw.random()),
            60_000,
            20 + draw.randrange(3) + (5 if files_at is not None and at > files_at else 0),
            9,
        )
        for at in (5.0 * step for step in range(120))
    ]


def test_what_varies_is_flat() -> None:
    flat = course("agent", readings(), PLANNED_S)
    assert flat.problems == ()
    assert flat.line().endswith(": flat")


def test_a_leak_is_found_and_so_is_one_that_only_readings_at_the_start_hide() -> None:
    leaking = course("agent", readings(leak_kib_per_s=10.0), PLANNED_S)
    (problem,) = leaking.problems
    assert problem.startswith("its memory grows: 5")
    assert leaking.slope_kib_per_hour == pytest.approx(36_000, rel=0.02)
    # Ten times as much in the first seconds, and nothing after: preparing, no leak.
    begun = [Reading(0.0, 4_000, 0, 3, 1), *readings()[1:]]
    assert course("agent", begun, PLANNED_S).problems == ()


def test_one_large_reading_is_no_leak() -> None:
    some = readings()
    some[-1] = Reading(some[-1].at_s, 400_000, 0, 20, 9)
    assert course("agent", some, PLANNED_S).problems == ()


def test_files_that_stay_open_are_found() -> None:
    (problem,) = course("agent", readings(files_at=300.0), PLANNED_S).problems
    assert problem == "its open files grow: 22 at most in the first third, 25 at least in the last"


def test_too_few_readings_say_nothing() -> None:
    (problem,) = course("agent", readings()[:15], PLANNED_S).problems
    assert problem.startswith("3 readings, which say nothing")


def test_this_process_can_be_read() -> None:
    before = steady.read(os.getpid(), time.monotonic())
    with Path(__file__).open("rb"):
        after = steady.read(os.getpid(), time.monotonic())
    assert before is not None
    assert after is not None
    assert after.files == before.files + 1
    assert steady.read(2**22 + 1, 0.0) is None
