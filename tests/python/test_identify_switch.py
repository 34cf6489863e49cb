"""A switch identified from records, whose parameters only the test knows; curves against every pair of frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simulation import trial
from wiregauge.cli import app
from wiregauge.identify import IdentifyError, service
from wiregauge.identify.passed import passed_by
from wiregauge.identify.switches import fit_switch
from wiregauge.records import RunDirectory

LONGEST = 1346
"""Bytes of the longest frame of `secret`."""


def secret(switch: str, *, rate: str = "100Mbit/s", burst: int = 30, seed: int = 7, count: int = 600) -> str:
    """A test whose switch is told by attributes."""
    return f"""<test xmlns="urn:wiregauge:test:2" name="secret" seed="{seed}" bench="sim">
  <network><end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="sw" {switch}/>
    <link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/>
    <link between="sw c" rate="{rate}"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="c"/><flow id="20" protocol="udp" from="b" to="c"/>
    <flow id="30" protocol="udp" from="a" to="b"/></flows>
  <tasks warm-up="0s" drain="200ms">
    <send flow="10" period="4ms" payload="1300B" count="{count}" burst="{burst}" spacing="12us"/>
    <send flow="20" period="173us" payload="200B" count="1000"/>
    <send flow="30" period="673us" payload="600B" count="400"/>
    <receive flow="10"/><receive flow="20"/><receive flow="30"/><capture on="a"/><capture on="b"/></tasks>
