"""Trials of a device: what is asked of it, what was seen, and a way to have them made on any bench."""

from __future__ import annotations

import time
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wiregauge.config import Test
from wiregauge.measures import FlowResult, Judgement
from wiregauge.measures.flow_measures import HOPS, SERVICE
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
"""Load of a measured stream beside a port that is full: no simple part of the line rate, so that its frames arrive in
every phase of the load's and not always just when there is room."""
_PORTS = 4
"""Ports that trials use, at most."""
_OFFERED = 0.01
"""A stream, or a load, that is further from what was intended than this share was not offered."""
_LEARNING_FLOW = 60_001
"""Number of the flow of learning frames of the first port."""
_APART_NS = 200_000
"""Between learning frames of two ports."""
_TENTHS, _FEWEST_IN_TENTH = 10, 10
RISE = 0.9
"""Share of a trial over which its rise is taken: from the first tenth to the last."""
_STEPS = 6
"""Of noise alone the floor rises so many usual steps once in some 100 trials or less; of a steady rise it has nine."""
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_STATIONS = "02:57:53:00:00:00"
"""First address of the stations that are imagined behind a port."""


def fps(rate_bps: int, frame: int) -> float:
    """Most frames per second of a length (with FCS) on a link: RFC 2544, appendix B."""
    return rate_bps / (8 * (frame + WIRE_EXTRA))


@dataclass(frozen=True, slots=True)
class Stream:
    """Measured frames from a port to another; ports are numbers from 0, the load is in ppm of the link."""

    source: int
    to: int
    load_ppm: int
    frame: int
    priority: int | None = None
    also_to: tuple[int, ...] = ()
    """Other ports that are to receive each of its frames: it is then a broadcast."""
    offset_ns: int = 0
    """When its first measured frame is due."""
    count: int = 0
    """Measured frames; 0: as many as the trial has time for."""
    period_ns: int = 0
    """Time between two frames, in the place of a load; 0: by the load."""
    burst: int = 1
    """Frames sent back to back."""
    flow: int = 0
    """Number of its flow; 0: its place in the trial."""
    stations_from: int = 0
    """So many stations behind its port send its frames in turn; 0: the port itself."""
    stations_to: int = 0
    """So many stations behind the other port receive them in turn."""
    gap: int = 0
    """Bytes that its port leaves behind a frame, in the place of a load: as fast as they then follow one another."""


