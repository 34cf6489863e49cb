"""Keeps the clocks of all end systems while a campaign runs, as its test wants it.

The start-up sequence of the MAPS paper (2015, "Time-synchronization"): the server's interface clock is set, ptp4l and
phc2sys start on the server and then on the others, and no run begins before every clock has been within its limit
several times in a row. The programs run on the hosts of the end systems; `inside` of the bench says how to reach one.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wiregauge.clocks import chrony, linuxptp
from wiregauge.clocks.daemon import Daemon
from wiregauge.clocks.state import ClockState
from wiregauge.plan import Ptp, Synchronise

__all__ = ["ClockError", "ClockKeeper", "EndSystem"]

IN_A_ROW: Final = 5
"""Observations of a clock that have to be good before it is."""
_LOOK_S: Final = 0.05
_ASK_S: Final = 1.0
"""Time between two questions to chrony."""
_COMMAND_S: Final = 10.0
_MOST: Final = 200_000
"""Observations of one clock that are kept until a run takes them."""
_PORT_STATES: Final = ("SLAVE", "UNCALIBRATED")
"""Of a client that hears its server; one that runs free never leaves the second."""


class ClockError(Exception):
    """The clocks cannot be kept as the test wants; the text says whose fault it is and the cure."""


@dataclass(frozen=True)
class EndSystem:
    """Where a clock is: its end system, the interface of the network under test, how to run a command on its host."""

    name: str
    interface: str
    inside: Sequence[str]


@dataclass
class _Kept:
    """What is known of the clock of one end system."""

    place: EndSystem
    server: bool
    port: str = ""
    states: deque[ClockState] = field(default_factory=lambda: deque(maxlen=_MOST))
    daemons: list[Daemon] = field(default_factory=list)

    def ended(self) -> str | None:
        return next(
            (f"{self.place.name}: {why}" for d in self.daemons if (why := d.ended()) is not None), None
        )


class ClockKeeper:
    """Started once per campaign; `wait` before, `states` after every run; `stop` may be called at any time."""

    def __init__(self, plan: Synchronise, reference: str, places: Sequence[EndSystem]) -> None:
        """`plan` is `synchronise` of the campaign."""
        self._plan = plan
        self._clocks = {place.name: _Kept(place, place.name == reference) for place in places}
        self._reference = reference
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._asking: threading.Thread | None = None

    def start(self) -> None:
        """Starts every program. Raises ClockError where one is missing or does not start."""
        if self._plan.ptp is not None:
            self._start_ptp(self._plan.ptp)
        if self._plan.chrony:
            _program("chronyc", "chrony")
            self._asking = threading.Thread(target=self._ask_chrony, name="chrony", daemon=True)
            self._asking.start()

    def wait(self, look: Callable[[], None] = lambda: None) -> str | None:
        """Waits until every clock is fit, for as long as the plan lets it.

        Returns None, or why the clocks are not fit. Raises ClockError instead where the plan refuses such a run.
        """
        if self._plan.ptp is None and not self._plan.chrony:
            return None
        until = time.monotonic() + self._plan.wait / 1e12
        while True:
            dead = next((why for kept in self._clocks.values() if (why := kept.ended()) is not None), None)
            if dead is not None:
                return self._unfit(
                    f"{dead}; see that nothing else uses the interface's clock, and its rights"
                )
            unfit = [why for kept in self._clocks.values() if (why := self._why_not(kept)) is not None]
            if not unfit:
                return None
            if time.monotonic() >= until:
                waited = self._plan.wait / 1e12
                return self._unfit(
                    f"{'; '.join(unfit[:3])} after {waited:g} s; raise wait or within, or mend the clocks"
                )
            look()
            time.sleep(_LOOK_S)

    def states(self, since_ns: int, until_ns: int) -> list[ClockState]:
        """What was seen of all clocks between two instants of CLOCK_REALTIME, in the order of time."""
        with self._lock:
            found = [
                state
                for kept in self._clocks.values()
                for state in kept.states
                if since_ns <= state.realtime_ns <= until_ns
            ]
        return sorted(found, key=lambda state: (state.realtime_ns, state.node, state.source))

    def ended(self) -> str | None:
        """The first program that is gone although nobody stopped it, in its own last words."""
        return next((why for kept in self._clocks.values() if (why := kept.ended()) is not None), None)

    def ask(self) -> dict[str, dict[str, dict[str, str]]]:
        """What pmc says of ptp4l by end system; of one that does not answer nothing, without PTP nothing at all."""
        folder = self._folder
        found = {name: self._ask(name, folder) for name in self._clocks} if folder is not None else {}
        return {name: sets for name, sets in found.items() if sets}

    def _ask(self, name: str, folder: Path) -> dict[str, dict[str, str]]:
        place = self._clocks[name].place
        command = [*place.inside, *linuxptp.pmc_command(str(folder / f"{name}.socket"))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return {}
        return linuxptp.read_pmc(done.stdout)

    def stop(self) -> None:
        """Ends every program, clients first, and forgets their files. Never raises."""
        self._over.set()
        for kept in sorted(self._clocks.values(), key=lambda kept: kept.server):
            for daemon in reversed(kept.daemons):
                daemon.stop()
            kept.daemons.clear()
        if self._asking is not None:
            self._asking.join(_COMMAND_S)
            self._asking = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # -- linuxptp -------------------------------------------------------------------------------------------------

    def _start_ptp(self, ptp: Ptp) -> None:
        hardware = ptp.timestamps == "hardware"
        for program in ("ptp4l", *(("phc2sys", "phc_ctl") if hardware and ptp.steer else ())):
            _program(program, linuxptp.PACKAGE)
        self._folder = Path(tempfile.mkdtemp(prefix="wiregauge-ptp-"))
        ordered = sorted(self._clocks.values(), key=lambda kept: not kept.server)
        for kept in ordered:
            place = kept.place
            if hardware and ptp.steer and kept.server:
                self._set_once(place)
            file = self._folder / f"{place.name}.conf"
            file.write_text(
                linuxptp.ptp4l_configuration(
                    ptp,
                    server=kept.server,
                    interface=place.interface,
                    socket=str(self._folder / f"{place.name}.socket"),
                ),
                encoding="utf-8",
            )
            self._begin(kept, "ptp4l", linuxptp.ptp4l_command(str(file)))
            if hardware and ptp.steer:
                command = linuxptp.phc2sys_command(ptp, server=kept.server, interface=place.interface)
                self._begin(kept, "phc2sys", command)

    def _set_once(self, place: EndSystem) -> None:
        command = [*place.inside, *linuxptp.phc_ctl_command(place.interface)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClockError(f"{place.name}: the clock of {place.interface} cannot be set: {error}") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            why = said[-1] if said else "phc_ctl failed"
            raise ClockError(
                f"{place.name}: the clock of {place.interface} cannot be set: {why}; "
                'an interface without a clock needs timestamps="software"'
            )

    def _begin(self, kept: _Kept, program: str, command: Sequence[str]) -> None:
        def listen(line: str) -> None:
            self._hear(kept, line)

        try:
            kept.daemons.append(Daemon(program, [*kept.place.inside, *command], listen))
        except OSError as error:
            raise ClockError(f"{kept.place.name}: {program} cannot be started: {error}") from None

    def _hear(self, kept: _Kept, line: str) -> None:
        said = linuxptp.read_line(line)
        if said is None:
            return
        # The programs print CLOCK_MONOTONIC, which all namespaces of a host share.
        at = time.time_ns() - time.monotonic_ns() + round(said.monotonic_s * 1e9)
        with self._lock:
            if said.is_port:
                kept.port = said.state
            kept.states.append(
                ClockState(
                    at,
                    kept.place.name,
                    said.program,
                    said.state,
                    said.offset_ns,
                    said.delay_ns,
                    said.frequency_ppb,
                )
            )

    def _why_not(self, kept: _Kept) -> str | None:
        """Why a clock is not fit; None where it is."""
        with self._lock:
            states, port = list(kept.states), kept.port
        wanted = []
        ptp = self._plan.ptp
        if ptp is not None and kept.server:
            if port not in ("MASTER", "GRAND_MASTER"):
                return f"{kept.place.name} does not serve PTP yet (its port is {port or 'silent'})"
        elif ptp is not None:
            if port not in _PORT_STATES:
                return f"{kept.place.name} hears no PTP server (its port is {port or 'silent'})"
            wanted.append("phc2sys" if ptp.timestamps == "hardware" and ptp.steer else "ptp4l")
        if self._plan.chrony:
            wanted.append("chrony")
        for source in wanted:
            last = [state for state in states if state.source == source and state.offset_ns is not None]
            why = self._why_not_steady(
                last[-IN_A_ROW:], locked=bool(ptp and ptp.steer and source != "chrony")
            )
            if source == "chrony" and not last:
                why = "does not answer or has no source of time; `chronyc tracking` there tells"
            if why is not None:
                return f"{kept.place.name}: {source} {why}"
        return None

    def _why_not_steady(self, last: Sequence[ClockState], *, locked: bool) -> str | None:
        if len(last) < IN_A_ROW:
            return f"gave {len(last)} of {IN_A_ROW} offsets"
        if locked and any(state.state != "s2" for state in last):
            return "has not locked"
        worst = max(abs(state.offset_ns or 0.0) for state in last)
        within = self._plan.max_offset
        if within is not None and worst > within / 1e3:
            return f"is off by {worst / 1e3:.3g} µs"
        return None

    def _unfit(self, why: str) -> str:
        if self._plan.refuse:
            raise ClockError(f"the clocks are not fit for a run: {why}")
        return why

    # -- chrony ---------------------------------------------------------------------------------------------------

    def _ask_chrony(self) -> None:
        while True:
            for kept in self._clocks.values():
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    done = subprocess.run(
                        [*kept.place.inside, *chrony.COMMAND],
                        capture_output=True,
                        text=True,
                        timeout=_COMMAND_S,
                        check=False,
                    )
                    tracking = chrony.read_tracking(done.stdout)
                    if tracking is not None and tracking.synchronised:
                        self._note_chrony(kept, tracking)
            if self._over.wait(_ASK_S):
                return

    def _note_chrony(self, kept: _Kept, tracking: chrony.Tracking) -> None:
        state = ClockState(
            time.time_ns(),
            kept.place.name,
            "chrony",
            tracking.leap,
            tracking.offset_ns,
            tracking.root_delay_ns,
            tracking.frequency_ppm * 1e3,
        )
        with self._lock:
            kept.states.append(state)


def _program(name: str, package: str) -> None:
    if shutil.which(name) is None:
        raise ClockError(
            f"the program {name} is not installed; install the package {package} (apt install {package}), "
            "or leave it out of <synchronise>"
        )
