"""Two run directories side by side: what is paired, found and not claimed, and every way it can go wrong."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema_rs import Draft202012Validator, meta
from msgspec.structs import replace
from rich.console import Console

from simulation import trial
from synthetic import Columns, Recipe, make
from test_report import EVIL, Page
from wiregauge import measures, report, results
from wiregauge.measures.comparing import Comparison, MatchError, compare, read_threshold
from wiregauge.plan.quantity import canonical
from wiregauge.results.comparing import compare_json, compare_schema_path, compare_text
from wiregauge.results.comparing.text import compare_headline, verdict_text, verdict_word
from wiregauge.stats import Estimate

SMALL = Recipe(protocols=("udp",), payloads=(64, 1472), messages=1000, loss=0)
ONE = replace(SMALL, payloads=(64,))
SCHEMA = json.loads(compare_schema_path().read_text())


def scenario(delay: str = "2us", seed: int = 1, load_: str = "0%", faults: str = "") -> str:
    """A relayed and a one-way flow over one switch, beside a flood."""
    nodes = "".join(f'<end-system name="{name}"/>' for name in ("mac", "sensor", "flooder"))
    links = "".join(f'<link between="{name} sw1" rate="100Mbit/s"/>' for name in ("mac", "sensor", "flooder"))
    flood = (
        f'<inject on="flooder" to="sensor" load="{load_}" payload="1472B" burst="1"/>'
        if load_ != "0%"
        else ""
    )
    return (
        f'<test xmlns="urn:wiregauge:test:2" name="compared" seed="{seed}"><network>{nodes}'
        f'<switch name="sw1" delay="{delay}"/>{links}</network>'
        '<flows><flow id="10" protocol="udp" from="mac" to="sensor"/>'
        '<flow id="20" protocol="udp" from="mac" to="sensor"/></flows>'
        '<tasks warm-up="10ms"><send flow="10" period="2ms" payload="64B" count="1000"/><receive flow="10"/>'
        '<send flow="20" period="2ms" payload="64B" count="1000" offset="1ms"/>'
        f'<relay flow="20" on="sensor">{faults}</relay>{flood}</tasks></test>'
    )


class Bench:
    """Simulates a test once, however many tests of this module compare it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.get = cache(self._get)

    def _get(self, **settings: Any) -> measures.Judgement:
        name = (
            "-".join(f"{key}{re.sub('[^0-9a-z]', '', str(value))}" for key, value in settings.items())
            or "base"
        )
        file = self._place / f"{name}.xml"
        file.write_text(scenario(**settings))
        return trial(file, self._place / name)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def made(path: Path, recipe: Recipe = SMALL) -> measures.Judgement:
    return results.judge(make(path, recipe))


# -- verdicts -------------------------------------------------------------------------------------------------------


def test_a_run_is_the_same_as_itself(bench: Bench) -> None:
    found = compare(bench.get(), bench.get(), thresholds=[read_threshold("latency=1ns")])
    assert (found.verdict, found.exit_code, found.said) == ("same", 0, ())
    for flow in found.flows:
        assert all(measure.identical for measure in flow.measures.values())
        assert all(s.shift.value == 0 for m in flow.measures.values() for s in m.shifts)
        # The very same values are the same within any threshold, however little the data could tell otherwise.
        assert {shift.basis for name, shift in flow.judged if name.startswith("latency")} == {"identical"}


def burst_lost(columns: Columns, flow: int) -> None:
    columns["lost"][-150:] = True
    columns["copies"][-150:] = 0
    columns["reordered"][-150:] = False
    for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
        columns["present"][name][-150:] = False


def test_one_burst_of_losses_is_the_same_as_itself_and_tells_nothing_of_another_run(tmp_path: Path) -> None:
    """One event decides no share. In another run a fault strikes the very same messages and that proves nothing."""
    recipe = replace(ONE, alter=burst_lost)
    base, other = made(tmp_path / "a", recipe), made(tmp_path / "b", replace(recipe, seed=8))
    for thresholds in ((), (read_threshold("lost=0.1%"),)):
        twins, runs = (compare(base, new, thresholds=thresholds) for new in (base, other))
        assert twins.verdict == "same"
        assert {flow.shares["lost"].shift.basis for flow in twins.flows} == {"identical"}
        for flow in runs.flows:
            lost = flow.shares["lost"]
            assert (lost.base_count, lost.new_count) == (150, 150)
            assert (lost.shift.verdict, lost.shift.basis) == (
                "undecided",
                "open" if thresholds else "few-events",
            )
            assert thresholds or "lost 150 of 1000 → 150 of 1000, worth 1 event: too few" in flow.reason


