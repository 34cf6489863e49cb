"""Summaries of a watch: each hour and day once, whole or said to be cut, and what lay between two watches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from wiregauge.streams import Observed, StreamsError, opened
from wiregauge.watching import Summaries
from wiregauge.watching.summaries import summary_schema

NOON = 1_795_867_200
"""A full hour of UTC."""


class Watch:
    """A clock that is set by hand, and the stretches of a watch by it."""

    def __init__(self, folder: Path, now: float) -> None:
        self.now, self.steady, self.frames = now, 0.0, 0
        self._since = [now, now]
        self._seen = [0, 0]
        self.folder = folder
        self.summaries = Summaries(folder, clock=lambda: self.now, steady=lambda: self.steady)
        self.said = list(self.summaries.begin())

    def turn(self, number: int) -> Observed:
        frames, seconds = self.frames - self._seen[number], self.now - self._since[number]
        self._seen[number], self._since[number] = self.frames, self.now
        duration = round(seconds * 1e12)
        return Observed(1, "wiregauge", {}, True, "VALID", [], 0, duration, frames, 0, 0, 0, [], [], [], [])

    def go_on(self, seconds: float, frames: int = 0, *, set_by: float = 0) -> None:
        self.now += seconds + set_by
        self.steady += seconds
        self.frames += frames
        self.said += self.summaries.look(self.turn)

    def end(self) -> None:
        self.said += self.summaries.end(self.turn)

    def lines(self) -> list[dict[str, Any]]:
        told = [json.loads(line) for line in (self.folder / "summaries.jsonl").read_text().splitlines()]
        validator = Draft202012Validator(summary_schema())
        assert all(validator.is_valid(line) for line in told)
        return told


def test_each_hour_and_day_is_stored_by_itself(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    for hour in range(1, 30):
        watch.go_on(1800, frames=hour)
        watch.go_on(1799.6, frames=1)
        watch.go_on(0.4)
    told = watch.lines()
    hours, days = ([line for line in told if line["what"] == what] for what in ("hour", "day"))
    assert [line["frames"] for line in hours] == [hour + 1 for hour in range(1, 30)]
    assert {line["validity"] for line in hours} == {"VALID"}
    # It began at noon: the first day is that of twelve hours, and says so.
    assert [line["frames"] for line in days] == [sum(hour + 1 for hour in range(1, 13))]
    assert days[0]["reasons"] == ["the day was watched from 2026-11-28T12:00:00Z on only"]
    stored = opened(watch.folder / hours[3]["directory"])
    assert (stored.frames, stored.duration_ps) == (5, 3600 * 10**12)
    assert not watch.said


def test_what_was_not_watched_is_a_line_and_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boots = iter(["a"] * 20)
    monkeypatch.setattr("wiregauge.watching.stretches._boot", lambda: next(boots))
    first = Watch(tmp_path / "s", NOON)
    first.go_on(3600, frames=7)
    first.go_on(1200, frames=5)
    # It is killed: what came since the full hour is lost. The host starts anew.
    boots = iter(["b"] * 20)
    again = Watch(tmp_path / "s", NOON + 5400)
    again.go_on(1800, frames=3)
    told = again.lines()
    assert [line["what"] for line in told] == ["hour", "not-watched", "hour"]
    gap, rest = told[1:]
    assert (gap["begin"], gap["end"]) == (told[0]["end"], "2026-11-28T13:30:00Z")
    assert "the watch did not run, or was killed, and the host was started anew" in gap["reasons"][0]
    assert again.said == gap["reasons"]
    assert (rest["frames"], rest["validity"]) == (3, "DEGRADED")
    assert rest["reasons"] == ["the hour was watched from 2026-11-28T13:30:00Z on only"]


def test_a_watch_that_is_stopped_stores_what_there_is(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    watch.go_on(600, frames=4)
    watch.end()
    told = watch.lines()
    assert [(line["what"], line["frames"]) for line in told] == [("hour", 4), ("day", 4)]
    assert told[0]["reasons"] == ["the hour was watched until 2026-11-28T12:10:00Z only"]


def test_a_clock_that_is_set_back_has_its_hour_twice(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    watch.go_on(3600, frames=1)
    watch.go_on(1, set_by=-3600)
    watch.go_on(3600, frames=1)
    places = [line["directory"] for line in watch.lines()]
    assert len(set(places)) == len(places)
    assert any("clock was set" in reason for line in watch.lines() for reason in line["reasons"])


def test_a_stretch_that_ends_late_says_so(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    watch.go_on(2 * 3600, frames=1)
    assert watch.lines()[0]["reasons"] == ["the hour ended late, after 7200 s: this program was held up"]


def test_a_line_that_was_cut_off_is_passed_over_and_other_folders_are_refused(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    watch.go_on(3600)
    with (tmp_path / "s" / "summaries.jsonl").open("a") as journal:
        journal.write('{"schema": 1, "what": "ho')
    assert "no summary was stored from 2026-11-28T13:00:00Z" in Watch(tmp_path / "s", NOON + 9000).said[0]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(StreamsError, match="has files and no summaries"):
        Summaries(tmp_path / "other")


def test_a_disk_that_takes_nothing_is_said_and_ends_nothing(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "s", NOON)
    watch.go_on(3600)
    journal = tmp_path / "s" / "summaries.jsonl"
    journal.unlink()
    journal.mkdir()
    watch.go_on(3600)
    assert any("cannot be written" in one for one in watch.said)
