"""Calibrations of the instrument in a run: which it cites, and which part of a latency is the instrument's own.

Everything is read from the manifest, where the testmaster put it before the run: a run directory is judged the same
everywhere and later. The raw figures stay as they are. Corrected figures are given besides: raw minus a constant
overhead, with the uncertainties of both (RFC 7679, 3.7.3: subtract the systematic error, report the random one).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Annotated

from msgspec import Meta, Struct

from wiregauge.files.typed_json import HIDDEN, Count, Figure, Key, Positive
from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.judgement import FlowResult

__all__ = ["Citation", "Constant", "Corrected", "citations", "corrections", "run_load"]

RESOLVED = 3.0
"""Multiple of the calibration error below which a latency shows the instrument more than the network."""


class Constant(Struct, frozen=True):
    """A constant overhead of the instrument, for one measure, protocol, payload and load.

    `error_ns`: the error of a single value at 95 %; None where unknown.
    """

    calibration: str
    measure: Annotated[str, HIDDEN]
    protocol: Annotated[str, HIDDEN]
    payload: Annotated[int, HIDDEN]
    load_percent: Annotated[int, HIDDEN]
    overhead_ns: float
    uncertainty_ns: Annotated[Positive, Key("overhead_uncertainty_ns")]
    error_ns: Figure


class Citation(Struct, frozen=True):
    """A calibration that was at hand when the run began: used, or not and why."""

    number: Annotated[str, Key("id")]
    kind: Annotated[str, Key("calibration")]
    made: str
    used: bool
    reason: Annotated[str, Key(nullable=True)]
    headline: str
    constants: Annotated[tuple[Constant, ...], HIDDEN]


class Corrected(Struct, frozen=True):
    """A measure of a flow less the instrument's constant part. Times in ns; None as in the raw summary.

    `uncertainty` is that of the mean: raw and of the constant, which are bounds and add. `unresolved`: the median is
    below `RESOLVED` times the error of a single value.
    """

    measure: Annotated[str, Meta(extra_json_schema={"enum": ["latency", "driver_latency"]})]
    constant: Annotated[Constant, Key(flat=True)]
    unresolved: bool
    n: Count
    minimum: Annotated[Figure, Key("min")]
    mean: Figure
    p50: Figure
    p99: Figure
    maximum: Annotated[Figure, Key("max")]
    uncertainty: Figure


def citations(manifest: Mapping[str, object]) -> tuple[Citation, ...] | None:
    """The calibrations cited in the manifest; None where it predates citations, or in virtual time.

    An entry that cannot be understood is left out: it corrects nothing.
    """
    raw = manifest.get("calibrations")
    if not isinstance(raw, list):
        return None
    return tuple(
        found for entry in raw if isinstance(entry, dict) and (found := _citation(entry)) is not None
    )


def _citation(entry: Mapping[str, object]) -> Citation | None:
    number, kind, used = entry.get("id"), entry.get("calibration"), entry.get("used")
    if not isinstance(number, str) or not isinstance(kind, str) or not isinstance(used, bool):
        return None
    raw = entry.get("corrections")
    constants = [
        found
        for one in (raw if used and isinstance(raw, list) else [])
        if isinstance(one, dict) and (found := _constant(number, one)) is not None
    ]
    return Citation(
        number,
        kind,
        str(entry.get("made") or ""),
        used,
        str(entry.get("reason") or ""),
        str(entry.get("headline") or ""),
        tuple(constants),
    )


def _constant(number: str, entry: Mapping[str, object]) -> Constant | None:
    measure, protocol = entry.get("measure"), entry.get("protocol")
    payload, load = entry.get("payload_bytes"), entry.get("load_percent")
    overhead, uncertainty = _figure(entry.get("overhead_ns")), _figure(entry.get("uncertainty_ns"))
    if not isinstance(measure, str) or not isinstance(protocol, str):
        return None
    if not isinstance(payload, int) or not isinstance(load, int) or overhead is None or uncertainty is None:
        return None
    error = _figure(entry.get("error_ns"))
    return Constant(number, measure, protocol, payload, load, overhead, abs(uncertainty), error)


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def run_load(plan: RunPlan) -> int:
    """Greatest background load of a run, whole per cent."""
    return round(max((inject.load_ppm for inject in plan.injects), default=0) / 10_000)


def corrections(flow: FlowResult, load_percent: int, cited: Sequence[Citation]) -> Iterator[Corrected]:
    """The measures of a flow for which a constant of its protocol, payload and load is known.

    A load between two that were calibrated takes the constant of the next higher one.
    """
    for measure in ("latency", "driver_latency"):
        summary = flow.summaries.get(measure)
        constant = _fitting(flow, measure, load_percent, cited)
        if summary is None or constant is None or summary.n == 0:
            continue
        p50 = summary.value("p50")
        typical = _less(p50 if p50 is not None else summary.mean, constant)
        error = constant.error_ns
        half = summary.uncertainty.total if summary.uncertainty is not None else None
        yield Corrected(
            measure,
            constant,
            error is not None and typical is not None and typical < RESOLVED * error,
            summary.n,
            _less(summary.minimum, constant),
            _less(summary.mean, constant),
            _less(p50, constant),
            _less(summary.value("p99"), constant),
            _less(summary.maximum, constant),
            half + constant.uncertainty_ns if half is not None else None,
        )


def _less(value: float | None, constant: Constant) -> float | None:
    return value - constant.overhead_ns if value is not None else None


def _fitting(flow: FlowResult, measure: str, load_percent: int, cited: Sequence[Citation]) -> Constant | None:
    fitting = [
        constant
        for citation in cited
        for constant in citation.constants
        if (constant.measure, constant.protocol, constant.payload)
        == (measure, flow.plan.protocol, flow.plan.payload)
        and constant.load_percent >= load_percent
    ]
    return min(fitting, key=lambda constant: constant.load_percent, default=None)
