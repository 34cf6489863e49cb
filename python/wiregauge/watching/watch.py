"""Live interfaces: what came so far, and what came in the last second, each as the streams of a capture are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from wiregauge import _native
from wiregauge.contracts import Contract, judge
from wiregauge.streams import Bag, Copies, Distribution, Observed, Stream, graded
from wiregauge.streams import Sequence as Numbers

__all__ = ["Second", "WatchError", "Watcher"]


class WatchError(Exception):
    """An interface cannot be watched; the message says why, and the cure."""


class Second(Struct, frozen=True):
    """All so far, and the last second by itself, both judged by the contract if there is one."""

    so_far: Observed
    last: Observed


class Watcher:
    """Follows the streams of interfaces from its begin to `stop`, and in so many stretches from turn to turn."""

    def __init__(
        self, interfaces: Sequence[str], contract: Contract | None, error_ns: float, stretches: int = 0
    ) -> None:
        try:
            self._watch = _native.Watch(interfaces, stretches)
        except _native.NativeError as error:
            raise WatchError(str(error)) from error
        self._contract, self._error_ns = contract, error_ns
        self._before: dict[object, Stream] = {}
        self._copies_before: dict[str, Copies] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.stop()

    @property
    def has_ended(self) -> bool:
        """Whether an interface went away or down."""
        return self._watch.has_ended()

    def second(self) -> Second:
        """What came since the last call, and all so far."""
        told = json.loads(self._watch.second())
        so_far = graded(told["observed"], {})
        streams = [
            self._recent(stream, recent)
            for stream, recent in zip(so_far.streams, told["recent"], strict=True)
        ]
        copies = [
            self._recent_copies(one, recent) for one, recent in zip(so_far.copies, told["skew"], strict=True)
        ]
        self._before = {_key(stream): stream for stream in so_far.streams}
        self._copies_before = {one.name: one for one in so_far.copies}
        last = replace(
            so_far,
            streams=streams,
            copies=[one for one in copies if one is not None],
        )
        return Second(self._judged(so_far), self._judged(last))

    def turn(self, number: int) -> Observed:
        """Ends a stretch, by its number, and begins it anew; all that came in it."""
        return self._judged(graded(json.loads(self._watch.turn(number))["observed"], {}))

    def stop(self) -> Observed:
        """Ends it; all that came."""
        return self._judged(graded(json.loads(self._watch.stop())["observed"], {}))

    def _judged(self, observed: Observed) -> Observed:
        return observed if self._contract is None else judge(observed, self._contract, self._error_ns)

    def _recent(self, stream: Stream, recent: dict[str, Any]) -> Stream:
        """A stream as far as it came in the last second; a silence that goes on is one, however long ago it began."""
        before = self._before.get(_key(stream))
        sequence = stream.sequence
        if sequence is not None and before is not None and before.sequence is not None:
            sequence = _since(sequence, before.sequence)
        is_timed = recent["intervals"] > 0
        period = Distribution(
            n=recent["intervals"],
            min=recent["min_ps"] if is_timed else None,
            mean=None,
            sd=None,
            max=recent["max_ps"] if is_timed else None,
            quantiles={},
        )
        bags = zip(stream.bags, recent["bags"], strict=True) if stream.bags else ()
        return replace(
            stream,
            frames=recent["frames"],
            longest=recent["longest"],
            octets=stream.octets - (before.octets if before is not None else 0),
            first_ps=0,
            period=period,
            sequence=sequence,
            bags=[Bag(bag.bag_ps, held, held) for bag, held in bags],
            echo=None,
        )

    def _recent_copies(self, copies: Copies, recent: Sequence[int]) -> Copies | None:
        before = self._copies_before.get(copies.name)
        pairs, greatest = recent
        alone = copies.alone if before is None else _less(copies.alone, before.alone)
        if pairs == 0 and sum(alone) == 0:
            return None
        frames = copies.frames if before is None else _less(copies.frames, before.frames)
        return replace(
            copies, pairs=pairs, alone=alone, frames=frames, skew_max_ps=greatest if pairs else None
        )


def _key(stream: Stream) -> object:
    return stream.kind, stream.name, stream.tap


def _since(now: Numbers, before: Numbers) -> Numbers:
    counts = {
        name: max(getattr(now, name) - getattr(before, name), 0)
        for name in ("numbered", "missing", "duplicates", "reordered", "resets")
    }
    rejected = None if now.rejected is None else now.rejected - (before.rejected or 0)
    return replace(now, **counts, rejected=rejected)


def _less(now: tuple[int, int], before: tuple[int, int]) -> tuple[int, int]:
    return max(now[0] - before[0], 0), max(now[1] - before[1], 0)
