"""Captures of `tcpdump -i any`: the same streams as of the frames themselves, as far as their header is kept."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.streams import Observed, Stream, StreamsError, observe

MAC = bytes.fromhex("020000000009")
TO = bytes.fromhex("020000000001")
Frame = tuple[int, int, bytes]
"""Time, µs; index of the interface on its host; IPv4 packet."""
Packet = Callable[[int, bytes], bytes]


def datagram(port: int, length: int) -> bytes:
    """An IPv4 packet with UDP to a port."""
    udp = struct.pack(">HHHH", 4000, port, 8 + length, 0) + bytes(length)
    head = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(udp), 0, 64, 17, 0)
    return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp


def ethernet(_interface: int, packet: bytes) -> bytes:
    return TO + MAC + b"\x08\x00" + packet


def sll(_interface: int, packet: bytes) -> bytes:
    """LINKTYPE_LINUX_SLL: packet type, ARPHRD, length of the address, address, protocol."""
    return struct.pack(">HHH", 0, 1, 6) + MAC + b"\0\0\x08\x00" + packet


def sll2(interface: int, packet: bytes) -> bytes:
    """LINKTYPE_LINUX_SLL2: protocol, reserved, interface, ARPHRD, packet type, length of the address, address."""
    return struct.pack(">HHIHBB", 0x0800, 0, interface, 1, 0, 6) + MAC + b"\0\0" + packet


def capture(path: Path, link: int, frames: Sequence[Frame], header: Packet) -> Path:
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for micros, interface, packet in frames:
        data = header(interface, packet)
        out.append(struct.pack("<IIII", *divmod(micros, 10**6), len(data), len(data)) + data)
    path.write_bytes(b"".join(out))
    return path


FRAMES: list[Frame] = sorted(
    [(10**12 + 1000 * k + (k * k) % 37, 2, datagram(5000, 60)) for k in range(200)]
    + [(10**12 + 300 + 2000 * k, 3, datagram(5001, 200 + k % 3)) for k in range(100)]
)


def figures(stream: Stream) -> tuple[object, ...]:
    period = stream.period
    return stream.frames, stream.shortest, stream.longest, stream.octets, period.min, period.mean, period.max


def seen(tmp_path: Path, link: int, header: Packet, frames: Sequence[Frame] = FRAMES) -> Observed:
    return observe([capture(tmp_path / f"{link}.pcap", link, frames, header)])


def of_ports(observed: Observed) -> dict[object, tuple[object, ...]]:
    return {stream.fields["to_port"]: figures(stream) for stream in observed.streams}


@pytest.mark.parametrize(("link", "header"), [(113, sll), (276, sll2)])
def test_streams_are_those_of_the_frames(tmp_path: Path, link: int, header: Packet) -> None:
    plain, found = seen(tmp_path, 1, ethernet), seen(tmp_path, link, header)
    assert of_ports(found) == of_ports(plain)
    assert len(of_ports(found)) == 2
    assert (plain.validity, found.validity) == ("VALID", "DEGRADED")
    assert any("without their destination" in reason for reason in found.reasons)


def test_each_interface_of_the_host_is_a_tap_where_the_capture_tells_it(tmp_path: Path) -> None:
    taps = {tap.name: tap.frames for tap in seen(tmp_path, 276, sll2).taps}
    assert sorted(taps.values()) == [100, 200]
    assert all(name.endswith(("interface 2 of any", "interface 3 of any")) for name in taps), taps
    assert len(seen(tmp_path, 113, sll).taps) == 1


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize(("link", "header"), [(113, sll), (276, sll2)])
def test_tshark_sees_the_same_frames(tmp_path: Path, link: int, header: Packet) -> None:
    observed = seen(tmp_path, link, header)
    fields = [word for name in ("frame.time_epoch", "udp.dstport", "frame.len") for word in ("-e", name)]
    command = ["tshark", "-r", str(tmp_path / f"{link}.pcap"), "-T", "fields", *fields]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times: dict[int, list[int]] = defaultdict(list)
    for line in done.stdout.splitlines():
        at, port, _ = line.split("\t")
        seconds, _, fraction = at.partition(".")
        times[int(port)].append(int(seconds) * 10**9 + int(fraction))
    for to, (frames, _, _, _, least, _, greatest) in of_ports(observed).items():
        instants = times[int(str(to))]
        gaps = [after - before for before, after in pairwise(instants)]
        assert (frames, least, greatest) == (len(gaps) + 1, min(gaps) * 1000, max(gaps) * 1000)


def test_what_has_no_ethernet_header_is_counted(tmp_path: Path) -> None:
    def of_tunnel(interface: int, packet: bytes) -> bytes:
        return sll2(interface, packet)[:8] + b"\xff\xfe" + sll2(interface, packet)[10:]

    def mixed(interface: int, packet: bytes) -> bytes:
        return (of_tunnel if interface == 3 else sll2)(interface, packet)

    found = seen(tmp_path, 276, mixed)
    assert {trouble.what: trouble.count for trouble in found.troubles} == {
        "frames of `-i any` (LINUX_SLL2), without their destination address": 200,
        "packets of `-i any` from interfaces without Ethernet frames": 100,
    }
    with pytest.raises(StreamsError, match="from interfaces without Ethernet frames"):
        seen(tmp_path, 276, of_tunnel)


def test_a_capture_of_a_test_still_needs_whole_frames(tmp_path: Path) -> None:
    """Whether a message of ours came to the wrong host is decided by its destination."""
    place = Path(__file__).resolve().parents[2] / "examples" / "first.xml"
    path = capture(tmp_path / "any.pcap", 276, FRAMES, sll2)
    words = ["import", str(path), "--test", str(place), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "link type LINUX_SLL2" in done.stderr, done.stderr


def test_import_needs_no_option_for_one_place_or_for_traffic_that_a_host_forwards(tmp_path: Path) -> None:
    path = capture(tmp_path / "one.pcap", 113, FRAMES, sll)
    done = CliRunner().invoke(app, ["import", str(path), "--out", str(tmp_path / "streams")])
    assert (done.exit_code, "2 streams" in done.stdout) == (0, True), done.stderr
    forwarded = [
        (10**12 + 1000 * k + delay, interface, datagram(5000, 60) + struct.pack(">I", k))
        for k in range(400)
        for delay, interface in ((0, 2), (50, 3))
    ]
    path = capture(tmp_path / "two.pcap", 276, forwarded, sll2)
    done = CliRunner().invoke(app, ["import", str(path), "--out", str(tmp_path / "run"), "--json"])
    (flow,) = json.loads(done.stdout)["runs"][0]["flows"]
    assert (flow["sent"], flow["lost"], flow["latency_ns"]["n"]) == (400, 0, 400)
    assert flow["latency_ns"]["min"] == flow["latency_ns"]["max"] == 50_000
