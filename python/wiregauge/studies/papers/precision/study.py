"""A high-precision test bed for switches: its own error, the delay it adds, its frame generator, and a switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from wiregauge.figures.model import Figure
from wiregauge.studies import (
    Cells,
    Course,
    Item,
    Key,
    Leaves,
    Measured,
    Parameter,
    Part,
    Picture,
    Results,
    Size,
    Study,
    as_counts,
    difference,
    greatest,
    known,
    leaves,
    left_out,
    line,
    over_time,
    scaled,
    total,
    with_extremes,
)

NO_LINE_RATE = "no application sends 201 613 frames a second evenly: the part needs the card's generator"
NO_SPIKES = "real hosts scatter more than the 672 ns that a frame of the switch's own delays another"
PACE = "period=2ms"
"""The pace of frames between real hosts, where only the hosts' own scatter is visible."""
ByBench = Mapping[str, Mapping[Size, Sequence[str]]]

FLOW, LEARNING = 10, 20
LENGTHS = (5, 10, 20, 30, 40, 50, 60, 100)
REPEATS = range(1, 6)
HEADERS = 46
"""Bytes of a UDP frame around its payload."""
GENERATED = {"line rate": ("line-rate", 4960.0), "24 000 ns": ("gap", 24_000.0)}
"""Part, and gap from start to start of frames, ns, by the paper's name."""


def frame_ns(length: int) -> Measured:
    """Time of a frame on the wire to its last bit; the card of the paper timestamps its first octet."""
    return known(8.0 * (8 + length), "ns", f"{length} B and preamble at 1 Gbit/s")


def traversal(found: Measured, length: int) -> Measured:
    """Our latency minus the time of the frame itself, which the paper's delays leave out."""
    return difference(found, frame_ns(length))


def cells(results: Results) -> Cells:
    """The cells of every number of the text, from the runs."""
    yield from _deviation(results)
    yield from _repetitions(results)
    yield from _cables(results)
    yield from _generated(results)
    yield from _switch(results)
    yield from _arithmetic()


def _deviation(results: Results) -> Cells:
    item = "Section III-A"
    low, high = (results.cell("deviation", f"latency.{edge}", FLOW) for edge in ("min", "max"))
    yield Key(item, "30 m", "", "least"), traversal(low, 1400)
    yield Key(item, "30 m", "", "greatest"), traversal(high, 1400)
    spread = results.cell("deviation", "range", FLOW)
    yield Key(item, "30 m", "", "greatest - least"), spread
    yield Key(item, "30 m", "", "half of it"), scaled(spread, 0.5)
    frames = results.cell("deviation", "delivered", FLOW)
    yield (
        Key(item, "30 m", "", "frames"),
        frames
        if results.size == "full"
        else left_out(f"this form has fewer frames than 6 * 10^8{_count(frames)}"),
    )


def _count(frames: Measured) -> str:
    return f": {frames.value:.0f}" if frames.value is not None else ""


def _repetitions(results: Results) -> Cells:
    for number in REPEATS:
        for name, found in zip(
            ("least", "mean", "greatest"), _bar(results, "repetitions", FLOW, number), strict=True
        ):
            yield Key("Figures 1 and 2", "30 m", f"{number}", name), found


def _bar(results: Results, part: str, flow: int, repeat: int) -> Iterator[Measured]:
    """Minimum, mean and maximum traversal time of one repetition."""
    for statistic in ("min", "mean", "max"):
        yield traversal(results.repeat(repeat, part, f"latency.{statistic}", flow), 600)


def _means(results: Results) -> list[tuple[float, Measured]]:
    return [
        (float(length), traversal(results.cell("cables", "latency.mean", length), 600)) for length in LENGTHS
    ]


def _cables(results: Results) -> Cells:
    item = "Figure 3"
    points = _means(results)
    slope, intercept = line(points, "m")
    yield Key(item, "line", "", "slope"), slope
    yield Key(item, "line", "", "intercept"), intercept
    for length, mean in points:
        x = f"{length:.0f} m"
        yield Key(item, "cable", x, "mean"), mean
        for name, edge in (("least", "min"), ("greatest", "max")):
            yield (
                Key(item, "cable", x, name),
                traversal(results.cell("cables", f"latency.{edge}", round(length)), 600),
            )


