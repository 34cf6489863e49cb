"""Advice where a bound exceeds a limit: which port it is lost at, and what single change would mend it.

Every suggestion is proved: the network with that change is bounded again, by the same method, and what is said of it is
what came out. Of each knob the least change that mends is looked for; one whose greatest change does not mend is
passed by.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from wiregauge._native import read_quantity
from wiregauge.bounds.analysing import Answer, Judged, NoAnswerError, bound
from wiregauge.bounds.knobs import Knob, Value, knobs_of
from wiregauge.bounds.networks import Source
from wiregauge.bounds.telling import Tell, silent
from wiregauge.config import TestError, reading
from wiregauge.config.groups import expanded
from wiregauge.config.structure import line_of, local

__all__ = ["Advice", "advice_json", "advise", "show_advice", "with_deadlines"]

_MOST_SHOWN: Final = 10
_MOST_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was bounded: the delay of the flow with it, s, and how many limits are still exceeded."""

    kind: str
    element: str
    before: str
    after: str
    factor: float
    delay: float
    still_exceeded: int


@dataclass(frozen=True, slots=True)
class Port:
    """Where most of a bound comes from: its part of it, s, and the flows that meet there."""

    server: str
    delay: float
    flows: tuple[str, ...]


@dataclass(slots=True)
class Exceeded:
    """A limit that a bound exceeds, s, and what mends it: the best first."""

    flow: str
    target: str
    at_most: float
    written: str
    line: int
    delay: float | None
    port: Port | None
    changes: list[Change] = field(default_factory=list)
    nearest: Change | None = None
    """Where nothing mends it, the change that comes nearest."""


@dataclass(slots=True)
class Advice:
    """What is exceeded, and what would mend it."""

    exceeded: list[Exceeded]
    tried: int = 0
    """Networks that were bounded."""
    ended: bool = True
    """Whether every knob was tried, and not only those for which there was time."""


def with_deadlines(source: Source, path: Path) -> Source:
    """A test whose flows' deadlines are limits of their longest latency, too; raises `TestError`."""
    if source.format != "plan":
        return source
    root = expanded(reading.parse(reading.read(path), source.file), source.file).root
    parts = json.loads(source.as_json)
    for node in root.iter("*"):
        if local(node) == "flow" and (deadline := node.get("deadline")) is not None:
            parts["limits"].append(
                {
                    "flow": int(str(node.get("id"))),
                    "measure": "latency.max",
                    "bound": "at-most",
                    "value": read_quantity("time", deadline) / 1000,
                    "written": f"deadline {deadline}",
                    "line": line_of(node),
                }
            )
    return replace(source, as_json=json.dumps(parts))


def advise(
    path: Path,
    source: Source,
    answer: Answer,
    *,
    seconds: float,
    run: int = 0,
    tell: Tell = silent,
    clock: Callable[[], float] = time.monotonic,
) -> Advice:
    """Looks for single changes that keep the limits which the bounds of `answer` exceed; `source` has these limits.

    Raises `TestError` for what is no test and no physical network.
    """
    return _Advising(path, source, answer, seconds, run, tell, clock).advice()


