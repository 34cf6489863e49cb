"""Schedules of whole networks: made from a hidden one, found again, and played in the simulator."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from lxml import etree
from msgspec import Struct
from msgspec.structs import replace
from typer.testing import CliRunner

import schedule_sets
from simulation import simulate
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import load, load_bytes
from wiregauge.plan import Attachment
from wiregauge.scheduling import (
    Answer,
    GateList,
    Problem,
    ProblemError,
    author_of,
    faults_of,
    gate_lists,
    managed,
    priorities_of,
    problem_of,
    scheduled,
    solve,
    unscheduled,
)
from wiregauge.scheduling.gates import Entry
from wiregauge.scheduling.searching import Opens

SECONDS, SHORT = 10.0, 4.0
"""Time for a set, and in a short form of the same test."""


class Solved(Struct):
    """A set and what came of it."""

    problem: Problem
    answer: Answer
    text: bytes | None
    """The test with its schedule."""
    took: float


def solved(test: schedule_sets.Set, seconds: float = SECONDS, **options: Any) -> Solved:
    text, path = test.xml().encode(), Path(f"{test.name}.xml")
    campaign = load_bytes(text, path, (), "open").campaign
    problem = problem_of(campaign)
    begun = time.monotonic()
    answer = solve(problem, seconds=seconds, **options)
    took = time.monotonic() - begun
    if answer.opens is None:
        return Solved(problem, answer, None, took)
    done = scheduled(text, path, campaign, problem, answer.opens, author_of(text, str(path)))
    return Solved(problem, answer, done, took)


def misses(text: str, problem: Problem, opens: Opens, place: Path) -> Sequence[str]:
    """What the simulator does otherwise than the schedule promises; clocks agree, and nothing else is sent.

    Every message arrives, each frame leaves each port at the instant its window opens there, and the time from the
    first bit out of the sender to the last bit at the receiver is the one promised.
    """
    run = simulate(text, place)
    names = run.plan.network.names
    found = []
    outcomes = set(run.messages["outcome"].unique().to_list())
    if outcomes - {"delivered"}:
        found.append(f"outcomes {outcomes}")
    if run.at("drop").height:
        found.append(f"{run.at('drop').height} drops")
    for demand in problem.demands:
        at, period = opens[demand.flow], demand.period * 1000
        latencies = set(run.latencies(demand.flow))
        if latencies != {demand.network_latency(at) * 1000}:
            found.append(
                f"flow {demand.flow}: latencies {latencies}, promised {demand.network_latency(at) * 1000}"
            )
        for window, opening in zip(demand.windows, at, strict=True):
            point = "wire-send" if window.parent < 0 else "switch-out"
            times = run.at(point, demand.flow, names[window.port.node])["time"].to_list()
            phases = {instant % period for instant in times}
            if not times or phases != {opening * 1000 % period}:
                found.append(
                    f"flow {demand.flow} at {problem.names[window.port]}: {phases}, not {opening * 1000}"
                )
        if demand.deadline is not None:
            sent, came = (
                run.times("application-send", demand.flow),
                run.times("application-receive", demand.flow),
            )
            oldest = max(came[number] - sent[number] for number in sent)
            if oldest > demand.deadline * 1000:
                found.append(f"flow {demand.flow}: {oldest} ps old, deadline {demand.deadline * 1000}")
    shutil.rmtree(place)
    return found


def judged(seeds: Sequence[int], place: Path, seconds: float = SECONDS) -> dict[str, float]:
    """Solves and plays sets; what is not kept is asserted."""
    count: dict[str, float] = {
        "solved": 0,
        "proven": 0,
        "slowest": 0.0,
        "seconds": 0.0,
        "flows": 0,
        "waiting": 0,
    }
    for seed in seeds:
        one = solved(schedule_sets.solvable(seed), seconds)
        assert one.answer.clash is None, f"set {seed} has a schedule, and was called infeasible"
        count["seconds"] += one.took
        if one.text is None or one.took > SECONDS:
            continue
        assert one.answer.opens is not None
        opens = one.answer.opens
        assert not faults_of(one.problem, opens), seed
        wrong = misses(one.text.decode(), one.problem, opens, place / str(seed))
        assert not wrong, (seed, wrong)
        count["slowest"] = max(count["slowest"], one.took)
        count["solved"] += 1
        count["flows"] += len(one.problem.demands)
        count["proven"] += one.answer.proof == "proven"
        count["waiting"] += any(
            opens[d.flow] != tuple(opens[d.flow][0] + shift for shift in d.at_once())
            for d in one.problem.demands
        )
    return count


def test_hidden_schedules_are_found_and_play_as_promised(thorough: bool, tmp_path: Path) -> None:
    seeds = range(1000) if thorough else range(0, 60, 2)
    count = judged(seeds, tmp_path, SECONDS if thorough else SHORT)
    assert count["solved"] >= 0.95 * len(seeds), count
    assert count["proven"] >= 0.8 * count["solved"], count
    # Not all of them the easy way: some wait in switches.
    assert count["waiting"] > 0 or not thorough, count


def test_sets_without_a_schedule_are_named_with_the_flows_that_clash(thorough: bool) -> None:
    for seed in range(100 if thorough else 12):
        test, guilty = schedule_sets.infeasible(seed)
        answer = solved(test).answer
        assert answer.opens is None, seed
        assert answer.clash is not None, seed
        assert set(answer.clash.flows) == guilty, (seed, answer.clash, guilty)
        assert answer.clash.minimal, (seed, answer.clash)


def test_without_one_of_those_that_clash_there_is_a_schedule(tmp_path: Path) -> None:
    for seed in range(6):
        test, guilty = schedule_sets.infeasible(seed)
        test.flows = [flow for flow in test.flows if flow.number != min(guilty)]
        if test.flows:
            one = solved(test)
            assert one.text is not None
            assert one.answer.opens is not None
            assert not misses(one.text.decode(), one.problem, one.answer.opens, tmp_path / str(seed))


def test_the_simulator_tells_a_schedule_that_is_not_kept(tmp_path: Path) -> None:
    """Planted: promises that are off by 1 ns, and a frame longer than planned for."""
    one = solved(schedule_sets.solvable(6))
    assert one.text is not None
    assert one.answer.opens is not None
    opens, text = one.answer.opens, one.text.decode()
    assert not misses(text, one.problem, opens, tmp_path / "a")
    first = one.problem.demands[0]
    shifted = {**opens, first.flow: tuple(at + 1 for at in opens[first.flow])}
    assert misses(text, one.problem, shifted, tmp_path / "b")
    late = {**opens, first.flow: (*opens[first.flow][:-1], opens[first.flow][-1] + 1)}
    assert any("latencies" in line for line in misses(text, one.problem, late, tmp_path / "c"))


def test_fewest_windows_play_as_well(tmp_path: Path) -> None:
    one = solved(schedule_sets.solvable(24), SHORT, objective="windows")
    other = solved(schedule_sets.solvable(24))
    assert one.text is not None
    assert one.answer.opens is not None
    assert other.answer.opens is not None
    assert not misses(one.text.decode(), one.problem, one.answer.opens, tmp_path / "x")
    opened = [
        sum(gates.openings for gates in gate_lists(problem, opens, priorities_of(problem, opens)))
        for problem, opens in ((one.problem, one.answer.opens), (other.problem, other.answer.opens))
    ]
    assert opened[0] < opened[1]


TWO = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Of an author: offset="5us" in a comment stays. -->
<test xmlns="urn:wiregauge:test:2" name="two" seed="1">
  <network host="ideal">
    <end-system name="a"/> <end-system name="b"/> <end-system name="c"/>
    <switch name="sw" kind="mixed-criticality" delay="4us"{switch}/>
    <link between="a sw:1" rate="100Mbit/s" delay="50ns"/>
    <link between="b sw:2" rate="100Mbit/s" delay="50ns"/>
    <link between="c sw:3" rate="100Mbit/s" delay="50ns"/>
  </network>
  <flows>
    <flow id="1" protocol="tt" from="a" to="c"
          period='1ms'{one}/>   <!-- the first -->
    <flow id="2" protocol="tt" from="b" to="c" period="1ms"{two}></flow>
    <flow id="3" protocol="be" from="a" to="c"/>
  </flows>
  <tasks duration="50ms">
    <send flow="1" period="1ms" payload="500B"/><receive flow="1"/>
    <send flow="2" period="1ms" payload="500B"/><receive flow="2"/>
    <send flow="3" period="173us" payload="1400B" offset="3us"/><receive flow="3"/>
  </tasks>
</test>
"""


