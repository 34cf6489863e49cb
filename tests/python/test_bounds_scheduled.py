"""Bounds of time-triggered flows: what messages wait for their dispatch, and what windows make of the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from bound_judge import worst
from bound_networks import scheduled_alone
from simulation import simulate, written
from wiregauge import bounds

US = 1_000_000
FRAME = 8 * (8 + 100 + 18) * 10_000
"""From the first bit of a frame of 100 B to its last at 100 Mbit/s, ps."""


def text(
    *,
    of_a: str = "",
    of_z: str = "",
    switch: str = "",
    flow: str = "",
    send: str = "",
    more: str = "",
    tasks: str = "",
) -> str:
    """Flow 1 from `a` to `z` over two switches, dispatched at 500 us of each 2 ms; `b` sends others by the same way."""
    kind = f'kind="mixed-criticality" delay="3us" {switch}'
    network = (
        f'<end-system name="a">{of_a}</end-system><end-system name="b"/><end-system name="z">{of_z}</end-system>'
        f'<switch name="s" {kind}/><switch name="r" {kind}/>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/>'
        '<link between="s r" rate="100Mbit/s"/><link between="r z" rate="100Mbit/s"/>'
    )
    flows = f'<flow id="1" protocol="tt" from="a" to="z" period="2ms" offset="500us" {flow}/>{more}'
    sends = f'<send flow="1" period="2ms" payload="100B" {send}/><receive flow="1"/>{tasks}'
    return written(network, flows, sends, attributes='duration="100ms"')


def bounded(place: Path, source: str) -> tuple[bounds.Answer, int | None]:
    """The answer, and the bound of flow 1 in ps."""
    file = place / "t.xml"
    file.write_text(source, encoding="utf-8")
    answer = bounds.bound(bounds.read(file))
    (target,) = next(flow for flow in answer.flows if flow.flow == "1").targets
    return answer, None if target.delay is None else round(target.delay * 1e12)


def simulated(place: Path, source: str) -> int:
    return worst(simulate(source, place / "run"))["1", "z"]


WAY = 3 * FRAME + 2 * 3 * US


@pytest.mark.parametrize(
    ("send", "waits"),
    [
        ('cycle-offset="dispatch"', 0),
        ('cycle-offset="470us"', 30),
        ('cycle-offset="501us"', 1999),
        # The warm-up is a whole number of periods.
        ('offset="100us"', 400),
    ],
)
def test_an_application_on_the_cycle_waits_as_long_as_its_place_in_it_says(
    send: str, waits: int, tmp_path: Path
) -> None:
    source = text(send=send)
    _, bound = bounded(tmp_path, source)
    assert bound == waits * US + WAY
    assert simulated(tmp_path, source) == bound


def test_a_sender_of_another_period_has_its_messages_at_several_places_of_the_cycle(tmp_path: Path) -> None:
    """Made each 3 ms for a cycle of 2: at 100 us of it, and at 1100 for the dispatch at 500 us of the next."""
    source = text(send='offset="100us"').replace('period="2ms" payload', 'period="3ms" payload')
    _, bound = bounded(tmp_path, source)
    assert bound == 1400 * US + WAY
    assert simulated(tmp_path, source) == bound


def test_what_a_host_takes_is_released_before_and_waits_where_it_took_less(tmp_path: Path) -> None:
    """The wake-up may take nothing: then the message waits for what it may have taken."""
    costs = '<host transmit="7us" transmit-per-byte="10ns" send-wake-up="0%:0ns 50%:40us 100%:90us"/>'
    source = text(of_a=costs, send='cycle-offset="dispatch"')
    answer, bound = bounded(tmp_path, source)
    # Handed over in 7 us and 10 ns for each of 118 B; released 90 us before that.
    assert bound == (90 + 7) * US + 1_180_000 + WAY
    found = simulated(tmp_path, source)
    assert bound - 5 * US < found <= bound
    assert not [note for note in answer.notes if "may drop" in note]


def test_a_message_that_may_be_late_for_its_dispatch_waits_for_a_period(tmp_path: Path) -> None:
    costs = '<host send-wake-up="0%:0ns 100%:90us"/>'
    source = text(of_a=costs, send='cycle-offset="440us"')
    answer, bound = bounded(tmp_path, source)
    assert bound == 2000 * US + WAY
    assert any("may miss its dispatch" in note for note in answer.notes)
    assert bound - 40 * US < simulated(tmp_path, source) <= bound


BULK = '<flow id="2" protocol="be" from="b" to="z"/>'
SENDS = '<send flow="2" period="{period}" payload="1400B" {offset}/><receive flow="2"/>'
LONGEST = 8 * (1400 + 28 + 18 + 20) * 10_000
"""A frame of bulk on the line, ps."""


def test_under_timely_block_nothing_else_is_ever_in_the_way(tmp_path: Path) -> None:
    tasks = SENDS.format(period="230us", offset="")
    source = text(send='cycle-offset="dispatch"', more=BULK, tasks=tasks, switch='integration="timely-block"')
    _, bound = bounded(tmp_path, source)
    assert bound == WAY
    assert simulated(tmp_path, source) == bound


@pytest.mark.parametrize(
    ("integration", "held_up"), [("shuffling", LONGEST), ("preemption", 8 * 20 * 10_000)]
)
def test_frames_are_held_up_at_their_windows_by_what_may_be_on_the_line(
    integration: str, held_up: int, tmp_path: Path
) -> None:
    """At each of them: a frame that is late at the first does not wait for the second."""
    tasks = SENDS.format(period="230us", offset="")
    source = text(
        send='cycle-offset="dispatch"', more=BULK, tasks=tasks, switch=f'integration="{integration}"'
    )
    _, bound = bounded(tmp_path, source)
    assert bound == WAY + 2 * held_up
    assert WAY < simulated(tmp_path, source) <= bound


def test_a_window_without_room_for_what_may_be_before_it_has_no_bound(tmp_path: Path) -> None:
    tasks = SENDS.format(period="230us", offset="")
    source = text(
        send='cycle-offset="dispatch"', more=BULK, tasks=tasks, switch='integration="shuffling"'
    ).replace('offset="500us"', 'offset="500us" window="100us"')
    answer, bound = bounded(tmp_path, source)
    assert bound is None
    (note, *_) = [note for note in answer.notes if "the window at port" in note]
    assert "may come too late for it" in note
    # A frame that found the line taken went a period later.
    assert simulated(tmp_path, source) > 2000 * US


def test_a_receiver_that_accepts_for_a_shorter_time_is_told(tmp_path: Path) -> None:
    tasks = SENDS.format(period="230us", offset="")
    source = text(send='cycle-offset="dispatch"', more=BULK, tasks=tasks, switch='integration="shuffling"')
    source = source.replace('offset="500us"', 'offset="500us" late="20us"')
    answer, _ = bounded(tmp_path, source)
    assert any('the acceptance of "z" may drop frames' in note for note in answer.notes)
    assert simulate(source, tmp_path / "run").dropped("out-of-window") > 0


def test_what_the_interface_takes_comes_after_the_dispatch(tmp_path: Path) -> None:
    """It delays frames on the wire, and no message is late for its dispatch by it."""
    source = text(of_a='<host interface-delay="1500ns"/>', send='cycle-offset="dispatch"')
    answer, bound = bounded(tmp_path, source)
    assert bound is not None
    assert not [note for note in answer.notes if "may miss" in note]
    assert simulated(tmp_path, source) <= bound <= WAY + 1_500_000


def test_a_host_that_takes_time_may_read_others_first(tmp_path: Path) -> None:
    """Both flows wait for its processor: the time-triggered one for the other, and that for it."""
    reading = '<host receive="20us"/>'
    tasks = SENDS.format(period="2ms", offset='offset="350us"')
    source = text(of_z=reading, send='cycle-offset="dispatch"', more=BULK, tasks=tasks)
    answer, bound = bounded(tmp_path, source)
    found = worst(simulate(source, tmp_path / "run"))
    assert bound is not None
    assert WAY + 20 * US <= found["1", "z"] <= bound
    assert bound > WAY + 2 * 20 * US
    other = next(flow for flow in answer.flows if flow.flow == "2").targets[0].delay
    assert other is not None
    assert found["2", "z"] <= other * 1e12
    assert other > 1e-12 * 2 * 20 * US


def test_a_frame_that_comes_behind_its_opening_may_find_the_line_taken(tmp_path: Path) -> None:
    """Under timely block a window for which nothing waits is free for all."""
    late = '<host interface-delay="5us"/>'
    source = text(of_a=late, send='cycle-offset="dispatch"')
    assert bounded(tmp_path, source)[1] is None
    wide = source.replace('offset="500us"', 'offset="500us" window="400us"')
    assert bounded(tmp_path, wide)[1] == WAY + 5 * US
    tasks = SENDS.format(period="230us", offset="")
    beside = text(of_a=late, send='cycle-offset="dispatch"', more=BULK, tasks=tasks)
    beside = beside.replace('offset="500us"', 'offset="500us" window="400us"')
    _, bound = bounded(tmp_path, beside)
    assert bound == WAY + 5 * US + 2 * LONGEST
    assert simulated(tmp_path, beside) <= bound


@pytest.mark.parametrize("part", range(2))
def test_bounds_of_applications_on_the_cycle_are_reached(part: int, tmp_path: Path, thorough: bool) -> None:
    """Random ways with nothing else on them: every bound is what is simulated, to the picosecond."""
    for seed in range(part, 200 if thorough else 16, 2):
        source = scheduled_alone(seed)
        file = tmp_path / f"{seed}.xml"
        file.write_text(source, encoding="utf-8")
        seen = worst(simulate(source, tmp_path / f"run-{seed}"))
        for flow in bounds.bound(bounds.read(file)).flows:
            for target in flow.targets:
                assert target.delay is not None
                assert round(target.delay * 1e12) == seen[flow.flow, target.target], (seed, flow.flow)
