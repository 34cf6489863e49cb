"""Streams on real frames: patterns, modes and backends deliver what they promise; every frame of load is counted."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from capture_files import Packet, pcapng

from support import Runner, assert_measured, scenario
from wiregauge.runner.agent_program import agent_program

pytestmark = pytest.mark.alone  # every frame is to come through at the rate it is sent

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="BPF programmes and AF_XDP need root")
DIRECT = (
    '<test xmlns="urn:wiregauge:test:2" name="e2e" seed="1" bench="netns"><network><end-system name="mac"/>'
    '<end-system name="sensor"/><link between="mac sensor" rate="1Gbit/s"/></network><flows>'
    '<flow id="10" protocol="udp" from="sensor" to="mac"/></flows><tasks duration="300ms">'
    '<send flow="10" period="10ms" payload="64B"/><receive flow="10"/>{inject}</tasks></test>'
)


def streams(folder: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The streams of the only run by end system, kind and number."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return {
        (name, stream["kind"], stream["number"]): stream
        for name, agent in manifest["runs"][0]["agents"].items()
        for stream in agent["streams"]
    }


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        ('period="200us" pacing="gap" transmit-time="12B"', 1_500),
        ('period="200us" pacing="rate" backend="packet"', 1_500),
        ('period="200us" distribution="exponential" seed="7"', None),
        ('period="400us" ramp-to="200us"', 1_125),
        ('period="200us" active="10ms" pause="20ms"', 500),
        ('period="2ms" burst="5" spacing="10us" rate-limit="100Mbit/s"', 750),
    ],
)
def test_every_pattern_arrives_whole(
    wiregauge: Runner, tmp_path: Path, attributes: str, count: int | None
) -> None:
    tasks = (
        f'<tasks warm-up="20ms" duration="300ms"><send flow="10" payload="64B" {attributes}/>'
        '<receive flow="10"/></tasks>'
    )
    (tmp_path / "t.xml").write_text(scenario(tasks))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert_measured(done, tmp_path / "r")
    (flow,) = wiregauge("show", "r", "--json").json()["runs"][0]["flows"]
    assert flow["sent"] == flow["delivered"] == (count or flow["sent"]) > 0
    if " pacing=" in attributes:
        stream = streams(tmp_path / "r")[("mac", "send", 10)]
        assert stream["pacing"] in attributes
        assert stream["figures"]["offered"] == flow["sent"] + 100
        assert sum(stream["figures"]["gaps"][f"within_{us}us"] for us in (1, 5, 50)) > 0


def assert_balanced(sent: dict[str, Any], dropped: int, at_port: int, got: dict[str, Any]) -> None:
    """Frame by frame, by counters of their own: what was handed over, what came to the port, what was received."""
    assert sent["offered"] - sent["refused"] == at_port + dropped
    account = got["account"]
    told = account["distinct"] + account["duplicates"] + account["behind"] + account["corrupted"]
    assert at_port == told + got["foreign"] + sum(got["missed"].values())


def dropped_by(noise: pl.DataFrame, node: str) -> int:
    """Frames the interface of an end system, which was made for this run, dropped on the way to the other end."""
    counted = noise.filter((pl.col("node") == node) & (pl.col("counter") == "tx_drops"))["value"]
    assert len(counted), "its agent has looked"
    return int(counted[-1])


@pytest.mark.parametrize(
    "backend",
    ["udp", "packet", pytest.param("xdp", marks=ROOT_ONLY), pytest.param("xdp-live", marks=ROOT_ONLY)],
)
def test_every_frame_of_background_load_is_accounted_for(
    wiregauge: Runner, tmp_path: Path, backend: str
) -> None:
    load = "40%" if backend == "xdp-live" else "2%"
    inject = f'<inject on="mac" to="sensor" load="{load}" frame="66B" burst="1" backend="{backend}"/>'
    (tmp_path / "t.xml").write_text(DIRECT.format(inject=inject))
    done = wiregauge("run", "t.xml", "--switches", "kernel", "--out", "r")
    assert_measured(done, tmp_path / "r")
    told = streams(tmp_path / "r")
    sent, got = told[("mac", "inject", 0)], told[("sensor", "absorb", 0)]
    assert sent["backend"] == backend
    assert sent["why"]
    account = got["figures"]["account"]
    assert account["corrupted"] == account["duplicates"] == account["behind"] == 0
    (entry,) = json.loads((tmp_path / "r" / "manifest.json").read_text())["runs"]
    port = entry["first_ports"]["mac"]
    noise = pl.read_parquet(tmp_path / "r" / "noise" / "run-0000.parquet")
    assert_balanced(sent["figures"], dropped_by(noise, "mac"), port["received"], got["figures"])
    # One frame that nobody accounts for would be found, on either side of the port.
    for wrong in (port["received"] - 1, port["received"] + 1):
        with pytest.raises(AssertionError):
            assert_balanced(sent["figures"], dropped_by(noise, "mac"), wrong, got["figures"])
    assert account["latency_ns"]["min"] > 0
    assert "Account of background load" in (tmp_path / "r" / "report.html").read_text()


def test_a_capture_beside_fast_load_sees_it(wiregauge: Runner, tmp_path: Path) -> None:
    """What AF_XDP takes in comes by no capture, so the receiver is a packet ring here and says why."""
    inject = (
        '<inject on="mac" to="sensor" load="20%" frame="66B" burst="1"/><capture on="sensor" snap="64B"/>'
    )
    (tmp_path / "t.xml").write_text(DIRECT.format(inject=inject))
    done = wiregauge("run", "t.xml", "--switches", "kernel", "--out", "r")
    assert_measured(done, tmp_path / "r")
    got = streams(tmp_path / "r")[("sensor", "absorb", 0)]
    assert got["backend"] == "packet-ring"
    assert "capture" in got["why"]
    (entry,) = json.loads((tmp_path / "r" / "manifest.json").read_text())["runs"]
    (task,) = (task for task in entry["agents"]["sensor"]["tasks"] if task["kind"] == "capture")
    # It sees both directions of the line, and those frames by which the load was tried.
    passed = sum(port["received"] for port in entry["first_ports"].values())
    tried = sum(trial["arrived"] for trial in entry["trials"])
    assert task["done"] + task["unwritten"] + task["ring_drops"] == passed + tried
    assert got["figures"]["account"]["distinct"] > 1_000


def test_every_message_that_comes_fast_is_judged(wiregauge: Runner, tmp_path: Path) -> None:
    """The thread that receives them never rests: it judges them itself, and no queue runs over."""
    send = '<send flow="10" payload="64B" period="10us" pacing="rate"/>'
    tasks = f'<tasks duration="1s">{send}<receive flow="10"/></tasks>'
    (tmp_path / "t.xml").write_text(scenario(tasks))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert_measured(done, tmp_path / "r")
    agents = json.loads((tmp_path / "r" / "manifest.json").read_text())["runs"][0]["agents"]
    (point,) = agents["sensor"]["access_points"]
    (task,) = agents["sensor"]["tasks"]
    assert point["inbox_drops"] == 0
    assert task["done"] == point["frames_received"] > 50_000


def test_a_capture_is_replayed_frame_by_frame(wiregauge: Runner, tmp_path: Path) -> None:
    """Sizes in their order at both ends; what a tap at the sender wrote can be replayed in turn."""
    lengths = [60, 200, 1514, 96, 400] * 40
    packets = [Packet(10**18 + 300_000 * k, length) for k, length in enumerate(lengths)]
    (tmp_path / "line.pcapng").write_bytes(pcapng(packets))
    for number, file in enumerate(["line.pcapng", "r0/captures/run-0000/mac.pcapng"]):
        chosen = 'interface="0" direction="sent"' if number else ""
        tasks = (
            f'<tasks><replay flow="10" file="{file}" pacing="gap" {chosen}/><receive flow="10"/>'
            '<capture on="mac"/></tasks>'
        )
        (tmp_path / "t.xml").write_text(scenario(tasks))
        done = wiregauge("run", "t.xml", "--out", f"r{number}")
        assert_measured(done, tmp_path / f"r{number}")
        (flow,) = wiregauge("show", f"r{number}", "--json").json()["runs"][0]["flows"]
        assert flow["sent"] == flow["delivered"] == 200
        assert flow["corrupted"] == 0
        stream = streams(tmp_path / f"r{number}")[("mac", "send", 10)]
        assert stream["figures"]["offered"] == 200
        records = pl.read_parquet(next((tmp_path / f"r{number}").glob("records/*.parquet")))
        for point in ("application-send", "application-receive"):
            seen = records.filter(pl.col("point") == point).sort("sequence")
            assert seen["length"].to_list() == [length + 4 for length in lengths], point


def test_a_host_that_launches_nothing_says_what_is_missing(wiregauge: Runner, tmp_path: Path) -> None:
    send = '<send flow="10" period="1ms" payload="64B" launch="on"/>'
    tasks = f'<tasks duration="100ms">{send}<receive flow="10"/></tasks>'
    (tmp_path / "t.xml").write_text(scenario(tasks))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert done.code == 3, done.err
    assert "flow 10 asks for launch times" in done.err
    options = ["--to-mac", "02:00:00:00:00:07", "--to", "127.0.0.1:9", "--from", "127.0.0.1:61189"]
    command = [
        str(agent_program()),
        "generate",
        "--interface",
        "lo",
        *options,
        "--count",
        "1",
        "--launch",
        "on",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 3, answer.stdout
    assert "launch times cannot be used: lo has the queue discipline" in answer.stderr
    assert "tc qdisc replace dev lo root etf clockid CLOCK_TAI delta 300000" in answer.stderr


CHOSEN = {
    "source-mac": "02:00:00:00:00:71",
    "destination-mac": "02:00:00:00:00:72",
    "source-ip": "10.1.1.1",
    "destination-ip": "10.1.1.2",
    "source-port": "5000",
    "destination-port": "5001",
}


OWN = [
    (10, "udp", list(CHOSEN)),
    (11, "udp", ["source-mac", "source-port"]),
    (12, "udp", ["destination-port"]),
    (13, "udp", ["source-ip"]),
    (14, "raw", ["source-mac", "destination-mac"]),
]


def test_chosen_addresses_are_on_the_wire_and_every_frame_is_accounted_for(
    wiregauge: Runner, tmp_path: Path
) -> None:
    flows = '<flow id="20" protocol="udp" from="sensor" to="mac"/>'
    tasks = (
        '<send flow="20" period="2ms" payload="64B" count="100"/><receive flow="20"/><capture on="sensor"/>'
    )
    for flow, protocol, names in OWN:
        attributes = " ".join(f'{name}="{CHOSEN[name]}"' for name in names)
        flows += f'<flow id="{flow}" protocol="{protocol}" from="mac" to="sensor" {attributes}/>'
        tasks += f'<send flow="{flow}" period="1ms" offset="{flow * 50}us" payload="64B" count="200"/>'
        tasks += f'<receive flow="{flow}"/>'
    tasks = f'<tasks warm-up="20ms">{tasks}</tasks>'
    (tmp_path / "t.xml").write_text(scenario(tasks, flows=flows, systems=("mac", "sensor", "other")))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert_measured(done, tmp_path / "r")
    shown = wiregauge("show", "r", "--json").json()["runs"][0]["flows"]
    assert {flow["flow"]: flow["sent"] for flow in shown} == {20: 100} | {flow: 200 for flow, _, _ in OWN}
    for flow in shown:
        assert flow["sent"] == flow["delivered"]
        assert flow["duplicated"] == flow["misdirected"] == flow["corrupted"] == 0
    data = next((tmp_path / "r" / "captures").rglob("sensor.pcapng")).read_bytes()
    for flow, protocol, names in OWN:
        arrived = [frame for frame in frames(data) if is_of(frame, flow, protocol)]
        assert len(arrived) == 220
        for frame in arrived:
            told = {
                "destination-mac": frame[:6].hex(":"),
                "source-mac": frame[6:12].hex(":"),
                "source-ip": ".".join(map(str, frame[26:30])),
                "destination-ip": ".".join(map(str, frame[30:34])),
                "source-port": str(int.from_bytes(frame[34:36])),
                "destination-port": str(int.from_bytes(frame[36:38])),
            }
            assert {name: told[name] for name in names} == {name: CHOSEN[name] for name in names}


def frames(data: bytes) -> list[bytes]:
    """The packets of a pcapng file of ours."""
    at, found = 0, []
    while at < len(data):
        kind, length, kept = (int.from_bytes(data[at + k : at + k + 4], "little") for k in (0, 4, 20))
        if kind == 6:
            found.append(data[at + 28 : at + 28 + kept])
        at += length
    return found


def is_of(frame: bytes, flow: int, protocol: str) -> bool:
    """Whether it is a message of the flow: its number is behind the two bytes of magic and version."""
    at = 14 if protocol == "raw" else 42
    types = (b"\x88\xb5",) if protocol == "raw" else (b"\x08\x00",)
    return frame[12:14] in types and int.from_bytes(frame[at + 2 : at + 4]) == flow


def test_more_than_a_host_can_do_ends_all_the_same(wiregauge: Runner, tmp_path: Path) -> None:
    """Four end systems that all send to all at a rate beyond two cores.

    Once a thread whose task had all buffers asked for frames so often that the task never ran, and nothing was sent
    any more until the run was given up.
    """
    names = [f"h{number}" for number in range(4)]
    ways = [(a, b) for a in names for b in names if a != b]
    flows = "".join(
        f'<flow id="{number}" protocol="raw" from="{a}" to="{b}"/>' for number, (a, b) in enumerate(ways, 1)
    )
    tasks = "".join(
        f'<send flow="{number}" load="18%" frame="512B" pacing="rate"/><receive flow="{number}"/>'
        for number in range(1, len(ways) + 1)
    )
    ends = "".join(f'<end-system name="{name}"/>' for name in names)
    links = "".join(f'<link between="{name} sw" rate="100Mbit/s"/>' for name in names)
    (tmp_path / "t.xml").write_text(
        '<test xmlns="urn:wiregauge:test:2" name="all" seed="1" bench="netns">'
        f'<network>{ends}<switch name="sw"/>{links}</network><flows>{flows}</flows>'
        f'<tasks warm-up="100ms" duration="400ms">{tasks}</tasks></test>'
    )
    done = wiregauge("run", "t.xml", "--out", "r")
    assert done.code in (0, 1, 4), done.err
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    reasons = [manifest["reason"] or "", *(run["reason"] or "" for run in manifest["runs"])]
    assert not any("still unsent" in reason for reason in reasons), reasons
