"""Figures for print: the size and fonts of a column, every message in them, one sentence where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from synthetic import Recipe, make
from wiregauge import results
from wiregauge.cli import app
from wiregauge.figures import FIGURES, Figure, NoFigureError, draw, printed
from wiregauge.figures.model import Bars, Box, Line, Scatter
from wiregauge.figures.palette import side
from wiregauge.figures.registry import _REPORT, of_measure
from wiregauge.figures.styles import STYLES
from wiregauge.measures import Judgement
from wiregauge.measures.metrics.sampling import Sampled
from wiregauge.notebook.measure import KINDS
from wiregauge.results.shapes import Selection, Side, short_labels

RECIPE = Recipe(protocols=("udp",), payloads=(64,), messages=800, warm_up=10, loss=0.01, relay=False)
OF_MEASURES = [kind.name for kind in FIGURES.values() if kind.of_measure]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    for seed in (1, 2, 3):
        make(place / f"r{seed}", replace(RECIPE, seed=seed))
    return place


@pytest.fixture(scope="module")
def judged(runs: Path) -> Judgement:
    return results.judge(runs / "r1")


def command(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["figure", *map(str, words), "-q"])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def extremes(figure: Figure, kind: str) -> tuple[float, float]:
    """The least and the greatest value in the traces of a figure, µs."""
    found: list[float] = []
    for panel in figure.panels:
        for trace in panel.traces:
            match trace:
                case Line() if kind != "density":
                    found += (trace.x if kind == "cdf" else trace.y).tolist()
                case Scatter():
                    found += trace.y.tolist()
                case Box():
                    found += [trace.low, trace.high, *trace.outliers.tolist()]
                case Bars():
                    half = trace.width / 2
                    found += [float(trace.x.min()) - half, float(trace.x.max()) + half]
                    assert trace.height[0] > 0
                    assert trace.height[-1] > 0
    return min(found), max(found)


@pytest.mark.parametrize("part", [(None, None), (0.3, 0.9), (None, 0.5), (1.0, None)])
@pytest.mark.parametrize("kind", [kind for kind in OF_MEASURES if kind != "density"])
def test_what_is_drawn_reaches_as_far_as_the_records(
    judged: Judgement, kind: str, part: tuple[float | None, float | None]
) -> None:
    """Of the whole run and of any part of its time."""
    for measure in ("latency", "period"):
        series = judged.runs[0].flows[0].series[measure]
        begin, end = (one if one is not None else other for one, other in zip(part, (0.0, 1e9), strict=True))
        value = series.value[(series.t >= begin) & (series.t < end)] / 1e3
        assert 20 < len(value) < 1000
        figure = draw(kind, [Side(judged)], measure, Selection(begin_s=part[0], end_s=part[1]))
        assert extremes(figure, kind) == pytest.approx((value.min(), value.max()), rel=1e-9)
        notes = " ".join(figure.notes)
        assert f"n = {len(value)}." in notes or f"All {len(value)} messages are in the picture" in notes


def test_runs_share_a_figure_and_each_has_its_name(runs: Path) -> None:
    sides = [Side(results.judge(runs / f"r{seed}"), f"r{seed}") for seed in (1, 2, 3)]
    figure = draw("cdf", sides)
    (panel,) = figure.panels
    assert [trace.name for trace in panel.traces if isinstance(trace, Line)] == ["r1", "r2", "r3"]
    styles = [trace.style for trace in panel.traces]
    assert len({style.colour for style in styles}) == len({style.dash for style in styles}) == 3
    for one, trace in zip(sides, panel.traces, strict=True):
        assert isinstance(trace, Line)
        assert trace.x.max() * 1e3 == one.judgement.runs[0].flows[0].summaries["latency"].maximum
    with pytest.raises(NoFigureError, match="hops is of one run directory"):
        draw("hops", sides)


@pytest.mark.parametrize("style", [name for name in STYLES if name != "report"])
def test_a_pdf_has_the_width_of_its_style_and_every_font(
    judged: Judgement, tmp_path: Path, style: str
) -> None:
    figure = draw("cdf", [Side(judged)])
    path = printed.write(figure, tmp_path / "f.pdf", STYLES[style])
    content = path.read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", content)
    assert box is not None
    assert float(box[1]) / 72 * 25.4 == pytest.approx(STYLES[style].width_mm, abs=0.01)
    assert float(box[2]) / 72 * 25.4 == pytest.approx(printed.size_mm(figure, STYLES[style])[1], abs=0.01)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    again = printed.write(figure, tmp_path / "f.pdf", STYLES[style])
    assert again.read_bytes() == content, "the same figure gives the same file, and replaces its own"


@pytest.mark.parametrize("form", printed.FORMATS)
def test_a_file_of_somebody_else_stays(runs: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"f.{form}"
    words = (runs / "r1", "--figure", "box", "--out", out)
    assert command(*words)[0] == 0
    assert command(*words)[0] == 0, "its own is replaced"
    out.write_bytes(b"%PDF-1.4 a drawing of mine" + bytes(40_000))
    code, said = command(*words)
    assert (code, out.read_bytes()[9:21]) == (2, b"a drawing of"), said
    assert "name another or remove it" in " ".join(said.split())
    assert not list(tmp_path.glob(".wiregauge-*"))


def test_a_caption_says_what_paper_does_not_show(runs: Path, tmp_path: Path) -> None:
    code, said = command(runs / "r1", "--figure", "time", "-o", tmp_path / "f.svg", "--time", "0s..400ms")
    assert code == 0, said
    assert re.search(
        r"All \d+ messages are in the picture: each is a mark\. Not in it, as they have no value", said
    )
    assert "Drag" not in said
    assert "88.9 mm x" in said
    code, said = command(
        *(runs / f"r{seed}" for seed in (1, 2)),
        *("--figure", "ipdv-box", "-o", tmp_path / "g.png", "--label", "before", "--label", "after"),
    )
    assert code == 0, said
    assert re.search(r"n = \d+ \(before\), \d+ \(after\)", said)


REFUSED = {
    ("--figure", "cdff"): 'no figure (did you mean "cdf"?)',
    ("--figure", "cdf", "--style", "iee-column"): 'did you mean "ieee-column"?',
    ("--figure", "cdf", "--measure", "latncy"): 'did you mean "latency"?',
    ("--figure", "cdf", "--flow", "99"): "there is no flow 99; there are 10",
    ("--figure", "cdf", "--at", "load=5%"): "load is no axis; the test sweeps nothing: leave --at out",
    ("--figure", "cdf", "--time", "2s..1s"): "ends at 1 s, before it begins",
    ("--figure", "cdf", "--time", "1s"): "write BEGIN..END",
    ("--figure", "cdf", "--time", "1..2"): "--time",
    ("--figure", "cdf", "--time", "100s.."): "nothing to draw",
    ("--figure", "split", "--time", "0s..1s"): "split has no part of time",
    ("--figure", "network", "--flow", "10"): "network is of the whole run",
    ("--figure", "rtt-cdf"): "rtt-cdf: there is nothing to draw",
    ("--figure", "rtt-cdf", "--measure", "ipdv"): "names the measure rtt, beside ipdv",
    ("--figure", "hops"): "the run has no record of a passage through a switch",
    ("--figure", "cdf", "--label", "a", "--label", "b"): "2 times for 1 run",
    (): "--figure is missing",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(
    runs: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    code, said = command(runs / "r1", *words, "--out", tmp_path / "f.pdf")
    assert code == 2, said
    assert REFUSED[words] in " ".join(said.split())
    assert said.count("wiregauge:") - said.count("unverified") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", ["f.gif", "f", "nowhere/f.pdf"])
def test_a_place_that_is_none_is_refused(runs: Path, tmp_path: Path, out: str) -> None:
    assert command(runs / "r1", "--figure", "cdf", "--out", tmp_path / out)[0] == 2


def test_a_part_of_a_run_too_large_to_hold_is_drawn_over_time_alone(judged: Judgement) -> None:
    (run,) = judged.runs
    flow = replace(run.flows[0], sampled=Sampled(one_in=79, rows=10, of=790))
    large = replace(
        judged,
        runs=(replace(run, flows=(flow,)),),
        points=(replace(judged.points[0], flows=(flow,)),),
    )
    with pytest.raises(NoFigureError, match=r"too large to hold its single values.*over time"):
        draw("cdf", [Side(large)], None, Selection(begin_s=0.1, end_s=0.2))
    assert draw("time", [Side(large)], None, Selection(begin_s=0.1, end_s=0.2)).panels


def test_an_invalid_measurement_says_so_below_its_figure(judged: Judgement) -> None:
    from wiregauge.measures.metrics.judgement import Grade

    bad = replace(judged, checks=(replace(judged.runs[0].checks[0], grade=Grade.INVALID),))
    assert bad.validity.word == "INVALID"
    assert "The measurement is INVALID: do not rely on it." in draw("cdf", [Side(bad)]).notes
    assert not any("measurement is" in note for note in draw("cdf", [Side(judged)]).notes)


def test_a_figure_has_one_name_everywhere(judged: Judgement) -> None:
    assert set(KINDS) == set(OF_MEASURES)
    assert {name for name, _ in _REPORT} <= set(FIGURES)
    for kind in OF_MEASURES:
        assert draw(kind, [Side(judged)], "ipdv").id == f"ipdv-{kind}"
        assert of_measure(f"ipdv-{kind}") == (FIGURES[kind], "ipdv")
    for name, of in FIGURES.items():
        assert (of.name, of_measure(name)[0]) == (name, of)
    assert of_measure("latency-by-payload")[1] is None


def test_a_histogram_fills_its_panel_however_narrow_it_is(judged: Judgement) -> None:
    series = judged.runs[0].flows[0].series["latency"]
    for value in (np.full(50, 5_120.0), np.linspace(5_120.0, 5_121.0, 50)):
        flow = replace(judged.points[0].flows[0], series={"latency": replace(series, value=value)})
        narrow = replace(judged, points=(replace(judged.points[0], flows=(flow,)),))
        (panel,) = draw("histogram", [Side(narrow)]).panels
        (bars,) = panel.traces
        assert isinstance(bars, Bars)
        assert panel.x.span is not None
        assert len(bars.x) * bars.width > 0.9 * (panel.x.span[1] - panel.x.span[0])


def test_lines_of_one_panel_differ_without_colour() -> None:
    styles = [side(k) for k in range(12)]
    assert len({(style.colour, style.dash) for style in styles}) == 12
    assert len({(style.dash, style.marker) for style in styles}) == 12


def test_a_label_is_as_short_as_it_can_be(judged: Judgement) -> None:
    flow = judged.runs[0].flows[0].plan
    other = replace(flow, id=11)
    raw = replace(flow, protocol="raw")

    def labels(*of: tuple[object, str]) -> list[str]:
        label = short_labels(of)  # type: ignore[arg-type]
        return [label(*one) for one in of]  # type: ignore[arg-type]

    assert labels((flow, "")) == ["flow 10"]
    assert labels((flow, "a"), (flow, "b")) == ["a", "b"]
    assert labels((flow, "a"), (other, "b")) == ["a, flow 10", "b, flow 11"]
    assert labels((flow, ""), (raw, "")) == ["udp", "raw"]


def test_without_a_run_all_figures_and_styles_are_listed() -> None:
    code, said = command()
    assert code == 0
    listed = {line.split()[0] for line in said.splitlines() if line.startswith("  ")}
    assert {*FIGURES, *STYLES} <= listed


def test_a_figure_too_high_for_the_page_says_what_fits(tmp_path: Path) -> None:
    recipe = replace(RECIPE, payloads=(64, 128, 256, 512, 1024, 1472), protocols=("udp", "raw"), messages=60)
    judgement = results.judge(make(tmp_path / "r", recipe))
    with pytest.raises(NoFigureError, match="payload 63B is not in the sweep, which has 64B, 128B"):
        draw("cdf", [Side(judgement)], None, Selection(at={"payload": "63B"}))
    assert len(draw("cdf", [Side(judgement)], None, Selection(at={"payload": "64B"})).panels) == 1
    figure = draw("histogram", [Side(judgement)])
    with pytest.raises(printed.TooHighError, match=r"12 rows of panels.*ieee-column has 235 mm"):
        printed.write(figure, tmp_path / "f.pdf", STYLES["ieee-column"])
    assert not (tmp_path / "f.pdf").exists()
    assert np.isfinite(printed.size_mm(figure, STYLES["ieee-page"])).all()
