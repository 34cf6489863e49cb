"""Every message against time inside a report: the same view as that of the server, from the file alone."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Page, sync_playwright

import synthetic
from test_report import CHROMIUM
from test_serve import client_of, key_of
from wiregauge import report
from wiregauge.report import embedded
from wiregauge.results import judge

NAME = "<b>few & small</b>"
DRAWN = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host: the page is not drawn")
MESSAGES = 2500
WARM_UP = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run directory: two runs of two flows, with losses."""
    place = tmp_path_factory.mktemp("runs")
    recipe = synthetic.Recipe(payloads=(64,), messages=MESSAGES, loss=0.004, warm_up=WARM_UP, name=NAME)
    report.write(synthetic.make(place / "one", recipe))
    return place


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    """A page of a browser, in which no script may fail and which may ask for nothing."""
    troubles: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        made = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        made.on("pageerror", lambda error: troubles.append(str(error)))
        made.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        made.on("request", lambda asked: troubles.append(asked.url) if asked.url.startswith("http") else None)
        yield made
        browser.close()
    assert troubles == []


def _opened(page: Page, folder: Path, view: str) -> None:
    page.goto((folder / "one" / "report.html").as_uri() + f"#messages?{view}")
    page.locator("#messages figcaption").first.filter(has_text="All").wait_for()


def _saved(page: Page, kind: str, to: Path) -> Path:
    with page.expect_download() as download:
        page.locator(f"#messages button[data-export={kind}]").click()
    download.value.save_as(to)
    return to


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@DRAWN
def test_a_window_is_that_of_the_server_and_the_whole_run_that_of_the_records(
    page: Page, folder: Path, tmp_path: Path
) -> None:
    view = "run=1&f=10,20&m=latency,send_error"
    with client_of(folder) as client:
        place = f"/run/{key_of(client, 'one')}/picture.csv?{view}&t=0.5,1.5"
        theirs = _rows(client.get(place).text)
    _opened(page, folder, f"{view}&t=0.5,1.5")
    ours = _rows(_saved(page, "csv", tmp_path / "window.csv").read_text())
    assert len(ours) > 200
    assert ours[0].keys() == theirs[0].keys()

    def numbers(rows: list[dict[str, str]]) -> list[list[str | float]]:
        """Each cell as a number where it is one: the two sides write numbers differently."""
        return [
            [cell if name == "measure" else float(cell or -1) for name, cell in row.items()] for row in rows
        ]

    assert numbers(ours) == numbers(theirs)

    page.locator("#whole").click()
    columns = [
        row
        for row in _rows(_saved(page, "csv", tmp_path / "whole.csv").read_text())
        if (row["flow"], row["measure"]) == ("10", "latency")
    ]
    assert len(columns) < MESSAGES
    table = pl.read_parquet(folder / "one" / "messages" / "run-0001.parquet").filter(
        (pl.col("flow") == 10) & ~pl.col("warm_up")
    )
    sent = table["tx_app"].to_numpy()
    took = (table["rx_app"] - table["tx_app"]).cast(pl.Float64).fill_null(np.nan).to_numpy()
    seen = 0
    for row in columns:
        inside = (sent >= round(float(row["begin_s"]) * 1e12)) & (sent <= round(float(row["end_s"]) * 1e12))
        own = took[inside]
        own = own[~np.isnan(own)]
        assert (int(row["messages"]), int(row["n"])) == (inside.sum(), len(own))
        if len(own):
            assert (float(row["least_ns"]), float(row["greatest_ns"])) == (own.min() / 1e3, own.max() / 1e3)
        seen += int(row["n"])
    assert seen == (~np.isnan(took)).sum()
    assert sum(int(row["lost"]) for row in columns) == MESSAGES - seen > 0


SIZES = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


@DRAWN
@pytest.mark.parametrize("window", ["&t=0.5,1.5", "&t=0.5,0.6", ""])
def test_percentiles_of_a_window_are_those_of_the_server(page: Page, folder: Path, window: str) -> None:
    view = f"run=1&f=10,20&m=latency{window}"
    with client_of(folder) as client:
        theirs = client.get(f"/run/{key_of(client, 'one')}/distribution?{view}").json()
    _opened(page, folder, view)
    fold = page.locator("#messages details", has_text="Percentiles of the window")
    fold.locator("summary").click()
    fold.locator("td").first.wait_for()
    heads = [cell.strip() for cell in fold.locator("th").all_inner_texts()]
    rows = [row.locator("td").all_inner_texts() for row in fold.locator("tbody tr").all()]
    assert len(rows) == len(theirs["flows"]) == 2
    for row, of in zip(rows, theirs["flows"].values(), strict=True):
        ours = dict(zip(heads, row, strict=True))
        said = {"least": of["least"], "greatest": of["greatest"], "mean": of["mean"][0]}
        said |= {name: value for name, (value, _, _) in of["percentiles"].items()}
        for name in ("n", "lost", "unknown"):
            assert int(ours[name].replace("\u00a0", "")) == of[name]
        for name in heads[4:]:
            number, unit = ours[name].split(" ")
            assert float(number) * SIZES[unit] == pytest.approx(said.pop(name), rel=1e-3)
        assert said == {}
    note = fold.locator("p.note").first.inner_text()
    assert f"all {sum(of['n'] for of in theirs['flows'].values())} values" in note
    assert "Intervals are not here" in note


@DRAWN
def test_pictures_stories_and_runs(page: Page, folder: Path, tmp_path: Path) -> None:
    _opened(page, folder, "f=10")
    picture = ET.parse(_saved(page, "svg", tmp_path / "a.svg")).getroot()
    said = " ".join("".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert NAME in said
    assert "are in the picture" in said
    assert _saved(page, "png", tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    page.locator("#messages .worst button").first.click()
    page.locator("#story h2", has_text="Message").wait_for()
    address = page.url
    # A view is an address: the same in another tab.
    other = page.context.new_page()
    other.goto(address)
    other.locator("#story h2", has_text="Message").wait_for()
    assert other.locator("#story h2").inner_text() == page.locator("#story h2").inner_text()
    other.close()
    page.locator("#messages #run").select_option("1")
    page.locator("#messages figcaption").first.filter(has_text="All").wait_for()
    assert "run=1" in page.url
    page.go_back()
    page.locator("#story h2", has_text="Message").wait_for()
    assert page.locator("#messages #run").input_value() == "0"


def test_too_many_messages_are_not_in_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MOST_MESSAGES", 4 * MESSAGES - 1)
    text = report.rendered(judge(folder / "one"))
    assert f"The {4 * (MESSAGES + WARM_UP)} messages are too many for this file" in text
    assert "messages-values" not in text.partition("<script>")[0]
    assert "uPlot" not in text
