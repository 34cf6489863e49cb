"""Campaigns that are watched while they go on: the live file, its course without gaps, the page, and the request to
stop."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from going import Going
from test_serve import HTML, PORT, TEST, key_of
from wiregauge import runner, serve
from wiregauge.records import RunDirectoryError, recover
from wiregauge.records.live import LIVE, STOP, FlowNow, Live, read_live
from wiregauge.records.verifying import State, verify
from wiregauge.runner.live import state
from wiregauge.runner.live.state import Course
from wiregauge.runner.stopping import Interrupted

ORIGIN = {"origin": f"http://127.0.0.1:{PORT}"}


def flow_of(greatest: float | None, lost: int) -> FlowNow:
    return FlowNow(1, "a", "b", "latency", 0, 0, lost, 0, 0.0, 0, None, None, None, greatest, 0)


@given(
    st.lists(st.tuples(st.none() | st.floats(0, 1e12), st.integers(-2, 5)), min_size=1, max_size=300),
    st.sampled_from([2, 4, 16]),
)
def test_a_course_has_every_second_and_the_longest_time_of_each(
    seconds: list[tuple[float | None, int]], most: int
) -> None:
    course, lost = Course(most), 0
    for second, (greatest, more) in enumerate(seconds):
        lost += more
        course.add(second, flow_of(greatest, lost), second + 1)
    found = course.stretches
    assert len(found) <= most
    assert [one.begin for one in found] == [0, *(one.end for one in found[:-1])]
    assert found[-1].end == len(seconds)
    assert sum(one.lost for one in found) == lost
    for one in found:
        inside = [value for value, _ in seconds[int(one.begin) : int(one.end)] if value is not None]
        assert one.greatest_ns == max(inside, default=None)


def live_of(place: Path) -> Live:
    found = read_live(place)
    assert found is not None
    return found


def test_the_live_file_has_figures_limits_and_what_was_said(tmp_path: Path) -> None:
    going = Going(tmp_path / "r")
    going.second()
    going.state.told("alarm at 2 s: flow 10 is lost")
    going.second(greatest_ns=2e6, lost=3, share=0.5)
    live = live_of(tmp_path / "r")
    assert (live.share, live.runs, live.ended, live.shares) == (0.5, 1, 0, {0: 0.5})
    assert live.left_s is not None
    assert live.left_s > 0
    assert live.now is not None
    assert live.now.flows[0].lost == 3
    assert live.told == ("alarm at 2 s: flow 10 is lost",)
    (limit,) = live.limits
    assert (limit.beyond, limit.seconds, limit.worst) == ((10,), 1, "2 ms, flow 10")
    assert [one.greatest_ns for one in live.courses[10]] == [5e5, 2e6]
    assert {path.name for path in (tmp_path / "r").glob(".wiregauge-*")} == set()
    going.end()
    assert read_live(tmp_path / "r") is None


def test_a_disk_that_takes_no_live_file_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going = Going(tmp_path / "r")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_live", full)
    going.second()
    assert read_live(tmp_path / "r") is None


class Asking(runner.Observer):
    """Asks a trial to stop by its file, as soon as it goes on, and sees what it tells until then."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.seen: list[Live] = []

    def run_progressed(self, position: int, share: float) -> None:
        if live := read_live(self._place):
            self.seen.append(live)
            (self._place / STOP).touch()


def test_a_simulation_is_stopped_by_a_file_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "EVERY_S", 0.0)
    test = tmp_path / "long.xml"
    test.write_text(TEST.replace('count="40000"', 'count="40000000"'))
    asking = Asking(tmp_path / "out" / "trial-0001")
    with runner.open("sim", tmp_path / "out", observer=asking) as trials:
        assert trials.run(test).state == "interrupted"
        with pytest.raises(Interrupted, match="on request from a page"):
            trials.run(test)
    assert asking.seen[0].virtual_time
    assert asking.seen[0].runs == 1
    assert not {LIVE, STOP} & {path.name for path in (tmp_path / "out" / "trial-0001").iterdir()}


def test_what_a_killed_program_leaves_is_named_and_goes(tmp_path: Path) -> None:
    going = Going(tmp_path / "r")
    going.second()
    going.release()
    assert {one.file: one.state for one in verify(tmp_path / "r").findings}[LIVE] is State.UNFINISHED
    recover(going.directory.open(tmp_path / "r"))
    assert not (tmp_path / "r" / LIVE).exists()


# -- the page ---------------------------------------------------------------------------------------------------


