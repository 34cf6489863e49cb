"""Data of the queue view: fill level of each switch port, from every record of the run, in bounded memory.

A queue is the frames in a switch bound for a port, from arrival to first bit out. Records are read a batch at a time.
The length of a queue at an instant is final as soon as every frame that came until then has left, or is older than
`BATCH` records: then it is reduced to the extremes of equal intervals, which stay exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.plan import Switch

__all__ = ["QueueShape", "Queues", "queues"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

QUEUE_MARKS = 800
"""Stretches of time a queue is reduced to, at most."""
NEAR = 40
"""Changes before and after the greatest length of a queue that are drawn one by one."""
BATCH = 1 << 20
"""Number of records read at once. A frame is remembered for at least as many after its arrival at a switch."""
_PER_MARK = 5
"""Changes that a stretch is reduced to."""


class QueueShape(Struct, frozen=True):
    """Frames in a switch bound for one of its ports against time (s), at the extremes of equal stretches of time."""

    run: int
    switch: str
    port: int
    t: Floats
    bytes: Floats
    frames: Floats
    most_bytes: float
    most_bytes_at: float
    most_frames: int
    most_frames_at: float
    drops_at: Floats
    """Times of dropped frames; where many were, the first instant of each interval with any."""
    dropped: int
    near_t: Floats
    near_bytes: Floats
    """Number of bytes after every change around the maximum; times are in ns from it."""
    changes: int = 0
    """Total number of changes of the queue's length."""


class Queues(Struct, frozen=True):
    """The queues of a run, the ones that dropped most or were fullest first."""

    shapes: tuple[QueueShape, ...] = ()
    unpaired: int = 0
    """Number of frames that left a switch without a record, in memory at least, of their arrival."""


def queues(directory: Recorded, plan: RunPlan) -> Queues:
    """The queues of the switches of a run. Raises RunDirectoryError for a damaged file."""
    nodes = directory.plan.network.nodes
    ports: dict[tuple[int, int], _Port] = {}
    before: pl.DataFrame | None = None
    unpaired, left_any = 0, False
    for table in _batches(directory, plan):
        if table.is_empty():
            continue
        begin = int(table.select(pl.col("time").min()).item())
        came = table.filter("came_in").select("key", "turn", came="time")
        here = came if before is None else pl.concat([before, came])
        left = table.filter("went_out")
        stays = _paired(here, left)
        unpaired += left.height - stays.height
        left_any |= bool(left.height)
        for (node, port), part in stays.partition_by("node", "port", as_dict=True).items():
            one = ports.setdefault((int(node), int(port)), _Port())
            one.stay(
                part["came"].to_numpy(), part["time"].to_numpy(), part["length"].cast(pl.Int64).to_numpy()
            )
        for (node, port), part in table.filter("full").partition_by("node", "port", as_dict=True).items():
            ports.setdefault((int(node), int(port)), _Port()).drop(part["time"].to_numpy())
        # Frames that came before this batch are forgotten after it, so nothing before it changes any more.
        for one in ports.values():
            one.settle(begin)
        before = came
    shapes = []
    for (node, port), one in ports.items():
        name = nodes[node].name if 0 <= node < len(nodes) else f"node {node}"
        shape = one.shape(plan.index, name, port)
        # A port at which never two frames met has no queue to show.
        if shape is not None and (shape.most_frames > 1 or shape.dropped):
            shapes.append(shape)
    shapes.sort(key=lambda shape: (-shape.dropped, -shape.most_bytes, shape.switch, shape.port))
    return Queues(tuple(shapes), unpaired) if left_any else Queues()


def _paired(came: pl.DataFrame, left: pl.DataFrame) -> pl.DataFrame:
    """The departures of which the first arrival of the frame is known, with when it `came`."""
    parts = [left.with_columns(came=pl.lit(0, pl.Int64)).clear()]
    for turn in left["turn"].unique().sort():
        here, gone = (one.filter(pl.col("turn") == turn) for one in (came, left))
        place = stats.first_places(here["key"].to_numpy(), gone["key"].to_numpy())
        known = place >= 0
        at = pl.Series("came", here["came"].to_numpy()[place[known]], pl.Int64)
        parts.append(gone.filter(known).with_columns(at))
    return pl.concat(parts)