def test_seeds_of_one_test_are_the_same_at_the_stated_rate(bench: Bench) -> None:
    """At most 5 % of comparisons may raise an alarm: of 15 here more than 3 come by chance 1 time in 180.

    Ten messages lie beyond the p99 of a side. Where they happen to lie in few bunches no change of it, however great,
    would have been found, and the row says so instead of "same" (decision 14); every other figure is decided.
    """
    judgements = [bench.get(seed=seed) for seed in range(1, 7)]
    pairs = [(a, b) for k, a in enumerate(judgements) for b in judgements[k + 1 :]]
    found = [compare(a, b) for a, b in pairs]
    verdicts = [one.verdict for one in found]
    assert verdicts.count("same") + verdicts.count("undecided") >= len(pairs) - 3
    assert verdicts.count("same") >= len(pairs) // 2
    for one in found:
        assert undecided_figures(one) <= {("latency.p99", "open"), ("rtt.p99", "open")}
        assert (one.verdict == "undecided") <= bool(undecided_figures(one))


def undecided_figures(found: Comparison) -> set[tuple[str, str | None]]:
    """Judged figures that are not decided, and why."""
    return {
        (name, shift.basis)
        for flow in found.flows
        for name, shift in flow.judged
        if shift.verdict == "undecided"
    }


def test_a_slower_switch_is_found_with_its_size(bench: Bench) -> None:
    """Every message passes the switch once one way and twice there and back: 3 and 6 µs, within every interval."""
    found = compare(bench.get(), bench.get(delay="5us", seed=2))
    assert (found.verdict, found.exit_code) == ("worse", 1)
    assert "sw1, processing delay: 2.000 µs against 5.000 µs" in found.said
    for flow in found.flows:
        assert flow.verdict == "worse"
        for name, truth in (("latency", 3000.0), ("rtt", 6000.0)):
            measure = flow.measures.get(name)
            if measure is None:
                assert name == "rtt"
                continue
            for shift in measure.shifts:
                low, high, moved = (
                    shift.joint.low,
                    shift.joint.high,
                    0.0 if shift.statistic == "sd" else truth,
                )
                assert low is None or low <= moved, (name, shift)
                assert high is None or moved <= high, (name, shift)
            median = measure.shift("p50")
            assert median is not None
            assert median.verdict == "worse"
    back = compare(bench.get(delay="5us", seed=2), bench.get())
    assert {flow.verdict for flow in back.flows} == {"better"}
    assert back.exit_code == 0


def test_more_load_is_found_in_the_tail(bench: Bench) -> None:
    found = compare(bench.get(), bench.get(load_="60%", seed=3))
    assert found.verdict == "worse"
    one_way = next(flow for flow in found.flows if flow.label == "10")
    measure = one_way.measures["latency"]
    low, high = measure.shift("p10"), measure.shift("p90")
    assert low is not None
    assert high is not None
    # Waiting behind a frame of 1472 B payload takes up to 123 µs at 100 Mbit/s; the least latency stays what it was.
    assert abs(low.shift.value) < 2_000
    assert 10_000 < high.shift.value < 130_000


def test_a_fault_is_found_as_a_share(bench: Bench) -> None:
    found = compare(bench.get(), bench.get(faults='<fault kind="loss" sequence="100-159"/>', seed=4))
    lost = next(flow for flow in found.flows if flow.label == "20").shares["lost"]
    assert (lost.base_count, lost.new_count, lost.new_n) == (0, 60, 1000)
    assert lost.shift.shift.value == pytest.approx(0.06)
    # Sixty in a row are few events: they count, but not as sixty.
    assert lost.clustered > 5
    few = compare(
        bench.get(), bench.get(faults='<fault kind="loss" sequence="3 77 130 222 345 401 500 618 700 899"/>')
    )
    spread = next(flow for flow in few.flows if flow.label == "20").shares["lost"]
    assert spread.clustered < 1.5


