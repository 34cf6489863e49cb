"""Every quantile that a run is told by has one definition: the nearest rank, a value that was seen."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from wiregauge import stats

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "wiregauge"
SHOWN = ("measures", "report", "figures", "notebook", "export", "cli")
"""Rooms whose figures stand beside those of `summaries`."""
OTHERS = re.compile(r"np\.(nan)?(median|percentile|quantile)\(|\.median\(\)")
NOT_OF_MESSAGES = {"host_noise.py": "the time between two looks, by which a picture is spaced"}


def test_no_room_that_shows_figures_has_a_median_of_its_own() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}: {line.strip()}"
        for room in SHOWN
        for file in sorted((PACKAGE / room).rglob("*.py"))
        for line in file.read_text().splitlines()
        if OTHERS.search(line) and "stats.median" not in line and file.name not in NOT_OF_MESSAGES
    ]
    assert found == []


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11, 1000])
def test_a_median_was_seen_and_is_that_of_summaries(n: int) -> None:
    values = np.random.default_rng(n).choice([1.0, 9.0, 100.0], n)
    assert stats.median(values) in values
    assert stats.median(values) == stats.quantile(np.sort(values), 0.5)
