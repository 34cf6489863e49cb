"""Ethernet and UDP for robot control: a day of round trips, its modes, switches, forty devices, operating systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wiregauge.figures.model import Figure
from wiregauge.records import RunDirectory
from wiregauge.studies import (
    Cells,
    Course,
    Item,
    Key,
    Measured,
    Parameter,
    Part,
    Picture,
    Recurring,
    Results,
    Size,
    Study,
    against_rarity,
    difference,
    greatest,
    known,
    least,
    left_out,
    over_time,
    ratio,
    recurring,
    scaled,
    total,
)

NO_MODEL = "real hosts are not the paper's: the part needs its machine model"
TOO_LONG = "a day belongs to the full form"
LONG = "ten hours belong to the usual and the full form"

FLOW, FAR = 10, 40
LIVE = {"this machine": FLOW, "this machine, three switches more": FAR}
BROADCAST = 1
SENDERS_PORT = 1
DEVICES = [f"device{number}" for number in range(1, 41)]
BYTE_NS = 80
"""Time of a byte at 100 Mbit/s, ns; a tenth of it at 1 Gbit/s."""
LATENT, OCCUPIED = 8 + 246, 8 + 246 + 12
"""Bytes of a message of 200 B until its last bit has arrived, and until the next may start."""
WIRE_MEAN = "pair_latency.tx_wire-rx_wire.mean"
"""The latency from interface to interface, one way; the way back uses the same links."""
MODES = {"1": 318.0, "2": 5.0, "3": 3600.0}
"""Period of each mode of the paper, s."""
LENGTHS = {"hour": "1 h", "ten-hours": "10 h", "day": "24 h"}
SWITCHES = {"KSZ8863": "ksz8863", "RB750Gr2": "rb750", "GS105": "gs105"}
WIRES = {"KSZ8863": 2 * LATENT * BYTE_NS, "RB750Gr2": 2 * LATENT * BYTE_NS / 10}
"""Time of the frame on the link that the switch adds, there and back, ns."""
SYSTEMS = {
    "ChibiOS": "switch-baseline",
    "Linux, real-time": "rt-linux",
    "Windows": "windows",
    "Linux, ordinary": "linux",
}
ORDER = "Order of the answers"
RATES = {"100 Hz": "forty-100-hz", "1 kHz": "forty-1-khz"}


def of(results: Results, part: str, measure: str, flow: int = FLOW) -> Measured:
    """A figure of a part, by default of the only flow that most parts have."""
    return results.cell(part, measure, flow)


def cells(results: Results) -> Cells:
    """The cells of every number of the text, from the runs."""
    found = {
        part: recurring(results.course(part, FLOW)) for part in (*LENGTHS, "control", *SWITCHES.values())
    }
    yield from _frames()
    yield from _baseline(results)
    for part, length in LENGTHS.items():
        yield from _modes(results, part, length, found[part])
    yield Key("Modes", "without modes", "", "modes found"), found["control"].count
    yield from _switches(results, found)
    yield from _forty(results)
    yield from _systems(results)
    yield from _live(results)


def _frames() -> Cells:
    item = "UDP datagram size"
    overhead, least_frame = 8 + 14 + 20 + 8 + 4 + 12, 84
    yield Key(item, "", "", "overhead, B"), known(overhead, "", "preamble, headers, FCS and gap")
    yield Key(item, "", "", "least frame, B"), known(least_frame, "", "64 B, preamble and gap")
    yield Key(item, "", "", "least payload, B"), known(least_frame - overhead, "", "what is left of it")
    yield Key(item, "", "", "200 B on the wire, B"), known(200 + overhead, "", "payload and overhead")
    for rate, by in (("100 Mbit/s", 1), ("1 Gbit/s", 10)):
        until = known(LATENT * BYTE_NS / by, "ns", "254 B: preamble to FCS")
        yield Key(item, rate, "", "time on the wire"), until
        whole = known(OCCUPIED * BYTE_NS / by, "ns", "266 B: with the gap")
        yield Key(item, rate, "", "time on the wire with the gap"), whole


def _baseline(results: Results) -> Cells:
    """The cells of the longest baseline of this size."""
    part = (
        "day" if "day" in results.judgements else "ten-hours" if "ten-hours" in results.judgements else "hour"
    )
    p90, fastest = of(results, part, "rtt.p90"), of(results, part, "rtt.min")
    item = "Figures 5 and 6"
    yield Key(item, "", "", "RTT, p90"), p90
    yield Key(item, "", "", "jitter, p90 - min"), difference(p90, fastest)
    wire = known(4 * LATENT * BYTE_NS, "ns", "four links of 254 B at 100 Mbit/s")
    yield Key(item, "", "", "on the wire"), wire
    yield Key(item, "", "", "RTT at 1 Gbit/s"), difference(p90, scaled(wire, 0.9))
    sent = (
        of(results, "day", "sent") if results.size == "full" else left_out("this form is shorter than 24 h")
    )
    yield Key(item, "", "", "messages"), sent
    for count in ("lost", "reordered"):
        yield Key(item, "", "", count), of(results, part, count)
    error = "Figure 4"
    yield Key(error, "", "", "p99"), of(results, part, "send_error.p99")
    yield Key(error, "", "", "max"), of(results, part, "send_error.max")


def _modes(results: Results, part: str, length: str, found: Recurring) -> Cells:
    item = "Modes"
    yield Key(item, "all", length, "modes found"), found.count
    for name, period in MODES.items():
        if name == "3" and part == "hour":
            continue
        series = f"mode {name}"
        yield Key(item, series, length, "period"), found.period(period)
        yield Key(item, series, length, "duration"), found.duration(period)
        yield Key(item, series, length, "height"), found.height(period)
        if name == "3":
            yield Key(item, series, length, "highest"), found.highest(period)
        if part in results.judgements:
            yield Key(item, series, length, "seen in cycles"), found.bands(period)
    level = total(of(results, part, "rtt.p50"), found.height(MODES["2"]))
    yield Key(item, "mode 2", length, "RTT in the mode"), level


def _switches(results: Results, found: Mapping[str, Recurring]) -> Cells:
    item = "Figures 8 and 9"
    base, alone = of(results, "switch-baseline", "rtt.mean"), of(results, "rb750-alone", "rtt.mean")
    jitter = _jitter(results, "switch-baseline")
    added = {}
    for name, part in SWITCHES.items():
        added[name] = difference(of(results, part, "rtt.mean"), base)
        yield Key(item, name, "", "added to the RTT"), added[name]
        if name in WIRES:
            wire = known(WIRES[name], "ns", "254 B on one more link, twice")
            yield Key(item, name, "", "wire time"), wire
            yield Key(item, name, "", "switching"), difference(added[name], wire)
        yield Key(item, name, "", "added jitter"), difference(_jitter(results, part), jitter)
        second = _present(found[part], MODES["2"])
        yield Key(item, name, "", "mode 2"), _of_boards(results, second)
        # In 35 minutes mode 1 has too few cycles for the search; it fills 5 % of the time, so p99 is in it.
        yield Key(item, name, "", "mode 1, p99 - p50"), _of_boards(results, _upper(results, part))
    slower = difference(added["GS105"], added["KSZ8863"])
    yield Key(item, "GS105", "", "slower than the KSZ8863"), slower
    rougher = difference(_jitter(results, "gs105"), _jitter(results, "ksz8863"))
    yield Key(item, "GS105", "", "more jitter than the KSZ8863"), rougher
    second = total(of(results, "rb750", "rtt.p50"), found["rb750"].height(MODES["2"]))
    yield Key(item, "RB750Gr2", "", "RTT in mode 2"), _of_boards(results, second)
    yield Key(item, "RB750Gr2", "", "saved by it in place of the GS105"), difference(base, alone)
    yield Key(item, "all in a row", "", "added to the RTT"), difference(of(results, "row", "rtt.mean"), base)
    together = total(*added.values())
    yield Key(item, "all in a row", "", "sum of the three"), together
    parts = ("switch-baseline", *SWITCHES.values(), "rb750-alone")
    for count in ("lost", "reordered"):
        yield Key(item, "all", "", count), total(*(of(results, part, count) for part in parts))
    messages = total(*(of(results, part, "sent") for part in parts))
    yield Key(item, "all", "", "messages"), _whole(results, messages)


def _of_boards(results: Results, found: Measured) -> Measured:
    """A figure that depends on the paper's firmware, which only the model has."""
    return found if results.modelled else left_out(NO_MODEL, found.unit)