def test_losses_one_by_one_make_it_worse(tmp_path: Path) -> None:
    base, new = made(tmp_path / "a", ONE), made(tmp_path / "b", replace(ONE, loss=0.05, seed=8))
    found = compare(base, new)
    for flow in found.flows:
        lost = flow.shares["lost"].shift
        assert (flow.verdict, lost.verdict, lost.basis) == ("worse", "worse", "significant")
        assert lost.joint.low is not None
        assert 0 < lost.joint.low < 0.05 * (2 if flow.base.plan.relayed else 1)
    back = compare(new, base)
    assert {flow.shares["lost"].shift.verdict for flow in back.flows} == {"better"}
    # A thousand messages with clustered outliers do not tell about p99, and what is not told is not called better.
    for flow in back.flows:
        assert flow.verdict == "undecided"
        assert "latency.p99" in flow.reason
        # What is better of it stands beside, as its row shows it.
        assert verdict_word(flow) == "better in part"
        assert verdict_text(flow).startswith("better in part: lost; undecided: latency.p99")
    assert f"Of {len(back.flows)} flows compared, {len(back.flows)} better in part" in compare_headline(back)
    assert {verdict_word(flow) for flow in found.flows} == {"worse"}
    tolerant = compare(base, new, thresholds=[read_threshold("loss=20%")])
    assert {flow.shares["lost"].shift.basis for flow in tolerant.flows} == {"equivalent"}


def test_an_interval_that_leaves_0_out_is_explained_where_no_change_is_claimed(bench: Bench) -> None:
    """With many figures some intervals do so by chance; without a remark the row would contradict itself."""
    (flow, *_) = compare(bench.get(), bench.get(seed=2)).flows
    measure = flow.measures["latency"]

    def shown(low: float, high: float) -> str:
        moved = tuple(
            replace(
                one, shift=Estimate(5.0, low, high), verdict="same", basis="no-difference", tolerance=None
            )
            if one.statistic == "p50"
            else replace(one, verdict=None)
            for one in measure.quantiles
        )
        unjudged = {
            name: replace(getattr(measure, name), verdict=None) for name in ("mean", "sd", "greatest")
        }
        measures_ = {"latency": replace(measure, quantiles=moved, **unjudged)}
        return verdict_text(replace(flow, measures=measures_, shares={}, verdict="same"))

    assert "0 is outside the interval of latency.p50" in shown(1.0, 9.0)
    assert "0 is outside the interval of latency.p50" in shown(-9.0, -1.0)
    assert "outside" not in shown(-1.0, 9.0)


# -- thresholds and equivalence -------------------------------------------------------------------------------------


def test_equivalence_is_claimed_only_where_the_interval_lies_inside(bench: Bench) -> None:
    base, new = bench.get(), bench.get(seed=2)

    def ask(threshold: str, of: measures.Judgement = new) -> Comparison:
        return compare(base, of, thresholds=[read_threshold(threshold)], equivalence=True)

    wide, narrow = ask("latency.p50=2us"), ask("latency.p50=10ns")
    assert (wide.verdict, wide.exit_code) == ("same", 0)
    assert {shift.basis for flow in wide.flows for _, shift in flow.judged} == {"equivalent"}
    # No difference, but none so small could have been excluded: that is no equivalence.
    assert (narrow.verdict, narrow.exit_code) == ("undecided", 4)
    slower = bench.get(delay="5us", seed=2)
    assert ask("latency.p50=2us", slower).exit_code == 1
    assert ask("latency.p50=4us", slower).exit_code == 0
    assert ask("latency.p50=50%", slower).verdict == "same"
    assert ask("10:latency.p50=2us", slower).judged == 1


