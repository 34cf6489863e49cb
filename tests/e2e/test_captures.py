"""Captures of both benches, read by a stranger (tshark), by our dissector in it, and judged again as a tap saw them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from support import COMMAND, Done, Runner, assert_measured, scenario
from wiregauge.cli import app
from wiregauge.dissector import text
from wiregauge.runner.agent_program import agent_program

TSHARK = shutil.which("tshark")
needs_tshark = pytest.mark.skipif(
    TSHARK is None, reason="tshark is not installed (Debian: apt install tshark)"
)

FLOWS = (
    '<flow id="10" protocol="udp" from="mac" to="sensor"/>'
    '<flow id="20" protocol="raw" from="mac" to="sensor" vlan="5" priority="3"/>'
)
TASKS = (
    '<tasks warm-up="10ms" drain="50ms"><send flow="10" period="2ms" payload="18B" count="100"/>'
    '<send flow="20" period="2ms" payload="20B" count="100" offset="1ms"/><receive flow="10"/>'
    '<relay flow="20" on="sensor"/>'
    '<capture on="mac" snap="60B"/><capture on="sw1"/><capture on="sensor"/></tasks>'
)
HEARD = 100 + 3 * 100 + 5 + 2 * 5
"""Frames at a port: flow 10 once, flow 20 there and back, and their warm-ups."""


@pytest.fixture(scope="module", params=["sim", "model", "kernel"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with three captures: of a simulation, or between namespaces, by who plays the switch."""
    bench = ["sim"] if request.param == "sim" else ["netns", "--switches", request.param]
    folder = tmp_path_factory.mktemp("captures")
    (folder / "t.xml").write_text(scenario(TASKS, flows=FLOWS))
    done = subprocess.run(
        [str(COMMAND), "run", "t.xml", "--bench", *bench, "--out", "r"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert_measured(Done(done.returncode, done.stdout, done.stderr), folder / "r")
    return folder / "r"


def dissected(capture: Path, folder: Path, *fields: str, display: str = "") -> list[list[str]]:
    """What tshark with our dissector shows of every frame."""
    script = folder / "wiregauge.lua"
    script.write_text(text())
    assert TSHARK is not None
    command = [TSHARK, "-X", f"lua_script:{script}", "-r", str(capture), "-T", "fields"]
    command += [part for field in fields for part in ("-e", field)]
    answer = subprocess.run(
        [*command, *(("-Y", display) if display else ())],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "HOME": str(folder)},
    )
    assert answer.returncode == 0, answer.stderr
    assert "Lua" not in answer.stderr, answer.stderr
    return [line.split("\t") for line in answer.stdout.splitlines()]


@needs_tshark
def test_a_stranger_reads_our_captures_and_the_dissector_every_message(place: Path, tmp_path: Path) -> None:
    captures = place / "captures" / "run-0000"
    assert sorted(path.name for path in captures.iterdir()) == ["mac.pcapng", "sensor.pcapng", "sw1.pcapng"]
    fields = (
        "frame.interface_name", "wiregauge.flow", "wiregauge.sequence", "wiregauge.return", "wiregauge.warm_up",
        "wiregauge.crc_ok", "wiregauge.payload", "vlan.id",
    )  # fmt: skip
    for node, ports in (("mac", 1), ("sensor", 1), ("sw1", 2)):
        rows = dissected(captures / f"{node}.pcapng", tmp_path, *fields)
        assert {row[0] for row in rows} == {f"{node}:{port}" for port in range(1, ports + 1)}
        for flow, ways, payload, tag in (("10", ("0",), "18", ""), ("20", ("0", "1"), "20", "5")):
            for way in ways:
                seen = [row for row in rows if row[1] == flow and row[3] in (way, str(bool(int(way))))]
                assert sorted(int(row[2]) for row in seen if row[4] in ("0", "False")) == sorted(
                    [*range(100)] * ports
                )
                assert {row[7] for row in seen} == {tag}
                whole = {(row[5], row[6]) for row in seen}
                # The capture at mac keeps 60 B: enough for these short ones without FCS, not for all with it.
                assert whole <= {("1", payload), ("", "")}
                assert node == "mac" or whole == {("1", payload)}


def test_every_capture_is_reported(place: Path, wiregauge: Runner) -> None:
    """A check that knows nothing of a capture could not tell that frames are missing from it."""
    (run,) = wiregauge("show", place, "--json").json()["runs"]
    (check,) = (check for check in run["checks"] if check["name"] == "captures")
    assert check["grade"] == "ok"
    assert check["observed"].endswith(" in 3 files"), check


def test_taps_judge_the_run_they_saw(place: Path, wiregauge: Runner, tmp_path: Path) -> None:
    """Latency between two ports of the switch, in a run directory that `show` reads like any other."""
    capture = place / "captures" / "run-0000" / "sw1.pcapng"
    done = wiregauge("import", capture, "--out", "taps", "--json")
    assert done.code == 0, done.err
    flows = {flow["flow"]: flow for flow in done.json()["runs"][0]["flows"]}
    assert {number: (flow["sent"], flow["delivered"]) for number, flow in flows.items()} == {
        10: (100, 100),
        20: (100, 100),
    }
    assert wiregauge("show", tmp_path / "taps").code == 0
    kinds = {
        point for (point,) in pl.read_parquet(tmp_path / "taps" / "records").select("point").unique().rows()
    }
    assert kinds == {"tap"}
    simulated = json.loads((place / "manifest.json").read_text())["bench"] == "sim"
    if simulated:
        # 18 B of UDP make 64 B; first octet in to first octet out: the frame, 2 µs to decide, the preamble again.
        assert flows[10]["latency_ns"]["min"] == flows[10]["latency_ns"]["max"] == 512 + 2_000 + 64
        return
    parts = flows[10]["latency_ns"]["uncertainty_parts"]
    if json.loads((place / "manifest.json").read_text())["traits"]["switches"] == "kernel":
        assert parts["timestamp"] >= 10_000, "software timestamps are not the wire"
    else:
        assert parts["timestamp"] < 10, "the model knows its instants"
        assert flows[10]["latency_ns"]["min"] == 512 + 2_000 + 64


def test_taps_at_the_nodes_of_the_test_tell_residence_and_time_on_the_wire(
    place: Path, wiregauge: Runner, tmp_path: Path
) -> None:
    captures = place / "captures" / "run-0000"
    files = [captures / f"{name}.pcapng" for name in ("mac", "sw1", "sensor")]
    done = wiregauge(
        "import",
        *files,
        "--test",
        place / "test.xml",
        "--max-clock-offset",
        "0ns",
        "--out",
        "again",
        "--json",
    )
    assert done.code == 0, done.err
    shown = done.json()["runs"][0]
    assert {flow["flow"]: flow["delivered"] for flow in shown["flows"]} == {10: 100, 20: 100}
    if json.loads((place / "manifest.json").read_text())["bench"] == "sim":
        table = pl.read_parquet(place / "messages" / "run-0000.parquet").filter(pl.col("flow") == 10)
        wire = (table["rx_wire"] - table["tx_wire"]).to_list()
        again = pl.read_parquet(tmp_path / "again" / "messages" / "run-0000.parquet").filter(
            pl.col("flow") == 10
        )
        assert (again["rx_wire"] - again["tx_wire"]).to_list() == wire
        assert (again["rx_app"] - again["tx_app"]).to_list() == wire
        stored = pl.read_parquet(place / "passages" / "run-0000.parquet")
        tapped = pl.read_parquet(tmp_path / "again" / "passages" / "run-0000.parquet")
        spent = [(frame["left"] - frame["came"]).sort().to_list() for frame in (stored, tapped)]
        assert spent[0] == spent[1]
        assert len(spent[0]) == 300


def test_a_cut_capture_gives_what_it_has_and_says_so(place: Path, wiregauge: Runner, tmp_path: Path) -> None:
    whole = (place / "captures" / "run-0000" / "sw1.pcapng").read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(whole[: len(whole) * 2 // 3 + 1])
    done = wiregauge("import", "cut.pcapng", "--out", "cut")
    assert done.code == 4, done.err
    assert "ends within a block" in done.err
    assert "INVALID" in done.out or "DEGRADED" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.pcapng", "--out", "o"), "No such file"),
        (("t.txt", "--out", "o"), "neither pcapng nor pcap"),
        (("empty.pcap", "--out", "o"), "no Ethernet frame with a time"),
        (("t.txt", "--out", "o", "--rate", "fast"), "write a number and one of bit/s"),
        (("t.txt", "--out", "o", "--tap", "a=b"), "need --test"),
    ],
)
def test_what_cannot_be_made_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("This is no capture, whatever else it is.")
    (tmp_path / "empty.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
    done = CliRunner().invoke(app, ["import", *arguments])
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "o").exists()


def classic(frames: list[tuple[float, bytes]], *, order: str = "<", link: int = 1) -> bytes:
    """A classic pcap file with microseconds."""
    file = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)
    for at, frame in frames:
        seconds, micros = divmod(round(at * 1e6), 10**6)
        file += struct.pack(f"{order}IIII", seconds, micros, len(frame), len(frame)) + frame
    return file


