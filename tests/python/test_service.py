"""What a flow's receiver was served, against a slow reading of the same rows in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge import stats
from wiregauge.measures.definitions import PAIR_QUANTILES, QUANTILES
from wiregauge.measures.flow_measures import FLOW_MEASURES
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.flow_measures.pairs import pool_pairs
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.batching import Batch, Pending
from wiregauge.measures.metrics.flow_plan import FlowPlan, Schedule
from wiregauge.measures.metrics.hops import Hop, pool_hops
from wiregauge.measures.metrics.pairs import OUTWARD, RETURN, Correction, PairLatency, pair_latencies
from wiregauge.measures.metrics.percentiles import unsupported
from wiregauge.measures.metrics.pooling import pooled
from wiregauge.measures.metrics.summarise import summarise
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.records.reported import TrackedFlow

Row = dict[str, Any]
STAMPS = (*OUTWARD, *RETURN, "tx_wire_b", "rx_wire_b")


def plan(**more: Any) -> FlowPlan:
    return FlowPlan(
        **{
            "id": 10,
            "protocol": "rc",
            "source": "a",
            "destination": "b",
            "path": ("a", "s", "b"),
            "deadline_ns": 40.0,
            "relayed": False,
            "payload": 100,
            "period_ns": 100.0,
            "count": 0,
            "planted_faults": 0,
            "both_networks": True,
            "bag_ns": 100.0,
            "bag_jitter_ns": 5.0,
            "skew_max_ns": 7.0,
            "link_bps": 10**9,
            "schedule": Schedule(100.0, 20.0, 3.0, 9.0),
            **more,
        }
    )


@st.composite
def messages(draw: st.DrawFn) -> list[Row]:
    """Rows of a measured part in the order of sequence; a sequence number may be missing (never sent)."""
    rows: list[Row] = []
    sequence = 0
    for _ in range(draw(st.integers(1, 25))):
        sequence += draw(st.sampled_from([1, 1, 1, 2]))
        intended = sequence * 100_000
        sent = intended + 1000 * draw(st.integers(0, 30))
        wire = sent + 1000 * draw(st.integers(0, 20))
        came = wire + 1000 * draw(st.integers(1, 150))
        lost = draw(st.booleans())
        rows.append(
            {
                "sequence": sequence,
                "intended": intended,
                "tx_app": sent,
                "tx_drv": draw(st.sampled_from([None, sent + 5])),
                "tx_wire": wire,
                "tx_wire_b": wire,
                "rx_wire": None if lost else came,
                "rx_wire_b": draw(st.sampled_from([None, came + 7_000, came - 9_000])),
                "rx_drv": None if lost else came + 10,
                "rx_app": None if lost else came + 20,
                "length": draw(st.sampled_from([0, 164])),
                "lost": lost,
            }
        )
    arrived = sorted((row["rx_app"], row["sequence"]) for row in rows if not row["lost"])
    place = {sequence: k for k, (_, sequence) in enumerate(arrived)}
    for row in rows:
        own = place.get(row["sequence"])
        before = [] if own is None else [k for k in range(own) if arrived[k][1] > row["sequence"]]
        row["reordered"] = bool(before)
        row["reorder_extent"] = own - before[0] if own is not None and before else 0
        row["late"] = not row["lost"] and row["rx_app"] - row["tx_app"] > 40_000
    return rows


def table(rows: list[Row]) -> pl.DataFrame:
    whole = {name: pl.Int64() for name in (*STAMPS, "sequence", "length", "reorder_extent")}
    schema = {**whole, "reordered": pl.Boolean(), "late": pl.Boolean()}
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in schema}, schema=schema)


def alone(pending: Pending[Any]) -> Any:
    """The result of one by itself."""
    (found,) = Batch().results([pending])
    return found


def served(rows: list[Row], flow: FlowPlan) -> Any:
    """Whatever is served, by name, of a flow whose ends are both seen."""
    lost = np.array([row["lost"] for row in rows])
    run: Any = None
    between: Any = None
    part = Part.whole(table(rows))
    reading = FlowReading(
        run, flow, part, part, TrackedFlow(flow.id), between, Correction(0.0, 0.0, 0.0), (), {}, lost,
        np.zeros_like(lost), None, None,
    )  # fmt: skip
    those = {name: one for name, one in FLOW_MEASURES.items() if isinstance(one, Served) or name == "goodput"}
    found = {name: one.computed(reading) for name, one in those.items()}
    return SimpleNamespace(
        **{name: alone(one) if isinstance(one, Pending) else one for name, one in found.items()}
    )


@given(messages())
def test_service_follows_from_the_rows_alone(rows: list[Row]) -> None:
    found = served(rows, plan())
    failed = [row["lost"] or row["late"] for row in rows]
    down = [now and (before or all(failed)) for before, now in zip([False, *failed], failed, strict=False)]
    assert found.availability.ratio == pytest.approx(float(1 - Fraction(sum(down), len(rows))))
    assert found.deadline.missed.count == sum(failed)
    over = [row["rx_app"] - row["tx_app"] - 40_000 for row in rows if row["late"]]
    assert found.deadline.late == len(over)
    if over:
        assert found.deadline.tardiness_max_ns == pytest.approx(max(over) / 1000)
        assert found.deadline.tardiness_mean_ns == pytest.approx(float(Fraction(sum(over), len(over)) / 1000))
    numbers = [row["sequence"] for row in rows if row["lost"]]
    assert found.losses.least_distance == min(
        (later - earlier for earlier, later in pairwise(numbers)), default=None
    )
    assert sum(found.losses.lengths.values()) == found.losses.periods
    assert sum(length * count for length, count in found.losses.lengths.items()) == len(numbers)
    for share in (found.availability.down, found.deadline.missed, found.reordering.share):
        assert 0 <= share.low <= (share.ratio or 0.0) <= share.high <= 1


@given(messages())
def test_order_follows_from_the_arrivals(rows: list[Row]) -> None:
    found = served(rows, plan()).reordering
    arrived = sorted((row["rx_app"], row["sequence"]) for row in rows if not row["lost"])
    waits, degrees = [], []
    for k, (at, sequence) in enumerate(arrived):
        higher = [j for j in range(k) if arrived[j][1] > sequence]
        degree = next((k - 1 - j for j in range(k - 1, -1, -1) if arrived[j][1] < sequence), k)
        degrees.append(degree)
        if higher:
            waits.append(at - arrived[higher[0]][0])
    assert found.share.count == len(waits)
    assert found.share.n == len(arrived)
    assert found.late_time_max_ns == (pytest.approx(max(waits) / 1000) if waits else None)
    assert found.n_reordered == {n: sum(degree >= n for degree in degrees) for n in (1, 2, 3)}
    assert found.n_max == max(degrees, default=0)
    assert found.extent_max == max((row["reorder_extent"] for row in rows), default=0)


def too_early(at: list[int], bag: int, jitter: int) -> list[int]:
    """How much earlier than the contract each comes: measured from those before that conform, for only they count.

    From the one j that conforms on, one more is due each BAG: after the c of them from j up to k, k is due at
    at[j] + c BAG.
    """
    early: list[int] = []
    for k, now in enumerate(at):
        kept = [j for j in range(k) if early[j] <= jitter]
        due = [at[j] + bag * (len(kept) - place) for place, j in enumerate(kept)]
        early.append(max([0, *(instant - now for instant in due)]))
    return early


@given(messages())
def test_contracts_count_what_lies_outside_them(rows: list[Row]) -> None:
    found = {one.of: one for one in served(rows, plan()).conformity}
    wire = sorted(row["tx_wire"] for row in rows)
    early = too_early(wire, 100_000, 5_000)
    assert found["bag"].outside.count == sum(by > 5_000 for by in early)
    assert found["bag"].outside.n == len(wire)
    assert found["bag"].worst_ns == pytest.approx(max(early) / 1000)
    # A copy that was sent and did not come is lost: its message has no skew, and none is missing.
    assert (found["bag"].missing, found["skew"].missing) == (0, 0)
    both = [(row["rx_wire"], row["rx_wire_b"]) for row in rows if row["rx_wire"] and row["rx_wire_b"]]
    assert found["skew"].outside.n == len(both)
    assert found["skew"].outside.count == sum(abs(b - a) > 7_000 for a, b in both)
    errors = [(row["rx_wire"] - 20_000 + 50_000) % 100_000 - 50_000 for row in rows if row["rx_wire"]]
    assert found["window"].outside.count == sum(not -3_000 <= error <= 9_000 for error in errors)
    assert found["window"].outside.n == len(errors)


@given(messages())
def test_rates_are_counts_over_spans(rows: list[Row]) -> None:
    found = served(rows, plan())
    sent = sorted(row["tx_app"] for row in rows)
    if len(rows) < 2 or sent[0] == sent[-1]:
        assert found.rates is None
        return
    steps = rows[-1]["sequence"] - rows[0]["sequence"]
    intended = Fraction(steps, rows[-1]["intended"] - rows[0]["intended"]) * 10**12
    offered = Fraction(len(rows) - 1, sent[-1] - sent[0]) * 10**12
    assert found.rates.intended_per_s == pytest.approx(float(intended))
    assert found.rates.offered_per_s.value == pytest.approx(float(offered))
    if found.rates.offered_per_s.low is not None:
        assert found.rates.offered_per_s.low <= found.rates.offered_per_s.value
    if any(row["length"] for row in rows):
        assert found.rates.on_wire(1.0) == 8 * (164 + AROUND_FRAME)
    arrived = sorted(row["rx_app"] for row in rows if not row["lost"])
    due = [row["intended"] for row in rows]
    came = [row["intended"] for row in rows if not row["lost"]]
    if len(arrived) < 2:
        assert found.goodput.value == 0
        return
    over = arrived[-1] - arrived[0] + min(came) - min(due) + max(due) - max(came)
    if over:
        wanted = Fraction(800 * (len(arrived) - 1), over) * 10**12
        assert found.goodput.value == pytest.approx(float(wanted))
    else:
        assert found.goodput is None


@given(messages())
def test_every_pair_of_points_has_its_latency(rows: list[Row]) -> None:
    told = alone(pair_latencies(Part.whole(table(rows)), plan(), Correction(2.0, 1.0, 0.5)))
    found = {(p.start, p.end): p for p in told}
    sender = {"intended", "tx_app", "tx_drv", "tx_wire"}
    for start, end in combinations(OUTWARD, 2):
        took = [row[end] - row[start] for row in rows if row[start] is not None and row[end] is not None]
        if not took:
            assert (start, end) not in found
            continue
        shift = 2.0 if start in sender and end not in sender else 0.0
        pair = found.pop((start, end))
        assert (pair.n, pair.missing) == (len(took), len(rows) - len(took))
        assert pair.minimum == pytest.approx(min(took) / 1000 - shift)
        assert pair.maximum == pytest.approx(max(took) / 1000 - shift)
        assert pair.mean == pytest.approx(float(Fraction(sum(took), len(took)) / 1000) - shift)
        assert pair.bound == (1.5 if shift else 0.5)
    assert not found


@given(messages(), messages())
@settings(max_examples=50)
def test_repeats_add_their_counts_and_keep_their_extremes(first: list[Row], second: list[Row]) -> None:
    runs = [served(rows, plan()) for rows in (first, second)]
    deadline = pooled([run.deadline for run in runs])
    assert deadline.missed.count == sum(run.deadline.missed.count for run in runs)
    assert deadline.missed.n == len(first) + len(second)
    losses = pooled([run.losses for run in runs])
    assert losses.longest == max(run.losses.longest for run in runs)
    assert losses.periods == sum(run.losses.periods for run in runs)
    assert losses.lengths == Counter(runs[0].losses.lengths) + Counter(runs[1].losses.lengths)
    order = pooled([run.reordering for run in runs])
    assert order.n_reordered[1] == sum(run.reordering.n_reordered[1] for run in runs)
    assert [
        pooled(members).outside.count for members in zip(*(run.conformity for run in runs), strict=True)
    ] == [
        a.outside.count + b.outside.count for a, b in zip(runs[0].conformity, runs[1].conformity, strict=True)
    ]
    pairs = [
        alone(pair_latencies(Part.whole(table(rows)), plan(), Correction(0.0, 0.0, 0.0), keep=True))
        for rows in (first, second)
    ]
    for pair in pool_pairs(pairs, {}):
        own = [p for run in pairs for p in run if (p.start, p.end) == (pair.start, pair.end)]
        assert pair.n == sum(p.n for p in own)
        assert pair.maximum == max(p.maximum for p in own)
        assert pair.mean == pytest.approx(sum(p.mean * p.n for p in own) / pair.n)


NO_VALUES = unsupported({name: QUANTILES[name] for name in PAIR_QUANTILES})


def test_pairs_of_repeats_that_are_a_measure_are_told_like_it() -> None:
    rng = np.random.default_rng(3)
    values = [rng.normal(50_000, 1000, 400) for _ in range(3)]
    summary = summarise("latency", values, {}, clock_ns=1.0, timestamp_ns=2.0)
    runs = [
        tuple(
            PairLatency(*pair, 400, 0, float(v.min()), float(v.mean()), 100.0, NO_VALUES, float(v.max()), 3.0)
            for pair in (("tx_app", "rx_app"), ("tx_app", "tx_drv"))
        )
        for v in values
    ]
    named, other = pool_pairs(runs, {"latency": summary})
    assert named.percentiles == {name: summary.percentiles[name] for name in ("p50", "p99")}
    assert summary.uncertainty is not None
    assert named.half_width == summary.uncertainty.sampling + 3.0
    assert other.percentiles == NO_VALUES
    assert other.n == named.n
    assert other.half_width == pytest.approx(named.half_width)


@pytest.mark.parametrize("size", [400, 20_000])
def test_pairs_of_repeats_without_a_measure_have_the_percentiles_of_all_values(size: int) -> None:
    rng = np.random.default_rng(4)
    each = [rng.integers(40_000_000, 60_000_000, size) + 1_000_000 * k for k in range(3)]
    runs = [
        alone(
            pair_latencies(
                Part.whole(table([{"tx_drv": 0, "tx_wire": int(value)} for value in values])),
                plan(asked=("p99.9",), asked_of_pairs=("p99.9",)),
                Correction(0.0, 0.0, 0.0),
                keep=True,
            )
        )
        for values in each
    ]
    (pooled,) = (pair for pair in pool_pairs(runs, {}) if (pair.start, pair.end) == ("tx_drv", "tx_wire"))
    ascending = np.sort(np.concatenate(each)) / 1000
    sides = [np.sort(values) / 1000 for values in each]
    assert list(pooled.percentiles) == ["p50", "p99", "p99.9"]
    for found in pooled.percentiles.values():
        if len(ascending) < found.needed:
            assert found.value is None
            continue
        wanted = stats.repeated_quantile_interval(sides, ascending, found.q)
        # Exact below as many values as a run keeps, and at the ends; between, to within what a bucket holds: a rank in
        # 8192 of each run.
        off = 0.0 if size <= 4096 or found.q > 0.99 else 10_000.0 * 20 / 4096
        for one, other in (
            (found.value, stats.quantile(ascending, found.q)),
            (found.low, wanted.low),
            (found.high, wanted.high),
        ):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one == pytest.approx(other, abs=max(off, 1e-9))
    part = Part.whole(table([{"tx_drv": 0, "tx_wire": 1}] * 400))
    unkept = alone(pair_latencies(part, plan(), Correction(0.0, 0.0, 0.0)))
    assert pool_pairs([unkept] * 2, {})[0].percentiles["p50"].value is None


def test_the_mean_of_a_hop_has_an_uncertainty() -> None:
    def hop(mean: float, n: int = 100) -> Hop:
        return Hop("sw1", 2, n, mean - 5, mean, 1.5, None, mean + 5, 1.0)

    (one,) = pool_hops([[hop(10.0)]])
    assert one.half_width is None, "a single run tells of no spread between runs"
    (pooled,) = pool_hops([[hop(10.0)], [hop(12.0)], [hop(14.0)]])
    half = stats.repeated_mean_half_width(np.array([10.0, 12.0, 14.0]), np.full(3, 1 / 3))
    assert half is not None
    assert pooled.half_width == pytest.approx(half + 1.0)
    assert pooled.mean == pytest.approx(12.0)
