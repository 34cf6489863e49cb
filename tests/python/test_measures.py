"""Measures against a slow and separate calculation from the message table; the JSON against its schema."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator, meta
from msgspec.structs import replace
from rich.console import Console

from synthetic import Columns, Recipe, make
from wiregauge import measures, results
from wiregauge.measures.definitions.units import duration
from wiregauge.measures.flow_measures import WITH_LOSS
from wiregauge.measures.quantities import quantity

SMALL = Recipe(payloads=(64, 1472), messages=400, warm_up=20, loss=0.01)
SCHEMA = json.loads(results.schema_path().read_text())


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("run"), SMALL)


@pytest.fixture(scope="module")
def judgement(directory: Path) -> measures.Judgement:
    return results.judge(directory)


def rows(directory: Path, run: int, flow: int) -> list[dict[str, Any]]:
    frame = pl.read_parquet(directory / "messages" / f"run-{run:04d}.parquet")
    return frame.filter((pl.col("flow") == flow) & ~pl.col("warm_up")).to_dicts()


def flows(judgement: measures.Judgement) -> Iterator[tuple[int, measures.FlowResult]]:
    for run in judgement.runs:
        for flow in run.flows:
            yield run.plan.index, flow


FORMULAS: dict[str, tuple[tuple[str, str], ...]] = {
    "latency": (("rx_app", "tx_app"),),
    "driver_latency": (("rx_drv", "tx_drv"),),
    "service_latency": (("rx_app", "intended"),),
    "return_latency": (("back_rx_app", "back_tx_app"),),
    "rtt": (("back_rx_app", "tx_app"),),
    "send_error": (("tx_app", "intended"),),
}


def test_every_value_is_the_difference_of_its_timestamps(
    directory: Path, judgement: measures.Judgement
) -> None:
    for run, flow in flows(judgement):
        table = rows(directory, run, flow.plan.id)
        for name, ((end, start),) in FORMULAS.items():
            if name not in flow.summaries:
                assert not flow.plan.relayed
                continue
            wanted = [
                Fraction(r[end] - r[start], 1000)
                for r in table
                if r[end] is not None and r[start] is not None
            ]
            summary = flow.summaries[name]
            assert summary.n == len(wanted)
            assert summary.minimum == pytest.approx(float(min(wanted)), rel=1e-12)
            assert summary.maximum == pytest.approx(float(max(wanted)), rel=1e-12)
            assert summary.mean == pytest.approx(float(sum(wanted) / len(wanted)), rel=1e-12)
            p99 = sorted(wanted)[math.ceil(Fraction(99, 100) * len(wanted)) - 1]
            assert summary.value("p99") == pytest.approx(float(p99), rel=1e-12)


def test_every_message_is_either_in_a_measure_or_excluded_with_a_reason(
    judgement: measures.Judgement,
) -> None:
    for _, flow in flows(judgement):
        total = flow.counts["sent"] + flow.warm_up
        for name in measures.SERIES:
            if name not in flow.summaries or name in ("period", "ipdv", "receive_period"):
                continue
            summary = flow.summaries[name]
            assert summary.n + sum(summary.excluded.values()) == total, name
            assert all(summary.excluded.values())


def test_the_parts_of_a_round_trip_add_up(judgement: measures.Judgement) -> None:
    for _, flow in flows(judgement):
        whole = flow.series["rtt" if flow.plan.relayed else "latency"].value
        parts = [p for p in ("stack_down", "network", "stack_up", "turnaround") if p in flow.series]
        np.testing.assert_allclose(sum(flow.series[part].value for part in parts), whole, rtol=1e-12)


def test_periods_skip_pairs_with_a_missing_neighbour(directory: Path, judgement: measures.Judgement) -> None:
    for run, flow in flows(judgement):
        table = rows(directory, run, flow.plan.id)
        arrivals = sorted(r["rx_app"] for r in table if r["rx_app"] is not None)
        pairs = list(pairwise(table))
        both = [(a, b) for a, b in pairs if a["rx_app"] is not None and b["rx_app"] is not None]
        ipdv = [((b["rx_app"] - b["tx_app"]) - (a["rx_app"] - a["tx_app"])) / 1000 for a, b in both]
        np.testing.assert_allclose(flow.series["ipdv"].value, ipdv)
        assert flow.summaries["ipdv"].excluded["neighbour missing"] == len(pairs) - len(both)
        np.testing.assert_allclose(flow.series["receive_period"].value, np.diff(arrivals) / 1000)
        sends = [r["tx_app"] for r in table]
        np.testing.assert_allclose(flow.series["period"].value, np.diff(sends) / 1000)


def test_goodput_and_the_effective_bandwidth_are_different_things(judgement: measures.Judgement) -> None:
    flow = judgement.runs[0].flows[0]
    assert flow.plan.payload == 64
    assert quantity(flow, "goodput").value == pytest.approx(
        8 * 64 / 2e-3 * (1 - flow.counts["lost"] / 400), rel=0.01
    )
    mean = flow.summaries["latency"].mean
    assert mean is not None
    assert quantity(flow, "effective_bandwidth").value == pytest.approx(8 * 64 / (mean / 1e9))


def test_a_percentile_is_printed_only_where_n_supports_it(judgement: measures.Judgement) -> None:
    latency = judgement.runs[0].flows[0].summaries["latency"]
    assert latency.value("p99") is not None
    assert latency.value("p99.9") is None
    assert latency.pdv() is None
    assert latency.percentiles["p99.9"].needed == 2995


def test_losses_count_as_infinitely_late_where_asked(tmp_path: Path) -> None:
    flow = results.judge(make(tmp_path, replace(SMALL, payloads=(64,), loss=0.05))).runs[0].flows[0]
    assert flow.counts["lost"] > 8
    assert flow[WITH_LOSS]["p50"].value is not None
    assert flow[WITH_LOSS]["p99"].value == math.inf
    assert flow[WITH_LOSS]["p99"].low == math.inf
    all_sent = np.sort(np.r_[flow.series["latency"].value, np.full(flow.counts["lost"], math.inf)])
    for name, q in (("p50", 50), ("p90", 90)):
        p = flow[WITH_LOSS][name]
        assert p.value == pytest.approx(all_sent[math.ceil(q * len(all_sent) / 100) - 1])
        assert p.low is not None
        assert p.high is not None
        assert p.value is not None
        assert p.low <= p.value <= p.high
    shown = results.show_json(results.judge(tmp_path))
    text = json.dumps(shown, allow_nan=False)
    assert '"p99": "lost"' in text


def test_a_known_clock_offset_is_subtracted_and_its_uncertainty_shown(tmp_path: Path) -> None:
    make(tmp_path, replace(SMALL, payloads=(64,)))
    before = results.judge(tmp_path).runs[0].flows[1]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["runs"][0]["clock_offsets"]["sensor"] = {
        "offset_ns": 3000,
        "uncertainty_ns": 500,
        "method": "ptp",
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    after = results.judge(tmp_path).runs[0].flows[1]
    for name, shift, clock in (("latency", -3000, 500), ("return_latency", 3000, 500), ("rtt", 0, 0)):
        old, new = before.summaries[name], after.summaries[name]
        assert old.mean is not None
        assert new.mean == pytest.approx(old.mean + shift)
        assert new.uncertainty is not None
        assert old.uncertainty is not None
        assert new.uncertainty.clock == clock
        assert new.uncertainty.total == pytest.approx(old.uncertainty.total + clock)


def test_the_uncertainty_of_repeats_sees_the_spread_between_them(tmp_path: Path) -> None:
    shifts = iter(range(0, 400_000, 50_000))

    def shift(columns: Columns, flow: int) -> None:
        by = next(shifts) * 1000
        columns["rx_app"] = columns["rx_app"] + by

    recipe = replace(SMALL, payloads=(64,), protocols=("udp",), relay=False, repeats=4, alter=shift)
    judgement = results.judge(make(tmp_path, recipe))
    (point,) = judgement.points
    pooled = point.flows[0].summaries["latency"]
    singles = [run.flows[0].summaries["latency"] for run in judgement.runs]
    assert pooled.n == sum(single.n for single in singles)
    assert pooled.uncertainty is not None
    for single in singles:
        assert single.uncertainty is not None
        assert pooled.uncertainty.sampling > 5 * single.uncertainty.sampling


@pytest.mark.parametrize("name", ["measures.json", "show"])
def test_the_json_keeps_its_schema(directory: Path, judgement: measures.Judgement, name: str) -> None:
    meta.validate(SCHEMA)
    shown: Any = (
        json.loads((directory / name).read_text()) if name != "show" else results.show_json(judgement)
    )
    Draft202012Validator(SCHEMA).validate(shown)
    flow = shown["runs"][0]["flows"][0]
    assert flow["rtt_ns"] is None
    assert flow["sent"] == flow["delivered"] + flow["lost"]
    assert set(flow["latency_ns"]) >= {
        "n",
        "min",
        "mean",
        "sd",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "uncertainty",
    }
    assert shown["runs"][0]["flows"][1]["rtt_ns"]["n"] > 0
    with pytest.raises(Exception, match=r"[Aa]dditional"):
        Draft202012Validator(SCHEMA).validate(shown | {"surprise": 1})


def test_the_reference_page_has_every_definition_word_for_word() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "measures.md").read_text()
    for definition in measures.DEFINITIONS.values():
        assert f"`{definition.formula}`" in page, definition.name
        assert f"### {definition.title}" in page
        assert definition.source in page
        assert definition.note in page


def test_the_terminal_shows_verdict_and_validity_first(judgement: measures.Judgement) -> None:
    console = Console(width=200, record=True, color_system=None)
    results.show_text(judgement, console)
    lines = console.export_text().splitlines()
    assert "verdict NONE" in lines[0]
    assert "validity VALID" in lines[0]
    assert lines[1].startswith("Median one-way latency")
    assert sum("udp" in line or "raw" in line for line in lines[2:]) >= 8


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_terminal_gets_a_cut_figure(judgement: measures.Judgement, width: int) -> None:
    """A narrow one gets fewer columns, then no intervals."""
    console = Console(width=width, record=True, color_system=None)
    results.show_text(judgement, console)
    text = console.export_text()
    latency = judgement.runs[0].flows[0].summaries["latency"]
    assert duration(latency.maximum) in text
    assert duration(latency.value("p99")) in text
    assert (f"…{duration(latency.percentiles['p50'].high)}" in text) == (width >= 120)
    # What does not fit side by side stands below one another.
    heads = [line for line in text.splitlines() if "p99" in line or "max" in line]
    assert heads
    assert not any("…" in line for line in heads if "p99" in line and "max" in line)
    assert sum("10 udp " in line for line in text.splitlines()) >= 2


def test_markup_in_names_is_only_text(tmp_path: Path) -> None:
    console = Console(width=200, record=True, color_system=None)
    results.show_text(results.judge(make(tmp_path, replace(SMALL, name="[bold]x[/y]"))), console)
    assert "[bold]x[/y]" in console.export_text()


def damage(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(measures.RunDirectoryError) as caught:
        results.judge(path.parent if path.name.endswith(".json") else path.parents[1])
    return str(caught.value)


def test_a_damaged_directory_gives_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(measures.RunDirectoryError, match="no such directory"):
        results.judge(tmp_path / "nowhere")
    with pytest.raises(measures.RunDirectoryError, match=r"no manifest\.json"):
        results.judge(tmp_path)
    make(tmp_path, replace(SMALL, payloads=(64,)))
    good = (tmp_path / "manifest.json").read_bytes()
    assert "is not JSON" in damage(tmp_path / "manifest.json", b"{")
    assert "should hold an object" in damage(tmp_path / "manifest.json", b"[]")
    assert "schema 9 is unknown" in damage(tmp_path / "manifest.json", b'{"schema": 9}')
    assert "lacks test, plan" in damage(tmp_path / "manifest.json", b'{"schema": 3}')
    (tmp_path / "manifest.json").write_bytes(good)
    assert "no readable Parquet" in damage(tmp_path / "messages" / "run-0000.parquet", b"PAR1 nonsense PAR1")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(
        tmp_path_factory.mktemp("tiny"), Recipe(protocols=("udp",), payloads=(64,), messages=5, warm_up=0)
    )


@given(st.data())
@settings(max_examples=60)
def test_no_manifest_whatever_breaks_the_judge(tiny: Path, data: st.DataObject) -> None:
    """Replaces one value anywhere in the manifest or tracking.json: a judgement or a sentence comes out."""
    name = data.draw(st.sampled_from(["manifest.json", "tracking.json"]))
    original = (tiny / name).read_bytes()
    tree = json.loads(original)
    place: Any = tree
    for _ in range(data.draw(st.integers(0, 6))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        inner = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
        if not inner:
            break
        place = place[data.draw(st.sampled_from(inner))]
    key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = data.draw(
        st.sampled_from(
            [None, True, -1, 0, 10**12, 1.5, "", "x", [], {}, [1], {"a": 1}, "<script>", [{"flow": "x"}]]
        )
    )
    (tiny / name).write_text(json.dumps(tree))
    said = "judged"
    try:
        results.show_json(results.judge(tiny))
    except measures.RunDirectoryError as error:
        said = str(error)
    finally:
        (tiny / name).write_bytes(original)
    assert said == "judged" or ("\n" not in said and len(said) > 20)
