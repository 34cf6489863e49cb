"""Service activation: the configuration test by steps, and the performance test of all services (ITU-T Y.1564)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wiregauge.stats import share_bound
from wiregauge.switching.evidence import CREDIT_BITS, evidence_of, share_text
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.services import FIRST_FLOW, Service
from wiregauge.switching.session import Session
from wiregauge.switching.trials import WIRE_EXTRA, Seen, Stream, Trial

__all__ = ["service_performance", "service_steps"]

_NONE: Final = "no service is given; describe one with --services FILE or --service"
_TOLERANCE: Final = 0.01
"""Share by which a policed service may exceed CIR + EIR, since its burst sizes pass at once."""
_LOW_EIR: Final = 0.2
"""An EIR below this share of the CIR is policed by 125 % of the CIR (Y.1564, 8.1.2)."""
_OVER: Final = ("policing", "CIR + EIR")
"""Names of the steps above the CIR."""
_FRAMES: Final = {"step": 20_000, "performance": 60_000}
_SECONDS: Final = {
    ("step", True): 1.0,
    ("performance", True): 10.0,
    ("step", False): 10.0,
    ("performance", False): 900.0,
}
"""Seconds of trials of real frames and of standard trials, by phase and whether the session is quick."""

_LONGER: Final = 10.0
"""The greatest factor by which a trial is lengthened to resolve the promised FLR."""

_COLUMNS: Final = (
    Column("service", "service"),
    Column("step", "step"),
    Column("offered", "offered information rate", "Mbit/s"),
    Column("rate", "information rate (IR)", "Mbit/s"),
    Column("flr", "frame loss ratio (FLR)", "%"),
    Column("ftd", "greatest transfer delay (FTD)", "us"),
    Column("mean", "mean transfer delay", "us"),
    Column("fdv", "delay variation (FDV), max - min", "us"),
    Column("availability", "availability", "%"),
    Column("n", "n"),
    Column("verdict", "verdict"),
)


def service_steps(session: Session, known: dict[str, Result]) -> Result:
    """Each service alone: at shares of its CIR, at CIR + EIR, and above its entitlement."""
    del known
    result = Result("service-steps", "Service configuration", "ITU-T Y.1564, 8.1", "measured")
    if not session.services:
        result.state, result.reason = "not carried", _NONE
        return result
    result.columns, result.chart = _COLUMNS, Chart("offered", ("rate",), "service")
    for number, service in enumerate(session.services):
        failed: list[str] = []
        begin = len(session.log)
        for name, rate in _steps(service):
            row = _step(session, number, service, name, rate, result)
            if row is None:
                continue
            result.rows.append(row)
            if row["verdict"] != "pass":
                failed.append(f"{name}: {row['verdict']}")
        # A step above the service's entitlement must lose frames, so it hides no credit.
        own = evidence_of(one[1:] for one in session.log[begin:] if not _above(service, one[1]))
        said = "; ".join(failed) if failed else "pass at every step that counts"
        result.conclusion.append(
            f"{service.name}: {said}; up to the CIR {own.rests(session.device.rate_bps)}"
        )
    result.notes.append(
        "IR counts frames from destination address to FCS. Every message counts: the greatest delay, and "
        "its difference to the least. Above the CIR only the rate is judged: no less than CIR (1 - FLR), no more than "
        f"CIR + EIR and {_TOLERANCE:.0%} for bursts."
    )
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result


def _above(service: Service, trial: Trial) -> bool:
    """Whether a trial's step is above the CIR."""
    return trial.name.startswith(tuple(f"{service.name}, {name}" for name in _OVER))


def _steps(service: Service) -> list[tuple[str, float]]:
    cir, eir = service.cir, service.eir
    steps = [(f"{share} % of CIR", cir * share / 100) for share in (25, 50, 75, 100)]
    if eir:
        steps.append(("CIR + EIR", cir + eir))
    over = 1.25 * cir + eir if eir < _LOW_EIR * cir else cir + 1.25 * eir
    return [*steps, ("policing", over)]


def _stream(session: Session, number: int, service: Service, rate: float) -> Stream:
    """The stream of a service at an information rate; its load includes what frames add on the wire."""
    wire = rate * (service.frame + WIRE_EXTRA) / service.frame
    load = round(wire / session.device.rate_bps * 1e6)
    here, there = service.source - 1, service.to - 1
    return Stream(here, there, load, service.frame, service.priority, flow=FIRST_FLOW + number)


def _seconds(session: Session, phase: str, streams: tuple[Stream, ...]) -> float:
    """Seconds of a trial, at most `_LONGER` times usual; a burst credit then hides at most half of the allowed FLR."""
    rates = [one.load_ppm / 1e6 * session.device.rate_bps for one in streams]
    usual = _SECONDS[phase, session.sizes.quick]
    if session.sizes.quick and session.sizes.virtual:
        slowest = min(rate / (8 * (one.frame + WIRE_EXTRA)) for rate, one in zip(rates, streams, strict=True))
        usual = _FRAMES[phase] / slowest
    allowed = [
        (rate, session.services[one.flow - FIRST_FLOW].flr) for rate, one in zip(rates, streams, strict=True)
    ]
    needed = max((CREDIT_BITS / (rate * flr / 2) for rate, flr in allowed if flr), default=0.0)
    return round(max(usual, min(needed, _LONGER * usual)), 6)


