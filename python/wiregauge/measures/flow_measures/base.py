"""What every measure of a flow is: one object that finds its figures, pools those of repeats, and tells them.

The distributions and the counters of a flow follow from their definitions alone; everything else that is known of a
flow is a `FlowMeasure` in a file of its own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from wiregauge.measures.definitions import MAIN, Definition
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.hops import Passages
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import Correction
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.releases import Errors
from wiregauge.measures.metrics.series import Extracted, Offsets
from wiregauge.measures.metrics.service import Conformity
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.records.reported import RunEntry, TrackedFlow

__all__ = ["NOTHING", "FlowMeasure", "FlowReading", "RunReading"]

Flags = NDArray[np.bool_]
T = TypeVar("T")
S = TypeVar("S")

NOTHING: Mapping[str, Any] = {}
"""Figures by name of a flow that has none."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """What is known of a run before its flows are judged, one by one."""

    campaign: CampaignPlan
    entry: RunEntry
    """What the manifest has of it."""
    timestamp_ns: float
    """Error of a difference of two timestamps."""
    wire: Mapping[str, float]
    """By node the error of the interface's timestamps, ns."""
    unseen: Collection[str]
    """End systems without a tap."""
    among: int
    """Flows of the run, which share the rate of false alarms of the rules."""
    unpaired: Mapping[int, int]
    """By flow: frames that left a switch although it is not remembered that they came."""
    played: Errors | None = None
    """How late frames left a network that an agent plays; None where none does."""
    main: Sequence[str] = field(default_factory=lambda: tuple(MAIN))
    """Measures of which is told how they change over the run."""
    paired: Collection[int] | None = None
    """Flows of which also what lies between every two points is told, and not only what has a name; None: all."""
    _once: dict[object, Any] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """The names of nodes, by index."""
        return self.campaign.network.names

    def once(self, read: Callable[[RunReading], S]) -> S:
        """What `read` finds in the run, which is looked for once for all its flows."""
        if read not in self._once:
            self._once[read] = read(self)
        found: S = self._once[read]
        return found


@dataclass(slots=True)
class FlowReading:
    """The records of a flow at one of its receivers, and what was extracted of them."""

    run: RunReading
    flow: FlowPlan
    early: Part
    """Rows of the warm-up."""
    part: Part
    """Rows of the measured part."""
    tracked: TrackedFlow
    """What tracking counted of it."""
    between: Offsets
    correction: Correction
    blind: tuple[str, ...]
    """Its ends without a tap."""
    extracted: Mapping[str, Extracted]
    """By measure its series."""
    gone: Flags
    """Messages that were lost."""
    unknown: Flags
    """Messages of which nobody can tell whether they were."""
    through: Passages | None
    """Passages of its frames through switches."""
    whole: Whole | None
    """What is known of all its messages, where the rows are a sample of them."""
    frames: Conformity | None = None
    """What its frames on the wire say of its virtual link."""
    summaries: dict[str, Summary] = field(default_factory=dict)
    """By measure the summary of its series, once that is made."""


class FlowMeasure(Generic[T]):
    """The figures of a flow that belong together: found, pooled over repeats, and told one by one."""

    name: str
    """Under which a result stores them: the name of the measure, or of what several have in common."""
    none: T
    """What stands for them where there are none; nothing of that truth value is stored."""
    definitions: tuple[Definition, ...] = ()
    """Definitions that it brings; the others are in `definitions`."""

    def found(self, reading: FlowReading) -> T | Pending[T]:
        """The figures of a flow in a single run; or what of its series they wait for."""
        return self.none

    def of_all(self, sample: T, flow: FlowResult, reading: FlowReading) -> T:
        """The figures of a flow too large to be held: `sample` is of the rows, `flow` has counts and distributions."""
        return sample

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> T:
        """The figures of all repeats of a flow, whose distributions are `summaries`."""
        return self.none

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> T:
        """The figures without what lies between clocks that nobody compared.

        Those are the clocks of the two ends, unless `compared`, and those of ports of the switches `apart`.
        """
        return flow[self]

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        """Its figures one by one, as limits, tables and exports name them; of a flow without them none."""
        return iter(())