def _batches(directory: Recorded, plan: RunPlan) -> Iterator[pl.DataFrame]:
    """Records of switches in order of time; every batch is taken from `BATCH` records of the run."""
    path = directory.records(plan.index)
    switches = [k for k, node in enumerate(directory.plan.network.nodes) if isinstance(node.kind, Switch)]
    if path is None or not switches:
        return
    point, reason = pl.col("point"), pl.col("reason")
    passing = (point == "switch-in") | (point == "switch-out") | (point == "drop")
    flags = {
        "key": _packed(flow=48, sequence=16, node=0),
        "turn": _packed(returning=1, warm_up=0),
        "came_in": point == "switch-in",
        "went_out": point == "switch-out",
        "full": ((point == "drop") & (reason == "buffer-full")).fill_null(value=False),
    }
    total = directory.reading(
        plan.index, lambda: int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    )
    for place in range(0, total, BATCH):
        yield read_columns(
            path,
            ("node", "port", "length", "time", *flags),
            passing & pl.col("node").is_in(switches),
            span=(place, BATCH),
            made=flags,
        )


def _packed(**places: int) -> pl.Expr:
    """Columns in one number, each from its bit on; `key` and `turn` tell a frame at a node from all others."""
    return pl.sum_horizontal(
        pl.col(name).cast(pl.UInt64) * pl.lit(1 << place, pl.UInt64) for name, place in places.items()
    )


