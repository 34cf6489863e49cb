"""A group is the same test as its members written out; what is wrong with it is said of group and member."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from wiregauge.config import Test, TestError, load
from wiregauge.config import groups as groups_module
from wiregauge.config.schema import NAMESPACE
from wiregauge.plan import plain

ROOT = Path(__file__).resolve().parents[2]
ROBOT = ROOT / "examples" / "robot.xml"

GROUPED = f"""<test xmlns="{NAMESPACE}" name="grouped">
  <network>
    <end-system name="controller"/>
    <end-system name="device[1-4]"/>
    <switch name="sw1"/>
    <link between="controller sw1" rate="1Gbit/s"/>
    <link between="device[1-4] sw1" rate="100Mbit/s"/>
  </network>
  <flows>
    <flow id="101-104" protocol="udp" from="device[1-4]" to="controller"/>
    <flow id="10" protocol="udp" from="controller" to="device1"/>
  </flows>
  <tasks duration="1s">
    <send flow="101-104" period="1ms" offset="1ms" offset-step="12.5us" payload="64B"/>
    <receive flow="101-104"/>
    <send flow="10" period="1ms" payload="64B"/>
    <receive flow="10"/>
  </tasks>
  <limits><limit flow="10 101-104" measure="lost" at-most="0"/></limits>
</test>
"""


def of(text: str, *beside: str) -> dict[str, Any]:
    """The plan of a test; without the lines of its limits, which differ where members are written out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.xml"
        path.write_text(text)
        plan = plain(load(path, beside).campaign)
    for limit in plan["limits"]:
        limit["line"] = 0
    return plan


def refused(text: str, *beside: str) -> list[str]:
    with pytest.raises(TestError) as caught:
        of(text, *beside)
    return [str(diagnostic).replace(diagnostic.file, "t.xml", 1) for diagnostic in caught.value.diagnostics]


@st.composite
def groups(draw: st.DrawFn) -> tuple[str, str]:
    """A test with groups, and the same with their members written out by a writer of its own."""
    count = draw(st.integers(1, 12))
    first = draw(st.integers(0, 30))
    padded = draw(st.booleans())
    width = 3 if padded else 1
    low = draw(st.integers(1, 65_534 - 2 * count))
    step = draw(st.sampled_from([None, "0us", "12.5us", "1us", "0.001us"]))
    offset = draw(st.sampled_from([None, "1ms", "7us"]))
    ports, several = draw(st.booleans()), draw(st.booleans())
    rc = draw(st.booleans())
    numbers = range(first, first + count)
    names = [f"d{number:0{width}}x" for number in numbers]
    group = f"d[{first:0{width}}-{first + count - 1}]x" if padded else f"d[{first}-{first + count - 1}]x"
    ids, back = range(low, low + count), range(low + count, low + 2 * count)
    switch = "arinc664" if rc else "cots"
    how = 'protocol="rc" bag="4ms"' if rc else 'protocol="raw"'
    pace = f'period="4ms" payload="64B"{f" offset={chr(34)}{offset}{chr(34)}" if offset else ""}'

    def later(index: int) -> str:
        if step is None:
            return pace
        total = int(float((offset or "0us")[:-2]) * (1_000_000 if (offset or "").endswith("ms") else 1_000))
        total_ps = total * 1_000 + index * round(float(step[:-2]) * 1_000_000)
        return f'period="4ms" payload="64B" offset="{total_ps / 1000:.3f}ns"'

    def whole(end_systems: str, links: str, flows: str, tasks: str, limit: str) -> str:
        return (
            f'<test xmlns="{NAMESPACE}" name="g"><network><end-system name="hub0"/>{end_systems}'
            f'<switch name="sw" kind="{switch}"/><link between="hub0 sw" rate="1Gbit/s"/>{links}</network>'
            f'<flows>{flows}</flows><tasks duration="1s">{tasks}</tasks>'
            f'<limits><limit flow="{limit}" measure="lost" at-most="0"/></limits></test>'
        )

    at = f":[11-{10 + count}]" if ports else ""
    everyone = group if several and count > 1 else names[0]
    via = '<path via="sw"/>'
    written = whole(
        f'<end-system name="{group}"/>',
        f'<link between="{group} sw{at}" rate="100Mbit/s"/>',
        f'<flow id="{ids[0]}-{ids[-1]}" {how} from="{group}" to="hub0">{via}</flow>'
        f'<flow id="{back[0]}" {how} from="hub0" to="{everyone}"/>',
        f'<send flow="{ids[0]}-{ids[-1]}" {pace}{f" offset-step={chr(34)}{step}{chr(34)}" if step else ""}/>'
        f'<receive flow="{ids[0]}-{ids[-1]}"/><send flow="{back[0]}" {pace}/><receive flow="{back[0]}"/>'
        f'<capture on="{group}"/>',
        f"{ids[0]}-{ids[-1]}",
    )
    out = whole(
        "".join(f'<end-system name="{name}"/>' for name in names),
        "".join(
            f'<link between="{name} sw{f":{11 + index}" if ports else ""}" rate="100Mbit/s"/>'
            for index, name in enumerate(names)
        ),
        "".join(
            f'<flow id="{flow}" {how} from="{name}" to="hub0">{via}</flow>'
            for flow, name in zip(ids, names, strict=True)
        )
        + f'<flow id="{back[0]}" {how} from="hub0" to="{" ".join(names) if several else names[0]}"/>',
        "".join(f'<send flow="{flow}" {later(index)}/>' for index, flow in enumerate(ids))
        + "".join(f'<receive flow="{flow}"/>' for flow in ids)
        + f'<send flow="{back[0]}" {pace}/><receive flow="{back[0]}"/>'
        + "".join(f'<capture on="{name}"/>' for name in names),
        " ".join(map(str, ids)),
    )
    return written, out