def message(flow: int, sequence: int, payload: int = 46) -> bytes:
    """A raw frame with a message, written from the description of the probe header alone."""
    head = struct.pack(">BBHI", 0x57, 0x10, flow, sequence)
    content = bytes(range(payload - 12))
    crc = zlib.crc32(head + bytes(4) + content)
    return bytes.fromhex("020000000002 020000000001 88b5") + head + struct.pack(">I", crc) + content


@pytest.mark.parametrize("order", ["<", ">"])
def test_one_tap_of_a_stranger_tells_the_time_between_arrivals(
    wiregauge: Runner, tmp_path: Path, order: str
) -> None:
    """Classic pcap, microseconds, either byte order; frame 7 is missing, one is damaged, one is not ours."""
    frames = [(1.0 + 0.001 * n, message(5, n)) for n in range(20) if n != 7]
    damaged = bytearray(message(5, 20))
    damaged[40] ^= 1
    frames += [(1.02, bytes(damaged)), (1.021, bytes(60))]
    (tmp_path / "tap.pcap").write_bytes(classic(frames, order=order))
    done = wiregauge("import", "tap.pcap", "--out", "one", "--json")
    shown = done.json()["runs"][0]["flows"]
    assert [(flow["flow"], flow["delivered"]) for flow in shown] == [(5, 19)]
    manifest: dict[str, Any] = json.loads((tmp_path / "one" / "manifest.json").read_text())
    (tap,) = manifest["runs"][0]["taps"]
    assert (tap["name"], tap["frames"], tap["messages"], tap["damaged"], tap["foreign"]) == (
        "tap",
        21,
        20,
        1,
        1,
    )
    assert tap["step_ns"] == 1_000
    found = shown[0]["receive_period_ns"]
    assert (found["min"], found["max"], found["n"]) == (1_000_000, 2_000_000, 18)


