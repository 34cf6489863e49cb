"""Every message is in every picture: the store of extremes is exact, and what is drawn reads it."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread as read_image
from msgspec.structs import replace
from typer.testing import CliRunner

import wiregauge as wg
from simulation import trial
from synthetic import Columns, Recipe, make
from wiregauge import measures, results
from wiregauge.cli import app
from wiregauge.figures import Figure, build
from wiregauge.figures.explained import explained_figures
from wiregauge.figures.model import Box, Line, Scatter
from wiregauge.measures.explaining import explain
from wiregauge.measures.extremes import building, courses, keeping, spaced
from wiregauge.measures.metrics import sampling
from wiregauge.records import RunDirectory
from wiregauge.records.verifying import verify
from wiregauge.results.explaining.shapes import explained_shapes
from wiregauge.stats import pyramid

FAULTS = Path(__file__).resolve().parents[1] / "faults"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


# -- the arrays -----------------------------------------------------------------------------------------------


def series(rng: np.random.Generator, n: int, *, ordered: bool, known: float) -> pyramid.Values:
    at = rng.integers(0, 10**9, n)
    if ordered:
        at.sort()
    has = rng.random(n) < known
    lost = ~has & (rng.random(n) < 0.5)
    value = rng.integers(-(10**12), 10**12, n)
    return pyramid.Values(np.arange(n), at, lost, ~has & ~lost, {"x": (value, has)})


def grown(values: pyramid.Values, cuts: list[int]) -> list[pyramid.Blocks]:
    growing = pyramid.Growing()
    for begin, end in itertools.pairwise([0, *cuts, len(values)]):
        growing.add(values.cut(slice(begin, end)))
    finest = growing.finish()
    assert finest is not None
    return pyramid.levels(finest)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 9000),
    seed=st.integers(0, 2**32),
    ordered=st.booleans(),
    known=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    most=st.sampled_from([1, 2, 7, 100, 2000]),
    parts=st.integers(0, 6),
)
def test_any_window_has_exactly_the_extremes_and_counts_of_its_messages(
    n: int, seed: int, ordered: bool, known: float, most: int, parts: int
) -> None:
    rng = np.random.default_rng(seed)
    values = series(rng, n, ordered=ordered, known=known)
    levels = grown(values, sorted(int(cut) for cut in rng.integers(0, n, parts)))
    value, has = values.of["x"]
    assert has is not None

    def read(begin: int, end: int) -> pyramid.Values:
        return values.cut(slice(begin * pyramid.BLOCK, end * pyramid.BLOCK))

    for level in levels:
        assert (level.count.sum(), level.of["x"].n.sum()) == (n, np.count_nonzero(has))
    instants = rng.choice(values.at, 6)
    for begin, end in [(0, 10**9), *zip(instants, instants + rng.integers(1, 10**8, 6), strict=True)]:
        found = pyramid.window(levels, "x", (int(begin), int(end)), most, read)
        inside = (values.at >= begin) & (values.at < end)
        assert len(found) <= 2 * most
        assert found.count.sum() == np.count_nonzero(inside)
        assert found.lost.sum() == np.count_nonzero(inside & values.lost)
        assert found.unknown.sum() == np.count_nonzero(inside & values.unknown)
        assert found.n.sum() == np.count_nonzero(inside & has)
        if not (inside & has).any():
            continue
        assert found.least[found.n > 0].min() == value[inside & has].min()
        assert found.greatest[found.n > 0].max() == value[inside & has].max()
        for column in np.flatnonzero(found.n)[:20]:
            mine = values.at == found.greatest_at[column]
            assert found.greatest[column] in value[mine & has]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 6000),
    seed=st.integers(0, 2**32),
    parts=st.integers(0, 6),
    jump=st.sampled_from([0, 3, 500, 10**7]),
    coarse=st.sampled_from([1, 1000, 10**6]),
    most=st.sampled_from([1, 7, 100, 2000]),
)
def test_times_between_arrivals_are_those_of_all_in_their_order(
    n: int, seed: int, parts: int, jump: int, coarse: int, most: int
) -> None:
    """Whoever overtakes whom, however far, and also where many come at one instant of a coarse clock."""
    rng = np.random.default_rng(seed)
    came = np.cumsum(rng.integers(0, 1000, n)) + rng.integers(0, jump + 1, n)
    came = came // coarse * coarse
    ordered = np.sort(came)
    one = spaced.Spaced("x", silences=False)
    batches = np.split(came, sorted(int(cut) for cut in rng.integers(0, n, parts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spaced, "HELD", 100)
        for batch in batches:
            one.take(batch)
        for batch in batches:
            one.take_again(batch)
        finest = one.finish()
    assert finest is not None

    def read(begin: int, end: int) -> pyramid.Values:
        return one.of_blocks(finest, (begin, end), lambda a, b: came[(came >= a) & (came <= b)])

    space = np.diff(ordered)
    for begin, end in [(0, int(ordered[-1]) + 1), *np.sort(rng.choice(ordered, (6, 2)), axis=1).tolist()]:
        found = pyramid.window(pyramid.levels(finest), "x", (begin, end), most, read)
        inside = (ordered >= begin) & (ordered < end)
        assert found.count.sum() == np.count_nonzero(inside)
        own = space[inside[1:]]
        assert found.n.sum() == len(own)
        if len(own):
            assert (found.least.min(), found.greatest[found.n > 0].max()) == (own.min(), own.max())


# -- a planted message in every picture -----------------------------------------------------------------------

PLANTED_US = 4321


def planted(place: int, recipe: Recipe, path: Path) -> measures.Judgement:
    """A run of which one message took much longer than all others."""

    def alter(columns: Columns, flow: int) -> None:
        if flow != 10:
            return
        columns["lost"][place] = False
        columns["present"]["rx_app"][place] = True
        columns["rx_app"][place] = columns["tx_app"][place] + PLANTED_US * 1_000_000

    return results.judge(make(path, replace(recipe, alter=alter)))


def highest(figure: Figure) -> float:
    """The highest mark of a figure, us."""
    found = []
    for panel in figure.panels:
        for trace in panel.traces:
            if isinstance(trace, Line | Scatter) and len(trace.y):
                found.append(float(np.nanmax(trace.y)))
            elif isinstance(trace, Box):
                found.append(max(float(trace.outliers.max(initial=-np.inf)), trace.high))
    return max(found)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("place", [0, 1, 4096, 17_777, 29_999])
def test_a_single_message_is_in_every_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, sampled: bool
) -> None:
    recipe = Recipe(
        protocols=("udp",), payloads=(64,), messages=30_000, relay=False, warm_up=0, loss=0.001, repeats=1
    )
    if sampled:
        # A schema of old has no sketches, so nothing of it is sampled: the store alone is tried in parts.
        monkeypatch.setattr(building, "BATCH", 3000)
    judgement = planted(place, recipe, tmp_path / "r")
    run = judgement.runs[0]
    (flow,) = run.flows
    greatest = flow.summaries["latency"].maximum
    assert greatest is not None
    assert greatest > 4e6
    made = {figure.id: figure for figure in build(judgement, results.shapes(judgement))}
    for name in ("latency-time", "latency-percentiles", "latency-by-payload"):
        if name in made:
            assert highest(made[name]) == pytest.approx(greatest / 1e3, rel=1e-12), name
    (explained,) = explained_figures(explained_shapes(judgement, explain(judgement)))
    assert highest(explained) >= greatest / 1e3 * (1 - 1e-12)
    latency = wg.open(tmp_path / "r").latency(flow=10)
    for kind in ("time", "box", "percentiles"):
        assert highest(latency._drawn(kind, 50)) == pytest.approx(greatest / 1e3, rel=1e-12), kind
    for most in (1, 13, 2000):
        columns = latency.columns(most)
        assert columns["greatest_ns"].max() == greatest
        assert (columns["messages"].sum(), columns["lost"].sum()) == (
            flow.counts["sent"],
            flow.counts["lost"],
        )


SVG = "{http://www.w3.org/2000/svg}"


def marks_of(path: Path) -> tuple[np.ndarray, tuple[float, float]]:
    """The marks of a printed figure as x and y, and the size of the drawing."""
    root = ElementTree.parse(path).getroot()
    groups = [(group.attrib.get("id", ""), group) for group in root.iter(f"{SVG}g")]
    keys = {use for name, group in groups if name.startswith("legend") for use in group.iter(f"{SVG}use")}
    marks = [
        (float(use.attrib["x"]), float(use.attrib["y"]))
        for name, group in groups
        if name.startswith("PathCollection")
        for use in group.iter(f"{SVG}use")
        if use not in keys
    ]
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return np.array(marks), (width, height)


@pytest.mark.parametrize("place", [0, 12_345, 29_999])
def test_a_single_message_is_in_every_file_that_is_made(tmp_path: Path, place: int) -> None:
    """In figures as SVG and PNG, in tables, and in what a notebook shows."""
    recipe = Recipe(
        protocols=("udp",), payloads=(64,), messages=30_000, relay=False, warm_up=0, loss=0.001, repeats=1
    )
    planted(place, recipe, tmp_path / "r")
    took = wg.open(tmp_path / "r").latency(flow=10).max().value
    assert took is not None
    took_us = took / 1e3
    sent = pl.read_parquet(tmp_path / "r" / "messages" / "run-0000.parquet").filter(pl.col("flow") == 10)
    at = sent["tx_app"].to_numpy()
    share = (at[place] - at[0]) / (at[-1] - at[0])
    folder = tmp_path / "figures"
    for kind in ("svg", "png"):
        done = CliRunner().invoke(app, ["report", str(tmp_path / "r"), f"--{kind}", str(folder)])
        assert done.exit_code == 0, done.output
    for name in ("latency-time", "explain-0-10-0"):
        found = next(folder.glob(f"{name[:12]}*.svg"))
        marks, (width, height) = marks_of(found)
        # The first panel is the one above the others.
        top = marks[np.argmin(marks[:, 1])]
        others = np.sort(marks[:, 1])
        assert others[1] - others[0] > 20, name
        low, high = marks[:, 0].min(), marks[:, 0].max()
        assert (top[0] - low) / (high - low) == pytest.approx(share, abs=2e-3), name
        pixels = read_image(found.with_suffix(".png"))[..., :3]
        x, y = round(top[0] / width * pixels.shape[1]), round(top[1] / height * pixels.shape[0])
        near = pixels[max(y - 3, 0) : y + 4, max(x - 3, 0) : x + 4]
        assert (near.max(axis=2) - near.min(axis=2)).max() > 0.1 or near.min() < 0.6, name
    for what, column in (("messages", None), ("series", "value_ns")):
        out = tmp_path / f"{what}.csv"
        words = [
            "export",
            str(tmp_path / "r"),
            "--to",
            "csv",
            "--what",
            what,
            "--flow",
            "10",
            "--out",
            str(out),
        ]
        words += ["--measure", "latency"] if what == "series" else []
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        table = pl.read_csv(out)
        values = (
            table[column]
            if column is not None
            else (table["rx_app_ps"] - table["tx_app_ps"]).drop_nulls() / 1e3
        )
        assert values.max() == pytest.approx(took_us * 1e3, rel=1e-9), what
    latency = wg.open(tmp_path / "r").latency(flow=10)
    shown = latency.figure("time")
    assert max(max(trace["y"]) for trace in shown.data) == pytest.approx(took_us, rel=1e-6)
    latency.picture("time").save(tmp_path / "notebook.svg")
    marks, _ = marks_of(tmp_path / "notebook.svg")
    assert np.diff(np.sort(marks[:, 1])[:2])[0] > 20


# -- every measure --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("name", ["afdx", "faults", "multicast"])
def test_every_measure_over_time_has_exactly_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, stored: bool
) -> None:
    """Examples with critical traffic, with relayed flows that lose and swap messages, and with several receivers."""
    monkeypatch.setattr(building, "BATCH", 700)
    monkeypatch.setattr(keeping, "KEPT_FROM", 1 if stored else 1 << 60)
    place = tmp_path / "r"
    judgement = trial(EXAMPLES / f"{name}.xml", place)
    assert (place / "extremes").exists() == stored
    seen = set()
    for run in judgement.runs:
        of_run = courses(judgement, run.plan, run.flows)
        for flow in run.flows:
            for measure, summary in flow.summaries.items():
                if not summary.n:
                    continue
                course = of_run.of(flow.plan, measure)
                assert course is not None, measure
                for most in (7, 100_000):
                    shape = course.columns(most)
                    assert shape.values == summary.n, measure
                    assert (np.nanmin(shape.least), np.nanmax(shape.greatest)) == pytest.approx(
                        (summary.minimum, summary.maximum), rel=1e-12, abs=1e-9
                    ), measure
                seen.add(measure)
    assert {"receive_period", "residence", "ipdv", "delay_variation", "network"} <= seen
    assert ("bag_jitter" in seen) == (name == "afdx")


# -- in a run directory ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten bursts of others in a run that is sampled: 2 s of the fault that was told, in little."""
    place = tmp_path_factory.mktemp("bursts")
    text = (FAULTS / "ten-bursts-three-shown.xml").read_text(encoding="utf-8")
    text = text.replace('count="2000000"', 'count="40000"').replace(
        'period="19s" offset="7s"', 'period="380ms" offset="70ms"'
    )
    (place / "t.xml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "KEPT_FROM", 10_000)
        done = CliRunner().invoke(app, ["run", str(place / "t.xml"), "--out", str(place / "r")])
    assert done.exit_code == 0, done.output
    return place / "r"


def little(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sampling, "ROWS", 10_000)
    patch.setattr(keeping, "KEPT_FROM", 10_000)


def test_the_store_is_listed_hashed_and_made_again(
    bursts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little(monkeypatch)
    place = tmp_path / "r"
    shutil.copytree(bursts, place)
    directory = RunDirectory.open(place)
    name = "extremes/run-0000.parquet"
    entry = directory.manifest["files"][name]
    assert entry["from"] == {
        "messages/run-0000.parquet": directory.manifest["files"]["messages/run-0000.parquet"]["sha256"]
    }
    assert not [one for one in verify(place).findings if one.file == name]
    (place / name).unlink()
    assert [one.state.value for one in verify(place).findings if one.file == name] == ["missing"]
    results.judge(place)
    assert not [one for one in verify(place).findings if one.file == name]
    data = bytearray((place / name).read_bytes())
    data[len(data) // 2] ^= 1
    (place / name).write_bytes(data)
    with pytest.raises(measures.RunDirectoryError, match="extremes"):
        results.judge(place)
    assert CliRunner().invoke(app, ["track", str(place)]).exit_code == 0
    assert not [one for one in verify(place).findings if one.file == name]


def test_every_burst_is_in_picture_and_notebook_of_a_sampled_run(
    bursts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little(monkeypatch)
    judgement = results.judge(bursts)
    run = judgement.runs[0]
    flow = next(flow for flow in run.flows if flow.plan.id == 10)
    assert flow.sampled is not None
    table = pl.read_parquet(bursts / "messages" / "run-0000.parquet").filter(pl.col("flow") == 10)
    took = ((table["rx_app"] - table["tx_app"]) / 1000).to_numpy()
    sent = (table["tx_app"] / 1e12).to_numpy()
    late = took > 1e6
    true = len(np.unique(np.floor(sent[late] / 0.19)))
    assert true == 10
    shown = [results.shapes(judgement).courses(None)]
    marks = next(shape for key, shape in shown[0].items() if key.flow == 10)
    columns = wg.open(bursts).latency(flow=10).columns(500)
    for t, value in (marks.marks(), (columns["greatest_at_s"].to_numpy(), columns["greatest_ns"].to_numpy())):
        assert len(np.unique(np.floor(t[value > 1e6] / 0.19))) == true
        assert value.max() == took.max()
    of_run = courses(judgement, run.plan, [flow])
    for name in building.series_of(flow.plan):
        course = of_run.of(flow.plan, name)
        assert course is not None
        seen = course.columns(300)
        summary = flow.summaries[name]
        assert (seen.values, np.nanmax(seen.greatest), np.nanmin(seen.least)) == (
            summary.n,
            summary.maximum,
            summary.minimum,
        )


def test_explanations_see_every_message_and_every_frame(
    bursts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little(monkeypatch)
    found = next(one for one in explain(results.judge(bursts)).flows if one.flow.id == 10)
    assert {series.recurrence.n for series in found.series} == {40_000}
    worst = found.worst[0]
    assert worst.cause == "queue"
    assert worst.partner_count > 100
    assert len(worst.partners) == 40
    assert "behind" in worst.sentence


@pytest.mark.parametrize("period", [3, 2000, 4096, 8192])
def test_modes_are_those_of_all_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period: int
) -> None:
    """A ghost of the sampling (none is planted at 3) or a true mode, whatever its period is to the stretches."""
    rng = np.random.default_rng(3)
    n = 60_000
    value = np.asarray(rng.exponential(100.0, n), np.float64)
    if period > 3:
        value[np.arange(n) % period < 40] += 2000.0
    from wiregauge.measures.explaining.explain import explain_series
    from wiregauge.measures.metrics.judgement import Series

    recurrence = explain_series("latency", Series(np.linspace(0.0, (n - 1) * 1e-4, n), value)).recurrence
    assert [round(mode.period.value / 1e-4) for mode in recurrence.modes] == ([period] if period > 3 else [])


def test_what_is_sampled_comes_at_no_period() -> None:
    rows = pl.DataFrame({"flow": np.full(1_000_000, 1), "sequence": np.arange(1_000_000)})
    for one_in in (2, 4, 7):
        kept = rows.filter(sampling.chosen({1: one_in}))
        stretch = np.unique(kept["sequence"].to_numpy() // sampling.STRETCH)
        assert stretch[0] == 0
        whole = 1_000_000 // sampling.STRETCH // one_in
        assert abs(len(stretch) - whole) <= 1
        assert len(set(np.diff(stretch).tolist())) > 2
        places = np.bincount(stretch % one_in, minlength=one_in)
        assert places.min() > 0.5 * whole / one_in
