"""Consumers of live figures: alarms with their actions, the endpoint, and a bound on the disk.

A bench that makes runs by agents has one; options of the command line configure it.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from wiregauge.plan import Run
from wiregauge.records.live import RunNow
from wiregauge.records.reported import RunEntry
from wiregauge.runner.bench import BenchError
from wiregauge.runner.live.alarms import MOST_KEPT, AlarmExit, AlarmLimit, Alarms, sentence
from wiregauge.runner.live.disk import DiskBound, room
from wiregauge.runner.live.hook import Hook

if TYPE_CHECKING:
    from wiregauge.runner.live.endpoint import Endpoint
    from wiregauge.runner.live.run_figures import RunFigures

__all__ = ["AlarmMonitor", "Keep"]

_NETWORK: Final = "WIREGAUGE_HOST_NETWORK"
"""Environment variable for the descriptor of the network in which a command started before its restart in an
enclosure."""
Keep = Callable[[float, float], object]
"""Function that has captures keep the frames between two instants of the run's time, s."""
_LEAST_BACK_S: Final = 4.0
"""Time by which an event may precede its alarm, besides the drain, s: a loss counts after two seconds without
arrival, and live figures are of the second before."""
_HEARD_S: Final = 4.0
"""Time until captures hear of an alarm, s: figures come once a second, and hosts may be busy."""
_MOST_TOLD: Final = 20
"""Alarms of one second that get a line each."""


class AlarmMonitor:
    """Looks at a campaign, second by second.

    `on_alarm` are `exit` and commands as a user writes them; `metrics` is the address to serve at, `disk` the most
    bytes that the run directory may come to. Where `around_s` is given captures keep frames around alarms only, so long
    before and after.
    """

    def __init__(
        self,
        alarms: Sequence[AlarmLimit] = (),
        on_alarm: Sequence[str] = (),
        metrics: tuple[str, int] | None = None,
        disk: int | None = None,
        around_s: float | None = None,
    ) -> None:
        self._limits = tuple(alarms)
        self._exits = "exit" in on_alarm
        self._commands = [shlex.split(one) for one in on_alarm if one != "exit"]
        self._endpoint: Endpoint | None = None
        self._figures: RunFigures | None = None
        if metrics is not None:
            # Imported only when needed: it would slow the start of every other command.
            from wiregauge.runner.live.endpoint import Endpoint
            from wiregauge.runner.live.run_figures import RunFigures

            self._figures = RunFigures()
            self._endpoint = Endpoint(metrics, self._figures)
        self._bound = DiskBound(disk) if disk is not None else None
        self._around_s = around_s
        self._kept: list[list[float]] = []
        self._back_s = _LEAST_BACK_S
        self._hooks: list[Hook] = []
        self._network: int | None = None
        self._alarms = Alarms(self._limits)

    @property
    def hold_s(self) -> float | None:
        """How long captures hold frames back, s: until an alarm about them would have been raised and received."""
        return None if self._around_s is None else self._around_s + self._back_s + _HEARD_S

    def before_enclosure(self) -> None:
        """Opens what only the host's own network has, for the process that this one becomes in an enclosure."""
        if self._endpoint is not None:
            self._endpoint.open()
            self._endpoint.hand_on()
        if self._commands:
            network = os.open("/proc/self/ns/net", os.O_RDONLY)
            os.set_inheritable(network, True)
            os.environ[_NETWORK] = str(network)

    def enter(self) -> None:
        """Takes it over. Raises BenchError where the address is not to be had."""
        if self._endpoint is not None:
            self._endpoint.open()
        network = os.environ.pop(_NETWORK, None)
        if network is not None:
            self._network = int(network)
            os.set_inheritable(self._network, False)

    def begin(self, facts: Mapping[str, str]) -> None:
        """A campaign begins."""
        if self._endpoint is not None and self._figures is not None:
            self._figures.facts = dict(facts)
            self._endpoint.serve()

    def check_room(self, root: Path, runs: Sequence[Run], tell: Callable[[str], object]) -> None:
        """Warns before a campaign of a disk that it may fill. Raises BenchError for a bound beyond the free space."""
        said = room(root, runs, self._bound.most if self._bound is not None else None)
        if said is None:
            return
        if self._bound is not None:
            raise BenchError(said)
        tell(said)

    def run_begins(self, drain_s: float = 0.0) -> None:
        """Resets all counters for the next run of the campaign. A message may be under way for `drain_s`."""
        self._back_s = _LEAST_BACK_S + drain_s
        self._alarms = Alarms(self._limits)
        self._kept = []
        if self._bound is not None:
            self._bound.run_begins()
        self._hooks = [Hook(command, self._network) for command in self._commands]

    def look(
        self, now: RunNow, share: float, tell: Callable[[str], object], keep: Keep | None = None
    ) -> None:
        """Processes one second of a run: prints lines for the user and keeps the frames around alarms.

        Raises Interrupted to end the run.
        """
        fresh = self._alarms.look(now)
        if keep is not None and self._around_s is not None and self._alarms.active:
            self._keep(now.seconds, self._around_s, keep)
        if self._figures is not None:
            active = Counter(alarm for alarm, _ in self._alarms.active)
            self._figures.show(now, share, self._alarms.raised_by, active)
        lines = [sentence(limit, incident, flow) for limit, incident, flow in fresh]
        for line in lines[:_MOST_TOLD]:
            tell(line)
        if len(lines) > _MOST_TOLD:
            tell(f"alarms of {len(lines) - _MOST_TOLD} more flows; the run directory names them")
        if fresh:
            raised = [{"run": now.index, **to_builtins(incident)} for _, incident, _ in fresh]
            for hook in self._hooks:
                hook.tell(raised)
            if self._exits:
                raise AlarmExit(lines[0])

    def _keep(self, second: float, around_s: float, keep: Keep) -> None:
        """Keeps the records around an alarm in the second that ended at `second`; its cause may have begun earlier."""
        begin, end = max(second - self._back_s - around_s, 0.0), second + around_s
        if self._kept and begin <= self._kept[-1][1]:
            self._kept[-1][1] = end
        elif len(self._kept) < MOST_KEPT:
            self._kept.append([begin, end])
        keep(begin, end)

    def look_at_disk(self, root: Path) -> None:
        """Raises Interrupted where the run directory has come to its bound."""
        if self._bound is not None:
            self._bound.look(root)

    def run_ends(self, entry: RunEntry) -> None:
        """Writes alarms and hooks into the run's manifest entry."""
        for hook in self._hooks:
            hook.close()
        if self._limits:
            entry.alarms = {
                **self._alarms.as_json(),
                **({} if self._around_s is None else {"around_s": self._around_s, "kept": self._kept}),
                "exit": self._exits,
                "commands": [hook.as_json() for hook in self._hooks],
            }
        self._hooks = []

    def close(self) -> None:
        """Closes the endpoint."""
        if self._endpoint is not None:
            self._endpoint.close()
