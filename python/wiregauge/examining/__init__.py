"""What of a host bears on a measurement: its facts, as agents gather them, and the one place that judges them."""

from __future__ import annotations

from wiregauge.examining.checks import CHECKS, Check, Severity, Verdict
from wiregauge.examining.facts import Fact, Look, NotKnownError, facts_of_json
from wiregauge.examining.judging import Finding, judge, judge_together

__all__ = [
    "CHECKS",
    "Check",
    "Fact",
    "Finding",
    "Look",
    "NotKnownError",
    "Severity",
    "Verdict",
    "facts_of_json",
    "judge",
    "judge_together",
]
