"""Trials of a device: their definition, their outcome, and their execution on any bench."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from msgspec import NODEFAULT, Struct, field, to_builtins
from msgspec.structs import fields, replace
from numpy.typing import NDArray

from wiregauge.config import Test
from wiregauge.measures import FlowResult, Judgement
from wiregauge.measures.flow_measures import AVAILABILITY, HOPS, RATES
from wiregauge.plan.ethernet import GAP, PREAMBLE
from wiregauge.runner import Trials
from wiregauge.switching.device import Device
from wiregauge.switching.errors import BeyondError, StopError

__all__ = [
    "BESIDE_FULL_PPM",
    "LINE_RATE_PPM",
    "RISE",
    "WIRE_EXTRA",
    "Bench",
    "Carrier",
    "Latency",
    "Load",
    "Outcome",
    "Seen",
    "Stream",
    "Trial",
    "fps",
]

WIRE_EXTRA = PREAMBLE + GAP
"""Preamble, start-of-frame delimiter and gap, B."""
LINE_RATE_PPM = 1_000_000
"""Load of a stream that fills a port."""
BESIDE_FULL_PPM = 103_700
"""Load of a measured stream next to a full port, ppm: not a simple fraction of the line rate, so that its frames arrive
in every phase of the load's and not always just when there is room.
"""
_PORTS = 4
"""The most ports that trials use."""
_OFFERED = 0.01
"""Relative deviation above which the intended rate of a stream or load counts as not offered."""
_LEARNING_FLOW = 60_001
"""Flow number of the learning frames of the first port."""
_APART_NS = 200_000
"""Time between learning frames of two ports, ns."""
_TENTHS, _FEWEST_IN_TENTH = 10, 10
RISE = 0.9
"""Share of a trial over which its rise is measured: from the first tenth to the last."""
_STEPS = 6
"""Steps by which the floor must rise: noise alone does so in about 1 of 100 trials or less; a steady rise has nine."""
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_STATIONS = "02:57:53:00:00:00"
"""First address of the simulated stations behind a port."""


def fps(rate_bps: int, frame: int) -> float:
    """Line rate in frames per second at a frame size (with FCS): RFC 2544, appendix B."""
    return rate_bps / (8 * (frame + WIRE_EXTRA))


class Stream(Struct, frozen=True):
    """Measured frames from one port to another; ports are numbered from 0, the load is in ppm of the link."""

    source: int
    to: int
    load_ppm: int
    frame: int
    priority: int | None = None
    also_to: tuple[int, ...] = ()
    """Other ports that receive each of its frames: it is then a broadcast."""
    offset_ns: int = 0
    """Instant of its first measured frame, ns."""
    count: int = 0
    """Number of measured frames; 0: as many as fit into the trial."""
    period_ns: int = 0
    """Time between two frames, ns, instead of a load; 0: by the load."""
    burst: int = 1
    """Number of frames sent back to back."""
    flow: int = 0
    """Its flow number; 0: its index in the trial."""
    stations_from: int = 0
    """Number of stations behind its port that send its frames in turn; 0: the port itself."""
    stations_to: int = 0
    """Number of stations behind the other port that receive them in turn; 0: the port itself."""
    gap: int = 0
    """Gap that its port leaves after a frame, B, instead of a load: frames follow at the greatest rate."""


class Load(Struct, frozen=True):
    """Frames that congest a port and leave no records."""

    source: int
    to: int
    load_ppm: int
    frame: int


class Trial(Struct, frozen=True):
    """One trial: these streams together, for `seconds`."""

    name: str
    seconds: float
    streams: tuple[Stream, ...]
    loads: tuple[Load, ...] = ()
    warm_up: bool = True
    """Whether streams start before the measured time; not for bursts, which would find the buffer in use."""
    lead_s: float = 0.0
    """Length of this lead, s, where the usual time is too short."""
    overload: bool = False
    """Whether streams may exceed the rate of a port."""
    damaged: tuple[int, ...] = ()
    """Ports whose frames reach the device with a wrong check sequence."""
    wrong_length: int = 0
    """Length of all frames as they reach the device, B; 0: that of their streams."""

    def as_json(self) -> dict[str, Any]:
        """The trial as stored, which identifies it."""
        return {
            **_told(self),
            "streams": [_told(one) for one in self.streams],
            "loads": [to_builtins(one) for one in self.loads],
        }


_FIRST = ("source", "to", "load_ppm", "frame", "priority", "name", "seconds", "streams", "loads", "warm_up")


def _told(one: Stream | Trial) -> dict[str, Any]:
    """Its fields: the first ones always, later ones if not default, so that older trials keep their identity."""
    return {
        own.name: value
        for own in fields(type(one))
        if (value := getattr(one, own.name)) != own.default or own.default is NODEFAULT or own.name in _FIRST
    }


class Latency(Struct, frozen=True):
    """One-way latency of a stream, ns; None where n is too small."""

    n: int
    minimum: float | None
    p50: float | None
    p99: float | None
    maximum: float | None
    pdv: float | None
    """p99.9 - min (RFC 8219, 7.3.1)."""
    mean: float | None
    uncertainty: float | None
    """Half-width of the 95 % interval of the mean."""

    def untold(self) -> Latency:
        """The latency without its figures, with the same n."""
        return Latency(self.n, None, None, None, None, None, None, None)


class Seen(Struct, frozen=True):
    """What happened to a stream, at one of its receivers."""

    sent: int
    lost: int
    """Frames lost, corrupted or misdirected."""
    offered: float | None
    """The offered share of the intended rate."""
    latency: Latency
    available: float | None = None
    """Share of the messages that arrived in time, by the measure availability."""
    passages: dict[str, int] = field(default_factory=dict)
    """Frames that the device sent, by output port, where the bench sees its ports."""
    interval: float | None = None
    """Mean time from one arrival to the next, ns."""
    grown: float | None = None
    """The least latency growth from its first to its last frames, ns; None: not beyond chance and clock errors."""

    @property
    def loss_ratio(self) -> float:
        """The share of sent frames that were lost."""
        return self.lost / self.sent if self.sent else 1.0

    @property
    def flooded(self) -> int:
        """Frames that also left by another port than their own."""
        return sorted([0, 0, *self.passages.values()])[-2]


class Outcome(Struct, frozen=True):
    """The outcome of a trial. `refused`: the reason why it does not count; empty where it does."""

    refused: str
    grade: str
    streams: tuple[Seen, ...]
    """Results by stream, and for each by receiver."""
    seconds: float
    """Elapsed time of the trial, s."""
    directory: str = ""

    @property
    def lost(self) -> int:
        """Lost frames of all streams."""
        return sum(one.lost for one in self.streams)

    @property
    def sent(self) -> int:
        """Sent frames of all streams."""
        return sum(one.sent for one in self.streams)

    @property
    def loss_ratio(self) -> float:
        """The loss ratio of all streams together."""
        return self.lost / self.sent if self.sent else 1.0

    def of_the_device(self, trial: Trial, rate_bps: int) -> tuple[Outcome, str]:
        """The outcome without impossible latencies, and why they are left out; empty where none is.

        With any device the last bit of a frame arrives at least one transmission time after the first one left: where a
        message was faster, frames did not cross links of this rate, and latencies are those of the bench.
        """
        ends = [one for one in trial.streams for _ in (one.to, *one.also_to)]
        if len(ends) != len(self.streams):
            return self, ""
        kept, least = [], ""
        for stream, seen in zip(ends, self.streams, strict=True):
            frame = min(stream.frame, trial.wrong_length or stream.frame)
            wire, floor = 8e9 * frame / rate_bps, seen.latency.minimum
            if floor is not None and floor < wire:
                least = least or (
                    f"{frame} B arrived {floor / 1e3:.3g} µs after being sent, and one transmission at this rate "
                    f"takes {wire / 1e3:.3g} µs"
                )
                kept.append(replace(seen, latency=seen.latency.untold()))
            else:
                kept.append(seen)
        return replace(self, streams=tuple(kept)), least

    @staticmethod
    def of(kept: dict[str, Any]) -> Outcome:
        """The outcome as stored. Raises KeyError, TypeError for other content."""
        streams = tuple(Seen(**{**one, "latency": Latency(**one["latency"])}) for one in kept["streams"])
        return Outcome(**{**kept, "streams": streams})


class Carrier(Protocol):
    """Makes trials: a bench, or in tests a simulated device."""

    def carry(self, trial: Trial, name: str) -> Outcome:
        """Makes a trial once; `name` is that of its run directory. Raises StopError."""
        ...


class Bench:
    """Makes trials as ordinary tests on an open bench, each in a run directory in `place`."""

    def __init__(self, device: Device, trials: Trials, place: Path, *, model: bool) -> None:
        self._device, self._trials, self._place = device, trials, place
        self._settle = "5ms" if model else "200ms"
        self._reached = model

    def test(self, trial: Trial) -> Test:
        """The test of a trial, without a network."""
        ports = self._device.ports
        test = Test("switch", seed=1)
        lead = f"{round(trial.lead_s * 1e9)}ns" if trial.lead_s else self._settle
        silent = self._silent(trial)
        # Without a warm-up learning frames come first, port after port, and everything else after them.
        ahead = 0 if trial.warm_up else len(silent) * _APART_NS
        test.timing(
            warm_up=lead if trial.warm_up else "0s",
            duration=f"{round(trial.seconds * 1e9) + ahead}ns",
            drain=None,
            overload="on" if trial.overload else None,
        )
        for place, one in enumerate(trial.streams, 1):
            self._stream(test, one.flow or place, replace(one, offset_ns=one.offset_ns + ahead))
        for place, port in enumerate(silent):
            self._learning_frames(test, port, place, trial)
        for load in trial.loads:
            test.inject(
                on=ports[load.source],
                to=ports[load.to],
                load=_share(load.load_ppm),
                frame=f"{load.frame}B",
                burst=1,
            )
        for port in trial.damaged:
            test.bit_errors(ports[port], self._device.name, rate="1", sent_by=ports[port])
        for port in sorted({one.source for one in trial.streams}) if trial.wrong_length else []:
            length = f"{trial.wrong_length}B"
            test.wrong_length(
                ports[port], self._device.name, length=length, share="100%", sent_by=ports[port]
            )
        return test

    def _silent(self, trial: Trial) -> list[int]:
        """Ports that only receive: a simulated device that learns would flood frames to them (RFC 2889, 4.3)."""
        if not self._device.learns or any(one.stations_from for one in trial.streams):
            return []
        sending = {one.source for one in trial.streams} | {one.source for one in trial.loads}
        receiving = {one.to for one in trial.streams} | {one.to for one in trial.loads}
        return sorted(receiving - sending)

    def _learning_frames(self, test: Test, port: int, place: int, trial: Trial) -> None:
        """Adds a few frames of a port, not counted by any test, to the warm-up or ahead of the streams."""
        ports, number = self._device.ports, _LEARNING_FLOW + port
        test.flow(number, protocol="raw", from_=ports[port], to=ports[trial.streams[0].source])
        offset = f"{place * _APART_NS}ns" if place else None
        test.send(number, period=f"{2 * len(ports) * _APART_NS}ns", frame="64B", offset=offset, count=1)
        test.receive(number)

    def _stream(self, test: Test, number: int, one: Stream) -> None:
        ports = self._device.ports
        period = f"{one.period_ns}ns" if one.period_ns else None
        if one.gap:
            bits = 8 * (one.frame + WIRE_EXTRA - GAP + one.gap)
            # Rounded up to a picosecond, to stay within the line rate.
            period = f"{-(-bits * 10**12 // self._device.rate_bps) / 1000:.3f}ns"
        test.flow(
            number,
            protocol="raw",
            from_=ports[one.source],
            to=[ports[port] for port in (one.to, *one.also_to)],
            priority=one.priority,
            source_mac=_STATIONS if one.stations_from else None,
            source_macs=one.stations_from or None,
            destination_mac=_BROADCAST if one.also_to else _STATIONS if one.stations_to else None,
            destination_macs=one.stations_to or None,
        )
        test.send(
            number,
            load=None if period else _share(one.load_ppm),
            period=period,
            frame=f"{one.frame}B",
            pacing="rate",
            offset=f"{one.offset_ns}ns" if one.offset_ns else None,
            count=one.count or None,
            burst=one.burst if one.burst > 1 else None,
        )
        test.receive(number)

    def carry(self, trial: Trial, name: str) -> Outcome:
        """See `Carrier`. Also raises TestError, BenchError and RunDirectoryError."""
        if not self._reached:
            self._reach()
        began = time.monotonic()
        judgement = self._run(trial, name)
        return outcome_of(judgement, time.monotonic() - began, name)

    def _reach(self) -> None:
        """Sends learning frames (RFC 2544, 23): a few from every port that trials use to every other.

        A network of real frames is set up for the paths of its first trial, and this one has all of them. Raises
        BenchError where a port does not reach another.
        """
        from wiregauge.runner import BenchError

        used = range(min(len(self._device.ports), _PORTS))
        ways = tuple(Stream(a, b, 100, 512) for a in used for b in used if a != b)
        number = 0
        while (self._place / f"reach-{number}").exists():
            number += 1
        try:
            judgement = self._run(Trial("reach", 0.5, ways), f"reach-{number}")
        except BeyondError as error:
            raise BenchError(str(error)) from None
        for way, flow in zip(ways, judgement.runs[0].flows, strict=True):
            if not flow.counts["delivered"]:
                here, there = self._device.ports[way.source], self._device.ports[way.to]
                raise BenchError(f"no frame from {here} reached {there}: look at the device and its cables")
        self._reached = True

    def _run(self, trial: Trial, name: str) -> Judgement:
        """Runs a trial. Raises StopError where it was stopped, BeyondError where the bench cannot make it."""
        from wiregauge.runner import BeyondBenchError, NothingRunError
        from wiregauge.runner.stopping import Interrupted

        place = self._place / name
        try:
            gaps = {self._device.ports[one.source]: one.gap for one in trial.streams if one.gap}
            test = self._device.test(self.test(trial), gaps)
            judgement = self._trials.run(test, place, file=f"switch {name}")
        except BeyondBenchError as error:
            raise BeyondError("; ".join(error.reasons)) from None
        except Interrupted as error:
            raise StopError(str(error)) from None
        except NothingRunError as error:
            if error.stopped:
                raise StopError(str(error)) from None
            raise
        if judgement.state == "interrupted":
            raise StopError(judgement.reason or "it was stopped")
        return judgement


def _share(ppm: int) -> str:
    return f"{ppm}ppm"


def outcome_of(judgement: Judgement, seconds: float, name: str) -> Outcome:
    """The outcome of a trial from the judgement of its run."""
    run = judgement.runs[0]
    flows = [flow for flow in run.flows if flow.plan.id < _LEARNING_FLOW]
    streams = tuple(_seen(flow) for flow in flows)
    reasons = []
    if run.state != "complete":
        reasons.append(run.reason or f"the run is {run.state}")
    elif run.validity.word == "INVALID":
        reasons.append("INVALID: " + "; ".join(run.reasons))
    for flow, one in zip(flows, streams, strict=True):
        if one.offered is None or abs(one.offered - 1) > _OFFERED:
            part = (
                "at an unknown rate"
                if one.offered is None
                else f"at {100 * one.offered:.1f} % of the intended rate"
            )
            reasons.append(f"flow {flow.plan.id} was offered {part}")
        if unknown := flow.counts.get("unknown", 0):
            reasons.append(f"of flow {flow.plan.id} the fate of {unknown} messages is unknown")
    reasons += [
        f"the load from {load.on} was not offered"
        for load in run.loads
        if load.offered is None or abs(load.offered - load.intended) > _OFFERED * load.intended
    ]
    return Outcome("; ".join(reasons), run.validity.word, streams, seconds, name)


def _seen(flow: FlowResult) -> Seen:
    counts = flow.counts
    rates, up = flow[RATES], flow[AVAILABILITY]
    offered = None
    if rates is not None and rates.intended_per_s and rates.offered_per_s.value is not None:
        offered = rates.offered_per_s.value / rates.intended_per_s
    summary = flow.summaries["latency"]
    uncertainty = summary.uncertainty.total if summary.uncertainty is not None else None
    latency = Latency(
        summary.n,
        summary.minimum,
        summary.value("p50"),
        summary.value("p99"),
        summary.maximum,
        summary.pdv(),
        summary.mean,
        uncertainty,
    )
    lost = sum(counts.get(what, 0) for what in ("lost", "corrupted", "misdirected"))
    passages = {f"{hop.switch}:{hop.port}": hop.n for hop in flow[HOPS]}
    interval = flow.summaries["receive_period"].mean
    grown = grown_ns(flow.series["latency"].value, uncertainty or 0.0) if "latency" in flow.series else None
    return Seen(
        counts["sent"],
        lost,
        offered,
        latency,
        up.ratio if up is not None else None,
        passages,
        interval,
        grown,
    )


def grown_ns(latency: NDArray[np.float64], uncertainty: float) -> float | None:
    """The rise of the latency floor from the first tenth of the frames, in order of sending, to the last, ns.

    In a device that forwards less than it receives frames wait longer and longer. None where the floor rises by no more
    than six times the median difference of neighbouring tenths, or than the uncertainty of the latency.
    """
    if len(latency) < _TENTHS * _FEWEST_IN_TENTH:
        return None
    floors = np.array([part.min() for part in np.array_split(latency, _TENTHS)])
    rise = float(floors[-1] - floors[0])
    usual = float(np.median(np.abs(np.diff(floors))))
    return rise if rise > max(_STEPS * usual, uncertainty, 1.0) else None
