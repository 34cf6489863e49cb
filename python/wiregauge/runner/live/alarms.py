"""Alarms: limits compared with the live figures of a run, second by second, while it goes on.

A limit of the test judges the finished run, by every message. An alarm sees provisional figures, and reports a
violation at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, to_builtins

from wiregauge.files import nearest
from wiregauge.plan import Run
from wiregauge.plan.quantity import QuantityError, share, time_ns
from wiregauge.records.live import FlowNow, RunNow
from wiregauge.runner.stopping import Interrupted

__all__ = ["AlarmError", "AlarmExit", "AlarmLimit", "Alarms", "Incident"]

MOST_KEPT: Final = 1_000
"""Number of incidents that a run's entry lists; further ones are counted only."""
_WRITTEN: Final = re.compile(r"\s*([a-z0-9_.-]+)\s*(<=|>=)\s*(\S.*?)\s*")
_COUNTS: Final = ("lost", "duplicated")
_TIMES: Final = ("p50", "p99", "mean", "max")
MEASURES: Final = (
    *_COUNTS,
    "loss",
    *(f"{name}.{statistic}" for name in ("latency", "rtt") for statistic in _TIMES),
)


class AlarmError(ValueError):
    """The text is no alarm; the message says what to write."""


class AlarmExit(Interrupted):
    """An alarm was raised that ends the run."""


class AlarmLimit(Struct, frozen=True):
    """A measure of every flow that has it, and the most it may be: messages, a share, or ns."""

    measure: str
    most: float
    written: str

    @classmethod
    def read(cls, text: str) -> AlarmLimit:
        """Parses a limit such as `latency.max <= 2ms`. Raises AlarmError."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise AlarmError(
                f"'{text}': write a measure, <= and a value, for example 'latency.max <= 2ms' or 'lost <= 0'"
            )
        measure, sign, value = found[1], found[2], found[3]
        if measure not in MEASURES:
            raise AlarmError(
                f"'{text}': there are no live figures of {measure}{nearest(measure, MEASURES)}; there are "
                f"{', '.join(MEASURES)}. "
                "Other measures are judged by limits of the test when the run is over"
            )
        if sign == ">=":
            raise AlarmError(f"'{text}': an alarm says how much is too much; write <=")
        return cls(measure, _value(measure, value, text), f"{measure} <= {value}")

    def is_of(self, run: Run) -> bool:
        """Whether a flow of this run has live figures of the measure."""
        relayed = {relay.flow for relay in run.relays}
        tested = [flow.id for flow in run.flows if not flow.exchange]
        name = self.measure.partition(".")[0]
        if name == "rtt":
            return any(flow in relayed for flow in tested)
        if name == "latency":
            planned = [send.flow for send in run.sends if send.pacing != "gap"]
            return any(flow in planned and flow not in relayed for flow in tested)
        return bool(tested)

    def observed(self, flow: FlowNow) -> float | None:
        """The figure it limits; None where the flow has none at the moment."""
        name, _, statistic = self.measure.partition(".")
        if name == "lost":
            return flow.lost
        if name == "duplicated":
            return flow.repeats
        if name == "loss":
            return flow.lost / flow.sent if flow.sent else None
        if name != flow.measure:
            return None
        found = {"p50": flow.p50_ns, "p99": flow.p99_ns, "mean": flow.mean_ns, "max": flow.max_ns}
        return found[statistic]

    def in_words(self, value: float) -> str:
        """A figure with its unit."""
        if self.measure in _COUNTS:
            return f"{value:.0f}"
        if self.measure == "loss":
            return f"{100 * value:.3g} %"
        return duration_text(value)


def duration_text(ns: float) -> str:
    """A time with three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _value(measure: str, value: str, text: str) -> float:
    try:
        if measure in _COUNTS:
            if not re.fullmatch(r"\d{1,18}", value):
                raise AlarmError(f"'{text}': {measure} is a number of messages; write a whole number")
            return float(value)
        return share(value) if measure == "loss" else time_ns(value)
    except QuantityError as error:
        raise AlarmError(f"'{text}': {error}") from error


