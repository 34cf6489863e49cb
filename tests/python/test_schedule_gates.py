"""Schedules carried by gates: written from a schedule, played without time-triggered switches, and judged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from lxml import etree
from typer.testing import CliRunner

import schedule_sets
from simulation import simulate, trial
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import load, load_bytes
from wiregauge.plan import Switch
from wiregauge.scheduling import (
    Gated,
    Problem,
    ProblemError,
    author_of,
    faults_of,
    gated,
    judge_gates,
    priorities_of,
    problem_of,
    scheduled,
    solve,
)
from wiregauge.scheduling.gated import NONE, OTHERS, entries_of
from wiregauge.scheduling.searching import Opens

SECONDS = 4.0
NS = 1000


def carried(xml: str, **options: Any) -> tuple[Gated, Problem, Opens]:
    """A test with its schedule as gates, the problem, and the openings."""
    text, path = xml.encode(), Path("t.xml")
    campaign = load_bytes(text, path, (), "open").campaign
    problem = problem_of(campaign, tagged=True, **options)
    answer = solve(problem, seconds=SECONDS)
    assert answer.opens is not None
    done = scheduled(text, path, campaign, problem, answer.opens, author_of(text, str(path)))
    made = gated(done, path, campaign, problem, answer.opens)
    return made, problem, answer.opens


def unkept(made: Gated, problem: Problem, opens: Opens, place: Path) -> list[str]:
    """What the simulator does otherwise than the schedule promises.

    Every message arrives, each frame leaves each switch when its window opens, up to 1 ns before where the gate of
    another frame of its class was open till then, and no message takes longer than promised.
    """
    run = simulate(made.text.decode(), place)
    names = run.plan.network.names
    assert not any(flow.schedule for flow in run.plan.runs[0].flows)
    assert {node.kind.kind for node in run.plan.network.nodes if isinstance(node.kind, Switch)} == {"cots"}
    found = []
    if outcomes := set(run.messages["outcome"].unique().to_list()) - {"delivered"}:
        found.append(f"outcomes {outcomes}")
    if run.at("drop").height:
        found.append(f"{run.at('drop').height} drops")
    for demand in problem.demands:
        at, period = opens[demand.flow], demand.period * NS
        promised = demand.network_latency(at) * NS
        latencies = run.latencies(demand.flow)
        if not latencies or not promised - NS <= min(latencies) <= max(latencies) <= promised:
            found.append(f"flow {demand.flow}: {min(latencies)} to {max(latencies)}, promised {promised}")
        for window, opening in zip(demand.windows, at, strict=True):
            if window.parent < 0:
                continue
            left = run.at("switch-out", demand.flow, names[window.port.node])["time"].to_list()
            early = {(opening * NS - instant) % period for instant in left}
            if not left or max(early) > NS:
                found.append(f"flow {demand.flow} at {problem.names[window.port]}: {early} ps before")
    return found


def test_gates_carry_generated_schedules(thorough: bool, tmp_path: Path) -> None:
    """Sets on lines, stars and rings; with one priority or several."""
    several = refused = 0
    seeds = range(200) if thorough else range(0, 36, 3)
    for seed in seeds:
        try:
            made, problem, opens = carried(schedule_sets.solvable(seed).xml())
        except ProblemError:
            refused += 1
            continue
        wrong = unkept(made, problem, opens, tmp_path / str(seed))
        assert not wrong, (seed, wrong)
        several += len(set(made.priorities.values())) > 1
        judged = judge_gates(load_bytes(made.text, Path("t.xml")).campaign)
        assert not judged.faults, (seed, judged.faults[:3])
        promised = {d.flow: d.network_latency(opens[d.flow]) * NS for d in problem.demands}
        for flow, (least, most) in judged.latencies.items():
            assert promised[flow] - NS <= least <= most <= promised[flow], (seed, flow)
    # Few frames wait, so few flows are ever in one another's way, and hardly any in that of all others.
    assert several < len(seeds) / 2
    assert refused <= len(seeds) / 20


LOADED = """<test xmlns="urn:wiregauge:test:2" name="loaded" seed="1">
  <network host="ideal">
    <end-system name="a"/> <end-system name="b"/> <end-system name="c"/> <end-system name="d"/>
    <switch name="s" kind="mixed-criticality" delay="4us"/>
    <switch name="t" kind="mixed-criticality" delay="4us"/>
    <link between="a s:1" rate="100Mbit/s" delay="50ns"/>
    <link between="b s:2" rate="100Mbit/s" delay="50ns"/>
    <link between="s:3 t:1" rate="100Mbit/s" delay="100ns"/>
    <link between="c t:2" rate="100Mbit/s" delay="50ns"/>
    <link between="d t:3" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="1" protocol="tt" from="a" to="c" period="1ms" deadline="900us"/>
    <flow id="2" protocol="tt" from="b" to="c" period="1ms"/>
    <flow id="3" protocol="tt" from="b" to="c" period="2ms"/>
    <flow id="4" protocol="be" from="a" to="c"/>
  </flows>
  <tasks duration="100ms">
    <send flow="1" period="1ms" payload="500B"/><receive flow="1"/>
    <send flow="2" period="1ms" payload="200B"/><receive flow="2"/>
    <send flow="3" period="2ms" payload="1000B"/><receive flow="3"/>
    <send flow="4" period="433us" payload="1400B" offset="3us"/><receive flow="4"/>
    <inject on="d" to="c" load="3%" frame="1518B"/>
  </tasks>
  <limits><limit flow="1 2 3" measure="gates.missed" at-most="0"/></limits>
