"""Sessions with reflectors, from made-up exchanges: directions, times, one-way figures, limits, grades."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.reflectors import Collected, LimitError, Measured, Order, judged, read_limit
from wiregauge.reflectors.directions import directions
from wiregauge.reflectors.exchange import _HEARD
from wiregauge.reflectors.measured import session_schema
from wiregauge.reflectors.session import stored
from wiregauge.reflectors.times import TIMES
from wiregauge.runner.agent_program import agent_program

EPOCH = 1_767_225_600_000_000_000
PERIOD = 1_000_000
THERE, INSIDE, BACK = 40_000, 7_000, 60_000
ORDER = Order("192.0.2.1:862", "stamp", 10, PERIOD, 44, False, "ntp", 0, 0, 1_000_000_000)
SUMMARY: dict[str, Any] = {"complete": True, "clock_error_ns": 2_000, "tai_ahead_ns": 0, "clock_moved_ns": 0}


def exchanged(
    count: int = 10, *, offset: int = 0, answered: set[int] | None = None, **every: Any
) -> Collected:
    """A session in which the reflector's clock is ahead by `offset` ns; `every` are fields of each answer."""
    left = [EPOCH + PERIOD * number for number in range(count)]
    packets = pl.DataFrame(
        {"asked": list(range(count)), "written_ns": left, "due_ns": left, "left_ns": left},
    )
    rows = [
        {
            "asked": number,
            "sequence": number,
            "received_ns": at + THERE + offset,
            "sent_ns": at + THERE + INSIDE + offset,
            "is_ptp": False,
            "error_ns": 1_000,
            "is_synchronised": True,
            "has_session": True,
            "asked_ttl": 252,
            "ttl": 252,
            "traffic_class": 184,
            "arrived_ns": at + THERE + INSIDE + BACK,
            "by_kernel": True,
            **every,
        }
        for number, at in enumerate(left)
        if answered is None or number in answered
    ]
    return Collected(packets, pl.DataFrame(rows, schema=_HEARD, orient="row"), SUMMARY)


def with_answer(collected: Collected, number: int, **changed: int) -> Collected:
    """The session with other values in the answer to one packet."""
    rows = collected.answers.to_dicts()
    rows[number] |= changed
    return Collected(collected.packets, pl.DataFrame(rows, schema=_HEARD, orient="row"), collected.summary)


def told(collected: Collected, *limits: str) -> Measured:
    measured = judged(ORDER, collected, [read_limit(text) for text in limits])
    Draft202012Validator(session_schema()).validate(msgspec.to_builtins(measured))
    return measured


def test_the_turnaround_is_no_part_of_the_network_and_one_way_times_have_their_uncertainty() -> None:
    measured = told(exchanged())
    assert measured.validity == "VALID", measured.reasons
    found = {
        name: (series.min, series.max, series.uncertainty_ns) for name, series in measured.series.items()
    }
    assert found == {
        "network": (THERE + BACK, THERE + BACK, None),
        "rtt": (THERE + INSIDE + BACK,) * 2 + (None,),
        "turnaround": (INSIDE, INSIDE, None),
        "latency": (THERE, THERE, 3_000.0),
        "return_latency": (BACK, BACK, 3_000.0),
    }
    assert (measured.hops, measured.classes) == ([3], [46])
    assert set(TIMES) <= set(DEFINITIONS), "a name has one meaning"


@pytest.mark.parametrize(
    ("every", "summary", "reason"),
    [
        ({"is_synchronised": False}, {}, "the reflector states that its clock is not synchronised"),
        ({"error_ns": None}, {}, "states no error"),
        ({}, {"clock_error_ns": None}, "this host's clock is not synchronised"),
        ({"is_ptp": True}, {}, "TAI"),
    ],
)
def test_clocks_that_nobody_compared_give_no_one_way_time(
    every: dict[str, Any], summary: dict[str, Any], reason: str
) -> None:
    made = exchanged(**every)
    measured = told(Collected(made.packets, made.answers, SUMMARY | summary), "latency.max <= 1ms")
    assert reason in measured.series["latency"].reason
    assert measured.series["network"].max == THERE + BACK
    assert measured.verdict == "UNDECIDED"
    assert reason in measured.limits[0].reason