def test_a_threshold_replaces_the_default_for_its_measure_only(bench: Bench) -> None:
    base, slower = bench.get(), bench.get(delay="5us", seed=2)
    found = compare(base, slower, thresholds=[read_threshold("latency.p50=4us"), read_threshold("rtt=1ms")])
    assert found.verdict == "same"
    assert found.exit_code == 0
    names = {name for flow in found.flows for name, _ in flow.judged}
    assert "latency.p50" in names
    assert "latency.p90" not in names
    # The mean and every percentile of the round trip, for it was named as a whole.
    assert {"rtt.mean", "rtt.p20", "rtt.p99"} <= names
    assert compare(base, slower, thresholds=[read_threshold("latency=4us")]).verdict == "worse"


def test_a_threshold_that_would_judge_nothing_is_refused(bench: Bench) -> None:
    for text in ("skew=1us", "99:latency=1us", "10:rtt=1us"):
        with pytest.raises(MatchError, match="would judge nothing"):
            compare(bench.get(), bench.get(seed=2), thresholds=[read_threshold(text)])


# -- clocks ---------------------------------------------------------------------------------------------------------


def test_the_uncertainty_of_clocks_is_carried_along(tmp_path: Path) -> None:
    """A shift that clocks could have made is none; the same shift between good clocks is one."""

    def later(columns: Columns, flow: int) -> None:
        for name in ("rx_drv", "rx_app"):
            columns[name] = columns[name] + 5_000_000

    base = make(tmp_path / "a", replace(ONE, relay=False))
    new = make(tmp_path / "b", replace(ONE, relay=False, alter=later, seed=8))

    def median() -> Any:
        found = compare(results.judge(base), results.judge(new)).flows[0].measures["latency"].shift("p50")
        assert found is not None
        return found

    sharp = median()
    assert sharp.verdict == "worse"
    for place in (base, new):
        manifest = json.loads((place / "manifest.json").read_text())
        for run in manifest["runs"]:
            run["clock_offsets"]["sensor"]["uncertainty_ns"] = 3000
        (place / "manifest.json").write_text(json.dumps(manifest))
    blurred = median()
    assert blurred.verdict == "same"
    assert blurred.instrument == pytest.approx(sharp.instrument + 6000)
    assert blurred.joint.low == pytest.approx(sharp.joint.low - 6000)


# -- what belongs together ------------------------------------------------------------------------------------------


def test_points_are_matched_by_their_axes_and_the_others_listed(tmp_path: Path) -> None:
    base = made(tmp_path / "a", replace(SMALL, payloads=(64, 128, 1472), messages=100))
    new = made(tmp_path / "b", replace(SMALL, payloads=(64, 1472, 512), messages=100))
    found = compare(base, new)
    assert [point.axes for point in found.points] == [{"payload": "64B"}, {"payload": "1472B"}]
    assert [dict(point.point) for point in found.only_base] == [{"payload": "128B"}]
    assert [dict(point.point) for point in found.only_new] == [{"payload": "512B"}]
    shown: Any = compare_json(found)
    assert shown["only_base"]["points"][0]["point"] == {"payload": "128B"}
    assert "only in b: payload 512B" in printed(found)


def test_points_of_one_sweep_can_be_laid_side_by_side(tmp_path: Path) -> None:
    loads = made(tmp_path, replace(SMALL, loads=(0, 100)))
    found = compare(loads, loads, base_at={"load": "0%"}, new_at={"load": "100.0%"})
    assert found.names[0] != found.names[1]
    assert [point.axes for point in found.points] == [{"payload": "64B"}, {"payload": "1472B"}]
    assert found.verdict == "worse"
    half = compare(loads, loads, base_at={"load": "0%"})
    assert {point.base.point["load"] for point in half.points} == {"0%"}
    assert len(half.only_new) == 2
    for at, said in (
        ({"speed": "1"}, "no axis speed; its axes: payload, load"),
        ({"load": "7%"}, "there is 0%, 100%"),
    ):
        with pytest.raises(MatchError, match=said):
            compare(loads, loads, base_at=at)


def test_a_sweep_beside_a_single_point_asks_for_a_choice(tmp_path: Path) -> None:
    sweep, single = made(tmp_path / "a"), made(tmp_path / "b", ONE)
    with pytest.raises(MatchError, match="choose one value with --base-at payload=VALUE"):
        compare(sweep, single)
    found = compare(sweep, single, base_at={"payload": "64B"})
    assert len(found.points) == 1
    assert any("payload 64B is an axis of the base side only" in line for line in found.said)


