"""Bounds beside runs: one axis, and which assumption failed where a run took longer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from simulation import trial
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of

TEST = """<test xmlns="urn:wiregauge:test:2" name="loop" seed="7" bench="sim">
  <network><end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="sw" delay="3us"/>
    <switch name="other" delay="3us"/>
    <link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/>
    <link between="sw other" rate="100Mbit/s"/><link between="other c" rate="100Mbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="c"/><flow id="20" protocol="udp" from="b" to="c"/></flows>
  <tasks warm-up="0s" drain="200ms">
    <send flow="10" period="4ms" payload="1300B" count="300" burst="10" spacing="12us"/>
    <send flow="20" period="773us" payload="200B" count="400"/>
    <receive flow="10"/><receive flow="20"/></tasks>
</test>"""


@pytest.fixture
def bounded(tmp_path: Path) -> Path:
    path = tmp_path / "bounded.xml"
    path.write_text(TEST, encoding="utf-8")
    return path


def ran(place: Path, text: str) -> Path:
    place.mkdir()
    (place / "t.xml").write_text(text, encoding="utf-8")
    trial(place / "t.xml", place / "r")
    return place / "r"


def beside(bounded: Path, *runs: Path, code: int) -> list[dict[str, Any]]:
    options = [text for run in runs for text in ("--against", str(run))]
    done = CliRunner().invoke(app, ["bounds", str(bounded), "--json", *options])
    assert done.exit_code == code, done.output
    told = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("bounds").read_text()), told)
    found: list[dict[str, Any]] = told["against"]
    return found


def test_what_keeps_the_assumptions_keeps_the_bound(bounded: Path, tmp_path: Path) -> None:
    (one,) = beside(bounded, ran(tmp_path / "kept", TEST), code=0)
    assert one["simulated"]
    for flow in one["flows"]:
        assert not flow["alarms"]
        assert 0.3 < flow["tightness"] <= 1
        assert flow["measured"] <= flow["bound"]
        for hop in flow["hops"]:
            assert hop["measured"] is None or hop["measured"] <= hop["bound"]
        assert [hop["server"] for hop in flow["hops"]][1:3] == ["sw:3", "other:2"]
    shown = CliRunner().invoke(app, ["bounds", str(bounded), "--against", str(tmp_path / "kept" / "r")])
    assert shown.exit_code == 0
    assert "hop by hop" in shown.stdout


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (
            ('name="sw" delay="3us"', 'name="sw" delay="0%:3us 95%:4us 100%:9ms"'),
            "service slower than assumed: a frame",
        ),
        (('burst="10"', 'burst="28"'), "arrival curve exceeded: flow 10 came with a burst"),
        (('rate="1Gbit/s"/></network>', ""), ""),
    ],
)
def test_a_run_above_its_bound_names_the_assumption_that_failed(
    bounded: Path, change: tuple[str, str], failed: str, tmp_path: Path
) -> None:
    text = TEST.replace(*change)
    if not failed:
        # A longer way: through a switch that is not on it.
        text = TEST.replace(
            '<link between="sw other" rate="100Mbit/s"/>',
            """
    <switch name="far" delay="9ms"/><link between="sw far" rate="100Mbit/s"/>
    <link between="far other" rate="1Gbit/s"/>""",
        )
        failed = "path wrong: its frames also left by far:2"
    (one,) = beside(bounded, ran(tmp_path / "broken", text), code=1)
    alarms = [alarm for flow in one["flows"] for alarm in flow["alarms"]]
    assert any(alarm.startswith(failed) for alarm in alarms), alarms


def test_a_run_of_something_else_is_refused(bounded: Path, tmp_path: Path) -> None:
    run = ran(
        tmp_path / "else",
        TEST.replace('id="10"', 'id="11"')
        .replace('flow="10"', 'flow="11"')
        .replace('id="20"', 'id="21"')
        .replace('flow="20"', 'flow="21"'),
    )
    done = CliRunner().invoke(app, ["bounds", str(bounded), "--against", str(run)])
    assert done.exit_code == 2
    assert "its flow 11 goes from a to c, and the test that is bounded has no such flow" in " ".join(
        done.stderr.split()
    )
