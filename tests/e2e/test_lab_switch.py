"""`wiregauge switch --bench lab`: the switch between hosts of a lab, here a bridge of the kernel, to a data sheet."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab_support import World

DEVICE = """<test xmlns="urn:wiregauge:test:2" name="between-hosts" seed="1">
  <network>
    <end-system name="one"/><end-system name="two"/><end-system name="three"/>
    <switch name="bridge"/>
    <link between="one bridge" rate="10Mbit/s"/>
    <link between="two bridge" rate="10Mbit/s"/>
    <link between="three bridge" rate="10Mbit/s"/>
  </network>
  <flows><flow id="1" protocol="raw" from="one" to="two"/></flows>
  <tasks duration="1s"><send flow="1" period="10ms" payload="64B"/><receive flow="1"/></tasks>
</test>
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("lab"), {"alpha": "", "beta": "", "gamma": ""})
    try:
        made.enrol_all()
        yield made
    finally:
        made.close()


def test_the_switch_between_hosts_is_characterised(world: World) -> None:
    """What this machine offers depends on its load; where trials ran and what they say of the bench does not."""
    (world.folder / "dut.xml").write_text(DEVICE)
    promise = "cir=2Mbit/s,frame=512B,ftd=1s"
    done = world.run(
        *("switch", "dut.xml", "--bench", "lab", "--lab", world.lab / "lab.toml", "--out", "s"),
        *("--frame-sizes", "512", "--tests", "one-to-many,broadcast,address-capacity,service-performance"),
        *("--service", promise),
        timeout=600,
    )
    assert done.code in (0, 4), done.err
    sheet = json.loads((world.folder / "s" / "datasheet.json").read_text())
    assert (sheet["bench"], sheet["state"], sheet["ports"]) == ("lab", "complete", 3), done.err
    tests = {one["name"]: one for one in sheet["tests"]}
    # Agents send to all, but nobody sees by which ports a real device sends what it floods.
    assert tests["broadcast"]["state"] in ("measured", "refused")
    assert tests["address-capacity"]["state"] in ("not carried", "refused")
    lines = [json.loads(line) for line in (world.folder / "s" / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == sheet["trials"]
    made = [line for line in lines if line["outcome"]["grade"] != "BEYOND"]
    assert len(made) == len(lines)
    broadcast = [line for line in lines if line["trial"]["streams"][0].get("also_to")]
    assert broadcast
    for line in made:
        place = world.folder / "s" / "trials" / line["outcome"]["directory"]
        manifest = json.loads((place / "manifest.json").read_text())
        assert manifest["bench"] == "lab"
    if tests["service-performance"]["state"] == "measured":
        (row,) = tests["service-performance"]["rows"]
        assert row["n"] > 1000
    if tests["one-to-many"]["state"] == "measured":
        assert tests["one-to-many"]["rows"][0]["frmol"] > 0
    # It goes on without anything to do, on the same lab.
    again = world.run("switch", "--resume", "s", "--json")
    assert again.code == done.code, again.err
    assert json.loads(again.out)["trials"] == sheet["trials"]
