"""The registry of checks, in the order in which they are reported."""

from __future__ import annotations

from typing import Final

from wiregauge.examining.checks import clocks, interfaces, processors, rights
from wiregauge.examining.checks.base import Check, Severity, Verdict

__all__ = ["CHECKS", "Check", "Severity", "Verdict"]

CHECKS: Final[tuple[Check, ...]] = (
    *clocks.CHECKS,
    *processors.CHECKS,
    *rights.CHECKS,
    *interfaces.CHECKS,
)
