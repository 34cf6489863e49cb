"""The figures of a run that limits on synchronisation name."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.records.reported import ClusterReport

__all__ = ["cluster_quantity", "of_synchronised", "worst_time"]


def cluster_quantity(measure: str, clusters: Sequence[ClusterReport]) -> Quantity:
    """The figure of a run that a limit names."""
    unit = DEFINITIONS[measure].unit
    if not clusters:
        return Quantity(measure, "", None, unit, 0, reason="no devices of the run synchronise by AS6802")
    correct = [device for cluster in clusters for device in cluster.correct]
    times = {
        "sync_startup": [one.startup_ns for one in clusters],
        "sync_precision": [one.precision_ns for one in clusters],
    }
    if measure in times:
        return worst_time(measure, times[measure], len(correct), "devices of a cluster")
    count = {
        "sync_losses": sum(device.losses for device in correct),
        "sync_cliques": sum(sum(device.cliques) for device in correct),
        "sync_missing": sum(not device.synchronised for device in correct),
    }[measure]
    if measure == "sync_missing":
        return Quantity(measure, "", float(count), unit, len(correct))
    return of_synchronised(
        measure, count, [device.synchronised_at_ns is not None for device in correct], "device"
    )


def worst_time(measure: str, times: Sequence[float | None], n: int, what: str) -> Quantity:
    """The greatest of times; none where one is None, for a cluster that was never synchronised as a whole."""
    known = [value for value in times if value is not None]
    unit = DEFINITIONS[measure].unit
    if len(known) < len(times):
        reason = f"the {what} were never all synchronised"
        return Quantity(measure, "", None, unit, n, reason=reason, stands_for=inf, among=0)
    return Quantity(measure, "", max(known), unit, n)


def of_synchronised(measure: str, count: int, ever: Sequence[bool], what: str) -> Quantity:
    """A count of events of synchronised clocks only; `ever` holds, by clock, whether it was."""
    never = f"{len(ever) - sum(ever)} of {count_of(len(ever), what)}"
    silent = "" if all(ever) else f"{never} never synchronised, and nothing of those could be counted"
    return Quantity(measure, "", float(count), DEFINITIONS[measure].unit, sum(ever), silent=silent)
