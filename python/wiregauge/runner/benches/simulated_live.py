"""Live figures of a campaign in virtual time: one of the runs under way is followed by its segments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from wiregauge import _native
from wiregauge.plan import Campaign, as_json
from wiregauge.records.live import RunNow
from wiregauge.runner.live.figures import Figures
from wiregauge.runner.live.network import NetworkSums

__all__ = ["Following"]

_SIMULATOR: Final = "simulator"
"""Folder of a simulation's segments, in the spool of its run."""


class _FlowSums(Struct, frozen=True):
    flow: int
    sent: int
    refused: int
    received: int
    missing: int
    repeats: int
    late_ns: int
    arrives: bool
    round_trip: bool
    measured: int
    max_ns: int
    sum_ns: int
    buckets: list[int]
    counts: list[int]
    worst_ns: int


class _Sums(Struct, frozen=True):
    number: int
    at_ns: int
    records_dropped: int
    flows: list[_FlowSums]
    flows_left_out: int
    network: NetworkSums


class Following:
    """Follows the first of the runs under way until it is over, then the next; `spool` has their segments.

    It reads what is written anyway, on a thread that has only time that nobody else wants.
    """

    def __init__(self, plan: Campaign, spool: Callable[[int], Path]) -> None:
        self._plan = plan
        self._spool = spool
        self._position: int | None = None
        self._live: _native.LiveRun | None = None
        self._figures: Figures | None = None

    def look(self, under_way: Collection[int]) -> RunNow | None:
        """The figures of a second; None where there are no new ones."""
        if self._position not in under_way:
            self.stop()
            if not under_way:
                return None
            self._begin(min(under_way))
        told = self._live.figures() if self._live is not None else None
        if told is None:
            return None
        assert self._figures is not None
        sums = msgspec.json.decode(told, type=_Sums)
        self._figures.take(_SIMULATOR, sums)
        self._figures.take_network(sums.network)
        return self._figures.now()

    def _begin(self, position: int) -> None:
        run = self._plan.runs[position]
        # A simulation without live figures goes on.
        with contextlib.suppress(_native.NativeError):
            spool = self._spool(run.index)
            self._live = _native.LiveRun(as_json(run), str(spool / _SIMULATOR), str(spool))
        self._figures = Figures(position, run, self._plan.network.names)
        self._position = position

    def stop(self) -> None:
        """Follows none."""
        if self._live is not None:
            self._live.stop()
        self._live = self._figures = self._position = None