</test>
"""


def file_of(text: bytes | str, place: Path, name: str = "t.xml") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return place / name


def without_limits(text: str) -> str:
    return text.split("<limits>", maxsplit=1)[0] + "</test>\n"


def test_other_traffic_is_never_in_the_way(tmp_path: Path) -> None:
    """Best effort from a talker and load from elsewhere fill what the gates leave; no window is missed."""
    made, problem, opens = carried(without_limits(LOADED))
    assert not unkept(made, problem, opens, tmp_path / "played")
    limits = LOADED[LOADED.index("<limits>") :].encode()
    text = made.text.replace(b"</test>\n", limits)
    judgement = trial(file_of(text, tmp_path / "test"), tmp_path / "run")
    assert judgement.verdict == "PASS", judgement
    root = etree.fromstring(made.text)
    # Talkers that send nothing else need no gates.
    assert [node.get("name") for node in root.iter("{*}end-system") if len(node)] == ["a"]


def test_a_schedule_that_is_not_kept_is_told(tmp_path: Path) -> None:
    """Planted: gates that open later, a talker that sends later, others let in, and a promise that is off."""
    made, problem, opens = carried(without_limits(LOADED))
    path = tmp_path / "t.xml"
    campaign = load_bytes(made.text, path).campaign
    assert not judge_gates(campaign).faults
    assert unkept(made, problem, {**opens, 1: tuple(at + 2 for at in opens[1])}, tmp_path / "shifted")

    def faults(change: str, to: str, only: int = 1) -> set[str]:
        text = made.text.decode()
        assert change in text, text
        told = judge_gates(load_bytes(text.replace(change, to, only).encode(), path).campaign).faults
        return {fault.kind for fault in told}

    send = next(one for one in etree.fromstring(made.text).iter("{*}send") if one.get("flow") == "1")
    talker = f'payload="500B" offset="{send.get("offset")}"'
    # The frame is there in the middle of its opening, which leaves too little.
    late = int(made.talkers[1] / NS) + 20_000
    assert "order" in faults(talker, f'payload="500B" offset="{late}ns"')
    # Whoever opens the gate of others beside that of a frame lets them into its way.
    first = 'open="1" for='
    assert "overlap" in faults(first, 'open="0 1" for=', only=-1)
    assert "deadline" in faults('deadline="900us"', 'deadline="90us"')
    # Windows that leave nothing over are missed by clocks that differ.
    assert {fault.kind for fault in judge_gates(campaign, 1_000_000).faults} == {"length"}


def test_clocks_that_differ_are_allowed_for(tmp_path: Path) -> None:
    """Clocks at both ends of what --precision says: no window is missed, and nothing takes longer than said."""
    made, problem, opens = carried(without_limits(LOADED), precision_ps=1_000_000)
    assert not judge_gates(load_bytes(made.text, Path("t.xml")).campaign, 1_000_000).faults
    for shift in (
        {"s": "-1us"},
        {"t": "-1us"},
        {"a": "-1us", "b": "-1us", "t": "-1us"},
        {"s": "-1us", "b": "-1us"},
    ):
        root = etree.fromstring(made.text)
        for name, offset in shift.items():
            node = next(one for one in root.iter("{*}switch", "{*}end-system") if one.get("name") == name)
            clock = etree.Element(f"{{{etree.QName(node).namespace}}}clock", offset=offset)
            node.insert(0, clock)
        run = simulate(etree.tostring(root).decode(), tmp_path / "-".join(shift))
        assert set(run.messages.filter(run.messages["flow"] < 4)["outcome"].unique()) == {"delivered"}
        for demand in problem.demands:
            most = demand.worst_network_latency(opens[demand.flow], problem.precision) * NS
            assert max(run.latencies(demand.flow)) <= most, (shift, demand.flow)


def test_flows_that_could_change_places_have_priorities_of_their_own() -> None:
    """Two frames wait at one port, and the one that comes first leaves last."""
    xml = without_limits(LOADED)
    windows = '<window port="{port}" offset="{at}us"/>'
    one = windows.format(port="s:3", at=800)
    two = windows.format(port="s:3", at=400)
    crossing = xml.replace('deadline="900us"/>', f'offset="100us">{one}</flow>')
    crossing = crossing.replace(
        'to="c" period="1ms"/>', f'to="c" period="1ms" offset="300us">{two}</flow>', 1
    )
    campaign = load_bytes(crossing.encode(), Path("t.xml"), (), "open").campaign
    problem = problem_of(campaign, fixed=frozenset({1, 2}), tagged=False)
    answer = solve(problem, seconds=SECONDS)
    assert answer.opens is not None
    chosen = priorities_of(problem, answer.opens)
    assert chosen[1] != chosen[2]
    assert {chosen[1], chosen[2]} <= {6, 7}
    assert priorities_of(problem, answer.opens, taken=frozenset({6}))[2] != 6
    with pytest.raises(ProblemError, match="change places"):
        priorities_of(problem, answer.opens, taken=frozenset(range(7)))


def test_lists_of_switches_and_hosts() -> None:
    """They are as long as a cycle; a scheduled class is open for its frame alone, others until a gap before."""
    made, problem, opens = carried(without_limits(LOADED))
    for port in problem.names:
        host = problem.names[port][0] in "ab"
        base, entries = entries_of(problem, opens, made.priorities, port, of_host=host)
        here = problem.at_port()[port]
        assert sum(entry.interval for entry in entries) == math.lcm(*(demand.period for demand, _ in here))
        open_for = sum(entry.interval for entry in entries if entry.opens not in (OTHERS, NONE))
        cycle = math.lcm(*(demand.period for demand, _ in here))
        occupied = sum(demand.windows[at].occupied * (cycle // demand.period) for demand, at in here)
        assert open_for >= occupied if host else open_for == occupied
        assert 0 <= base < cycle
        if not host:
            for before, after in zip(entries, [*entries[1:], entries[0]], strict=True):
                assert not (before.opens == OTHERS and after.opens not in (OTHERS, NONE))


def asked(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["schedule", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_writes_and_checks_it(tmp_path: Path) -> None:
    test = file_of(without_limits(LOADED), tmp_path)
    out = asked(test, "--gates", "--out", tmp_path / "out", "--json")
    document = json.loads(out)
    jsonschema_rs.Draft202012Validator(
        json.loads(schema_of("schedule").read_text(encoding="utf-8"))
    ).validate(document)
    made = tmp_path / "out" / "t-gates.xml"
    assert str(made) in document["written"]
    assert {flow["priority"] for flow in document["flows"]} <= {6, 7}
    load(made)
    # The test with time-triggered flows holds as well, with room for the tag.
    assert "holds" in asked(tmp_path / "out" / "t.xml", "--check")
    assert "gates carry the 3 scheduled flows" in asked(made, "--check")
    late = file_of(
        made.read_text(encoding="utf-8").replace(
            '<switch name="t"', '<switch name="t" mixed-rate-delay="0s"'
        ),
        tmp_path,
        "same.xml",
    )
    assert "gates carry" in asked(late, "--check")
    slower = made.read_text(encoding="utf-8").replace('delay="4us"', 'delay="5us"')
    told = json.loads(asked(file_of(slower, tmp_path, "slower.xml"), "--check", "--json", code=1))
    jsonschema_rs.Draft202012Validator(
        json.loads(schema_of("schedule").read_text(encoding="utf-8"))
    ).validate(told)
    assert {fault["kind"] for fault in told["faults"]} >= {"order"}
    assert "has an effect with --out" in asked(test, "--gates", code=2)


def test_what_gates_cannot_carry_is_refused(tmp_path: Path) -> None:
    def refused(*changes: tuple[str, str]) -> str:
        text = without_limits(LOADED)
        for change, to in changes:
            assert change in text
            text = text.replace(change, to)
        return asked(file_of(text, tmp_path), "--gates", "-o", tmp_path / "no", code=2)

    link = ('<flow id="4" protocol="be"', '<flow id="4" bag="1ms" protocol="rc"')
    assert "virtual link" in refused(
        link, ('period="433us"', 'period="4ms"'), ('<inject on="d" to="c" load="3%" frame="1518B"/>', "")
    )
    assert "made once" in refused(('<send flow="3" period="2ms"', '<send flow="3" period="3ms"'))


def test_a_schedule_stays_what_it_was_without_gates() -> None:
    """Frames have a tag where gates are asked for, and nowhere else."""
    text = without_limits(LOADED).encode()
    campaign = load_bytes(text, Path("t.xml"), (), "open").campaign
    plain, tagged = problem_of(campaign), problem_of(campaign, tagged=True)
    one, other = plain.of(1).windows[1], tagged.of(1).windows[1]
    assert (one.occupied, other.occupied) == ((500 + 18 + 20) * 80, (500 + 22 + 20) * 80)
    answer = solve(tagged, seconds=SECONDS)
    assert answer.opens is not None
    assert not faults_of(tagged, answer.opens)


ROOM = """<test xmlns="urn:wiregauge:test:2" name="room" seed="1">
<network host="ideal">
<end-system name="a">{of_a}</end-system><end-system name="b">{of_a}</end-system>
<end-system name="d"/><end-system name="e"/>
<switch name="s" priorities="strict" {switch}>
<switch-tsn ports="3">
<traffic-class number="0" priorities="0 1 2 3 4 5 6"/><traffic-class number="1" priorities="7"/>
<gate-schedule><gate-entry open="0" for="500us"/><gate-entry open="1" for="500us"/></gate-schedule>
</switch-tsn>
</switch>
<link between="a s:1" rate="100Mbit/s"/><link between="b s:2" rate="100Mbit/s"/>
<link between="s:3 e" rate="100Mbit/s"/><link between="d s:4" rate="1Gbit/s"/>
</network>
<flows>{flows}</flows>
<tasks warm-up="0s" duration="50ms">
{sends}{task}
</tasks>
</test>
"""
"""Four frames of 1000 B of one talker and two of another, that wait for a gate together."""


def crowded(switch: str = "", of_a: str = "", task: str = "") -> str:
    pairs = [(f"{number}", "a" if number < 5 else "b") for number in range(1, 7)]
    flows = (f'<flow id="{n}" protocol="raw" from="{at}" to="e" vlan="1" priority="7"/>' for n, at in pairs)
    sends = (f'<send flow="{n}" period="1ms" payload="978B"/><receive flow="{n}"/>' for n, _ in pairs)
    return ROOM.format(switch=switch, of_a=of_a, task=task, flows="".join(flows), sends="".join(sends))


OVERLOAD = '<inject on="d" to="e" load="12%" frame="200B"/>'
CROWDED: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "bytes of a port": ({"switch": 'buffer="5999B"'}, {"switch": 'buffer="6000B"'}),
    "frames of a port": ({"switch": 'buffer-frames="5"'}, {"switch": 'buffer-frames="6"'}),
    "a queue": ({"switch": 'queue-buffer="5KiB"'}, {"switch": 'queue-buffer="6KiB"'}),
    "frames of a queue": ({"switch": 'queue-frames="5"'}, {"switch": 'queue-frames="6"'}),
    "a shared buffer": ({"switch": 'shared-buffer="5KiB"'}, {"switch": 'shared-buffer="6KiB"'}),
    # The first of four is on the line at once.
    "an egress queue": ({"of_a": '<host egress="2KiB"/>'}, {"of_a": '<host egress="3KiB"/>'}),
    "a port that others fill": (
        {"switch": 'buffer="16KiB"', "task": OVERLOAD},
        {"switch": 'buffer="16KiB" queue-buffer="8KiB"', "task": OVERLOAD},
    ),
}


@pytest.mark.parametrize("name", sorted(CROWDED))
def test_gates_carry_nothing_that_finds_no_room(name: str, tmp_path: Path) -> None:
    """What the simulator loses the judge tells, and what it says is carried arrives."""
    for parts, holds in zip(CROWDED[name], (False, True), strict=True):
        text = crowded(**parts)
        told = asked(file_of(text, tmp_path / str(holds)), "--check", code=0 if holds else 1)
        assert ("gates carry the 6 scheduled flows" in told) is holds, told
        assert ("  buffer: " in told) is not holds, told
        run = simulate(text, tmp_path / str(holds) / "run")
        assert (set(run.messages["outcome"].unique()) == {"delivered"}) is holds


def test_others_are_in_the_way_also_where_no_gate_is(tmp_path: Path) -> None:
    """A port without gates keeps nobody out of the way of what passes a gate elsewhere."""
    text = crowded(task='<inject on="b" to="d" load="1%" frame="1518B"/>')
    told = asked(file_of(text, tmp_path), "--check", code=1)
    assert "flow 5 at b:1: traffic without a schedule leaves there as well, and no gate keeps it out" in told
    assert "at a:1" not in told