def _jitter(results: Results, part: str) -> Measured:
    return difference(of(results, part, "rtt.p90"), of(results, part, "rtt.min"))


def _present(found: Recurring, period: float) -> Measured:
    """1 where there is a mode of this period, else 0."""
    count = found.count
    if count.value is None:
        return count
    there = float(found.bands(period).value is not None)
    return Measured(there, "", found.n, there, there, f"a mode of {period:g} s in {found.course.source}")


def _upper(results: Results, part: str) -> Measured:
    return difference(of(results, part, "rtt.p99"), of(results, part, "rtt.p50"))


def _whole(results: Results, found: Measured) -> Measured:
    return left_out("the quick form is shorter") if results.size == "quick" else found


def _forty(results: Results) -> Cells:
    item = "Figures 13 and 14"
    for rate, part in RATES.items():
        if part not in results.judgements:
            missing = _absent(results, part)
            for statistic in (
                "lost",
                "reordered",
                "between two answers",
                "typical first answer",
                "soonest answer",
                "latest answer",
            ):
                yield Key(item, "", rate, statistic), missing
            continue
        yield Key(item, "", rate, "most waiting for the sender, B"), _waiting(results, part)
        for number, board in enumerate(DEVICES, start=1):
            yield Key(ORDER, rate, f"{number}", "RTT, p50"), results.cell(part, "rtt.p50", BROADCAST, board)
        for count in ("lost", "reordered"):
            yield Key(item, "", rate, count), total(*_answers(results, part, count))
        first, last = (
            least(*_answers(results, part, "rtt.min")),
            greatest(*_answers(results, part, "rtt.max")),
        )
        yield Key(item, "", rate, "soonest answer"), first
        yield Key(item, "", rate, "latest answer"), last
        back = "pair_latency.back_tx_drv-back_rx_drv"
        slowest = greatest(*_answers(results, part, f"{back}.max"))
        spread = difference(slowest, least(*_answers(results, part, f"{back}.min")))
        yield Key(item, "", rate, "between two answers"), scaled(spread, 1 / (len(DEVICES) - 1))
        half = known((len(DEVICES) - 1) * OCCUPIED * BYTE_NS / 10 / 2, "ns", "half of 39 frames at 1 Gbit/s")
        typical = least(*_answers(results, part, "rtt.p50"))
        yield Key(item, "", rate, "typical first answer"), difference(typical, half)
    bytes_together = len(DEVICES) * OCCUPIED
    yield Key(item, "", "", "bytes of the answers, B"), known(bytes_together, "", "40 frames of 266 B")
    part = RATES["100 Hz"]
    answers = (
        total(*_answers(results, part, "sent")) if part in results.judgements else _absent(results, part)
    )
    yield (
        Key(item, "", "100 Hz", "measurements"),
        (answers if results.size == "full" else left_out("this form is shorter than 90 minutes")),
    )


