"""Judges the streams of a place by a contract: each promise passes, fails, or is undecided with the reason.

The same as of a test's limits: what was observed decides. It is undecided without a figure, where the bound lies within
the error of timestamps and clock, and where frames that the capture lacks could turn it. Unknown is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec.structs import replace

from wiregauge.contracts.contract import Contract, Expected, Matcher
from wiregauge.contracts.promises import PROMISES, Figure, Promise, Unit
from wiregauge.measures import verdict_of
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.streams import (
    PS_PER_NS,
    ContractSource,
    Copies,
    Observed,
    PromiseResult,
    Stream,
    stream_name,
)

__all__ = ["judge"]

_UNSEEN: Final = "no frame of it was seen; capture longer, or leave it out of the contract of this place"
_BOTH: Final = {"A", "B"}


def judge(observed: Observed, contract: Contract, error_ns: float = 0.0) -> Observed:
    """`observed` with the results of a contract. `error_ns`: how wrong a time between two frames may be, besides the
    step of the timestamps."""
    return _Judge(observed, contract, error_ns).judged()


class _Judge:
    def __init__(self, observed: Observed, contract: Contract, error_ns: float) -> None:
        self._observed, self._contract, self._error_ns = observed, contract, error_ns
        self._damaged = any(not trouble.ends_the_file for trouble in observed.troubles)
        matcher = Matcher(contract.streams)
        self._found: dict[int, list[Stream]] = {id(expected): [] for expected in contract.streams}
        self._others: list[Stream] = []
        for stream in observed.streams:
            expected = matcher.expected(stream)
            (self._others if expected is None else self._found[id(expected)]).append(stream)

    def judged(self) -> Observed:
        results = list(dict.fromkeys(self._results()))
        contract = self._contract
        others = [] if not self._others else [self._name(stream) for stream in self._others]
        if contract.refuses_others:
            frames = sum(stream.frames for stream in self._others if not stream.is_around)
            figure = Figure(frames, self._observed.frames)
            results.append(self._result("streams in no contract", _OTHERS, 0, figure, self._lacking_at_all()))
        return replace(
            self._observed,
            contract=ContractSource(contract.file, contract.sha256, len(contract.streams)),
            verdict=verdict_of(result.result for result in results),
            promises=results,
            unseen=[expected.name for expected in contract.streams if not self._found[id(expected)]],
            others=others,
            notes=list(contract.notes),
        )

    def _name(self, stream: Stream) -> str:
        return stream_name(stream, self._observed)

    def _results(self) -> Iterator[PromiseResult]:
        for expected in self._contract.streams:
            streams = self._found[id(expected)]
            for promise in PROMISES:
                bound = expected.bounds.get(promise.key)
                if bound is None:
                    continue
                for stream in streams:
                    figure = promise.figure(stream, self._observed, expected.bag_ps)
                    yield self._result(self._name(stream), promise, bound, figure, self._lacking(stream))
                if not streams:
                    none = Figure(None, 0, missing=_UNSEEN)
                    figure = promise.if_unseen(self._observed) if promise.if_unseen else none
                    yield self._result(expected.name, promise, bound, figure, self._lacking_at_all())
            yield from self._of_copies(expected, streams)

    def _of_copies(self, expected: Expected, streams: list[Stream]) -> Iterator[PromiseResult]:
        if expected.max_on_one is None and expected.skew_max_ps is None:
            return
        found = [copies for copies in self._observed.copies if expected.has_copies(copies)]
        for copies in found:
            lacking = self._lacking_of(copies, streams)
            if expected.max_on_one is not None:
                alone = Figure(sum(copies.alone), sum(copies.frames))
                yield self._result(copies.name, _ON_ONE, expected.max_on_one, alone, lacking)
            if expected.skew_max_ps is not None:
                skew = _skew(copies)
                yield self._result(copies.name, _SKEW, expected.skew_max_ps / PS_PER_NS, skew, lacking)
        if not found:
            yield from self._without_copies(expected, streams)

    def _without_copies(self, expected: Expected, streams: list[Stream]) -> Iterator[PromiseResult]:
        frames = sum(stream.frames for stream in streams)
        if not streams:
            none = Figure(None, 0, missing=_UNSEEN)
        elif self._sees_both():
            none = Figure(None, 0, missing="no frame of it was seen on both networks")
        else:
            none = Figure(None, 0, missing="one network was captured; capture both (dumpcap -i eth1 -i eth2)")
        if expected.max_on_one is not None:
            alone = Figure(frames, frames) if streams and self._sees_both() else none
            yield self._result(expected.name, _ON_ONE, expected.max_on_one, alone, self._lacking_at_all())
        if expected.skew_max_ps is not None:
            yield self._result(
                expected.name, _SKEW, expected.skew_max_ps / PS_PER_NS, none, self._lacking_at_all()
            )

    def _sees_both(self) -> bool:
        named = {stream.network for stream in self._observed.streams if not stream.is_around}
        return named >= _BOTH or bool(self._observed.copies)

    def _lacking_at_all(self) -> int | None:
        """Frames that the captures may lack; None: unknown."""
        dropped = [tap.dropped for tap in self._observed.taps]
        if self._damaged or self._observed.beyond or None in dropped:
            return None
        return sum(count or 0 for count in dropped)

    def _lacking(self, stream: Stream) -> int | None:
        """Frames of a stream that the capture may lack: no more than its numbers leave open."""
        dropped = None if self._damaged else self._observed.taps[stream.tap].dropped
        sequence = stream.sequence
        if sequence is None or sequence.is_shared or sequence.numbered < stream.frames or sequence.resets:
            return dropped
        return sequence.missing if dropped is None else min(dropped, sequence.missing)

    def _lacking_of(self, copies: Copies, streams: list[Stream]) -> int | None:
        """Frames that the capture may lack: those without a copy, and what the numbers leave open."""
        of_both = [self._lacking(stream) for stream in streams]
        at_all = self._lacking_at_all()
        if None in of_both:
            return at_all
        most = sum(copies.alone) + sum(count or 0 for count in of_both)
        return most if at_all is None else min(at_all, most)

    def _result(
        self, stream: str, promise: Promise, bound: float, figure: Figure, lacking: int | None
    ) -> PromiseResult:
        band = None
        if promise.unit == "ns" and figure.value is not None:
            step = max((tap.step_ps for tap in self._observed.taps), default=0) / PS_PER_NS
            error = step + self._error_ns + figure.clocks
            band = (max(figure.value - error, 0.0), figure.value + error)
        result, reason = _decided(promise, bound, figure, band, lacking)
        written = written_value(bound, promise.unit)
        return PromiseResult(
            stream,
            promise.measure,
            promise.bound,
            bound,
            written,
            promise.unit,
            figure.value,
            figure.n,
            band,
            lacking,
            result,
            reason,
        )


def _decided(
    promise: Promise, bound: float, figure: Figure, band: tuple[float, float] | None, lacking: int | None
) -> tuple[Literal["pass", "fail", "undecided"], str]:
    if figure.value is None:
        return "undecided", figure.missing
    low, high = band or (figure.value, figure.value)
    ends = (low > bound, high > bound) if promise.bound == "at-most" else (low < bound, high < bound)
    if ends[0] != ends[1]:
        return "undecided", (
            f"timestamps and clock leave {duration(low)} to {duration(high)} open; timestamps of the interface would "
            "decide it"
        )
    if figure.n == 0 and not ends[0]:
        return "undecided", _UNSEEN
    why = "" if lacking == 0 else _lacked(promise, bound, figure.value, is_beyond=ends[0], lacking=lacking)
    return "undecided" if why else "fail" if ends[0] else "pass", why


def _lacked(promise: Promise, bound: float, value: float, *, is_beyond: bool, lacking: int | None) -> str:
    """Why frames that the capture may lack leave a promise open; empty where they do not."""
    many, cure = "an unknown number of frames", "state how many with --dropped, or capture with dumpcap"
    if lacking is not None:
        many, cure = count_of(lacking, "frame"), "capture on a host that keeps up"
    if not is_beyond:
        feigned = promise.lack == "feigns"
        return "" if feigned else f"the capture may lack {many} of it, which could lie beyond; {cure}"
    counted = lacking is not None and promise.unit == "frames" and value - lacking > bound
    if promise.lack == "hides" or counted:
        return ""
    return f"the capture may lack {many} of it, which may be all that is wrong; {cure}"


def _skew(copies: Copies) -> Figure:
    if copies.skew_max_ps is None:
        return Figure(None, 0, missing="no frame of it was seen on both networks")
    return Figure(copies.skew_max_ps / PS_PER_NS, copies.pairs)


def written_value(value: float, unit: Unit) -> str:
    """A figure with its unit."""
    if unit == "ns":
        return duration(value, 6)
    return f"{value:.0f} B" if unit == "B" else count_of(round(value), "frame")


def _no_figure(_stream: Stream, _seen: Observed, _bag: float) -> Figure:
    return Figure(None, 0)


_ON_ONE: Final = Promise("max-on-one", "on_one_network", "at-most", "frames", "feigns", _no_figure)
_SKEW: Final = Promise("skew-max", "skew", "at-most", "ns", "hides", _no_figure)
_OTHERS: Final = Promise("others", "frames", "at-most", "frames", "hides", _no_figure)
