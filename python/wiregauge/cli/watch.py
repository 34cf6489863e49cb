"""`watch`: the streams of live interfaces, judged by a contract while they come."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

import typer

from wiregauge.cli.alarms import (
    check_action,
    hooked,
    metrics_address,
    metrics_option,
    on_alarm_option,
    say_all,
    say_failed,
    served,
    summaries_option,
)
from wiregauge.cli.options import meant
from wiregauge.cli.streaming import (
    ContractFile,
    TimestampError,
    code_of,
    contract_of,
    page_of,
    show_streams,
)
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, make_console, put, put_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiregauge.runner.live.hook import Hook
    from wiregauge.watching import PromiseAlarms, Second, Summaries, Watcher
    from wiregauge.watching.alarms import Alarm
    from wiregauge.watching.figures import WatchFigures

_EVERY_S: Final = 1.0
_ROWS: Final = 12
_MOST_TOLD: Final = 20
"""Alarms of one second that get a line each."""


def watch(
    interfaces: Annotated[
        list[str],
        typer.Argument(
            metavar="INTERFACE...",
            help="Interfaces of this host at one place of the network; two of them for networks A and B.",
            show_default=False,
        ),
    ],
    contract: ContractFile = None,
    timestamp_error: TimestampError = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long, for example 24h.", show_default="until Ctrl-C"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant("--out", ": the streams, as `import` stores them"),
            show_default=False,
        ),
    ] = None,
    summaries: Annotated[Path | None, summaries_option()] = None,
    on_alarm: Annotated[list[str] | None, on_alarm_option("With --contract")] = None,
    metrics: Annotated[str | None, metrics_option()] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help=meant("--json", ", one line a second")),
    ] = False,
) -> None:
    """Sends nothing. Needs CAP_NET_RAW. The last judgement is that of all frames, as of a capture of them.

    An alarm is printed when a promise breaks, and when a second keeps it again.
    """
    from msgspec.structs import replace

    from wiregauge.files import ForeignFileError
    from wiregauge.records import RunDirectory, RunDirectoryError
    from wiregauge.runner.bench import BenchError
    from wiregauge.streams import StreamsError, written
    from wiregauge.watching import Summaries, Watcher, WatchError
    from wiregauge.watching.figures import WatchFigures

    found, error_ns = contract_of(contract, timestamp_error)
    if len(set(interfaces)) < len(interfaces):
        fail("an interface is named twice; name each once", BAD_INPUT)
    if on_alarm and found is None:
        fail("--on-alarm has an effect with --contract only; give one, or leave it out", BAD_INPUT)
    for action in on_alarm or ():
        check_action(action)
    seconds, address = _seconds(for_), metrics_address(metrics)
    try:
        if out is not None:
            RunDirectory.check_free(out)
        kept = None if summaries is None else Summaries(summaries)
        figures = WatchFigures(interfaces)
        with (
            served(address, figures),
            hooked(on_alarm or ()) as hooks,
            Watcher(interfaces, found, error_ns, 0 if kept is None else len(kept.periods)) as watcher,
        ):
            consumers = _Consumers(figures, hooks, "exit" in (on_alarm or ()), kept)
            say_all(kept.begin() if kept is not None else ())
            ended = _follow(watcher, seconds, consumers, as_json=as_json)
            say_all(kept.end(watcher.turn) if kept is not None else ())
            observed = watcher.stop()
        say_failed(hooks)
        if ended is not None and seconds is not None:
            reason = f"{ended} before --for {for_} was over"
            observed = replace(
                observed, complete=False, validity="DEGRADED", reasons=[*observed.reasons, reason]
            )
        if out is not None:
            written(observed, out)
    except (WatchError, BenchError) as error:
        fail(str(error), NO_ENVIRONMENT)
    except (StreamsError, RunDirectoryError, ForeignFileError) as error:
        fail(str(error), BAD_INPUT)
    page = None if out is None else page_of(observed, out)
    code = show_streams(observed, as_json=False) if not as_json else code_of(observed)
    if page is not None and not as_json:
        put(f"report: {page}")
    raise typer.Exit(code)


def _seconds(text: str | None) -> float | None:
    from wiregauge.plan.quantity import QuantityError, time_ns

    try:
        seconds = time_ns(text) / 1e9 if text is not None else None
    except QuantityError as error:
        fail(f"--for {error}", BAD_INPUT)
    if seconds is not None and seconds < _EVERY_S:
        fail(f"--for {text}: write 1s at least", BAD_INPUT)
    return seconds


class _Consumers(NamedTuple):
    """Who hears of each second, besides the one who looks on."""

    figures: WatchFigures
    hooks: Sequence[Hook]
    ends: bool
    """Whether an alarm ends the watch."""
    summaries: Summaries | None


def _follow(watcher: Watcher, seconds: float | None, consumers: _Consumers, *, as_json: bool) -> str | None:
    """Shows each second until the time is over, and gives None; or until something else ends it, and says what."""
    from wiregauge.runner.stopping import Interrupted, stoppable
    from wiregauge.watching import PromiseAlarms

    begin = time.monotonic()
    end = None if seconds is None else begin + seconds
    alarms, frames, due = PromiseAlarms(), 0, begin
    try:
        with stoppable(), _shown(as_json=as_json) as show:
            while not watcher.has_ended:
                due += _EVERY_S
                until = due if end is None else min(due, end)
                time.sleep(max(until - time.monotonic(), 0.0))
                second = watcher.second()
                raised = list(alarms.look(second.last, second.so_far.duration_ps / 1e12))
                show(second, frames, raised, alarms)
                frames = second.so_far.frames
                if consumers.summaries is not None:
                    say_all(consumers.summaries.look(watcher.turn))
                if _tell_of(second, raised, alarms, consumers):
                    return "ended by an alarm"
                if end is not None and time.monotonic() >= end:
                    return None
    except (Interrupted, BrokenPipeError):
        pass
    return "stopped"


def _tell_of(second: Second, raised: Sequence[Alarm], alarms: PromiseAlarms, consumers: _Consumers) -> bool:
    """Hands a second on; whether an alarm of it ends the watch."""
    consumers.figures.show(second, alarms)
    begun = [alarm for alarm in raised if alarm.end_s is None]
    if begun and consumers.hooks:
        from msgspec import to_builtins

        from wiregauge.watching.line import alarm_now

        told = [to_builtins(alarm_now(alarm)) for alarm in begun]
        for hook in consumers.hooks:
            hook.tell(told)
    return bool(begun) and consumers.ends


Show: TypeAlias = "Callable[[Second, int, list[Alarm], PromiseAlarms], None]"


@contextlib.contextmanager
def _shown(*, as_json: bool) -> Iterator[Show]:
    """What shows a second: a line of JSON, a table on a terminal, otherwise alarms only."""
    if as_json:
        yield _print_json
        return
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda _second, _frames, raised, _alarms: _tell(raised)
        return
    from rich.live import Live

    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(second: Second, frames: int, raised: list[Alarm], alarms: PromiseAlarms) -> None:
            _tell(raised)
            live.update(_table(second, frames, alarms), refresh=True)

        yield show


def _print_json(second: Second, frames: int, raised: list[Alarm], alarms: PromiseAlarms) -> None:
    from wiregauge.watching.line import line_of

    put_lines([line_of(second, frames, raised, alarms.active)])
    sys.stdout.flush()


def _tell(raised: Sequence[Alarm]) -> None:
    from wiregauge.streams import promise_text

    for alarm in raised[:_MOST_TOLD]:
        if alarm.end_s is None:
            put(f"alarm at {alarm.begin_s:.0f} s: {promise_text(alarm.promise)}")
        else:
            name = f"{alarm.promise.stream}: {alarm.promise.measure}"
            put(f"kept again at {alarm.end_s:.0f} s, broken since {alarm.begin_s:.0f} s: {name}")
    if len(raised) > _MOST_TOLD:
        put(f"{len(raised) - _MOST_TOLD} more alarms in this second; --json has them all")


def _table(second: Second, frames: int, alarms: PromiseAlarms) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from wiregauge.files import printable
    from wiregauge.measures.definitions.units import duration
    from wiregauge.streams import PS_PER_NS

    seen = second.so_far
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stream", no_wrap=True)
    for head in ("frames/s", "shortest interval", "longest", "missing"):
        table.add_column(head, justify="right", no_wrap=True)
    busiest = sorted(second.last.streams, key=lambda stream: -stream.frames)
    for stream in busiest[:_ROWS]:
        period, sequence = stream.period, stream.sequence
        times = (None if ps is None else ps / PS_PER_NS for ps in (period.min, period.max))
        missing = "-" if sequence is None else str(sequence.missing)
        table.add_row(Text(printable(stream.name)), str(stream.frames), *map(duration, times), missing)
    dropped = sum(tap.dropped or 0 for tap in seen.taps)
    head = (
        f"{seen.duration_ps / 1e12:.0f} s  verdict so far {seen.verdict}  validity {seen.validity}  "
        f"{seen.frames - frames} frames/s, {dropped} dropped, {len(seen.streams)} streams, {alarms.active} broken now"
    )
    return Group(Text(head), table)
