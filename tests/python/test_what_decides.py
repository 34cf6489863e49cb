"""What decides the simulator's results, statement by statement, as "What decides results" in simulator.md has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import MS, Simulated, bits, frame, occupation, sending, simulate, written
from wiregauge.config import load

RATE = 10**8
FAULTS = Path(__file__).resolve().parents[1] / "faults"


def star(systems: str, switch: str = 'delay="0s"', rate: str = "100Mbit/s") -> str:
    nodes = "".join(f'<end-system name="{name}"/>' for name in systems.split())
    links = "".join(f'<link between="{name} s" rate="{rate}"/>' for name in systems.split())
    return f'{nodes}<switch name="s" {switch}/>{links}'


def fault(name: str, place: Path) -> Simulated:
    return simulate((FAULTS / f"{name}.xml").read_text(), place)


def loads(run: Simulated) -> list[tuple[int, int]]:
    """Frames planned and sent by every injector."""
    tasks = [task for agent in run.report["agents"].values() for task in agent["tasks"]]
    return [(task["planned"], task["done"]) for task in tasks if task["kind"] == "inject"]


def test_a_priority_of_0_is_a_tag_in_length_and_header(tmp_path: Path) -> None:
    run = fault("tag-header", tmp_path)
    whole = sending(500, 10**9)
    assert run.latencies(1) == [bits(8 + 14, 10**9) + whole]
    assert run.latencies(2) == run.latencies(3) == [bits(8 + 18, 10**9) + whole]


def test_a_udp_flow_has_a_priority_and_a_code_point(tmp_path: Path) -> None:
    """The tag is in the length, in the header cut-through waits for, in the choice of the port and in captures."""
    flows = (
        '<flow id="1" protocol="udp" from="a" to="c"/>'
        '<flow id="2" protocol="udp" from="b" to="c" priority="5" dscp="46"/>'
    )
    tasks = "".join(
        f'<send flow="{n}" period="20ms" payload="500B" count="1" offset="{offset}"/><receive flow="{n}"/>'
        for n, offset in ((1, "0s"), (2, "0s"))
    )
    network = star("a b c", 'priorities="strict" forwarding-mode="cut-through" delay="0s"')
    run = simulate(written(network, flows, tasks + '<capture on="c"/>'), tmp_path)
    assert run.at("wire-send", 2)["length"].item() == frame(500, "udp", tagged=True)
    # The other header is through 4 B earlier, and its frame is on the wire.
    waited = run.times("switch-out", 2)[0] - run.times("switch-out", 1)[0]
    assert waited == occupation(frame(500, "udp"), RATE)
    assert run.times("switch-in", 2)[0] - run.times("wire-send", 2)[0] == bits(8 + 18, RATE)
    (capture,) = tmp_path.rglob("*.pcapng")
    assert capture.read_bytes().count(b"\x81\x00\xa0\x00\x08\x00\x45\xb8") == 1


def test_best_effort_takes_no_room_of_virtual_links(tmp_path: Path) -> None:
    run = fault("rc-starved", tmp_path)
    assert run.dropped("buffer-full", 10) == 0
    assert run.at("application-receive", 10).height == 1_000


@pytest.mark.parametrize("kind", ["arinc664", "mixed-criticality"])
@pytest.mark.parametrize("priorities", ["strict", "fifo"])
def test_with_one_queue_there_is_one_buffer(tmp_path: Path, kind: str, priorities: str) -> None:
    """What waits at most: with a buffer for each, more than one holds."""
    text = (FAULTS / "rc-starved.xml").read_text()
    switch = f'kind="{kind}" priorities="{priorities}"'
    run = simulate(text.replace('kind="mixed-criticality"', switch), tmp_path)
    most = max(port["most_waiting_bytes"] for port in run.report["switches"]["sw"]["ports"])
    assert (most > 512 * 1024) == (priorities == "strict")


def test_best_effort_takes_no_room_of_virtual_links_in_an_end_system(tmp_path: Path) -> None:
    """A host that floods its own line beside its virtual link."""
    network = star("a b", 'kind="arinc664"')
    flows = '<flow id="1" protocol="rc" from="a" to="b" bag="1ms" lmax="1518B"/>'
    tasks = (
        '<send flow="1" period="2ms" payload="1000B" count="1500"/><receive flow="1"/>'
        '<inject on="a" to="b" load="100%" payload="1472B" burst="10"/>'
    )
    run = simulate(written(network, flows, tasks), tmp_path)
    assert run.at("application-receive", 1).height == 1_500


def test_virtual_links_have_two_queues_above_all_others(tmp_path: Path) -> None:
    """At the epoch one frame is sent at once and four wait, in the end system and then at the switch."""
    rc = '<flow id="{}" protocol="rc" from="a" to="b" bag="1ms" lmax="200B" priority="{}"/>'
    flows = rc.format(1, 3) + rc.format(2, 0) + rc.format(3, 7) + rc.format(4, 4)
    flows += '<flow id="5" protocol="raw" from="a" to="b" priority="7"/>'
    flows += '<flow id="6" protocol="raw" from="a" to="b" priority="0"/>'
    tasks = "".join(
        f'<send flow="{number}" period="20ms" payload="100B" count="1"/><receive flow="{number}"/>'
        for number in (6, 5, 1, 2, 3, 4)
    )
    run = simulate(written(star("a b", 'kind="arinc664" delay="1ms"'), flows, tasks), tmp_path)
    sent = run.at("wire-send", node="a").sort("time", maintain_order=True)["flow"].to_list()
    # Everything that is no virtual link waits in one queue there, whatever its priority.
    assert sent == [3, 4, 1, 2, 6, 5]


def test_a_message_needs_room_only_where_it_waits(tmp_path: Path) -> None:
    """Three at one instant for an idle port of one place: one goes, one waits, one is dropped."""
    flows = "".join(
        f'<flow id="{number}" protocol="raw" from="{name}" to="d" priority="{priority}"/>'
        for number, name, priority in ((1, "a", 0), (2, "b", 0), (3, "c", 7))
    )
    tasks = "".join(
        f'<send flow="{number}" period="20ms" payload="1000B" count="1"/><receive flow="{number}"/>'
        for number in (1, 2, 3)
    )
    network = star("a b c d", 'priorities="strict" delay="0s" buffer-frames="1"')
    run = simulate(written(network, flows, tasks), tmp_path)
    left = run.at("switch-out", node="s").sort("time")
    assert left["flow"].to_list() == [3, 1]
    assert run.dropped("buffer-full", 2) == 1


def test_what_is_being_decided_on_occupies_nothing(tmp_path: Path) -> None:
    """Decisions of 10 ms: all frames are in before the first is forwarded, and one place is enough."""
    network = star("a b", 'delay="10ms" buffer-frames="1"')
    flows = '<flow id="1" protocol="raw" from="a" to="b"/>'
    tasks = '<send flow="1" period="1ms" payload="1000B" count="9"/><receive flow="1"/>'
    run = simulate(written(network, flows, tasks), tmp_path)
    assert run.dropped("buffer-full") == 0
    assert run.at("application-receive").height == 9


def test_bytes_of_a_buffer_are_those_of_the_frame(tmp_path: Path) -> None:
    """One frame on the wire and two of 1024 B in a buffer of 2 KiB; a byte more, and the second does not fit."""
    for payload, lost in ((1_006, 1), (1_007, 2)):
        flows = "".join(
            f'<flow id="{n}" protocol="raw" from="{name}" to="e"/>' for n, name in enumerate("abcd", 1)
        )
        tasks = "".join(
            f'<send flow="{n}" period="20ms" payload="{payload}B" count="1"/><receive flow="{n}"/>'
            for n in range(1, 5)
        )
        network = star("a b c d e", 'delay="0s" buffer="2KiB"')
        run = simulate(written(network, flows, tasks), tmp_path / str(payload))
        assert run.dropped("buffer-full") == lost


@pytest.mark.parametrize("order", ["b c", "c b"])
def test_copies_find_room_in_the_order_of_ports(tmp_path: Path, order: str) -> None:
    """Both ports are busy, and the buffer they share has one place."""
    flows = (
        '<flow id="1" protocol="raw" from="a" to="b c"/>'
        '<flow id="2" protocol="raw" from="d" to="b"/><flow id="3" protocol="raw" from="e" to="c"/>'
    )
    tasks = "".join(
        f'<send flow="{n}" period="20ms" payload="{size}B" count="1"/><receive flow="{n}"/>'
        for n, size in ((1, 1_010), (2, 1_000), (3, 1_000))
    )
    network = star(f"a {order} d e", 'delay="0s" shared-frames="1"')
    run = simulate(written(network, flows, tasks), tmp_path)
    first = run.plan.network.names[1]
    assert first == order[0]
    assert run.at("application-receive", 1, node=first).height == 1
    assert run.dropped("buffer-full", 1) == 1


def test_cut_through_looks_at_the_port_once(tmp_path: Path) -> None:
    """The port becomes free a nanosecond after the look, and the frame is stored all the same."""
    length = frame(1_000)
    flows = '<flow id="1" protocol="raw" from="a" to="c"/><flow id="2" protocol="raw" from="b" to="c"/>'
    busy = occupation(length, RATE) // 1_000
    for early, latency in (
        (0, bits(8 + 14, RATE) + sending(length, RATE)),
        (1, 2 * sending(length, RATE)),
    ):
        tasks = "".join(
            f'<send flow="{n}" period="20ms" payload="1000B" count="1" offset="{offset}ns"/><receive flow="{n}"/>'
            for n, offset in ((1, 0), (2, busy - early))
        )
        network = star("a b c", 'forwarding-mode="cut-through" delay="0s"')
        run = simulate(written(network, flows, tasks), tmp_path / str(early))
        assert run.latencies(2) == [latency]


@pytest.mark.parametrize("mode", ["rate", "gap"])
def test_a_gap_is_counted_from_the_actual_send(tmp_path: Path, mode: str) -> None:
    """Bursts of another flow keep the one thread that hands messages down busy; each takes 2.5 us and more."""
    text = written(
        star("a b"),
        "".join(f'<flow id="{n}" protocol="udp" from="a" to="b"/>' for n in (1, 2)),
        f'<send flow="1" period="1ms" payload="64B" count="50" pacing="{mode}"/><receive flow="1"/>'
        '<send flow="2" period="7ms" payload="64B" count="60" burst="10" offset="990us"/><receive flow="2"/>',
    )
    run = simulate(text.replace('host="ideal"', 'host="tuned"'), tmp_path)
    intended, sent = run.times("intended-send", 1), run.times("application-send", 1)
    late = [k for k in range(50) if sent[k] - intended[k] > 5 * 10**6]
    assert late, "a wake-up alone takes no 5 us; in the way of the other flow's"
    for k in range(49):
        assert intended[k + 1] == (sent[k] if mode == "gap" else intended[k]) + MS


def test_intervals_of_background_load_are_rounded_to_a_picosecond(tmp_path: Path) -> None:
    """3 frames of 166 B on the wire at 33 % of 1 Gbit/s: 12 072.727 272 7… ns."""
    text = written(
        star("a b", rate="1Gbit/s"),
        '<flow id="1" protocol="raw" from="b" to="a"/>',
        '<send flow="1" period="1ms" payload="100B" count="1"/><receive flow="1"/>'
        '<inject on="a" to="b" load="33%" payload="100B" burst="3"/>',
    )
    (tmp_path / "t.xml").write_text(text)
    (run,) = load(tmp_path / "t.xml").campaign.runs
    assert run.injects[0].interval == 12_072_727
    text = text.replace("33%", "32%").replace('burst="3"', 'burst="1"')
    (tmp_path / "t.xml").write_text(text)
    (run,) = load(tmp_path / "t.xml").campaign.runs
    assert run.injects[0].interval == 166 * 8 * 100 * 1_000 // 32


def test_background_load_goes_on_through_the_measured_part(tmp_path: Path) -> None:
    """Messages at 0 and 10 ms, a measured part of 20 ms."""
    run = fault("background-end-repro", tmp_path)
    interval = 2 * occupation(frame(1_472, "udp"), RATE)
    bursts = -(-20 * MS // interval)
    assert loads(run) == [(bursts, bursts)]


def test_background_load_goes_on_until_the_messages_have_come(tmp_path: Path) -> None:
    """Behind a slow link the message takes longer than the measured part; where it is lost, the run ends first."""
    nodes = '<end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="s" delay="0s"/>'
    links = '<link between="a s" rate="100Mbit/s"/><link between="c s" rate="100Mbit/s"/>'
    links += '<link between="s b" rate="1Mbit/s"/>'
    interval = 2 * occupation(frame(1_472, "udp"), RATE)
    for more, until in (("", None), ('<faults><loss link="c s" share="100%"/></faults>', 60 * MS)):
        text = written(
            nodes + links,
            '<flow id="1" protocol="raw" from="c" to="b"/>',
            '<send flow="1" period="20ms" payload="1500B" count="1"/><receive flow="1"/>'
            '<inject on="a" to="b" load="50%" payload="1472B" burst="1"/>',
            attributes='drain="60ms"',
            more=more,
        )
        run = simulate(text, tmp_path / ("lost" if more else "came"))
        end = until or run.times("wire-receive", 1)[0]
        assert end > 20 * MS
        bursts = -(-end // interval)
        assert loads(run) == [(bursts, bursts)]
