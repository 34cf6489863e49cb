"""The types of `wiregauge identify --json`; the schema is generated from them. Times in ps, rates in bit/s."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.files.typed_json import Count, json_schema
from wiregauge.identify.service import Arrivals, Latency
from wiregauge.identify.switches import Estimate, SwitchFit

__all__ = ["schema_path", "switch_json", "switch_schema"]


class EstimateShown(TypedDict):
    value: float
    low: Annotated[float, Meta(description="of the 95 % interval; of a delay the least seen")]
    high: Annotated[float, Meta(description="of the 95 % interval; of a delay the greatest seen")]
    n: Count


class LatencyShown(TypedDict):
    rate_bps: float
    latency_ps: float
    n: Count
    exceeded: Annotated[
        float | None,
        Meta(description="share of independent frames that may take longer, with 95 % confidence"),
    ]


class PortShown(TypedDict):
    port: str
    frames: Count
    rate: Annotated[EstimateShown | None, Meta(description="bit/s; null: too few frames waited")]
    planned_bps: int
    guaranteed_rate: LatencyShown
    packet_scale_rate: LatencyShown
    service_curve: Annotated[
        list[LatencyShown], Meta(description="least latency for each rate; the curve is the greatest of them")
    ]


class DelayShown(TypedDict):
    mode: Literal["store-and-forward", "cut-through"] | None
    per_bit: Annotated[
        EstimateShown | None,
        Meta(description="first bit in to first bit out, ps for each bit of the frame; null: one length"),
    ]
    delay: Annotated[EstimateShown, Meta(description="processing delay, ps")]


class BufferShown(TypedDict):
    policy: Annotated[
        Literal["buffer", "queue", "shared"], Meta(description="by port, by priority, by all ports together")
    ]
    unit: Literal["B", "frames"]
    least: int
    below: Annotated[int | None, Meta(description="null: from below only")]
    lost: Count
    also: list[str]


class ArrivalsShown(TypedDict):
    flow: int
    frames: Count
    rate_bps: float
    burst_bits: Annotated[
        float, Meta(description="least bucket of the rate; line bits, preamble and gap included")
    ]
    spans: Annotated[
        list[tuple[int, int, float]],
        Meta(description="frames in a row, least time between first and last in ps, most bits"),
    ]


class SwitchShown(TypedDict):
    schema: Literal[1]
    switch: str
    file: str | None
    attributes: dict[str, str]
    delay: DelayShown
    ports: list[PortShown]
    buffer: BufferShown
    arrivals: list[ArrivalsShown]
    untold: list[str]


def switch_json(fit: SwitchFit, attributes: dict[str, str], file: Path | None) -> SwitchShown:
    """The printed object."""
    buffer = fit.buffer
    return SwitchShown(
        schema=1,
        switch=fit.name,
        file=None if file is None else str(file),
        attributes=attributes,
        delay=DelayShown(
            mode=fit.delay.mode,
            per_bit=None if fit.delay.slope is None else _estimate(fit.delay.slope),
            delay=_estimate(fit.delay.delay),
        ),
        ports=[
            PortShown(
                port=port.port,
                frames=port.frames,
                rate=None if port.rate is None else _estimate(port.rate),
                planned_bps=port.planned_bps,
                guaranteed_rate=_latency(port.guaranteed),
                packet_scale_rate=_latency(port.scale),
                service_curve=[_latency(one) for one in port.curves],
            )
            for port in fit.ports
        ],
        buffer=BufferShown(
            policy=buffer.policy,
            unit=buffer.unit,
            least=buffer.least,
            below=buffer.below,
            lost=buffer.lost,
            also=list(buffer.also),
        ),
        arrivals=[_arrivals(flow, one) for flow, one in sorted(fit.arrivals.items())],
        untold=list(fit.untold),
    )


def _estimate(one: Estimate) -> EstimateShown:
    return EstimateShown(value=one.value, low=one.low, high=one.high, n=one.n)


def _latency(one: Latency) -> LatencyShown:
    return LatencyShown(rate_bps=one.rate_bps, latency_ps=one.latency_ps, n=one.n, exceeded=one.exceeded)


def _arrivals(flow: int, one: Arrivals) -> ArrivalsShown:
    return ArrivalsShown(
        flow=flow,
        frames=one.frames,
        rate_bps=one.rate_bps,
        burst_bits=one.burst_bits,
        spans=list(one.spans),
    )


def schema_path() -> Path:
    """The JSON Schema, shipped with the package."""
    return Path(__file__).with_name("switch.schema.json")


def switch_schema() -> dict[str, Any]:
    """The JSON Schema."""
    return json_schema(
        SwitchShown, "`wiregauge identify --json`", closed=True, **{"$id": "urn:wiregauge:switch-model:1"}
    )
