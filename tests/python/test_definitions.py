"""A measure is added in one place: with its definition and its statistic it comes out wherever measures do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema_rs import Draft202012Validator
from msgspec.structs import replace
from rich.console import Console

from synthetic import Recipe, make
from wiregauge import measures, results
from wiregauge import notebook as wg
from wiregauge.export import Choice, tables
from wiregauge.export.openmetrics import exposition
from wiregauge.measures.comparing import compare, read_threshold
from wiregauge.measures.definitions import DEFINITIONS, MAIN, SERIES, Definition
from wiregauge.measures.flow_measures import FLOW_MEASURES
from wiregauge.measures.flow_measures.base import FlowMeasure
from wiregauge.measures.limits import observe
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.series import DIFFERENCES, Difference
from wiregauge.measures.quantities import quantity
from wiregauge.report import write
from wiregauge.report.compare import rate_table
from wiregauge.report.keys import key_tables
from wiregauge.report.tables import detail_table
from wiregauge.results.comparing import compare_json
from wiregauge.results.comparing.types import compare_schema
from wiregauge.results.show_types import show_schema

TWICE = Definition(
    "twice",
    "Twice the latency",
    "2 * (rx_app - tx_app)",
    "ns",
    "A test",
    kind="series",
    better="lower",
    table="steadiness",
    word="twice",
    usual=("p50",),
)
LIMITS = (
    {"flow": None, "measure": "twice.max", "bound": "at-most", "value": 1e9, "written": "1s", "line": 1},
    {"flow": 10, "measure": "twice.p50", "bound": "at-most", "value": 1.0, "written": "1ns", "line": 2},
)
RECIPE = Recipe(protocols=("udp",), payloads=(64,), messages=400, repeats=2, limits=LIMITS)


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Registered as any measure is, for the time of a test."""
    took = 2 * (pl.col("rx_app") - pl.col("tx_app"))
    monkeypatch.setitem(DEFINITIONS, "twice", TWICE)
    monkeypatch.setitem(DIFFERENCES, "twice", Difference(took, took, "rx_app"))
    return TWICE


