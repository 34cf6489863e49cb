"""Bounds in the report: maxima beside them, the curves they rest on, and an alarm where one is exceeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from simulation import trial
from test_bounds_search import placed, tandem
from wiregauge.cli import app
from wiregauge.figures.bounds import (
    FlowMark,
    HopMark,
    arrivals_figure,
    hops_figure,
    marks_figure,
    service_figure,
)
from wiregauge.figures.model import Line, Scatter, Spans
from wiregauge.identify.service import guaranteed_rate, served
from wiregauge.report import bounded

SWITCHED = tandem(2).replace('duration="20ms"', 'duration="300ms"')


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    trial(placed(tmp_path, SWITCHED), tmp_path / "r")
    return tmp_path / "r"


def test_the_report_has_every_flow_beside_its_bound(ran: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(ran), "--bounds"])
    assert done.exit_code == 0, done.output
    page = (ran / "report.html").read_text(encoding="utf-8")
    for name in ("bounds", "bound-hops", "arrival-curves", "service-curves"):
        assert f'id="fig-{name}"' in page
    assert "Above its bound" not in page
    plain = CliRunner().invoke(app, ["report", str(ran)])
    assert plain.exit_code == 0
    assert 'id="fig-bounds"' not in (ran / "report.html").read_text(encoding="utf-8")


def test_two_runs_lie_on_one_axis(ran: Path, tmp_path: Path) -> None:
    found = bounded(ran, [ran])
    assert len(found.laid) == 2
    assert found.alarms == []
    panel = found.figures[0].panels[0]
    (bar,) = (trace for trace in panel.traces if isinstance(trace, Spans))
    (mark,) = (trace for trace in panel.traces if isinstance(trace, Scatter))
    assert np.all(mark.x <= bar.length)
    assert mark.name == "simulated maximum"


def test_a_latency_above_its_bound_is_an_alarm_of_report_and_exit_code(ran: Path, tmp_path: Path) -> None:
    """A run whose switch is slower than its test says: the test in its directory is that of a faster one."""
    slow = tmp_path / "slow.xml"
    slow.write_text(SWITCHED.replace('name="s0" delay="2us"', 'name="s0" delay="0%:2us 90%:3us 100%:5ms"'))
    trial(slow, tmp_path / "slow")
    # What was bounded is the sound test, and what ran is not.
    from wiregauge.bounds import bound, read
    from wiregauge.bounds.against import lay

    source = read(tmp_path / "t.xml")
    laid = lay(bound(source, "plp", grouping=True), source, tmp_path / "slow")
    assert laid.exceeded
    done = CliRunner().invoke(app, ["report", str(ran), "--bounds", "--beside", str(tmp_path / "slow")])
    assert done.exit_code == 1, done.output
    assert "ALARM" in done.stderr
    assert "Above its bound" in (ran / "report.html").read_text(encoding="utf-8")


def test_what_has_no_bound_is_refused_by_name(tmp_path: Path) -> None:
    text = SWITCHED.replace(
        'period="2ms" payload="800B"', 'period="2ms" payload="800B" distribution="exponential"'
    )
    trial(placed(tmp_path, text), tmp_path / "r")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "r"), "--bounds"])
    assert done.exit_code == 2
    assert "exponential" in done.stderr
    done = CliRunner().invoke(app, ["report", str(tmp_path / "r"), "--beside", str(tmp_path / "r")])
    assert done.exit_code == 2
    assert "--beside has an effect with --bounds only" in " ".join(done.stderr.split())


def test_marks_hops_and_empty_figures_are_what_was_given() -> None:
    assert marks_figure([]) is None
    assert hops_figure([]) is None
    assert arrivals_figure([]) is None
    assert service_figure([]) is None
    figure = marks_figure([FlowMark("f", 10.0, 4.0, None), FlowMark("g", 10.0, None, 11.0, exceeded=True)])
    assert figure is not None
    assert [text for _, text in figure.panels[0].y.ticks] == ["g", "f"]
    crosses = [
        trace
        for trace in figure.panels[0].traces
        if isinstance(trace, Scatter) and trace.name == "above its bound"
    ]
    assert len(crosses) == 1
    hops = hops_figure([HopMark("f", ["a", "b"], [1.0, 2.0], [0.5, None])])
    assert hops is not None
    bars = [trace for trace in hops.panels[0].traces if isinstance(trace, Spans)]
    assert [list(bar.start) for bar in bars] == [[0.0, 1.0], [0.0]]


def test_what_was_served_lies_above_its_curve_and_touches_it() -> None:
    """Frames of 1000 bit at 1 Gbit/s (1 us): the second of the first busy period is 2 us late, by hand."""
    came = np.array([0, 0, 10_000_000], dtype=np.int64)
    left = np.array([1_000_000, 4_000_000, 11_500_000], dtype=np.int64)
    bits = np.full(3, 1000.0)
    curve = guaranteed_rate(came, left, bits, 1e9)
    assert curve.latency_ps == 2_000_000
    points = served(came, left, bits, 1e9)
    assert points == ((1_500_000, 1000.0), (4_000_000, 2000.0))
    room = [amount - 1e9 * (time - curve.latency_ps) / 1e12 for time, amount in points]
    assert min(room) == pytest.approx(0)


def test_random_service_lies_above_its_curve() -> None:
    draw = np.random.default_rng(3)
    came = np.cumsum(draw.integers(0, 4_000_000, 400)).astype(np.int64)
    bits = draw.integers(672, 12_304, 400).astype(np.float64)
    left = np.zeros(400, dtype=np.int64)
    free = 0
    for k in range(400):
        free = max(free, int(came[k]) + int(draw.integers(0, 3_000_000))) + round(bits[k] * 1000)
        left[k] = free
    curve = guaranteed_rate(came, left, bits, 1e9)
    room = [amount - 1e9 * (time - curve.latency_ps) / 1e12 for time, amount in served(came, left, bits, 1e9)]
    assert min(room) == pytest.approx(0, abs=1e-6)


def test_curves_are_drawn_over_the_data(ran: Path) -> None:
    figures = {figure.id: figure for figure in bounded(ran).figures}
    for panel in figures["arrival-curves"].panels:
        sent, least = (
            trace for trace in panel.traces if isinstance(trace, Line) and trace.name != "the test's"
        )
        burst, rate = least.y[0], (least.y[1] - least.y[0]) / (least.x[1] - least.x[0])
        assert np.all(sent.y <= burst + rate * sent.x + 1e-6)
    for panel in figures["service-curves"].panels:
        (points,) = (trace for trace in panel.traces if isinstance(trace, Scatter))
        (curve,) = (trace for trace in panel.traces if isinstance(trace, Line))
        assert np.all(points.y >= np.interp(points.x, curve.x, curve.y) - 1e-6)
