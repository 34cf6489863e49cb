"""A limit on a one-way figure is decided where all that clocks and timestamps of its flow leave open lies on one side.

The table is made of every name that a limit can have: a measure that comes later is in it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from pathlib import Path

import pytest
from msgspec.structs import replace

from test_silence import STAR, limit_names, simulated
from wiregauge import results
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.instrument import Range, instrument_range, one_way
from wiregauge.measures.limits import judge_limits, observe
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import FlowResult, LimitResult
from wiregauge.measures.run_measures import OfRun
from wiregauge.records import RunDirectory

DRIFTING = STAR.replace('<end-system name="b"/>', '<end-system name="b"><clock drift="5ppm"/></end-system>')
STEPPED = STAR.replace("</tasks>", '</tasks><faults><step-clock on="b" by="-15us" at="500ms"/></faults>')


@pytest.fixture(scope="module")
def drifting(tmp_path_factory: pytest.TempPathFactory) -> tuple[FlowResult, ...]:
    """A one-way flow with a deadline and a relayed one, between clocks that may be 5 ppm apart."""
    text = DRIFTING.replace('deadline="1ms"', 'deadline="21us"')
    return simulated(text, tmp_path_factory.mktemp("drifting")).flows


def judged(name: str, bound: str, value: float, flow: FlowResult, *, exact: bool = True) -> LimitResult:
    (found,) = judge_limits(
        [LimitPlan(flow.plan.id, name, bound, value, "", 1)], [flow], OfRun(virtual_time=exact)
    )
    return found


def banded(flows: tuple[FlowResult, ...]) -> Iterator[tuple[str, FlowResult, Range]]:
    for flow in flows:
        for name in limit_names().names():
            if DEFINITIONS[name.measure].needs == "run":
                continue
            band = instrument_range(observe(str(name), flow), flow, exact=True)
            if band is not None:
                yield str(name), flow, band


def test_every_figure_across_two_clocks_has_a_band(drifting: tuple[FlowResult, ...]) -> None:
    having = {(name, flow.plan.id) for name, flow, _ in banded(drifting)}
    for flow in drifting:
        for name in limit_names().names():
            figure = observe(str(name), flow)
            if figure.value is not None and one_way(figure, flow.plan):
                assert (str(name), flow.plan.id) in having, name
    names = {name.partition(".")[0] for name, _ in having}
    across = {
        name
        for name, definition in DEFINITIONS.items()
        if any(definition.between_clocks(relayed=relayed) for relayed in (False, True))
    }
    assert across <= names
    assert {name for name, definition in DEFINITIONS.items() if definition.judges_lateness} <= names
    assert {"late", "deadline_missed", "tardiness", "availability", "effective_bandwidth", "range"} <= names
    assert not names & {"rtt", "turnaround", "receive_period", "goodput", "lost", "send_error", "period"}


def test_within_the_band_nothing_is_decided_and_beyond_it_everything(
    drifting: tuple[FlowResult, ...],
) -> None:
    seen = 0
    for name, flow, (low, high) in banded(drifting):
        width = high - low
        for bound in ("at-most", "at-least"):
            for inside in (0.01, 0.5, 0.99):
                found = judged(name, bound, low + inside * width, flow)
                assert found.result == "undecided", (name, bound, inside)
                assert "would decide it" in found.reason
                assert found.instrument == (low, high)
            keeps = (high if bound == "at-most" else low) + (width if bound == "at-most" else -width)
            breaks = (low if bound == "at-most" else high) - (width if bound == "at-most" else -width)
            assert judged(name, bound, keeps, flow).result == "pass", (name, bound)
            assert judged(name, bound, breaks, flow).result == "fail", (name, bound)
            seen += 1
    assert seen > 100


def test_clocks_that_nobody_knows_decide_nothing(drifting: tuple[FlowResult, ...]) -> None:
    """Unknown is not zero: every one-way figure may be anything, whatever the bound."""
    for flow in drifting:
        unknown = replace(
            flow,
            summaries={name: replace(one, clock=inf) for name, one in flow.summaries.items()},
            clock_varies=inf,
            clock_wanders=inf,
        )
        for name in limit_names().names():
            figure = observe(str(name), unknown)
            if figure.value is None or not one_way(figure, unknown.plan) or name.measure == "ipdv":
                continue
            band = instrument_range(figure, unknown, exact=False)
            assert band is not None, name
            assert not all(map(isfinite, band)) or name.measure in ("late", "deadline_missed", "availability")
            inside = (max(band[0], -1e15) + min(band[1], 1e15)) / 2
            for bound in ("at-most", "at-least"):
                found = judged(str(name), bound, inside, unknown, exact=False)
                assert found.result == "undecided", name
            if name.measure == "latency":
                assert judged(str(name), "at-most", 1e12, unknown).result == "undecided"
                assert "how far the clocks of a and b" in found.reason


def test_exact_clocks_decide_to_the_last_picosecond(tmp_path: Path) -> None:
    flows = simulated(STAR, tmp_path).flows
    assert not list(banded(flows))
    flow = flows[0]
    value = flow.summaries["latency"].maximum
    assert value is not None
    assert judged("latency.max", "at-most", value, flow).result == "pass"
    assert judged("latency.max", "at-most", value - 0.001, flow).result == "fail"
    assert judged("latency.max", "at-most", value, flow, exact=False).result == "undecided", "real timestamps"
    assert judged("latency.max", "at-most", value + 3, flow, exact=False).result == "pass"


def test_a_planted_step_does_not_fail_a_good_network(tmp_path: Path) -> None:
    """True is 20.88 µs; the receiver's clock is set back, or the sender's."""
    for name in "ab":
        text = STEPPED.replace('on="b"', f'on="{name}"')
        place = tmp_path / name
        place.mkdir()
        flow = simulated(text, place).flows[0]
        for measure, value in (("latency.max", 30_000.0), ("range", 10_000.0), ("ipdv.max", 10_000.0)):
            found = judged(measure, "at-most", value, flow)
            assert found.result == "undecided", (name, found)
            assert found.instrument is not None
        assert judged("latency.max", "at-most", 60_000.0, flow).result == "pass"
        assert judged("lost", "at-most", 0, flow).result == "pass"


def test_the_band_is_of_the_flow_and_not_of_another(tmp_path: Path) -> None:
    """One of three clocks is bad: flows between the others are decided."""
    text = (Path(__file__).resolve().parents[1] / "faults" / "limit-inside-clock-uncertainty.xml").read_text()
    flows = simulated(text, tmp_path).flows
    bands = {flow.plan.id: instrument_range(observe("latency.p50", flow), flow, exact=True) for flow in flows}
    widths = {number: band[1] - band[0] for number, band in bands.items() if band is not None}
    flow = next(flow for flow in flows if flow.plan.id == 10)
    latency = flow.summaries["latency"]
    assert widths[10] == pytest.approx(2 * (latency.clock + latency.timestamp))
    assert widths[10] < 0.6 * max(widths.values())
    assert all(isfinite(width) for width in widths.values())
    value = latency.value("p50")
    assert value is not None
    assert "leave" in results.limit_text(judged("latency.p50", "at-most", value + 100, flow))
    assert judged("latency.p50", "at-most", value + widths[10], flow).result == "pass"


VARIATIONS = ("range", "pdv", "delay_variation.p99", "delay_variation.max")


@pytest.fixture(scope="module")
def unrelated(tmp_path_factory: pytest.TempPathFactory) -> FlowResult:
    """A flow whose two ends were captured by clocks that nobody compared."""
    place = tmp_path_factory.mktemp("unrelated")
    simulated(STAR.replace('count="1000"', 'count="20000"'), place)
    run = RunDirectory.open(place / "run")
    entry = run.manifest["runs"][0]
    del entry["clock_offsets"]["b"]
    run.save()
    return results.judge(place / "run").runs[0].flows[0]


def test_of_unrelated_clocks_a_variation_decides_nothing(unrelated: FlowResult) -> None:
    """A constant offset cancels in it; that clocks neither drift nor are set nobody knows."""
    assert unrelated.uncompared
    for name in VARIATIONS:
        figure = observe(name, unrelated)
        assert figure.value is not None, name
        for bound, value in (("at-most", 1e12), ("at-most", 0.0), ("at-least", 0.001), ("at-least", 1e12)):
            found = judged(name, bound, value, unrelated, exact=False)
            assert found.result == "undecided", (name, bound, value)
            assert "moved against each other during the run is not known" in found.reason
            assert "would decide it" in found.reason
    assert judged("lost", "at-most", 0, unrelated, exact=False).result == "pass"


@pytest.mark.parametrize("wanders", [0.0, 40.0, 5_000.0])
def test_a_variation_is_decided_as_far_as_drift_is_bounded(unrelated: FlowResult, wanders: float) -> None:
    flow = replace(unrelated, clock_wanders=wanders)
    for name in VARIATIONS:
        value = observe(name, flow).value
        assert value is not None
        for bound, side in (("at-most", 1), ("at-least", -1)):
            beyond = value + side * (2 * wanders + 0.01)
            assert judged(name, bound, beyond, flow, exact=False).result == "pass", (name, bound)
            within = judged(name, bound, value + side * 1.9 * wanders, flow, exact=False)
            if wanders and within.value > 0:
                assert within.result == "undecided", (name, bound)
                assert "leave" in within.reason


def test_an_offset_that_is_only_bounded_bounds_how_far_it_moved(tmp_path: Path) -> None:
    """Hosts that control connections relate to within 50 µs: their offset is bounded, and not constant."""
    simulated(STAR, tmp_path)
    run = RunDirectory.open(tmp_path / "run")
    for name in "ab":
        one = {"offset_ns": 0, "uncertainty_ns": 25_000, "method": "control-connection"}
        run.manifest["runs"][0]["clock_offsets"][name] = one
    run.save()
    (flow, _) = results.judge(tmp_path / "run").runs[0].flows
    assert flow.clock_wanders == 50_000
    assert judged("range", "at-most", 10_000, flow, exact=False).result == "undecided"
    assert judged("range", "at-most", 200_000, flow, exact=False).result == "pass"
    # From one message to the next a clock that nobody sets moves by next to nothing.
    assert judged("ipdv.max", "at-most", 10_000, flow, exact=False).result == "pass"
