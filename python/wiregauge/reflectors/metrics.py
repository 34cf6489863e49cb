"""What a session without an end shows, as metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector

from wiregauge.files import printable
from wiregauge.reflectors.measured import Measured, Order

__all__ = ["SessionFigures"]

_COUNTED: Final = {
    "sent": "Packets that were sent and have had their time for an answer.",
    "answered": "Packets with an answer.",
    "lost": "Packets without an answer.",
    "duplicated": "Further answers to a packet.",
    "reordered": "Answers behind one to a later packet.",
}


class SessionFigures(Collector):
    """The figures of the last second, and of all before."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._kept: tuple[Measured, Measured, int, list[tuple[str, str]]] | None = None

    def show(self, second: Measured, so_far: Measured, raised: int, broken: list[tuple[str, str]]) -> None:
        """Sets what is served from now on."""
        self._kept = second, so_far, raised, broken

    def describe(self) -> list[Metric]:
        """Returns no metrics, so that registration collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of one moment."""
        info = InfoMetricFamily("wiregauge_probe", "What is measured.")
        info.add_metric([], {"target": printable(self._order.target), "protocol": self._order.protocol})
        yield info
        if self._kept is None:
            return
        second, so_far, raised, broken = self._kept
        for name, text in _COUNTED.items():
            counter = CounterMetricFamily(f"wiregauge_probe_{name}_packets", text)
            counter.add_metric([], getattr(so_far.counts, name))
            yield counter
        alarms = CounterMetricFamily("wiregauge_probe_alarms", "How often a second broke a limit.")
        alarms.add_metric([], raised)
        yield alarms
        times = GaugeMetricFamily(
            "wiregauge_probe_time_seconds",
            "Times of the packets of the last second.",
            labels=["measure", "statistic"],
            unit="seconds",
        )
        for name, series in second.series.items():
            mean = None if series.mean is None else series.mean.value
            for statistic, value in (("least", series.min), ("mean", mean), ("greatest", series.max)):
                if value is not None:
                    times.add_metric([name, statistic], value / 1e9)
        yield times
        validity = StateSetMetricFamily("wiregauge_probe_validity", "How far figures can be relied on.")
        validity.add_metric(
            [], {grade: so_far.validity == grade for grade in ("VALID", "DEGRADED", "INVALID")}
        )
        yield validity
        held = GaugeMetricFamily(
            "wiregauge_probe_broken_limit",
            "1: the last second breaks it, or no second since has kept it.",
            labels=["measure", "bound"],
        )
        for measure, bound in broken:
            held.add_metric([measure, bound], 1)
        yield held
