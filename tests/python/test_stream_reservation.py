"""Stream reservations: idle slopes by the standard's formula, what is refused, and what class A promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import MS, US, Simulated, simulate, written
from wiregauge.config import StreamReservation, Test, TestError, load, load_bytes
from wiregauge.plan import Campaign, Switch
from wiregauge.plan.tsn import Cbs, Etf

HEAD = (
    '<end-system name="t1"/><end-system name="t2"/><end-system name="l1"/><end-system name="l2"/>'
    '<switch name="s"{s}/><switch name="u"/>'
    '<link between="t1 s:1" rate="100Mbit/s"/><link between="t2 s:2" rate="100Mbit/s"/>'
    '<link between="s:3 u:1" rate="100Mbit/s"/><link between="u:2 l1" rate="100Mbit/s"/>'
    '<link between="u:3 l2" rate="100Mbit/s"/>'
)


def xml_of(flows: str, tasks: str, *, s: str = "", reservable: str = "", more: str = "") -> str:
    text = written(HEAD.format(s=s), flows, tasks, more=more)
    return text.replace("<flows>", f"<flows{reservable}>")


def flow(number: int, reservation: str, *, ends: str = 'from="t1" to="l1"', more: str = "") -> str:
    return f'<flow id="{number}" protocol="raw" {ends}{more}><stream-reservation {reservation}/></flow>'


def sent(number: int, payload: int, period: str = "125us", **more: str) -> str:
    extra = "".join(f' {name}="{value}"' for name, value in more.items())
    task = f'<send flow="{number}" period="{period}" payload="{payload}B" count="100"{extra}/>'
    return f'{task}<receive flow="{number}"/>'


def credit_based(shaper: Cbs | Etf) -> Cbs:
    assert isinstance(shaper, Cbs)
    return shaper


def slopes(campaign: Campaign) -> dict[str, dict[int, int]]:
    """Idle slopes by port and priority, bit/s."""
    found: dict[str, dict[int, int]] = {}
    for node in campaign.network.nodes:
        if isinstance(node.kind, Switch):
            for tsn in node.kind.tsn:
                for port in tsn.ports:
                    own = {
                        c.priorities[0]: c.idle_slope_bps for c in tsn.classes if c.idle_slope_bps is not None
                    }
                    found[f"{node.name}:{port}"] = own
        elif node.tsn is not None:
            shaped = [(c.priorities[0], c.shaper) for c in node.tsn.classes if c.shaper is not None]
            found[node.name] = {priority: credit_based(shaper).idle_slope_bps for priority, shaper in shaped}
    return found


def refusal(text: str) -> str:
    with pytest.raises(TestError) as refused:
        load_bytes(text.encode(), Path("t.xml"))
    return str(refused.value)


def test_idle_slopes_are_those_of_the_formula(tmp_path: Path) -> None:
    """Worked by hand. A frame of MaxFrameSize n takes n + 42 B on the wire: preamble 8, addresses 12, tag 4, type 2,
    check 4, gap 12; at least 64 + 20. Class A: 8000 intervals a second, class B: 4000."""
    flows = (
        flow(1, 'class="A"')  # 200 + 42 = 242 B: 242 * 8 * 8000 = 15.488 Mbit/s
        + flow(2, 'class="A" max-frame-size="300B" interval-frames="2"', ends='from="t2" to="l2"')
        # 2 * 342 * 8 * 8000 = 43.776 Mbit/s
        + flow(
            3, 'class="B" interval-frames="3"', ends='from="t2" to="l1"'
        )  # 3 * 84 * 8 * 4000 = 8.064 Mbit/s
    )
    tasks = sent(1, 200) + sent(2, 300, burst="2") + sent(3, 20, "250us", burst="3")
    campaign = load_bytes(xml_of(flows, tasks).encode(), tmp_path / "t.xml").campaign
    a1, a2, b3 = 15_488_000, 43_776_000, 8_064_000
    assert slopes(campaign) == {
        "t1": {3: a1},
        "t2": {2: b3, 3: a2},
        "s:3": {2: b3, 3: a1 + a2},
        "u:2": {2: b3, 3: a1},
        "u:3": {3: a2},
    }
    tags = {one.id: one.vlan for one in campaign.runs[0].flows}
    assert {n: (tag.id, tag.priority) for n, tag in tags.items() if tag} == {1: (2, 3), 2: (2, 3), 3: (2, 2)}


def test_a_sweep_is_reserved_for_its_longest_frame(tmp_path: Path) -> None:
    sweep = '<sweep><axis of="payload" values="100B 400B 46B"/></sweep>'
    campaign = load_bytes(
        xml_of(flow(1, 'class="A"'), sent(1, 64), more=sweep).encode(), tmp_path / "t"
    ).campaign
    assert slopes(campaign)["s:3"] == {3: 442 * 64_000}


def test_filters_of_a_port_stay_where_its_classes_are_set(tmp_path: Path) -> None:
    """A filter for all ports of the switch, and a port that a reservation shapes: it is asked of frames as before."""
    rule = '><switch-tsn><ingress flow="1" max-sdu="150B"/></switch-tsn></switch'
    text = xml_of(flow(1, 'class="A"'), sent(1, 200), s=rule).replace("</switch/>", "</switch>")
    campaign = load_bytes(text.encode(), tmp_path / "t").campaign
    model = next(node.kind for node in campaign.network.nodes if node.name == "s")
    assert isinstance(model, Switch)
    assert [(tsn.ports, len(tsn.classes), len(tsn.filters)) for tsn in model.tsn] == [
        ((), 0, 1),
        ((3,), 2, 1),
    ]
    run = simulate(text, tmp_path / "run")
    assert run.dropped("oversize-sdu", 1) == 100


def test_what_is_beyond_the_bandwidth_names_flow_port_and_limit() -> None:
    flows = flow(1, 'class="A"') + flow(2, 'class="A"', ends='from="t2" to="l1"')
    said = refusal(xml_of(flows, sent(1, 600) + sent(2, 600)))
    # 642 B: 41.088 Mbit/s each, at the first port that both leave by.
    assert "flow 2 needs 41088kbit/s at port s:3, where 41088kbit/s are reserved" in said, said
    assert "75% of 100Mbit/s" in said
    load_bytes(xml_of(flows, sent(1, 600) + sent(2, 600), reservable=' reservable="83%"').encode(), Path("t"))
    # Class B has what class A leaves of the same share.
    mixed = flow(1, 'class="A"') + flow(2, 'class="B"', ends='from="t2" to="l1"')
    load_bytes(xml_of(mixed, sent(1, 600) + sent(2, 600, "250us")).encode(), Path("t"))
    more = mixed.replace('class="B"', 'class="B" interval-frames="2"')
    assert "where 41088kbit/s are reserved" in refusal(xml_of(more, sent(1, 600) + sent(2, 600)))


@pytest.mark.parametrize(
    ("flows", "tasks", "switch", "text"),
    [
        (flow(1, 'class="A"'), sent(1, 100, "100us"), "", "1 in 125us, the measurement interval of class A"),
        (flow(1, 'class="A" max-frame-size="80B"'), sent(1, 100), "", "max-frame-size 80B"),
        (flow(1, 'class="A"', more=' priority="4"'), sent(1, 100), "", "priority 3, of class A"),
        (flow(1, 'class="A"').replace('"raw"', '"udp"'), sent(1, 100), "", "has a VLAN tag"),
        (
            flow(1, 'class="A"') + '<flow id="2" protocol="raw" from="t2" to="l1" priority="3"/>',
            sent(1, 100) + sent(2, 100),
            "",
            "flow 2 has priority 3 at port s:3, that of class A, and no reservation",
        ),
        (
            flow(1, 'class="A"'),
            sent(1, 100),
            '><switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6 7"/></switch-tsn></switch',
            "has traffic classes of its own",
        ),
        (flow(1, 'class="A"'), sent(1, 100).replace("receive", "relay"), "", "is relayed"),
        (flow(1, 'class="A"', ends='from="t1" to="t1"'), sent(1, 100), "", "comes to no link"),
    ],
)
def test_what_cannot_work_is_refused(flows: str, tasks: str, switch: str, text: str) -> None:
    said = refusal(xml_of(flows, tasks, s=switch).replace("</switch/>", "</switch>"))
    assert text in said, said


HOPS = 7


def seven_hops(talkers: int, payload: int) -> str:
    """A talker, seven hops and a listener; at each switch a talker of class A that leaves at the next one, and a
    sender of best effort that fills the line."""
    nodes, links, flows, tasks = "", "", "", ""
    for at in range(1, HOPS):
        nodes += f'<switch name="s{at}" delay="5us" queue-buffer="64KiB"/>'
        nodes += f'<end-system name="x{at}"/><end-system name="y{at}"/>'
        links += (
            f'<link between="x{at} s{at}" rate="100Mbit/s"/><link between="y{at} s{at}" rate="100Mbit/s"/>'
        )
        if at > 1:
            links += f'<link between="s{at - 1} s{at}" rate="100Mbit/s"/>'
    nodes += '<end-system name="talker"/><end-system name="listener"/>'
    links += (
        f'<link between="talker s1" rate="100Mbit/s"/><link between="s{HOPS - 1} listener" rate="100Mbit/s"/>'
    )
    for number in range(1, talkers + 1):
        flows += flow(number, 'class="A"', ends='from="talker" to="listener"')
        tasks += sent(number, payload).replace('count="100"', 'count="1600"')
    for at in range(1, HOPS):
        # Streams that join for one hop, all at once with those of the talker.
        to = f"y{at + 1}" if at < HOPS - 1 else "listener"
        flows += flow(100 + at, 'class="A"', ends=f'from="y{at}" to="{to}"')
        tasks += sent(100 + at, payload, offset=f"{at * 7}us").replace('count="100"', 'count="1600"')
        tasks += f'<inject on="x{at}" to="listener" load="100%" frame="1518B"/>'
    return written(nodes + links, flows, tasks)


def latencies(run: Simulated, flow: int) -> list[int]:
    sent, came = run.times("application-send", flow), run.times("application-receive", flow)
    return [came[number] - sent[number] for number in came]


def test_class_a_keeps_to_2_ms_over_seven_hops(tmp_path: Path) -> None:
    """The promise of class A (IEEE Std 802.1BA-2011, 6.3): 2 ms over seven hops at 100 Mbit/s. It assumes frames no
    longer than 1522 B of others, reservations up to 75 % of each port and streams that keep to them; all hold here, and
    each port on the way is full of best effort of 1518 B."""
    run = simulate(seven_hops(4, 90), tmp_path)
    worst = max(max(latencies(run, number)) for number in range(1, 5))
    for number in range(1, 5):
        assert len(latencies(run, number)) == 1600
    # A frame of others may be before it at each of the six switches.
    assert 6 * 40 * US < worst < 2 * MS, worst / US


def test_without_a_reservation_they_do_not(tmp_path: Path) -> None:
    """Planted: the same without the shapers, in one queue with best effort."""
    text = seven_hops(4, 90).replace('<stream-reservation class="A"/>', "")
    run = simulate(text, tmp_path)
    came = [one for number in range(1, 5) for one in latencies(run, number)]
    assert len(came) < 6400 or max(came) > 2 * MS


def test_the_builder_writes_it(tmp_path: Path) -> None:
    built = Test("built")
    built.end_system("a").end_system("b").link("a", "b", rate="100Mbit/s")
    built.flow(
        1, protocol="raw", from_="a", to="b", reservation=StreamReservation("A", max_frame_size="100B")
    )
    built.reservable("50%").timing(duration="10ms").send(1, period="1ms", payload="64B").receive(1)
    file = tmp_path / "t.xml"
    built.write(file)
    assert slopes(load(file).campaign) == {"a": {3: 142 * 64_000}}
