"""Deterministic Ethernet for MAPS: latency, jitter and loss of four protocols, six payloads, three loads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.calibrate.agentwork import listen
from wiregauge.calibrate.clocks import clock_results
from wiregauge.calibrate.errors import CalibrationError
from wiregauge.figures.distributions import boxes, density
from wiregauge.figures.model import Figure
from wiregauge.records import RunDirectory
from wiregauge.results import shapes
from wiregauge.studies import (
    SIZES,
    Cells,
    Item,
    Key,
    Measured,
    Parameter,
    Part,
    Picture,
    Results,
    Size,
    Study,
    difference,
    known,
    left_out,
    ratio,
    scaled,
    total,
)


class Protocol(Struct, frozen=True):
    """A protocol of the paper and the test that carries it."""

    name: str
    part: str
    flow: int
    headers: int = 0
    """Bytes of IPv4 and UDP headers that the test counts as payload."""

    def at(self, results: Results, measure: str, payload: int, load: int, part: str = "") -> Measured:
        """The protocol's figure at a point of the paper."""
        size = f"{payload + self.headers}B"
        return results.cell(part or self.part, measure, self.flow, payload=size, load=f"{load}%")


PROTOCOLS = (
    Protocol("TTE", "tte", 10, headers=28),
    Protocol("RC", "rc", 20),
    Protocol("BE", "be", 30),
    Protocol("UDP", "cots", 40),
)
TTE, RC, BE, UDP = PROTOCOLS
PAYLOADS = (64, 128, 256, 512, 1024, 1472)
LOADS = (0, 50, 100)
PERIOD = "period of the sender"
LEVELS = (25, 50, 75, 100)
EVEN_LOADS = {50: 31, 100: 44}
"""The load that the threads reach, %, by the nominal load, as in our Table 2."""
LOWER_REGIME = ((64, 50), (64, 100), (128, 100), (256, 100))
CLOCKS = {
    "CLOCK_MONOTONIC": "CLOCK_MONOTONIC",
    "CLOCK_REALTIME": "CLOCK_REALTIME",
    "PTP/PHC": "PHC /dev/ptp0",
    "RDTSC": "RDTSC",
}
PHC = Path("/dev/ptp0")

QUICK_COUNT = 334
"""Messages of a quick run: its phase covers a schedule of 1 ms once."""
NO_MODERATION = "its two regimes are those of a modelled card's interrupts, which real hosts have not"
SLOW = "messages 510 ms apart take minutes"
REAL = "real frames only"


def _table_1(results: Results) -> Cells:
    for name, cost in _clock_costs(results).items():
        for statistic in ("mean", "median", "sd", "min", "max"):
            yield Key("Table 1", name, "", statistic), cost(statistic)


class _Cost(Struct, frozen=True):
    facts: Mapping[str, Any] | None
    reason: str
    skipped: bool = False

    def __call__(self, statistic: str) -> Measured:
        if self.facts is None:
            return Measured(None, "ns", reason=self.reason, skipped=self.skipped)
        return Measured(
            float(self.facts[f"{statistic}_ns"]), "ns", int(self.facts["n"]), source="clocks.json"
        )


def _clock_costs(results: Results) -> Mapping[str, _Cost]:
    """The cost of reading each clock of this machine, measured once for a study directory."""
    if results.modelled:
        return dict.fromkeys(CLOCKS, _Cost(None, "the simulator has no clock to read", skipped=True))
    kept = results.place / "clocks.json"
    try:
        facts = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else _read_clocks()
    except CalibrationError as error:
        return dict.fromkeys(CLOCKS, _Cost(None, str(error)))
    kept.write_text(json.dumps(facts), encoding="utf-8")
    costs = {one["clock"]: one["cost"] for one in clock_results(facts)["clocks"]}
    return {name: _Cost(costs.get(ours), f"this machine has no {ours}") for name, ours in CLOCKS.items()}


def _read_clocks() -> list[Any]:
    facts: list[Any] = []
    core = min(os.sched_getaffinity(0))
    arguments = ["clocks", "--reads=200000", "--seconds=1", f"--core={core}", "--priority=0", "--every-ms=20"]
    listen([*arguments, *([f"--phc={PHC}"] if PHC.exists() else [])], facts.append)
    return facts


