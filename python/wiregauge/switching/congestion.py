"""What a device does with more than a port can send: back-to-back frames, buffer, priorities, head-of-line blocking."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wiregauge.stats import share_bound
from wiregauge.switching.forwarding import no_line_rate
from wiregauge.switching.results import Chart, Column, Result
from wiregauge.switching.session import REPEATS, Session
from wiregauge.switching.trials import WIRE_EXTRA, Load, Outcome, Seen, Stream, Trial, fps

__all__ = ["back_to_back", "buffer", "head_of_line", "priorities"]

_FULL: Final = 1_000_000
_PROBE: Final = 103_700
"""Load of a measured stream beside a port that is full, ppm: no simple part of the line rate, so that its frames arrive
in every phase of the load's and not always just when there is room."""
_WAITS: Final = 8
"""A port at which frames wait for fewer others than this is not called full."""


def back_to_back(session: Session, known: dict[str, Result]) -> Result:
    """The longest burst at line rate without loss, and the buffer time that it stands for."""
    result = Result("back-to-back", "Back-to-back frames", "RFC 2544, 26.4; RFC 9004", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("length", "mean burst", "frames"),
        Column("least", "shortest", "frames"),
        Column("most", "longest", "frames"),
        Column("repeats", "repeats"),
        Column("implied", "implied buffer time", "us"),
        Column("corrected_low", "corrected by the upper bound of throughput", "us"),
        Column("corrected", "corrected buffer time", "us"),
    )
    result.chart = Chart("frame", ("corrected",))
    for row in known["throughput"].rows:
        frame, lower = row["frame"], row["lower"]
        assert isinstance(frame, int)
        why = no_line_rate(known["throughput"], frame)
        if why or not isinstance(lower, float):
            result.notes.append(why or f"{frame} B: {row['statement']}")
            continue
        most = session.sizes.longest_burst(session.device.rate_bps, frame)
        if lower == 100.0 and (whole := _whole_burst(session, frame, most, result)) is not None:
            proof = session.evidence()
            result.rows.append({"frame": frame, "least": whole, "repeats": proof.trials, **proof.cells()})
            result.conclusion.append(
                f"{frame} B: {whole} frames at least, no longer burst was tried: {proof.loss}; "
                f"{proof.rests(session.device.rate_bps)}"
            )
            continue
        lengths = _bursts(session, frame, most, result)
        if not lengths:
            continue
        proof = session.evidence()
        if min(lengths) >= most:
            result.rows.append(
                {"frame": frame, "least": min(lengths), "repeats": len(lengths), **proof.cells()}
            )
            result.conclusion.append(
                f"{frame} B: {most} frames at least, no longer burst was tried; {len(lengths)} repeats; "
                f"{proof.rests(session.device.rate_bps)}"
            )
            continue
        mean = sum(lengths) / len(lengths)
        implied = mean / fps(session.device.rate_bps, frame)
        corrected = implied * (1 - lower / 100)
        upper = row["upper"]
        # Without a load that is too much nothing can be taken off for what was forwarded meanwhile.
        floor = implied * (1 - upper / 100) if isinstance(upper, float) else None
        result.rows.append(
            {
                "frame": frame,
                "length": mean,
                "least": min(lengths),
                "most": max(lengths),
                "repeats": len(lengths),
                "implied": implied * 1e6,
                "corrected_low": None if floor is None else floor * 1e6,
                "corrected": None if floor is None else corrected * 1e6,
                **proof.cells(),
            }
        )
        result.conclusion.append(
            f"{frame} B: bursts of {mean:.0f} frames ({min(lengths)} to {max(lengths)} in {len(lengths)} repeats), "
            f"{_buffer_time(floor, corrected)}; {proof.size}"
        )
    if not result.conclusion:
        _without(session, known, result, "no trial counted")
    return result


def _without(session: Session, known: dict[str, Result], result: Result, reason: str) -> Result:
    """A test without a result: for want of line rate the bench does not carry it, else its trials are refused."""
    lacks = [no_line_rate(known["throughput"], frame) for frame in session.frames]
    result.state, result.reason = ("not carried", lacks[0]) if all(lacks) else ("refused", reason)
    return result


def _buffer_time(floor: float | None, corrected: float) -> str:
    if floor is None:
        return "buffer time not told: the throughput found no load that is too much"
    return f"buffer time {floor * 1e6:.4g} to {corrected * 1e6:.4g} µs"


def _burst(session: Session, frame: int, length: int, name: str) -> Outcome:
    """What the device does with so many frames at line rate."""
    seconds = (length - 0.5) / fps(session.device.rate_bps, frame)
    return session.ask(Trial(name, seconds, (Stream(0, 1, _FULL, frame),), warm_up=False))


def _whole_burst(session: Session, frame: int, most: int, result: Result) -> int | None:
    """The length of the longest burst that is tried; None where the device loses of it."""
    outcome = _burst(session, frame, most, f"{frame} B, burst of {most}")
    if outcome.refused:
        result.notes.append(f"{frame} B, burst of {most}: {outcome.refused}")
    return None if outcome.refused or outcome.lost else most