class _Advising:
    def __init__(
        self,
        path: Path,
        source: Source,
        answer: Answer,
        seconds: float,
        run: int,
        tell: Tell,
        clock: Callable[[], float],
    ) -> None:
        self._path, self._source, self._answer, self._run = path, source, answer, run
        self._tell, self._clock = tell, clock
        self._begin = clock()
        self._seconds = seconds
        self._limits: list[dict[str, Any]] | None = json.loads(source.as_json).get("limits")
        self._tried = 0
        self._known: dict[str, Answer | None] = {}

    def advice(self) -> Advice:
        exceeded = [self._exceeded(limit) for limit in self._answer.limits if not limit.kept]
        found = Advice(exceeded)
        jobs = [(one, knob) for one in exceeded for knob in self._knobs(one)]
        for done, (one, knob) in enumerate(jobs):
            if self._clock() - self._begin > self._seconds:
                found.ended = False
                break
            self._tell(done / len(jobs))
            self._turn(one, knob)
        for one in exceeded:
            one.changes.sort(key=lambda change: (change.still_exceeded, change.factor, change.delay))
        self._tell(1.0)
        found.tried = self._tried
        return found

    def _exceeded(self, limit: Judged) -> Exceeded:
        return Exceeded(
            limit.flow,
            limit.target,
            limit.at_most,
            limit.written,
            limit.line,
            limit.delay,
            self._port(limit),
        )

    def _way(self, flow: str, target: str) -> tuple[str, ...]:
        return next(
            (
                one.path
                for own in self._answer.flows
                for one in own.targets
                if (own.flow, one.target) == (flow, target)
            ),
            (),
        )

    def _port(self, limit: Judged) -> Port | None:
        """By total flow analysis, which alone says what each port contributes."""
        grouping = self._answer.grouping == "on"
        try:
            total = bound(self._source, "tfa", multiplexing=self._answer.multiplexing, grouping=grouping)
        except (TestError, NoAnswerError):
            return None
        for flow in total.flows:
            for target in flow.targets:
                if (flow.flow, target.target) == (limit.flow, limit.target) and target.hops:
                    place = max(range(len(target.hops)), key=target.hops.__getitem__)
                    server = target.path[place]
                    return Port(server, target.hops[place], tuple(self._at(server)))
        return None

    def _at(self, server: str) -> Iterator[str]:
        for flow in self._answer.flows:
            if any(server in target.path for target in flow.targets):
                yield flow.flow

    def _knobs(self, one: Exceeded) -> list[Knob]:
        """Those of the flow, of its way, and of the flows that it meets; where it loses most first."""
        way = self._way(one.flow, one.target)
        hardest = [one.port.server] if one.port is not None else []
        ordered = [*hardest, *(server for server in way if server not in hardest)]
        flows = dict.fromkeys([one.flow, *(flow for server in ordered for flow in self._at(server))])
        return [
            knob for knob in knobs_of(self._path, self._source, list(flows), ordered, self._run) if knob.count
        ]

    def _bounded(self, value: Value) -> Answer | None:
        """The bounds with a value; None where it is not allowed or has none."""
        try:
            source = self._limited(value.source())
        except TestError:
            return None
        if source.as_json in self._known:
            return self._known[source.as_json]
        self._tried += 1
        try:
            answer = bound(
                source,
                self._answer.method,
                multiplexing=self._answer.multiplexing,
                grouping=self._answer.grouping == "on",
                arithmetic=self._answer.arithmetic,
            )
        except (TestError, NoAnswerError):
            answer = None
        if len(self._known) < 10_000:
            self._known[source.as_json] = answer
        return answer

    def _limited(self, source: Source) -> Source:
        """With the limits that are judged, deadlines among them."""
        if self._limits is None or source.format != "plan":
            return source
        return replace(source, as_json=json.dumps({**json.loads(source.as_json), "limits": self._limits}))

    def _change(self, one: Exceeded, knob: Knob, index: int) -> Change | None:
        value = knob.at(index)
        answer = self._bounded(value)
        if answer is None:
            return None
        own = [judged for judged in answer.limits if (judged.flow, judged.target) == (one.flow, one.target)]
        delays = [judged.delay for judged in own]
        if not delays or any(delay is None for delay in delays):
            return None
        delay = max(delay for delay in delays if delay is not None)
        still = sum(not judged.kept for judged in answer.limits)
        return Change(knob.kind, knob.element, knob.before, value.text, value.factor, delay, still)

    def _turn(self, one: Exceeded, knob: Knob) -> None:
        """The least change of a knob that keeps this limit, if any does."""

        def mends(change: Change | None) -> bool:
            if change is None:
                return False
            others = sum(not judged.kept for judged in self._answer.limits)
            return change.delay <= one.at_most and change.still_exceeded < others

        if not knob.ascending:
            changes = [self._change(one, knob, index) for index in range(knob.count)]
            kept = next((change for change in changes if change is not None and mends(change)), None)
            self._take(one, kept, changes)
            return
        # The greatest change that is allowed: what is not, such as too short a frame, lies at the far end.
        low, high = 0, knob.count - 1
        last = self._change(one, knob, high)
        while last is None and high > low:
            high = (low + high) // 2
            last = self._change(one, knob, high)
        if not mends(last):
            self._take(one, None, [last])
            return
        best = last
        while low < high:
            middle = (low + high) // 2
            change = self._change(one, knob, middle)
            if mends(change):
                high, best = middle, change
            else:
                low = middle + 1
        self._take(one, best, [])

    def _take(self, one: Exceeded, kept: Change | None, others: Sequence[Change | None]) -> None:
        if kept is not None:
            one.changes.append(kept)
        for change in others:
            if change is not None and (one.nearest is None or change.delay < one.nearest.delay):
                one.nearest = change


