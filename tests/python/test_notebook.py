"""The notebook's way to the figures: the same as `show --json`, whatever is chosen; errors of one class."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synthetic
import wiregauge as wg
import wiregauge.notebook
from wiregauge.measures import DEFINITIONS, SERIES
from wiregauge.measures.definitions import COUNTS, QUANTILES
from wiregauge.notebook.measure import KINDS
from wiregauge.results import show_json

ROOT = Path(__file__).resolve().parents[2]
RECIPE = synthetic.Recipe(
    protocols=("udp", "raw"), payloads=(64, 1472), messages=500, repeats=2, loss=0.01, limits=()
)
POINTS = [(protocol, payload) for protocol in ("udp", "raw") for payload in ("64B", "1472B")]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `first-run` is, simulated through the notebook's own door."""
    place = tmp_path_factory.mktemp("first")
    wg.simulate(ROOT / "examples" / "first.xml", place / "first-run")
    return place


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> wg.Run:
    return wg.open(synthetic.make(tmp_path_factory.mktemp("notebook") / "r", RECIPE))


@pytest.fixture(scope="module")
def shown(run: wg.Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(show_json(run.judgement)))
    return found


MODULES = [
    f"wiregauge.notebook.{module.name}" for module in pkgutil.iter_modules(wiregauge.notebook.__path__)
]


