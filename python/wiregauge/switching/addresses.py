"""The address table: its capacity, and how fast addresses are learnt (RFC 2889, 5.7 and 5.8).

Stations behind port 1 send one frame each to port 2, which then sends one to each of them. A frame that leaves by a
third port was flooded: its station was unknown.
"""

from __future__ import annotations

from typing import Final

from wiregauge.plan.ethernet import SHORTEST as _FRAME
from wiregauge.switching.errors import BeyondError
from wiregauge.switching.results import Chart, Column, Result
from wiregauge.switching.session import Session
from wiregauge.switching.trials import Outcome, Stream, Trial, fps

__all__ = ["capacity", "learning_rate"]

_SLOW_S: Final = 0.001
"""Time between new addresses, s, where their number is measured."""
_MOST: Final = 1 << 17
"""The most stations that are tried."""
_PAUSE_S: Final = 0.02
"""Time from the last new address to the first frame to one of them, s."""
_PROBE: Final = 100_000
"""Load of the frames for the stations, ppm."""
_FOR_RATE: Final = 1_000
"""The most stations in a trial of the learning rate."""
_WIDTH: Final = 0.005


def _flooded(session: Session, stations: int, spacing_s: float, result: Result, name: str) -> int | None:
    """The number of frames to known stations that were flooded; None for a trial that does not count."""
    came = stations * spacing_s
    back = stations / (fps(session.device.rate_bps, _FRAME) * _PROBE / 1e6)
    begin = came + max(_PAUSE_S, 2 * spacing_s)
    learn = Stream(0, 1, 0, _FRAME, count=stations, period_ns=round(spacing_s * 1e9), stations_from=stations)
    ask = Stream(1, 0, _PROBE, _FRAME, count=stations, offset_ns=round(begin * 1e9), stations_to=stations)
    outcome = session.ask(Trial(name, round(begin + back + _PAUSE_S, 6), (learn, ask), warm_up=False))
    if outcome.refused:
        result.notes.append(f"{name}: {outcome.refused}")
        return None
    if not outcome.streams[1].passages:
        raise BeyondError(
            "this bench does not see by which ports the device sends a frame, so not what it floods"
        )
    return _lost_too(outcome, stations)


def _lost_too(outcome: Outcome, stations: int) -> int:
    """The number of stations whose frame was lost or also left by another port."""
    asked = outcome.streams[1]
    return min(stations, asked.flooded + asked.lost)


def _unable(session: Session) -> str:
    if session.sizes.virtual and not session.device.learns:
        return 'the device does not learn: its ways are entered before a run; write forwarding="learning"'
    return ""


def capacity(session: Session, known: dict[str, Result]) -> Result:
    """The greatest number of stations that the device learns."""
    del known
    result = Result("address-capacity", "Address caching capacity", "RFC 2889, 5.7", "measured")
    if why := _unable(session):
        result.state, result.reason = "not carried", why
        return result
    result.columns = (
        Column("stations", "stations", "addresses"),
        Column("flooded", "frames flooded"),
    )
    result.chart = Chart("stations", ("flooded",))
    low, high, count = 0, 0, 64
    while not high or high - low > 1:
        flooded = _flooded(session, count, _SLOW_S, result, f"{count} stations")
        if flooded is None:
            result.state, result.reason = "refused", f"the trial of {count} stations does not count"
            return result
        result.rows.append({"stations": count, "flooded": flooded, **session.evidence().cells()})
        low, high = (low, count) if flooded else (count, high)
        if not high and low >= _MOST:
            break
        count = (low + high) // 2 if high else 2 * low
        if high == 1:
            break
    result.rows.sort(key=lambda row: row["stations"] if isinstance(row["stations"], int) else 0)
    word = "" if high else "at least "
    result.conclusion.append(f"{word}{low} addresses are kept; {_made(result, 'number')}")
    result.notes.append(
        f"{_FRAME} B. A new address every {_SLOW_S * 1e3:g} ms; a device that learns more slowly, or forgets "
        "within the trial, keeps fewer. The most stations none of whose frames was flooded or lost."
    )
    return result


def learning_rate(session: Session, known: dict[str, Result]) -> Result:
    """The highest rate of new addresses at which all are learnt."""
    result = Result("learning-rate", "Address learning rate", "RFC 2889, 5.8", "measured")
    if why := _unable(session):
        result.state, result.reason = "not carried", why
        return result
    rows = known["address-capacity"].rows
    kept = [count for row in rows if row["flooded"] == 0 and isinstance(count := row["stations"], int)]
    stations = min(max(kept, default=0), _FOR_RATE)
    if not stations:
        result.state, result.reason = "refused", "no number of addresses is kept"
        return result
    result.columns = (
        Column("rate", "new addresses", "addresses/s"),
        Column("stations", "stations", "addresses"),
        Column("flooded", "frames flooded"),
    )
    result.chart = Chart("rate", ("flooded",))
    fastest = round(1e9 / fps(session.device.rate_bps, _FRAME)) + 1
    good, bad, spacing = 0, 0, fastest
    while not good or (bad and good - bad > max(1.0, _WIDTH * good)):
        flooded = _flooded(
            session, stations, spacing / 1e9, result, f"{stations} stations, {spacing} ns apart"
        )
        if flooded is None:
            result.state, result.reason = "refused", f"the trial of {spacing} ns does not count"
            return result
        result.rows.append(
            {
                "rate": 1e9 / spacing,
                "stations": stations,
                "flooded": flooded,
                **session.evidence().cells(),
            }
        )
        good, bad = (good, spacing) if flooded else (spacing, bad)
        if not good and spacing > 1_000_000_000:
            break
        spacing = (good + bad) // 2 if good and bad else 4 * bad
    result.rows.sort(key=lambda row: row["rate"] if isinstance(row["rate"], float) else 0.0)
    result.conclusion.append(f"{_rate_said(good, bad)}; {_made(result, 'rate')}")
    result.notes.append(
        f"{_FRAME} B, {stations} stations. The highest rate at which none of their frames was flooded or lost; bounds "
        "end within 0.5 % of each other."
    )
    return result


def _made(result: Result, what: str) -> str:
    """The number of trials, as text."""
    return f"{len(result.rows)} trials, one of each {what}"


def _rate_said(good: int, bad: int) -> str:
    if not good:
        return f"less than {1e9 / bad:.4g} addresses/s"
    if not bad:
        return f"at least {1e9 / good:.5g} addresses/s, one a frame at line rate"
    return f"{1e9 / good:.5g} to {1e9 / bad:.5g} addresses/s"
