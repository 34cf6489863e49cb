"""Streams of one place: found in captures that are written here after the standards, judged by tshark."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import foreign_frames
from command_json import validator
from wiregauge.cli import app
from wiregauge.streams.observed import schema_path

MS, US = 1_000_000, 1_000
VL_16 = b"\x03\0\0\0\0\x10"
Frame = tuple[int, bytes]


def classic(frames: Sequence[Frame]) -> bytes:
    """A capture of one interface with times in ns."""
    file = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
    for at, data in frames:
        seconds, nanos = divmod(at, 10**9)
        file += struct.pack("<IIII", 1_700_000_000 + seconds, nanos, len(data), len(data)) + data
    return file


def two_interfaces(frames: Sequence[tuple[int, int, bytes]]) -> bytes:
    """A capture of two interfaces: interface, time in ns, frame."""

    def block(kind: int, body: bytes) -> bytes:
        length = 12 + len(body)
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    file = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    file += 2 * block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3xI", 9, 1, 9, 0))
    for interface, at, data in frames:
        ticks = 1_700_000_000 * 10**9 + at
        padded = data + b"\0" * (-len(data) % 4)
        file += block(
            6,
            struct.pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data)) + padded,
        )
    return file


def virtual_link(sequence: int) -> bytes:
    payload = b"v" * 35 + bytes([sequence])
    datagram = struct.pack(">HHHH", 2000, 1045, 8 + len(payload), 0) + payload
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0, 1, 17, 0)
    return VL_16 + b"\x02\0\0\x01\x02\x20\x08\0" + header + b"\x0a\x01\x02\x03\xe0\xe0\0\x10" + datagram


def imported(tmp_path: Path, data: bytes, *arguments: str, code: int = 0) -> tuple[dict[str, Any], str]:
    (tmp_path / "tap.pcap").write_bytes(data)
    done = CliRunner().invoke(
        app, ["import", str(tmp_path / "tap.pcap"), "--out", str(tmp_path / "seen"), *arguments]
    )
    assert done.exit_code == code, done.output
    if code == 2:
        return {}, done.stderr
    seen = json.loads((tmp_path / "seen" / "streams.json").read_text())
    validator(schema_path()).validate(seen)
    return seen, done.stdout


def test_two_networks_that_swap_places_are_one_redundant_series(tmp_path: Path) -> None:
    frames = []
    for n in range(300):
        sequence, skew = n % 255 + 1, ((n + 10) % 26 - 10) * 3 * US
        frames.append((0, n * 28 * MS, virtual_link(sequence)))
        if n != 77:
            frames.append((1, n * 28 * MS + skew, virtual_link(sequence)))
    seen, text = imported(tmp_path, two_interfaces(sorted(frames, key=lambda frame: frame[1])))
    (copies,) = seen["copies"]
    assert (copies["pairs"], copies["alone"], copies["at_edge"]) == (299, [1, 0], 0)
    assert (copies["skew"]["min"], copies["skew"]["max"]) == (-30_000_000, 45_000_000)
    assert copies["skew_max_ps"] == 45_000_000
    assert [stream["sequence"]["missing"] for stream in seen["streams"]] == [0, 1]
    assert "SkewMax needed" in text
    assert "45.0000 µs" in text
    assert "an unknown number of frames dropped" in text
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "seen"), "--json"])
    assert json.loads(shown.stdout) == seen


def test_two_interfaces_in_one_order_are_before_and_behind_a_device(tmp_path: Path) -> None:
    frames = [(side, n * MS + side * 5 * US, virtual_link(n % 255 + 1)) for n in range(30) for side in (0, 1)]
    (tmp_path / "pair.pcapng").write_bytes(two_interfaces(frames))
    done = CliRunner().invoke(app, ["import", str(tmp_path / "pair.pcapng"), "--out", str(tmp_path / "seen")])
    assert "one-way latency between taps" in done.stdout
    assert (tmp_path / "seen" / "manifest.json").is_file()


def test_a_cut_capture_gives_what_it_has(tmp_path: Path) -> None:
    data = classic([(n * MS, virtual_link(n + 1)) for n in range(40)])
    seen, text = imported(tmp_path, data[:-9], code=4)
    assert (seen["frames"], seen["complete"], seen["validity"]) == (39, False, "DEGRADED")
    assert "ends within a block" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--streams", "--passive"), "what one place saw"),
        (("--streams", "--rate", "1Gbit/s"), "leave out --test"),
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    _, error = imported(tmp_path, classic([(0, virtual_link(1))]), *arguments, code=2)
    assert says in " ".join(error.split())
    assert not (tmp_path / "seen").exists()


def foreign() -> list[Frame]:
    """Frames of several protocols, each with a fault in its numbers."""
    frames: list[Frame] = []
    for n in range(60):
        at = n * MS
        # Sync of gPTP, one missing, correction growing.
        body = b"\x10\x02\0\x2c\0\0\x02\0" + struct.pack(">q", n << 16) + b"\0" * 4 + b"\xaa" * 8 + b"\0\x01"
        body += struct.pack(">HBb", 65_500 + n & 0xFFFF, 0, -3) + b"\0" * 10
        if n != 30:
            frames.append((at, b"\x01\x80\xc2\0\0\x0e" + b"\x02" * 6 + b"\x88\xf7" + body))
        # EtherCAT, out and back.
        for back in (0, 1):
            datagram = (
                bytes([12, n]) + b"\0\0\0\x01\x02\0\0\0ab" + struct.pack("<H", 3 * back - (n == 9) * back)
            )
            cyclic = struct.pack("<H", 0x1000 | len(datagram)) + datagram
            source = bytes([2 * back, 1, 5, 1, 1, 1])
            frames.append(
                (
                    at + 9 * US + back * (20 * US + n),
                    b"\xff" * 6 + source + b"\x88\xa4" + cyclic.ljust(46, b"\0"),
                )
            )
        # GOOSE, an event at 40, one missing at 50.
        state, number = (1, n) if n < 40 else (2, n - 40)
        goose = b"\x80\x03a/g\x81\x02\x07\xd0\x82\x01d\x83\x01i\x84\x08" + b"\0" * 8
        goose += (
            bytes([0x85, 1, state, 0x86, 1, number]) + b"\x87\x01\0\x88\x01\x01\x89\x01\0\x8a\x01\0\xab\0"
        )
        pdu = struct.pack(">HHHH", 3, 10 + len(goose), 0, 0) + bytes([0x61, len(goose)]) + goose
        if n != 50:
            frames.append(
                (at + 50 * US, b"\x01\x0c\xcd\x01\0\x01" + b"\x04" * 6 + b"\x81\0\x80\x09\x88\xb8" + pdu)
            )
    return frames


def fields(path: Path, wanted: str, *names: str, options: Sequence[str] = ()) -> list[list[str]]:
    """Fields of the frames that tshark takes for `wanted`."""
    command = ["tshark", *options, "-r", str(path), "-Y", wanted, "-T", "fields"]
    done = subprocess.run(
        [*command, *(part for name in names for part in ("-e", name))],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_tshark_sees_the_same_frame_by_frame(tmp_path: Path) -> None:
    seen, _ = imported(tmp_path, classic(foreign()))
    streams = defaultdict(list)
    for stream in seen["streams"]:
        streams[stream["kind"]].append(stream)
    path = tmp_path / "tap.pcap"

    sync = fields(path, "ptp", "ptp.v2.sequenceid", "ptp.v2.correction.ns", "frame.time_epoch")
    (ptp,) = streams["ptp"]
    assert (ptp["frames"], ptp["fields"]["message"]) == (len(sync), "Sync")
    assert ptp["sequence"]["missing"] == int(sync[-1][0]) + 65_536 - int(sync[0][0]) + 1 - len(sync) == 1
    assert ptp["values"]["correction_ns"]["max"] == float(sync[-1][1])
    assert ptp["values"]["log_interval"]["min"] == -3

    bus = fields(path, "ecat", "eth.src", "ecat.cnt", "ecat.idx", "frame.time_epoch")
    out = {row[2]: row[3] for row in bus if row[0].startswith("00")}
    trips = [
        round((float(row[3][-12:]) - float(out[row[2]][-12:])) * 1e9)
        for row in bus
        if row[0].startswith("02")
    ]
    (cycle,) = streams["ethercat"]
    trip = cycle["echo"]["round_trip"]
    assert (cycle["frames"], trip["n"]) == (len(out), len(trips))
    assert abs(trip["min"] / 1000 - min(trips)) < 2
    assert abs(trip["max"] / 1000 - max(trips)) < 2
    assert cycle["octets"] == 64 * cycle["frames"], "returns are no part of the rate"
    counters = [int(row[1], 0) for row in bus if row[0].startswith("02")]
    counted = cycle["values"]["working_counter"]
    assert (counted["min"], counted["max"]) == (min(counters), max(counters)) == (2, 3)

    events = fields(path, "goose", "goose.stNum", "goose.sqNum", "goose.timeAllowedtoLive")
    (goose,) = streams["goose"]
    assert (goose["frames"], goose["vlans"]) == (len(events), [9])
    assert goose["values"]["state"]["changes"] == len({row[0] for row in events}) - 1 == 1
    assert goose["values"]["time_allowed_to_live_ms"]["min"] == int(events[0][2])
    assert goose["sequence"]["missing"] == 1


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("kind", foreign_frames.KINDS)
def test_the_number_of_each_kind_is_where_tshark_finds_it(kind: str, tmp_path: Path) -> None:
    frame, field = foreign_frames.KINDS[kind]
    sent = [n for n in range(foreign_frames.SENT) if n != foreign_frames.LEFT_OUT]
    seen, _ = imported(tmp_path, classic([(n * MS, frame(n)) for n in sent]))
    (stream,) = (one for one in seen["streams"] if one["kind"] == kind)
    told = stream["sequence"]
    assert (told["numbered"], told["missing"], len(told["jumps"])) == (len(sent), 1, 1)
    assert (told["duplicates"], told["reordered"], told["resets"]) == (0, 0, 0)
    options = ["-o", "prp.enable:TRUE", "-d", "udp.port==5004,rtp", "-d", "udp.port==30490,someip"]
    numbers = [int(row[0], 0) for row in fields(tmp_path / "tap.pcap", field, field, options=options)]
    assert len(numbers) == len(sent)
    at = sent.index(foreign_frames.LEFT_OUT + 1)
    assert [told["jumps"][0]["last"], told["jumps"][0]["next"]] == numbers[at - 1 : at + 1]
