"""UDP against raw Ethernet: round trips over two hubs and a switch, and where their time goes.

SUT, SDT: a protocol stack up and down. NUT, NDT: an interface up and down. HTX, DTX: headers and data on the wire.
"""

from __future__ import annotations

from wiregauge.studies import (
    Cells,
    Item,
    Key,
    Measured,
    Parameter,
    Part,
    Picture,
    Results,
    Study,
    difference,
    known,
    left_out,
    ratio,
    scaled,
    total,
)

FLOWS = {"UDP": 10, "raw": 20}
NETWORKS = {"10 Mbit/s hub": "hub-10", "100 Mbit/s hub": "hub-100", "100 Mbit/s switch": "switch-100"}
PAYLOADS = ("64", "128", "256", "512", "1024")
WAYS = ("transmit", "receive")
QUICK = ("send.10.count=200", "send.20.count=200")
NO_CARD = "the driver is the host's and the card the model's: no time between them is a card's"

NS_PER_BYTE = 80.0
"""Time of a byte at 100 Mbit/s, ns."""
PREAMBLE = 8
HEADERS = {"UDP": PREAMBLE + 14 + 20 + 8 + 4, "raw": PREAMBLE + 14 + 4}
"""Bytes around the payload on the wire: preamble, Ethernet header, IPv4 and UDP headers if any, FCS."""
PAPERS_HEADERS = {"UDP": 20 + 8, "raw": 14 + 4}
"""The bytes whose ratio the paper prints as 55.5 %: it leaves the Ethernet header out of UDP's."""
BY_THE_PAPER = "the paper's count of header bytes"


def _one_way(results: Results, part: str, protocol: str, payload: str) -> Measured:
    """Half of the round-trip time, as in the paper."""
    return scaled(results.cell(part, "rtt.mean", FLOWS[protocol], payload=f"{payload}B"), 0.5)


def _loopback(results: Results, measure: str, protocol: str, payload: str) -> Measured:
    return results.cell("loopback", measure, FLOWS[protocol], payload=f"{payload}B")


def _on_wire(sized: int, what: str) -> Measured:
    return known(sized * NS_PER_BYTE, "ns", f"{what}, {sized} B at 100 Mbit/s")


def cells(results: Results) -> Cells:
    """The cells of the paper, and the split of every round trip."""
    yield from _shortest(results)
    for protocol in FLOWS:
        for payload in PAYLOADS:
            yield from _round_trips(results, protocol, payload)
            yield from _split(results, protocol, payload)
            yield from _split_by_timestamps(results, protocol, payload)
    yield from _stacks(results)
    yield from _headers()
    for payload in PAYLOADS:
        both = [_switch_by_hub(results, protocol, payload) for protocol in FLOWS]
        for protocol, found in zip(FLOWS, both, strict=True):
            yield Key("Figure 6", protocol, f"{payload} B", "switch / hub"), found
        yield Key("Section 4", "both protocols", f"{payload} B", "switch / hub"), scaled(total(*both), 0.5)


def _shortest(results: Results) -> Cells:
    frame = results.cell("shortest", "pair_latency.tx_wire-rx_wire.mean", 20)
    period = results.cell("shortest", "receive_period.min", 20)
    for what, found in (
        ("72 B, preamble and frame", frame),
        ("gap of 12 B", difference(period, frame)),
        ("84 B, period", period),
    ):
        yield Key("Section 1", "shortest frame, 10 Mbit/s", what, "time"), found


def _round_trips(results: Results, protocol: str, payload: str) -> Cells:
    slowest = {}
    for network, part in NETWORKS.items():
        slowest[network] = _one_way(results, part, protocol, payload)
        yield Key("Table 1", f"{protocol}, {network}", f"{payload} B", "RTT/2"), slowest[network]
        deviation = results.cell(part, "rtt.sd", FLOWS[protocol], payload=f"{payload}B")
        yield Key("Section 3", f"{protocol}, {network}", f"{payload} B", "sd of RTT"), deviation
    best = slowest.pop("100 Mbit/s hub")
    for network, found in slowest.items():
        yield Key("Figure 4", protocol, f"{payload} B", f"{network} / 100 Mbit/s hub"), ratio(found, best)


def _split(results: Results, protocol: str, payload: str) -> Cells:
    """Split by the paper's method: stacks from the loopback, the wire computed, the interfaces as the remainder."""
    down = _loopback(results, "stack_down.mean", protocol, payload)
    up = _loopback(results, "stack_up.mean", protocol, payload)
    stacks = _loopback(results, "latency.mean", protocol, payload)
    header = _on_wire(HEADERS[protocol], "headers")
    data = _on_wire(int(payload), "data")
    rest = difference(_one_way(results, "hub-100", protocol, payload), total(stacks, header, data))
    for what, found in (
        ("SUT", up),
        ("SDT", down),
        ("SUT + SDT, by the loopback", stacks),
        ("TNIC = NUT + NDT, by difference", rest),
        ("HTX", header),
        ("DTX", data),
    ):
        yield Key("Figure 5", protocol, f"{payload} B", what), found


def _split_by_timestamps(results: Results, protocol: str, payload: str) -> Cells:
    """Split that the paper could not make: every cost between two timestamps of the same messages."""
    for part, item in (("hub-100", "Figure 5"), ("switch-100", "Figure 5, over the switch")):
        for what, measure, ways in (
            # The stacks of a relayed flow are those of both directions.
            ("SUT", "stack_up.mean", 2),
            ("SDT", "stack_down.mean", 2),
            ("NUT", "pair_latency.rx_wire-rx_drv.mean", 1),
            ("NDT", "pair_latency.tx_drv-tx_wire.mean", 1),
            ("driver to driver", "driver_latency.mean", 1),
        ):
            if not results.modelled and "wire" in measure:
                found = left_out(NO_CARD, "ns")
            else:
                found = scaled(results.cell(part, measure, FLOWS[protocol], payload=f"{payload}B"), 1 / ways)
            yield Key(item, protocol, f"{payload} B", f"{what}, by timestamps"), found