def _step(
    session: Session, number: int, service: Service, name: str, rate: float, result: Result
) -> dict[str, Value] | None:
    stream = _stream(session, number, service, rate)
    if stream.load_ppm > 1_000_000:
        carries = session.device.rate_bps * service.frame / (service.frame + WIRE_EXTRA) / 1e6
        result.notes.append(
            f"{service.name}, {name}: a link carries {carries:.4g} Mbit/s of its frames; left out"
        )
        return None
    seconds = _seconds(session, "step", (stream,))
    lead = min(seconds, 1.0) if name in _OVER else 0.0
    trial = Trial(f"{service.name}, {name}", seconds, (stream,), lead_s=lead)
    outcome = session.ask(trial)
    if outcome.refused:
        result.notes.append(f"{service.name}, {name}: {outcome.refused}")
        return None
    seen = outcome.streams[0]
    over = name in _OVER
    verdict = _conforms(service, seen, seconds) if over else _accepted(service, seen)
    return {**_row(service, name, seen, seconds), "verdict": verdict, **session.evidence().cells()}


def _rate(service: Service, seen: Seen, seconds: float) -> float:
    return (seen.sent - seen.lost) * service.frame * 8 / seconds


def _row(service: Service, name: str, seen: Seen, seconds: float) -> dict[str, Value]:
    least, most = seen.latency.minimum, seen.latency.maximum
    mean = seen.latency.mean
    return {
        "service": service.name,
        "step": name,
        "offered": seen.sent * service.frame * 8 / seconds / 1e6,
        "rate": _rate(service, seen, seconds) / 1e6,
        "flr": 100 * seen.loss_ratio,
        "ftd": None if most is None else most / 1e3,
        "mean": None if mean is None else mean / 1e3,
        "fdv": None if most is None or least is None else (most - least) / 1e3,
        "availability": None if seen.available is None else 100 * seen.available,
        "n": seen.sent,
    }


def _accepted(service: Service, seen: Seen) -> str:
    """`pass`, or the acceptance criteria that are broken or undecided; an unknown figure fails its criterion."""
    least, most = seen.latency.minimum, seen.latency.maximum
    spread = None if most is None or least is None else most - least
    broken = []
    if seen.loss_ratio > service.flr:
        broken.append(f"FLR {100 * seen.loss_ratio:.4g} % above {100 * service.flr:.4g} %")
    for word, value, bound in (("FTD", most, service.ftd), ("FDV", spread, service.fdv)):
        if bound is not None and (value is None or value > bound):
            broken.append(f"{word} {_us(value)} above {_us(bound)}")
    if service.availability is not None and (seen.available is None or seen.available < service.availability):
        had = "unknown" if seen.available is None else f"{100 * seen.available:.6g} %"
        broken.append(f"availability {had}, below {100 * service.availability:.6g} %")
    return "fail: " + ", ".join(broken) if broken else _within(service, seen)


def _within(service: Service, seen: Seen) -> str:
    """Whether an observed FLR is surely within the limit, with its 95 % bound and a possible burst credit added."""
    if not service.flr:
        return "pass"
    most = share_bound(seen.lost, seen.sent).high
    credit = CREDIT_BITS / (seen.sent * service.frame * 8)
    if most + credit <= service.flr:
        return "pass"
    return (
        f"undecided: FLR at most {share_text(most)} (95 %), and {share_text(credit)} would hide in 64 KiB of buffer or "
        f"burst credit: together above {100 * service.flr:.4g} %"
    )


def _us(ns: float | None) -> str:
    return "unknown" if ns is None else f"{ns / 1e3:.5g} µs"


def _conforms(service: Service, seen: Seen, seconds: float) -> str:
    rate, most = _rate(service, seen, seconds), service.cir + service.eir
    if rate < service.cir * (1 - service.flr) * (1 - _TOLERANCE / 10):
        return f"fail: IR {rate / 1e6:.5g} Mbit/s, below the CIR"
    if rate > most * (1 + _TOLERANCE):
        burst = (rate - most) * seconds / 8
        return (
            f"fail: IR {rate / 1e6:.5g} Mbit/s, above CIR + EIR: it is not policed, or by a burst size of "
            f"{burst:.0f} B or more"
        )
    return "pass"


def service_performance(session: Session, known: dict[str, Result]) -> Result:
    """All services together at their CIR, for a long time."""
    del known
    result = Result("service-performance", "Service performance", "ITU-T Y.1564, 8.2", "measured")
    if not session.services:
        result.state, result.reason = "not carried", _NONE
        return result
    result.columns = tuple(column for column in _COLUMNS if column.key != "step")
    streams = tuple(
        _stream(session, number, service, service.cir) for number, service in enumerate(session.services)
    )
    seconds = _seconds(session, "performance", streams)
    outcome = session.ask(Trial(f"{len(streams)} services at CIR", seconds, streams))
    if outcome.refused:
        result.state, result.reason = "refused", outcome.refused
        return result
    proof = session.evidence()
    for service, seen in zip(session.services, outcome.streams, strict=True):
        verdict = _accepted(service, seen)
        row = _row(service, "", seen, seconds)
        del row["step"]
        most = share_bound(seen.lost, seen.sent).high
        result.rows.append({**row, "verdict": verdict, **proof.cells(), "bound": 100 * most})
        result.conclusion.append(
            f"{service.name}: {verdict}; "
            f"{replace(proof, lost=seen.lost, sent=seen.sent).loss_rests(session.device.rate_bps)}"
        )
    result.notes.append(
        f"{len(streams)} services at once for {seconds:.4g} s; Y.1564 has 15 min, 2 h or 24 h."
    )
    return result
