"""Advice where a bound exceeds a limit: the port that adds most, and single changes that cure it.

Every suggestion is proved by bounding the changed network with the same method. Each knob's least change that
keeps the limit is searched; a knob whose greatest change does not keep it is skipped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from wiregauge._native import read_quantity
from wiregauge.bounds.analysing import Answer, Judged, NoAnswerError, total_flow
from wiregauge.bounds.best import bound
from wiregauge.bounds.knobs import Knob, Value, knobs_of
from wiregauge.bounds.networks import Source
from wiregauge.bounds.telling import Tell, silent
from wiregauge.config import TestError, reading
from wiregauge.config.groups import expanded
from wiregauge.config.structure import line_of, local

__all__ = ["Advice", "Change", "Exceeded", "advice_json", "advise", "show_advice", "with_deadlines"]

_MOST_SHOWN: Final = 10
_MOST_NAMED: Final = 8


class Change(Struct, frozen=True):
    """A change and the bound with it: the flow's delay, s, and the number of limits that are still exceeded."""

    kind: str
    element: str
    before: str
    after: str
    factor: float
    delay: float
    still_exceeded: int


class Port(Struct, frozen=True):
    """The port that adds most to a bound: the delay there, s, and the flows that share it."""

    server: str
    delay: float
    flows: tuple[str, ...]


class Exceeded(Struct):
    """A limit, s, that a bound exceeds, with the changes that cure it, the best first."""

    flow: str
    target: str
    at_most: float
    written: str
    line: int
    delay: float | None
    port: Port | None
    changes: list[Change] = field(default_factory=list)
    nearest: Change | None = None
    """The tried change that comes nearest to the limit, where none keeps it."""
    known: int = 0
    """The number of knobs that could be tried."""
    tried: int = 0
    """The number of knobs that were tried in the time allowed."""


class Advice(Struct):
    """The exceeded limits and the changes that would keep them."""

    exceeded: list[Exceeded]
    tried: int = 0
    """The number of networks that were bounded."""

    @property
    def ended(self) -> bool:
        """Whether every knob was tried before the time was up."""
        return all(one.tried == one.known for one in self.exceeded)