def _table_2(results: Results) -> Cells:
    intervals = dict(_intervals(results))
    for load in LEVELS:
        x = f"{load} %"
        yield Key("Table 2", "computed", x, "data rate"), known(load * 1e7, "bit/s", "share of 1 Gbit/s")
        found = {"packet interval": 0.1, "burst interval": 1.0} | (
            {"delay of a thread": 3.0} if load == 100 else {}
        )
        for statistic, bursts in found.items():
            yield Key("Table 2", "computed", x, statistic), _interval(results, intervals.get(load), bursts)
    for run in results.judgements["saturation"].runs if "saturation" in results.judgements else ():
        for one in run.loads:
            if one.to == "pc2":
                offered = Measured(one.offered, "share", source="frames that the injector sent")
                yield Key("Table 2", "realised", f"{one.intended:.0%}".replace("%", " %"), "load"), offered


def _interval(results: Results, interval_ns: float | None, bursts: float) -> Measured:
    if interval_ns is not None:
        return known(bursts * interval_ns, "ns", "interval of the plan")
    reason = results.reason("saturation")
    return Measured(None, "ns", reason=reason, skipped="saturation" in results.skipped)


def _intervals(results: Results) -> Iterator[tuple[int, float]]:
    """Planned time between two bursts of ten, ns, by load in %."""
    judgement = results.judgements.get("saturation")
    if judgement is None:
        return
    for run in RunDirectory.open(judgement.directory).plan.runs:
        first = run.injects[0]
        yield first.load_ppm // 10_000, first.interval / 1000


def _table_3(results: Results) -> Cells:
    for protocol in PROTOCOLS:
        for payload in PAYLOADS:
            for load in LOADS:
                series, x = f"{protocol.name}, {load} %", f"{payload} B"
                for statistic, measure in (("mean", "latency.mean"), ("sd", "latency.sd"), ("lost", "loss")):
                    found = protocol.at(results, measure, payload, load)
                    yield Key("Table 3", series, x, statistic), found


def _regimes(results: Results) -> Cells:
    """The lower regime; with adaptive interrupts either of two regimes follows after the same even load."""
    for payload, load in LOWER_REGIME:
        for statistic in ("mean", "sd"):
            for part, series in (("regime-lower", "lower regime"), ("regime-upper", "after a ramp")):
                found = UDP.at(results, f"latency.{statistic}", payload, EVEN_LOADS[load], part)
                yield Key("COTS UDP under load", f"{series}, {load} %", f"{payload} B", statistic), found


def _saturated(results: Results) -> Cells:
    def mean(protocol: Protocol, payload: int, load: int) -> Measured:
        return protocol.at(results, "latency.mean", payload, load)

    item = "Saturated network"
    for protocol, payload, load in ((TTE, 64, 50), (TTE, 1472, 100), (UDP, 512, 100), (UDP, 1472, 100)):
        found = ratio(mean(protocol, payload, load), mean(protocol, payload, 0))
        yield Key(item, protocol.name, f"{payload} B", f"{load} % load / idle"), found
    yield Key(item, "RC", "512 B", "added by 50 % load"), difference(mean(RC, 512, 50), mean(RC, 512, 0))
    yield Key(item, "BE", "64 B", "mean under 100 % load"), mean(BE, 64, 100)
    losses = [
        protocol.at(results, "lost", payload, load)
        for protocol in (TTE, RC)
        for payload in PAYLOADS
        for load in LOADS
    ]
    yield Key(item, "TTE and RC", "", "lost"), total(*losses)


def _not_printed(results: Results) -> Cells:
    """Results that the paper computed without printing them."""
    for protocol in PROTOCOLS:
        for payload in PAYLOADS:
            found = protocol.at(results, "effective_bandwidth", payload, 0)
            share = payload / (payload + protocol.headers)
            yield Key("Throughput", protocol.name, f"{payload} B", "payload / latency"), scaled(found, share)
        for payload in (64, 1472):
            for load in (0, 100):
                found = protocol.at(results, "latency.mean", payload, load, f"{protocol.part}-510ms")
                yield Key("510 ms", protocol.name, f"{payload} B, {load} % load", "mean"), found
    for payload in (64, 1472):
        for load in (0, 100):
            found = RC.at(results, "bag_spacing.sd", payload, load)
            yield Key("Hardware jitter", "RC", f"{payload} B, {load} % load", "sd of the spacing"), found
            found = TTE.at(results, "window_error.sd", payload, load)
            yield (
                Key("Hardware jitter", "TTE", f"{payload} B, {load} % load", "sd of the window error"),
                found,
            )


