"""The total order of events, rule by rule, as docs/explanation/order-of-events.md has it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from simulation import MS, US, Simulated, bits, frame, occupation, sending, simulate, written

RATE = 10**8
FAULTS = Path(__file__).resolve().parents[1] / "faults"
NS = 1_000


def star(systems: str, switch: str = 'delay="0s"') -> str:
    """End systems around a switch, each on a link of its own, in this order."""
    nodes = "".join(f'<end-system name="{name}"/>' for name in sorted(systems.split()))
    links = "".join(f'<link between="{name} s" rate="100Mbit/s"/>' for name in systems.split())
    return f'{nodes}<switch name="s" {switch}/>{links}'


def raw(number: int, way: str, more: str = "") -> str:
    start, end = way.split()
    return f'<flow id="{number}" protocol="raw" from="{start}" to="{end}" {more}/>'


def one(number: int, offset_ns: float = 0, payload: int = 1_000) -> str:
    return (
        f'<send flow="{number}" period="20ms" payload="{payload}B" count="1" offset="{offset_ns:f}ns"/>'
        f'<receive flow="{number}"/>'
    )


def left(run: Simulated, node: str = "s", point: str = "switch-out", port: int | None = None) -> list[int]:
    """Flows in the order their frames leave a node."""
    return run.at(point, node=node, port=port).sort("time", maintain_order=True)["flow"].to_list()


def test_of_frames_at_the_instant_a_port_becomes_free_the_most_urgent_goes(tmp_path: Path) -> None:
    """Rule 1, on a port that was busy."""
    run = simulate((FAULTS / "tie-free-port.xml").read_text(), tmp_path)
    free = sending(frame(1_500), RATE) + occupation(frame(1_500), RATE)
    came = [run.at("switch-in", flow=flow, node="s")["time"].item() for flow in (1, 2)]
    assert came == [free, free]
    assert left(run) == [3, 2, 1]
    assert run.times("switch-out", 2)[0] == free
    assert run.times("switch-out", 1)[0] == free + occupation(64, RATE)


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
def test_an_idle_port_chooses_among_the_frames_of_an_instant(tmp_path: Path, mode: str) -> None:
    """Rules 1 and 3, on a port that was idle."""
    flows = raw(1, "a d", 'priority="1"') + raw(2, "b d", 'priority="5"') + raw(3, "c d", 'priority="5"')
    network = star("a b c d", f'priorities="strict" delay="0s" forwarding-mode="{mode}"')
    run = simulate(written(network, flows, one(1) + one(2) + one(3)), tmp_path)
    assert left(run) == [2, 3, 1]
    length = frame(1_000, tagged=True)
    begin = sending(length, RATE) if mode == "store-and-forward" else bits(8 + 14 + 4, RATE)
    step = occupation(length, RATE)
    assert [run.times("switch-out", flow)[0] for flow in (2, 3, 1)] == [begin + k * step for k in range(3)]


@pytest.mark.parametrize("order", ["a b c", "b a c"])
def test_equal_frames_of_an_instant_go_in_the_order_of_their_links(tmp_path: Path, order: str) -> None:
    """Rule 2."""
    run = simulate(written(star(order), raw(1, "a c") + raw(2, "b c"), one(1) + one(2)), tmp_path)
    assert left(run) == ([1, 2] if order == "a b c" else [2, 1])


def test_what_a_virtual_link_held_back_goes_behind_a_message_of_the_instant(tmp_path: Path) -> None:
    """Rule 4, in one queue."""
    run = simulate((FAULTS / "tie-release.xml").read_text(), tmp_path)
    sent = run.at("wire-send", node="a").sort("time", maintain_order=True)
    assert sent["flow"].to_list() == [1, 2, 1]
    assert sent["time"].to_list() == [0, MS, MS + occupation(frame(100, "rc"), RATE)]


def test_what_a_virtual_link_held_back_takes_part_in_the_choice(tmp_path: Path) -> None:
    """Rules 4 and 1: it came last, and goes first because it is more urgent."""
    text = (FAULTS / "tie-release.xml").read_text()
    run = simulate(text.replace('<flow id="2"', '<flow id="2" priority="0"'), tmp_path)
    assert left(run, "a", "wire-send") == [1, 1, 2]


def test_what_several_virtual_links_held_back_until_one_instant_goes_by_their_numbers(tmp_path: Path) -> None:
    """Rule 4: neither the file, nor the flows' numbers, nor which was held back first decides."""
    network = (
        '<end-system name="a"/><end-system name="b"/><switch name="s" kind="arinc664" delay="1us"/>'
        '<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/>'
    )
    # Flow 1 is held back from 0, flow 2 from 0.5 ms, flow 3 from 1 ms, all until 2 ms.
    links = {1: (30, "2ms"), 2: (20, "1ms"), 3: (10, "1ms")}
    flows = "".join(
        f'<flow id="{number}" protocol="rc" from="a" to="b" bag="{bag}" vl="{vl}"/>'
        for number, (vl, bag) in links.items()
    )
    sent = {1: (2, 0), 2: (3, 0), 3: (2, 1)}
    tasks = "".join(
        f'<send flow="{number}" period="20ms" burst="{burst}" count="{burst}" payload="100B" offset="{at}ms"/>'
        f'<receive flow="{number}"/>'
        for number, (burst, at) in sent.items()
    )
    run = simulate(written(network, flows, tasks), tmp_path)
    wire = run.at("wire-send", node="a").sort("time", maintain_order=True)
    together = wire.filter(pl.col("time") >= 2 * MS)
    assert together["flow"].to_list() == [3, 2, 1]
    step = occupation(frame(100, "rc"), RATE)
    assert together["time"].to_list() == [2 * MS + k * step for k in range(3)]


