"""Background load is judged where it should have arrived: by every way to lose it, and by none that the test loads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chosen import also
from simulation import trial
from wiregauge.measures import Grade, RunResult
from wiregauge.measures.metrics.load_plan import InjectPlan
from wiregauge.measures.validity.load import load_account
from wiregauge.measures.validity.streams import dropped_text, load_accounts
from wiregauge.plan import NETWORK
from wiregauge.records.reported import AgentReport, LoadFate, TaskReport

FAULTS = Path(__file__).parents[1] / "faults"
TEST = """<test xmlns="urn:wiregauge:test:2" name="load" seed="1">
  <network host="ideal">
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="s1"/><switch name="s2" {buffer}/>
    <link between="a s2" rate="100Mbit/s"/><link between="b s2" rate="100Mbit/s"/>
    <link between="c s1" rate="100Mbit/s"/><link between="d s2" rate="100Mbit/s"/>
    <link between="s1 s2" rate="100Mbit/s"/>
  </network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks>
    <send flow="1" period="1ms" payload="64B" count="500"/><receive flow="1"/>
    <inject on="c" to="b" load="{load}%" burst="{burst}"/>{more}
  </tasks>
  {faults}
</test>
"""


def run(
    place: Path, *, load: int = 60, faults: str = "", more: str = "", buffer: str = "", burst: int = 1
) -> RunResult:
    place.mkdir(parents=True, exist_ok=True)
    file = place / "t.xml"
    faults = f"<faults>{faults}</faults>" if faults else ""
    file.write_text(TEST.format(load=load, faults=faults, more=more, buffer=buffer, burst=burst))
    return trial(file, place / "out").runs[0]


def checked(found: RunResult, name: str = "background-load-account") -> Any:
    return next(check for check in found.checks if check.name == name)


def test_a_load_that_passes_a_cut_link_by_nothing_was_not_offered(tmp_path: Path) -> None:
    found = trial(FAULTS / "load-cut.xml", tmp_path / "out").runs[0]
    (load,) = found.loads
    assert (load.offered, load.arrived, load.arrived_frames, load.never_came) == (
        0.0,
        0.0,
        0,
        load.sent_frames,
    )
    assert found.validity is Grade.DEGRADED
    assert any(
        "0 of 7320 arrived (own link 7320); the test plants a cut" in reason for reason in found.reasons
    )


@pytest.mark.parametrize(
    ("faults", "planted", "offered"),
    [
        ('<cut link="c s1" from="100ms"/>', "cut", False),
        ('<cut link="s1 s2" from="0s"/>', "cut", True),
        ('<cut link="b s2" from="0s" until="300ms"/>', "cut", True),
        ('<loss link="s1 s2" share="30%"/>', "loss", True),
        ('<loss link="c s1" share="30%"/>', "loss", False),
        ('<restart switch="s1" from="50ms" until="250ms"/>', "restart", True),
    ],
)
def test_what_the_test_plants_is_named(tmp_path: Path, faults: str, planted: str, offered: bool) -> None:
    found = run(tmp_path, faults=faults)
    assert checked(found).grade is Grade.DEGRADED
    assert f"the test plants a {planted} on its way" in checked(found).reason
    (load,) = found.loads
    assert load.arrived is not None
    assert load.offered is not None
    assert load.arrived < 0.8 * load.intended
    assert (load.offered > 0.99 * load.intended) is offered


def test_a_load_that_arrives_is_no_reproach(tmp_path: Path) -> None:
    found = run(tmp_path, faults='<loss link="a s2" share="30%"/><cut link="d s2" from="0s"/>')
    assert checked(found).grade is Grade.OK
    (load,) = found.loads
    assert load.arrived == pytest.approx(load.intended, rel=0.01)


@pytest.mark.parametrize(
    ("more", "buffer"),
    [
        ('<inject on="d" to="b" load="90%"/>', ""),
        ('<inject on="d" to="b" load="100%" burst="50"/>', 'buffer="16KiB"'),
        ('<inject on="d" to="b" load="30%" burst="50"/>', 'buffer="16KiB"'),
    ],
)
def test_what_a_full_queue_drops_is_what_the_test_loads(tmp_path: Path, more: str, buffer: str) -> None:
    found = run(tmp_path, more=more, buffer=buffer)
    assert checked(found).grade is Grade.OK
    arrived = [load.arrived for load in found.loads]
    assert None not in arrived
    assert (
        sum(one or 0.0 for one in arrived) < sum(load.intended for load in found.loads) - 0.01 or not buffer
    )


def reports(sent: int, arrived: int, missed: int = 0, backend: str = "packet-ring") -> dict[str, AgentReport]:
    """Agents' reports of real frames, whose queues nobody sees."""
    account = {"received": arrived, "distinct": arrived}
    figures = {"account": account, "missed": {"ring": missed}}
    stream = {"kind": "absorb", "number": 0, "backend": backend, "why": "refused", "figures": figures}
    return {
        "c": AgentReport(tasks=(TaskReport(kind="inject", done=sent, planned=sent),)),
        "b": msgspec.convert({"streams": [stream]}, AgentReport),
    }