def _round_trips(results: Results) -> Cells:
    for load in ("0%", "100%"):
        x = f"64 B, {load.replace('%', ' %')} load"
        there, back = (results.cell("tte-round-trips", "latency.mean", flow, load=load) for flow in (10, 11))
        yield Key("Round trips", "TTE", x, "mean"), total(there, back)
        for protocol in (RC, BE, UDP):
            found = results.cell(f"{protocol.part}-round-trips", "rtt.mean", protocol.flow, load=load)
            yield Key("Round trips", protocol.name, x, "mean"), found


def _live(results: Results) -> Cells:
    if results.modelled:
        yield Key("Raw Ethernet", "raw", "", "mean"), left_out(REAL, "ns")
        return
    for payload in PAYLOADS:
        for load in LOADS:
            found = results.cell("cots-live", "latency.mean", 50, payload=f"{payload}B", load=f"{load}%")
            yield Key("Raw Ethernet", f"raw, {load} %", f"{payload} B", "mean"), found


def cells(results: Results) -> Cells:
    """The cells of every table, figure and sentence with a number."""
    for of in (_table_1, _table_2, _table_3, _regimes, _saturated, _not_printed, _round_trips, _live):
        yield from of(results)


def figures(results: Results) -> Mapping[str, Sequence[Figure]]:
    """Our figures 3, 4 and 5; the paper has them as pictures."""
    drawn: dict[str, list[Figure]] = {"Figure 3": [], "Figure 4": [], "Figure 5": []}
    for protocol in PROTOCOLS:
        if protocol.part not in results.judgements:
            continue
        found = shapes(results.judgements[protocol.part])
        made = [("Figure 5", density(found, "latency"))]
        if protocol is UDP:
            made += [("Figure 3", density(found, "period")), ("Figure 4", boxes(found, "period"))]
        for number, figure in made:
            if figure is not None:
                title = f"{number}, {protocol.name}: {figure.title}"
                drawn[number].append(replace(figure, id=f"{figure.id}-{protocol.part}", title=title))
    return drawn


def _parts() -> Iterator[Part]:
    for protocol in PROTOCOLS:
        quick = (f"send.{protocol.flow}.count={QUICK_COUNT}",)
        # Phases of real threads are random, and repeats of the model's tell nothing about them.
        once: tuple[str, ...] = ("repeat.times=1",) if protocol is UDP else ()
        here: dict[Size, Sequence[str]] = {"quick": (*quick, *once), "usual": once, "full": once}
        yield Part(protocol.part, f"{protocol.part}.xml", {"quick": quick}, settings_on={"netns": here})
    for protocol in PROTOCOLS:
        yield Part(
            f"{protocol.part}-510ms",
            f"{protocol.part}.xml",
            {"usual": (*_slow(protocol), f"send.{protocol.flow}.count=40"), "full": _slow(protocol)},
            not_in={"quick": SLOW},
        )
    levels = (
        "axis.payload.values=64B",
        f"axis.load.values={' '.join(f'{level}%' for level in LEVELS)}",
        "send.40.count=200",
        "repeat.times=1",
    )
    yield Part("saturation", "cots.xml", dict.fromkeys(SIZES, levels))
    for name, offset in (("lower", "2.2s"), ("upper", "150ms")):
        held_up = (f"event.offset={offset}",)
        yield Part(
            f"regime-{name}", "cots-regimes.xml", dict.fromkeys(SIZES, held_up), {"netns": NO_MODERATION}
        )
    for protocol in PROTOCOLS:
        name = f"{protocol.part}-round-trips"
        yield Part(name, f"{name}.xml")
    live = ("send.40.count=100", "send.50.count=100")
    yield Part("cots-live", "cots-live.xml", {"quick": live}, {"sim": REAL})


def _slow(protocol: Protocol) -> tuple[str, ...]:
    """Settings for a period of just over 510 ms, with the longest BAG and schedule of at most half of it."""
    flow = {"TTE": ("flow.period=255ms",), "RC": ("flow.bag=128ms",)}.get(protocol.name, ())
    wanted = f"{64 + protocol.headers}B {1472 + protocol.headers}B"
    axes = (f"axis.payload.values={wanted}", "axis.load.values=0% 100%")
    once = ("repeat.times=1",) if protocol is UDP else ()
    return (*flow, f"send.{protocol.flow}.period=516.5ms", *axes, *once)


