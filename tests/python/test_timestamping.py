"""What a timestamp is worth: by its kind and step, and never better than it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.measures.validity.timestamping import AT_WIRE_NS, RESOLUTION_NS, timestamp_error_ns
from wiregauge.records.reported import AgentReport, Grant, RunEntry, TimestampKind

STEPS = st.floats(min_value=0.001, max_value=1e6)


def tapped(**timestamps: tuple[str, float]) -> RunEntry:
    return RunEntry(
        timestamps={node: TimestampKind(kind=kind, step_ns=step) for node, (kind, step) in timestamps.items()}
    )


@given(first=STEPS, second=STEPS)
def test_the_worst_tap_decides_and_software_is_farther_from_the_wire(first: float, second: float) -> None:
    hardware = timestamp_error_ns(tapped(a=("hardware", first), b=("hardware", second)), {})
    assert hardware == 2 * max(first, second, RESOLUTION_NS)
    mixed = timestamp_error_ns(tapped(a=("hardware", first), b=("software", second)), {})
    assert mixed == 2 * max(first, max(second, RESOLUTION_NS) + AT_WIRE_NS)
    assert mixed >= 2 * AT_WIRE_NS


@pytest.mark.parametrize("entry", [RunEntry(), RunEntry(timestamps={"a": TimestampKind()})])
def test_nothing_known_is_no_better_than_the_resolution(entry: RunEntry) -> None:
    assert timestamp_error_ns(entry, {}) == 2 * RESOLUTION_NS


def test_agents_report_what_reading_a_clock_costs() -> None:
    """A typed field; the words of the grant are for people, and count only where an older directory has no field."""
    words = (Grant(name="clock-read", granted=True, detail="41 ns"),)
    both = {"a": AgentReport(clock_read_ns=37, grants=words), "b": AgentReport(grants=())}
    assert timestamp_error_ns(RunEntry(), both) == 74
    assert timestamp_error_ns(RunEntry(), {"a": AgentReport(clock_read_ns=37)}) == 74
    assert timestamp_error_ns(RunEntry(), {"a": AgentReport(grants=words)}) == 82
    other = (Grant(name="no-clock-read", granted=False, detail="waited 900 ns"),)
    assert timestamp_error_ns(RunEntry(), {"a": AgentReport(grants=other)}) == 2 * RESOLUTION_NS
