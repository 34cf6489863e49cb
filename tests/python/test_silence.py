"""Silence keeps no limit: of a flow of which nothing is seen, that is lost, dies or begins late.

The table is made of every name that a limit can have, so that a measure that comes later is in it by itself. A bound
that nothing can break asks whether anything decides it at all; what then holds must be of what was seen.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from test_volume import both_ways
from wiregauge import results
from wiregauge.cli import app
from wiregauge.measures.definitions import DEFINITIONS, quantile_named
from wiregauge.measures.definitions.definition import ARRIVED, SENT
from wiregauge.measures.flow_measures.base import RunReading
from wiregauge.measures.judge_flows import judge_flows, read_flow
from wiregauge.measures.limits import OF_SENDS, OF_SILENCES, judge_limits, observe
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import FlowResult, LimitResult, RunResult
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.measures.metrics.series import Offsets
from wiregauge.measures.metrics.silences import open_silences
from wiregauge.measures.metrics.tally import tally
from wiregauge.measures.run_measures import OfRun
from wiregauge.records import RunDirectory
from wiregauge.records.reported import RunEntry

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "tests" / "faults"
EXAMPLES = ROOT / "examples"

SENDERS = {
    "send_error",
    "period",
    "period_jitter",
    "intended_load",
    "offered_load",
    "bag_spacing",
    "bag_jitter",
    "bag_violations",
}
"""Measures of what a sender did, whatever came of it."""
SENDER_POINTS = ("intended", "tx_app", "tx_drv", "tx_wire")
OF_ALL_SENT = (SENT, "messages planned")
"""Measures of messages sent: that none arrived is what they tell."""


@cache
def limit_names() -> ModuleType:
    spec = importlib.util.spec_from_file_location("limit_names", ROOT / "tools" / "limit_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def unbreakable() -> Iterator[LimitPlan]:
    """A limit of either kind on everything that can be named, which no value of it breaks."""
    for name in limit_names().names():
        yield LimitPlan(None, str(name), "at-most", 1e300, "everything", 1)
        yield LimitPlan(None, str(name), "at-least", -1e300, "nothing", 2)


def judged(run: RunResult) -> tuple[LimitResult, ...]:
    of_run = OfRun(run.unplanned, run.clusters, run.ptp_domains, virtual_time=True)
    return judge_limits(tuple(unbreakable()), run.flows, of_run)


def holding(run: RunResult) -> set[tuple[str, str]]:
    return {(found.measure, found.bound) for found in judged(run) if found.holds}


STAR = """<test xmlns="urn:wiregauge:test:2" name="star" seed="1" bench="sim"><network host="ideal">
<end-system name="a"/><end-system name="b"/><switch name="s"/>
<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="b" deadline="1ms"/><flow id="2" protocol="raw" from="a" to="b"/></flows>
<tasks><send flow="1" period="1ms" payload="64B" count="1000"/><receive flow="1"/>
<send flow="2" period="1ms" payload="64B" count="1000"/><relay flow="2"/></tasks></test>"""


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.xml").read_text(encoding="utf-8")


def senders_links(text: str) -> tuple[str, ...]:
    """The links of end systems that send, as the test writes them."""
    senders = set(re.findall(r'<flow [^>]*?from="(\w+)"', text))
    links = re.findall(r'<link between="(\w+ \w+)"', text)
    return tuple(link for link in links if senders & set(link.split()))


def without_limits(text: str) -> str:
    text = re.sub(r"<limits>.*?</limits>", "", text, flags=re.DOTALL)
    return re.sub(r"<sweep>.*?</sweep>", "", text, flags=re.DOTALL)


def cut(text: str, links: tuple[str, ...], span: str) -> str:
    faults = "".join(f'<cut link="{link}" {span}/>' for link in links)
    if "<faults>" in text:
        return text.replace("<faults>", f"<faults>{faults}")
    at = text.index("</tasks>") + len("</tasks>")
    return f"{text[:at]}<faults>{faults}</faults>{text[at:]}"


CASES = {
    "star": STAR,
    "frer": example("ring-frer"),
    "policing": example("policing"),
    "gates": example("gates"),
    "shapers": example("shapers"),
    "schedule": example("mixed-criticality"),
    "networks": example("afdx"),
}


def simulated(text: str, place: Path) -> RunResult:
    test = place / "test.xml"
    test.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["run", str(test), "--bench", "sim", "--out", str(place / "run")])
    assert done.exit_code in (0, 1, 4), done.output
    return results.judge(place / "run").runs[0]


def of_sender(measure: str) -> bool:
    name, _, statistic = measure.partition(".")
    if name == "pair_latency":
        return all(point in SENDER_POINTS for point in statistic.rpartition(".")[0].split("-"))
    return name in SENDERS


@pytest.mark.parametrize("case", sorted(CASES))
def test_of_a_flow_that_is_lost_whole_only_what_counts_losses_is_decided(case: str, tmp_path: Path) -> None:
    text = without_limits(CASES[case])
    run = simulated(cut(text, senders_links(text), 'from="0s"'), tmp_path)
    assert sum(flow.counts["delivered"] for flow in run.flows) == 0, "the case is what it says"
    held = {measure for measure, _ in holding(run) if not of_sender(measure)}
    wrong = {name for name in held if DEFINITIONS[name.partition(".")[0]].of not in OF_ALL_SENT}
    assert not wrong
    assert {"lost", "loss", "delivered"} <= held


def reading_of(place: Path) -> RunReading:
    """A run without a word of the bench."""
    return RunReading(open_recorded(place / "run").plan, RunEntry(), 2.0, {}, set(), 2, {})


def test_of_a_flow_that_sent_nothing_nothing_is_decided(tmp_path: Path) -> None:
    """The table of a run whose messages are all of the warm-up."""
    run = simulated(without_limits(STAR), tmp_path)
    (file,) = (tmp_path / "run" / "messages").glob("*.parquet")
    nothing = Part.whole(pl.read_parquet(file).clear())
    reading = reading_of(tmp_path)
    for flow in run.flows:
        (empty,) = judge_flows([read_flow(reading, flow.plan, (nothing, nothing), None, Offsets(0.0, 0.0))])
        found = judge_limits(tuple(unbreakable()), [empty], OfRun(virtual_time=True))
        assert {one.measure for one in found if one.holds} <= {"sent"}


def figures(run: RunResult, *named: str) -> dict[str, float | None]:
    limits = tuple(LimitPlan(1, name, "at-most", 1e300, "", 1) for name in named)
    return {one.measure: one.observed for one in judge_limits(limits, run.flows, OfRun(virtual_time=True))}


@pytest.mark.parametrize(
    ("span", "silence_ms"), [('from="20ms"', 980), ('from="0s" until="980ms"', 980), ('from="1ms"', 999)]
)
def test_a_flow_that_dies_or_begins_late_is_silent_meanwhile(
    span: str, silence_ms: float, tmp_path: Path
) -> None:
    """What is a rate or a period of arrivals goes on to the last send that was due, and from the first."""
    run = simulated(cut(without_limits(STAR), ("a s",), span), tmp_path)
    flow = run.flows[0]
    sent, came = flow.counts["sent"], flow.counts["delivered"]
    assert 0 < came < 21
    found = figures(run, "receive_period.max", "goodput", "receive_period_jitter", "late", "reordered")
    assert found["receive_period.max"] == pytest.approx(silence_ms * 1e6, rel=0.01)
    rate = found["goodput"]
    assert rate is not None
    assert rate <= 8 * 64 * 1000 * came / sent * 1.02
    jitter = found["receive_period_jitter"]
    assert jitter is None or jitter > 1e7
    for one in judged(run):
        if one.flow == 1 and one.holds and one.of == ARRIVED:
            assert 0 < one.among == came or one.n, one.measure
            assert f"of {one.among} messages that arrived" in results.limit_text(one)


def test_a_healthy_flow_has_no_silence(tmp_path: Path) -> None:
    run = simulated(without_limits(STAR), tmp_path)
    found = figures(run, "receive_period.max", "receive_period.min", "goodput")
    assert found["receive_period.max"] == found["receive_period.min"] == 1e6
    assert found["goodput"] == pytest.approx(8 * 64 * 1000)
    assert all(flow.summaries["receive_period"].n == flow.counts["sent"] - 1 for flow in run.flows)


INPUTS = {
    "dead-goodput": (1, {"goodput": "fail", "receive_period.max": "fail", "receive_period_jitter": "fail"}),
    "sync-never": (4, {"sync_losses": "undecided", "sync_cliques": "undecided"}),
    "all-lost-late": (4, {"late": "undecided", "reordered": "undecided", "tardiness.max": "undecided"}),
    "frer-both-dead": (4, {"elimination.lost": "undecided", "elimination.rogue": "pass"}),
    "limit-inside-clock-uncertainty": (4, {"latency.p50": "undecided"}),
}


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_an_input_that_once_passed(name: str, tmp_path: Path) -> None:
    code, expected = INPUTS[name]
    done = CliRunner().invoke(app, ["run", str(FAULTS / f"{name}.xml"), "--out", str(tmp_path / "r")])
    assert done.exit_code == code, done.output
    (run,) = results.judge(tmp_path / "r").runs
    found = {limit.measure: limit.result for limit in run.limits}
    assert {measure: found[measure] for measure in expected} == expected


def test_losses_that_no_limit_is_on_stand_with_the_verdict(tmp_path: Path) -> None:
    test, place = FAULTS / "half-lost-latency.xml", tmp_path / "r"
    checked = CliRunner().invoke(app, ["check", str(test)])
    assert "no limit is on lost of flow 1" in checked.output
    done = CliRunner().invoke(app, ["run", str(test), "--out", str(place)])
    said = "502 of 1000 messages of flow 1 lost, and no limit on lost"
    verdict = next(line for line in done.stdout.splitlines() if "verdict" in line)
    assert said in verdict
    assert "no check failed" not in done.stdout
    for to in ("junit", "openmetrics", "json"):
        assert said in CliRunner().invoke(app, ["export", str(place), "--to", to, "--out", "-"]).stdout, to
    assert said in (place / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("limit", "warned"),
    [
        ('<limit measure="latency.p99" at-most="1s"/>', True),
        ('<limit measure="latency.p99" at-most="1s"/><limit measure="lost" at-most="9"/>', False),
        ('<limit measure="latency.p99" at-most="1s"/><limit measure="loss" at-most="1%"/>', False),
        ('<limit measure="latency.p99" at-most="1s"/><limit measure="delivered" at-most="9"/>', True),
        ('<limit measure="latency.p99" at-most="1s"/><limit measure="delivered" at-least="9"/>', False),
        ('<limit measure="latency.p99" at-most="1s"/><limit flow="1" measure="lost" at-most="0"/>', True),
        ('<limit flow="1" measure="latency.p99" at-most="1s"/><limit flow="1" measure="lost" at-most="0"/>', False),
        ('<limit measure="send_error.max" at-most="1s"/>', False),
        ('<limit measure="latency_with_loss.p99" at-most="1s"/>', False),
    ],
)  # fmt: skip
def test_check_names_flows_whose_losses_no_limit_counts(limit: str, warned: bool, tmp_path: Path) -> None:
    test = tmp_path / "t.xml"
    test.write_text(STAR.replace("</test>", f"<limits>{limit}</limits></test>"), encoding="utf-8")
    assert ("no limit is on lost" in CliRunner().invoke(app, ["check", str(test)]).output) == warned


def test_under_a_fail_nobody_reads_that_no_check_failed(tmp_path: Path) -> None:
    limits = '<limits><limit measure="latency.max" at-most="1ns"/></limits>'
    run = tmp_path / "t.xml"
    run.write_text(STAR.replace("</test>", f"{limits}</test>"), encoding="utf-8")
    done = CliRunner().invoke(app, ["run", str(run), "--out", str(tmp_path / "r")])
    assert done.exit_code == 1
    assert "no check failed" not in done.stdout
    assert "in a measurement that is VALID: 2 limits failed" in done.stdout


# -- a sender that stops before its end, or begins late ------------------------------------------------------------

FAMILY = OF_SENDS | OF_SILENCES
"""Measures in which a send that was due and never made has a part."""


def in_part(run: RunResult, place: Path, keep: pl.Expr, lose: pl.Expr | None = None) -> list[FlowResult]:
    """The flows judged from the rows that are kept; the arrivals of those to `lose` are taken off."""
    (file,) = (place / "run" / "messages").glob("*.parquet")
    reading = reading_of(place)
    found = []
    for flow in run.flows:
        rows = pl.read_parquet(file).filter(pl.col("flow") == flow.plan.id).sort("sequence")
        if lose is not None:
            came = [name for name in rows.columns if name.startswith(("rx_", "back_"))]
            rows = rows.with_columns(
                *(pl.when(lose).then(None).otherwise(pl.col(name)).alias(name) for name in came),
                outcome=pl.when(lose).then(pl.lit("lost")).otherwise(pl.col("outcome")),
            )
        parts = Part.whole(rows.clear()), Part.whole(rows.filter(keep))
        found += judge_flows([read_flow(reading, flow.plan, parts, None, Offsets(0.0, 0.0))])
    return found


def same(one: float | None, other: float | None) -> bool:
    return one == (pytest.approx(other, rel=1e-9) if other is not None else None)


@pytest.fixture(scope="module", params=["periodic", "exponential"])
def healthy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunResult, Path]:
    place = tmp_path_factory.mktemp("stopping")
    pattern = "" if request.param == "periodic" else ' distribution="exponential"'
    return simulated(STAR.replace('count="1000"', f'count="1000"{pattern}'), place), place


SPANS = {
    "its last": pl.col("sequence") < 999,
    "its last nine": pl.col("sequence") < 991,
    "its first nine": pl.col("sequence") >= 9,
    "half": pl.col("sequence") < 500,
}


@pytest.mark.parametrize("span", sorted(SPANS))
def test_what_a_sender_did_not_send_keeps_no_limit(span: str, healthy: tuple[RunResult, Path]) -> None:
    """For the whole family of measures a bound that the rest of the flow just keeps is not kept."""
    run, place = healthy
    tried = 0
    for flow in in_part(run, place, SPANS[span]):
        never = flow.planned - flow.counts["sent"]
        assert never > 0
        for name in limit_names().names():
            if name.measure not in FAMILY and not name.statistic.startswith("intended-"):
                continue
            figure = observe(str(name), flow)
            if figure.value is None:
                continue
            better = DEFINITIONS[name.measure].better
            bound = "at-least" if better == "higher" else "at-most"
            limit = LimitPlan(flow.plan.id, str(name), bound, figure.value, "", 1)
            (found,) = judge_limits([limit], [flow], OfRun(virtual_time=True))
            if name.measure in OF_SILENCES and flow.unsent_in_silences:
                # What it is now includes the silence: what the flow alone keeps is beyond it.
                continue
            assert found.result == "undecided" or quantile_named(name.statistic.rpartition(".")[2]), name
            if found.result == "undecided":
                assert f"{never} message" in found.reason
                tried += 1
    assert tried > 10


@pytest.mark.parametrize("span", sorted(SPANS))
def test_a_send_that_was_never_made_is_silent_like_one_that_was_lost(
    span: str, healthy: tuple[RunResult, Path]
) -> None:
    run, place = healthy
    gone = in_part(run, place, SPANS[span])
    lost = in_part(run, place, pl.lit(True), ~SPANS[span])
    for stopped, dead in zip(gone, lost, strict=True):
        if not stopped.unsent_in_silences:
            continue
        for name in limit_names().names():
            if name.measure not in OF_SILENCES:
                continue
            one, other = observe(str(name), stopped), observe(str(name), dead)
            assert same(one.value, other.value), name
            assert one.n == other.n, name
        longest = observe("receive_period.max", stopped).value
        assert longest is not None
        assert longest >= 1e6 * min(9, stopped.planned - stopped.counts["sent"])


def test_what_no_tap_saw_being_sent_proves_no_silence(
    healthy: tuple[RunResult, Path], tmp_path: Path
) -> None:
    """A capture that begins late has no record of sends that were made: they are unknown, and nobody was silent."""
    run, place = healthy
    shutil.copytree(place / "run", tmp_path / "run")
    directory = RunDirectory.open(tmp_path / "run")
    directory.manifest["traits"]["tapped"] = True
    directory.save()
    tapped = results.judge(tmp_path / "run").runs[0].flows
    assert not any(flow.unsent_in_silences for flow in tapped)
    assert {flow.unsent_in_silences for flow in run.flows} == {flow.plan.is_periodic for flow in run.flows}
    fewer = replace(tapped[0], counts={**tapped[0].counts, "sent": tapped[0].planned - 3})
    (found,) = judge_limits(
        [LimitPlan(1, "receive_period.max", "at-most", 1e12, "", 1)], [fewer], OfRun(virtual_time=True)
    )
    assert found.result == "undecided"
    assert "3 messages of the plan have no record of being sent" in found.reason


# -- flows of which a sample is held ---------------------------------------------------------------------------------

LONG = STAR.replace('count="1000"', 'count="12000"')


@pytest.fixture(
    scope="module", params=['from="9s"', 'from="0s" until="3s"', 'from="4s" until="5s"', 'from="0s"']
)
def dying(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose flows die, begin late, are away meanwhile, or never come."""
    place = tmp_path_factory.mktemp("dying")
    simulated(cut(without_limits(LONG), ("a s",), request.param), place)
    return place / "run"