def test_a_clock_that_contradicts_its_own_error_gives_no_one_way_time() -> None:
    measured = told(exchanged(offset=-5_000_000))
    assert "the clocks differ by 4.960 ms at least" in measured.series["latency"].reason


def test_ptp_times_are_tai() -> None:
    made = exchanged(offset=37_000_000_000, is_ptp=True)
    measured = told(Collected(made.packets, made.answers, SUMMARY | {"tai_ahead_ns": 37_000_000_000}))
    assert measured.series["latency"].max == THERE


def test_a_reflector_whose_clock_is_set_is_found() -> None:
    """Between two packets: a step. Between its two times of one packet: no time of that answer is used."""
    made = exchanged()
    for number in range(5, 10):
        row = made.answers.row(number, named=True)
        made = with_answer(
            made,
            number,
            received_ns=row["received_ns"] + 900_000,
            sent_ns=row["sent_ns"] + 900_000,
        )
    measured = told(made)
    assert any(
        "one clock was set against the other 1 times, by up to 900.0 µs" in one for one in measured.reasons
    )
    assert measured.series["latency"].reason == "one of the clocks was set"
    assert measured.series["network"].max == THERE + BACK
    for wrong in (-1_000_000, 5_000_000):
        inside = told(with_answer(exchanged(), 3, sent_ns=EPOCH + 3 * PERIOD + THERE + wrong))
        assert (inside.counts.unusable, inside.series["network"].n, inside.series["rtt"].n) == (1, 9, 10)
        assert inside.validity == "DEGRADED"


def test_silence_is_no_answer_and_its_cause_is_named() -> None:
    made = exchanged(answered=set())
    for summary, cause in (
        ({}, "nobody reflects there"),
        ({"port_unreachable": 9}, "nobody listens on that port"),
        ({"unreachable": 9}, "cannot be reached"),
        ({"not_authentic": 10, "port_unreachable": 1}, "wrong hash"),
        ({"too_short": 10}, "too short"),
    ):
        measured = told(Collected(made.packets, made.answers, SUMMARY | summary), "lost <= 100")
        assert (measured.validity, measured.verdict) == ("INVALID", "UNDECIDED")
        assert cause in measured.reasons[0]
        assert measured.series["rtt"].n == 0


def test_what_is_no_answer_is_counted_and_said() -> None:
    made = exchanged()
    measured = told(Collected(made.packets, made.answers, SUMMARY | {"not_authentic": 2, "not_asked": 1}))
    assert measured.validity == "DEGRADED"
    assert (
        measured.ignored["not_authentic"],
        measured.ignored["not_asked"],
        measured.ignored["foreign"],
    ) == (2, 1, 0)
    assert measured.series["rtt"].n == 10


def test_limits_pass_fail_or_stay_undecided() -> None:
    limits = {
        "network.max <= 100us": "pass",
        "network.max <= 99us": "fail",
        "rtt.min >= 107us": "pass",
        "latency.max <= 38us": "undecided",
        "latency.max <= 36us": "fail",
        "network.p99 <= 1s": "undecided",
        "lost <= 1": "pass",
        "lost <= 0": "fail",
        "lost_forward <= 0": "undecided",
        "duplicated <= 0": "pass",
    }
    measured = told(exchanged(answered=set(range(10)) - {4}), *limits)
    assert [one.result for one in measured.limits] == list(limits.values())
    assert measured.verdict == "FAIL"
    for wrong in ("rtt", "rtt.p42 <= 1ms", "lost <= 1ms", "rtt.max <= 5", "rtt.max < 5ms", "rtt.sd <= -1ms"):
        with pytest.raises(LimitError, match=r"write|there are"):
            read_limit(wrong)


