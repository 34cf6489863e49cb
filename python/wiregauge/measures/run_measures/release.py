"""The release error of a network that an agent plays."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions import QUANTILES, Definition
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.live_network import ReleaseResult
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.run_measures.base import OfRun, RunMeasure

__all__ = ["RELEASE_ERROR"]


class _ReleaseError(RunMeasure):
    """The release error for the end system towards which it is greatest; 0 in virtual time, which is never late."""

    def quantity(self, statistic: str, run: OfRun, flows: Sequence[FlowResult]) -> Quantity:
        name, unit = self.definition.name, self.definition.unit
        if run.virtual_time:
            return Quantity(name, statistic, 0.0, unit, sum(flow.counts["delivered"] for flow in flows))
        used = [one for one in run.network.releases if one.frames] if run.network is not None else []
        if all(one.value(statistic) is None for one in used):
            return self.without(run.no_network or _too_few(statistic, used), statistic)

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


RELEASE_ERROR = _ReleaseError(
    Definition(
        "release_error",
        "Release error of the network",
        "instant at which a frame was handed to the kernel of its end system - instant at which the model wanted "
        "it there",
        "ns",
        "docs/explanation/live-network.md; both instants are in the table of crossings",
        "Per run, for the end system with the greatest error. A simulation releases every frame at the "
        "instant of its model: 0. Kernel bridges and hardware switches cannot report it.",
        statistics=(*QUANTILES, "max"),
        better="lower",
        needs="run",
        of="frames that left the network",
    )
)


def _too_few(statistic: str, used: Sequence[ReleaseResult]) -> str:
    if not used:
        return "no frame left the network"
    most = max(used, key=lambda one: one.frames)
    found = most.percentiles.get(statistic)
    if found is not None and most.frames < found.needed:
        return f"{statistic} needs {found.needed} frames, {most.frames} left to {most.end_system}"
    return f"the release errors of single frames to {most.end_system} were not stored"
