"""What a simulated host does with received frames: what background load costs it, how it reads its card, what it loses.

Closed forms here, from the rules in `docs/explanation/receive-path.md`; the core has a model of its own beside it.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from simulation import US, Simulated, frame, sending, simulate
from wiregauge.config import TestError, load
from wiregauge.plan import EndSystem

GBIT = 10**9
NETWORK = """
<end-system name="a"/><end-system name="b" host="{model}"/><end-system name="c"/>
<switch name="sw1" kind="mixed-criticality" delay="0s" buffer="64MiB"/>
<link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/><link between="c sw1" rate="1Gbit/s"/>
"""


def written(models: str, flows: str, tasks: str, model: str = "card") -> str:
    return f"""<test xmlns="urn:wiregauge:test:2" name="t"><network host="ideal">{models}{NETWORK.format(model=model)}
    </network><flows>{flows}</flows><tasks drain="100ms">{tasks}</tasks></test>"""


def host(values: str, buffers: str = "") -> str:
    return f'<host-model name="card" like="ideal" {values}>{buffers}</host-model>'


RAW = '<flow id="1" protocol="raw" from="a" to="b"/>'
ALL = (
    '<flow id="1" protocol="tt" from="a" to="b" period="10ms" lmax="1518B"/>'
    '<flow id="2" protocol="rc" from="a" to="b" bag="2ms"/><flow id="3" protocol="be" from="a" to="b"/>'
)
LOAD = '<inject on="c" to="b" load="40%" burst="10" payload="1472B"/>'


def sends(period: str = "5ms", count: int = 40, payload: int = 64, flow: int = 1) -> str:
    return f'<send flow="{flow}" period="{period}" payload="{payload}B" count="{count}"/><receive flow="{flow}"/>'


def waits(run: Simulated, flow: int) -> list[int]:
    """From the last bit in to the application, by sequence number."""
    wire, came = run.times("wire-receive", flow), run.times("application-receive", flow)
    return [came[number] - wire[number] for number in sorted(came)]


def test_the_processor_reads_a_card_byte_by_byte(tmp_path: Path) -> None:
    model = host('card-read="1us" card-read-per-byte="270ns" receive="3us" interrupt-latency="2us"')
    run = simulate(written(model, RAW, sends(payload=200)), tmp_path)
    expected = 2 * US + US + frame(200) * 270_000 + 3 * US
    assert waits(run, 1) == [expected] * 40


def test_load_is_free_for_a_host_unless_it_is_received(tmp_path: Path) -> None:
    """A reader busy with load keeps a message waiting for at most the frame it reads; one that is spared never does."""
    cost = frame(1472, "udp") * 100_000
    one = frame(64) * 100_000
    seen = {}
    for background in ("discarded", "received"):
        model = host(f'card-read-per-byte="100ns" background="{background}"')
        seen[background] = simulate(written(model, RAW, sends() + LOAD), tmp_path / background)
    assert set(waits(seen["discarded"], 1)) == {one}
    loaded = waits(seen["received"], 1)
    assert min(loaded) >= one
    assert max(loaded) > one + cost // 2
    read = seen["received"].report["agents"]["b"]["load_read"]
    assert read > 1000
    assert "load_read" not in seen["discarded"].report["agents"]["b"]
    assert all(
        "load_read" not in agent for name, agent in seen["received"].report["agents"].items() if name != "b"
    )


def test_a_detailed_host_receives_load_and_a_plain_one_discards_it(tmp_path: Path) -> None:
    for values, buffers, receives in (
        ("", "", False),
        ('interrupts="coalesced" interrupt-wait="50us"', "", False),
        ('background="received"', "", True),
        ('card-read="1us"', "", True),
        ('interrupts="spaced" interrupt-wait="50us"', "", True),
        ('interrupts="burst"', "", True),
        ('interrupts="adaptive"', "", True),
        ("", '<receive-buffer class="be"/>', True),
        ('interrupts="adaptive" background="discarded"', "", False),
    ):
        file = tmp_path / "t.xml"
        file.write_text(written(host(values, buffers), RAW, sends()))
        kind = load(file).campaign.network.nodes[1].kind
        assert isinstance(kind, EndSystem)
        model = kind.host
        assert model is not None
        assert model.receives_load is receives, values


def test_classes_wait_for_one_frame_at_most_and_best_effort_for_its_whole_buffer(tmp_path: Path) -> None:
    """The reader is saturated: tt and rc wait for the frame that is being read, be for all slots before it."""
    model = host('card-read-per-byte="270ns"', '<receive-buffer class="be" slots="20" fifo="4KiB"/>')
    tasks = sends("10ms") + sends("10ms", flow=2) + sends("10ms", flow=3) + LOAD
    run = simulate(written(model, ALL, tasks), tmp_path)
    own = frame(64, "udp") * 270_000
    flood = frame(1472, "udp") * 270_000
    assert run.dropped("ring-full") == run.dropped("fifo-full") == 0  # the load's drops have no records
    for flow in (1, 2):
        assert max(waits(run, flow)) <= own + flood + 2 * own
    slow = waits(run, 3)[5:]
    assert min(slow) > 18 * flood
    assert max(slow) < 24 * flood
    lost = run.report["agents"]["b"]["unreceived"]
    assert set(lost) == {"fifo-full"}
    assert lost["fifo-full"] > 100


def test_what_a_fifo_has_no_room_for_is_lost_with_its_reason(tmp_path: Path) -> None:
    """Long messages do not fit beside a long frame of the load, short ones do; the run is as valid as before."""
    model = host('card-read-per-byte="270ns"', '<receive-buffer class="be" slots="20" fifo="3600B"/>')
    flow = '<flow id="3" protocol="be" from="a" to="b"/>'
    lost = {}
    for payload in (64, 1472):
        run = simulate(
            written(model, flow, sends("10ms", payload=payload, flow=3) + LOAD), tmp_path / str(payload)
        )
        lost[payload] = run.dropped("fifo-full", 3)
        outcomes = dict(run.messages.group_by("outcome").len().iter_rows())
        assert outcomes.get("lost", 0) == lost[payload]
        assert outcomes.get("unknown", 0) == 0
        assert all(part["socket_drops"] == 0 for part in run.report["agents"]["b"]["access_points"])
        reasons = set(run.messages.filter(pl.col("outcome") == "lost")["drop_reason"])
        assert reasons <= {"fifo-full"}
    assert lost[64] <= 2
    assert lost[1472] >= 30


def test_a_full_ring_is_a_finding_about_the_host(tmp_path: Path) -> None:
    model = host('ring="2" receive="1ms"')
    run = simulate(written(model, RAW, sends("100us", count=20)), tmp_path)
    lost = run.dropped("ring-full", 1)
    assert lost > 0
    assert run.report["agents"]["b"]["unreceived"] == {"ring-full": lost}
    assert all(part["socket_drops"] == 0 for part in run.report["agents"]["b"]["access_points"])


def test_spaced_interrupts_come_at_once_when_idle_and_apart_under_load(tmp_path: Path) -> None:
    model = host('interrupts="spaced" interrupt-wait="250us" interrupt-latency="5us"')
    idle = simulate(written(model, RAW, sends("5ms")), tmp_path / "idle")
    assert set(waits(idle, 1)) == {5 * US}
    # One message every 100 us: at most every third is at once, and none waits longer than the spacing.
    busy = simulate(written(model, RAW, sends("100us", count=300)), tmp_path / "busy")
    instants = sorted(set(busy.times("driver-receive", 1).values()))
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    assert set(gaps) == {250 * US}
    assert max(waits(busy, 1)) <= 255 * US


def test_adaptive_interrupts_stay_where_they_are_under_an_even_load(tmp_path: Path) -> None:
    """Bulk begets bulk: a load between the thresholds keeps the spacing its history chose."""
    # One frame of 1514 B every 20 us, which takes 10 us to read. 50 us apart a turn reads some 5 (8 kB, below 10 kB),
    # 250 us apart some 12 (18 kB, above 6 kB). Both last; 6 frames at once lead from the one to the other.
    tasks = sends("20us", count=2_000, payload=1_496)
    model = host('interrupts="adaptive" receive="10us"')
    even = simulate(written(model, RAW, tasks), tmp_path / "even")
    assert max(waits(even, 1)[100:]) <= 60 * US
    burst = (
        '<send flow="2" period="1s" payload="1496B" count="6" burst="6" offset="10ms"/><receive flow="2"/>'
    )
    two = RAW + '<flow id="2" protocol="raw" from="c" to="b"/>'
    kicked = simulate(written(model, two, tasks + burst), tmp_path / "kicked")
    assert max(waits(kicked, 1)[100:400]) <= 60 * US < 110 * US < max(waits(kicked, 1)[1_000:])


def test_an_event_holds_up_a_reader_that_load_wakes(tmp_path: Path) -> None:
    """From 9.9 ms on, by 400 us: a message at 10 ms is read with the load that woke the reader before it came."""
    model = host('interrupts="spaced" interrupt-wait="50us"')
    plain = written(model, RAW, sends("5ms") + LOAD)
    event = '<event period="1h" offset="9.9ms" duration="400us" latency="400us" threads="receive"/>'
    held = plain.replace(
        '<end-system name="b" host="card"/>', f'<end-system name="b" host="card">{event}</end-system>'
    )
    assert held != plain
    quiet, up = (waits(simulate(text, tmp_path / name), 1) for name, text in (("quiet", plain), ("up", held)))
    assert max(quiet) <= 50 * US
    assert 250 * US < up[2] <= 400 * US
    assert max(up[:2] + up[3:]) <= 50 * US


def test_a_host_model_in_a_file_is_that_of_the_test(tmp_path: Path) -> None:
    body = '<receive-buffer class="be" slots="7"/>'
    values = 'card-read="3us" ring="9"'
    (tmp_path / "own.host.xml").write_text(
        f'<host-model xmlns="urn:wiregauge:test:2" name="whatever" like="ideal" {values}>{body}</host-model>'
    )
    file = tmp_path / "t.xml"

    def network(model: str) -> object:
        file.write_text(written(model, RAW, sends()))
        return load(file).campaign.network

    here = network(f'<host-model name="card" like="ideal" {values}>{body}</host-model>')
    assert network('<host-model name="card" file="own.host.xml"/>') == here
    other = network('<host-model name="card" file="own.host.xml" ring="8"/>')
    assert other == network(
        f'<host-model name="card" like="ideal" card-read="3us" ring="8">{body}</host-model>'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such file"),
        ("<host-model", "the file holds no element"),
        ('<test xmlns="urn:wiregauge:test:2" name="t"/>', "holds no host model, but <test>"),
        ('<host-model xmlns="urn:wiregauge:test:2" name="x" file="y.xml"/>', "names another file"),
        ('<host-model xmlns="urn:wiregauge:test:2" name="x" rang="7"/>', 'there is no attribute "rang" here'),
        ('<host-model xmlns="urn:wiregauge:test:2" name="x" ring="much"/>', 'ring "much" is not allowed'),
    ],
)
def test_a_file_that_is_no_host_model_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "own.host.xml").write_text(text)
    file = tmp_path / "t.xml"
    file.write_text(written('<host-model name="card" file="own.host.xml"/>', RAW, sends()))
    with pytest.raises(TestError) as caught:
        load(file)
    assert said in str(caught.value)


def test_a_number_within_the_payload_saves_its_byte(tmp_path: Path) -> None:
    flow = '<flow id="2" protocol="rc" from="a" to="b" bag="2ms" sequence-number="within"/>'
    run = simulate(written(host(""), flow, sends("4ms", payload=1472, flow=2, count=5)), tmp_path)
    assert set(run.records.filter(pl.col("flow") == 2)["length"]) == {1518}
    assert run.latencies(2) == [2 * sending(1518, GBIT)] * 5
    behind = flow.replace(' sequence-number="within"', "")
    with pytest.raises(TestError, match="12B to 1471B"):
        simulate(written(host(""), behind, sends("4ms", payload=1472, flow=2, count=5)), tmp_path / "behind")
