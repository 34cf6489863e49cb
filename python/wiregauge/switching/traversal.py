"""Traversal times of probe frames while cross traffic of a known envelope loads the same or another output.

After the precision study's testbed, whose cross flows have chosen gaps, bursts and rate limits: their envelope is
known. The results are parameters of a rate-latency service curve for network calculus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from wiregauge.stats import share_bound
from wiregauge.switching.envelopes import Envelope
from wiregauge.switching.forwarding import no_line_rate
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.session import Session
from wiregauge.switching.trials import WIRE_EXTRA, Latency, Stream, Trial, fps

__all__ = ["traversal"]

_PROBE: Final = 20_370
"""Load of the probe frames, ppm: not a simple fraction of any load, so that they meet every phase of the bursts."""
_PROBES: Final = 4_000
_LONGEST_S: Final = 20.0
"""Greatest length of a quick trial of real frames on slow links, s; each figure has its n."""
_FIT: Final = 0.01
"""Relative deviation of the fitted rate from the line rate that is not mentioned."""


def traversal(session: Session, known: dict[str, Result]) -> Result:
    """Measures traversal times by envelope and output."""
    result = Result(
        "traversal", "Traversal under cross traffic", "the precision study, II; RFC 5481", "measured"
    )
    frame = session.frames[len(session.frames) // 2]
    result.columns = (
        Column("output", "foreign traffic at"),
        Column("load", "its load", "% of line rate"),
        Column("burst", "its burst", "frames"),
        Column("n", "n"),
        *(
            Column(key, title, "us")
            for key, title in (
                ("min", "minimum"),
                ("p50", "p50"),
                ("p99", "p99"),
                ("max", "maximum"),
                ("pdv", "PDV (p99.9 - min)"),
                ("excess", "beyond the least of the empty device"),
            )
        ),
        Column("lost", "lost", "frames"),
    )
    result.chart = Chart("burst", ("max",), "output")
    base = _measured(session, frame, "none", None, result)
    if base is None or base.minimum is None:
        result.state, result.reason = "refused", "the trial of the empty device does not count"
        return result
    if why := no_line_rate(known["throughput"], frame):
        result.notes.append(f"bursts are not tried: {why}")
        result.conclusion.append(f"empty: {_range(base)}")
        return result
    result.conclusion.append(f"{frame} B, empty: {_range(base)}")
    waits: dict[str, list[tuple[Envelope, float]]] = {"the same output": [], "another output": []}
    for output, found in waits.items():
        for envelope in session.envelopes:
            seen = _measured(session, frame, output, envelope, result, base.minimum)
            if seen is not None and seen.maximum is not None:
                found.append((envelope, seen.maximum - base.minimum))
    _conclude_curve(session.device.rate_bps, frame, base, waits["the same output"], result)
    for output, found in waits.items():
        result.conclusion.append(_most(output, found, session.envelopes))
    result.notes.append(
        "From the application of the sender to that of the receiver, hosts and links included. Bursts of foreign "
        "traffic come from two ports at once, half of each."
    )
    return result


def _cross(session: Session, frame: int, envelope: Envelope, to: int) -> tuple[Stream, ...]:
    """Bursts of two ports together: from one port they would be no faster than the output, and never queue."""
    sources = [port for port in range(min(4, len(session.device.ports))) if port not in (0, to)]
    parts = _parts(envelope)
    each = envelope.load_ppm // envelope.burst
    return tuple(
        Stream(source, to, each * part, frame, burst=part)
        for source, part in zip(sources, parts, strict=False)
    )


def _parts(envelope: Envelope) -> list[int]:
    """The frames of a burst, by source port."""
    return [part for part in (envelope.burst - envelope.burst // 2, envelope.burst // 2) if part]


def _standing(envelope: Envelope) -> int:
    """Frames at the output, with that on the wire, when a burst is in: it sends one for each that a port delivers."""
    return envelope.burst - max(_parts(envelope)) + 1


def _measured(
    session: Session,
    frame: int,
    output: str,
    envelope: Envelope | None,
    result: Result,
    least: float | None = None,
) -> Latency | None:
    probe = Stream(0, 1, _PROBE, frame)
    cross: tuple[Stream, ...] = ()
    if envelope is not None:
        cross = _cross(session, frame, envelope, 1 if output == "the same output" else 3)
    what = "empty" if envelope is None else f"{_named(envelope)}, {output}"
    seconds = _PROBES / (fps(session.device.rate_bps, frame) * _PROBE / 1e6)
    seconds = round(seconds, 6) if session.sizes.virtual else min(max(1.0, round(seconds, 3)), _LONGEST_S)
    if not session.sizes.quick:
        seconds = 60.0
    outcome = session.ask(Trial(f"{frame} B, {what}", seconds, (probe, *cross)))
    if outcome.refused:
        result.notes.append(f"{what}: {outcome.refused}")
        return None
    seen = outcome.streams[0].latency
    ns: dict[str, float | None] = {
        "min": seen.minimum,
        "p50": seen.p50,
        "p99": seen.p99,
        "max": seen.maximum,
        "pdv": seen.pdv,
        "excess": None if seen.maximum is None or least is None else seen.maximum - least,
    }
    row: dict[str, Value] = {
        "output": output,
        "load": 0.0 if envelope is None else envelope.load_ppm / 1e4,
        "burst": 0 if envelope is None else envelope.burst,
        "n": seen.n,
        **{key: None if value is None else value / 1e3 for key, value in ns.items()},
        "lost": outcome.streams[0].lost,
        **session.evidence().cells(),
        "bound": 100 * share_bound(outcome.streams[0].lost, outcome.streams[0].sent).high,
    }
    result.rows.append(row)
    return seen


def _range(seen: Latency) -> str:
    least, most = seen.minimum or 0.0, seen.maximum or 0.0
    return f"{least / 1e3:.5g} to {most / 1e3:.5g} µs, n {seen.n}, 1 trial"


def _named(envelope: Envelope) -> str:
    return f"{envelope.load_ppm / 1e4:g} % in bursts of {envelope.burst}"


def _most(output: str, found: list[tuple[Envelope, float]], asked: Sequence[Envelope]) -> str:
    """A sentence with the greatest wait behind cross traffic, and the traffic without a figure."""
    measured = {envelope for envelope, _ in found}
    missing = [_named(envelope) for envelope in asked if envelope not in measured]
    if not found:
        return f"foreign traffic for {output}: not known, no trial counts"
    line = (
        f"foreign traffic for {output}: {max(wait for _, wait in found) / 1e3:.5g} µs more at most were seen, in "
        f"{len(found)} {'trial' if len(found) == 1 else 'trials'}"
    )
    return f"{line}, not counting {', '.join(missing)}: refused" if missing else line


def _conclude_curve(
    line_bps: int, frame: int, base: Latency, worst: list[tuple[Envelope, float]], result: Result
) -> None:
    """The service curve, from the growth of waits at one output with the burst.

    An output cannot exceed its line rate: a fit above it has too few or too noisy waits, and the line rate is then the
    upper limit.
    """
    if len({envelope.burst for envelope, _ in worst}) < 2:
        if worst:
            result.notes.append("With bursts of one size the rate of the service curve is not told.")
        return
    bits = np.array(
        [8 * _standing(envelope) * (frame + WIRE_EXTRA) for envelope, _ in worst], dtype=np.float64
    )
    waits = np.array([wait for _, wait in worst], dtype=np.float64)
    slope, ahead = np.polyfit(bits, waits, 1)
    if slope <= 0:
        return
    fitted = 1e9 / float(slope)
    told = f"rate {min(fitted, line_bps) / 1e6:.4g} Mbit/s, "
    if fitted > line_bps * (1 + _FIT):
        told += "the line's: the greatest wait grows with the burst as at "
        told += f"{fitted / 1e6:.4g} Mbit/s, faster than the line"
    else:
        told += "from how the greatest wait grows with the burst"
    latency = (base.maximum or 0.0) / 1e3
    result.conclusion.append(
        f"rate-latency service curve: {told}; latency {latency:.5g} µs of the empty device; the greatest of "
        f"{len(worst)} trials"
    )
    result.notes.append(
        f"Greatest wait = what stands at the output when a burst is in / {fitted / 1e6:.4g} Mbit/s "
        f"{'+' if ahead >= 0 else '-'} {abs(float(ahead)) / 1e3:.4g} µs."
    )