@dataclass(frozen=True, slots=True)
class Load:
    """Frames that congest, which leave no records."""

    source: int
    to: int
    load_ppm: int
    frame: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One question: these streams, side by side, for so many seconds."""

    name: str
    seconds: float
    streams: tuple[Stream, ...]
    loads: tuple[Load, ...] = ()
    warm_up: bool = True
    """Whether the streams begin before what is measured; not for bursts, which would find a buffer in use."""
    lead_s: float = 0.0
    """How long before, where the usual time is too short."""
    overload: bool = False
    """Whether streams may take more than a port can send."""
    damaged: tuple[int, ...] = ()
    """Ports whose frames arrive at the device with a wrong check sequence."""
    wrong_length: int = 0
    """Length of all frames where they arrive at the device; 0: that of their streams."""

    def as_json(self) -> dict[str, Any]:
        """As it is kept; a trial is the same where this is."""
        return {
            **_told(self),
            "streams": [_told(one) for one in self.streams],
            "loads": [asdict(one) for one in self.loads],
        }


_FIRST = ("source", "to", "load_ppm", "frame", "priority", "name", "seconds", "streams", "loads", "warm_up")


def _told(one: Stream | Trial) -> dict[str, Any]:
    """Its fields: the first ones always, later ones where they say something, so that older trials stay the same."""
    return {
        own.name: value
        for own in fields(one)
        if (value := getattr(one, own.name)) != own.default or own.default is MISSING or own.name in _FIRST
    }


@dataclass(frozen=True, slots=True)
class Latency:
    """One-way latency of a stream, ns; None: n does not support it."""

    n: int
    minimum: float | None
    p50: float | None
    p99: float | None
    maximum: float | None
    pdv: float | None
    """p99.9 - min (RFC 8219, 7.3.1)."""
    mean: float | None
    uncertainty: float | None
    """95 % half-width of the mean."""

    def untold(self) -> Latency:
        """Of as many messages, with no figure told."""
        return Latency(self.n, None, None, None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a stream, at one of its receivers."""

    sent: int
    lost: int
    """Not delivered, or not intact, or elsewhere."""
    offered: float | None
    """Share of the intended rate that it really had."""
    latency: Latency
    available: float | None = None
    """Share of the messages that came in time, by the measure availability."""
    passages: dict[str, int] = field(default_factory=dict)
    """Frames that the device sent by output port, where the bench sees its ports."""
    interval: float | None = None
    """Mean time from one arrival to the next, ns."""
    grown: float | None = None
    """How much longer its last frames took at least than its first ones, ns; None: no more than chance and clocks."""

    @property
    def loss_ratio(self) -> float:
        """Share of the sent frames."""
        return self.lost / self.sent if self.sent else 1.0

    @property
    def flooded(self) -> int:
        """Frames that left by a port beside their own as well."""
        return sorted([0, 0, *self.passages.values()])[-2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial left. `refused` says why it counts for nothing; empty where it counts."""

    refused: str
    grade: str
    streams: tuple[Seen, ...]
    """By stream, and in it by receiver."""
    seconds: float
    """What it took, on the wall."""
    directory: str = ""

    @property
    def lost(self) -> int:
        """Of all streams."""
        return sum(one.lost for one in self.streams)

    @property
    def sent(self) -> int:
        """Of all streams."""
        return sum(one.sent for one in self.streams)

    @property
    def loss_ratio(self) -> float:
        """Of all streams together."""
        return self.lost / self.sent if self.sent else 1.0

    def of_the_device(self, trial: Trial, rate_bps: int) -> tuple[Outcome, str]:
        """Without latencies that no device can have, and why they are left out; empty where none is.

        Whatever the device does, the last bit of a frame arrives one transmission after the first one left: where a
        message was faster, frames did not pass links of this rate, and how long others took tells of the bench.
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
        """From what `asdict` made. Raises KeyError, TypeError for something else."""
        streams = tuple(Seen(**{**one, "latency": Latency(**one["latency"])}) for one in kept["streams"])
        return Outcome(**{**kept, "streams": streams})


class Carrier(Protocol):
    """Whoever has a trial made: a bench, or in tests a made-up device."""

    def carry(self, trial: Trial, name: str) -> Outcome:
        """Makes it once; `name` is that of its run directory. Raises StopError."""
        ...


class Bench:
    """Trials as ordinary tests on an open bench, each in a run directory in `place`."""

    def __init__(self, device: Device, trials: Trials, place: Path, *, model: bool) -> None:
        self._device, self._trials, self._place = device, trials, place
        self._settle = "5ms" if model else "200ms"
        self._reached = model

    def test(self, trial: Trial) -> Test:
        """The test that a trial is; it has no network yet."""
        ports = self._device.ports
        test = Test("switch", seed=1)
        lead = f"{round(trial.lead_s * 1e9)}ns" if trial.lead_s else self._settle
        silent = self._silent(trial)
        # Without a warm-up their frames come first, each before the next, and everything else after them.
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
        """Ports that only receive: a simulated device that learns would flood what is for them (RFC 2889, 4.3)."""
        if not self._device.learns or any(one.stations_from for one in trial.streams):
            return []
        sending = {one.source for one in trial.streams} | {one.source for one in trial.loads}
        receiving = {one.to for one in trial.streams} | {one.to for one in trial.loads}
        return sorted(receiving - sending)

    def _learning_frames(self, test: Test, port: int, place: int, trial: Trial) -> None:
        """Has a port send a few frames that no test counts, in the warm-up or ahead of the streams."""
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
            # Up to a picosecond, or it would be faster than the line.
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
        """See `Carrier`. Raises TestError, BenchError and RunDirectoryError beside."""
        if not self._reached:
            self._reach()
        began = time.monotonic()
        judgement = self._run(trial, name)
        return outcome_of(judgement, time.monotonic() - began, name)

    def _reach(self) -> None:
        """Learning frames (RFC 2544, 23): a few from every port that trials use to every other.

        A network of real frames is made for the ways of its first trial, and this has all of them. Raises BenchError
        where a port does not reach another.
        """
        from wiregauge.benches import BenchError

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
        """Raises StopError for a trial that was stopped, BeyondError for one that the bench cannot carry."""
        from wiregauge.master.stopping import Interrupted
        from wiregauge.runner import BeyondBenchError, NothingRunError

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
    """What the judgement of a run says of the trial that it was."""
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
    service = flow[SERVICE]
    rates = service.rates if service is not None else None
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
    service = flow[SERVICE]
    available = service.availability.ratio if service is not None else None
    passages = {f"{hop.switch}:{hop.port}": hop.n for hop in flow[HOPS]}
    interval = flow.summaries["receive_period"].mean
    grown = grown_ns(flow.series["latency"].value, uncertainty or 0.0) if "latency" in flow.series else None
    return Seen(counts["sent"], lost, offered, latency, available, passages, interval, grown)


def grown_ns(latency: NDArray[np.float64], uncertainty: float) -> float | None:
    """How much the floor of latencies, in the order in which frames were sent, rises from the first tenth to the last.

    A device that forwards less than comes lets frames wait longer and longer. None where the floor rises by no more
    than six times what neighbouring tenths usually differ by, or than the uncertainty of the latency.
    """
    if len(latency) < _TENTHS * _FEWEST_IN_TENTH:
        return None
    floors = np.array([part.min() for part in np.array_split(latency, _TENTHS)])
    rise = float(floors[-1] - floors[0])
    usual = float(np.median(np.abs(np.diff(floors))))
    return rise if rise > max(_STEPS * usual, uncertainty, 1.0) else None
