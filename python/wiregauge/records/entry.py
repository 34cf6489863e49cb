"""The initial manifest entry of a run: one form, whichever bench or tap the run is from.

The bench adds the rest: `agents`, `epoch_realtime_ns`, and its own facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wiregauge.plan import Campaign
from wiregauge.records.directory import utc_now

__all__ = ["begun", "new_simulated_entry"]


def begun(index: int, comparable: Iterable[str], *, method: str, uncertainty_ns: float = 0) -> dict[str, Any]:
    """The entry of run `index`, which begins now.

    `comparable` are the end systems whose timestamps may be subtracted from one another: by `method`, their clocks have
    no offset but for `uncertainty_ns` each.
    """
    return {
        "index": index,
        "state": "running",
        "reason": None,
        "epoch_realtime_ns": 0,
        "started": utc_now(),
        "finished": None,
        "agents": {},
        "captures": {},
        "clock_offsets": {
            node: {"offset_ns": 0, "uncertainty_ns": uncertainty_ns, "method": method} for node in comparable
        },
    }


def new_simulated_entry(plan: Campaign, position: int) -> dict[str, Any]:
    """The entry of a simulated run of the plan: its times are the true ones but where a clock has faults of its own."""
    perfect = (node.name for node in plan.network.end_systems.values() if node.clock is None)
    return begun(plan.runs[position].index, perfect, method="simulated")
