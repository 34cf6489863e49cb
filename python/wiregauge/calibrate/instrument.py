"""Tests of the instrument by runs of its own: loop, generator, pacing, simulated cables, linearity.

Functions here make the tests and evaluate their messages; the caller runs the tests in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.calibrate.cable import Point
from wiregauge.calibrate.errors import CalibrationError
from wiregauge.calibrate.runs import Outcome, Run
from wiregauge.calibrate.summaries import describe, error_of, histogram, time_series
from wiregauge.config import Test
from wiregauge.config.parts import Clock, Host
from wiregauge.plan.ethernet import AROUND_FRAME, IPV4_UDP, SHORTEST
from wiregauge.plan.ethernet import HEADERS as ETHERNET

Floats = NDArray[np.float64]

HEADERS: Final = {"raw": ETHERNET, "udp": ETHERNET + IPV4_UDP}
"""Bytes of a frame around its payload, FCS included."""
LATENCIES: Final = (("latency", "rx_app", "tx_app"), ("driver_latency", "rx_drv", "tx_drv"))
FEWEST: Final = 100
GRADES: Final = ("VALID", "DEGRADED", "INVALID")


def _pair(name: str, protocol: str, *, host: str | None = None, seed: int = 1, rate: str = "1Gbit/s") -> Test:
    """A test of two end systems back to back, with a flow from one to the other."""
    test = Test(name, seed=seed, host=host).end_system("a").end_system("b").link("a", "b", rate=rate)
    return test.flow(10, protocol=protocol, from_="a", to="b")


def _time(ps: int) -> str:
    """A time in the test language, exact to the picosecond."""
    return f"{ps // 1000}.{ps % 1000:03d}ns"


# -- loop ---------------------------------------------------------------------------------------------------------


def loop_test(
    *,
    protocol: str,
    payloads: Sequence[int],
    loads: Sequence[int],
    period: str,
    count: int,
    repeats: int,
    rate: str,
    seed: int,
) -> Test:
    """A test back to back, idle and under load, repeated. The load goes in the other direction: it keeps the instrument
    busy, but measured frames never queue behind it.
    """
    test = _pair("loop", protocol, seed=seed, rate=rate).timing(warm_up="200ms", drain="100ms")
    test.send(10, period=period, payload=f"{payloads[0]}B", count=count).receive(10)
    if any(loads):
        test.inject(on="b", to="a", load=f"{max(loads)}%")
    if len(payloads) > 1:
        test.axis("payload", [f"{payload}B" for payload in payloads])
    if any(loads):
        test.axis("load", [f"{load}%" for load in loads])
    return test.repeat(repeats)


def loop_results(runs: Sequence[Run], protocol: str) -> dict[str, Any]:
    """Errors for each payload and load, over its repeats."""
    groups: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.plan.sends[0].payload, run.plan.most_load_percent), []).append(run)
    points = []
    for (payload, load), members in sorted(groups.items()):
        for measure, end, start in LATENCIES:
            repeats = [found for run in members if len(found := run.differences(end, start)) >= FEWEST]
            if not repeats:
                continue
            points.append(
                {
                    "protocol": protocol,
                    "payload_bytes": payload,
                    "load_percent": load,
                    "measure": measure,
                    "sent": sum(run.messages.height for run in members),
                    "lost": sum(run.lost for run in members),
                    "grade": max((run.grade for run in members), key=GRADES.index),
                    "reasons": sorted({reason for run in members for reason in run.reasons}),
                    **error_of(repeats, max(run.timestamp_ns for run in members)),
                }
            )
    if not points:
        raise CalibrationError(f"fewer than {FEWEST} messages of any repeat arrived; send more with --count")
    return {"points": points}


# -- generator ----------------------------------------------------------------------------------------------------


class GeneratorCase(Struct, frozen=True):
    """A generation test: frames of `frame_bytes` (with FCS), `gap_ps` apart from start to start."""

    name: str
    frame_bytes: int
    gap_ps: int


def generator_cases(frame_bytes: int, gap_ns: int, rate_bps: int) -> list[GeneratorCase]:
    """Line rate, and the given gap: the two scenarios of the high-precision test bed (section III-C)."""
    bits = (frame_bytes + AROUND_FRAME) * 8
    line_ps = -(-bits * 10**12 // rate_bps)
    cases = [
        GeneratorCase("line rate", frame_bytes, line_ps),
        GeneratorCase("gap", frame_bytes, gap_ns * 1000),
    ]
    if gap_ns * 1000 == line_ps:
        return cases[:1]
    if gap_ns * 1000 < line_ps:
        raise CalibrationError(
            f"a gap of {gap_ns} ns is shorter than the {line_ps / 1000:g} ns that {frame_bytes} B take on the line"
        )
    return cases


def generator_test(
    cases: Sequence[GeneratorCase],
    *,
    protocol: str,
    count: int,
    rate: str,
    seed: int,
    host: str | None,
    mode: str | None = None,
    backend: str | None = None,
) -> Test:
    """Sends the frames of cases of one length, one run each; arrivals are counted, the sender's timestamps are judged.
    `mode` says what is kept when a frame is late, `backend` how frames leave; None for the defaults.
    """
    length = cases[0].frame_bytes
    if length < SHORTEST or length - HEADERS[protocol] < 12:
        raise CalibrationError(
            f"{length} B is too short for a {protocol} frame with a probe header: at least "
            f"{max(SHORTEST, HEADERS[protocol] + 12)} B, FCS included"
        )
    test = _pair("generator", protocol, host=host, seed=seed, rate=rate).timing(warm_up="20ms", drain="200ms")
    test.send(
        10, period=_time(cases[0].gap_ps), frame=f"{length}B", count=count, pacing=mode, backend=backend
    ).receive(10)
    return test.axis("period", [_time(case.gap_ps) for case in cases])


def generator_results(case: GeneratorCase, run: Run, protocol: str, rate_bps: int) -> dict[str, Any]:
    """Deviation of the gaps between frames from the intended ones, by each timestamp of the sender."""
    ideal = case.gap_ps / 1e3
    on_line = (case.frame_bytes + AROUND_FRAME) * 8e9 / rate_bps
    timestamps = {}
    for name, column in (("application-send", "tx_app"), ("driver-send", "tx_drv"), ("wire-send", "tx_wire")):
        times = run.times(column)
        if len(times) >= FEWEST:
            timestamps[name] = _gaps(times, ideal, on_line, case.frame_bytes)
    if not timestamps:
        raise CalibrationError(f"fewer than {FEWEST} frames were timestamped; send more with --count")
    return {
        "case": case.name,
        "protocol": protocol,
        "pacing": run.stream.pacing if run.stream is not None else None,
        "backend": run.stream.backend if run.stream is not None else None,
        "frame_bytes": case.frame_bytes,
        "gap_ns": ideal,
        "intended_bps": case.frame_bytes * 8e9 / ideal,
        "line_bps": rate_bps,
        "sent": run.messages.height,
        "lost": run.lost,
        "grade": run.grade,
        "reasons": list(run.reasons),
        "timestamps": timestamps,
    }


def _gaps(times: Floats, ideal: float, on_line: float, frame_bytes: int) -> dict[str, Any]:
    """Statistics of the gaps between successive frames.

    Mean bandwidth = bits of a frame * (n - 1) / (last - first), as in the high-precision test bed: frames with FCS,
    without preamble and gap. Burst: a frame that follows within 1.5 times its own time on the line unintentionally.
    """
    gaps = np.diff(times)
    off = gaps - ideal
    away = np.abs(off)
    ascending = np.sort(away)
    length = float(times[-1] - times[0])
    due: Floats = ideal * np.arange(len(times), dtype=np.float64)
    drift = stats.line_fit(due, times - times[0] - due, in_order=True).slope
    asked_for = ideal <= 1.5 * on_line
    return {
        "n": len(gaps),
        "mean_bps": frame_bytes * 8e9 * len(gaps) / length if length > 0 else None,
        "max_deviation_ns": float(ascending[-1]),
        "p50_deviation_ns": stats.quantile(ascending, 0.5),
        "p99_deviation_ns": stats.quantile(ascending, 0.99) if stats.supported(len(gaps), 0.99) else None,
        "within": [
            {"ns": width, **_share(int(np.count_nonzero(away <= width)), away <= width)}
            for width in (1_000, 5_000, 50_000)
        ],
        "burst": None
        if asked_for
        else _share(int(np.count_nonzero(gaps < 1.5 * on_line)), gaps < 1.5 * on_line),
        "drift_ppm": drift.value * 1e6,
        "drift_half_width_ppm": None if drift.half_width is None else drift.half_width * 1e6,
        "first_ns": (times[:100] - times[0]).tolist(),
        "histogram": _spread(off),
    }


def _share(count: int, flags: NDArray[np.bool_]) -> dict[str, Any]:
    bound = stats.share_bound(count, len(flags), worth=stats.flags_worth(flags))
    return {"count": count, "share": count / len(flags), "low": bound.low, "high": bound.high}


def _spread(off: Floats) -> dict[str, Any]:
    """A histogram between p0.5 and p99.5, to show the middle."""
    ascending = np.sort(off)
    low = stats.quantile(ascending, 0.005)
    return histogram(off, ascending[ascending >= low])


# -- pacing -------------------------------------------------------------------------------------------------------


def pacing_test(*, protocol: str, period: str, count: int, rate: str, seed: int) -> Test:
    """A test of the sender's usual schedule."""
    test = _pair("pacing", protocol, seed=seed, rate=rate).timing(warm_up="200ms", drain="50ms")
    return test.send(10, period=period, payload="64B", count=count).receive(10)


