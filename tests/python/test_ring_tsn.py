"""A ring of thirty switches with replication, gates and PTP: whichever ring link is cut, no message is lost or late."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import trial
from wiregauge.measures import RunResult
from wiregauge.measures.flow_measures import ELIMINATION

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/ring-tsn.xml"
SWITCHES = 30


def with_cut(cut: int) -> str:
    """The example, another link of its ring cut."""
    text = EXAMPLE.read_text(encoding="utf-8")
    stated = '<cut link="r3 r4"'
    assert stated in text
    return text.replace(stated, f'<cut link="r{cut} r{cut % SWITCHES + 1}"')


def early(text: str) -> str:
    """The cut soon after the start: what is lost can be judged, clocks are still apart."""
    for stated, earlier in (
        ('warm-up="60s"', 'warm-up="1s"'),
        ('from="62s" until="64s"', 'from="3s" until="5s"'),
    ):
        assert stated in text
        text = text.replace(stated, earlier)
    return text


def judged(text: str, place: Path) -> RunResult:
    """The only run of a test."""
    file = place / "ring.xml"
    file.write_text(text, encoding="utf-8")
    [run] = trial(file, place / "run").runs
    return run


def assert_felt(run: RunResult) -> None:
    """The cut is on one way or the other of flow 1: two seconds of copies are missing."""
    counted = next(flow for flow in run.flows if flow.plan.id == 1)[ELIMINATION]
    assert 1900 <= counted["passed"] - counted["discarded"] <= 2100


@pytest.mark.thorough
@pytest.mark.parametrize("cut", range(1, SWITCHES + 1))
def test_nothing_is_lost_whichever_link_is_cut(cut: int, tmp_path: Path) -> None:
    run = judged(with_cut(cut), tmp_path)
    assert [result.subject for result in run.limits if not result.holds] == []
    assert_felt(run)


@pytest.mark.parametrize("cut", [8, 30])
def test_nothing_is_lost_while_clocks_are_still_apart(cut: int, tmp_path: Path) -> None:
    run = judged(early(with_cut(cut)), tmp_path)
    assert {result.flow: result.holds for result in run.limits if result.measure == "lost"} == {
        1: True,
        2: True,
    }
    assert_felt(run)


def test_without_the_other_way_round_messages_are_lost(tmp_path: Path) -> None:
    """The judge can fail: with one path the cut takes two seconds of messages."""
    lines = early(EXAMPLE.read_text(encoding="utf-8")).splitlines()
    kept = [line for line in lines if "<frer" not in line and "</frer" not in line]
    one_way = [line for line in kept if '<path via="r1 r30' not in line and '<path via="r8 r7' not in line]
    assert len(one_way) == len(kept) - 2
    run = judged("\n".join(one_way), tmp_path)
    lost = {result.flow: result.holds for result in run.limits if result.measure == "lost"}
    assert lost == {1: False, 2: True}
