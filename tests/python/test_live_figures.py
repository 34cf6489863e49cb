"""Live figures from planted words of agents: what is lost, how long messages took, and which alarms that raises."""

from __future__ import annotations

import io
import json
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

import simulation
import synthetic
from wiregauge import _native, runner
from wiregauge.cli.livetable import MOST_ROWS, live_table, live_text
from wiregauge.config import load
from wiregauge.plan import Campaign, as_json
from wiregauge.plan.quantity import QuantityError
from wiregauge.records import RunDirectory
from wiregauge.records.live import ClockNow, FlowNow, PortNow, RunNow
from wiregauge.records.reported import RunEntry
from wiregauge.runner import BenchError
from wiregauge.runner.benches.simulated_live import Following
from wiregauge.runner.live.alarms import MEASURES, MOST_KEPT, AlarmError, AlarmExit, AlarmLimit, Alarms
from wiregauge.runner.live.disk import DiskBound, DiskExit, needed_bytes, room, size_of
from wiregauge.runner.live.endpoint import Endpoint, EndpointError, address_of
from wiregauge.runner.live.figures import Figures, bucket_end_ns
from wiregauge.runner.live.hook import Hook
from wiregauge.runner.live.monitor import AlarmMonitor
from wiregauge.runner.live.network import ClockSums, NetworkFigures, NetworkSums, PortSums
from wiregauge.runner.live.run_figures import RunFigures
from wiregauge.runner.live.state import LiveState
from wiregauge.runner.observer import Observer
from wiregauge.runner.rpc import agent_pb2 as pb

TEST = """<test xmlns="urn:wiregauge:test:2" name="live" seed="1" bench="netns">
<network><end-system name="a"/><end-system name="b"/><switch name="sw1"/>
<link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/></network>
<flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="20" protocol="udp" from="a" to="b"/></flows>
<tasks warm-up="200ms" duration="10s" drain="500ms"><send flow="10" period="1ms" payload="64B"/><receive flow="10"/>
<send flow="20" period="2ms" payload="64B"/><relay flow="20"/></tasks></test>"""


@pytest.fixture
def plan(tmp_path: Path) -> Campaign:
    file = tmp_path / "t.xml"
    file.write_text(TEST)
    return load(file).campaign


@pytest.fixture
def figures(plan: Campaign) -> Figures:
    return Figures(0, plan.runs[0], plan.network.names)


def word(second: int, *flows: pb.LiveFlow, dropped: int = 0, late_s: float = 0.0) -> Any:
    at = int((second + late_s) * 1e9)
    return pb.LiveFigures(number=second, at_ns=at, records_dropped=dropped, flows=flows)


def sends(flow: int, sent: int, **more: Any) -> pb.LiveFlow:
    return pb.LiveFlow(flow=flow, sent=sent, **more)


def arrives(flow: int, received: int, **more: Any) -> pb.LiveFlow:
    return pb.LiveFlow(flow=flow, received=received, arrives=True, **more)


def bucket_of(ns: int) -> int:
    return next(bucket for bucket in range(640) if ns <= bucket_end_ns(bucket))


def times(*ns: int) -> dict[str, Any]:
    return {
        "measured": len(ns),
        "min_ns": min(ns),
        "max_ns": max(ns),
        "sum_ns": sum(ns),
        "buckets": [bucket_of(one) for one in ns],
        "counts": [1] * len(ns),
    }


def flow_of(now: RunNow, number: int) -> FlowNow:
    (found,) = (flow for flow in now.flows if flow.flow == number)
    return found


def test_what_was_passed_over_is_lost_and_what_is_under_way_is_not(figures: Figures) -> None:
    figures.take("a", word(1, sends(10, 1000)))
    figures.take("b", word(1, arrives(10, 990, missing=3)))
    flow = flow_of(figures.now(), 10)
    assert (flow.sent, flow.received, flow.lost) == (1000, 990, 3)
    assert (flow.source, flow.destination, flow.measure) == ("a", "b", "latency")


def test_of_a_cut_link_what_was_sent_a_second_ago_is_lost(figures: Figures) -> None:
    """Nothing comes behind it, so the receiver sees no gap."""
    for second in (1, 2, 3):
        figures.take("a", word(second, sends(10, 1000 * second)))
        figures.take("b", word(second, arrives(10, 1000)))
    assert flow_of(figures.now(), 10).lost == 1000


