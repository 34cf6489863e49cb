"""Disk space of a campaign: its bound, and a check before it begins."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wiregauge.plan import Run
from wiregauge.plan.quantity import QuantityError, storage
from wiregauge.runner.stopping import Interrupted

__all__ = ["DiskBound", "DiskExit", "needed_bytes", "size_of", "size_text"]

_LOOK_S: Final = 1.0
_LOOKS_AHEAD: Final = 2
"""Number of looks ahead for which the space must still suffice: agents take a while to end."""
_LEAST: Final = 10**6
_SEGMENT_BYTES: Final = 16
"""Bytes of a record in a segment, while a run goes on."""
_KEPT_BYTES: Final = 10
"""Bytes of a record after the run, in the tables of records and messages, which are written before segments are
deleted."""
_RECORDS: Final = 5
"""Records per message: intended, application and driver when sent; driver and application on arrival."""
_SEGMENTS: Final = ".arrows"
_SHARE_OF_SEGMENTS: Final = _SEGMENT_BYTES / (_SEGMENT_BYTES + _KEPT_BYTES)


class DiskExit(Interrupted):
    """The run directory has reached its size bound."""


def size_of(text: str) -> int:
    """Bytes, from `10GB`. Raises QuantityError with a sentence."""
    bound = storage(text)
    if bound < _LEAST:
        raise QuantityError(f'"{text}" is too little for any run; write 1MB at least')
    return bound


def size_text(bytes_: float) -> str:
    """A size with three digits."""
    for unit in ("TB", "GB", "MB"):
        if bytes_ >= storage(f"1{unit}"):
            return f"{bytes_ / storage(f'1{unit}'):.3g} {unit}"
    return f"{bytes_ / storage('1MB'):.3g} MB"


def needed_bytes(runs: Sequence[Run]) -> int:
    """The most disk space these runs take, roughly: stored tables, and the segments of the longest run."""
    records = [_records(run) for run in runs]
    return sum(records) * _KEPT_BYTES + max(records, default=0) * _SEGMENT_BYTES


def _records(run: Run) -> int:
    """Records that a run is going to leave."""
    relayed = {relay.flow for relay in run.relays}
    return sum(
        (send.count + send.warm_up_count) * _RECORDS * (2 if send.flow in relayed else 1)
        for send in run.sends
    )


class DiskBound:
    """Ends a campaign before its directory exceeds `most` bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._due = 0.0
        self._before = 0.0
        self._kept: int | None = None

    def run_begins(self) -> None:
        """Has the stored size of earlier runs measured again."""
        self._kept = None

    def look(self, root: Path) -> None:
        """Raises DiskExit where the stored files, and the tables to be made from segments, will soon exceed the
        bound."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _LOOK_S
        spool = root / "spool"
        if self._kept is None:
            # While a run goes on nothing is added but segments, and there may be many files.
            self._kept = _taken(root) - _taken(spool)
        segments = _taken(spool, _SEGMENTS)
        # Captures stay as they are.
        others = _taken(spool) - segments
        taken = self._kept + others + segments / _SHARE_OF_SEGMENTS
        growth, self._before = max(taken - self._before, 0.0) if self._before else 0.0, taken
        if taken + _LOOKS_AHEAD * growth >= self.most:
            raise DiskExit(
                f"ended before the directory comes to --disk {size_text(self.most)}: it has {size_text(segments)} of "
                "segments, and tables are still to be made of them"
            )


def room(root: Path, runs: Sequence[Run], bound: int | None) -> str | None:
    """A complaint where these runs, or the disk bound, do not fit on the disk; None where they do."""
    free, needed = shutil.disk_usage(root).free, needed_bytes(runs)
    if bound is not None:
        if bound > free:
            return f"--disk {size_text(bound)} is more than the {size_text(free)} that are free"
        return None
    if needed > free:
        return (
            f"records may come to about {size_text(needed)}, and {size_text(free)} are free: the run may fill the disk "
            "and end; free some, run for a shorter time, or end it in time with --disk"
        )
    return None


def _taken(folder: Path, ending: str = "") -> int:
    """Bytes of the files in a folder, or of those whose names end so."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(ending):
                continue
            try:
                total += (Path(place) / name).lstat().st_size
            except OSError:
                continue
    return total
