"""Contracts of one place: each promise broken once in frames written here, and what a capture lacks decides nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import foreign_frames
from command_json import validator
from test_one_tap import MS, US, VL_16, Frame, classic, two_interfaces, virtual_link
from wiregauge.cli import app
from wiregauge.contracts import ContractError, judge, learnt, read_contract
from wiregauge.streams import Observed, observe
from wiregauge.streams.observed import schema_path

pytestmark = pytest.mark.usefixtures("unreported")

CSV = "id,bag,lmax,networks\n16,8ms,200B,A\n"


def steady(count: int = 60) -> list[Frame]:
    """Frames of a virtual link every 8 ms."""
    return [(n * 8 * MS, virtual_link(n % 255 + 1)) for n in range(count)]


def moved(frames: list[Frame], place: int, by: int) -> list[Frame]:
    """The frames, one of them sent at another time."""
    at, data = frames[place]
    return [*frames[:place], (at + by, data), *frames[place + 1 :]]


def seen(tmp_path: Path, frames: Sequence[Frame], dropped: int | None = None) -> Observed:
    path = tmp_path / "tap.pcap"
    path.write_bytes(classic(frames))
    return observe([path], dropped)


def results(observed: Observed, text: str, tmp_path: Path, error_ns: float = 0.0) -> dict[str, str]:
    path = tmp_path / ("contract.csv" if text.startswith("id") else "contract.toml")
    path.write_text(text)
    found = judge(observed, read_contract(path), error_ns)
    return {"verdict": found.verdict, **{one.measure: one.result for one in found.promises}}


def test_a_kept_contract_passes_and_each_broken_promise_fails(tmp_path: Path) -> None:
    good = steady()
    kept = results(seen(tmp_path, good), CSV, tmp_path)
    assert kept == {
        "verdict": "PASS",
        **dict.fromkeys(("bag_jitter", "frame_length", "missing", "rejected"), "pass"),
    }
    early = results(seen(tmp_path, moved(good, 30, -600 * US), 0), CSV, tmp_path)
    assert (early["verdict"], early["bag_jitter"]) == ("FAIL", "fail")
    long = [(at, data + bytes(200)) for at, data in good]
    assert results(seen(tmp_path, long, 0), CSV, tmp_path)["frame_length"] == "fail"
    lost = good[:20] + good[21:]
    assert results(seen(tmp_path, lost, 0), CSV, tmp_path)["missing"] == "fail"
    outage = good[:20] + good[22:]
    assert results(seen(tmp_path, outage, 0), CSV, tmp_path)["rejected"] == "fail"


def test_what_the_capture_may_lack_decides_nothing(tmp_path: Path) -> None:
    good = steady()
    lost = good[:20] + good[21:]
    unknown = results(seen(tmp_path, lost), CSV, tmp_path)
    assert (unknown["verdict"], unknown["missing"]) == ("UNDECIDED", "undecided")
    assert unknown["bag_jitter"] == "undecided", "the frame that is missing may have come too early"
    two = good[:20] + good[22:]
    assert results(seen(tmp_path, two, 1), CSV, tmp_path)["missing"] == "fail", "one was lost in the network"
    early = moved(lost, 40, -600 * US)
    assert results(seen(tmp_path, early), CSV, tmp_path)["bag_jitter"] == "fail", "no frame mends that"


def test_a_bound_within_the_error_of_timestamps_is_undecided(tmp_path: Path) -> None:
    observed = seen(tmp_path, moved(steady(), 30, -480 * US), 0)
    assert results(observed, CSV, tmp_path)["bag_jitter"] == "pass"
    assert results(observed, CSV, tmp_path, error_ns=50_000)["bag_jitter"] == "undecided"
    coarse = [replace(tap, step_ps=50_000_000) for tap in observed.taps]
    assert results(replace(observed, taps=coarse), CSV, tmp_path)["bag_jitter"] == "undecided"


def test_a_silent_stream_breaks_an_interval_and_decides_nothing_else(tmp_path: Path) -> None:
    text = (
        '[[stream]]\nkind = "arinc664"\nvl = 17\nlmax = "200B"\n'
        'max-interval = "100ms"\n[[stream]]\nkind = "arinc664"\nvl = 16\nmax-interval = "9ms"\n'
    )
    observed = seen(tmp_path, steady(), 0)
    path = tmp_path / "c.toml"
    path.write_text(text)
    judged = judge(observed, read_contract(path))
    told = {(one.stream[:5], one.measure): one.result for one in judged.promises}
    assert told == {
        ("strea", "frame_length"): "undecided",
        ("strea", "longest_interval"): "fail",
        ("VL 16", "longest_interval"): "pass",
    }
    assert judged.unseen == ["stream 1"]
    ended = replace(observed, duration_ps=observed.duration_ps + 10**12)
    assert results(ended, text, tmp_path)["longest_interval"] == "fail", "it fell silent"


def test_streams_in_no_contract_are_listed_and_refused_if_that_is_asked(tmp_path: Path) -> None:
    other = [(at + MS, VL_16[:5] + b"\x11" + data[6:]) for at, data in steady()]
    observed = seen(tmp_path, sorted([*steady(), *other]), 0)
    text = '[[stream]]\nkind = "arinc664"\nvl = 16\nlmax = "200B"\n'
    path = tmp_path / "c.toml"
    path.write_text(text)
    judged = judge(observed, read_contract(path))
    assert judged.verdict == "PASS"
    assert [name[:5] for name in judged.others] == ["VL 17"]
    assert results(observed, 'others = "refused"\n' + text, tmp_path)["verdict"] == "FAIL"


def test_two_networks_are_judged_by_their_copies(tmp_path: Path) -> None:
    frames = [
        (side, n * 8 * MS + ((n % 3 - 1) * 20 * US) * side, virtual_link(n % 255 + 1))
        for n in range(60)
        for side in (0, 1)
        if (n, side) != (20, 1)
    ]
    path = tmp_path / "pair.pcapng"
    path.write_bytes(two_interfaces(sorted(frames, key=lambda frame: frame[1])))
    text = CSV.replace("networks", "networks,skew-max").replace(",A", ",AB,15us")
    told = results(observe([path], 0), text, tmp_path)
    assert (told["on_one_network"], told["skew"]) == ("fail", "fail")
    told = results(observe([path]), text.replace("15us", "25us"), tmp_path)
    assert told["on_one_network"] == "undecided", "the capture may have lost the copy"
    one_only = results(seen(tmp_path, steady()), text, tmp_path)
    assert (one_only["on_one_network"], one_only["skew"]) == ("undecided", "undecided")


def test_what_is_learnt_is_kept_by_what_it_was_learnt_from_and_broken_by_a_fault(tmp_path: Path) -> None:
    frames = moved(steady(), 10, 300 * US)
    text = learnt(seen(tmp_path, frames))
    assert "# Margins: times and skew 20 %" in text
    assert set(results(seen(tmp_path, frames), text, tmp_path).values()) == {"pass", "PASS"}
    assert results(seen(tmp_path, moved(frames, 40, 3 * MS), 0), text, tmp_path)["longest_interval"] == "fail"


@pytest.mark.parametrize("kind", ["arinc664", *foreign_frames.KINDS])
def test_of_every_kind_what_is_learnt_is_kept_also_where_a_stream_passes_both_taps(
    kind: str, tmp_path: Path
) -> None:
    frame = virtual_link if kind == "arinc664" else foreign_frames.KINDS[kind][0]
    frames = [
        (side, n * MS + ((n % 3 - 1) * 20 * US) * side, frame(n % 255 + 1))
        for n in range(60)
        for side in (0, 1)
    ]
    path = tmp_path / "pair.pcapng"
    path.write_bytes(two_interfaces(sorted(frames, key=lambda one: one[1])))
    observed = observe([path], 0)
    told = results(observed, learnt(observed), tmp_path)
    assert set(told.values()) == {"pass", "PASS"}
    assert len(told) > 2


TABLE = '[[stream]]\nkind = "arinc664"\nvl = 16\n'


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("c.toml", TABLE + 'lmaks = "200B"\n', ':4: there is no "lmaks"'),
        ("c.toml", TABLE + TABLE.replace("16", "17") + "lmax = 200\n", ":7: lmax: "),
        ("c.toml", TABLE + 'max-missing = "few"\n', ":4: max-missing = 'few': write a number of frames"),
        ("c.toml", TABLE + 'max-jitter = "1ms"\n', ":4: a jitter is one of a BAG"),
        ("c.toml", TABLE + 'bag = "3ms"\n', "1ms, 2ms, 4ms"),
        ("c.toml", TABLE + 'network = "C"\n', ':4: "C" is no network'),
        ("c.toml", TABLE + TABLE, "recognised by the same"),
        ("c.toml", '[[stream]]\nkind = "arinc"\n', ":2: the kind is missing or unknown"),
        ("c.toml", "", "lists no stream"),
        ("c.toml", "[[stream]\n", "is no TOML"),
        ("c.toml", 'ohters = "refused"\n' + TABLE, ":1: there is no"),
        ("c.csv", "id,bag,lmax\n16,8,200B\n", ":2: bag \"8\" has no unit; write 8ms"),
        ("c.csv", "id,bag,lmax\n16,3ms,200B\n", "1ms, 2ms, 4ms"),
        ("c.csv", "id,bag,lmax\n70000,8ms,200B\n", "write 0 to 65535"),
        ("c.csv", "id,bag\n16,8ms\n", 'there is no column "lmax"'),
        ("c.csv", "id,bag,lmax,colour\n", 'there is no column "colour"'),
        ("c.csv", "id,bag,lmax\n16,8ms\n", ":2: there are 2 cells below 3 heads"),
        ("c.csv", "id,bag,lmax,networks\n16,8ms,200B,C\n", "write A, B or AB"),
    ],
)  # fmt: skip
def test_a_fault_in_a_contract_is_told_with_line_and_cure(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ContractError) as raised:
        read_contract(path)
    assert says in str(raised.value)


def test_columns_may_state_their_units(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(
        "# from the network's tables\nVL ID;BAG (ms);Lmax (B);A/B;Jitter (us)\n0x10;8;200;A+B;400\n"
    )
    (link,) = read_contract(path).streams
    assert (link.fields, link.bag_ps, link.max_on_one) == ({"vl": 16}, 8 * 10**9, 0)
    assert (link.bounds["lmax"], link.bounds["max-jitter"]) == (200, 400_000)


def imported(tmp_path: Path, *options: str) -> Any:
    return CliRunner().invoke(
        app, ["import", str(tmp_path / "tap.pcap"), "--out", str(tmp_path / "seen"), *options]
    )


def test_the_verdict_is_the_first_line_and_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "tap.pcap").write_bytes(classic(moved(steady(), 30, -600 * US)))
    (tmp_path / "c.csv").write_text(CSV)
    done = imported(tmp_path, "--contract", str(tmp_path / "c.csv"))
    assert done.exit_code == 1
    assert done.stdout.startswith("verdict FAIL")
    stored = json.loads((tmp_path / "seen" / "streams.json").read_text())
    validator(schema_path()).validate(stored)
    assert stored["verdict"] == "FAIL"
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "seen")])
    told = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("report: "))
    assert (shown.exit_code, shown.stdout) == (1, told)


def test_a_contract_is_learnt_once(tmp_path: Path) -> None:
    (tmp_path / "tap.pcap").write_bytes(classic(steady()))
    learn = ("--learn", str(tmp_path / "c.toml"))
    assert imported(tmp_path, *learn).exit_code == 0
    assert read_contract(tmp_path / "c.toml").streams[0].fields["vl"] == 16
    again = imported(tmp_path, *learn)
    assert again.exit_code == 2
    assert "may have been edited" in " ".join(again.stderr.split())


def test_the_flows_of_a_test_are_a_contract_of_its_capture(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(
        '<test xmlns="urn:wiregauge:test:2" name="t"><network host="ideal"><end-system name="a"/><end-system name="b"/>'
        '<link between="a b" rate="100Mbit/s"/></network><flows>'
        '<flow id="10" protocol="rc" from="a" to="b" bag="2ms" lmax="400B"/>'
        '<flow id="20" protocol="udp" from="a" to="b"/></flows><tasks>'
        '<send flow="10" period="2ms" payload="100B" count="50"/><receive flow="10"/>'
        '<send flow="20" period="4ms" payload="200B" count="25"/><receive flow="20"/><capture on="b"/></tasks></test>'
    )
    runner = CliRunner()
    assert runner.invoke(app, ["run", str(tmp_path / "t.xml"), "--out", str(tmp_path / "r")]).exit_code == 0
    capture = tmp_path / "r" / "captures" / "run-0000" / "b.pcapng"
    capture.rename(tmp_path / "tap.pcap")
    done = imported(tmp_path, "--contract", str(tmp_path / "t.xml"))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("verdict PASS  7 promises")
