"""Bounded parts of the lab's campaigns; `make nightly` runs all of them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns import lab_faults, steady

from lab_support import World


def test_two_labs_side_by_side_survive_their_faults() -> None:
    kinds = {"agent killed", "host booted anew", "network under test flaps"}
    chosen = [one for one in lab_faults.faults(len(lab_faults.WAYS), 3) if one.way in kinds]
    campaign = lab_faults.Campaign(chosen)
    campaign.run(2)
    assert [(one.way, one.problems) for one in campaign.done if one.problems] == []
    assert {one.way for one in campaign.done} == kinds


def test_faults_are_those_of_their_seed_and_every_kind_is_among_them() -> None:
    assert lab_faults.faults(200, 5) == lab_faults.faults(200, 5)
    assert lab_faults.faults(152, 5) == lab_faults.faults(200, 5)[:152], "one can be repeated by its number"
    assert {one.way for one in lab_faults.faults(200, 5)} == set(lab_faults.WAYS)


def test_a_short_run_is_watched_and_steady(tmp_path: Path) -> None:
    world = World(tmp_path, {"alpha": "", "beta": ""})
    try:
        world.enrol_all()
        courses, trouble = steady.measured(world, 1_000, 8.0, 0.25)
    finally:
        world.close()
    assert trouble == ""
    assert {one.name for one in courses} == {"testmaster", "agent of alpha", "agent of beta"}
    for one in courses:
        # Seconds say nothing of a leak, but everything of files and threads that are opened again and again.
        assert one.readings >= steady.LEAST_READINGS, one.line()
        assert not [problem for problem in one.problems if "memory" not in problem], one.line()