def _parameters() -> Iterator[Parameter]:
    """The parameters of the machine model; the README gives meaning and source of each."""
    tte, cots = "tte-card.host.xml", "cots-*.host.xml"
    yield Parameter("reading of the TTE card, for a byte", "fitted", [(tte, "//@card-read-per-byte")])
    yield Parameter("wake-up at the TTE card", "fitted", [(tte, "//@receive-wake-up")])
    yield Parameter("transmit, RC", "fitted", [(tte, "/t:host-model/@transmit")])
    for protocol in (BE, TTE):
        yield Parameter(
            f"transmit, {protocol.name}",
            "fitted",
            [(f"{protocol.part}*.xml", "//t:end-system/t:host/@transmit")],
        )
    yield Parameter("slots of the ring of BE", "fitted", [(tte, "//t:receive-buffer/@slots")])
    yield Parameter("FIFO in front of the ring of BE", "fitted", [(tte, "//t:receive-buffer/@fifo")])
    yield Parameter("transmit, COTS", "fitted", [(cots, "/t:host-model/@transmit")])
    yield Parameter("interrupt latency, COTS", "fitted", [(cots, "//@interrupt-latency")])
    yield Parameter("receive, COTS", "fitted", [(cots, "//@receive")])
    yield Parameter("wake-up, COTS", "fitted", [(cots, "//@receive-wake-up")])
    yield Parameter("spacing of interrupts, COTS", "assumed", [("cots-card.host.xml", "//@interrupt-wait")])
    yield Parameter("call that sends a frame of the flood", "fitted", [("*.xml", "//t:inject/@send-cost")])
    yield Parameter(
        "how far a sleep of the flood scatters",
        "assumed",
        [("*.xml", "//t:inject/@sleep-overhead")],
        ("0%:58us 100%:62us", "0%:0us 100%:120us"),
        "its mean of 60 µs is the paper's",
    )
    yield Parameter(
        PERIOD,
        "fitted",
        [(f"{protocol.part}.xml", "//t:send/@period") for protocol in PROTOCOLS],
        ("2ms", "2.001ms", "2.005ms"),
        "the paper says 2 ms",
    )


STUDY = Study(
    name="maps",
    title="Deterministic Ethernet for the Modular Active Protection Systems framework",
    paper=(
        "D. A. Verbree and A. Shvartsman, Evaluation of Deterministic Ethernet for the Modular Active Protection "
        "Systems Framework, NDIA Ground Vehicle Systems Engineering and Technology Symposium, Novi, Michigan, 2015"
    ),
    question=(
        "How late, how scattered and how lossy are TTEthernet, rate-constrained, best-effort and ordinary UDP "
        "messages, idle and under load?"
    ),
    parts=list(_parts()),
    items=[
        Item("Table 1", "Cost of reading clocks", judged_on=()),
        Item("Table 2", "Saturation: intervals computed, load realised"),
        Item("Figure 3", "Transmit periods: density"),
        Item("Figure 4", "Transmit periods: boxes"),
        Item(
            "Table 3",
            "One-way latency and loss",
            may_miss={"mean": 6, "sd": 20, "lost": 2},
            note=(
                "Payloads of 64, 256, 512 and 1472 B are fitted, 128 and 1024 B predictions. The period of the sender "
                "moves the phase of TTE to the schedule of 1 ms evenly; with 2 ms exactly it would stay where it began."
            ),
            picture=Picture("payload, B", "mean latency, µs", statistic="mean", log_x=True, log_y=True),
        ),
        Item("COTS UDP under load", "Two regimes of moderated interrupts"),
        Item("Figure 5", "One-way latency: density"),
        Item("Saturated network", "What load adds"),
        Item("510 ms", "One-way latency with a period of 510 ms"),
        Item("Round trips", "There and back"),
        Item("Throughput", "Payload over latency, idle"),
        Item("Hardware jitter", "On the wire"),
        Item("Clock synchronisation", "PTP over a back-end network"),
        Item("Raw Ethernet", "Raw frames beside UDP on this machine"),
    ],
    cells=cells,
    figures=figures,
    parameters=list(_parameters()),
)
