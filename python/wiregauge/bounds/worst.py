"""Prints what a search found as text and JSON, and writes tests that repeat it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from rich.console import Console

from wiregauge.bounds.axis import AXIS, axis
from wiregauge.bounds.searching import Found, Outcome
from wiregauge.bounds.short_runs import ShortRuns
from wiregauge.files import write_whole
from wiregauge.terminal import print_table

__all__ = ["Worst", "search_json", "show_search", "worst_of", "write_tests"]

_WIDTH: Final = 30
"""Width of the axis, characters."""


class Worst(Struct, frozen=True):
    """The worst case found of a flow at a receiver; times in s."""

    flow: str
    target: str
    bound: float
    method: str
    simulated: float | None
    measured: float | None
    offsets: Mapping[str, float]
    """The start, s, of each sender that the worst case needs, by flow."""
    test: str | None
    alarms: tuple[str, ...]

    @property
    def gap(self) -> float | None:
        """The bound minus the simulated latency."""
        return None if self.simulated is None else self.bound - self.simulated

    @property
    def tightness(self) -> float | None:
        """The simulated latency over the bound."""
        return None if self.simulated is None or not self.bound else self.simulated / self.bound


def write_tests(outcome: Outcome, runs: ShortRuns, out: Path) -> dict[tuple[str, str], Path]:
    """Writes a test for each worst case into the folder `out`; raises OSError."""
    written = {}
    for found in outcome.found:
        if found.latency is None:
            continue
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"flow-{found.goal.flow}-to-{found.goal.target}.xml")
        write_whole(out / name, runs.written(found.offsets), replacing=None)
        written[found.goal.flow, found.goal.target] = out / name
    return written


def worst_of(
    outcome: Outcome,
    runs: ShortRuns,
    written: Mapping[tuple[str, str], Path],
    measured: Mapping[tuple[str, str], float],
    why: Callable[[Found], Sequence[str]],
) -> list[Worst]:
    """The worst cases; `why` names the failed assumptions where a bound was exceeded."""
    return [
        Worst(
            found.goal.flow,
            found.goal.target,
            found.goal.bound,
            found.goal.method,
            None if found.latency is None else found.latency / 1e12,
            measured.get((found.goal.flow, found.goal.target)),
            {
                str(sender.flow): offset / 1e12
                for sender, offset in zip(runs.senders, found.offsets, strict=False)
            },
            None if (path := written.get((found.goal.flow, found.goal.target))) is None else str(path),
            tuple(why(found)) if found.exceeded else (),
        )
        for found in outcome.found
    ]


def search_json(worst: Sequence[Worst], outcome: Outcome, seed: int) -> dict[str, Any]:
    """The search in the form of `wiregauge bounds --search --json`; times in s."""
    return {
        "seed": seed,
        "runs": outcome.runs,
        "took": outcome.seconds,
        "ended": outcome.ended,
        "flows": [
            {
                "flow": one.flow,
                "target": one.target,
                "bound": one.bound,
                "method": one.method,
                "simulated": one.simulated,
                "measured": one.measured,
                "gap": one.gap,
                "tightness": one.tightness,
                "offsets": [{"flow": flow, "offset": offset} for flow, offset in one.offsets.items()],
                "test": one.test,
                "alarms": list(one.alarms),
            }
            for one in worst
        ],
    }


def show_search(worst: Sequence[Worst], outcome: Outcome, console: Console) -> None:
    """Prints for each flow the measured latency, if any, the worst simulated one, the least bound and the gap."""
    rows = [
        (
            one.flow,
            one.target,
            _us(one.measured),
            _us(one.simulated),
            _us(one.bound),
            _us(one.gap),
            "-" if one.tightness is None else f"{100 * one.tightness:.1f} %",
            one.method,
            axis(one.bound, ((one.measured, "M"), (one.simulated, "S")), _WIDTH),
        )
        for one in worst
    ]
    heads = (
        "flow",
        "target",
        "measured µs",
        "worst simulated µs",
        "least bound µs",
        "gap µs",
        "tightness",
        "bound by",
        AXIS,
    )
    print_table(heads, rows, console, leading=2)

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say("")
    say(
        f"{outcome.runs} runs in {outcome.seconds:.1f} s"
        + ("" if outcome.ended else "; time was up before every flow was searched to its end")
    )
    for one in worst:
        if one.test is not None:
            say(f"flow {one.flow} to {one.target}: {one.test} shows it again")
    for one in worst:
        for alarm in one.alarms:
            say(f"ALARM: flow {one.flow} to {one.target} exceeded its bound: {alarm}", "bold")
    for one in worst:
        if one.simulated is None:
            say(f"Note: no message of flow {one.flow} came to {one.target}")


def _us(value: float | None) -> str:
    return "-" if value is None else f"{1e6 * value:.3f}"
