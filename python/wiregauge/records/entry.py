"""The initial manifest entry of a run: one form, whichever bench or tap the run is from.

The bench adds the rest: the reports of agents, the epoch, and its own facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from wiregauge.plan import Campaign
from wiregauge.records.directory import RunDirectory, utc_now
from wiregauge.records.reported import ClockOffset, RunEntry

__all__ = ["new_entry", "new_simulated_entry", "note_collected"]


def new_entry(index: int, comparable: Iterable[str], *, method: str, uncertainty_ns: float = 0) -> RunEntry:
    """The entry of run `index`, which begins now.

    `comparable` are the end systems whose timestamps may be subtracted from one another: by `method`, their clocks have
    no offset but for `uncertainty_ns` each.
    """
    known = ClockOffset(0, uncertainty_ns, method)
    return RunEntry(index, "running", started=utc_now(), clock_offsets=dict.fromkeys(comparable, known))


def new_simulated_entry(plan: Campaign, position: int) -> RunEntry:
    """The entry of a simulated run of the plan: its times are the true ones but where a clock has faults of its own."""
    perfect = (node.name for node in plan.network.end_systems.values() if node.clock is None)
    return new_entry(plan.runs[position].index, perfect, method="simulated")


def note_collected(directory: RunDirectory, entry: RunEntry, nodes: Iterable[int]) -> None:
    """Enters nodes on other hosts whose records of the run are all there."""
    entry.collected = tuple(sorted({*entry.collected, *nodes}))
    directory.enter(entry)
