"""Types of `wiregauge show --json` and `measures.json`; their schema is made from them.

Times are ns, rates bit/s, shares between 0 and 1. None: not determined or not supported by n. Of a flow and its
summaries the keys that are named after measures and percentiles come from the definitions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from wiregauge.files.typed_json import Count, From, Grade, Verdict, json_schema
from wiregauge.measures.definitions import (
    COUNTS,
    DEFINITIONS,
    OUTCOMES,
    PAIR_QUANTILES,
    QUANTILES,
    SERIES,
    SINGLES,
)
from wiregauge.measures.metrics.judgement import Check, LimitResult, Load
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.measures.validity.calibration import Citation
from wiregauge.results.flow_types import (
    BRIEF,
    BriefShown,
    FlowMetShown,
    FlowRestShown,
    FlowShown,
    ServedShown,
    ServiceShown,
)
from wiregauge.results.run_types import ClusterShown, CreditShown, PtpDomainShown
from wiregauge.results.summary_types import PairRestShown, SummaryRestShown, SummaryShown

_Caveat = Annotated[
    str | None,
    From(lambda judged: judged.caveat or None),
    Meta(description="losses that no limit of the test is on: what the verdict does not say"),
]


class RunShown(TypedDict):
    index: Annotated[Count, From("plan.index")]
    point: Annotated[dict[str, str], From("plan.point")]
    repeat: Annotated[Count, From("plan.repeat")]
    state: str
    validity: Annotated[Grade, From("validity.word")]
    verdict: Verdict
    caveat: _Caveat
    reasons: list[str]
    checks: list[Check]
    limits: list[LimitResult]
    unplanned: dict[str, Count]
    loads: NotRequired[list[Load]]
    clocks: NotRequired[list[ClockResult]]
    network: NotRequired[
        Annotated[
            NetworkResult | None, Meta(description="an agent that is the network: by how much it was late")
        ]
    ]
    clusters: NotRequired[list[ClusterShown]]
    ptp_domains: NotRequired[list[PtpDomainShown]]
    credits: NotRequired[list[CreditShown]]
    details: NotRequired[
        Annotated[
            str,
            Meta(
                description="of a run with very many flows: the file with all figures of each, a line for each"
            ),
        ]
    ]
    flows: list[FlowShown]


class PooledShown(TypedDict):
    point: dict[str, str]
    runs: Annotated[list[Count], Meta(min_length=1)]
    validity: Annotated[Grade, From("validity.word")]
    flows_of_run: NotRequired[
        Annotated[
            Count,
            Meta(
                description="of a single run with very many flows: its index, under which the flows stand; `flows` is "
                "empty"
            ),
        ]
    ]
    flows: list[FlowShown]


class Shown(TypedDict):
    schema: Literal[2]
    test: Annotated[str, From("plan.name")]
    validity: Annotated[Grade, From("validity.word")]
    verdict: Verdict
    caveat: _Caveat
    complete: Annotated[bool, Meta(description="every planned run was run to its end")]
    state: Annotated[str, Meta(description="state of the campaign in manifest.json")]
    reasons: list[str]
    checks: Annotated[list[Check], Meta(description="checks of the campaign as a whole")]
    calibrations: NotRequired[list[Citation]]
    runs: list[RunShown]
    points: Annotated[list[PooledShown], Meta(description="repeats of a point taken together")]


class Whole(Shown):
    """Keys that other modules add to the result."""

    digest: NotRequired[
        Annotated[
            str,
            Meta(
                pattern="^[0-9a-f]{64}$",
                description="measures.json only: SHA-256 of the file with this value empty",
            ),
        ]
    ]
    sources: NotRequired[
        Annotated[dict[str, str], Meta(description="measures.json only: digests of what it was made from")]
    ]
    explained: NotRequired[
        Annotated[
            dict[str, Any],
            Meta(
                description="with --explain; by the schema of wiregauge.results.explaining.explain_schema_path()",
                extra_json_schema={"required": ["schema", "worst", "left_out", "flows"]},
            ),
        ]
    ]


class _Parts(Whole):
    """A helper type for the schema of parts that share one key."""

    flow_met: FlowMetShown
    flow_rest: FlowRestShown
    served: ServedShown
    service: ServiceShown
    summary: SummaryShown
    summary_rest: SummaryRestShown
    pair_rest: PairRestShown


def show_schema() -> dict[str, Any]:
    """The schema, with the measures that are defined now."""
    schema = json_schema(
        _Parts, "`wiregauge show --json`, measures.json", closed=True,
        **{"$id": "urn:wiregauge:show:1", "description": "null: not determined or not supported by n."},
    )  # fmt: skip
    parts = schema["$defs"]
    for name in ("flow_met", "flow_rest", "served", "service", "summary", "summary_rest", "pair_rest"):
        del schema["properties"][name]
        schema["required"].remove(name)
    figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    any_percentile = {"^p[0-9.]+$": figure}
    summary = _joined(parts, "SummaryShown", "SummaryRestShown")
    _add(summary, dict.fromkeys(QUANTILES, figure), patternProperties=any_percentile)
    pair = _joined(parts, "PairShown", "PairRestShown")
    _add(pair, dict.fromkeys(PAIR_QUANTILES, figure), patternProperties=any_percentile)
    flow = _joined(parts, "FlowShown", "FlowMetShown", "FlowRestShown", "ServedShown", "ServiceShown")
    flow["properties"]["outcomes"]["required"] = list(OUTCOMES)
    _add(flow, {name: {"type": "integer", "minimum": 0} for name in COUNTS})
    told = {"$ref": "#/$defs/SummaryShown"}
    for name in SERIES:
        needs = DEFINITIONS[name].needs
        _add(flow, {f"{name}_ns": {"anyOf": [told, {"type": "null"}]} if needs else told})
        if needs not in ("", "relay"):  # of critical traffic, and younger than the schema
            flow["required"].remove(f"{name}_ns")
    _add(flow, {DEFINITIONS[name].key: figure for name in SINGLES})
    _add_brief(parts, flow)
    interval = flow["properties"]["goodput_interval"]
    flow["properties"] |= {f"{name}_interval": interval for name in SINGLES}
    return schema


def _add_brief(parts: dict[str, Any], flow: dict[str, Any]) -> None:
    """The form that flows of a run with very many have: some of the keys."""
    keys = [*FlowShown.__annotations__, *COUNTS, *BriefShown.__annotations__]
    figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    summary = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}},
        "additionalProperties": figure,
        "required": ["n", "min", "mean", "sd", "mad", *QUANTILES, "max", "uncertainty"],
    }
    told = {f"{name}_ns": {"anyOf": [summary, {"type": "null"}]} for name in BRIEF}
    parts["FlowBriefShown"] = {
        "type": "object",
        "description": "a flow of a run with very many; all its figures are in the file that `details` names",
        "properties": {**{key: flow["properties"][key] for key in keys}, **told},
        "required": [*keys, *told],
        "additionalProperties": False,
    }
    for whole in ("RunShown", "PooledShown"):
        parts[whole]["properties"]["flows"]["items"] = {
            "anyOf": [{"$ref": "#/$defs/FlowShown"}, {"$ref": "#/$defs/FlowBriefShown"}]
        }


def _joined(parts: dict[str, Any], name: str, *others: str) -> dict[str, Any]:
    """Several types of the parts of one object, merged."""
    whole: dict[str, Any] = parts[name]
    for other in map(parts.pop, others):
        whole["properties"] |= other["properties"]
        whole["required"] = [*whole.get("required", []), *other.get("required", [])]
    return whole


def _add(whole: dict[str, Any], properties: dict[str, Any], **rest: object) -> None:
    whole["properties"] |= properties
    whole["required"] += [name for name in properties if name not in whole["required"]]
    whole |= rest
