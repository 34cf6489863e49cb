"""The base of every measure of a run as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct, field

from wiregauge.measures.definitions import Definition
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.records.modelled import ClusterReport, PtpDomainReport

__all__ = ["OfRun", "RunMeasure"]


class OfRun(Struct, frozen=True):
    """The values from which the measures of a run as a whole follow, besides its flows."""

    unplanned: Mapping[str, int] = field(default_factory=dict)
    clusters: Sequence[ClusterReport] = ()
    ptp_domains: Sequence[PtpDomainReport] = ()
    network: NetworkResult | None = None
    no_network: str = ""
    """The reason why nothing is known of a played network; empty where something is."""
    virtual_time: bool = False
    """Whether the run was in virtual time: timestamps are without error, and nothing is late."""


@dataclass(frozen=True)
class RunMeasure(ABC):
    """A measure of a run as a whole: its definition, and how a figure of it is computed."""

    definition: Definition

    @abstractmethod
    def quantity(self, statistic: str, run: OfRun, flows: Sequence[FlowResult]) -> Quantity:
        """The figure that a limit names."""

    def without(self, reason: str, statistic: str = "") -> Quantity:
        """The figure of a run that has none."""
        return Quantity(self.definition.name, statistic, None, self.definition.unit, 0, reason=reason)
