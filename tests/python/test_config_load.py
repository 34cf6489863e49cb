"""Good tests: what they compile to, and that schema, plan, page and examples say the same."""

from __future__ import annotations

import csv
import hashlib
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from wiregauge._native import PLAN_SCHEMA
from wiregauge.config import Test, TestError, load, schema_path
from wiregauge.config.schema import NAMESPACE, declarations, value_types
from wiregauge.plan import plain

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.xml"))
PAGE = ROOT / "docs" / "reference" / "test-language.md"

FULL = f"""<test xmlns="{NAMESPACE}" name="full">
  <network>
    <end-system name="mac"/><end-system name="sensor"/><end-system name="other"/>
    <switch name="sw1"/>
    <link between="mac sw1" rate="1Gbit/s"/>
    <link between="sensor sw1" rate="1Gbit/s"/>
    <link between="other sw1" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="mac" to="sensor"/>
    <flow id="20" protocol="raw" from="mac" to="sensor"/>
  </flows>
  <tasks>
    <send flow="10" period="2ms" payload="64B" count="10"/><receive flow="10"/>
    <send flow="20" period="2ms" payload="64B" count="10"/><relay flow="20"/>
    <inject on="other" to="sensor" load="10%"/>
  </tasks>
  <sweep><axis of="payload" values="64B 128B"/><repeat times="2"/></sweep>
  <limits><limit measure="lost" at-most="0"/></limits>
</test>
"""


def compiled(text: str, folder: Path) -> dict[str, Any]:
    path = folder / "t.xml"
    path.write_text(text)
    return plain(load(path).campaign)


MEANT = {
    "policing": (
        'the service data units of flow 3 at "bridge" have 500 B, 100 B may enter: all are dropped there',
    ),
    "under-load": (
        "limit on latency.p50 on line 39: a lost message has no such value, and no limit is on lost of flow 10; "
        'add <limit measure="lost" at-most="0"/>',
    ),
}
"""What an example shows on purpose."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_good(path: Path) -> None:
    loaded = load(path)
    assert loaded.xml == path.read_bytes()
    assert loaded.sha256 == hashlib.sha256(loaded.xml).hexdigest()
    assert loaded.warnings == MEANT.get(path.stem, ())
    assert loaded.campaign.name == path.stem


def test_the_demo_is_what_it_promises() -> None:
    campaign = plain(load(ROOT / "examples" / "demo.xml").campaign)
    points = [(run["point"]["protocol"], run["point"]["payload"]) for run in campaign["runs"]]
    payloads = ["64B", "128B", "256B", "512B", "1024B", "1472B"]
    assert points == [(protocol, payload) for protocol in ("udp", "raw") for payload in payloads]
    for run in campaign["runs"]:
        assert [(send["count"], send["period"], send["offset"]) for send in run["sends"]] == [
            (1000, 2_000_000_000, 0),
            (1000, 2_000_000_000, 1_000_000_000),
        ]
        assert run["warm_up"] == run["drain"] == 100_000_000_000


def test_every_example_is_in_the_list() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    for path in EXAMPLES:
        runs = len(load(path).campaign.runs)
        assert any(f"({path.name})" in row and row.endswith(f"| {runs} |") for row in listed.split("\n"))


def test_load_follows_table_2_of_the_study(tmp_path: Path) -> None:
    """MAPS 2015, Table 2: its figures have three digits, ours are exact."""
    published = """saturation_percent,data_rate_mbps,packet_interval_us,burst10_interval_us