def pacing_results(ours: Floats, timer: Floats, period_ns: float) -> dict[str, Any]:
    """Lateness against the ideal tick of our sender and of a plain timer loop, ns; `ratio` of their p99."""
    found: dict[str, Any] = {"period_ns": period_ns}
    for name, values in (("wiregauge", ours), ("timer_loop", timer)):
        found[name] = None
        if len(values):
            found[name] = {
                **describe(values),
                "max_deviation_ns": float(np.abs(values).max()),
                "series": time_series(period_ns * np.arange(len(values), dtype=np.float64), values),
                "tail": _tail(values),
            }
    both = [found[name]["p99_ns"] if found[name] else None for name in ("wiregauge", "timer_loop")]
    found["p99_ratio"] = both[0] / both[1] if both[0] is not None and both[1] else None
    return found


def _tail(values: Floats) -> dict[str, Any]:
    shape = stats.tail(np.sort(values), 120)
    return {"one_in": shape.one_in.tolist(), "value_ns": shape.value.tolist()}


# -- in the simulator, with known true delays ----------------------------------------------------------------------

COARSEST_NS: Final = 100.0
"""Sends are spread over ten steps of this size, so that a mean resolves less; a coarser clock would need more."""
_ON_WIRE_64: Final = 576.0
"""Time of a frame of 64 B with preamble and start delimiter at 1 Gbit/s, ns."""


