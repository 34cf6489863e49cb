"""The premises of a certificate against the numbers of the test file itself: rates, lengths, periods, BAG and Lmax.

A premise may ask for more than the test (clocks drift, hosts wake up late), never for less. What is swept, written for
a group of elements, or follows from defaults and models is not compared, and named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from fractions import Fraction
from typing import Any, Final
from xml.etree import ElementTree

from .network import Flow, Network
from .reading import ZERO, RefutedError, brief, text, unreadable

__all__ = ["compared"]

_UNITS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "B": Fraction(8),
    "bit/s": Fraction(1),
    "kbit/s": Fraction(10**3),
    "Mbit/s": Fraction(10**6),
    "Gbit/s": Fraction(10**9),
}
"""In seconds, bits and bit/s."""
_AROUND: Final = {"udp": 46, "be": 46, "rc": 46, "raw": 18, "tt": 18}
"""Bytes of Ethernet, IP and UDP around a payload (IEEE 802.3, RFC 791, RFC 768), without tag or sequence number."""
_SHORTEST, _ON_THE_LINE = 64, 20
Elements = defaultdict[str, list[ElementTree.Element]]


def compared(certificate: dict[str, Any], network: Network, test: bytes) -> list[str]:
    """What was compared and what not. Raises `RefutedError` for a premise that asks for less than the test."""
    elements = _elements(test)
    swept = {axis.get("of") for axis in elements["axis"]}
    _all_there(certificate, network, elements)
    agree, left_out = 0, []
    described = certificate["premises"]["servers"]
    for one in described:
        rate = _link_rate(one, elements, swept)
        if rate is None:
            left_out.append(f"rate of {text(one['server'], 'server')}")
        elif (own := max(rate for rate, _ in network.servers[one["server"]].service)) > rate:
            raise RefutedError(
                f"rate of {one['server']!r}: {brief(own)} bit/s is the premise, {brief(rate)} the test's"
            )
        else:
            agree += 1
    for flow in network.flows:
        least = _least_traffic(flow, elements, swept)
        if least is None:
            left_out.append(f"traffic of flow {flow.name}")
            continue
        agree += 1
        _covers(flow, *least)
    said = [f"{agree} premises (rates of ports, traffic of flows) are at least what the test says"]
    if left_out:
        more = f" and {len(left_out) - 10} more" if len(left_out) > 10 else ""
        said.append(f"not compared: {', '.join(left_out[:10])}{more}")
    return [*said, "not compared: paths, classes, propagation, processing, models of hosts and clocks"]


def _all_there(certificate: dict[str, Any], network: Network, elements: Elements) -> None:
    """Whether every flow that the test sends is in the certificate. Raises `RefutedError`."""
    known = {flow.name for flow in network.flows} | {one["flow"] for one in certificate["conclusions"]}
    sent = {send.get("flow", "") for send in elements["send"]}
    if missing := sorted(flow for flow in sent - known if flow.isdecimal()):
        raise RefutedError(f"flow {missing[0]} of the test is not among the premises")


def _covers(flow: Flow, frame: Fraction, burst: Fraction, rate: Fraction) -> None:
    """Whether the premises of a flow cover this frame, burst and rate. Raises `RefutedError`."""
    sustained = min(own for _, own in flow.curve)
    for what, own, least in (
        ("longest frame", flow.frame, frame),
        ("burst", min(own for own, _ in flow.curve), burst),
        ("rate", sustained, rate),
    ):
        if own < least:
            raise RefutedError(
                f"{what} of flow {flow.name}: {brief(own)} is the premise, {brief(least)} the test's"
            )


def _elements(test: bytes) -> Elements:
    if b"<!DOCTYPE" in test or b"<!ENTITY" in test:
        unreadable("the test has a document type, and a test has none")
    try:
        root = ElementTree.fromstring(test)
    except ElementTree.ParseError as error:
        unreadable(f"the test is no XML: {error}")
    found: Elements = defaultdict(list)
    for one in root.iter():
        found[str(one.tag).rpartition("}")[2]].append(one)
    return found


def _quantity(written: str | None) -> Fraction | None:
    """A quantity with its unit, in seconds, bits or bit/s; None: there is none, or it is not plain."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([a-zA-Z/]+)", written or "")
    return Fraction(match[1]) * _UNITS[match[2]] if match is not None and match[2] in _UNITS else None


def _link_rate(one: dict[str, Any], elements: Elements, swept: set[str | None]) -> Fraction | None:
    """The rate that the test gives the link behind a port; of several between two nodes the greatest."""
    ends = one.get("link")
    if ends is None or "rate" in swept:
        return None
    rates = []
    for link in elements["link"]:
        nodes = [end.partition(":")[0] for end in link.get("between", "").split()]
        if sorted(nodes) == sorted(ends):
            rates.append(_quantity(link.get("rate")))
    known = [rate for rate in rates if rate is not None]
    return max(known) if known and len(known) == len(rates) else None


def _least_traffic(
    flow: Flow, elements: Elements, swept: set[str | None]
) -> tuple[Fraction, Fraction, Fraction] | None:
    """The longest frame of a flow (bit), its burst (bit) and its rate (bit/s), which no premise may be below."""
    own = [one for one in elements["flow"] if one.get("id") == flow.name]
    sends = [one for one in elements["send"] if one.get("flow") == flow.name]
    if (
        len(own) != 1
        or not sends
        or flow.regulated
        or swept & {"payload", "period", "bag", "protocol", "burst"}
    ):
        return None
    frames: list[Fraction] = []
    rates: list[Fraction] = []
    bursts: list[Fraction] = []
    for send in sends:
        payload, length = _quantity(send.get("payload")), _quantity(send.get("frame"))
        period, around = _quantity(send.get("period")), _AROUND.get(own[0].get("protocol", ""))
        many = Fraction(int(send.get("burst", "1")))
        if period is None or not period or around is None or (payload is None and length is None):
            return None
        frame = length or max((payload or ZERO) + 8 * around, Fraction(8 * _SHORTEST))
        frames.append(frame + 8 * _ON_THE_LINE)
        bursts.append(many * frames[-1])
        rates.append(Fraction(bursts[-1] / period))
    longest, bag = max(frames), _quantity(own[0].get("bag"))
    if own[0].get("protocol") == "rc":
        # A regulator lets one frame pass in each BAG.
        limit = longest / bag if bag else None
        return None if limit is None else (longest, longest, min(sum(rates, ZERO), limit))
    return longest, sum(bursts, ZERO), sum(rates, ZERO)