@pytest.mark.parametrize("name", ["wiregauge", *MODULES])
def test_the_examples_in_the_docstrings_run(name: str, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(first)
    module = importlib.import_module(name)
    names = {"run": wg.open("first-run")}
    assert doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_something_is_shown_in_docstrings() -> None:
    found = [
        example
        for name in ("wiregauge", *MODULES)
        for test in doctest.DocTestFinder().find(importlib.import_module(name))
        for example in test.examples
    ]
    assert len(found) > 15


@pytest.mark.parametrize("repeat", [None, 0, 1])
@pytest.mark.parametrize(("protocol", "payload"), POINTS)
def test_figures_are_those_of_show(
    run: wg.Run, shown: dict[str, Any], protocol: str, payload: str, repeat: int | None
) -> None:
    point = {"protocol": protocol, "payload": payload}
    of = (
        next(p for p in shown["points"] if p["point"] == point)
        if repeat is None
        else next(r for r in shown["runs"] if r["point"] == point and r["repeat"] == repeat)
    )
    for flow in of["flows"]:
        which: dict[str, Any] = {"flow": flow["flow"], "repeat": repeat, **point}
        for name in SERIES:
            summary = flow[f"{name}_ns"]
            if summary is None:
                continue
            found = run.measure(name, **which)
            assert isinstance(found, wg.Measure)
            assert found.n == summary["n"]
            assert found.excluded == summary["excluded"]
            assert found.max().value == summary["max"]
            assert found.sd().interval == (tuple(summary["sd_interval"]) if summary["sd_interval"] else None)
            for printed, q in QUANTILES.items():
                figure = found.percentile(100 * q if printed != "p99.99" else 99.99)
                assert figure.value == summary[printed], printed
                if figure.value is not None:
                    assert [figure.low, figure.high] == summary["intervals"][printed]
                else:
                    assert "needs" in figure.reason or not found.n
            series = found.series()
            assert series.height == summary["n"]
            if summary["n"]:
                assert series["value_ns"].mean() == pytest.approx(summary["mean"], rel=1e-9, abs=1e-6)
                assert found.histogram(7)["count"].sum() == summary["n"]
        for name in COUNTS:
            assert float(run.measure(name, **which)) == flow[name]  # type: ignore[arg-type]  # axes of a sweep are keywords
        assert run.loss(**which).interval == (flow["loss"]["low"], flow["loss"]["high"])
        assert run.goodput(**which).value == flow["goodput_bps"]


@pytest.mark.parametrize("name", sorted(set(DEFINITIONS) - {"unplanned"}))
def test_every_measure_of_the_reference_can_be_reached(run: wg.Run, name: str) -> None:
    found = run.measure(name, flow=20, protocol="udp", payload="64B")
    assert isinstance(found, wg.Measure if name in SERIES else wg.Quantity)
    assert found._repr_html_()
    assert name in repr(found) or isinstance(found, wg.Measure)
    if isinstance(found, wg.Quantity):
        assert found.unit == DEFINITIONS[name].unit
        assert found.value is not None or found.reason


@settings(max_examples=60)
@given(p=st.floats(0.01, 99.99, allow_nan=False), repeat=st.sampled_from([None, 0, 1]))
def test_any_percentile_is_a_value_that_was_measured(run: wg.Run, p: float, repeat: int | None) -> None:
    latency = run.latency(10, protocol="raw", payload="64B", repeat=repeat)
    values = np.sort(latency.series()["value_ns"].to_numpy())
    figure = latency.percentile(p)
    if figure.value is None:
        assert "needs" in figure.reason
        return
    # At or below it lie at least p % of the values, and fewer without it (nearest rank).
    below = np.searchsorted(values, figure.value, side="right")
    assert below >= p / 100 * len(values) * (1 - 1e-12)
    assert np.searchsorted(values, figure.value, side="left") < p / 100 * len(values) * (1 + 1e-12)
    assert figure.low is None or figure.low <= figure.value
    assert figure.high is None or figure.high >= figure.value


@pytest.mark.parametrize(
    ("which", "named"),
    [
        ({}, "several flows"),
        ({"flow": 10}, "4 points.*protocol=.*payload="),
        ({"flow": 99}, "no flow 99; there are 10 to sensor"),
        ({"flow": 10, "load": "50%"}, "load is no axis; the axes of the sweep are protocol, payload"),
        ({"flow": 10, "payload": "65B"}, "which has 64B, 1472B"),
        ({"flow": 10, "payload": "64B", "protocol": "udp", "repeat": 2}, "no repeat 2; there are 0, 1"),
        ({"flow": 10, "to": "mac"}, "no flow 10 to mac"),
    ],
)
def test_a_choice_that_is_none_says_what_there_is(run: wg.Run, which: dict[str, Any], named: str) -> None:
    with pytest.raises(wg.WiregaugeError, match=named) as told:
        run.latency(**which)
    assert "\n" not in str(told.value)


def test_flows_are_chosen_by_number_or_name(run: wg.Run) -> None:
    point = {"protocol": "udp", "payload": "64B"}
    tops = {run.latency(name, **point).max().value for name in (10, "10", "10 to sensor")}
    assert len(tops) == 1
    assert run.latency(20, **point).max().value not in tops


def test_tables_have_every_message(run: wg.Run, shown: dict[str, Any]) -> None:
    messages = run.messages(flow=10)
    assert isinstance(messages, pl.LazyFrame)
    measured = messages.filter(~pl.col("warm_up")).group_by("run").len().collect()
    assert dict(measured.iter_rows()) == {
        r["index"]: f["sent"] for r in shown["runs"] for f in r["flows"] if f["flow"] == 10
    }
    assert run.flows["flow"].to_list() == [10, 20]
    assert run.points.height == len(POINTS)
    assert run.limits.height == 0
    assert run.checks.filter(pl.col("run").is_null()).height == len(shown["checks"])
    assert run.table().filter(pl.col("run").is_null()).height > 0
    with pytest.raises(wg.WiregaugeError, match="records of run 0"):
        run.records()
    with pytest.raises(wg.WiregaugeError, match="run 77"):
        run.messages(run=77)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["latency", "ipdv", "period"])
def test_figures_are_plotly_figures(run: wg.Run, kind: Any, name: str) -> None:
    from plotly.graph_objects import Figure

    measure = run.measure(name, 10, protocol="udp", payload="64B", repeat=1)
    assert isinstance(measure, wg.Measure)
    figure = measure.figure(kind)
    assert isinstance(figure, Figure)
    assert len(figure.data)
    assert "µs" in figure.layout.xaxis.title.text + figure.layout.yaxis.title.text
    picture = measure.picture(kind)
    assert "µs" in picture._repr_svg_()
    assert picture == measure.picture(kind), "the same picture every time"


