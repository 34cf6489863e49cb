"""How far a network is from its limits: the greatest change of each parameter with which every limit still holds.

Where limits are broken already, the smallest change of a single parameter with which every limit holds. Every value
that is told was bounded, and so was the next one, which is not kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct, field
from rich.console import Console

from wiregauge.bounds.analysing import Answer, NoAnswerError
from wiregauge.bounds.best import bound
from wiregauge.bounds.networks import Source
from wiregauge.bounds.parameters import (
    EACH,
    KINDS,
    RESOLUTION,
    Parameter,
    Parameters,
    Step,
    parameters_of,
    together,
)
from wiregauge.bounds.printing import ranked, show_time
from wiregauge.bounds.telling import Tell, silent
from wiregauge.config import TestError

__all__ = [
    "Room",
    "Sensitivity",
    "heads",
    "rows",
    "sensitivity",
    "sensitivity_json",
    "show_sensitivity",
    "summary",
]

_MOST_SHOWN: Final = 5
"""The most rows of a kind that the text shows."""


class Room(Struct, frozen=True):
    """What a parameter may become (or must), and what breaks with the next value."""

    kind: str
    element: str
    before: str
    after: str | None
    """The furthest value with which every limit holds; of broken limits the nearest. None: there is no such value."""
    factor: float | None
    """The ratio to the present value; None for delays."""
    added: float | None
    """What is added to a delay, s; None for other parameters."""
    breaks: str | None
    """What is not kept with the next value; None where the last value that is tried keeps all."""


class Sensitivity(Struct):
    """The room of every parameter that was tried."""

    kept: bool
    """Whether every limit holds as it is; else rooms are what must change."""
    limits: int
    rooms: list[Room] = field(default_factory=list)
    known: int = 0
    """The number of parameters."""
    networks: int = 0
    """The number of networks that were bounded."""

    @property
    def ended(self) -> bool:
        """Whether every parameter was tried before the time was up."""
        return len(self.rooms) == self.known


def sensitivity(
    source: Source,
    answer: Answer,
    *,
    seconds: float,
    tell: Tell = silent,
    clock: Callable[[], float] = time.monotonic,
) -> Sensitivity:
    """Looks for the room of each parameter for at most `seconds`, those of flows nearest to their limits first."""
    found = Sensitivity(answer.kept, len(answer.limits))
    if not answer.limits:
        return found
    begin = clock()
    parameters = parameters_of(source, worse=answer.kept)
    if parameters is None:
        return found
    single = list(_wanted(parameters, answer))
    kinds: dict[str, list[Parameter]] = {}
    for parameter in single:
        kinds.setdefault(parameter.kind, []).append(parameter)
    wanted = [*(together(own) for own in kinds.values() if len(own) > 1), *single]
    found.known = len(wanted)
    trying = _Trying(parameters, answer)
    for done, parameter in enumerate(wanted):
        if clock() - begin > seconds:
            break
        tell(done / len(wanted))
        found.rooms.append(trying.room(parameter))
    found.networks = trying.networks
    if found.ended:
        tell(1.0)
    return found


def _wanted(parameters: Parameters, answer: Answer) -> Iterator[Parameter]:
    """Every parameter once: along the paths of the limits, the nearest or furthest exceeded first, then the others."""
    seen: set[tuple[str, str]] = set()
    for flow, target, _ in ranked(answer):
        own = [
            *parameters.of_flow(flow),
            *(one for server in target.path for one in parameters.of_server(server)),
        ]
        for parameter in own:
            key = parameter.kind, parameter.element
            if key not in seen and parameter.count:
                seen.add(key)
                yield parameter


class _Trying:
    def __init__(self, parameters: Parameters, answer: Answer) -> None:
        self._answer, self._parameters = answer, parameters
        self.networks = 0

    def room(self, parameter: Parameter) -> Room:
        """The room of a parameter, by halving."""
        return self._most(parameter) if self._answer.kept else self._least(parameter)

    def _most(self, parameter: Parameter) -> Room:
        """The furthest value with which every limit holds."""
        last = parameter.at(parameter.count - 1)
        if (broken := self._broken(last)) is None:
            return _room(parameter, last, None)
        low, high = -1, parameter.count - 1
        while high - low > 1:
            middle = (low + high) // 2
            why = self._broken(parameter.at(middle))
            if why is None:
                low = middle
            else:
                high, broken = middle, why
        return _room(parameter, parameter.at(low) if low >= 0 else None, broken)

    def _least(self, parameter: Parameter) -> Room:
        """The nearest value with which every limit holds."""
        if (broken := self._broken(parameter.at(parameter.count - 1))) is not None:
            return _room(parameter, None, broken)
        low, high = -1, parameter.count - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._broken(parameter.at(middle)) is None:
                high = middle
            else:
                low = middle
        return _room(parameter, parameter.at(high), None)

    def _broken(self, step: Step) -> str | None:
        """What is not kept with a value; None where every limit is."""
        self.networks += 1
        asked = self._answer
        try:
            answer = bound(
                self._parameters.source(step.change),
                asked.method,
                multiplexing=asked.multiplexing,
                grouping=asked.grouping == "on",
                arithmetic=asked.arithmetic,
                phases=asked.phases,
            )
        except TestError as error:
            return f"refused: {error.diagnostics[0].message}"
        except NoAnswerError as error:
            return str(error)
        if answer.kept:
            return None
        flow, target, limit = ranked(answer)[0]
        written = "its limit" if limit is None else limit.written
        if target.delay is None:
            return f"flow {flow} to {target.target}: no bound"
        within = limit is not None and target.delay <= limit.at_most
        why = "frames may be lost" if within else f"{show_time(target.delay, answer.time_unit)} of {written}"
        return f"flow {flow} to {target.target}: {why}"


def _room(parameter: Parameter, step: Step | None, breaks: str | None) -> Room:
    return Room(
        parameter.kind,
        parameter.element,
        parameter.before,
        None if step is None else step.text,
        None if step is None else step.factor,
        None if step is None else step.added,
        breaks,
    )


def sensitivity_json(found: Sensitivity) -> dict[str, Any]:
    """The room of each parameter in the form of `wiregauge bounds --sensitivity --json`; times in s."""
    return {
        "kept": found.kept,
        "known": found.known,
        "networks": found.networks,
        "ended": found.ended,
        "resolution": RESOLUTION,
        "parameters": [
            {
                "kind": one.kind,
                "element": one.element,
                "from": one.before,
                "to": one.after,
                "factor": one.factor,
                "added": one.added,
                "breaks": one.breaks,
            }
            for one in found.rooms
        ],
    }


def summary(found: Sensitivity) -> str:
    """A sentence on what was asked and tried."""
    if not found.limits:
        return "the file sets no limit for a latency, so no change can break one; give a flow a limit or a deadline"
    if not found.known:
        return "no parameter of this file is known that could change"
    what = (
        "how far a single parameter may change while every limit holds"
        if found.kept
        else "how far a single parameter must change so that every limit holds"
    )
    ended = "" if found.ended else "; time was up, and --time-limit gives the others more"
    return (
        f"{what}, in steps of {100 * RESOLUTION:g} %, whole octets or BAGs: {len(found.rooms)} of {found.known} "
        f"parameters were tried, {found.networks} networks were bounded{ended}"
    )


def by_kind(found: Sensitivity) -> dict[str, list[Room]]:
    """The parameters by kind, the one with the least room first, or that must change least."""
    return {
        kind: sorted(
            (one for one in found.rooms if one.kind == kind), key=lambda one: _size(one, kept=found.kept)
        )
        for kind in dict.fromkeys(one.kind for one in found.rooms)
    }


def heads(found: Sensitivity) -> tuple[str, ...]:
    """The heads of `rows`."""
    become, breaks = ("may become", "then breaks") if found.kept else ("must become", "breaks still")
    return "parameter", "of", "now", become, "change", breaks


def rows(found: Sensitivity) -> list[tuple[str, ...]]:
    """A line for each parameter under `heads`, by kind."""
    return [
        (one.kind, one.element, one.before, after_text(one, found), change_text(one), one.breaks or "-")
        for own in by_kind(found).values()
        for one in own
    ]


def after_text(one: Room, found: Sensitivity) -> str:
    """The value that a parameter may have, or that none is left."""
    return one.after or ("no other" if found.kept else "none helps")


def _size(one: Room, *, kept: bool) -> tuple[bool, bool, float]:
    """A sort key: all together first, then by the size of the change; no possible change is the smallest if limits hold
    (`kept`), and else the greatest.
    """
    alone = one.element != KINDS[one.kind][1]
    if one.after is None:
        return alone, not kept, 0.0
    if one.added is not None:
        return alone, False, abs(one.added)
    factor = one.factor or 1.0
    return alone, False, max(factor, 1 / factor)


def change_text(one: Room) -> str:
    """The change of a parameter as a ratio, or as what is added to a delay."""
    if one.after is None:
        return "-"
    if one.added is not None:
        return f"{one.added * 1e6:+.3f} µs"
    return f"x {one.factor:.4g}"


def show_sensitivity(found: Sensitivity, console: Console) -> None:
    """Prints the parameters with the least room of each kind, a line each."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(f"Sensitivity: {summary(found)}")
    for kind, own in by_kind(found).items():
        say(f"{KINDS[kind][0]}:")
        told = (
            [one for one in own if one.breaks is not None]
            if found.kept
            else [one for one in own if one.after]
        )
        for one in told[:_MOST_SHOWN]:
            then = f"; then {one.breaks}" if found.kept else ""
            each = (one.after or "").startswith(EACH)
            change = f" ({change_text(one)})" if one.after and not each else ""
            value = after_text(one, found) if each else f"{one.before} -> {after_text(one, found)}"
            say(f"  {one.element}: {value}{change}{then}")
        if (more := len(told) - _MOST_SHOWN) > 0:
            say(f"  {more} more with {'more room' if found.kept else 'greater changes'}, in --json")
        if left := len(own) - len(told):
            what = (
                "every value that was tried keeps all limits"
                if found.kept
                else "no value that was tried helps"
            )
            say(f"  {left} where {what}")