def with_deadlines(source: Source, path: Path) -> Source:
    """The source with every flow's deadline added as a limit of its longest latency; raises `TestError`."""
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

    Raises `TestError` where the source is neither a test nor a physical network.
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
        self._source, self._answer = source, answer
        self._all = knobs_of(path, source, run) if not answer.kept else None
        self._tell, self._clock = tell, clock
        self._begin = clock()
        self._seconds = seconds
        self._limits: list[dict[str, Any]] | None = json.loads(source.as_json).get("limits")
        self._tried = 0
        self._known: dict[str, Answer | None] = {}

    def advice(self) -> Advice:
        exceeded = [self._exceeded(limit) for limit in self._answer.limits if not limit.kept]
        found = Advice(exceeded)
        jobs = self._jobs(exceeded)
        for done, (one, knob) in enumerate(jobs):
            if self._clock() - self._begin > self._seconds:
                break
            self._tell(done / len(jobs))
            self._turn(one, knob)
            one.tried += 1
        for one in exceeded:
            one.changes.sort(key=lambda change: (change.still_exceeded, change.factor, change.delay))
        if found.ended:
            self._tell(1.0)
        found.tried = self._tried
        return found

    def _jobs(self, exceeded: Sequence[Exceeded]) -> list[tuple[Exceeded, Knob]]:
        """The knobs to try, the best of every limit first, so that running out of time affects all limits alike."""
        own = [self._knobs(one) for one in exceeded]
        for one, knobs in zip(exceeded, own, strict=True):
            one.known = len(knobs)
        turns = zip_longest(
            *([(one, knob) for knob in knobs] for one, knobs in zip(exceeded, own, strict=True))
        )
        return [job for turn in turns for job in turn if job is not None]

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

    @cached_property
    def _total(self) -> Answer | None:
        return total_flow(self._source, self._answer)

    def _port(self, limit: Judged) -> Port | None:
        """The port that adds most to a bound, by total flow analysis, the only method with a delay for each port."""
        total = self._total
        if total is None:
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
        """The knobs of the flow, of its path and of the flows that share it, starting at the port that adds most."""
        way = self._way(one.flow, one.target)
        hardest = [one.port.server] if one.port is not None else []
        ordered = [*hardest, *(server for server in way if server not in hardest)]
        flows = dict.fromkeys([one.flow, *(flow for server in ordered for flow in self._at(server))])
        if self._all is None:
            return []
        return [knob for knob in self._all.knobs(list(flows), ordered) if knob.count]

    def _bounded(self, value: Value) -> Answer | None:
        """The bounds of the network with a value; None where the value is not allowed or has no bounds."""
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
                phases=self._answer.phases,
            )
        except (TestError, NoAnswerError):
            answer = None
        if len(self._known) < 10_000:
            self._known[source.as_json] = answer
        return answer

    def _limited(self, source: Source) -> Source:
        """The source with the limits that are judged, deadlines included."""
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
        """Finds the least change of a knob that keeps this limit, if there is one."""

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
        # Search for the greatest allowed change; those not allowed, such as too short frames, are at the end.
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
    """The advice in the form of `wiregauge bounds --advise --json`; times in s."""

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
                "known": one.known,
                "tried": one.tried,
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
    """Prints each exceeded limit, its port, and the single changes that cure it."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if not advice.exceeded:
        say("Advice: every limit is kept; nothing needs to be changed")
        return
    for one in advice.exceeded:
        delay = "no bound" if one.delay is None else f"a bound of {1e6 * one.delay:.3f} µs"
        if one.delay is not None and one.delay <= one.at_most:
            delay += " for frames that find room, others may be lost"
        say("")
        say(
            f"flow {one.flow} to {one.target} has {delay}, and {1e6 * one.at_most:.3f} µs are allowed "
            f"(line {one.line})"
        )
        if one.port is not None:
            named = ", ".join(one.port.flows[:_MOST_NAMED])
            more = len(one.port.flows) - _MOST_NAMED
            rest = f" and {more} more" if more > 0 else ""
            share = f", {100 * one.port.delay / one.delay:.0f} %" if one.delay else ""
            say(
                f"  most of it at {one.port.server} ({1e6 * one.port.delay:.3f} µs{share}), where flows {named}{rest} "
                "meet"
            )
        for change in one.changes[:_MOST_SHOWN]:
            say(f"  {_text(change)}")
        if len(one.changes) > _MOST_SHOWN:
            say(f"  and {len(one.changes) - _MOST_SHOWN} other changes, in --json")
        if not one.changes:
            nearest = "" if one.nearest is None else f"; nearest comes {_text(one.nearest)}"
            say(f"  {_mended_by_none(one)}{nearest}")
        elif one.tried < one.known:
            say(f"  {one.tried} of {one.known} changes were tried; --time-limit gives the others time")
    tried, known = (
        sum(counts) for counts in zip(*((one.tried, one.known) for one in advice.exceeded), strict=True)
    )
    ended = "" if advice.ended else "; time was up, and --time-limit gives the others more"
    say("")
    say(f"{tried} of {known} changes were tried, {advice.tried} networks were bounded{ended}")


def _mended_by_none(one: Exceeded) -> str:
    """The sentence for a limit that no tried change keeps; it claims nothing of changes that were not tried."""
    if not one.known:
        return "nothing is known here that could be changed for it"
    if not one.tried:
        return f"none of its {one.known} changes was tried: time was up; --time-limit gives them more"
    if one.tried < one.known:
        return (
            f"none of the {one.tried} changes mends it that were tried of {one.known}: time was up for the others; "
            "--time-limit gives them more"
        )
    return f"no single change mends it: all {one.known} were tried"


def _text(change: Change) -> str:
    still = f"; limits exceeded still: {change.still_exceeded}" if change.still_exceeded else ""
    told = f"{change.kind} of {change.element}: {change.before} -> {change.after}"
    return f"{told} (bound {1e6 * change.delay:.3f} µs{still})"
