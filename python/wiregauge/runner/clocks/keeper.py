"""Synchronises the clocks of all end systems during a campaign, as its test requires.

The start-up sequence of the MAPS paper (2015, "Time-synchronization"): the server's interface clock is set, ptp4l and
phc2sys start on the server and then on the others, and no run begins before every clock has been within its limit
several times in a row. The programs run on the hosts of the end systems, started by their agents, behind `ClockHost`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from msgspec import Struct, field

from wiregauge.plan import Synchronise
from wiregauge.runner.clocks import chrony, linuxptp
from wiregauge.runner.clocks.host import Answers, ClockError, ClockHost, Line
from wiregauge.runner.clocks.relation import PtpRelation, begun_with, bound_ns
from wiregauge.runner.clocks.state import ClockState
from wiregauge.runner.clocks.timescale import Timescale, findings

__all__ = ["ClockError", "ClockKeeper"]

IN_A_ROW: Final = 5
"""Successive observations within the limit after which a clock is fit."""
_LOOK_S: Final = 0.05
_ASK_S: Final = 1.0
"""Seconds between two queries of chrony, and between two checks of the time scale."""
_LEAVE_S: Final = 10.0
_AT_ONCE: Final = 16
_MOST: Final = 200_000
"""The most observations of one clock that are stored until a run takes them."""
_STALE_S: Final = 40.0
"""Greatest age of the last offset of a fit clock, s; messages come at least every 16 s, mostly each second."""
_PORT_STATES: Final = ("SLAVE", "UNCALIBRATED")
"""Port states of a client that hears its server; a free-running one never leaves the second."""


class _Kept(Struct):
    """The state of an end system's clock."""

    name: str
    host: ClockHost
    server: bool
    port: str = ""
    counts_after_ns: int = 0
    """When its port last had no server, by its host's clock, ns: earlier observations do not count."""
    heard_s: float = 0.0
    """When its last offset arrived, by the local monotonic clock, s."""
    gone: str | None = None
    steps: str = ""
    """Steps removed from the grandmaster, as last printed by ptp4l: 1 without clocks in between."""
    chrony_leap: str = ""
    chrony_trouble: str = ""
    states: deque[ClockState] = field(default_factory=lambda: deque(maxlen=_MOST))
    last: dict[str, ClockState] = field(default_factory=dict)
    """The last observation by each program, with an offset if there was one."""

    def add(self, state: ClockState) -> None:
        """Adds an observation."""
        self.states.append(state)
        if state.offset_ns is not None or state.source not in self.last:
            self.last[state.source] = state

    def of(self, source: str) -> list[ClockState]:
        """The observations by one program."""
        return [state for state in self.states if state.source == source]