def two(tmp_path: Path, one: str = "", two: str = "", switch: str = "") -> Path:
    file = tmp_path / "two.xml"
    file.write_text(TWO.format(one=one, two=two, switch=switch), encoding="utf-8")
    return file


def asked(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["schedule", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def told(*words: object, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["schedule", *map(str, words), "--json"])
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    schema = json.loads(schema_of("schedule").read_text(encoding="utf-8"))
    jsonschema_rs.Draft202012Validator(schema).validate(document)
    return document


def test_the_text_of_the_author_stays(tmp_path: Path) -> None:
    file = two(tmp_path)
    before = file.read_text(encoding="utf-8")
    asked(file, "--out", tmp_path / "out")
    assert file.read_text(encoding="utf-8") == before
    after = (tmp_path / "out" / "two.xml").read_text(encoding="utf-8")
    load(tmp_path / "out" / "two.xml")
    # 518 B with preamble, gap and 2 us of slack: 45.04 us. The second follows the first at the last port.
    expected = before.replace("period='1ms'/>", "period='1ms' offset=\"0ns\"/>")
    expected = expected.replace('to="c" period="1ms"></flow>', 'to="c" period="1ms" offset="45040ns"></flow>')
    assert after == expected
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "two.xml",
        "schedule.html",
        "schedule.json",
        "taprio.txt",
        "netconf",
    }
    page = (tmp_path / "out" / "schedule.html").read_text(encoding="utf-8")
    assert "Schedule of two" in page
    assert "sw:3" in page


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file, out = two(tmp_path), tmp_path / "out"
    out.mkdir()
    assert "name a folder that does not exist" in asked(file, "--out", out, code=2)
    assert not list(out.iterdir())


def test_what_has_a_schedule_stays_and_again_moves_it(tmp_path: Path) -> None:
    file = two(tmp_path, one=' offset="30us"')
    shown = told(file)
    flows = {flow["flow"]: flow for flow in shown["flows"]}
    assert flows[1]["fixed"]
    assert flows[1]["dispatch_ns"] == 30_000
    assert flows[2]["dispatch_ns"] != 30_000
    assert not told(file, "--again")["flows"][0]["fixed"]
    assert told(file, "--again")["flows"][0]["dispatch_ns"] == 0
    whole = two(tmp_path, one=' offset="30us"', two=' offset="300us"')
    assert "--again" in asked(whole, code=2)
    stripped = unscheduled(whole.read_bytes(), "two.xml").decode()
    assert 'offset="30' not in stripped.replace('offset="5us"', "")


def test_a_sender_on_the_cycle_waits_for_no_period_wherever_its_flow_is_dispatched(tmp_path: Path) -> None:
    """Its message is ready as its flow is dispatched: a deadline far below the period can be met at any dispatch."""

    def problem(release: str) -> Problem:
        text = f"""<test xmlns="urn:wiregauge:test:2" name="cycle"><network host="ideal">
          <end-system name="a"/><end-system name="b"/><switch name="s" kind="mixed-criticality" delay="2us"/>
          <link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/></network>
          <flows><flow id="1" protocol="tt" from="a" to="b" period="1ms" deadline="100us"/></flows>
          <tasks warm-up="7.7ms"><send flow="1" period="2ms" payload="100B" count="9"{release}/><receive flow="1"/>
          </tasks></test>"""
        return problem_of(load_bytes(text.encode(), Path("cycle.xml"), (), "open").campaign)

    (demand,) = problem(' cycle-offset="dispatch"').demands
    assert (demand.release, demand.steady_wait) == (None, 0)
    assert {demand.wait(dispatch) for dispatch in (0, 123_456, 999_000)} == {0}
    assert solve(problem(' cycle-offset="dispatch"'), seconds=SHORT).opens is not None
    (late,) = problem(' offset="1us"').demands
    assert len({late.wait(dispatch) for dispatch in (0, 123_456, 999_000)}) == 3


def test_windows_by_hand_are_written_where_they_are_needed(tmp_path: Path) -> None:
    """Precision shortens windows, so every one says its length; the plan, the judge and the simulator agree."""
    file, out = two(tmp_path), tmp_path / "out"
    shown = told(file, "--precision", "500ns")
    assert {w["length_ns"] for flow in shown["flows"] for w in flow["windows"]} == {43_540}
    asked(file, "--precision", "500ns", "--out", out)
    text = (out / "two.xml").read_text(encoding="utf-8")
    assert text.count("<window ") == 4
    assert text.count("<!-- the first -->") == 1
    assert "holds" in asked(out / "two.xml", "--check", "--precision", "500ns")
    assert "length" in asked(out / "two.xml", "--check", "--precision", "501ns", code=1)
    bare = asked(out / "two.xml", "--again", "--precision", "3us", "--out", tmp_path / "more")
    assert "written" in bare
    again = (tmp_path / "more" / "two.xml").read_text(encoding="utf-8")
    assert again.count("<window ") == 4
    assert again.count('early="3us"') == 2
    assert "holds" in asked(tmp_path / "more" / "two.xml", "--check", "--precision", "3us")


@pytest.mark.parametrize("integration", ["shuffling", "preemption", "timely-block"])
def test_clocks_as_far_apart_as_allowed_lose_nothing(integration: str, tmp_path: Path) -> None:
    """With 1 us of precision and each node at either end of it, beside other traffic."""
    file = two(tmp_path, switch=f' integration="{integration}"')
    asked(file, "--precision", "1us", "--out", tmp_path / "out")
    text = (tmp_path / "out" / "two.xml").read_text(encoding="utf-8")
    promised = {flow["flow"]: flow for flow in told(file, "--precision", "1us")["flows"]}
    for at, offsets in enumerate(((0, 1, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0), (0, 0, 1, 1))):
        moved = text
        moved = moved.replace('payload="500B"/>', 'payload="500B" offset="900us"/>')
        for node, offset in zip(
            ("end-system a", "end-system b", "end-system c", "switch sw"), offsets, strict=True
        ):
            kind, name = node.split()
            clock = f'<clock offset="{offset}us"/>'
            start = moved.index(f'<{kind} name="{name}"')
            end = moved.index("/>", start)
            moved = f"{moved[:end]}>{clock}</{kind}>{moved[end + 2 :]}"
        run = simulate(moved, tmp_path / str(at))
        assert run.at("drop").height == 0
        assert run.messages["outcome"].unique().to_list() == ["delivered"]
        for flow, promise in promised.items():
            assert max(run.latencies(flow)) <= promise["latency_most_ns"] * 1000


def test_a_group_becomes_its_members(tmp_path: Path) -> None:
    file = tmp_path / "group.xml"
    ends = '<end-system name="d[1-3]"/><end-system name="c"/><switch name="sw" kind="mixed-criticality"/>'
    links = '<link between="d[1-3] sw" rate="100Mbit/s"/><link between="c sw" rate="100Mbit/s"/>'
    file.write_text(
        f'<test xmlns="urn:wiregauge:test:2" name="g">\n<network host="ideal">{ends}{links}</network>\n<flows>\n'
        '  <flow id="11-13" protocol="tt" from="d[1-3]" to="c" period="1ms"/>\n</flows>\n'
        '<tasks duration="20ms"><send flow="11-13" period="1ms" payload="100B"/><receive '
        'flow="11-13"/></tasks>\n</test>\n'
    )
    asked(file, "--out", tmp_path / "out")
    text = (tmp_path / "out" / "group.xml").read_text(encoding="utf-8")
    assert text.count("<flow id=") == 4
    assert 'it was <flow id="11-13"' in text
    assert 'from="d2" to="c" period="1ms" offset="' in text
    assert "holds" in asked(tmp_path / "out" / "group.xml", "--check")


def test_a_schedule_from_elsewhere_is_judged(tmp_path: Path) -> None:
    file = two(tmp_path)
    document = told(file)
    path = tmp_path / "elsewhere.json"

    def kinds(code: int) -> set[str]:
        path.write_text(json.dumps(document))
        return {fault["kind"] for fault in told(file, "--check", "--from", path, code=code)["faults"]}

    assert kinds(0) == set()
    flow = document["flows"][1]
    was = json.loads(json.dumps(flow))
    flow["windows"][1]["offset_ns"] = document["flows"][0]["windows"][1]["offset_ns"]
    flow["windows"][0]["offset_ns"] = 0
    assert kinds(1) == {"overlap"}
    flow["windows"][1]["offset_ns"] = 1000
    assert "order" in kinds(1)
    flow.update(json.loads(json.dumps(was)))
    flow["windows"][1]["length_ns"] = 43_039
    assert kinds(1) == {"length"}
    flow.update(json.loads(json.dumps(was)), period_ns=2_000_000)
    assert kinds(1) == {"period"}
    flow.update(json.loads(json.dumps(was)), flow=7)
    assert kinds(1) == {"plan", "missing"}
    flow.update(json.loads(json.dumps(was)))
    del flow["windows"][1]
    assert kinds(1) == {"missing"}
    document["flows"] = 3
    path.write_text(json.dumps(document))
    assert "flows" in asked(file, "--check", "--from", path, code=2)


def test_a_schedule_that_clashes_is_faulty_and_bad_input_is_bad_input(tmp_path: Path) -> None:
    clash = two(tmp_path, one=' offset="0us"', two=' offset="0us"')
    found = told(clash, "--check", code=1)
    assert [fault["kind"] for fault in found["faults"]] == ["overlap"]
    assert found["faults"][0]["flows"] == [1, 2]
    assert found["faults"][0]["port"] == "sw:3"
    early = two(tmp_path, one='><window port="sw:3" offset="10us"/></flow', two=' offset="500us"')
    early.write_text(early.read_text(encoding="utf-8").replace("</flow/>", "</flow>"), encoding="utf-8")
    assert told(early, "--check", code=1)["faults"][0]["kind"] == "plan"
    assert "no such file" in asked(tmp_path / "none.xml", code=2)
    unknown = tmp_path / "unknown.xml"
    unknown.write_text(early.read_text(encoding="utf-8").replace("<tasks", "<task"), encoding="utf-8")
    assert asked(unknown, "--again", code=2).startswith(f"{unknown}:")
    assert told(unknown, code=2)["outcome"] == "refused"
    first = Path(__file__).resolve().parents[2] / "examples" / "first.xml"
    assert "no time-triggered flow" in asked(first, code=2)
    assert "--from" in asked(clash, "--from", clash, code=2)
    assert "--grid" in asked(two(tmp_path), "--grid", "7us", code=2)
    # Flow 2 is to avoid flow 1, which is fixed and does not go with it.
    long = two(tmp_path, one=' offset="0us" window="990us"')
    assert told(long, code=1)["clash"]["flows"] == [1, 2]


BOTH = """<test xmlns="urn:wiregauge:test:2" name="both"><network host="ideal">
<end-system name="a"/><end-system name="b"/><end-system name="c"/>
<switch name="sa" kind="mixed-criticality" delay="4us"/><switch name="sb" kind="mixed-criticality" delay="9us"/>
<link between="a sa" rate="100Mbit/s"/><link between="b sa" rate="100Mbit/s"/><link between="c sa" rate="100Mbit/s"/>
<link between="a sb" rate="100Mbit/s" network="B"/><link between="b sb" rate="100Mbit/s" network="B"/>
<link between="c sb" rate="100Mbit/s" network="B"/></network>
<flows><flow id="1" protocol="tt" from="a" to="c b" networks="both" period="1ms"/>
<flow id="2" protocol="tt" from="b" to="c" networks="both" period="1ms"/>
<flow id="3" protocol="tt" from="b" to="a" networks="B" period="2ms"/></flows>
<tasks duration="40ms"><send flow="1" period="1ms" payload="200B"/><receive flow="1"/>
<send flow="2" period="1ms" payload="700B"/><receive flow="2"/>
<send flow="3" period="2ms" payload="700B"/><receive flow="3"/></tasks></test>
"""


@pytest.mark.parametrize("minimise", ["latency", "windows"])
def test_several_receivers_on_two_networks(minimise: str, tmp_path: Path) -> None:
    """Both networks are left at one instant; every window of the tree is where the file says."""
    file, out = tmp_path / "both.xml", tmp_path / "out"
    file.write_text(BOTH, encoding="utf-8")
    options = ("--precision", "700ns", "--minimise", minimise, "--time-limit", "4s")
    shown = {flow["flow"]: flow for flow in told(file, *options, "--out", out)["flows"]}
    assert "holds" in asked(out / "both.xml", "--check", "--precision", "700ns")
    run = simulate((out / "both.xml").read_text(encoding="utf-8"), tmp_path / "run")
    assert run.messages["outcome"].unique().to_list() == ["delivered"]
    assert run.at("drop").filter(run.at("drop")["reason"] != "second-copy").height == 0
    for number, flow in shown.items():
        roots = [window for window in flow["windows"] if window["port"][0] in "abc"]
        assert {window["offset_ns"] for window in roots} == {flow["dispatch_ns"]}
        for window in flow["windows"]:
            node, _, port = window["port"].partition(":")
            point = "wire-send" if node in "abc" else "switch-out"
            left = run.at(point, number, node, int(port))["time"].to_list()
            assert left
            assert {at % int(flow["period_ns"] * 1000) for at in left} == {window["offset_ns"] * 1000}


def test_windows_open_on_the_grid(tmp_path: Path) -> None:
    shown = told(two(tmp_path), "--grid", "8us")
    times = [w[key] for flow in shown["flows"] for w in flow["windows"] for key in ("offset_ns", "length_ns")]
    assert all(at % 8000 == 0 for at in times)
    asked(two(tmp_path), "--grid", "8us", "--out", tmp_path / "out")
    assert "holds" in asked(tmp_path / "out" / "two.xml", "--check")


def test_taprio_says_the_same_as_the_gates(tmp_path: Path) -> None:
    shown = told(two(tmp_path), "--interface", "sw:3=enp3s0", "--guard", "10us")
    port = next(port for port in shown["ports"] if port["port"] == "sw:3")
    (line,) = port["taprio"]
    assert line.startswith("tc qdisc replace dev enp3s0 root ")
    assert " taprio num_tc 2 " in line
    words = line.split()
    entries = [words[at + 2 : at + 4] for at, word in enumerate(words) if word == "sched-entry"]
    classes = {0x7F: "01", 0x80: "02", 0: "00"}
    assert entries == [[classes[entry["mask"]], str(entry["interval_ns"])] for entry in port["entries"]]
    assert sum(entry["interval_ns"] for entry in port["entries"]) == port["cycle_ns"] == 1_000_000
    assert [e["interval_ns"] for e in port["entries"] if e["mask"] == 0] == [10_000]
    asked(two(tmp_path), "--interface", "sw:9=eth0", code=2)


def test_netconf_configures_the_same_gates(tmp_path: Path) -> None:
    """Read by the names of the published modules, the lists are those of the ports, and so is the cycle."""
    modules = "urn:ieee:std:802.1Q:yang:ieee802-dot1"
    of = {
        "if": "urn:ietf:params:xml:ns:yang:ietf-interfaces",
        "bridge": f"{modules}q-bridge",
        "port": f"{modules}q-sched-bridge",
        "host": f"{modules}dc-sched-if",
    }
    asked(two(tmp_path), "--out", tmp_path / "out", "--interface", "sw:3=TE1/3")
    shown = json.loads((tmp_path / "out" / "schedule.json").read_text(encoding="utf-8"))
    files = sorted((tmp_path / "out" / "netconf").iterdir())
    assert [file.name for file in files] == ["a.xml", "b.xml", "sw.xml"]
    assert {str(file) for file in files} <= set(shown["written"])
    (interface,) = etree.parse(files[-1]).findall("if:interface", of)
    assert interface.findtext("if:name", namespaces=of) == "TE1/3"
    table = interface.find("bridge:bridge-port/port:gate-parameter-table", of)
    assert table is not None
    assert [table.findtext(f"port:{leaf}", namespaces=of) for leaf in ("gate-enabled", "config-change")] == [
        "true"
    ] * 2
    entries = [[leaf.text for leaf in entry] for entry in table.iterfind("port:admin-control-list/*", of)]
    (port,) = (port for port in shown["ports"] if port["port"] == "sw:3")
    assert entries == [
        [str(at), "sched:set-gate-states", str(entry["interval_ns"]), str(entry["mask"])]
        for at, entry in enumerate(port["entries"])
    ]
    (operation, *_) = table.iterfind(
        "port:admin-control-list/port:gate-control-entry/port:operation-name", of
    )
    assert operation.nsmap["sched"] == f"{modules}q-sched"
    cycle = [int(leaf.text or "") for leaf in table.iterfind("port:admin-cycle-time/*", of)]
    assert Fraction(*cycle) == Fraction(port["cycle_ns"], 10**9)
    assert etree.parse(files[0]).find("if:interface/host:gate-parameter-table", of) is not None
    # That is no name for tc, which is said; the other ports have their commands.
    assert port["taprio"] == []
    assert "# sw:3" not in (tmp_path / "out" / "taprio.txt").read_text(encoding="utf-8")


def test_netconf_counts_classes_by_the_standard_and_splits_what_32_bits_cannot_hold(tmp_path: Path) -> None:
    """By Table 8-5 of IEEE Std 802.1Q-2022, priority 0 is class 1 and priority 1 is class 0."""
    campaign = load_bytes(two(tmp_path).read_bytes(), tmp_path / "two.xml", (), "open").campaign
    at = Attachment(next(k for k, node in enumerate(campaign.network.nodes) if node.name == "sw"), 3)
    long = 5_000_000_000
    lists = [GateList(at, "sw:3", long + 7_000, (Entry(0b0000_0001, long), Entry(0b1000_0010, 7_000)), 0, 0)]
    (text,) = managed(campaign, lists, {"sw:3": "swp3"}).values()
    entries = [
        [int(leaf.text or "") for leaf in list(entry)[2:]]
        for entry in etree.fromstring(text).iter("{*}gate-control-entry")
    ]
    assert entries == [[2**32 - 1, 0b10], [long - (2**32 - 1), 0b10], [7_000, 0b1000_0001]]
    with pytest.raises(ProblemError, match="repeat every 5000000001 ns"):
        managed(campaign, [replace(lists[0], cycle=long + 1)], {"sw:3": "swp3"})


def test_no_answer_in_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from wiregauge import scheduling

    monkeypatch.setattr(
        scheduling,
        "solve",
        lambda problem, **_: Answer(None, None, "best-found", 1.0, "nobody", solver_missing=True),
    )
    shown = asked(two(tmp_path), code=4)
    assert "wiregauge[schedule]" in shown
    assert "--time-limit" in shown


def test_the_plan_and_the_judge_agree_on_clashes() -> None:
    """The plan refuses exactly those random schedules in which the judge finds faults."""
    import random

    from wiregauge.config import TestError

    chance, seen = random.Random(5), {True: 0, False: 0}
    for seed in range(40):
        test = schedule_sets.solvable(seed)
        test.flows = test.flows[: chance.randint(2, 5)]
        for flow in test.flows:
            flow.deadline = None
        text, path = test.xml().encode(), Path("x.xml")
        campaign = load_bytes(text, path, (), "open").campaign
        problem = problem_of(campaign)
        opens: Opens = {}
        for demand in problem.demands:
            first = chance.randrange(demand.period // 8)
            opens[demand.flow] = tuple(first + shift for shift in demand.at_once())
        sound = not faults_of(problem, opens)
        seen[sound] += 1
        changed = text.decode()
        for number, at in opens.items():
            changed = changed.replace(f'<flow id="{number}" ', f'<flow id="{number}" offset="{at[0]}ns" ')
        try:
            load_bytes(changed.encode(), path)
            accepted = True
        except TestError:
            accepted = False
        # The plan derives windows that wait where ours would cross the end of a period; here none does.
        assert accepted == sound, (seed, opens)
    assert min(seen.values()) > 5


def test_a_finer_problem_stays_the_same_problem() -> None:
    """On a grid of 1 ps the answer is as good as on 1 ns, and its times are those of the plan."""
    text = schedule_sets.solvable(3).xml().encode()
    campaign = load_bytes(text, Path("x.xml"), (), "open").campaign
    coarse, fine = problem_of(campaign), problem_of(campaign, grid_ps=1)
    one, other = solve(coarse), solve(fine)
    assert one.opens is not None
    assert other.opens is not None
    assert one.proof == other.proof == "proven"
    assert not faults_of(fine, other.opens)
    scaled = replace(fine, demands=fine.demands)
    assert scaled.precision == 1000 * coarse.precision
