"""The one definition of every measure: the report prints it beside the number, the reference page is checked by it.

Formulas use the columns of `messages/run-NNNN.parquet` (see docs/reference/run-directory.md). A message with
several copies counts by its first intact one. Warm-up messages are excluded from every measure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Unit = Literal["ns", "messages", "bit/s", "share", "1/s"]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a measure is. `formula` is text in the columns of the message table; `source` names standard and clause."""

    name: str
    title: str
    formula: str
    unit: Unit
    source: str
    note: str = ""


_MAPS = "MAPS 2015, Test scenarios and evaluation criteria"
_ALL = (
    Definition(
        "latency",
        "One-way latency",
        "rx_app - tx_app",
        "ns",
        f"RFC 7679, 3.4 (one-way delay), taken at the application; {_MAPS}",
        "From the application's hand-over to the application at the other end: stacks and queues are part of it. "
        "A known offset between the two clocks is subtracted (RFC 7679, 3.7.3).",
    ),
    Definition(
        "driver_latency",
        "Driver-to-driver latency",
        "rx_drv - tx_drv",
        "ns",
        "RFC 7679, 3.4, between the kernel's software stamps",
        "The network with the two drivers, without the sockets. Queueing before the transmit stamp is not in it.",
    ),
    Definition(
        "service_latency",
        "Service latency",
        "rx_app - intended",
        "ns",
        "Open-loop rule against coordinated omission (G. Tene, HdrHistogram)",
        "What an application that relies on the schedule sees: a late sender counts against it.",
    ),
    Definition(
        "return_latency",
        "Return latency",
        "back_rx_app - back_tx_app",
        "ns",
        "RFC 7679, 3.4, on the way back from the relay",
    ),
    Definition(
        "rtt",
        "Round trip",
        "back_rx_app - tx_app",
        "ns",
        "RFC 2681, 2.4 (round-trip delay), taken at the application",
        "Both stamps come from one clock, so no clock offset enters. The turnaround in the relay is part of it.",
    ),
    Definition(
        "stack_down",
        "Stack down",
        "(tx_drv - tx_app) + (back_tx_drv - back_tx_app)",
        "ns",
        "UDP versus raw Ethernet, split of a round trip",
        "Application to driver on every sending leg; a one-way flow has the first term only.",
    ),
    Definition(
        "network",
        "Network",
        "(rx_drv - tx_drv) + (back_rx_drv - back_tx_drv)",
        "ns",
        "UDP versus raw Ethernet, split of a round trip",
        "Driver to driver on every leg; a one-way flow has the first term only.",
    ),
    Definition(
        "stack_up",
        "Stack up",
        "(rx_app - rx_drv) + (back_rx_app - back_rx_drv)",
        "ns",
        "UDP versus raw Ethernet, split of a round trip",
        "Driver to application on every receiving leg; a one-way flow has the first term only.",
    ),
    Definition(
        "turnaround",
        "Relay turnaround",
        "back_tx_app - rx_app",
        "ns",
        "UDP versus raw Ethernet, split of a round trip",
        "Time the message spent in the relay's application. The four parts are taken over the messages that have "
        "every stamp, so they add up to the round trip.",
    ),
    Definition(
        "send_error",
        "Send error",
        "tx_app - intended",
        "ns",
        "Open-loop schedule; MAPS 2015, transmittal period and jitter",
        "How far the sender missed its own schedule. A sender that is late keeps the schedule. This is the "
        "wake-up error of the sending task (cyclictest: time of waking less time asked for) with the work up to "
        "handing the message over.",
    ),
    Definition(
        "period",
        "Transmit period",
        "tx_app[k] - tx_app[k-1]",
        "ns",
        f"{_MAPS} (transmittal period)",
        "Between messages with consecutive sequence numbers; a pair with a missing stamp is left out and counted.",
    ),
    Definition(
        "receive_period",
        "Receive period",
        "rx_app[i] - rx_app[i-1]",
        "ns",
        "Inter-arrival time at the flow's destination, in the order of arrival",
        "i counts the arrivals that came; a lost message makes one long period.",
    ),
    Definition(
        "ipdv",
        "Delay variation between packets (IPDV)",
        "latency[k] - latency[k-1]",
        "ns",
        "RFC 3393, selection function: consecutive sequence numbers; RFC 8219, 7.3.2",
        "Two-sided; needs no synchronised clocks.",
    ),
    Definition(
        "delay_variation",
        "Delay above the least",
        "latency[k] - latency.min",
        "ns",
        "RFC 5481, 4.2 (packet delay variation, PDV)",
        "One-sided: what a play-out buffer must hold, and by what the network is not deterministic. The least is "
        "that of the run, also where repeats are taken together.",
    ),
    Definition(
        "range",
        "Range of the latency",
        "latency.max - latency.min",
        "ns",
        "RFC 5481, 4.2, with the greatest in place of a quantile",
        "Grows with the number of messages; compare runs of equal length only.",
    ),
    Definition(
        "latency_with_loss",
        "Latency with loss",
        "quantile of latency (of a relayed flow: rtt) over all sent messages, a lost one counting as infinite",
        "ns",
        "RFC 7679, 3.6 (undefined delay)",
        "Not determined where a percentile falls among the lost.",
    ),
    Definition(
        "pdv",
        "Delay variation (PDV)",
        "latency.p99.9 - latency.min",
        "ns",
        "RFC 5481, 4.2; RFC 8219, 7.3.1",
        "Printed only where n supports p99.9; the range max - min is always there.",
    ),
    Definition(
        "period_jitter",
        "Transmit period jitter",
        "sd(period)",
        "ns",
        f"{_MAPS}: variance of the time between transmissions, here as its standard deviation",
    ),
    Definition(
        "receive_period_jitter",
        "Receive period jitter",
        "sd(receive_period)",
        "ns",
        f"{_MAPS}: variance of the time between receptions, here as its standard deviation",
        "The jitter that an application sees which expects messages periodically. Its interval, as that of the "
        "transmit period jitter, is the interval of the standard deviation.",
    ),
    Definition(
        "pair_latency",
        "Latency between two points",
        "end - start, for every pair of points of a leg",
        "ns",
        "RFC 7679, 3.4, at the points of the run directory; RFC 2330, 10.2 (wire time and host time)",
        "Points: intended, application, driver and wire at the sender, wire, driver and application at the "
        "receiver; of a relayed flow also those of the return leg. Pairs across two clocks carry the clock "
        "offset's uncertainty.",
    ),
    Definition(
        "residence",
        "Residence in a switch",
        "time(switch-out) - time(switch-in)",
        "ns",
        "RFC 1242, 3.8 (store-and-forward: last bit in to first bit out), per frame and switch",
        "One value per passage of a frame through a switch, from the records of the switch: processing and "
        "waiting. In a cut-through switch the frame counts as in when its header is, and the time can be less "
        "than its length.",
    ),
    Definition(
        "skew",
        "Redundancy skew",
        "|rx_wire_b - rx_wire|",
        "ns",
        "ARINC 664 part 7, redundancy management (time between the two copies of a frame)",
        "Between the last bits of the copies from networks A and B; messages of which only one copy came have none.",
    ),
    Definition(
        "bag_spacing",
        "Spacing of a virtual link",
        "tx_wire[i] - tx_wire[i-1]",
        "ns",
        "ARINC 664 part 7, bandwidth allocation gap (BAG)",
        "First bit to first bit at the sender's wire, in the order they leave, on network A or the only one. The "
        "regulator keeps the BAG; what multiplexing adds or takes is jitter.",
    ),
    Definition(
        "bag_jitter",
        "Output jitter of a virtual link",
        "max(0, BAG - bag_spacing)",
        "ns",
        "ARINC 664 part 7, virtual link scheduling: maximum allowed jitter at the output of an end system",
        "How much earlier than its BAG a frame follows the one before: what a policing switch sees.",
    ),
    Definition(
        "window_error",
        "Error of the reception window",
        "rx_wire - nearest planned instant of reception",
        "ns",
        "SAE AS6802, acceptance window of time-triggered frames",
        "By the receiver's own clock, as its acceptance window is; negative: early. Frames outside the window "
        "have a wire stamp, too, and are in it.",
    ),
    Definition(
        "bag_conformity",
        "Conformity to the BAG",
        "frames k with max(expected, at[k]) + bytes[k] / Lmax * BAG - at[k] > BAG + allowed jitter; after each other "
        "frame expected = max(expected, at[k]) + bytes[k] / Lmax * BAG",
        "share",
        "ARINC 664 part 7, traffic policing (token bucket of rate 1/BAG and the virtual link's jitter)",
        "Of all frames the sender puts on the wire, messages or not (a babbling end system's too), when the last bit "
        "leaves: what a policer of bytes at the end of the link refuses, and what it refuses is not charged. With "
        "policing by frames each is charged Lmax. Two early frames in a row add up; the worst is the jitter that would "
        "have let the earliest pass. Each network by itself; given is the one with more frames outside.",
    ),
    Definition(
        "skew_conformity",
        "Conformity to the largest skew",
        "messages with |rx_wire_b - rx_wire| > skew max of the virtual link",
        "share",
        "ARINC 664 part 7, redundancy management (skew max)",
    ),
    Definition(
        "window_conformity",
        "Conformity to the reception window",
        "frames with window_error outside -early to +late of the schedule",
        "share",
        "SAE AS6802, acceptance window of time-triggered frames, as wide as the schedule says",
    ),
    Definition(
        "sent",
        "Sent",
        "messages of the measured part that left the sender",
        "messages",
        "Run directory, Outcomes",
    ),
    Definition(
        "delivered",
        "Delivered",
        "messages with an intact copy at the application they were meant for",
        "messages",
        "Run directory, Outcomes",
        "For a relayed flow that is the sender it came back to.",
    ),
    Definition(
        "lost",
        "Lost",
        "sent - delivered - unknown",
        "messages",
        "RFC 7680, 2.5 (a damaged message is lost)",
        "None lost of n is printed with its 95 % bound 1 - 0.05^(1/n), about 3/n.",
    ),
    Definition(
        "unknown",
        "Unknown",
        "messages not seen to arrive while the instrument may have lost the records that would tell",
        "messages",
        "Run directory, Outcomes",
        "Bounds of losses take both cases: none of them lost, and all.",
    ),
    Definition(
        "loss",
        "Loss ratio",
        "lost / sent",
        "share",
        "RFC 7680, 2; 95 % bounds after Clopper and Pearson",
    ),
    Definition(
        "loss_period",
        "Loss period",
        "lost messages without a delivered one between them, in the order of sequence",
        "messages",
        "RFC 3357, 5.4.2; numbers and lengths 6.2 and 6.3, clear lengths between 6.4",
        "One long period hurts a control loop more than many single losses of the same ratio.",
    ),
    Definition(
        "loss_distance",
        "Loss distance",
        "sequence[lost k] - sequence[lost k-1]",
        "messages",
        "RFC 3357, 5.4.1",
        "Between successive losses; 1 within a loss period. The first loss has none.",
    ),
    Definition(
        "availability",
        "Availability",
        "1 - messages at which the service was down / sent",
        "share",
        "3GPP TS 22.261, 3.1 (communication service availability, survival time), counted in messages",
        "A message fails when it is lost or late. The service survives one failed message and is down from the "
        "second in a row until the next good one: a survival time of one period.",
    ),
    Definition(
        "duplicated",
        "Duplicated",
        "messages with more than one intact copy",
        "messages",
        "RFC 5560, 2 (duplication)",
    ),
    Definition(
        "reordered",
        "Reordered",
        "messages whose first intact copy came after one with a higher sequence number",
        "messages",
        "RFC 4737, 3.3",
    ),
    Definition(
        "reorder_extent",
        "Reordering extent",
        "i - (least j < i with sequence[j] > sequence[i]), i and j counting arrivals",
        "messages",
        "RFC 4737, 4.2.1",
        "How many places a buffer must hold to put the message back. Of reordered messages only.",
    ),
    Definition(
        "reorder_late_time",
        "Reordering late time",
        "arrival[i] - arrival[i - reorder_extent]",
        "ns",
        "RFC 4737, 4.3",
        "How long that buffer must wait.",
    ),
    Definition(
        "n_reordering",
        "n-reordering",
        "messages directly preceded by at least n arrivals with higher sequence numbers",
        "messages",
        "RFC 4737, 5",
        "With n = 3 a TCP receiver takes the message for lost. Arrivals with one and the same stamp count as in "
        "order.",
    ),
    Definition(
        "late",
        "Late",
        "messages older than the flow's deadline on arrival",
        "messages",
        "Run directory, messages",
    ),
    Definition(
        "lateness",
        "Lateness",
        "(arrival - tx_app) - deadline",
        "ns",
        "Real-time scheduling: lateness of a job against its deadline; tardiness is max(0, lateness)",
        "Signed: negative is what was to spare. Arrival at rx_app, for a relayed flow at back_rx_app. Stamps as "
        "they are, like the counter late, without a known clock offset.",
    ),
    Definition(
        "deadline_missed",
        "Deadline missed",
        "(late + lost) / sent",
        "share",
        "3GPP TS 22.261, 3.1 (reliability: delivered within the time constraint)",
        "A message that never comes misses its deadline, too.",
    ),
    Definition(
        "tardiness",
        "Tardiness",
        "max(0, lateness), of the late messages",
        "ns",
        "Real-time scheduling: tardiness of a job against its deadline",
        "A lost message has none: it counts under deadline missed.",
    ),
    Definition(
        "misdirected",
        "Misdirected",
        "messages of which a copy came to another end system",
        "messages",
        "RFC 2889, 3.9.3 (flood count), per message",
    ),
    Definition(
        "corrupted",
        "Corrupted",
        "messages of which a damaged copy was seen (CRC-32 over header and payload)",
        "messages",
        "RFC 7680, 2.5",
    ),
    Definition(
        "unplanned",
        "Unplanned",
        "frames that belong to no sent message, except foreign ones",
        "messages",
        "Run directory, Outcomes",
        "Counted per run: of no known flow, of a sequence never sent, or damaged beyond recognition.",
    ),
    Definition(
        "throughput",
        "Goodput",
        "8 * payload * (arrivals - 1) / (last arrival - first arrival)",
        "bit/s",
        "Payload bits delivered over the time they took (RFC 2647, 3.7)",
        "At the application the flow is meant for.",
    ),
    Definition(
        "intended_load",
        "Intended load",
        "(last sequence - first sequence) / (last intended - first intended)",
        "1/s",
        "RFC 2285, 3.5.1; on the wire times 8 * (length + 20 B), preamble and gap included",
        "Frames per second that the plan wants of the sender.",
    ),
    Definition(
        "offered_load",
        "Offered load",
        "(sent - 1) / (last tx_app - first tx_app)",
        "1/s",
        "RFC 2285, 3.5.2",
        "Frames per second that the sender really handed over; its interval is that of the mean transmit period. "
        "Background load is stated per injecting end system, as shares of its link.",
    ),
    Definition(
        "effective_bandwidth",
        "Effective bandwidth (MAPS)",
        "8 * payload / latency.mean",
        "bit/s",
        f"{_MAPS} (payload size over transmission latency)",
        "Not a throughput: it is the rate a sender would reach that waits for each message to arrive. Its "
        "interval is that of the mean latency, ends swapped.",
    ),
)

