"""Files of the test language's version 1 become files of version 2 that say the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.config import TestError, load, upgrade_file
from wiregauge.config.schema import NAMESPACE, OLD_NAMESPACE
from wiregauge.config.upgrade import upgraded

OLD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- mode="gap" in a comment stays: <lose link="a b"/> -->
<test xmlns='urn:wiregauge:test:1' name="everything that changed" bench="sim">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/>
    <switch name="sw" mode="cut-through"
            delay="2us"></switch>
    <link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/><link between="c sw:9" rate="1Gbit/s"/>
  </network>
  <synchronise within = "1ms" otherwise="refuse"><exchange/><ptp stamps="software"/></synchronise>
  <flows><flow id="1" protocol="udp" from="a" to="b"/><flow id="2" protocol="raw" from="a" to="b"/></flows>
  <tasks duration="200ms">
    <send flow="1" period="1ms" payload="64B" mode="gap"/><receive flow="1"/>
    <send flow="2" period="1ms" payload="64B"/>
    <relay flow="2"><fault kind="drop" sequence="5"/><fault kind="swap" sequence="7"/></relay>
    <inject on="c" to="a" load="1%" payload="64B" mode='rate'/>
  </tasks>
  <faults>
    <bit-errors link="a sw" rate="1e-9" from="a" begin="1ms" end="2ms"/>
    <lose link="a sw" share="1%" from="sw"></lose>
    <duplicate link="a sw" share="1%" begin="1ms"/><corrupt link="a sw" share="1%" end="3ms"/>
    <reorder link="a sw" share="1%" by="5us"/>
    <cut link="a sw" at="20ms" restore="21ms"/>
    <babble flow="1" at="1ms" until="2ms" period="100us"/>
    <restart switch="sw" at="50ms" back="51ms"/>
    <step-clock on="a" at="5ms" by="1us"/>
  </faults>
  <sweep><axis of="mode" values="cut-through store-and-forward"/></sweep>
  <limits><limit measure="throughput" flow="1" at-least="1kbit/s"/><limit measure="loss" at-most="1%"/></limits>
</test>
"""
SAID_ONCE = (
    'forwarding-mode="cut-through"\n            delay="2us"></switch>',
    '<synchronise max-offset = "1ms" on-failure="refuse">',
    '<ptp timestamps="software"/>',
    '<!-- mode="gap" in a comment stays: <lose link="a b"/> -->',
    'payload="64B" pacing="gap"/>',
    '<fault kind="loss" sequence="5"/><fault kind="reorder" sequence="7"/>',
    "pacing='rate'",
    '<bit-errors link="a sw" rate="1e-9" sent-by="a" from="1ms" until="2ms"/>',
    '<loss link="a sw" share="1%" sent-by="sw"></loss>',
    '<duplicate link="a sw" share="1%" from="1ms"/><corrupt link="a sw" share="1%" until="3ms"/>',
    '<delay link="a sw" share="1%" by="5us"/>',
    '<cut link="a sw" from="20ms" until="21ms"/>',
    '<babble flow="1" from="1ms" until="2ms"',
    '<restart switch="sw" from="50ms" until="51ms"/>',
    '<step-clock on="a" at="5ms" by="1us"/>',
    '<axis of="forwarding-mode"',
    '<limit measure="goodput"',
    "<test xmlns='urn:wiregauge:test:2' name",
)
RULES = """<test xmlns="urn:wiregauge:test:1"><flow><window at="sw:2" offset="1ms"/></flow>
<limit measure="bag_conformity"/><limit measure="skew_conformity"/><limit measure="window_conformity"/></test>"""


def test_every_name_that_changed_is_rewritten_and_nothing_else() -> None:
    new = upgraded(OLD.encode()).decode()
    assert [new.count(part) for part in SAID_ONCE] == [1] * len(SAID_ONCE)
    rules = upgraded(RULES.encode()).decode()
    assert 'window port="sw:2"' in rules
    assert [f"{kind}_violations" in rules for kind in ("bag", "skew", "window")] == [True] * 3


def test_the_old_test_runs_when_upgraded_and_the_old_text_is_kept(tmp_path: Path) -> None:
    test = tmp_path / "old.xml"
    test.write_text(OLD, encoding="utf-8")
    test.chmod(0o640)
    with pytest.raises(TestError, match=r"version 1 of the test language .*version 2.*check --upgrade"):
        load(test)
    done = CliRunner().invoke(app, ["check", "--upgrade", str(test)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "old.xml.v1").read_text(encoding="utf-8") == OLD
    assert len(load(test).campaign.runs) == 2
    assert test.stat().st_mode & 0o777 == 0o640
    again = test.read_bytes()
    assert upgrade_file(test) is None
    assert test.read_bytes() == again


def test_what_somebody_else_made_is_not_overwritten(tmp_path: Path) -> None:
    test, theirs = tmp_path / "t.xml", tmp_path / "t.xml.v1"
    test.write_text(OLD, encoding="utf-8")
    theirs.write_text("theirs")
    done = CliRunner().invoke(app, ["check", "--upgrade", str(test)])
    assert done.exit_code == 2
    assert "name another or remove it" in done.output.replace("\n", " ")
    assert (test.read_text(encoding="utf-8"), theirs.read_text()) == (OLD, "theirs")


TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters='<>&"\r\n\t', exclude_categories=("Cc", "Cs")), max_size=8
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["mode", "at", "from", "begin", "name"]), TEXT), unique_by=lambda x: x[0]
    ),
    st.sampled_from(["", "w:"]),
    st.sampled_from(['"', "'"]),
)
def test_text_between_and_within_is_what_it_was(
    attributes: list[tuple[str, str]], prefix: str, quote: str
) -> None:
    written = " ".join(f"{key}={quote}{value.replace(quote, ' ')}{quote}" for key, value in attributes)
    xmlns = f"xmlns{':w' if prefix else ''}"
    old = (
        f"<{prefix}test {xmlns}='{OLD_NAMESPACE}'><!-- <cut at='1'/> --> <{prefix}cut {written} /> > "
        f"<![CDATA[<lose/>]]></{prefix}test>"
    )
    before, after = etree.fromstring(old.encode()), etree.fromstring(upgraded(old.encode()))
    assert etree.QName(after).namespace == NAMESPACE
    assert before.xpath("string()") == after.xpath("string()")
    assert [str(node) for node in before.iter(etree.Comment)] == [
        str(node) for node in after.iter(etree.Comment)
    ]
    assert list(before[1].attrib.values()) == list(after[1].attrib.values())


def test_the_examples_are_of_the_newest_version() -> None:
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "grep", "-l", f"=.{OLD_NAMESPACE}", "--", "examples", "docs"]
    old = subprocess.run(command, capture_output=True, check=False, text=True)
    assert [name for name in old.stdout.split() if not name.startswith("docs/decisions")] == []
