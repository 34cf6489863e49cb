"""Messages faster than their links keep no limit that the links and the waits on them could have broken."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from simulation import trial
from wiregauge.measures import FlowResult
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.instrument import too_fast
from wiregauge.measures.limits import judge_limits, observe
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import LineTime
from wiregauge.measures.metrics.line_time import on_the_same_links
from wiregauge.measures.quantities import flow_quantities
from wiregauge.measures.run_measures import OfRun

TEST = """<test xmlns="urn:wiregauge:test:2" name="fast" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="s" delay="3us"/>
    <link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/><link between="c s" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="a" to="b" deadline="1ms"/>
    <flow id="20" protocol="udp" from="a" to="c" deadline="1ms"/>
  </flows>
  <tasks>
    <send flow="10" period="1ms" payload="200B" count="1200"/><receive flow="10"/>
    <send flow="20" period="1ms" payload="200B" count="1200"/><relay flow="20" on="c"/>
    <inject on="c" to="b" load="40%" burst="20"/>
  </tasks>
</test>
"""
HOST_ONLY = {"stack_up", "turnaround"}
"""Between two points of one host."""
COUNTED = {
    "goodput", "loss", "lost", "delivered", "loss_period", "loss_distance", "reordered", "reorder_extent",
    "n_reordering", "bag_spacing", "bag_jitter", "bag_violations", "duplicated", "misdirected", "corrupted",
    "elimination", "policing", "gates", "credit",
}  # fmt: skip
"""Numbers and rates of messages, which queues of links decide, and what a sender's port makes of its spacings."""
OF_NO_LINK = {"sent", "unknown", "intended_load", "offered_load"}
"""What the sender does, and what the instrument does not know."""


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> tuple[FlowResult, ...]:
    place = tmp_path_factory.mktemp("fast")
    (place / "t.xml").write_text(TEST)
    return trial(place / "t.xml", place / "out").runs[0].flows


def test_every_measure_says_whether_links_are_in_it() -> None:
    """Read off its formula: what takes an instant of arrival, or a latency, has passed links."""
    arrival = re.compile(r"rx_|arrival|latency|\blate\b|lateness|switch-in|end - start|reception|outside")
    for definition in DEFINITIONS.values():
        if definition.needs == "run" or definition.name in HOST_ONLY | OF_NO_LINK:
            assert not definition.links, definition.name
        elif (
            definition.name in COUNTED
            or arrival.search(definition.formula)
            or definition.name == "receive_period_jitter"
        ):
            assert definition.links, definition.name


def test_no_limit_is_kept_that_links_could_have_broken(flows: tuple[FlowResult, ...]) -> None:
    told = 0
    for flow in flows:
        fast = replace(flow, line_time=LineTime(too_fast=True, text="1 us where links alone take 4 us"))
        for figure in flow_quantities(flow):
            name = f"{figure.measure}.{figure.statistic}" if figure.statistic else figure.measure
            value = observe(name, flow).value
            if value is None:
                continue
            links = DEFINITIONS[figure.measure].links if too_fast(figure, fast) else ""
            for bound, room in (("at-most", 1.0), ("at-least", -1.0), ("at-most", -1.0), ("at-least", 1.0)):
                at = value + room * (1e-6 + abs(value) * 1e-3)
                limit = LimitPlan(flow.plan.id, name, bound, at, "x", 1)
                (before,) = judge_limits([limit], [flow], OfRun(virtual_time=True))
                (after,) = judge_limits([limit], [fast], OfRun(virtual_time=True))
                up = bound == "at-most"
                open_ = links == "either" or (links == "more" and up) or (links == "less" and not up)
                if before.result == "pass" and open_:
                    assert after.result == "undecided", name
                    assert "links did not take the time of their rate" in after.reason
                    told += 1
                elif links and before.result == "fail" and not open_:
                    # A figure that is too low for its limit may be more on links that take their time.
                    assert after.result == "undecided", name
                elif links != "either":
                    assert after.result == before.result, name
    assert told > 100


@pytest.mark.parametrize(
    "name", ["lost", "loss", "duplicated", "reordered", "late", "corrupted", "misdirected"]
)
def test_no_count_is_kept_on_links_that_are_not_those_of_the_plan(
    name: str, flows: tuple[FlowResult, ...]
) -> None:
    fast = replace(flows[0], line_time=LineTime(too_fast=True, text=""))
    at_most = [LimitPlan(10, name, "at-most", value, "x", 1) for value in (0.0, 1e9)]
    assert {one.result for one in judge_limits(at_most, [flows[0]], OfRun(virtual_time=True))} == {"pass"}
    for one in judge_limits(at_most, [fast], OfRun(virtual_time=True)):
        assert one.result == "undecided"
        assert "would have been lost, late or altered" in one.reason


def test_what_one_flow_shows_of_links_holds_for_all_on_them(flows: tuple[FlowResult, ...]) -> None:
    """Times of hosts hide in one flow what another shows; a flow on other links stays as it is."""
    first, second = flows
    fast = replace(first, line_time=LineTime(too_fast=True, text="1 us where links alone take 4 us"))
    slow = replace(second, line_time=LineTime(too_fast=False, text=""))
    told = on_the_same_links([slow, fast])
    assert [flow.line_time and flow.line_time.too_fast for flow in told] == [True, True]
    assert told[0].line_time == LineTime(True, "flow 10: 1 us where links alone take 4 us", "10")
    assert told[1] is fast
    apart = replace(slow, plan=replace(slow.plan, leaves=((99, 1),)))
    assert on_the_same_links([apart, fast])[0] is apart
    assert on_the_same_links([slow, first])[0] is slow


def test_times_within_a_host_stay_decided(flows: tuple[FlowResult, ...]) -> None:
    fast = replace(flows[1], line_time=LineTime(too_fast=True, text=""))
    for name in (
        "stack_down.p50",
        "stack_up.max",
        "turnaround.p99",
        "send_error.max",
        "pair_latency.tx_app-tx_drv.p50",
    ):
        figure = observe(name, fast)
        assert not too_fast(figure, fast), name
    for name in (
        "rtt.p50",
        "network.max",
        "return_latency.min",
        "pair_latency.tx_drv-rx_drv.p50",
        "late",
        "pdv",
    ):
        assert too_fast(observe(name, fast), fast), name
