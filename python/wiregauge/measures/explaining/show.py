"""An explanation as JSON of a documented schema (docs/reference/explain.md)."""

from __future__ import annotations

from pathlib import Path

from wiregauge.measures.explaining.results import (
    Explanation,
    FlowExplained,
    SeriesExplained,
    Step,
    WorstMessage,
)
from wiregauge.measures.explaining.shown import Explained, FlowShown, MessageShown, SeriesShown, StepShown
from wiregauge.stats import Bounded

__all__ = ["explain_json", "explain_schema_path"]


def explain_schema_path() -> Path:
    """The JSON Schema of `explain_json`, shipped with the package."""
    return Path(__file__).with_name("explain.schema.json")


def explain_json(explanation: Explanation) -> Explained:
    """The whole explanation; keys may be added within schema 1, none is renamed or removed."""
    return {
        "schema": 2,
        "worst": explanation.worst,
        "left_out": explanation.left_out,
        "flows": [_flow(flow) for flow in explanation.flows],
    }


def _flow(found: FlowExplained) -> FlowShown:
    return {
        "run": found.run.index,
        "point": dict(found.run.point),
        "repeat": found.run.repeat,
        "flow": found.flow.id,
        "from": found.flow.source,
        "to": found.flow.destination,
        "median_ns": found.median,
        "series": [_series(series) for series in found.series],
        "worst": [_message(message) for message in found.worst],
    }


def _bounded(found: Bounded) -> list[float]:
    return [found.low, found.high]


def _series(found: SeriesExplained) -> SeriesShown:
    recurrence, course, peaks = found.recurrence, found.course, found.peaks
    return {
        "measure": found.measure,
        "sentences": list(found.sentences),
        "recurring": {
            "n": recurrence.n,
            "shortest_s": recurrence.shortest,
            "longest_s": recurrence.longest,
            "false_alarm": recurrence.false_alarm,
            "modes": [
                {
                    "period_s": mode.period.value,
                    "period_interval_s": _bounded(mode.period),
                    "duration_s": mode.duration.value,
                    "duration_interval_s": _bounded(mode.duration),
                    "height_ns": mode.height.value,
                    "height_interval_ns": _bounded(mode.height),
                    "highest_ns": mode.highest,
                    "start_s": mode.start,
                    "jitter_s": mode.jitter,
                    "bands": mode.bands,
                    "cycles": mode.cycles,
                    "p": mode.p_value,
                }
                for mode in recurrence.modes
            ],
        },
        "changes": {
            "n": course.n,
            "tested": course.tested,
            "blocks": course.blocks,
            "false_alarm": course.false_alarm,
            "drift_ns_per_s": course.slope,
            "changes": [
                {
                    "kind": change.kind,
                    "at_s": change.at,
                    "interval_s": [change.low, change.high],
                    "before_ns": change.before,
                    "after_ns": change.after,
                    "p": change.p_value,
                }
                for change in course.changes
            ],
        },
        "distribution": {
            "n": peaks.n,
            "n_effective": peaks.n_effective,
            "band": peaks.band,
            "false_alarm": peaks.false_alarm,
            "modes": [
                {
                    "position_ns": peak.position,
                    "range_ns": [peak.low, peak.high],
                    "weight": peak.weight,
                    "weight_interval": [peak.weight_low, peak.weight_high],
                }
                for peak in peaks.peaks
            ],
        },
    }


def _step(step: Step) -> StepShown:
    return {
        "kind": step.kind,
        "title": step.title,
        "node": step.node,
        "port": step.port,
        "start_ns": step.start,
        "took_ns": step.took,
        "usual_ns": step.usual,
        "usual_n": step.usual_n,
    }


def _message(message: WorstMessage) -> MessageShown:
    clock = message.clock
    return {
        "sequence": message.sequence,
        "sent_s": message.sent_at,
        "value_ns": message.value,
        "excess_ns": message.excess,
        "cause": message.cause,
        "sentence": message.sentence,
        "mode": message.mode,
        "steps": [_step(step) for step in message.steps],
        "partners": [
            {
                "flow": partner.flow,
                "sequence": partner.sequence,
                "returning": partner.returning,
                "length": partner.length,
                "node": partner.node,
                "port": partner.port,
                "blocked_ns": partner.blocked,
            }
            for partner in message.partners
        ],
        "neighbours": [
            {"sequence": beside.sequence, "value_ns": beside.value, "outcome": beside.outcome}
            for beside in message.neighbours
        ],
        "clock": {
            "offset_ns": clock.offset,
            "usual_ns": clock.usual,
            "uncertainty_ns": clock.uncertainty,
            "source": clock.source,
        }
        if clock
        else None,
        "events": [
            {"at_s": event.at, "node": event.node, "text": event.text, "source": event.source}
            for event in message.events
        ],
    }
