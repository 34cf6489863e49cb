"""Types of `explained` in `wiregauge show --explain --json`; it and its schema are made from them.

docs/reference/explain.md explains it. Keys may be added within schema 1, none is renamed or removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.files.typed_json import Figure, From, Share, filled, json_schema
from wiregauge.measures.explaining.explanation import Explanation, WorstMessage

Pair = Annotated[list[float], Meta(min_length=2, max_length=2)]


class ModeShown(TypedDict):
    period_s: Annotated[float, From("period.value")]
    period_interval_s: Annotated[Pair, From(lambda mode: [mode.period.low, mode.period.high])]
    duration_s: Annotated[float, From("duration.value")]
    duration_interval_s: Annotated[Pair, From(lambda mode: [mode.duration.low, mode.duration.high])]
    height_ns: Annotated[float, From("height.value")]
    height_interval_ns: Annotated[Pair, From(lambda mode: [mode.height.low, mode.height.high])]
    highest_ns: float
    start_s: float
    jitter_s: float
    bands: int
    cycles: int
    p: Annotated[Share, From("p_value")]


class RecurringShown(TypedDict):
    n: int
    shortest_s: float
    longest_s: float
    false_alarm: float
    modes: list[ModeShown]


class ChangeShown(TypedDict):
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["level", "spread"]})]
    at_s: float
    interval_s: Annotated[Pair, From(lambda change: [change.low, change.high])]
    before_ns: float
    after_ns: float
    p: Annotated[float, From("p_value")]


class ChangesShown(TypedDict):
    n: int
    tested: bool
    blocks: int
    false_alarm: float
    drift_ns_per_s: Annotated[Figure, From("slope")]
    changes: list[ChangeShown]


class PeakShown(TypedDict):
    position_ns: float
    range_ns: Annotated[Pair, From(lambda peak: [peak.low, peak.high])]
    weight: float
    weight_interval: Annotated[Pair, From(lambda peak: [peak.weight_low, peak.weight_high])]


class DistributionShown(TypedDict):
    n: int
    n_effective: float
    band: float
    false_alarm: float
    modes: Annotated[list[PeakShown], From("peaks")]


class SeriesShown(TypedDict):
    measure: Annotated[str, Meta(extra_json_schema={"enum": ["latency", "rtt", "send_error"]})]
    sentences: list[str]
    recurring: Annotated[RecurringShown, From("recurrence")]
    changes: Annotated[ChangesShown, From("course")]
    distribution: Annotated[DistributionShown, From("peaks")]


FlowShown = TypedDict(
    "FlowShown",
    {
        "run": Annotated[int, From("run.index")],
        "point": Annotated[dict[str, str], From("run.point")],
        "repeat": Annotated[int, From("run.repeat")],
        "flow": Annotated[int, From("flow.id")],
        "from": Annotated[str, From("flow.source")],
        "to": Annotated[str, From("flow.destination")],
        "median_ns": Figure,
        "series": list[SeriesShown],
        "worst": list[WorstMessage],
    },
)


class Explained(TypedDict):
    schema: Literal[2]
    worst: int
    left_out: int
    flows: list[FlowShown]


def explain_json(explanation: Explanation) -> Explained:
    """The whole explanation; keys may be added within schema 1, none is renamed or removed."""
    return filled(Explained, explanation)


def explain_schema_path() -> Path:
    """The JSON Schema of `explain_json`, shipped with the package."""
    return Path(__file__).with_name("explain.schema.json")


def explain_schema() -> dict[str, Any]:
    """The schema of `explain_json`."""
    return json_schema(Explained, "What explains each flow: `explained` of `wiregauge show --explain --json`")