@needs_tshark
def test_the_dissector_finds_messages_on_ports_a_flow_chose(tmp_path: Path) -> None:
    """Messages are recognised by their CRC: frames that only begin like one are left to others."""
    content = message(5, 1)[14:]
    damaged = bytearray(content)
    damaged[20] ^= 1

    def datagram(port: int, payload: bytes) -> bytes:
        udp = struct.pack(">HHHH", 5000, port, 8 + len(payload), 0) + payload
        ends = bytes([198, 18, 0, 1]), bytes([198, 18, 0, 2])
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 1, 17, 0, *ends)
        return bytes.fromhex("020000000002 020000000001 0800") + ip + udp

    sent = [(5001, content), (5001, bytes(damaged)), (61_188, content), (61_188, bytes(damaged))]
    frames = [(1.0 + n / 1000, datagram(port, payload)) for n, (port, payload) in enumerate(sent)]
    (tmp_path / "chosen.pcap").write_bytes(classic(frames))
    rows = dissected(tmp_path / "chosen.pcap", tmp_path, "frame.number", "wiregauge.flow", "wiregauge.crc_ok")
    assert rows == [["1", "5", "1"], ["2", "", ""], ["3", "5", "1"], ["4", "5", "0"]]


@needs_tshark
def test_the_dissector_shows_virtual_links_their_numbers_and_protocol_control_frames(tmp_path: Path) -> None:
    """Frames written from the public descriptions of ARINC 664 part 7 and SAE AS6802."""

    def virtual_link(vl: int, network: int, number: int) -> bytes:
        ethernet = (
            bytes([3, 0, 0, 0]) + struct.pack(">H", vl) + bytes([2, 0, 0, 7, 9, network << 5]) + b"\x08\x00"
        )
        udp = struct.pack(">HHHH", 1, 2, 8 + 17, 0) + bytes(17)
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + 25, 0, 0, 1, 17, 0, bytes([10, 7, 9, 1]), bytes([224, 224, 0, vl])
        )
        return ethernet + ip + udp + bytes([number])

    numbers = [0, 1, 2, 4, 4, 255, 1]
    frames = [(1.0 + n / 1000, virtual_link(16, 1, number)) for n, number in enumerate(numbers)]
    frames.append((2.0, virtual_link(16, 2, 3)))
    control = struct.pack(">IIIBBBxxxxxQ", 42, 0b101, 0, 3, 1, 0x02, (1234 << 16) + (1 << 15))
    frames.append((3.0, bytes.fromhex("abadbabe0001 020000000001 891d") + control + bytes(18)))
    (tmp_path / "avionics.pcap").write_bytes(classic(frames))
    rows = dissected(
        tmp_path / "avionics.pcap", tmp_path, "wg664.vl", "wg664.network", "wg664.equipment", "wg664.sequence",
        "_ws.expert.message", display="wg664",
    )  # fmt: skip
    assert [row[:4] for row in rows] == [["16", "A", "9", str(n)] for n in numbers] + [["16", "B", "9", "3"]]
    missing, again = (
        "Frames are missing before this one",
        "A number that came before: repeated or out of order",
    )
    told = [[text for text in (missing, again) if text in row[4]] for row in rows]
    assert told == [[], [], [], [missing], [again], [again], [], []]
    (pcf,) = dissected(
        tmp_path / "avionics.pcap", tmp_path, "wgpcf.integration_cycle", "wgpcf.membership", "wgpcf.sync_priority",
        "wgpcf.sync_domain", "wgpcf.type", "wgpcf.transparent_clock_ns", display="wgpcf",
    )  # fmt: skip
    assert pcf == ["42", "0x00000005", "3", "1", "2", "1234.5"]


