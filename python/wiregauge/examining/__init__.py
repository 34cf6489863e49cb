"""The examination of hosts: facts that affect a measurement, gathered by agents and judged here alone."""

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
