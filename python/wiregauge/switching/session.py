"""One characterisation: makes all trials, repeats refused ones, stores them, and accounts for the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.switching.device import Device
from wiregauge.switching.envelopes import ENVELOPES, Envelope
from wiregauge.switching.errors import BeyondError, StopError
from wiregauge.switching.evidence import CREDIT_BITS, Evidence, evidence_of, span
from wiregauge.switching.search import WIDTH
from wiregauge.switching.services import Service
from wiregauge.switching.store import Store
from wiregauge.switching.trials import Carrier, Outcome, Trial, fps

__all__ = ["BUDGET_S", "REPEATS", "Session", "Sizes"]

_BEYOND = "BEYOND"
"""The grade of a trial that the bench could not make: it left no run."""
_VIRTUAL_S, _REAL_S = 0.8, 3.5
"""Approximate time that a trial takes besides its own length, s."""
_LONGEST_VIRTUAL, _LONGEST_REAL_S = 200_000, 5.0
"""Greatest length of a quick trial that confirms a load: frames in virtual time, else s."""
REPEATS = {True: 3, False: 50}
"""Repeats of burst searches, by whether the session is quick (RFC 2544, 26.4, asks for 50)."""
BUDGET_S = 14 * 60.0
"""Time after which --quick starts no trial, s, so that it ends within 15 minutes."""


class Sizes(Struct, frozen=True):
    """The lengths of trials. In virtual time quick ones are given by their number of frames, elsewhere in seconds."""

    quick: bool
    virtual: bool

    def final_s(self, rate_bps: int, frame: int) -> float:
        """Length of a full-length trial, s: 60 s in a standard one (RFC 2544, 24)."""
        if not self.quick:
            return 60.0
        return round(40_000 / fps(rate_bps, frame), 6) if self.virtual else 1.0

    def initial_s(self, rate_bps: int, frame: int) -> float:
        """Length of a short trial that only guides the search, s."""
        if not self.quick:
            return 1.0
        return round(8_000 / fps(rate_bps, frame), 6) if self.virtual else 0.4

    def left_out(self, rate_bps: int, frames: tuple[int, ...]) -> str:
        """Text: what a quick session has less of than a standard one."""
        whole, first = replace(self, quick=False), frames[0]
        least, most = (span(self.final_s(rate_bps, frame)) for frame in (first, frames[-1]))
        lengths = least if least == most else f"{least} to {most}"
        mesh = "" if self.virtual else ", meshes with one frame size alone (the middle one)"
        return (
            f"--quick (the default) has trials of {lengths} where --standard has "
            f"{span(whole.final_s(rate_bps, first))} (RFC 2544, 24), {REPEATS[True]} repeats of bursts for "
            f"{REPEATS[False]}, bursts of {self.longest_burst(rate_bps, first)} frames for "
            f"{whole.longest_burst(rate_bps, first)}{mesh}: it need not meet what is rare, or what a long buffer or "
            "burst credit hides"
        )

    def longest_burst(self, rate_bps: int, frame: int) -> int:
        """Length of the longest burst that is tried, frames."""
        if not self.quick:
            return 1 << 20
        return 1 << 17 if self.virtual else int(_LONGEST_REAL_S * fps(rate_bps, frame))

    def confirm_s(self, rate_bps: int, frame: int, load_ppm: int) -> float:
        """Length of the trial that confirms a load, s: 64 KiB of buffer or burst credit hide at most 0.5 % of it."""
        final = self.final_s(rate_bps, frame)
        if not self.quick:
            return final
        enough = CREDIT_BITS / (WIDTH * max(load_ppm, 1) / 1e6 * rate_bps)
        most = _LONGEST_VIRTUAL * fps(rate_bps, frame) ** -1 * 1e6 / max(load_ppm, 1)
        return round(max(final, min(enough, most if self.virtual else _LONGEST_REAL_S)), 6)

    def sum_s(self, rate_bps: int, frame: int) -> float:
        """Total length of full-length trials of a load before its class is known, s."""
        final = self.final_s(rate_bps, frame)
        return 2 * final if self.quick and not self.virtual else final


class Session(Struct):
    """The interface through which tests make their trials."""

    device: Device
    carrier: Carrier
    store: Store
    sizes: Sizes
    frames: tuple[int, ...]
    told: Callable[[str], object]
    """Receives a line about every trial."""
    bench: str = "sim"
    services: tuple[Service, ...] = ()
    """The services that the device promises (Y.1564)."""
    envelopes: tuple[Envelope, ...] = ENVELOPES
    """Cross traffic for the measurement of traversal times."""
    clock: Callable[[], float] = time.monotonic
    asked: int = 0
    made: int = 0
    spent_s: float = 0.0
    refusals: list[str] = field(default_factory=list)
    planned: dict[str, int] = field(default_factory=dict)
    """Estimated number of trials of each unfinished test."""
    untold: list[str] = field(default_factory=list)
    """Why latencies of some trials were withheld from the present test, a sentence each."""
    log: list[tuple[str, Trial, Outcome]] = field(default_factory=list)
    """Every trial that counts, with its test."""
    _began: float | None = None
    _rested: int = 0
    _test: str = ""
    _of_test: int = 0

    @property
    def mesh_frames(self) -> tuple[int, ...]:
        """Frame sizes of traffic between many ports: only the middle one in a quick real-time session."""
        if self.sizes.quick and not self.sizes.virtual:
            return (self.frames[len(self.frames) // 2],)
        return self.frames

    def announcement(self) -> Iterator[str]:
        """Lines shown before the session: duration, what is left out, which parts of a file are used."""
        yield from self.device.told
        yield f"{len(self.planned)} tests: {self.estimate()}"
        if self.sizes.quick:
            yield self.sizes.left_out(self.device.rate_bps, self.frames)

    def estimate(self) -> str:
        """The estimated duration as text, before anything is known of this device."""
        trials = sum(self.planned.values())
        each = _VIRTUAL_S if self.sizes.virtual else _REAL_S
        if not self.sizes.quick:
            each += 0.0 if self.sizes.virtual else 60.0
            most = " of this machine, more at high rates" if self.sizes.virtual else ""
            return f"about {trials} trials, about {_clock(trials * each)}{most}"
        least = min(trials * each, BUDGET_S)
        return f"about {trials} trials, about {_clock(least)}; at most {_clock(BUDGET_S)} before the last one begins"

    def begin(self, test: str) -> None:
        """Records that a test begins."""
        self._test, self._of_test, self._rested = test, 0, len(self.log)
        self.untold.clear()

    def ended(self, test: str) -> None:
        """Records that a test has ended."""
        self.planned.pop(test, None)

    def ask(self, trial: Trial) -> Outcome:
        """The outcome of a trial. A refused one is repeated once, and is then final.

        Raises StopError where the user stopped it or time is up, BeyondError where the bench cannot make it.
        """
        outcome = self._once(trial)
        if outcome.refused:
            outcome = self._once(trial)
            if outcome.refused:
                self.refusals.append(f"{self._test}, {trial.name}: {outcome.refused}")
        outcome, why = outcome.of_the_device(trial, self.device.rate_bps)
        if why and not outcome.refused:
            self.untold.append(why)
        if not outcome.refused:
            self.log.append((self._test, trial, outcome))
        return outcome

    def evidence(self) -> Evidence:
        """The evidence of this test's trials since the last call."""
        made = self.log[self._rested :]
        self._rested = len(self.log)
        return evidence_of((trial, outcome) for _, trial, outcome in made)

    def _once(self, trial: Trial) -> Outcome:
        index = self.asked
        self.asked += 1
        self._of_test += 1
        known = self.store.known(index, self._test, trial)
        if known is not None:
            return _carried(known)
        now = self.clock()
        self._began = now if self._began is None else self._began
        if self.sizes.quick and now - self._began > BUDGET_S:
            raise StopError("the 15 minutes of --quick are over")
        try:
            outcome = self.carrier.carry(trial, self.store.folder(index, self._test))
        except BeyondError as error:
            outcome = Outcome(str(error), _BEYOND, (), 0.0)
        self.store.add(self._test, trial, outcome)
        self.made += 1
        self.spent_s += self.clock() - now
        loss = f"lost {outcome.lost} of {outcome.sent}"
        found = f"refused: {outcome.refused}" if outcome.refused else loss
        self.told(f"{self._test}  {trial.name}: {found}{self._rest()}")
        return _carried(outcome)

    def _rest(self) -> str:
        """The estimated time left, from the mean time of trials and the estimated number of those to come."""
        more = sum(self.planned.values()) - min(self._of_test, self.planned.get(self._test, 0))
        left = max(0.0, more * self.spent_s / self.made)
        if self.sizes.quick and self._began is not None:
            left = min(left, max(0.0, BUDGET_S - (self.clock() - self._began)))
        return f"; about {_clock(left)} left"


def _carried(outcome: Outcome) -> Outcome:
    """The outcome; raises BeyondError for a stored trial that the bench could not make."""
    if outcome.grade == _BEYOND:
        raise BeyondError(outcome.refused)
    return outcome


def _clock(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