def test_the_dissector_is_printed_and_installed(wiregauge: Runner, tmp_path: Path) -> None:
    assert wiregauge("dissector").out == text()
    done = wiregauge("dissector", "--install", prefix=("env", f"HOME={tmp_path}", "XDG_CONFIG_HOME="))
    assert done.code == 0, done.err
    installed = Path(done.out.removeprefix("installed: ").strip())
    assert installed.is_relative_to(tmp_path)
    assert installed.read_text() == text()


def capturing(file: Path, *interfaces: str, blocks: int = 0) -> subprocess.Popen[str]:
    """The capture program, ready; its shell lets a file have so many blocks (of 512 B or 1 KiB, as shells differ)."""
    limit = f"trap '' XFSZ; ulimit -f {blocks};" if blocks else ""
    taps = [part for interface in interfaces for part in ("-i", interface)]
    program = subprocess.Popen(
        ["sh", "-c", f'{limit} exec "$@"', "sh", str(agent_program()), "capture", "--out", str(file), *taps],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    if program.stdout.readline() != "capturing\n":
        said = program.communicate()[1]
        if "CAP_NET_RAW" in said:
            pytest.skip("no right to packet sockets here")
        raise AssertionError(said)
    return program


def test_a_disk_that_fills_up_leaves_a_readable_file_and_one_line(tmp_path: Path) -> None:
    """Whole frames up to the limit, the others counted: nothing is lost in silence and nothing is cut."""
    file, sent = tmp_path / "full.pcapng", 600
    program = capturing(file, "lo=lo:1", blocks=200)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        sender.settimeout(30)
        for _ in range(sent):
            sender.sendto(bytes(1_000), sender.getsockname())
            sender.recv(1_000)  # it is past every tap of the interface
    program.terminate()
    out, err = program.communicate(timeout=30)
    assert program.returncode == 4
    assert "cannot be written: File too large" in err, err
    assert len(err.splitlines()) == 1, err
    told = json.loads(out)
    assert told["done"] > 0
    assert told["done"] + told["unwritten"] == told["planned"] - told["ring_drops"] >= 2 * sent
    blocks, frames, at = file.read_bytes(), 0, 0
    assert len(blocks) <= 200 * 1_024
    while at < len(blocks):
        kind, length = struct.unpack_from("<II", blocks, at)
        assert struct.unpack_from("<I", blocks, at + length - 4) == (length,)
        frames += kind == 6
        at += length
    assert (at, frames) == (len(blocks), told["done"])


@pytest.mark.parametrize("switches", ["model", "kernel"])
def test_captures_that_would_fill_the_disk_leave_room_for_the_records_of_their_run(
    tmp_path: Path, switches: str
) -> None:
    """The measurement goes on without its captures, whole, and both say so."""
    count = 3_000
    (tmp_path / "t.xml").write_text(
        scenario(
            f'<tasks warm-up="10ms" drain="50ms"><send flow="10" period="400us" payload="1400B" count="{count}"/>'
            '<receive flow="10"/><capture on="sw1"/><capture on="sensor"/></tasks>'
        )
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    # A mount of this command's own: it ends with it, so everything is read inside.
    script = (
        'mount -t tmpfs -o size=12M tmpfs disk && "$0" run t.xml --bench netns --switches "$1" --out disk/r; '
        '"$0" show disk/r --json > show.json; cp disk/r/manifest.json . && ls disk/r/captures/run-0000'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(COMMAND), switches],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mounts of one's own here: {done.stderr.strip()}")
    assert "Traceback" not in done.stderr, done.stderr
    shown = json.loads((tmp_path / "show.json").read_text())
    run = json.loads((tmp_path / "manifest.json").read_text())["runs"][0]
    assert run["state"] == "complete", run["reason"]
    assert all(report["records_dropped"] == 0 for report in run["agents"].values())
    tasks = [
        task for report in run["agents"].values() for task in report["tasks"] if task["kind"] == "capture"
    ]
    failures = [task["failure"] for task in (*tasks, *run["captures"].values()) if task["failure"]]
    assert failures, "12 MiB hold no 8 MB of captures beside the quarter that stays free"
    for failure in failures:
        assert "MiB of disk space is left, reserved for records" in failure
        assert "frames are there and readable" in failure
    assert shown["validity"] != "VALID"
    assert shown["runs"][0]["flows"][0]["sent"] == count
    assert {"sw1.pcapng", "sensor.pcapng"} <= set(done.stdout.split())


def test_an_interface_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(agent_program()), "capture", "-i", "nowhere0", "--out", str(tmp_path / "c.pcapng")],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "no interface 'nowhere0'" in done.stderr
    assert "lo" in done.stderr
    assert not (tmp_path / "c.pcapng").exists()


def test_hardware_timestamps_where_there_are_none_are_refused_with_the_cure(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(agent_program()),
            "capture",
            "-i",
            "lo",
            "--hardware-timestamps",
            "--out",
            str(tmp_path / "c.pcapng"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot switch on timestamping of every frame on interface 'lo'" in done.stderr
    assert "CAP_NET_ADMIN" in done.stderr