@pytest.mark.parametrize(
    ("one", "other"), [("1000us", "1ms"), ("50%", "50.0%"), ("1Gbit/s", "1000Mbit/s"), ("udp", "udp")]
)
def test_values_of_axes_are_compared_by_what_they_mean(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)
    assert canonical("1ms") != canonical("1us")


def rewritten(path: Path, change: Any) -> Path:
    """The manifest of a run directory, and its flow numbers in table and tracking, changed by `change`."""
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def renumbered(path: Path, numbers: Mapping[int, int]) -> Path:
    import polars as pl

    def change(manifest: dict[str, Any]) -> None:
        for run in manifest["plan"]["runs"]:
            for part in ("flows", "sends", "receives", "relays"):
                for entry in run[part]:
                    key = "id" if part == "flows" else "flow"
                    entry[key] = numbers[entry[key]]

    rewritten(path, change)
    tracking = json.loads((path / "tracking.json").read_text())
    for run in tracking["runs"]:
        for flow in run["flows"]:
            flow["flow"] = numbers[flow["flow"]]
    (path / "tracking.json").write_text(json.dumps(tracking))
    for file in (path / "messages").glob("*.parquet"):
        table = pl.read_parquet(file)
        table.with_columns(pl.col("flow").replace(numbers).cast(pl.UInt16)).write_parquet(
            file, metadata={"wiregauge.schema": "3", "wiregauge.kind": "messages"}
        )
    return path


def test_flows_with_other_numbers_are_matched_by_role_and_protocols_may_differ(tmp_path: Path) -> None:
    base = made(tmp_path / "a", ONE)
    new = results.judge(
        renumbered(make(tmp_path / "b", replace(ONE, protocols=("raw",), seed=8)), {10: 310, 20: 320})
    )
    found = compare(base, new)
    assert [(flow.label, flow.matched_by) for flow in found.flows] == [
        ("10 → 310", "role"),
        ("20 → 320", "role"),
    ]
    for flow in found.flows:
        assert "protocol udp against raw" in flow.said
        median = flow.measures["latency"].shift("p50")
        assert median is not None
        assert median.verdict == "better"
    text = printed(found)
    assert "10 → 310 udp → raw" in text
    assert "flow 10 → 310, 20 → 320: protocol udp against raw" in text
    assert compare(base, new, thresholds=[read_threshold("310:latency.p50=1ms")]).judged > 0


def test_flows_of_one_side_alone_are_listed(tmp_path: Path) -> None:
    base, new = made(tmp_path / "a", ONE), made(tmp_path / "b", replace(ONE, relay=False, seed=8))
    found = compare(base, new)
    assert [flow.label for flow in found.flows] == ["10"]
    assert [flow.plan.id for flow in found.points[0].only_base] == [20]
    assert "only in a: flow 20 (udp, mac to sensor)" in printed(found)


def test_nothing_in_common_is_one_sentence(tmp_path: Path) -> None:
    base = made(tmp_path / "a", replace(ONE, relay=False))
    new = results.judge(renumbered(make(tmp_path / "b", replace(ONE, relay=False)), {10: 30}))
    assert compare(base, new).flows[0].matched_by == "role"

    def elsewhere(manifest: dict[str, Any]) -> None:
        manifest["plan"]["network"]["nodes"][0]["name"] = "plc"

    said = r"nothing to compare: .* flow 10 \(mac to sensor\).* flow 30 \(plc to sensor\)"
    other = results.judge(rewritten(tmp_path / "b", elsewhere))
    with pytest.raises(MatchError, match=said):
        compare(base, other)


def test_benches_and_tests_that_differ_are_said(bench: Bench, tmp_path: Path) -> None:
    found = compare(bench.get(), made(tmp_path, ONE))
    assert "bench: sim against netns" in found.said
    assert "test: compared against udp-and-raw" in found.said
    rate = r"link mac to sw1, .*, rate: 100.0 Mbit/s against 1.000 Gbit/s"
    assert any(re.match(rate, line) for line in found.said)
    # The slow messages of a flow lie in one stretch, so its p99 cannot tell and its row is undecided (decision 14).
    assert found.verdict == "undecided"
    assert undecided_figures(found) == {("latency.p99", "open"), ("rtt.p99", "open")}
    for flow in found.flows:
        for name in flow.measures.keys() & {"latency", "rtt"}:
            shifts = [flow.measures[name].shift(of) for of in ("mean", "p10", "p50", "p90")]
            assert {shift and shift.verdict for shift in shifts} == {"better"}


