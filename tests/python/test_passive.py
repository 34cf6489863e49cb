"""Captures of anyone's traffic before and after a device, against a truth that only the test knows.

The traffic is the simulator's, as it captured it; what was in its frames is then taken out and something else is put
in, so that nothing of ours is left to tell them apart.
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec import Struct
from typer.testing import CliRunner

from simulation import trial
from wiregauge.cli import app

US, MS = 1_000, 1_000_000
HEADERS = 14 + 28
"""Bytes of a frame in front of a UDP payload."""

TEST = """<test xmlns="urn:wiregauge:test:2" name="unlucky" seed="7" bench="sim">
  <network><end-system name="a"/><end-system name="b"/><switch name="sw"/>
    <link between="a sw" rate="1Gbit/s"/><link between="sw b" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="20" protocol="udp" from="a" to="b"/>
    <flow id="30" protocol="udp" from="b" to="a"/></flows>
  <tasks warm-up="0s" drain="20ms">
    <send flow="10" period="100us" payload="100B" count="5000"/>
    <send flow="20" period="130us" payload="300B" count="4000"/>
    <send flow="30" period="170us" payload="64B" count="3000"/>
    <receive flow="10"/><receive flow="20"/><receive flow="30"/>
    <capture on="a"/><capture on="b"/></tasks>
  <faults><loss link="sw b" share="1%"/><duplicate link="sw b" share="0.5%"/>
    <delay link="sw b" by="400us" share="1%"/></faults>
