"""Clocks compared by exchanges: what is planted lies inside what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from chosen import also
from simulation import trial
from wiregauge import stats
from wiregauge.config import Exchange, Test
from wiregauge.measures import Judgement
from wiregauge.measures.metrics.clocks import corrected, run_clocks
from wiregauge.measures.metrics.recorded import open_recorded

US = 1e3


def exchanges(
    rng: np.random.Generator,
    offset: np.poly1d,
    *,
    n: int = 400,
    asymmetry: float = 0.0,
    queue: float = 5 * US,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, offset and delay of exchanges over 4 s: fixed delays of 10 µs, exponential queues."""
    t = np.sort(rng.uniform(0, 4, n))
    out = 10 * US + asymmetry / 2 + rng.exponential(queue, n)
    back = 10 * US - asymmetry / 2 + rng.exponential(queue, n)
    return t, offset(t) + (out - back) / 2, out + back


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    offset=st.floats(-1e9, 1e9),
    drift=st.floats(-1e5, 1e5),
    warming=st.floats(-500, 500),
    asymmetry=st.floats(-19, 19).map(lambda us: us * US),
    n=st.integers(1, 500),
)
def test_the_true_offset_is_inside_the_band_whatever_the_asymmetry(
    seed: int, offset: float, drift: float, warming: float, asymmetry: float, n: int
) -> None:
    """Without a stated asymmetry the band rests on nothing but delays not being negative."""
    truth = np.poly1d([warming, drift, offset])
    t, theta, delay = exchanges(np.random.default_rng(seed), truth, n=n, asymmetry=asymmetry)
    track = stats.offset_track(t, theta, delay)
    assert track is not None
    at = np.linspace(t[0], t[-1], 50)
    assert np.all(np.abs(track.offset_at(at) - truth(at)) <= track.uncertainty_at(at) + 1e-3)


def test_a_stated_asymmetry_narrows_the_band_and_still_covers() -> None:
    covered, narrower = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = np.poly1d([rng.uniform(-100, 100), rng.uniform(-5e4, 5e4), rng.uniform(-1e6, 1e6)])
        t, theta, delay = exchanges(rng, truth, asymmetry=rng.uniform(-400, 400))
        stated = stats.offset_track(t, theta, delay, asymmetry_ns=400.0)
        unstated = stats.offset_track(t, theta, delay)
        assert stated is not None
        assert unstated is not None
        at = np.linspace(t[0], t[-1], 40)
        covered.append(np.mean(np.abs(stated.offset_at(at) - truth(at)) <= stated.uncertainty_at(at)))
        narrower.append(np.median(stated.uncertainty_at(at)) < np.median(unstated.uncertainty_at(at)) / 3)
    assert np.mean(covered) >= 0.95
    assert all(narrower)


def test_the_drift_is_found_within_its_uncertainty() -> None:
    hits = 0
    for seed in range(100):
        t, theta, delay = exchanges(np.random.default_rng(seed), np.poly1d([20_000.0, 0.0]))
        track = stats.offset_track(t, theta, delay)
        assert track is not None
        assert track.drift is not None
        assert track.drift_uncertainty is not None
        hits += abs(track.drift - 20) <= track.drift_uncertainty
    assert hits >= 95


def test_a_step_widens_the_band_where_it_happened_and_nowhere_else() -> None:
    rng = np.random.default_rng(1)
    t, theta, delay = exchanges(rng, np.poly1d([0.0]), queue=500.0)
    theta = theta + np.where(t > 2, 1e6, 0.0)
    track = stats.offset_track(t, theta, delay)
    assert track is not None
    assert track.uncertainty_at(2.0) > 400 * US
    assert track.uncertainty_at([0.5, 3.5]).max() < 15 * US


def test_beyond_the_exchanges_the_band_grows() -> None:
    t, theta, delay = exchanges(np.random.default_rng(2), np.poly1d([5e4, 0.0]))
    track = stats.offset_track(t, theta, delay)
    assert track is not None
    width = track.uncertainty_at([4.0, 8.0, 16.0])
    assert width[0] < width[1] < width[2]
    assert abs(track.offset_at(16.0) - 16 * 5e4) <= width[2]


WAYS = ("kept", "stepped", "slewed", "frequency jumped", "stepped forth and back")