def _stacks(results: Results) -> Cells:
    """The text's statements on stacks: raw frames cost the same at every size, UDP more, and more with its size."""
    for protocol in FLOWS:
        short, long = (_loopback(results, "latency.mean", protocol, payload) for payload in ("64", "1024"))
        yield Key("Section 3.1", protocol, "", "stacks, 1024 B / 64 B"), ratio(long, short)
    for payload in PAYLOADS:
        udp, raw = (_loopback(results, "latency.mean", protocol, payload) for protocol in FLOWS)
        yield Key("Section 3.1", "UDP / raw", f"{payload} B", "stacks"), ratio(udp, raw)
    for protocol in FLOWS:
        parts = {
            what: found
            for key, found in _split(results, protocol, "64")
            if (what := key.statistic) in ("TNIC = NUT + NDT, by difference", "HTX", "DTX")
        }
        nic = parts.pop("TNIC = NUT + NDT, by difference")
        for what, found in parts.items():
            yield Key("Section 3.1", protocol, "64 B", f"TNIC / {what}"), ratio(nic, found)


def _headers() -> Cells:
    papers = PAPERS_HEADERS["UDP"] / PAPERS_HEADERS["raw"] - 1
    ours = (HEADERS["UDP"] - PREAMBLE) / (HEADERS["raw"] - PREAMBLE) - 1
    yield Key("Section 3.1", "UDP against raw", "", "HTX, bigger by"), known(papers, "share", BY_THE_PAPER)
    beside = "all bytes around the payload, preamble included"
    yield (
        Key("Section 3.1", "UDP against raw", "", "HTX on the wire, bigger by"),
        known(ours, "share", beside),
    )


def _switch_by_hub(results: Results, protocol: str, payload: str) -> Measured:
    hub, switch = (_one_way(results, part, protocol, payload) for part in ("hub-100", "switch-100"))
    return ratio(switch, hub)


STUDY = Study(
    name="udp-versus-raw",
    title="UDP versus raw Ethernet",
    paper='"Performance comparison of UDP and raw Ethernet communication", two PCs of 800 MHz, hubs and a switch',
    question="What does the UDP stack cost against raw Ethernet, and what does a switch cost against a hub?",
    parts=[
        *(Part(part, f"{part}.xml", {"quick": QUICK}) for part in NETWORKS.values()),
        Part("loopback", "loopback.xml", settings_on={"netns": {"quick": QUICK}}),
        Part("shortest", "shortest.xml"),
    ],
    items=[
        Item(
            "Section 1",
            "The shortest frame",
            note="Bytes of the standard; here as times of simulated frames.",
        ),
        Item(
            "Section 3",
            "Standard deviation of all samples",
            note='The paper: "approximately of 5 microseconds".',
        ),
        Item(
            "Table 1",
            "Time measurements of protocols (RTT/2)",
            picture=Picture("payload, B", "RTT/2, µs", log_x=True),
        ),
        Item(
            "Figure 4",
            "UDP and raw over the three networks",
            note="Draws Table 1. What the text reads from it: the 100 Mbit/s hub is the fastest.",
        ),
        Item(
            "Figure 5",
            "Cost time segmented, 100 Mbit/s hub",
            picture=Picture(
                "payload, B", "TNIC, µs", statistic="TNIC = NUT + NDT, by difference", log_x=True
            ),
            note="By the paper's method, and by timestamps, which also part NUT from NDT.",
        ),
        Item(
            "Figure 5, over the switch",
            "The same split over the 100 Mbit/s switch",
            note="Not in the paper.",
        ),
        Item("Section 3.1", "What the costs are to each other"),
        Item(
            "Figure 6",
            "100 Mbit/s hub against switch",
            picture=Picture("payload, B", "switch / hub", log_x=True),
            note="The text: 25 % at 64 B and 67 % at 1024 B, approximately, and independently of the protocol.",
        ),
        Item("Section 4", "Hub against switch, both protocols together"),
    ],
    cells=cells,
    parameters=[
        Parameter(
            "stack of raw frames",
            "fitted",
            [("pc.host.xml", f"//t:stack[@protocol='raw']/@{way}") for way in WAYS],
        ),
        Parameter(
            "stack of UDP",
            "fitted",
            [("pc.host.xml", f"//t:stack[@protocol='udp']/@{way}") for way in WAYS],
        ),
        Parameter(
            "checksum, for a byte",
            "assumed",
            [("pc.host.xml", f"//t:stack[@protocol='udp']/@{way}-per-byte") for way in WAYS],
            ("0ns", "1.4ns"),
            "the text says that UDP grows with the size, and above 1.4 ns the ratios are missed",
        ),
        Parameter("wake-up of the receiver", "fitted", [("pc.host.xml", "//@receive-wake-up")]),
        Parameter("interface, down", "fitted", [("pc.host.xml", "//@interface-delay")]),
        Parameter("interface, up", "fitted", [("pc.host.xml", "//@interface-receive-delay")]),
        Parameter("delay of the switch", "fitted", [("switch-100.xml", "//t:switch/@delay")]),
    ],
)
