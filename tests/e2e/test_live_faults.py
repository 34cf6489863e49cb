"""A bounded part of the campaigns against a network that the model plays; `make nightly` runs all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import COMMAND, Runner, until

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns import kills, live_faults, live_strikes

pytestmark = (
    pytest.mark.alone
)  # every message is to come through; what others make here would count as left behind


def test_every_planted_fault_is_found_and_none_is_invented(tmp_path: Path, thorough: bool) -> None:
    frames = 100_000 if thorough else 8_000
    _, misled = live_faults.run(tmp_path / "r", frames, 3)
    rows = live_faults.compared(tmp_path / "r", frames, misled)
    assert {kind: row[1:] for kind, row in rows.items() if row[1:] != (0, 0)} == {}
    kinds = ("lost", "corrupted", "late", "reordered", "duplicated", "misdirected")
    assert all(rows[kind][0] > frames // 200 for kind in kinds[:-1])
    assert rows["misdirected"][0] == len(misled) > 0
    # Whoever looks for one more, or for one less, is told.
    fewer = live_faults.compared(tmp_path / "r", frames, misled[1:])
    assert fewer["misdirected"] == (len(misled) - 1, 0, 1)


def test_whatever_is_struck_of_a_run_over_the_model_nothing_is_silent_lost_or_left(thorough: bool) -> None:
    course = kills.undisturbed(live_strikes.TEST, live_strikes.WITHIN_S)
    struck = kills.strikes(len(live_strikes.TARGETS) if thorough else 4, 2, live_strikes.TARGETS)
    for one in struck:
        kills.strike_once(one, course, live_strikes.TEST, live_strikes.hit)
    assert [(one.target, one.how, one.at, one.faults) for one in struck if one.faults] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a program of higher priority needs root")
def test_messages_that_a_network_without_a_core_did_not_take_are_unknown(
    tmp_path: Path, wiregauge: Runner
) -> None:
    (tmp_path / "t.xml").write_text(live_strikes.TEST, encoding="utf-8")
    words = [str(COMMAND), "run", "t.xml", "--switches", "model", "--out", str(tmp_path / "r")]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        until(lambda: kills.mine(tmp_path, "serve", "/run/netns/network") != [], "the network", 30)
        (network,) = kills.mine(tmp_path, "serve", "/run/netns/network")
        until(lambda: len(live_strikes.own_cores(network)) == 1, "a thread with a core of its own", 30)
        (core,) = live_strikes.own_cores(network)
        hog = live_strikes.hog(core, 20)
        try:
            process.wait(120)
        finally:
            hog.kill()
            hog.wait()
    (flow,) = wiregauge("show", tmp_path / "r", "--json").json()["runs"][0]["flows"]
    assert flow["unknown"] > 0
    assert flow["lost"] == 0
