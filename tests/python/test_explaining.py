"""Explanations end to end: causes planted in a simulated network are the causes that are named."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import stored
from jsonschema_rs import Draft202012Validator, meta
from rich.console import Console

from simulation import trial
from wiregauge import results, stats
from wiregauge.figures.explained import explained_figures
from wiregauge.measures import explaining
from wiregauge.measures.explaining import Explanation, FlowExplained, hop_times
from wiregauge.measures.explaining import sentences as said
from wiregauge.measures.explaining import worst as waiting
from wiregauge.measures.explaining.hop_times import read_spans
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import Series
from wiregauge.results.explaining import explain_json, explain_schema_path, explain_text
from wiregauge.results.explaining.shapes import explained_shapes

TEST = """
<test xmlns="urn:wiregauge:test:2" name="causes" seed="3">
  <network host="ideal">
    <end-system name="urgent"/> <end-system name="bulk"/> <end-system name="sink"/> <end-system name="far"/>
    <end-system name="stepped"><clock offset="10us"/></end-system>
    <end-system name="woken" host="tuned"/>
    <switch name="sw1" priorities="strict"/> <switch name="sw2"/>
    <link between="urgent sw1" rate="100Mbit/s"/> <link between="bulk sw1" rate="1Gbit/s"/>
    <link between="sink sw1" rate="100Mbit/s"/> <link between="stepped sw2" rate="100Mbit/s"/>
    <link between="far sw2" rate="100Mbit/s"/> <link between="woken sw2" rate="100Mbit/s"/>
    <link between="sw1 sw2" rate="100Mbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="raw" from="urgent" to="sink" priority="7"/>
    <flow id="11" protocol="raw" from="bulk" to="sink" priority="1"/>
    <flow id="20" protocol="raw" from="urgent" to="far"/>
    <flow id="30" protocol="raw" from="stepped" to="far"/>
    <flow id="40" protocol="udp" from="far" to="woken"/>
    <flow id="50" protocol="raw" from="far" to="stepped"/>
  </flows>
  <tasks warm-up="20ms" duration="2s">
    <send flow="10" period="1ms" payload="100B"/> <receive flow="10"/>
    <send flow="11" period="97ms" burst="3" payload="1500B" offset="30ms"/> <receive flow="11"/>
    <send flow="20" period="1ms" payload="100B" offset="300us"/> <receive flow="20"/>
    <send flow="30" period="1ms" payload="100B" offset="500us"/> <receive flow="30"/>
    <send flow="40" period="1ms" payload="100B" offset="700us"/> <receive flow="40"/>
    <send flow="50" period="10ms" payload="100B" offset="800us"/> <relay flow="50"/>
  </tasks>
  <faults>
    <delay link="sw2 far" flow="20" sequence="700" by="400us" sent-by="sw2"/>
    <step-clock on="stepped" at="1700ms" by="-250us"/>
  </faults>
</test>
"""
# The big frame comes so shortly before the urgent one that this has to wait for it.
BIG_FIRST = TEST.replace('payload="1500B" offset="30ms"', 'payload="1500B" offset="29995us"')


COMPARED = """
<test xmlns="urn:wiregauge:test:2" name="compared" seed="1">
  <network host="ideal">
    <end-system name="mac"/> <end-system name="sensor"><clock offset="5ms" drift="50ppm"/></end-system>
    <switch name="sw1"/>
    <link between="mac sw1" rate="1Gbit/s"/> <link between="sensor sw1" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="mac" to="sensor"/> <flow id="20" protocol="udp" from="sensor" to="mac"/>
    <flow id="30" protocol="udp" from="sensor" to="mac"/>
  </flows>
  <synchronise asymmetry="1us"><exchange/></synchronise>
  <tasks warm-up="200ms" duration="1s">
    <send flow="10" period="2ms" payload="64B"/> <receive flow="10"/>
    <send flow="20" period="2ms" payload="64B" offset="1ms"/> <receive flow="20"/>
    <send flow="30" period="20ms" payload="1400B" offset="995us"/> <receive flow="30"/>
  </tasks>