def _generated(results: Results) -> Cells:
    item = "Figure 4"
    for name, (part, gap) in GENERATED.items():
        nominal = known(gap, "ns", "gap from start to start")
        longest, shortest = (results.cell(part, f"period.{edge}", FLOW) for edge in ("max", "min"))
        late, early = difference(longest, nominal), difference(nominal, shortest)
        yield Key(item, name, "", "greatest deviation"), greatest(late, early)
        yield Key(item, name, "", "deviation upwards"), late
        yield Key(item, name, "", "deviation downwards"), early
        # Our goodput counts payloads, the paper's whole frames.
        whole = scaled(results.cell(part, "goodput", FLOW), 600 / (600 - HEADERS))
        yield Key(item, name, "", "bandwidth"), whole


def _switch(results: Results) -> Cells:
    item = "Figure 5"
    course = results.course("switch", FLOW)
    found = leaves(course)
    sent = results.cell("switch", "sent", FLOW)
    yield Key(item, "", "", "frames sent"), _whole(results, sent)
    learning = results.cell("switch", "delivered", LEARNING)
    yield Key(item, "", "", "frames for learning"), learning
    yield Key(item, "", "", "foreign frames"), found.count
    foreign = found.count
    received = total(results.cell("switch", "delivered", FLOW), learning, replace(foreign, unit="messages"))
    yield Key(item, "", "", "frames received"), _whole(results, received)
    yield Key(item, "spikes", "", "height"), found.height
    yield Key(item, "spikes", "", "back to normal after"), found.back_after
    yield Key(item, "", "", "variation outside of spikes"), found.range_outside
    yield Key(item, "spikes", "", "generator below line rate"), _slowness(found)


def _slowness(found: Leaves) -> Measured:
    """How much slower than line rate the generator is, in ppm, from the decrease of the queue with each frame."""
    slope = found.slope
    return replace(scaled(slope, 1e6 / (8.0 * 1420)), unit="ppm") if slope.value is not None else slope


def _whole(results: Results, found: Measured) -> Measured:
    return left_out("the quick form is shorter") if results.size == "quick" else found


def _arithmetic() -> Cells:
    item = "Arithmetic"
    at_line = 8.0 * 620
    yield Key(item, "", "", "600 B at line rate"), known(8 * 600 / at_line * 1e9, "bit/s", "600 of 620 B")
    yield (
        Key(item, "", "", "600 B every 24 000 ns"),
        known(8 * 600 / 24_000 * 1e9, "bit/s", "600 B of 3000 B"),
    )
    yield Key(item, "", "", "store and forward of 64 B"), known(8.0 * 64, "ns", "64 B at 1 Gbit/s")
    yield Key(item, "", "", "200 B frames at 1 Gbit/s"), known(1e9 / (8 * 220), "1/s", "220 B each")
    yield Key(item, "", "", "duration of 6 * 10^8 frames"), known(6e8 * 8 * 1420, "ns", "1420 B each")


def figures(results: Results) -> Mapping[str, Sequence[Figure]]:
    """The paper's pictures: bars, histograms, the line, the first transmit times, the switch over time."""
    repetitions = {
        f"experiment {number}": results.course("repetitions", FLOW, repeat=number) for number in REPEATS
    }
    switch = results.course("switch", FLOW)
    slope, intercept = line(_means(results), "m")
    fitted = {}
    if slope.value is not None and intercept.value is not None:
        fitted = {"ours": (slope.value, intercept.value), "published": (4.9, 813.3)}
    return {
        "Figures 1 and 2": [
            *with_extremes(
                "figure-1",
                "Figure 1: a cable of 30 m, repeated",
                "experiment",
                [(float(number), *_three(results, number)) for number in REPEATS],
            ),
            *as_counts("figure-2", "Figure 2: histograms, the time of the frame included", repetitions, 10.0),
        ],
        "Figure 3": with_extremes(
            "figure-3", "Figure 3: cables of various lengths", "cable (m)", list(_bars(results)), fitted
        ),
        "Figure 5": _spikes(switch),
    }


def _three(results: Results, number: int) -> tuple[Measured, Measured, Measured]:
    low, mean, high = _bar(results, "repetitions", FLOW, number)
    return low, mean, high


def _bars(results: Results) -> Iterator[tuple[float, Measured, Measured, Measured]]:
    for length, mean in _means(results):
        low, high = (
            traversal(results.cell("cables", f"latency.{edge}", round(length)), 600)
            for edge in ("min", "max")
        )
        yield length, low, mean, high