def test_a_receiver_that_is_not_heard_makes_nothing_lost(figures: Figures) -> None:
    figures.take("b", word(1, arrives(10, 1000)))
    for second in (1, 2, 3, 4):
        figures.take("a", word(second, sends(10, 1000 * second)))
    assert flow_of(figures.now(), 10).lost == 0


def test_what_the_kernel_refused_was_not_sent_and_is_not_lost(figures: Figures) -> None:
    figures.take("a", word(1, sends(10, 997, refused=3)))
    figures.take("b", word(1, arrives(10, 997, missing=3)))
    assert flow_of(figures.now(), 10).lost == 0


def test_a_round_trip_is_told_by_its_sender(figures: Figures) -> None:
    told = pb.LiveFlow(
        flow=20, sent=500, received=498, missing=1, arrives=True, round_trip=True, **times(40_000, 50_000)
    )
    figures.take("a", word(1, told))
    flow = flow_of(figures.now(), 20)
    assert (flow.measure, flow.lost, flow.max_ns) == ("rtt", 1, 50_000)


def test_percentiles_are_never_below_the_values_nor_above_the_longest(figures: Figures) -> None:
    values = [10_000 + 137 * k for k in range(100)]
    figures.take("b", word(1, arrives(10, 100, **times(*values))))
    flow = flow_of(figures.now(), 10)
    assert flow.p50_ns is not None
    assert flow.p99_ns is not None
    assert values[49] <= flow.p50_ns <= values[49] * 17 / 16
    assert values[98] <= flow.p99_ns <= values[99] == flow.max_ns
    assert flow.mean_ns == pytest.approx(sum(values) / 100)


def test_times_are_of_the_last_second_and_a_word_counts_once(figures: Figures) -> None:
    told = word(1, arrives(10, 2, **times(1_000, 9_000)))
    figures.take("b", told)
    figures.take("b", told)
    assert flow_of(figures.now(), 10).measured == 2
    flow = flow_of(figures.now(), 10)
    assert (flow.measured, flow.p50_ns, flow.max_ns, flow.received) == (0, None, None, 2)


def test_the_longest_of_seconds_nobody_heard_of_is_not_forgotten(figures: Figures) -> None:
    figures.take("b", word(1, arrives(10, 1, worst_ns=5_000, **times(5_000))))
    figures.now()
    figures.take("b", word(5, arrives(10, 9, worst_ns=70_000, **times(3_000))))
    assert flow_of(figures.now(), 10).max_ns == 70_000


def test_no_word_of_an_agent_makes_a_number_without_bound(figures: Figures) -> None:
    figures.take("b", word(1, arrives(10, 1, measured=1, max_ns=2**62, buckets=[2**32 - 1], counts=[1])))
    assert flow_of(figures.now(), 10).p50_ns == bucket_end_ns(639)


def test_the_rate_is_of_the_time_between_two_words(figures: Figures) -> None:
    figures.take("b", word(1, arrives(10, 1000)))
    figures.now()
    figures.take("b", word(2, arrives(10, 2500), late_s=0.5))
    assert flow_of(figures.now(), 10).rate == pytest.approx(1000)


def now(
    seconds: float, *, lost: int = 0, longest: float | None = None, flow: int = 10, dropped: int = 0
) -> RunNow:
    one = FlowNow(
        flow,
        "a",
        "b",
        "latency",
        1000,
        900,
        lost,
        0,
        1.0,
        1 if longest else 0,
        longest,
        longest,
        longest,
        longest,
        0,
    )
    return RunNow(0, 0, seconds, (one,), 0, dropped)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_live_measure_can_be_limited(measure: str) -> None:
    value = "3" if measure in ("lost", "duplicated") else "1%" if measure == "loss" else "2ms"
    limit = AlarmLimit.read(f" {measure}  <=  {value} ")
    assert limit.written == f"{measure} <= {value}"
    assert limit.most == {"3": 3.0, "1%": 0.01, "2ms": 2e6}[value]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lost", "write a measure, <= and a value"),
        ("lost <= 1.5", "whole number"),
        ("lost >= 1", "how much is too much"),
        ("latency.max <= 3", "unit"),
        ("ipdv.p99 <= 1ms", "no live figures of ipdv.p99"),
        ("latency.p999 <= 1ms", "no live figures"),
    ],
)
def test_what_is_no_alarm_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(AlarmError, match=said):
        AlarmLimit.read(text)


