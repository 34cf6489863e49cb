"""Which core the servicing thread of each host is bound to, and how many agents it is told to share a machine with."""

from __future__ import annotations

from pathlib import Path

from wiregauge.config import load
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.benches.hosts import HostsBench
from wiregauge.runner.lab.placement import Described, LabInterface

TEST = """<test xmlns="urn:wiregauge:test:2" name="one" seed="1">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/><switch name="sw"/>
    <link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/>
    <link between="c sw" rate="1Gbit/s"/><link between="d sw" rate="1Gbit/s"/>
  </network>
  <flows><flow id="10" protocol="udp" from="a" to="b c d"/></flows>
  <tasks><send flow="10" period="10ms" payload="64B" count="20"/><receive flow="10"/></tasks>
</test>
"""


def opened(file: Path, hosts: dict[str, Described]) -> dict[str, AgentPlace]:
    bench = HostsBench(lambda _: hosts)
    campaign = bench.adapt(load(file).campaign)
    return {place.end_system: place for place in bench.open(campaign, file.parent)}


def test_hosts_of_one_kernel_have_cores_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "test.xml"
    file.write_text(TEST)

    def host(name: str, address: str, boot: str | None, cores: str) -> Described:
        interface = LabInterface("eth1", (2, 0, 0, 0, 0, 1), ("10.0.0.1",), 10**9, 1500, True, True, "", ())
        facts = {"cores": cores} | ({"boot-id": boot} if boot is not None else {})
        return Described(name, address, None, interface, facts, "1", "")

    places = opened(
        file,
        {
            "a": host("a", "10.0.0.1:1", "one", "3"),
            "b": host("b", "10.0.0.2:1", "two", "3"),
            "c": host("c", "10.0.0.3:1", "one", "3"),
            "d": host("d", "10.0.0.4:1", "one", "3"),
        },
    )
    # The first core is left to everything else: a third host of three cores is bound to none.
    assert {name: place.servicing_core for name, place in places.items()} == {"a": 2, "b": 2, "c": 1, "d": -1}
    assert {name: place.machine for name, place in places.items()} == {
        "a": "one", "b": "two", "c": "one", "d": "one",
    }  # fmt: skip


def test_hosts_that_do_not_tell_their_boot_are_told_apart_by_address(tmp_path: Path) -> None:
    file = tmp_path / "test.xml"
    file.write_text(TEST)
    interface = LabInterface("eth1", (2, 0, 0, 0, 0, 1), ("10.0.0.1",), 10**9, 1500, True, True, "", ())
    hosts = {
        name: Described(name, f"10.0.0.{number}:1", None, interface, {"cores": "4"}, "1", "")
        for number, name in enumerate("abcd")
    }
    places = opened(file, hosts).values()
    assert [place.servicing_core for place in places] == [3, 3, 3, 3]
    assert len({place.machine for place in places}) == 4
