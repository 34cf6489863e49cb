"""What calibrations say of a sample is what the definitions say, and of a simulated instrument what is true of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge import runner, stats
from wiregauge.calibrate import CalibrationError, make, schema_path
from wiregauge.calibrate.clocks import clock_results
from wiregauge.calibrate.instrument import (
    delay_test,
    generator_cases,
    generator_results,
    generator_test,
    linearity_results,
    loop_results,
    loop_test,
    pacing_results,
)
from wiregauge.calibrate.pictures import pictures
from wiregauge.calibrate.runs import Outcome, Run, run_test
from wiregauge.calibrate.summaries import describe, error_of
from wiregauge.calibrate.text import grids, headline
from wiregauge.config import Test

GBIT = 10**9


def simulated(test: Test, place: Path) -> Outcome:
    with runner.open("sim") as trials:
        return run_test(test, trials, place)


def shown(kind: str, results: dict[str, Any]) -> str:
    """Everything a reader sees of it; also holds that it can be stored and drawn."""
    json.dumps(results, allow_nan=False)
    calibration = make(kind, bench="sim", identity={}, settings={}, results=results)
    jsonschema_rs.validate(json.loads(schema_path().read_text(encoding="utf-8")), calibration.content)
    for figure in pictures(calibration):
        assert figure.panels
    tables = grids(calibration)
    for table in tables:
        assert all(len(row) == len(table.heads) for row in table.rows)
    cells = [cell for table in tables for row in table.rows for cell in row]
    return "\n".join([headline(calibration), *cells, *(note for table in tables for note in table.notes)])


# -- clocks


def facts(costs: list[dict[str, Any]], together: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    names = [cost["clock"] for cost in costs]
    begun = {
        "kind": "begun",
        "ruler": "RDTSC",
        "ticks_per_ns": 3.4,
        "floor_ns": 12.0,
        "clocks": names,
        "refused": [],
    }
    return [begun, *({"kind": "cost", **cost} for cost in costs), *(together or [])]


PUBLISHED = """\
clock_source,mean_ns,median_ns,sd_ns,min_ns,max_ns
CLOCK_MONOTONIC,602,628,307,488,188989
CLOCK_REALTIME,600,628,247,488,117542
PTP/PHC,4817,4799,544,3632,194216
RDTSC,52,40,594,24,411848
"""
"""Table 1 of the MAPS study (Verbree and Shvartsman, GVSETS 2015): a million readings each."""


def test_the_table_of_clock_costs_is_that_of_the_maps_study() -> None:
    rows = list(csv.DictReader(PUBLISHED.splitlines()))
    costs = [
        {
            "clock": row["clock_source"],
            "n": 1_000_000,
            "mean": float(row["mean_ns"]),
            "sd": float(row["sd_ns"]),
            "quantiles": [[q, float(row["median_ns"])] for q in (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999)],
            "min": float(row["min_ns"]),
            "max": float(row["max_ns"]),
        }
        for row in rows
    ]
    results = clock_results(facts(costs))
    for row, entry in zip(rows, results["clocks"], strict=True):
        assert entry["clock"] == row["clock_source"]
        for key in ("mean_ns", "median_ns", "sd_ns", "min_ns", "max_ns"):
            assert entry["cost"][key] == float(row[key])
    text = shown("clocks", results)
    assert "602 ns" in text
    assert "412 µs" in text
    uncertain = {entry["clock"]: entry["cost"]["uncertainty_ns"] for entry in results["clocks"]}
    assert uncertain["PTP/PHC"] == 12.0
    assert uncertain["RDTSC"] == pytest.approx(1 / 3.4)


@settings(max_examples=30, deadline=None)
@given(st.floats(-200, 200), st.integers(0, 2**31), st.integers(20, 300))
def test_a_planted_drift_lies_within_its_interval(ppm: float, seed: int, n: int) -> None:
    """Brackets bound the error of each reading, so the interval holds always and not only in 95 %."""
    rng = np.random.default_rng(seed)
    raw = 10**15 + np.cumsum(rng.integers(5_000_000, 20_000_000, n))
    width = rng.integers(20, 400, n)
    inside = rng.uniform(-0.5, 0.5, n) * width
    shows = 1_700_000_000 * 10**9 + np.round((raw - raw[0] + inside) * (1 + ppm * 1e-6)).astype(np.int64)
    costs = [
        {
            "clock": "CLOCK_X",
            "n": 2,
            "mean": 1.0,
            "sd": 0.0,
            "quantiles": [[0.5, 1.0]],
            "min": 1.0,
            "max": 1.0,
        }
    ]
    together = [
        {"kind": "together", "raw": int(r), "readings": [[int(s), int(r), int(w)]]}
        for r, s, w in zip(raw, shows, width, strict=True)
    ]
    drift = clock_results(facts(costs, together))["clocks"][0]["drift"]
    assert abs(drift["ppm"] - ppm) <= drift["half_width_ppm"] + 1e-3
    assert drift["n"] == n


def test_facts_that_end_early_give_what_there_is() -> None:
    full = facts(
        [{"clock": "A", "n": 2, "mean": 1.0, "sd": 0.0, "quantiles": [[0.5, 1.0]], "min": 1.0, "max": 1.0}]
    )
    results = clock_results(full[:1])
    assert results["clocks"] == [{"clock": "A", "cost": None, "step": None, "drift": None}]
    shown("clocks", results)
    with pytest.raises(ValueError, match="nothing"):
        clock_results([])


# -- errors of a loop


def test_the_errors_are_those_of_the_definitions() -> None:
    values = np.arange(1.0, 1002.0)
    found = error_of([values, values + 10], timestamp_ns=4.0)
    both = np.sort(np.concatenate([values, values + 10]))
    median = both[1000]  # nearest rank: the 1001st of 2002
    assert found["systematic_ns"] == median
    assert found["max_deviation_ns"] == max(both[-1] - median, median - both[0])
    assert found["half_range_ns"] == (1011 - 1) / 2
    assert found["random_low_ns"] == both[50] - median
    assert found["random_high_ns"] == both[1951] - median
    assert found["random_ns"] == max(abs(found["random_low_ns"]), found["random_high_ns"])
    assert found["calibration_error_ns"] == found["random_ns"] + 4.0
    assert found["systematic_uncertainty_ns"] >= 5.0 + 4.0
    assert error_of([np.full(301, 5.0)], timestamp_ns=4.0)["systematic_uncertainty_ns"] == 4.0
    assert [
        sum(repeat["histogram"]["counts"]) + repeat["histogram"]["above"] for repeat in found["repeats"]
    ] == [1001] * 2


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.floats(0, 100))
def test_no_sample_breaks_the_arithmetic(values: list[float], timestamp: float) -> None:
    found = error_of([np.array(values)], timestamp)
    json.dumps(found, allow_nan=False)
    assert found["random_low_ns"] <= 0 <= found["random_high_ns"]
    assert found["max_deviation_ns"] >= found["random_ns"] - 1e-6
    counted = found["repeats"][0]["histogram"]
    assert sum(counted["counts"]) + counted["below"] + counted["above"] == len(values)


def test_percentiles_appear_only_where_n_supports_them() -> None:
    assert describe(np.arange(298.0))["p99_ns"] is None
    assert describe(np.arange(299.0))["p99_ns"] is not None
    assert describe(np.empty(0)) == {"n": 0}


def test_a_simulated_loop_finds_the_way_of_its_frames(tmp_path: Path) -> None:
    """Ideal hosts: what is left is the frame on the wire, (64 + 46 + 8) B at 1 Gbit/s; load the other way
    changes nothing."""
    test = loop_test(
        protocol="udp",
        payloads=[64],
        loads=[0, 100],
        period="1ms",
        count=200,
        repeats=2,
        rate="1Gbit/s",
        seed=3,
    )
    xml = test.to_xml().replace("<network>", '<network host="ideal">')
    outcome = simulated(_reread(xml, tmp_path), tmp_path)
    results = loop_results(outcome.runs, "udp")
    found = {(p["measure"], p["load_percent"]): p for p in results["points"]}
    assert set(found) == {("latency", 0), ("latency", 100), ("driver_latency", 0), ("driver_latency", 100)}
    for point in found.values():
        assert (point["systematic_ns"], point["max_deviation_ns"]) == (944.0, 0.0)
        assert (point["n"], point["lost"], len(point["repeats"])) == (400, 0, 2)
    assert "944 ns" in shown("loop", results)


def _reread(xml: str, place: Path) -> Test:
    """A test of this text, with the face of a built one."""
    from wiregauge.config import load

    file = place / "t.xml"
    file.write_text(xml, encoding="utf-8")

    class Read(Test):
        def compile(self) -> Any:
            return load(file)

    return Read("read")


# -- generator


def test_the_generator_test_has_the_published_bandwidths(tmp_path: Path) -> None:
    """600 B at line rate and at 24 000 ns: 967 and 200 Mbit/s (high-precision test bed, III-C)."""
    cases = generator_cases(600, 24_000, GBIT)
    assert [case.gap_ps for case in cases] == [4_960_000, 24_000_000]
    outcome = simulated(
        generator_test(cases, protocol="raw", count=400, rate="1Gbit/s", seed=1, host="ideal"), tmp_path
    )
    found = [generator_results(cases[run.plan.index], run, "raw", GBIT) for run in outcome.runs]
    line, gap = (one["timestamps"]["driver-send"] for one in found)
    assert int(line["mean_bps"] / 1e6) == 967
    assert gap["mean_bps"] == pytest.approx(200e6)
    assert line["max_deviation_ns"] == gap["max_deviation_ns"] == 0
    assert line["burst"] is None
    assert gap["burst"]["count"] == 0
    assert 0 < gap["burst"]["high"] < 0.01
    assert [entry["share"] for entry in gap["within"]] == [1.0, 1.0, 1.0]
    assert "967.7 Mbit/s" in shown("generator", {"cases": found})


def test_deviations_and_bursts_are_those_of_the_definitions() -> None:
    """A burst is what follows within 1.5 times (600 + 20) B at 1 Gbit/s, 7440 ns, where 24 000 ns were asked for."""
    gaps = np.full(1000, 24_000)
    gaps[10], gaps[11], gaps[20] = 7_439, 40_561, 7_441
    times = np.concatenate([[0], np.cumsum(gaps)]) * 1000
    messages = pl.DataFrame({"tx_app": times, "outcome": ["delivered"] * 1001}).with_columns(
        tx_drv=pl.lit(None, pl.Int64), tx_wire=pl.lit(None, pl.Int64)
    )
    cases = generator_cases(600, 24_000, GBIT)
    case = cases[1]
    test = generator_test(cases, protocol="raw", count=1001, rate="1Gbit/s", seed=1, host="ideal")
    found = generator_results(case, Run(test.compile().campaign.runs[1], messages, 0.0), "raw", GBIT)[
        "timestamps"
    ]["application-send"]
    assert found["n"] == 1000
    assert found["max_deviation_ns"] == 16_561
    assert found["burst"]["count"] == 1
    assert [entry["count"] for entry in found["within"]] == [997, 997, 1000]
    assert found["p99_deviation_ns"] == 0


def test_frames_and_gaps_that_cannot_be() -> None:
    with pytest.raises(CalibrationError, match="shorter than the 4960 ns"):
        generator_cases(600, 4_000, GBIT)
    with pytest.raises(CalibrationError, match="too short"):
        generator_test(
            generator_cases(50, 24_000, GBIT), protocol="raw", count=9, rate="1Gbit/s", seed=1, host=None
        )


# -- pacing


def test_pacing_compares_like_with_like() -> None:
    rng = np.random.default_rng(2)
    ours, timer = rng.exponential(100, 1000), rng.exponential(5000, 1000)
    results = pacing_results(ours, timer, 1e6)
    assert results["p99_ratio"] == pytest.approx(np.sort(ours)[989] / np.sort(timer)[989])
    assert "times that of a plain timer loop" in shown("pacing", results)
    assert pacing_results(np.empty(0), timer, 1e6)["wiregauge"] is None
    shown("pacing", pacing_results(np.empty(0), timer, 1e6))


# -- linearity


def test_a_known_delay_is_measured_straight(tmp_path: Path) -> None:
    known = [0.0, 1000.0, 20_000.0, 100_000.0]
    measured = []
    for k, delay in enumerate(known):
        outcome = simulated(delay_test(delay, count=200, host="ideal", granularity=None, seed=k), tmp_path)
        measured.append(outcome.runs[0].differences("rx_app", "tx_app"))
    results = linearity_results(known, measured)
    assert results["slope"]["value"] == pytest.approx(1.0, abs=1e-9)
    assert results["bias"]["value_ns"] == pytest.approx(0.0, abs=1e-6)
    assert results["linear"] is True
    shown("linearity", results)


def test_a_coarse_clock_widens_what_is_claimed() -> None:
    """Sends locked to the steps of a clock round every delay the same way; the interval has to hold that."""
    known = [0.0, 1_003.0, 2_007.0, 5_001.0]
    rounded = [np.full(100, float(int((100 + delay) // 10 * 10))) for delay in known]
    found = linearity_results(known, rounded, step_ns=10.0)
    assert found["linear"] is True
    assert abs(found["bias"]["value_ns"]) <= found["bias"]["half_width_ns"]


def test_a_crooked_instrument_is_found() -> None:
    rng = np.random.default_rng(1)
    known = [0.0, 1e3, 2e3, 5e3, 1e4, 5e4]
    straight = [9e3 + delay + rng.normal(0, 50, 2000) for delay in known]
    steep = [9e3 + 1.01 * delay + rng.normal(0, 50, 2000) for delay in known]
    jump = [9e3 + delay + (300 if delay else 0) + rng.normal(0, 50, 2000) for delay in known]
    found = linearity_results(known, straight)
    assert found["linear"] is True
    zero = stats.mean_estimate(straight[0])
    assert zero is not None
    assert found["bias"]["zero_ns"] == zero.half_width
    assert found["bias"]["half_width_ns"] > found["bias"]["zero_ns"] > 1.0
    assert linearity_results(known, steep)["linear"] is False
    assert linearity_results(known, jump)["linear"] is False
    with pytest.raises(CalibrationError, match="at least three"):
        linearity_results(known[:2], straight[:2])


def test_a_reason_that_not_every_case_has_names_those_that_have_it() -> None:
    from wiregauge.cli.calibrate.shared import trust_of

    class Outcome:
        state = "complete"

    points = [
        {"case": "line rate, 600 B", "grade": "INVALID", "reasons": ["too late", "stolen time"]},
        {"case": "gap, 600 B", "grade": "DEGRADED", "reasons": ["stolen time"]},
    ]
    trust = trust_of(Outcome(), points)
    assert trust["grade"] == "DEGRADED", "one of the cases can be used"
    assert trust["reasons"] == ["line rate, 600 B: too late", "stolen time"]
