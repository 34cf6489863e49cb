"""Replays of captures: what a test says of one, what is refused and how, and what a simulated link carries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from capture_files import Packet, pcap, pcapng, write
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge import results
from wiregauge.config import Test, TestError
from wiregauge.figures import build
from wiregauge.notebook import simulate
from wiregauge.plan import plain

MS = 1_000_000


def replaying(file: Path | str, rate: str = "1Gbit/s", protocol: str = "udp", **chosen: Any) -> Test:
    test = Test("replayed").end_system("a", "ideal").end_system("b", "ideal").switch("sw")
    test.link("a", "sw", rate=rate).link("b", "sw", rate=rate)
    test.flow(1, protocol=protocol, from_="a", to="b").receive(1)
    return test.replay(1, file=file, **chosen)


def refused(test: Test) -> str:
    with pytest.raises(TestError) as caught:
        test.compile()
    return str(caught.value)


def evenly(count: int, gap_ns: int, length: int = 596) -> list[Packet]:
    return [Packet(10**18 + k * gap_ns, length) for k in range(count)]


def trace(test: Test) -> tuple[str, dict[str, Any]]:
    send = plain(test.compile().campaign.runs[0].sends[0])
    return send["replay"]["trace"], send


def test_a_capture_becomes_the_trace_of_the_plan(tmp_path: Path) -> None:
    text, send = trace(replaying(write(tmp_path / "a.pcapng", evenly(1000, 24_000))))
    assert text == "0:600 24000000:600*999"
    assert (send["count"], send["period"], send["warm_up_count"]) == (1000, 24_000_000, 0)
    for big in (False, True):
        for nano in (False, True):
            path = tmp_path / f"{big}{nano}.pcap"
            path.write_bytes(pcap(evenly(5, 24_000), big=big, nano=nano))
            assert trace(replaying(path))[0] == "0:600 24000000:600*4"


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(60, 1514)), min_size=2, max_size=20),
    st.sampled_from(["udp", "raw"]),
)
def test_what_is_simulated_has_the_gaps_and_sizes(
    tmp_path_factory: pytest.TempPathFactory, frames: list[tuple[int, int]], protocol: str
) -> None:
    """Gaps that hold the frame before: nothing waits."""
    now, packets = 10**18, []
    for gap, length in frames:
        packets.append(Packet(now, length))
        now += 8 * (length + 24) + gap
    folder = tmp_path_factory.mktemp("replay")
    run = simulate(replaying(write(folder / "line.pcapng", packets), protocol=protocol), folder / "out")
    records = pl.concat(
        [pl.read_parquet(path) for path in sorted((folder / "out").rglob("records/*.parquet"))]
    )
    sent = records.filter(pl.col("point") == "application-send").sort("sequence")
    assert sent["time"].diff()[1:].to_list() == [
        1000 * (after.nanos - before.nanos) for before, after in itertools.pairwise(packets)
    ]
    assert sent["length"].to_list() == [packet.length + 4 for packet in packets]
    assert run.messages().collect().height == len(packets)
    # No figure rests on one size where there are many.
    assert run.judgement.runs[0].flows[0].plan.payload is None


@pytest.mark.parametrize(
    ("packets", "chosen", "said"),
    [
        ([], {}, ["has no frame (limit: at least 1 Ethernet frame)"]),
        ([Packet(5, 60), Packet(3, 60)], {}, ["go back once at frame 2 by 2ns", "reordercap"]),
        (
            [Packet(0, 1514), Packet(MS, 1515), Packet(2 * MS, 9000)],
            {},
            ["2 of 3 frames", "9004B", "1518B", "ethtool"],
        ),
        (evenly(100, 1000), {"rate": "1Gbit/s"}, ["more than a link of 1Gbit/s", "lower speed"]),
        (evenly(100, 24_000), {"speed": "600%"}, ["at 600% is 1237.1Mbit/s on average"]),
        (evenly(9, 24_000), {"loops": 2, "loop_gap": "0s", "speed": "480%"}, ["longer loop-gap"]),
        (evenly(9, MS), {"speed": "1ppm"}, ['speed "1ppm" is out of range (limit: 100ppm to 100000%)']),
        (evenly(9, MS), {"loop_gap": "1ms"}, ["loop-gap has no effect without loops"]),
        (evenly(9, MS), {"interface": "eth7"}, ['no frame of interface "eth7"', "0 (eth0)"]),
        (evenly(9, MS), {"direction": "sent"}, ["says of no frame which way it went", "remove direction"]),
        (evenly(9, MS), {"backend": "xdp-live"}, ["leaves no record of each message"]),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    tmp_path: Path, packets: Sequence[Packet], chosen: dict[str, Any], said: list[str]
) -> None:
    path = tmp_path / "line.pcapng"
    path.write_bytes(pcapng(packets))
    message = refused(replaying(path, **chosen))
    assert all(part in message for part in said), message


def test_files_that_are_no_captures(tmp_path: Path) -> None:
    assert "is not there; write the path of a capture; this one led to" in refused(replaying("gone.pcapng"))
    for content, said in [(b"", "is empty"), (b"<test/>" * 9, "is neither pcapng nor pcap")]:
        path = tmp_path / "no.pcapng"
        path.write_bytes(content)
        assert said in refused(replaying(path))
    path.write_bytes(pcapng(evenly(9, MS))[:-7])
    assert "is not whole: the file ends within a block" in refused(replaying(path))
    assert "is a directory; write the path of a pcapng or pcap file in it" in refused(replaying(tmp_path))


def test_contracts_relays_and_sweeps_without_effect_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "line.pcapng", evenly(9, MS))
    test = Test("rc").end_system("a").end_system("b").switch("sw", kind="arinc664")
    test.link("a", "sw", rate="1Gbit/s").link("b", "sw", rate="1Gbit/s")
    test.flow(1, protocol="rc", from_="a", to="b", bag="1ms").receive(1).replay(1, file=path)
    assert "flow 1 has a contract or a schedule, which no capture keeps to" in refused(test)
    test = Test("relayed").end_system("a").end_system("b").link("a", "b", rate="1Gbit/s")
    test.flow(1, protocol="udp", from_="a", to="b").relay(1).replay(1, file=path)
    assert "flow 1 is relayed; only messages that end where they arrive can be a replay" in refused(test)
    assert "sweeping payload changes nothing" in refused(replaying(path).axis("payload", ["64B", "65B"]))


def test_short_frames_are_raised_and_counted_and_crowded_ones_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "line.pcapng", [Packet(0, 42), Packet(MS, 60), Packet(MS + 100, 200), Packet(9 * MS, 90)]
    )
    loaded = replaying(path, transmit_time="12B").compile()
    replay = loaded.campaign.runs[0].sends[0].replay
    assert replay is not None
    assert replay.least == 66
    warnings = "\n".join(loaded.warnings)
    assert "2 of 4 frames" in warnings
    assert "66 B: as much as the probe header and the transmit time needs" in warnings
    assert "1 of 4 frames" in warnings
    assert "wait up to 588ns" in warnings


def test_paths_begin_at_the_folder_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wiregauge.config import load

    (tmp_path / "captures").mkdir()
    write(tmp_path / "captures" / "line.pcapng", evenly(9, MS))
    replaying("captures/line.pcapng").write(tmp_path / "test.xml")
    monkeypatch.chdir("/")
    replay = load(tmp_path / "test.xml").campaign.runs[0].sends[0].replay
    assert replay is not None
    assert replay.file == "captures/line.pcapng"


def test_figures_name_a_replay_by_its_frames_and_draw_it_at_no_payload(tmp_path: Path) -> None:
    """Beside a flow of one payload it has none: no "0 B" in a title, a legend or on an axis."""
    lengths = [60, 200, 1_000] * 200
    packets = [Packet(number * MS // 10, length) for number, length in enumerate(lengths)]
    test = replaying(write(tmp_path / "line.pcapng", packets), loops=2)
    test.flow(2, protocol="udp", from_="b", to="a").receive(2).send(2, period="1ms", payload="64B", count=300)
    run = simulate(test, tmp_path / "r")
    drawn = {figure.id: figure for figure in build(run.judgement, results.shapes(run.judgement))}
    said = [panel.title for figure in drawn.values() for panel in figure.panels]
    said += [
        getattr(trace, "name", "") for f in drawn.values() for panel in f.panels for trace in panel.traces
    ]
    said += [text for f in drawn.values() for p in f.panels for _, text in p.x.ticks or ()]
    assert "replay, frames of 64 to 1004 B" in said
    assert not {"0 B", "0", "None B"} & {part for text in said for part in (text, *text.split(" · "))}
    assert "latency-by-payload" not in drawn, "64 B is the only payload"
