"""What `explained` of `wiregauge show --explain --json` holds, typed; its schema is made from this.

docs/reference/explain.md explains it. Keys may be added within schema 1, none is renamed or removed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.measures.schemas import Figure, Share, json_schema

__all__ = ["explain_schema"]

Pair = Annotated[list[float], Meta(min_length=2, max_length=2)]


class ModeShown(TypedDict):
    period_s: float
    period_interval_s: Pair
    duration_s: float
    duration_interval_s: Pair
    height_ns: float
    height_interval_ns: Pair
    highest_ns: float
    start_s: float
    jitter_s: float
    bands: int
    cycles: int
    p: Share


class RecurringShown(TypedDict):
    n: int
    shortest_s: float
    longest_s: float
    false_alarm: float
    modes: list[ModeShown]


class ChangeShown(TypedDict):
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["level", "spread"]})]
    at_s: float
    interval_s: Pair
    before_ns: float
    after_ns: float
    p: float


class ChangesShown(TypedDict):
    n: int
    tested: bool
    blocks: int
    false_alarm: float
    drift_ns_per_s: Figure
    changes: list[ChangeShown]


class PeakShown(TypedDict):
    position_ns: float
    range_ns: Pair
    weight: float
    weight_interval: Pair


class DistributionShown(TypedDict):
    n: int
    n_effective: float
    band: float
    false_alarm: float
    modes: list[PeakShown]


class SeriesShown(TypedDict):
    measure: Annotated[str, Meta(extra_json_schema={"enum": ["latency", "rtt", "send_error"]})]
    sentences: list[str]
    recurring: RecurringShown
    changes: ChangesShown
    distribution: DistributionShown


class StepShown(TypedDict):
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["stack", "port", "link", "network", "relay"]})]
    title: str
    node: int
    port: int | None
    start_ns: float
    took_ns: float
    usual_ns: Figure
    usual_n: int


class PartnerShown(TypedDict):
    flow: int
    sequence: int
    returning: bool
    length: int
    node: int
    port: int
    blocked_ns: float


class NeighbourShown(TypedDict):
    sequence: int
    value_ns: Figure
    outcome: str


class ClockShown(TypedDict):
    offset_ns: float
    usual_ns: float
    uncertainty_ns: float
    source: Annotated[str, Meta(extra_json_schema={"enum": ["truth", "manifest", "exchange"]})]


class EventShown(TypedDict):
    at_s: Figure
    node: str
    text: str
    source: str


class MessageShown(TypedDict):
    sequence: int
    sent_s: float
    value_ns: float
    excess_ns: float
    cause: Annotated[
        str,
        Meta(
            extra_json_schema={
                "enum": [
                    "none", "clock", "copy", "queue", "port", "link", "stack", "network", "relay", "unknown",
                ]
            }
        ),
    ]  # fmt: skip
    sentence: str
    mode: int | None
    steps: list[StepShown]
    partners: list[PartnerShown]
    neighbours: list[NeighbourShown]
    clock: ClockShown | None
    events: list[EventShown]


FlowShown = TypedDict(
    "FlowShown",
    {
        "run": int,
        "point": dict[str, str],
        "repeat": int,
        "flow": int,
        "from": str,
        "to": str,
        "median_ns": Figure,
        "series": list[SeriesShown],
        "worst": list[MessageShown],
    },
)


class Explained(TypedDict):
    schema: Literal[2]
    worst: int
    left_out: int
    flows: list[FlowShown]


def explain_schema() -> dict[str, Any]:
    """The schema of `explain_json`."""
    return json_schema(Explained, "What explains each flow: `explained` of `wiregauge show --explain --json`")