def _waiting(results: Results, part: str) -> Measured:
    """The greatest number of bytes queued at the port to the sender, counted by the switch."""
    directory = RunDirectory.open(results.judgements[part].directory)
    simulation = directory.entries()[0].simulation
    assert simulation is not None
    (switch,) = simulation.switches.values()
    port = next(one for one in switch.ports if one.port == SENDERS_PORT)
    return Measured(
        float(port.most_waiting_bytes), "", 1, source=f"port {SENDERS_PORT} of the switch of {part}"
    )


def _answers(results: Results, part: str, measure: str) -> Iterator[Measured]:
    return (results.cell(part, measure, BROADCAST, board) for board in DEVICES)


def _absent(results: Results, part: str) -> Measured:
    return results.cell(part, "sent", BROADCAST, DEVICES[0])


def _systems(results: Results) -> Cells:
    ranges = {name: _of_boards(results, _range(results, part)) for name, part in SYSTEMS.items()}
    linux = ranges["Linux, real-time"]
    yield Key("Figure 12", "Linux, real-time", "", "range"), linux
    yield Key("Figure 12", "Linux, real-time", "", "range / that of ChibiOS"), ratio(linux, ranges["ChibiOS"])
    item = "Figures 15 and 16"
    for name, part in SYSTEMS.items():
        for statistic in ("min", "p50", "p99", "p99.9", "max"):
            yield Key(item, name, "", statistic), _of_boards(results, of(results, part, f"rtt.{statistic}"))
    for name in ("Linux, real-time", "Windows"):
        yield Key(item, name, "", "sooner by 1 Gbit/s"), _sooner(results, SYSTEMS[name])


