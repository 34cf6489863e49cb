"""The judgement for programs: the stable JSON of `wiregauge show --json` and of `measures.json`.

Numbers keep their full precision; a figure that could not be determined is null; infinity (a percentile that falls
among the lost) is the string "lost", because JSON has no infinity.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import cast

from wiregauge.measures import served
from wiregauge.measures.definitions import SERIES
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.measures.metrics.quantities import percentile_names
from wiregauge.measures.metrics.results import Check, FlowResult, Judgement, LimitResult, RunResult, Summary
from wiregauge.measures.schemas import Json
from wiregauge.measures.shown import (
    CheckShown,
    ClockShown,
    FlowMetShown,
    FlowRestShown,
    FlowShown,
    LimitShown,
    OrLost,
    RunShown,
    Shown,
    SummaryRestShown,
    SummaryShown,
)
from wiregauge.measures.validity.calibration import Citation, citations, corrections, run_load

_CLOCK_POINTS = 40


def schema_path() -> Path:
    """The JSON Schema of `show_json`, shipped with the package."""
    return Path(__file__).with_name("show.schema.json")


def show_json(judgement: Judgement) -> Shown:
    """The judgement as JSON objects, in the form docs/reference/show.md documents."""
    cited = citations(judgement.manifest) or ()
    loads = {run.plan.index: run_load(run.plan) for run in judgement.runs}
    return {
        "schema": 2,
        "test": judgement.plan.name,
        "validity": judgement.validity.word,
        "verdict": judgement.verdict,
        "complete": judgement.complete,
        "state": judgement.state,
        "reasons": list(judgement.reasons),
        "checks": [_check(check) for check in judgement.checks],
        "calibrations": [
            {
                "id": citation.number,
                "calibration": citation.kind,
                "made": citation.made,
                "used": citation.used,
                "reason": citation.reason or None,
                "headline": citation.headline,
            }
            for citation in cited
        ],
        "runs": [_run(run, cited) for run in judgement.runs],
        "points": [
            {
                "point": dict(point.point),
                "runs": list(point.runs),
                "validity": point.validity.word,
                "flows": [
                    _flow(flow, max((loads[index] for index in point.runs), default=0), cited)
                    for flow in point.flows
                ],
            }
            for point in judgement.points
        ],
    }


def json_text(value: object, depth: int = 4) -> str:
    """JSON with a line for every part down to `depth`, which is a flow; what is deeper stands in one line.

    The encoder of the standard library is fast only where it need not indent, and a campaign of many flows is large.
    """
    if depth and isinstance(value, dict) and value:
        parts = (f"{json.dumps(str(key))}: {json_text(part, depth - 1)}" for key, part in value.items())
        return "{\n" + ",\n".join(parts) + "\n}"
    if depth and isinstance(value, list) and value:
        return "[\n" + ",\n".join(json_text(part, depth - 1) for part in value) + "\n]"
    return json.dumps(value, allow_nan=False)


def _run(run: RunResult, cited: Sequence[Citation]) -> RunShown:
    return {
        "index": run.plan.index,
        "point": dict(run.plan.point),
        "repeat": run.plan.repeat,
        "state": run.state,
        "validity": run.validity.word,
        "verdict": run.verdict,
        "reasons": list(run.reasons),
        "checks": [_check(check) for check in run.checks],
        "limits": [_limit(limit) for limit in run.limits],
        "unplanned": dict(run.unplanned),
        "loads": [
            {"on": load.on, "to": load.to, "intended": load.intended, "offered": load.offered}
            for load in run.loads
        ],
        "clocks": [_clock(clock) for clock in run.clocks],
        "flows": [_flow(flow, run_load(run.plan), cited) for flow in run.flows],
    }


def _clock(clock: ClockResult) -> ClockShown:
    """At most so many points as a picture needs; each is offset and half-width at a time of the node's clock."""
    step = max(len(clock.t) // _CLOCK_POINTS, 1)
    return {
        "node": clock.node,
        "reference": clock.reference,
        "method": clock.method,
        "timestamps": clock.timestamps,
        "n": clock.n,
        "missing": clock.lost,
        "delay_ns": clock.delay,
        "asymmetry_ns": clock.asymmetry,
        "asymmetry_stated": clock.stated,
        "drift_ppm": clock.drift,
        "drift_uncertainty_ppm": clock.drift_uncertainty,
        "uncertainty_ns": clock.uncertainty,
        "offsets": [
            {"at_s": at, "offset_ns": offset, "uncertainty_ns": width}
            for at, offset, width in zip(
                clock.t[::step].tolist(),
                clock.offset[::step].tolist(),
                clock.half_width[::step].tolist(),
                strict=True,
            )
        ],
    }


def _check(check: Check) -> CheckShown:
    return {
        "name": check.name,
        "limit": check.limit,
        "observed": check.observed,
        "grade": check.grade.name.lower(),
        "reason": check.reason,
    }


def _limit(limit: LimitResult) -> LimitShown:
    return {
        "flow": limit.flow,
        "to": limit.to,
        "measure": limit.measure,
        "bound": limit.bound,
        "written": limit.written,
        "value": limit.value,
        "observed": limit.observed,
        "unit": limit.unit,
        "result": limit.result,
        "margin": limit.margin,
        "n": limit.n,
        "interval": [limit.low, limit.high] if (limit.low, limit.high) != (None, None) else None,
        "missing": limit.missing,
        "holds": limit.holds,
        "reason": limit.reason,
    }


def _flow(flow: FlowResult, load_percent: int, cited: Sequence[Citation]) -> FlowShown:
    latency = flow.summaries["latency"]
    first: FlowShown = {
        "flow": flow.plan.id,
        "protocol": flow.plan.protocol,
        "from": flow.plan.source,
        "to": flow.plan.destination,
        "relayed": flow.plan.relayed,
        "payload": flow.plan.payload,
        "planned": flow.planned,
        "warm_up": flow.warm_up,
    }
    met: FlowMetShown = {
        "unseen": list(flow.unseen),
        "outcomes": dict(flow.outcomes),
        "loss": {
            "ratio": flow.loss.ratio,
            "low": flow.loss.low,
            "high": flow.loss.high,
            "one_sided": flow.loss.one_sided,
            "assumption": flow.loss.assumption or None,
        },
        "last_seen": dict(flow.last_seen),
        "drop_reasons": dict(flow.drop_reasons),
        "reorder_extent": flow.reorder_extent,
        "late_sends": flow.late_sends,
        "settling": flow.settling,
    }
    sampled = flow.sampled is not None
    series = {f"{name}_ns": _summary(flow.summaries.get(name), sampled=sampled) for name in SERIES}
    rest: FlowRestShown = {
        "pdv_ns": latency.pdv(),
        "range_ns": latency.span(),
        "percentiles_with_loss_ns": {name: _or_lost(p.value) for name, p in flow.with_loss.items()},
        "percentiles_with_loss_intervals": {
            name: [_or_lost(p.low), _or_lost(p.high)]
            for name, p in flow.with_loss.items()
            if p.value is not None
        },
        "hops": [
            {
                "switch": hop.switch,
                "port": hop.port,
                "n": hop.n,
                "min": hop.minimum,
                "mean": hop.mean,
                "uncertainty": hop.half_width,
                "p99": hop.p99,
                "max": hop.maximum,
            }
            for hop in flow.hops
        ],
        "corrected": [
            {
                "measure": one.measure,
                "calibration": one.constant.calibration,
                "overhead_ns": one.constant.overhead_ns,
                "overhead_uncertainty_ns": one.constant.uncertainty_ns,
                "error_ns": one.constant.error_ns,
                "unresolved": one.unresolved,
                "n": one.n,
                "min": one.minimum,
                "mean": one.mean,
                "p50": one.p50,
                "p99": one.p99,
                "max": one.maximum,
                "uncertainty": one.uncertainty,
            }
            for one in corrections(flow, load_percent, cited)
        ],
        "redundant_discarded": flow.redundant_discarded,
        "lost_copies": dict(flow.lost_copies),
        "sampled": {
            "one_in": flow.sampled.one_in,
            "stretch": sampling.STRETCH,
            "held": flow.sampled.rows,
            "of": flow.sampled.of,
            "figures": list(sampling.FIGURES),
            "settling": flow.settling,
        }
        if flow.sampled is not None
        else None,
        "goodput_bps": flow.goodput,
        "effective_bandwidth_bps": flow.effective_bandwidth,
    }
    return cast(FlowShown, {**first, **flow.counts, **met, **series, **rest, **served.of_flow(flow)})


def _or_lost(value: float | None) -> OrLost:
    return "lost" if value is not None and isinf(value) else value


def _summary(summary: Summary | None, *, sampled: bool) -> Json | None:
    if summary is None:
        return None
    parts = summary.uncertainty
    first: SummaryShown = {
        "n": summary.n,
        "min": summary.minimum,
        "mean": summary.mean,
        "sd": summary.sd,
        "mad": summary.mad,
    }
    percentiles = {name: summary.value(name) for name in percentile_names(summary)}
    rest: SummaryRestShown = {
        "max": summary.maximum,
        "uncertainty": parts.total if parts else None,
        "uncertainty_parts": {"sampling": parts.sampling, "clock": parts.clock, "timestamp": parts.timestamp}
        if parts
        else None,
        "n_effective": summary.n_effective,
        "intervals": _intervals(summary),
        "percentiles_n_effective": {
            name: p.worth for name, p in summary.percentiles.items() if p.value is not None
        },
        "of_sample": _of_sample(summary) if sampled else [],
        "interval_needs": {
            **({"mean": summary.interval_needs} if summary.interval_needs is not None else {}),
            **{
                name: p.interval_needs
                for name, p in summary.percentiles.items()
                if p.interval_needs is not None
            },
        },
        "sd_interval": list(summary.sd_interval) if summary.sd_interval else None,
        "repeats": {
            "runs": summary.repeats.runs,
            "between_sd": summary.repeats.between,
            "within_sd": summary.repeats.within,
        }
        if summary.repeats
        else None,
        "stationarity": {
            "steady": summary.stationarity.steady,
            "p": summary.stationarity.p,
            "changes": summary.stationarity.changes,
            "correlation_time": summary.stationarity.correlation_time,
            "median_first_half": summary.stationarity.halves[0],
            "median_second_half": summary.stationarity.halves[1],
        }
        if summary.stationarity
        else None,
        "settling": {
            "n": summary.settling.n,
            "min": summary.settling.minimum,
            "max": summary.settling.maximum,
            "without": {
                "p50": summary.settling.without["p50"],
                "p99": summary.settling.without["p99"],
                "max": summary.settling.maximum_without,
            },
        }
        if summary.settling
        else None,
        "excluded": dict(summary.excluded),
        "negative": summary.negative,
    }
    return {**first, **percentiles, **rest}


def _of_sample(summary: Summary) -> list[str]:
    """Keys of a summary whose figures rest on the sample of a flow too big to be held."""
    if not summary.n:
        return []
    figures = (
        ("min", "mean", "sd", *percentile_names(summary), "max", "negative") if summary.of_sample else ()
    )
    return [*figures, *sampling.OF_SUMMARY]


def _intervals(summary: Summary) -> dict[str, list[float | None]]:
    return {name: [p.low, p.high] for name, p in summary.percentiles.items() if p.value is not None}
