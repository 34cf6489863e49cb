"""Forward pressure, and the maximum forwarding rate (RFC 2889, 5.6; RFC 2285, 3.6.3 and 3.7.2).

A sender that leaves gaps of 88 bit times behind its frames offers more than line rate. A device that then sends with
less than the 96 bit times of IEEE 802.3 itself puts pressure on whatever is behind it. A gap of one byte less shows
in the mean inter-arrival time at the receiver, which a draining buffer cannot improve.
"""

from __future__ import annotations

from typing import Final

from wiregauge.plan.ethernet import PREAMBLE
from wiregauge.switching.evidence import evidence_of
from wiregauge.switching.forwarding import no_line_rate, percent
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.session import Session
from wiregauge.switching.trials import LINE_RATE_PPM, Outcome, Stream, Trial, fps

__all__ = ["forward_pressure"]

_GAP: Final = 11
"""The gap of RFC 2889, 88 bit times, B."""
_CLOCKS: Final = 200e-6
"""Greatest rate difference of two Ethernet oscillators (IEEE 802.3: 100 ppm each); a byte of gap is 650 ppm or more."""
_STEPS: Final = 3
"""The number of loads between the throughput and line rate."""


def forward_pressure(session: Session, known: dict[str, Result]) -> Result:
    """Forwarding rates from the throughput to a load above line rate, and the gaps that the device then leaves."""
    result = Result(
        "forward-pressure", "Forward pressure and maximum forwarding rate", "RFC 2889, 5.6", "measured"
    )
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("line_rate", "line rate", "frames/s"),
        Column("mol", "maximum offered load (MOL)", "frames/s"),
        Column("frmol", "forwarding rate then (FRMOL)", "frames/s"),
        Column("loss", "loss rate then", "%"),
        Column("mfr", "maximum forwarding rate (MFR)", "frames/s"),
        Column("mfr_load", "load of the MFR", "% of line rate"),
        Column("gap", "mean gap behind frames that leave", "bit times"),
        Column("statement", "statement"),
    )
    result.chart = Chart("frame", ("gap",))
    lacks: list[str] = []
    for row in known["throughput"].rows:
        frame, lower = row["frame"], row["lower"]
        assert isinstance(frame, int)
        if why := no_line_rate(known["throughput"], frame):
            lacks.append(why)
            continue
        found = _rates(session, frame, lower if isinstance(lower, float) else 0.0, result)
        proof = session.evidence()
        if found is not None:
            result.rows.append({**found, **proof.cells(), "bound": None})
            # The statement is about the trial with the smallest gaps alone.
            fullest = evidence_of(
                (trial, seen) for _, trial, seen in session.log if trial.name == _name(frame)
            )
            result.conclusion.append(
                f"{frame} B: {found['statement']}; {fullest.rests(session.device.rate_bps)}"
            )
    result.notes += lacks
    result.notes.append(
        f"From port 1 to port 2, whose sender leaves {8 * _GAP} bit times behind each frame at the highest load, and "
        "96 at all others. Rates are those at which frames come at the receiver."
    )
    if not result.rows:
        result.state, result.reason = ("not carried", lacks[0]) if lacks else ("refused", "no trial counted")
    return result


def _name(frame: int) -> str:
    return f"{frame} B, gaps of {8 * _GAP} bit times"


def _rates(session: Session, frame: int, lower: float, result: Result) -> dict[str, Value] | None:
    line = fps(session.device.rate_bps, frame)
    most = session.device.rate_bps / (8 * (frame + PREAMBLE + _GAP))
    above = _forwarded(session, _name(frame), Stream(0, 1, 0, frame, gap=_GAP), result)
    if above is None:
        return None
    frmol, outcome = above
    rates = {100 * most / line: frmol}
    for load in _loads(lower):
        tried = _forwarded(session, f"{frame} B at {percent(load)}", Stream(0, 1, load, frame), result)
        if tried is not None:
            rates[load / 1e4] = tried[0]
    best = max(rates, key=lambda load: (rates[load], -load))
    gap = session.device.rate_bps / frmol - 8 * (frame + PREAMBLE)
    loss = 100 * outcome.loss_ratio
    return {
        "frame": frame,
        "line_rate": line,
        "mol": most,
        "frmol": frmol,
        "loss": loss,
        "mfr": rates[best],
        "mfr_load": best,
        "gap": gap,
        "statement": _statement(frmol, line, gap, loss),
    }


def _loads(lower: float) -> list[int]:
    """Loads from the throughput to line rate, ppm; line rate alone where that is the throughput."""
    low = round(lower * 1e4)
    steps = [low + round((LINE_RATE_PPM - low) * step / _STEPS) for step in range(_STEPS + 1)]
    return sorted(set(steps) - {0})


def _statement(frmol: float, line: float, gap: float, loss: float) -> str:
    if frmol > line * (1 + _CLOCKS):
        return f"forward pressure: frames leave with gaps of {gap:.4g} bit times, 96 are the least"
    lost = f"loses {loss:.3g} %" if loss else "loses none"
    return (
        f"no forward pressure: it sends at {100 * frmol / line:.5g} % of line rate, and {lost} in this trial"
    )


def _forwarded(session: Session, name: str, stream: Stream, result: Result) -> tuple[float, Outcome] | None:
    """The forwarding rate at the receiver, frames/s, with the outcome; None where the trial is refused."""
    seconds = session.sizes.final_s(session.device.rate_bps, stream.frame)
    outcome = session.ask(Trial(name, seconds, (stream,), overload=bool(stream.gap)))
    interval = outcome.streams[0].interval if outcome.streams else None
    if outcome.refused or not interval:
        result.notes.append(f"{name}: {outcome.refused or 'no frame arrived'}")
        return None
    return 1e9 / interval, outcome
