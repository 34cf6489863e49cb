"""Synchronisation of clocks in a run: by SAE AS6802, and by PTP in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from msgspec import Struct

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.run_measures.base import OfRun, RunMeasure

__all__ = ["SYNCHRONISATION"]

Reports = Sequence[Any]


class _Protocol(Struct, frozen=True):
    """A protocol by which clocks synchronise in groups: reports of the groups, and of a group's clocks that count."""

    groups: Callable[[OfRun], Reports]
    clocks: Callable[[Any], Reports]
    none: str
    """The reason why a run has no figure."""
    clock: str
    group: str
    """All clocks of a group, in words."""


def _followers(domain: Any) -> list[Any]:
    return [clock for clock in domain.clocks if clock.follows]


_AS6802 = _Protocol(
    lambda run: run.clusters,
    lambda cluster: cluster.correct,
    "no devices of the run synchronise by AS6802",
    "device",
    "devices of a cluster",
)
_PTP = _Protocol(
    lambda run: run.ptp_domains if any(map(_followers, run.ptp_domains)) else (),
    _followers,
    "the run has no <ptp-domain>",
    "clock",
    "clocks of a PTP domain",
)


@dataclass(frozen=True)
class _Synchronisation(RunMeasure):
    """A figure of the groups of a protocol: `of` gives its parts from the reports of groups and of their clocks."""

    protocol: _Protocol
    of: Callable[[Reports, Reports], Sequence[float | None]]

    def quantity(self, statistic: str, run: OfRun, flows: Sequence[FlowResult]) -> Quantity:
        groups = self.protocol.groups(run)
        clocks = [clock for group in groups for clock in self.protocol.clocks(group)]
        return self.figure(groups, clocks) if groups else self.without(self.protocol.none)

    def figure(self, groups: Reports, clocks: Reports) -> Quantity:
        """A count of clocks."""
        return self._made(sum(one or 0.0 for one in self.of(groups, clocks)), len(clocks))

    def _made(self, value: float | None, n: int, **more: Any) -> Quantity:
        found = float(value) if value is not None else None
        return Quantity(self.definition.name, "", found, self.definition.unit, n, **more)


class _Greatest(_Synchronisation):
    """The greatest of times; none where one is None, for a group that was never synchronised as a whole."""

    def figure(self, groups: Reports, clocks: Reports) -> Quantity:
        times = self.of(groups, clocks)
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            reason = f"the {self.protocol.group} were never all synchronised"
            return self._made(None, len(clocks), reason=reason, stands_for=inf, among=0)
        return self._made(max(known), len(clocks))


class _Events(_Synchronisation):
    """A count of events, of clocks that were synchronised."""

    def figure(self, groups: Reports, clocks: Reports) -> Quantity:
        ever = self.synchronised(groups, clocks)
        never = f"{len(ever) - sum(ever)} of {count_of(len(ever), self.protocol.clock)}"
        silent = "" if all(ever) else f"{never} never synchronised, and nothing of those could be counted"
        return self._made(sum(one or 0.0 for one in self.of(groups, clocks)), sum(ever), silent=silent)

    def synchronised(self, groups: Reports, clocks: Reports) -> list[bool]:
        """Whether each clock was synchronised at any time."""
        return [clock.synchronised_at_ns is not None for clock in clocks]


class _EventsOfGroups(_Events):
    """A count of events, of groups from when all their clocks were synchronised first."""

    def synchronised(self, groups: Reports, clocks: Reports) -> list[bool]:
        """Whether the group of each clock was synchronised at any time."""
        return [group.synchronised_at_ns is not None for group in groups for _ in self.protocol.clocks(group)]


_as6802 = partial(
    Definition,
    source="SAE AS6802; the simulator's own account of its devices",
    better="lower",
    needs="run",
    of="devices that were synchronised",
)
_ptp = partial(
    Definition,
    source="IEEE Std 1588-2019; readings of the clocks themselves, which only the simulator can compare",
    better="lower",
    needs="run",
    of="clocks that were synchronised",
)

