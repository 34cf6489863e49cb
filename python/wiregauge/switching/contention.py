"""Interference while a port, or another port, is full: priorities and head-of-line blocking.

Each trial has a control: the same streams, but no full port. Only the excess over the control counts for the port:
delays, jitter and losses that a device always has are not queueing or blocking.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wiregauge.stats import share_bound
from wiregauge.switching.evidence import Evidence
from wiregauge.switching.forwarding import no_line_rate, without
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.session import Session
from wiregauge.switching.trials import BESIDE_FULL_PPM, LINE_RATE_PPM, Load, Outcome, Seen, Stream, Trial, fps

__all__ = ["blocking", "head_of_line", "priorities"]

_STOOD: Final = 2.0
"""A port is not called full if the median frame waits for fewer other frames than this, and none is lost."""
_WAITS: Final = 8
"""Frame times that frames for the free port may wait in the device although none is queued for the full port."""


def _asked(session: Session, trial: Trial, control: Trial, result: Result) -> tuple[Outcome, Outcome] | None:
    """The outcomes of a trial and its control; None where one is refused, which is noted in the result."""
    made = []
    for one in (trial, control):
        outcome = session.ask(one)
        if outcome.refused:
            result.state, result.reason = "refused", f"{one.name}: {outcome.refused}"
            return None
        made.append(outcome)
    return made[0], made[1]


def _row(seen: Seen, proof: Evidence, **first: Value) -> dict[str, Value]:
    middle, most = seen.latency.p50, seen.latency.maximum
    return {
        **first,
        "sent": seen.sent,
        "lost": seen.lost,
        "loss": 100 * seen.loss_ratio,
        "p50": None if middle is None else middle / 1e3,
        "max": None if most is None else most / 1e3,
        **proof.cells(),
        "bound": 100 * share_bound(seen.lost, seen.sent).high,
    }


_COLUMNS: Final = (
    Column("sent", "sent", "frames"),
    Column("lost", "lost", "frames"),
    Column("loss", "loss rate", "%"),
    Column("p50", "p50", "us"),
    Column("max", "maximum", "us"),
)


def priorities(session: Session, known: dict[str, Result]) -> Result:
    """Two streams of the highest and the lowest priority to a full port."""
    result = Result("priorities", "Behaviour of priorities", "IEEE 802.1Q-2022, 8.6.8", "measured")
    frame = session.frames[len(session.frames) // 2]
    if no_line_rate(known["throughput"], frame):
        return without(session, known, result, no_line_rate(known["throughput"], frame))
    result.columns = (Column("priority", "priority"), Column("port", "port"), *_COLUMNS)
    result.chart = Chart("priority", ("loss",), "port")
    streams = (Stream(0, 1, BESIDE_FULL_PPM, frame, 0), Stream(0, 1, BESIDE_FULL_PPM, frame, 7))
    seconds = 60_000 / fps(session.device.rate_bps, frame)
    trial = Trial(f"{frame} B, priorities 0 and 7", seconds, streams, (Load(2, 1, LINE_RATE_PPM, frame),))
    made = _asked(session, trial, replace(trial, name=f"{frame} B, the same with no load", loads=()), result)
    if made is None:
        return result
    proof = session.evidence()
    for port, outcome in zip(("full", "empty"), made, strict=True):
        for stream, seen in zip(streams, outcome.streams, strict=True):
            result.rows.append(_row(seen, proof, priority=stream.priority, port=port))
    frame_ns = 1e9 / fps(session.device.rate_bps, frame)
    said = _order(made[0].streams, made[1].streams, frame_ns)
    result.conclusion.append(f"{said}; {proof.size}")
    result.notes.append(
        f"{frame} B: each priority is offered 10 % of the port, and untagged load 100 %, so 120 % in all; then both "
        "priorities alone. Waits are what frames take longer than then."
    )
    return result


def _order(full: tuple[Seen, ...], empty: tuple[Seen, ...], frame_ns: float) -> str:
    """The order that waits show; statements about all frames use the longest wait, since a median covers only half."""
    (low, high), alone = full, [one.latency for one in empty]
    if any(one.p50 is None or one.maximum is None or one.minimum is None for one in alone):
        return "not told: too few frames arrived with no load"
    low_alone, high_alone = (one.p50 or 0.0 for one in alone)
    if low.latency.p50 is None:
        return (
            "strict: the low priority gets nothing through" if not high.lost else "not told: too few arrived"
        )
    above, most = high.latency.p50, high.latency.maximum
    if above is None or most is None:
        return "not told: too few frames of the high priority arrived"
    below, above = low.latency.p50 - low_alone, above - high_alone
    if below < _STOOD * frame_ns and not low.lost:
        return "not told: the low priority did not wait, so the port was not full"
    if above >= below / 2 or below < _STOOD * frame_ns:
        return (
            f"not told: both took alike, but only the low priority lost ({low.lost} of {low.sent}): short queues of "
            "each priority behind a slow device, or phases in which there is no room"
            if low.lost and not high.lost
            else "none: both priorities wait alike (first in, first out)"
        )
    return _how_strict(high, most - (alone[1].maximum or 0.0), most, below, alone[1].maximum or 0.0)


def _how_strict(high: Seen, more: float, most: float, below: float, alone: float) -> str:
    """Whether the high priority, which mostly goes first, always does, as far as jitter allows the distinction."""
    loses = "" if not high.lost else f", but loses {high.lost} of {high.sent}"
    waited = (
        f"{most / 1e3:.4g} µs, {max(more, 0.0) / 1e3:.4g} µs more than the longest with no load; half of the low "
        f"priority waited longer than {below / 1e3:.4g} µs"
    )
    if more >= below / 2:
        return (
            f"not strict for every frame: the high priority mostly goes first, but took up to {waited}{loses}"
        )
    least = high.latency.minimum or 0.0
    if alone - least >= below / 2:
        return (
            "not told for every frame: the high priority mostly goes first, but with no load, too, latencies differ by "
            f"{(alone - least) / 1e3:.4g} µs, and half of the low priority waited for {below / 1e3:.4g} µs{loses}"
        )
    return f"strict: none of {high.latency.n} frames of the high priority took longer than {waited}{loses}"


def head_of_line(session: Session, known: dict[str, Result]) -> Result:
    """Whether frames for a free port are delayed or lost with those for a full one (RFC 2889, 5.5)."""
    result = Result("head-of-line", "Head-of-line blocking", "RFC 2889, 5.5", "measured")
    frame = session.frames[len(session.frames) // 2]
    if no_line_rate(known["throughput"], frame):
        return without(session, known, result, no_line_rate(known["throughput"], frame))
    result.columns = (Column("to", "destination"), *_COLUMNS)
    streams = (Stream(0, 1, 4 * BESIDE_FULL_PPM, frame), Stream(0, 3, 4 * BESIDE_FULL_PPM, frame))
    rate = session.device.rate_bps
    seconds = 60_000 / fps(rate, frame)
    trial = Trial(f"{frame} B, one port full", seconds, streams, (Load(2, 1, LINE_RATE_PPM, frame),))
    control = replace(trial, name=f"{frame} B, no port full", loads=(Load(2, 0, LINE_RATE_PPM, frame),))
    made = _asked(session, trial, control, result)
    if made is None:
        return result
    proof = session.evidence()
    names = ("full port", "free port", "first port, not full", "free port, none full")
    for name, seen in zip(names, (*made[0].streams, *made[1].streams), strict=True):
        result.rows.append(_row(seen, proof, to=name))
    (full, free), (idle, alone) = made[0].streams, made[1].streams
    frame_ns = 1e9 / fps(rate, frame)
    usual = idle.latency.p50
    waited = full.latency.p50 is None or (usual is not None and full.latency.p50 - usual >= _STOOD * frame_ns)
    if usual is None:
        said = "not told: too few frames of the control arrived"
    elif not full.lost and not waited:
        said = "not told: nothing waited or was lost at the port that is offered more than it sends"
    else:
        said = blocking(free, alone, frame_ns) or (
            "not blocked: frames for the free port do not wait for those of the full one, and none was lost"
        )
    own = Evidence(1, free.sent, free.lost, seconds)
    result.conclusion.append(f"{said}; {own.rests(rate)}; control: 1 trial with the load for a third port")
    result.notes.append(
        "The first port sends 41 % to the second and 41 % to the fourth, the third sends 100 % to the second, and "
        "in the control to the first. Blocked is what is lost, or waits, beyond the control."
    )
    return result


def blocking(free: Seen, alone: Seen, frame_ns: float, least_wait: float = 0.0) -> str:
    """The extra delay and loss of frames for a free port while another port is full; empty: none is seen.

    `least_wait`: the extra latency, ns, that counts as blocking, where it exceeds `_WAITS` frame times.
    """
    here, there = share_bound(free.lost, free.sent), share_bound(alone.lost, alone.sent)
    lost = f"{free.lost} of {free.sent} frames for the free port were lost"
    if here.low > there.high:
        return f"blocked: {lost}, {alone.lost} of {alone.sent} with no port full"
    took, before = free.latency.p50, alone.latency.p50
    if took is None or before is None:
        return "not told: too few frames for the free port arrived"
    if took - before >= max(_WAITS * frame_ns, least_wait):
        return (
            f"blocked: frames for the free port wait, half of them for {(took - before) / 1e3:.4g} µs more than with "
            "no port full"
        )
    if free.lost:
        return f"not told: {lost}, but {alone.lost} of {alone.sent} with no port full, too"
    return ""
