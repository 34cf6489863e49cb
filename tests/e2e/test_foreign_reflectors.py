"""`probe --protocol stamp` and `agent reflect` over loopback, each against packets laid out here by hand."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from support import COMMAND, SECONDS, Done
from wiregauge.cli.program import app

NTP_1970 = 2_208_988_800
KEY = b"0123456789abcdef"
SHORT = ("--count", "40", "--period", "1ms")
Answers = Callable[[bytes, int], list[bytes]]
"""What a reflector sends for a packet, the so many-th."""


def ntp(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack(">II", whole + NTP_1970, int((seconds - whole) * 2**32))


def answer(request: bytes, number: int, *, ahead: float = 0.0) -> bytes:
    """The answer of an unauthenticated reflector (RFC 8762, figure 5), whose clock is ahead."""
    now = time.time() + ahead
    head = struct.pack(">I", number) + ntp(now) + b"\x00\x01" + request[14:16] + ntp(now)
    return head + request[:14] + bytes(2) + b"\xff" + bytes(3) + request[44:]


def authentic(request: bytes, number: int, key: bytes = KEY) -> bytes:
    """The answer of an authenticated one (RFC 8762, figure 6)."""
    now = ntp(time.time())
    head = struct.pack(">I12x", number) + now + b"\x00\x01" + request[26:28] + bytes(4) + now + bytes(8)
    content = head + request[:4] + bytes(12) + request[16:26] + bytes(6) + b"\xff" + bytes(15)
    assert len(content) == 96
    return content + hmac.new(key, content, hashlib.sha256).digest()[:16]


@contextlib.contextmanager
def reflector(answers: Answers) -> Iterator[str]:
    """A reflector on loopback; its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as served:
        served.bind(("127.0.0.1", 0))
        served.settimeout(0.05)
        ended = threading.Event()

        def serve() -> None:
            count = 0
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    request, source = served.recvfrom(2048)
                    for octets in answers(request, count):
                        served.sendto(octets, source)
                    count += 1

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{served.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def probe(*words: str) -> Done:
    done = CliRunner().invoke(app, ["probe", *words])
    return Done(done.exit_code, done.stdout, done.stderr)


def measured(answers: Answers, *words: str) -> dict[str, Any]:
    with reflector(answers) as at:
        done = probe(at, "--protocol", "stamp", *SHORT, "--json", *words)
    assert done.out, done.err
    found: dict[str, Any] = done.json()
    assert (done.code == 4) == (found["validity"] == "INVALID"), found["reasons"]
    return found


def test_a_reflector_of_another_hand_is_measured_and_stored(tmp_path: Path) -> None:
    place = tmp_path / "session"
    found = measured(
        lambda request, count: [answer(request, count)],
        "--session",
        "7",
        "--payload",
        "90B",
        "--out",
        str(place),
    )
    counts = found["counts"]
    assert (counts["sent"], counts["lost"], counts["unusable"]) == (40, 0, 0)
    assert found["series"]["network"]["n"] == found["series"]["rtt"]["n"] == 40
    assert 0 < found["series"]["network"]["min"] <= found["series"]["rtt"]["min"]
    assert found["series"]["latency"]["reason"].startswith("the reflector states that its clock is not")
    assert json.loads((place / "session.json").read_text()) == found
    rows = pl.read_parquet(place / "exchanges.parquet")
    assert rows["asked"].to_list() == rows["sequence"].to_list() == list(range(40))
    assert (rows["arrived_ns"] > rows["left_ns"]).all()
    again = probe("127.0.0.1:1", "--protocol", "stamp", "--out", str(place))
    assert (again.code, "session" in again.err) == (2, True)


def test_what_is_wrong_with_an_answer_is_counted_and_never_used() -> None:
    def faulty(request: bytes, count: int) -> list[bytes]:
        good = answer(request, count)
        of_another = struct.pack(">I", 1_000_000)
        wrong = [good[:37], good[:24] + of_another + good[28:], good[:28] + bytes(8) + good[36:]]
        return [*wrong, good[:4] + bytes(8) + good[12:], b"", good]

    found = measured(faulty)
    expected = {"too_short": 80, "not_asked": 80, "without_times": 40}
    assert {why: n for why, n in found["ignored"].items() if n} == expected
    assert (found["counts"]["answered"], found["counts"]["duplicated"]) == (40, 0)
    assert found["validity"] == "DEGRADED"


@pytest.mark.parametrize("key", [KEY, b"another"])
def test_an_authenticated_answer_counts_only_with_the_right_hash(tmp_path: Path, key: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    found = measured(lambda request, count: [authentic(request, count, key)], "--key", str(path))
    is_right = key == KEY
    assert found["counts"]["answered"] == (40 if is_right else 0)
    assert found["ignored"]["not_authentic"] == (0 if is_right else 40)
    assert is_right or "wrong hash" in found["reasons"][0]


def test_losses_and_copies_are_put_on_their_way_where_the_reflector_counts() -> None:
    """Packets 3 and 9 never came; the answers to 5 are lost and those to 7 doubled."""
    state = {"number": 0}

    def counting(request: bytes, _count: int) -> list[bytes]:
        (asked,) = struct.unpack(">I", request[:4])
        if asked in (3, 9):
            return []
        octets = answer(request, state["number"])
        state["number"] += 1
        return {5: [], 7: [octets, octets]}.get(asked, [octets])

    counts = measured(counting)["counts"]
    assert (counts["lost"], counts["lost_forward"], counts["lost_backward"]) == (3, 2, 1)
    assert (counts["duplicated"], counts["duplicated_forward"], counts["duplicated_backward"]) == (1, 0, 1)

    def copying(request: bytes, _count: int) -> list[bytes]:
        (asked,) = struct.unpack(">I", request[:4])
        return [] if asked in (3, 9) else [answer(request, asked)]

    counts = measured(copying)["counts"]
    assert (counts["lost"], counts["lost_forward"], counts["lost_backward"]) == (2, None, None)


def test_a_reflector_whose_clock_jumps_is_found_out() -> None:
    found = measured(lambda request, count: [answer(request, count, ahead=5.0 if count > 20 else 0.0)])
    assert any(
        "one clock was set against the other 1 times, by up to 5.0" in reason for reason in found["reasons"]
    )
    assert found["counts"]["lost"] == 0


def test_a_closed_port_is_told_and_bad_words_end_in_one_line(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
    done = probe(closed, "--protocol", "stamp", *SHORT)
    assert (done.code, "ICMP port unreachable" in done.out) == (4, True), done.out
    (tmp_path / "empty").touch()
    for words, told in {
        ("bad\x1bname\n", "--protocol", "stamp"): "write a name or an address",
        ("x" * 300, "--protocol", "stamp"): "is no name",
        ("127.0.0.1:0", "--protocol", "stamp"): "where it is not 862",
        (closed, "--protocol", "stamp", "--key", str(tmp_path / "empty")): "a key of 1 to 64 B",
        (closed, "--protocol", "stamp", "--key", str(tmp_path / "none")): "none: ",
        (closed, "--protocol", "stamp", "--payload", "46B"): "48B to",
        (closed, "--protocol", "stamp", "--period", "1ns"): "10us at least",
        (closed, "--protocol", "stamp", "--round-trip"): "leave out",
        (closed, "--protocol", "twamp-light", "--session", "1"): "are STAMP's",
        (closed, "--protocol", "stamp", "--timestamps", "gps"): '"ntp" and "ptp"',
        (closed, "--protocol", "stamp", "--limit", "rtt <= 1ms"): "--limit",
        (closed, "--protocol", "icmp"): '"twamp-light"',
        (closed, "--dscp", "46"): "reflectors only",
    }.items():
        done = probe(*words)
        assert done.code == 2, (words, done.err)
        assert told in done.err.replace("\n", " "), (words, done.err)
        assert "\x1b" not in done.err


class Reflecting:
    """`wiregauge agent reflect` on a free port, and the account it ends with."""

    def __init__(self, words: tuple[str, ...]) -> None:
        command = [
            str(COMMAND),
            "agent",
            "reflect",
            "--listen",
            "127.0.0.1:0",
            "--allow",
            "127.0.0.1/32",
            *words,
        ]
        self._program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._program.stdout is not None
        said = self._program.stdout.readline()
        assert said.startswith("reflecting at 127.0.0.1:"), said
        self.port = int(said.rpartition(":")[2])

    def ended(self) -> dict[str, Any]:
        self._program.send_signal(signal.SIGTERM)
        out, _ = self._program.communicate(timeout=SECONDS)
        found: dict[str, Any] = json.loads(out)
        return found

    def close(self) -> None:
        self._program.kill()
        self._program.communicate()


@contextlib.contextmanager
def reflecting(*words: str) -> Iterator[Reflecting]:
    with contextlib.closing(Reflecting(words)) as serving:
        yield serving


def asked(port: int, *packets: bytes) -> list[bytes]:
    """What a foreign sender gets for its packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.settimeout(0.3)
        got = []
        for octets in packets:
            out.sendto(octets, ("127.0.0.1", port))
            with contextlib.suppress(TimeoutError):
                got.append(out.recv(2048))
    return got


def test_our_reflector_answers_a_foreign_sender_at_its_length_and_keeps_its_bounds(tmp_path: Path) -> None:
    with reflecting() as serving:
        packets = [
            struct.pack(">I", number) + ntp(1e9) + b"\x80\x01" + b"\x00\x07" + bytes(28) + b"padding"
            for number in (0, 2, 3)
        ]
        got = asked(serving.port, *packets, packets[0][:41], packets[0][:40])
        assert [len(octets) for octets in got] == [51, 51, 51, 41]
        for number, (request, octets) in enumerate(zip(packets, got, strict=False)):
            assert struct.unpack(">I", octets[:4]) == (number,), "its own numbers"
            assert octets[24:38] == request[:14]
            assert (octets[14:16], octets[44:]) == (b"\x00\x07", b"padding")
            received, sent = (struct.unpack(">Q", octets[at : at + 8])[0] for at in (16, 4))
            assert 0 <= sent - received < 2**32
            assert abs((sent >> 32) - NTP_1970 - time.time()) < 60
        assert serving.ended() == {
            "schema": 1,
            "answered": 4,
            "sessions": 1,
            "unsent": 0,
            "refused": {"too-short": 1},
        }


def test_our_reflector_wants_the_right_hash_and_gives_it(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    with reflecting("--key", str(path), "--stateless") as serving:
        content = struct.pack(">I12x", 9) + ntp(1e9) + b"\x80\x01" + bytes(70)
        good = content + hmac.new(KEY, content, hashlib.sha256).digest()[:16]
        (octets,) = asked(serving.port, good, content + bytes(16))
        assert struct.unpack(">I", octets[:4]) == (9,), "stateless: the sender's number"
        assert octets[96:] == hmac.new(KEY, octets[:96], hashlib.sha256).digest()[:16]
        assert octets[48:52] + octets[64:74] == good[:4] + good[16:26]
        assert serving.ended()["refused"] == {"not-authentic": 1}


def test_a_privileged_port_without_the_right_is_refused_with_the_cure() -> None:
    """In a namespace of its own, as containers may free the ports of theirs."""
    without = ["--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"]
    command = [
        "unshare",
        "--net",
        "setpriv",
        *without,
        str(COMMAND),
        "agent",
        "reflect",
        "--allow",
        "10.0.0.0/8",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 3, done.stderr
    assert "port 862 is privileged" in done.stderr
    assert "--listen" in done.stderr


def pcap(path: Path, payloads: list[tuple[int, int, bytes]]) -> None:
    """A capture of UDP datagrams over loopback addresses: source port, destination port, payload."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for source, to, payload in payloads:
        udp = struct.pack(">HHHH", source, to, 8 + len(payload), 0) + payload
        ip = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(udp), 0, 64, 17, 0) + socket.inet_aton("127.0.0.1") * 2
        out.append(struct.pack("<IIII", 0, 0, len(ip + udp), len(ip + udp)) + ip + udp)
    path.write_bytes(b"".join(out))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_tshark_reads_both_kinds_of_packets_as_they_were_meant(tmp_path: Path) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def kept(request: bytes, _count: int) -> list[bytes]:
        (octets,) = asked(serving.port, request)
        seen.append((request, octets))
        return [octets]

    with reflecting() as serving:
        measured(kept, "--payload", "44B")
        serving.ended()
        assert len(seen) == 40
        place = tmp_path / "session.pcap"
        pcap(place, [one for pair in seen for one in ((5000, 862, pair[0]), (862, 5000, pair[1]))])
        fields = (
            "seq_number",
            "error_estimate.z",
            "sender_seq_number",
            "sender_ttl",
            "sender_timestamp",
            "timestamp",
        )
        command = [
            "tshark",
            "-r",
            place,
            "-d",
            "udp.port==862,twamp.test",
            "-T",
            "fields",
            "-E",
            "separator=|",
        ]
        words = [word for name in fields for word in ("-e", f"twamp.test.{name}")]
        done = subprocess.run(
            [*map(str, command), *words], capture_output=True, text=True, timeout=SECONDS, check=True
        )
        rows = [line.split("|") for line in done.stdout.splitlines()]
        assert len(rows) == 80
        for number, (request, octets) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
            assert int(request[0]) == number
            assert int(octets[2]) == number
            assert octets[3] == "64", "the TTL that the sender here left"
            assert octets[4] == request[5], "the time of the request"
