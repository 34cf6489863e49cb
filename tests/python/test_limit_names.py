"""Every figure that `show --json` has of a flow can be named by a limit, and the limit is judged."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from math import ceil, floor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from jsonschema_rs import Draft202012Validator
from rich.console import Console

from simulation import trial
from wiregauge import measures, results, stats
from wiregauge.config import TestError, load
from wiregauge.config.schema import NAMESPACE, value_types
from wiregauge.measures.definitions import DEFINITIONS, quantile_named
from wiregauge.measures.definitions.units import in_unit, p_text
from wiregauge.measures.limits import observe
from wiregauge.measures.quantities import flow_quantities
from wiregauge.plan import plain
from wiregauge.report.first import glance
from wiregauge.report.keys import key_tables
from wiregauge.report.served import critical_table, pair_table
from wiregauge.report.tables import Table, detail_table

ROOT = Path(__file__).resolve().parents[2]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("limit_names", ROOT / "tools" / "limit_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
NAMES = {str(name): name for name in TOOL.names()}

# A relayed flow with a deadline, one over both networks, a time-triggered one; some lost, some out of order and late.
TEST = f"""<test xmlns="{NAMESPACE}" name="named" seed="1">
  <network>
    <end-system name="mac"/><end-system name="sensor"/><end-system name="other"/>
    <switch name="a" kind="mixed-criticality"/><switch name="b" kind="arinc664"/>
    <link between="mac a" rate="1Gbit/s"/><link between="sensor a" rate="1Gbit/s"/>
    <link between="other a" rate="1Gbit/s"/>
    <link between="mac b" rate="1Gbit/s" network="B"/><link between="sensor b" rate="1Gbit/s" network="B"/>
  </network>
  <flows>
    <flow id="10" protocol="be" from="mac" to="sensor" deadline="1ms"/>
    <flow id="20" protocol="rc" from="mac" to="sensor" bag="1ms" lmax="200B"/>
    <flow id="30" protocol="tt" from="mac" to="sensor" period="1ms" offset="200us"/>
  </flows>
  <tasks warm-up="20ms">
    <send flow="10" period="1ms" payload="64B" count="3600"/><relay flow="10"/>
    <send flow="20" period="1ms" payload="64B" count="3600" offset="500us"/><receive flow="20"/>
    <send flow="30" period="1ms" payload="64B" count="3600"/><receive flow="30"/>
    <inject on="other" to="sensor" load="20%" payload="1472B" burst="10"/>
  </tasks>
  <faults>
    <loss link="mac a" sent-by="mac" share="0.1%"/>
    <delay link="mac a" sent-by="mac" share="0.1%" by="2500us"/>
  </faults>
  LIMITS
