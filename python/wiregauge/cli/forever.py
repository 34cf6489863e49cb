"""`probe --forever`: a session with a reflector without an end, second by second, hour by hour."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from wiregauge.cli.alarms import hooked, say_all, say_failed, served
from wiregauge.terminal import put, put_lines

if TYPE_CHECKING:
    from wiregauge.reflectors import Limit, Measured, Order
    from wiregauge.reflectors.lasting import Follower, Second
    from wiregauge.reflectors.measured import LimitHeld
    from wiregauge.reflectors.metrics import SessionFigures
    from wiregauge.reflectors.stretches import Hours
    from wiregauge.runner.live.hook import Hook
    from wiregauge.watching.alarms import Alarms, Raised

__all__ = ["Around", "measured_forever"]

_NS: Final = 1e9


class Around(Struct, frozen=True):
    """What goes on around the session."""

    summaries: Path | None
    on_alarm: Sequence[str]
    metrics: tuple[str, int] | None


def measured_forever(
    order: Order, key: Path | None, limits: Sequence[Limit], around: Around, *, as_json: bool
) -> Measured:
    """Measures until it is stopped, and gives the session; what else ended it is among its reasons.

    Raises SessionError and BenchError.
    """
    from wiregauge.reflectors.exchange import SessionError, told_lines
    from wiregauge.reflectors.metrics import SessionFigures
    from wiregauge.reflectors.stretches import Hours
    from wiregauge.runner.stopping import Interrupted, stoppable

    kept = None if around.summaries is None else Hours(around.summaries, 1.0 + order.patience_ns / _NS)
    ended: str | None = None
    figures = SessionFigures(order)
    with served(around.metrics, figures), hooked(around.on_alarm) as hooks:
        session = _Session(order, limits, kept, figures, hooks, as_json=as_json)
        say_all(kept.begin() if kept is not None else ())
        try:
            with contextlib.closing(told_lines(order, key)) as lines, stoppable():
                for told in lines:
                    if "complete" in told:
                        continue
                    session.take(told)
                    if session.raised and "exit" in around.on_alarm:
                        ended = "ended by an alarm"
                        break
                else:
                    ended = "the program that sends ended by itself"
        except (Interrupted, BrokenPipeError):
            pass
        except SessionError:
            # What came until then is kept all the same.
            if session.is_empty:
                raise
            ended = "the program that sends failed"
        session.end()
        if kept is not None:
            kept.at(None)
            say_all(kept.end(session.turn))
    say_failed(hooks)
    return session.result(ended)


class _Session:
    """The session so far, its hour and its day: each is the sum of the same seconds."""

    def __init__(
        self,
        order: Order,
        limits: Sequence[Limit],
        kept: Hours | None,
        figures: SessionFigures,
        hooks: Sequence[Hook],
        *,
        as_json: bool,
    ) -> None:
        from wiregauge.reflectors.lasting import Follower, Tally
        from wiregauge.watching.alarms import Alarms

        self._order, self._limits, self._kept, self._figures, self._hooks = (
            order,
            limits,
            kept,
            figures,
            hooks,
        )
        self._as_json = as_json
        self._follower: Follower = Follower(order)
        self._so_far = Tally()
        self._stretches = [Tally() for _ in (kept.periods if kept is not None else ())]
        self._alarms: Alarms[LimitHeld, tuple[str, str]] = Alarms(lambda limit: (limit.measure, limit.bound))
        self._begin_ns: int | None = None

    @property
    def raised(self) -> int:
        """How often a second broke a limit."""
        return self._alarms.raised

    @property
    def is_empty(self) -> bool:
        """Whether no second is closed."""
        return self._so_far.is_empty

    def take(self, told: dict[str, object]) -> None:
        """Takes a line of the agent program, and shows the seconds that it closes."""
        self._follower.take(told)
        for second in self._follower.close(time.time_ns()):
            self._note(second)

    def end(self) -> None:
        """Closes what can be closed."""
        for second in self._follower.rest(time.time_ns()):
            self._note(second)

    def turn(self, number: int) -> Measured:
        """Ends a stretch, and begins it anew."""
        from wiregauge.reflectors.lasting import Tally

        ended = self._stretches[number]
        self._stretches[number] = Tally(None if ended.is_empty else ended)
        return ended.measured(self._order, self._limits)

    def result(self, ended: str | None) -> Measured:
        """The whole session."""
        reasons = [] if ended is None else [ended]
        return self._so_far.measured(self._order, self._limits, complete=ended is None, reasons=reasons)

    def _note(self, second: Second) -> None:
        from wiregauge.reflectors.lasting import Tally
        from wiregauge.watching.stretches import utc

        begin_ns = self._begin_ns = second.begin_ns if self._begin_ns is None else self._begin_ns
        if self._kept is not None:
            # A second is of the hour in which it was sent, though it is closed later.
            self._kept.at(second.begin_ns / _NS)
            say_all(self._kept.look(self.turn))
            say_all(self._kept.parts.add(second.begin_ns, second.collected))
        alone = Tally()
        for tally in (alone, self._so_far, *self._stretches):
            tally.add(second)
        last = alone.measured(self._order, self._limits)
        so_far = self._so_far.measured(self._order, self._limits)
        at_s = (second.begin_ns - begin_ns) / _NS + 1
        raised = list(self._alarms.hold(last.limits, at_s))
        self._figures.show(last, so_far, self.raised, sorted(self._alarms.keys()))
        self._tell_hooks(raised)
        if not self._as_json:
            _tell(raised)
            return
        from wiregauge.reflectors.line import line_of

        times = at_s, utc(second.begin_ns / _NS)
        put_lines([line_of(times, last, so_far, self._follower.open, (raised, self._alarms.active))])
        sys.stdout.flush()

    def _tell_hooks(self, raised: Sequence[Raised[LimitHeld]]) -> None:
        begun = [alarm for alarm in raised if alarm.end_s is None]
        if not begun or not self._hooks:
            return
        from msgspec import to_builtins

        from wiregauge.reflectors.line import alarm_now

        told = [to_builtins(alarm_now(alarm)) for alarm in begun]
        for hook in self._hooks:
            hook.tell(told)


def _tell(raised: Sequence[Raised[LimitHeld]]) -> None:
    from wiregauge.reflectors.text import limit_text

    for alarm in raised:
        if alarm.end_s is None:
            put(f"alarm at {alarm.begin_s:.0f} s: {limit_text(alarm.promise)}")
        else:
            name = alarm.promise.measure
            put(f"kept again at {alarm.end_s:.0f} s, broken since {alarm.begin_s:.0f} s: {name}")
