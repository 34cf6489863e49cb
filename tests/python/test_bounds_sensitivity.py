"""`--sensitivity`: the value that is told keeps every limit, the next one does not, and nothing is said untried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from test_bounds import afdx
from test_bounds_search import placed, tandem
from test_report import Page
from wiregauge import bounds
from wiregauge.bounds.parameters import RESOLUTION
from wiregauge.bounds.sensitivity import sensitivity
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def limited(hops: int, at_most: str) -> str:
    return tandem(
        hops, limits=f'<limits><limit flow="1" measure="latency.max" at-most="{at_most}"/></limits>'
    )


def told(path: Path, *options: str, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bounds", str(path), "--sensitivity", "--json", *options])
    assert done.exit_code == code, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("bounds").read_text()), answer)
    found: dict[str, Any] = answer["sensitivity"]
    return found


def room(found: dict[str, Any], kind: str, element: str) -> dict[str, Any]:
    (one,) = (one for one in found["parameters"] if (one["kind"], one["element"]) == (kind, element))
    assert isinstance(one, dict)
    return one


def nanos(text: str) -> float:
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    raise ValueError(text)


def octets(text: str) -> int:
    return int(text.removesuffix("B"))


def bits(text: str) -> float:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    raise ValueError(text)


# What is replaced in the test, by what, and the next value after one that is told, towards longer bounds.
CHANGES: dict[tuple[str, str], tuple[str, str, Callable[[str], str]]] = {
    ("rate", "flow 2"): (
        '<send flow="2" period="2ms"',
        '<send flow="2" period="{}"',
        lambda text: f"{round(nanos(text) / (1 + RESOLUTION)) - 1}ns",
    ),
    ("frame", "flow 1"): ('payload="800B"', 'payload="{}"', lambda text: f"{octets(text) + 1}B"),
    ("link-rate", "link s0 s1"): (
        '<link between="s0 s1" rate="100Mbit/s"',
        '<link between="s0 s1" rate="{}"',
        lambda text: f"{round(bits(text) / (1 + RESOLUTION)) - 1}bit/s",
    ),
    ("propagation", "link s0 s1"): (
        '<link between="s0 s1" rate="100Mbit/s"',
        '<link between="s0 s1" rate="100Mbit/s" delay="{}"',
        lambda text: f"{round(nanos(text) * (1 + RESOLUTION)) + 1}ns",
    ),
    ("processing", "switch s1"): (
        '<switch name="s1" delay="2us"',
        '<switch name="s1" delay="{}"',
        lambda text: f"{round(2000 + (nanos(text) - 2000) * (1 + RESOLUTION)) + 1}ns",
    ),
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
def test_a_test_with_the_value_keeps_its_limits_and_with_the_next_does_not(
    change: tuple[str, str], tmp_path: Path
) -> None:
    text = limited(2, "600us")
    one = room(told(placed(tmp_path, text)), *change)
    before, after, following = CHANGES[change]
    assert before in text
    assert one["breaks"].startswith("flow 1 to z: ")
    for value, code in ((one["to"], 0), (following(one["to"]), 1)):
        path = placed(tmp_path, text.replace(before, after.format(value)))
        done = CliRunner().invoke(app, ["bounds", str(path)])
        assert done.exit_code == code, (value, done.output)


def test_all_together_have_no_more_room_than_one_alone(tmp_path: Path) -> None:
    found = told(placed(tmp_path, limited(2, "600us")))
    assert found["kept"]
    assert found["ended"]
    assert len(found["parameters"]) == found["known"]
    for kind, element in (("rate", "all flows"), ("link-rate", "all links")):
        every = max(room(found, kind, element)["factor"], 1 / room(found, kind, element)["factor"])
        for one in found["parameters"]:
            if one["kind"] == kind and one["factor"] is not None and kind == "rate":
                assert every <= one["factor"] + 1e-9
    added = room(found, "propagation", "all links")["added"]
    assert all(added <= one["added"] for one in found["parameters"] if one["kind"] == "propagation")


def test_what_is_broken_is_mended_by_the_value_and_not_by_less(tmp_path: Path) -> None:
    text = limited(2, "350us")
    path = placed(tmp_path, text)
    assert CliRunner().invoke(app, ["bounds", str(path)]).exit_code == 1
    found = told(path, code=1)
    assert not found["kept"]
    one = room(found, "link-rate", "link s0 s1")
    assert one["factor"] > 1
    assert one["breaks"] is None
    less = f"{round(bits(one['to']) / (1 + RESOLUTION)) - 1}bit/s"
    for value, code in ((one["to"], 0), (less, 1)):
        before = '<link between="s0 s1" rate="100Mbit/s"'
        changed = placed(tmp_path, text.replace(before, before.replace("100Mbit/s", value)))
        assert CliRunner().invoke(app, ["bounds", str(changed)]).exit_code == code
    # Slower senders mend nothing here: their bursts stay.
    none = room(found, "rate", "flow 1")
    assert (none["to"], none["factor"]) == (None, None)
    assert none["breaks"].startswith("flow 1 to z")


def test_a_virtual_link_changes_by_its_bag_and_lmax() -> None:
    found = told(EXAMPLES / "afdx.xml", "--time-limit", "20s")
    kinds = {one["kind"] for one in found["parameters"]}
    assert "rate" not in kinds
    one = room(found, "frame", "flow 13")
    assert "Lmax" in one["from"]
    assert one["breaks"] is None
    assert room(found, "bag", "flow 10")["to"] == "1ms"


def test_a_physical_network_changes_periods_payloads_and_capacities(tmp_path: Path) -> None:
    path = afdx(tmp_path, rate="100000000", flow='deadline="1"')
    found = told(path)
    assert {one["kind"] for one in found["parameters"]} == {"rate", "frame", "link-rate"}
    one = room(found, "frame", "flow vl")
    longest = float(one["to"].removesuffix(" B"))
    for payload, code in ((longest, 0), (longest * (1 + RESOLUTION) + 1, 1)):
        text = afdx(tmp_path, rate="100000000", flow='deadline="1"').read_text()
        (tmp_path / "changed.xml").write_text(
            text.replace('max-payload="1000"', f'max-payload="{payload:g}"')
        )
        assert CliRunner().invoke(app, ["bounds", str(tmp_path / "changed.xml")]).exit_code == code


def test_a_file_without_limits_is_told_so(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(1))
    assert told(path)["parameters"] == []
    done = CliRunner().invoke(app, ["bounds", str(path), "--sensitivity"])
    assert "sets no limit for a latency" in done.stdout


def test_nothing_is_said_of_parameters_that_were_not_tried(tmp_path: Path) -> None:
    source = bounds.read(placed(tmp_path, limited(2, "600us")))
    ticks = iter(range(1000))
    found = sensitivity(source, bounds.bound(source), seconds=3, clock=lambda: float(next(ticks)))
    assert not found.ended
    assert 0 < len(found.rooms) < found.known
    path = placed(tmp_path, limited(3, "1ms"))
    done = CliRunner().invoke(app, ["bounds", str(path), "--sensitivity", "--time-limit", "1ms"])
    assert "time was up" in done.stdout


def test_text_and_page_name_what_breaks(tmp_path: Path) -> None:
    path, page = placed(tmp_path, limited(2, "600us")), tmp_path / "page.html"
    done = CliRunner().invoke(app, ["bounds", str(path), "--sensitivity", "--out", str(page)])
    assert done.exit_code == 0, done.output
    lines = [line.strip() for line in done.stdout.splitlines()]
    at = lines.index("processing delay of a switch:")
    assert lines[at + 1].startswith("all switches: each +")
    assert "; then flow 1 to z: " in lines[at + 1]
    text = Page(page.read_text()).text
    assert "Sensitivity" in text
    assert "link s0 s1" in text
    assert "may become" in text


def test_a_time_limit_needs_something_that_takes_time(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bounds", str(placed(tmp_path, tandem(1))), "--time-limit", "1s"])
    assert done.exit_code == 2
    assert "--search, --advise or --sensitivity only" in " ".join(done.stderr.split())