def test_repeats_are_pooled_on_both_sides(tmp_path: Path) -> None:
    base = made(tmp_path / "a", replace(ONE, repeats=3))
    new = made(tmp_path / "b", replace(ONE, repeats=2, seed=8))
    found = compare(base, new)
    assert "repeats: 3 against 2" in found.said
    assert {(f.measures["latency"].base.n, f.measures["latency"].new.n) for f in found.flows} == {
        (3000, 2000)
    }


# -- not fit to compare ---------------------------------------------------------------------------------------------


def silence(columns: Columns, flow: int) -> None:
    columns["lost"][:] = True
    columns["copies"] = columns["copies"] * 0
    columns["reordered"][:] = False
    for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
        columns["present"][name][:] = False


def test_an_invalid_run_never_compares_as_fine(tmp_path: Path) -> None:
    base = made(tmp_path / "a", ONE)
    bad = made(tmp_path / "b", replace(ONE, agent={"clock_steps": 2}))
    assert bad.validity.word == "INVALID"
    for pair in ((base, bad), (bad, base), (bad, bad)):
        found = compare(*pair)
        assert (found.verdict, found.exit_code) == ("undecided", 4)
        assert {flow.verdict for flow in found.flows} == {"undecided"}
        assert "INVALID" in found.unfit[0]
        assert "INVALID" in printed(found)


def test_an_incomplete_campaign_is_compared_and_said_to_be_incomplete(tmp_path: Path) -> None:
    base = made(tmp_path / "a", SMALL)
    cut = made(tmp_path / "b", replace(SMALL, state="interrupted", reason="stopped by Ctrl-C", stop_after=1))
    found = compare(base, cut)
    assert found.exit_code == 4
    assert len(found.points) == 1
    assert len(found.only_base) == 1
    assert "stopped by Ctrl-C" in found.unfit[0]


def test_flows_of_which_nothing_arrived_are_judged_by_their_losses(tmp_path: Path) -> None:
    base, new = made(tmp_path / "a", ONE), made(tmp_path / "b", replace(ONE, alter=silence))
    found = compare(base, new)
    assert {flow.verdict for flow in found.flows} == {"worse"}
    assert all("latency" in flow.only_base for flow in found.flows)
    both = compare(new, new)
    assert {flow.verdict for flow in both.flows} == {"same"}
    assert "None" not in printed(both)
    Page(report.write_compare(both, tmp_path / "c.html").read_text())


@pytest.mark.parametrize("messages", [1, 2, 3, 40])
def test_few_messages_claim_little(tmp_path: Path, messages: int) -> None:
    recipe = replace(ONE, messages=messages, warm_up=0)
    base, new = made(tmp_path / "a", recipe), made(tmp_path / "b", replace(recipe, seed=8))
    found = compare(base, new)
    assert found.verdict in ("same", "undecided")
    asked = compare(base, new, thresholds=[read_threshold("latency.mean=1ns")])
    assert asked.verdict == "undecided"
    Draft202012Validator(SCHEMA).validate(compare_json(found))
    text = Page(report.write_compare(found, tmp_path / "c.html").read_text()).text
    assert "nan" not in text.lower().split()


# -- what is shown --------------------------------------------------------------------------------------------------


