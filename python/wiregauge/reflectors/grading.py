"""What was collected, as figures: graded and judged. The same for a session with an end and for one without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from wiregauge._version import __version__
from wiregauge.measures import verdict_of
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.reflectors.exchange import ClockTold
from wiregauge.reflectors.limits import Limit, judge
from wiregauge.reflectors.measured import Counts, Measured, Order, Series

__all__ = ["IGNORED", "Evidence", "graded"]

IGNORED: Final = {
    "not_authentic": "answers with a wrong hash: the key differs, or they are forged",
    "too_short": "answers too short for their mode: cut, or of another mode",
    "not_asked": "answers with a number, time or session that nothing sent has",
    "too_late": "answers later than they were awaited",
    "without_times": "answers without times",
    "foreign": "datagrams from other addresses",
}
"""Datagrams that are no answers, and what that says, by their count."""
_SET_NS: Final = 1e6
"""Movement of this host's clock beyond its steering, from which it counts as set."""
_STEERING: Final = 5e-4


class Evidence(Struct, frozen=True):
    """What is known of a session, or of a stretch of one."""

    counts: Counts
    numbering: Literal["own", "as-sent", "restarted"] | None
    series: dict[str, Series]
    steps: int
    step_ns: float
    """Steps of one clock against the other, and the greatest of them."""
    epoch_ns: int
    """When the first packet was sent; 0: none was."""
    clock: ClockTold | None
    """None: there was no answer."""
    hops: list[int]
    classes: list[int]
    own_times: int
    """Times that the program took, not the kernel; `all_times` are all of both kinds."""
    all_times: int
    late_ns: int
    """How much later than it was due a packet was sent, at most."""
    summary: dict[str, Any]
    """Counts of the sender."""


def graded(
    order: Order, seen: Evidence, limits: Sequence[Limit], *, complete: bool, reasons: Sequence[str] = ()
) -> Measured:
    """The session; `reasons` are further ones to rely less on it."""
    invalid = list(_invalid(order, seen))
    doubts = [*invalid, *_doubts(order, seen, complete=complete), *_doubts_of_host(order, seen), *reasons]
    held = [judge(limit, seen.series, seen.counts, invalid[0] if invalid else "") for limit in limits]
    return Measured(
        schema=1,
        program=f"wiregauge {__version__}",
        order=order,
        epoch_realtime_ns=seen.epoch_ns,
        complete=complete,
        validity="INVALID" if invalid else "DEGRADED" if doubts else "VALID",
        reasons=doubts,
        numbering=seen.numbering,
        reflector_clock="unknown: it did not answer" if seen.clock is None else seen.clock.text(),
        hops=seen.hops,
        classes=seen.classes,
        counts=seen.counts,
        series=seen.series,
        ignored={name: int(seen.summary.get(name, 0)) for name in IGNORED},
        verdict=verdict_of(one.result for one in held) if held else "NONE",
        limits=held,
    )


def _invalid(order: Order, seen: Evidence) -> Iterator[str]:
    """Why the session answers nothing."""
    summary = seen.summary
    if not seen.counts.sent:
        yield "no packet left this host"
    elif not seen.counts.answered:
        ignored = [text for name, text in IGNORED.items() if summary.get(name) and name != "foreign"]
        if ignored:
            why = "; ".join(ignored)
        elif summary.get("port_unreachable"):
            why = "nobody listens on that port there (ICMP port unreachable)"
        elif summary.get("unreachable"):
            why = "it cannot be reached (ICMP destination unreachable)"
        else:
            why = (
                "nobody reflects there, it does not know this sender or its key, or a filter drops the packets; a "
                "reflector that is there would show whether all were lost"
            )
        yield f"no answer from {order.target}: {why}"


def _doubts(order: Order, seen: Evidence, *, complete: bool) -> Iterator[str]:
    """Reasons to rely less on the figures."""
    counts, summary = seen.counts, seen.summary
    if not complete and order.count:
        yield f"stopped after {count_of(counts.sent, 'packet')} of {order.count}"
    if counts.answered:
        for name, text in IGNORED.items():
            if summary.get(name):
                yield f"ignored: {summary[name]} {text}"
        if unreachable := summary.get("port_unreachable", 0) + summary.get("unreachable", 0):
            yield f"{unreachable} packets were answered with ICMP destination unreachable"
    if counts.unusable:
        yield (
            f"{count_of(counts.unusable, 'answer')} left the reflector before the packet arrived, or later than they "
            "came here: its clock was set, or its times are wrong; they count as answers, and no time is taken of them"
        )
    if seen.steps:
        yield (
            f"one clock was set against the other {seen.steps} times, by up to {duration(seen.step_ns)}: more than the "
            "delays of packets explain"
        )


def _doubts_of_host(order: Order, seen: Evidence) -> Iterator[str]:
    """The same, as far as this host is their cause."""
    summary = seen.summary
    moved = abs(summary.get("clock_moved_ns", 0))
    if moved > _SET_NS + _STEERING * max(order.count, seen.counts.sent) * order.period_ns:
        yield f"this host's clock was set meanwhile, by {duration(moved)}: round trips under way are wrong by as much"
    if dropped := summary.get("dropped", 0):
        yield f"this host dropped {count_of(dropped, 'answer')}; they count as lost"
    if refused := summary.get("refused", 0):
        yield f"this host refused {count_of(refused, 'packet')} for want of room; each was sent a period later"
    if left_out := summary.get("left_out", 0):
        yield f"{count_of(left_out, 'packet')} left out, as this host held the program up for more than a second"
    if seen.own_times:
        yield f"{count_of(seen.own_times, 'time')} of {seen.all_times} taken by the program, not by the kernel"
    if seen.late_ns > order.period_ns:
        yield (
            f"packets left up to {duration(seen.late_ns)} late, more than the period of {duration(order.period_ns)}"
        )
