"""What a stamp is worth: by its kind and step, and never better than it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.measures.stamping import AT_WIRE_NS, RESOLUTION_NS, stamp_error_ns
from wiregauge.taps import CaptureError, nanoseconds, rate_bps

STEPS = st.floats(min_value=0.001, max_value=1e6)


def tapped(**stamps: tuple[str, float]) -> dict[str, object]:
    return {"stamps": {node: {"kind": kind, "step_ns": step} for node, (kind, step) in stamps.items()}}


@given(first=STEPS, second=STEPS)
def test_the_worst_tap_decides_and_software_is_farther_from_the_wire(first: float, second: float) -> None:
    hardware = stamp_error_ns(tapped(a=("hardware", first), b=("hardware", second)), {})
    assert hardware == 2 * max(first, second, RESOLUTION_NS)
    mixed = stamp_error_ns(tapped(a=("hardware", first), b=("software", second)), {})
    assert mixed == 2 * max(first, max(second, RESOLUTION_NS) + AT_WIRE_NS)
    assert mixed >= 2 * AT_WIRE_NS


@pytest.mark.parametrize(
    "entry", [{}, {"stamps": None}, {"stamps": {"a": 1}}, {"stamps": {"a": {"step_ns": "x"}}}]
)
def test_nothing_known_is_no_better_than_the_resolution(entry: dict[str, object]) -> None:
    assert stamp_error_ns(entry, {}) == 2 * RESOLUTION_NS


def test_agents_report_what_reading_a_clock_costs() -> None:
    """A typed field; the words of the grant are for people, and count only where an older directory has no field."""
    words = [{"name": "clock-read", "granted": True, "detail": "41 ns"}]
    assert stamp_error_ns({}, {"a": {"clock_read_ns": 37, "grants": words}, "b": {"grants": []}}) == 74
    assert stamp_error_ns({}, {"a": {"clock_read_ns": 37}}) == 74
    assert stamp_error_ns({}, {"a": {"grants": words}}) == 82
    other = [{"name": "no-clock-read", "granted": False, "detail": "waited 900 ns"}]
    assert stamp_error_ns({}, {"a": {"grants": other}}) == 2 * RESOLUTION_NS


@pytest.mark.parametrize(
    ("text", "value"),
    [("1Gbit/s", 10**9), ("2.5 Gbit/s", 2_500_000_000), ("100Mbit/s", 10**8), ("9600bit/s", 9_600)],
)
def test_rates_are_read_as_the_test_language_writes_them(text: str, value: int) -> None:
    assert rate_bps(text) == value


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_one_sentence(text: str) -> None:
    for read in (rate_bps, nanoseconds):
        said, value = "write a number and", 0.0
        try:
            value = read(text)
        except CaptureError as error:
            said = str(error)
        assert value >= 0
        assert "write a number and" in said