</test>"""


def ran(place: Path, text: str) -> Path:
    place.mkdir()
    (place / "t.xml").write_text(text, encoding="utf-8")
    trial(place / "t.xml", place / "r")
    return place / "r"


def identified(run: Path, *more: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["identify", str(run), "--json", *map(str, more)])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("switch", "mode", "delay_ps", "size", "unit"),
    [
        ('delay="3700ns" buffer="20KiB"', "store-and-forward", 3_700_000, 20_480, "B"),
        ('delay="11us" buffer-frames="9"', "store-and-forward", 11_000_000, 9, "frames"),
        ('delay="900ns" shared-buffer="17KiB"', "store-and-forward", 900_000, 17_408, "B"),
    ],
)
def test_a_switch_with_secrets_is_identified(
    switch: str, mode: str, delay_ps: int, size: int, unit: str, tmp_path: Path
) -> None:
    told = identified(ran(tmp_path / "one", secret(switch)), "--out", tmp_path / "sw.switch.xml")
    assert told["delay"]["mode"] == mode
    assert told["delay"]["delay"]["value"] == pytest.approx(delay_ps, rel=0.01)
    (slow,) = (port for port in told["ports"] if port["port"] == "sw:3")
    assert slow["rate"]["value"] == pytest.approx(100e6, rel=0.01)
    assert slow["rate"]["low"] <= 100e6 <= slow["rate"]["high"]
    frame = LONGEST if unit == "B" else 1
    assert told["buffer"]["unit"] == unit
    assert told["buffer"]["least"] <= size < told["buffer"]["below"] <= told["buffer"]["least"] + frame + 1
    # The simulator behaves like it: the same losses and the same latencies.
    again = ran(tmp_path / "again", secret(f'file="{tmp_path / "sw.switch.xml"}"'))
    tables = [
        pl.read_parquet(run / "messages" / "run-0000.parquet").sort("flow", "sequence")
        for run in (tmp_path / "one" / "r", again)
    ]
    assert tables[0]["outcome"].cast(pl.String).to_list() == tables[1]["outcome"].cast(pl.String).to_list()
    assert tables[0]["rx_app"].to_list() == tables[1]["rx_app"].to_list()


def test_cutting_through_is_detected_and_what_nothing_tells_is_said(tmp_path: Path) -> None:
    run = ran(
        tmp_path / "one", secret('delay="1200ns" forwarding-mode="cut-through"', rate="1Gbit/s", burst=3)
    )
    told = identified(run)
    assert told["delay"]["mode"] == "cut-through"
    assert told["delay"]["delay"]["value"] == pytest.approx(1_200_000, rel=0.01)
    assert told["attributes"] == {"name": "sw", "forwarding-mode": "cut-through", "delay": "1200ns"}
    assert told["buffer"]["below"] is None
    assert all(port["rate"] is None for port in told["ports"])
    assert any("the rate of sw:3" in sentence for sentence in told["untold"])


def test_a_bound_on_the_identified_model_holds_for_fresh_traffic(tmp_path: Path) -> None:
    identified(ran(tmp_path / "one", secret('delay="3700ns" buffer="20KiB"')), "--out", tmp_path / "sw.xml")
    fresh = secret(f'file="{tmp_path / "sw.xml"}" buffer="512KiB"', burst=25, seed=91)
    (tmp_path / "bounded.xml").write_text(fresh, encoding="utf-8")
    done = CliRunner().invoke(app, ["bounds", str(tmp_path / "bounded.xml"), "--json"])
    assert done.exit_code == 0, done.output
    bounds = {
        int(flow["flow"]): flow["targets"][0]["delay"] * 1e12 for flow in json.loads(done.stdout)["flows"]
    }
    real = secret('delay="3700ns" buffer="512KiB"', burst=25, seed=91)
    run = ran(tmp_path / "fresh", real)
    taken = pl.read_parquet(run / "messages" / "run-0000.parquet")
    taken = taken.with_columns(took=pl.col("rx_app") - pl.col("intended"))
    for (flow,), part in taken.group_by("flow"):
        assert part.height > 300
        assert part["took"].max() <= bounds[int(str(flow))]


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
def test_captures_before_and_after_tell_the_same(mode: str, tmp_path: Path) -> None:
    run = ran(tmp_path / "one", secret(f'delay="2500ns" forwarding-mode="{mode}"', rate="1Gbit/s", burst=2))
    captures = [str(run / "captures" / "run-0000" / f"{name}.pcapng") for name in "ab"]
    options = ["--passive", "--max-clock-offset", "0ns", "--out", str(tmp_path / "seen")]
    # Frames to c are in one capture only; what is left is of one length and does not tell how it is forwarded ...
    done = CliRunner().invoke(app, ["import", *captures, *options])
    assert done.exit_code == 0, done.output
    told = identified(tmp_path / "seen")
    if mode == "cut-through":
        assert told["delay"]["mode"] == mode  # ... but that a frame left before it had come.
        assert told["delay"]["delay"]["value"] == pytest.approx(2_500_000, rel=0.01)
    else:
        assert told["delay"]["mode"] is None
        assert told["delay"]["delay"]["value"] == pytest.approx(2_500_000, rel=0.01)


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    run = ran(tmp_path / "one", secret('delay="1us"', burst=2))
    directory = RunDirectory.open(run)
    with pytest.raises(IdentifyError, match='no switch "nosuch"; it has sw'):
        passed_by(directory, "nosuch")
    with pytest.raises(IdentifyError, match="no records of run 3"):
        passed_by(directory, None, 3)
    done = CliRunner().invoke(app, ["identify", str(run), "--out", str(run)])
    assert done.exit_code == 2, done.output
    few = secret('delay="1us"', count=2).replace('count="400"', 'count="5"').replace('"1000"', '"5"')
    run = ran(tmp_path / "few", few)
    with pytest.raises(IdentifyError, match="30 are needed"):
        fit_switch(passed_by(RunDirectory.open(run)))


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(64, 1518)), min_size=2, max_size=30),
    st.integers(1, 10**9),
)
def test_the_least_bucket_is_that_of_the_worst_stretch(frames: list[tuple[int, int]], rate: int) -> None:
    frames.sort()
    times = np.array([at for at, _ in frames], dtype=np.int64)
    bits = 8.0 * np.array([length + 20 for _, length in frames])
    worst = max(
        bits[i : j + 1].sum() - rate * (times[j] - times[i]) / 1e12
        for i in range(len(frames))
        for j in range(i, len(frames))
    )
    assert service.least_burst(times, bits, rate) == pytest.approx(worst)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**8), st.integers(64, 1518), st.integers(0, 10**7)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([10**8, 10**9]),
)
def test_a_rate_server_is_late_by_the_least_latency_that_explains_it(
    frames: list[tuple[int, int, int]], rate: int
) -> None:
    frames.sort()
    came = np.array([at for at, _, _ in frames], dtype=np.int64)
    bits = 8.0 * np.array([length + 20 for _, length, _ in frames])
    left, virtual, free = [], [], 0.0
    for at, size, (_, _, more) in zip(came.tolist(), bits.tolist(), frames, strict=True):
        free = max(at, free) + size / rate * 1e12
        virtual.append(free)
        left.append(free + more)
    guaranteed = service.guaranteed_rate(came, np.array(left), bits, rate)
    assert guaranteed.latency_ps == pytest.approx(max(more for _, _, more in frames), abs=1)
    # The packet-scale guarantee is the stronger one: it needs at least as much.
    assert service.scale_rate(came, np.array(left), bits, rate).latency_ps >= guaranteed.latency_ps - 1