25,250,49.2,492
50,500,24.6,246
75,750,16.4,164
100,1000,12.3,123
"""
    rows = list(csv.DictReader(published.splitlines()))
    loads = " ".join(f"{row['saturation_percent']}%" for row in rows)
    text = FULL.replace('<axis of="payload" values="64B 128B"/>', f'<axis of="load" values="{loads}"/>')
    runs = compiled(text, tmp_path)["runs"][::2]
    for row, run in zip(rows, runs, strict=True):
        (inject,) = run["injects"]
        exact = 10 * (1472 + 66) * 8 * 1_000_000 / (float(row["saturation_percent"]) / 100 * 1e9)  # us
        assert inject["interval"] == pytest.approx(exact * 1e6, abs=1)
        assert f"{inject['interval'] / 1e6:.3g}" == row["burst10_interval_us"]
        assert f"{inject['interval'] / 1e7:.3g}" == row["packet_interval_us"]


def test_no_load_is_no_task(tmp_path: Path) -> None:
    assert compiled(FULL.replace('load="10%"', 'load="0%"'), tmp_path)["runs"][0]["injects"] == []


# How the bound of a measure is written, by the end of its explanation, and what it is to the log processor.
WRITTEN = (
    ("; a time", "1s", 1e9),
    ("; a time, also negative", "-1us", -1000.0),
    ("; a whole number", "1", 1.0),
    ("; a number", "1.5", 1.5),
    ("; %, ppm or ppb", "1%", 0.01),
    ("; bit/s", "1Mbit/s", 1e6),
    ("; bit, kbit or Mbit, also negative", "-2kbit", -2e3),
    ("; /s", "0.5k/s", 500.0),
)


@pytest.mark.parametrize("choice", value_types()["measure-name"].choices)
def test_every_measure_of_the_schema_can_be_limited(tmp_path: Path, choice: str) -> None:
    bound, value = next(
        (bound, value)
        for words, bound, value in WRITTEN
        if value_types()["measure-name"].choices[choice].endswith(words)
    )
    text = FULL.replace('measure="lost" at-most="0"', f'measure="{choice}" at-most="{bound}"')
    text = text.replace('to="sensor"/>', 'to="sensor" deadline="1s"/>', 1)
    (limit,) = compiled(text, tmp_path)["limits"]
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "<limit " in line)
    assert limit == {
        "flow": None,
        "measure": choice,
        "bound": "at-most",
        "value": value,
        "written": bound,
        "line": line,
    }


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("payload", "64B 128B"),
        ("load", "0% 50%"),
        ("protocol", "udp raw be rc tt"),
        ("period", "2ms 3ms"),
        ("bag", "1ms 2ms"),
        ("burst", "1 20"),
        ("fill", "sequential random"),
        ("rate", "100Mbit/s 1Gbit/s"),
        ("through", "servicing task"),
        ("forwarding-mode", "store-and-forward cut-through"),
        ("policing", "off bytes frames"),
        ("integration", "preemption timely-block shuffling"),
    ],
)
def test_every_axis_of_the_schema_changes_the_run(tmp_path: Path, axis: str, values: str) -> None:
    assert axis in value_types()["axis-name"].choices
    text = FULL.replace('of="payload" values="64B 128B"', f'of="{axis}" values="{values}"')
    if axis == "bag":
        text = text.replace('protocol="udp"', 'protocol="rc" bag="1ms"')
    if axis == "protocol":
        text = text.replace('id="20" protocol="raw"', 'id="20" protocol="raw" bag="1ms" period="2ms"')
        text = text.replace("relay", "receive").replace('values="udp', 'flow="20" values="udp')
    if axis in ("bag", "protocol", "policing", "integration"):
        text = text.replace('<switch name="sw1"/>', '<switch name="sw1" kind="mixed-criticality"/>')
    runs = compiled(text, tmp_path)["runs"]
    assert [run["point"] for run in runs] == [{axis: value} for value in values.split() for _ in range(2)]
    points = [
        {key: value for key, value in run.items() if key not in ("index", "point", "seed")}
        for run in runs[::2]
    ]
    assert all(first != second for first, second in combinations(points, 2))


def test_an_axis_can_be_restricted_to_flows(tmp_path: Path) -> None:
    text = FULL.replace('values="64B 128B"', 'values="64B 128B" flow="20"')
    run = compiled(text, tmp_path)["runs"][-1]
    assert [send["payload"] for send in run["sends"]] == [64, 128]


def test_sections_in_any_order_and_comments_anywhere(tmp_path: Path) -> None:
    root = etree.fromstring(FULL)
    root[:] = reversed(root)
    root.insert(1, etree.Comment("a remark"))
    root[0].append(etree.Comment("another"))
    moved = compiled(etree.tostring(root, encoding="unicode"), tmp_path)
    unmoved = compiled(FULL, tmp_path)
    for campaign in (moved, unmoved):
        for limit in campaign["limits"]:
            limit["line"] = 0
    assert moved == unmoved


def test_the_schema_is_valid_and_explains_everything() -> None:
    assert schema_path().is_file()
    for declaration in declarations().values():
        assert declaration.documentation, declaration.name
        for attribute in declaration.attributes.values():
            assert attribute.documentation, f"{declaration.name}/{attribute.name}"
            assert attribute.type in value_types()
    for form in value_types().values():
        assert form.documentation
        assert all(form.choices.values())


def test_the_page_shows_tests_that_compile(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    xml = page.split("```xml\n")[1].split("```")[0]
    python = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(python, names)
    from_file = compiled(xml, tmp_path)
    from_file["limits"][0]["line"] = 0
    assert plain(names["campaign"]) == from_file


def test_warnings_do_not_refuse(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text(
        FULL.replace("<tasks>", '<tasks duration="1s">').replace(
            'measure="lost" at-most="0"', 'measure="latency.p99" at-most="1s"'
        )
    )
    warnings = load(path).warnings
    assert any("ends before" in warning for warning in warnings)
    assert any("needs 299" in warning for warning in warnings)


def test_all_mistakes_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = FULL.replace('rate="1Gbit/s"', 'rate="1"').replace('period="2ms"', 'period="0s"')
    with pytest.raises(TestError) as caught:
        compiled(text, tmp_path)
    assert [diagnostic.line for diagnostic in caught.value.diagnostics] == [5, 6, 7, 14, 15]


def test_the_campaign_is_plain_json(tmp_path: Path) -> None:
    campaign = compiled(FULL, tmp_path)
    assert json.loads(json.dumps(campaign)) == campaign
    assert campaign["schema"] == PLAN_SCHEMA


def test_a_builder_error_names_the_call() -> None:
    test = Test("x").end_system("mac").end_system("sensor").link("mac", "sensor", rate="1Gbit")
    with pytest.raises(TestError) as caught:
        test.flow(10, protocol="udp", from_="mac", to="senor").send(
            10, period="2", payload="64B", count=1
        ).receive(10).compile()
    assert [str(diagnostic).split(";")[0] for diagnostic in caught.value.diagnostics] == [
        'Test("x"): <link between="mac sensor">: rate "1Gbit" has the unknown unit "Gbit"',
        'Test("x"): <send flow="10">: period "2" has no unit',
        'Test("x"): <flow id="10">: to "senor" is no end system of this network',
    ]
