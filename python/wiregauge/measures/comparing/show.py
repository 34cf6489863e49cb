"""A comparison as JSON of a documented schema (docs/reference/compare.md)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from wiregauge.measures.comparing.results import (
    Comparison,
    FlowComparison,
    MeasureShift,
    PointComparison,
    ShareShift,
    Shift,
)
from wiregauge.measures.comparing.results import Side as SideFigures
from wiregauge.measures.comparing.shown import (
    AloneShown,
    BeyondShown,
    ComparisonShown,
    DetectableShown,
    EstimateShown,
    FiguresShown,
    FlowShown,
    MeasureShown,
    PointShown,
    ShareShown,
    ShiftShown,
    SideShown,
    WhoShown,
)
from wiregauge.measures.comparing.text import compare_headline, error_rates
from wiregauge.measures.metrics.results import FlowResult, Judgement, PointResult
from wiregauge.stats import POWER, Estimate


def compare_schema_path() -> Path:
    """The JSON Schema of `compare_json`."""
    return Path(str(resources.files("wiregauge.measures.comparing").joinpath("compare.schema.json")))


def compare_json(comparison: Comparison) -> ComparisonShown:
    """The whole comparison; keys may be added within schema 1, none is renamed or removed."""
    return {
        "schema": 2,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "unfit": list(comparison.unfit),
        "base": _side(comparison.base, comparison.names[0], comparison.base_at),
        "new": _side(comparison.new, comparison.names[1], comparison.new_at),
        "differences": list(comparison.said),
        "equivalence": comparison.equivalence,
        "thresholds": [
            {
                "flow": t.flow,
                "measure": t.measure,
                "statistic": t.statistic,
                "written": t.written,
                "value": t.value,
                "relative": t.relative,
            }
            for t in comparison.thresholds
        ],
        "multiplicity": {
            "method": "bonferroni",
            "figures": comparison.judged,
            "level": comparison.level,
            "joint_level": comparison.joint_level,
        },
        "error_rate": {
            "kind": "false discovery rate",
            "rate": comparison.rate,
            "method": "Benjamini and Bogomolov 2014",
            "power_of_detectable": POWER,
            "text": error_rates(comparison),
        },
        "sweeps": [
            {
                "flow": sweep.flow,
                "figure": sweep.figure,
                "points": sweep.points,
                "decided": sweep.decided,
                "p": sweep.chance,
                "verdict": sweep.verdict,
            }
            for sweep in comparison.sweeps
        ],
        "not_compared": [part.text for part in comparison.alone],
        "headline": compare_headline(comparison),
        "points": [_point(point) for point in comparison.points],
        "only_base": {"points": [_alone(point) for point in comparison.only_base]},
        "only_new": {"points": [_alone(point) for point in comparison.only_new]},
    }


def _side(judgement: Judgement, name: str, at: Mapping[str, str]) -> SideShown:
    test = judgement.manifest.get("test")
    program = judgement.manifest.get("program")
    return {
        "directory": str(judgement.directory),
        "name": name,
        "at": dict(at),
        "test": judgement.plan.name,
        "sha256": str(test.get("sha256", "")) if isinstance(test, dict) else "",
        "bench": str(judgement.manifest.get("bench", "")),
        "program": str(program.get("version", "")) if isinstance(program, dict) else "",
        "seed": judgement.seed,
        "started": judgement.started,
        "validity": judgement.validity.word,
        "verdict": judgement.verdict,
        "complete": judgement.complete,
        "reasons": list(judgement.reasons),
    }


def _alone(point: PointResult) -> AloneShown:
    return {"point": dict(point.point), "flows": [_who(flow) for flow in point.flows]}


def _who(flow: FlowResult) -> WhoShown:
    plan = flow.plan
    return {"flow": plan.id, "protocol": plan.protocol, "from": plan.source, "to": plan.destination}


def _point(point: PointComparison) -> PointShown:
    return {
        "axes": dict(point.axes),
        "base_point": dict(point.base.point),
        "new_point": dict(point.new.point),
        "validity": {"base": point.base.validity.word, "new": point.new.validity.word},
        "flows": [_flow(flow) for flow in point.flows],
        "only_base": [_who(flow) for flow in point.only_base],
        "only_new": [_who(flow) for flow in point.only_new],
    }


def _flow(flow: FlowComparison) -> FlowShown:
    return {
        "flow": flow.label,
        "base": _who(flow.base),
        "new": _who(flow.new),
        "matched_by": flow.matched_by,
        "differences": list(flow.said),
        "verdict": flow.verdict,
        "reason": flow.reason,
        "decided_by": flow.deciding[0] if flow.deciding is not None else None,
        "detectable": _detectable(flow),
        "not_compared": [part.text for part in flow.dropped],
        "judged": {name: shift.verdict for name, shift in flow.judged if shift.verdict},
        "measures": {name: _measure(measure) for name, measure in flow.measures.items()},
        "shares": {name: _share(share) for name, share in flow.shares.items()},
        "rates": {
            name: {"unit": "bit/s", "base": base, "new": new} for name, (base, new) in flow.rates.items()
        },
        "only_base": list(flow.only_base),
        "only_new": list(flow.only_new),
    }


def _detectable(flow: FlowComparison) -> DetectableShown | None:
    found = flow.detectable
    return None if found is None else {"figure": found[0], "value": found[1], "unit": "ns"}


def _measure(measure: MeasureShift) -> MeasureShown:
    return {
        "unit": "ns",
        "identical": measure.identical,
        "base": _figures(measure.base),
        "new": _figures(measure.new),
        "mean": _shift(measure.mean),
        "sd": _shift(measure.sd),
        "quantiles": {shift.statistic: _shift(shift) for shift in measure.quantiles},
    }


def _figures(side: SideFigures) -> FiguresShown:
    return {
        "n": side.n,
        "n_effective": side.n_effective,
        "min": side.minimum,
        "max": side.maximum,
    }


def _share(share: ShareShift) -> ShareShown:
    return {
        "unit": "share",
        "base_count": share.base_count,
        "base_n": share.base_n,
        "new_count": share.new_count,
        "new_n": share.new_n,
        "clustered": share.clustered,
        **_shift(share.shift),
    }


def _shift(shift: Shift) -> ShiftShown:
    return {
        "base": _estimate(shift.base),
        "new": _estimate(shift.new),
        "shift": _estimate(shift.shift),
        "joint": _estimate(shift.joint),
        "instrument": shift.instrument,
        "threshold": shift.tolerance,
        "verdict": shift.verdict,
        "basis": shift.basis,
        "p": shift.chance,
        "detectable": shift.detectable,
        "beyond": _beyond(shift),
    }


def _beyond(shift: Shift) -> BeyondShown | None:
    found = shift.beyond
    if found is None:
        return None
    return {
        "value": found.value,
        "inclusive": found.within,
        "base_count": found.base_count,
        "base_n": found.base_n,
        "new_count": found.new_count,
        "new_n": found.new_n,
        "clustered": found.clustered,
    }


def _estimate(estimate: Estimate) -> EstimateShown:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