</test>
"""


def simulated(place: Path, text: str) -> Path:
    file = place / "t.xml"
    file.write_text(text, encoding="utf-8")
    return trial(file, place / "run").directory


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("causes"), BIG_FIRST)


@pytest.fixture(scope="module")
def explanation(place: Path) -> Explanation:
    return explaining.explain(results.judge(place))


def flow_of(explanation: Explanation, number: int) -> FlowExplained:
    return next(found for found in explanation.flows if found.flow.id == number)


def test_a_big_frame_just_before_is_the_partner_of_the_worst(explanation: Explanation) -> None:
    found = flow_of(explanation, 10)
    assert len(found.worst) == 10
    worst = found.worst[0]
    assert worst.cause == "queue"
    (partner,) = worst.partners
    assert partner.flow == 11
    assert partner.length == 1522  # tagged
    top = max(worst.steps, key=lambda step: step.excess)
    assert top.title.startswith("sw1, out of port")
    # All that it took longer it waited here, and for this frame: gap included, to a byte time at 100 Mbit/s.
    assert top.excess == pytest.approx(worst.excess, abs=1)
    assert 0.8 * worst.excess < partner.blocked <= worst.excess + 2_100
    assert "flow 11" in worst.sentence
    assert "sw1" in worst.sentence


def test_partners_hold_the_port_one_after_the_other(explanation: Explanation) -> None:
    for worst in flow_of(explanation, 11).worst:
        top = max(worst.steps, key=lambda step: step.excess)
        assert worst.cause == "queue"
        assert len(worst.partners) >= 2
        held = sum(partner.blocked for partner in worst.partners)
        # Of the wait only the switch's own processing is left.
        assert top.took - 3_000 <= held <= top.took + 0.01


def test_the_recurring_queue_is_found_with_its_period(explanation: Explanation) -> None:
    found = flow_of(explanation, 10)
    modes = found.series[0].recurrence.modes
    assert any(mode.period.value == pytest.approx(0.097, rel=1e-3) for mode in modes)
    assert any(sentence.startswith("Every 97.0 ms for") for sentence in found.series[0].sentences)
    assert found.worst[0].mode is not None


def test_a_link_that_held_a_frame_back_is_named_and_the_truth_agrees(explanation: Explanation) -> None:
    worst = flow_of(explanation, 20).worst[0]
    assert worst.sequence == 700
    assert worst.cause == "link"
    top = max(worst.steps, key=lambda step: step.excess)
    assert top.title == "link sw2 to far"
    assert top.excess == pytest.approx(400_000, abs=1_000)
    (held,) = [event.text for event in worst.events if "held the frame back" in event.text]
    assert re.search(r", as <delay> of the test plants it \(line [0-9]+\)$", held)
    assert [near.sequence for near in worst.neighbours] == [698, 699, 701, 702]


def test_a_clock_step_is_a_change_and_no_time_on_the_way(explanation: Explanation) -> None:
    found = flow_of(explanation, 30)
    changes = [change for change in found.series[0].course.changes if change.kind == "level"]
    assert [change.at for change in changes] == pytest.approx([1.7], abs=0.02)
    assert changes[0].after - changes[0].before == pytest.approx(250_000, abs=1_000)
    for worst in found.worst:
        assert worst.cause == "clock"
        assert worst.clock is not None
        assert worst.clock.offset - worst.clock.usual == pytest.approx(250_000, abs=1_000)


def test_a_host_that_wakes_up_late_is_named(explanation: Explanation) -> None:
    worst = flow_of(explanation, 40).worst[0]
    assert worst.cause == "stack"
    assert "woken" in worst.sentence


def test_steps_add_up_to_the_latency(explanation: Explanation) -> None:
    for found in explanation.flows:
        for message in found.worst:
            assert sum(step.took for step in message.steps) == pytest.approx(message.value, abs=0.01)
            assert [m.value for m in found.worst] == sorted((m.value for m in found.worst), reverse=True)


def test_steps_are_on_one_clock_where_clocks_are_compared(tmp_path: Path) -> None:
    """Before, a link took as long as two clocks were apart, and their drift was taken for its doing."""
    found = explaining.explain(results.judge(simulated(tmp_path, COMPARED)))
    for flow in found.flows:
        for message in flow.worst:
            assert message.cause != "link" or message.excess < 500.0
            assert sum(step.took for step in message.steps) == pytest.approx(message.value, abs=500.0)
            for step in message.steps:
                if step.kind == "link":
                    assert step.excess == pytest.approx(0.0, abs=500.0)
    waited = [m for m in flow_of(found, 20).worst if any(step.kind == "port" for step in m.steps)]
    assert any((partner.flow, partner.node) == (30, 2) for message in waited for partner in message.partners)


def test_a_round_trip_is_followed_out_and_back(explanation: Explanation) -> None:
    found = flow_of(explanation, 50)
    assert found.series[0].measure == "rtt"
    titles = [step.title for step in found.worst[0].steps]
    assert "link far to sw2" in titles
    assert "link sw2 to far" in titles


def test_json_keeps_to_its_schema(explanation: Explanation) -> None:
    shown = explain_json(explanation)
    schema = json.loads(explain_schema_path().read_text())
    meta.validate(schema)
    Draft202012Validator(schema).validate(json.loads(json.dumps(shown, allow_nan=False)))


def test_every_key_of_the_json_is_documented(explanation: Explanation) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "explain.md").read_text()

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {key for part in value.values() for key in keys(part)}
        return {key for part in value for key in keys(part)} if isinstance(value, list) else set()

    missing = {key for key in keys(explain_json(explanation)) if f"`{key}`" not in page}
    assert not missing


def test_text_tells_each_flow(explanation: Explanation) -> None:
    out = io.StringIO()
    explain_text(explanation, Console(file=out, width=200))
    for found in explanation.flows:
        assert f"flow {found.flow.name}," in out.getvalue()


def test_waits_that_are_read_in_parts_are_told_the_same(
    place: Path, explanation: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many frames held a port: none is left out, and none is told twice."""
    monkeypatch.setattr(waiting, "MOST_RECORDS", 7)
    monkeypatch.setattr(hop_times, "MOST_RECORDS", 1_000_000)
    parts = []

    def read_in_parts(*given: Any) -> Iterator[pl.DataFrame]:
        with monkeypatch.context() as patch:
            patch.setattr(hop_times, "MOST_RECORDS", 2)
            for part in hop_times.read_in_parts(*given):
                parts.append(part.height)
                yield part

    monkeypatch.setattr(waiting, "read_in_parts", read_in_parts)
    found = explaining.explain(results.judge(place))
    assert max(parts) <= 2
    assert len(parts) > 50
    assert max(message.partner_count for one in explanation.flows for message in one.worst) > max(parts)
    for one, other in zip(found.flows, explanation.flows, strict=True):
        for message, whole in zip(one.worst, other.worst, strict=True):
            assert (message.partner_count, message.sentence) == (whole.partner_count, whole.sentence)
            assert message.partners == whole.partners