@pytest.mark.parametrize(
    ("plan", "arrived", "missed", "grade"),
    [
        ({}, 10_000, 0, Grade.OK),
        ({}, 9_950, 0, Grade.OK),
        ({}, 6_400, 0, Grade.INVALID),  # a cable was pulled
        ({}, 0, 0, Grade.INVALID),
        ({}, 9_500, 0, Grade.DEGRADED),
        ({}, 6_400, 3_600, Grade.NOTE),  # the receiver was too slow, which it counted
        ({"due": 0.6}, 6_100, 0, Grade.OK),  # a port has no room for more
        ({"due": 0.6}, 2_000, 0, Grade.INVALID),
        ({"due": 0.6, "least": 0.2}, 2_000, 0, Grade.DEGRADED),  # or a full queue took it
        ({"due": 0.6, "least": 0.5}, 2_000, 0, Grade.INVALID),  # no full queue can have taken so much
        ({"least": 0.0}, 0, 0, Grade.INVALID),  # none at all is no full queue
        ({"planted": ("cut",)}, 0, 0, Grade.DEGRADED),
    ],
)
def test_real_frames_are_held_against_what_ports_have_room_for(
    plan: dict[str, Any], arrived: int, missed: int, grade: Grade
) -> None:
    assert graded(plan, reports(10_000, arrived, missed)) is grade


def graded(plan: dict[str, Any], agents: dict[str, AgentReport]) -> Grade:
    from types import SimpleNamespace

    inject = InjectPlan("c", "b", 500_000, 10**8, **plan)
    evidence: Any = SimpleNamespace(
        plan=SimpleNamespace(injects=(inject,)), agents=agents, virtual_time=False, network=None
    )
    return load_account(evidence).grade


def test_a_load_that_nobody_counts_is_evidence_of_nothing() -> None:
    assert graded({}, reports(10_000, 0, backend="")) is Grade.DEGRADED


def test_room_is_reckoned_from_what_the_plan_offers(tmp_path: Path) -> None:
    (alone,) = run(tmp_path / "alone").plan.injects
    assert (alone.due, alone.planted) == (1.0, ())
    first, second = run(tmp_path / "two", more='<inject on="d" to="b" load="90%"/>').plan.injects
    assert first.due == second.due == pytest.approx((1 - 0.0104) / 1.5, rel=0.01)
    assert first.least == pytest.approx((1 - 0.0104 - 0.9) / 0.6, rel=0.02)
    assert second.least == pytest.approx((1 - 0.0104 - 0.6) / 0.9, rel=0.02)


def test_a_load_that_its_ports_can_send_and_hold_is_due_in_full(tmp_path: Path) -> None:
    """Neither a burst nor a neighbour explains a loss: only more than a port sends, or more than it holds."""
    (bursts,) = run(tmp_path / "bursts", load=70, burst=8).plan.injects
    assert bursts.least == 1.0
    (beyond,) = run(tmp_path / "beyond", load=70, burst=8, buffer='buffer="8KiB"').plan.injects
    assert 0 < beyond.least < 1
    agents = reports(7064, 1112)
    for plan, grade in ((bursts, Grade.INVALID), (beyond, Grade.INVALID)):
        assert graded({"least": plan.least, "due": plan.due}, agents) is grade


@pytest.mark.parametrize("seed", [*range(6), *map(also, range(6, 60))])
def test_no_simulated_queue_drops_more_than_is_reckoned(tmp_path: Path, seed: int) -> None:
    """With random rates, bursts and buffers each load arrives at least as far as the plan predicts."""
    rng = random.Random(seed)
    other = f'<inject on="d" to="b" load="{rng.randint(5, 95)}%" burst="{rng.choice((1, 4, 60))}"/>'
    found = run(
        tmp_path,
        load=rng.randint(5, 95),
        burst=rng.choice((1, 8, 40)),
        more=other if rng.random() < 0.7 else "",
        buffer=f'buffer="{rng.choice((4, 16, 64, 512))}KiB"',
    )
    for plan, load in zip(found.plan.injects, found.loads, strict=True):
        assert load.arrived_frames is not None
        assert load.sent_frames is not None
        # What is still on its way at the end has not come; a burst of it at most.
        assert load.arrived_frames + 100 >= plan.least * load.sent_frames


def test_accounts_know_what_was_sent_without_streams() -> None:
    inject = InjectPlan("c", "b", 500_000, 10**8)
    (account,) = load_accounts([inject], reports(100, 40))
    assert (account.sent, account.lost, account.never_came) == (100, 60, 60)


def test_a_load_through_a_network_that_is_played_is_accounted_for_on_both_sides_of_it() -> None:
    inject = InjectPlan("c", "b", 500_000, 10**8)
    fate = LoadFate(entered=95, left=50, lost={"buffer-full": 30, "policed": 5, "link": 4})
    told = reports(100, 40) | {NETWORK: AgentReport(loads=(fate,))}
    (account,) = load_accounts([inject], told)
    assert account.dropped == {
        "buffer-full": 30,
        "policed": 5,
        "link": 4,
        "before-network": 5,
        "behind-network": 10,
        "under-way": 6,
    }
    assert sum(account.dropped.values()) == account.lost == 60
    assert account.entered == 0.95
    # What was dropped on purpose, or waited at the end, has loaded the network.
    assert account.never_came == 4 + 5 + 10
    assert dropped_text(account.dropped).startswith("buffer full 30, behind network 10, under way 6")
    (unknown,) = load_accounts([inject], reports(100, 40) | {NETWORK: AgentReport()})
    assert unknown.dropped is None, "a network that left no report"
