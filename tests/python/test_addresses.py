"""Addresses that flows choose: on the simulated wire, and refused where frames could not come where they should."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from wiregauge.config import Test, TestError
from wiregauge.notebook import simulate
from wiregauge.plan import plain

ALL: dict[str, Any] = {
    "source_mac": "02:00:00:00:00:71",
    "destination_mac": "02:00:00:00:00:72",
    "source_ip": "10.1.1.1",
    "destination_ip": "10.1.1.2",
    "source_port": 5000,
    "destination_port": 5001,
}


def addressed(protocol: str = "udp", **chosen: Any) -> Test:
    test = Test("addressed").end_system("a", "ideal").end_system("b", "ideal").end_system("c", "ideal")
    test.switch("sw")
    for node in "abc":
        test.link(node, "sw", rate="1Gbit/s")
    test.flow(1, protocol=protocol, from_="a", to="b", **chosen)
    return test.send(1, period="1ms", payload="64B", count=20).receive(1)


def frames(path: Path) -> list[bytes]:
    """The packets of a pcapng file of ours."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            (kept,) = struct.unpack_from("<I", data, at + 20)
            found.append(data[at + 28 : at + 28 + kept])
        at += length
    return found


def refused(test: Test) -> str:
    with pytest.raises(TestError) as caught:
        test.compile()
    return str(caught.value)


@pytest.mark.parametrize("learning", [False, True])
def test_the_simulated_wire_carries_them(tmp_path: Path, *, learning: bool) -> None:
    test = Test("addressed").end_system("a", "ideal").end_system("b", "ideal").end_system("c", "ideal")
    test.switch("sw", forwarding="learning" if learning else None)
    for node in "abc":
        test.link(node, "sw", rate="1Gbit/s")
    test.flow(1, protocol="udp", from_="a", to="b", **ALL).receive(1).capture("b").capture("c")
    run = simulate(test.send(1, period="1ms", payload="64B", count=20), tmp_path / "out")
    assert run.messages().collect()["outcome"].to_list() == ["delivered"] * 20
    arrived = frames(tmp_path / "out" / "captures" / "run-0000" / "b.pcapng")
    assert len(arrived) == 20
    for frame in arrived:
        assert frame[:12] == bytes.fromhex("020000000072020000000071")
        assert frame[26:34] == bytes([10, 1, 1, 1, 10, 1, 1, 2])
        assert struct.unpack_from(">HH", frame, 34) == (5000, 5001)
    # A switch that has never heard of the address floods it; any other one knows where it leads.
    strays = frames(tmp_path / "out" / "captures" / "run-0000" / "c.pcapng")
    assert len(strays) == (20 if learning else 0)


@pytest.mark.parametrize("protocol", ["udp", "raw"])
def test_they_are_part_of_the_plan_and_of_it_alone(protocol: str) -> None:
    chosen = ALL if protocol == "udp" else {name: ALL[name] for name in ("source_mac", "destination_mac")}
    mac = addressed(protocol, **chosen).compile().campaign.runs[0].flows[0].addresses.mac
    assert (mac.source, mac.destination) == ((2, 0, 0, 0, 0, 0x71), (2, 0, 0, 0, 0, 0x72))
    assert "addresses" not in plain(addressed(protocol).compile().campaign.runs[0].flows[0])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"source_mac": "01:00:5e:00:00:01"}, "is the address of a group (limit: an address of one station)"),
        ({"destination_mac": "ff:ff:ff:ff:ff:ff"}, "name all that are to receive it in to="),
        ({"source_mac": "02:00:00:00:00"}, "is no MAC address"),
        ({"source_mac": "00:00:00:00:00:00"}, "is nobody's address"),
        ({"source_port": 0}, 'source-port "0" is out of range (limit: 1 to 65535)'),
        ({"destination_port": 65536}, "is out of range"),
        ({"source_ip": "fe80::1"}, "is an IPv6 address (limit: an IPv4 address of one host)"),
        ({"destination_ip": "224.0.0.1"}, "is the address of a group"),
        ({"destination_ip": "10.1.1"}, "is no IPv4 address"),
        ({"destination_ip": "127.0.0.1"}, "never leaves a host"),
        ({"destination_mac": "02:57:47:00:00:03"}, 'is that of "c"; its frames would go there'),
        ({"source_mac": "02:57:47:00:00:02"}, 'is that of "b"; a switch would look for that one here'),
    ],
)
def test_addresses_that_lead_nowhere_are_refused(chosen: dict[str, Any], said: str) -> None:
    message = refused(addressed(**chosen))
    assert said in message, message


def test_what_does_not_go_with_them_is_refused() -> None:
    assert "source-ip has no effect" in refused(addressed("raw", source_ip="10.1.1.1"))
    test = addressed(destination_mac=ALL["destination_mac"])
    test.flow(2, protocol="udp", from_="a", to="c", destination_mac=ALL["destination_mac"]).receive(2)
    test.send(2, period="1ms", payload="64B", count=20)
    assert 'of flow 2 leads to "b" in flow 1' in refused(test)
    test = addressed().flow(2, protocol="udp", from_="a", to=["b", "c"], destination_port=7).receive(2)
    assert "has several receivers" in refused(test.send(2, period="1ms", payload="64B", count=20))
    test = addressed().flow(2, protocol="udp", from_="a", to="b", destination_port=7).relay(2)
    assert "a relay answers to the sender's own addresses" in refused(
        test.send(2, period="1ms", payload="64B", count=20)
    )
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"backend": "udp"}, "to the kernel"),
        ({"fill": "random"}, "have one content"),
    ]
    for chosen, said in refusals:
        test = addressed().flow(2, protocol="udp", from_="a", to="b", destination_port=7).receive(2)
        assert said in refused(test.send(2, period="1ms", payload="64B", count=20, **chosen))