class ClockKeeper:
    """Synchronises clocks: started once per campaign; `wait` before, `states` after every run; `stop` at any time."""

    def __init__(self, plan: Synchronise, reference: str, hosts: Mapping[str, ClockHost]) -> None:
        """`plan` is `synchronise` of the campaign, `hosts` has the host of each end system."""
        self._plan = plan
        self._clocks = {name: _Kept(name, host, name == reference) for name, host in hosts.items()}
        self._reference = reference
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts every program. Raises ClockError where one is missing, not allowed or does not start."""
        ptp = self._plan.ptp
        if self._plan.chrony:
            for kept in self._clocks.values():
                kept.host.ask(ptp=False, chrony=True)
            self._begin(self._ask_chrony, "chrony")
        if ptp is not None:
            for kept in sorted(self._clocks.values(), key=lambda kept: not kept.server):
                kept.host.start(ptp, server=kept.server)
                self._begin(partial(self._listen, kept), f"clock of {kept.name}")

    def wait(self, planned_s: float = 0.0, look: Callable[[], None] = lambda: None) -> str | None:
        """Waits until every clock is fit for a run of so many seconds, as long as the plan allows.

        `look` is called meanwhile, about once a second. Returns None, or why the clocks are not fit. Raises ClockError
        instead where the plan forbids such a run.
        """
        if self._plan.ptp is None and not self._plan.chrony:
            return None
        until, looked = time.monotonic() + self._plan.wait / 1e12, 0.0
        scale: list[str] | None = None
        while True:
            dead = self.ended()
            if dead is not None:
                return self._unfit(
                    f"{dead}; see that nothing else uses the interface's clock, and its rights"
                )
            unfit = [why for kept in self._clocks.values() if (why := self._why_not(kept)) is not None]
            if time.monotonic() - looked > _ASK_S:
                look()
                scale = None if unfit else self._scale(planned_s)
                looked = time.monotonic()
            if not unfit and scale == []:
                return None
            if time.monotonic() >= until:
                waited = self._plan.wait / 1e12
                found = unfit or (scale if scale is not None else self._scale(planned_s))
                if not found:
                    return None
                cure = "" if not unfit else "; raise wait or within, or mend the clocks"
                return self._unfit(f"{'; '.join(found[:3])} after {waited:g} s{cure}")
            time.sleep(_LOOK_S)

    def states(self, since_ns: int, until_ns: int) -> list[ClockState]:
        """Observations of all clocks between two instants of CLOCK_REALTIME, in time order."""
        with self._lock:
            found = [
                state
                for kept in self._clocks.values()
                for state in kept.states
                if since_ns <= state.realtime_ns <= until_ns
            ]
        return sorted(found, key=lambda state: (state.realtime_ns, state.node, state.source))

    def latest(self) -> list[ClockState]:
        """The last observation of each clock by each program; without an offset only where none had one."""
        with self._lock:
            return [state for kept in self._clocks.values() for state in kept.last.values()]

    def ended(self) -> str | None:
        """The last words of the first program that ended without being stopped; None while all run."""
        return next((kept.gone for kept in self._clocks.values() if kept.gone is not None), None)

    def ask(self) -> dict[str, dict[str, dict[str, str]]]:
        """Answers of pmc on ptp4l, by end system; without those that do not answer, empty without PTP."""
        if self._plan.ptp is None:
            return {}
        found = {name: linuxptp.read_pmc(answers.pmc) for name, answers in self._answers().items()}
        return {name: sets for name, sets in found.items() if sets}

    def relations(self) -> dict[str, PtpRelation]:
        """The offset of each end system's clock from the reference's, by PTP; empty unless known for all."""
        with self._lock:
            found = {name: self._relation(kept) for name, kept in self._clocks.items()}
        told = {name: one for name, one in found.items() if one is not None}
        return told if len(told) == len(found) else {}

    def bounds(self, began_with: Mapping[str, PtpRelation], since_ns: int, until_ns: int) -> dict[str, float]:
        """The greatest drift of each clock from its relation at the begin, ns; empty unless known for all."""
        with self._lock:
            found = {
                name: self._bound(self._clocks[name], one.offset_ns, since_ns, until_ns)
                for name, one in began_with.items()
            }
        told = {name: one for name, one in found.items() if one is not None}
        return told if len(told) == len(found) else {}

    def stop(self) -> None:
        """Ends every program, clients first. Never raises."""
        self._over.set()
        if self._plan.ptp is not None:
            for kept in sorted(self._clocks.values(), key=lambda kept: kept.server):
                kept.host.stop()
        for thread in self._threads:
            thread.join(_LEAVE_S)
        self._threads.clear()

    def _begin(self, action: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=action, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # -- linuxptp -------------------------------------------------------------------------------------------------

    def _listen(self, kept: _Kept) -> None:
        try:
            for line in kept.host.lines():
                self._hear(kept, line)
        except ClockError as error:
            kept.gone = f"{kept.name}: {error}"
            return
        if kept.gone is None and not self._over.is_set():
            kept.gone = f"{kept.name}: nothing more is heard of its programs"

    def _hear(self, kept: _Kept, line: Line) -> None:
        if line.gone:
            kept.gone = f"{kept.name}: {line.text}"
            return
        said = linuxptp.read_line(line.text)
        if said is None:
            return
        at = line.realtime_less_monotonic_ns + round(said.monotonic_s * 1e9)
        with self._lock:
            if said.is_port:
                kept.port = said.state
                if said.state not in _PORT_STATES:
                    kept.counts_after_ns = at
            if said.offset_ns is not None:
                kept.heard_s = time.monotonic()
            kept.add(
                ClockState(
                    at,
                    kept.name,
                    said.program,
                    said.state,
                    said.offset_ns,
                    said.delay_ns,
                    said.frequency_ppb,
                )
            )

    def _why_not(self, kept: _Kept) -> str | None:
        """The reason why a clock is not fit; None where it is."""
        with self._lock:
            states, port = list(kept.states), kept.port
        wanted = []
        ptp = self._plan.ptp
        if ptp is not None and kept.server:
            if port not in ("MASTER", "GRAND_MASTER"):
                better = ": another clock of the domain is preferred" if port in _PORT_STATES else ""
                return f"{kept.name} does not serve PTP yet (its port is {port or 'silent'}{better})"
        elif ptp is not None:
            if port not in _PORT_STATES:
                return (
                    f"{kept.name} hears no PTP server in domain {ptp.domain} (its port is {port or 'silent'})"
                )
            wanted.append("phc2sys" if ptp.timestamps == "hardware" and ptp.steer else "ptp4l")
        if self._plan.chrony:
            wanted.append("chrony")
        for source in wanted:
            last = [
                state
                for state in states
                if state.source == source
                and state.offset_ns is not None
                and (source == "chrony" or state.realtime_ns > kept.counts_after_ns)
            ]
            if last and source != "chrony" and time.monotonic() - kept.heard_s > _STALE_S:
                return f"{kept.name}: {source} has said no offset for {_STALE_S:.0f} s"
            why = self._why_not_steady(
                last[-IN_A_ROW:], locked=bool(ptp and ptp.steer and source != "chrony")
            )
            if source == "chrony" and not last:
                why = kept.chrony_trouble or (
                    "does not answer or has no source of time; `chronyc tracking` there tells"
                )
            if why is not None:
                return f"{kept.name}: {source} {why}"
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

    # -- the scale of time ----------------------------------------------------------------------------------------

    def _scale(self, planned_s: float) -> list[str]:
        told = {
            name: Timescale.of(answers, self._clocks[name].chrony_leap)
            for name, answers in self._answers().items()
        }
        ptp, now = self._plan.ptp, time.time()
        set_by_tai = ptp is not None and ptp.steer and ptp.timestamps == "hardware"
        if ptp is not None:
            silent = [name for name in self._clocks if name not in told or told[name].grandmaster is None]
            if silent:
                return [f"{silent[0]} does not say whom it follows: pmc gets no answer from its ptp4l"]
        return list(findings(told, self._reference, now_s=now, end_s=now + planned_s, set_by_tai=set_by_tai))

    def _answers(self) -> dict[str, Answers]:
        def asked(kept: _Kept) -> Answers | None:
            with contextlib.suppress(ClockError):
                answers = kept.host.ask(ptp=self._plan.ptp is not None, chrony=False)
                sets = linuxptp.read_pmc(answers.pmc)
                kept.steps = sets.get("CURRENT_DATA_SET", {}).get("stepsRemoved", "")
                return answers
            return None

        with ThreadPoolExecutor(min(_AT_ONCE, len(self._clocks)) or 1) as pool:
            found = dict(zip(self._clocks, pool.map(asked, self._clocks.values()), strict=True))
        return {name: answers for name, answers in found.items() if answers is not None}

    def _relation(self, kept: _Kept) -> PtpRelation | None:
        ptp = self._plan.ptp
        if ptp is None or (ptp.timestamps == "hardware" and not ptp.steer):
            return None  # clocks of interfaces are compared, which says nothing about system clocks
        if ptp.delay == "p2p" or not (kept.server or kept.steps == "1"):
            return None  # the printed delay is that of the last link, not of the path from the server
        if ptp.timestamps == "software":
            return PtpRelation(0.0, 0.0) if kept.server else begun_with(kept.of("ptp4l"))
        parts = [begun_with(kept.of("phc2sys"))]
        if not kept.server:
            parts.append(begun_with(kept.of("ptp4l")))
        told = [one for one in parts if one is not None]
        if len(told) < len(parts):
            return None
        return PtpRelation(0.0, sum(abs(one.offset_ns) + one.uncertainty_ns for one in told))

    def _bound(self, kept: _Kept, offset_ns: float, since_ns: int, until_ns: int) -> float | None:
        ptp = self._plan.ptp
        if ptp is None or ptp.timestamps == "software":
            return 0.0 if kept.server else bound_ns(kept.of("ptp4l"), offset_ns, since_ns, until_ns)
        sources = ("phc2sys",) if kept.server else ("phc2sys", "ptp4l")
        parts = [bound_ns(kept.of(source), 0.0, since_ns, until_ns) for source in sources]
        told = [one for one in parts if one is not None]
        return sum(told) if len(told) == len(parts) else None

    # -- chrony ---------------------------------------------------------------------------------------------------

    def _ask_chrony(self) -> None:
        while True:
            for kept in self._clocks.values():
                try:
                    answers = kept.host.ask(ptp=False, chrony=True)
                except ClockError as error:
                    kept.chrony_trouble = str(error)
                    continue
                tracking = chrony.read_tracking(answers.chrony)
                if tracking is not None and tracking.synchronised:
                    self._note_chrony(kept, tracking)
            if self._over.wait(_ASK_S):
                return

    def _note_chrony(self, kept: _Kept, tracking: chrony.Tracking) -> None:
        state = ClockState(
            time.time_ns(),
            kept.name,
            "chrony",
            tracking.leap,
            tracking.offset_ns,
            tracking.root_delay_ns,
            tracking.frequency_ppm * 1e3,
        )
        with self._lock:
            kept.chrony_leap = tracking.leap
            kept.add(state)