def test_a_cut_comes_before_the_traffic_of_its_instant(tmp_path: Path) -> None:
    """Rule 5."""
    network = '<end-system name="a"/><end-system name="b"/><link between="a b" rate="100Mbit/s"/>'
    through = sending(frame(1_000), RATE)
    offsets = [0, through // NS, 5_000_000]
    flows = "".join(raw(number, "a b") for number in (1, 2, 3))
    tasks = "".join(one(number, offset) for number, offset in enumerate(offsets, 1))
    more = f'<faults><cut link="a b" from="{through // NS}ns" until="5ms"/></faults>'
    run = simulate(written(network, flows, tasks, more=more), tmp_path)
    # 1 was in as the cut came, 2 left as it came, 3 as it ended.
    assert left(run, "b", "wire-receive") == [1, 3]


def test_what_a_fault_held_back_goes_behind_what_comes_in_time(tmp_path: Path) -> None:
    """Rule 6: by number of link alone, flow 1 would go first."""
    more = '<faults><delay link="a s" flow="1" sequence="0" by="1ms"/></faults>'
    tasks = one(1) + one(2, 1_000_000)
    run = simulate(written(star("a b c"), raw(1, "a c") + raw(2, "b c"), tasks, more=more), tmp_path)
    assert run.times("switch-in", 1)[0] == run.times("switch-in", 2)[0]
    assert left(run) == [2, 1]


def test_a_relay_goes_before_a_sender_and_senders_by_the_file(tmp_path: Path) -> None:
    """Rule 7."""
    network = '<end-system name="a"/><end-system name="b"/><link between="a b" rate="100Mbit/s"/>'
    there = sending(frame(1_000), RATE) // NS
    flows = raw(1, "a b") + raw(2, "b a") + raw(3, "b a")
    tasks = (
        f'<send flow="3" period="20ms" payload="100B" count="1" offset="{there}ns"/><receive flow="3"/>'
        f'<send flow="2" period="20ms" payload="100B" count="1" offset="{there}ns"/><receive flow="2"/>'
        '<send flow="1" period="20ms" payload="1000B" count="1"/><relay flow="1"/>'
    )
    run = simulate(written(network, flows, tasks), tmp_path)
    assert left(run, "b", "wire-send") == [1, 3, 2]


def test_messages_go_before_babbled_frames_and_these_before_background_load(tmp_path: Path) -> None:
    """Rule 8: all three at the epoch, on one line."""
    more = '<faults><babble flow="1" from="0s" until="1us" period="100us"/></faults>'
    tasks = one(1, payload=1_000) + '<inject on="a" to="b" load="1%" payload="1472B" burst="1"/>'
    network = '<end-system name="a"/><end-system name="b"/><link between="a b" rate="100Mbit/s"/>'
    run = simulate(written(network, raw(1, "a b"), tasks, more=more), tmp_path)
    sent = run.at("wire-send", node="a").sort("time", maintain_order=True)
    assert sent["sequence"].to_list() == [0, 1]
    # Nothing of the load between or before them.
    assert sent["time"].to_list() == [0, occupation(frame(1_000), RATE)]


def test_arrivals_find_the_place_taken_of_what_leaves_at_their_instant(tmp_path: Path) -> None:
    """Rule 9: one place; the first is on the wire, the second waits, the third comes as the second leaves."""
    length, rate = frame(1_000), RATE
    third = occupation(length, rate) // NS
    flows = "".join(raw(number, f"{name} d") for number, name in ((1, "a"), (2, "b"), (3, "c")))
    for late, lost in ((0, 1), (1, 0)):
        tasks = one(1) + one(2, 10_000) + one(3, third + late)
        network = star("a b c d", 'delay="0s" queue-frames="1"')
        run = simulate(written(network, flows, tasks), tmp_path / str(late))
        assert run.dropped("buffer-full", 3) == lost
        assert run.times("switch-out", 2)[0] == sending(length, rate) + third * NS
    assert US == 1_000 * NS
