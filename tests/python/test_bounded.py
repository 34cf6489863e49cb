"""Memory of judging and drawing is bounded by the number of messages and of pixels, never by their values."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synthetic import Columns, Recipe, make
from wiregauge import stats

Floats = NDArray[np.float64]
MIB = 1 << 20

VALUES: dict[str, Callable[[int], Floats]] = {
    "gaps between bursts": lambda n: (
        np.where(np.arange(n) % 200 == 199, 6.6e9, 0.0) + 12_000.0 + np.arange(n) % 3
    ),
    "constant": lambda n: np.full(n, 12_336.0),
    "two far clusters": lambda n: np.where(np.arange(n) % 2, 1e3, 1e12) + np.arange(n) % 7,
    "heavy tail": lambda n: 1e3 * np.random.default_rng(1).pareto(0.3, n).clip(1e-3, 1e12),
    "one outlier": lambda n: np.where(np.arange(n) == n // 2, 1e12, 10_000.0),
    "one outlier among noise": lambda n: np.where(
        np.arange(n) == n // 2, 1e12, np.random.default_rng(2).normal(1e4, 1, n)
    ),
    "negative": lambda n: -np.random.default_rng(3).lognormal(9, 3, n),
    "around zero": lambda n: np.random.default_rng(4).normal(0, 1e-3, n),
    "steps of one": lambda n: np.arange(n, dtype=np.float64) * 1e9,
}


@pytest.mark.parametrize("n", [1, 2, 3, 20, 2000, 20_000])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_what_is_drawn_of_any_values_takes_little_memory(name: str, n: int) -> None:
    values = VALUES[name](n)
    ascending = np.sort(values)
    low, high = float(ascending[0]), float(ascending[-1])
    middle = stats.quantile(ascending, 0.01) - 1.0, stats.quantile(ascending, 0.99) + 1.0
    tracemalloc.start()
    try:
        for span in (None, (low, high), middle):
            shape = stats.density(values, span=span)
            assert shape.n + shape.outside == n
            assert np.isfinite(shape.y).all()
            assert len(shape.x) == 400
        if (values > 0).any():
            least = float(values[values > 0].min())
            for span in (None, (least / 1.15, high * 1.15)):
                shape = stats.density(values, log=True, span=span)
                assert np.isfinite(shape.y).all()
                assert shape.n + shape.outside == n
        stats.tail(ascending)
        stats.box(values)
        stats.ecdf(ascending)
        stats.envelope(np.arange(n, dtype=float), values, 1000)
        stats.peaks(values, resolution=1.0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 * MIB, f"{most / MIB:.0f} MiB for {n} values"


def test_equal_values_are_told_from_a_distribution() -> None:
    assert stats.density(np.full(10, 7.0)).constant == 7.0
    assert stats.density(np.array([7.0, 7.0, 1e12]), span=(6.0, 8.0)).constant == 7.0
    assert stats.density(np.array([7.0, 7.1, 7.0])).constant is None


def test_the_width_of_a_view_comes_from_the_values_in_it() -> None:
    """A few values far outside must not smear what is in view into one flat line."""
    rng = np.random.default_rng(5)
    near = rng.normal(1000, 5, 1000)
    values = np.concatenate([near, np.full(5, 1e9)])
    shape = stats.density(values, span=(960.0, 1040.0))
    alone = stats.density(near, span=(960.0, 1040.0))
    np.testing.assert_allclose(shape.y * len(values), alone.y * len(near), rtol=1e-6, atol=1e-9)
    assert shape.y.max() > 20 * shape.y[0]


def planted(name: str) -> Callable[[Columns, int], None]:
    """Times of a flow with these values as its latencies and, where they can be, as its periods."""

    def alter(columns: Columns, flow: int) -> None:
        values = VALUES[name](len(columns["sequence"]))
        took = np.round(values * 1000).astype(np.int64)
        if (values > 0).all():
            gaps = np.minimum(took, 10**14)
            columns["tx_app"] = np.cumsum(gaps)
            columns["intended"] = columns["tx_app"]
            columns["tx_drv"] = columns["tx_app"] + 1000
        columns["rx_app"] = columns["tx_app"] + took
        columns["rx_drv"] = columns["rx_app"] - 1000

    return alter


SCRIPT = """
import json, sys
from pathlib import Path
from wiregauge import report
for path in sys.argv[1:]:
    report.write(Path(path))
    # Its own: getrusage(2) would begin with the peak of the process that started it.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps([path, int(peak.split()[1]) * 1024]), flush=True)
"""


def test_judging_and_reporting_any_run_stays_below_a_gibibyte(tmp_path: Path) -> None:
    paths = []
    for number, name in enumerate(sorted(VALUES)):
        recipe = Recipe(
            protocols=("udp",), payloads=(64,), messages=2000, warm_up=0, relay=False, alter=planted(name)
        )
        paths.append(make(tmp_path / str(number), recipe))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(paths)
    for path, most in lines:
        assert most < 1 << 30, f"{sorted(VALUES)[int(Path(path).name)]}: {most / MIB:.0f} MiB"
