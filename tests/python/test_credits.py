"""Credits of shaped queues: extremes and course against a walk from here in exact fractions, and against Annex L."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from simulation import Simulated, frame, occupation, simulate, trial, written
from wiregauge.figures.model import Line, Scatter
from wiregauge.figures.views import view_figures
from wiregauge.measures.flow_measures import CREDIT
from wiregauge.report.credits import credit_table
from wiregauge.results import views

RATE = 100_000_000
A, B = 25_000_000, 10_000_000
"""Idle slopes, bit/s."""
PICO = 10**12


def bridge(tasks: str, *, more: str = "", host: str = "") -> str:
    """Classes A and B with shapers and best effort, each from an end system of its own, to one port of 100 Mbit/s."""
    network = (
        f'<end-system name="a">{host}</end-system><end-system name="b"/><end-system name="c"/><end-system name="d"/>'
        '<switch name="s" delay="0s"><switch-tsn>'
        '<traffic-class number="0" priorities="0 1 4 5 6 7"/>'
        '<traffic-class number="1" priorities="2"><cbs idle-slope="10Mbit/s"/></traffic-class>'
        '<traffic-class number="2" priorities="3"><cbs idle-slope="25Mbit/s"/></traffic-class>'
        "</switch-tsn></switch>"
        + "".join(f'<link between="{name} s" rate="1Gbit/s"/>' for name in "abc")
        + '<link between="s:9 d" rate="100Mbit/s"/>'
    )
    flows = (
        '<flow id="1" protocol="raw" from="a" to="d" vlan="1" priority="3"/>'
        '<flow id="2" protocol="raw" from="b" to="d" vlan="1" priority="2"/>'
        '<flow id="3" protocol="raw" from="c" to="d" vlan="1"/>'
    )
    return written(network, flows, tasks, more=more, attributes='duration="500ms"')


TASKS = "".join(
    f'<send flow="{flow}" period="{period}" payload="{payload}B" burst="{burst}"/><receive flow="{flow}"/>'
    for flow, period, payload, burst in (
        (1, "3701us", 500, 15),
        (2, "4999us", 900, 4),
        (3, "1013us", 1500, 5),
    )
)


def walk(run: Simulated, flow: int, slope: int, length: int) -> list[tuple[int, Fraction]]:
    """Corners of the credit of a flow's queue by the words of 8.6.8.2, from when frames came and left: (ps, bits)."""
    came = sorted(run.times("switch-in", flow).values())
    begins = sorted(run.times("switch-out", flow).values())
    own = occupation(length, RATE)
    ends = [time + own for time in begins]
    credit, now, waiting, sending = Fraction(0), 0, 0, False
    corners = [(0, credit)]
    # At one instant a frame ends, others come, and one begins.
    events = sorted([(t, 0) for t in ends] + [(t, 1) for t in came] + [(t, 2) for t in begins])
    for time, what in events:
        span = Fraction(time - now, PICO)
        if sending:
            credit += (slope - RATE) * span
        elif waiting:
            credit += slope * span
        elif credit < 0:
            zero = -credit / slope
            if zero < span:
                corners.append((now + -(-zero * PICO // 1), Fraction(0)))
            credit = min(credit + slope * span, Fraction(0))
        now = time
        corners.append((now, credit))
        if what == 0:
            sending = False
            if not waiting:
                credit = min(credit, Fraction(0))
                corners.append((now, credit))
        elif what == 1:
            waiting += 1
        else:
            waiting, sending = waiting - 1, True
    return corners


def test_extremes_and_course_are_those_of_the_words(tmp_path: Path) -> None:
    run = simulate(bridge(TASKS), tmp_path)
    reports = {(one["node"], one["port"], one["class"]): one for one in run.report["credits"]}
    assert set(reports) == {("s", port, number) for port in (1, 2, 3, 9) for number in (1, 2)}
    for number, flow, slope, payload in ((2, 1, A, 500), (1, 2, B, 900)):
        corners = walk(run, flow, slope, frame(payload, tagged=True))
        one = reports["s", 9, number]
        assert Fraction(one["greatest_pbit"], PICO) == max(credit for _, credit in corners)
        assert Fraction(one["least_pbit"], PICO) == min(credit for _, credit in corners)
        told = run.truth.filter(
            (run.truth["kind"] == "credit") & (run.truth["port"] == 9) & (run.truth["sequence"] == number)
        )
        assert 80 < told.height <= 4 * 128 + 81
        known = {(time, int(credit * 10**9 // 1)) for time, credit in corners}
        inside = set(zip(told["time"], told["value"], strict=True))
        # Behind the last frame the credit comes back to zero, and stays there to the end of the run.
        last = max(time for time, _ in corners)
        assert {point for point in inside if point[0] <= last} <= known
        assert {value for time, value in inside if time > last} <= {0}
        whole = [time for time, _ in corners if one["whole_from_ps"] <= time <= one["whole_to_ps"]]
        assert set(whole) <= set(told["time"])


def test_credits_keep_to_hi_and_lo_credit_of_annex_l(tmp_path: Path) -> None:
    """L.3: hiCredit of A is what one longest frame of others gives it; B also waits for a burst of A."""
    run = simulate(bridge(TASKS), tmp_path)
    reports = {one["class"]: one for one in run.report["credits"] if one["port"] == 9}
    longest = Fraction(occupation(frame(1500, tagged=True), RATE), PICO)
    own = {2: Fraction(occupation(frame(500, tagged=True), RATE), PICO)}
    own[1] = Fraction(occupation(frame(900, tagged=True), RATE), PICO)
    # Frames of class B are shorter than best effort, so this is what interferes.
    high = {2: A * longest, 1: B * (longest * RATE / (RATE - A) + own[2])}
    for number, slope in ((2, A), (1, B)):
        most = Fraction(reports[number]["greatest_pbit"], PICO)
        assert high[number] / 2 < most <= high[number]
        least = Fraction(reports[number]["least_pbit"], PICO)
        assert (slope - RATE) * own[number] <= least < (slope - RATE) * own[number] / 2


def test_limits_are_judged_and_undecided_where_there_is_no_shaper(tmp_path: Path) -> None:
    high = A * occupation(frame(1500, tagged=True), RATE) // PICO + 1
    low = (RATE - A) * occupation(frame(500, tagged=True), RATE) // PICO + 1
    limits = (
        f'<limits><limit flow="1" measure="credit.max" at-most="{high}bit"/>'
        f'<limit flow="1" measure="credit.min" at-least="-{low}bit"/>'
        '<limit flow="2" measure="credit.max" at-most="0.1kbit"/>'
        '<limit flow="3" measure="credit.max" at-most="1Mbit"/></limits>'
    )
    file = tmp_path / "t.xml"
    file.write_text(bridge(TASKS, more=limits))
    judgement = trial(file, tmp_path / "out")
    (run,) = judgement.runs
    results = [(limit.result, limit.n) for limit in run.limits]
    assert results == [("pass", 1), ("pass", 1), ("fail", 1), ("undecided", 0)]
    assert (
        run.limits[3].reason == "flow 3 has no measure credit.max"
        or "no such measure" in run.limits[3].reason
    )
    credit = run.flows[0][CREDIT]
    assert credit is not None
    assert run.limits[0].observed == pytest.approx(credit.most)
    assert run.limits[0].unit == "bit"
    # Of all shaped queues, those that never held a frame among them; drawn are those that did.
    assert credit_table(judgement).size == 8
    (figure,) = [one for one in view_figures(judgement, views(judgement)) if one.id == "credits"]
    assert [panel.title.split(",")[0] for panel in figure.panels] == ["s:9"] * 4
    for panel in figure.panels:
        line, greatest = panel.traces[:2]
        assert isinstance(line, Line)
        assert isinstance(greatest, Scatter)
        assert 1 < len(line.x) <= 4 * 128 + 81
        assert max(line.y) == pytest.approx(greatest.y[0])


def test_a_host_has_credits_and_a_flow_goes_by_all_of_its_queues(tmp_path: Path) -> None:
    host = (
        '<host-tsn><traffic-class number="0" priorities="0 1 2 4 5 6 7"/>'
        '<traffic-class number="1" priorities="3"><cbs idle-slope="300Mbit/s"/></traffic-class></host-tsn>'
    )
    file = tmp_path / "t.xml"
    file.write_text(bridge(TASKS, host=host))
    (run,) = trial(file, tmp_path / "out").runs
    own = next(one for one in run.credits if one.node == "a")
    at_switch = next(one for one in run.credits if (one.node, one.port, one.traffic_class) == ("s", 9, 2))
    credit = run.flows[0][CREDIT]
    assert credit is not None
    assert (credit.queues, credit.most) == (2, max(own.max_bit, at_switch.max_bit))
    assert credit.least == min(own.min_bit, at_switch.min_bit)
    # Its own frames alone, a burst at 1 Gbit/s: what a frame takes, and nothing before the first.
    assert own.min_bit == -700e6 * occupation(frame(500, tagged=True), 10**9) / PICO
    assert own.max_bit < 300e6 / PICO * 2
    assert run.flows[2][CREDIT] is None
