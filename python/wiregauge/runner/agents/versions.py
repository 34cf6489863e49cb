"""Whether an agent and this testmaster understand each other: their schemas of plans and of segments have to agree.

Releases that changed neither work together. The agent compares as well (`crates/agent/src/control/versions.rs`): either
side may be the older one, and know nothing of this.
"""

from __future__ import annotations

from typing import Final

from wiregauge import _native
from wiregauge._version import __version__

__all__ = ["OURS", "disagreement"]

OURS: Final = (_native.PLAN_SCHEMA, _native.SEGMENT_SCHEMA)
"""Schemas that this testmaster writes and reads: plan schema, record schema."""


def disagreement(agent_version: str, plan_schema: int, record_schema: int) -> str | None:
    """A reason why an agent's versions do not fit, with both and the side to change; None where they fit."""
    theirs = (plan_schema, record_schema)
    if theirs == OURS:
        return None
    if theirs < OURS:
        cure = f"install {__version__} on the agent's host"
    else:
        cure = f"install {agent_version} for the testmaster"
    return (
        f"it is version {agent_version} ({_described(theirs)}), and the testmaster is {__version__} "
        f"({_described(OURS)}), which do not work together; {cure}"
    )


def _described(schemas: tuple[int, int]) -> str:
    plan, record = schemas
    return f"plan schema {plan}, record schema {record}"
