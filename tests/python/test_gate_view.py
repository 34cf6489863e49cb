"""Gates and windows on the timeline: against a timer that walks instant by instant, and in the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulation import trial
from wiregauge import results
from wiregauge.figures.model import Figure, Spans
from wiregauge.figures.views import view_figures
from wiregauge.measures.metrics.gate_course import GateCourse
from wiregauge.measures.metrics.gate_lists import gate_states
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.plan.tsn import GateEntry, PortSchedule
from wiregauge.results.gate_view import MOST_OPENINGS
from wiregauge.results.views import views

ROOT = Path(__file__).resolve().parents[2]


def walked(lists: list[PortSchedule], begin: int, end: int) -> list[tuple[int, ...]]:
    """The cycle timer state machine of IEEE Std 802.1Q-2022, 8.6.9.1, one instant after the other."""
    number, began = 0, lists[0].base_time
    while began > begin - 100:
        began -= lists[0].cycle
    seen = []
    # What comes before `begin` is walked too: an extended cycle may last into it.
    for now in range(began, end):
        change = lists[number + 1].base_time if number + 1 < len(lists) else None
        if now == change:
            number, began = number + 1, now
        elif now == began + lists[number].cycle and (
            change is None or change > now + lists[number].cycle_extension
        ):
            began = now
        into, held = now - began, lists[number].entries[-1].open
        for entry in lists[number].entries:
            if into < entry.length:
                held = entry.open
                break
            into -= entry.length
        if now >= begin:
            seen.append(held)
    return seen


def scheduled(lists: list[tuple[int, int, list[tuple[int, int]]]]) -> list[PortSchedule]:
    """Lists: how long each begins after the one before, its cycle time extension, gates and length of its entries."""
    base, schedules = -20, []
    for after, extension, entries in lists:
        base += after
        of_entries = tuple(
            GateEntry(open=tuple(k for k in range(2) if mask >> k & 1), length=long) for mask, long in entries
        )
        schedules.append(PortSchedule(base_time=base, cycle_extension=extension, entries=of_entries))
    return schedules


ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), min_size=1, max_size=4)


@given(
    lists=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 12), ENTRIES), min_size=1, max_size=3),
    begin=st.integers(-40, 120),
    length=st.integers(1, 150),
)
def test_gates_are_as_the_cycle_timer_walks_them(
    lists: list[tuple[int, int, list[tuple[int, int]]]], begin: int, length: int
) -> None:
    schedules = scheduled(lists)
    states = list(gate_states(schedules, begin, begin + length))
    assert [state[0] for state in states] == [begin, *(state[1] for state in states[:-1])]
    assert states[-1][1] == begin + length
    spread = [classes for start, stop, classes in states for _ in range(start, stop)]
    assert spread == walked(schedules, begin, begin + length)


@given(
    lists=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 12), ENTRIES), min_size=1, max_size=3),
    traffic_class=st.integers(0, 1),
)
def test_gates_of_many_instants_are_as_the_cycle_timer_walks_them(
    lists: list[tuple[int, int, list[tuple[int, int]]]], traffic_class: int
) -> None:
    schedules, begin, end = scheduled(lists), -60, 240
    # Longer than any cycle beyond the last list's beginning, so that a gate that closes again does so in sight.
    opens = [traffic_class in classes for classes in walked(schedules, begin, end + 40)]
    closings = [begin + at for at in range(1, len(opens)) if opens[at - 1] and not opens[at]]
    instants = np.arange(begin, end, dtype=np.int64)
    course = GateCourse(schedules, traffic_class)
    assert course.is_open(instants).tolist() == opens[: len(instants)]
    never = np.iinfo(np.int64).max
    expected = [next((at for at in closings if at > now), never) for now in instants.tolist()]
    assert course.next_closing(instants).tolist() == expected


def frames_figure(judged: Judgement) -> Figure:
    return next(figure for figure in view_figures(judged, views(judged)) if figure.id == "frames")


def test_the_gates_of_a_switch_are_drawn_in_its_lane(tmp_path: Path) -> None:
    text = (
        (ROOT / "examples/gates.xml").read_text(encoding="utf-8").replace('duration="1s"', 'duration="10ms"')
    )
    file = tmp_path / "t.xml"
    file.write_text(text, encoding="utf-8")
    directory = trial(file, tmp_path / "run").directory
    judged = results.judge(directory)
    window = views(judged).windows[0]
    opens = {
        (window.lanes[one.lane], one.classes): one.start % 500_000
        for one in window.openings
        if one.classes == (1,)
    }
    assert opens == {("sw1:3", (1,)): 20_000.0, ("sw2:3", (1,)): 40_000.0}
    # The message begins within the opening of its class, at both switches.
    for bar in window.frames:
        held = [one for one in window.openings if one.lane == bar.lane and one.start <= bar.start < one.end]
        assert [one.classes for one in held] in ([], [(1,)])
    names = {trace.name for trace in frames_figure(judged).panels[0].traces if isinstance(trace, Spans)}
    assert {"gates open: 0", "gates open: 1"} <= names


def test_gates_that_change_too_often_are_named_and_not_drawn(tmp_path: Path) -> None:
    text = (
        (ROOT / "examples/gates.xml").read_text(encoding="utf-8").replace('duration="1s"', 'duration="10ms"')
    )
    for old, new in (
        ('<gate-entry open="1" for="40us"/>', '<gate-entry open="0 1" for="50ns"/>'),
        ('<gate-entry open="0" for="460us"/>', '<gate-entry open="0 1" for="50ns"/>'),
        ('cycle-time="500us"', 'cycle-time="100ns"'),
    ):
        text = text.replace(old, new)
    file = tmp_path / "t.xml"
    file.write_text(text, encoding="utf-8")
    judged = results.judge(trial(file, tmp_path / "run").directory)
    window = views(judged).windows[0]
    assert window.crowded == ("sw1:3", "sw2:3")
    assert not window.openings
    assert f"more than {MOST_OPENINGS} changes" in " ".join(frames_figure(judged).notes)
