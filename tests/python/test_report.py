"""The report: complete, honest in every state, self-contained, and safe with any name in the files."""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from wiregauge import measures, report, results
from wiregauge.figures import interactive
from wiregauge.measures.definitions.units import in_unit, share
from wiregauge.report.tables import NONE, ZERO, Cell, Head, Section, Table, short_interval
from wiregauge.report.write import store

SMALL = Recipe(payloads=(64, 1472), messages=320, warm_up=10)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """What a browser would see: texts outside scripts, every attribute, every script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)
        elif self._inside[-1] == "script":
            self.scripts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def page_of(path: Path, recipe: Recipe) -> Page:
    return Page(report.write(make(path, recipe)).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    limits: list[dict[str, Any]] = [
        {"flow": 10, "measure": "latency.max", "bound": "at-most", "value": 1e9, "written": "1s", "line": 9},
        {"flow": None, "measure": "lost", "bound": "at-most", "value": 0, "written": "0", "line": 10},
    ]
    path = tmp_path_factory.mktemp("demo")
    report.write(make(path, replace(SMALL, loss=0.02, limits=limits)))
    return path


def test_verdict_and_validity_come_first(demo: Path) -> None:
    source = (demo / "report.html").read_text()
    text = Page(source).text
    assert re.findall(r"<h2>(.*?)</h2>", source) == [
        "Limits",
        "One-way latency and loss of each flow: the worst of 4 points",
        "Latency against payload",
        "All results",
        "What became of every message",
        "Every message against time",
        "What explains it",
        "Figures",
        "Validity: can these figures be trusted?",
        "Test and hosts",
        "Definitions",
    ]
    places = [
        text.index(mark) for mark in ("verdict", "validity", "Median one-way latency", "margin", "10 udp/raw")
    ]
    assert places == sorted(places)
    assert "FAIL" in text[: text.index("margin")]


def test_the_first_screen_has_limits_with_margins_and_a_row_per_flow_and_the_rest_is_folded(
    demo: Path,
) -> None:
    source = (demo / "report.html").read_text()
    folds = [found.start() for found in re.finditer(r"<details", source)]
    first = Page(source[: folds[0]])
    judgement = results.judge(demo)
    worst = max(
        (flow.summaries["latency"].maximum or 0.0)
        for point in judgement.points
        for flow in point.flows
        if flow.plan.id == 10
    )
    assert f"{in_unit(1e9 - worst, 'ns')} ({share(1 - worst / 1e9)})" in first.text
    lost = [
        sum(
            flow.counts["lost"]
            for point in judgement.points
            for flow in point.flows
            if flow.plan.id == number
        )
        for number in (10, 20)
    ]
    for count in lost:
        assert f"{count} of 1280" in first.text
    assert source.count('class="plot"', 0, source.index("<nav")) == 1
    # Whatever has a heading of its own after that is folded, and nothing is open from the beginning.
    assert source.count("<details open") == 0
    assert all(
        source.rfind("<details", 0, at) > source.rfind("</details", 0, at)
        for at in _headings(source, folds[0])
    )


def _headings(source: str, after: int) -> list[int]:
    return [found.start() for found in re.finditer(r"<h2", source) if found.start() > after]


def test_columns_that_say_nothing_vanish_and_are_named() -> None:
    heads = [Head("flow"), Head("lost"), Head("p99.9"), Head("n")]
    rows = [[Cell("10"), Cell(ZERO), Cell(NONE), Cell("7")], [Cell("20"), Cell(ZERO), Cell(NONE), Cell("8")]]
    table = Table("t", heads, [Section("", rows)], groups=[Head("all", span=3)]).pruned()
    assert [head.text for head in table.heads] == ["flow", "n"]
    assert [[cell.text for cell in row] for row in table.sections[0].rows] == [["10", "7"], ["20", "8"]]
    assert [group.span for group in table.groups] == [1]
    assert any("lost" in note for note in table.notes)
    assert any("p99.9" in note for note in table.notes)


def test_an_interval_with_one_end_says_which() -> None:
    assert short_interval(5_000, 4_000, None) == "≥ 4.00"
    assert short_interval(5_000, None, 6_000) == "≤ 6.00"
    table = Table(
        "t", [Head("p99")], [Section("", [[Cell("5", "95 % interval 4.00 to unbounded µs", below="≥ 4.00")]])]
    )
    assert table.half_open


def test_the_demo_fits_three_megabytes(demo: Path) -> None:
    assert (demo / "report.html").stat().st_size < 3_000_000


def test_the_script_that_draws_is_packed_and_whole(demo: Path) -> None:
    """Less than half as long as it is, the very same when unpacked, and its licence is legible."""
    source = (demo / "report.html").read_text()
    (packed,) = re.findall(r'<script type="text/plain" id="plotly">([^<]*)</script>', source)
    assert zlib.decompress(b64decode(packed)).decode() == interactive.script()
    assert len(packed) < len(interactive.script()) / 2
    (notice,) = re.findall(r"<!-- (plotly\.js.*?) -->", source)
    assert "Copyright" in notice
    assert "MIT" in notice


def test_every_definition_is_in_the_page_and_every_link_leads_to_one(demo: Path) -> None:
    page = Page((demo / "report.html").read_text())
    ids = {value for _, name, value in page.attributes if name == "id"}
    targets = {
        value.removeprefix("#") for tag, name, value in page.attributes if tag == "a" and name == "href"
    }
    assert targets <= ids
    for definition in measures.DEFINITIONS.values():
        assert f"def-{definition.name}" in ids
        assert re.sub(r"\s+", " ", definition.formula) in page.text


def test_the_page_asks_nothing_of_the_network(demo: Path) -> None:
    text = (demo / "report.html").read_text()
    page = Page(text)
    assert {"link", "iframe", "img", "object", "embed", "base"}.isdisjoint(page.tags)
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "action", "data", "poster")]
    assert all(value.startswith("#") for tag, name, value in page.attributes if name == "href")
    policy = next(
        value for tag, name, value in page.attributes if name == "content" and "default-src" in value
    )
    assert "default-src 'none'" in policy
    assert "http" not in policy
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in style[0]
    assert "@import" not in style[0]


def test_the_numbers_of_the_table_are_those_of_the_judgement(demo: Path) -> None:
    text = Page((demo / "report.html").read_text()).text
    judgement = results.judge(demo)
    for point in judgement.points:
        for flow in point.flows:
            latency = flow.summaries["latency"]
            assert latency.mean is not None
            assert latency.uncertainty is not None
            assert f"{latency.mean / 1e3:.2f} ± {latency.uncertainty.total / 1e3:.2f}" in text


EVIL = "</script><script>alert(1)</script><b onmouseover=alert(2)>\"'&"


def test_names_from_files_cannot_become_markup(tmp_path: Path) -> None:
    make(tmp_path, replace(SMALL, name=EVIL, agent={"complete": False, "incomplete_reason": EVIL}))
    for name in ("manifest.json", "tracking.json"):
        tree = json.loads((tmp_path / name).read_text())
        if name == "manifest.json":
            tree["host"][EVIL] = EVIL
            tree["bench_facts"] = [{"name": EVIL, "value": EVIL, "note": EVIL}]
            tree["plan"]["network"]["nodes"][1]["name"] = EVIL
            tree["plan"]["warnings"] = [EVIL]
            tree["plan"]["runs"][1]["point"] = {EVIL: EVIL}
            tree["test"]["name"] = EVIL
        (tmp_path / name).write_text(json.dumps(tree))
    page = Page(report.write(tmp_path).read_text(encoding="utf-8"))
    clean = Page(report.write(make(tmp_path / "clean", SMALL)).read_text(encoding="utf-8"))
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not [s for s in page.scripts if s.startswith("alert")]
    assert "alert(1)" in page.text
    assert set(page.tags) <= set(clean.tags) | {"li", "ul"}


def silence(columns: Columns, flow: int) -> None:
    columns["lost"][:] = True
    columns["copies"] = columns["copies"] * 0
    columns["reordered"][:] = False
    for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
        columns["present"][name][:] = False


STATES = {
    "one run, no relay": (
        replace(SMALL, payloads=(64,), protocols=("raw",), relay=False),
        "Median one-way latency",
    ),
    "all lost": (replace(SMALL, alter=silence), "Nothing arrived"),
    "interrupted": (replace(SMALL, state="interrupted", reason="Ctrl-C", stop_after=1), "INCOMPLETE"),
    "nothing run": (replace(SMALL, state="running", stop_after=0), "No message was sent"),
    "three messages": (replace(SMALL, messages=3, warm_up=0), "at most"),
    "one message": (replace(SMALL, messages=1, warm_up=0, loss=0), "at most"),
    "loads and repeats": (replace(SMALL, loads=(0, 50, 100), repeats=2), "Each row pools 2 repeats"),
}


@pytest.mark.parametrize("state", STATES)
def test_the_page_is_right_in_every_state(tmp_path: Path, state: str) -> None:
    recipe, mark = STATES[state]
    page = page_of(tmp_path, recipe)
    assert mark in page.text
    assert "None" not in page.text.replace("None lost", "")
    assert "nan" not in page.text.lower().split()


def test_a_directory_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    make(tmp_path, SMALL)
    (tmp_path / "report.html").mkdir()
    with pytest.raises(measures.RunDirectoryError, match=r"report\.html: cannot be written"):
        report.write(tmp_path)
    assert not list(tmp_path.glob(".report*"))


def test_a_full_disk_is_not_taken_for_a_missing_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.modules["wiregauge.report.write"], "write_whole", full)
    with pytest.raises(measures.RunDirectoryError, match=r"; make room, then `wiregauge report ") as caught:
        store(tmp_path / "report.html", '<meta charset="utf-8">\n')
    assert "writable" not in str(caught.value)


def test_export_names_every_figure(tmp_path: Path) -> None:
    make(tmp_path, replace(SMALL, payloads=(64,), messages=50))
    paths = report.export_figures(tmp_path, tmp_path / "figures", {"svg"})
    assert {path.suffix for path in paths} == {".svg"}
    assert {"latency-density", "network", "period-box"} <= {path.stem for path in paths}


def test_judging_does_not_load_the_drawing_libraries() -> None:
    code = (
        "import sys, wiregauge.measures, wiregauge.report;"
        "sys.exit(any(m.split('.')[0] in ('plotly', 'matplotlib', 'jinja2') for m in sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}
        ).returncode
        == 0
    )


def drawn_figures(page: Path, profile: Path) -> int:
    """The number of figures of a page, all drawn by a browser without a network and without a complaint."""
    done = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=30000",
            f"--user-data-dir={profile}",
            "--dump-dom",
            page.as_uri() + "#all",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    figures = done.stdout.count("data-figure=")
    assert f'data-drawn="{figures}"' in done.stdout
    assert done.stdout.count('class="main-svg"') >= figures
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    return figures


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host: the page is not drawn")
def test_a_browser_without_a_network_draws_every_figure_without_a_complaint(
    demo: Path, tmp_path: Path
) -> None:
    assert drawn_figures(demo / "report.html", tmp_path / "profile") >= 10


MEASURES_WIDTHS = """<script>addEventListener("load", () => {
  const wide = [...document.querySelectorAll(".glance .scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1);
  document.body.insertAdjacentHTML("beforeend", `<p id="wide">${wide.map((one) => one.innerText.slice(0, 99))}</p>`);
})</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host: the page is not drawn")
@pytest.mark.parametrize("width", [1300, 1200, 700])
def test_long_reasons_of_limits_push_no_column_out_of_view(width: int, tmp_path: Path) -> None:
    why = "links did not take the time of their rate: " + "what they would have added is in no figure " * 6
    limits: list[dict[str, Any]] = [
        {"flow": 10, "measure": f"latency.{q}", "bound": "at-most", "value": 1e9, "written": "1s", "line": at}
        for at, q in enumerate(("p50", "p99", "max"))
    ]
    path = tmp_path / "run"
    report.write(make(path, replace(SMALL, limits=limits)))
    judgement = results.judge(path)
    runs = [
        replace(run, limits=tuple(replace(one, result="undecided", reason=why) for one in run.limits))
        for run in judgement.runs
    ]
    page = report.write(path, replace(judgement, runs=tuple(runs)))
    source = page.read_text(encoding="utf-8")
    assert source.count('<tr class="under">') == 3
    # A browser makes no exception for it here: what the page forbids is no part of this.
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    (tmp_path / "page.html").write_text(source.replace("</body>", MEASURES_WIDTHS), encoding="utf-8")
    words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--window-size={width},1200",
        "--virtual-time-budget=20000",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        (tmp_path / "page.html").as_uri(),
    ]
    drawn = subprocess.run([str(CHROMIUM), *words], capture_output=True, text=True, timeout=120, check=True)
    assert '<p id="wide"></p>' in drawn.stdout
