"""Clock offsets from exchanges: each clock's offset over time, and its uncertainty band."""

from __future__ import annotations

from wiregauge.figures.model import Axis, Band, Figure, Line, Panel, Rule, Style, Trace
from wiregauge.figures.palette import BLUE, GREY, INK
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.measures.metrics.measured_clock import ClockResult

US = 1e3
MOST = 12
"""The most clocks that are drawn."""


def clock_figure(judgement: Judgement) -> Figure | None:
    """Two panels per clock of the run with the greatest uncertainty: the offset, and the offset without its trend."""
    runs = [run for run in judgement.runs if run.clocks]
    if not runs:
        return None
    run = max(runs, key=lambda run: max(clock.uncertainty for clock in run.clocks))
    clocks = sorted(run.clocks, key=lambda clock: -clock.uncertainty)
    panels = [panel for clock in clocks[:MOST] for panel in _panels(clock)]
    notes = [_note(clock) for clock in clocks[:MOST]]
    if len(clocks) > MOST:
        notes.append(f"{count_of(len(clocks) - MOST, 'clock')} with narrower bands are not drawn.")
    if len(judgement.runs) > 1:
        notes.append(f"Drawn from run {run.plan.index}, whose clocks are known least.")
    return Figure(
        "clock-exchanges",
        "Clocks compared by exchanges",
        "Left: how far each clock is off the reference, as two-way exchanges found it. Right: the same less its "
        "straight line, with the band the true offset lies in. offset = ((t2 - t1) + (t3 - t4)) / 2 of the exchange "
        "of least delay in each stretch of time; half-width = (asymmetry + queueing of that exchange) / 2 + what other "
        "exchanges contradict the line between two of them by. Every one-way latency is corrected by the offset and "
        "carries the widest band of its two clocks.",
        panels,
        2,
        share_x=False,
        share_y=False,
        notes=notes,
        measures=["latency"],
        panel_height=240,
    )


def _panels(clock: ClockResult) -> tuple[Panel, Panel]:
    time = Axis(f"time of {clock.node} (s)")
    rest = (clock.offset - clock.trend) / US
    width = clock.half_width / US
    offset: list[Trace] = [Line("offset", clock.t, clock.offset / US, Style(BLUE), legend=False)]
    band: list[Trace] = [
        Band("true offset within", clock.t, rest - width, rest + width, Style(BLUE)),
        Line("offset less its line", clock.t, rest, Style(INK), legend=False),
        Rule(0.0, "", Style(GREY, "dot", width=1.0), vertical=False),
    ]
    return (
        Panel(f"{clock.node} less {clock.reference}", time, Axis("offset (µs)"), offset),
        Panel("less its straight line", time, Axis("offset (µs)"), band),
    )


def _note(clock: ClockResult) -> str:
    drift = (
        f", drift {clock.drift:+.3f} ± {clock.drift_uncertainty:.3f} ppm"
        if clock.drift is not None and clock.drift_uncertainty is not None
        else ""
    )
    bound = "as the test states" if clock.stated else "the whole delay, for want of a bound in the test"
    return (
        f"{clock.node}: ± {duration(clock.uncertainty)} at most{drift}; {clock.n} exchanges, timestamps of the "
        f"{clock.timestamps}, least delay there and back {duration(clock.delay)}, asymmetry taken as "
        f"{duration(clock.asymmetry)} ({bound})."
    )
