"""The figures of a run that limits on synchronisation name."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.metrics.clusters import ClusterResult
from wiregauge.measures.metrics.quantities import Quantity

__all__ = ["cluster_quantity"]


def cluster_quantity(measure: str, clusters: Sequence[ClusterResult]) -> Quantity:
    """The figure of a run that a limit names."""
    unit = DEFINITIONS[measure].unit
    if not clusters:
        return Quantity(measure, "", None, unit, 0, reason="no devices of the run synchronise by AS6802")
    correct = [device for cluster in clusters for device in cluster.correct]
    if measure in ("sync_startup", "sync_precision"):
        found = [one.startup_ns if measure == "sync_startup" else one.precision_ns for one in clusters]
        known = [value for value in found if value is not None]
        if len(known) < len(found):
            reason = "the devices of a cluster were never all synchronised"
            return Quantity(measure, "", None, unit, len(correct), reason=reason, stands_for=inf)
        return Quantity(measure, "", max(known), unit, len(correct))
    count = {
        "sync_losses": sum(device.losses for device in correct),
        "sync_cliques": sum(sum(device.cliques) for device in correct),
        "sync_missing": sum(not device.synchronised for device in correct),
    }[measure]
    return Quantity(measure, "", float(count), unit, len(correct))