DEFINITIONS: dict[str, Definition] = {definition.name: definition for definition in _ALL}

SERIES = (
    "latency",
    "driver_latency",
    "service_latency",
    "return_latency",
    "rtt",
    "stack_down",
    "network",
    "stack_up",
    "turnaround",
    "send_error",
    "period",
    "receive_period",
    "ipdv",
    "delay_variation",
    "lateness",
    "residence",
    "skew",
    "bag_spacing",
    "bag_jitter",
    "window_error",
)
"""Measures that have one value per message (or pair of messages) and so a distribution."""

COUNTS = (
    "sent",
    "delivered",
    "lost",
    "unknown",
    "duplicated",
    "reordered",
    "late",
    "misdirected",
    "corrupted",
)
OUTCOMES = ("delivered", "duplicated", "reordered", "late", "lost", "misdirected", "corrupted", "unknown")

QUANTILES: dict[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
"""Percentiles that are always printed, nearest rank, each with its order-statistic interval."""

PAIR_QUANTILES = ("p50", "p99")
"""Those of them that are always printed of a pair of points."""

_PERCENTILE = re.compile(r"p((?:0|[1-9][0-9]?)(?:\.[0-9]{0,6}[1-9])?)")


def quantile_named(statistic: str) -> float | None:
    """The quantile that `p95`, `p99.999` or the like names; None for any other statistic. Each has one name."""
    found = _PERCENTILE.fullmatch(statistic)
    return float(Fraction(found[1]) / 100) if found and found[1] != "0" else None


def ascending(names: Iterable[str]) -> tuple[str, ...]:
    """Names of percentiles in the order of what they name."""
    return tuple(sorted(names, key=lambda name: quantile_named(name) or 0.0))


FIGURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*COUNTS, "unplanned", "loss", "pdv", "period_jitter", "receive_period_jitter"), ("",)),
    "range": ("",),
    "latency_with_loss": tuple(QUANTILES),
    "throughput": ("",),
    "effective_bandwidth": ("",),
    "loss_period": ("longest", "count"),
    "loss_distance": ("min",),
    "availability": ("",),
    "reorder_extent": ("max", "mean"),
    "reorder_late_time": ("max",),
    "n_reordering": ("1", "2", "3"),
    "deadline_missed": ("",),
    "tardiness": ("mean", "max"),
    "bag_conformity": ("",),
    "skew_conformity": ("",),
    "window_conformity": ("",),
    "intended_load": ("",),
    "offered_load": ("",),
}
"""Statistics of the measures that are one figure per flow, or a few; "" has no name of its own."""
