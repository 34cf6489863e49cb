"""Delays at ports whose buffers are smaller than what may come: of what finds room, never below what is simulated."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bound_judge import judge, worst
from bound_networks import network
from simulation import simulate, written
from test_bounds_search import told
from wiregauge import bounds
from wiregauge.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = 10**8
"""Bit/s behind the switch."""


def wire(payload: int) -> int:
    """Bits of a tagged raw frame with preamble and gap."""
    return 8 * (14 + 4 + payload + 4 + 20)


def port(
    switch: str, *, urgent: str = "", burst: int = 40, urgent_priority: int = 7, period: str = "8ms"
) -> str:
    """Bursts of 1500 B at 1 Gbit/s into a port of 100 Mbit/s, and a flow of 100 B beside."""
    ends = "".join(f'<end-system name="{name}"/>' for name in ("a", "b", "z"))
    links = '<link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/>'
    net = f'{ends}<switch name="s" delay="0ns" {switch}/>{links}<link between="s z" rate="100Mbit/s"/>'
    flows = (
        f'<flow id="1" protocol="raw" from="a" to="z" priority="{urgent_priority}"/>'
        '<flow id="2" protocol="raw" from="b" to="z" priority="1"/>'
    )
    tasks = (
        f'<send flow="1" period="2ms" payload="100B" {urgent}/><receive flow="1"/>'
        f'<send flow="2" period="{period}" payload="1500B" burst="{burst}"/><receive flow="2"/>'
    )
    return written(net, flows, tasks, attributes='warm-up="0s" duration="60ms"')


def delays(text: str, place: Path, **options: Any) -> dict[str, Fraction]:
    file = place / "n.xml"
    file.write_text(text, encoding="utf-8")
    answer = bounds.bound(bounds.read(file), **options)
    exact = {flow.flow: flow.targets[0].delay_exact for flow in answer.flows}
    return {flow: Fraction(text) for flow, text in exact.items() if text is not None}


def test_one_queue_holds_so_many_frames_and_one_is_on_the_line(tmp_path: Path) -> None:
    found = delays(port('priorities="fifo" buffer-frames="20" buffer="512KiB"'), tmp_path)
    here = Fraction(20 * wire(1500) + wire(1500), LINE)
    gigabit = 10 * LINE
    assert found["1"] == here + Fraction(wire(100), gigabit)
    assert found["2"] == here + Fraction(40 * wire(1500), gigabit)


def test_bytes_hold_whole_frames_only(tmp_path: Path) -> None:
    """32 KiB are 21 frames of 1522 B, tag and FCS counted, and 21 preambles and gaps come on the line with them."""
    found = delays(port('priorities="strict" buffer="64KiB" queue-buffer="32KiB"'), tmp_path)
    # The class below waits for what is urgent as well, from a stay before it came until it leaves.
    burst, rate = wire(100), Fraction(wire(100), 1) / Fraction(2, 1000)
    stay = found["1"] - Fraction(wire(100), 10 * LINE)
    before = burst + rate * (Fraction(wire(100), 10 * LINE) + stay)
    here = (21 * wire(1500) + wire(1500) + before) / (LINE - rate)
    assert found["2"] == here + Fraction(40 * wire(1500), 10 * LINE)
    assert stay < Fraction(2 * wire(1500), LINE)


def test_a_buffer_that_never_fills_changes_nothing(tmp_path: Path) -> None:
    small, large = (
        delays(port(f'priorities="fifo" buffer="{size}"', burst=5), tmp_path) for size in ("16KiB", "512KiB")
    )
    assert small == large


def test_the_answer_says_where_a_buffer_bounds(tmp_path: Path) -> None:
    file = tmp_path / "n.xml"
    file.write_text(port('priorities="fifo" buffer-frames="20"'), encoding="utf-8")
    source = bounds.read(file)
    notes = bounds.bound(source).notes
    assert any(
        note.startswith('more may come to server "s:3" at once than its buffer holds') for note in notes
    )
    # In any order a frame may be kept waiting however small the buffer is.
    unordered = bounds.bound(source, multiplexing="arbitrary")
    assert not any("than its buffer holds" in note for note in unordered.notes)


@pytest.mark.parametrize(("size", "kept"), [("buffer-frames", False), ("buffer", True)])
def test_no_limit_is_kept_where_frames_may_be_lost(tmp_path: Path, size: str, kept: bool) -> None:
    """The bound of what finds room is far below the limit, and the rest never comes."""
    text = port(f'priorities="fifo" {size}="{"20" if size == "buffer-frames" else "512KiB"}"')
    limit = '<limits><limit flow="1" measure="latency.max" at-most="1s"/></limits></test>'
    file = tmp_path / "n.xml"
    file.write_text(text.replace("</test>", limit), encoding="utf-8")
    answer = bounds.bound(bounds.read(file))
    assert [one.kept for one in answer.limits] == [kept]
    assert all(one.delay is not None and one.delay < one.at_most for one in answer.limits)
    assert answer.kept is kept


def test_no_simulated_delay_exceeds_a_bound_of_a_full_buffer(tmp_path: Path, thorough: bool) -> None:
    """Random networks with room for so little that frames are lost, and sums of bounds over several such ports."""
    results = []
    for seed in range(1000 if thorough else 30):
        text = network(seed).to_xml()
        room = ('buffer="4KiB"', 'buffer="6KiB" queue-buffer="3KiB"', 'buffer="64KiB" buffer-frames="2"')
        results.append(judge(text.replace('buffer="4MiB"', room[seed % 3]), tmp_path / str(seed)))
    assert sum(one.compared for one in results) > 10 * len(results)
    assert sum(one.overflowed for one in results) > 0
    assert any("than its buffer holds" in note for one in results for note in one.notes)


def test_a_buffer_that_is_said_to_be_smaller_than_it_is_is_seen(tmp_path: Path) -> None:
    """The planted fault: half the frames in the bounded plan, and the simulated delay is above the bound."""
    text = port('priorities="fifo" buffer-frames="20" buffer="512KiB"', urgent='offset="300us"')
    file = tmp_path / "n.xml"
    file.write_text(text, encoding="utf-8")
    source = bounds.read(file)
    plan = json.loads(source.as_json)
    for node in plan["network"]["nodes"]:
        if node["name"] == "s":
            node["kind"]["port_buffer"]["frames"] = 10
    flattered = bounds.bound(bounds.Source(source.file, source.format, json.dumps(plan)))
    seen = worst(simulate(text, tmp_path / "run"))
    told_by = {flow.flow: flow.targets[0].delay for flow in flattered.flows}
    honest = {flow.flow: flow.targets[0].delay for flow in bounds.bound(source).flows}
    late = seen["2", "z"] / 1e12
    assert (told_by["2"] or 0) < late <= (honest["2"] or 0)


@pytest.mark.parametrize("name", ["priorities"])
def test_the_search_reaches_four_fifths_where_buffers_fill(name: str) -> None:
    found = told(EXAMPLES / f"{name}.xml", "--search", "--time-limit", "40s")["search"]
    for flow in found["flows"]:
        assert 0.8 <= flow["tightness"] <= 1, flow


PERIOD = "5ms"
HIGHEST = " ".join(map(str, range(8)))


def dropping(
    *, host: str = "", tsn: str = "", receiver: str = "", switch: str = "", flow: str = "", burst: int = 1
) -> str:
    """Three senders of 1000 B at one port."""
    ends = "".join(f'<end-system name="{name}"><host {host}/></end-system>' for name in "abc")
    links = "".join(f'<link between="{name} s" rate="100Mbit/s"/>' for name in "abcz")
    node = f'<switch name="s" {switch}>{tsn}</switch>'
    net = f'{ends}<end-system name="z"><host {receiver}/></end-system>{node}{links}'
    protocol = flow or 'protocol="raw"'
    flows = "".join(f'<flow id="{k}" {protocol} from="{name}" to="z"/>' for k, name in enumerate("abc", 1))
    tasks = "".join(
        f'<send flow="{k}" period="{PERIOD}" payload="1000B" burst="{burst}"/><receive flow="{k}"/>'
        for k in (1, 2, 3)
    )
    limits = '<limits><limit measure="latency.max" at-most="1s"/></limits>'
    return written(net, flows, tasks, attributes='warm-up="0s" duration="60ms"', more=limits)


def filtered(inside: str, attributes: str = "") -> str:
    return f'<switch-tsn ports="1"><ingress flow="1" {attributes}>{inside}</ingress></switch-tsn>'


def classes(longest: int) -> str:
    inside = f'<traffic-class number="0" priorities="{HIGHEST}" longest-frame="{longest}B"/>'
    return f'<switch-tsn ports="4">{inside}</switch-tsn>'


def gated(*entries: tuple[str, str], base: str = "0us", octets: str = "") -> str:
    most = f'max-octets="{octets}"' if octets else ""
    lines = "".join(
        f'<stream-gate-entry state="{state}" for="{time}" {most if state == "open" else ""}/>'
        for state, time in entries
    )
    return filtered(f'<stream-gate base-time="{base}">{lines}</stream-gate>')


DROPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the buffer of a port": (
        {"switch": 'buffer="2KiB"', "burst": 5},
        {"switch": 'buffer="64KiB"', "burst": 5},
    ),
    "frames of a buffer": (
        {"switch": 'buffer-frames="2"', "burst": 5},
        {"switch": 'buffer-frames="64"', "burst": 5},
    ),
    "a shared buffer": (
        {"switch": 'shared-buffer="2KiB"', "burst": 5},
        {"switch": 'shared-buffer="64KiB"', "burst": 5},
    ),
    "a buffer behind traffic classes": (
        {"switch": 'buffer="2KiB"', "tsn": classes(1522), "burst": 5},
        {"switch": 'buffer="64KiB"', "tsn": classes(1522), "burst": 5},
    ),
    "the longest frame of a class": ({"tsn": classes(500)}, {"tsn": classes(1522)}),
    "a longest service data unit": (
        {"tsn": filtered("", 'max-sdu="100B"')},
        {"tsn": filtered("", 'max-sdu="1000B"')},
    ),
    "a flow meter": (
        {"tsn": filtered('<police rate="8kbit/s" burst="1100B"/>')},
        {"tsn": filtered('<police rate="3Mbit/s" burst="1100B"/>')},
    ),
    "the burst of a flow meter": (
        {"tsn": filtered('<police rate="30Mbit/s" burst="1100B"/>'), "burst": 3},
        {"tsn": filtered('<police rate="30Mbit/s" burst="4000B"/>'), "burst": 3},
    ),
    "a closed stream gate": (
        {
            "tsn": filtered(
                '<stream-gate><stream-gate-entry state="closed" for="900us"/>'
                '<stream-gate-entry state="open" for="100us"/></stream-gate>'
            )
        },
        {"tsn": filtered('<stream-gate><stream-gate-entry state="open" for="1ms"/></stream-gate>')},
    ),
    "a stream gate that closes as they come": (
        {"tsn": gated(("open", "82us"), ("closed", "918us"))},
        {"tsn": gated(("open", "84us"), ("closed", "916us"))},
    ),
    "a stream gate that opens as they come": (
        {"tsn": gated(("closed", "83us"), ("open", "917us"))},
        {"tsn": gated(("closed", "82us"), ("open", "918us"))},
    ),
    "a stream gate that begins later": (
        {"tsn": gated(("open", "100us"), ("closed", "900us"), base="500us")},
        {"tsn": gated(("open", "600us"), ("closed", "400us"), base="500us")},
    ),
    "a stream gate of another period": (
        {"tsn": gated(("open", "100us"), ("closed", "1400us"))},
        {"tsn": gated(("open", "100us"), ("closed", "400us"))},
    ),
    "octets of a stream gate that closes": (
        {"tsn": gated(("open", "100us"), ("closed", "900us"), octets="100B")},
        {"tsn": gated(("open", "100us"), ("closed", "900us"), octets="4000B")},
    ),
    "octets of a stream gate": (
        {
            "tsn": filtered(
                '<stream-gate><stream-gate-entry state="open" for="1ms" max-octets="100B"/></stream-gate>'
            )
        },
        {
            "tsn": filtered(
                '<stream-gate><stream-gate-entry state="open" for="1ms" max-octets="4000B"/></stream-gate>'
            )
        },
    ),
    "the egress queue of a host": (
        {"host": 'egress="2KiB"', "burst": 10},
        {"host": 'egress="64KiB"', "burst": 10},
    ),
    "the receive ring": (
        {"receiver": 'ring="1" receive="300us"', "burst": 3},
        {"receiver": 'ring="64" receive="300us"', "burst": 3},
    ),
    "the queue of a virtual link": (
        {"flow": 'protocol="rc" bag="1ms" queue="2"', "switch": 'kind="arinc664"', "burst": 5},
        {"flow": 'protocol="rc" bag="1ms" queue="8"', "switch": 'kind="arinc664"', "burst": 5},
    ),
    "messages on their way to the queue": (
        {"host": 'backlog="2" transmit="50us"', "burst": 5},
        {"host": 'backlog="64" transmit="50us"', "burst": 5},
    ),
}


def windows(
    *, host: str = "", receiver: str = "", switch: str = "", rate: str = "100Mbit/s", number: int = 3
) -> str:
    """Time-triggered frames of 200 B of one sender, 100 us apart."""
    ends = f'<end-system name="a"><host {host}/></end-system><end-system name="z"><host {receiver}/></end-system>'
    links = f'<link between="a s" rate="100Mbit/s"/><link between="s z" rate="{rate}"/>'
    net = f'{ends}<switch name="s" kind="mixed-criticality" {switch}/>{links}'
    flows = "".join(
        f'<flow id="{k}" protocol="tt" from="a" to="z" period="{PERIOD}" offset="{20 + 100 * k}us"/>'
        for k in range(1, number + 1)
    )
    tasks = "".join(
        f'<send flow="{k}" period="{PERIOD}" payload="200B" offset="{100 * k if number == 3 else 0}us"/>'
        f'<receive flow="{k}"/>'
        for k in range(1, number + 1)
    )
    limits = '<limits><limit measure="latency.max" at-most="1s"/></limits>'
    return written(net, flows, tasks, attributes='warm-up="0s" duration="1s"', more=limits)


OF_WINDOWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a dispatch that is missed": (
        {"host": 'send-wake-up="0%:0ns 100%:40us"'},
        {"host": 'send-wake-up="0%:0ns 100%:10us"'},
    ),
    "messages on their way to dispatch": (
        {"host": 'backlog="2" transmit="1us"', "number": 9},
        {"host": 'backlog="64" transmit="1us"', "number": 9},
    ),
    "the ring of a receiver": (
        {"receiver": 'ring="1" receive="300us"'},
        {"receiver": 'ring="64" receive="300us"'},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DROPS))
def test_no_limit_is_kept_where_a_place_may_drop_and_none_drops_that_is_proved_to_take_all(
    name: str, tmp_path: Path
) -> None:
    small, enough = (dropping(**parts) for parts in DROPS[name])
    dropped_where_it_is_told(small, enough, tmp_path)


@pytest.mark.parametrize("name", sorted(OF_WINDOWS))
def test_no_limit_is_kept_where_a_place_may_drop_time_triggered_frames(name: str, tmp_path: Path) -> None:
    small, enough = (windows(**parts) for parts in OF_WINDOWS[name])
    dropped_where_it_is_told(small, enough, tmp_path)


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ('<switch name="s" >', '<switch name="s"><clock drift="1ppm"/>'),
        ('<end-system name="a">', '<end-system name="a"><clock granularity="1us"/>'),
        ('flow="1" period="5ms"', 'flow="1" period="5ms" rate-limit="10Mbit/s"'),
    ],
)
def test_a_gate_whose_frames_come_nobody_knows_when_keeps_no_limit(
    change: str, to: str, tmp_path: Path
) -> None:
    """If clocks drift, or a sender is held back, frames in time today may be late tomorrow."""
    text = dropping(tsn=gated(("open", "100us"), ("closed", "900us")))
    assert change in text
    for given, kept in ((text, True), (text.replace(change, to, 1), False)):
        file = tmp_path / "n.xml"
        file.write_text(given, encoding="utf-8")
        answer = bounds.bound(bounds.read(file))
        assert answer.kept is kept
        assert any("the stream gate of flow 1" in note for note in answer.notes) is not kept


def dropped_where_it_is_told(small: str, enough: str, tmp_path: Path) -> None:
    for text, is_lost in ((small, True), (enough, False)):
        file = tmp_path / "n.xml"
        file.write_text(text, encoding="utf-8")
        answer = bounds.bound(bounds.read(file))
        said = [note for note in answer.notes if "may drop frames" in note or "its buffer holds" in note]
        assert answer.kept is not is_lost, answer.notes
        assert bool(said) is is_lost
        run = simulate(text, tmp_path / f"run-{is_lost}")
        lost = [one for one in run.messages["outcome"].to_list() if one != "delivered"]
        assert bool(lost) is is_lost


def test_a_frame_that_a_window_keeps_until_the_next_one_comes_is_told(tmp_path: Path) -> None:
    """As the judge of schedules has it: what may be held up in its window must be gone before."""
    for offset, code in (("145us", 0), ("119us", 1)):
        window = f'offset="120us"><window port="s:2" offset="{offset}" length="60us"/></flow>'
        file = tmp_path / "n.xml"
        file.write_text(windows(number=1).replace('offset="120us"/>', window), encoding="utf-8")
        answer = bounds.bound(bounds.read(file))
        assert answer.kept is (code == 0), answer.notes
        done = CliRunner().invoke(app, ["schedule", str(file), "--check"])
        assert done.exit_code == code, done.output
        assert ("buffer" in done.stdout) is bool(code)


def drawn(seed: int) -> str:
    """Three senders with hosts that take time, and a gate that is about as long open as it has to be."""
    rng = random.Random(seed)
    host = (
        f'transmit="{rng.choice((0, 20))}us" interface-delay="{rng.choice((0, 3))}us" '
        f'send-wake-up="0%:{rng.choice((0, 5))}us 100%:{rng.choice((5, 30))}us"'
    )
    begins, length = rng.randrange(0, 1000, 20), rng.randrange(60, 600, 20)
    entries = [("open", f"{length}us"), ("closed", f"{1000 - length}us")]
    tsn = gated(*entries, base=f"{begins}us")
    return dropping(host=host, tsn=tsn, switch=f'delay="{rng.choice((0, 7))}us"', burst=rng.choice((1, 1, 2)))


def test_a_gate_that_is_proved_open_drops_nothing(tmp_path: Path, thorough: bool) -> None:
    proved = dropped = 0
    for seed in range(400 if thorough else 60):
        text = drawn(seed)
        file = tmp_path / f"{seed}.xml"
        file.write_text(text, encoding="utf-8")
        kept = bounds.bound(bounds.read(file)).kept
        if not kept and seed % 6:
            continue
        outcomes = simulate(text, tmp_path / str(seed)).messages["outcome"].to_list()
        lost = len(outcomes) - outcomes.count("delivered")
        assert not (kept and lost), (seed, lost)
        proved += kept
        dropped += lost > 0
    assert proved > 5
    assert dropped > 3