def test_figures_show_series_folds_and_ladders(place: Path, explanation: Explanation) -> None:
    figures = explained_figures(explained_shapes(results.judge(place), explanation))
    assert len({figure.id for figure in figures}) == len(explanation.flows)
    ten = next(figure for figure in figures if figure.id.startswith("explain-0-10-"))
    titles = [panel.title for panel in ten.panels]
    assert titles[0].endswith("against time")
    assert any("folded" in title for title in titles)
    assert titles[-1].startswith("the worst")


def test_a_report_explains_the_most_telling_flows_only(place: Path) -> None:
    short = explaining.explain(results.judge(place), worst=2, most=3)
    assert len(short.flows) == 3
    assert short.left_out == 3
    assert all(len(found.worst) == 2 for found in short.flows)


def test_without_records_the_worst_are_still_listed(place: Path, tmp_path: Path) -> None:
    # A directory of before lists no files: only there may records be missing.
    copy = stored.unsealed(place, tmp_path / "run")
    for folder in ("records", "truth"):
        shutil.rmtree(copy / folder)
    worst = flow_of(explaining.explain(results.judge(copy)), 10).worst[0]
    assert worst.steps == ()
    assert worst.cause == "unknown"


def test_only_the_stretches_asked_for_are_read(tmp_path: Path) -> None:
    """Against a plain filter of everything in memory."""
    rng = np.random.default_rng(1)
    n = 20_000
    path = tmp_path / "records.parquet"
    table = pl.DataFrame(
        {
            "flow": rng.integers(1, 9, n).astype(np.uint16),
            "sequence": np.arange(n, dtype=np.uint32),
            "returning": np.zeros(n, bool),
            "warm_up": np.zeros(n, bool),
            "node": np.ones(n, np.uint16),
            "port": np.ones(n, np.uint16),
            "length": np.full(n, 64, np.uint16),
            "point": np.full(n, "switch-out"),
            "reason": np.full(n, "none"),
            "time": np.sort(rng.integers(0, 10**9, n)),
        }
    )
    table.write_parquet(path, row_group_size=500)
    spans = [(int(low), int(low) + 40_000) for low in rng.integers(0, 10**9, 90)]
    inside = pl.any_horizontal(pl.col("time").is_between(low, high) for low, high in spans)
    expected = table.filter(inside & (pl.col("flow") == 3))
    found = read_spans(path, spans, pl.col("flow") == 3)
    assert found["sequence"].to_list() == expected["sequence"].to_list()


def test_what_is_below_the_resolution_of_timestamps_is_not_explained(place: Path) -> None:
    """With ideal hosts all messages take the same time, but for the picoseconds that rounding leaves."""
    campaign = results.judge(place).plan
    flow = campaign.runs[0].flows[0]
    for excess, cause in ((0.001, "none"), (0.999, "none"), (1.0, "unknown"), (250.0, "unknown")):
        found, sentence = said.cause_of(flow, excess, (), (), 0.0, None, (), campaign)
        assert found == cause
        told = said.message_sentence(3, 5000.0 + excess, excess, sentence, None)
        assert ("more than the median" in told) == (cause != "none")