def test_a_sampled_flow_is_silent_for_as_long_as_the_whole(dying: Path) -> None:
    whole, sampled = (judgement.runs[0] for judgement in both_ways(dying, 1000))
    for one, other in zip(whole.flows, sampled.flows, strict=True):
        assert other.sampled is not None, "the case is what it says"
        assert other.counts == one.counts
        for name in ("receive_period.max", "receive_period.min", "receive_period.mean", "goodput"):
            assert same(observe(name, one).value, observe(name, other).value), name
        assert observe("receive_period.max", one).n == observe("receive_period.max", other).n
        longest = observe("receive_period.max", other).value
        assert longest is not None
        assert longest >= 0.99e9
    # And limits on them come out alike: on its silence, and on its rate.
    for name, bound, value in (
        ("receive_period.max", "at-most", 2e6),
        ("goodput", "at-least", 8 * 64 * 990.0),
    ):
        limit = LimitPlan(None, name, bound, value, "", 1)
        results = [
            {one.result for one in judge_limits([limit], run.flows, OfRun(virtual_time=True))}
            for run in (whole, sampled)
        ]
        assert results == [{"fail"}, {"fail"}], name


@pytest.mark.parametrize("span", sorted(SPANS))
def test_what_a_sampled_sender_did_not_send_is_in_its_silences(
    span: str, healthy: tuple[RunResult, Path]
) -> None:
    run, place = healthy
    (file,) = (place / "run" / "messages").glob("*.parquet")
    kept = pl.scan_parquet(file).filter(SPANS[span] & (pl.col("sequence") % 7 != 3))
    plans = [flow.plan for flow in run.flows]
    counted = tally(kept, plans)
    for plan in plans:
        rows = kept.filter(pl.col("flow") == plan.id).sort("sequence").collect()
        part = Part.whole(rows)
        came = rows["rx_app"].is_not_null().to_numpy()
        silent = counted[plan.id, plan.receiver].silences("received", plan)
        assert silent == open_silences(part, came, plan)
        assert any(silent) == plan.is_periodic


