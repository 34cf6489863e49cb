"""Measures of clocks that synchronise by PTP in the simulator: they belong to a run, not to a flow."""

from __future__ import annotations

from wiregauge.measures.definitions.definition import Definition

__all__ = ["OF_PTP"]

_SOURCE = "IEEE Std 1588-2019; readings of the clocks themselves, which only the simulator can compare"

OF_PTP = (
    Definition(
        "ptp_startup",
        "Time to synchronise by PTP",
        "instant from which on all clocks were within max-offset of the grandmaster for 8 sync intervals",
        "ns",
        _SOURCE,
        "Per run, measured from its beginning, for its slowest domain; the first such instant.",
        better="lower",
        needs="run",
        of="clocks that were synchronised",
    ),
    Definition(
        "ptp_offset",
        "Worst offset from the grandmaster",
        "max over clocks and instants of |clock - clock of the grandmaster|, while synchronised",
        "ns",
        _SOURCE,
        "Per run, for its worst clock; an offset that ends synchronisation counts. Sampled every 100 ms, and "
        "before and after every message that a clock processes.",
        better="lower",
        needs="run",
        of="clocks that were synchronised",
    ),
    Definition(
        "ptp_precision",
        "Precision of a PTP domain",
        "max over instants of (max - min of its synchronised clocks)",
        "ns",
        _SOURCE,
        "Per run, for its worst domain, sampled every 100 ms from the instant at which all its clocks were "
        "first synchronised.",
        better="lower",
        needs="run",
        of="clocks that were synchronised",
    ),
    Definition(
        "ptp_losses",
        "Losses of PTP synchronisation",
        "times that a synchronised clock exceeded max-offset, lost its master or followed another than most",
        "events",
        _SOURCE,
        "Counted per run, in all its domains. A restart of a boundary clock is one.",
        better="lower",
        needs="run",
        of="clocks that were synchronised",
    ),
    Definition(
        "ptp_missing",
        "PTP clocks not synchronised",
        "clocks that were not synchronised at the end of the run",
        "events",
        _SOURCE,
        "Counted per run, in all its domains.",
        better="lower",
        needs="run",
        of="clocks",
    ),
    Definition(
        "ptp_changes",
        "Changes of grandmaster",
        "times that another clock was the grandmaster of most clocks",
        "events",
        _SOURCE,
        "Counted per run, in all its domains, from the instant at which all clocks of a domain were first "
        "synchronised.",
        better="lower",
        needs="run",
        of="clocks that were synchronised",
    ),
)