def test_an_alarm_is_of_flows_that_have_its_measure(plan: Campaign, tmp_path: Path) -> None:
    assert AlarmLimit.read("rtt.max <= 1ms").is_of(plan.runs[0])
    assert AlarmLimit.read("latency.max <= 1ms").is_of(plan.runs[0])
    only = tmp_path / "gap.xml"
    only.write_text(TEST.replace("/><receive", ' pacing="gap"/><receive').replace("relay", "receive"))
    (run,) = load(only).campaign.runs
    assert not AlarmLimit.read("rtt.max <= 1ms").is_of(run)
    assert AlarmLimit.read("latency.max <= 1ms").is_of(run), "flow 20 keeps to the plan"
    assert not AlarmLimit.read("latency.max <= 1ms").is_of(msgspec.structs.replace(run, sends=run.sends[:1]))


def test_a_loss_is_raised_as_often_as_it_grows_and_a_long_latency_as_long_as_it_lasts() -> None:
    alarms = Alarms([AlarmLimit.read("lost <= 2"), AlarmLimit.read("latency.max <= 1ms")])
    told = []
    for second, (lost, longest) in enumerate(
        [(0, 5e5), (2, 1e6), (3, 2e6), (3, 3e6), (3, 9e5), (4, None), (5, 1.1e6)], start=1
    ):
        fresh = alarms.look(now(float(second), lost=lost, longest=longest))
        told += [(second, limit.measure) for limit, _, _ in fresh]
    assert told == [(3, "lost"), (3, "latency.max"), (6, "lost"), (7, "latency.max")]
    assert [(one.begin_s, one.end_s, one.first, one.worst) for one in alarms.kept] == [
        (3, 3, 3, 3),
        (3, 4, 2e6, 3e6),
        (6, 7, 4, 5),
        (7, 7, 1.1e6, 1.1e6),
    ]
    assert alarms.raised == 4


def test_what_is_kept_of_alarms_is_bounded() -> None:
    alarms = Alarms([AlarmLimit.read("lost <= 0")])
    for flow in range(MOST_KEPT + 5):
        alarms.look(now(1.0, lost=1, flow=flow))
    kept = alarms.as_json()
    assert (kept["raised"], len(kept["incidents"])) == (MOST_KEPT + 5, MOST_KEPT)


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_command_gets_alarms_as_json_and_no_shell_sees_them(tmp_path: Path) -> None:
    got = tmp_path / "got"
    code = f"import sys; open({str(got)!r}, 'ab').write(sys.stdin.buffer.read() + repr(sys.argv[1:]).encode() + b'\\n')"
    hook = Hook([sys.executable, "-c", code, "$(touch never)"])
    hook.tell([{"flow": 10, "alarm": "lost <= 0; rm -r /"}])
    until(lambda: got.exists() and got.read_bytes().count(b"\n") == 2)
    for flow in range(150):
        hook.tell([{"flow": flow}])
    hook.close()
    lines = got.read_text().splitlines()
    first, second = (json.loads(line) for line in lines[::2])
    assert first == {"schema": 1, "alarms": [{"flow": 10, "alarm": "lost <= 0; rm -r /"}], "more": 0}
    assert (len(second["alarms"]), second["more"]) == (100, 50)
    assert lines[1] == "['$(touch never)']"
    assert (hook.started, hook.failed) == (2, 0)


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    hook = Hook([sys.executable, "-c", "raise SystemExit(3)"])
    hook.tell([{}])
    hook.close()
    assert (hook.started, hook.failed, hook.reason) == (1, 1, "it ended with code 3")


def alarms_of(entry: RunEntry) -> dict[str, Any]:
    assert entry.alarms is not None
    return entry.alarms


def test_an_alarm_ends_the_run_where_that_is_asked_for_and_stands_in_its_entry(tmp_path: Path) -> None:
    monitor = AlarmMonitor([AlarmLimit.read("lost <= 0")], ["exit"])
    monitor.run_begins()
    lines: list[str] = []
    monitor.look(now(1.0), 0.1, lines.append)
    with pytest.raises(
        AlarmExit, match=r"alarm at 2 s: flow 10 \(a → b\): lost is 7, the limit is lost <= 0"
    ):
        monitor.look(now(2.0, lost=7, dropped=9), 0.2, lines.append)
    assert len(lines) == 1
    assert "the instrument lost 9 records" in lines[0]
    entry = RunEntry()
    monitor.run_ends(entry)
    assert alarms_of(entry)["exit"]
    assert alarms_of(entry)["incidents"][0]["worst"] == 7
    monitor.run_begins()
    other = RunEntry()
    monitor.run_ends(other)
    assert alarms_of(other)["raised"] == 0


