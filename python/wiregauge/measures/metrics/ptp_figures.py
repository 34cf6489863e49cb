"""The figures of a run that limits on synchronisation by PTP name."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.metrics.cluster_figures import of_synchronised, worst_time
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.records.reported import PtpDomainReport

__all__ = ["ptp_quantity"]


def ptp_quantity(measure: str, domains: Sequence[PtpDomainReport]) -> Quantity:
    """The figure of a run that a limit names."""
    unit = DEFINITIONS[measure].unit
    clocks = [clock for domain in domains for clock in domain.clocks if clock.follows]
    if not clocks:
        return Quantity(measure, "", None, unit, 0, reason="the run has no <ptp-domain>")
    times = {
        "ptp_startup": [domain.synchronised_at_ns for domain in domains],
        "ptp_precision": [domain.precision_ns for domain in domains],
        "ptp_offset": [clock.offset_ns for clock in clocks],
    }
    if measure in times:
        return worst_time(measure, times[measure], len(clocks), "clocks of a PTP domain")
    count = {
        "ptp_losses": sum(clock.losses for clock in clocks),
        "ptp_missing": sum(not clock.synchronised for clock in clocks),
        "ptp_changes": sum(domain.grandmaster_changes for domain in domains),
    }[measure]
    if measure == "ptp_missing":
        return Quantity(measure, "", float(count), unit, len(clocks))
    ever = [clock.synchronised_at_ns is not None for clock in clocks]
    if measure == "ptp_changes":
        # Counted from when all were synchronised first.
        ever = [
            domain.synchronised_at_ns is not None
            for domain in domains
            for clock in domain.clocks
            if clock.follows
        ]
    return of_synchronised(measure, count, ever, "clock")
