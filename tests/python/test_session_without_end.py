"""A session without an end: its seconds add up to the session as a whole, and nothing of it grows."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from wiregauge.reflectors import Measured, Order, judged, opened, read_limit
from wiregauge.reflectors.exchange import collected_of
from wiregauge.reflectors.lasting import Follower, Second, Tally
from wiregauge.reflectors.line import line_schema
from wiregauge.reflectors.stretches import Hours, session_summary_schema
from wiregauge.runner.agent_program import agent_program
from wiregauge.stats.growing import Growing

EPOCH = 1_795_867_200_000_000_000
PERIOD = 100_000_000
PATIENCE = 1_000_000_000
ORDER = Order("192.0.2.1:862", "stamp", 0, PERIOD, 44, False, "ntp", 0, 0, PATIENCE)
COUNTS = {"clock_error_ns": 2_000, "tai_ahead_ns": 0, "clock_moved_ns": 0, "complete": False}


def answer(asked: int, sequence: int, delay: int) -> dict[str, Any]:
    left = EPOCH + asked * PERIOD
    return {
        "asked": asked,
        "sequence": sequence,
        "received_ns": left + delay // 3,
        "sent_ns": left + delay // 3 + 7_000,
        "is_ptp": False,
        "error_ns": 1_000,
        "is_synchronised": True,
        "has_session": True,
        "asked_ttl": 252,
        "ttl": 252,
        "traffic_class": 184,
        "arrived_ns": left + delay,
        "by_kernel": True,
    }


def told(fates: list[tuple[str, int]], *, first: int = 0) -> list[dict[str, Any]]:
    """Lines of the agent program, one for each packet: of a reflector that numbers what reaches it, from `first` on."""
    lines, number = [], first
    for asked, (fate, delay) in enumerate(fates):
        at = EPOCH + asked * PERIOD
        heard = []
        if fate != "lost there":
            copies = 2 if fate == "twice" else 1
            heard = [] if fate == "lost back" else [answer(asked, number, delay)] * copies
            number += 1
        lines.append({"sent": [[asked, at, at]], "left": [[asked, at]], "heard": heard, "so_far": COUNTS})
    return lines


def followed(lines: list[dict[str, Any]]) -> list[Second]:
    follower = Follower(ORDER)
    seconds: list[Second] = []
    for place, line in enumerate(lines):
        follower.take(line)
        seconds += follower.close(EPOCH + place * PERIOD)
    seconds += follower.rest(EPOCH + len(lines) * PERIOD + 2 * PATIENCE)
    assert follower.open == 0
    return seconds


def whole(lines: list[dict[str, Any]], *limits: str) -> Measured:
    """The same packets as one session with an end."""
    heard = sorted((row for line in lines for row in line["heard"]), key=lambda row: int(row["arrived_ns"]))
    sent = [row for line in lines for row in line["sent"]]
    left = [row for line in lines for row in line["left"]]
    return judged(
        ORDER, collected_of(sent, left, heard, COUNTS | {"complete": True}), list(map(read_limit, limits))
    )


fates = st.lists(
    st.tuples(
        st.sampled_from(["back"] * 6 + ["lost there", "lost back", "twice"]), st.integers(20_000, 90_000_000)
    ),
    min_size=1,
    max_size=60,
)


@given(fates)
@settings(max_examples=60, deadline=None)
def test_seconds_add_up_to_the_session(drawn: list[tuple[str, int]]) -> None:
    """Counts, directions, extremes, moments and verdict are those of all packets at once; percentiles to a bucket."""
    lines = told([("back", 50_000), *drawn, ("back", 50_000)])
    tally = Tally()
    for second in followed(lines):
        tally.add(second)
    limits = ["rtt.max <= 50ms", "lost <= 1", "lost_forward <= 0", "network.mean <= 30ms"]
    found = tally.measured(ORDER, list(map(read_limit, limits)))
    expected = whole(lines, *limits)
    assert found.counts == expected.counts
    assert (found.numbering, found.hops, found.classes) == (
        expected.numbering,
        expected.hops,
        expected.classes,
    )
    assert found.validity == expected.validity, (found.reasons, expected.reasons)
    assert [limit.result for limit in found.limits] == [limit.result for limit in expected.limits]
    for name, series in found.series.items():
        other = expected.series[name]
        assert (series.n, series.min, series.max, series.reason) == (
            other.n,
            other.min,
            other.max,
            other.reason,
        )
        assert series.uncertainty_ns == other.uncertainty_ns
        if other.mean is not None and series.mean is not None:
            assert series.mean.value == pytest.approx(other.mean.value)
            assert series.sd == (None if other.sd is None else pytest.approx(other.sd, abs=1e-3))
        for q, estimate in other.quantiles.items():
            assert series.quantiles[q].value == pytest.approx(estimate.value, rel=1 / 2048, abs=1)


def test_directions_go_on_from_one_stretch_into_the_next() -> None:
    """A reflector of an earlier count, and the first packet of the second stretch lost on its way there."""
    lines = told([("back", 50_000)] * 10 + [("lost there", 0), ("lost back", 0)] + [("back", 50_000)] * 8)
    first, second = followed(lines)[:2]
    one = Tally()
    one.add(second if second.begin_ns < first.begin_ns else first)
    other, alone = Tally(one), Tally()
    for tally in (other, alone):
        tally.add(second)
    counts = other.measured(ORDER, []).counts
    assert (counts.lost, counts.lost_forward, counts.lost_backward) == (2, 1, 1)
    assert alone.measured(ORDER, []).counts.lost_forward is None


def test_a_reflector_that_begins_anew_tells_no_direction() -> None:
    lines = told([("back", 50_000)] * 30)
    again = told([("back", 50_000)] * 60)[30:]
    for line in again:
        line["heard"] = [row | {"sequence": row["sequence"] - 30} for row in line["heard"]]
    tally = Tally()
    for second in followed([*lines, *again]):
        tally.add(second)
    assert tally.measured(ORDER, []).numbering == "restarted"


def test_an_answer_that_comes_later_than_it_is_awaited_is_late_and_its_packet_lost() -> None:
    lines = told([("back", 50_000)] * 40)
    (late,) = lines[3]["heard"]
    lines[3]["heard"], lines[35]["heard"] = [], [*lines[35]["heard"], late]
    tally = Tally()
    for second in followed(lines):
        tally.add(second)
    measured = tally.measured(ORDER, [])
    assert (measured.counts.lost, measured.ignored["too_late"]) == (1, 1)
    assert any("later than they were awaited" in reason for reason in measured.reasons)


def test_what_may_still_be_answered_at_the_end_is_left_out() -> None:
    lines = told([*[("back", 50_000)] * 25, ("lost there", 0), ("back", 50_000)])
    follower = Follower(ORDER)
    for line in lines:
        follower.take(line)
    tally = Tally()
    for second in follower.rest(EPOCH + 27 * PERIOD):
        tally.add(second)
    counts = tally.measured(ORDER, []).counts
    assert (counts.sent, counts.answered, counts.lost) == (25, 25, 0)


def test_memory_does_not_grow_with_time() -> None:
    """A day of the default rate has as many buckets as its first minutes, and intervals that cover the mean."""
    chance = np.random.default_rng(7)
    growing, sizes, known, covered = Growing(), list[int](), 0, 0
    for _ in range(2_000):
        growing.add(np.round(chance.lognormal(12, 0.5, 50)))
        sizes.append(len(growing._counts))
    assert sizes[-1] < 2048 * 6
    assert sizes[-1] < sizes[400] * 1.6
    for _ in range(200):
        one = Growing()
        for _ in range(40):
            one.add(chance.normal(1_000, 100, int(chance.integers(20, 80))))
        sketch, worth = one.sketch(), one.worth()
        assert sketch is not None
        spread = sketch.deviation()
        assert spread is not None
        # One in twenty finds neighbours alike by chance, and then says nothing.
        if worth is not None:
            known += 1
            covered += abs(sketch.mean - 1_000) <= 2 * spread / worth**0.5
    assert known >= 170
    assert covered >= 0.9 * known
    drifting = Growing()
    for place in range(200):
        drifting.add(chance.normal(1_000 + 100 * np.sin(place / 10), 10, 50))
    assert drifting.worth() is None


def test_an_hour_has_its_session_and_its_exchanges(tmp_path: Path) -> None:
    """Minute by minute until the hour is over; the part of an hour says so, and what nobody measured has a line."""
    hours = Hours(tmp_path / "s", 2.0)
    hours.at(EPOCH / 1e9 - 90)
    assert not list(hours.begin())
    lines = told([("back", 50_000)] * 2_400)
    tallies = [Tally(), Tally()]

    def turn(number: int) -> Measured:
        ended, tallies[number] = tallies[number], Tally(tallies[number])
        return ended.measured(ORDER, [])

    for second in followed(lines):
        begin = second.begin_ns - 90 * 10**9
        hours.at(begin / 1e9)
        assert not list(hours.look(turn))
        assert not list(hours.parts.add(begin, second.collected))
        for tally in tallies:
            tally.add(second)
    assert not list(hours.end(turn))
    validator = Draft202012Validator(session_summary_schema())
    journal = [json.loads(line) for line in (tmp_path / "s" / "summaries.jsonl").read_text().splitlines()]
    assert all(validator.is_valid(line) for line in journal)
    kinds = [(line["what"], line["counts"]["sent"]) for line in journal]
    assert kinds == [("hour", 900), ("hour", 1_500), ("day", 2_400)]
    for line in journal:
        place = tmp_path / "s" / line["directory"]
        assert opened(place).counts.sent == line["counts"]["sent"]
        rows = place / "exchanges.parquet"
        assert rows.exists() == (line["what"] == "hour")
        if rows.exists():
            assert pl.read_parquet(rows)["asked"].n_unique() == line["counts"]["sent"]
    assert not (tmp_path / "s" / "exchanges").exists()
    again = Hours(tmp_path / "s")
    assert any("the session did not run" in sentence for sentence in again.begin())


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_keeps_all(request_to_stop: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    at = f"127.0.0.1:{port}"
    reflecting = [
        str(agent_program()),
        "reflect",
        "--listen",
        at,
        "--allow",
        "127.0.0.1/32",
        "--rate",
        "100000",
    ]
    command = [
        str(Path(sys.executable).with_name("wiregauge")),
        "probe",
        at,
        "--protocol",
        "stamp",
        "--forever",
    ]
    command += ["--period", "2ms", "--json", "--summaries", "s", "--out", "o", "--limit", "rtt.max <= 1ns"]
    with contextlib.ExitStack() as ending:
        reflector = subprocess.Popen(reflecting, stdout=subprocess.PIPE)
        ending.callback(reflector.kill)
        assert reflector.stdout is not None
        reflector.stdout.readline()
        probe = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        ending.callback(probe.kill)
        assert probe.stdout is not None
        lines = [json.loads(probe.stdout.readline()) for _ in range(2)]
        probe.send_signal(request_to_stop)
        lines += [json.loads(line) for line in probe.communicate(timeout=20)[0].splitlines()]
        assert probe.returncode == 1, "the limit is broken"
        reflector.send_signal(signal.SIGTERM)
        account = json.loads(reflector.communicate(timeout=20)[0])
    validator = Draft202012Validator(line_schema())
    assert all(validator.is_valid(line) for line in lines)
    assert [alarm["what"] for alarm in lines[0]["alarms"]] == ["broken"]
    measured = opened(tmp_path / "o")
    last = lines[-1]
    assert msgspec.to_builtins(measured.counts) == last["so_far"], "the last line is the judgement"
    assert (measured.verdict, measured.validity) == (last["verdict"], last["validity"])
    assert sum(line["counts"]["sent"] for line in lines) == measured.counts.sent
    assert account["answered"] - 200 < measured.counts.sent <= account["answered"]
    (hour,) = [place for place in (tmp_path / "s").iterdir() if place.name.endswith("-hour")]
    assert opened(hour).counts == measured.counts
    assert time.time_ns() > measured.epoch_realtime_ns > 0
