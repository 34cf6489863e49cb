"""Elimination counters of a flow with `<frer>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import PASSED_ELIMINATION
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.flow_measures.base import Counted, FlowReading, RunReading
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single

__all__ = ["ELIMINATION"]

Counts = Mapping[str, int]

_DEFINITION = Definition(
    "elimination",
    "Elimination of copies",
    "counters of the sequence recovery of a flow with <frer>, and its latent errors",
    "messages",
    "IEEE Std 802.1CB-2017, 10.8 and 7.4.4",
    "Frames at the points where copies are eliminated, warm-up included: passed; discarded as repeated or "
    "rogue; rogue; passed out of order; numbers lost on every path; resets of the function; tests that found "
    "copies missing.",
    statistics=("passed", "discarded", "rogue", "out_of_order", "lost", "resets", "latent_errors"),
    needs="frer",
    of=PASSED_ELIMINATION,
    links="either",
    after="unplanned",
)


class _Elimination(Counted):
    """The counters of elimination, by statistic."""

    name = "elimination"
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> Mapping[str, int]:
        return reading.run.once(_counted).get(reading.flow.id, self.none)

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        counts = flow[self]
        came = counts.get("passed", 0) + counts.get("discarded", 0)
        for statistic, count in counts.items():
            yield replace(single(self.name, statistic, count, came), silent=_uncounted(flow, statistic))


ELIMINATION = _Elimination()


def _uncounted(flow: FlowResult, statistic: str) -> str:
    """Numbers that elimination may have lost and not counted: it misses one once a later frame comes."""
    gone = flow.counts["lost"] - flow[ELIMINATION].get("lost", 0)
    if statistic != "lost" or gone <= 0:
        return ""
    return f"{count_of(gone, 'message')} more of the flow lost, and elimination counts a number once a later one comes"


def _counted(run: RunReading) -> dict[int, Counts]:
    """The simulator's elimination counters by flow and statistic."""
    found: dict[int, Counts] = {}
    for flow, report in run.entry.model.frer.items():
        counted = {**report.recovery, "latent_errors": report.latent_errors}
        named = ((name, counted.get(name)) for name in _DEFINITION.statistics)
        found[flow] = {name: count for name, count in named if count is not None}
    return found
