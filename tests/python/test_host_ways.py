"""Ways of messages through simulated hosts: stacks of protocols, both directions of an interface, the loopback.

Also echoes of a broadcast, and logs that go over the network.

Closed forms, from the rules in `docs/explanation/receive-path.md` and the arithmetic of `simulation`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from simulation import US, Simulated, frame, sending, simulate
from wiregauge.config import load
from wiregauge.runner.benches.capabilities import beyond_hosts

MBIT_100 = 10**8
NODES = """
<end-system name="a"><host {a}>{inside}</host></end-system><end-system name="b"/><end-system name="c"/>
<switch name="sw1" delay="2us"/>
<link between="a sw1" rate="100Mbit/s"/><link between="b sw1" rate="100Mbit/s"/><link between="c sw1" rate="100Mbit/s"/>
"""


def written(flows: str, tasks: str, *, a: str = "", inside: str = "", more: str = "") -> str:
    return (
        '<test xmlns="urn:wiregauge:test:2" name="ways"><network host="ideal">'
        f"{NODES.format(a=a, inside=inside)}</network><flows>{flows}</flows><tasks>{tasks}</tasks>{more}</test>"
    )


def flow(protocol: str, to: str, number: int = 1, from_: str = "a") -> str:
    return f'<flow id="{number}" protocol="{protocol}" from="{from_}" to="{to}"/>'


def send(number: int = 1, count: int = 20, payload: int = 200, period: str = "1ms") -> str:
    return f'<send flow="{number}" period="{period}" payload="{payload}B" count="{count}"/>'


def between(run: Simulated, start: str, end: str, to: str | None = None) -> set[int]:
    """All times from one column of the messages to another, ps."""
    rows = run.messages if to is None else run.messages.filter(pl.col("to") == run.node(to))
    found = rows.select(pl.col(end).cast(pl.Int64) - pl.col(start).cast(pl.Int64)).to_series()
    assert found.null_count() == 0
    return set(found)


def ns(columns: pl.DataFrame, name: str) -> pl.Series:
    return columns[name].cast(pl.Int64)


STACK = '<stack protocol="raw" transmit="3us" receive-per-byte="10ns"/>'


@pytest.mark.parametrize(("protocol", "down", "up"), [("raw", 3 * US, 1 * US), ("udp", 7 * US, 1 * US)])
def test_a_protocol_has_costs_of_its_own_and_the_hosts_where_it_says_none(
    tmp_path: Path, protocol: str, down: int, up: int
) -> None:
    """Also for a host that answers, whose messages pass its stack both ways."""
    text = written(
        flow(protocol, "b"), send() + '<relay flow="1"/>', a='transmit="7us" receive="1us"', inside=STACK
    )
    run = simulate(text, tmp_path)
    per_byte = frame(200) * 10_000 if protocol == "raw" else 0
    sent, left = run.times("application-send", 1, "a"), run.times("driver-send", 1, "a")
    assert {left[k] - sent[k] for k in sent} == {down}
    seen, came = run.times("driver-receive", 1, "a"), run.times("application-receive", 1, "a")
    assert {came[k] - seen[k] for k in came} == {up + per_byte}


def test_the_stack_of_a_read_card_is_behind_the_card(tmp_path: Path) -> None:
    text = written(
        flow("raw", "a", from_="b"), send() + '<receive flow="1"/>', a='card-read="5us"', inside=STACK
    )
    run = simulate(text, tmp_path)
    wire, came = run.times("wire-receive", 1, "a"), run.times("application-receive", 1, "a")
    assert {came[k] - wire[k] for k in came} == {5 * US + frame(200) * 10_000}


@pytest.mark.parametrize("more", ["", 'card-read="5us"', 'interrupts="coalesced" interrupt-wait="50us"'])
def test_an_interface_takes_its_time_in_each_direction(tmp_path: Path, more: str) -> None:
    waits = {"": 0, 'card-read="5us"': 5 * US}.get(more, 50 * US)
    values = f'interface-delay="4us" interface-receive-delay="9us" {more}'
    run = simulate(written(flow("raw", "b"), send() + '<relay flow="1"/>', a=values), tmp_path)
    left, wire = run.times("driver-send", 1, "a"), run.times("wire-send", 1, "a")
    assert {wire[k] - left[k] for k in wire} == {4 * US}
    there, seen = run.times("wire-receive", 1, "a"), run.times("driver-receive", 1, "a")
    assert {seen[k] - there[k] for k in seen} == {9 * US + waits}


def test_a_loopback_meets_stacks_and_no_interface(tmp_path: Path) -> None:
    """Down and up: the delays of interface and interrupt, and the link, are not in it."""
    values = (
        'transmit="7us" receive="1us" interface-delay="1ms" interface-receive-delay="1ms" '
        'interrupt-latency="1ms" receive-wake-up="500ns"'
    )
    run = simulate(written(flow("udp", "a"), send() + '<receive flow="1"/>', a=values), tmp_path)
    assert run.summary["flows"][0]["delivered"] == 20
    sent, came = run.times("application-send", 1), run.times("application-receive", 1)
    assert {came[k] - sent[k] for k in came} == {7 * US + 500_000 + 1 * US}
    assert run.times("driver-send", 1) == run.times("driver-receive", 1)
    assert run.times("wire-send", 1) == run.times("wire-receive", 1) == {}


def test_a_loopback_can_be_answered(tmp_path: Path) -> None:
    text = written(flow("raw", "a"), send() + '<relay flow="1"/>', a='transmit="7us"', inside=STACK)
    run = simulate(text, tmp_path)
    assert run.summary["flows"][0]["delivered"] == 20
    once = 3 * US + frame(200) * 10_000
    assert between(run, "tx_app", "back_rx_app") == {2 * once // 1000} or between(
        run, "tx_app", "back_rx_app"
    ) == {2 * once}


ECHO = '<relay flow="1"/>'


def test_each_host_that_answers_a_broadcast_has_its_own_round_trips(tmp_path: Path) -> None:
    """`b` and `c` answer at once; the answer of `c` waits behind that of `b` for the link to `a`."""
    run = simulate(written(flow("raw", "b c"), send() + ECHO), tmp_path)
    flows = {one["to"]: one for one in run.summary["flows"]}
    assert {run.plan.network.names[to]: one["delivered"] for to, one in flows.items()} == {"b": 20, "c": 20}
    assert all(one["duplicated"] == one["misdirected"] == 0 for one in flows.values())
    hop, gap = sending(frame(200), MBIT_100), sending(frame(200) + 12, MBIT_100)
    way = 2 * (2 * hop + 2 * US)
    first, second = (
        {time // 1000 for time in map(int, between(run, "tx_app", "back_rx_app", to))} for to in ("b", "c")
    )
    whole = {1000 * time for time in first | second}
    assert whole == {way, way + gap} or {time // 1000 for time in whole} == {way, way + gap}
    numbers = {relay.back for relay in run.plan.runs[0].relays}
    assert len(numbers) == 2
    assert 1 not in numbers


def test_what_one_of_them_loses_is_its_own(tmp_path: Path) -> None:
    relays = '<relay flow="1" on="b"><fault kind="loss" sequence="3 5"/></relay><relay flow="1" on="c"/>'
    run = simulate(written(flow("udp", "b c"), send() + relays), tmp_path)
    lost = {run.plan.network.names[one["to"]]: one["lost"] for one in run.summary["flows"]}
    assert lost == {"b": 2, "c": 0}


def test_some_may_answer_and_others_receive(tmp_path: Path) -> None:
    run = simulate(
        written(flow("udp", "b c"), send() + '<relay flow="1" on="c"/><receive flow="1" on="b"/>'), tmp_path
    )
    assert [one["delivered"] for one in run.summary["flows"]] == [20, 20]
    assert run.plan.runs[0].relays[0].back is None


@pytest.mark.parametrize(("records", "frames"), [(1, 20), (4, 5), (7, 2)])
def test_a_log_makes_as_many_frames_as_there_is_to_log(tmp_path: Path, records: int, frames: int) -> None:
    log = f'<remote-log on="a" to="c" record="100B" records="{records}"/>'
    run = simulate(written(flow("raw", "b"), send() + '<receive flow="1"/>' + log), tmp_path)
    agents = run.report["agents"]
    task = next(task for task in agents["a"]["tasks"] if task["kind"] == "remote-log")
    assert (task["planned"], task["done"]) == (frames, frames)
    assert task["wire_bytes"] == frames * (frame(100 * records, "udp") + 8 + 12)


def test_a_log_shares_stack_and_link_with_what_it_tells_of(tmp_path: Path) -> None:
    """The second of two messages waits for the stack that the log of the first has, too."""
    log = '<remote-log on="a" to="c" record="1400B"/>'
    sends = (
        '<send flow="1" period="1ms" burst="2" spacing="5us" payload="200B" count="20"/><receive flow="1"/>'
    )
    text = written(flow("raw", "b"), "{}", a='transmit="10us"')
    plain = simulate(text.format(sends), tmp_path / "plain")
    logged = simulate(text.format(sends + log), tmp_path / "logged")
    for run, expected in ((plain, 10 * US), (logged, 20 * US)):
        sent = run.times("application-send", 1)
        assert {sent[k + 1] - sent[k] for k in range(0, 20, 2)} == {expected}


def test_real_hosts_have_a_loopback_and_log_over_the_network(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    log = '<remote-log on="a" to="c"/>'
    file.write_text(written(flow("udp", "a"), send() + '<receive flow="1"/>' + log))
    campaign = load(file).campaign
    (run,) = campaign.runs
    assert (run.flows[0].is_loopback, len(run.remote_logs)) == (True, 1)
    assert beyond_hosts(campaign) == []