def test_what_surrounds_an_alarm_is_kept_as_long_as_it_goes_on() -> None:
    """From long enough before it is seen, and on from its last second; what comes between two of them is not."""
    monitor = AlarmMonitor([AlarmLimit.read("lost <= 0")], around_s=3.0)
    monitor.run_begins(drain_s=0.5)
    assert monitor.hold_s == 3.0 + 4.5 + 4.0
    asked: list[tuple[float, float]] = []

    def second(at: float, lost: int) -> None:
        monitor.look(
            now(at, lost=lost), at / 100, lambda _: None, lambda begin, end: asked.append((begin, end))
        )

    for at, lost in ((1.0, 0), (2.0, 1), (3.0, 2), (4.0, 2), (5.0, 2), (40.0, 2), (41.0, 3)):
        second(at, lost)
    assert asked == [(0.0, 5.0), (0.0, 6.0), (33.5, 44.0)]
    entry = RunEntry()
    monitor.run_ends(entry)
    assert alarms_of(entry)["around_s"] == 3.0
    assert alarms_of(entry)["kept"] == [[0.0, 6.0], [33.5, 44.0]]
    # Anew with each run; and nobody is asked without the option.
    monitor.run_begins()
    monitor.run_ends(entry)
    assert alarms_of(entry)["kept"] == []
    plain = AlarmMonitor([AlarmLimit.read("lost <= 0")])
    plain.run_begins()
    plain.look(now(2.0, lost=7), 0.2, lambda _: None, lambda *_: pytest.fail("nobody asked for it"))
    assert plain.hold_s is None
    plain.run_ends(entry)
    assert "kept" not in alarms_of(entry)


def test_a_run_without_alarms_keeps_no_word_of_them() -> None:
    monitor = AlarmMonitor()
    monitor.run_begins()
    monitor.look(now(2.0, lost=7), 0.2, pytest.fail)
    entry = RunEntry()
    monitor.run_ends(entry)
    assert entry.alarms is None


def test_of_many_flows_some_alarms_get_a_line(plan: Campaign) -> None:
    monitor = AlarmMonitor([AlarmLimit.read("lost <= 0")])
    monitor.run_begins()
    flows = tuple(now(1.0, lost=1, flow=flow).flows[0] for flow in range(100))
    lines: list[str] = []
    monitor.look(RunNow(0, 0, 1.0, flows, 0, 0), 0.1, lines.append)
    assert len(lines) == 21
    assert "80 more flows" in lines[-1]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("localhost:9464", ("127.0.0.1", 9464)),
        ("192.0.2.7:1", ("192.0.2.7", 1)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_an_address_is_a_loopback_one_unless_another_is_given_in_full(
    text: str, address: tuple[str, int]
) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text", ["0.0.0.0:9464", "[::]:9464", ":9464", "host:9464", "127.0.0.1", "1.2.3.4:0", "65536", ""]
)
def test_what_is_no_address_or_every_address_is_refused(text: str) -> None:
    with pytest.raises(EndpointError):
        address_of(text)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def scraped(port: int) -> dict[str, Any]:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        families = text_string_to_metric_families(answer.read().decode())  # type: ignore[no-untyped-call]
        return {family.name: family for family in families}


def test_the_endpoint_serves_openmetrics_that_the_librarys_parser_reads(port: int) -> None:
    figures = RunFigures()
    endpoint = Endpoint(("127.0.0.1", port), figures)
    figures.facts = {"test": 'a "name"', "bench": "netns"}
    endpoint.serve()
    try:
        assert set(scraped(port)) == {"wiregauge_live_test"}
        figures.show(now(4.0, lost=7, longest=2e6, dropped=5), 0.4, {"lost <= 0": 1}, {"lost <= 0": 1})
        families = scraped(port)
    finally:
        endpoint.close()
    assert families["wiregauge_live_sent_messages"].type == "counter"
    (lost,) = families["wiregauge_live_lost_messages"].samples
    assert lost.value == 7
    assert lost.labels == {"run": "0", "flow": "10", "source": "a", "destination": "b"}
    quantiles = {
        one.labels["quantile"]: one.value for one in families["wiregauge_live_latency_seconds"].samples
    }
    assert quantiles == {"0.5": 0.002, "0.99": 0.002, "1": 0.002}
    assert families["wiregauge_alarms_raised"].samples[0].value == 1
    assert families["wiregauge_live_run_done_ratio"].samples[0].value == 0.4
    assert families["wiregauge_live_records_dropped"].samples[0].value == 5
    with pytest.raises(OSError, match="refused"):
        scraped(port)