def arrivals_needed(name: str) -> int:
    """Messages, all of which arrive, without which a figure is of nothing; written from the definitions' words."""
    measure, _, statistic = name.partition(".")
    between = {"ipdv", "period", "receive_period", "bag_spacing"}  # of neighbours: a value less than messages
    pairs = {"reordered", "reorder_extent", "reorder_late_time", "goodput", "range", "delay_variation"}
    pairs |= {"loss_distance", "availability", "intended_load", "offered_load"}
    if measure == "n_reordering":
        return int(statistic) + 1
    if measure in ("period_jitter", "receive_period_jitter"):
        return 3
    if measure == "residence":  # of passages, of which a relayed message has two
        return 1
    spread = statistic.rpartition(".")[2] in ("sd", "mad")
    return (2 if measure in between | pairs else 1) + (spread and measure not in pairs)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_figure_of_too_few_messages_decides_nothing(count: int, tmp_path: Path) -> None:
    """Every name of a limit: order, distance, period and spread take more than one."""
    text = without_limits(STAR).replace('count="1000"', f'count="{max(count, 1)}"')
    run = simulated(text if count else cut(text, ("a s",), 'from="0s"'), tmp_path)
    assert {flow.counts["delivered"] for flow in run.flows} == {count}
    sent = max(count, 1)
    held = {name for name, _ in holding(run)}
    of_sent = {
        name for name in held if DEFINITIONS[name.partition(".")[0]].of in OF_ALL_SENT or of_sender(name)
    }
    assert not {name for name in held if arrivals_needed(name) > (sent if name in of_sent else count)}
    assert count < 3 or {"reordered", "latency.mad", "range", "period_jitter", "availability"} <= held


@pytest.mark.parametrize(("lost", "up"), [(1, 0.0), (2, 0.0), (1000, 0.0)])
def test_where_nothing_arrives_there_was_no_service(lost: int, up: float, tmp_path: Path) -> None:
    text = without_limits(STAR).replace('count="1000"', f'count="{lost}"')
    run = simulated(cut(text, ("a s",), 'from="0s"'), tmp_path)
    for bound in (0.001, 0.5, 1.0):
        limit = LimitPlan(None, "availability", "at-least", bound, "", 1)
        for found in judge_limits((limit,), run.flows, OfRun(virtual_time=True)):
            assert found.observed == up
            assert found.result == "fail"
