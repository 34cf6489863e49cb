"""A history of runs: what stepped, what the newest is, what was left out and why."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta
from msgspec.structs import replace
from rich.console import Console

from synthetic import Columns, Recipe, make
from test_compare import keys
from test_report import EVIL, Page
from wiregauge import measures, report, results
from wiregauge.measures import comparing
from wiregauge.measures.comparing import MatchError, Trend, read_threshold, trend
from wiregauge.results.comparing import trend_headline, trend_json, trend_schema_path, trend_text

LIMITS: list[dict[str, Any]] = [
    {"flow": 10, "measure": "latency.p50", "bound": "at-most", "value": 40e3, "written": "40us", "line": 9},
    {"flow": None, "measure": "latency.p99", "bound": "at-most", "value": 1e9, "written": "1s", "line": 10},
]
SMALL = Recipe(protocols=("udp",), payloads=(64,), messages=4000, loss=0, limits=LIMITS)
SCHEMA = json.loads(trend_schema_path().read_text())


def slower(by_us: float) -> Any:
    """Delays everything that arrives."""

    def alter(columns: Columns, flow: int) -> None:
        for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
            if name in columns:
                columns[name] = columns[name] + int(by_us * 1e6)

    return alter


def history(place: Path, delays_us: Sequence[float], **changes: Any) -> list[measures.Judgement]:
    """A run a day; each with its own seed and its own delay."""
    made = []
    for day, delay in enumerate(delays_us):
        path = make(place / f"day{day}", replace(SMALL, seed=100 + day, alter=slower(delay), **changes))
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["started"] = f"2026-02-{day + 1:02d}T09:00:00Z"
        (path / "manifest.json").write_text(json.dumps(manifest))
        made.append(results.judge(path))
    return made


def of(found: Trend, flow: int, figure: str) -> comparing.TrendSeries:
    return next(s for s in found.series if s.flow.plan.id == flow and s.figure == figure)


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> list[measures.Judgement]:
    return history(tmp_path_factory.mktemp("stepped"), [0, 0, 0, 0, 0, 15, 15, 15])


def test_a_step_is_flagged_where_it_happened_and_the_run_that_made_it_is_worse(
    stepped: list[measures.Judgement],
) -> None:
    found = trend(list(reversed(stepped)))
    assert found.names == tuple(f"day{k}" for k in range(8))
    median = of(found, 10, "latency.p50")
    assert median.steps == (5,)
    # The second run is held against one alone, as `compare` does: of p99.9 too few messages tell.
    assert [found.verdict_of(k) for k in range(1, 8)] == ["undecided", *["same"] * 3, "worse", "same", "same"]
    made = median.at(5)
    assert made is not None
    assert made.shift is not None
    assert made.shift.low is not None
    assert made.shift.high is not None
    assert made.shift.low < 15_000 < made.shift.high
    later = median.at(7)
    assert later is not None
    assert later.reference == pytest.approx(made.value.value, abs=1500)
    # After the step its level is the normal one, but not against the first run.
    assert (found.verdict, found.exit_code) == ("same", 0)
    first = trend(stepped, against="first")
    assert (first.verdict, first.exit_code) == ("worse", 1)
    assert trend(stepped[:6]).exit_code == 1
    for within, code in (("1ms", 0), ("40us", 4)):  # of p99 less is known than 40 µs
        asked = [read_threshold(f"{measure}={within}") for measure in ("latency", "rtt")]
        assert trend(stepped[:6], thresholds=asked).exit_code == code


def test_steady_histories_raise_no_alarm_beyond_the_stated_rate(tmp_path: Path) -> None:
    found = trend(history(tmp_path, [0] * 12))
    alarms = [k for k in range(1, 12) if found.verdict_of(k) in ("worse", "better")]
    assert len(alarms) <= 2  # 5 % of 11 runs; three or more come by chance 1 time in 60
    assert sum(bool(series.steps) for series in found.series) <= 2


def test_runs_that_scatter_raise_no_alarm_by_scattering(tmp_path: Path) -> None:
    found = trend(history(tmp_path, [0, 9, 3, 12, 5, 10, 1, 8]))
    assert found.verdict == "same"
    assert of(found, 10, "latency.p50").steps == ()


def test_limits_are_those_of_the_newest_test(stepped: list[measures.Judgement]) -> None:
    found = trend(stepped)
    (limit,) = of(found, 10, "latency.p50").limits
    assert (limit.bound, limit.value, limit.written) == ("at-most", 40e3, "latency.p50 at most 40us")
    assert of(found, 20, "latency.p50").limits == ()
    assert len(of(found, 20, "latency.p99").limits) == 1


def test_runs_that_are_not_fit_are_left_out_and_said(tmp_path: Path) -> None:
    good = history(tmp_path / "good", [0, 0, 0, 0])
    bad = results.judge(
        make(tmp_path / "bad", replace(SMALL, agent={"clock_steps": 1}))
    )  # of 5 January: oldest
    found = trend([*good, bad])
    assert list(found.unfit) == [0]
    assert (found.verdict, found.exit_code) == ("same", 0)
    point = of(found, 10, "latency.p50").at(1)
    assert point is not None
    assert point.reference is None
    old = results.judge(make(tmp_path / "old", SMALL))
    cut = history(tmp_path / "cut", [0], state="interrupted", reason="Ctrl-C")
    newest = trend([old, *cut])
    assert newest.exit_code == 4
    assert newest.verdict == "undecided"
    assert "Ctrl-C" in shown(newest)
    assert trend([bad, good[0]]).exit_code == 4


def test_what_is_missing_somewhere_is_listed(tmp_path: Path) -> None:
    runs = history(tmp_path, [0, 0], payloads=(64, 128))
    fewer = history(tmp_path / "more", [0, 0, 0], payloads=(64, 512), relay=False)[2]
    found = trend([*runs, fewer])
    text = "\n".join(found.missing)
    assert "point payload 128B is not in the newest run" in text
    assert "flow 20 is not in the newest run" in text
    assert "flow 10 at payload 512B: not in" in text
    with pytest.raises(MatchError, match="at least two"):
        trend(runs[:1])
    with pytest.raises(MatchError, match="would judge nothing"):
        trend(runs, thresholds=[read_threshold("skew=1us")])


def shown(found: Trend, width: int = 160) -> str:
    out = io.StringIO()
    trend_text(found, Console(file=out, width=width))
    return out.getvalue()


def test_the_json_keeps_its_schema_and_its_keys(stepped: list[measures.Judgement]) -> None:
    found = trend(stepped, thresholds=[read_threshold("latency.p50=5%")])
    tree = json.loads(json.dumps(trend_json(found), allow_nan=False))
    meta.validate(SCHEMA)
    Draft202012Validator(SCHEMA).validate(tree)
    for series in tree["series"]:
        series["axes"] = {}
    golden = (Path(__file__).parent / "golden" / "trend-keys.txt").read_text().split()
    assert sorted(set(keys(tree))) == golden


def test_the_page_draws_every_figure(stepped: list[measures.Judgement], tmp_path: Path) -> None:
    found = trend(stepped[:6])
    source = report.write_trend(found, tmp_path / "t.html").read_text()
    page = Page(source)
    assert (
        source.count('class="plot"') == 8
    )  # four statistics of latency and of the round trip; nothing was lost
    assert "day5" in page.text
    assert "WORSE" in page.text
    assert "Beyond the axis: latency.p99 at most 1s." in page.text
    ids = {value for _, name, value in page.attributes if name == "id"}
    targets = {
        v[1:] for tag, name, v in page.attributes if tag == "a" and name == "href" and v.startswith("#")
    }
    assert targets <= ids
    assert "latency.p50" in shown(found)
    assert "…" not in shown(found, 100).split("intervals:")[0].partition("figure")[2]


def test_names_from_files_cannot_become_markup(tmp_path: Path) -> None:
    runs = history(tmp_path, [0, 0])
    path = runs[1].directory
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["program"]["version"] = manifest["plan"]["name"] = EVIL
    manifest["plan"]["network"]["nodes"][1]["name"] = EVIL
    (path / "manifest.json").write_text(json.dumps(manifest))
    found = trend([runs[0], results.judge(path)])
    page = Page(report.write_trend(found, tmp_path / "t.html").read_text())
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not [s for s in page.scripts if s.startswith("alert")]


def test_a_figure_that_the_newest_run_does_not_have_is_never_the_same(tmp_path: Path) -> None:
    runs = history(tmp_path, [0, 0, 0], relay=False)
    short = history(tmp_path / "short", [0, 0, 0, 0], relay=False, messages=250)[3]
    found = trend([*runs, short])
    assert [part.text for part in found.gone] == [
        "flow 10 at its one point: the newest run has too few values of latency.p99"
    ]
    assert (found.verdict, found.exit_code) == ("undecided", 0)
    assert "too few values of latency.p99" in shown(found)
    assert "too few values of latency.p99" in trend_headline(found)
    # A threshold asked for it, so there is no answer.
    assert trend([*runs, short], thresholds=[read_threshold("latency.p99=1s")]).exit_code == 4
    assert trend([*runs, short], thresholds=[read_threshold("latency.p50=1s")]).exit_code == 0


def test_open_intervals_and_undecided_thresholds_are_no_answer(tmp_path: Path) -> None:
    runs = history(tmp_path, [0, 0, 0], messages=400)
    found = trend(runs)
    p99 = of(found, 10, "latency.p99").at(2)
    assert p99 is not None
    assert (p99.verdict, p99.basis) == ("undecided", "open")
    assert (found.verdict, found.exit_code) == ("undecided", 0)
    narrow = trend(runs, thresholds=[read_threshold("latency.mean=1ns")])
    assert (narrow.verdict, narrow.exit_code) == ("undecided", 4)


def test_benches_that_differ_head_the_trend(tmp_path: Path) -> None:
    runs = history(tmp_path, [0, 0])
    manifest = json.loads((runs[1].directory / "manifest.json").read_text())
    manifest["bench"] = "lab"
    (runs[1].directory / "manifest.json").write_text(json.dumps(manifest))
    found = trend([runs[0], results.judge(runs[1].directory)])
    assert trend_headline(found).startswith("Benches differ (netns, lab): ")
    assert "detectable from" in report.write_trend(found, tmp_path / "t.html").read_text()
