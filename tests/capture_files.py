"""Small capture files, written byte by byte, independently of the program that reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct


class Packet(Struct, frozen=True):
    """A captured frame without FCS."""

    nanos: int
    length: int
    interface: int = 0
    sent: bool | None = None


def pcapng(packets: Iterable[Packet], interfaces: Sequence[str] = ("eth0",), resolution: int = 9) -> bytes:
    """A pcapng file; `resolution` is the negative power of ten of its ticks, at most 9."""
    out = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)]
    for name in interfaces:
        text = name.encode()
        options = struct.pack("<HH", 2, len(text)) + text + bytes(-len(text) % 4)
        options += struct.pack("<HHB3xHH", 9, 1, resolution, 0, 0)
        out.append(_block(1, struct.pack("<HHI", 1, 0, 0) + options))
    for packet in packets:
        ticks = packet.nanos // 10 ** (9 - resolution)
        data = bytes(packet.length)
        body = struct.pack("<IIIII", packet.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
        body += data + bytes(-len(data) % 4)
        if packet.sent is not None:
            body += struct.pack("<HHIHH", 2, 4, 2 if packet.sent else 1, 0, 0)
        out.append(_block(6, body))
    return b"".join(out)


def pcap(packets: Iterable[Packet], *, big: bool = False, nano: bool = False) -> bytes:
    """A classic pcap file."""
    order, unit = ">" if big else "<", 1 if nano else 1000
    out = [struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for packet in packets:
        seconds, nanos = divmod(packet.nanos, 10**9)
        lengths = (packet.length, packet.length)
        out.append(struct.pack(f"{order}IIII", seconds, nanos // unit, *lengths) + bytes(packet.length))
    return b"".join(out)


def write(path: Path, packets: Iterable[Packet]) -> Path:
    """A pcapng file of one interface."""
    path.write_bytes(pcapng(packets))
    return path


def _block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
