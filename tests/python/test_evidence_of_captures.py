"""Captures that deny what was said of them: content on both sides is never lost, and an unknown offset is not 0."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from simulation import trial
from test_passive import MS, Seen, frame, written
from wiregauge.cli import app
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.flow_measures import WITH_LOSS
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult, Grade, Judgement
from wiregauge.measures.metrics.uncompared import is_between_clocks
from wiregauge.measures.quantities import quantity
from wiregauge.results import headline, judge

TAPS = Path(__file__).resolve().parents[1] / "faults" / "taps"
SECOND = 10**9
START = 1000 * SECOND
SENT = 400
EACH = 50 * MS


def seen(out: Path, *args: object, code: int) -> tuple[Judgement, str, dict[str, Any]]:
    done = CliRunner().invoke(app, ["import", *map(str, args), "--out", str(out)])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    manifest = json.loads((out / "manifest.json").read_text())
    return judge(out), " ".join(done.output.split()), manifest["runs"][0]


def counts(judged: Judgement) -> tuple[int, int, int]:
    flows = judged.runs[0].flows
    return (
        sum(flow.counts["sent"] for flow in flows),
        sum(flow.counts["lost"] for flow in flows),
        sum(flow.counts["unknown"] for flow in flows),
    )


def test_what_a_slow_device_keeps_for_longer_is_not_lost(tmp_path: Path) -> None:
    files = [TAPS / "slow-before.pcap", TAPS / "slow-behind.pcap"]
    for number, options in enumerate(([], ["--max-residence", "1.5s"])):
        judged, said, entry = seen(
            tmp_path / str(number), *files, "--max-clock-offset", "1us", *options, code=0
        )
        # The last of the ten came so near to the end that it could still have come through.
        assert (judged.validity, counts(judged)) == (Grade.DEGRADED, (400, 9, 1))
        assert entry["passive"]["relation"]["steps"] == []
        if not options:
            assert "131 of 390 frames with a content of their own stayed for longer than 1 s" in said
            assert "within 1.4995s (the longest of frames with a content of their own" in said
        latency = judged.runs[0].flows[0].summaries["latency"]
        assert latency.maximum == pytest.approx(1_499_500_000)


def test_a_clock_that_was_set_loses_nothing(tmp_path: Path) -> None:
    files = [TAPS / "stepped-before.pcap", TAPS / "stepped-behind.pcap"]
    for number, options in enumerate((["--max-clock-offset", "1ms"], [])):
        judged, said, entry = seen(tmp_path / str(number), *files, *options, code=0)
        assert (judged.validity, counts(judged)) == (Grade.DEGRADED, (400, 0, 0))
        relation = entry["passive"]["relation"]
        assert [part["pairs"] for part in relation["segments"]] == [200, 200]
        (step,) = relation["steps"]
        assert step["by_ps"] == pytest.approx(8_589_935 * 1e6, abs=1e6)
        assert step["at_ps"] == pytest.approx([31.84e12, 32e12], abs=1e6)
        assert "the clock of stepped-behind was set forwards by 8.58993" in said
        (flow,) = judged.runs[0].flows
        without_numbers(flow)
        assert entry["passive"]["flows"][0]["varies_ps"] < 1_000_000


@pytest.mark.parametrize("options", [["--max-clock-offset", "1ms"], []])
def test_clocks_of_two_timescales_are_related_by_their_frames(options: list[str], tmp_path: Path) -> None:
    files = [TAPS / "tai-before.pcap", TAPS / "tai-behind.pcap"]
    judged, said, entry = seen(tmp_path / "a", *files, *options, code=0)
    assert (judged.validity, counts(judged)) == (Grade.DEGRADED, (400, 0, 0))
    assert entry["passive"]["offset_ps"] == pytest.approx(37.017e12, abs=1e6)
    assert entry["passive"]["relation"]["leap"] == "TAI is 37 s ahead of UTC"
    assert "TAI is 37 s ahead of UTC" in said


def test_two_networks_of_a_pair_lose_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["import", str(TAPS / "redundant-a-b.pcapng"), "--out", str(tmp_path / "r"), "--json"]
    )
    assert done.exit_code == 0, done.output
    (pair,) = json.loads(done.stdout)["copies"]
    assert pair["pairs"] == 300
    # As the two sides of a device the same file contradicts itself, and loses nothing either.
    judged, said, _ = seen(tmp_path / "a", TAPS / "redundant-a-b.pcapng", "--passive", code=4)
    assert judged.validity is Grade.INVALID
    assert counts(judged)[:2] == (300, 0)
    assert "A and B of a redundant pair" in said


def test_sections_of_either_byte_order_say_the_same(tmp_path: Path) -> None:
    for order in ("le", "be"):
        judged, _, _ = seen(tmp_path / order, TAPS / f"tsoffset-{order}.pcapng", code=0)
        assert counts(judged) == (60, 0, 0)
        assert judged.runs[0].flows[0].summaries["latency"].maximum == 12_000


# -- the family: what may lie between two clocks, and what was truly lost ---------------------------------------


def captured(
    place: Path,
    clock: Callable[[int], int],
    *,
    took: Callable[[int], int] = lambda _: 17 * MS,
    lost: int = 0,
    ordered: bool = True,
) -> list[Path]:
    """400 frames each 50 ms, of which every 40th up to `lost` of them is lost; `clock` is what the second one shows.

    The second file is in the order of capture, or `ordered` by its clock.
    """
    gone = {40 * n + 7 for n in range(lost)}
    before = [Seen(START + EACH * n, frame(n), (1, n)) for n in range(SENT)]
    behind = [replace(one, nanos=clock(one.nanos + took(n))) for n, one in enumerate(before) if n not in gone]
    return [written(place / "before.pcap", before), written(place / "behind.pcap", behind, ordered=ordered)]


MIDDLE = START + EACH * SENT // 2


@pytest.mark.parametrize(
    ("clock", "by_ms"),
    [
        pytest.param(lambda t: t + 20 * SECOND * (t > MIDDLE), [20_000], id="forwards"),
        pytest.param(lambda t: t - 100 * MS * (t > MIDDLE), [-100], id="backwards"),
        pytest.param(lambda t: t - 20 * SECOND * (t > MIDDLE), [-20_000], id="far back"),
        pytest.param(
            lambda t: t + 3 * SECOND * (t > MIDDLE - 5 * SECOND) - 7 * SECOND * (t > MIDDLE),
            [3_000, -7_000],
            id="twice",
        ),
        pytest.param(
            lambda t: t - (t - START) // 10_000 - 2 * SECOND * (t > MIDDLE), [-2_000], id="drifting"
        ),
    ],
)
def test_a_clock_that_was_set_is_found_and_nothing_is_lost(
    clock: Callable[[int], int], by_ms: list[int], tmp_path: Path
) -> None:
    files = captured(tmp_path, clock, lost=5, ordered=False)
    judged, said, entry = seen(tmp_path / "seen", *files, "--max-clock-offset", "1ms", code=0)
    assert (judged.validity, counts(judged)) == (Grade.DEGRADED, (400, 5, 0))
    relation = entry["passive"]["relation"]
    assert relation["ground"] == "overruled"
    assert [step["by_ps"] / 1e9 for step in relation["steps"]] == pytest.approx(by_ms, abs=0.1)
    assert "was set" in said
    assert entry["passive"]["flows"][0]["varies_ps"] < 100_000


@pytest.mark.parametrize(
    ("clock", "options", "cause"),
    [
        pytest.param(
            lambda t: t - (t - START) // 500,
            ["--max-clock-offset", "1ms"],
            "farther apart than --max-clock-offset",
            id="no clock drifts so",
        ),
        pytest.param(
            lambda t: t + 20 * SECOND * (t > START + (SENT - 2) * EACH),
            ["--max-clock-offset", "1ms"],
            "a clock was set",
            id="too few",
        ),
        pytest.param(
            lambda t: t - 60 * MS, ["--max-clock-offset", "0ns"], "in the other order", id="wrong offset"
        ),
        pytest.param(
            lambda t: t,
            ["--max-clock-offset", "0ns", "--clock-offset", "60ms"],
            "in the other order",
            id="wrongly given",
        ),
        pytest.param(
            lambda t: t,
            ["--max-clock-offset", "0ns", "--max-residence", "10ms"],
            None,
            id="too short a window",
        ),
    ],
)
def test_content_on_both_sides_is_never_called_lost(
    clock: Callable[[int], int], options: list[str], cause: str | None, tmp_path: Path
) -> None:
    files = captured(tmp_path, clock, lost=5)
    done = CliRunner().invoke(app, ["import", *map(str, files), *options, "--out", str(tmp_path / "seen")])
    if cause is None:
        # Nothing at all is within the window: there is nothing to make a run of.
        assert done.exit_code == 2
        assert "--max-residence" in done.stderr
        return
    assert done.exit_code == 4, done.output
    judged = judge(tmp_path / "seen")
    assert judged.validity is Grade.INVALID
    assert counts(judged)[1] <= 5
    assert cause in " ".join(done.output.split())


def test_a_file_that_was_sorted_by_a_clock_that_was_set_back_shows_no_relation(tmp_path: Path) -> None:
    files = captured(tmp_path, lambda t: t - 8 * SECOND * (t > MIDDLE), lost=5)
    judged, said, _ = seen(tmp_path / "a", *files, "--max-clock-offset", "1ms", code=4)
    assert (judged.validity, counts(judged)[1]) == (Grade.INVALID, 5)
    assert "or one was set" in said


@pytest.mark.parametrize("alike", [2, 4])
def test_recurring_content_is_not_lost_either(alike: int, tmp_path: Path) -> None:
    before = [Seen(START + EACH * n, frame(n // alike), (1, n)) for n in range(SENT)]
    behind = [replace(one, nanos=one.nanos + MS + 30 * SECOND * (one.nanos > MIDDLE)) for one in before]
    files = [written(tmp_path / "before.pcap", before), written(tmp_path / "behind.pcap", behind)]
    judged, said, _ = seen(
        tmp_path / "a", *files, "--max-clock-offset", "0ns", "--max-residence", "10ms", code=4
    )
    assert (judged.validity, counts(judged)[1]) == (Grade.INVALID, 0)
    assert "they are unknown, not lost" in said


def test_one_frame_that_was_kept_for_long_spoils_no_other(tmp_path: Path) -> None:
    files = captured(tmp_path, lambda t: t, took=lambda n: 5 * SECOND if n == 9 else MS, lost=5)
    judged, said, _ = seen(tmp_path / "a", *files, "--max-clock-offset", "0ns", code=4)
    assert (judged.validity, counts(judged)) == (Grade.INVALID, (400, 5, 1))
    assert "--max-residence 5s" in said
    judged, _, _ = seen(tmp_path / "b", *files, "--max-clock-offset", "0ns", "--max-residence", "5s", code=0)
    assert counts(judged) == (400, 5, 0)


def test_a_mirror_port_that_copies_every_frame_twice_loses_nothing_certainly(tmp_path: Path) -> None:
    before = [Seen(START + EACH * n, frame(n), (1, n)) for n in range(SENT)]
    twice = [replace(one, nanos=one.nanos + k * 3_000) for one in before for k in (0, 1)]
    behind = [replace(one, nanos=one.nanos + MS) for one in before]
    files = [written(tmp_path / "before.pcap", twice), written(tmp_path / "behind.pcap", behind)]
    judged, said, _ = seen(tmp_path / "a", *files, "--max-clock-offset", "0ns", code=4)
    assert (judged.validity, counts(judged)[1]) == (Grade.INVALID, 0)
    assert "a mirror port" in said


def test_true_losses_are_still_plainly_said(tmp_path: Path) -> None:
    files = captured(tmp_path, lambda t: t, lost=10)
    judged, said, entry = seen(tmp_path / "a", *files, "--max-clock-offset", "0ns", code=0)
    assert (judged.validity, counts(judged)) == (Grade.OK, (400, 10, 0))
    assert entry["passive"]["outside"]["unique"] == 0
    assert "within 34ms (twice the longest of 390 frames of a content of their own" in said
    # One file, named the other way round: its clock vouches for the direction.
    judged, _, _ = seen(tmp_path / "b", *reversed(files), "--max-clock-offset", "0ns", code=4)
    assert "in the other order" in judged.reasons[0]


# -- an offset that nobody knows -----------------------------------------------------------------------------


def without_numbers(flow: FlowResult) -> None:
    """No figure of the flow has the offset of its clocks in it, in whatever form it is handed on."""
    for name, summary in flow.summaries.items():
        if is_between_clocks(flow.plan, name):
            assert summary.n == 0
            assert not len(flow.series[name].value)
    assert quantity(flow, "effective_bandwidth").value is None
    assert all(one.value is None for one in flow[WITH_LOSS].values())


def test_every_measure_between_the_two_clocks_is_known_to_be_one() -> None:
    plan = cast(FlowPlan, SimpleNamespace(relayed=False, deadline_ns=None))
    crossing = {name for name, one in DEFINITIONS.items() if one.clocks and not one.needs}
    assert crossing
    assert all(is_between_clocks(plan, name) for name in crossing)
    constant = ("ipdv", "delay_variation", "pdv", "range", "receive_period", "lost", "reordered", "goodput")
    assert not any(is_between_clocks(plan, name) for name in constant)


def test_an_unknown_offset_of_traffic_is_not_zero(tmp_path: Path) -> None:
    files = [TAPS / "tai-before.pcap", TAPS / "tai-behind.pcap"]
    judged, said, entry = seen(tmp_path / "a", *files, code=0)
    (flow,) = judged.runs[0].flows
    without_numbers(flow)
    assert judged.validity is Grade.DEGRADED
    assert "± 0" not in said
    assert "Median one-way latency" not in said
    assert "One-way latency is not known" in headline(judged)
    assert entry["passive"]["flows"][0]["residence"] is None
    assert flow.clock_offset is not None
    assert flow.clock_offset[1] == pytest.approx(37.017e9, abs=1e6)
    assert "37.017" in said
    text = CliRunner().invoke(app, ["show", str(tmp_path / "a"), "--json"]).stdout
    shown = json.loads(text, parse_constant=pytest.fail)
    told = shown["runs"][0]["flows"][0]
    assert told["uncompared"]["at_most_ns"] == flow.clock_offset[1]
    assert told["latency_ns"]["n"] == 0
    assert told["range_ns"] is not None
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "nobody compared the clocks" in page
    known, _, _ = seen(tmp_path / "b", *files, "--clock-offset", "37s", "--max-clock-offset", "0ns", code=0)
    assert known.runs[0].flows[0].summaries["latency"].value("p50") == pytest.approx(17 * MS)


def shifted(path: Path, by_ns: int) -> None:
    """Moves the times of a capture of ours, which has picoseconds."""
    data = bytearray(path.read_bytes())
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            ticks = (high << 32 | low) + by_ns * 1000
            struct.pack_into("<II", data, at + 12, ticks >> 32, ticks & 0xFFFFFFFF)
        at += length
    path.write_bytes(bytes(data))


@pytest.fixture(scope="module")
def cap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cap") / "r"
    trial(TAPS / "cap.xml", place)
    return place / "captures" / "run-0000"


@pytest.mark.parametrize("by", [-40_000, 0, 40_000])
def test_an_unknown_offset_of_a_test_decides_no_limit(cap: Path, by: int, tmp_path: Path) -> None:
    files = []
    for side in "ab":
        files.append(tmp_path / f"{side}.pcapng")
        files[-1].write_bytes((cap / f"{side}.pcapng").read_bytes())
    shifted(files[1], by)
    judged, said, _ = seen(tmp_path / "a", *files, "--test", TAPS / "cap10.xml", code=4)
    (flow,) = judged.runs[0].flows
    without_numbers(flow)
    (limit,) = judged.runs[0].limits
    assert (limit.result, limit.observed) == ("undecided", None)
    assert "nobody compared the clocks of a and b" in limit.reason
    assert judged.verdict == "UNDECIDED"
    assert "PASS" not in said
    assert flow.clock_offset is not None
    least, most = flow.clock_offset
    assert least is None
    assert most == pytest.approx(45_640 + by, abs=1)
    assert flow.counts["lost"] > 0
    assert flow.summaries["ipdv"].n
    # With a known offset it is the truth that fails.
    known, _, _ = seen(
        tmp_path / "b",
        *files,
        "--test",
        TAPS / "cap10.xml",
        "--max-clock-offset",
        f"{abs(by)}ns",
        code=1 if by >= 0 else 4,
    )
    assert known.runs[0].flows[0].summaries["latency"].n


def test_a_table_of_messages_and_exports_have_no_such_latency(cap: Path, tmp_path: Path) -> None:
    files = [cap / "a.pcapng", cap / "b.pcapng"]
    judged, _, _ = seen(tmp_path / "a", *files, "--test", TAPS / "cap10.xml", code=4)
    out = tmp_path / "flows.csv"
    done = CliRunner().invoke(app, ["export", str(tmp_path / "a"), "--format", "csv", "--out", str(out)])
    if done.exit_code == 0 and out.is_file():
        table = pl.read_csv(out, infer_schema_length=None)
        text = out.read_text()
        assert "45640" not in text, table.columns
        assert "45.64" not in text, table.columns
    compared = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "a"), "--json"])
    assert "NaN" not in compared.stdout
    assert "Infinity" not in compared.stdout
    assert math.isfinite(judged.runs[0].flows[0].loss.high)


def test_other_links_are_refused_by_their_name_with_the_cure(tmp_path: Path) -> None:
    for number, name in ((105, "IEEE802_11"), (101, "RAW")):
        path = tmp_path / f"{number}.pcap"
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, number)
        path.write_bytes(head + struct.pack("<IIII", 1, 0, 60, 60) + bytes(60))
        for more in ([], [path]):
            done = CliRunner().invoke(
                app, ["import", str(path), *map(str, more), "--out", str(tmp_path / "seen")]
            )
            assert done.exit_code == 2
            assert f"link type {name}" in done.stderr
            assert "tcpdump -i" in done.stderr
            assert done.stderr.count("\n") == 1