@settings(max_examples=80, deadline=None)
@given(groups())
def test_a_group_is_its_members_written_out(both: tuple[str, str]) -> None:
    grouped, out = both
    assert of(grouped) == of(out)


def test_the_example_has_forty_devices_in_order() -> None:
    plan = plain(load(ROBOT).campaign)
    names = [node["name"] for node in plan["network"]["nodes"]]
    assert names == ["controller", *(f"device{number}" for number in range(1, 41)), "sw1"]
    run = plan["runs"][0]
    assert [flow["id"] for flow in run["flows"]] == [*range(101, 141), *range(201, 241)]
    offsets = {send["flow"]: send["offset"] for send in run["sends"]}
    assert [offsets[101 + index] for index in range(40)] == [index * 12_000_000 for index in range(40)]
    assert {offsets[201 + index] for index in range(40)} == {500_000_000}


def test_the_builder_makes_the_same_and_stays_as_it_is() -> None:
    test = Test("grouped").end_system("controller").end_system("device[1-4]").switch("sw1")
    test.link("controller", "sw1", rate="1Gbit/s").link("device[1-4]", "sw1", rate="100Mbit/s")
    test.timing(duration="1s").flow("101-104", protocol="udp", from_="device[1-4]", to="controller")
    test.flow(10, protocol="udp", from_="controller", to="device1")
    test.send("101-104", period="1ms", offset="1ms", offset_step="12.5us", payload="64B").receive("101-104")
    test.send(10, period="1ms", payload="64B").receive(10).limit("lost", flow=[10, "101-104"], at_most=0)
    before = test.to_xml()
    assert plain(test.compile().campaign) == of(GROUPED)
    assert test.to_xml() == before
    assert "device[1-4]" in before


def test_several_values_stand_where_several_are_taken() -> None:
    multicast = GROUPED.replace('to="device1"', 'to="device[1-4]"')
    each = multicast.replace('<receive flow="10"/>', '<receive flow="10" on="device[1-4]"/>')
    assert of(multicast) == of(each)
    assert of(multicast) != of(GROUPED)
    missing = multicast.replace('<receive flow="10"/>', '<receive flow="10" on="device[1-3]"/>')
    assert any('flow 10 is not received on "device4"' in line for line in refused(missing))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'id="101-104"',
            'id="101-103"',
            't.xml:10: <flow id="101-103">: from counts 4 members, but id counts 3 (limit: 3); '
            "write ranges of equal length",
        ),
        (
            'id="101-104"',
            'id="7"',
            't.xml:10: <flow id="7">: there is one id for 4 flows (limit: 4 ids); '
            'write id="7-10", or another range of 4',
        ),
        (
            'id="10"',
            'id="103"',
            't.xml:11: <flow id="103">: flow 103 is already declared on line 10; give every flow a number of its own',
        ),
        (
            'name="controller"',
            'name="device2"',
            't.xml:4: <end-system name="device2">: name "device2" is already the name of a node on line 3; '
            "give every node a name of its own",
        ),
        (
            'period="1ms" offset="1ms"',
            'period="1" offset="1ms"',
            't.xml:14: <send flow="101">: period "1" has no unit, as for other members of <send flow="101-104">; '
            "write a number and one of ns, us, ms, s, min, h, for example 1ms",
        ),
        (
            'offset-step="12.5us"',
            'offset-step="12.5"',
            't.xml:14: <send flow="101-104">: offset-step "12.5" is no time; '
            "write a number and one of ns, us, ms, s, min, h, for example 25us",
        ),
        (
            '<send flow="10" period="1ms"',
            '<send flow="10" period="1ms" offset-step="1us"',
            't.xml:16: <send flow="10">: offset-step is of groups only; '
            "leave it out, or give a range of flows as in 101-140",
        ),
        (
            'name="device[1-4]"',
            'name="device[4-1]"',
            't.xml:4: <end-system name="device[4-1]">: name "device[4-1]" counts down; write the smaller number first',
        ),
        (
            'name="device[1-4]"',
            'name="device[1..4]"',
            't.xml:4: <end-system name="device[1..4]">: name "device[1..4]" is no range; write it as in device[1-40]',
        ),
        (
            'flow="10 101-104"',
            'flow="10 101..104"',
            't.xml:19: <limit measure="lost">: flow "101..104" is no range; write it as in 101-140',
        ),
        (
            'name="device[1-4]"',
            'name="a-longish-name[8-11]"',
            't.xml:4: <end-system name="a-longish-name10">: name "a-longish-name10" is not a name '
            "(limit: 1 to 15 of A-Z a-z 0-9 _ -, the first a letter); choose a name within the limit",
        ),
    ],
)
def test_what_is_wrong_names_line_group_and_member(old: str, new: str, said: str) -> None:
    assert GROUPED.count(old) == 1
    assert said in refused(GROUPED.replace(old, new))


