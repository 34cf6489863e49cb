"""A name that is nearly one of those there are is answered with it."""

from __future__ import annotations

import pytest

from wiregauge.files import nearest
from wiregauge.measures.comparing.thresholds import ThresholdError, read_threshold
from wiregauge.runner.live.alarms import AlarmError, AlarmLimit


def test_what_is_near_is_named_and_what_is_not_is_not() -> None:
    assert nearest("latncy", ("rtt", "latency")) == ' (did you mean "latency"?)'
    assert nearest("colour", ("rtt", "latency")) == ""


def test_an_alarm_names_what_was_meant() -> None:
    with pytest.raises(AlarmError, match=r'did you mean "latency\.max"\?'):
        AlarmLimit.read("latency.mx <= 2ms")


@pytest.mark.parametrize(("written", "meant"), [("latncy.p99=5us", "latency"), ("latency.p999=5us", "p99.9")])
def test_a_threshold_names_what_was_meant(written: str, meant: str) -> None:
    with pytest.raises(ThresholdError, match=rf'did you mean "{meant}"\?'):
        read_threshold(written)
