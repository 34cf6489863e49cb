"""Summed counters of a flow's stream filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import ENTERED_FILTERS
from wiregauge.measures.flow_measures.base import Counted, FlowReading, RunReading
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single

__all__ = ["POLICING"]

_DEFINITION = Definition(
    "policing",
    "Policing of streams",
    "counters of the stream filters of a flow, added over the switches that have one",
    "messages",
    "IEEE Std 802.1Q-2022, 8.6.5.3",
    "Frames that entered the filters, warm-up included. matching: all; passed: forwarded; not_passing_sdu: "
    "too long, or of a stream blocked after a frame that was too long; not_passing: discarded by the gate; "
    "red: discarded by the meter; yellow: passed frames that were yellow. matching = passed + not_passing_sdu + "
    "not_passing + red.",
    statistics=("matching", "passed", "not_passing_sdu", "not_passing", "red", "yellow"),
    needs="stream filter",
    of=ENTERED_FILTERS,
    links="either",
    after="elimination",
)


class _Policing(Counted):
    """The counters of stream filters, by statistic."""

    name = "policing"
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> Mapping[str, int]:
        return reading.run.once(_counted).get(reading.flow.id, self.none)

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        counts = flow[self]
        for statistic, count in counts.items():
            yield single(self.name, statistic, count, counts["matching"])


POLICING = _Policing()


def _counted(run: RunReading) -> dict[int, dict[str, int]]:
    """The simulator's stream filter counters, summed by flow and statistic."""
    found: dict[int, dict[str, int]] = {}
    for report in run.entry.model.stream_filters:
        own = found.setdefault(report.flow, dict.fromkeys(_DEFINITION.statistics, 0))
        for name in own:
            own[name] += getattr(report, name)
    return found
