"""Thresholds of a comparison: how they are read, what they refuse, and the verdict that an interval gives."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.measures.comparing import ThresholdError, read_threshold
from wiregauge.measures.comparing.judging import judge_shift
from wiregauge.measures.definitions import DEFINITIONS, SERIES, SHARES
from wiregauge.stats import Estimate


@pytest.mark.parametrize(
    ("low", "high", "tolerance", "expected"),
    [
        (1.0, 3.0, None, "worse"),
        (-3.0, -1.0, None, "better"),
        (-1.0, 3.0, None, "same"),
        (1.0, None, None, "worse"),
        (None, 3.0, None, "undecided"),
        (1.0, 3.0, 5.0, "same"),
        (6.0, 9.0, 5.0, "worse"),
        (-9.0, -6.0, 5.0, "better"),
        (4.0, 6.0, 5.0, "undecided"),
        (-9.0, 9.0, 5.0, "undecided"),
        (-1.0, None, 5.0, "undecided"),
        (6.0, None, 5.0, "worse"),
    ],
)
def test_the_verdict_follows_from_the_interval(
    low: float | None, high: float | None, tolerance: float | None, expected: str
) -> None:
    assert judge_shift(Estimate(2.0, low, high), tolerance)[0] == expected


def test_every_measure_has_a_direction_or_none() -> None:
    """Periods, spacings and signed errors have none: beyond its threshold any change of them is worse."""
    without = {name for name in (*SERIES, *SHARES) if not DEFINITIONS[name].better}
    assert without == {"period", "receive_period", "ipdv", "bag_spacing", "window_error"}
    assert not any(DEFINITIONS[name].better == "higher" for name in (*SERIES, *SHARES))


def test_where_no_direction_is_better_a_change_beyond_the_threshold_is_worse() -> None:
    down = Estimate(-8.0, -9.0, -7.0)
    assert judge_shift(down, 5.0, lower_is_better=False)[0] == "worse"
    assert judge_shift(down, 10.0, lower_is_better=False)[0] == "same"


@pytest.mark.parametrize(
    ("text", "value", "relative"),
    [
        ("latency.p99=5us", 5e3, False),
        ("latency=1.5ms", 1.5e6, False),
        ("10:rtt.mean=5%", 0.05, True),
        ("loss=0.1%", 0.001, False),
        ("lost=1000ppm", 0.001, False),
        ("latency.p99.9=2µs", 2e3, False),
    ],
)
def test_thresholds_are_read(text: str, value: float, relative: bool) -> None:
    found = read_threshold(text)
    assert found.value == pytest.approx(value)
    assert found.relative is relative


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency", "as in latency.p99=5us"),
        ("latency.p99=5", '"5" has no unit; write a number and one of ns'),
        ("lost=0.001", '"0.001" has no unit; write a number and one of %'),
        ("latency.p98=5us", "p98 is not compared; choose from mean"),
        ("speed=5us", "speed is no measure; choose from latency"),
        ("goodput=5%", "goodput has no interval to judge by"),
        ("loss=5us", "is a time, but a share is wanted"),
        ("loss.p50=5%", "one share and has no p50"),
        ("loss=120%", "at most 100%"),
        ("latency=-5us", "is negative"),
        ("latency=nanus", "is not a number with a unit"),
        ("latency=1e999us", "is written with an exponent"),
    ],
)
def test_thresholds_that_mean_nothing_are_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ThresholdError, match=re.escape(said)):
        read_threshold(text)


@given(st.text(max_size=40) | st.from_regex(r"(\d+:)?[a-z_]+(\.[a-z0-9.]+)?=[0-9.e+%nums]+", fullmatch=True))
def test_no_text_breaks_the_reading_of_thresholds(text: str) -> None:
    try:
        found = read_threshold(text)
    except ThresholdError:
        return
    assert 0 <= found.value < float("inf")