class Course(Struct):
    """Exchanges with a clock, and its true offset."""

    way: str
    size: float
    at: float
    t: np.ndarray
    theta: np.ndarray
    delay: np.ndarray
    true: Callable[[np.ndarray], np.ndarray]


def course(seed: int) -> Course:
    """A clock that is kept, set or driven by 1 µs to 1 ms; exchanges few or many, with all shapes of queues."""
    rng = np.random.default_rng(seed)
    way = WAYS[seed % len(WAYS)]
    period, length = rng.choice([0.005, 0.01, 0.02, 0.05]), rng.choice([3.0, 6.0, 12.0])
    n = int(length / period)
    t = np.arange(n) * period + rng.uniform(0, period / 2, n)
    queue = rng.choice([0.2, 1, 5, 20]) * US

    def met() -> np.ndarray:
        shapes: list[Callable[[], np.ndarray]] = [
            lambda: rng.exponential(queue, n),
            lambda: rng.pareto(1.5, n) * queue,
            lambda: rng.uniform(0, queue, n) + (rng.random(n) < 0.05) * rng.uniform(0, 1e6, n),
        ]
        return shapes[seed // len(WAYS) % 3]()

    fixed, share = 2 * rng.uniform(2, 40) * US, rng.uniform(0, 1)
    one_sided = 5 if rng.integers(0, 4) == 0 else 1
    out, back = fixed * share + one_sided * met(), fixed * (1 - share) + met()
    drift, size = rng.uniform(-5e4, 5e4), 10 ** rng.uniform(0, 3) * US * rng.choice([-1, 1])
    at, rate, jump = (
        rng.uniform(t[0] + 0.1 * length, t[-1] - 0.1 * length),
        *rng.uniform([1e4, -2e4], [5e5, 2e4]),
    )
    again = at + rng.uniform(0.3, 1.0)
    bent: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "kept": lambda x: 0 * x,
        "stepped": lambda x: np.where(x >= at, size, 0.0),
        "slewed": lambda x: np.clip((x - at) / abs(size) * rate, 0, 1) * size,
        "frequency jumped": lambda x: np.maximum(x - at, 0) * jump,
        "stepped forth and back": lambda x: np.where((x >= at) & (x < again), size, 0.0),
    }

    def true(x: np.ndarray) -> np.ndarray:
        return np.asarray(drift * x + bent[way](x))

    return Course(way, size, at, t, true(t) + (out - back) / 2, out + back, true)


def outside(seed: int) -> int:
    """How many of 20 001 instants have a true offset outside the band."""
    one = course(seed)
    track = stats.offset_track(one.t, one.theta, one.delay)
    assert track is not None
    x = np.linspace(one.t[0], one.t[-1], 20_001)
    return int(np.sum(np.abs(track.offset_at(x) - one.true(x)) > track.uncertainty_at(x) + 1e-3))


@pytest.mark.parametrize("first", [0, *map(also, range(150, 3000, 150))])
def test_the_band_holds_at_every_instant_however_a_clock_is_set_or_driven(first: int) -> None:
    assert [seed for seed in range(first, first + 150) if outside(seed)] == []


def test_a_step_beyond_what_queues_add_is_told_and_a_clock_that_is_kept_is_not() -> None:
    told = dict.fromkeys(WAYS, 0)
    for seed in range(200):
        one = course(seed)
        track = stats.offset_track(one.t, one.theta, one.delay)
        assert track is not None
        told[one.way] += bool(track.moved)
        if one.way == "stepped":
            assert all(moved.begin - 0.3 <= one.at <= moved.end + 0.3 for moved in track.moved)
            assert all(moved.by <= abs(one.size) + 40 * US for moved in track.moved)
    assert told["kept"] == told["frequency jumped"] == 0
    assert told["stepped"] > 20
    t, theta, delay = exchanges(np.random.default_rng(3), np.poly1d([2e4, 0.0]), queue=2 * US)
    track = stats.offset_track(t, theta + np.where(t > 2.0, 18 * US, 0.0), delay)
    assert track is not None
    (moved,) = track.moved
    assert moved.begin <= 2.0 + 0.05
    assert moved.end >= 2.0 - 0.05
    assert 5 * US < moved.by <= 18 * US


