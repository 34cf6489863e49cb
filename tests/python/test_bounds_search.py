"""The search for bad cases: near the bound where that is known, run again by anybody, and it finds planted faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from bound_networks import network as random_network
from simulation import written
from wiregauge import bounds
from wiregauge.bounds.searching import Goal, goals, search
from wiregauge.bounds.short_runs import short_runs
from wiregauge.cli import app
from wiregauge.cli.bound_search import searched
from wiregauge.cli.schemas import schema_of
from wiregauge.config import TestError, load
from wiregauge.plan import as_json
from wiregauge.plan.network import EndSystem

pytestmark = pytest.mark.usefixtures("unreported")

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = 100_000_000
FRAME = 1e-6 * (1400 + 66) * 8 / 100
"""The longest frame of these tests on the wire: UDP with preamble and gap, s."""


def tandem(hops: int, *, limits: str = "") -> str:
    """Flow 1 passes all switches in a row; one flow joins and leaves at each, and one goes along for two hops."""
    switches = "".join(f'<switch name="s{k}" delay="2us"/>' for k in range(hops))
    ends = "".join(f'<end-system name="x{k}"/><end-system name="y{k}"/>' for k in range(hops))
    links = "".join(
        f'<link between="x{k} s{k}" rate="100Mbit/s"/><link between="y{k} s{min(k + 1, hops - 1)}" rate="100Mbit/s"/>'
        for k in range(hops)
    )
    row = "".join(f'<link between="s{k} s{k + 1}" rate="100Mbit/s"/>' for k in range(hops - 1))
    network = (
        f'<end-system name="a"/><end-system name="z"/>{ends}{switches}<link between="a s0" rate="100Mbit/s"/>'
        f'{links}{row}<link between="s{hops - 1} z" rate="100Mbit/s"/>'
    )
    flows = '<flow id="1" protocol="udp" from="a" to="z"/>'
    tasks = '<send flow="1" period="2ms" payload="800B"/><receive flow="1"/>'
    for k in range(hops):
        to = f"y{k}" if k + 1 < hops else "z"
        flows += f'<flow id="{k + 2}" protocol="udp" from="x{k}" to="{to}"/>'
        burst = "" if k % 2 else ' burst="2"'
        tasks += f'<send flow="{k + 2}" period="2ms" payload="1400B"{burst}/><receive flow="{k + 2}"/>'
    return written(network, flows, tasks, attributes='duration="20ms"', more=limits)


def placed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.xml"
    path.write_text(text, encoding="utf-8")
    return path


def told(path: Path, *options: str, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bounds", str(path), "--json", *options])
    assert done.exit_code == code, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("bounds").read_text()), answer)
    return answer


def test_a_single_server_comes_within_a_frame_of_its_bound(tmp_path: Path) -> None:
    found = told(placed(tmp_path, tandem(1)), "--search", "--time-limit", "20s")["search"]
    assert found["ended"]
    for flow in found["flows"]:
        assert 0 <= flow["gap"] <= FRAME
        assert flow["alarms"] == []


@pytest.mark.parametrize("hops", [2, 3])
def test_a_tandem_comes_to_four_fifths_of_the_least_bound(hops: int, tmp_path: Path) -> None:
    found = told(placed(tmp_path, tandem(hops)), "--search", "--time-limit", "30s")["search"]
    for flow in found["flows"]:
        assert 0.8 <= flow["tightness"] <= 1, flow


@pytest.mark.parametrize("name", ["two-switches", "afdx"])
def test_examples_come_to_nine_tenths_of_the_least_bound(name: str) -> None:
    """Hosts that draw their times, and copies of which one may be lost, hide no worst case."""
    found = told(EXAMPLES / f"{name}.xml", "--search", "--time-limit", "40s")["search"]
    for flow in found["flows"]:
        assert 0.9 <= flow["tightness"] <= 1, flow


def test_hosts_take_the_longest_that_they_draw(tmp_path: Path) -> None:
    own = '<end-system name="z"><host receive-wake-up="7us"/></end-system>'
    text = tandem(1).replace('<end-system name="z"/>', own)
    runs = short_runs(placed(tmp_path, text.replace('host="ideal"', 'host="tuned"')), 1e-3)
    hosts = {
        node.name: node.kind.host
        for node in runs.network.nodes
        if isinstance(node.kind, EndSystem) and node.kind.host is not None
    }
    assert hosts["a"].send_wake_up.quantiles == ((0, 20_000_000),)
    assert hosts["a"].receive_wake_up.quantiles == ((0, 40_000_000),)
    assert hosts["z"].receive_wake_up.quantiles == ((0, 7_000_000),)


def test_a_copy_is_searched_on_its_own_network() -> None:
    """In `afdx.xml` flow 15 is on network B alone, and delays the copies there; those on A come first."""
    file = EXAMPLES / "afdx.xml"
    wanted = goals([bounds.bound(bounds.read(file))], ["13", "15"], ["display", "fwc"])
    assert {(goal.flow, goal.network) for goal in wanted} == {("13", "B"), ("15", None)}
    for network in ("A", "B"):
        runs = short_runs(file, 1e-3, network)
        used = {flow.id: {route.network for route in flow.routes} for flow in runs.run.flows}
        assert used == {10: {network}, 11: {network}, 12: {network}, 13: {network}, 14: {network}, 15: {"B"}}


def test_what_is_found_is_more_than_the_test_itself_shows(tmp_path: Path) -> None:
    """Flows that begin at different times hardly meet; the search brings them together."""
    text = tandem(1).replace('<send flow="2"', '<send flow="2" offset="900us"')
    path = placed(tmp_path, text)
    runs = short_runs(path, 1e-3)
    (alone,) = runs.simulate([(0, 900_000_000)])
    flow = told(path, "--search", "--time-limit", "20s")["search"]["flows"][0]
    assert flow["simulated"] * 1e12 > 1.5 * alone.longest[1, runs.names.index("z")][0]


def test_a_worst_case_is_a_test_that_anybody_can_run(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(2))
    found = told(path, "--search", "--time-limit", "20s", "--out", str(tmp_path / "worst"))["search"]
    for flow in found["flows"]:
        done = CliRunner().invoke(
            app, ["run", flow["test"], "--out", str(tmp_path / f"run{flow['flow']}"), "--json"]
        )
        assert done.exit_code == 0, done.output
        shown = json.loads(done.stdout)["runs"][0]["flows"]
        latency = next(one["latency_ns"] for one in shown if str(one["flow"]) == flow["flow"])
        assert latency["max"] == pytest.approx(flow["simulated"] * 1e9, abs=1e-3)


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(2))
    first, second = (told(path, "--search", "--seed", "3", "--time-limit", "60s")["search"] for _ in range(2))
    assert first["ended"]
    assert first["flows"] == second["flows"]


def test_short_runs_differ_from_the_written_test_in_nothing(tmp_path: Path) -> None:
    runs = short_runs(placed(tmp_path, tandem(2)), 1e-3)
    offsets = [1_234_567, 99_000_000, 2_000_001]
    again = tmp_path / "again.xml"
    again.write_bytes(runs.written(offsets))
    planned, short = (json.loads(as_json(run)) for run in (load(again).campaign.runs[0], runs.run))
    for send, offset in zip(short["sends"], offsets, strict=True):
        send["offset"] = offset
    assert {**planned, "duration": None} == {**short, "duration": None}
    (journey,) = runs.simulate([offsets])
    assert runs.again(offsets) == journey


def test_a_bound_that_is_too_low_is_an_alarm(tmp_path: Path) -> None:
    """A bound of a test whose flow 2 sends less than the simulated one does: the search exceeds it and says why."""
    path = placed(tmp_path, tandem(2).replace('burst="2"', 'burst="5"'))
    source = bounds.read(path)
    plan = json.loads(source.as_json)
    for send in plan["run"]["sends"]:
        if send["flow"] == 2:
            send["payload"] = 20
            del send["pattern"]
    flattered = bounds.Source(source.file, source.format, json.dumps(plan))
    answer = bounds.bound(flattered)
    worst = searched(path, flattered, answer, [], seconds=20, seed=1, out=None)
    assert worst.exceeded
    alarms = [alarm for flow in worst.as_json()["flows"] for alarm in flow["alarms"]]
    assert any(alarm.startswith("arrival curve exceeded: flow 2 came with a burst") for alarm in alarms), (
        alarms
    )


def test_a_bound_that_is_reached_ends_the_search(tmp_path: Path) -> None:
    """Alone on its way a flow has one latency, and that is what is found at once."""
    text = tandem(1).replace('<send flow="2"', '<send flow="2" count="1"')
    runs = short_runs(placed(tmp_path, text), 1e-3)
    (journey,) = runs.simulate([(0, 500_000_000)])
    alone = journey.longest[1, runs.names.index("z")][0]
    goal = Goal("1", "z", alone / 1e12, "by hand")
    outcome = search(runs, [goal], seconds=60, seed=1)
    assert outcome.ended
    assert outcome.found[0].latency is not None
    assert outcome.found[0].latency >= alone


def test_what_cannot_be_searched_is_refused_by_name(tmp_path: Path) -> None:
    swept = tandem(1).replace("</tasks>", '</tasks><sweep><axis of="payload" values="64B 128B"/></sweep>')
    with pytest.raises(TestError, match="swept is many networks"):
        short_runs(placed(tmp_path, swept), 1e-3)
    other = tmp_path / "n.xml"
    other.write_text("<elements><network/></elements>", encoding="utf-8")
    with pytest.raises(TestError, match="only a test can be simulated"):
        short_runs(other, 1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", "3"], "--seed has an effect with --search only"),
        (["--time-limit", "3s"], "--time-limit has an effect with --search, --advise or --sensitivity only"),
        (["--search", "--time-limit", "0s"], "there is no time to look"),
        (["--search", "--time-limit", "3"], "--time-limit"),
    ],
)
def test_options_without_effect_are_refused(options: list[str], said: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bounds", str(placed(tmp_path, tandem(1))), *options])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["bounds", str(placed(tmp_path, tandem(1))), "--search", "--out", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "name a folder that does not exist" in " ".join(done.stderr.split())


def test_the_search_sees_the_time_that_passes_and_not_what_coarse_clocks_show(tmp_path: Path) -> None:
    """All clocks tick once a millisecond, so that every message seems to take no time, and four leave at each tick."""
    ticks = '<clock granularity="1ms"/>'
    names = ("a", "b", "c", "z")
    nodes = "".join(f'<end-system name="{name}">{ticks}</end-system>' for name in names)
    links = "".join(f'<link between="{name} s" rate="100Mbit/s"/>' for name in names)
    flows = "".join(
        f'<flow id="{flow}" protocol="raw" from="{name}" to="z"/>' for flow, name in enumerate("abc", 1)
    )
    tasks = "".join(
        f'<send flow="{flow}" period="300us" payload="1000B"/><receive flow="{flow}"/>' for flow in (1, 2, 3)
    )
    text = written(
        f'{nodes}<switch name="s"/>{links}', flows, tasks, attributes='warm-up="0s" duration="50ms"'
    )
    found = told(placed(tmp_path, text), "--search", "--time-limit", "5s")["search"]
    for flow in found["flows"]:
        assert flow["simulated"] > 900e-6
        assert 0.6 < flow["tightness"] <= 1


def test_messages_of_a_schedule_keep_their_place_in_its_cycle() -> None:
    """Their bound is of that place: one that the search moved elsewhere would be above it."""
    file = EXAMPLES / "converged.xml"
    answer = bounds.bound(bounds.read(file), "tfa")
    runs = short_runs(file, 3e-3)
    at = [sender.flow for sender in runs.senders].index(10)
    (place,) = {
        runs.kept([moved] * len(runs.senders))[at] % 10**9 for moved in range(0, 3 * 10**9, 7_654_321)
    }
    # Dispatched at 200 us of each millisecond, by a host that takes no time.
    assert place == 200 * 10**6
    assert runs.kept([123] * len(runs.senders))[at - 1] == 123
    (goal,) = goals([answer], ["10"], ["mission"])
    (found,) = search(runs, [goal], seconds=5, seed=1).found
    assert found.latency == round(goal.bound * 1e12)


@pytest.mark.parametrize("seed", [115, 118])
def test_senders_that_begin_late_beside_background_load_have_a_message(seed: int, tmp_path: Path) -> None:
    """Their periods are much longer than the bounds, after which a run with background load may end."""
    path = placed(tmp_path, random_network(seed).to_xml())
    assert "<inject" in path.read_text()
    told(path, "--search", "--time-limit", "1s")
