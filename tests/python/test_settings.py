"""Attributes set beside a test's file: the one that is named, checked like the file, and written down with the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.config import TestError, load

TEST = """<test xmlns="urn:wiregauge:test:2" name="two" seed="1">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="20" protocol="udp" from="b" to="a"/></flows>
  <tasks>
    <send flow="10" period="2ms" payload="64B" count="10"/><receive flow="10"/>
    <send flow="20" period="2ms" payload="64B" count="10"/><receive flow="20"/>
  </tasks>
  <limits><limit flow="10" measure="lost" at-most="0"/></limits>
</test>
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "test.xml").write_text(TEST)
    return tmp_path / "test.xml"


def test_the_attribute_that_is_named_is_set_and_no_other(file: Path) -> None:
    loaded = load(
        file,
        [
            "flow.10.period=1ms",
            "send.20.payload=128B",
            "test.seed=7",
            "link.a b.rate=100Mbit/s",
            "tasks.drain=5ms",
        ],
    )
    run = loaded.campaign.runs[0]
    assert [send.period for send in run.sends] == [10**9, 2 * 10**9]
    assert [send.payload for send in run.sends] == [64, 128]
    assert loaded.campaign.seed == 7
    assert loaded.campaign.network.links[0].rate_bps == 100_000_000
    assert run.drain == 5 * 10**9
    assert loaded.xml == TEST.encode()
    assert load(file, ["flow.20.protocol=raw"]).campaign.runs[0].flows[1].protocol == "raw"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("send.10.period", "it names no attribute"),
        ("period=1ms", "it names no attribute"),
        ("sender.10.period=1ms", "there is no element <sender>"),
        ("send.30.period=1ms", 'the test has no <send> for "30"'),
        ("send.period=1ms", "it is meant for 2 elements, in lines 5, 6; name one by its key"),
        ("send.10.colour=red", 'it has no attribute "colour"'),
        ("send.10.period=soon", "soon"),
        ("flow.10.from=c", "c"),
        ("inject.a.load=5%", 'the test has no <inject> for "a"'),
    ],
)
def test_what_names_nothing_or_is_wrong_is_refused_with_the_cure(file: Path, setting: str, why: str) -> None:
    with pytest.raises(TestError) as refused:
        load(file, [setting])
    assert why in str(refused.value)


def test_a_run_says_what_was_set(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    command = ["run", str(file), "--out", str(out), "--set", "flow.10.count=7", "--seed", "3"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["test"]["settings"] == ["flow.10.count=7", "test.seed=3"]
    assert manifest["seed"] == 3
    assert (out / "test.xml").read_text() == TEST
    assert json.loads((out / "measures.json").read_text())["runs"][0]["flows"][0]["sent"] == 7
    assert "flow.10.count=7, test.seed=3" in (out / "report.html").read_text()
    refused = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "x"), "--set", "nothing"])
    assert refused.exit_code == 2
    assert not (tmp_path / "x").exists()