def test_recurrence_is_no_chance_when_modes_are_counted() -> None:
    """A second level that comes on time is seen as one, however few periods a run has."""
    t = np.arange(3_000, dtype=np.float64) * 1e-3
    rng = np.random.default_rng(6)
    raised = (t % 0.1) < 0.03
    values = np.asarray(20_000 + rng.normal(0, 50, 3_000) + 5_000 * raised, dtype=np.float64)
    series = Series(t, values)
    found = explaining.explain_series("latency", series)
    assert len(found.recurrence.modes) == 1
    assert len(found.peaks.peaks) == 2
    assert found.peaks.n_effective > stats.worth_of(series.value)


def test_bands_of_one_period_are_one_sentence() -> None:
    """A sender of 1 ms before a gate that opens every 1.1 ms: the pattern comes every 11 ms, and is told once."""
    t = np.arange(11_000, dtype=np.int64)
    phase = 10 * t % 11
    waits = np.asarray(np.where(phase, 11 - phase, 0) * 1e5, dtype=np.float64)
    found = explaining.explain_series("latency", Series(np.asarray(t * 1e-3, dtype=np.float64), waits))
    told = [one for one in found.sentences if one.startswith("Every")]
    assert len(told) == 1, told
    assert told[0].startswith("Every 11.0 ms latency rises"), told


def test_a_second_hump_before_a_shallow_valley_is_not_denied() -> None:
    """Two of three values in one hump and one in another: too few to be certain, which is told as such."""
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(8.2, 0.4, 330), rng.normal(10.2, 0.6, 170)])
    told = said.peak_sentence(stats.peaks(values, resolution=0.001), "latency")
    assert "one mode for certain" in told
    assert "stand above the valley" in told


COMBED = """<test xmlns="urn:wiregauge:test:2" name="combs" seed="1">
  <network host="ideal"><end-system name="a"/><end-system name="b"/><switch name="s"/>
    <link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/></network>
  <flows><flow id="20" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="20" period="1ms" burst="{burst}" payload="1472B" count="4000"/><receive flow="20"/></tasks>
</test>
"""


@pytest.mark.parametrize("burst", [2, 3, 4, 6])
def test_all_of_an_excess_is_in_steps_where_times_are_few(tmp_path: Path, burst: int) -> None:
    """Messages of bursts take one of few times: the median of a sample of them may be the next one."""
    explained = explaining.explain(results.judge(simulated(tmp_path, COMBED.format(burst=burst))))
    for message in flow_of(explained, 20).worst:
        assert sum(step.excess for step in message.steps) == pytest.approx(message.excess, abs=2.0)


@pytest.mark.parametrize(("first", "dropped", "second"), [("A", "", "B"), ("A", "A", "A"), ("B", "", "A")])
def test_steps_behind_a_meeting_are_of_the_copy_that_went_on(first: str, dropped: str, second: str) -> None:
    """The one that came first, unless it was dropped there, as an integrity check does."""
    flow = FlowPlan(
        7,
        "rc",
        "a",
        "z",
        ("a", "z"),
        None,
        relayed=False,
        payload=64,
        period_ns=None,
        count=1,
        planted_faults=0,
    )
    ends = hop_times.Rung(1, "driver-receive", None, returning=False)
    ways = [
        hop_times.Way(
            number,
            flow,
            (
                hop_times.Rung(0, "wire-send", (number,), returning=False),
                hop_times.Rung(1, "wire-receive", (number,), returning=False),
                ends,
            ),
        )
        for number in (0, 1)
    ]
    came = {"A": 10 if first == "A" else 12, "B": 10 if first == "B" else 12}
    rows = [("wire-send", 0, port, 0) for port in (0, 1)]
    rows += [("wire-receive", 1, port, came[name]) for port, name in enumerate("AB")]
    rows += [("drop", 1, "AB".index(name), came[name]) for name in dropped]
    rows.append(("driver-receive", 1, 1, 13))
    records = pl.DataFrame(
        [(flow.id, 0, False, False, node, port, 64, point, "none", time) for point, node, port, time in rows],
        schema=dict.fromkeys(hop_times.COLUMNS, pl.Int64)
        | {"flow": pl.UInt16, "node": pl.UInt16, "port": pl.UInt16, "point": pl.String, "reason": pl.String}
        | {"returning": pl.Boolean, "warm_up": pl.Boolean},
        orient="row",
    )
    steps = hop_times.ladders(records, ways)
    behind = steps.filter(pl.col("from") == 1).select("way", "second").sort("way")
    assert behind.rows() == [(0, second == "A"), (1, second == "B")]
