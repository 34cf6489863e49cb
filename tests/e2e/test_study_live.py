"""A study between real hosts: networks follow one another in one command, and the simulator's figures stand beside."""

from __future__ import annotations

import json
from pathlib import Path

from support import Runner, interfaces_and_spaces, until

STUDY = """
from wiregauge.studies import Item, Key, Part, Study


def cells(results):
    for part in ("wire", "switch", "hub"):
        yield Key("Table 1", part, "64 B", "sent"), results.cell(part, "sent", 10)
        yield Key("Table 1", part, "64 B", "latency"), results.cell(part, "latency.mean", 10)


FEW = {"netns": {"usual": ("send.10.count=30",)}}
STUDY = Study(
    name="toy", title="A toy", paper="nobody", question="Which box?",
    parts=[
        Part("wire", "wire.xml", settings_on=FEW),
        Part("switch", "switch.xml"),
        Part("hub", "hub.xml", not_on={"netns": "it is a toy"}),
    ],
    items=[Item("Table 1", "Boxes")],
    cells=cells,
)
"""
TEST = """<test xmlns="urn:wiregauge:test:2" name="{name}" seed="1">
  <network><end-system name="a"/><end-system name="b"/>{box}</network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="10ms"><send flow="10" period="2ms" payload="64B" count="50"/><receive flow="10"/></tasks>
</test>
"""
BOXES = {
    "wire": '<link between="a b" rate="1Gbit/s"/>',
    "switch": '<switch name="s"/><link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/>',
    "hub": '<hub name="h"/><link between="a h" rate="100Mbit/s"/><link between="b h" rate="100Mbit/s"/>',
}
EXPECTED = """item,series,x,statistic,value,unit,criterion,reason,role,statement,coincidence
Table 1,switch,64 B,latency,1,us,,no criterion: a toy,,,
"""


def test_parts_with_networks_of_their_own_run_in_one_command_with_the_simulator_beside(
    wiregauge: Runner, tmp_path: Path
) -> None:
    toy = tmp_path / "toy"
    toy.mkdir()
    (toy / "study.py").write_text(STUDY)
    (toy / "expected.csv").write_text(EXPECTED)
    for name, box in BOXES.items():
        (toy / f"{name}.xml").write_text(TEST.format(name=name, box=box))
    before = interfaces_and_spaces()
    assert wiregauge("study", "toy", "--out", "sim").code == 0
    done = wiregauge("study", "toy", "--bench", "netns", "--beside", "sim", "--out", "live")
    assert done.code in (0, 4), done.err  # 4: the host was too busy, and a run is INVALID
    until(lambda: interfaces_and_spaces() == before, "the end of all that it made", 10)

    shown = json.loads((tmp_path / "live" / "study.json").read_text(encoding="utf-8"))
    assert [(part["name"], part["state"]) for part in shown["parts"]] == [
        ("wire", "complete"),
        ("switch", "complete"),
        ("hub", "left out"),
    ]
    assert (shown["beside"]["bench"], shown["beside"]["size"]) == ("sim", "usual")
    simulated = json.loads((tmp_path / "sim" / "study.json").read_text(encoding="utf-8"))
    cells = {(cell["series"], cell["statistic"]): cell for cell in shown["items"][0]["cells"]}
    theirs = {(cell["series"], cell["statistic"]): cell for cell in simulated["items"][0]["cells"]}
    assert cells["switch", "latency"]["beside"] == theirs["switch", "latency"]["ours"] > 0
    assert theirs["switch", "latency"]["beside"] is None
    for part, sent in (("wire", 30), ("switch", 50)):
        measured = json.loads((tmp_path / "live" / "runs" / part / "measures.json").read_text("utf-8"))
        assert measured["runs"][0]["flows"][0]["sent"] == sent, "settings of the bench"
    page = (tmp_path / "live" / "report.html").read_text(encoding="utf-8")
    assert "sim, usual" in page
    assert "it is a toy" in page


def test_what_stands_beside_is_the_same_study(wiregauge: Runner, tmp_path: Path) -> None:
    done = wiregauge("study", "maps", "--bench", "netns", "--beside", tmp_path, "--out", "live")
    assert done.code == 2
    assert "it holds no study.json" in done.err
    (tmp_path / "study.json").write_text(
        '{"schema": 1, "study": "robot", "size": "quick", "bench": "sim", "started": "now"}'
    )
    done = wiregauge("study", "maps", "--bench", "netns", "--beside", tmp_path, "--out", "live")
    assert done.code == 2
    assert "it is of the study robot, not of maps" in done.err
    assert not (tmp_path / "live").exists()
