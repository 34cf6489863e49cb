"""What goes back: virtual links over one of their own, one of several receivers, and clocks that part from windows."""

from __future__ import annotations

import itertools
from pathlib import Path

import polars as pl
import pytest

from simulation import MS, US, Simulated, frame, sending, simulate, written
from wiregauge.config import load

RATE = 10**8
LINE = sending(frame(64, "rc"), RATE)


def star(kind: str, systems: str = "a b c", *, second: bool = False, delay: str = "10us") -> str:
    """End systems on one switch, and on a second one of network B."""
    nodes = "".join(f'<end-system name="{name}"/>' for name in systems.split())
    nodes += f'<switch name="sa" kind="{kind}" delay="{delay}"/>'
    links = "".join(f'<link between="{name} sa" rate="100Mbit/s"/>' for name in systems.split())
    if second:
        nodes += f'<switch name="sb" kind="{kind}" delay="{delay}"/>'
        links += "".join(
            f'<link between="{name} sb" rate="100Mbit/s" network="B"/>' for name in systems.split()
        )
    return nodes + links


def link_round_trip(relay: str, *, second: bool = False, send: str = "", more: str = "") -> str:
    return written(
        star("arinc664", second=second),
        '<flow id="10" protocol="rc" from="a" to="b" bag="2ms" lmax="200B"/>',
        f'<send flow="10" period="2ms" payload="64B" count="100" {send}/>{relay}',
        more=more,
    )


def returned(run: Simulated) -> pl.DataFrame:
    return run.records.filter(pl.col("returning") & ~pl.col("warm_up"))


def outcome(run: Simulated, to: int = 0) -> dict[str, int]:
    """Counts of the summary for one receiver of the only flow."""
    return {name: value for name, value in run.summary["flows"][to].items() if isinstance(value, int)}


def test_a_virtual_link_is_returned_over_one_of_its_own(tmp_path: Path) -> None:
    """Two hops out and two back at once, since the relay's regulator has had a BAG of rest before each message."""
    run = simulate(link_round_trip('<relay flow="10" vl="110"/>'), tmp_path)
    sent, home = run.times("wire-send", 10, "a"), run.times("application-receive", 10, "a")
    assert {home[k] - sent[k] for k in range(100)} == {2 * (2 * LINE + 10 * US)}
    assert (outcome(run)["sent"], outcome(run)["delivered"], outcome(run)["lost"]) == (100, 100, 0)


def test_the_way_back_is_regulated_and_policed(tmp_path: Path) -> None:
    """A burst comes regulated by the link out and leaves regulated by the link back: a BAG apart on both."""
    run = simulate(
        link_round_trip('<relay flow="10" vl="110"/>', send='burst="4"').replace(
            'period="2ms"', 'period="8ms"'
        ),
        tmp_path,
    )
    back = returned(run).filter((pl.col("point") == "wire-send") & (pl.col("node") == run.node("b")))
    times = back.sort("time")["time"].to_list()
    assert len(times) == 100
    assert all(later - earlier >= 2 * MS for earlier, later in itertools.pairwise(times))
    # A doubled return breaks no contract: the regulator of the relay holds the second copy for a BAG.
    doubled = simulate(
        link_round_trip(
            '<relay flow="10" vl="110"><fault kind="duplicate" sequence="3"/></relay>',
            send='rate-limit="1Mbit/s"',
        ).replace('period="2ms"', 'period="8ms"'),
        tmp_path / "doubled",
    )
    assert doubled.at("drop").is_empty()
    assert outcome(doubled)["duplicated"] == 1


def test_both_networks_lead_back_and_redundant_discarded_are_removed(tmp_path: Path) -> None:
    cut = '<faults><cut link="b sb" from="50ms"/></faults>'
    for name, more in (("whole", ""), ("cut", cut)):
        run = simulate(
            link_round_trip('<relay flow="10" vl="110"/>', second=True, more=more), tmp_path / name
        )
        assert (outcome(run)["delivered"], outcome(run)["duplicated"]) == (100, 0)
        at_home = returned(run).filter(pl.col("node") == run.node("a"))
        copies = at_home.filter(pl.col("reason") == "second-copy").height
        assert copies == 100 if name == "whole" else 0 < copies < 100


