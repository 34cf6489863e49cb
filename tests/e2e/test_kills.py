"""A bounded part of the kill campaign; `make nightly` runs all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns import kills

pytestmark = pytest.mark.alone  # what other tests make on this machine would count as left behind


def test_whatever_is_struck_nothing_is_silent_lost_or_left(thorough: bool) -> None:
    course = kills.undisturbed()
    struck = kills.strikes(6 if thorough else 5, 2)
    for one in struck:
        kills.strike_once(one, course)
    assert [(one.target, one.how, one.at, one.faults) for one in struck if one.faults] == []


def test_strikes_are_those_of_their_seed_and_meet_every_target() -> None:
    assert kills.strikes(100, 5) == kills.strikes(100, 5)
    assert {(one.target, one.how) for one in kills.strikes(100, 5)} == set(kills.TARGETS)