def test_the_greatest_uncertainty_is_that_of_every_instant() -> None:
    """A step is as narrow as two exchanges are apart: no picture's points need meet it."""
    t, theta, delay = exchanges(np.random.default_rng(4), np.poly1d([0.0]), queue=500.0)
    track = stats.offset_track(t, theta + np.where(t > 2.0, 1e6, 0.0), delay)
    assert track is not None
    fine = np.linspace(0.5, 3.5, 100_001)
    assert track.greatest_uncertainty(0.5, 3.5) >= track.uncertainty_at(fine).max()
    assert track.greatest_uncertainty(2.6, 3.5) < 20 * US


def test_nothing_is_made_of_nothing() -> None:
    assert stats.offset_track([], [], []) is None
    assert stats.offset_track([np.nan], [1.0], [1.0]) is None
    single = stats.offset_track([1.0], [5.0], [10.0])
    assert single is not None
    assert single.drift is None
    assert (float(single.offset_at(9.0)), float(single.uncertainty_at(1.0))) == (5.0, 5.0)
    assert float(single.uncertainty_at(2.0)) == 5.0 + 200 * US, "nothing is known of its drift"


# -- in simulation, through the whole program -------------------------------------------------------------------

PLANTED = """<test xmlns="urn:wiregauge:test:2" name="planted" seed="{seed}">
  <network host="ideal">
    <end-system name="mac"><clock {mac}/></end-system>
    <end-system name="sensor">
      <clock {sensor}>{warmer}</clock>
      <host interrupt-latency="{late}us"/>
    </end-system>
    <end-system name="flooder"/>
    <switch name="sw1"/>
    <link between="mac sw1" rate="100Mbit/s"/>
    <link between="sensor sw1" rate="100Mbit/s"/>
    <link between="flooder sw1" rate="100Mbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="mac" to="sensor" deadline="200us"/>
    <flow id="20" protocol="udp" from="sensor" to="mac"/>
  </flows>
  <synchronise {asymmetry}><exchange period="5ms"/></synchronise>
  <tasks warm-up="500ms" duration="4s">
    <send flow="10" period="7ms" payload="64B"/><receive flow="10"/>
    <send flow="20" period="9ms" payload="640B"/><receive flow="20"/>
    <inject on="flooder" to="sensor" load="{load}%"/>
  </tasks>
</test>
"""


def run(text: str, place: Path) -> Judgement:
    place.mkdir(parents=True)
    file = place / "t.xml"
    file.write_text(text)
    return trial(file, place / "out")


def planted(seed: int) -> str:
    rng = np.random.default_rng(seed)

    def clock(most_us: float) -> str:
        return (
            f'offset="{rng.uniform(-most_us, most_us):.3f}us" drift="{rng.uniform(-60, 60):.3f}ppm" '
            f'wander="{rng.uniform(0, 60):.0f}ppb"'
        )

    late = int(rng.integers(0, 6))
    stated = bool(rng.integers(0, 2))
    return PLANTED.format(
        seed=seed,
        mac=clock(50),
        sensor=clock(20_000),
        warmer='<temperature at="2s" drift="0.5ppm"/>' if rng.integers(0, 2) else "",
        late=late,
        # The receiver's interrupt latency is met on the way out only.
        asymmetry=f'asymmetry="{late + 1}us"' if stated else "",
        load=int(rng.integers(0, 60)),
    )


def share_covered(place: Path) -> tuple[float, float]:
    """Share of messages whose true latency is inside the interval of theirs, and of measured flows' means."""
    directory = open_recorded(place / "out")
    plan = directory.plan.runs[0]
    clocks = run_clocks(directory, plan)
    raw = directory.messages(0)
    assert raw is not None
    names = directory.plan.network.names
    mended = corrected(raw, plan.flows, names, clocks)
    truth = pl.read_parquet(place / "out" / "truth" / "run-0000.parquet")
    told = truth.filter(pl.col("kind").cast(pl.String) == "clock-offset")
    inside = []
    for flow in plan.flows:
        mine = (pl.col("flow") == flow.id) & ~pl.col("warm_up") & pl.col("rx_app").is_not_null()
        before, after = raw.filter(mine), mended.filter(mine)

        def true(column: str, name: str, before: pl.DataFrame = before) -> np.ndarray:
            own = told.filter(pl.col("node") == names.index(name)).sort("time")
            shown = own["time"].to_numpy() + own["value"].to_numpy()
            shown_at = before[column].to_numpy()
            off: np.ndarray = np.interp(shown_at, shown, own["value"].to_numpy())
            return np.asarray(shown_at / 1e3 - off / 1e3)

        real = true("rx_app", flow.destination) - true("tx_app", flow.source)
        measured = (after["rx_app"] - after["tx_app"]).to_numpy() / 1e3
        bound = clocks.offsets[flow.source][1] + clocks.offsets[flow.destination][1]
        inside.append(np.abs(measured - real) <= bound + 1.0)
    return float(np.mean(np.concatenate(inside))), max(clock.uncertainty for clock in clocks.measured)