def cable_test(
    length_m: float,
    *,
    per_metre_ns: float,
    overhead_ns: float,
    granularity: str,
    count: int,
    repeats: int,
    seed: int,
) -> Test:
    """A cable between two ports of one adapter, in the simulator: both timestamps from clocks of the same coarse step,
    frames at instants unrelated to that step. Raises CalibrationError for an overhead below the frame's time.
    """
    rest = overhead_ns - _ON_WIRE_64
    if rest < 0:
        raise CalibrationError(
            f"an overhead of {overhead_ns:g} ns is less than the {_ON_WIRE_64:g} ns a frame of 64 B takes; give more"
        )
    # Without spread every frame would leave at a step of the clock, and the mean could not resolve less.
    scatter = Host(interface_delay=_time(round(rest * 1000)), send_wake_up="0%:0ns 100%:1us")
    clock = Clock(granularity=granularity)
    test = Test(f"cable-{length_m:g}m", seed=seed, host="ideal")
    test.end_system("a", scatter, clock=clock).end_system("b", clock=clock)
    test.link("a", "b", rate="1Gbit/s", delay=_time(round(length_m * per_metre_ns * 1000)))
    test.flow(10, protocol="raw", from_="a", to="b").timing(warm_up="0s")
    return test.send(10, period="10us", payload="46B", count=count).receive(10).repeat(repeats)