</test>"""


class Seen(Struct, frozen=True):
    """A captured frame: time of its first octet in ns, its bytes, and which message it is."""

    nanos: int
    data: bytes
    message: tuple[int, int]


def blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def frames(path: Path) -> list[Seen]:
    """The messages of one of our captures, whose interfaces are of 1 Gbit/s and count picoseconds."""
    found = []
    for kind, body in blocks(path.read_bytes()):
        if kind != 6:
            continue
        _, high, low, kept, _ = struct.unpack_from("<IIIII", body)
        data = body[20 : 20 + kept - 4]  # without the FCS
        options = body[20 + kept + -kept % 4 :]
        code, size, flags = struct.unpack_from("<HHI", options)
        assert (code, size) == (2, 4)
        # Sent: the preamble is on the line 64 ns before the first octet. Received: the last octet of the FCS is in.
        inbound = flags & 3 == 1
        moved = -8 * kept if inbound else 64
        payload = data[HEADERS:]
        assert payload[0] == 0x57
        message = struct.unpack_from(">HI", payload, 2)
        found.append(Seen((high << 32 | low) // 1000 + moved, data, message))
    return found


def written(
    path: Path, seen: list[Seen], *, snap: int = 65535, micro: bool = False, ordered: bool = True
) -> Path:
    """A classic pcap of the frames, in the order of their times if `ordered`."""
    unit = 1000 if micro else 1
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4 if micro else 0xA1B23C4D, 2, 4, 0, 0, snap, 1)]
    for one in sorted(seen, key=lambda one: one.nanos) if ordered else seen:
        seconds, nanos = divmod(one.nanos, 10**9)
        kept = one.data[:snap]
        out.append(struct.pack("<IIII", seconds, nanos // unit, len(kept), len(one.data)) + kept)
    path.write_bytes(b"".join(out))
    return path


def stripped(seen: Seen, content: Callable[[tuple[int, int]], int]) -> Seen:
    """The frame with another payload, told by a number, and from a port of its flow."""
    payload = random.Random(content(seen.message)).randbytes(len(seen.data) - HEADERS)
    port = struct.pack(">H", 40_000 + seen.message[0])
    # The checksum, which tells of the payload before, is left out as UDP allows.
    udp = port + seen.data[HEADERS - 6 : HEADERS - 2] + bytes(2)
    return Seen(seen.nanos, seen.data[: HEADERS - 8] + udp + payload, seen.message)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Seen]]:
    place = tmp_path_factory.mktemp("passive")
    (place / "t.xml").write_text(TEST, encoding="utf-8")
    trial(place / "t.xml", place / "r")
    return {side: frames(place / "r" / "captures" / "run-0000" / f"{side}.pcapng") for side in "ab"}


def imported(place: Path, *args: object, code: int | None = None) -> tuple[dict[str, Any], Any]:
    done = CliRunner().invoke(app, ["import", *map(str, args), "--out", str(place / "seen")])
    assert done.exit_code == code if code is not None else done.exit_code in (0, 4), done.output
    if done.exit_code == 2:
        return {}, done
    manifest = json.loads((place / "seen" / "manifest.json").read_text())
    return manifest["runs"][0]["passive"], done


class Truth:
    """What became of every frame, and which others had its content."""

    def __init__(self, before: list[Seen], behind: list[Seen]) -> None:
        self.sent: dict[int, list[Seen]] = defaultdict(list)
        for one in sorted(before, key=lambda one: one.nanos):
            self.sent[one.message[0]].append(one)
        self.came: dict[tuple[int, int], list[int]] = defaultdict(list)
        for one in behind:
            self.came[one.message].append(one.nanos)
        self.contents = Counter(one.data for one in before)


def checked(run: Path, passive: dict[str, Any], truth: Truth, window_ns: float) -> Counter[str]:
    """Compares every message of a run directory with the truth; what was found how often."""
    messages = pl.read_parquet(run / "messages" / "run-0000.parquet")
    found: Counter[str] = Counter()
    by_size = {len(sent): flow for flow, sent in truth.sent.items()}
    for told in passive["flows"]:
        sent = truth.sent[by_size[told["frames"]]]
        times: dict[bytes, list[int]] = defaultdict(list)
        for one in sent:
            times[one.data].append(one.nanos)
        rows = messages.filter(pl.col("flow") == told["flow"]).sort("sequence")
        assert rows.height == told["frames"] == len(sent)
        for one, row in zip(sent, rows.iter_rows(named=True), strict=True):
            came = truth.came[one.message]
            outcome = row["outcome"]
            found[outcome] += 1
            near = [t for t in times[one.data] if t != one.nanos and abs(t - one.nanos) <= window_ns]
            if outcome == "unknown":
                # Near an end one of its content may have come when the capture had not begun, or had ended.
                at_end = min(one.nanos - sent[0].nanos, sent[-1].nanos - one.nanos) <= window_ns
                recurs = len(times[one.data]) > 1
                assert near or (at_end and recurs), "ambiguous, and nothing of its content is near"
            elif outcome == "lost":
                assert not came
            else:
                took = row["rx_app"] - row["tx_app"]
                assert came
                assert abs(took - 1000 * (min(came) - one.nanos)) <= 1, "a false match"
            if truth.contents[one.data] == 1:
                assert outcome != "unknown", "unique content is certain"
                assert (outcome == "lost") == (not came)
        lost = sum(not truth.came[one.message] for one in sent)
        copies = sum(max(len(truth.came[one.message]) - 1, 0) for one in sent)
        assert told["lost"][0] <= lost <= told["lost"][1]
        assert told["copies"][0] <= copies <= told["copies"][1]
        longest = max(min(truth.came[one.message]) - one.nanos for one in sent if truth.came[one.message])
        least, greatest = told["residence"]["greatest"]
        assert least <= longest * 1000 + 1
        assert longest * 1000 - 1 <= greatest
    return found


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(hash, id="unique"),
        pytest.param(lambda message: hash((message[0], message[1] // 3)), id="threes"),
        pytest.param(lambda message: hash((message[0], message[1] % 50)), id="recurring"),
        pytest.param(lambda message: message[0], id="identical"),
    ],
)
def test_what_became_of_every_frame_is_certain_or_said_not_to_be(
    traffic: dict[str, list[Seen]], content: Callable[[tuple[int, int]], int], tmp_path: Path
) -> None:
    sides = {side: [stripped(one, content) for one in seen] for side, seen in traffic.items()}
    files = [written(tmp_path / f"{side}.pcap", seen) for side, seen in sides.items()]
    passive, _ = imported(tmp_path, *files, "--max-clock-offset", "0ns", "--max-residence", "1ms")
    forth = (
        [one for one in sides["a"] if one.message[0] != 30],
        [one for one in sides["b"] if one.message[0] != 30],
    )
    back = (
        [one for one in sides["b"] if one.message[0] == 30],
        [one for one in sides["a"] if one.message[0] == 30],
    )
    truth = Truth(forth[0] + back[0], forth[1] + back[1])
    found = checked(tmp_path / "seen", passive, truth, 1 * MS + US)
    directions = {(told["frames"], told["from"], told["to"]) for told in passive["flows"]}
    assert directions == {(5000, "a", "b"), (4000, "a", "b"), (3000, "b", "a")}
    if len({content((1, n)) for n in range(60)}) == 60:
        assert found["unknown"] == 0
        assert found["lost"] > 60
        assert sum(told["overtaken"] for told in passive["flows"]) > 60


def test_traffic_of_both_directions_tells_the_offset_of_the_clocks(
    traffic: dict[str, list[Seen]], tmp_path: Path
) -> None:
    late = 5 * 10**9 + 123_456
    sides = {
        side: [
            Seen(one.nanos + late * (side == "b"), stripped(one, hash).data, one.message)
            for one in traffic[side]
        ]
        for side in "ab"
    }
    files = [written(tmp_path / f"{side}.pcap", seen) for side, seen in sides.items()]
    passive, _ = imported(tmp_path, *files)
    assert passive["offset_uncertainty_ps"] is not None
    assert abs(passive["offset_ps"] - late * 1000) <= passive["offset_uncertainty_ps"] + 1000
    assert passive["offset_uncertainty_ps"] < 5_000_000
    assert {(told["frames"], told["from"]) for told in passive["flows"]} == {
        (5000, "a"),
        (4000, "a"),
        (3000, "b"),
    }
    # One direction bounds it on one side only: times are then of no use but for how they vary.
    for side, seen in sides.items():
        written(tmp_path / f"{side}.pcap", [one for one in seen if one.message[0] != 30])
    done = CliRunner().invoke(app, ["import", *map(str, files), "--out", str(tmp_path / "one-way")])
    assert done.exit_code in (0, 4), done.output
    assert "only how they vary" in " ".join(done.output.split())


def frame(number: int, *, vlan: int | None = None, ttl: int = 64, length: int = 200) -> bytes:
    """An IPv4 datagram of its own content, `length` B without a tag."""
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    macs = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])
    head = struct.pack(">BBHHHBBH", 0x45, 0, length - 14, number & 0xFFFF, 0, ttl, 17, ttl)
    ports = struct.pack(">HHHH", 4000, 5000, length - 34, 0)
    packet = head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + ports + struct.pack(">I", number)
    return macs + tag + b"\x08\x00" + packet + bytes([7]) * (length - 14 - len(packet))


def pair(place: Path, before: list[bytes], behind: list[bytes], **form: Any) -> list[Path]:
    """Captures of frames 100 us apart, which take 10 us."""
    return [
        written(
            place / f"{name}.pcap",
            [Seen(10**9 + 100_000 * n + took, data, (1, n)) for n, data in enumerate(frames)],
            **form,
        )
        for name, took, frames in (("before", 0, before), ("behind", 10_000, behind))
    ]


def test_what_the_device_changes_is_left_out_where_it_is_named(tmp_path: Path) -> None:
    before = [frame(n) for n in range(100)]
    behind = [frame(n, vlan=5, ttl=63) for n in range(100)]
    files = pair(tmp_path, before, behind)
    options = ["--max-clock-offset", "0ns"]
    _, done = imported(tmp_path, *files, *options, code=2)
    assert "say what the device changes, for example --ignore" in done.stderr
    _, done = imported(tmp_path, *files, *options, "--ignore", "vlan", code=2)
    passive, _ = imported(tmp_path, *files, *options, "--ignore", "vlan,ttl")
    (told,) = passive["flows"]
    assert (told["frames"], told["matched"], told["lost"], told["ambiguous"]) == (100, 100, [0, 0], 0)
    assert told["residence"]["greatest"] == [10_000_000, 10_000_000]
    assert told["name"] == "10.0.0.1:4000 > 10.0.0.2:5000 UDP"


def test_cut_frames_of_microseconds_are_compared_by_their_beginning(tmp_path: Path) -> None:
    # At both ends frames of their own: nobody knows what of others came beyond these.
    content = [frame(n // 2) if n % 10 and 4 <= n < 96 else frame(5000 + n) for n in range(100)]
    files = pair(tmp_path, content, content, snap=60, micro=True)
    passive, done = imported(tmp_path, *files, "--max-clock-offset", "0ns", "--max-residence", "50us")
    assert passive["compared_bytes"] == 60
    assert sum(told["matched"] for told in passive["flows"]) == 100
    assert done.output.count("note:") == 1
    assert "a capture kept no more than 60 B" in " ".join(done.output.split())


def test_the_order_makes_certain_what_the_window_leaves_open(tmp_path: Path) -> None:
    # Two alike around one of its own, which none overtakes: they cannot have been exchanged.
    # So at both ends, beyond which one alike may have come unseen.
    content = [frame(1000 + n) if n % 2 or not 24 <= n < 376 else frame(n // 4) for n in range(400)]
    files = pair(tmp_path, content, content)
    options = ["--max-clock-offset", "0ns", "--max-residence", "2ms"]
    passive, _ = imported(tmp_path, *files, *options)
    assert passive["flows"][0]["ambiguous"] == 88
    done = CliRunner().invoke(
        app, ["import", *map(str, files), *options, "--in-order", "--out", str(tmp_path / "ordered")]
    )
    assert done.exit_code == 0, done.output
    ordered = json.loads((tmp_path / "ordered" / "manifest.json").read_text())["runs"][0]["passive"]["flows"][
        0
    ]
    assert (ordered["ambiguous"], ordered["matched"], ordered["lost"]) == (0, 400, [0, 0])


def test_frames_at_an_edge_are_neither_lost_nor_delivered(tmp_path: Path) -> None:
    content = [frame(n) for n in range(100)]
    files = pair(tmp_path, content, content[:95])
    passive, _ = imported(tmp_path, *files, "--max-clock-offset", "0ns", "--max-residence", "150us")
    (told,) = passive["flows"]
    assert (told["matched"], told["at_edge"], told["lost"]) == (95, 5, [0, 0])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--ignore", "colour"], '--ignore "colour": write one or more of vlan, pcp, ttl, dscp, r-tag, '),
        (["--max-residence", "soon"], "--max-residence"),
        (["--clock-offset", "3us"], "--clock-offset needs --max-clock-offset"),
        (["--test", "t.xml", "--in-order"], "--test judges Wiregauge messages"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: list[str], says: str, tmp_path: Path) -> None:
    files = pair(tmp_path, [frame(n) for n in range(9)], [frame(n) for n in range(9)])
    _, done = imported(tmp_path, *files, *wrong, code=2)
    assert says in " ".join(done.stderr.split())
    assert not (tmp_path / "seen").exists()
    assert "Traceback" not in done.output


def test_captures_that_are_no_pair_are_refused_and_nothing_is_made(tmp_path: Path) -> None:
    files = pair(tmp_path, [frame(1)], [frame(2)])
    for given, says in (
        ([files[0], tmp_path / "none.pcap"], "none.pcap: cannot be read"),
        (files, "no frame of the first has the same content"),
        ([*files, files[0]], "a capture is named twice"),
    ):
        _, done = imported(tmp_path, *given, code=2)
        assert says in " ".join(done.stderr.split())
        assert not (tmp_path / "seen").exists()
    written(files[1], [])
    _, done = imported(tmp_path, *files, code=2)
    assert "has no Ethernet frame with a time" in done.stderr