def test_true_latencies_are_inside_the_printed_interval(tmp_path: Path) -> None:
    """Planted: offset, drift and wander on both ends, warming, asymmetry within its bound, load on the way."""
    shares = []
    for seed in range(12):
        run(planted(seed), tmp_path / str(seed))
        share, width = share_covered(tmp_path / str(seed))
        shares.append(share)
        assert width < 200 * US, "an interval that covers by being useless"
    assert np.mean(shares) >= 0.95
    assert min(shares) >= 0.9


def test_what_is_planted_is_found_and_shown(tmp_path: Path) -> None:
    text = PLANTED.format(
        seed=1,
        mac='drift="0ppb"',
        sensor='offset="5ms" drift="40ppm"',
        warmer="",
        late=0,
        asymmetry="",
        load=0,
    )
    judged = run(text, tmp_path / "a")
    (clock,) = judged.runs[0].clocks
    assert (clock.node, clock.reference, clock.timestamps, clock.stated) == ("sensor", "mac", "driver", False)
    assert clock.drift is not None
    assert clock.drift == pytest.approx(40, abs=0.1)
    assert clock.offset[0] == pytest.approx(5e6, abs=clock.uncertainty)
    flow = next(flow for flow in judged.runs[0].flows if flow.plan.id == 10)
    # 64 B over UDP and two links of 100 Mbit/s with a switch between: about 30 µs, not 5 ms.
    assert flow.summaries["latency"].minimum == pytest.approx(30 * US, abs=clock.uncertainty)
    assert flow.counts["late"] == 0, "late by its own clocks, not by the network"
    assert not any(flow.plan.id > 20 for flow in judged.runs[0].flows), "an exchange is no flow under test"
    told = json.loads((tmp_path / "a" / "out" / "measures.json").read_text())
    assert told["runs"][0]["clocks"][0]["node"] == "sensor"


@pytest.mark.parametrize(("otherwise", "word"), [("grade", "DEGRADED"), ("refuse", "INVALID")])
def test_a_gate_that_clocks_do_not_keep_is_seen(tmp_path: Path, otherwise: str, word: str) -> None:
    text = PLANTED.format(
        seed=1, mac='drift="0ppb"', sensor='offset="1ms"', warmer="", late=0, load=0,
        asymmetry=f'max-offset="1us" on-failure="{otherwise}"',
    )  # fmt: skip
    judged = run(text, tmp_path / "a")
    gate = next(check for check in judged.runs[0].checks if check.name == "clock-gate")
    assert (gate.grade.word, gate.grade.word in judged.validity.word) == (word, True)
    assert "sensor" in gate.observed


def test_a_sweep_and_its_limits_leave_exchanges_alone() -> None:
    test = Test("swept").end_system("mac").end_system("sensor").end_system("other").switch("sw1")
    for name in ("mac", "sensor", "other"):
        test.link(name, "sw1", rate="1Gbit/s")
    test.flow(65_534, protocol="udp", from_="mac", to="sensor").timing(duration="1s", warm_up="100ms")
    test.send(65_534, period="10ms", payload="64B").receive(65_534)
    test.synchronise(exchange=Exchange(to="sensor other")).axis("payload", ["64B", "512B"])
    test.axis("protocol", ["udp", "raw"]).limit("lost", at_most=0)
    for run in test.compile().campaign.runs:
        exchanged = [flow for flow in run.flows if flow.exchange]
        assert [flow.id for flow in exchanged] == [65_533, 65_532], "numbers that no flow of the test has"
        assert {flow.protocol for flow in exchanged} == {"udp"}
        assert {run.send_of[flow.id].payload for flow in exchanged} == {18}
        # Before, during and after: 10 in the warm-up, and beyond the 100 of the measured part into the drain.
        assert {run.send_of[flow.id].warm_up_count for flow in exchanged} == {10}
        assert all(run.send_of[flow.id].count > 100 for flow in exchanged)
        assert run.duration == 10**12
