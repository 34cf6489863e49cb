"""What must hold in every simulated network, whatever is in it: nothing made or lost without an event, one frame on
a wire at a time, order within a class, and the same bytes for the same seed."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulation import occupation, simulate

FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
RATES = {"100Mbit/s": 10**8, "1Gbit/s": 10**9}


@st.composite
def networks(draw: st.DrawFn) -> str:
    """A tree of two or three switches of one kind, two end systems on each, flows of every protocol they carry."""
    kind = draw(st.sampled_from(["cots", "arinc664", "mixed-criticality"]))
    count = draw(st.integers(1, 3))
    ends = [f"e{i}" for i in range(2 * count)]
    rate = draw(st.sampled_from(list(RATES)))
    switch = (
        f'kind="{kind}" delay="{draw(st.integers(0, 9))}us" buffer="{draw(st.sampled_from(["4KiB", "64KiB"]))}" '
        f'forwarding-mode="{draw(st.sampled_from(["store-and-forward", "cut-through"]))}" '
        f'forwarding="{draw(st.sampled_from(["static", "learning"]))}" '
    )
    if kind == "cots":
        switch += f'priorities="{draw(st.sampled_from(["fifo", "strict"]))}"'
    if kind == "mixed-criticality":
        switch += f'integration="{draw(st.sampled_from(["timely-block", "preemption", "shuffling"]))}"'
    both = kind != "cots" and draw(st.booleans())
    nodes = "".join(f'<end-system name="{name}"/>' for name in ends)
    links = ""
    for network in "AB" if both else "A":
        nodes += "".join(f'<switch name="{network}{i}" {switch}/>' for i in range(count))
        links += "".join(
            f'<link between="{name} {network}{i // 2}" rate="{rate}" delay="{10 * i}ns" network="{network}"/>'
            for i, name in enumerate(ends)
        )
        links += "".join(
            f'<link between="{network}{i} {network}{i + 1}" rate="{rate}" network="{network}"/>'
            for i in range(count - 1)
        )
    allowed = {
        "cots": ["udp", "raw"],
        "arinc664": ["raw", "be", "rc"],
        "mixed-criticality": ["be", "rc", "tt"],
    }
    flows, tasks = "", ""
    for number in range(1, draw(st.integers(1, 4)) + 1):
        protocol = draw(st.sampled_from(allowed[kind]))
        source, target = draw(st.permutations(ends))[:2]
        payload = draw(st.integers(12, 1_000))
        more = {
            "rc": f'bag="{draw(st.sampled_from([1, 2, 4]))}ms" lmax="1200B"',
            # Instants far enough apart that no two windows can clash.
            "tt": f'period="16ms" offset="{number * 3}ms" lmax="1100B"',
        }.get(protocol, "")
        flows += f'<flow id="{number}" protocol="{protocol}" from="{source}" to="{target}" {more}/>'
        period = 16 if protocol == "tt" else draw(st.sampled_from([4, 5]))
        pattern = "" if protocol == "tt" else draw(st.sampled_from(["", 'distribution="exponential"']))
        tasks += f'<send flow="{number}" period="{period}ms" payload="{payload}B" {pattern}/>'
        end = "relay" if protocol in ("udp", "raw") and draw(st.booleans()) else "receive"
        tasks += f'<{end} flow="{number}"/>'
    faults = ""
    if draw(st.booleans()):
        victim = f"{ends[0]} A0"
        faults = (
            f'<faults><loss link="{victim}" share="5%"/><duplicate link="{victim}" share="5%"/>'
            f'<bit-errors link="{victim}" rate="1e-5"/><corrupt link="{victim}" share="3%"/></faults>'
        )
    seed = draw(st.integers(0, 2**40))
    return (
        f'<test xmlns="urn:wiregauge:test:2" name="any" seed="{seed}"><network host="ideal">{nodes}{links}</network>'
        f'<flows>{flows}</flows><tasks duration="80ms" drain="100ms">{tasks}</tasks>{faults}</test>'
    )


@FEW
@given(text=networks())
def test_no_frame_is_made_or_lost_without_an_event(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over all links: what began on a wire, less what links lost, plus what they doubled, came out of it."""
    run = simulate(text, tmp_path_factory.mktemp("any"))
    began = run.at("wire-send").height + run.at("switch-out").height
    ended = run.at("wire-receive").height + run.at("switch-in").height
    # A sending that was cut off leaves no record of its own; a faulty link may tell of it all the same.
    due = began - run.told("link-lost") + run.told("duplicated")
    slack = run.told("preempted") if "<faults>" in text else 0
    # An end system tells of a damaged frame by its drop alone; a switch has seen it come.
    hosts = list(run.plan.network.end_systems)
    damaged = run.at("drop").filter((pl.col("reason") == "frame-check") & pl.col("node").is_in(hosts))
    ended += damaged.height
    if "learning" in text:
        # What a switch floods, interfaces that are not meant leave alone, as they do in life.
        assert ended <= due + slack
    else:
        assert due <= ended <= due + slack
    for flow in run.summary["flows"]:
        assert flow["sent"] == flow["delivered"] + flow["lost"]


@FEW
@given(text=networks())
def test_never_two_frames_on_one_wire(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two frames begin on one port at least one occupation apart."""
    run = simulate(text, tmp_path_factory.mktemp("any"))
    rate = run.plan.network.links[0].rate_bps
    begun = run.records.filter(pl.col("point").is_in(["wire-send", "switch-out"])).sort("time")
    for (_, _), port in begun.group_by("node", "port"):
        rows = port.sort("time").select("time", "length").rows()
        for (first, length), (second, _) in itertools.pairwise(rows):
            assert second - first >= occupation(length, rate)


@FEW
@given(text=networks())
def test_messages_of_a_flow_keep_their_order(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One way, one class, no fault that reorders: each port hands them on in the order in which they came."""
    run = simulate(text, tmp_path_factory.mktemp("any"))
    if "duplicate" in text:
        return
    for (_, _, _, _), port in run.at("switch-out").group_by("node", "port", "flow", "returning"):
        numbers = port.sort("time", maintain_order=True)["sequence"].to_list()
        assert numbers == sorted(numbers)
    for flow in run.summary["flows"]:
        assert flow["outcomes"]["reordered"] == 0


def _bytes(place: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted((place / "spool").rglob("*.arrows")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@settings(parent=FEW, max_examples=15)
@given(text=networks())
def test_the_same_seed_gives_the_same_bytes(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    first, again = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    simulate(text, first)
    simulate(text, again)
    assert _bytes(first) == _bytes(again)


def test_another_seed_differs(tmp_path: Path) -> None:
    text = (
        '<test xmlns="urn:wiregauge:test:2" name="any" seed="{}"><network>'
        '<end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>'
        '<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>'
        '<tasks><send flow="1" period="1ms" payload="64B" count="50"/><receive flow="1"/></tasks></test>'
    )
    simulate(text.format(1), tmp_path / "1")
    simulate(text.format(2), tmp_path / "2")
    assert _bytes(tmp_path / "1") != _bytes(tmp_path / "2")
