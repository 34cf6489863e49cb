"""The builder makes the very test its XML says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge.config import Fault, Test, TestError, load
from wiregauge.config.schema import declarations

TIMES = st.sampled_from(["1ms", "2.5ms", "700us", "0.003s"])
SIZES = st.sampled_from(["18B", "64B", "1kB", "1.25KiB"])


def base(name: str = "built", seed: int | None = None) -> Test:
    test = Test(name, seed).switch("sw1", buffer="64KiB")
    for node in ("mac", "sensor", "other"):
        test.end_system(node).link(node, "sw1", rate="1Gbit/s", delay="50ns")
    return test


@st.composite
def built(draw: st.DrawFn) -> Test:
    test = base(seed=draw(st.none() | st.integers(0, 2**64 - 1)))
    ids = draw(st.lists(st.integers(1, 65_534), min_size=1, max_size=5, unique=True))
    test.timing(warm_up=draw(st.none() | TIMES), drain=draw(st.none() | TIMES))
    for flow in ids:
        raw = draw(st.booleans())
        test.flow(
            flow,
            protocol="raw" if raw else "udp",
            from_="mac",
            to="sensor",
            deadline=draw(st.none() | TIMES),
            vlan=draw(st.none() | st.integers(1, 4094)) if raw else None,
            priority=draw(st.none() | st.integers(0, 7)) if raw else None,
        )
        test.send(
            flow,
            period=draw(TIMES),
            payload=draw(SIZES),
            fill=draw(st.sampled_from([None, "sequential", "random"])),
            count=draw(st.integers(20, 1000)),
            offset=draw(st.none() | TIMES),
        )
        if draw(st.booleans()):
            test.receive(flow, on=draw(st.sampled_from([None, "sensor"])))
        else:
            faults = [
                Fault("drop", "1 3-4"),
                Fault("swap", [7]),
                Fault("misdirect", range(10, 13), to="other"),
            ]
            test.relay(flow, through=draw(st.sampled_from([None, "task"])), faults=faults)
    if draw(st.booleans()):
        test.inject(
            on="other", to="sensor", load=draw(st.sampled_from(["0%", "12.5%", "900000ppm"])), burst=3
        )
    if draw(st.booleans()):
        test.axis("fill", ["sequential", "random"], flow=draw(st.none() | st.just(ids[:1])))
        test.axis("payload", ["64B", "128B"]).repeat(draw(st.integers(1, 3)))
    return test.limit("lost", at_most=0).limit("latency.mean", flow=ids[0], at_most="5ms")


def without_lines(campaign: dict[str, Any]) -> dict[str, Any]:
    return {**campaign, "limits": [{**limit, "line": 0} for limit in campaign["limits"]]}


@settings(deadline=None, max_examples=60)
@given(built())
def test_the_file_means_what_the_builder_means(test: Test) -> None:
    compiled = test.compile()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.xml"
        test.write(path)
        loaded = load(path)
    assert loaded.xml == compiled.xml
    assert loaded.sha256 == compiled.sha256
    assert without_lines(loaded.campaign) == compiled.campaign


def test_the_builder_can_write_every_element_and_attribute() -> None:
    """Nothing in the schema that Python cannot say."""
    test = base(seed=7).timing(warm_up="1ms", duration="1s", drain="1ms")
    test.switch("sw2", kind="cots").link("sw1:9", "sw2", rate="1Gbit/s")
    test.flow(1, protocol="raw", from_="mac", to="sensor", deadline="1s", vlan=5, priority=6)
    test.send(1, period="1ms", payload="64B", fill="random", count=100, offset="1ms")
    test.relay(1, on="sensor", through="task", faults=[Fault("misdirect", "5", to="other")])
    test.flow(2, protocol="udp", from_="mac", to="sensor").send(2, period="1ms", payload="64B")
    test.receive(2, on="sensor").inject(on="other", to="mac", load="5%", payload="100B", burst=2)
    test.axis("payload", ["64B"], flow=[1]).repeat(2)
    test.limit("rtt.max", flow=1, at_most="1s").limit("sent", at_least=1)
    assert test.compile().campaign["runs"]
    xml = test.to_xml()
    for declaration in declarations().values():
        assert f"<{declaration.name}" in xml
        for attribute in declaration.attributes:
            assert f' {attribute}="' in xml, f"{declaration.name}/{attribute}"


def test_text_no_xml_can_hold() -> None:
    with pytest.raises(TestError, match="holds characters no XML file can"):
        Test("a\0b")


def test_odd_text_is_quoted_and_refused() -> None:
    test = base('<&">').flow(1, protocol="udp", from_="mac", to="sensor").receive(1)
    test.send(1, period="1ms", payload="64B", count=1)
    with pytest.raises(TestError) as caught:
        test.compile()
    said = 'Test("<&">"): <test name="<&">">: name "<&">" is not a name of a test'
    assert str(caught.value).startswith(said)