class Incident(Struct):
    """A period of seconds in which a flow exceeded a limit; for counts, in which they rose."""

    alarm: str
    measure: str
    flow: int
    source: str
    destination: str
    unit: Literal["messages", "share", "ns"]
    limit: float
    first: float
    """The figure with which it began."""
    worst: float
    begin_s: float
    """Start of the incident, s of the run's time."""
    end_s: float
    records_dropped: int
    """Records that the instrument had lost by then: some apparent losses may be theirs."""


class Alarms:
    """Holds the limits against each second of one run."""

    def __init__(self, limits: Sequence[AlarmLimit]) -> None:
        self.limits = tuple(limits)
        self.kept: list[Incident] = []
        self.raised = 0
        self.raised_by: dict[str, int] = {limit.written: 0 for limit in self.limits}
        self._ongoing: dict[tuple[str, int], Incident] = {}
        self._before: dict[tuple[str, int], float] = {}

    @property
    def active(self) -> Mapping[tuple[str, int], Incident]:
        """Ongoing incidents by alarm and flow."""
        return self._ongoing

    def look(self, now: RunNow) -> list[tuple[AlarmLimit, Incident, FlowNow]]:
        """The limits newly exceeded in this second, each with its incident and flow."""
        fresh = []
        for limit in self.limits:
            for flow in now.flows:
                value = limit.observed(flow)
                place = (limit.written, flow.flow)
                if not self._is_beyond(limit, place, value):
                    self._ongoing.pop(place, None)
                    continue
                assert value is not None
                going = self._ongoing.get(place)
                if going is not None:
                    going.worst, going.end_s = max(going.worst, value), now.seconds
                    continue
                fresh.append((limit, self._begun(limit, flow, value, now), flow))
        return fresh

    def _is_beyond(self, limit: AlarmLimit, place: tuple[str, int], value: float | None) -> bool:
        if value is None or math.isnan(value):
            return False
        before = self._before.get(place, 0.0)
        self._before[place] = value
        if value <= limit.most:
            return False
        # Losses never decrease: they are news only when the count grows.
        return limit.measure.partition(".")[0] in ("latency", "rtt") or value > before

    def _begun(self, limit: AlarmLimit, flow: FlowNow, value: float, now: RunNow) -> Incident:
        incident = Incident(
            limit.written,
            limit.measure,
            flow.flow,
            flow.source,
            flow.destination,
            "messages" if limit.measure in _COUNTS else "share" if limit.measure == "loss" else "ns",
            limit.most,
            value,
            value,
            now.seconds,
            now.seconds,
            now.dropped,
        )
        self._ongoing[limit.written, flow.flow] = incident
        self.raised += 1
        self.raised_by[limit.written] += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append(incident)
        return incident

    def as_json(self) -> dict[str, Any]:
        """The alarms as stored in the run's manifest entry."""
        return {
            "limits": [limit.written for limit in self.limits],
            "raised": self.raised,
            "incidents": [to_builtins(incident) for incident in self.kept],
        }


def sentence(limit: AlarmLimit, incident: Incident, flow: FlowNow) -> str:
    """One line: flow, value, limit, time, and caveats of the value."""
    text = (
        f"alarm at {incident.begin_s:.0f} s: {flow.label}: {limit.measure} is {limit.in_words(incident.first)}, "
        f"the limit is {limit.written}"
    )
    if limit.measure.startswith("latency") and flow.late_ns > limit.most / 10:
        text += f"; messages were sent up to {duration_text(flow.late_ns)} late"
    if incident.records_dropped and limit.measure in ("lost", "loss"):
        text += f"; the instrument lost {incident.records_dropped} records, which may be these"
    return text
