"""Cables of a lab: what neighbours say by LLDP, held against the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiregauge.config import load
from wiregauge.plan import Campaign
from wiregauge.runner.benches.hosts import HostsBench
from wiregauge.runner.lab.placement import Described, LabInterface, Neighbour

TEST = """<test xmlns="urn:wiregauge:test:2" name="one" seed="1">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/>
    <switch name="sw1"/><switch name="sw2"/>
    <link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/>
    <link between="c sw2" rate="1Gbit/s"/><link between="sw1 sw2" rate="1Gbit/s"/>
  </network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="20" protocol="udp" from="a" to="c"/></flows>
  <tasks>
    <send flow="10" period="10ms" payload="64B" count="20"/><send flow="20" period="10ms" payload="64B" count="20"/>
    <receive flow="10"/><receive flow="20"/>
  </tasks>
</test>
"""


def at(name: str, port: str, vlan: int | None = None) -> Neighbour:
    return Neighbour(f"02:00:00:00:00:{len(name):02x}", name, port, "", vlan, "lldpd")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    file = tmp_path / "test.xml"
    file.write_text(TEST)
    return load(file).campaign


def said(campaign: Campaign, **heard: tuple[Neighbour, ...]) -> list[str]:
    """What is said of cables where hosts have heard these neighbours."""

    def host(name: str) -> Described:
        interface = LabInterface(
            "eth1", (2, 0, 0, 0, 0, 1), ("10.0.0.1",), 10**9, 1500, True, True, "", heard.get(name, ())
        )
        return Described(name, "10.0.0.1:1", None, interface, {}, "1", "")

    bench = HostsBench(lambda _: {name: host(name) for name in "abc"})
    return [fact.note for fact in bench.facts(bench.adapt(campaign)) if fact.name == "cables"]


def test_cables_as_in_the_test_need_no_word(campaign: Campaign) -> None:
    assert said(campaign, a=(at("x", "1"),), b=(at("x", "2"),), c=(at("other", "1"),)) == []
    assert said(campaign) == []
    # A cable has one other end: of several neighbours nobody knows which it is.
    assert said(campaign, a=(at("x", "1"), at("other", "1")), b=(at("third", "1"),)) == []


def test_other_cables_are_named(campaign: Campaign) -> None:
    assert said(campaign, a=(at("x", "1"),), b=(at("other", "2"),)) == [
        "a and b are both at sw1 in the test; a is at port 1 of x (LLDP), b at port 2 of other (LLDP)"
    ]
    assert said(campaign, a=(at("x", "1"),), c=(at("x", "2"),)) == [
        "a and c have no switch in common in the test; both are at x (LLDP)"
    ]


@pytest.mark.parametrize(("one", "other", "told"), [(5, 5, 0), (5, None, 0), (5, 6, 1)])
def test_untagged_frames_in_several_vlans_are_named(
    campaign: Campaign, one: int | None, other: int | None, told: int
) -> None:
    found = said(campaign, a=(at("x", "1", one),), b=(at("x", "2", other),))
    assert found == ["untagged frames of a are in VLAN 5, those of b in VLAN 6 (LLDP)"][:told]