HASTE = Definition(
    "haste",
    "Haste",
    "8 * payload / latency.min",
    "bit/s",
    "A test",
    kind="single",
    better="higher",
    table="steadiness",
    word="haste",
)


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A measure that is one figure of a flow, registered as any is."""

    class Haste(FlowMeasure[None]):
        name = "haste"
        none = None

        def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
            summary = flow.summaries["latency"]
            value = 8e9 * (flow.plan.payload or 0) / summary.minimum if summary.minimum else None
            around = (0.9 * value, 1.1 * value) if value is not None else None
            yield single(self.name, "", value, summary.n, around, "nothing arrived")

    monkeypatch.setitem(DEFINITIONS, "haste", HASTE)
    monkeypatch.setitem(FLOW_MEASURES, "haste", Haste())
    return HASTE


def printed(judgement: measures.Judgement) -> str:
    console = Console(record=True, width=250)
    results.show_text(judgement, console)
    return console.export_text()


@pytest.mark.usefixtures("twice")
def test_a_new_measure_is_judged_and_shown(tmp_path: Path) -> None:
    judgement = results.judge(make(tmp_path, RECIPE))
    shown: Any = results.show_json(judgement)
    for run in judgement.runs:
        for flow in run.flows:
            assert flow.summaries["twice"].maximum == 2 * (flow.summaries["latency"].maximum or 0)
            told = shown["runs"][run.plan.index]["flows"][run.flows.index(flow)]
            assert told["twice_ns"]["p50"] == pytest.approx(2 * told["latency_ns"]["p50"])
    for point in judgement.points:
        assert point.flows[0].summaries["twice"].n == 800
    Draft202012Validator(show_schema()).validate(shown)


@pytest.mark.usefixtures("twice")
def test_a_new_measure_can_be_limited(tmp_path: Path) -> None:
    """The plan and the judgement accept the limit; in a test it also needs `make language` and a build."""
    (run, *_) = results.judge(make(tmp_path, RECIPE)).runs
    assert [(limit.flow, limit.measure, limit.result) for limit in run.limits] == [
        (10, "twice.max", "pass"),
        (20, "twice.max", "pass"),
        (10, "twice.p50", "fail"),
    ]
    assert observe("twice.mean", run.flows[0]).unit == "ns"


@pytest.mark.usefixtures("twice")
def test_a_new_measure_is_in_the_report(tmp_path: Path) -> None:
    judgement = results.judge(make(tmp_path, RECIPE))
    table = detail_table(judgement)
    assert [head.text for head in table.heads if head.measure == "twice"] == ["twice p50", "twice max"]
    assert all(len(row) == len(table.heads) for section in table.sections for row in section.rows)
    page = write(tmp_path).read_text(encoding="utf-8")
    assert TWICE.title in page
    assert TWICE.formula in page


@pytest.mark.usefixtures("twice")
def test_a_new_measure_is_compared(tmp_path: Path) -> None:
    sides = [results.judge(make(tmp_path / name, RECIPE)) for name in ("base", "new")]
    found = compare(*sides, thresholds=[read_threshold("twice.p50=1us")])
    (flow, *_) = found.points[0].flows
    judged = {shift.statistic: shift.verdict for shift in flow.measures["twice"].shifts}
    assert judged["p50"] == "same"
    assert judged["p90"] is None


@pytest.mark.usefixtures("twice")
def test_a_new_measure_is_exported_and_in_notebooks(tmp_path: Path) -> None:
    place = make(tmp_path, RECIPE)
    rows = tables.measures(results.judge(place), Choice()).collect()
    assert {"mean", "p50", "max"} <= set(rows.filter(pl.col("measure") == "twice")["statistic"])
    assert wg.open(place).measure("twice.max", flow=10, repeat=0).unit == "ns"


@pytest.mark.usefixtures("haste")
def test_a_new_figure_is_judged_and_shown(tmp_path: Path) -> None:
    """Its key, its interval, its limit and its place in the schema come from its definition."""
    limit = {"measure": "haste", "bound": "at-least", "value": 1.0, "written": "1bit/s", "line": 1}
    recipe = replace(RECIPE, limits=({"flow": None, **limit},))
    judgement = results.judge(make(tmp_path, recipe))
    shown: Any = results.show_json(judgement)
    for run, told in zip(judgement.runs, shown["runs"], strict=True):
        assert [(one.flow, one.measure, one.result) for one in run.limits] == [
            (10, "haste", "pass"),
            (20, "haste", "pass"),
        ]
        for flow in told["flows"]:
            least = flow["latency_ns"]["min"]
            assert flow["haste_bps"] == pytest.approx(8e9 * 64 / least)
            assert flow["haste_interval"] == pytest.approx([0.9 * flow["haste_bps"], 1.1 * flow["haste_bps"]])
    Draft202012Validator(show_schema()).validate(shown)
    del shown["runs"][0]["flows"][0]["haste_bps"]
    assert not Draft202012Validator(show_schema()).is_valid(shown)


@pytest.mark.usefixtures("haste")
def test_a_new_figure_without_a_value_says_so(tmp_path: Path) -> None:
    recipe = replace(RECIPE, loss=1.0)
    shown: Any = results.show_json(results.judge(make(tmp_path, recipe)))
    assert shown["runs"][0]["flows"][0]["haste_bps"] is None
    assert shown["runs"][0]["flows"][0]["haste_interval"] is None
    Draft202012Validator(show_schema()).validate(shown)


@pytest.mark.usefixtures("haste")
def test_a_new_figure_is_in_the_report(tmp_path: Path) -> None:
    judgement = results.judge(make(tmp_path, RECIPE))
    table = detail_table(judgement)
    (place,) = (k for k, head in enumerate(table.heads) if head.measure == "haste")
    figure = quantity(judgement.points[0].flows[0], "haste")
    (section,) = table.sections
    assert section.rows[0][place].text == figure.shown
    assert section.rows[0][place].below == figure.shown_interval
    assert all(len(row) == len(table.heads) for row in section.rows)
    page = write(tmp_path).read_text(encoding="utf-8")
    assert HASTE.title in page
    assert HASTE.formula in page


@pytest.mark.usefixtures("haste")
def test_a_new_figure_is_compared_and_exported(tmp_path: Path) -> None:
    sides = [results.judge(make(tmp_path / name, RECIPE)) for name in ("base", "new")]
    found = compare(*sides)
    (flow, *_) = found.points[0].flows
    shown: Any = compare_json(found)
    rates = shown["points"][0]["flows"][0]["rates"]
    assert rates["haste"] == {"unit": "bit/s", "base": flow.rates["haste"][0], "new": flow.rates["haste"][1]}
    Draft202012Validator(compare_schema()).validate(shown)
    groups = [group.measure for group in rate_table(found).groups]
    assert (groups[0], groups[-1]) == ("goodput", "haste")
    rows = tables.measures(sides[0], Choice()).collect()
    assert rows.filter(pl.col("measure") == "haste").height == 6
    assert b"wiregauge_haste_bits_per_second{" in exposition(sides[0], Choice())
    assert wg.open(tmp_path / "base").measure("haste", flow=10, repeat=0).unit == "bit/s"


def test_a_new_main_measure_is_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: Definition
) -> None:
    """First in tables, judged unasked, and tested for being steady."""
    monkeypatch.setitem(DEFINITIONS, "twice", replace(twice, main=True, table=""))
    assert tuple(MAIN) == ("latency", "rtt", "twice")
    judgement = results.judge(make(tmp_path / "base", RECIPE))
    assert "twice p50" in " ".join(printed(judgement).split())
    (table,) = key_tables(judgement)
    assert [section.title for section in table.sections] == ["One-way latency", "Round trip", TWICE.title]
    assert judgement.runs[0].flows[0].summaries["twice"].stationarity is not None
    found = compare(judgement, results.judge(make(tmp_path / "new", RECIPE)))
    assert any(shift.verdict for shift in found.points[0].flows[0].measures["twice"].shifts)


def test_names_follow_the_definitions(twice: Definition) -> None:
    assert twice.name in SERIES
    assert "nothing" not in SERIES
    assert SERIES[-1] == "twice"
    assert len(SERIES) == len(set(SERIES)) == sum(d.kind == "series" for d in DEFINITIONS.values())


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_a_definition_holds_together(name: str) -> None:
    one = DEFINITIONS[name]
    assert one.name == name
    assert one.rests_on in ("", *SERIES)
    assert bool(one.table) == bool(one.word), "what a table calls it"
    assert not one.main or one.kind == "series"
    # Clocks matter to times only.
    assert not one.clocks or one.unit == "ns"
    assert one.kind != "single" or name in FLOW_MEASURES, "whoever has a statistic of its own"
    assert one.kind != "series" or one.statistics == ("",), "a distribution has all of them"