def advice_json(advice: Advice) -> dict[str, Any]:
    """In the form of `wiregauge bounds --advise --json`; times in s."""

    def change(one: Change) -> dict[str, Any]:
        return {
            "kind": one.kind,
            "element": one.element,
            "from": one.before,
            "to": one.after,
            "factor": one.factor,
            "delay": one.delay,
            "still_exceeded": one.still_exceeded,
        }

    return {
        "tried": advice.tried,
        "ended": advice.ended,
        "exceeded": [
            {
                "flow": one.flow,
                "target": one.target,
                "at_most": one.at_most,
                "written": one.written,
                "line": one.line,
                "delay": one.delay,
                "port": None
                if one.port is None
                else {"server": one.port.server, "delay": one.port.delay, "flows": list(one.port.flows)},
                "changes": [change(one) for one in one.changes],
                "nearest": None if one.nearest is None or one.changes else change(one.nearest),
            }
            for one in advice.exceeded
        ],
    }


def show_advice(advice: Advice, console: Console) -> None:
    """Which limit is exceeded, where, and what single changes mend it."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if not advice.exceeded:
        say("Advice: every limit is kept; nothing needs to be changed")
        return
    for one in advice.exceeded:
        delay = "no bound" if one.delay is None else f"a bound of {1e6 * one.delay:.3f} us"
        if one.delay is not None and one.delay <= one.at_most:
            delay += " for frames that find room, others may be lost"
        say(
            f"\nflow {one.flow} to {one.target} has {delay}, and {1e6 * one.at_most:.3f} us are allowed "
            f"(line {one.line})"
        )
        if one.port is not None:
            named = ", ".join(one.port.flows[:_MOST_NAMED])
            more = len(one.port.flows) - _MOST_NAMED
            rest = f" and {more} more" if more > 0 else ""
            share = f", {100 * one.port.delay / one.delay:.0f} %" if one.delay else ""
            say(
                f"  most of it at {one.port.server} ({1e6 * one.port.delay:.3f} us{share}), where flows {named}{rest} "
                "meet"
            )
        for change in one.changes[:_MOST_SHOWN]:
            say(f"  {_text(change)}")
        if len(one.changes) > _MOST_SHOWN:
            say(f"  and {len(one.changes) - _MOST_SHOWN} other changes, in --json")
        if not one.changes:
            nearest = "" if one.nearest is None else f"; nearest comes {_text(one.nearest)}"
            say(f"  no single change mends it{nearest}")
    ended = "" if advice.ended else "; time was up before every change was tried (--time)"
    say(f"\n{advice.tried} networks were bounded{ended}")


def _text(change: Change) -> str:
    still = f"; limits exceeded still: {change.still_exceeded}" if change.still_exceeded else ""
    told = f"{change.kind} of {change.element}: {change.before} -> {change.after}"
    return f"{told} (bound {1e6 * change.delay:.3f} us{still})"