class _Level:
    """Fill level of a queue: takes changes in the order of time, keeps the extremes of equal intervals."""

    def __init__(self) -> None:
        nothing = np.zeros(0, dtype=np.int64)
        self.changes = 0
        self.most, self.most_at = -1, 0
        self.most_frames, self.most_frames_at = -1, 0
        self.near_t, self.near_size = nothing, nothing
        self._near_lacks = 0
        self._held = (nothing, nothing, nothing)
        self._width = 1
        self._begin = 0
        self._bytes = self._frames = 0
        self._tail = (nothing, nothing)

    def add(self, at: Integers, by: Integers, one: Integers) -> None:
        """The next changes; none of a later part is at an instant of an earlier one."""
        if not len(at):
            return
        t, size, count = changes(at, by, one, self._bytes, self._frames)
        self._bytes, self._frames = int(size[-1]), int(count[-1])
        if not self.changes:
            self._begin = int(t[0])
        self.changes += len(t)
        self._note(t, size, count)
        at, sizes, counts = self._held
        self._held = np.append(at, t), np.append(sizes, size), np.append(counts, count)
        if len(self._held[0]) > 4 * _PER_MARK * QUEUE_MARKS:
            self._held = self.reduced()

    def reduced(self) -> tuple[Integers, Integers, Integers]:
        """Changes that remain: where there are many, of each stretch the first and last, the greatest and the least."""
        t, size, count = self._held
        if len(t) <= _PER_MARK * QUEUE_MARKS:
            return self._held
        # Doubling the width merges pairs of stretches: their extremes are the extremes of both.
        while (int(t[-1]) - self._begin) // self._width >= QUEUE_MARKS:
            self._width *= 2
        kept = extremes((t - self._begin) // self._width, size, count)
        return t[kept], size[kept], count[kept]

    def _note(self, t: Integers, size: Integers, count: Integers) -> None:
        if self._near_lacks:
            more = min(self._near_lacks, len(t))
            self.near_t = np.concatenate([self.near_t, t[:more]])
            self.near_size = np.concatenate([self.near_size, size[:more]])
            self._near_lacks -= more
        top, top_frames = int(np.argmax(size)), int(np.argmax(count))
        if count[top_frames] > self.most_frames:
            self.most_frames, self.most_frames_at = int(count[top_frames]), int(t[top_frames])
        before_t, before_size = (
            np.concatenate([old, new]) for old, new in zip(self._tail, (t, size), strict=True)
        )
        if size[top] > self.most:
            self.most, self.most_at = int(size[top]), int(t[top])
            place = top + len(self._tail[0])
            near = slice(max(place - NEAR, 0), place + NEAR)
            self.near_t, self.near_size = before_t[near].copy(), before_size[near].copy()
            self._near_lacks = max(place + NEAR - len(before_t), 0)
        self._tail = before_t[-NEAR:].copy(), before_size[-NEAR:].copy()


class _Port(Struct):
    """The accumulated state of one port."""

    level: _Level = field(default_factory=_Level)
    dropped: int = 0
    _drops: list[Integers] = field(default_factory=list)
    _drops_held: int = 0
    _at: list[Integers] = field(default_factory=list)
    _bytes: list[Integers] = field(default_factory=list)
    _frames: list[Integers] = field(default_factory=list)

    def stay(self, came: Integers, went: Integers, length: Integers) -> None:
        one = np.ones_like(length)
        self._at += [came, went]
        self._bytes += [length, -length]
        self._frames += [one, -one]

    def drop(self, at: Integers) -> None:
        self.dropped += len(at)
        self._drops.append(at)
        self._drops_held += len(at)
        if self._drops_held > 50 * QUEUE_MARKS:
            self._drops = [apart(np.concatenate(self._drops), 8 * QUEUE_MARKS)]
            self._drops_held = len(self._drops[0])

    def settle(self, until: int | None) -> None:
        """Makes all changes before the instant `until` final; None: all."""
        if not self._at:
            return
        at, by, one = (np.concatenate(parts) for parts in (self._at, self._bytes, self._frames))
        order = np.argsort(at, kind="stable")
        at, by, one = at[order], by[order], one[order]
        ready = len(at) if until is None else int(np.searchsorted(at, until, "left"))
        self.level.add(at[:ready], by[:ready], one[:ready])
        self._at, self._bytes, self._frames = ([part[ready:]] for part in (at, by, one))

    def shape(self, run: int, switch: str, port: int) -> QueueShape | None:
        self.settle(None)
        level = self.level
        if not level.changes:
            return None
        drops = apart(np.concatenate([np.zeros(0, np.int64), *self._drops]), QUEUE_MARKS)
        t, size, count = level.reduced()
        return QueueShape(
            run,
            switch,
            port,
            t / 1e12,
            size.astype(np.float64),
            count.astype(np.float64),
            float(level.most),
            level.most_at / 1e12,
            level.most_frames,
            level.most_frames_at / 1e12,
            drops / 1e12,
            self.dropped,
            (level.near_t - level.most_at) / 1e3,
            level.near_size.astype(np.float64),
            level.changes,
        )


def changes(
    at: Integers, by: Integers, one: Integers, size: int = 0, count: int = 0
) -> tuple[Integers, Integers, Integers]:
    """Instants of change, and bytes and frames from each on; arrivals and departures at one instant are one change."""
    last = np.append(at[1:] != at[:-1], True)
    return at[last], size + np.cumsum(by)[last], count + np.cumsum(one)[last]


def extremes(stretch: Integers, size: Integers, count: Integers) -> Integers:
    """Places that remain of ascending stretches: first, greatest of both, least and last of each."""
    begins = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
    ends = np.append(begins[1:], len(stretch))

    def first(column: Integers, extreme: np.ufunc) -> Integers:
        is_it = column == np.repeat(extreme.reduceat(column, begins), ends - begins)
        places = np.flatnonzero(is_it)
        return places[np.searchsorted(places, begins)]

    return np.unique(
        np.concatenate(
            [begins, first(size, np.maximum), first(count, np.maximum), first(size, np.minimum), ends - 1]
        )
    )


def apart(at: Integers, most: int) -> Integers:
    """Instants in order, reduced to the first of each of `most` equal intervals that has any."""
    if len(at) <= most:
        return at
    stretch = (at - at[0]) * (most - 1) // max(int(at[-1] - at[0]), 1)
    _, first = np.unique(stretch, return_index=True)
    return at[first]
