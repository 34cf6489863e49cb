"""Types of `wiregauge compare --json` and `wiregauge trend --json`; both and their schemas are made from them.

docs/reference/compare.md explains them. Keys may be added within schema 1, none is renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from wiregauge.files.typed_json import Count, Figure, From, Grade, Share, filled, json_schema
from wiregauge.files.typed_json import Verdict as JudgedVerdict
from wiregauge.measures.comparing.comparison import (
    Comparison,
    FlowComparison,
    MeasureShift,
    PointComparison,
    ShareShift,
    SweepShift,
    Verdict,
)
from wiregauge.measures.comparing.thresholds import Threshold
from wiregauge.measures.comparing.trend import Trend, TrendLimit
from wiregauge.measures.comparing.trend_judging import TrendPoint
from wiregauge.measures.definitions import DEFINITIONS, SHARES
from wiregauge.measures.definitions.definition import Unit
from wiregauge.measures.metrics.judgement import Judgement, PointResult
from wiregauge.results.comparing.text import compare_headline, error_rates
from wiregauge.results.comparing.trend_text import (
    trend_error_rate,
    trend_headline,
    version,
)
from wiregauge.results.show_json import json_chunks
from wiregauge.stats import POWER


class MultiplicityShown(TypedDict):
    method: str
    figures: Annotated[Count, From("judged")]
    level: float
    joint_level: float


WhoShown = TypedDict(
    "WhoShown",
    {
        "flow": Annotated[int, From("plan.id")],
        "protocol": Annotated[str, From("plan.protocol")],
        "from": Annotated[str, From("plan.source")],
        "to": Annotated[str, From("plan.destination")],
    },
)


def _told(judgement: Judgement, part: str, key: str) -> str:
    """An entry of the manifest as text; empty where it is missing."""
    found = judgement.manifest.get(part)
    return str(found.get(key, "")) if isinstance(found, dict) else ""


class SideShown(TypedDict):
    directory: Annotated[str, From(lambda side: str(side.directory))]
    name: str
    at: dict[str, str]
    test: Annotated[str, From("plan.name")]
    sha256: Annotated[str, From(lambda side: _told(side, "test", "sha256"))]
    settings: list[str]
    bench: Annotated[str, From(lambda side: str(side.manifest.get("bench", "")))]
    program: Annotated[str, From(lambda side: _told(side, "program", "version"))]
    seed: int | None
    started: str | None
    validity: Annotated[Grade, From("validity.word")]
    verdict: JudgedVerdict
    complete: bool
    reasons: list[str]


class ErrorRateShown(TypedDict):
    kind: Literal["false discovery rate"]
    rate: Share
    method: str
    power_of_detectable: float
    text: str


class RateShown(TypedDict):
    unit: Unit
    base: Figure
    new: Figure


class DetectableShown(TypedDict):
    figure: str
    value: Annotated[float, Meta(ge=0)]
    unit: Literal["ns"]


def _rates(flow: FlowComparison) -> dict[str, RateShown]:
    return {
        name: {"unit": DEFINITIONS[name].unit, "base": base, "new": new}
        for name, (base, new) in flow.rates.items()
    }


def _detectable(flow: FlowComparison) -> DetectableShown | None:
    found = flow.detectable
    return None if found is None else {"figure": found[0], "value": found[1], "unit": "ns"}


class FlowShown(TypedDict):
    flow: Annotated[str, From("label")]
    base: WhoShown
    new: WhoShown
    matched_by: Annotated[str, Meta(extra_json_schema={"enum": ["number", "role"]})]
    differences: Annotated[list[str], From("said")]
    verdict: Verdict
    reason: str
    decided_by: Annotated[
        str | None, From(lambda flow: flow.deciding[0] if flow.deciding is not None else None)
    ]
    detectable: Annotated[DetectableShown | None, From(_detectable)]
    not_compared: Annotated[list[str], From(lambda flow: [part.text for part in flow.dropped])]
    judged: Annotated[
        dict[str, Verdict],
        From(lambda flow: {name: shift.verdict for name, shift in flow.judged if shift.verdict}),
    ]
    in_full: NotRequired[
        Annotated[bool, Meta(description="false: of very many flows, only with what is judged in `measures`")]
    ]
    measures: dict[str, MeasureShift]
    shares: dict[str, ShareShift]
    rates: Annotated[
        dict[str, RateShown],
        Meta(extra_json_schema={"required": ["goodput", "effective_bandwidth"]}),
        From(_rates),
    ]
    only_base: list[str]
    only_new: list[str]


class ValidityShown(TypedDict):
    base: Grade
    new: Grade


def _validities(point: PointComparison) -> ValidityShown:
    return {"base": point.base.validity.word, "new": point.new.validity.word}


class PointShown(TypedDict):
    axes: dict[str, str]
    base_point: Annotated[dict[str, str], From("base.point")]
    new_point: Annotated[dict[str, str], From("new.point")]
    validity: Annotated[ValidityShown, From(_validities)]
    flows: list[FlowShown]
    only_base: list[WhoShown]
    only_new: list[WhoShown]


class AloneShown(TypedDict):
    point: dict[str, str]
    flows: list[WhoShown]


class OnlyShown(TypedDict):
    points: list[AloneShown]


def _only(points: tuple[PointResult, ...]) -> OnlyShown:
    return {"points": [filled(AloneShown, point) for point in points]}


def _side(judgement: Judgement, name: str, at: Mapping[str, str]) -> SideShown:
    return filled(SideShown, judgement, name=name, at=dict(at))


def _error_rate(comparison: Comparison) -> ErrorRateShown:
    return {
        "kind": "false discovery rate",
        "rate": comparison.rate,
        "method": "Benjamini and Bogomolov 2014",
        "power_of_detectable": POWER,
        "text": error_rates(comparison),
    }


class ComparisonShown(TypedDict):
    schema: Literal[2]
    verdict: Verdict
    exit_code: Annotated[int, Meta(extra_json_schema={"enum": [0, 1, 4]})]
    unfit: list[str]
    base: Annotated[SideShown, From(lambda found: _side(found.base, found.names[0], found.base_at))]
    new: Annotated[SideShown, From(lambda found: _side(found.new, found.names[1], found.new_at))]
    differences: Annotated[list[str], From("said")]
    equivalence: bool
    thresholds: list[Threshold]
    multiplicity: Annotated[
        MultiplicityShown, From(lambda found: filled(MultiplicityShown, found, method="bonferroni"))
    ]
    error_rate: Annotated[ErrorRateShown, From(_error_rate)]
    sweeps: list[SweepShift]
    not_compared: Annotated[list[str], From(lambda found: [part.text for part in found.alone])]
    headline: Annotated[str, From(compare_headline)]
    points: list[PointShown]
    only_base: Annotated[OnlyShown, From(lambda found: _only(found.only_base))]
    only_new: Annotated[OnlyShown, From(lambda found: _only(found.only_new))]


class TrendRunShown(TypedDict):
    directory: Annotated[str, From(lambda run: str(run.directory))]
    name: str
    started: str | None
    program: Annotated[str, From(version)]
    test: Annotated[str, From("plan.name")]
    bench: Annotated[str, From(lambda run: str(run.manifest.get("bench", "")))]
    validity: Annotated[Grade, From("validity.word")]
    verdict: Verdict
    unfit: str | None


class TrendSeriesShown(TypedDict):
    axes: dict[str, str]
    flow: Annotated[int, From("flow.plan.id")]
    protocol: Annotated[str, From("flow.plan.protocol")]
    to: Annotated[str, From("flow.plan.destination")]
    measure: str
    statistic: str
    unit: Annotated[
        Literal["ns", "share"], From(lambda series: "share" if series.measure in SHARES else "ns")
    ]
    points: list[TrendPoint]
    steps: list[Count]
    limits: list[TrendLimit]


def _runs(trend: Trend) -> list[TrendRunShown]:
    return [
        filled(TrendRunShown, run, name=trend.names[k], verdict=trend.verdict_of(k), unfit=trend.unfit.get(k))
        for k, run in enumerate(trend.runs)
    ]


class TrendShown(TypedDict):
    schema: Literal[2]
    verdict: Verdict
    exit_code: Annotated[int, Meta(extra_json_schema={"enum": [0, 1, 4]})]
    against: Literal["previous", "first"]
    thresholds: list[Threshold]
    multiplicity: Annotated[
        MultiplicityShown, From(lambda trend: filled(MultiplicityShown, trend, method="bonferroni per run"))
    ]
    runs: Annotated[list[TrendRunShown], Meta(min_length=2), From(_runs)]
    series: list[TrendSeriesShown]
    missing: list[str]
    not_compared: Annotated[list[str], From(lambda trend: [part.text for part in trend.gone])]
    headline: Annotated[str, From(trend_headline)]
    error_rate: Annotated[str, From(trend_error_rate)]


def compare_json(comparison: Comparison) -> ComparisonShown:
    """The whole comparison; keys may be added within schema 1, none is renamed or removed."""
    return filled(ComparisonShown, comparison)


def compare_chunks(comparison: Comparison) -> Iterator[str]:
    """The text of `compare_json` in parts: of many flows one is made at a time."""
    points = [
        filled(PointShown, point, flows=(filled(FlowShown, flow) for flow in point.flows))
        for point in comparison.points
    ]
    yield from json_chunks(filled(ComparisonShown, comparison, points=points))


def trend_json(trend: Trend) -> TrendShown:
    """The whole trend; keys may be added within schema 1, none is renamed or removed."""
    return filled(TrendShown, trend)


def compare_schema_path() -> Path:
    """The JSON Schema of `compare_json`, shipped with the package."""
    return Path(__file__).with_name("compare.schema.json")


def trend_schema_path() -> Path:
    """The JSON Schema of `trend_json`, shipped with the package."""
    return Path(__file__).with_name("trend.schema.json")


def compare_schema() -> dict[str, Any]:
    """The schema of `compare_json`."""
    return json_schema(ComparisonShown, "`wiregauge compare --json`, schema 1")


def trend_schema() -> dict[str, Any]:
    """The schema of `trend_json`."""
    return json_schema(TrendShown, "`wiregauge trend --json`, schema 1")
