"""States of synchronisation over time: drawn from the truth, and the same as what the run says of its end."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from simulation import trial
from wiregauge import results
from wiregauge.figures.model import Line, Spans
from wiregauge.figures.views import view_figures
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.records.clockstates import SYNC_STATES
from wiregauge.results.views import views

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    place = tmp_path_factory.mktemp("sync")
    return results.judge(trial(ROOT / "examples/synchronised.xml", place / "run").directory)


def test_states_follow_one_another_and_end_as_the_run_says(judged: Judgement) -> None:
    view = views(judged).synchronisation
    (cluster,) = judged.runs[0].clusters
    assert set(view.nodes) == {device.node for device in cluster.devices}
    for device in cluster.devices:
        own = [span for span in view.states if span.node == device.node]
        assert own[-1].state == device.state
        assert own[0].state == "INTEGRATE"
        for before, after in itertools.pairwise(own):
            assert before.end == after.start or device.node == "sw1"
            assert before.end > before.start
        if device.node != "sw1":
            reached = next(span.start for span in own if span.state in ("SYNC", "STABLE"))
            assert device.synchronised_at_ns is not None
            assert reached == pytest.approx(device.synchronised_at_ns / 1e9, abs=1e-9)


def test_a_switch_without_power_is_in_no_state(judged: Judgement) -> None:
    own = [span for span in views(judged).synchronisation.states if span.node == "sw1"]
    gaps = [(a.end, b.start) for a, b in itertools.pairwise(own) if a.end != b.start]
    assert [pytest.approx(gap, abs=1e-6) for gap in gaps] == [(0.6, 0.65)]


def test_precision_is_drawn_and_its_greatest_is_the_one_told(judged: Judgement) -> None:
    found = views(judged)
    (shape,) = found.synchronisation.precision
    (cluster,) = judged.runs[0].clusters
    assert cluster.precision_ns is not None
    assert shape.precision.max() <= cluster.precision_bound_ns
    assert shape.precision.max() == pytest.approx(cluster.precision_ns, abs=1e-3)
    figure = next(one for one in view_figures(judged, found) if one.id == "sync-states")
    assert {trace.name for trace in figure.panels[0].traces if isinstance(trace, Spans)} >= {"SYNC", "STABLE"}
    assert any(isinstance(trace, Line) for trace in figure.panels[1].traces)


def test_names_are_those_of_the_core() -> None:
    core = (ROOT / "crates/core/src/as6802/mod.rs").read_text(encoding="utf-8")
    codes = re.findall(r"^        Self::(\w+),$", core, flags=re.MULTILINE)[: len(SYNC_STATES)]
    names = dict(re.findall(r'Self::(\w+) => "([A-Z0-9_]+)"', core))
    assert [names[code] for code in codes] == list(SYNC_STATES)
