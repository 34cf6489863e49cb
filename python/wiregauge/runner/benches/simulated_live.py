"""Live figures of a campaign in virtual time: one of the runs under way is followed by its segments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wiregauge import _native
from wiregauge.plan import Campaign, as_json
from wiregauge.records.live import PortNow, RunNow
from wiregauge.runner.live.figures import Figures

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


class _PortSums(Struct, frozen=True):
    node: int
    port: int
    frames: int
    longest_ns: int


class _Sums(Struct, frozen=True):
    number: int
    at_ns: int
    records_dropped: int
    flows: list[_FlowSums]
    flows_left_out: int
    ports: list[_PortSums]


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
        names = self._plan.network.names
        ports = tuple(PortNow(names[one.node], one.port, one.frames, one.longest_ns) for one in sums.ports)
        return replace(self._figures.now(), ports=ports)

    def _begin(self, position: int) -> None:
        run = self._plan.runs[position]
        # A simulation without live figures goes on.
        with contextlib.suppress(_native.NativeError):
            self._live = _native.LiveRun(as_json(run), str(self._spool(run.index) / _SIMULATOR))
        self._figures = Figures(position, run, self._plan.network.names)
        self._position = position

    def stop(self) -> None:
        """Follows none."""
        if self._live is not None:
            self._live.stop()
        self._live = self._figures = self._position = None
