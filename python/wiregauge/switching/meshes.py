"""Traffic between many ports: fully and partially meshed, and broadcasts (RFC 2889, 5.1, 5.2, 5.6 and 5.10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wiregauge.stats import share_bound
from wiregauge.switching.evidence import hidden, share_text
from wiregauge.switching.forwarding import HIDDEN, Tried, goal_of, percent, statement, told
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.search import Found, Goal, search
from wiregauge.switching.session import Session
from wiregauge.switching.trials import LINE_RATE_PPM, Outcome, Stream, Trial, fps

__all__ = ["broadcast", "full_mesh", "many_to_one", "one_to_many"]

_MOST: Final = {True: 8, False: 4}
"""The most ports of a mesh, by whether time is virtual: each stream of real frames is a thread of this machine."""

_LONG_SLOT_NS: Final = 1e6
_LEAST: Final = 10
"""The fewest frames of each stream in the shortest trial."""

Pattern = Callable[[Session, int, int], tuple[Stream, ...]]
"""Makes the streams of a load (ppm of the loaded port) and a frame size."""


def ports_of(session: Session) -> int:
    """The number of ports that take part."""
    return min(len(session.device.ports), _MOST[session.sizes.virtual])


def _slot(session: Session, load: int, frame: int) -> float:
    """Time between two frames of a port, ns; 0 for a load so low that frames hardly meet."""
    slot = 1e9 / fps(session.device.rate_bps, frame) * LINE_RATE_PPM / max(load, 1)
    return slot if slot < _LONG_SLOT_NS else 0.0


def _from_one(session: Session, source: int, load: int, frame: int) -> list[Stream]:
    """Streams from one port to every other, in turn, so that frames of two ports never meet at an output.

    Where senders share processors, ports also send in turn within the time of a frame.
    """
    ports = ports_of(session)
    slot = _slot(session, load, frame)
    phase = 0.0 if session.sizes.virtual else source / ports
    return [
        Stream(
            source,
            (source + step) % ports,
            load // (ports - 1),
            frame,
            offset_ns=round((step - 1 + phase) * slot),
        )
        for step in range(1, ports)
    ]


def _all_to_all(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    ports = range(ports_of(session))
    return tuple(stream for source in ports for stream in _from_one(session, source, load, frame))


def _one_to_all(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    return tuple(_from_one(session, 0, load, frame))


def _all_to_one(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    others = range(1, ports_of(session))
    slot = _slot(session, load, frame)
    return tuple(
        Stream(source, 0, load // len(others), frame, offset_ns=round(place * slot))
        for place, source in enumerate(others)
    )


def _one_to_everybody(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    return (Stream(0, 1, load, frame, also_to=tuple(range(2, ports_of(session)))),)


def _searched(session: Session, frame: int, pattern: Pattern) -> tuple[Found, Tried, Goal]:
    rate = session.device.rate_bps
    tried, goal = Tried(), goal_of(session, frame)

    def measure(load: int, seconds: float) -> float | None:
        name = f"{frame} B at {percent(load)}"
        return tried.ask(session, load, Trial(name, seconds, pattern(session, load, frame)))

    enough = _LEAST * ports_of(session) / (goal.initial_s * fps(rate, frame))
    found = search(measure, goal, least=max(1000, round(enough * 1e6)), rising=not session.sizes.virtual)
    whole = any(trial.seconds >= goal.final_s for trial, _ in tried.made.get(LINE_RATE_PPM, ()))
    if not found.limited and found.upper is not None and not whole:
        # The forwarding rate at the highest load is from a trial of full length.
        measure(LINE_RATE_PPM, goal.final_s)
    return found, tried, goal


def _rate(seconds: float, outcome: Outcome) -> float:
    """Forwarded frames per second (RFC 2285, 3.6)."""
    return (outcome.sent - outcome.lost) / seconds


def _rates(tried: Tried) -> dict[str, Value]:
    """The forwarding rate at the highest offered load, and the maximum over all loads."""
    longest: dict[int, tuple[float, Outcome]] = {}
    for tried_load, seen in tried.made.items():
        trial, last = max(seen, key=lambda one: one[0].seconds)
        longest[tried_load] = (trial.seconds, last)
    if not longest:
        return {}
    top = max(longest)
    best = max(longest, key=lambda load: (_rate(*longest[load]), load))
    seconds, outcome = longest[top]
    shares = [one.offered for one in outcome.streams if one.offered is not None]
    return {
        "iload": top / 1e4,
        "oload": top / 1e4 * sum(shares) / len(shares) if shares else None,
        "frmol": _rate(seconds, outcome),
        "loss": 100 * outcome.loss_ratio,
        "mfr": _rate(*longest[best]),
        "mfr_load": best / 1e4,
    }


def _none_of(tried: Tried) -> str:
    """Text: the number of frames of which none was lost at the highest offered load."""
    _, outcome = max(tried.made[max(tried.made)], key=lambda one: one[0].seconds)
    return f"none of {outcome.sent}, so at most {share_text(share_bound(0, outcome.sent).high)} (95 %)"


_COLUMNS: Final = (
    Column("frame", "frame size", "B"),
    Column("lower", "relevant lower bound", "% of line rate"),
    Column("upper", "relevant upper bound", "% of line rate"),
    Column("iload", "highest intended load", "% of line rate"),
    Column("oload", "offered load then", "% of line rate"),
    Column("frmol", "forwarding rate then (FRMOL)", "frames/s"),
    Column("loss", "loss rate then", "%"),
    Column("mfr", "maximum forwarding rate (MFR)", "frames/s"),
    Column("mfr_load", "load of the MFR", "% of line rate"),
    Column("statement", "statement"),
    HIDDEN,
)


def _meshed(session: Session, result: Result, pattern: Pattern, note: str) -> Result:
    result.columns, result.chart = _COLUMNS, Chart("frame", ("lower", "upper"))
    for frame in session.mesh_frames:
        found, tried, goal = _searched(session, frame, pattern)
        proof = tried.proof(found, goal)
        said = statement(found, proof)
        result.rows.append(
            {
                "frame": frame,
                "lower": None if found.lower is None else found.lower / 1e4,
                "upper": None if found.upper is None else found.upper / 1e4,
                **_rates(tried),
                "statement": said,
                **proof.cells(),
                "hidden": 100 * hidden(proof.seconds, session.device.rate_bps) if proof.seconds else None,
            }
        )
        rates = _rates(tried)
        loss = rates.get("loss")
        at_most = (
            f"; at {rates['iload']:.4g} % intended load it forwards {rates['frmol']:.0f} frames/s, "
            f"loses {f'{loss:.4g} %' if loss else _none_of(tried)}"
            if isinstance(loss, float)
            else ""
        )
        result.conclusion.append(f"{frame} B: {said}{told(proof, session.device.rate_bps)}{at_most}")
        result.notes += [f"{frame} B: {text}" for text in dict.fromkeys(tried.refused)]
    result.notes.append(note)
    if all(row["lower"] is None and row["upper"] is None for row in result.rows):
        result.state, result.reason = "refused", "no trial of any load counted"
    return result


def full_mesh(session: Session, known: dict[str, Result]) -> Result:
    """Traffic from every port to every other."""
    del known
    result = Result("full-mesh", "Fully meshed traffic", "RFC 2889, 5.1 and 5.6", "measured")
    note = (
        f"{ports_of(session)} ports, each to all others in turn; loads are shares of the rate of each port."
    )
    return _meshed(session, result, _all_to_all, note)


def one_to_many(session: Session, known: dict[str, Result]) -> Result:
    """Traffic from one port to all others."""
    del known
    result = Result("one-to-many", "Partially meshed: one to many", "RFC 2889, 5.2", "measured")
    note = f"The first of {ports_of(session)} ports to all others; loads are shares of its rate."
    return _meshed(session, result, _one_to_all, note)


def many_to_one(session: Session, known: dict[str, Result]) -> Result:
    """Traffic from all other ports to one, together at most its rate."""
    del known
    result = Result("many-to-one", "Partially meshed: many to one", "RFC 2889, 5.2", "measured")
    note = (
        f"All others of {ports_of(session)} ports to the first; loads are shares of the rate of the output port, "
        "which its senders have in equal parts."
    )
    return _meshed(session, result, _all_to_one, note)


def broadcast(session: Session, known: dict[str, Result]) -> Result:
    """Broadcasts from one port, and their latency."""
    del known
    result = Result("broadcast", "Broadcast forwarding and latency", "RFC 2889, 5.10", "measured")
    note = (
        "From the first port to ff:ff:ff:ff:ff:ff; a frame that one of the ports does not get is lost there."
    )
    _meshed(session, result, _one_to_everybody, note)
    times = (("min", "minimum latency"), ("p50", "greatest p50 latency"), ("max", "maximum latency"))
    skew = Column("skew", "p50 from the fastest to the slowest port", "us")
    result.columns = (*result.columns, *(Column(key, title, "us") for key, title in times), skew)
    for row in result.rows:
        frame, lower = row["frame"], row["lower"]
        if not isinstance(lower, float) or not isinstance(frame, int):
            continue
        load, seconds = round(lower * 1e4), session.sizes.final_s(session.device.rate_bps, frame)
        streams = _one_to_everybody(session, load, frame)
        outcome = session.ask(Trial(f"{frame} B, latency at {percent(load)}", seconds, streams))
        if outcome.refused:
            result.notes.append(f"{frame} B, latency: {outcome.refused}")
            continue
        row.update(_latencies(outcome))
    return result


def _latencies(outcome: Outcome) -> dict[str, Value]:
    """The least latency, greatest median and greatest latency over all receivers."""
    seen = [one.latency for one in outcome.streams]
    least = [one.minimum for one in seen if one.minimum is not None]
    middle = [one.p50 for one in seen if one.p50 is not None]
    most = [one.maximum for one in seen if one.maximum is not None]
    return {
        "min": min(least) / 1e3 if least else None,
        "p50": max(middle) / 1e3 if middle else None,
        "max": max(most) / 1e3 if most else None,
        "skew": (max(middle) - min(middle)) / 1e3 if middle else None,
    }
