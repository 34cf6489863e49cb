"""Measures of clusters that synchronise by SAE AS6802: they belong to a run, not to a flow."""

from __future__ import annotations

from wiregauge.measures.definitions.definition import Definition

__all__ = ["OF_CLUSTERS"]

_SOURCE = "SAE AS6802; the simulator's own account of its devices"

OF_CLUSTERS = (
    Definition(
        "sync_startup",
        "Time to synchronise",
        "instant at which all correct devices were synchronised first - instant at which the last device had power",
        "ns",
        _SOURCE,
        "Per run, for its slowest cluster. Correct devices are all except masters that the test makes "
        "faulty.",
        better="lower",
        needs="run",
        of="devices that were synchronised",
    ),
    Definition(
        "sync_precision",
        "Precision of synchronised clocks",
        "max over corrections of (max - min of the clocks of correct, synchronised devices)",
        "ns",
        _SOURCE,
        "Per run, for its worst cluster, from the instant at which all its correct devices were first "
        "synchronised.",
        better="lower",
        needs="run",
        of="devices that were synchronised",
    ),
    Definition(
        "sync_losses",
        "Losses of synchronisation",
        "times that a correct device left SYNC or STABLE",
        "events",
        _SOURCE,
        "Counted per run, in all its clusters. A restart of a switch is one.",
        better="lower",
        needs="run",
        of="devices that were synchronised",
    ),
    Definition(
        "sync_cliques",
        "Cliques detected",
        "times that synchronous, asynchronous or relative clique detection of a correct device failed it",
        "events",
        _SOURCE,
        "Counted per run, in all its clusters.",
        better="lower",
        needs="run",
        of="devices that were synchronised",
    ),
    Definition(
        "sync_missing",
        "Devices not synchronised",
        "correct devices that were in neither SYNC nor STABLE at the end of the run",
        "events",
        _SOURCE,
        "Counted per run, in all its clusters.",
        better="lower",
        needs="run",
        of="devices",
    ),
)
