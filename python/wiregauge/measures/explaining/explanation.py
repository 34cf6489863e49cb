"""The explanation of a flow: plain data, in ns and seconds of the run's clock. Text, JSON and figures only read it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from wiregauge.files.typed_json import HIDDEN, Figure, Key
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.judgement import Series
from wiregauge.stats import Bounded, Course, Peaks, Recurrence

__all__ = [
    "Bounded",
    "Clock",
    "Event",
    "Explanation",
    "FlowExplained",
    "Holder",
    "Neighbour",
    "Partner",
    "SeriesExplained",
    "Step",
    "WorstMessage",
]


CAUSES = ["none", "clock", "copy", "queue", "port", "link", "stack", "network", "relay", "unknown"]
"""Where most of a message's excess came from."""


class SeriesExplained(Struct, frozen=True):
    """A series (times in s, values in ns) with its recurrence, its changes and the modes of its distribution."""

    measure: str
    series: Series
    recurrence: Recurrence
    course: Course
    peaks: Peaks
    sentences: tuple[str, ...]


class Step(Struct, frozen=True):
    """One piece of a message's way, between two points that recorded it. Times in ns.

    `kind` is `stack`, `port` (from a frame's coming to a device to its first bit out), `link`, `network`
    (driver to driver, where nothing between records) or `relay`. `usual` is the median of this step over
    `usual_n` messages of the flow.
    """

    kind: Annotated[str, Meta(extra_json_schema={"enum": ["stack", "port", "link", "network", "relay"]})]
    title: str
    node: int
    port: int | None
    start: Annotated[float, Key("start_ns")]
    took: Annotated[float, Key("took_ns")]
    usual: Annotated[Figure, Key("usual_ns")]
    usual_n: int
    apart: Annotated[
        Figure,
        Key("clocks_ns"),
        Meta(description="by how much the clocks of its ends may be apart; null: nobody compared them"),
    ] = 0.0
    """None: the duration is not determined, and the excess only as far as neither clock drifts."""

    @property
    def excess(self) -> float:
        """Excess over the usual duration, ns; 0 where that is unknown."""
        return round(self.took - self.usual, 3) if self.usual is not None else 0.0


class Partner(Struct, frozen=True):
    """A frame that held the output port while the message waited there, and for how long of that, ns."""

    flow: int
    sequence: int
    returning: bool
    length: int
    node: int
    port: int
    blocked: Annotated[float, Key("blocked_ns")]


class Holder(Struct, frozen=True):
    """A flow whose frames held an output port while a message waited there: how many, and for how long of that, ns."""

    flow: int
    node: int
    port: int
    frames: int
    blocked: float


class Neighbour(Struct, frozen=True):
    """A message of the same flow sent just before or after; `value` None: it did not arrive."""

    sequence: int
    value: Annotated[Figure, Key("value_ns")]
    outcome: str


class Clock(Struct, frozen=True):
    """Clock of the destination minus clock of the source at the time, and usually (median over the run), ns.

    `source` is the origin: `truth` (a simulation), `exchange` (measured, and taken out of the message's time already),
    `manifest` (known to the testmaster, for the run as a whole).
    """

    offset: Annotated[float, Key("offset_ns")]
    usual: Annotated[float, Key("usual_ns")]
    uncertainty: Annotated[float, Key("uncertainty_ns")]
    source: Annotated[str, Meta(extra_json_schema={"enum": ["truth", "manifest", "exchange"]})]


class Event(Struct, frozen=True):
    """An event at a node or affecting this frame; `at` in s, None where it is known for the run as a whole."""

    at: Annotated[Figure, Key("at_s")]
    node: str
    text: str
    source: str
    since: Annotated[float | None, HIDDEN] = None
    """Start of the interval where only an interval is known; it ends at `at`."""


class WorstMessage(Struct, frozen=True):
    """One of the messages with the longest latency (round trip of relayed flows), and where its time went."""

    sequence: int
    sent_at: Annotated[float, Key("sent_s")]
    value: Annotated[float, Key("value_ns")]
    excess: Annotated[float, Key("excess_ns")]
    cause: Annotated[str, Meta(extra_json_schema={"enum": CAUSES})]
    sentence: str
    mode: int | None
    steps: tuple[Step, ...]
    partners: tuple[Partner, ...]
    """The first partners; `partner_count` is the number of all, and sentences are about all."""
    partner_count: int
    neighbours: tuple[Neighbour, ...]
    clock: Clock | None
    events: tuple[Event, ...]


class FlowExplained(Struct, frozen=True):
    """The explanation of one flow at one receiver in one run; the worst messages are those of the first series."""

    run: RunPlan
    flow: FlowPlan
    median: float | None
    series: tuple[SeriesExplained, ...]
    worst: tuple[WorstMessage, ...]


class Explanation(Struct, frozen=True):
    """Flows in the order of the judgement; `left_out` counts those that were not looked into."""

    flows: tuple[FlowExplained, ...]
    left_out: int
    worst: int