class Page:
    """A client of a server that may be controlled, and a campaign under way."""

    def __init__(self, place: Path, *, control: bool = True) -> None:
        self.going = Going(place / "r")
        self.server = serve.Server([place], port=PORT, token="t" * 32, control=control)
        self.server.index.look()
        base = f"http://127.0.0.1:{PORT}/{'t' * 32}"
        self.client = TestClient(self.server.app, base_url=base, follow_redirects=False, headers=HTML)
        self.address = f"/run/{key_of(self.client, 'r')}"

    def now(self) -> Any:
        return self.client.get(f"{self.address}/live").json()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Page]:
    made = Page(tmp_path)
    yield made
    made.going.release()


def test_the_page_of_a_campaign_under_way_draws_its_network(watched: Page) -> None:
    watched.going.second()
    text = watched.client.get(watched.address).text
    assert 'data-node="mac"' in text
    found = watched.now()
    assert (found["over"], found["trouble"], found["asked"]) == (False, "", False)
    assert found["live"]["now"]["flows"][0]["sent"] == 1000


def test_what_is_wrong_with_live_figures_is_told(watched: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no live figures yet" in watched.now()["trouble"]
    watched.going.second()
    file = watched.going.directory.root / LIVE
    whole = file.read_text()
    file.write_text(whole[:-30])
    assert "is damaged" in watched.now()["trouble"]
    file.write_text(whole.replace('"schema":1', '"schema":7'))
    assert "schema 7 is unknown" in watched.now()["trouble"]
    file.write_text(whole.replace('"written":"20', '"written":"19'))
    assert "The last word came" in watched.now()["trouble"]
    file.unlink()
    os.mkfifo(file)
    assert "cannot be read" in watched.now()["trouble"]
    file.unlink()
    watched.going.release()
    assert "is gone" in watched.now()["trouble"]


def test_names_and_lines_of_a_run_are_printable(watched: Page) -> None:
    watched.going.state.told("a\x1b[2J<b>\u202e")
    watched.going.second()
    assert watched.now()["live"]["told"] == ["a\\u001b[2J<b>\\u202e"]


def test_a_run_that_is_removed_or_ends_while_it_is_watched(watched: Page) -> None:
    watched.going.second()
    assert watched.now()["over"] is False
    root = watched.going.directory.root
    kept = root.with_name("kept")
    shutil.move(root, kept)
    assert watched.client.get(f"{watched.address}/live").status_code == 404
    shutil.move(kept, root)
    watched.going.end()
    watched.server.index.look()
    assert watched.now() == {"over": True}
    assert "is being judged now" not in watched.client.get(watched.address).text


def test_a_campaign_is_stopped_from_its_page_once_it_is_meant(watched: Page) -> None:
    watched.going.second()
    stop, file = f"{watched.address}/stop", watched.going.directory.root / STOP
    assert watched.client.post(stop, headers=ORIGIN).status_code == 400
    assert watched.client.post(stop, data={"sure": "yes"}).status_code == 403, "without an origin"
    assert not file.exists()
    assert watched.client.post(stop, data={"sure": "yes"}, headers=ORIGIN).status_code == 303
    assert watched.now()["asked"]
    with pytest.raises(Interrupted, match="on request from a page"):
        watched.going.second()
    watched.going.second()  # it is asked once
    watched.going.end("interrupted")
    assert not file.exists()
    assert watched.client.post(stop, data={"sure": "yes"}, headers=ORIGIN).status_code == 409


def test_without_control_nothing_is_stopped(tmp_path: Path) -> None:
    page = Page(tmp_path, control=False)
    assert "Stop it" not in page.client.get(page.address).text
    assert page.client.post(f"{page.address}/stop", data={"sure": "yes"}, headers=ORIGIN).status_code == 403
    assert not (page.going.directory.root / STOP).exists()
    page.going.release()


def test_a_link_in_place_of_the_request_is_not_followed(watched: Page, tmp_path: Path) -> None:
    (watched.going.directory.root / STOP).symlink_to(tmp_path / "elsewhere")
    stop = watched.client.post(f"{watched.address}/stop", data={"sure": "yes"}, headers=ORIGIN)
    assert stop.status_code == 409
    assert not (tmp_path / "elsewhere").exists()


def test_a_live_file_of_another_kind_raises_a_sentence(tmp_path: Path) -> None:
    for content in (b"", b"[]", b"\xff", b'{"schema": "1"}', b'{"schema": 1}', b"{" * 100_000):
        (tmp_path / LIVE).write_bytes(content)
        with pytest.raises(RunDirectoryError):
            read_live(tmp_path)