def _sooner(results: Results, part: str) -> Measured:
    """How much shorter than in the baseline a round trip is on the links alone."""
    if not results.modelled:
        return left_out(NO_MODEL, "ns")
    there = of(results, "switch-baseline", WIRE_MEAN)
    return scaled(difference(there, of(results, part, WIRE_MEAN)), 2)


def _range(results: Results, part: str) -> Measured:
    return difference(of(results, part, "send_error.max"), of(results, part, "send_error.min"))


def _live(results: Results) -> Cells:
    """This machine's kernel in place of the three systems; not on the simulator."""
    if results.modelled:
        return
    for name, flow in LIVE.items():
        for statistic in ("min", "p50", "p99", "p99.9", "max"):
            yield Key("Figures 15 and 16", name, "", statistic), of(results, "live", f"rtt.{statistic}", flow)
        for count in ("lost", "reordered"):
            yield Key("Figures 5 and 6", name, "", count), of(results, "live", count, flow)
    latest, soonest = (of(results, "live", f"send_error.{edge}") for edge in ("max", "min"))
    yield Key("Figure 12", "this machine", "", "range"), difference(latest, soonest)
    yield Key("Modes", "this machine", "", "modes found"), recurring(results.course("live", FLOW)).count
    far, near = (of(results, "live", "rtt.p50", flow) for flow in (FAR, FLOW))
    yield (
        Key("Figures 8 and 9", "three switches on this machine", "", "added to the RTT"),
        difference(far, near),
    )


def figures(results: Results) -> Mapping[str, Sequence[Figure]]:
    """The paper's pictures: over time, zoomed, and against rarity."""
    longest = (
        "day" if "day" in results.judgements else "ten-hours" if "ten-hours" in results.judgements else "hour"
    )
    base = {"baseline": results.course(longest if results.modelled else "live", FLOW)}
    switches = {"none": results.course("switch-baseline", FLOW)} | {
        name: results.course(part, FLOW) for name, part in {**SWITCHES, "all in a row": "row"}.items()
    }
    systems = {"this machine": results.course("live", FLOW)}
    if results.modelled:
        systems = {name: results.course(part, FLOW) for name, part in SYSTEMS.items()}
    zoom = (0.0, 600.0)
    return {
        "Figures 5 and 6": [
            *over_time("figure-5", "Figure 5: round trips", base),
            *over_time("figure-6", "Figure 6: ten minutes of them", base, zoom),
            *against_rarity("figure-5-percentiles", "Round trips: percentiles", base),
        ],
        "Figures 8 and 9": [
            *over_time("figure-8", "Figure 8: round trips through one more switch", switches),
            *over_time("figure-9", "Figure 9: ten minutes of them", switches, zoom),
        ],
        "Figures 13 and 14": [
            *over_time(
                "figure-13",
                "Figure 13: round trips of four of forty boards",
                {f"board {k}": _answered(results, f"device{k}") for k in (1, 2, 3, 40)},
                (0.0, 2.0),
            )
        ],
        "Figures 15 and 16": [
            *against_rarity("figure-15", "Figure 15: round trips of the systems, percentiles", systems),
            *over_time("figure-16", "Figure 16: ten minutes of them", systems, zoom),
        ],
    }


def _answered(results: Results, board: str) -> Course:
    return results.course(RATES["100 Hz"], BROADCAST, board)


def _lengths(quick: str, usual: str, full: str, *more: str) -> Mapping[Size, Sequence[str]]:
    """Settings of the duration in each size."""
    return {
        "quick": (*more, f"tasks.duration={quick}"),
        "usual": (*more, f"tasks.duration={usual}"),
        "full": (*more, f"tasks.duration={full}"),
    }


def _switched(test: str) -> Part:
    """A part of the comparison of switches: 35 minutes, as the paper's."""
    name = "switch-baseline" if test == "modes" else test
    live = {"netns": _lengths("10s", "2min", "35min")}
    return Part(name, f"{test}.xml", _lengths("4min", "35min", "35min"), settings_on=live)


