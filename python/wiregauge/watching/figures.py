"""What a watch sees, as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector

from wiregauge.files import printable
from wiregauge.streams import Stream
from wiregauge.watching.alarms import PromiseAlarms
from wiregauge.watching.watch import Second

__all__ = ["WatchFigures"]

_MOST_STREAMS: Final = 1000
"""Streams with samples of their own, the busiest; the others are counted. Each one is some series for ever."""
_LABELS: Final = ("stream", "kind", "interface")


class _Kept(Struct, frozen=True):
    second: Second
    raised: int
    broken: Sequence[tuple[str, str, str]]


class WatchFigures(Collector):
    """The figures of the last second, and of all before."""

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._interfaces = list(interfaces)
        self._kept: _Kept | None = None

    def show(self, second: Second, alarms: PromiseAlarms) -> None:
        """Sets the second that is served from now on."""
        self._kept = _Kept(second, alarms.raised, alarms.broken())

    def describe(self) -> list[Metric]:
        """Returns no metrics, so that registration collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of one moment."""
        info = InfoMetricFamily("wiregauge_watch", "What is watched.")
        info.add_metric([], {"interfaces": " ".join(map(printable, self._interfaces))})
        yield info
        if self._kept is None:
            return
        yield from self._of_all(self._kept)
        yield from self._of_streams(self._kept.second)

    def _of_all(self, kept: _Kept) -> Iterator[Metric]:
        seen = kept.second.so_far
        for name, text, value in (
            ("frames", "Frames that were seen.", seen.frames),
            ("dropped_frames", "Frames that the kernel dropped, in no figure.", _dropped(kept.second)),
            ("alarms", "How often a promise of the contract broke.", kept.raised),
        ):
            counter = CounterMetricFamily(f"wiregauge_watch_{name}", text)
            counter.add_metric([], value)
            yield counter
        for name, text, number in (
            ("seconds", "Time that was watched.", seen.duration_ps / 1e12),
            ("streams", "Streams that were found.", len(seen.streams)),
            (
                "streams_left_out",
                "Streams without samples of their own.",
                max(len(seen.streams) - _MOST_STREAMS, 0),
            ),
        ):
            gauge = GaugeMetricFamily(f"wiregauge_watch_{name}", text)
            gauge.add_metric([], number)
            yield gauge
        validity = StateSetMetricFamily("wiregauge_watch_validity", "How far figures can be relied on.")
        validity.add_metric([], {grade: seen.validity == grade for grade in ("VALID", "DEGRADED")})
        yield validity
        broken = GaugeMetricFamily(
            "wiregauge_watch_broken_promise",
            "1: the last second breaks it, or no second since has kept it.",
            labels=["stream", "measure", "bound"],
        )
        for stream, measure, bound in kept.broken:
            broken.add_metric([printable(stream), measure, bound], 1)
        yield broken

    def _of_streams(self, second: Second) -> Iterator[Metric]:
        shown = sorted(
            zip(second.so_far.streams, second.last.streams, strict=True), key=lambda pair: -pair[0].frames
        )[:_MOST_STREAMS]
        frames = CounterMetricFamily("wiregauge_watch_stream_frames", "Frames of a stream.", labels=_LABELS)
        octets = CounterMetricFamily(
            "wiregauge_watch_stream_bytes", "Their octets.", labels=_LABELS, unit="bytes"
        )
        # A gauge: a number that comes late is missing no longer.
        missing = GaugeMetricFamily(
            "wiregauge_watch_stream_missing", "Sequence numbers that have not come.", labels=_LABELS
        )
        interval = GaugeMetricFamily(
            "wiregauge_watch_stream_interval_seconds",
            "Between two frames, in the last second.",
            labels=[*_LABELS, "extreme"],
            unit="seconds",
        )
        for all_so_far, last in shown:
            labels = self._labels(all_so_far)
            frames.add_metric(labels, all_so_far.frames)
            octets.add_metric(labels, all_so_far.octets)
            if all_so_far.sequence is not None:
                missing.add_metric(labels, all_so_far.sequence.missing)
            for extreme, took_ps in (("least", last.period.min), ("greatest", last.period.max)):
                if took_ps is not None:
                    interval.add_metric([*labels, extreme], took_ps / 1e12)
        yield from (frames, octets, missing, interval)

    def _labels(self, stream: Stream) -> list[str]:
        return [printable(stream.name), stream.kind, printable(self._interfaces[stream.tap])]


def _dropped(second: Second) -> int:
    return sum(tap.dropped or 0 for tap in second.so_far.taps)
