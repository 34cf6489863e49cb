"""The figure of a run that a limit on the release error of its network names."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.metrics.live_network import NetworkResult, ReleaseResult
from wiregauge.measures.metrics.quantity import Quantity

__all__ = ["release_quantity"]


def release_quantity(
    measure: str, network: NetworkResult | None, nothing: str, *, simulated: int | None
) -> Quantity:
    """The figure that a limit names, for the end system towards which it is greatest.

    `nothing` gives the reason why a run has no figure. `simulated`: messages that arrived in a run in virtual time,
    which is never late; else None.
    """
    name, _, statistic = measure.partition(".")
    unit = DEFINITIONS[name].unit
    if simulated is not None:
        return Quantity(name, statistic, 0.0, unit, simulated)
    used = [one for one in network.releases if one.frames] if network is not None else []
    told = [one for one in used if one.value(statistic) is not None]
    if not told:
        return Quantity(name, statistic, None, unit, 0, reason=nothing or _too_few(statistic, used))

    def late(one: ReleaseResult) -> float:
        value = one.value(statistic)
        return value if value is not None else one.max_ns or 0.0

    worst = max(used, key=late)
    found = worst.percentiles.get(statistic)
    stands = (
        f"of the {worst.frames} frames to {worst.end_system} the greatest stands for {statistic}"
        if worst.value(statistic) is None
        else ""
    )
    low, high = (found.low, found.high) if found is not None else (None, None)
    return Quantity(name, statistic, late(worst), unit, worst.frames, low, high, stands)


def _too_few(statistic: str, used: Sequence[ReleaseResult]) -> str:
    if not used:
        return "no frame left the network"
    most = max(used, key=lambda one: one.frames)
    found = most.percentiles.get(statistic)
    if found is not None and most.frames < found.needed:
        return f"{statistic} needs {found.needed} frames, {most.frames} left to {most.end_system}"
    return f"the release errors of single frames to {most.end_system} were not stored"
