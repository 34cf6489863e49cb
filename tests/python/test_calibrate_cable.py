"""Cables: published points and lines are found again, and intervals hold what they promise."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from wiregauge import runner, stats
from wiregauge.calibrate import CalibrationError, make, schema_path
from wiregauge.calibrate.cable import LIGHT_NS_PER_M, Point, cable_results, read_points
from wiregauge.calibrate.instrument import cable_test, simulated_point
from wiregauge.calibrate.runs import run_test


def test_the_published_points_of_three_cables() -> None:
    """Means of hardware timestamps over 2, 8.5 and 20 m of cable: constant 311.6 ns, 0.725 c, residuals to 1.3 ns."""
    found = cable_results([Point(2, 320), Point(8.5, 352), Point(20, 403.2)])
    assert round(found["constant_overhead"]["value_ns"], 1) == 311.6
    assert round(found["fraction_of_c"]["value"], 3) == 0.725
    assert found["residual_max_ns"] <= 1.3
    assert found["plausible"]["holds"]
    low, high = found["fraction_of_c"]["low"], found["fraction_of_c"]["high"]
    assert low < 0.725 < high
    calibration = make("cable", bench="points", identity={}, settings={}, results=found)
    jsonschema_rs.validate(json.loads(schema_path().read_text(encoding="utf-8")), calibration.content)


def test_the_published_line_from_simulated_cables_with_a_coarse_clock(tmp_path: Path) -> None:
    """f(x) = 4.9 x + 813.3 of the high-precision test bed (III-B), its lengths and its 10 ns clock."""
    points = []
    for k, length in enumerate((5, 10, 20, 30, 40, 50, 60, 100)):
        test = cable_test(
            length,
            per_metre_ns=4.9,
            overhead_ns=813.3,
            granularity="10ns",
            count=2000,
            repeats=5,
            seed=11 + k,
        )
        with runner.open("sim") as trials:
            outcome = run_test(test, trials, tmp_path)
        assert outcome.state == "complete"
        for run in outcome.runs:
            assert set(np.unique(run.differences("rx_drv", "tx_drv") % 10)) == {0.0}, (
                "the clock is not coarse"
            )
        points.append(simulated_point(length, outcome.runs))
    found = cable_results(points)
    constant, slope = found["constant_overhead"], found["per_metre"]
    assert abs(constant["value_ns"] - 813.3) <= constant["half_width_ns"] <= 1.0
    assert abs(slope["value_ns"] - 4.9) <= slope["half_width_ns"] <= 0.02
    assert found["plausible"]["holds"]


@given(
    slope=st.floats(3.0, 7.0),
    constant=st.floats(-1e6, 1e6),
    lengths=st.lists(st.integers(0, 10_000), min_size=3, max_size=30, unique=True),
)
def test_an_exact_line_is_found_exactly(slope: float, constant: float, lengths: list[int]) -> None:
    found = cable_results([Point(x, constant + slope * x) for x in lengths])
    assert found["per_metre"]["value_ns"] == pytest.approx(slope, rel=1e-6)
    assert found["constant_overhead"]["value_ns"] == pytest.approx(constant, abs=1e-3)
    assert found["residual_max_ns"] < 1e-3


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=3, max_size=40))
def test_the_line_is_that_of_scipy(points: list[tuple[float, float]]) -> None:
    x, y = (np.array(column) for column in zip(*points, strict=True))
    if np.ptp(x) < 1e-3 or np.ptp(y) < 1e-3:
        return  # SciPy's own error of a constant is not a number
    ours, theirs = stats.line_fit(x, y), reference.linregress(x, y)
    factor = float(reference.t.ppf(0.975, len(x) - 2))
    scale = 1e-6 * (np.ptp(y) / np.ptp(x) + 1e-9)
    assert ours.slope.value == pytest.approx(theirs.slope, rel=1e-6, abs=scale)
    assert ours.slope.sampling == pytest.approx(factor * theirs.stderr, rel=1e-4, abs=1e3 * scale)
    level = 1e-6 * (np.ptp(y) + abs(theirs.slope) * float(np.abs(x).max()) + 1e-9)
    assert ours.intercept.value == pytest.approx(theirs.intercept, rel=1e-6, abs=level)
    assert ours.intercept.sampling == pytest.approx(
        factor * theirs.intercept_stderr, rel=1e-4, abs=1e3 * level
    )


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    x = np.array([1.0, 2, 5, 10, 20])
    hits = np.zeros(2)
    for _ in range(2000):
        fit = stats.line_fit(x, 800 + 4.9 * x + rng.normal(0, 2, 5))
        assert fit.slope.half_width is not None
        assert fit.intercept.half_width is not None
        hits += [
            abs(fit.slope.value - 4.9) <= fit.slope.half_width,
            abs(fit.intercept.value - 800) <= fit.intercept.half_width,
        ]
    assert (np.abs(hits / 2000 - 0.95) < 0.015).all()


@given(st.lists(st.floats(0, 50), min_size=5, max_size=5), st.integers(0, 2**32 - 1))
def test_no_error_within_its_bound_moves_the_line_further_than_stated(bounds: list[float], seed: int) -> None:
    x, most = np.array([1.0, 2, 5, 10, 20]), np.array(bounds)
    errors = np.random.default_rng(seed).choice([-1.0, 1.0], 5) * most
    fit = stats.line_fit(x, 800 + 4.9 * x + errors, most)
    assert abs(fit.slope.value - 4.9) <= fit.slope.bound + 1e-9
    assert abs(fit.intercept.value - 800) <= fit.intercept.bound + 1e-9


def test_a_series_with_memory_gets_a_wider_interval_that_holds() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    x = np.arange(400.0)
    for _ in range(200):
        noise = np.empty(400)
        noise[0] = rng.normal()
        for k in range(1, 400):
            noise[k] = 0.9 * noise[k - 1] + rng.normal()
        fit = stats.line_fit(x, noise, in_order=True)
        assert fit.slope.half_width is not None
        hits += abs(fit.slope.value) <= fit.slope.half_width
        assert fit.independent < 200
    assert hits / 200 > 0.88, "without the memory only about half would hold"


@pytest.mark.parametrize(
    ("points", "holds"),
    [
        ([Point(0, 100), Point(10, 100 + 10 * LIGHT_NS_PER_M), Point(20, 100 + 20 * LIGHT_NS_PER_M)], False),
        ([Point(0, 100), Point(10, 90), Point(20, 80)], False),
        ([Point(0, 100), Point(10, 100 + 20 * LIGHT_NS_PER_M), Point(20, 100 + 40 * LIGHT_NS_PER_M)], False),
        ([Point(0, 100), Point(10, 149), Point(20, 198)], True),
        ([Point(0, 100), Point(10, 149)], True),
        ([Point(0, 100), Point(10, 160), Point(20, 160)], True),
    ],
)
def test_what_no_cable_is(points: list[Point], holds: bool) -> None:
    assert cable_results(points)["plausible"]["holds"] is holds


def test_two_points_leave_no_interval() -> None:
    found = cable_results([Point(0, 100), Point(10, 149)])
    assert found["constant_overhead"]["half_width_ns"] is None
    json.dumps(found, allow_nan=False)


@settings(max_examples=60)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "length_m": st.floats(0, 1e4),
                "time_ns": st.floats(-1e6, 1e6),
                "n": st.integers(1, 10**9) | st.none(),
            }
        ),
        max_size=20,
    )
)
def test_points_survive_a_file(rows: list[dict[str, Any]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "points.csv"
        lines = [
            f"{row['length_m']!r},{row['time_ns']!r},{'' if row['n'] is None else row['n']}" for row in rows
        ]
        file.write_text("\n".join(["length_m,time_ns,n", *lines]) + "\n", encoding="utf-8")
        points = read_points(file)
    assert [(p.length_m, p.time_ns, p.n) for p in points] == [
        (r["length_m"], r["time_ns"], r["n"]) for r in rows
    ]


@settings(max_examples=100)
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_file_is_worse_than_a_sentence(content: str | bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "points.csv"
        file.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)
        with contextlib.suppress(CalibrationError):
            read_points(file)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("length_m\n1\n", "column time_ns is missing"),
        ("length_m,time_ns,colour\n", 'column "colour" is unknown'),
        ("length_m,time_ns,time_ns\n", "twice"),
        ("length_m,time_ns\n1,2,3\n", ":2: has 3 cells"),
        ("length_m,time_ns\n1,two\n", ':2: time_ns "two" is no number'),
        ("length_m,time_ns\n1,nan\n", "not finite"),
        ("length_m,time_ns\n-1,3\n", "length_m -1 is negative"),
        ("length_m,time_ns\n,3\n", "length_m is empty"),
    ],
)
def test_bad_files_are_told_where(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CalibrationError, match=part.replace("(", r"\(")):
        read_points(file)


numbers = st.floats(-1e15, 1e15, exclude_min=True, exclude_max=True)


@settings(max_examples=300)
@given(st.lists(st.tuples(numbers.map(abs), numbers, st.none() | numbers.map(abs)), max_size=8))
def test_no_points_break_the_arithmetic(points: list[tuple[float, float, float | None]]) -> None:
    with contextlib.suppress(CalibrationError):
        json.dumps(cable_results([Point(*point) for point in points]), allow_nan=False)


def test_one_length_is_no_line() -> None:
    with pytest.raises(CalibrationError, match="at least two lengths"):
        cable_results([Point(2, 320), Point(2, 321)])
    with pytest.raises(CalibrationError, match="no line fits"):
        cable_results([Point(0, 320), Point(5e-324, 321)])
