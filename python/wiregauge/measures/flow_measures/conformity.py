"""Frames of a flow outside the contracts of critical traffic: virtual link, two networks, schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wiregauge.measures.definitions import Definition
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pooling import pooled
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Conformity, conformity_of
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["CONFORMITY"]

Contracts = tuple[Conformity, ...]

_DEFINITIONS = (
    Definition(
        "bag_violations",
        "BAG violations",
        "frames k with max(expected, at[k]) + bytes[k] / Lmax * BAG - at[k] > BAG + allowed jitter; after each other "
        "frame expected = max(expected, at[k]) + bytes[k] / Lmax * BAG",
        "share",
        "ARINC 664 part 7, traffic policing (token bucket of rate 1/BAG and the virtual link's jitter)",
        "Counts all frames that the sender puts on the wire, messages or not (also those of a babbling end "
        "system), at the instant of the last bit. These are the frames that a byte-based policer at the end "
        "of the link refuses; a refused frame is not charged. With frame-based policing each frame is "
        "charged Lmax. The earliness of consecutive frames adds up; the worst value is the jitter that would "
        "have let the earliest frame pass. Networks are judged separately, and the one with more frames "
        "outside is given.",
        better="lower",
        needs="virtual link",
        of="frames on the wire",
        links="more",
        after="window_error",
    ),
    Definition(
        "skew_violations",
        "Maximum skew violations",
        "messages with |rx_wire_b - rx_wire| > skew max of the virtual link",
        "share",
        "ARINC 664 part 7, redundancy management (skew max)",
        better="lower",
        needs="two networks",
        of="messages of which both copies came",
        links="more",
    ),
    Definition(
        "window_violations",
        "Reception window violations",
        "frames with window_error outside -early to +late of the schedule",
        "share",
        "SAE AS6802, acceptance window of time-triggered frames, as wide as the schedule says",
        better="lower",
        needs="schedule",
        of="frames that were received",
        links="more",
    ),
)


class _Conformity(Served[Contracts]):
    """The contracts that the flow has, each with the frames outside."""

    name = "conformity"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Contracts:
        return conformity_of(reading.part, reading.flow, reading.frames)

    def of_all(self, sample: Contracts, reading: FlowReading, whole: Whole) -> Contracts:
        frames = reading.frames
        return tuple(
            frames if frames is not None and one.of == frames.of else one for one in whole.conformity
        )

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Contracts | None:
        each = [one for flow in flows if (one := flow[self]) is not None]
        return tuple(map(pooled, zip(*each, strict=True))) if each else None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        for one in flow[self] or ():
            outside, none = one.outside, "no frame was seen"
            bounds = (outside.low, outside.high)
            yield single(f"{one.of}_violations", "", outside.ratio, outside.n, bounds, none)


CONFORMITY = _Conformity()