def printed(found: Comparison, width: int = 200) -> str:
    out = io.StringIO()
    compare_text(found, Console(file=out, width=width))
    return out.getvalue()


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Every key with its place; what the keys of maps stand for instead of the keys."""
    maps = {
        "base.at": "AXIS", "new.at": "AXIS", "points.axes": "AXIS", "points.base_point": "AXIS",
        "points.new_point": "AXIS", "points.flows.measures": "MEASURE", "points.flows.judged": "FIGURE",
        "points.flows.measures.MEASURE.quantiles": "PERCENTILE", "points.flows.shares": "COUNTER",
        "only_base.points.point": "AXIS", "only_new.points.point": "AXIS",
    }  # fmt: skip
    if isinstance(value, dict):
        for key, inside in value.items():
            name = f"{path}.{maps.get(path, key)}".lstrip(".")
            yield name
            yield from keys(inside, name)
    elif isinstance(value, list):
        for inside in value:
            yield from keys(inside, path)


def test_the_json_keeps_its_schema_and_its_keys(tmp_path: Path) -> None:
    base = made(tmp_path / "a", replace(SMALL, payloads=(64, 128), messages=400, loss=0.01))
    new = made(tmp_path / "b", replace(SMALL, payloads=(64, 512), messages=400, relay=False))
    found = compare(base, new, thresholds=[read_threshold("latency.p50=5us")], base_at={})
    shown = json.loads(json.dumps(compare_json(found), allow_nan=False))
    meta.validate(SCHEMA)
    Draft202012Validator(SCHEMA).validate(shown)
    golden = (Path(__file__).parent / "golden" / "compare-keys.txt").read_text().split()
    assert sorted(set(keys(shown))) == golden


def test_the_text_fits_its_terminal(bench: Bench) -> None:
    found = compare(bench.get(), bench.get(delay="5us", seed=2))
    for width in (60, 80, 120, 200):
        table = printed(found, width).partition("flow  ")[2].partition("error rate:")[0].splitlines()
        assert any("→" in line for line in table)
        assert all(len(line) <= width for line in table)
        assert "…" not in " ".join(table)
    text = printed(found)
    assert "verdict WORSE" in text
    assert re.search(r"worse: flow 10: latency\.\w+ [\d.]+ µs → [\d.]+ µs, \+(2\.9|3\.0)\d µs \[", text)
    assert "false discovery rate 5 %" in text


def test_the_page_says_and_draws_everything(bench: Bench, tmp_path: Path) -> None:
    found = compare(bench.get(), bench.get(delay="5us", seed=2))
    source = report.write_compare(found, tmp_path / "c.html").read_text()
    page = Page(source)
    assert re.findall(r"<h2>(.*?)</h2>", source) == [
        "What moved",
        "Figures",
        "What differs besides",
        "All figures",
        "How it was judged",
        "Definitions",
    ]
    assert source.count('class="plot"') == 4
    assert "sw1, processing delay: 2.000 µs against 5.000 µs" in page.text
    ids = {value for _, name, value in page.attributes if name == "id"}
    targets = {
        v[1:] for tag, name, v in page.attributes if tag == "a" and name == "href" and v.startswith("#")
    }
    assert targets <= ids
    median = found.flows[0].measures["latency"].shift("p50")
    assert median is not None
    assert f"+{median.shift.value / 1e3:.2f} [" in page.text
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "action", "data", "poster")]


def test_names_from_files_cannot_become_markup_in_the_page(tmp_path: Path) -> None:
    def evil(manifest: dict[str, Any]) -> None:
        manifest["plan"]["name"] = EVIL
        manifest["plan"]["network"]["nodes"][0]["name"] = EVIL
        manifest["plan"]["network"]["nodes"][0]["kind"][EVIL] = EVIL
        manifest["plan"]["runs"][0]["point"] = {"payload": EVIL}
        manifest["bench_facts"] = [{"name": EVIL, "value": EVIL, "note": EVIL}]
        manifest["program"]["version"] = EVIL

    base = made(tmp_path / "a", ONE)
    new = results.judge(rewritten(make(tmp_path / "b", ONE), evil))
    found = compare(base, new)
    page = Page(report.write_compare(found, tmp_path / "c.html").read_text())
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not [s for s in page.scripts if s.startswith("alert")]
    assert "alert(1)" in page.text
    printed(found)


def test_shift_functions_break_where_an_interval_is_open() -> None:
    from wiregauge.figures.compare import _bands

    joints = [
        Estimate(1, 0, 2),
        Estimate(1, None, 2),
        Estimate(1, 0, 2),
        Estimate(1, 0, 2),
        Estimate(1, 0, None),
    ]
    bands = _bands(np.arange(5.0), joints)
    assert [band[0].tolist() for band in bands] == [[0.0], [2.0, 3.0]]
