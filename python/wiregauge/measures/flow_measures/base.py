"""The base of every measure of a flow: one object computes its figures, pools those of repeats and lists them.

The distributions and counters of a flow follow from their definitions alone. Every other measure is a `FlowMeasure`
in a file of this package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.definitions import MAIN, Definition
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.hops import Passages
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import Correction
from wiregauge.measures.metrics.pooling import added, known, pooled
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.releases import Errors
from wiregauge.measures.metrics.series import Extracted, Offsets
from wiregauge.measures.metrics.service import Conformity
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.records.reported import RunEntry, TrackedFlow

__all__ = ["NOTHING", "Counted", "FlowMeasure", "FlowReading", "RunReading", "Served", "stored"]

Flags = NDArray[np.bool_]
T = TypeVar("T")
S = TypeVar("S")

NOTHING: Mapping[str, Any] = {}
"""Figures by name of a flow that has none."""


class RunReading(Struct, frozen=True):
    """The records and reports of a run, as far as the measures of its flows need them."""

    campaign: CampaignPlan
    entry: RunEntry
    """The entry of the run in the manifest."""
    timestamp_ns: float
    """Error of a difference of two timestamps, ns."""
    wire: Mapping[str, float]
    """Error of the interface's timestamps by node, ns."""
    unseen: Collection[str]
    """End systems without a tap."""
    among: int
    """The number of flows in the run; they share the rate of false alarms of the rules."""
    unpaired: Mapping[int, int]
    """Frames by flow that left a switch although their arrival there is no longer known."""
    played: Errors | None = None
    """Release errors of a network that an agent plays; None where no agent does."""
    main: Sequence[str] = field(default_factory=lambda: tuple(MAIN))
    """Measures whose change over the run is tested."""
    paired: Collection[int] | None = None
    """Flows whose latency between every two points is computed; None: all flows."""
    _once: dict[object, Any] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """The names of nodes, by index."""
        return self.campaign.network.names

    def once(self, read: Callable[[RunReading], S]) -> S:
        """The result of `read`, which is called once for all flows of the run."""
        if read not in self._once:
            self._once[read] = read(self)
        found: S = self._once[read]
        return found


class FlowReading(Struct):
    """The records of a flow at one receiver, and the series extracted from them."""

    run: RunReading
    flow: FlowPlan
    early: Part
    """Rows of the warm-up."""
    part: Part
    """Rows of the measured part."""
    tracked: TrackedFlow
    """The counters of tracking for this flow and receiver."""
    between: Offsets
    correction: Correction
    blind: tuple[str, ...]
    """The ends of the flow that have no tap."""
    extracted: Mapping[str, Extracted]
    """The series by measure."""
    gone: Flags
    """Flags of the lost messages."""
    unknown: Flags
    """Flags of the messages whose loss is unknown."""
    through: Passages | None
    """Passages of the frames through switches."""
    whole: Whole | None
    """Counts and sketches of all messages, where the rows are a sample."""
    frames: Conformity | None = None
    """Conformity of the frames on the wire to the virtual link."""
    summaries: dict[str, Summary] = field(default_factory=dict)
    """Summaries by measure, once they are computed."""

    @property
    def final(self) -> str:
        """The column of the arrival at the final destination."""
        return "back_rx_app" if self.flow.relayed else "rx_app"


class FlowMeasure(Generic[T]):
    """Figures of a flow that belong together: how they are computed, pooled over repeats and listed."""

    name: str
    """The key in `FlowResult.figures`: the name of the measure, or that of a group of measures."""
    none: T
    """The value where there are no figures; it is not stored."""
    definitions: tuple[Definition, ...] = ()
    """Definitions of its measures; those in `definitions` are not repeated here."""

    def computed(self, reading: FlowReading) -> T | Pending[T]:
        """The figures of a flow in one run, or the statistics of series that they still need."""
        return self.none

    def of_all_messages(self, sample: T, flow: FlowResult, reading: FlowReading, whole: Whole) -> T:
        """The figures of a flow too large for memory, from those of its `sample`; `flow` has exact counts."""
        return sample

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> T:
        """The figures of all repeats of a flow; `summaries` are the pooled distributions."""
        return self.none

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> T:
        """The figures without values between clocks that were not compared.

        Those are the clocks of the two ends, unless `compared`, and the clocks of the switches `apart`.
        """
        return flow[self]

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        """The figures one by one, under the names that limits, tables and exports use."""
        return iter(())


class Counted(FlowMeasure[Mapping[str, int]]):
    """Counts by statistic; those of repeats add."""

    none: Mapping[str, int] = NOTHING

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Mapping[str, int]:
        """The sums of the repeats."""
        return added([flow[self] for flow in flows])


class Served(FlowMeasure[T | None], ABC):
    """A measure of the sequence of messages: None where an end of the flow has no tap."""

    none: T | None = None

    @abstractmethod
    def found(self, reading: FlowReading) -> T | Pending[T | None] | None:
        """The figures of a flow whose ends are both seen."""

    @abstractmethod
    def of_all(self, sample: T, reading: FlowReading, whole: Whole) -> T:
        """The figures of a flow too large for memory, from those of its sample."""

    def computed(self, reading: FlowReading) -> T | Pending[T | None] | None:
        """None where an end of the flow has no tap."""
        return None if reading.blind else self.found(reading)

    def of_all_messages(
        self, sample: T | None, flow: FlowResult, reading: FlowReading, whole: Whole
    ) -> T | None:
        """None where the sample has none."""
        return self.of_all(sample, reading, whole) if sample is not None else None

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> T | None:
        """Those of the repeats that have any, attribute by attribute."""
        each = known([flow[self] for flow in flows])
        return pooled(each) if each else None


def stored(found: Iterable[tuple[FlowMeasure[Any], Any]]) -> dict[str, Any]:
    """Figures by name, without those that are none."""
    return {measure.name: figures for measure, figures in found if figures != measure.none}
