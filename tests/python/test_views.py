"""What the records of the network say: passages, queues, networks, schedules and clocks, judged and drawn."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation import trial
from wiregauge import results
from wiregauge.config import load
from wiregauge.figures import build
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.metrics.judgement import FlowResult, Grade, Judgement
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.plan import Clock, TemperatureStep
from wiregauge.results import queue_view
from wiregauge.results.views import MOST_FRAMES

TEST = """
<test xmlns="urn:wiregauge:test:2" name="views" seed="3">
  <network host="ideal">
    <end-system name="mac"/>
    <end-system name="sensor"><clock offset="2us" drift="3ppm"/></end-system>
    <end-system name="fcc"/>
    <switch name="sa" kind="mixed-criticality" delay="5us"/>
    <switch name="sb" kind="mixed-criticality" delay="9us"/>
    <link between="mac sa" rate="100Mbit/s"/> <link between="sensor sa" rate="100Mbit/s"/>
    <link between="fcc sa" rate="100Mbit/s"/>
    <link between="mac sb" rate="100Mbit/s" network="B"/> <link between="fcc sb" rate="100Mbit/s" network="B"/>
  </network>
  <flows>
    <flow id="1" protocol="rc" from="mac" to="fcc" bag="2ms" lmax="300B"/>
    <flow id="2" protocol="udp" from="mac" to="sensor fcc"/>
    <flow id="3" protocol="tt" from="mac" to="fcc" period="4ms" offset="1500us" lmax="200B" networks="A"/>
    <flow id="4" protocol="udp" from="sensor" to="fcc"/>
  </flows>
  <tasks duration="1s">
    <send flow="1" period="2ms" payload="100B" count="500"/> <receive flow="1"/>
    <send flow="2" period="5ms" payload="400B" count="200" offset="100us"/>
    <receive flow="2" on="sensor"/> <receive flow="2" on="fcc"/>
    <send flow="3" period="4ms" payload="182B" count="250"/> <receive flow="3"/>
    <send flow="4" period="5ms" payload="900B" count="200" offset="100us"/> <receive flow="4"/>
  </tasks>
  <limits>
    <limit measure="skew.max" at-most="1ms"/>
    <limit flow="1" measure="bag_spacing.min" at-least="1ms"/>
    <limit flow="3" measure="window_error.max" at-most="1us"/>
    <limit flow="4" measure="residence.max" at-most="1ms"/>
  </limits>
  <faults>
    <loss link="sa fcc" flow="1" sequence="10-19" sent-by="sa"/>
    <loss link="sb fcc" flow="1" sequence="15-29" sent-by="sb"/>
    <loss link="sensor sa" flow="2" sequence="5" sent-by="sa"/>
    <babble flow="4" from="300ms" until="310ms" period="1ms" length="200B"/>
  </faults>