def test_an_address_in_use_is_named(port: int) -> None:
    first = Endpoint(("127.0.0.1", port), RunFigures())
    first.open()
    try:
        with pytest.raises(BenchError, match=f"port {port}.*in use"):
            Endpoint(("127.0.0.1", port), RunFigures()).open()
    finally:
        first.close()


def test_a_campaign_ends_before_its_directory_comes_to_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiregauge.runner.live.disk._LOOK_S", 0.0)
    bound = DiskBound(size_of("1MB"))
    (tmp_path / "spool").mkdir()
    segment = tmp_path / "spool" / "000000.arrows"
    for size in (100_000, 200_000, 300_000):
        segment.write_bytes(bytes(size))
        bound.look(tmp_path)
    segment.write_bytes(bytes(450_000))
    with pytest.raises(DiskExit, match=r"--disk 1 MB: it has 0.45 MB of segments"):
        bound.look(tmp_path)


def test_no_tables_are_made_of_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wiregauge.runner.live.disk._LOOK_S", 0.0)
    bound = DiskBound(size_of("1MB"))
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "000000.arrows").write_bytes(bytes(100_000))
    capture = tmp_path / "spool" / "sw1.pcapng"
    # With tables of it, it would have come to 1.1 MB.
    for size in (500_000, 600_000, 600_000):
        capture.write_bytes(bytes(size))
        bound.look(tmp_path)
    capture.write_bytes(bytes(900_000))
    with pytest.raises(DiskExit):
        bound.look(tmp_path)


def test_room_on_the_disk_is_reckoned_before(
    plan: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 10 200 messages one way with five records, 5100 there and back with ten.
    records = 10_200 * 5 + 5_100 * 10
    assert needed_bytes(plan.runs) == records * 26
    assert room(tmp_path, plan.runs, None) is None
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2_000_000})())
    assert "about 2.65 MB, and 2 MB are free" in str(room(tmp_path, plan.runs, None))
    assert room(tmp_path, plan.runs, 1_500_000) is None
    with pytest.raises(BenchError, match="--disk 3 MB is more than the 2 MB that are free"):
        AlarmMonitor(disk=3_000_000).check_room(tmp_path, plan.runs, pytest.fail)


