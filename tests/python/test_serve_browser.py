"""The pages of `wiregauge serve` in a real browser: a walk from the list of runs to a single message."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from msgspec import Struct, field
from playwright.sync_api import ConsoleMessage, Page, Request, Response, expect, sync_playwright

from going import Going
from test_serve import TEST
from wiregauge.records import read_notes
from wiregauge.records.live import STOP, ClockNow, PortNow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_MS = 90_000
expect.set_options(timeout=PATIENCE_MS)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host: the page is not drawn")


class Walk(Struct, dict=True):  # playwright keeps what listens there
    """A page of the browser, where the server is, and what went wrong."""

    page: Page
    base: str
    folder: Path
    troubles: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Notes errors of scripts, failed answers and requests that leave the server."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("response", self._answered)
        self.page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def _answered(self, answer: Response) -> None:
        if answer.status >= 400:
            self.troubles.append(f"{answer.status} {answer.url}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.troubles.append(f"leaves: {request.url}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server of one run, that may be controlled, as the command starts it."""
    place = tmp_path_factory.mktemp("runs")
    (place / "test.xml").write_text(TEST.replace('count="40000"', 'count="4000"').replace("0.02%", "0.5%"))
    run = [
        sys.executable,
        "-m",
        "wiregauge",
        "run",
        str(place / "test.xml"),
        "--out",
        str(place / "one"),
        "-q",
    ]
    subprocess.run(run, check=True, capture_output=True, timeout=300)
    command = [sys.executable, "-m", "wiregauge", "serve", str(place), "--port", "0", "--control"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
            yield address, place
        finally:
            server.terminate()


@pytest.fixture
def walk(served: tuple[str, Path]) -> Iterator[Walk]:
    """A page of the browser; in the end nothing may have gone wrong."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.set_default_timeout(PATIENCE_MS)
        made = Walk(page, *served)
        made.watch()
        yield made
        browser.close()
    assert made.troubles == []


def test_from_the_list_to_a_single_message_and_back(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    page.goto(walk.base)
    page.get_by_label("Search").fill("no such run")
    expect(page.get_by_text("No run fits the search.")).to_be_visible()
    page.get_by_label("Search").fill("one")
    page.get_by_role("link", name="one", exact=True).click()
    expect(page.get_by_role("heading", name="long and short")).to_be_visible()
    page.get_by_role("link", name="Messages", exact=True).click()
    note = page.locator("figcaption")
    expect(note).to_contain_text("messages are in the picture")
    # Drag over the picture.
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.52 * box["width"], box["y"] + 110, steps=3)
    page.mouse.up()
    expect(note).to_contain_text("each is a mark")
    zoomed = page.url
    assert re.search(r"[?&]t=[\d.]+%2C[\d.]+", zoomed)
    page.locator(".worst button").first.click()
    story = page.locator("#story")
    expect(story.get_by_role("heading", name=re.compile(r"Message \d+ of flow"))).to_be_visible()
    expect(story).to_contain_text("Where its time went")
    # An address is a view: the same in another tab.
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#story h2")).to_have_text(story.locator("h2").inner_text())
    assert other.locator("#window").inner_text() == page.locator("#window").inner_text()
    other.close()
    page.locator("summary", has_text="Write a note").click()
    page.get_by_label("Note").fill("seen from afar")
    page.get_by_role("button", name="Add note").click()
    expect(story.locator("h2")).to_contain_text("Message")
    (note_written,) = read_notes(walk.folder / "one").notes
    assert note_written.text == "seen from afar"
    assert f"at={note_written.at_s}" in page.url
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("link", name=kind, exact=True).click()
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).stat().st_size > 500
    page.get_by_role("button", name="Close the story").click()
    expect(story).to_be_empty()
    page.go_back()
    expect(story.locator("h2")).to_be_visible()


def test_a_window_has_percentiles_of_its_own(walk: Walk) -> None:
    page = walk.page
    page.goto(walk.base)
    run = page.get_by_role("link", name="one", exact=True).get_attribute("href")
    page.goto(page.evaluate("place => new URL(place, location).href", f"{run}/zoom?t=0.1,0.2"))
    page.locator("summary", has_text="Percentiles of the window").click()
    spread = page.get_by_role("region", name="Percentiles of")
    expect(spread.locator("tbody tr")).not_to_have_count(0)
    expect(page.locator(".pair canvas")).to_have_count(2)
    expect(page.locator(".pair + .note")).to_contain_text("From all")
    assert "p=latency" in page.url or "p=rtt" in page.url
    page.reload()
    expect(spread.locator("tbody tr")).not_to_have_count(0)
    expect(page.locator(".pair canvas")).to_have_count(2)


def test_the_keyboard_alone_suffices(walk: Walk) -> None:
    page = walk.page
    page.goto(walk.base)
    page.get_by_role("link", name="one", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Messages", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("figcaption")).to_contain_text("messages are in the picture")
    page.locator(".canvas[role=group]").focus()
    page.keyboard.press("]")
    expect(page.locator("output.readout")).to_contain_text("Enter: its story")
    for _ in range(6):
        before = page.locator("#window").inner_text()
        page.keyboard.press("+")
        expect(page.locator("#window")).not_to_have_text(before)
    page.keyboard.press("]")
    page.keyboard.press("Enter")
    expect(page.locator("#story h2")).to_contain_text("Message")
    page.locator(".canvas[role=group]").focus()
    page.keyboard.press("0")
    expect(page.locator("#window")).to_have_text("the whole run")
    page.locator("details summary", has_text="The picture as a table").focus()
    page.keyboard.press("Enter")
    expect(page.locator("figure table tbody tr").first).to_be_visible()


def test_the_report_is_drawn_in_its_frame(walk: Walk) -> None:
    page = walk.page
    page.goto(walk.base)
    page.get_by_role("link", name="one", exact=True).click()
    page.get_by_role("link", name="Report", exact=True).click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="long and short")).to_be_visible()
    expect(frame.locator(".plot .main-svg").first).to_be_visible()


def _place_of(page: Page, begin: str) -> int:
    """The place of an option of the first list."""
    texts = page.locator("select[name=base] option").all_inner_texts()
    return next(place for place, text in enumerate(texts) if text.startswith(begin))


def test_two_runs_are_compared(walk: Walk) -> None:
    page = walk.page
    other = walk.folder / "other"
    shutil.copytree(walk.folder / "one", other)
    try:
        page.goto(walk.base)
        page.get_by_role("link", name="other", exact=True).click()
        page.get_by_role("link", name="compare with another").click()
        page.locator("select[name=base]").select_option(index=_place_of(page, "one,"))
        page.get_by_role("button", name="Compare", exact=True).click()
        frame = page.frame_locator("iframe")
        expect(frame.locator("h1")).to_have_text("one against other")
    finally:
        shutil.rmtree(other)


def test_a_new_run_appears_by_itself(walk: Walk) -> None:
    page = walk.page
    page.goto(walk.base)
    expect(page.get_by_role("link", name="one", exact=True)).to_be_visible()
    other = walk.folder / "later"
    try:
        shutil.copytree(walk.folder / "one", other)
        expect(page.get_by_role("link", name="later", exact=True)).to_be_visible()
    finally:
        shutil.rmtree(other)
    expect(page.get_by_role("link", name="later", exact=True)).to_have_count(0)


def test_a_run_is_watched_and_stopped(walk: Walk) -> None:
    page = walk.page
    going = Going(walk.folder / "going", "<b>under way</b>")
    try:
        going.second()
        page.goto(walk.base)
        page.get_by_role("link", name="going", exact=True).click()
        expect(page.get_by_role("heading", name="<b>under way</b>")).to_be_visible()
        expect(page.locator("#state")).to_contain_text("25 % done")
        expect(page.locator("#flows tbody tr")).to_have_count(1)
        expect(page.locator("#limits")).to_contain_text("kept so far")
        expect(page.locator("#told li")).to_have_count(0)
        going.state.told("alarm at 2 s: <i>flow 10</i>")
        going.second(greatest_ns=3e6, lost=2, share=0.5)
        expect(page.locator("#state")).to_contain_text("50 % done")
        expect(page.locator("#limits tr.beyond")).to_contain_text("beyond it: flow 10")
        expect(page.locator("#told li")).to_have_text("alarm at 2 s: <i>flow 10</i>")
        expect(page.locator("svg.network .loses")).to_have_attribute("data-node", "sensor")
        assert page.locator("#flows svg.course rect").count() == 3
        expect(page.locator("#nostays")).to_be_visible()
        expect(page.locator("#clockpart")).to_be_hidden()
        page.locator("summary", has_text="Stop it").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Yes, stop it now").click()
        expect(page.locator("#state")).to_contain_text("It is asked to stop")
        assert (going.directory.root / STOP).exists()
        expect(page.get_by_text("Stop it", exact=True)).to_be_hidden()
        going.end("interrupted")
        expect(page.get_by_text("interrupted").first).to_be_visible()
    finally:
        going.release()
        shutil.rmtree(going.directory.root)


def test_queues_and_clocks_are_shown_where_they_are_known(walk: Walk) -> None:
    going = Going(walk.folder / "clocked")
    try:
        ports = (PortNow("sw1", 2, 990, 4_200_000, 17),)
        clocks = (
            ClockNow("mac", "AS6802", "SYNC", True, 100.0, 4.0),
            ClockNow("sw1", "AS6802", "STABLE", True, -150.0, 4.0),
            ClockNow("sensor", "AS6802", "INTEGRATE", False, None, 4.0),
        )
        going.second(ports=ports, clocks=clocks)
        walk.page.goto(walk.base)
        walk.page.get_by_role("link", name="clocked", exact=True).click()
        rows = walk.page.locator("#clocks tbody tr")
        expect(rows).to_have_text(
            [re.compile("mac.*SYNC.*100 ns"), re.compile("sw1"), re.compile("sensor.*INTEGRATE")]
        )
        expect(rows.nth(2).locator(".bad")).to_have_text("INTEGRATE")
        expect(walk.page.locator("#spread")).to_have_text("The 2 synchronised ones are at most 250 ns apart.")
        expect(walk.page.locator("svg.network .loose")).to_have_attribute("data-node", "sensor")
        expect(walk.page.locator("#stays")).to_be_visible()
        walk.page.locator("summary", has_text="The links as a table").click()
        (behind,) = (row for row in walk.page.locator("#links tbody tr").all_inner_texts() if "17" in row)
        assert "sensor" in behind
        assert "4.2 ms" in behind
    finally:
        # A page that still looks would be told that its run is gone.
        walk.page.goto(walk.base)
        going.release()
        shutil.rmtree(going.directory.root)


def test_a_page_that_stays_open_does_not_grow(walk: Walk) -> None:
    """Two hundred seconds in as many looks, one after the other."""
    going = Going(walk.folder / "open")
    page = walk.page
    try:
        page.add_init_script(
            "const later = setTimeout; setTimeout = (f, ms) => later(f, ms === 1000 ? 0 : ms);"
        )
        looks: list[str] = []
        page.on("response", lambda answer: looks.append(answer.url) if answer.url.endswith("/live") else None)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        going.second()
        page.goto(walk.base)
        page.get_by_role("link", name="open", exact=True).click()
        nodes = []
        for most in (40, 240):
            while len(looks) < most:
                going.state.told(f"alarm {len(looks)}")
                going.second(greatest_ns=1e6 + len(looks))
                page.wait_for_timeout(20)
            session.send("HeapProfiler.collectGarbage")
            found = session.send("Performance.getMetrics")["metrics"]
            nodes.append(next(one["value"] for one in found if one["name"] == "Nodes"))
        before, after = nodes
        # Alarms and the course of a flow have their bounds by then.
        assert after < before + 600
    finally:
        # A page that still looks would be told that its run is gone.
        walk.page.goto(walk.base)
        going.release()
        shutil.rmtree(going.directory.root)


def test_a_run_that_goes_away_while_it_is_watched_is_told(walk: Walk) -> None:
    going = Going(walk.folder / "away")
    going.second()
    walk.page.goto(walk.base)
    walk.page.get_by_role("link", name="away", exact=True).click()
    expect(walk.page.locator("#state")).to_contain_text("25 % done")
    going.release()
    shutil.rmtree(going.directory.root)
    expect(walk.page.locator("#trouble")).to_contain_text("This run is gone")
    # The browser itself writes that an answer was 404, once: nobody asks again.
    assert [one for one in walk.troubles if "404" not in one] == []
    assert len(walk.troubles) == 2
    walk.troubles.clear()


def test_a_test_is_mended_stored_and_run(walk: Walk) -> None:
    page, folder = walk.page, walk.folder / "edited"
    folder.mkdir()
    text = (walk.folder / "test.xml").read_text().replace('count="4000"', 'count="400"')
    (folder / "mend.xml").write_text(text.replace('to="c"/><flow', 'to="x"/><flow'))
    try:
        page.goto(walk.base)
        page.get_by_role("link", name="Tests", exact=True).click()
        page.get_by_role("link", name="edited/mend.xml").click()
        expect(page.locator("#checked")).to_contain_text("fault")
        expect(page.get_by_role("button", name="Run the stored test")).to_be_disabled()
        editor = page.get_by_label("The test")
        editor.fill(text.replace("<faults>", "<faults><"))
        # What may stand behind the cursor is offered, and put in by the keyboard alone.
        at = editor.input_value().index("<faults><") + 9
        editor.evaluate("(one, at) => one.setSelectionRange(at, at)", at)
        editor.press("Control+ ")
        page.keyboard.press("Escape")
        expect(page.locator("#choices button", has_text="<loss>")).to_be_visible()
        editor.press("Control+ ")
        page.locator("#choices button", has_text="<duplicate>").press("Enter")
        assert "<faults><duplicate" in editor.input_value()
        expect(page.locator("#checked")).to_contain_text("line")
        page.locator("#checked button").first.click()
        editor.fill(text)
        expect(page.locator("#checked")).to_contain_text("It can be run: 1 run")
        expect(page.locator("#checked svg.network")).to_be_visible()
        expect(page.get_by_text("not stored yet")).to_be_visible()
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.get_by_text("not stored yet")).to_have_count(0)
        assert (folder / "mend.xml").read_text() == text
        page.get_by_role("button", name="Run the stored test").click()
        expect(page.get_by_role("heading", name="long and short")).to_be_visible()
        expect(page.get_by_role("link", name="against time").first).to_be_visible()
        expect(page.get_by_text("no limits").first).to_be_visible()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_everybody_can_use_the_pages(served: tuple[str, Path], width: int, scheme: str) -> None:
    """Nothing that axe calls serious or critical, and no page wider than its window."""
    base, folder = served
    going = Going(folder / "going")
    going.second(lost=2)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        # The checker is a script that the policy of the server would refuse.
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            bypass_csp=True,
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(base)
        run = page.get_by_role("link", name="one", exact=True).get_attribute("href")
        expect(page.get_by_role("link", name="going", exact=True)).to_be_visible()
        live = page.get_by_role("link", name="going", exact=True).get_attribute("href")
        page.goto(f"{base}tests")
        test = page.get_by_role("link", name="test.xml", exact=True).get_attribute("href")
        for place in (
            base,
            f"{live}",
            f"{run}",
            f"{run}/zoom",
            f"{run}/report",
            f"{run}/bounds",
            f"{run}/trend",
            f"{base}compare",
            f"{base}tests",
            test,
        ):
            page.goto(page.evaluate("place => new URL(place, location).href", place))
            if place and place.endswith("/zoom"):
                page.locator("summary", has_text="Percentiles of the window").click()
                expect(page.locator(".pair canvas")).to_have_count(2)
                page.locator(".worst button").first.click()
                expect(page.locator("#story h2")).to_be_visible()
            if place == live:
                expect(page.locator("#flows tbody tr")).to_have_count(1)
            found = Axe().run(page, options={"iframes": False}).response["violations"]
            grave = [
                (one["id"], one["nodes"][0]["html"])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert grave == [], place
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        browser.close()
    going.release()
    shutil.rmtree(going.directory.root)
