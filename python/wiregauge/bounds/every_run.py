"""Bounds of every run of a test: one analysis for each different network, and one answer over all.

A limit of a test applies to every run, so it is kept where the bounds of every run keep it. Repeats of a point, and
points whose networks have the same bounds, are bounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from rich.console import Console

from wiregauge.bounds.analysing import Answer, NoAnswerError
from wiregauge.bounds.best import bound
from wiregauge.bounds.networks import Source, in_run, run_name
from wiregauge.bounds.printing import BY_WHAT_ARRIVES, furthest, show_time
from wiregauge.config import TestError
from wiregauge.terminal import print_table

__all__ = [
    "RUN_HEADS",
    "Bounded",
    "bound_every",
    "run_rows",
    "runs_json",
    "runs_verdict",
    "show_runs",
    "worst_run",
]


class Bounded(Struct, frozen=True):
    """A network and its bounds."""

    source: Source
    answer: Answer

    @property
    def name(self) -> str:
        """The name of the first run of the network, with its point."""
        return run_name(self.source.runs[0], self.source.point) if self.source.runs else self.answer.name


def bound_every(sources: Sequence[Source], method: str = "tfa", **question: Any) -> list[Bounded]:
    """Bounds each network, as `bound` does; an error in one ends all and names its run."""
    found = []
    for source in sources:
        try:
            found.append(Bounded(source, bound(source, method, **question)))
        except (TestError, NoAnswerError) as error:
            if len(sources) == 1:
                raise
            run, point = source.runs[0], source.point
            if isinstance(error, TestError):
                raise in_run(error, run, point) from error
            raise NoAnswerError(f"in {run_name(run, point)}: {error}") from error
    return found


def worst_run(found: Sequence[Bounded]) -> Bounded:
    """The network furthest beyond its limits, or with the longest bound; the first of several."""
    return max(found, key=lambda one: furthest(one.answer))


def runs_json(found: Sequence[Bounded]) -> list[dict[str, Any]]:
    """Every network of a test, in the form of `runs` of `wiregauge bounds --json`."""
    return [
        {
            "runs": list(one.source.runs),
            "point": dict(one.source.point),
            "bounded": one.answer.bounded,
            "kept": one.answer.kept,
            **{key: one.answer.as_json[key] for key in ("notes", "flows", "servers", "limits")},
        }
        for one in found
        if one.source.runs
    ]


def runs_verdict(found: Sequence[Bounded]) -> str:
    """One line on the limits of every network of a test."""
    answers = [one.answer for one in found]
    limits = [limit for answer in answers for limit in answer.limits]
    broken = sum(not limit.kept for limit in limits)
    runs = sum(len(one.source.runs) for one in found)
    said = f"{runs} runs with {len(found)} different networks; "
    if not limits:
        return f"{said}no limit to keep"
    if broken:
        return f"{said}{broken} of {len(limits)} limits NOT KEPT, furthest in {worst_run(found).name}"
    loses = any(answer.loses for answer in answers)
    return f"{said}all {len(limits)} limits kept{BY_WHAT_ARRIVES if loses else ''}"


RUN_HEADS: Final = ("runs", "point", "targets bounded", "limits kept", "longest bound")


def run_rows(found: Sequence[Bounded]) -> list[tuple[str, ...]]:
    """A line for each network of a test, under `RUN_HEADS`."""
    return [_row(one) for one in found]


def show_runs(found: Sequence[Bounded], console: Console) -> None:
    """Prints the answer over all networks of a test, and a line for each."""
    style = "" if all(one.answer.kept for one in found) else "bold"
    said = f"{found[0].answer.name}: {runs_verdict(found)}"
    console.print(said, style=style, markup=False, highlight=False, soft_wrap=True)
    console.print()
    print_table(RUN_HEADS, run_rows(found), console, leading=2)


def _row(one: Bounded) -> tuple[str, ...]:
    answer = one.answer
    delays = [target.delay for flow in answer.flows for target in flow.targets]
    bounded = [delay for delay in delays if delay is not None]
    kept = sum(limit.kept for limit in answer.limits)
    return (
        spans(one.source.runs),
        ", ".join(f"{axis} {value}" for axis, value in one.source.point.items()) or "-",
        f"{len(bounded)} of {len(delays)}",
        f"{kept} of {len(answer.limits)}" if answer.limits else "-",
        show_time(max(bounded, default=None), answer.time_unit),
    )


def spans(runs: Sequence[int]) -> str:
    """Run numbers as text, consecutive ones as a range: `0-2, 5`."""
    parts: list[list[int]] = []
    for run in runs:
        if parts and parts[-1][-1] == run - 1:
            parts[-1][1:] = [run]
        else:
            parts.append([run])
    return ", ".join("-".join(map(str, part)) for part in parts)