def _system(test: str) -> Part:
    return Part(test, f"{test}.xml", _lengths("2min", "1h", "10h"), not_on={"netns": NO_MODEL})


def _boards(name: str, period: str, usual: str, full: str) -> Part:
    rate = f"send.{BROADCAST}.period={period}"
    return Part(name, "forty.xml", _lengths("1s", usual, full, rate))


STUDY = Study(
    name="robot",
    title="Ethernet and UDP for robot control",
    paper="F. Enner, Analyzing the viability of Ethernet and UDP for robot control, Robohub, 29 November 2016",
    question="Is UDP over ordinary switches predictable enough to control a robot, and what makes its rare delays?",
    parts=[
        Part("hour", "modes.xml", not_on={"netns": NO_MODEL}),
        Part("control", "baseline.xml", {"quick": ("tasks.duration=20min",)}, not_on={"netns": NO_MODEL}),
        *(_switched(test) for test in ("modes", *SWITCHES.values(), "rb750-alone", "row")),
        *(_system(test) for test in ("rt-linux", "linux", "windows")),
        _boards("forty-100-hz", "10ms", "30s", "90min"),
        _boards("forty-1-khz", "1ms", "3s", "9min"),
        Part(
            "ten-hours",
            "modes.xml",
            {"usual": ("tasks.duration=10h",), "full": ("tasks.duration=10h",)},
            not_on={"netns": NO_MODEL},
            not_in={"quick": LONG},
        ),
        Part(
            "day",
            "modes.xml",
            {"full": ("tasks.duration=24h",)},
            not_on={"netns": NO_MODEL},
            not_in={"quick": TOO_LONG, "usual": TOO_LONG},
        ),
        Part(
            "live",
            "live.xml",
            {"quick": ("tasks.duration=4s",), "full": ("tasks.duration=24h",)},
            not_on={"sim": "it is of real frames only"},
        ),
    ],
    items=[
        Item("UDP datagram size", "What a message of 200 B takes on the wire (Figure 2)"),
        Item("Figure 4", "Jitter of the operating system against the ideal tick, ChibiOS"),
        Item("Figures 5 and 6", "Round trips of the baseline, a day and ten minutes"),
        Item("Modes", "Recurring modes of the baseline"),
        Item("Figures 8 and 9", "What a switch adds"),
        Item(
            "Figure 12",
            "Jitter of the operating system against the ideal tick, Linux with a real-time kernel",
        ),
        Item("Figures 13 and 14", "Forty devices answer one broadcast"),
        Item(
            ORDER,
            "Round trips of the boards one by one: the queue at the port to the sender",
            note="Figure 13 has some of them. Boards served in one order rise evenly, others are level.",
            picture=Picture("board", "median RTT, µs", "RTT, p50"),
        ),
        Item("Figures 15 and 16", "Three operating systems"),
    ],
    cells=cells,
    figures=figures,
    parameters=[
        Parameter(
            "stack of a board",
            "fitted",
            [("board.host.xml", "//@transmit"), ("board.host.xml", "//@receive")],
        ),
        Parameter(
            "interface and interrupt of a board",
            "assumed",
            [("board.host.xml", "//@interface-delay"), ("board.host.xml", "//@interrupt-latency")],
        ),
        Parameter("wake-up of a board", "assumed", [("board.host.xml", "//@receive-wake-up")]),
        Parameter(
            "decision of the second GS105",
            "assumed",
            [("*.xml", "//t:switch[@name='gs105-added']/@delay")],
        ),
        Parameter("wait of the second GS105 between rates", "assumed", [("*.xml", "//@mixed-rate-delay")]),
        Parameter("delay of the GS748T", "assumed", [("forty.xml", "//t:switch/@delay")]),
        Parameter("cables", "assumed", [("*.xml", "//t:link/@delay")], ("5ns", "500ns"), "1 to 100 m"),
        Parameter("stack of the real-time Linux", "assumed", [("rt-linux.host.xml", "//@transmit")]),
        Parameter(
            "wake-ups of the real-time Linux", "assumed", [("rt-linux.host.xml", "//@receive-wake-up")]
        ),
        Parameter(
            "Windows",
            "assumed",
            [("windows.host.xml", "//@transmit"), ("windows.host.xml", "//@receive-wake-up")],
        ),
    ],
)