@pytest.mark.parametrize("text", ["10", "10gb", "GB", "-1GB", "10kB", "0.5MB", "0.3GiB.1"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="write"):
        size_of(text)


def test_the_table_shows_the_gravest_flows_and_says_that_it_is_provisional() -> None:
    flows = tuple(now(1.0, lost=flow, longest=1e6, flow=flow).flows[0] for flow in range(MOST_ROWS + 4))
    file = io.StringIO()
    Console(file=file, width=120).print(live_table(RunNow(0, 0, 5.0, flows, 2, 3)))
    lines = file.getvalue().splitlines()
    assert lines[1].split()[0] == str(MOST_ROWS + 3)
    assert MOST_ROWS + 2 <= len(lines) <= MOST_ROWS + 3
    for said in (
        "lost 3 records",
        "2 flows have no live figures",
        "4 more flows",
        "provisional; the report's count",
    ):
        assert said in " ".join(lines[MOST_ROWS + 1 :])
    assert live_text(RunNow(0, 0, 5.0, flows, 0, 0)) == ", 66 lost so far, latency up to 1 ms (provisional)"


# -- simulated runs ---------------------------------------------------------------------------------------------


SIMULATED = """<test xmlns="urn:wiregauge:test:2" name="live" seed="1">
<network><end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="sw1"/>
<link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/>
<link between="c sw1" rate="1Gbit/s"/></network>
<flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="20" protocol="udp" from="a" to="b"/>
<flow id="30" protocol="raw" from="a" to="c b"/></flows>
<tasks warm-up="10ms" drain="1ms"><send flow="10" period="100us" payload="64B" count="3000"/><receive flow="10"/>
<send flow="20" period="200us" payload="300B" count="1500"/><relay flow="20"/>
<send flow="30" period="300us" payload="200B" count="1000"/><receive flow="30"/></tasks>
<faults><loss link="b sw1" share="1%" sent-by="sw1"/></faults></test>"""


CLOCKED = """<test xmlns="urn:wiregauge:test:2" name="clocked" seed="1">
<network><end-system name="a"><clock drift="10ppm"/></end-system>
<end-system name="b"><clock drift="-10ppm"/></end-system>
<end-system name="c"><clock offset="3ms"/></end-system><switch name="sw1"/>
<link between="a sw1" rate="1Gbit/s"/><link between="b sw1" rate="1Gbit/s"/>
<link between="c sw1" rate="1Gbit/s"/></network>
<flows><flow id="10" protocol="udp" from="a" to="c"/></flows>
<synchronise>
<ptp-domain ordinary-clocks="a b" sync-interval="125ms" announce-interval="250ms">
<ptp-clock name="a" priority1="100"/></ptp-domain></synchronise>
<tasks warm-up="8s" duration="2s"><send flow="10" period="1ms" payload="64B"/><receive flow="10"/></tasks></test>"""


def test_a_simulated_run_is_followed_by_its_records(tmp_path: Path) -> None:
    """Counts and extremes of the whole run are those of its messages."""
    run = simulation.simulate(SIMULATED, tmp_path)
    spool = tmp_path / "followed"
    following = Following(run.plan, lambda _: spool)
    plan = run.plan.runs[0]
    try:
        assert following.look([]) is None
        # The first look begins; the folder of the simulator is not there yet.
        assert following.look([0]) is None
        _native.simulate_run(as_json(run.plan.network), as_json(plan), str(spool), None)
        now = None
        while now is None:
            time.sleep(0.05)
            now = following.look([0])
    finally:
        following.stop()
    assert (now.position, now.index, now.left_out, now.dropped) == (0, 0, 0, 0)
    assert [flow.flow for flow in now.flows] == [10, 20, 30]
    assert now.ports is not None
    assert {(port.node, port.port) for port in now.ports} == {("sw1", port) for port in (1, 2, 3)}
    passages = pl.read_parquet(simulation.tables(tmp_path)[1])
    for port in now.ports:
        own = passages.filter(pl.col("port") == port.port)
        begins, ends = own["came"].to_numpy(), own["left"].to_numpy()
        assert (port.frames, port.longest_ns) == (len(own), int(((ends - begins) // 1000).max()))
        assert port.queued == max(
            int(((ends > begin) & (ends <= end)).sum()) for begin, end in zip(begins, ends, strict=True)
        )
    assert now.clocks == ()
    measured = run.messages.filter(~pl.col("warm_up"))
    for flow in now.flows:
        own = measured.filter(pl.col("flow") == flow.flow)
        if flow.flow == 30:
            own = own.filter(pl.col("to") == plan.flows[2].to)
        last = "back_rx_app" if flow.flow == 20 else "rx_app"
        came = own.drop_nulls(last)
        took = (came[last] - came["tx_app"]).to_numpy() // 1000
        assert (flow.sent, flow.received, flow.repeats) == (len(own), len(came), 0)
        assert (flow.measured, flow.max_ns) == (len(came), took.max())
        assert flow.mean_ns == pytest.approx(float(took.mean()))
        median = float(np.quantile(took, 0.5, method="inverted_cdf"))
        assert flow.p50_ns is not None
        assert median <= flow.p50_ns <= median * 17 / 16 + 1
        assert flow.measure == ("rtt" if flow.flow == 20 else "latency")


def test_of_a_simulated_run_the_last_offset_and_state_of_each_clock_is_known(tmp_path: Path) -> None:
    run = simulation.simulate(CLOCKED, tmp_path)
    spool = tmp_path / "followed"
    _native.simulate_run(as_json(run.plan.network), as_json(run.plan.runs[0]), str(spool), None)
    following = Following(run.plan, lambda _: spool)
    try:
        now = None
        while now is None:
            now = following.look([0])
            time.sleep(0.05)
    finally:
        following.stop()
    names = run.plan.network.names
    assert {clock.node for clock in now.clocks} == {"a", "b", "c"}
    for clock in now.clocks:
        own = run.truth.filter(pl.col("node") == names.index(clock.node))
        offset_ps = own.filter(pl.col("kind") == "clock-offset").sort("time")["value"].to_list()[-1]
        assert clock.offset_ns == int(offset_ps / 1000)
        assert clock.at_s == max(own["time"].to_list()) // 1000 / 1e9
    by_node = {clock.node: clock for clock in now.clocks}
    assert (by_node["a"].source, by_node["a"].synchronised) == ("PTP", True)
    assert by_node["a"].state == "port 1 MASTER, follows a"
    assert by_node["b"].state == "port 1 SLAVE, follows a"
    assert (by_node["c"].source, by_node["c"].state, by_node["c"].synchronised) == ("model", "", None)


def test_a_network_is_summed_up_until_it_is_looked_at_and_unknown_without_any_word() -> None:
    figures = NetworkFigures(["a", "sw1"])
    assert (figures.ports(), figures.clocks()) == (None, ())
    device = ClockSums(1, 2_000_000_000, -40, 8, {}, None)
    for sums in (PortSums(1, 2, 10, 900, 3), PortSums(1, 2, 5, 1200, 1)):
        figures.take(NetworkSums([sums], [device]))
    assert figures.ports() == (PortNow("sw1", 2, 15, 1200, 3),)
    assert figures.ports() == ()
    assert figures.clocks() == (ClockNow("sw1", "AS6802", "SYNC", True, -40.0, 2.0),)
    for code, state in ((0, "INTEGRATE"), (-1, "no power"), (77, "state 77")):
        figures.take(NetworkSums([], [ClockSums(1, 0, None, code, {}, None)]))
        assert figures.clocks() == (ClockNow("sw1", "AS6802", state, False, None, 0.0),)
    for ports, grandmaster, synchronised in (
        ({1: 9, 2: 6}, 0, True),
        ({1: 8, 2: 6}, 0, False),
        ({1: 6}, 1, True),
        ({1: 6}, None, False),
    ):
        figures.take(NetworkSums([], [ClockSums(1, 0, None, None, ports, grandmaster)]))
        assert [clock.synchronised for clock in figures.clocks()] == [synchronised]
    figures.take(NetworkSums([], [ClockSums(1, 0, None, None, {1: 4, 2: 99}, -1)]))
    assert figures.clocks() == (
        ClockNow("sw1", "PTP", "port 1 LISTENING, port 2 state 99, follows none", False, None, 0.0),
    )


def test_figures_of_another_simulated_run_begin_anew(tmp_path: Path) -> None:
    recipe = synthetic.Recipe(("udp",), (64, 128), messages=40, state="running")
    state = LiveState(RunDirectory.open(synthetic.make(tmp_path / "two", recipe)))
    state.trial_began(state._directory.plan.runs, virtual_time=True)

    def second(position: int, seconds: float) -> RunNow:
        flow = FlowNow(10, "a", "b", "latency", 5, 5, 0, 0, 5.0, 5, 1.0, 1.0, 1.0, 9.0, 0)
        return RunNow(position, position, seconds, (flow,), 0, 0)

    for position, seconds in ((0, 4.0), (0, 8.0), (1, 3.0)):
        state.run_measured(second(position, seconds))
    (course,) = state._live().courses.values()
    assert [(one.begin, one.end) for one in course] == [(0.0, 3.0)]


def test_whoever_watches_a_simulation_is_given_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RunNow] = []
    asked: list[list[int]] = []

    class Planted(Following):
        def look(self, under_way: Collection[int]) -> RunNow | None:
            asked.append(sorted(under_way))
            return RunNow(0, 0, 1.0, (), 0, 0)

        def stop(self) -> None:
            asked.append([-1])

    class Watching(Observer):
        def run_measured(self, now: RunNow) -> None:
            seen.append(now)

    monkeypatch.setattr("wiregauge.runner.benches.simulation.Following", Planted)
    monkeypatch.setattr("wiregauge.runner.benches.simulation._FOLLOWED_AFTER_S", 0.0)
    file = tmp_path / "t.xml"
    file.write_text(SIMULATED)
    with runner.open(runner.SimulatorBench(jobs=1), observer=Watching()) as trials:
        trials.run(file, tmp_path / "run")
    assert seen
    assert seen[0].seconds == 1.0
    assert asked[-1] == [-1]