def _bursts(session: Session, frame: int, most: int, result: Result) -> list[int]:
    """The longest burst that lost nothing, of every repeat, up to `most` frames; empty where none counts."""
    found: list[int] = []
    for repeat in range(REPEATS[session.sizes.quick]):
        low, high = 0, 0
        length = 64 if not found else max(1, found[-1])
        step = 0 if not found else max(1, found[-1] // 200)
        while not high or high - low > max(1, high // 500):
            outcome = _burst(session, frame, length, f"{frame} B, repeat {repeat + 1}, burst of {length}")
            if outcome.refused:
                result.notes.append(f"{frame} B, burst of {length}: {outcome.refused}")
                return found
            if outcome.lost:
                high = length
            else:
                low = length
            if not high and low >= most:
                break
            if high:
                length = (low + high) // 2 if low or not step else max(1, high - step)
            else:
                length = min(most, low + step if step else 2 * low)
            step *= 2
            if high == 1:
                break
        found.append(low)
    return found


def buffer(session: Session, known: dict[str, Result]) -> Result:
    """Buffer of an output port: how far latency rises before frames are lost, with more offered than it can send."""
    result = Result("buffer", "Buffer size", "RFC 8239, 3.2, by latency inflection", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("base", "least latency", "us"),
        Column("top", "greatest latency, full", "us"),
        Column("lost", "lost of the measured", "frames"),
        Column("frames", "buffer", "frames"),
        Column("bytes", "buffer", "B"),
    )
    result.chart = Chart("frame", ("bytes",))
    rate = session.device.rate_bps
    for frame in session.frames:
        if why := no_line_rate(known["throughput"], frame):
            result.notes.append(why)
            continue
        probe = (Stream(0, 1, _PROBE, frame),)
        base = session.ask(Trial(f"{frame} B, empty", 2_000 / fps(rate, frame), probe))
        least = base.streams[0].latency.minimum if not base.refused else None
        if least is None:
            result.notes.append(f"{frame} B: {base.refused or 'the latency of the empty device is unknown'}")
            continue
        outcome, enough = _filled(session, frame, probe, result)
        proof = session.evidence()
        if outcome is None:
            continue
        seen = outcome.streams[0]
        top = seen.latency.maximum
        assert top is not None
        # What the empty device takes longer for one frame than for another is no place in a buffer.
        spread = (base.streams[0].latency.maximum or least) - least
        frames = int((top - least) / 1e9 * fps(rate, frame))
        fewest = max(int((top - least - spread) / 1e9 * fps(rate, frame)), 0)
        sharp = spread * fps(rate, frame) <= 1e9
        result.rows.append(
            {
                "frame": frame,
                "base": least / 1e3,
                "top": top / 1e3,
                "lost": seen.lost,
                "frames": frames if sharp else None,
                "bytes": frames * frame if sharp else None,
                **proof.cells(),
            }
        )
        word = "" if enough else "at least "
        size = (
            f"{word}{frames} frames, {frames * frame} B, to one frame"
            if sharp
            else f"{fewest} to {frames} frames{'' if enough else ', or more'}: latencies of the empty device differ by "
            f"{spread / 1e3:.4g} µs"
        )
        result.conclusion.append(f"{frame} B: {size}; n {seen.latency.n}, {proof.size}")
    result.notes.append(
        "The port is offered 110 % of its rate: 100 % of load from the third port, 10 % measured from the first. "
        "Frames in the buffer = (greatest - least latency) / time of a frame with its "
        f"{WIRE_EXTRA} B of preamble and gap; the frame that is being sent is not counted."
    )
    return result if result.rows else _without(session, known, result, "no trial counted")


def _filled(
    session: Session, frame: int, probe: tuple[Stream, ...], result: Result
) -> tuple[Outcome | None, bool]:
    """The last trial that counted, and whether the buffer was full in it: it lost, or longer made it no fuller."""
    load = (Load(2, 1, _FULL, frame),)
    one = 1 / fps(session.device.rate_bps, frame)
    last = None
    for frames in (10_000, 80_000, 640_000):
        outcome = session.ask(Trial(f"{frame} B, overloaded for {frames} frames", frames * one, probe, load))
        top = outcome.streams[0].latency.maximum if outcome.streams else None
        if outcome.refused or top is None:
            result.notes.append(f"{frame} B, overloaded: {outcome.refused or 'no frame arrived'}")
            return last, False
        before = last.streams[0].latency.maximum if last is not None else None
        last = outcome
        if outcome.streams[0].lost or (before is not None and top - before < 1e9 * one):
            return outcome, True
    return last, False


def priorities(session: Session, known: dict[str, Result]) -> Result:
    """Two streams of the highest and the lowest priority into a port that is full."""
    result = Result("priorities", "Behaviour of priorities", "IEEE 802.1Q-2022, 8.6.8", "measured")
    frame = session.frames[len(session.frames) // 2]
    if no_line_rate(known["throughput"], frame):
        return _without(session, known, result, no_line_rate(known["throughput"], frame))
    result.columns = (
        Column("priority", "priority"),
        Column("sent", "sent", "frames"),
        Column("lost", "lost", "frames"),
        Column("loss", "loss rate", "%"),
        Column("p50", "p50", "us"),
        Column("max", "maximum", "us"),
    )
    result.chart = Chart("priority", ("loss",))
    streams = (Stream(0, 1, _PROBE, frame, 0), Stream(0, 1, _PROBE, frame, 7))
    seconds = 60_000 / fps(session.device.rate_bps, frame)
    trial = Trial(f"{frame} B, priorities 0 and 7", seconds, streams, (Load(2, 1, _FULL, frame),))
    outcome = session.ask(trial)
    if outcome.refused:
        result.state, result.reason = "refused", outcome.refused
        return result
    proof = session.evidence()
    for stream, seen in zip(streams, outcome.streams, strict=True):
        middle, most = seen.latency.p50, seen.latency.maximum
        result.rows.append(
            {
                "priority": stream.priority,
                "sent": seen.sent,
                "lost": seen.lost,
                "loss": 100 * seen.loss_ratio,
                "p50": None if middle is None else middle / 1e3,
                "max": None if most is None else most / 1e3,
                **proof.cells(),
                "bound": 100 * share_bound(seen.lost, seen.sent).high,
            }
        )
    low, high = outcome.streams
    result.conclusion.append(f"{_order(low, high, 1e9 / fps(session.device.rate_bps, frame))}; {proof.size}")
    result.notes.append(
        f"{frame} B: each priority is offered 10 % of the port, and untagged load 100 %, so 120 % in all."
    )
    return result


def _order(low: Seen, high: Seen, frame_ns: float) -> str:
    """What waiting says, and of a sentence about all frames the longest wait: a median says nothing of the others."""
    below, above, most = low.latency.p50, high.latency.p50, high.latency.maximum
    if below is None:
        return (
            "strict: the low priority gets nothing through" if not high.lost else "not told: too few arrived"
        )
    if above is None or most is None:
        return "not told: too few frames of the high priority arrived"
    if below < _WAITS * frame_ns:
        return "not told: the low priority did not wait, so the port was not full"
    if above < below / 2:
        loses = "" if not high.lost else ", but loses"
        return (
            f"strict: none of {high.latency.n} frames of the high priority took longer than {most / 1e3:.4g} µs, "
            f"half of the low priority longer than {below / 1e3:.4g} µs{loses}"
            if most < below / 2
            else "not strict for every frame: the high priority mostly goes first, but took up to "
            f"{most / 1e3:.4g} µs{loses}"
        )
    if above < 2 * below:
        return (
            f"not told: both took alike, but only the low priority lost ({low.lost} of {low.sent}): short queues of "
            "each priority behind a slow device, or phases in which there is no room"
            if low.lost and not high.lost
            else "none: both priorities wait alike (first in, first out)"
        )
    return "neither strict nor none: see the figures"


def head_of_line(session: Session, known: dict[str, Result]) -> Result:
    """Whether frames for a free port suffer from those for a full one (RFC 2889, 5.5)."""
    result = Result("head-of-line", "Head-of-line blocking", "RFC 2889, 5.5", "measured")
    frame = session.frames[len(session.frames) // 2]
    if no_line_rate(known["throughput"], frame):
        return _without(session, known, result, no_line_rate(known["throughput"], frame))
    result.columns = (
        Column("to", "destination"),
        Column("sent", "sent", "frames"),
        Column("lost", "lost", "frames"),
        Column("loss", "loss rate", "%"),
        Column("p50", "p50", "us"),
    )
    streams = (Stream(0, 1, 4 * _PROBE, frame), Stream(0, 3, 4 * _PROBE, frame))
    seconds = 60_000 / fps(session.device.rate_bps, frame)
    outcome = session.ask(Trial(f"{frame} B, one port full", seconds, streams, (Load(2, 1, _FULL, frame),)))
    if outcome.refused:
        result.state, result.reason = "refused", outcome.refused
        return result
    proof = session.evidence()
    for name, seen in zip(("full port", "free port"), outcome.streams, strict=True):
        middle = seen.latency.p50
        result.rows.append(
            {
                "to": name,
                "sent": seen.sent,
                "lost": seen.lost,
                "loss": 100 * seen.loss_ratio,
                "p50": None if middle is None else middle / 1e3,
                **proof.cells(),
                "bound": 100 * share_bound(seen.lost, seen.sent).high,
            }
        )
    full, free = outcome.streams
    busy, idle = full.latency.p50, free.latency.p50
    wait = _WAITS * 1e9 / fps(session.device.rate_bps, frame)
    if not full.lost and (busy is None or busy < wait):
        said = "not told: nothing waited or was lost at the port that is offered more than it sends"
    elif free.lost:
        said = f"blocked: {free.lost} of {free.sent} frames for the free port were lost"
    elif idle is None or idle >= wait:
        said = "blocked: frames for the free port wait, none of them was lost"
    else:
        said = (
            "not blocked: frames for the free port do not wait for those of the full one, and none was lost"
        )
    own = replace(proof, lost=free.lost)
    result.conclusion.append(f"{said}; {free.sent} frames for it, {own.rests(session.device.rate_bps)}")
    return result
