"""Frames of protocols of others, written after their standards: 40 of each, of which number 20 is left out."""

from __future__ import annotations

import struct
from collections.abc import Callable

SENT, LEFT_OUT = 40, 20
_OWN, _TO = b"\x02\0\0\0\0\x07", b"\x01\0\x5e\0\0\x01"


def _ethernet(kind: int, payload: bytes) -> bytes:
    return (_TO + _OWN + struct.pack(">H", kind) + payload).ljust(60, b"\0")


def _udp(payload: bytes, port: int) -> bytes:
    datagram = struct.pack(">HHHH", 40_000, port, 8 + len(payload), 0) + payload
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0, 1, 17, 0)
    return header + bytes((10, 0, 0, 1, 239, 0, 0, 1)) + datagram


def avtp(n: int) -> bytes:
    """IEC 61883 over AVTP (IEEE Std 1722), whose number is the third octet."""
    cip = bytes(8)
    return _ethernet(
        0x22F0, bytes((0, 0x81, n + 250 & 0xFF, 0)) + b"\x02" * 8 + bytes(8) + b"\0\x08\x5f\xa0" + cip
    )


def rtp(n: int) -> bytes:
    """RTP (RFC 3550)."""
    header = struct.pack(">BBHII", 0x80, 96, 65_530 + n & 0xFFFF, 90 * n, 0xC0FFEE)
    return _ethernet(0x0800, _udp(header + b"x" * 40, 5004))


def some_ip(n: int) -> bytes:
    """A notification of SOME/IP, its session from 1 on."""
    return _ethernet(
        0x0800,
        _udp(struct.pack(">HHIHHBBBB", 0x1234, 0x8001, 12, 0, n + 1, 1, 1, 2, 0) + b"data", 30_490),
    )


def rtps(n: int) -> bytes:
    """DATA of a writer (DDSI-RTPS 2.3, 8.3.7.2), little-endian."""
    data = (
        struct.pack("<HH", 0, 16)
        + b"\0\0\0\0"
        + b"\0\0\x01\x03"
        + struct.pack("<iI", 0, n + 1)
        + b"\0\x01\0\0abcd"
    )
    message = b"RTPS\x02\x03\x01\x0f" + b"\x0a" * 12 + struct.pack("<BBH", 0x15, 5, len(data)) + data
    return _ethernet(0x0800, _udp(message, 7400))


def profinet(n: int) -> bytes:
    """Cyclic data of PROFINET, each in 32 steps of 31.25 us; the cycle counter, data and transfer status end it."""
    return _ethernet(
        0x8892, b"\x80\x10" + b"\x80" * 40 + struct.pack(">HBB", 65_000 + 32 * n & 0xFFFF, 0x35, 0)
    )


def sampled_values(n: int) -> bytes:
    """One sample (IEC 61850-9-2), 80 in a period: the counter returns to 0 after 3999."""
    sample = b"\x80\x04MU01\x82\x02" + struct.pack(">H", (3980 + n) % 4000)
    sample += b"\x83\x04\0\0\0\x01\x85\x01\x02\x87\x08" + bytes(8)
    samples = b"\x30" + bytes((len(sample),)) + sample
    pdu = b"\x80\x01\x01\xa2" + bytes((len(samples),)) + samples
    return _ethernet(
        0x88BA, struct.pack(">HHHH", 0x4000, 10 + len(pdu), 0, 0) + b"\x60" + bytes((len(pdu),)) + pdu
    )


def hsr(n: int) -> bytes:
    """An HSR tag (IEC 62439-3, 5.6.1): path, size from the tag on, number, and the frame's own EtherType."""
    inside = b"\x88\xb5" + b"h" * 46
    return _ethernet(0x892F, struct.pack(">HH", 2 + len(inside), 65_530 + n & 0xFFFF) + inside)


def prp(n: int) -> bytes:
    """A redundancy control trailer (IEC 62439-3, 4.1.10): number, LAN A and size, suffix."""
    inside = b"p" * 46
    trailer = struct.pack(">HHH", 65_530 + n & 0xFFFF, 0xA000 | len(inside) + 6, 0x88FB)
    return _TO + _OWN + b"\x88\xb5" + inside + trailer


def r_tag(n: int) -> bytes:
    """An R-TAG (IEEE Std 802.1CB, 7.8)."""
    return _ethernet(0xF1C1, struct.pack(">HH", 0, 65_530 + n & 0xFFFF) + b"\x88\xb5" + b"r" * 46)


KINDS: dict[str, tuple[Callable[[int], bytes], str]] = {
    "avtp": (avtp, "iec61883.seqnum"),
    "rtp": (rtp, "rtp.seq"),
    "someip": (some_ip, "someip.sessionid"),
    "rtps": (rtps, "rtps.sm.seqNumber"),
    "profinet": (profinet, "pn_rt.cycle_counter"),
    "sv": (sampled_values, "sv.smpCnt"),
    "hsr": (hsr, "hsr.sequence_nr"),
    "prp": (prp, "prp.trailer.prp_sequence_nr"),
    "r-tag": (r_tag, "ieee8021cb.seq"),
}
"""Each kind of stream with its frames and tshark's field of the number."""
