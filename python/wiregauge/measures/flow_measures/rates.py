"""Rates of a flow: what its sender was to offer and offered, and the payload that arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import ARRIVED, SENT
from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading, Served
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.batching import Pending, with_mean
from wiregauge.measures.metrics.columns import ascending
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pooling import known
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Rate, Rates, pool_rates
from wiregauge.measures.metrics.silences import open_silences
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.tally import Tally
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.stats import MeanEstimate

__all__ = ["GOODPUT", "RATES"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


_DEFINITIONS = (
    Definition(
        "intended_load",
        "Intended load",
        "(last sequence - first sequence) / (last intended - first intended)",
        "1/s",
        "RFC 2285, 3.5.1; on the wire times 8 * (length + 20 B), preamble and gap included",
        "Frames per second that the plan requires of the sender.",
        of=SENT,
        least=2,
        after="goodput",
    ),
    Definition(
        "offered_load",
        "Offered load",
        "(sent - 1) / (last tx_app - first tx_app)",
        "1/s",
        "RFC 2285, 3.5.2",
        "Frames per second that the sender handed over; its interval is that of the mean transmit period. "
        "Background load is stated per injecting end system, as shares of its link.",
        better="higher",
        of=SENT,
        least=2,
    ),
)

_GOODPUT = Definition(
    "goodput",
    "Goodput",
    "8 * payload * (arrivals - 1) / (last arrival - first arrival + open silences)",
    "bit/s",
    "Payload bits delivered over the time they took (RFC 2647, 3.7)",
    "At the destination application, from the first due send to the last. An open silence is the time by "
    "the sender's schedule from the first due message to the first that arrived, or from the last that "
    "arrived to the last due message. 0 if several were sent and fewer than two arrived.",
    better="higher",
    rests_on="latency",
    of=ARRIVED,
    least=2,
    links="less",
    after="credit",
)


class _Rates(Served[Rates]):
    """Intended and offered load."""

    name = "rates"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Pending[Rates | None] | None:
        part, of = reading.part, _both(reading.part)
        if (part.height if of is None else int(np.count_nonzero(of))) < 2:
            return None
        between = _distances(part, "tx_app", of)

        def made(mean: MeanEstimate | None) -> Rates | None:
            offered = _rate(between, 1.0, mean, len(between))
            return _rates(part, of, offered, reading.flow.link_bps) if offered is not None else None

        return with_mean(between, made, step=1.0)

    def of_all(self, sample: Rates, reading: FlowReading, whole: Whole) -> Rates:
        counted = whole.tally
        numbers = counted.count("number last") - counted.count("number first")
        planned = counted.count("intended last") - counted.count("intended first")
        length = counted.figures.get("length")
        return replace(
            sample,
            intended_per_s=numbers / planned * 1e12 if planned > 0 else sample.intended_per_s,
            offered_per_s=_rate_of_all(sample.offered_per_s, counted, "offered", 1.0) or sample.offered_per_s,
            bits_per_frame=8 * (length + AROUND_FRAME) if length is not None else None,
        )

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        rates, sent = flow[self], flow.counts["sent"]
        if rates is not None:
            offered = rates.offered_per_s
            yield single("intended_load", "", rates.intended_per_s, sent)
            yield single("offered_load", "", offered.value, sent, (offered.low, offered.high))


class _Goodput(FlowMeasure[Rate | None]):
    """The goodput; None where the payload is not known, or an end of the flow has no tap."""

    name = "goodput"
    none = None
    definitions = (_GOODPUT,)

    def computed(self, reading: FlowReading) -> Rate | Pending[Rate | None] | None:
        part, flow, gone = reading.part, reading.flow, reading.gone | reading.unknown
        if reading.blind or flow.payload is None:
            return None
        each, between = 8.0 * flow.payload, _distances(part, reading.final, ~gone if gone.any() else None)
        arrivals = len(between)
        if not arrivals and part.height > 1 and not part.sampled:
            return Rate(0.0, None, None)
        silent = [time for time in open_silences(part, ~reading.gone, flow) if time and not part.sampled]
        if silent:
            between = np.concatenate([between, np.array(silent, dtype=np.int64)])
        return with_mean(between, lambda mean: _rate(between, each, mean, arrivals), step=1.0)

    def of_all_messages(
        self, sample: Rate | None, flow: FlowResult, reading: FlowReading, whole: Whole
    ) -> Rate | None:
        payload, counted = flow.plan.payload, whole.tally
        if payload is None or reading.blind:
            return None
        if counted.count("arrivals") < 2:
            return Rate(0.0, None, None) if counted.count("sent") > 1 else None
        silent = sum(counted.silences("arrivals", flow.plan))
        return _rate_of_all(sample, counted, "arrivals", 8.0 * payload, silent)

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Rate | None:
        each: list[Rate] = known([flow[self] for flow in flows])
        return pool_rates(each) if each else None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        found, few = flow[self], "were sent" if flow.counts["sent"] < 2 else "arrived"
        yield single(
            self.name,
            "",
            found.value if found is not None else None,
            flow.counts["delivered"],
            (found.low, found.high) if found is not None else None,
            f"fewer than two messages {few}",
        )


RATES, GOODPUT = _Rates(), _Goodput()


def _both(part: Part) -> Flags | None:
    """Messages whose intended and real sending are known; None where all are."""
    known = [one for one in (part.column("intended").known, part.column("tx_app").known) if one is not None]
    return np.logical_and.reduce(known) if known else None


def _distances(part: Part, name: str, of: Flags | None) -> Integers:
    """Times between successive events, ps, in their order."""
    column, stretch = part.column(name), part.stretch()
    if column.known is not None:
        of = column.known if of is None else of & column.known
    times = column.values if of is None else column.values[of]
    if stretch is None:
        ordered = ascending(times)
        return ordered[1:] - ordered[:-1]
    order = np.argsort(times, kind="stable")
    inside = ~sampling.seams((stretch if of is None else stretch[of])[order])
    return np.diff(times[order])[inside]


def _rates(part: Part, of: Flags | None, offered: Rate, link_bps: int | None) -> Rates | None:
    def own(name: str) -> Integers:
        values = part.column(name).values
        return values if of is None else values[of]

    planned, numbers = (int(np.ptp(own(name))) for name in ("intended", "sequence"))
    if planned <= 0:
        return None
    lengths = own("length")
    lengths = lengths[lengths > 0]
    bits = 8 * (float(lengths.mean()) + AROUND_FRAME) if len(lengths) else None
    return Rates(numbers / planned * 1e12, offered, bits, link_bps)


def _rate(distances: Integers, each: float, mean: MeanEstimate | None, count: int) -> Rate | None:
    """`each` per mean distance of the times (ps) in order, per second; None below two or where no time passed.

    `count` is how many of the distances end with an event.
    """
    passed = int(distances.sum())
    if mean is None or not passed:
        return None
    value, half = each * 1e12 * count / passed, mean.half_width
    if half is None:
        return Rate(value, None, None)
    high = value * mean.mean / (mean.mean - half) if half < mean.mean else None
    return Rate(value, value * mean.mean / (mean.mean + half), high)


def _rate_of_all(sample: Rate | None, counted: Tally, of: str, each: float, silent: int = 0) -> Rate | None:
    """The rate of all events; its interval is as wide, relative to it, as that of the sample: it is not wider.

    `silent` is for how long, ps, none came though they were due, before the first and after the last.
    """
    count, first, last = counted.count(of), counted.time(f"{of} first"), counted.time(f"{of} last")
    if count < 2 or first is None or last is None or last <= first:
        return sample
    value = each * 1e12 * (count - 1) / (last - first + silent)
    if sample is None or not sample.value:
        return Rate(value, None, None)
    scale = value / sample.value
    return Rate(value, *(end * scale if end is not None else None for end in (sample.low, sample.high)))