def step_of(outcome: Outcome) -> float:
    """Step of the clocks in a simulated test, ns; 0 for perfect ones."""
    return max(outcome.campaign.network.granularities.values(), default=0)


def simulated_point(length_m: float, runs: Sequence[Run]) -> Point:
    """The mean of the repeats' means, as in the high-precision test bed."""
    repeats = [run.differences("rx_drv", "tx_drv") for run in runs]
    values = np.concatenate(repeats)
    return Point(
        length_m,
        float(np.mean([run.mean() for run in repeats])),
        None,
        float(values.min()),
        float(values.max()),
        len(values),
    )


def delay_test(delay_ns: float, *, count: int, host: str, granularity: str | None, seed: int) -> Test:
    """A test back to back over a line of known delay, in the simulator."""
    clock = Clock(granularity=granularity) if granularity else None
    test = Test(f"delay-{delay_ns:g}ns", seed=seed, host=host)
    test.end_system("a", clock=clock).end_system("b", clock=clock)
    test.link("a", "b", rate="1Gbit/s", delay=_time(round(delay_ns * 1000)))
    test.flow(10, protocol="udp", from_="a", to="b").timing(warm_up="10ms")
    return test.send(10, period="1ms", payload="64B", count=count).receive(10)


def linearity_results(
    known: Sequence[float], measured: Sequence[Floats], step_ns: float = 0.0
) -> dict[str, Any]:
    """Bias and slope of measured against known delays, ns; the first known delay is the zero that others count from.

    y_i = mean_i - mean_0 over x_i = known_i - known_0. The instrument is linear where the interval of the slope
    includes 1 and that of the bias 0. The uncertainty of the zero itself moves all points together and bounds the
    bias. A mean of differences of two clocks with steps of `step_ns` may be off by that much.
    """
    if len(known) < 3 or len(set(known)) != len(known):
        raise CalibrationError("linearity needs at least three different delays")
    zero = stats.mean_estimate(measured[0])
    assert zero is not None
    x = np.array([delay - known[0] for delay in known[1:]])
    y = np.array([float(values.mean()) - zero.mean for values in measured[1:]])
    fit = stats.line_fit(x, y, np.full(len(x), step_ns))
    common = (zero.half_width or 0.0) + step_ns
    slope, bias = fit.slope, fit.intercept
    bias_half = None if bias.half_width is None else bias.half_width + common
    holds = None
    if slope.half_width is not None and bias_half is not None:
        # Exact points give intervals narrower than the arithmetic.
        holds = abs(slope.value - 1) <= slope.half_width + 1e-9 and abs(bias.value) <= bias_half + 1e-6
    return {
        "slope": {"value": slope.value, "half_width": slope.half_width},
        "bias": {"value_ns": bias.value, "half_width_ns": bias_half, "zero_ns": common},
        "zero_ns": zero.mean,
        "residual_max_ns": float(np.abs(fit.residuals).max()),
        "n": fit.n,
        "linear": holds,
        "points": [
            {"known_ns": float(delay), "measured_ns": float(values.mean()), **_half(values)}
            for delay, values in zip(known, measured, strict=True)
        ],
    }


def _half(values: Floats) -> dict[str, Any]:
    mean = stats.mean_estimate(values)
    return {"n": len(values), "half_width_ns": mean.half_width if mean else None}
