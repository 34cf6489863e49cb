"""What `wiregauge compare --json` and `wiregauge trend --json` hold, typed; their schemas are made from this.

docs/reference/compare.md explains them. Keys may be added within schema 1, none is renamed or removed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.measures.comparing.results import Basis, Verdict
from wiregauge.measures.schemas import Count, Figure, Grade, Positive, Share, json_schema
from wiregauge.measures.schemas import Verdict as JudgedVerdict

__all__ = ["compare_schema", "trend_schema"]


class EstimateShown(TypedDict):
    value: float
    low: Figure
    high: Figure


class ThresholdShown(TypedDict):
    flow: int | None
    measure: str
    statistic: str | None
    written: str
    value: Positive
    relative: bool


class MultiplicityShown(TypedDict):
    method: str
    figures: Count
    level: float
    joint_level: float


WhoShown = TypedDict("WhoShown", {"flow": int, "protocol": str, "from": str, "to": str})


class SideShown(TypedDict):
    directory: str
    name: str
    at: dict[str, str]
    test: str
    sha256: str
    bench: str
    program: str
    seed: int | None
    started: str | None
    validity: Grade
    verdict: JudgedVerdict
    complete: bool
    reasons: list[str]


class ErrorRateShown(TypedDict):
    kind: Literal["false discovery rate"]
    rate: Share
    method: str
    power_of_detectable: float
    text: str


class SweepShown(TypedDict):
    flow: str
    figure: str
    points: Annotated[int, Meta(ge=2)]
    decided: Count
    p: Share
    verdict: Verdict


class BeyondShown(TypedDict):
    value: float
    inclusive: bool
    base_count: Count
    base_n: Count
    new_count: Count
    new_n: Count
    clustered: Annotated[float, Meta(ge=1)]


class ShiftShown(TypedDict):
    base: EstimateShown
    new: EstimateShown
    shift: EstimateShown
    joint: EstimateShown
    instrument: Positive
    threshold: Figure
    verdict: Verdict | None
    basis: Basis | None
    p: Figure
    detectable: Figure
    beyond: BeyondShown | None


class FiguresShown(TypedDict):
    n: Count
    n_effective: float
    min: float
    max: float


class MeasureShown(TypedDict):
    unit: Literal["ns"]
    identical: bool
    base: FiguresShown
    new: FiguresShown
    mean: ShiftShown
    sd: ShiftShown
    quantiles: Annotated[
        dict[str, ShiftShown], Meta(extra_json_schema={"propertyNames": {"pattern": "^p[0-9.]+$"}})
    ]


class ShareShown(ShiftShown):
    unit: Literal["share"]
    base_count: Count
    base_n: Count
    new_count: Count
    new_n: Count
    clustered: Annotated[float, Meta(ge=1)]


class RateShown(TypedDict):
    unit: Literal["bit/s"]
    base: Figure
    new: Figure


class DetectableShown(TypedDict):
    figure: str
    value: Positive
    unit: Literal["ns"]


class FlowShown(TypedDict):
    flow: str
    base: WhoShown
    new: WhoShown
    matched_by: Annotated[str, Meta(extra_json_schema={"enum": ["number", "role"]})]
    differences: list[str]
    verdict: Verdict
    reason: str
    decided_by: str | None
    detectable: DetectableShown | None
    not_compared: list[str]
    judged: dict[str, Verdict]
    measures: dict[str, MeasureShown]
    shares: dict[str, ShareShown]
    rates: Annotated[
        dict[str, RateShown], Meta(extra_json_schema={"required": ["goodput", "effective_bandwidth"]})
    ]
    only_base: list[str]
    only_new: list[str]


class ValidityShown(TypedDict):
    base: Grade
    new: Grade


class PointShown(TypedDict):
    axes: dict[str, str]
    base_point: dict[str, str]
    new_point: dict[str, str]
    validity: ValidityShown
    flows: list[FlowShown]
    only_base: list[WhoShown]
    only_new: list[WhoShown]


class AloneShown(TypedDict):
    point: dict[str, str]
    flows: list[WhoShown]


class OnlyShown(TypedDict):
    points: list[AloneShown]


class ComparisonShown(TypedDict):
    schema: Literal[2]
    verdict: Verdict
    exit_code: Annotated[int, Meta(extra_json_schema={"enum": [0, 1, 4]})]
    unfit: list[str]
    base: SideShown
    new: SideShown
    differences: list[str]
    equivalence: bool
    thresholds: list[ThresholdShown]
    multiplicity: MultiplicityShown
    error_rate: ErrorRateShown
    sweeps: list[SweepShown]
    not_compared: list[str]
    headline: str
    points: list[PointShown]
    only_base: OnlyShown
    only_new: OnlyShown


class TrendRunShown(TypedDict):
    directory: str
    name: str
    started: str | None
    program: str
    test: str
    bench: str
    validity: Grade
    verdict: Verdict
    unfit: str | None


class TrendLimitShown(TypedDict):
    bound: Annotated[str, Meta(extra_json_schema={"enum": ["at-most", "at-least"]})]
    value: float
    written: str


class TrendPointShown(TypedDict):
    run: Count
    n: Count
    value: EstimateShown
    fit: bool
    reference: Figure
    shift: EstimateShown | None
    threshold: Figure
    verdict: Verdict | None
    basis: Basis | None
    detectable: Figure


class TrendSeriesShown(TypedDict):
    axes: dict[str, str]
    flow: int
    protocol: str
    to: str
    measure: str
    statistic: str
    unit: Literal["ns", "share"]
    points: list[TrendPointShown]
    steps: list[Count]
    limits: list[TrendLimitShown]


class TrendShown(TypedDict):
    schema: Literal[2]
    verdict: Verdict
    exit_code: Annotated[int, Meta(extra_json_schema={"enum": [0, 1, 4]})]
    against: Literal["previous", "first"]
    thresholds: list[ThresholdShown]
    multiplicity: MultiplicityShown
    runs: Annotated[list[TrendRunShown], Meta(min_length=2)]
    series: list[TrendSeriesShown]
    missing: list[str]
    not_compared: list[str]
    headline: str
    error_rate: str


def compare_schema() -> dict[str, Any]:
    """The schema of `compare_json`."""
    return json_schema(ComparisonShown, "`wiregauge compare --json`, schema 1")


def trend_schema() -> dict[str, Any]:
    """The schema of `trend_json`."""
    return json_schema(TrendShown, "`wiregauge trend --json`, schema 1")
