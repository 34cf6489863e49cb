"""Bounds of one network by every method that fits it, and the least of all for each flow.

Each bound holds by itself, so the least of them holds as well, under the assumptions of all that gave one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.bounds.analysing import (
    Answer,
    FlowBound,
    Judged,
    LeftOut,
    NoAnswerError,
    TargetBound,
    bound_by,
    decoded,
)
from wiregauge.bounds.networks import Source
from wiregauge.config import TestError

__all__ = ["BEST", "bound", "every_answer"]

BEST: Final = "best"
"""The method that is the least of all others for each flow."""
_MOST_STEPS: Final = 2_000
"""The most servers, summed over all paths, for which linear programmes are solved; more takes too long."""


class _Way(Struct, frozen=True):
    """A method with an order of service and grouping."""

    method: str
    multiplexing: str
    grouping: bool

    @property
    def name(self) -> str:
        """The way as an answer names it (`Answer.as_text`)."""
        return f"{self.method} {self.multiplexing}, grouping {'on' if self.grouping else 'off'}"


class _Every(Struct):
    answers: list[Answer] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    errors: list[TestError | NoAnswerError] = field(default_factory=list)


def bound(source: Source, method: str = "tfa", **question: Any) -> Answer:
    """Bounds a network by a method, or by the least of all for each flow (`best`).

    Options that are not given (`multiplexing`, `grouping`) are taken from its file. Raises `TestError` where the
    network or the question is wrong, `NoAnswerError` where its cyclic dependencies have no proved solution.
    """
    if method != BEST:
        return bound_by(source, method, **question)
    return _least(_every(source, question))


def every_answer(source: Source, asked: Answer) -> list[Answer]:
    """The given answer, and those of the other methods that fit this network and its order of service."""
    question = {
        "multiplexing": asked.multiplexing,
        "grouping": asked.grouping == "on",
        "phases": asked.phases,
    }
    return [*([] if asked.method == BEST else [asked]), *_every(source, question).answers]


def _every(source: Source, question: Mapping[str, Any]) -> _Every:
    """The answers of every way that fits; raises the error of the first where none does."""
    found = _Every()
    first = _asked(source, question, found)
    # Those that failed here are tried again below, each with all its options.
    found.left_out.clear()
    for way in _ways(source, first):
        if first is not None and way.name == first.as_text:
            continue
        if first is not None and way.method == "plp" and (steps := _steps(first)) > _MOST_STEPS:
            why = (
                f"the paths have {steps} servers together, and it takes too long for more than {_MOST_STEPS}"
            )
            found.left_out.append(LeftOut(way.name, why))
            continue
        own = {**question, "multiplexing": way.multiplexing, "grouping": way.grouping}
        _try(found, source, way.method, own, way.name)
    if not found.answers:
        raise found.errors[0]
    return found


def _asked(source: Source, question: Mapping[str, Any], found: _Every) -> Answer | None:
    """The first method that answers with the options of the question: what it chooses holds for every other method."""
    for method in ("tfa", "sfa", "plp", "pmoo"):
        _try(found, source, method, question, method)
        if found.answers:
            return found.answers[0]
    return None


def _try(found: _Every, source: Source, method: str, question: Mapping[str, Any], name: str) -> None:
    try:
        found.answers.append(bound_by(source, method, **question))
    except (TestError, NoAnswerError) as error:
        found.errors.append(error)
        said = error.diagnostics[0].message if isinstance(error, TestError) else str(error)
        found.left_out.append(LeftOut(name, said))


def _ways(source: Source, first: Answer | None) -> Iterator[_Way]:
    if first is None:
        return
    groupings = (True, False) if first.grouping == "on" else (False,)
    is_fifo = first.multiplexing == "fifo"
    for grouping in groupings:
        if is_fifo:
            yield _Way("tfa", "fifo", grouping)
            yield _Way("sfa", "fifo", grouping)
            # Bounds for any order of service also hold for first in, first out, not the other way round; and they need
            # servers that serve whenever something waits, which a file of output ports does not say.
            if source.format == "output-ports":
                continue
        else:
            yield _Way("tfa", "arbitrary", grouping)
        yield _Way("sfa", "arbitrary", grouping)
        yield _Way("pmoo", "arbitrary", grouping)
    if is_fifo:
        yield _Way("plp", "fifo", groupings[0])


def _steps(answer: Answer) -> int:
    return sum(len(target.path) for flow in answer.flows for target in flow.targets)


def _least(every: _Every) -> Answer:
    first, answers = every.answers[0], every.answers
    flows, winners = [], set()
    for place, flow in enumerate(first.flows):
        targets = []
        for k in range(len(flow.targets)):
            best = min(range(len(answers)), key=lambda one: _size(answers[one].flows[place].targets[k]))
            won = answers[best].flows[place].targets[k]
            if won.delay is not None:
                winners.add(best)
            targets.append(replace(won, method=None if won.delay is None else answers[best].as_text))
        flows.append(FlowBound(flow.flow, tuple(targets)))
    by = [answers[place] for place in sorted(winners or {0})]
    return decoded(_json(first, answers, flows, by, every.left_out), loses=first.loses)


def _json(
    first: Answer,
    answers: Sequence[Answer],
    flows: Sequence[FlowBound],
    by: Sequence[Answer],
    left_out: Sequence[LeftOut],
) -> dict[str, Any]:
    """The answer in the form of `wiregauge bounds --json`: what stands there of the winner, flow by flow."""
    written = {
        answer.as_text: {
            (flow["flow"], target["target"]): target
            for flow in answer.as_json["flows"]
            for target in flow["targets"]
        }
        for answer in answers
    }

    def target_json(flow: str, target: TargetBound) -> dict[str, Any]:
        own = written[target.method or first.as_text][flow, target.target]
        return own if target.method is None else {**own, "method": target.method}

    unbounded = [flow.flow for flow in flows if any(target.delay is None for target in flow.targets)]
    notes = [
        note
        for answer in by
        for note in answer.notes
        if not note.startswith(f"{answer.method} gives no bound for")
    ]
    if unbounded:
        notes.append(f"no method gives a bound for {', '.join(unbounded[:20])}")
    return {
        **first.as_json,
        "method": BEST,
        "assumptions": list(dict.fromkeys(text for answer in by for text in answer.assumptions)),
        "notes": list(dict.fromkeys(notes)),
        "flows": [
            {"flow": flow.flow, "targets": [target_json(flow.flow, target) for target in flow.targets]}
            for flow in flows
        ],
        "limits": [_limit(first, answers, place) for place in range(len(first.limits))],
        "left_out": [{"method": one.method, "reason": one.reason} for one in left_out],
    }


def _limit(first: Answer, answers: Sequence[Answer], place: int) -> dict[str, Any]:
    """A limit judged by the least bound; what may lose frames keeps none, in any answer."""
    judged: list[Judged] = [answer.limits[place] for answer in answers]
    least = min((one.delay for one in judged if one.delay is not None), default=None)
    return {
        **first.as_json["limits"][place],
        "delay": least,
        "kept": any(one.kept for one in judged),
    }


def _size(target: TargetBound) -> tuple[bool, Fraction | float]:
    if target.delay_exact is not None:
        return False, Fraction(target.delay_exact)
    return target.delay is None, target.delay or 0.0
