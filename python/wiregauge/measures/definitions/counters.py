"""Definitions of the counters of a flow; other measures of flows and runs are defined with their computation."""

from __future__ import annotations

from functools import partial

from wiregauge.measures.definitions.definition import ARRIVED, SEEN, SENT, Definition

_counter = partial(
    Definition, unit="messages", kind="count", every_message=True, better="lower", links="more"
)

COUNTERS = (
    _counter(
        "sent",
        "Sent",
        "messages of the measured part that left the sender",
        source="Run directory, Outcomes",
        of="messages planned",
        better="",
        links="",
    ),
    _counter(
        "delivered",
        "Delivered",
        "messages with an intact copy at their destination application",
        source="Run directory, Outcomes",
        note="For a relayed flow this is the sender.",
        better="higher",
        of=SENT,
        losses="counted",
        links="less",
    ),
    _counter(
        "lost",
        "Lost",
        "sent - delivered - unknown",
        source="RFC 7680, 2.5 (a damaged message is lost)",
        note="None lost of n is printed with its 95 % bound 1 - 0.05^(1/n), about 3/n.",
        of=SENT,
        losses="counted",
    ),
    _counter(
        "unknown",
        "Unknown",
        "messages without an arrival record while the instrument may have lost that record",
        source="Run directory, Outcomes",
        note="Loss bounds cover both cases: none of them lost, and all of them.",
        of=SENT,
        links="",
    ),
    _counter(
        "duplicated",
        "Duplicated",
        "messages with more than one intact copy",
        source="RFC 5560, 2 (duplication)",
        of=ARRIVED,
    ),
    _counter(
        "reordered",
        "Reordered",
        "messages whose first intact copy came after one with a higher sequence number",
        source="RFC 4737, 3.3",
        rests_on="latency",
        of=ARRIVED,
        least=2,
    ),
    _counter(
        "late",
        "Late",
        "messages older than the flow's deadline on arrival",
        source="Run directory, messages",
        needs="deadline",
        judges_lateness=True,
        rests_on="lateness",
        of=ARRIVED,
    ),
    _counter(
        "misdirected",
        "Misdirected",
        "messages with a copy at another end system",
        source="RFC 2285, 3.8.3 (flood count), per message",
        of=SEEN,
    ),
    _counter(
        "corrupted",
        "Corrupted",
        "messages with a damaged copy (CRC-32 over header and payload)",
        source="RFC 7680, 2.5",
        of=SEEN,
    ),
)