def test_one_mistake_of_a_group_is_one_line() -> None:
    wrong = GROUPED.replace(
        'payload="64B"/>\n    <receive flow="101-104"', 'payload="64"/>\n    <receive flow="101-104"'
    )
    assert len(refused(wrong)) == 1
    two = wrong.replace(
        '<send flow="10" period="1ms" payload="64B"', '<send flow="10" period="1ms" payload="64"'
    )
    assert len(refused(two)) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "device[1-4]",
            "device[1-5000]",
            't.xml:4: <end-system name="device[1-5000]">: with this group the test has 5001 nodes',
        ),
        (
            '<receive flow="101-104"/>',
            '<receive flow="1-65534"/>' * 900,
            "with this group the test has 131068 <receive> (limit: 65534); make the group smaller",
        ),
        (
            '<limit flow="10 101-104" measure="lost" at-most="0"/>',
            '<limit flow="1-65534" measure="lost" at-most="0"/>' * 900,
            "the groups and ranges up to here stand for too much (limit: 500000 elements, names and numbers); "
            "make them smaller",
        ),
    ],
)
def test_too_many_are_refused_before_they_are_made(
    old: str, new: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*_: object) -> None:
        raise AssertionError("a member was made")

    monkeypatch.setattr(groups_module._Range, "member", made)
    monkeypatch.setattr(groups_module, "_grow", made)
    assert any(said in line for line in refused(GROUPED.replace(old, new)))


def test_settings_reach_a_group_and_its_members() -> None:
    def sends(*beside: str) -> list[tuple[int, int, int]]:
        return [
            (send["flow"], send["period"], send["offset"])
            for send in of(GROUPED, *beside)["runs"][0]["sends"]
        ]

    ms, us = 10**9, 10**6
    offsets = [ms, ms + 12_500_000, ms + 25 * us, ms + 37_500_000]
    plain_sends = [(101 + index, ms, offset) for index, offset in enumerate(offsets)]
    assert sends()[:4] == plain_sends
    group = "send.101-104.period=2ms"
    assert sends(group)[:4] == [(flow, 2 * ms, offset) for flow, _, offset in plain_sends]
    # A member counts before its group, in whatever order both are given.
    for order in ([group, "send.103.period=4ms"], ["send.103.period=4ms", group]):
        assert [period for _, period, _ in sends(*order)] == [2 * ms, 2 * ms, 4 * ms, 2 * ms, ms]
    assert sends("flow.102.offset=3ms")[1] == (102, ms, 3 * ms)
    assert sends("send.101-104.offset-step=1us")[3] == (104, ms, ms + 3 * us)
    assert of(GROUPED, "link.device3 sw1.rate=10Mbit/s")["network"]["links"][3]["rate_bps"] == 10_000_000
    assert of(GROUPED, "limit.10 101-104.at-most=5")["limits"][0]["value"] == 5


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "send.102.offset-step=1us",
            "offset-step is of a whole group; name the group as the file does, or set the",
        ),
        ("send.105.period=1ms", 'the test has no <send> for "105"'),
        ("send.101-105.period=1ms", 'the test has no <send> for "101-105"'),
        ("send.102.period=soon", '<send flow="102">: period "soon"'),
        ("send.102.distribution=odd", '<send flow="102">: distribution "odd"'),
        ("send.period=2ms", "it is meant for 2 elements, in lines 14, 16; name one by its key"),
    ],
)
def test_settings_that_name_nothing_or_are_wrong(setting: str, said: str) -> None:
    assert any(said in line for line in refused(GROUPED, setting))


def test_a_test_without_groups_is_not_touched() -> None:
    from wiregauge.config.groups import expanded

    root = etree.fromstring((ROOT / "examples" / "demo.xml").read_bytes())
    assert expanded(root, "t.xml").root is root