@given(st.data())
def test_a_reflector_that_counts_tells_the_directions(data: st.DataObject) -> None:
    """Packets are lost or doubled there, answers back; the last one comes, so that both counts are at their end."""
    count = data.draw(st.integers(2, 30))
    fates = st.lists(st.sampled_from((0, 1, 1, 1, 2)), min_size=count - 1, max_size=count - 1)
    there, back = data.draw(fates), data.draw(fates)
    asked: list[int] = []
    numbers: list[int] = []
    number = 0
    for packet, (copies, returned) in enumerate(zip([*there, 1], [*back, 1], strict=True)):
        for _ in range(copies):
            asked += [packet] * returned
            numbers += [number] * returned
            number += 1
    found = directions(count, np.array(asked), np.array(numbers))
    lost = sum(copies == 0 for copies in there)
    unanswered = count - len(set(asked))
    if found.numbering == "as-sent":
        assert found.lost in ((0, 0), (None, None))
        assert (found.lost == (0, 0)) == (unanswered == 0)
        return
    assert found.numbering == "own"
    # Copies whose answers were all lost cannot be told from packets: they move a loss from there to back.
    unseen = sum(copies == 2 and returned == 0 for copies, returned in zip(there, back, strict=True))
    if unseen == 0 and min(numbers) <= min(asked):
        assert found.lost == (lost, unanswered - lost)
        assert found.duplicated[0] == sum(
            copies == 2 and returned > 0 for copies, returned in zip(there, back, strict=True)
        )
    assert found.reordered == (0, 0)


def test_numbers_that_are_the_packets_own_or_begin_anew_tell_no_direction() -> None:
    copied = np.array([0, 1, 3, 4])
    assert directions(5, copied, copied).lost == (None, None)
    assert directions(5, np.arange(5), np.arange(5)).lost == (0, 0)
    anew = directions(5, np.array([0, 1, 2, 4]), np.array([0, 1, 0, 1]))
    assert (anew.numbering, anew.lost) == ("restarted", (None, None))
    tail = directions(6, np.array([0, 2, 3]), np.array([0, 1, 2]))
    assert (tail.numbering, tail.lost) == ("own", (None, None)), "behind the last answer nothing is known"


def test_order_is_told_for_both_ways() -> None:
    there = directions(4, np.array([0, 2, 1, 3]), np.array([0, 1, 2, 3]))
    assert there.reordered == (1, 0)
    # The reflector missed packet 0; the answers to 2 and 3 change places on their way back.
    back = directions(4, np.array([1, 3, 2]), np.array([0, 2, 1]))
    assert back.reordered == (0, 1)


def test_numbers_that_did_not_begin_with_the_session_tell_no_direction() -> None:
    found = directions(4, np.array([0, 1, 3]), np.array([5, 6, 7]))
    assert (found.numbering, found.lost) == ("own", (None, None))


def test_a_reflector_for_nobody_says_what_to_add() -> None:
    done = subprocess.run(
        [agent_program(), "reflect"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "add --allow NETWORK" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_stored_session_is_shown_again_and_compared(tmp_path: Path) -> None:
    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        return result.exit_code, result.stdout

    places = []
    for name, more in (("quick", 0), ("slow", 400_000)):
        collected = exchanged(200)
        late = pl.col("arrived_ns") + more + pl.col("asked") % 7 * 100
        collected = Collected(
            collected.packets, collected.answers.with_columns(arrived_ns=late), collected.summary
        )
        places.append(tmp_path / name)
        stored(judged(ORDER, collected, []), collected, places[-1])
    quick, slow = places
    code, shown = run("show", quick)
    assert (code, "200 answered" in shown) == (0, True)
    assert json.loads(run("show", quick, "--json")[1]) == json.loads((quick / "session.json").read_text())
    assert run("show", quick, "--explain")[0] == 2
    code, shown = run("compare", quick, slow, "--json")
    told = json.loads(shown)
    assert (code, told["verdict"], told["base"]["directory"]) == (1, "worse", str(quick))
    # Both hosts state how far their clocks may be wrong, so times one way are compared as well.
    assert set(told["points"][0]["flows"][0]["measures"]) >= {"rtt", "latency"}
    assert run("compare", quick, quick)[0] == 0
    (quick / "session.json").write_text("{")
    assert run("show", quick)[0] == 2
    assert run("compare", quick, slow)[0] == 2
