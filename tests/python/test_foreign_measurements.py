"""Measurements of other programs: irtt and flent files as sides of a comparison, and what they cannot show."""

from __future__ import annotations

import gzip
import json
import statistics
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.foreign import ForeignError, measured
from wiregauge.foreign.exchanges import Exchange

CLIENT, SERVER = 1_700_000_000_000_000_000, 1_700_000_100_000_000_000
PERIOD = 10_000_000


def trip(number: int, *, took: int = 200_000, lost: str = "false", walked: int = 0) -> dict[str, Any]:
    """A round trip as irtt writes it; the client's wall clock was set by `walked` meanwhile."""
    sent = number * PERIOD

    def time(wall: int, monotonic: int) -> dict[str, int]:
        return {"wall": wall + monotonic, "monotonic": monotonic}

    client = {"send": time(CLIENT + walked, sent)}
    stamps: dict[str, Any] = {"client": client, "server": {}}
    if lost == "false":
        client["receive"] = time(CLIENT + walked, sent + took)
        stamps["server"] = {
            "receive": time(SERVER, sent + took // 2 - 2000),
            "send": time(SERVER, sent + took // 2 + 2000),
        }
    return {"seqno": number, "lost": lost, "timestamps": stamps, "delay": {}, "ipdv": {}}


def irtt(trips: list[dict[str, Any]], length: int = 64) -> bytes:
    return json.dumps(
        {
            "version": {"irtt": "0.9.0", "protocol": 1, "json_format": 1},
            "config": {"params": {"length": length}},
            "stats": {"duplicates": 0},
            "round_trips": trips,
        }
    ).encode()


def flent(series: dict[str, list[dict[str, Any]]], version: int = 4) -> bytes:
    """A data file as flent writes it."""
    return json.dumps(
        {
            "metadata": {"NAME": "ping", "SERIES_META": {name: {"UNITS": "ms"} for name in series}},
            "version": version,
            "x_values": [0.0],
            "results": {name: [1.0] for name in series},
            "raw_values": series,
        }
    ).encode()


def pings(numbers: list[int], took: float = 1.25) -> list[dict[str, Any]]:
    return [{"seq": float(n), "t": 1.7e9 + 0.2 * n, "val": took + n % 7 * 0.01} for n in numbers]


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    return result.exit_code, result.output


def put(place: Path, content: bytes) -> Path:
    place.write_bytes(content)
    return place


def test_a_result_of_irtt_becomes_a_run_with_its_round_trips_and_losses(tmp_path: Path) -> None:
    took = [200_000 + n * 7919 % 50_000 for n in range(200)]
    trips = [
        trip(
            n,
            took=t,
            lost="true_up" if n in (20, 21) else "true" if n == 90 else "false",
            walked=n * 1_000_000,
        )
        for n, t in enumerate(took)
    ]
    code, shown = run("import", put(tmp_path / "a.json", irtt(trips)), "--out", tmp_path / "r", "--json")
    flow = json.loads(shown)["runs"][0]["flows"][0]
    assert code == 0
    assert (flow["sent"], flow["lost"]) == (200, 3)
    kept = [t for n, t in enumerate(took) if n not in (20, 21, 90)]
    assert flow["rtt_ns"]["n"] == len(kept)
    # By the monotonic clock: the wall clock went on by a millisecond with each packet.
    assert flow["rtt_ns"]["max"] == max(kept)
    assert flow["rtt_ns"]["p50"] == pytest.approx(statistics.median(kept), abs=500)
    assert flow["latency_ns"]["n"] == 0, "clocks that nobody compared give nothing one way"


def test_clocks_that_are_said_to_agree_give_one_way_times(tmp_path: Path) -> None:
    trips = [trip(n) for n in range(50)]
    for one in trips:
        for stamp in one["timestamps"]["server"].values():
            stamp["wall"] -= SERVER - CLIENT
    file = put(tmp_path / "a.json", irtt(trips))
    _, shown = run("import", file, "--out", tmp_path / "r", "--max-clock-offset", "1us", "--json")
    assert json.loads(shown)["runs"][0]["flows"][0]["latency_ns"]["max"] == 98_000


def test_two_files_are_compared_and_a_slower_one_is_worse(tmp_path: Path) -> None:
    quick = put(tmp_path / "quick.json", irtt([trip(n, took=200_000 + n % 5 * 100) for n in range(200)]))
    slow = put(tmp_path / "slow.json", irtt([trip(n, took=400_000 + n % 5 * 100) for n in range(200)]))
    code, shown = run("compare", quick, slow, "--json")
    told = json.loads(shown)
    assert (code, told["verdict"]) == (1, "worse")
    assert told["base"]["directory"] == str(quick)
    assert run("compare", quick, slow, "--out", tmp_path / "page.html")[0] == 1
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_run_of_ours_and_a_foreign_file_meet_in_their_only_relayed_flow(tmp_path: Path) -> None:
    first = put(tmp_path / "a.json", irtt([trip(n) for n in range(200)]))
    assert run("import", first, "--out", tmp_path / "ours")[0] == 0
    other = put(tmp_path / "b.flent.gz", gzip.compress(flent({"Ping (ms) ICMP": pings(list(range(200)))})))
    code, shown = run("compare", tmp_path / "ours", other, "--json")
    told, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert (code, told["verdict"]) == (1, "worse")
    assert told["points"][0]["flows"][0]["matched_by"] == "role"


def test_flent_says_what_is_no_round_trip_and_counts_gaps_as_lost(tmp_path: Path) -> None:
    numbers = [n for n in range(1, 101) if n not in (5, 6, 50)]
    rates = [{"t": 1.7e9, "dur": 0.2, "val": 93.4}]
    file = put(tmp_path / "a.flent", flent({"Ping (ms) ICMP": pings(numbers), "TCP upload": rates}))
    code, shown = run("compare", file, file)
    assert code == 0
    assert 'not compared: "TCP upload": rates, counters' in shown
    run("import", file, "--out", tmp_path / "r", "--json")
    flow = json.loads((tmp_path / "r" / "measures.json").read_bytes())["runs"][0]["flows"][0]
    assert (flow["sent"], flow["lost"], flow["rtt_ns"]["n"]) == (100, 3, 97)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", "neither a run directory nor a measurement"),
        (b'{"round_trips": [], "version"', "neither a run directory nor a measurement"),
        (b"\x1f\x8b\x08damaged", "cannot be read"),
        (irtt([]), "has no round trip"),
        (irtt([trip(2**31)]), "beyond 10000000"),
        (irtt([trip(0)]).replace(b'"json_format": 1', b'"json_format": 2'), "JSON format 2; 1 can be read"),
        (irtt([trip(0)]).replace(b'"seqno": 0', b'"seqno": "x"'), "no result of irtt"),
        (flent({"Ping": pings([0, 1])}, version=9), "version 9 of flent's format"),
        (flent({"Ping": pings([0, 2**40])}), "apart"),
        (flent({"TCP upload": [{"t": 1.0, "val": 3.0}]}), "no numbered round trips"),
        (flent({"TCP upload": []}).replace(b"raw_values", b"other_values"), "has no raw values"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    file = put(tmp_path / "a.json", content)
    code, shown = run("compare", file, file)
    assert code == 2
    assert says in shown
    assert len(shown.splitlines()) == 1


def test_a_measurement_is_imported_alone(tmp_path: Path) -> None:
    file = put(tmp_path / "a.json", irtt([trip(0)]))
    code, shown = run("import", file, "--out", tmp_path / "r", "--streams")
    assert (code, "name it alone" in shown) == (2, True)


@given(st.lists(st.integers(1, 2**15 - 1), min_size=1, max_size=6), st.integers(0, 2**16 - 1))
@settings(max_examples=15, deadline=None)
def test_numbers_of_16_bits_go_on_where_they_began_anew(
    tmp_path_factory: Any, steps: list[int], first: int
) -> None:
    """Steps below half of the range are followed, so every number between first and last is there once."""
    sent = list(accumulate(steps, initial=0))
    raw = [{"seq": (n + first) % 2**16, "t": 1.7e9 + n, "val": 1.0} for n in sent]
    file = put(tmp_path_factory.mktemp("flent") / "a.flent", flent({"Ping": raw}))
    exchanges = list(measured(file).series[0].exchanges)
    assert [one.sequence for one in exchanges] == list(range(len(exchanges)))
    assert [one.sequence for one in exchanges if one.received is not None] == sent


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["round_trips", "version", "raw_values", "results", "metadata", "seq", "t", "val"]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=20,
    ).map(lambda content: json.dumps(content).encode())
)
@settings(max_examples=150, deadline=None)
def test_any_content_is_a_measurement_or_refused(tmp_path_factory: Any, content: bytes) -> None:
    file = put(tmp_path_factory.mktemp("any") / "a.json", content)
    try:
        found = measured(file)
    except ForeignError as error:
        refusal = str(error)
    else:
        assert all(isinstance(one, Exchange) for series in found.series for one in series.exchanges)
        return
    assert refusal.startswith(str(file))