</test>
"""


def judged(place: Path, limits: str) -> measures.Judgement:
    file = place / "t.xml"
    file.write_text(TEST.replace("LIMITS", f"<limits>{limits}</limits>" if limits else ""), encoding="utf-8")
    return trial(file, place / "run")


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> measures.Judgement:
    """The run without limits: what they are set by."""
    return judged(tmp_path_factory.mktemp("free"), "")


def bounds(dimension: str, value: float) -> tuple[str, str]:
    """Just above the value and just below it, as the language writes them; equal where there is no below."""
    if dimension in ("time", "signed-time"):
        low = value - 1 if dimension == "signed-time" else max(value - 1, 0)
        return f"{value + 1:.3f}ns", f"{low:.3f}ns"
    if dimension == "share":
        return f"{min(value * 100 + 1e-5, 100):.7f}%", f"{max(value * 100 - 1e-5, 0):.7f}%"
    if dimension == "count":
        return str(floor(value) + 1), str(max(ceil(value) - 1, 0))
    unit = {"number": "", "rate": "bit/s", "frequency": "/s"}[dimension]
    digits = 0 if dimension == "rate" else 3
    return f"{value + 1:.{digits}f}{unit}", f"{max(value - 1, 0):.{digits}f}{unit}"


def test_every_figure_that_is_shown_has_a_name(free: measures.Judgement) -> None:
    shown = {figure.name for flow in free.runs[0].flows for figure in flow_quantities(flow)}
    assert shown <= set(NAMES)
    # And what has a name is measured in this very run, but for a percentile that needs more messages.
    found = {name for name in NAMES for flow in free.runs[0].flows if observe(name, flow).value is not None}
    of_runs = {name for name, known in NAMES.items() if known.needs == "run"}
    missing = {name for name in set(NAMES) - found if not name.endswith(".p99.99")}
    # None of its flows has copies, stream filters, gates or shapers: test_frer.py, test_policing.py,
    # test_gate_waits.py, test_credits.py.
    others = ("elimination.", "policing.", "gates.", "credit.")
    assert {name for name in missing if not name.startswith(others)} == {
        name for name in of_runs if not name.endswith(".p99.99")
    }


def test_every_measure_has_names() -> None:
    assert {name.measure for name in NAMES.values()} == set(DEFINITIONS)


def test_every_limit_is_judged(free: measures.Judgement, tmp_path: Path) -> None:
    flows = {flow.plan.id: flow for flow in free.runs[0].flows}
    lines, expected = [], []
    for name, known in NAMES.items():
        for number, flow in flows.items():
            value = observe(name, flow).value
            if value is None:
                continue
            above, below = bounds(known.dimension, value)
            lines.append(f'<limit flow="{number}" measure="{name}" at-most="{above}"/>')
            expected.append((number, name, "at-most", True))
            lines.append(f'<limit flow="{number}" measure="{name}" at-least="{below}"/>')
            expected.append((number, name, "at-least", True))
            break
    holding = judged(tmp_path, "".join(lines)).runs[0].limits
    assert [(one.flow, one.measure, one.bound, one.holds) for one in holding] == expected


@pytest.mark.parametrize("side", ["at-most", "at-least"])
def test_every_limit_can_fail(free: measures.Judgement, tmp_path: Path, side: str) -> None:
    lines, names = [], []
    for name, known in NAMES.items():
        for flow in free.runs[0].flows:
            value = observe(name, flow).value
            # A share of everything cannot be exceeded, nor nothing undercut.
            if value is None or (value == 1 and known.dimension == "share" and side == "at-least"):
                continue
            if value == 0 and known.dimension != "signed-time" and side == "at-most":
                continue
            above, below = bounds(known.dimension, value)
            bound = below if side == "at-most" else above
            lines.append(f'<limit flow="{flow.plan.id}" measure="{name}" {side}="{bound}"/>')
            names.append(name)
            break
    failing = judged(tmp_path, "".join(lines)).runs[0].limits
    assert [one.measure for one in failing if one.result == "fail" and one.observed is not None] == names
    assert len(names) > 200


def test_what_is_not_determined_is_undecided(tmp_path: Path) -> None:
    lines = (
        '<limit measure="latency.p99.99" at-most="1h"/><limit flow="20" measure="lateness.max" at-most="1h"/>'
    )
    lines = lines.replace('flow="20" measure="lateness.max"', 'flow="20" measure="window_error.max"')
    for result in judged(tmp_path, lines).runs[0].limits:
        assert result.result == "undecided"
        assert result.observed is None
        assert result.reason


def test_the_table_is_made_from_the_definitions() -> None:
    assert TOOL.TABLE.read_text(encoding="utf-8") == TOOL.table()
    assert set(value_types()["measure-name"].choices) == set(NAMES)


@pytest.mark.parametrize("name", ["p95", "p99.99", "p99.999", "p99.9999", "p1", "p0.1", "p50", "p99.9999999"])
def test_any_percentile_is_a_name(name: str) -> None:
    quantile = quantile_named(name)
    assert quantile is not None
    file = check(f'<limit flow="10 20" measure="latency.{name}" at-most="1s"/>')
    assert [limit["flow"] for limit in file["limits"]] == [10, 20]
    needs = stats.samples_needed(max(quantile, 1 - quantile))
    assert bool(needs > 3600) == any(f"needs {needs}" in warning for warning in file["warnings"])


@pytest.mark.parametrize(
    "name", ["p0", "p100", "p095", "p95.0", "p95.", "p.5", "p9e1", "p99.99999999", "p-1", "95"]
)
def test_what_is_no_percentile_is_refused_by_name(name: str) -> None:
    assert quantile_named(name) is None
    with pytest.raises(TestError) as refused:
        check(f'<limit flow="10" measure="latency.{name}" at-most="1s"/>')
    (found,) = refused.value.diagnostics
    assert "is unknown" in found.message
    assert "any percentile can be named" in found.cure


def check(limits: str) -> dict[str, Any]:
    text = TEST.replace("LIMITS", f"<limits>{limits}</limits>")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "t.xml"
        file.write_text(text, encoding="utf-8")
        return plain(load(file).campaign)


def test_any_percentile_is_judged_and_shown(tmp_path: Path) -> None:
    limits = (
        '<limit flow="10 20" measure="latency.p95" at-most="1h"/>'
        '<limit flow="20 30" measure="network.p25" at-most="1ns"/>'
        '<limit flow="10" measure="rtt.p99.5" at-most="1h"/><limit flow="20" measure="latency.p99.999" at-most="1h"/>'
        '<limit flow="10" measure="latency_with_loss.p95" at-most="1h"/>'
    )
    judgement = judged(tmp_path, limits)
    (run,) = judgement.runs
    by = {(one.flow, one.measure): one for one in run.limits}
    assert list(by) == [
        (10, "latency.p95"),
        (20, "latency.p95"),
        (20, "network.p25"),
        (30, "network.p25"),
        (10, "rtt.p99.5"),
        (20, "latency.p99.999"),
        (10, "latency_with_loss.p95"),
    ]
    for flow in run.flows:
        for measure, statistic in (("latency", "p95"), ("network", "p25"), ("latency", "p99.5")):
            values = np.sort(flow.series[measure].value)
            place = stats.rank(len(values), quantile_named(statistic) or 0.0)
            told = flow.summaries[measure].percentiles[statistic]
            assert told.value == values[place - 1]
            assert told.low is not None
            assert told.value is not None
            assert told.low <= told.value
            if (flow.plan.id, f"{measure}.{statistic}") in by:
                assert by[flow.plan.id, f"{measure}.{statistic}"].observed == told.value
    rare = by[20, "latency.p99.999"]
    assert (rare.result, rare.reason) == ("undecided", "p99.999 needs 299572 values, there are 3600")
    shown: Any = results.show_json(judgement)
    Draft202012Validator(json.loads(results.schema_path().read_text())).validate(shown)
    one = shown["runs"][0]["flows"][1]["latency_ns"]
    assert one["p95"] == by[20, "latency.p95"].observed
    assert one["intervals"]["p95"][0] is not None
    console = Console(record=True, width=250)
    results.show_text(judgement, console)
    heads = next(
        line for line in console.export_text().splitlines() if "p99.9" in line and "sent" in line
    ).split()
    assert [name for name in heads if name.startswith("p")][1:] == [
        "p50",
        "p90",
        "p95",
        "p99",
        "p99.9",
        "p99.999",
        "p50",
        "p99",
        "p99.5",
    ]


def test_any_percentile_between_two_points_is_judged_and_shown(tmp_path: Path) -> None:
    pairs = (
        "tx_drv-rx_drv.p90",
        "intended-rx_wire.p99.9",
        "back_tx_app-back_rx_drv.p99.5",
        "tx_app-rx_app.p95",
    )
    limits = "".join(
        f'<limit flow="10" measure="pair_latency.{pair}" at-most="1h"/>'
        for pair in (*pairs, "tx_wire-rx_wire.p99.999")
    )
    judgement = judged(tmp_path, limits)
    (run,) = judgement.runs
    *held, rare = run.limits
    rows = pl.read_parquet(tmp_path / "run" / "messages" / "run-0000.parquet")
    rows = rows.filter((pl.col("flow") == 10) & ~pl.col("warm_up"))
    for pair, limit in zip(pairs, held, strict=True):
        between, _, name = pair.partition(".")
        start, _, end = between.partition("-")
        took = np.sort((rows[end] - rows[start]).drop_nulls().to_numpy())
        place = stats.rank(len(took), quantile_named(name) or 0.0)
        assert limit.observed == pytest.approx(took[place - 1] / 1000, abs=1e-6)
        assert limit.n == len(took)
        assert limit.low is not None
    n = run.flows[0].counts["delivered"]
    assert (rare.result, rare.reason) == ("undecided", f"p99.999 needs 299572 values, there are {n}")
    shown: Any = results.show_json(judgement)
    Draft202012Validator(json.loads(results.schema_path().read_text())).validate(shown)
    one = shown["runs"][0]["flows"][0]["pairs"][0]
    names = ["p50", "p90", "p95", "p99", "p99.5", "p99.9", "p99.999"]
    assert [name for name in one if name.startswith("p")] == names
    table = pair_table(judgement)
    assert [head.text for head in table.heads if head.measure == "pair_latency"] == [
        "min",
        "mean ± u",
        *names,
        "max",
    ]


def test_every_table_shows_the_percentiles_that_limits_on_its_measure_name(tmp_path: Path) -> None:
    """Beside the usual ones and in order; also one that no flow has messages enough for."""
    named = ("latency.p90", "latency.p99.999", "rtt.p75", "service_latency.p95", "skew.p90", "ipdv.p1")
    limits = "".join(f'<limit measure="{name}" at-most="1h"/>' for name in named)
    judgement = judged(tmp_path, limits)

    def heads(table: Table | None, measure: str) -> list[str]:
        assert table is not None
        return [head.text for head in table.heads if head.measure == measure and "p" in head.text]

    first = glance(judgement).flows
    assert heads(first, "latency") == ["p90", "p99", "p99.9"]
    assert first is not None
    assert "No flow has enough messages for p99.999 (n ≥ 299572)." in first.notes
    (key,) = key_tables(judgement)
    assert heads(key, "latency") == ["p50", "p75", "p90", "p99", "p99.9", "p99.999"]
    steadiness = detail_table(judgement)
    assert heads(steadiness, "service_latency") == ["service p95", "service p99"]
    assert heads(steadiness, "ipdv")[0] == "IPDV p1"
    assert heads(critical_table(judgement), "skew") == ["skew p90", "skew p99"]
    for table in (key, steadiness, critical_table(judgement)):
        for section in table.sections:
            assert all(len(row) == len(table.heads) for row in section.rows)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (10.0, "messages", "10"),
        (1.5, "messages", "1.500"),
        (0.9999985, "share", "99.99985 %"),
        (1.0, "share", "100 %"),
        (500.0, "1/s", "500.0 /s"),
        (21_130.0, "ns", "21.13 µs"),
    ],
)
def test_what_was_observed_is_shown_in_its_unit(value: float, unit: str, text: str) -> None:
    assert in_unit(value, unit) == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.0, "p < 1e-300"), (1e-310, "p < 1e-300"), (1e-40, "p = 1e-40"), (0.0314, "p = 0.031")]
)
def test_no_chance_is_printed_as_nothing(p: float, text: str) -> None:
    assert p_text(p) == text