</test>
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of the test above."""
    place = tmp_path_factory.mktemp("views")
    file = place / "t.xml"
    file.write_text(TEST, encoding="utf-8")
    return trial(file, place / "run").directory


@pytest.fixture(scope="module")
def judged(place: Path) -> Judgement:
    return results.judge(place)


def flow_of(judged: Judgement, number: int, to: str = "fcc") -> FlowResult:
    return next(f for f in judged.runs[0].flows if (f.plan.id, f.plan.destination) == (number, to))


def test_a_copy_lost_on_one_network_is_no_loss(judged: Judgement, place: Path) -> None:
    """The counts of the judgement against what the simulator knows that it did."""
    flow = flow_of(judged, 1)
    truth = pl.read_parquet(place / "truth" / "run-0000.parquet")
    lost = truth.filter(pl.col("kind").cast(pl.String) == "link-lost")
    on = {
        network: lost.filter((pl.col("flow") == 1) & (pl.col("port") == port))
        for network, port in (("A", 1), ("B", 2))
    }
    planted = {network: set(rows["sequence"].to_list()) for network, rows in on.items()}
    assert planted == {"A": set(range(10, 20)), "B": set(range(15, 30))}
    assert flow.lost_copies == {"A": 10, "B": 15}
    assert flow.counts["sent"] == 500
    assert flow.counts["duplicated"] == 0
    # A gap of more than one number fails the integrity check of a network once; the first after it is dropped there.
    assert len(planted["A"] & planted["B"]) <= flow.counts["lost"] <= len(planted["A"] & planted["B"]) + 2
    assert flow.counts["delivered"] + flow.counts["lost"] == 500


def test_each_receiver_of_a_multicast_message_has_its_own_outcome(judged: Judgement) -> None:
    sensor, fcc = flow_of(judged, 2, "sensor"), flow_of(judged, 2, "fcc")
    assert (sensor.counts["sent"], sensor.counts["lost"]) == (200, 1)
    assert (fcc.counts["sent"], fcc.counts["lost"]) == (200, 0)
    assert sensor.last_seen == {"switch-out at sa": 1}
    shown = results.show_json(judged)["runs"]
    assert isinstance(shown, list)
    assert [f["to"] for f in shown[0]["flows"] if f["flow"] == 2] == ["sensor", "fcc"]


def test_babble_is_unplanned_and_a_note(judged: Judgement) -> None:
    run = judged.runs[0]
    assert run.unplanned["never_sent"] == 10
    assert flow_of(judged, 4).counts == {**flow_of(judged, 4).counts, "sent": 200, "lost": 0, "duplicated": 0}
    check = next(check for check in run.checks if check.name == "unplanned")
    assert check.grade == Grade.NOTE


def test_an_imperfect_clock_is_named_and_makes_its_times_uncertain(judged: Judgement) -> None:
    check = next(check for check in judged.runs[0].checks if check.name == "imperfect-clocks")
    assert check.grade == Grade.NOTE
    assert check.observed.startswith("sensor (up to 5")
    theirs = flow_of(judged, 4).summaries["latency"].uncertainty
    others = flow_of(judged, 3).summaries["latency"].uncertainty
    assert theirs is not None
    assert others is not None
    assert theirs.clock == pytest.approx(2_000 + 3e-6 * 1e9 + 0.001)
    assert others.clock == 0


def test_residence_skew_spacing_and_windows(judged: Judgement, place: Path) -> None:
    """Against the records, one by one."""
    records = pl.read_parquet(place / "records" / "run-0000.parquet").with_columns(
        pl.col("point").cast(pl.String)
    )
    mine = records.filter((pl.col("flow") == 1) & ~pl.col("warm_up"))

    def timestamps(point: str, **where: int) -> dict[int, int]:
        chosen = mine.filter(pl.col("point") == point)
        for column, value in where.items():
            chosen = chosen.filter(pl.col(column) == value)
        return dict(chosen.select("sequence", "time").iter_rows())

    flow = flow_of(judged, 1)
    a, b = timestamps("wire-receive", port=1), timestamps("wire-receive", port=2)
    skew = [abs(b[k] - a[k]) / 1000 for k in sorted(a.keys() & b.keys())]
    assert sorted(flow.series["skew"].value) == pytest.approx(sorted(skew))
    assert flow.summaries["skew"].excluded == {"only one copy came": 500 - len(skew)}
    left = sorted(timestamps("wire-send", port=1).values())
    assert flow.series["bag_spacing"].value == pytest.approx(np.diff(left) / 1000)
    assert flow.series["bag_jitter"].value == pytest.approx(np.maximum(2e6 - np.diff(left) / 1000, 0))
    came, went = timestamps("switch-in", node=4), timestamps("switch-out", node=4)
    in_b = next(hop for hop in flow[HOPS] if hop.switch == "sb")
    took = [(went[k] - came[k]) / 1000 for k in went]
    assert in_b.n == 500
    assert (in_b.minimum, in_b.maximum) == pytest.approx((min(took), max(took)))
    # The plan's instants are of the longest frame, and this is one.
    window = flow_of(judged, 3).summaries["window_error"]
    assert window.n == 250
    assert window.maximum is not None
    assert window.minimum is not None
    assert abs(window.maximum) < 10
    assert abs(window.minimum) < 10
    assert all(limit.holds for limit in judged.runs[0].limits), judged.runs[0].limits


def test_the_views_show_who_waited(judged: Judgement) -> None:
    views = results.views(judged)
    assert {window.flow for window in views.windows} == {1, 2, 3, 4}
    for window in views.windows:
        assert 0 < len(window.frames) <= MOST_FRAMES
        assert any(bar.chosen for bar in window.frames)
        for lane in range(len(window.lanes)):
            bars = [bar for bar in window.frames if bar.lane == lane]
            assert all(bar.since <= bar.start < bar.end for bar in bars)
            # Never two frames on one wire.
            assert all(one.end <= next_.start + 1e-3 for one, next_ in itertools.pairwise(bars))
    assert [shape.node for shape in views.clocks] == ["sensor"]
    assert views.clocks[0].offset[0] == pytest.approx(2_000)
    figures = {figure.id for figure in build(judged, results.shapes(judged), views)}
    assert figures >= {"network", "frames", "queues", "clock-offsets"}


def test_frames_shorter_than_lmax_are_not_taken_for_early_ones(tmp_path: Path) -> None:
    """They are whole sooner than the planned instant, which is that of the longest frame."""
    file = tmp_path / "t.xml"
    file.write_text(TEST.replace('payload="182B"', 'payload="82B"'), encoding="utf-8")
    (schedule,) = (f.schedule for f in load(file).campaign.runs[0].flows if f.id == 3)
    assert schedule is not None
    assert schedule.early == 1_000_000 + 100 * 8 * 10_000


stays = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 20), st.integers(64, 1518)), max_size=60)


@given(stays, st.integers(1, 40), st.integers(1, 6), st.integers(1, 10))
def test_queues_are_what_is_there_however_they_are_read(
    stays: list[tuple[int, int, int]], batch: int, marks: int, near: int
) -> None:
    """Told in parts, as late as a batch after the frames came: greatest, its surroundings, and what is drawn."""
    came = np.array(sorted(at for at, _, _ in stays), dtype=np.int64)
    went = came + np.array([long for _, long, _ in stays], dtype=np.int64)
    length = np.array([size for _, _, size in stays], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_view, "QUEUE_MARKS", marks)
        patch.setattr(queue_view, "NEAR", near)
        port = queue_view._Port()
        for begin in range(0, 400, batch):
            here = (went >= begin) & (went < begin + batch)
            port.stay(came[here], went[here], length[here])
            # Nothing that is told later came before this.
            port.settle(begin - 20)
        shape = port.shape(0, "s", 1)
    if shape is None:
        assert not stays
        return
    instants = np.unique(np.concatenate([came, went]))
    there = (came <= instants[:, None]) & (instants[:, None] < went)
    size, count = there @ length, there.sum(axis=1)
    top = int(np.argmax(size))
    assert (shape.changes, shape.most_bytes, shape.most_frames) == (len(instants), size.max(), count.max())
    assert (shape.most_bytes_at, shape.most_frames_at) == (
        instants[top] / 1e12,
        instants[int(np.argmax(count))] / 1e12,
    )
    around = slice(max(top - near, 0), top + near)
    assert shape.near_t == pytest.approx((instants[around] - instants[top]) / 1e3)
    assert (shape.near_bytes == size[around]).all()
    drawn = np.searchsorted(instants, np.rint(shape.t * 1e12).astype(np.int64))
    assert (shape.bytes == size[drawn]).all()
    assert (shape.frames == count[drawn]).all()
    assert len(drawn) <= 5 * marks or len(drawn) == len(instants)
    assert shape.bytes.max() == size.max()
    assert shape.frames.max() == count.max()
    assert (shape.bytes[-1], shape.frames[-1]) == (0, 0)


def test_queues_are_the_same_in_one_batch_and_in_many(
    judged: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_recorded(judged.directory)
    whole = queue_view.queues(directory, judged.runs[0].plan)
    assert whole.unpaired == 0
    for size in (60, 1000):
        monkeypatch.setattr(queue_view, "BATCH", size)
        parts = queue_view.queues(directory, judged.runs[0].plan)
        assert parts.unpaired == 0
        for one, other in zip(whole.shapes, parts.shapes, strict=True):
            for field in one.__struct_fields__:
                assert np.array_equal(getattr(one, field), getattr(other, field)), field


def test_the_bound_of_a_clock_adds_up() -> None:
    clock = Clock(-500_000, -2000, 0, 100_000, (TemperatureStep(500_000_000_000, 1000),))
    assert clock.error_bound_ns(1e9) == pytest.approx(500 + 2000 + 500 + 100)
    assert Clock(wander_ppb=10, granularity=0).error_bound_ns(3e9) == pytest.approx(3 * 10 * 3)