SYNCHRONISATION = (
    _Greatest(
        _as6802(
            "sync_startup",
            "Time to synchronise",
            "instant at which all correct devices were synchronised first - instant at which the last device had power",
            unit="ns",
            note="Per run, for its slowest cluster. Correct devices are all except masters that the test makes "
            "faulty.",
        ),
        _AS6802,
        lambda clusters, _: [one.startup_ns for one in clusters],
    ),
    _Greatest(
        _as6802(
            "sync_precision",
            "Precision of synchronised clocks",
            "max over corrections of (max - min of the clocks of correct, synchronised devices)",
            unit="ns",
            note="Per run, for its worst cluster, from the instant at which all its correct devices were first "
            "synchronised.",
        ),
        _AS6802,
        lambda clusters, _: [one.precision_ns for one in clusters],
    ),
    _Events(
        _as6802(
            "sync_losses",
            "Losses of synchronisation",
            "times that a correct device left SYNC or STABLE",
            unit="events",
            note="Counted per run, in all its clusters. A restart of a switch is one.",
        ),
        _AS6802,
        lambda _, devices: [one.losses for one in devices],
    ),
    _Events(
        _as6802(
            "sync_cliques",
            "Cliques detected",
            "times that synchronous, asynchronous or relative clique detection of a correct device failed it",
            unit="events",
            note="Counted per run, in all its clusters.",
        ),
        _AS6802,
        lambda _, devices: [sum(one.cliques) for one in devices],
    ),
    _Synchronisation(
        _as6802(
            "sync_missing",
            "Devices not synchronised",
            "correct devices that were in neither SYNC nor STABLE at the end of the run",
            unit="events",
            note="Counted per run, in all its clusters.",
            of="devices",
        ),
        _AS6802,
        lambda _, devices: [not one.synchronised for one in devices],
    ),
    _Greatest(
        _ptp(
            "ptp_startup",
            "Time to synchronise by PTP",
            "instant from which on all clocks were within max-offset of the grandmaster for 8 sync intervals",
            unit="ns",
            note="Per run, measured from its beginning, for its slowest domain; the first such instant.",
        ),
        _PTP,
        lambda domains, _: [one.synchronised_at_ns for one in domains],
    ),
    _Greatest(
        _ptp(
            "ptp_offset",
            "Worst offset from the grandmaster",
            "max over clocks and instants of |clock - clock of the grandmaster|, while synchronised",
            unit="ns",
            note="Per run, for its worst clock; an offset that ends synchronisation counts. Sampled every 100 ms, and "
            "before and after every message that a clock processes.",
        ),
        _PTP,
        lambda _, clocks: [one.offset_ns for one in clocks],
    ),
    _Greatest(
        _ptp(
            "ptp_precision",
            "Precision of a PTP domain",
            "max over instants of (max - min of its synchronised clocks)",
            unit="ns",
            note="Per run, for its worst domain, sampled every 100 ms from the instant at which all its clocks were "
            "first synchronised.",
        ),
        _PTP,
        lambda domains, _: [one.precision_ns for one in domains],
    ),
    _Events(
        _ptp(
            "ptp_losses",
            "Losses of PTP synchronisation",
            "times that a synchronised clock exceeded max-offset, lost its master or followed another than most",
            unit="events",
            note="Counted per run, in all its domains. A restart of a boundary clock is one.",
        ),
        _PTP,
        lambda _, clocks: [one.losses for one in clocks],
    ),
    _Synchronisation(
        _ptp(
            "ptp_missing",
            "PTP clocks not synchronised",
            "clocks that were not synchronised at the end of the run",
            unit="events",
            note="Counted per run, in all its domains.",
            of="clocks",
        ),
        _PTP,
        lambda _, clocks: [not one.synchronised for one in clocks],
    ),
    _EventsOfGroups(
        _ptp(
            "ptp_changes",
            "Changes of grandmaster",
            "times that another clock was the grandmaster of most clocks",
            unit="events",
            note="Counted per run, in all its domains, from the instant at which all clocks of a domain were first "
            "synchronised.",
        ),
        _PTP,
        lambda domains, _: [one.grandmaster_changes for one in domains],
    ),
)
"""The measures of both protocols."""