def test_planted_faults_of_a_virtual_link_are_found(tmp_path: Path) -> None:
    faults = "".join(
        f'<fault kind="{kind}" sequence="{at}"/>'
        for kind, at in (("loss", 5), ("duplicate", 10), ("reorder", 20), ("corrupt", 30))
    )
    run = simulate(link_round_trip(f'<relay flow="10" vl="110">{faults}</relay>'), tmp_path)
    found = outcome(run)
    assert (found["lost"], found["duplicated"], found["reordered"], found["corrupted"]) == (2, 1, 1, 1)


@pytest.mark.parametrize("protocol", ["raw", "be", "rc"])
def test_one_of_several_receivers_relays(tmp_path: Path, protocol: str) -> None:
    vl, more = (' vl="110"', 'bag="2ms" lmax="200B"') if protocol == "rc" else ("", "")
    kind = "cots" if protocol == "raw" else "mixed-criticality"
    run = simulate(
        written(
            star(kind),
            f'<flow id="10" protocol="{protocol}" from="a" to="b c" {more}/>',
            f'<send flow="10" period="4ms" payload="64B" count="50"/><relay flow="10" on="c"{vl}/>'
            '<receive flow="10" on="b"/>',
        ),
        tmp_path,
    )
    length = sending(frame(64, protocol), RATE)
    assert run.summary["unplanned"] == dict.fromkeys(run.summary["unplanned"], 0)
    for to in (0, 1):
        found = outcome(run, to)
        assert (found["sent"], found["delivered"], found["lost"], found["duplicated"]) == (50, 50, 0, 0)
    sent, home = run.times("wire-send", 10, "a"), run.times("application-receive", 10, "a")
    assert {home[k] - sent[k] for k in range(50)} == {2 * (2 * length + 10 * US)}
    assert not run.times("application-send", 10, "b"), "who only receives sends nothing"


def schedule(clock: str, count: int = 400) -> str:
    nodes = (
        f'<end-system name="a">{clock}</end-system><end-system name="b"/>'
        '<switch name="sa" kind="mixed-criticality"/>'
        '<link between="a sa" rate="100Mbit/s"/><link between="b sa" rate="100Mbit/s"/>'
    )
    return written(
        nodes,
        '<flow id="7" protocol="tt" from="a" to="b" period="1ms" offset="100us" late="900us"/>',
        f'<send flow="7" period="1ms" payload="46B" count="{count}"/><receive flow="7"/>',
    )


def test_frames_miss_their_window_when_the_warning_says(tmp_path: Path) -> None:
    """The plan computes when clocks part; the simulator drives the clocks. Neither asks the other."""
    file = tmp_path / "t.xml"
    file.write_text(schedule('<clock drift="-20ppm"/>'), encoding="utf-8")
    (warning,) = load(file).warnings
    assert "from 101ms after the epoch on, frames of flow 7 come too late" in warning
    run = simulate(file.read_text(encoding="utf-8"), tmp_path / "run")
    out = dict(run.at("switch-out", 7).select("sequence", "time").iter_rows())
    ready = run.times("switch-in", 7)
    waits = {sequence: out[sequence] - ready[sequence] for sequence in out}
    at_once = [sequence for sequence, wait in waits.items() if wait < 100 * US]
    missed = [sequence for sequence, wait in waits.items() if wait > 500 * US]
    # Message k leaves 100 us into its millisecond: 99 is the last before 100 ms, 101 the first surely after.
    assert set(range(99)) <= set(at_once)
    assert set(range(102, max(out))) <= set(missed)


def test_without_drift_nothing_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(schedule(""), encoding="utf-8")
    assert load(file).warnings == ()
    assert load(file).campaign.runs