def test_without_plotly_a_figure_says_what_is_missing(run: wg.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    measure = run.measure("latency", 10, protocol="udp", payload="64B", repeat=1)
    assert isinstance(measure, wg.Measure)
    with pytest.raises(wg.WiregaugeError, match=r"wiregauge\[notebook\].*picture"):
        measure.figure()
    assert "<svg" in measure.picture()._repr_svg_()


def test_what_no_figure_can_show_is_refused(run: wg.Run) -> None:
    measure = run.latency(10, protocol="udp", payload="64B")
    with pytest.raises(wg.WiregaugeError, match="repeat=0"):
        measure.figure("time")
    with pytest.raises(wg.WiregaugeError, match="no values"):
        run.rtt(10, protocol="udp", payload="64B").figure()
    with pytest.raises(wg.WiregaugeError, match="pie"):
        measure.figure("pie")  # type: ignore[arg-type]  # what a user without a type checker writes
    for p in (0, 100, -1, float("nan"), float("inf")):
        with pytest.raises(wg.WiregaugeError, match="between 0 and 100"):
            measure.percentile(p)
    with pytest.raises(wg.WiregaugeError, match="at least one class"):
        measure.histogram(0)


def test_a_simulation_from_the_builder(tmp_path: Path) -> None:
    test = (
        wg.Test("built", seed=3)
        .end_system("a")
        .end_system("b")
        .link("a", "b", rate="1Gbit/s")
        .flow(1, protocol="udp", from_="a", to="b")
        .timing(warm_up="10ms")
        .send(1, period="2ms", payload="64B", count=120)
        .receive(1)
        .axis("payload", ["64B", "128B"])
        .limit("lost", at_most=0)
    )
    assert wg.check(test).runs == 2
    run = wg.simulate(test, tmp_path / "r", jobs=1)
    assert (run.validity, run.verdict) == ("VALID", "PASS")
    assert run.sent(1, payload="64B").value == 120
    assert run.records(run=1).select(pl.len()).collect().item() > 120
    counted = run.sketches(run=1).filter(measure="latency").select(pl.col("count").sum()).collect().item()
    assert counted == run.latency(1, payload="128B").n == 120
    assert run.passages().collect().is_empty(), "there is no switch"
    with pytest.raises(wg.WiregaugeError, match="never overwritten"):
        wg.simulate(test, tmp_path / "r")
    assert run.export("csv", tmp_path / "t.csv").exists()
    with pytest.raises(wg.WiregaugeError, match="already exists"):
        run.export("csv", tmp_path / "t.csv")
    with pytest.raises(wg.WiregaugeError, match="jobs = 0"):
        wg.simulate(test, tmp_path / "s", jobs=0)
    test.flow(2, protocol="udp", from_="a", to="nobody")
    with pytest.raises(wg.WiregaugeError, match="nobody"):
        wg.check(test)


def test_damaged_directories_raise_the_one_class(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place, why in (("nowhere", "no such directory"), ("empty", "not a run directory")):
        with pytest.raises(wg.WiregaugeError, match=why):
            wg.open(tmp_path / place)
    made = synthetic.make(tmp_path / "r", synthetic.Recipe(protocols=("udp",), payloads=(64,), messages=50))
    run = wg.open(made)
    (made / "messages" / "run-0000.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(wg.WiregaugeError, match="no readable Parquet"):
        run.latency(flow=10)
    with pytest.raises(wg.WiregaugeError, match="no readable Parquet"):
        run.messages()


def test_importing_costs_little() -> None:
    code = (
        "import sys, wiregauge as wg; wg.__version__; assert 'open' in dir(wg); "
        "print(sorted({'numpy', 'polars', 'scipy', 'plotly', 'pyarrow', 'lxml'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "python"
    )
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_there_and_documented() -> None:
    for name in wg.__all__:
        found = getattr(wg, name)
        assert name == "__version__" or inspect.getdoc(found), name
        if inspect.isclass(found):
            for member, value in inspect.getmembers(found):
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    assert inspect.getdoc(value), f"{name}.{member}"
    with pytest.raises(AttributeError):
        wg.nothing  # noqa: B018


def test_the_example_notebook_shows_what_it_would_show_now() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "notebook.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (ROOT / "docs" / "guide" / "notebook.ipynb").stat().st_size < 400_000


def test_a_disk_that_fails_under_a_simulation_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error", "/somewhere")

    monkeypatch.setattr(sys.modules["wiregauge.runner.trials"], "host_facts", failing)
    with pytest.raises(wg.WiregaugeError, match="/somewhere: Input/output error"):
        wg.simulate(ROOT / "examples" / "first.xml", tmp_path / "r")
    monkeypatch.undo()
    monkeypatch.setattr(sys.modules["wiregauge.runner.benches.simulation"], "track_run", failing)
    with pytest.raises(wg.WiregaugeError, match="/somewhere: Input/output error"):
        wg.simulate(ROOT / "examples" / "first.xml", tmp_path / "s")
