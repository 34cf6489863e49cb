"""The run of another program's measurement: its messages as records of the ends of their flows."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from wiregauge import _native
from wiregauge.config import Loaded
from wiregauge.config.builder import Test
from wiregauge.files import open_regular
from wiregauge.foreign.exchanges import Exchange, ForeignError, Measurement, Series
from wiregauge.foreign.reading import measured
from wiregauge.plan import Campaign
from wiregauge.plan.ethernet import HEADERS, IPV4_UDP, SHORTEST
from wiregauge.records import RunDirectory, Traits, process_run
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import new_entry
from wiregauge.records.reported import AgentReport, TimestampKind
from wiregauge.runner import Bench, Fact, Observer

__all__ = ["ForeignBench", "opened"]

_SENDER: Final = "sender"
_BETWEEN: Final = "path"
"""The node for all that is between the ends."""
_FLOWS: Final = 60_000
"""Numbers that flows are given: of their names, so that the same series of two files are the same flow."""
_FIRST: Final = 1000
_NAME: Final = 9
"""Letters of a series' name in that of its far end, whose names the test language keeps short."""
_LEAST_PAYLOAD: Final = 18
"""The payload of a UDP datagram in the shortest frame, B."""


def opened(path: Path, agree_ns: float | None = None) -> tuple[ForeignBench, Loaded]:
    """Reads a measurement; returns the bench with its one run, and the test that stands for it.

    `agree_ns` is the greatest difference of the clocks of both ends; None: unknown. Raises ForeignError.
    """
    measurement = measured(path)
    sources = sorted(path.iterdir()) if path.is_dir() else [path]
    digests = {}
    for source in sources:
        with open_regular(source) as file:
            digests[str(source)] = hashlib.file_digest(file, "sha256").hexdigest()
    flows = _numbered(measurement.series)
    agree_ns = measurement.agree_ns if agree_ns is None else agree_ns
    return ForeignBench(measurement, flows, digests, agree_ns), _test(path, flows).compile()


class ForeignBench(Bench):
    """The bench of a measurement that another program made: its one run is over before it begins."""

    name = "foreign"
    traits = Traits(tapped=True)

    def __init__(
        self,
        measurement: Measurement,
        flows: dict[int, Series],
        sources: dict[str, str],
        agree_ns: float | None,
    ) -> None:
        self._measurement = measurement
        self._flows = flows
        self._sources = sources
        self._agree_ns = agree_ns

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The program, its series, and what its file lacks."""
        del campaign
        said = self._measurement
        return [
            Fact(
                "program",
                said.program,
                "its figures are judged as it stored them; its own errors are not known",
            ),
            *(Fact(f"flow {flow}", series.name) for flow, series in self._flows.items()),
            *(Fact(name, text) for name, text in said.remarks),
        ]

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """Writes the records of the measurement into the run directory."""
        directory.manifest["sources"] = dict(self._sources)
        names = directory.plan.network.names
        epoch = min(
            time for series in self._flows.values() for one in series.exchanges for time in _times(one)
        )
        observations = [
            row
            for flow, series in self._flows.items()
            for row in _observations(flow, names.index(_far_end(series, flow)), series, epoch)
        ]
        observations.sort()
        try:
            written = _native.spool_observations(directory.spool(0), epoch, observations)
        except _native.NativeError as error:
            raise ForeignError(str(error)) from error
        ends = [name for name in names if name != _BETWEEN]
        half = (self._agree_ns or 0.0) / 2
        compared = ends if self._agree_ns is not None else ()
        entry = new_entry(0, compared, method="stated", uncertainty_ns=half)
        step = max(series.step_ns for series in self._flows.values())
        for place, node in enumerate(ends):
            entry.agents[node] = AgentReport(
                node,
                complete=True,
                incomplete_reason="",
                tasks=(),
                records_written=0 if place else written,
                records_dropped=0,
                grants=(),
            )
        # What reached an end without times of its own is known by its answers.
        entry.all_taps = tuple({"node": node, "step_ns": step} for node in ends)
        entry.timestamps = dict.fromkeys(ends, TimestampKind("program", step, "the program"))
        entry.state, entry.epoch_realtime_ns, entry.finished = "complete", epoch, utc_now()
        directory.enter(entry)
        process_run(directory, 0, self._sources)
        observer.run_ended(0, entry)


def _numbered(series: Sequence[Series]) -> dict[int, Series]:
    """Series by the numbers of their flows."""
    flows: dict[int, Series] = {}
    for one in series:
        number = _FIRST + zlib.crc32(one.name.encode()) % _FLOWS
        while number in flows:
            number = _FIRST + (number + 1 - _FIRST) % _FLOWS
        flows[number] = one
    return flows


def _far_end(series: Series, flow: int) -> str:
    """A node's name for the far end of a series."""
    plain = re.sub(r"[^a-z0-9]+", "-", series.name.lower()).strip("-0123456789")
    return f"{plain[:_NAME].strip('-') or 'far-end'}-{flow}"


def _test(path: Path, flows: dict[int, Series]) -> Test:
    """The test that would have sent these messages, over links whose rate no figure uses."""
    test = Test(re.sub(r"[^\w.-]+", "-", path.name) or "measurement").end_system(_SENDER).switch(_BETWEEN)
    for name in (_SENDER, *(_far_end(series, flow) for flow, series in flows.items())):
        if name != _SENDER:
            test.end_system(name)
        test.link(name, _BETWEEN, rate="1Gbit/s")
    for flow, series in flows.items():
        sent = sorted(one.sent for one in series.exchanges if one.sent is not None)
        count = 1 + max(one.sequence for one in series.exchanges)
        period = max((sent[-1] - sent[0]) // max(len(sent) - 1, 1), 1)
        test.flow(flow, protocol="udp", from_=_SENDER, to=_far_end(series, flow))
        test.send(flow, period=f"{period}ns", payload=f"{max(series.payload, _LEAST_PAYLOAD)}B", count=count)
        test.relay(flow, on=_far_end(series, flow))
    return test


def _observations(
    flow: int, far: int, series: Series, epoch: int
) -> Iterator[tuple[int, int, int, int, int, bool]]:
    """The records of a series, ps after the epoch; of a message that came twice it was sent once."""
    length = max(HEADERS + IPV4_UDP + series.payload, SHORTEST)
    seen: set[int] = set()
    for one in series.exchanges:
        points = [(one.received, 0, True)]
        if one.sequence not in seen:
            seen.add(one.sequence)
            points += [(one.sent, 0, False), (one.reached, far, False), (one.answered, far, True)]
        for time, node, is_returning in points:
            if time is not None:
                yield (time - epoch) * 1000, flow, one.sequence, node, length, is_returning


def _times(one: Exchange) -> Iterator[int]:
    return (time for time in (one.sent, one.reached, one.answered, one.received) if time is not None)