def _spikes(switch: Course) -> list[Figure]:
    whole = {"one flow": switch}
    found = leaves(switch)
    shown = over_time("figure-5a", "Figure 5(a): one flow through the switch", whole)
    if switch.series is None or not found.found:
        return shown
    began = float(switch.series.t[found.found[0].first] - switch.series.t[0])
    zoom = (max(began - 0.005, 0.0), began + 0.025)
    return [*shown, *over_time("figure-5b", "Figure 5(b): its first spike", whole, zoom)]


def _each(count: str) -> list[str]:
    """Settings for `count` frames over each cable."""
    return [f"send.{length}.count={count}" for length in LENGTHS]


def _on_hosts(quick: str, usual: str, *settings: str, flows: Sequence[int] = (FLOW,)) -> ByBench:
    """Settings for real hosts in place of the card's ports: the frames of each flow, and a pace that hosts can keep."""
    sizes: dict[Size, str] = {"quick": quick, "usual": usual, "full": usual}
    return {
        "netns": {
            size: (*settings, *(f"send.{flow}.{what}" for flow in flows for what in (PACE, f"count={count}")))
            for size, count in sizes.items()
        }
    }


def _part(name: str, quick: Sequence[str], full: Sequence[str] = (), on_hosts: ByBench | str = "") -> Part:
    """A part; `on_hosts` has its settings between real hosts, or the reason why it cannot run there."""
    refused = {"netns": on_hosts} if isinstance(on_hosts, str) else {}
    settings_on = on_hosts if not isinstance(on_hosts, str) else {}
    return Part(name, f"{name}.xml", {"quick": quick, "full": full}, refused, settings_on=settings_on)


STUDY = Study(
    name="precision",
    title="A high-precision test bed for Ethernet switches",
    paper="A test bed for active measurements of Ethernet switches with a Napatech NT4E, for in-car networks",
    question="How exact is a test bed that timestamps frames in hardware, and what does it see of a switch?",
    parts=[
        _part(
            "deviation",
            ("repeat.times=2", "send.10.count=100000"),
            ("repeat.times=600",),
            _on_hosts("2000", "10000", "repeat.times=2"),
        ),
        _part("repetitions", ("send.10.count=20000",), on_hosts=_on_hosts("2000", "10000")),
        Part(
            "cables",
            "cables.xml",
            {"quick": _each("4000"), "usual": _each("100000"), "full": _each("1000000")},
            settings_on=_on_hosts("500", "10000", flows=LENGTHS),
        ),
        _part("line-rate", ("send.10.count=100000",), on_hosts=NO_LINE_RATE),
        _part("gap", ("send.10.count=100000",), on_hosts={"netns": {"quick": ("send.10.count=20000",)}}),
        _part(
            "switch",
            ("send.10.count=200000", "own-frames.period=98ms", "own-frames.offset=80ms"),
            on_hosts=NO_SPIKES,
        ),
    ],
    items=[
        Item("Section III-A", "Greatest deviation of a traversal time"),
        Item(
            "Figures 1 and 2",
            "A cable of 30 m, five times 10^6 frames",
            picture=Picture("experiment", "traversal time, ns", "mean", lines=False),
        ),
        Item("Figure 3", "Traversal time by length of cable, and the delay that the test bed adds"),
        Item("Figure 4", "Frame generation"),
        Item("Figure 5", "A switch with five ports"),
        Item("Arithmetic", "Numbers that follow from others"),
    ],
    cells=cells,
    figures=figures,
    parameters=[
        Parameter(
            "error of transmit timestamps",
            "fitted",
            [("*.xml", "//t:end-system[starts-with(@name, 'from')]/t:timestamps/@application-error")],
        ),
        Parameter(
            "error of receive timestamps",
            "fitted",
            [("*.xml", "//t:end-system[starts-with(@name, 'to')]/t:timestamps/@application-error")],
        ),
        Parameter("delay of the switch", "assumed", [("switch.xml", "//t:switch/@delay")]),
        Parameter(
            "buffer of the switch", "assumed", [("switch.xml", "//t:switch/@buffer")], ("64KiB", "256KiB")
        ),
        Parameter(
            "generator below line rate",
            "fitted",
            [("switch.xml", "//t:send[@flow='10']/@period")],
            ("11360.409ns", "11360.5ns"),
            "36 and 44 ppm in place of 40",
        ),
        Parameter(
            "frame of the switch's own",
            "fitted",
            [("switch.xml", "//t:own-frames/@frame")],
            ("72B",),
            "none is shorter than 64 B",
        ),
    ],
)
